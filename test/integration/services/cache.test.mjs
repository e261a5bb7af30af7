// The Cache API (CA-1..4): what is kept, for how long, what is refused, conditions and ranges, bounds.
import assert from "node:assert/strict";
import http from "node:http";
import test from "node:test";
import { project, serve } from "../lib/server.mjs";

const worker = `
import { cache } from "cloudflare:workers";
const handlers = {
  purge: (_, { options }, ctx) => ctx.cache.purge(options),
  purgeImported: (_, { options }) => cache.purge(options),
  async put(url, { body = "body", size, status = 200, headers = {}, request = {}, name }) {
    const cache = name === undefined ? caches.default : await caches.open(name);
    const content = size === undefined ? body : new Uint8Array(size).map((_, i) => i % 251);
    const nothing = status === 204 || status === 304;
    await cache.put(new Request(url, request), new Response(nothing ? null : content, { status, headers }));
    return "ok";
  },
  async putAndMatch(url, rest) {
    await handlers.put(url, rest);
    return handlers.match(url, {});
  },
  async match(url, { request, name, options }) {
    const cache = name === undefined ? caches.default : await caches.open(name);
    const r = await cache.match(request === undefined ? url : new Request(url, request), options);
    if (r === undefined) return null;
    const bytes = new Uint8Array(await r.arrayBuffer());
    let good = true;
    if (bytes.length > 1000) bytes.forEach((b, i) => { if (b !== i % 251) good = false; });
    return { status: r.status, headers: Object.fromEntries(r.headers), text: bytes.length > 1000 ? bytes.length + " " + good : new TextDecoder().decode(bytes) };
  },
  async delete(url, { request, name, options }) {
    const cache = name === undefined ? caches.default : await caches.open(name);
    return cache.delete(request === undefined ? url : new Request(url, request), options);
  },
  async many(url, { count, size }) {
    for (let i = 0; i < count; i++) await caches.default.put(url + i, new Response(new Uint8Array(size), { headers: { "cache-control": "max-age=60" } }));
    const kept = [];
    for (let i = 0; i < count; i++) if (await caches.default.match(url + i)) kept.push(i);
    return kept;
  },
  async fetch(url, { init }) {
    const r = await fetch(url, init);
    return [r.status, await r.text(), r.headers.get("cf-cache-status")];
  },
  async kinds() {
    return [Object.prototype.toString.call(caches), Object.prototype.toString.call(caches.default), (await caches.open("x")) === (await caches.open("x")), typeof Cache, typeof CacheStorage];
  },
};
export default {
  async fetch(request, env, ctx) {
    const { what, url, ...rest } = await request.json();
    try {
      return Response.json(await handlers[what](url, rest, ctx));
    } catch (error) {
      return new Response(error.name + ": " + error.message, { status: 400 });
    }
  },
};`;

async function start(t, options) {
  const server = await serve(project({ "index.js": worker }), options);
  t.after(() => server.kill());
  server.stay(); // a cache is a node's own
  server.ask = async (what, url, rest = {}) => {
    const response = await server.fetch("/", { method: "POST", body: JSON.stringify({ what, url, ...rest }) });
    const text = await response.text();
    return response.ok ? JSON.parse(text) : text;
  };
  return server;
}
const A = "http://cache.test/a?x=1";
const fresh = { "cache-control": "max-age=60" };

