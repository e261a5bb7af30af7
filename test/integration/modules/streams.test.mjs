// Bodies that flow through workers in C (include/cairn.h, "streams", "passing on"): requests and responses of any size in bounded
// memory, slow and vanishing clients, responses of the world, of objects and of other workers, redirects. The worker is
// test/module/river.c; behind it are objects in JavaScript and in C, and a worker in JavaScript, by stream.js.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";
import { compile } from "../lib/module.mjs";
import { Client } from "../websockets/lib.mjs";
import { project, root, serve, tempDir } from "../lib/server.mjs";

const module = compile("test/module/river.c", path.join(tempDir(), "river.so"));
const script = readFileSync(path.join(root, "test/integration/modules/stream.js"));

const makeRiver = (roomClass, files = {}) => project({
  "wrangler.json": JSON.stringify({
    name: "river", main: "stream.js", compatibility_date: "2026-01-01",
    cairn: { worker: "river:River", modules: { river: "river.so" }, egress: { allow: ["127.0.0.1"] } },
    services: [{ binding: "OTHER", service: "other" }],
    r2_buckets: [{ binding: "BUCKET", bucket_name: "b" }],
    durable_objects: { bindings: [{ name: "ROOM", class_name: roomClass }] },
    migrations: [{ tag: "v1", new_sqlite_classes: [roomClass] }],
  }),
  "river.so": readFileSync(module), "stream.js": script, ...files,
});
const other = () => project({
  "wrangler.json": JSON.stringify({ name: "other", main: "stream.js", compatibility_date: "2026-01-01", routes: ["*/other/*"], services: [{ binding: "RIVER", service: "river" }], durable_objects: { bindings: [{ name: "ROOM", class_name: "Room" }] }, migrations: [{ tag: "v1", new_sqlite_classes: ["Room"] }] }),
  "stream.js": script,
});

async function start(t, { lanes = 1, room = "Room", ...options } = {}) {
  const server = await serve([makeRiver(room), other()], { lanes, data: tempDir(), ...options });
  t.after(() => server.kill());
  server.counts = async () => (await server.fetch("/counts")).json();
  return server;
}
const pieces = async function* (count, size) {
  for (let i = 0; i < count; i++) yield Buffer.alloc(size, 120);
};
const post = (body, headers = {}) => ({ method: "POST", body, duplex: "half", headers });
const length = async (response) => (await response.arrayBuffer()).byteLength;

for (const lanes of [1, 2]) {
  test(`requests and responses of any size flow, on ${lanes} lanes`, async (t) => {
    const server = await start(t, { lanes });
    assert.equal(await (await server.fetch("/count", post("abc"))).text(), "3 1");
    assert.equal(await server.text("/count"), "0 1");
    assert.equal(await (await server.fetch("/count", post(pieces(40, 1 << 20)))).text(), `${40 << 20} 1`); // more than a whole body may have
    assert.equal(await length(await server.fetch("/write/1000")), 50_000_000);
    assert.equal(await length(await server.fetch("/write/0")), 0);
    assert.equal(await length(await server.fetch("/echo", post(pieces(100, 100_000)))), 10_000_000);
    assert.equal(await (await server.fetch("/echo", post("grüße"))).text(), "grüße");
    assert.equal(await length(await server.fetch("/echo", post(""))), 0);
    assert.equal(await server.text("/tick"), "data: 3\n\ndata: 2\n\ndata: 1\n\n");
    const known = await server.fetch("/length/100000");
    assert.deepEqual([known.headers.get("content-length"), await length(known)], ["100000", 100_000]);
    const head = await server.fetch("/write/10", { method: "HEAD" });
    assert.deepEqual([head.status, await length(head)], [200, 0]);
    assert.equal(await (await server.fetch("/ignore", post(pieces(2, 10_000)))).text(), "ignored");
    assert.equal((await server.fetch("/throw")).status, 500);
    await server.untilTrue(async () => (await server.counts()).open === 0, "every stream has ended");
    assert.equal((await server.stop()).code, 0);
  });
}

