// ReadableStream, its readers and controllers: https://streams.spec.whatwg.org/#rs
import { assert, assertEquals, assertInterface, assertRejects, assertThrows, test } from "../harness.js";

const collect = (stream) => Array.fromAsync(stream);
const bytes = (...values) => new Uint8Array(values);
const tick = () => new Promise((resolve) => setTimeout(resolve, 0));

test("ReadableStream: the interface", () => {
  assertInterface("ReadableStream", {
    methods: { cancel: 0, getReader: 0, pipeThrough: 1, pipeTo: 1, tee: 0, values: 0 },
    getters: ["locked"],
    statics: { from: 1 },
  });
  assertInterface("ReadableStreamDefaultReader", { length: 1, methods: { read: 0, releaseLock: 0, cancel: 0 } });
  assertInterface("ReadableStreamBYOBReader", { length: 1, methods: { read: 1, releaseLock: 0, cancel: 0 } });
  assertThrows(TypeError, () => new ReadableStreamDefaultController());
  assertThrows(TypeError, () => new ReadableByteStreamController());
  assertEquals(typeof ReadableStream.prototype[Symbol.asyncIterator], "function");
});

test("a pull source is asked until it closes", async () => {
  let count = 0;
  const stream = new ReadableStream({
    pull(controller) {
      controller.enqueue(++count);
      if (count === 4) controller.close();
    },
  });
  assertEquals(await collect(stream), [1, 2, 3, 4]);
});

test("start, pull and cancel are called with the source as this", async () => {
  const seen = [];
  const source = {
    start() { seen.push(["start", this === source]); },
    pull() { seen.push(["pull", this === source]); },
    cancel(reason) { seen.push(["cancel", this === source, reason]); },
  };
  const stream = new ReadableStream(source);
  await tick();
  await stream.cancel("enough");
  assertEquals(seen, [["start", true], ["pull", true], ["cancel", true, "enough"]]);
});

test("S2: a start() that throws or fails errors the stream", async () => {
  const error = new Error("no");
  for (const start of [() => { throw error; }, () => Promise.reject(error)]) {
    const stream = new ReadableStream({ start });
    assertEquals(await stream.getReader().read().catch((e) => e), error);
  }
});

test("S1: a source without start() is pulled in the constructor, one with it later", async () => {
  let plain = 0;
  let started = 0;
  new ReadableStream({ pull() { plain++; } });
  new ReadableStream({ start() {}, pull() { started++; } });
  assertEquals([plain, started], [1, 0]);
  await tick();
  assertEquals([plain, started], [1, 1]);
});

test("a thenable prototype is not asked by a read", async () => {
  let asked = 0;
  let controller;
  const stream = new ReadableStream({ start(c) { controller = c; } });
  const reader = stream.getReader();
  const waiting = reader.read();
  let queued, ended;
  Object.defineProperty(Object.prototype, "then", { configurable: true, get() { asked++; return undefined; } });
  try {
    controller.enqueue("a");
    controller.enqueue("b");
    queued = reader.read();
    controller.close();
    ended = reader.read();
  } finally {
    delete Object.prototype.then;
  }
  assertEquals(asked, 0);
  const results = [await waiting, await queued, await ended];
  assertEquals(results.map((r) => [r.value, r.done]), [["a", false], ["b", false], [undefined, true]]);
  assertEquals(Reflect.ownKeys(results[0]), ["value", "done"]);
});

test("desiredSize follows the strategy", () => {
  let controller;
  new ReadableStream({ start(c) { controller = c; } }, { highWaterMark: 5, size: (chunk) => chunk.length });
  assertEquals(controller.desiredSize, 5);
  controller.enqueue("abc");
  assertEquals(controller.desiredSize, 2);
  controller.enqueue("defg");
  assertEquals(controller.desiredSize, -2);
  controller.error(new Error("x"));
  assertEquals(controller.desiredSize, null);
});

