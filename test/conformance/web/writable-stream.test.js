// WritableStream and its writer: https://streams.spec.whatwg.org/#ws
import { assertEquals, assertInterface, assertRejects, assertThrows, test } from "../harness.js";

const tick = () => new Promise((resolve) => setTimeout(resolve, 0));

test("WritableStream: the interface", () => {
  assertInterface("WritableStream", { methods: { abort: 0, close: 0, getWriter: 0 }, getters: ["locked"] });
  assertInterface("WritableStreamDefaultWriter", {
    length: 1,
    methods: { abort: 0, close: 0, releaseLock: 0, write: 0 },
    getters: ["desiredSize"],
  });
  assertThrows(TypeError, () => new WritableStreamDefaultController());
});

test("chunks reach the sink in order, one at a time", async () => {
  const seen = [];
  let busy = false;
  const writer = new WritableStream({
    async write(chunk) {
      assertEquals(busy, false);
      busy = true;
      await tick();
      busy = false;
      seen.push(chunk);
    },
    close() { seen.push("close"); },
  }).getWriter();
  writer.write(1);
  writer.write(2);
  await writer.close();
  assertEquals(seen, [1, 2, "close"]);
  assertEquals(await writer.closed, undefined);
});

test("desiredSize and ready follow the strategy", async () => {
  let finish;
  const writer = new WritableStream({ write: () => new Promise((r) => { finish = r; }) }, { highWaterMark: 2 }).getWriter();
  assertEquals(writer.desiredSize, 2);
  await writer.ready;
  writer.write("a");
  assertEquals(writer.desiredSize, 1);
  const second = writer.write("b");
  assertEquals(writer.desiredSize, 0);
  let ready = false;
  writer.ready.then(() => { ready = true; });
  await tick();
  assertEquals(ready, false);
  finish();
  await tick();
  assertEquals([ready, writer.desiredSize], [true, 1]);
  finish();
  await second;
});

test("a failing write errors the stream", async () => {
  const error = new Error("disk");
  const writer = new WritableStream({ write() { throw error; } }).getWriter();
  assertEquals(await writer.write(1).catch((e) => e), error);
  assertEquals(await writer.closed.catch((e) => e), error);
  assertEquals(await writer.ready.catch((e) => e), error);
  assertEquals(writer.desiredSize, null);
  assertEquals(await writer.write(2).catch((e) => e), error);
});

test("abort() tells the sink and fails waiting writes", async () => {
  let reason;
  let started;
  const begun = new Promise((r) => { started = r; });
  let finish;
  const writer = new WritableStream({
    write() { started(); return new Promise((r) => { finish = r; }); },
    abort(r) { reason = r; },
  }).getWriter();
  const first = writer.write(1);
  const second = writer.write(2).catch((e) => e);
  writer.closed.catch(() => {});
  writer.ready.catch(() => {});
  await begun;
  const aborted = writer.abort("stop");
  finish();
  await first;
  await aborted;
  assertEquals([reason, await second], ["stop", "stop"]);
});

test("controller.signal is aborted by abort()", async () => {
  let signal;
  const stream = new WritableStream({ start(c) { signal = c.signal; } });
  await tick();
  assertEquals(signal.aborted, false);
  await stream.abort("why");
  assertEquals([signal.aborted, signal.reason], [true, "why"]);
});

test("controller.error() errors the stream", async () => {
  const error = new Error("sink says no");
  let controller;
  const writer = new WritableStream({ start(c) { controller = c; } }).getWriter();
  writer.ready.catch(() => {});
  controller.error(error);
  assertEquals(await writer.closed.catch((e) => e), error);
});

test("writing after close() is refused", async () => {
  const writer = new WritableStream().getWriter();
  const closed = writer.close();
  await assertRejects(TypeError, writer.write(1));
  await closed;
  await assertRejects(TypeError, writer.write(1));
  await assertRejects(TypeError, writer.close());
});

test("locking and release", async () => {
  const stream = new WritableStream();
  const writer = stream.getWriter();
  assertEquals(stream.locked, true);
  assertThrows(TypeError, () => stream.getWriter(), "This WritableStream is currently locked to a writer.");
  await assertRejects(TypeError, stream.close());
  await assertRejects(TypeError, stream.abort());
  writer.releaseLock();
  assertEquals(stream.locked, false);
  await assertRejects(TypeError, writer.write(1));
  await assertRejects(TypeError, writer.closed);
  await stream.close();
});

test("sinks and strategies are checked", () => {
  assertThrows(TypeError, () => new WritableStream({}, { highWaterMark: -1 }));
  assertThrows(TypeError, () => new WritableStream({}, { highWaterMark: NaN }));
  assertThrows(TypeError, () => new WritableStream({ write: 5 }));
});

test("a size function that throws errors the stream", async () => {
  const error = new Error("size");
  const writer = new WritableStream({}, { size() { throw error; } }).getWriter();
  writer.ready.catch(() => {});
  writer.closed.catch(() => {});
  assertEquals(await writer.write(1).catch((e) => e), error);
});

test("S1: a stream without start() begins at once: the first write is under way when it is aborted", async () => {
  const order = [];
  let release;
  const writer = new WritableStream({ write: () => new Promise((r) => { release = r; }) }).getWriter();
  writer.closed.catch(() => {});
  writer.ready.catch(() => {});
  const note = (promise, name) => promise.then(() => order.push(`${name} done`), () => order.push(`${name} failed`));
  const all = [note(writer.write(1), "first"), note(writer.write(2), "second"), note(writer.abort(), "abort")];
  release();
  await Promise.all(all);
  assertEquals(order, ["first done", "second failed", "abort done"]);
});

test("S2: a start() that throws errors the stream", async () => {
  const error = new Error("no");
  const writer = new WritableStream({ start() { throw error; } }).getWriter();
  writer.closed.catch(() => {});
  writer.ready.catch(() => {});
  assertEquals(await writer.write(1).catch((e) => e), error);
});

test("S3: abort() has one outcome", async () => {
  const error = new Error("stuck");
  let calls = 0;
  const writer = new WritableStream({ abort() { calls++; throw error; } }).getWriter();
  writer.closed.catch(() => {});
  writer.ready.catch(() => {});
  assertEquals(await writer.abort("a").catch((e) => e), error);
  assertEquals(await writer.abort("b").catch((e) => e), error);
  assertEquals(calls, 1);
});

test("S4: a writer that is released takes its queued writes with it", async () => {
  const written = [];
  let release;
  const stream = new WritableStream({ write(chunk) { written.push(chunk); return new Promise((r) => { release = r; }); } });
  const writer = stream.getWriter();
  writer.closed.catch(() => {});
  writer.ready.catch(() => {});
  const first = writer.write("first");
  const second = writer.write("second").catch((e) => e);
  writer.releaseLock();
  assertEquals((await second).constructor, TypeError);
  release();
  await first;
  const third = stream.getWriter().write("third");
  await new Promise((r) => setTimeout(r));
  assertEquals(written, ["first", "third"]);
  release();
  await third;
});

test("close() of a stream that has failed gives its error", async () => {
  const error = new Error("gone");
  const writer = new WritableStream({ start(c) { c.error(error); } }).getWriter();
  writer.closed.catch(() => {});
  writer.ready.catch(() => {});
  await writer.write(1).catch(() => {});
  assertEquals(await writer.close().catch((e) => e), error);
});
