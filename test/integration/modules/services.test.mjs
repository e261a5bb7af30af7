// Code in C calls services, other workers and the world (include/cairn.h): workers and objects of test/module/front.c.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { test } from "node:test";
import zlib from "node:zlib";
import { compile } from "../lib/module.mjs";
import { project, root, serve, tempDir } from "../lib/server.mjs";

const front = compile("test/module/front.c", path.join(tempDir(), "front.so"));
const settings = {
  name: "front", compatibility_date: "2026-01-01",
  cairn: { worker: "front:Front", modules: { front: "front.so" } },
  kv_namespaces: [{ binding: "KV", id: "k" }],
  d1_databases: [{ binding: "DB", database_id: "d", database_name: "d" }],
  queues: { producers: [{ binding: "QUEUE", queue: "jobs" }], consumers: [{ queue: "jobs", max_batch_timeout: 0 }] },
  r2_buckets: [{ binding: "BUCKET", bucket_name: "b" }],
  analytics_engine_datasets: [{ binding: "POINTS" }],
  services: [{ binding: "BACK", service: "back" }, { binding: "NAMED", service: "back", entrypoint: "Named", props: { who: "c" } }],
  durable_objects: { bindings: [{ name: "OBJECT", class_name: "front:Thing" }] },
  migrations: [{ tag: "v1", new_sqlite_classes: ["front:Thing"] }],
};
const back = () => project({
  "wrangler.json": JSON.stringify({
    name: "back", main: "back.js", compatibility_date: "2026-01-01", routes: ["*/back/*"],
    durable_objects: { bindings: [{ name: "THING", class_name: "front:Thing", script_name: "front" }] },
    kv_namespaces: [{ binding: "KV", id: "k" }],
  }),
  "back.js": readFileSync(path.join(root, "test/integration/modules/back.js")),
});
const makeFront = (more = {}) => project({ "wrangler.json": JSON.stringify({ ...settings, ...more }), "front.so": readFileSync(front) });

async function start(t, options = {}, more = {}) {
  const server = await serve([makeFront(more), back()], { data: tempDir(), ...options });
  t.after(() => server.kill());
  /** A method of a binding, from the worker in C. */
  const call = async (binding, method, ...args) => {
    const response = await server.fetch(`/service/${binding}/${method}`, { method: "POST", body: JSON.stringify(args) });
    if (response.status !== 200) throw new Error(await response.text());
    return response.json();
  };
  /** The same from an object in C. */
  const fromObject = async (method, ...args) => (await server.fetch(`/back/thing/${method}`, { method: "POST", body: JSON.stringify(args) })).json();
  return { server, call, fromObject };
}

for (const lanes of [1, 2]) {
  test(`KV from C, on ${lanes} lanes`, async (t) => {
    const { server, call, fromObject } = await start(t, { lanes });
    assert.equal(await call("KV", "get", "a"), null);
    await call("KV", "put", "a", "grüße", { metadata: { m: [1] } });
    assert.equal(await call("KV", "get", "a"), "grüße");
    assert.deepEqual(await call("KV", "getWithMetadata", "a"), { value: "grüße", metadata: { m: [1] } });
    assert.deepEqual(await call("KV", "getWithMetadata", "none"), { value: null, metadata: null });
    await call("KV", "put", "j", '{"x":1}', { expirationTtl: 3600 });
    assert.deepEqual(await call("KV", "get", "j", "json"), { x: 1 });
    await call("KV", "put", "e", "");
    assert.equal(await call("KV", "get", "e"), "");
    // JavaScript sees what C has written, and the other way round.
    assert.deepEqual(await (await server.fetch("/back/kv")).json(), ["grüße", { m: [1] }]);
    assert.equal(await call("KV", "get", "from js"), "hello");
    for (let i = 0; i < 45; i++) await call("KV", "put", `n${String(i).padStart(2, "0")}`, "x");
    const names = [];
    for (let cursor; ; ) {
      const page = await call("KV", "list", { prefix: "n", limit: 7, cursor });
      names.push(...page.keys.map((key) => key.name));
      if (page.list_complete) break;
      cursor = page.cursor;
    }
    assert.deepEqual(names, Array.from({ length: 45 }, (_, i) => `n${String(i).padStart(2, "0")}`));
    const all = await call("KV", "list");
    assert.equal(all.keys.length, 49);
    assert.ok(all.keys.find((key) => key.name === "j").expiration > Date.now() / 1000);
    await call("KV", "delete", "a");
    assert.equal(await call("KV", "get", "a"), null);
    assert.deepEqual(await fromObject("service", "KV", "put", ["o", "of an object"]), { value: null });
    assert.deepEqual(await fromObject("service", "KV", "get", ["o"]), { value: "of an object" });
    assert.equal((await server.stop()).code, 0);
  });
}

