// TransformStream, and the platform's IdentityTransformStream and FixedLengthStream.
// https://streams.spec.whatwg.org/#ts
import { assertEquals, assertInterface, assertRejects, assertThrows, test } from "../harness.js";

const tick = () => new Promise((resolve) => setTimeout(resolve, 0));
const bytes = (...values) => new Uint8Array(values);

test("TransformStream: the interface", () => {
  assertInterface("TransformStream", { getters: ["readable", "writable"] });
  assertThrows(TypeError, () => new TransformStreamDefaultController());
});

test("without a transformer chunks pass as they are", async () => {
  const { readable, writable } = new TransformStream();
  const chunk = { any: "thing" };
  const writer = writable.getWriter();
  writer.write(chunk);
  writer.close();
  assertEquals((await Array.fromAsync(readable))[0] === chunk, true);
});

test("start, transform and flush may enqueue", async () => {
  const stream = new TransformStream({
    start(c) { c.enqueue("start"); },
    transform(chunk, c) { c.enqueue(chunk); c.enqueue(chunk); },
    flush(c) { c.enqueue("flush"); },
  });
  const writer = stream.writable.getWriter();
  writer.write("x");
  writer.close();
  assertEquals(await Array.fromAsync(stream.readable), ["start", "x", "x", "flush"]);
});

test("an async transform holds the next chunk back", async () => {
  const order = [];
  const stream = new TransformStream({
    async transform(chunk, c) { order.push(`in ${chunk}`); await tick(); order.push(`out ${chunk}`); c.enqueue(chunk); },
  });
  const writer = stream.writable.getWriter();
  writer.write(1);
  writer.write(2);
  writer.close();
  await Array.fromAsync(stream.readable);
  assertEquals(order, ["in 1", "out 1", "in 2", "out 2"]);
});

test("a throw errors both sides", async () => {
  const error = new Error("bad chunk");
  const stream = new TransformStream({ transform() { throw error; } });
  const writer = stream.writable.getWriter();
  writer.closed.catch(() => {});
  writer.ready.catch(() => {});
  const write = writer.write(1).catch((e) => e);
  assertEquals(await stream.readable.getReader().read().catch((e) => e), error);
  assertEquals(await write, error);
});

test("terminate() closes the readable and errors the writable side", async () => {
  const stream = new TransformStream({ transform(chunk, c) { c.enqueue(chunk); c.terminate(); } });
  const writer = stream.writable.getWriter();
  writer.closed.catch(() => {});
  writer.ready.catch(() => {});
  writer.write("only").catch(() => {});
  assertEquals(await Array.fromAsync(stream.readable), ["only"]);
  await assertRejects(TypeError, writer.write("more"));
});

test("back-pressure: a write waits until the readable side is read", async () => {
  const stream = new TransformStream();
  const writer = stream.writable.getWriter();
  assertEquals(writer.desiredSize, 1);
  let written = false;
  writer.write("a").then(() => { written = true; });
  await tick();
  assertEquals([written, writer.desiredSize], [false, 0]);
  assertEquals((await stream.readable.getReader().read()).value, "a");
  await tick();
  assertEquals([written, writer.desiredSize], [true, 1]);
});

test("cancelling the readable side errors the writable side and calls cancel()", async () => {
  let reason;
  const stream = new TransformStream({ cancel(r) { reason = r; } });
  const writer = stream.writable.getWriter();
  writer.ready.catch(() => {});
  const closed = writer.closed.catch((e) => e);
  await stream.readable.cancel("no more");
  assertEquals([reason, await closed], ["no more", "no more"]);
});

test("aborting the writable side errors the readable side", async () => {
  const stream = new TransformStream();
  const read = stream.readable.getReader().read().catch((e) => e);
  await stream.writable.abort("stop");
  assertEquals(await read, "stop");
});

test("readableType and writableType are reserved", () => {
  assertThrows(TypeError, () => new TransformStream({ readableType: "bytes" }));
  assertThrows(TypeError, () => new TransformStream({ writableType: "bytes" }));
});

test("null is no source, sink or transformer, an empty type none", () => {
  assertEquals([new TransformStream(null).readable.locked, new WritableStream(null).locked, new ReadableStream(null).locked, new ReadableStream({ type: "" }).locked], [false, false, false, false]);
  assertEquals(new WritableStream({ type: "bytes" }).locked, false);
  assertThrows(TypeError, () => new ReadableStream({ type: null }));
  assertThrows(TypeError, () => new ReadableStream(5));
});