test("a response whose writer fails, or that is longer or shorter than it says, is cut", async (t) => {
  const server = await start(t);
  await assert.rejects(async () => length(await server.fetch("/breaks")));
  await server.until(/the writer fails/);
  await assert.rejects(async () => length(await server.fetch("/length/99999")));
  await assert.rejects(async () => length(await server.fetch("/length/100001")));
  await server.untilTrue(async () => (await server.counts()).open === 0, "every stream has ended");
  assert.equal(await server.text("/count"), "0 1");
});

/** A connection that has asked and reads nothing. */
const stalled = (server, request) => new Promise((resolve, reject) => {
  const socket = net.connect(server.port, "127.0.0.1", () => socket.write(request, () => resolve(socket)));
  socket.on("error", reject).pause();
});

test("B1: a client that does not read holds the writer back, and one that goes ends it", async (t) => {
  const server = await start(t);
  const slow = await Promise.all(Array.from({ length: 20 }, () => stalled(server, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")));
  let last = -1;
  await server.untilTrue(async () => {
    const { written, open } = await server.counts();
    const stands = open === 20 && written === last;
    last = written;
    return stands;
  }, "the writers stand still");
  assert.ok(last < 20 * (8 << 20), `${last} bytes were written for clients that read nothing`);
  for (const socket of slow) socket.on("error", () => {}).destroy();
  await server.untilTrue(async () => (await server.counts()).left === 20, "the writers are told"); // B2
  assert.equal((await server.counts()).open, 0);
  assert.equal((await server.stop()).code, 0);
});

test("B1: a request that nobody reads is not taken in, and one that ends early fails the reader", async (t) => {
  const server = await start(t);
  const socket = await stalled(server, "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc");
  await server.untilTrue(async () => (await server.counts()).read === 3, "the beginning");
  socket.on("error", () => {}).destroy();
  await server.until(/reading failed: the client has gone/);
  const bad = await stalled(server, "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n");
  await server.until(/reading failed: the body of the request did not come to its end|reading failed: the client has gone.*[\s\S]*reading failed/);
  bad.destroy();
  // An echo whose reader stops: the sender is held back after a while.
  let sent = 0;
  const echo = net.connect(server.port, "127.0.0.1");
  echo.on("error", () => {}).pause();
  echo.write("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
  const chunk = Buffer.alloc(1 << 20, 120);
  while (sent < 100 && echo.write(chunk)) sent++;
  for (let i = 0; i < 60 && sent < 90; i++) {
    const drained = await Promise.race([new Promise((resolve) => echo.once("drain", () => resolve(true))), server.counts().then(() => server.counts()).then(() => false)]);
    if (drained) while (sent < 90 && echo.write(chunk)) sent++;
  }
  assert.ok(sent < 60, `${sent} MiB were taken in for a reader that stands still`);
  echo.destroy();
  assert.equal(await server.text("/count"), "0 1");
});

for (const room of ["Room", "river:Pool"]) {
  test(`a request is forwarded to an object (${room}) with its body, and the response comes back`, async (t) => {
    for (const lanes of [1, 2]) {
      const server = await start(t, { lanes, room });
      assert.equal(await length(await server.fetch("/room/a/echo", post(pieces(50, 100_000)))), 5_000_000);
      assert.equal((await server.fetch("/room/a/none")).status, 404);
      if (room === "Room") {
        const seen = await (await server.fetch("/room/b/seen?q=1", { method: "PUT", body: "x", headers: { "x-mine": "2" } })).json();
        assert.deepEqual([seen.method, new URL(seen.url).search, seen.mine, seen.body, seen.name], ["PUT", "?q=1", "2", "x", "b"]);
        assert.equal((await server.fetch("/room/a/teapot")).status, 418);
        assert.equal((await server.fetch("/room/a/throw")).status, 500);
        await server.until(/RangeError: thrown by the room/);
        const zipped = await server.fetch("/room/a/zipped");
        assert.equal(await zipped.text(), "zipped");
        const endless = await server.fetch("/room/a/endless");
        const reader = endless.body.getReader();
        await reader.read();
        await reader.cancel();
        await server.untilTrue(async () => (await server.text("/room/a/cancelled")) === "1", "the object hears that its reader has gone");
      }
      assert.equal((await server.stop()).code, 0);
    }
  });
}

test("responses of objects and workers as streams", async (t) => {
  const server = await start(t, { lanes: 2 });
  const ask = (where, url, headers = {}, body) => server.fetch(`/ask/${where}`, { method: "POST", body, duplex: "half", headers: { "x-url": url, "x-method": body ? "POST" : "GET", ...headers } });
  assert.equal(await length(await ask("object/a", "https://o/stream/100")), 1_000_000);
  assert.equal(await length(await ask("OTHER", "https://o/other/stream/100")), 1_000_000);
  assert.equal(await length(await ask("object/a", "https://o/stream/100", { "x-whole": "1" })), 1_000_000);
  assert.equal(await length(await ask("object/a", "https://o/echo", { "x-stream": "1" }, pieces(50, 100_000))), 5_000_000);
  assert.equal(await length(await ask("OTHER", "https://o/other/echo", { "x-stream": "1" }, pieces(50, 100_000))), 5_000_000);
  assert.equal(await (await server.fetch("/service/OTHER")).text(), "there is nothing here");
  assert.equal((await server.stop()).code, 0);
});

test("JavaScript gives a worker in C streams and functions, and reads its own", async (t) => {
  for (const lanes of [1, 2]) {
    const server = await start(t, { lanes });
    const ask = async (name) => (await server.fetch(`/other/${name}`)).json();
    assert.equal(await ask("sum"), 1_000_000);
    assert.equal(await ask("make"), 500_000);
    assert.equal(await ask("twice"), 42);
    assert.equal(await ask("write"), 500_000);
    assert.equal(await ask("post"), "1000000 1");
    assert.equal(await ask("give-up"), "ok");
    await server.untilTrue(async () => (await server.counts()).open === 0 || lanes > 1, "every stream has ended");
    assert.equal((await server.stop()).code, 0);
  }
});

/** A server that redirects, tells what it was sent, and sends without end. */
async function world(t) {
  const seen = [];
  const answer = (request, response) => {
    const url = new URL(request.url, "http://w");
    let body = "";
    request.on("data", (chunk) => (body += chunk.length > 1000 ? "" : chunk)).on("end", () => {
      seen.push([request.method, url.pathname, body, request.headers]);
      const to = url.searchParams.get("to");
      if (url.pathname === "/cut") response.writeHead(200, { "content-length": "1000000" }).write("x".repeat(1000), () => setTimeout(() => response.destroy(), 20));
      else if (url.pathname === "/loop") response.writeHead(302, { location: "/loop" }).end("again");
      else if (to !== null) response.writeHead(Number(url.searchParams.get("status")), { location: to }).end("moved");
      else if (url.pathname === "/endless") {
        response.writeHead(200);
        const more = () => { while (response.write(Buffer.alloc(100_000))) ; };
        response.on("drain", more).on("close", () => (answer.closed = true));
        more();
      } else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ method: request.method, path: url.pathname, body, authorization: request.headers.authorization ?? null, cookie: request.headers.cookie ?? null, mine: request.headers["x-mine"] ?? null, type: request.headers["content-type"] ?? null, length: request.headers["content-length"] ?? null }));
    });
  };
  const [one, two] = [http.createServer(answer), http.createServer(answer)];
  await Promise.all([one, two].map((each) => new Promise((resolve) => each.listen(0, "127.0.0.1", resolve))));
  t.after(() => [one, two].forEach((each) => (each.closeAllConnections(), each.close())));
  const at = (each) => `http://127.0.0.1:${each.address().port}`;
  return { a: at(one), b: at(two), seen, answer };
}

test("redirects are followed as fetch() does: methods, bodies, credentials, limits", async (t) => {
  const server = await start(t);
  const { a, b, seen } = await world(t);
  const ask = (url, headers = {}) => server.fetch("/ask/world", { redirect: "manual", headers: { "x-url": url, ...headers } });
  const to = (where, status, from = a) => `${from}/from?status=${status}&to=${encodeURIComponent(where)}`;
  for (const status of [301, 302, 303, 307, 308]) {
    const kept = status >= 307;
    const response = await ask(to("/there", status), { "x-method": "POST", "x-text": "body" });
    const { method, body, authorization, type, path: at } = await response.json();
    assert.deepEqual([status, method, body, authorization, type, at], [status, kept ? "POST" : "GET", kept ? "body" : "", "secret", kept ? "text/plain" : null, "/there"]);
    assert.deepEqual([response.headers.get("x-redirected"), response.headers.get("x-at")], ["yes", `${a}/there`]);
    const put = await (await ask(to("/there", status), { "x-method": "PUT", "x-text": "body" })).json();
    assert.deepEqual([status, put.method, put.body], status === 303 ? [303, "GET", ""] : [status, "PUT", "body"]);
    const elsewhere = await (await ask(to(`${b}/there`, status), { "x-method": "GET" })).json();
    assert.deepEqual([elsewhere.authorization, elsewhere.cookie, elsewhere.mine], [null, null, "1"]); // R2
  }
  const relative = await (await ask(to("sub/../deep?x=1#f", 302, `${a}/dir`.replace("/dir", "")))).json();
  assert.equal(relative.path, "/deep");
  const manual = await ask(to("/there", 302), { "x-redirect": "manual" });
  assert.deepEqual([manual.headers.get("x-redirected"), manual.status], ["no", 302]);
  assert.equal((await ask(to("/there", 302), { "x-redirect": "error" })).status, 500);
  await server.until(/was redirected to \/there, and its redirect mode is "error"/);
  assert.equal((await ask(`${a}/loop`)).status, 500);
  await server.until(/Too many redirects: more than 20/);
  assert.equal(seen.filter(([, path_]) => path_ === "/loop").length, 21);
  for (const bad of ["ftp://a/b", "http://", "javascript:1"]) assert.equal((await ask(to(bad, 302))).status, 500);
  await server.until(/no HTTP address/);
  const stream = await server.fetch("/ask/world", post("flows", { "x-url": to("/there", 307), "x-method": "POST", "x-stream": "1" }));
  assert.equal(stream.status, 500);
  await server.until(/cannot be sent again/);
  const sent = await (await server.fetch("/ask/world", post(pieces(3, 10), { "x-url": `${a}/plain`, "x-method": "POST", "x-stream": "1" }))).json();
  assert.deepEqual([sent.method, sent.body], ["POST", "x".repeat(30)]);
  const after = await (await server.fetch("/ask/world", post("flows", { "x-url": to("/there", 303), "x-method": "POST", "x-stream": "1" }))).json();
  assert.deepEqual([after.method, after.body], ["GET", ""]);
});

test("X2: a response of the world is read as fast as it is taken", async (t) => {
  const server = await start(t);
  const { a, answer } = await world(t);
  const response = await server.fetch("/ask/world", { headers: { "x-url": `${a}/endless` } });
  await assert.rejects(async () => length(await server.fetch("/ask/world", { headers: { "x-url": `${a}/cut` } })));
  await server.untilTrue(async () => (await server.counts()).open === 0, "the worker goes on");
  const reader = response.body.getReader();
  for (let taken = 0; taken < 5_000_000;) taken += (await reader.read()).value.length;
  await reader.cancel();
  await server.untilTrue(async () => (await server.counts()) && answer.closed === true, "the server in the world hears that it can stop");
  assert.equal((await server.stop()).code, 0);
});

for (const [where, lanes] of [["", 1], ["", 2], ["/room/a", 1], ["/room/a", 2]]) {
  test(`objects of R2 flow, from ${where ? "an object" : "a worker"} on ${lanes} lanes: any size, ranges, one that breaks off`, async (t) => {
    const server = await start(t, { lanes, room: "river:Pool" });
    const at = (key) => `${where}/bucket/${key}`;
    const put = (key, body) => server.fetch(at(key), { ...post(body), method: "PUT" });
    for (const [key, count, size] of [["small", 1, 10], ["middle", 3, 100_000], ["large", 40, 1 << 20]]) {
      const stored = await put(key, pieces(count, size));
      assert.deepEqual([stored.status, stored.headers.get("x-size")], [200, String(count * size)], key);
      const got = await server.fetch(at(key));
      assert.deepEqual([got.headers.get("x-size"), await length(got)], [String(count * size), count * size], key);
    }
    const empty = await put("empty", "");
    assert.deepEqual([empty.headers.get("x-size"), await length(await server.fetch(at("empty")))], ["0", 0]);
    assert.equal((await server.fetch(at("none"))).status, 404);
    await put("digits", "0123456789".repeat(100_000));
    const range = async (offset) => (await server.fetch(at("digits"), { headers: { "x-offset": offset } })).text();
    assert.deepEqual([await range("0"), await range("999998"), await range("2000000"), await range("500003")], ["01234", "89", "", "34567"]);
    const broken = await stalled(server, `PUT ${at("broken")} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nabc`);
    broken.on("error", () => {}).destroy();
    await server.until(/bucket: .*(gone|end|given up)/);
    assert.equal((await server.fetch(at("broken"))).status, 404); // all of it, or nothing
    const slow = await stalled(server, `GET ${at("large")} HTTP/1.1\r\nHost: a\r\n\r\n`);
    assert.equal(await length(await server.fetch(at("large"))), 40 << 20);
    slow.on("error", () => {}).destroy();
    const half = await stalled(server, `PUT ${at("half")} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nabc`);
    half.on("error", () => {});
    server.signal("SIGHUP");
    await server.until(/reloaded/); // what an object is asked meanwhile may end with the reload
    assert.equal((await server.fetch(at("half"))).status, 404);
    half.destroy();
    assert.equal((await server.stop()).code, 0);
  });
}

test("a reload, a stop and kill -9 in the middle of streams", async (t) => {
  const server = await start(t);
  const slow = await Promise.all(Array.from({ length: 5 }, () => stalled(server, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")));
  const upload = await stalled(server, "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc");
  const room = await stalled(server, "POST /room/a/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\nabc");
  await server.untilTrue(async () => (await server.counts()).open === 6, "they flow");
  for (let i = 0; i < 3; i++) {
    server.signal("SIGHUP");
    assert.equal(await server.text("/count"), "0 1");
  }
  await server.untilTrue(async () => (await server.counts()).open === 0, "the new instance");
  const whole = server.fetch("/write/2000").then(length);
  server.signal("SIGHUP");
  assert.equal(await whole, 100_000_000);
  for (const socket of [...slow, upload, room]) socket.on("error", () => {}).destroy();
  const last = await stalled(server, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
  last.on("error", () => {});
  server.kill();
  await server.exited;
  last.destroy();
});

test("M4: a crash in a function that a stream or an answer calls names the module", async (t) => {
  const server = await start(t);
  server.fetch("/crash").catch(() => {});
  await server.exited;
  assert.match(server.stderr.trim().split("\n").at(-1), /^cairn: crashed \(SIGABRT\) in the module "river", class river:River$/);
});

for (const lanes of [1, 2]) {
  test(`a WebSocket is forwarded to an object, whose client it becomes, on ${lanes} lanes`, async (t) => {
    const server = await start(t, { lanes });
    const sockets = await Promise.all(["a", "b", "c", "d"].map((name) => Client.open(server, `/room/${name}`)));
    for (let i = 0; i < 3; i++) {
      assert.deepEqual(await Promise.all(sockets.map((socket, index) => socket.ask(`${i} ${index}`))), sockets.map((_, index) => `room: ${i} ${index}`));
      server.signal("SIGHUP"); // the worker goes, the room is reset, the sockets stay with it
      await server.text("/count");
    }
    sockets.forEach((socket) => socket.close(3001, "bye"));
    for (const socket of sockets) assert.deepEqual(await socket.closed, [3001, "bye"]);
    assert.equal((await server.fetch("/room/a", { headers: { "x-upgrade": "websocket" } })).status, 404);
    const text = await new Promise((resolve) => {
      let all = "";
      const socket = net.connect(server.port, "127.0.0.1", () => socket.write("GET /room/a HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\r\n"));
      socket.setEncoding("utf8").on("data", (chunk) => (all += chunk)).on("end", () => resolve(all)).on("error", () => resolve(all));
    });
    assert.match(text, /^HTTP\/1\.1 4(00|26) /);
    assert.equal((await server.stop()).code, 0);
  });
}