test("what KV refuses from C has JavaScript's sentences", async (t) => {
  const { server, call } = await start(t);
  const cases = [
    [["put", "", "x"], /Key name cannot be empty\./],
    [["put", "k".repeat(513), "x"], /414 UTF-8 encoded length of 513 exceeds key length limit of 512/],
    [["put", "k", "x", { expirationTtl: 5 }], /Invalid expiration_ttl of 5\. Expiration TTL must be at least 60\./],
    [["put", "k", "x", { expiration: 5 }], /Invalid expiration of 5\. Please specify integer greater than the current/],
    [["put", "k", "x", { metadata: "m".repeat(1100) }], /413 Metadata length of 1102 exceeds limit of 1024/],
    [["put", "k", { an: "object" }], /takes a text or bytes/],
    [["get", "k", "stream"], /Unknown response type/],
    [["list", { limit: 1001 }], /Invalid key_count_limit of 1001/],
    [["list", { cursor: "%%%" }], /Invalid cursor/],
    [["nothing"], /the binding "KV" has no method "nothing" for C/],
  ];
  for (const [[method, ...args], sentence] of cases) {
    await assert.rejects(call("KV", method, ...args));
    await server.until(sentence);
  }
  await assert.rejects(call("NONE", "get", "k"));
  await server.until(/there is no binding "NONE"/);
});

test("D1, queues and Analytics Engine from C", async (t) => {
  const { server, call, fromObject } = await start(t, { lanes: 2 });
  assert.equal((await call("DB", "exec", "create table t (a integer, b text)")).count, 1);
  const inserted = await call("DB", "run", "insert into t values (?, ?)", 1, "one");
  assert.deepEqual([inserted.success, inserted.meta.changes, inserted.meta.last_row_id], [true, 1, 1]);
  const [, rows] = await call("DB", "batch", [["insert into t values (2, ?)", null], ["select * from t order by a"]]);
  assert.deepEqual(rows.results, [{ a: 1, b: "one" }, { a: 2, b: null }]);
  assert.deepEqual(await call("DB", "first", "select b from t where a = ?", 1), { b: "one" });
  assert.equal(await call("DB", "first", "select b from t where a = ?", 9), null);
  await assert.rejects(call("DB", "batch", [["insert into t values (3, 'three')"], ["no sql"]]));
  await server.until(/called: D1_ERROR: near "no": syntax error/);
  assert.deepEqual((await call("DB", "all", "select count(*) as n from t")).results, [{ n: 2 }]); // one transaction
  await assert.rejects(call("DB", "all", "select ?", { an: "object" }));
  await server.until(/D1_TYPE_ERROR/);
  assert.deepEqual((await fromObject("service", "DB", "all", ["select b from t where a = 1"])).value.results, [{ b: "one" }]);

  await call("QUEUE", "send", { wish: "from C" });
  await server.until(/jobs has from C, attempt 1/);
  await call("QUEUE", "sendBatch", [{ body: "batch one" }, { body: "batch two", contentType: "text", delaySeconds: 0 }]);
  await server.until(/jobs has batch one, attempt 1/);
  await server.until(/jobs has batch two, attempt 1, 9 bytes/);
  await fromObject("service", "QUEUE", "send", ["from an object"]);
  await server.until(/jobs has from an object/);
  await assert.rejects(call("QUEUE", "send", "x".repeat(128001)));
  await server.until(/message length of 128003 bytes exceeds limit of 128000/);
  await assert.rejects(call("QUEUE", "sendBatch", []));
  await server.until(/sendBatch\(\) requires at least one message/);

  assert.equal(await call("POINTS", "writeDataPoint", { indexes: ["i"], blobs: ["b"], doubles: [1.5] }), null);
  await assert.rejects(call("POINTS", "writeDataPoint", { indexes: ["i", "j"] }));
  await server.until(/Maximum of 1 indexes supported/);
  assert.equal((await server.stop()).code, 0);
});

