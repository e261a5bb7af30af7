// FixedLengthStream: https://developers.cloudflare.com/workers/runtime-apis/streams/transformstream/#fixedlengthstream
import { test, assertEquals, assertRejects, assertThrows } from "../harness.js";

const bytes = (...values) => new Uint8Array(values);

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
