// Whatever is too large, too long or too deep is refused with a clear answer, and the server goes on
// as if nothing had been. The bounds are those of docs/reference/limits.md.
import assert from "node:assert/strict";
import net from "node:net";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import zlib from "node:zlib";
import { raw } from "../lib/server.mjs";
import { ask } from "../admin/lib.mjs";
import { actor } from "./lib.mjs";

const WebSocket = createRequire(import.meta.url)("ws");
const limits = { url_bytes: 4096, header_bytes: 8192, body_bytes: 1 << 20, websocket_message_bytes: 1 << 20, heap_bytes: 256 << 20 };
let server;
before(async () => {
  server = await actor({
    length: "(request) => request.arrayBuffer().then((bytes) => bytes.byteLength)",
    json: "(request) => request.json().then(() => 'parsed')",
    form: "(request) => request.formData().then((form) => [...form].length)",
    nest: `(request, env) => request.json().then((depth) => {
      let value = null;
      for (let i = 0; i < depth; i++) value = [value];
      return env.CELL.getByName("n").echo(value).then(() => "came back");
    })`,
    store: `(request, env) => request.json().then((depth) => {
      let value = null;
      for (let i = 0; i < depth; i++) value = { value };
      return env.CELL.getByName("n").put("deep", value).then(() => "stored");
    })`,
    call: '(request, env) => request.json().then((size) => env.CELL.getByName("n").echo(new Uint8Array(size)).then((bytes) => bytes.byteLength))',
    key: '(request, env) => request.json().then((size) => env.CELL.getByName("n").put("k".repeat(size), 1))',
    value: '(request, env) => request.json().then((size) => env.CELL.getByName("n").put("k", "v".repeat(size)))',
    kvKey: '(request, env) => request.json().then((size) => env.KV.put("k".repeat(size), "v"))',
    kvValue: '(request, env) => request.json().then((size) => env.KV.put("k", "v".repeat(size)))',
    kvMetadata: '(request, env) => request.json().then((size) => env.KV.put("k", "v", { metadata: "m".repeat(size) }))',
    r2Key: '(request, env) => request.json().then((size) => env.BUCKET.put("k".repeat(size), "v"))',
    r2Metadata: '(request, env) => request.json().then((size) => env.BUCKET.put("k", "v", { customMetadata: { m: "m".repeat(size) } }))',
    message: '(request, env) => request.json().then((size) => env.QUEUE.send("m".repeat(size)))',
    batch: '(request, env) => request.json().then((count) => env.QUEUE.sendBatch(Array.from({ length: count }, () => ({ body: "m" }))))',
    name: '(request, env) => request.json().then((size) => env.CELL.getByName("n".repeat(size)).echo(1))',
    header: '(request) => request.json().then((size) => new Response("x", { headers: { "x-long": "h".repeat(size) } }))',
    bytes: "(request) => request.json().then((size) => new Uint8Array(size).length)",
    text: '(request) => request.json().then((size) => "x".repeat(size).length)',
    recursion: "() => { const f = (n) => f(n + 1) + 1; return f(0); }",
    regexp: "(request) => new RegExp('('.repeat(200000) + ')'.repeat(200000)).test('x')",
    gunzip: `async (request) => {
      let size = 0;
      for await (const part of request.body.pipeThrough(new DecompressionStream("gzip"))) size += part.length;
      return size;
    }`,
    html: `async (request) => {
      const page = new Response("<div>".repeat(await request.json()));
      let seen = 0;
      await new HTMLRewriter().on("div", { element() { seen++; } }).transform(page).text();
      return seen;
    }`,
    url: '(request) => request.json().then((size) => new URL("http://x/" + "a/../".repeat(size)).pathname.length)',
    timers: "(request) => request.json().then((count) => { for (let i = 0; i < count; i++) setTimeout(() => {}, 1e6); return count; })",
  }, { more: { cairn: { limits }, limits: { cpu_ms: 8000 } }, args: ["--admin", "127.0.0.1:0"] });
});
after(() => server.stop());

