import stream, { Duplex, PassThrough, Readable, Writable } from "node:stream";
import { Buffer } from "node:buffer";
import { assertEquals, test } from "../harness.js";

test("Readable.toWeb and fromWeb pass chunks and the end", async () => {
  const chunks = [];
  for await (const chunk of Readable.toWeb(Readable.from([Buffer.from("a"), Buffer.from("b")]))) chunks.push(Buffer.from(chunk).toString());
  assertEquals(chunks.join(""), "ab");
  const back = Readable.fromWeb(new Response("hello").body);
  let text = "";
  for await (const chunk of back) text += Buffer.from(chunk).toString();
  assertEquals(text, "hello");
});

test("Writable.toWeb: a write ends when the stream has room, not when its callback is called", async () => {
  const writer = Writable.toWeb(new Writable({ write() {} })).getWriter();
  await writer.write(new Uint8Array([1]));
});

test("Duplex.fromWeb and toWeb", async () => {
  const transform = new TransformStream();
  const duplex = Duplex.fromWeb(transform);
  duplex.end(new TextEncoder().encode("ok"));
  let text = "";
  for await (const chunk of duplex) text += Buffer.from(chunk).toString();
  assertEquals(text, "ok");
  const pair = Duplex.toWeb(new PassThrough());
  assertEquals([pair.readable instanceof ReadableStream, pair.writable instanceof WritableStream], [true, true]);
});

test("duplexPair: what one side writes the other reads", async () => {
  const [a, b] = stream.duplexPair();
  a.end("x");
  let text = "";
  for await (const chunk of b) text += chunk;
  assertEquals(text, "x");
});

test("the default high water mark is 64 KiB; end() gives its callback null", async () => {
  assertEquals([new Readable().readableHighWaterMark, new Writable().writableHighWaterMark], [65536, 65536]);
  const error = await new Promise((resolve) => new Writable({ write(c, e, cb) { cb(); } }).end("x", resolve));
  assertEquals(error, null);
});

test("a corked duplex that is destroyed fails its writes", async () => {
  const duplex = new Duplex({ read() {}, write(c, e, cb) { cb(); } });
  duplex.cork();
  const code = new Promise((resolve) => duplex.write("x", (error) => resolve(error.code)));
  duplex.destroy();
  assertEquals(await code, "ERR_STREAM_DESTROYED");
});
