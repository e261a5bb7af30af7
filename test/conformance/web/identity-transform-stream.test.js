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
