// CompressionStream and DecompressionStream: https://compression.spec.whatwg.org/
import { assert, assertEquals, assertInterface, assertRejects, assertThrows, test } from "../harness.js";

const encode = (text) => new TextEncoder().encode(text);
async function bytesOf(stream) {
  const chunks = await Array.fromAsync(stream);
  const out = new Uint8Array(chunks.reduce((n, c) => n + c.length, 0));
  let at = 0;
  for (const chunk of chunks) { out.set(chunk, at); at += chunk.length; }
  return out;
}
function through(transform, ...chunks) {
  const writer = transform.writable.getWriter();
  writer.closed.catch(() => {});
  for (const chunk of chunks) writer.write(chunk).catch(() => {});
  writer.close().catch(() => {});
  return bytesOf(transform.readable);
}
const text = "the quick brown fox jumps over the lazy dog. ".repeat(200);
const FORMATS = ["gzip", "deflate", "deflate-raw"];

test("the interfaces", () => {
  assertInterface("CompressionStream", { length: 1, getters: ["readable", "writable"] });
  assertInterface("DecompressionStream", { length: 1, getters: ["readable", "writable"] });
  assertThrows(TypeError, () => new CompressionStream("lzma"));
  assertThrows(TypeError, () => new DecompressionStream());
}, { differs: { workerd: "the accessors are inherited from TransformStream" } });

for (const format of FORMATS) {
  test(`${format}: there and back`, async () => {
    const packed = await through(new CompressionStream(format), encode(text));
    assert(packed.length < text.length / 10);
    assertEquals(new TextDecoder().decode(await through(new DecompressionStream(format), packed)), text);
  });

  test(`${format}: bytes one at a time`, async () => {
    const packed = await through(new CompressionStream(format), ...[..."hello"].map(encode));
    const parts = [...packed].map((byte) => new Uint8Array([byte]));
    assertEquals(new TextDecoder().decode(await through(new DecompressionStream(format), ...parts)), "hello");
  });

  test(`${format}: truncated data is a TypeError`, async () => {
    const packed = await through(new CompressionStream(format), encode(text));
    await assertRejects(TypeError, through(new DecompressionStream(format), packed.slice(0, -3)),
      "Called close() on a decompression stream with incomplete data");
  });
}

test("gzip: the bytes are the platform's", async () => {
  const packed = await through(new CompressionStream("gzip"), encode("hello world"));
  assertEquals([...packed.slice(0, 10)], [31, 139, 8, 0, 0, 0, 0, 0, 0, 3]);
  assertEquals([...packed.slice(-8)], [133, 17, 74, 13, 11, 0, 0, 0]);
});

test("gzip: data after the first member is refused", async () => {
  const packed = await through(new CompressionStream("gzip"), encode("x"));
  await assertRejects(TypeError, through(new DecompressionStream("gzip"), packed, packed),
    "Trailing bytes after end of compressed data");
  const both = new Uint8Array(packed.length * 2);
  both.set(packed);
  both.set(packed, packed.length);
  await assertRejects(TypeError, through(new DecompressionStream("gzip"), both),
    "Trailing bytes after end of compressed data");
});

test("gzip: garbage and a wrong checksum are TypeErrors", async () => {
  await assertRejects(TypeError, through(new DecompressionStream("gzip"), encode("this is not gzip at all")), "Decompression failed.");
  const packed = await through(new CompressionStream("gzip"), encode(text));
  packed[packed.length - 6] ^= 1;
  await assertRejects(TypeError, through(new DecompressionStream("gzip"), packed), "Decompression failed.");
});

test("a write of something else than bytes is refused", async () => {
  const writer = new CompressionStream("gzip").writable.getWriter();
  writer.closed.catch(() => {});
  await assertRejects(TypeError, writer.write({}), /received an object of non-ArrayBuffer/);
});

test("strings are compressed as UTF-8", async () => {
  const packed = await through(new CompressionStream("gzip"), "\u00e9");
  assertEquals(await through(new DecompressionStream("gzip"), packed), new Uint8Array([0xc3, 0xa9]));
});

test("three megabytes in one chunk, which another thread may work on", async () => {
  const big = new Uint8Array(3 << 20);
  for (let i = 0; i < big.length; i++) big[i] = (i * 7919) >> 7;
  const packed = await through(new CompressionStream("gzip"), big);
  const back = await through(new DecompressionStream("gzip"), packed);
  assertEquals(back.length, big.length);
  assert(back.every((byte, i) => byte === big[i]), "the same bytes");
});

test("output that is much larger than its input arrives in pieces", async () => {
  const zeros = await through(new CompressionStream("gzip"), new Uint8Array(20 << 20));
  assert(zeros.length < 100_000);
  let size = 0;
  let largest = 0;
  const inflater = new DecompressionStream("gzip");
  const writer = inflater.writable.getWriter();
  writer.write(zeros);
  writer.close();
  for await (const chunk of inflater.readable) {
    size += chunk.length;
    largest = Math.max(largest, chunk.length);
  }
  assertEquals(size, 20 << 20);
  assert(largest <= 1 << 20, `a chunk of ${largest} bytes`);
});

test("the readable side has a BYOB reader", async () => {
  const stream = new CompressionStream("deflate");
  const reader = stream.readable.getReader({ mode: "byob" });
  const writer = stream.writable.getWriter();
  writer.write(encode("abc"));
  writer.close();
  const { value } = await reader.read(new Uint8Array(1));
  assertEquals([...value], [120]);
});

test("brotli: there and back", async () => {
  const packed = await through(new CompressionStream("brotli"), encode(text));
  assert(packed.length < 200);
  assertEquals(new TextDecoder().decode(await through(new DecompressionStream("brotli"), packed)), text);
  await assertRejects(TypeError, through(new DecompressionStream("brotli"), packed.slice(0, -2)));
}, { differs: { workerd: "it does not have the format" } });
