// IdentityTransformStream: https://developers.cloudflare.com/workers/runtime-apis/streams/transformstream/
import { test, assertEquals, assertRejects } from "../harness.js";

const tick = () => new Promise((resolve) => setTimeout(resolve, 0));
const bytes = (...values) => new Uint8Array(values);
const outcome = (promise) => promise.then((value) => ["ok", value], (error) => ["error", error?.message ?? error]);

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

test("S8: IdentityTransformStream: one read at a time", async () => {
  const { readable, writable } = new IdentityTransformStream();
  const reader = readable.getReader();
  const first = reader.read();
  await assertRejects(TypeError, reader.read(), "This ReadableStream only supports a single pending read request at a time.");
  await writable.getWriter().write(bytes(7));
  assertEquals((await first).value, bytes(7));
});

test("S8: IdentityTransformStream: cancel() fails the read that waits", async () => {
  for (const [reason, message] of [[new RangeError("far"), "far"], ["word", "word"], [undefined, "Stream was cancelled."]]) {
    for (const mode of [undefined, "byob"]) {
      const reader = new IdentityTransformStream().readable.getReader({ mode });
      const read = outcome(reader.read(...(mode === "byob" ? [new Uint8Array(4)] : [])));
      await reader.cancel(reason);
      assertEquals(await read, ["error", message]);
    }
  }
});

test("IdentityTransformStream: the other end gets a reason as an error", async () => {
  for (const [reason, name, message] of [
    [new TypeError("kind"), "TypeError", "kind"], ["word", "Error", "word"], [undefined, "Error", "Stream was cancelled."],
  ]) {
    const { readable, writable } = new IdentityTransformStream();
    const writer = writable.getWriter();
    writer.closed.catch(() => {});
    const results = [writer.write(bytes(1)).catch((e) => e), writer.close().catch((e) => e)];
    await readable.cancel(reason);
    for (const error of await Promise.all(results)) assertEquals([error.name, error.message], [name, message]);
  }
});

test("S9: IdentityTransformStream: abort() does not wait for a reader", async () => {
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  writer.closed.catch(() => {});
  writer.ready.catch(() => {});
  const writes = [writer.write(bytes(1)).catch((e) => e), writer.write(bytes(2)).catch((e) => e)];
  await writer.abort("enough");
  assertEquals(await Promise.all(writes), ["enough", "enough"]);
  assertEquals((await outcome(readable.getReader().read()))[0], "error");
});

test("IdentityTransformStream: a chunk of the wrong kind fails its write alone", async () => {
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  await assertRejects(TypeError, writer.write(5));
  assertEquals([await writer.write(undefined), await writer.write(bytes())], [undefined, undefined]);
  const read = readable.getReader().read();
  await writer.write(bytes(3));
  assertEquals((await read).value, bytes(3));
});

test("IdentityTransformStream: what was written is what it was then", async () => {
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const mine = bytes(1);
  const writes = [writer.write(bytes(0)), writer.write(mine)];
  mine[0] = 9;
  const reader = readable.getReader();
  await reader.read();
  assertEquals((await reader.read()).value, bytes(1));
  await Promise.all(writes);
});

test("IdentityTransformStream: desiredSize stands at 1 unless there is a highWaterMark", async () => {
  const plain = new IdentityTransformStream();
  const writer = plain.writable.getWriter();
  const { ready } = writer;
  writer.write(bytes(1)).catch(() => {});
  writer.write(bytes(2)).catch(() => {});
  assertEquals([writer.desiredSize, writer.ready === ready], [1, true]);
  for (const stream of [new IdentityTransformStream({ highWaterMark: 4 }), new FixedLengthStream(4, { highWaterMark: 100 })]) {
    const marked = stream.writable.getWriter();
    assertEquals(marked.desiredSize, 4);
    const before = marked.ready;
    const writes = [marked.write(bytes(1)), marked.write("abc")];
    assertEquals([marked.desiredSize, marked.ready === before], [0, false]);
    const reader = stream.readable.getReader();
    await reader.read();
    await marked.ready;
    assertEquals(marked.desiredSize, 1);
    await reader.read();
    await Promise.all(writes);
    assertEquals(marked.desiredSize, 4);
  }
});