for (const lanes of [1, 2]) {
  test(`CA-1 put, match and delete, named caches, ${lanes} lanes`, async (t) => {
    const server = await start(t, { lanes });
    assert.deepEqual(await server.ask("kinds"), ["[object CacheStorage]", "[object Cache]", true, "function", "function"]);
    assert.equal(await server.ask("match", A), null);
    assert.equal(await server.ask("put", A, { headers: { ...fresh, "x-a": "é" } }), "ok");
    // Whichever lane asks.
    for (let i = 0; i < 6; i++) {
      const found = await server.ask("match", A + "#fragment");
      assert.equal(found.text, "body");
      assert.equal(found.headers["cf-cache-status"], "HIT");
      assert.equal(found.headers["x-a"], "é");
    }
    assert.equal(await server.ask("match", "http://cache.test/a?x=2"), null);
    assert.equal(await server.ask("match", A, { name: "other" }), null);
    await server.ask("put", A, { name: "other", body: "other", headers: fresh });
    assert.equal((await server.ask("match", A, { name: "other" })).text, "other");
    assert.equal((await server.ask("match", A)).text, "body");
    await server.ask("put", A, { body: "replaced", headers: fresh });
    assert.equal((await server.ask("match", A)).text, "replaced");
    assert.equal(await server.ask("delete", A), true);
    assert.equal(await server.ask("delete", A), false);
    assert.equal(await server.ask("match", A), null);
    assert.equal((await server.ask("match", A, { name: "other" })).text, "other");
    await server.ask("put", A, { headers: fresh });
    assert.equal(await server.ask("match", A, { request: { method: "POST" } }), null);
    assert.equal((await server.ask("match", A, { request: { method: "POST" }, options: { ignoreMethod: true } })).text, "body");
    assert.equal(await server.ask("delete", A, { request: { method: "POST" } }), false);
  });
}

test("CA-2 what may be kept, and for how long", async (t) => {
  const server = await start(t);
  const kept = async (headers, status) => {
    const url = `http://cache.test/${Math.random()}`;
    assert.equal(await server.ask("put", url, { headers, status }), "ok");
    return (await server.ask("match", url)) !== null;
  };
  assert.equal(await kept(fresh), true);
  assert.equal(await kept({ "cache-control": "public, s-maxage=10, max-age=0" }), true);
  assert.equal(await kept({ "cache-control": "max-age=0" }), false);
  assert.equal(await kept({ "cache-control": "no-store" }), false);
  assert.equal(await kept({ "cache-control": "private, max-age=60" }), false);
  assert.equal(await kept({ "cache-control": "no-cache" }), false);
  assert.equal(await kept({ "cache-control": "max-age=60", age: "70" }), false);
  assert.equal(await kept({ expires: new Date(Date.now() + 60_000).toUTCString() }), true);
  assert.equal(await kept({ expires: new Date(Date.now() - 60_000).toUTCString() }), false);
  assert.equal(await kept({ expires: "0" }), false);
  assert.equal(await kept({}), true);
  assert.equal(await kept({}, 404), true);
  assert.equal(await kept({}, 500), false);
  assert.equal(await kept(fresh, 500), true);
  assert.equal(await kept(fresh, 204), true);
  assert.equal(await kept({ ...fresh, "set-cookie": "a=b" }), false);
  assert.equal(await kept({ "cache-control": "max-age=60, private=set-cookie", "set-cookie": "a=b" }), true);
  const short = "http://cache.test/short";
  assert.notEqual(await server.ask("putAndMatch", short, { headers: { "cache-control": "max-age=1" } }), null);
  await server.untilTrue(async () => (await server.ask("match", short)) === null, "the end of its time");
});

test("CA-2 what is refused", async (t) => {
  const server = await start(t);
  assert.match(await server.ask("put", A, { request: { method: "POST" } }), /TypeError: Cannot cache response to non-GET request/);
  assert.match(await server.ask("put", A, { status: 206 }), /TypeError: Cannot cache response to a range request \(206 Partial Content\)/);
  assert.match(await server.ask("put", A, { headers: { vary: "accept, *" } }), /TypeError: Cannot cache response with 'Vary: \*' header/);
  assert.match(await server.ask("put", "not a url"), /Invalid URL/);
});