test("close() lets queued chunks be read; later use throws", async () => {
  let controller;
  const stream = new ReadableStream({ start(c) { controller = c; } });
  controller.enqueue("a");
  controller.close();
  assertThrows(TypeError, () => controller.enqueue("b"));
  assertThrows(TypeError, () => controller.close());
  const reader = stream.getReader();
  assertEquals(await reader.read(), { value: "a", done: false });
  assertEquals(await reader.read(), { value: undefined, done: true });
  assertEquals(await reader.closed, undefined);
});

test("error() drops queued chunks and rejects reads and closed", async () => {
  let controller;
  const stream = new ReadableStream({ start(c) { controller = c; } });
  controller.enqueue("lost");
  const error = new Error("broken");
  controller.error(error);
  const reader = stream.getReader();
  assertEquals(await reader.read().catch((e) => e), error);
  assertEquals(await reader.closed.catch((e) => e), error);
  assertEquals(await stream.cancel().catch((e) => e.constructor), TypeError);
});

test("reads wait for chunks in order", async () => {
  let controller;
  const stream = new ReadableStream({ start(c) { controller = c; } });
  const reader = stream.getReader();
  const reads = [reader.read(), reader.read(), reader.read()];
  controller.enqueue(1);
  controller.enqueue(2);
  controller.close();
  assertEquals((await Promise.all(reads)).map((r) => [r.value, r.done]), [[1, false], [2, false], [undefined, true]]);
});

test("a locked stream refuses readers, cancel, tee and pipes", async () => {
  const stream = new ReadableStream();
  assertEquals(stream.locked, false);
  const reader = stream.getReader();
  assertEquals(stream.locked, true);
  assertThrows(TypeError, () => stream.getReader(), "This ReadableStream is currently locked to a reader.");
  assertThrows(TypeError, () => stream.tee());
  assertThrows(TypeError, () => stream.values());
  await assertRejects(TypeError, stream.cancel());
  await assertRejects(TypeError, stream.pipeTo(new WritableStream()));
  reader.releaseLock();
  assertEquals(stream.locked, false);
});

test("releaseLock() rejects pending reads, closed and later reads with TypeErrors", async () => {
  const stream = new ReadableStream();
  const reader = stream.getReader();
  const { closed } = reader;
  closed.catch(() => {});
  const read = reader.read();
  reader.releaseLock();
  await assertRejects(TypeError, read);
  await assertRejects(TypeError, closed);
  await assertRejects(TypeError, reader.closed);
  await assertRejects(TypeError, reader.read());
  await assertRejects(TypeError, reader.cancel());
  reader.releaseLock();
});

test("cancel() resolves with undefined, closes, and gives the reason to the source", async () => {
  let reason;
  const stream = new ReadableStream({ cancel(r) { reason = r; return "ignored"; } });
  const reader = stream.getReader();
  assertEquals(await reader.cancel("why"), undefined);
  assertEquals(reason, "why");
  assertEquals((await reader.read()).done, true);
});

test("cancel() rejects with what the source throws", async () => {
  const error = new Error("stuck");
  const stream = new ReadableStream({ cancel() { throw error; } });
  assertEquals(await stream.cancel().catch((e) => e), error);
});

test("sources, sinks and strategies are checked", () => {
  assertThrows(TypeError, () => new ReadableStream({ type: "text" }));
  assertThrows(TypeError, () => new ReadableStream({ pull: 1 }));
  for (const highWaterMark of [-1, NaN, "much", {}]) {
    assertThrows(TypeError, () => new ReadableStream({}, { highWaterMark }));
  }
  assertThrows(TypeError, () => new ReadableStream({ type: "bytes", autoAllocateChunkSize: 0 }));
});

test("size() must answer a number that is a size", async () => {
  for (const size of [-1, NaN, Infinity, undefined, Promise.resolve(1)]) {
    let controller;
    const stream = new ReadableStream({ start(c) { controller = c; } }, { size: () => size });
    try {
      controller.enqueue(1);
    } catch {}
    assertEquals((await stream.getReader().read().catch((e) => e)).constructor, TypeError);
  }
});

