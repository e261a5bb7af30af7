// Workers written in C (include/cairn.h, WORKERS): requests, events from inside the server, reloads, the end. The worker is
// test/module/front.c; what calls it from JavaScript is driver.js, a project of its own on the same server.
import assert from "node:assert/strict";
import { copyFileSync, readFileSync, renameSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";
import { compile } from "../lib/module.mjs";
import { project, root, serve, tempDir } from "../lib/server.mjs";
import { ask } from "../admin/lib.mjs";

const built = tempDir();
const front = compile("test/module/front.c", path.join(built, "front.so"));
const second = compile("test/module/front.c", path.join(built, "front2.so"), ["-DVERSION=2"]);

const settings = {
  name: "front", compatibility_date: "2026-01-01", vars: { GREETING: "hello" },
  cairn: { worker: "front:Front", modules: { front: "front.so" } },
};
const makeFront = (more = {}, files = {}) => project({ "wrangler.json": JSON.stringify({ ...settings, ...more }), "front.so": readFileSync(front), ...files });
const driver = (more = {}) => project({
  "wrangler.json": JSON.stringify({
    name: "driver", main: "driver.js", compatibility_date: "2026-01-01", routes: ["*/driver/*"], services: [{ binding: "FRONT", service: "front" }], ...more,
  }),
  "driver.js": readFileSync(path.join(root, "test/integration/modules/driver.js")),
});

async function start(t, folders, options) {
  const server = await serve(folders, options);
  t.after(() => server.kill());
  return server;
}

for (const lanes of [1, 2]) {
  test(`requests from outside are answered in C, on ${lanes} lanes`, async (t) => {
    const server = await start(t, makeFront(), { lanes });
    assert.equal(await server.text("/hello"), "hello\n");
    const told = await (await server.fetch("/echo?a=1", { method: "PUT", body: "grüße", headers: { "x-twice": "1", cookie: "a=b", "cf-connecting-ip": "6.6.6.6" } })).json();
    assert.deepEqual([told.method, told.url, told.body, told.twice, told.cookie, told.none], ["PUT", `${server.url}/echo?a=1`, "grüße", "1", "a=b", null]);
    assert.equal(told.address, "127.0.0.1"); // Q2
    assert.equal(told.headers["cf-connecting-ip"], "127.0.0.1");
    assert.equal(told.headers["content-length"], "7");
    assert.equal((await (await server.fetch("/echo")).json()).body, null);
    assert.equal((await (await server.fetch("/echo", { method: "POST", body: "" })).json()).body, null);
    const long = "x".repeat(3 << 20);
    assert.equal((await (await server.fetch("/echo", { method: "POST", body: long })).json()).body, long);
    assert.equal(await server.text("/env/GREETING"), "hello");
    assert.equal(await server.text("/env/OTHER"), "(none)");
    assert.equal((await server.text("/big")).length, 4 << 20);
    const headers = await server.fetch("/headers");
    assert.deepEqual([headers.headers.getSetCookie(), await headers.text()], [["a=1", "b=2"], "-2 -2"]);
    assert.equal((await server.fetch("/status/204")).status, 204);
    assert.equal((await server.fetch("/status/418")).status, 418);
    assert.equal((await server.fetch("/none")).status, 404);
    const head = await server.fetch("/hello", { method: "HEAD" });
    assert.deepEqual([head.status, head.headers.get("content-length"), await head.text()], [200, "6", ""]);
    assert.deepEqual(await Promise.all(Array.from({ length: 50 }, () => server.text("/later"))), Array(50).fill("later\n"));
    assert.equal((await server.stop()).code, 0);
  });
}

/** What the server says to bytes on a connection, until it closes that. */
const exchange = (server, bytes) => new Promise((resolve, reject) => {
  let text = "";
  const socket = net.connect(server.port, "127.0.0.1", () => socket.write(bytes));
  socket.setEncoding("utf8").on("data", (chunk) => (text += chunk)).on("end", () => resolve(text)).on("error", reject);
});

test("headers with one name are one, pipelined requests are answered in order, HTTP/1.0 has a URL", async (t) => {
  const server = await start(t, makeFront());
  const asked = "GET /echo HTTP/1.1\r\nHost: a.test\r\nX-Twice: 1\r\nCookie: a=1\r\nx-twice: 2\r\nCookie: b=2\r\n\r\n";
  const text = await exchange(server, `${asked}GET /hello HTTP/1.1\r\nHost: a.test\r\n\r\nGET /later HTTP/1.1\r\nHost: a.test\r\n\r\nGET /hello HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n`);
  assert.match(text, /"twice":"1, 2","cookie":"a=1; b=2".*\r\n\r\nhello\n.*\r\n\r\nlater\n.*\r\n\r\nhello\n$/s);
  assert.match(text, /"headers":\{"host":"a\.test","x-twice":"1, 2","cookie":"a=1; b=2","cf-connecting-ip":"127\.0\.0\.1"\}/);
  assert.match(await exchange(server, "GET /echo HTTP/1.0\r\n\r\n"), /"url":"http:\/\/localhost\/echo"/);
});

test("F1: a body that is too large, that ends early or that stops is refused, and the server lives", async (t) => {
  const server = await start(t, makeFront());
  const large = await exchange(server, `POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: ${(16 << 20) + 1}\r\n\r\nabc`);
  assert.match(large, /^HTTP\/1\.1 413 .*\r\n\r\nA worker in C takes request bodies of 16 MiB at most\.\n$/s);
  const pieces = async function* () {
    for (let i = 0; i < 17; i++) yield Buffer.alloc(1 << 20, 120);
  };
  const chunked = await server.fetch("/echo", { method: "POST", body: pieces(), duplex: "half" }).catch((error) => error);
  assert.ok(chunked instanceof Error || chunked.status === 413, String(chunked.status));
  for (let i = 0; i < 20; i++) {
    await new Promise((resolve) => {
      const socket = net.connect(server.port, "127.0.0.1", () => socket.write("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc", () => socket.destroy()));
      socket.on("close", resolve).on("error", () => {});
    });
  }
  assert.match(await exchange(server, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), /^HTTP\/1\.1 400/);
  assert.equal(await server.text("/hello"), "hello\n");
  assert.equal((await server.stop()).code, 0);
});

test("what fails in C is 500 with a reference, and a line in the log", async (t) => {
  const server = await start(t, makeFront());
  const response = await server.fetch("/throw");
  assert.deepEqual([response.status, /^The worker threw an exception \(reference [0-9a-f]{16}\)\n$/.test(await response.text())], [500, true]);
  await server.until(/RangeError: thrown by C/);
  assert.equal((await server.fetch("/silent")).status, 500);
  await server.until(/the class front:Front failed with -77 and no error text/);
  assert.equal((await server.fetch("/control")).status, 500);
  await server.until(/HTTP does not allow this response/);
  assert.equal((await server.fetch("/many")).status, 500);
  await server.until(/more than 256 headers/);
  assert.equal((await server.fetch("/status/700")).status, 500);
  await server.until(/the status of a response is from 200 to 599/);
});

test("a worker has no storage, no alarm, no gates and no sockets", async (t) => {
  const server = await start(t, makeFront());
  assert.equal(await server.text("/misuse"), "-6 -6 -6 -6 -6 -1 -6 0 -6 -1 -6 -2 0 [] [] []");
  await server.until(/a worker cannot be reset: a test/);
});

test("F2: a client that goes does not take its event with it", async (t) => {
  const server = await start(t, makeFront());
  const gone = net.connect(server.port, "127.0.0.1", () => gone.write("GET /park HTTP/1.1\r\nHost: a\r\n\r\n"));
  gone.on("error", () => {});
  await server.untilTrue(async () => (await server.fetch("/park")).status === 500, "the parked one");
  gone.destroy();
  // Its pointer is good, whether the server has seen that its client is gone or not.
  await new Promise((resolve) => gone.on("close", resolve));
  assert.equal(await server.text("/release"), "ok");
  const parked = server.text("/park");
  await server.untilTrue(async () => (await server.text("/release")) === "ok", "the next one");
  assert.equal(await parked, "released\n");
});

test("JavaScript calls a worker in C by a service binding: fetch, methods, errors", async (t) => {
  for (const lanes of [1, 2]) {
    const server = await start(t, [makeFront(), driver()], { lanes });
    const ask = async (name) => (await server.fetch(`/driver/${name}`)).json();
    assert.deepEqual(await ask("fetch"), [200, "hello\n", "text/plain;charset=UTF-8"]);
    assert.deepEqual(await ask("post"), ["POST", "https://front/echo", "a body"]);
    assert.deepEqual(await ask("later"), Array(20).fill("later\n"));
    assert.equal(await ask("sum"), 6);
    assert.deepEqual(await ask("wrong"), ["TypeError", "argument 1 is no number"]);
    assert.deepEqual(await ask("nothing"), ["TypeError", 'there is no method "nothing"']);
    assert.deepEqual(await ask("throws"), ["RangeError", "thrown by C"]);
    assert.equal((await server.stop()).code, 0);
  }
});

test("queue() in C: what it says of messages, and what becomes of those it says nothing of", async (t) => {
  const consumer = { queues: { consumers: [{ queue: "jobs", max_batch_timeout: 0, max_batch_size: 10, max_retries: 5 }] } };
  const server = await start(t, [makeFront(consumer), driver({ queues: { producers: [{ binding: "QUEUE", queue: "jobs" }] } })], { data: tempDir() });
  await server.text("/driver/send");
  for (const line of ["jobs has plain, attempt 1, 7 bytes, id of 32", "jobs has object, attempt 1", "jobs has bytes, attempt 1, 3 bytes", "jobs has value, attempt 1",
    "jobs has retry, attempt 1", "jobs has retry, attempt 2", "jobs has fail, attempt 1", "queue() failed: a message fails", "jobs has fail, attempt 2"])
    await server.until(new RegExp(line.replace(/[()]/g, "\\$&")));
  assert.equal((server.output.match(/jobs has plain/g) ?? []).length, 1);
  assert.equal((await server.stop()).code, 0);
});

test("scheduled() in C", async (t) => {
  const server = await start(t, makeFront({ triggers: { crons: ["0 0 1 1 *"] } }), { command: "dev" });
  assert.equal((await server.fetch("/cdn-cgi/handler/scheduled?cron=0+0+1+1+*")).status, 200);
  await server.until(/cron 0 0 1 1 \* is due, in time/);
  const failing = await start(t, makeFront({ triggers: { crons: ["0 0 1 1 *"] }, vars: { CRON_FAILS: "1" } }), { command: "dev" });
  assert.notEqual((await failing.fetch("/cdn-cgi/handler/scheduled")).status, 200);
  await failing.until(/the cron fails/);
});

test("events that the class has no function for go to JavaScript", async (t) => {
  const main = 'import { WorkerEntrypoint } from "cloudflare:workers"; export default class extends WorkerEntrypoint { fetch() { return new Response("js"); } sum() { return "in js"; } }';
  const half = makeFront({ main: "index.js", cairn: { worker: "front:Half", modules: { front: "front.so" } } }, { "index.js": main });
  const server = await start(t, [half, driver()]);
  assert.equal(await server.text("/hello"), "hello\n");
  assert.equal(await (await server.fetch("/driver/sum")).json(), "in js");
});

test("a worker in C calls objects in JavaScript", async (t) => {
  const main = 'import { DurableObject } from "cloudflare:workers"; export class Thing extends DurableObject { count() { const n = (this.ctx.storage.kv.get("n") ?? 0) + 1; this.ctx.storage.kv.put("n", n); return n; } bad() { throw new RangeError("bad"); } }';
  const more = { main: "index.js", durable_objects: { bindings: [{ name: "OBJECT", class_name: "Thing" }] }, migrations: [{ tag: "v1", new_sqlite_classes: ["Thing"] }] };
  for (const lanes of [1, 2]) {
    const server = await start(t, makeFront(more, { "index.js": main }), { lanes, data: tempDir() });
    const counts = await Promise.all(Array.from({ length: 20 }, async () => (await server.fetch("/object/a/count")).json()));
    assert.deepEqual(counts.sort((a, b) => a - b), Array.from({ length: 20 }, (_, i) => i + 1));
    assert.equal((await server.fetch("/object/b/bad")).status, 500);
    await server.until(/called: bad/);
    assert.equal((await server.stop()).code, 0);
  }
});

test("N1, F3: a reload replaces a worker; what is under way finishes on the old code", async (t) => {
  const dir = makeFront();
  const server = await start(t, dir, { lanes: 1 });
  assert.equal(await server.text("/version"), "1");
  const parked = server.text("/park");
  await server.untilTrue(async () => (await server.fetch("/park")).status === 500, "the parked one");
  const later = Array.from({ length: 20 }, () => server.text("/later"));
  assert.equal(await server.text("/after"), "answered\n");
  copyFileSync(second, path.join(dir, "front.so.new"));
  renameSync(path.join(dir, "front.so.new"), path.join(dir, "front.so"));
  server.signal("SIGHUP");
  await server.untilTrue(async () => (await server.text("/version")) === "2", "the new code");
  assert.deepEqual(await Promise.all(later), Array(20).fill("later\n"));
  await server.until(/after the answer: done/); // F3
  assert.equal(await server.text("/release"), "nobody"); // the old one has it, and nobody can answer it there
  for (let i = 0; i < 10; i++) {
    server.signal("SIGHUP");
    assert.deepEqual(await Promise.all([server.text("/hello"), server.text("/later")]), ["hello\n", "later\n"]);
  }
  const stopped = server.stop();
  await assert.rejects(parked.then((text) => { if (/released/.test(text)) return; throw new Error(text); }));
  assert.equal((await stopped).code, 0);
  assert.match(server.output, /the front of version 1 goes/);
  assert.match(server.output, /the front of version 2 goes/);
});

test("a worker that cannot be is refused with a sentence", async () => {
  const cases = [
    [{ cairn: { worker: "front:None", modules: { front: "front.so" } } }, /the module "front" has no class "None"/],
    [{ cairn: { worker: "front.c", modules: { front: "front.so" } } }, /\[cairn\] worker is "module:Class"/],
    [{ cairn: { worker: "other:Front", modules: { front: "front.so" } } }, /\[cairn\.modules\] has no "other"/],
    [{ cairn: { worker: "front:Front" } }, /\[cairn\.modules\] has no "front"/],
    [{ vars: { REFUSE: "does not want to" } }, /worker front failed to start: the front does not want to/],
    [{ cairn: {} }, /the key "main" is missing/],
  ];
  for (const [more, expected] of cases) {
    const failure = await serve(makeFront(more)).then((server) => server.kill(), (error) => error.message);
    assert.match(failure ?? "it started", expected);
  }
});

test("M4: the last line of a server that dies in a worker names it", async (t) => {
  const server = await start(t, makeFront());
  server.fetch("/crash").catch(() => {});
  await server.exited;
  assert.match(server.stderr.trim().split("\n").at(-1), /^cairn: crashed \(SIGABRT\) in the module "front", class front:Front$/);
});

test("a line that a worker logs names it and the request", async (t) => {
  const server = await start(t, makeFront(), { args: ["--log", "json"] });
  await server.text("/log");
  const [line] = await server.until(/^.*the front says hello.*$/m);
  const { worker, class: className, level, request, object } = JSON.parse(line);
  assert.deepEqual([worker, className, level, typeof request, object], ["front", "front:Front", "warn", "string", undefined]);
});

test("C1 of module/counters.h: what C counts is among the metrics, and reloads keep it", async (t) => {
  const server = await start(t, makeFront(), { lanes: 2 });
  const counted = async () => /^cairn_module_count_total\{worker="front",name="hits"\} (\d+)$/m.exec((await ask({ data: server.data }, "GET", "/metrics")).text)?.[1];
  assert.equal(await counted(), undefined);
  await Promise.all(Array.from({ length: 20 }, () => server.text("/count/hits")));
  assert.equal(await counted(), "40");
  server.signal("SIGHUP");
  await server.until(/the front of version 1 goes/);
  await server.text("/count/hits");
  assert.equal(await counted(), "42");
  assert.equal((await server.fetch("/count/no%20name")).status, 500);
  await server.until(/the name of a counter is/);
});