test("R2 from C: short bodies and long ones, ranges, conditions, lists", async (t) => {
  const { server, fromObject } = await start(t, { lanes: 2 });
  const call = async (method, ...args) => {
    const { value, error } = await fromObject("service", "BUCKET", method, args);
    if (error) throw new Error(error);
    return value;
  };
  const bytesOf = (object) => Buffer.from(Object.values(object.body));
  assert.equal(await call("get", "none"), null);
  assert.equal(await call("head", "none"), null);
  const put = await call("put", "short", "grüße", { httpMetadata: { contentType: "text/plain" }, customMetadata: { a: "b" } });
  assert.deepEqual([put.key, put.size], ["short", 7]);
  const got = await call("get", "short");
  assert.deepEqual([bytesOf(got).toString(), got.etag, got.httpMetadata, got.customMetadata], ["grüße", put.etag, { contentType: "text/plain" }, { a: "b" }]);
  assert.equal(bytesOf(await call("get", "short", { range: { offset: 2, length: 2 } })).toString(), "ü");
  const long = "0123456789".repeat(50_000);
  await call("put", "long", long);
  assert.equal(bytesOf(await call("get", "long")).toString(), long);
  assert.equal(bytesOf(await call("get", "long", { range: { offset: 499_995, length: 100 } })).toString(), "56789");
  assert.equal(bytesOf(await call("get", "long", { range: { offset: 600_000 } })).length, 0);
  assert.equal((await call("head", "long")).size, 500_000);
  assert.equal(await call("put", "long", "other", { onlyIf: { etagMatches: "no" } }), null);
  assert.equal((await call("get", "short", { onlyIf: { etagDoesNotMatch: put.etag } })).body, null);
  await call("put", "empty", "");
  assert.equal(bytesOf(await call("get", "empty")).length, 0);
  for (let i = 0; i < 5; i++) await call("put", `d/${i}`, "x");
  const page = await call("list", { limit: 3 });
  assert.deepEqual([page.objects.map((object) => object.key), page.truncated], [["d/0", "d/1", "d/2"], true]);
  assert.deepEqual((await call("list", { cursor: page.cursor })).objects.map((object) => object.key), ["d/3", "d/4", "empty", "long", "short"]);
  assert.deepEqual((await call("list", { delimiter: "/" })).delimitedPrefixes, ["d/"]);
  await call("delete", ["d/0", "d/1"]);
  await call("delete", "short");
  assert.equal(await call("head", "short"), null);
  await assert.rejects(call("put", "", "x"), /a key of R2/);
  await assert.rejects(call("list", { cursor: "%" }), /cursor/);
  assert.equal((await server.stop()).code, 0);
});