test("async iteration cancels on break, unless preventCancel", async () => {
  let cancelled = 0;
  const make = () => new ReadableStream({ pull(c) { c.enqueue(1); }, cancel() { cancelled++; } });
  for await (const chunk of make()) { assertEquals(chunk, 1); break; }
  assertEquals(cancelled, 1);
  const stream = make();
  for await (const chunk of stream.values({ preventCancel: true })) { assertEquals(chunk, 1); break; }
  assertEquals(cancelled, 1);
  assertEquals(stream.locked, false);
});

test("async iteration: next() calls that overlap are answered in order", async () => {
  const iterator = ReadableStream.from([1, 2]).values();
  const all = await Promise.all([iterator.next(), iterator.next(), iterator.next(), iterator.next()]);
  assertEquals(all.map((r) => [r.value, r.done]), [[1, false], [2, false], [undefined, true], [undefined, true]]);
});

test("async iteration passes errors on", async () => {
  const error = new Error("mid");
  let n = 0;
  const stream = new ReadableStream({ pull(c) { if (n++) throw error; c.enqueue(1); } });
  const got = [];
  await assertRejects(Error, (async () => { for await (const chunk of stream) got.push(chunk); })(), "mid");
  assertEquals(got, [1]);
});

test("from(): arrays, strings' iterators, async generators, promises as values", async () => {
  assertEquals(await collect(ReadableStream.from([1, 2])), [1, 2]);
  assertEquals(await collect(ReadableStream.from(new Set(["a"]))), ["a"]);
  assertEquals(await collect(ReadableStream.from((async function* () { yield 1; yield 2; })())), [1, 2]);
  assertEquals(await collect(ReadableStream.from([Promise.resolve(5), 6])), [5, 6]);
  assertThrows(TypeError, () => ReadableStream.from(null));
  assertThrows(TypeError, () => ReadableStream.from(5));
});

test("from(): cancel calls return()", async () => {
  let returned;
  const iterable = {
    [Symbol.asyncIterator]() {
      return { next: async () => ({ value: 1, done: false }), return: async (r) => { returned = r; return {}; } };
    },
  };
  const reader = ReadableStream.from(iterable).getReader();
  await reader.read();
  await reader.cancel("stop");
  assertEquals(returned, "stop");
});

test("tee(): both branches get everything", async () => {
  const [a, b] = ReadableStream.from([1, 2, 3]).tee();
  assertEquals([await collect(a), await collect(b)], [[1, 2, 3], [1, 2, 3]]);
});

test("S7: tee(): the source is cancelled with the second branch, by its reason", async () => {
  for (const type of [undefined, "bytes"]) {
    let reason;
    const [a, b] = new ReadableStream({ type, cancel(r) { reason = r; } }).tee();
    await a.cancel("one");
    assertEquals(reason, undefined);
    await b.cancel("two");
    assertEquals(reason, "two");
  }
});

test("S7: tee(): a branch goes on when the other is cancelled", async () => {
  let controller;
  const [a, b] = new ReadableStream({ start(c) { controller = c; } }).tee();
  await a.cancel();
  const reader = b.getReader();
  const read = reader.read();
  controller.enqueue(5);
  assertEquals((await read).value, 5);
  controller.close();
  assertEquals((await reader.read()).done, true);
});

test("tee(): an error reaches both branches", async () => {
  const error = new Error("gone");
  let controller;
  const [a, b] = new ReadableStream({ start(c) { controller = c; } }).tee();
  controller.error(error);
  assertEquals([await a.getReader().read().catch((e) => e), await b.getReader().read().catch((e) => e)], [error, error]);
});

// Byte streams: https://streams.spec.whatwg.org/#rbs-controller-class-definition

test("bytes: chunks of a byte source come out as Uint8Arrays", async () => {
  const stream = new ReadableStream({
    type: "bytes",
    start(c) {
      c.enqueue(new Uint16Array([0x0201]));
      c.enqueue(bytes(3));
      c.close();
    },
  });
  const chunks = await collect(stream);
  assertEquals(chunks.flatMap((chunk) => [...chunk]), [1, 2, 3]);
  assert(chunks.every((chunk) => chunk instanceof Uint8Array));
});

