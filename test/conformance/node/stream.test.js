// node:stream (+promises, consumers, web), node:zlib, node:fs
import Stream, { Readable, Writable, Transform, PassThrough, pipeline } from "node:stream";
import { pipeline as pipelineAsync, finished } from "node:stream/promises";
import { text, json, buffer } from "node:stream/consumers";
import { ReadableStream as WebReadable } from "node:stream/web";
import zlib from "node:zlib";
import fs from "node:fs";
import fsp from "node:fs/promises";
import { Buffer } from "node:buffer";
import util from "node:util";
import { test, assert, assertEquals, assertRejects, assertThrows } from "../harness.js";

test("readable, transform, writable in a pipeline", async () => {
  const out = [];
  const upper = new Transform({ transform(chunk, encoding, callback) { callback(null, chunk.toString().toUpperCase()); } });
  await pipelineAsync(Readable.from(["a", "b", "c"]), upper, new Writable({ write(chunk, encoding, callback) { out.push(chunk.toString()); callback(); } }));
  assertEquals(out.join(""), "ABC");
  await assertRejects(RangeError, pipelineAsync(Readable.from(["a"]), new Transform({ transform(c, e, cb) { cb(new RangeError("x")); } }), new PassThrough()));
  assert(Stream.Readable === Readable && typeof pipeline === "function");
});

test("async iteration, consumers, web streams", async () => {
  assertEquals(await text(Readable.from(["x", "é"])), "xé");
  assertEquals(await json(Readable.from(['{"a":', "1}"])), { a: 1 });
  assertEquals((await buffer(Readable.from([Buffer.from("ab"), Buffer.from("c")]))).toString(), "abc");
  const list = [];
  for await (const chunk of Readable.from([1, 2, 3])) list.push(chunk);
  assertEquals(list, [1, 2, 3]);
  assert(WebReadable === ReadableStream);
  assertEquals(await new Response(Readable.toWeb(Readable.from([Buffer.from("web")]))).text(), "web");
  assertEquals(await text(Readable.fromWeb(new Response("from web").body)), "from web");
});

test("backpressure, destroy, finished", async () => {
  const w = new Writable({ highWaterMark: 2, write(c, e, cb) { setTimeout(cb, 1); } });
  assertEquals([w.write("ab"), w.writableLength], [false, 2]);
  w.end();
  await finished(w);
  const r = new Readable({ read() {} });
  r.on("error", () => {});
  r.destroy(new TypeError("gone"));
  await assertRejects(TypeError, finished(r));
});

test("zlib: every format, sync, callback and stream", async () => {
  const input = Buffer.from("hello hello hello ".repeat(500));
  for (const [pack, unpack] of [["gzipSync", "gunzipSync"], ["deflateSync", "inflateSync"], ["deflateRawSync", "inflateRawSync"], ["brotliCompressSync", "brotliDecompressSync"], ["gzipSync", "unzipSync"], ["deflateSync", "unzipSync"]]) {
    const packed = zlib[pack](input);
    assert(packed.length < 500 && zlib[unpack](packed).equals(input), pack);
  }
  assertEquals(zlib.gunzipSync(Buffer.from("H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==", "base64")).toString(), "hello");
  const packed = await new Promise((resolve, reject) => zlib.gzip("text", (e, v) => (e ? reject(e) : resolve(v))));
  assertEquals(zlib.gunzipSync(packed).toString(), "text");
  assertThrows(Error, () => zlib.gunzipSync(Buffer.from("not gzip at all")));
  assertThrows(Error, () => zlib.gunzipSync(zlib.gzipSync(input).subarray(0, 40)));
  assertEquals(await text(Readable.from([input]).pipe(zlib.createGzip()).pipe(zlib.createGunzip())), input.toString());
  assertEquals(zlib.crc32("hello"), 0x3610a686);
});

test("zlib: zstd, sync, callback and stream", async () => {
  const input = Buffer.from("hello hello hello ".repeat(500));
  for (const level of [1, 3, 19]) {
    const packed = zlib.zstdCompressSync(input, { params: { [zlib.constants.ZSTD_c_compressionLevel]: level } });
    assert(packed.length < 500 && zlib.zstdDecompressSync(packed).equals(input), String(level));
    assertEquals([...packed.subarray(0, 4)], [0x28, 0xb5, 0x2f, 0xfd]);
  }
  const packed = await new Promise((resolve, reject) => zlib.zstdCompress("text", (e, v) => (e ? reject(e) : resolve(v))));
  assertEquals(zlib.zstdDecompressSync(packed).toString(), "text");
  assertThrows(Error, () => zlib.zstdDecompressSync(Buffer.from("not zstd at all")));
  assertThrows(Error, () => zlib.zstdDecompressSync(zlib.zstdCompressSync(input).subarray(0, 10)));
  assertEquals(await text(Readable.from([input]).pipe(zlib.createZstdCompress()).pipe(zlib.createZstdDecompress())), input.toString());
});

test("fs: files and directories in memory", async () => {
  fs.mkdirSync("/tmp/a/b", { recursive: true });
  fs.writeFileSync("/tmp/a/b/f.txt", "hello");
  fs.appendFileSync("/tmp/a/b/f.txt", " world");
  assertEquals([fs.readFileSync("/tmp/a/b/f.txt", "utf8"), fs.statSync("/tmp/a/b/f.txt").size, fs.existsSync("/tmp/x")], ["hello world", 11, false]);
  assertEquals([fs.readdirSync("/tmp/a"), fs.statSync("/tmp/a").isDirectory()], [["b"], true]);
  fs.renameSync("/tmp/a/b/f.txt", "/tmp/a/g.txt");
  await fsp.copyFile("/tmp/a/g.txt", "/tmp/a/h.txt");
  assertEquals((await fsp.readFile("/tmp/a/h.txt")).toString(), "hello world");
  fs.symlinkSync("/tmp/a/h.txt", "/tmp/a/link");
  assertEquals([fs.readFileSync("/tmp/a/link", "utf8"), fs.lstatSync("/tmp/a/link").isSymbolicLink()], ["hello world", true]);
  const fd = fs.openSync("/tmp/a/h.txt", "r+");
  fs.writeSync(fd, "J", 0);
  const into = Buffer.alloc(5);
  assertEquals([fs.readSync(fd, into, 0, 5, 0), into.toString()], [5, "Jello"]);
  fs.closeSync(fd);
  assertEquals(assertThrows(Error, () => fs.readFileSync("/tmp/none")).code, "ENOENT");
  assertEquals(assertThrows(Error, () => fs.rmdirSync("/tmp/a")).code, "ENOTEMPTY");
  assertEquals((await fsp.readFile("/tmp/none").catch((e) => e)).code, "ENOENT");
  fs.rmSync("/tmp/a", { recursive: true });
  assertEquals(fs.existsSync("/tmp/a"), false);
  assertEquals(await new Promise((r) => fs.readFile("/nope", (e) => r(e.code))), "ENOENT");
});

test("the module is the old class that streams extend", () => {
  function Through() { Stream.call(this); this.writable = this.readable = true; }
  util.inherits(Through, Stream);
  Through.prototype.write = function (chunk) { this.emit("data", chunk); return true; };
  Through.prototype.end = function () { this.emit("end"); };
  const seen = [];
  const through = new Through();
  through.pipe(new Stream.Writable({ write(chunk, _encoding, done) { seen.push(chunk.toString()); done(); } }));
  through.write("a");
  assertEquals([seen, Object.hasOwn(Stream, "promises"), Object.hasOwn(Stream, "isWritable"), Object.hasOwn(Stream, "from")], [["a"], true, true, false]);
});