test("CA-2 conditions and ranges", async (t) => {
  const server = await start(t);
  await server.ask("put", A, { body: "0123456789", headers: { ...fresh, etag: '"v1"', "last-modified": "Tue, 01 Jan 2030 00:00:00 GMT" } });
  const match = async (headers) => { const r = await server.ask("match", A, { request: { headers } }); return `${r.status} ${r.text} ${r.headers["content-range"] ?? ""}`.trim(); };
  assert.equal(await match({ "if-none-match": '"v1"' }), "304");
  assert.equal(await match({ "if-none-match": 'W/"v1", "z"' }), "304");
  assert.equal(await match({ "if-none-match": '"v2"' }), "200 0123456789");
  assert.equal(await match({ "if-modified-since": "Tue, 01 Jan 2030 00:00:00 GMT" }), "304");
  assert.equal(await match({ "if-modified-since": "Mon, 31 Dec 2029 00:00:00 GMT" }), "200 0123456789");
  assert.equal(await match({ range: "bytes=2-4" }), "206 234 bytes 2-4/10");
  assert.equal(await match({ range: "bytes=-3" }), "206 789 bytes 7-9/10");
  assert.equal(await match({ range: "bytes=8-" }), "206 89 bytes 8-9/10");
  assert.equal(await match({ range: "bytes=10-" }), "416  bytes */10");
  assert.equal(await match({ range: "nonsense" }), "200 0123456789");
});

test("CA-4 large bodies go to disk; both sides are bounded, the oldest go", async (t) => {
  const server = await start(t);
  for (const size of [256 * 1024, 256 * 1024 + 1, 5_000_000]) {
    await server.ask("put", A, { size, headers: fresh });
    assert.equal((await server.ask("match", A)).text, `${size} true`);
  }
  assert.equal((await server.ask("match", A, { request: { headers: { range: "bytes=251-1254" } } })).text, "1004 true");
  // 400 bodies of 200,000 bytes are more than the 64 MiB that memory holds.
  const kept = await server.ask("many", "http://cache.test/m", { count: 400, size: 200_000 });
  assert.ok(kept.length > 250 && kept.length < 340, `${kept.length} of 400 were kept`);
  assert.equal(kept.at(-1), 399);
  assert.equal(kept[0], 400 - kept.length, "the oldest went first");
});

test("CA-3 fetch() with cf.cacheTtl, cacheEverything, cacheKey, cacheTtlByStatus", async (t) => {
  const server = await start(t);
  let count = 0;
  const origin = http.createServer((request, response) => {
    count++;
    response.writeHead(request.url === "/missing" ? 404 : 200, request.url === "/own" ? { "cache-control": "max-age=60" } : request.url === "/not" ? { "cache-control": "no-store" } : {});
    response.end(`${request.url} ${count}`);
  });
  await new Promise((resolve) => origin.listen(0, "127.0.0.1", resolve));
  t.after(() => origin.close());
  const base = `http://127.0.0.1:${origin.address().port}`;
  const get = (path, cf, init = {}) => server.ask("fetch", base + path, { init: { cf, ...init } });
  /** Asks until the answer has been kept. */
  const kept = async (path, cf) => {
    await server.untilTrue(async () => (await get(path, cf))[2] === "HIT", `${path} in the cache`);
    const before = count;
    const answer = await get(path, cf);
    assert.equal(count, before, "the origin was not asked");
    return answer;
  };
  assert.equal((await get("/plain"))[2], null);
  const plain = count;
  await get("/plain");
  assert.equal(count, plain + 1, "without cf every fetch asks");
  assert.match((await kept("/a", { cacheTtl: 60 }))[1], /^\/a \d+$/);
  assert.match((await kept("/own", { cacheEverything: true }))[1], /^\/own/);
  await kept("/key1", { cacheTtl: 60, cacheKey: "one" });
  assert.match((await get("/key2", { cacheTtl: 60, cacheKey: "one" }))[1], /^\/key1/);
  assert.equal((await kept("/missing", { cacheTtlByStatus: { "200-299": 60, 404: 30 } }))[0], 404);
  const before = count;
  await get("/not", { cacheEverything: true });
  await get("/not", { cacheEverything: true });
  await get("/a", { cacheTtl: 60 }, { cache: "no-store" });
  await get("/a", { cacheTtl: 60 }, { method: "POST" });
  assert.equal(count, before + 4);
});