test("bytes: enqueue() checks and detaches", () => {
  let controller;
  new ReadableStream({ type: "bytes", start(c) { controller = c; } });
  const chunk = bytes(1, 2);
  controller.enqueue(chunk);
  assertEquals(chunk.byteLength, 0, "detached");
  assertThrows(TypeError, () => controller.enqueue("text"));
  assertThrows(TypeError, () => controller.enqueue(new Uint8Array(0)));
});

test("bytes: a BYOB read fills the caller's memory through byobRequest", async () => {
  const stream = new ReadableStream({
    type: "bytes",
    pull(c) {
      const { view } = c.byobRequest;
      assert(view instanceof Uint8Array);
      view[0] = 7;
      view[1] = 8;
      c.byobRequest.respond(2);
    },
  });
  const reader = stream.getReader({ mode: "byob" });
  const mine = new Uint8Array(4);
  const { value, done } = await reader.read(mine);
  assertEquals([value, done], [bytes(7, 8), false]);
  assertEquals(value.buffer.byteLength, 4);
  assertEquals(mine.byteLength, 0, "the caller's view is detached");
});

test("bytes: queued bytes are handed out as the reader's view asks", async () => {
  const stream = new ReadableStream({
    type: "bytes",
    start(c) {
      c.enqueue(bytes(1, 2, 3));
      c.enqueue(bytes(4, 5));
      c.close();
    },
  });
  const reader = stream.getReader({ mode: "byob" });
  assertEquals((await reader.read(new Uint8Array(2))).value, bytes(1, 2));
  assertEquals((await reader.read(new Uint16Array(1))).value, new Uint16Array([0x0403]));
  assertEquals((await reader.read(new Uint8Array(9))).value, bytes(5));
  const last = await reader.read(new Uint8Array(3));
  assertEquals([last.done, last.value.byteLength], [true, 0]);
});

test("bytes: read(view, {min}) waits for that many elements", async () => {
  let controller;
  const stream = new ReadableStream({ type: "bytes", start(c) { controller = c; } });
  const reader = stream.getReader({ mode: "byob" });
  let settled = false;
  const read = reader.read(new Uint8Array(8), { min: 4 }).then((r) => { settled = true; return r; });
  controller.enqueue(bytes(1, 2));
  await tick();
  assertEquals(settled, false);
  controller.enqueue(bytes(3, 4, 5));
  assertEquals((await read).value, bytes(1, 2, 3, 4, 5));
});

test("bytes: readAtLeast() is the platform's name for it", async () => {
  let controller;
  const stream = new ReadableStream({ type: "bytes", start(c) { controller = c; } });
  const reader = stream.getReader({ mode: "byob" });
  const read = reader.readAtLeast(3, new Uint8Array(8));
  controller.enqueue(bytes(1, 2));
  await tick();
  controller.enqueue(bytes(3));
  assertEquals((await read).value, bytes(1, 2, 3));
});

test("bytes: bad views are refused", async () => {
  const stream = new ReadableStream({ type: "bytes" });
  const reader = stream.getReader({ mode: "byob" });
  await assertRejects(TypeError, reader.read(new Uint8Array(0)));
  await assertRejects(TypeError, reader.read("x"));
  await assertRejects(TypeError, reader.read(new Uint8Array(2), { min: 0 }));
});

test("bytes: respond() with too much is a RangeError", async () => {
  let caught;
  const stream = new ReadableStream({
    type: "bytes",
    pull(c) {
      try { c.byobRequest.respond(5); } catch (error) { caught = error; }
      c.byobRequest.respond(1);
    },
  });
  await stream.getReader({ mode: "byob" }).read(new Uint8Array(2));
  assertEquals(caught.constructor, RangeError);
});