test("C calls other workers: methods, entrypoints with props, requests, errors", async (t) => {
  for (const lanes of [1, 2]) {
    const { server, call, fromObject } = await start(t, { lanes });
    assert.deepEqual(await call("BACK", "add", 1, 2), 3);
    assert.deepEqual(await call("NAMED", "who"), { who: "c" });
    await assert.rejects(call("BACK", "fails"));
    await server.until(/called: it fails/);
    assert.deepEqual(await fromObject("service", "BACK", "add", [3, 4]), { value: 7 });
    const ask = (where, url, init = {}) => server.fetch(`/ask/${where}`, { ...init, method: "POST", headers: { "x-url": url, ...init.headers } });
    const told = await ask("BACK", "https://back/echo?a=1", { body: "a body", headers: { "x-method": "PUT" } });
    assert.deepEqual([told.status, told.headers.get("x-type"), await told.json()], [201, "application/json", ["PUT", "https://back/echo?a=1", "a body", "c"]]);
    assert.equal(await (await ask("BACK", "https://back/text", { headers: { "x-method": "GET" } })).text(), "plain");
    assert.equal(await (await ask("BACK", "https://back/stream", { headers: { "x-method": "GET" } })).text(), "\0\0\0");
    const object = await (await ask("object/a", "https://object/x", { body: "to an object" })).json();
    assert.deepEqual([object.url, object.body], ["https://object/x", "to an object"]);
    assert.equal((await ask("NONE", "https://back/")).status, 500);
    await server.until(/there is no service binding "NONE"/);
    assert.equal((await fromObject("ask", "BACK", "https://back/text")).value.status, 200);
    assert.equal((await server.stop()).code, 0);
  }
});

