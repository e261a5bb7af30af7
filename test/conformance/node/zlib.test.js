// node:zlib
import { Buffer } from "node:buffer";
import zlib from "node:zlib";
import { assert, assertEquals, test, thrown } from "../harness.js";

const message = (f) => thrown(f)?.message;

const FORMATS = [["gzip", "gunzip", "Gzip", "Gunzip"], ["deflate", "inflate", "Deflate", "Inflate"], ["deflateRaw", "inflateRaw", "DeflateRaw", "InflateRaw"], ["gzip", "unzip", "Gzip", "Unzip"], ["brotliCompress", "brotliDecompress", "BrotliCompress", "BrotliDecompress"], ["zstdCompress", "zstdDecompress", "ZstdCompress", "ZstdDecompress"]];
const text = "a text that repeats, ".repeat(5000);
const collect = (stream, data) => new Promise((resolve, reject) => {
  const chunks = [];
  stream.on("data", (chunk) => chunks.push(chunk)).on("error", reject).on("end", () => resolve(Buffer.concat(chunks)));
  stream.end(data);
});

for (const [pack, unpack, Packer, Unpacker] of FORMATS) {
  test(`zlib: ${pack} and ${unpack} at once, with a callback, as streams`, async () => {
    const packed = zlib[`${pack}Sync`](text);
    assertEquals([packed.length < 2000, zlib[`${unpack}Sync`](packed).toString() === text], [true, true]);
    const again = await new Promise((resolve, reject) => zlib[unpack](packed, (error, value) => (error ? reject(error) : resolve(value))));
    assert(again.toString() === text);
    const streamed = await collect(zlib[`create${Packer}`]({ chunkSize: 64 }), text);
    assert((await collect(zlib[`create${Unpacker}`](), streamed)).toString() === text);
  });
  test(`zlib: ${unpack} of data that ends too early`, async () => {
    const packed = zlib[`${pack}Sync`](text);
    const failure = message(() => zlib[`${unpack}Sync`](packed.subarray(0, packed.length - 4)));
    assert(/unexpected end of file|frame/i.test(failure), `${failure}`);
  });
}

test("zlib: members of gzip one after the other, padding, garbage", () => {
  const member = zlib.gzipSync("ab");
  assertEquals(zlib.gunzipSync(Buffer.concat([member, member])).toString(), "abab");
  assertEquals(zlib.gunzipSync(Buffer.concat([member, Buffer.alloc(8)])).toString(), "ab");
  assertEquals(message(() => zlib.gunzipSync(Buffer.concat([member, Buffer.from([7, 8, 9])]))), "incorrect header check");
});

test("zlib: limits, levels, dictionaries", () => {
  const packed = zlib.deflateSync(text);
  assertEquals(message(() => zlib.inflateSync(packed, { maxOutputLength: 10 })), "Memory limit exceeded");
  assert(zlib.deflateSync(text, { level: 0 }).length > text.length);
  assertEquals(message(() => zlib.createDeflate({ level: 99 })), 'The value of "options.level" is out of range. It must be >= -1 and <= 9. Received 99');
  const dictionary = Buffer.from("a text that repeats");
  const small = zlib.deflateSync("a text that repeats", { dictionary });
  assertEquals(zlib.inflateSync(small, { dictionary }).toString(), "a text that repeats");
  assertEquals([message(() => zlib.inflateSync(small)), message(() => zlib.inflateSync(small, { dictionary: Buffer.from("x") }))], ["Missing dictionary", "Bad dictionary"]);
});

test("zlib: flush() makes what was written decodable, params() changes the level", async () => {
  const deflate = zlib.createDeflate({ level: 9 });
  const chunks = [];
  deflate.on("data", (chunk) => chunks.push(chunk));
  deflate.write("first");
  await new Promise((resolve) => deflate.flush(resolve));
  assertEquals(zlib.inflateSync(Buffer.concat(chunks), { finishFlush: zlib.constants.Z_SYNC_FLUSH }).toString(), "first");
  await new Promise((resolve, reject) => deflate.params(0, zlib.constants.Z_DEFAULT_STRATEGY, (error) => (error ? reject(error) : resolve())));
  await new Promise((resolve) => deflate.on("end", resolve).end("second"));
  assertEquals(zlib.inflateSync(Buffer.concat(chunks)).toString(), "firstsecond");
});

test("zlib: crc32", () => {
  assertEquals([zlib.crc32("hello"), zlib.crc32(Buffer.from("lo"), zlib.crc32("hel"))], [0x3610a686, 0x3610a686]);
});