test("S5: bytes: close() answers a pending BYOB read; respond(0) is allowed after it", async () => {
  let controller;
  const stream = new ReadableStream({ type: "bytes", start(c) { controller = c; } });
  const read = stream.getReader({ mode: "byob" }).read(new Uint8Array(3));
  const request = controller.byobRequest;
  controller.close();
  const result = await read;
  assertEquals([result.done, result.value.byteLength], [true, 0]);
  assertThrows(TypeError, () => request.respond(1));
  request.respond(0);
  assertEquals(request.view, null);
});

test("S5: bytes: cancel() gives a pending BYOB read its type back, empty", async () => {
  const reader = new ReadableStream({ type: "bytes" }).getReader({ mode: "byob" });
  const read = reader.read(new Uint16Array(3));
  await reader.cancel();
  const result = await read;
  assertEquals([result.done, result.value.byteLength], [true, 0]);
});

test("bytes: the end gives a read fewer than its minimum", async () => {
  const stream = new ReadableStream({ type: "bytes", start(c) { c.enqueue(bytes(1, 2, 3)); c.close(); } });
  const reader = stream.getReader({ mode: "byob" });
  const first = await reader.read(new Uint8Array(8), { min: 5 });
  assertEquals([[...first.value], first.done], [[1, 2, 3], false]);
  assertEquals((await reader.read(new Uint8Array(8))).done, true);
});

test("bytes: readAtLeast() counts elements", async () => {
  let n = 0;
  const stream = new ReadableStream({
    type: "bytes",
    pull(c) {
      c.byobRequest.view[0] = ++n;
      c.byobRequest.respond(1);
    },
  });
  const { value } = await stream.getReader({ mode: "byob" }).readAtLeast(2, new Uint16Array(3));
  assertEquals([n, value.length, [...new Uint8Array(value.buffer, 0, 4)]], [4, 2, [1, 2, 3, 4]]);
});

test("S6: bytes: a default reader gets 4,096 bytes at most, of as many chunks as there are", async () => {
  let controller;
  const stream = new ReadableStream({ type: "bytes", start(c) { controller = c; } });
  const reader = stream.getReader();
  const waiting = reader.read();
  assertEquals(controller.byobRequest.view.byteLength, 4096);
  controller.enqueue(new Uint8Array(5000));
  controller.enqueue(bytes(7, 8));
  controller.enqueue(bytes(9));
  assertEquals((await waiting).value.byteLength, 4096);
  const { value } = await reader.read();
  assertEquals([value.byteLength, [...value.subarray(-3)]], [907, [7, 8, 9]]);
  controller.enqueue(bytes(1));
  controller.enqueue(bytes(2));
  assertEquals([...(await reader.read()).value], [1, 2]);
});

test("S6: bytes: no more than autoAllocateChunkSize", async () => {
  const stream = new ReadableStream({
    type: "bytes",
    autoAllocateChunkSize: 4,
    start(c) { c.enqueue(bytes(1, 2, 3)); c.enqueue(bytes(4, 5, 6)); c.close(); },
  });
  const reader = stream.getReader();
  assertEquals([...(await reader.read()).value], [1, 2, 3, 4]);
  assertEquals([...(await reader.read()).value], [5, 6]);
  assertEquals((await reader.read()).done, true);
});

test("bytes: an answer of another kind is counted in its elements", async () => {
  const stream = new ReadableStream({
    type: "bytes",
    pull(c) {
      const { buffer, byteOffset } = c.byobRequest.view;
      c.byobRequest.respondWithNewView(new Uint16Array(buffer, byteOffset, 3));
      c.close();
    },
  });
  const reader = stream.getReader({ mode: "byob" });
  assertEquals((await reader.read(new Uint32Array(2))).value.byteLength, 6);
  assertEquals((await reader.read(new Uint8Array(1))).done, true);
});