/** A server that answers as the path says. */
async function origin(t) {
  const seen = [];
  const server = http.createServer((request, response) => {
    seen.push(request);
    if (request.url === "/gzip") response.writeHead(200, { "content-encoding": "gzip", "content-type": "text/plain" }).end(zlib.gzipSync("unpacked"));
    else if (request.url === "/moved") response.writeHead(302, { location: "/other" }).end();
    else if (request.url === "/large") response.writeHead(200).end("x".repeat(100_000));
    else if (request.url === "/cut") response.writeHead(200, { "content-length": "100" }).write("half", () => response.destroy());
    else if (request.url === "/never") return;
    else {
      let body = "";
      request.on("data", (chunk) => (body += chunk)).on("end", () => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify([request.method, request.headers["x-from"], body])));
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => { server.closeAllConnections(); server.close(); });
  return { url: `http://127.0.0.1:${server.address().port}`, seen };
}

test("fetch() from C: requests, content codings, redirects, limits, failures", async (t) => {
  const { url, seen } = await origin(t);
  const { server, fromObject } = await start(t, { lanes: 2 });
  const ask = (path, headers = {}, body = undefined) => server.fetch("/ask/world", { method: body === undefined ? "GET" : "POST", body, headers: { "x-url": path.startsWith("http") ? path : url + path, ...headers } });
  assert.deepEqual(await (await ask("/", { "x-method": "PATCH" }, "sent")).json(), ["PATCH", "c", "sent"]);
  assert.deepEqual(await (await ask("/")).json(), ["GET", "c", ""]);
  const packed = await ask("/gzip");
  assert.deepEqual([packed.headers.get("x-type"), await packed.text()], ["text/plain", "unpacked"]);
  assert.equal((await server.fetch("/ask/world", { headers: { "x-url": `${url}/moved` }, redirect: "manual" })).status, 200);
  assert.equal(seen.filter((request) => request.url === "/other").length, 1); // X3
  assert.equal((await (await ask("/large")).text()).length, 100_000);
  for (const [path, headers, sentence] of [
    ["/large", { "x-max": "99999" }, /asked: the body of the response is larger than the request allows/], // X2
    ["/cut", {}, /asked: .*(closed|ended|early|truncated|reset|missing)/i],
    ["/never", { "x-timeout": "200" }, /asked: .*tim/i],
    ["http://127.0.0.1:1/", {}, /asked: .*refused/i],
    ["ftp://example.com/", {}, /asked: .*(ftp|scheme|URL)/i],
    ["http://a b/", {}, /asked: .*URL/i],
  ]) {
    assert.equal((await ask(path, headers)).status, 500, path);
    await server.until(sentence);
  }
  const { value } = await fromObject("ask", "world", `${url}/`); // X1: from an object, behind its gate
  assert.equal(value.status, 200);
  assert.equal((await server.stop()).code, 0);
});

test("fetch() from C reaches no address that the configuration denies, and no loop is endless", async (t) => {
  const { url } = await origin(t);
  const { server } = await start(t, {}, { cairn: { ...settings.cairn, egress: { deny: ["private"] } } });
  assert.equal((await server.fetch("/ask/world", { headers: { "x-url": url } })).status, 500);
  await server.until(/asked: .*(denied|not allowed|may not)/i);
  const { server: open } = await start(t);
  // X4: asks for itself, which asks for itself, ... until it is refused.
  const looped = await open.fetch("/ask/world", { headers: { "x-url": `${open.url}/ask/world`, "cdn-loop": "cairn; loops=16" } });
  assert.equal(looped.status, 500);
  await open.until(/asked for itself 16 times in a row/);
});

test("V1: an object that goes while it asks is told nothing, and what it asked is not sent or not undone", async (t) => {
  const { server, call, fromObject } = await start(t, { lanes: 2 });
  for (let i = 0; i < 30; i++) await fromObject("abort", "KV", "put", [`aborted${i}`, "x"]);
  for (let i = 0; i < 10; i++) await fromObject("abort", "BACK", "add", [1, 2]);
  assert.deepEqual((await call("KV", "list", { prefix: "aborted" })).keys, []); // what was written before was undone, so nothing has left
  const asked = Array.from({ length: 200 }, (_, i) => call("KV", "put", `r${i}`, "x").catch(() => {}));
  for (let i = 0; i < 3; i++) server.signal("SIGHUP");
  await Promise.all(asked);
  assert.equal(await server.text("/hello"), "hello\n");
  assert.equal((await server.stop()).code, 0);
});

test("what C was told is stored is there after kill -9", async (t) => {
  const data = tempDir(), folders = [makeFront(), back()];
  let server = await serve(folders, { lanes: 2, data });
  t.after(() => server.kill());
  const acknowledged = [];
  const clients = Array.from({ length: 8 }, async (_, i) => {
    for (let n = 0; ; n++) {
      const key = `k${i}-${n}`;
      const response = await server.fetch("/service/KV/put", { method: "POST", body: JSON.stringify([key, "x"]) }).catch(() => null);
      if (response?.status !== 200) return;
      acknowledged.push(key);
    }
  });
  await server.untilTrue(() => acknowledged.length > 100, "enough writes");
  server.signal("SIGKILL");
  await server.exited;
  await Promise.all(clients);
  server = await serve(folders, { lanes: 2, data });
  for (const key of acknowledged) assert.equal(await (await server.fetch("/service/KV/get", { method: "POST", body: JSON.stringify([key]) })).json(), "x", key);
});

test("examples/c/links.c: short links, a worker in C with KV", async (t) => {
  const module = compile("examples/c/links.c", path.join(tempDir(), "links.so"));
  const dir = project({
    "wrangler.json": JSON.stringify({ name: "links", compatibility_date: "2026-01-01", kv_namespaces: [{ binding: "LINKS", id: "links" }], cairn: { worker: "links:Links", modules: { links: "links.so" } } }),
    "links.so": readFileSync(module),
  });
  const server = await serve(dir, { lanes: 2 });
  t.after(() => server.kill());
  const ask = async (method, name, body) => {
    const response = await server.fetch(`/${name}`, { method, body, redirect: "manual" });
    return [response.status, response.headers.get("location")];
  };
  assert.deepEqual(await ask("GET", "c"), [404, null]);
  assert.deepEqual(await ask("PUT", "c", "https://example.com/c?a=1"), [201, null]);
  assert.deepEqual(await ask("GET", "c"), [302, "https://example.com/c?a=1"]);
  assert.deepEqual(await ask("PUT", "c", "javascript:alert(1)"), [400, null]);
  assert.deepEqual(await ask("PUT", "c", "https://a.test/\r\nx: y"), [400, null]);
  assert.deepEqual(await ask("DELETE", "c"), [204, null]);
  assert.deepEqual(await ask("GET", "c"), [404, null]);
  assert.deepEqual(await ask("GET", ""), [404, null]);
  assert.equal((await server.stop()).code, 0);
});