const goesOn = async () => assert.equal(await server.text("/hello"), "hello");
const get = (target, headers = "") => raw(server.port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n`);

describe("HTTP", () => {
  test("request targets", async () => {
    assert.match(await get(`/hello?${"x".repeat(5000)}`), /^HTTP\/1.1 414 /);
    assert.match(await get(`/${"x".repeat(5_000_000)}`).catch(() => "HTTP/1.1 414 reset"), /^HTTP\/1.1 414 /);
    await goesOn();
  });
  test("header sections, fields, names", async () => {
    assert.match(await get("/hello", `X: ${"x".repeat(9000)}\r\n`), /^HTTP\/1.1 431 /);
    assert.match(await get("/hello", "X: y\r\n".repeat(300)), /^HTTP\/1.1 431 /);
    assert.match(await get("/hello", `${"x".repeat(9000)}: y\r\n`), /^HTTP\/1.1 431 /);
    assert.match(await raw(server.port, `${"G".repeat(20_000)} / HTTP/1.1\r\n\r\n`), /^HTTP\/1.1 (400|414|431|501) /);
    await goesOn();
  });
  test("bodies, announced or not", async () => {
    assert.match(await raw(server.port, "POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"), /^HTTP\/1.1 413 /);
    const chunk = `10000\r\n${"x".repeat(65536)}\r\n`;
    const answer = await raw(server.port, `POST /length HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(20)}`);
    assert.match(answer, /^HTTP\/1.1 413 |body/);
    await goesOn();
  });
  test("chunk extensions and trailers", async () => {
    const answer = await raw(server.port, `POST /length HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;${"x".repeat(40_000)}\r\na\r\n0\r\n\r\n`);
    assert.match(answer, /^HTTP\/1.1 413 |ended early|too large/);
    await goesOn();
  });
  test("connections that begin and say no more do not stop others", async () => {
    const sockets = Array.from({ length: 200 }, () => net.connect(server.port, "127.0.0.1").on("error", () => {}));
    for (const socket of sockets) socket.write("POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n1");
    await goesOn();
    for (const socket of sockets) socket.destroy();
  });
});

describe("WebSockets", () => {
  const open = () => new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${server.port}/ws`, { maxPayload: 0 });
    socket.on("open", () => resolve(socket)).on("error", reject);
  });
  const closed = (socket) => new Promise((resolve) => { socket.on("close", (code) => resolve(code)).on("error", () => {}); });
  test("messages, whole, in pieces, and by compression", async () => {
    for (const send of [
      (socket) => socket.send("x".repeat(2 << 20), { compress: false }),
      (socket) => { for (let i = 0; i < 40; i++) socket.send("x".repeat(65536), { fin: false, compress: false }); },
      (socket) => socket.send(Buffer.alloc(50 << 20), { compress: true }),
    ]) {
      const socket = await open();
      const code = closed(socket);
      send(socket);
      assert.equal(await code, 1009);
    }
    await goesOn();
  });
  test("a frame that announces 2^63 bytes", async () => {
    const socket = await open();
    const code = closed(socket);
    socket._socket.write(Buffer.from([0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]));
    assert.ok([1002, 1009].includes(await code));
    await goesOn();
  });
});

describe("in a worker", () => {
  const post = async (name, body) => (await server.fetch(`/${name}`, { method: "POST", body })).json();
  test("JSON and forms without end", async () => {
    for (const text of ["[".repeat(500_000), '{"a":'.repeat(150_000), "[".repeat(400_000) + "]".repeat(400_000)]) {
      const { value, error } = await post("json", text);
      assert.ok(error || value === "parsed", text.slice(0, 10));
    }
    const { error } = await post("json", "[".repeat(500_000));
    assert.match(error, /Error/);
    const parts = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n".repeat(15_000);
    const form = await (await server.fetch("/form", { method: "POST", headers: { "content-type": "multipart/form-data; boundary=b" }, body: `${parts}--b--` })).json();
    assert.ok(form.error || form.value === 15_000, JSON.stringify(form));
    await goesOn();
  });
  test("depth of what is cloned", async () => {
    assert.deepEqual(await server.act("nest", 100), { value: "came back" });
    assert.match((await server.act("nest", 1_000_000)).error, /Error/);
    assert.match((await server.act("store", 1_000_000)).error, /Error/);
    await goesOn();
  });
  test("calls, keys, values, names, metadata, messages", async () => {
    for (const [action, size] of [["call", 40 << 20], ["key", 3000], ["value", 5 << 20], ["kvKey", 513], ["kvValue", 26 << 20], ["kvMetadata", 2000],
      ["r2Key", 1025], ["r2Metadata", 10_000], ["message", 129_000], ["batch", 101]]) {
      const { value, error } = await server.act(action, size);
      assert.ok(error, `${action} of ${size} gave ${JSON.stringify(value)}`);
    }
    assert.deepEqual(await server.act("name", 100_000), { value: 1 }); // a name is only hashed
    await goesOn();
  });
  test("a response's head", async () => {
    const response = await server.fetch("/header", { method: "POST", body: "100000" }).catch((error) => error);
    assert.ok(response instanceof Error || [200, 500].includes(response.status));
    await goesOn();
  });
  test("memory, stack and expressions", async () => {
    for (const [action, size] of [["bytes", 2 ** 40], ["bytes", 2 ** 53], ["text", 2 ** 32], ["recursion"], ["regexp"]]) {
      const { value, error } = await server.act(action, size);
      assert.ok(error, `${action} of ${size} gave ${JSON.stringify(value)}`);
    }
    await goesOn();
  });
  test("what becomes large by itself", async () => {
    const bomb = zlib.gzipSync(Buffer.alloc(200 << 20)); // 200 kB
    assert.deepEqual(await (await server.fetch("/gunzip", { method: "POST", body: bomb })).json(), { value: 200 << 20 });
    assert.deepEqual(await server.act("html", 50_000), { value: 50_000 });
    assert.deepEqual(await server.act("url", 100_000), { value: 1 });
    const { value, error } = await server.act("timers", 100_000);
    assert.ok(error || value === 100_000);
    await goesOn();
  });
});

describe("the control API", () => {
  test("bodies, depth, SQL, paths", async () => {
    const it = { data: server.data };
    await server.act("key", 5);
    const good = await ask(it, "POST", "/api/objects/app%2FCell/n/sql", { text: '{"sql": "SELECT 1"}' });
    assert.equal(good.status, 200, good.text);
    for (const text of ["[".repeat(200_000), `{"sql": "${"x".repeat(200_000)}"}`, '{"a":'.repeat(100_000)]) {
      const answer = await ask(it, "POST", "/api/objects/app%2FCell/n/sql", { text });
      assert.ok(answer.status >= 400 && answer.status < 500, `${answer.status} ${answer.text}`);
    }
    assert.ok((await ask(it, "GET", `/api/objects/app%2FCell/${"n".repeat(20_000)}`)).status >= 400);
    await goesOn();
  });
});
