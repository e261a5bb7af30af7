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
  assertThrows(RangeError, () => new WritableStream({ type: "bytes" }));
  assertThrows(RangeError, () => new WritableStream({}, { highWaterMark: -1 }));
  assertThrows(TypeError, () => new WritableStream({ write: 5 }));
}, { differs: { workerd: "it does not check members that are not used" } });

test("a size function that throws errors the stream", async () => {
  const error = new Error("size");
  const writer = new WritableStream({}, { size() { throw error; } }).getWriter();
  writer.ready.catch(() => {});
  writer.closed.catch(() => {});
  assertEquals(await writer.write(1).catch((e) => e), error);
});
