// TransformStream, and the platform's IdentityTransformStream and FixedLengthStream.
// https://streams.spec.whatwg.org/#ts
import { assertEquals, assertInterface, assertRejects, assertThrows, test } from "../harness.js";

const tick = () => new Promise((resolve) => setTimeout(resolve, 0));
const bytes = (...values) => new Uint8Array(values);
const outcome = (promise) => promise.then((value) => ["ok", value], (error) => ["error", error?.message ?? error]);

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
  assertThrows(RangeError, () => new TransformStream({ readableType: "bytes" }));
  assertThrows(RangeError, () => new TransformStream({ writableType: "bytes" }));
}, { differs: { workerd: "it throws TypeError" } });

test("IdentityTransformStream: bytes pass", async () => {
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const done = (async () => {
    await writer.write(bytes(1, 2));
    await writer.write(bytes(3).buffer);
    await writer.close();
  })();
  const out = [];
  for await (const chunk of readable) out.push(...chunk);
  await done;
  assertEquals(out, [1, 2, 3]);
});

test("IdentityTransformStream: its readable side has a BYOB reader", async () => {
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const write = writer.write(bytes(1, 2, 3));
  const reader = readable.getReader({ mode: "byob" });
  assertEquals((await reader.read(new Uint8Array(2))).value, bytes(1, 2));
  assertEquals((await reader.read(new Uint8Array(2))).value, bytes(3));
  await write;
  const close = writer.close();
  const last = await reader.read(new Uint8Array(2));
  assertEquals([last.done, last.value.byteLength], [true, 0]);
  await close;
});

test("IdentityTransformStream: a write is done when its bytes were read", async () => {
  const { readable, writable } = new IdentityTransformStream();
  let written = false;
  const write = writable.getWriter().write(bytes(1)).then(() => { written = true; });
  await tick();
  assertEquals(written, false);
  await readable.getReader().read();
  await write;
});

test("IdentityTransformStream: the writer's memory is its own", async () => {
  const { readable, writable } = new IdentityTransformStream();
  const mine = bytes(1, 2);
  const writer = writable.getWriter();
  const write = writer.write(mine);
  const { value } = await readable.getReader().read();
  await write;
  mine[0] = 9;
  assertEquals([value, mine.byteLength], [bytes(1, 2), 2]);
});

test("IdentityTransformStream: strings are encoded, anything else but bytes is refused", async () => {
  const text = new IdentityTransformStream();
  const read = text.readable.getReader().read();
  await text.writable.getWriter().write("\u00e9");
  assertEquals((await read).value, bytes(0xc3, 0xa9));
  const object = new IdentityTransformStream();
  object.readable.getReader().read().catch(() => {});
  const writer = object.writable.getWriter();
  writer.closed.catch(() => {});
  await assertRejects(TypeError, writer.write({}),
    "This TransformStream is being used as a byte stream, but received an object of non-ArrayBuffer/ArrayBufferView type on its writable side.");
});

test("IdentityTransformStream: abort reaches the reader, cancel the writer", async () => {
  const one = new IdentityTransformStream();
  const read = outcome(one.readable.getReader().read());
  await one.writable.abort(new Error("stop"));
  assertEquals(await read, ["error", "stop"]);
  const two = new IdentityTransformStream();
  const writer = two.writable.getWriter();
  writer.closed.catch(() => {});
  const write = outcome(writer.write(bytes(1)));
  await two.readable.cancel(new Error("no thanks"));
  assertEquals(await write, ["error", "no thanks"]);
});

test("FixedLengthStream: exactly that many bytes", async () => {
  const { readable, writable } = new FixedLengthStream(3);
  const writer = writable.getWriter();
  const done = (async () => { await writer.write(bytes(1, 2, 3)); await writer.close(); })();
  assertEquals((await Array.fromAsync(readable)).flatMap((c) => [...c]), [1, 2, 3]);
  await done;
});

test("FixedLengthStream: too many bytes", async () => {
  const { readable, writable } = new FixedLengthStream(2);
  const writer = writable.getWriter();
  writer.closed.catch(() => {});
  const read = readable.getReader().read();
  writer.write(bytes(1, 2, 3)).catch(() => {});
  await assertRejects(TypeError, read, "Attempt to write too many bytes through a FixedLengthStream.");
});

test("FixedLengthStream: too few bytes", async () => {
  const { readable, writable } = new FixedLengthStream(5);
  const writer = writable.getWriter();
  writer.closed.catch(() => {});
  const reader = readable.getReader();
  const first = reader.read();
  await writer.write(bytes(1));
  await first;
  const second = reader.read();
  writer.close().catch(() => {});
  await assertRejects(TypeError, second, "FixedLengthStream did not see all expected bytes before close().");
});

test("FixedLengthStream is an IdentityTransformStream", () => {
  assertEquals(new FixedLengthStream(1) instanceof IdentityTransformStream, true);
  assertEquals(new FixedLengthStream(5n) instanceof FixedLengthStream, true);
  assertThrows(TypeError, () => new FixedLengthStream(-1));
});