for (const lanes of [1, 2]) test(`CA-3 cacheTags, Cache-Tag and ctx.cache.purge(); lanes: ${lanes}`, async (t) => {
  const server = await start(t, { lanes });
  const site = "https://example.com";
  const keep = async (path, tag, more) => assert.equal(await server.ask("put", site + path, { headers: { "cache-control": "max-age=600", ...(tag && { "cache-tag": tag }) }, ...more }), "ok");
  /** Which of the paths are kept; asked often enough to meet every lane. */
  const kept = async (...paths) => {
    const answers = await Promise.all(Array.from({ length: 8 }, async () => {
      const found = [];
      for (const path of paths) if ((await server.ask("match", site + path)) !== null) found.push(path);
      return found.join(" ");
    }));
    assert.equal(new Set(answers).size, 1, "all lanes agree");
    return answers[0];
  };
  const purge = async (options, what = "purge") => assert.deepEqual(await server.ask(what, "", { options }), { success: true, errors: [] });
  const all = ["/a", "/a/b", "/ab", "/c", "/d"];
  const fill = async () => {
    await keep("/a", "Red, blue");
    await keep("/a/b", "reddish");
    await keep("/ab");
    await keep("/c", "green");
    await keep("/d", "blue");
    assert.equal(await kept(...all), all.join(" "));
  };
  await fill();
  await keep("/named", "red", { name: "other" });
  await purge({ tags: ["RED", "unknown"] });
  assert.equal(await kept(...all), "/a/b /ab /c /d");
  assert.equal(await server.ask("match", site + "/named", { name: "other" }), null, "also of a named cache");
  await purge({ tags: ["blue", "green"] }, "purgeImported");
  assert.equal(await kept(...all), "/a/b /ab");
  await fill();
  await purge({ pathPrefixes: ["/a"] });
  assert.equal(await kept(...all), "/ab /c /d", "by segments");
  await purge({ pathPrefixes: ["example.com/c", "other.com/d"] });
  assert.equal(await kept(...all), "/ab /d");
  await purge({ tags: ["blue"], pathPrefixes: ["/ab"] });
  assert.equal(await kept(...all), "");
  await fill();
  await purge({ purgeEverything: true });
  assert.equal(await kept(...all), "");
  // what is replaced loses its tags
  await keep("/a", "old");
  await keep("/a", "new");
  await purge({ tags: ["old"] });
  assert.equal(await kept("/a"), "/a");
  // bounds: what does not fit into 16 KiB is left out
  await keep("/a", `${Array.from({ length: 2000 }, (_, i) => `tag-number-${i}`).join(",")}`);
  await purge({ tags: ["tag-number-1999"] });
  assert.equal(await kept("/a"), "/a");
  await purge({ tags: ["tag-number-3"] });
  assert.equal(await kept("/a"), "");
  // refusals
  for (const options of [{}, { tags: [] }, { purgeEverything: false }, { tags: Array(1001).fill("t") }, { pathPrefixes: [""] }]) {
    const answer = await server.ask("purge", "", { options });
    assert.equal(answer.success, false);
    assert.equal(answer.errors.length, 1);
  }
  assert.match(await server.ask("purge", "", { options: { tags: "red" } }), /^TypeError: .*must be an array/);
  assert.match(await server.ask("purge", "", {}), /^TypeError/);
});

test("CA-3 cf.cacheTags of a fetch()", async (t) => {
  const server = await start(t);
  let count = 0;
  const origin = http.createServer((request, response) => response.writeHead(200, { "cache-tag": "from-origin" }).end(String(++count)));
  await new Promise((resolve) => origin.listen(0, "127.0.0.1", resolve));
  t.after(() => origin.close());
  const url = `http://127.0.0.1:${origin.address().port}/x/y`;
  const get = () => server.ask("fetch", url, { init: { cf: { cacheTtl: 60, cacheTags: ["Mine", "yours"], cacheKey: "k" } } });
  const fill = () => server.untilTrue(async () => (await get())[2] === "HIT", "the answer in the cache");
  for (const options of [{ tags: ["mine"] }, { tags: ["from-origin"] }, { pathPrefixes: ["/x"] }]) {
    await fill();
    const before = count;
    await server.ask("purge", "", { options: { tags: ["no"] } });
    await get();
    assert.equal(count, before);
    await server.ask("purge", "", { options });
    await get();
    assert.equal(count, before + 1, JSON.stringify(options));
  }
  assert.match(await server.ask("fetch", url, { init: { cf: { cacheTtl: 60, cacheTags: "mine" } } }), /^TypeError: cf.cacheTags/);
});