test("bytes: respondWithNewView() hands over other memory", async () => {
  const stream = new ReadableStream({
    type: "bytes",
    pull(c) {
      const { view } = c.byobRequest;
      const moved = new Uint8Array(view.buffer.transfer(), view.byteOffset, 2);
      moved.set([9, 8]);
      c.byobRequest.respondWithNewView(moved);
    },
  });
  assertEquals((await stream.getReader({ mode: "byob" }).read(new Uint8Array(5))).value, bytes(9, 8));
});

test("bytes: autoAllocateChunkSize gives default reads a byobRequest", async () => {
  const stream = new ReadableStream({
    type: "bytes",
    autoAllocateChunkSize: 16,
    pull(c) {
      assertEquals(c.byobRequest.view.byteLength, 16);
      c.byobRequest.view[0] = 1;
      c.byobRequest.respond(1);
    },
  });
  assertEquals((await stream.getReader().read()).value, bytes(1));
});

test("bytes: a default stream has no BYOB reader", () => {
  assertThrows(TypeError, () => new ReadableStream().getReader({ mode: "byob" }));
  assertThrows(TypeError, () => new ReadableStream().getReader({ mode: "other" }));
});

test("bytes: tee() copies, so that branches do not share memory", async () => {
  const stream = new ReadableStream({ type: "bytes", start(c) { c.enqueue(bytes(1, 2, 3)); c.close(); } });
  const [a, b] = stream.tee();
  const first = (await a.getReader().read()).value;
  first[0] = 99;
  const second = (await b.getReader({ mode: "byob" }).read(new Uint8Array(8))).value;
  assertEquals(second, bytes(1, 2, 3));
});

test("bytes: tee() with BYOB readers on both branches", async () => {
  let n = 0;
  const stream = new ReadableStream({
    type: "bytes",
    pull(c) {
      if (n === 3) { c.close(); c.byobRequest?.respond(0); return; }
      c.enqueue(bytes(++n));
    },
  });
  const [a, b] = stream.tee();
  const all = async (branch) => {
    const reader = branch.getReader({ mode: "byob" });
    const out = [];
    for (;;) {
      const { value, done } = await reader.read(new Uint8Array(4));
      if (done) return out;
      out.push(...value);
    }
  };
  assertEquals(await Promise.all([all(a), all(b)]), [[1, 2, 3], [1, 2, 3]]);
});

test("brand checks", async () => {
  const { get } = Object.getOwnPropertyDescriptor(ReadableStream.prototype, "locked");
  assertThrows(TypeError, () => get.call({}));
  assertThrows(TypeError, () => ReadableStream.prototype.getReader.call({}));
  assertThrows(TypeError, () => ReadableStream.prototype.tee.call(new WritableStream()));
});

test("a branch of a byte stream gives all that is queued as one chunk", async () => {
  const bytes = (...list) => new Uint8Array(list);
  const started = () => new ReadableStream({ type: "bytes", start(c) { c.enqueue(bytes(1, 2, 3)); c.enqueue(bytes(4)); c.enqueue(bytes(5, 6)); c.close(); } });
  const [a, b] = started().tee().map((branch) => branch.getReader());
  assertEquals([(await a.read()).value, (await b.read()).value, (await a.read()).done, (await b.read()).done], [bytes(1, 2, 3, 4, 5, 6), bytes(1, 2, 3, 4, 5, 6), true, true]);
  const [c, d] = started().tee().map((branch) => branch.getReader({ mode: "byob" }));
  const reads = [await c.read(bytes(0, 0, 0, 0)), await d.read(bytes(0, 0)), await c.read(bytes(0, 0, 0, 0)), await d.read(new Uint8Array(8))];
  assertEquals(reads.map(({ value }) => [...value].join("")), ["1234", "12", "56", "3456"]);
  let n = 0;
  const pulled = new ReadableStream({ type: "bytes", pull(controller) { if (n++ > 2) controller.close(); else controller.enqueue(bytes(n, n)); } });
  const [e, f] = pulled.tee().map((branch) => branch.getReader());
  const seen = [];
  for (const reader of [e, e, e, f]) seen.push([...(await reader.read()).value].join(""));
  assertEquals(seen, ["11", "22", "33", "112233"]);
});
