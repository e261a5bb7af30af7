// What a script knows of its client (A1 of src/bindings/http.c), and transactionSync() with an async callback.
import assert from "node:assert/strict";
import { test } from "node:test";
import { project, serve, tempDir } from "../lib/server.mjs";
import { objects } from "../lib/toml.mjs";

const worker = `import { DurableObject } from "cloudflare:workers";
export class Store extends DurableObject {
  async run() {
    const result = this.ctx.storage.transactionSync(async () => {
      this.ctx.storage.sql.exec("CREATE TABLE t (a)");
      this.ctx.storage.sql.exec('INSERT INTO t VALUES ("text")');
      await undefined;
      return "later";
    });
    return [result instanceof Promise, await result, this.ctx.storage.sql.exec("SELECT a FROM t").one().a];
  }
}
let late = null;
export default {
  async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    if (pathname === "/late") {
      // Headers that are first looked at when the answer has left, and the client with it.
      late = null;
      ctx.waitUntil(scheduler.wait(Number(request.headers.get("x-wait"))).then(() => { late = [request.headers.get("cf-connecting-ip"), Object.fromEntries(request.headers)["cf-connecting-ip"], request.url.slice(-5), request.cf.httpProtocol]; }));
      return Response.json(null);
    }
    if (pathname === "/seen") return Response.json(late);
    if (pathname === "/sql") return Response.json(await env.STORE.getByName("a").run());
    const all = Object.fromEntries(request.headers);
    return Response.json([request.headers.get("cf-connecting-ip"), request.headers.has("CF-Connecting-IP"), all["cf-connecting-ip"], request.cf.colo, request.cf.httpProtocol]);
  },
};`;
const config = (more) => `name = "address"
main = "index.js"
compatibility_date = "2026-08-22"
${objects({ STORE: "Store" })}
${more}`;

async function start(t, more = "") {
  const server = await serve(project({ "wrangler.toml": config(more), "index.js": worker }), { data: tempDir() });
  t.after(() => server.stop());
  return async (headers = {}, path = "/") => (await server.fetch(path, { headers })).json();
}

test("A1: CF-Connecting-IP is the socket's address, whatever the client says", async (t) => {
  const ask = await start(t);
  const seen = await ask({ "CF-Connecting-IP": "1.2.3.4", "X-Forwarded-For": "5.6.7.8" });
  assert.deepEqual(seen, ["127.0.0.1", true, "127.0.0.1", "LOCAL", "HTTP/1.1"]);
});

test("A1: it is there as long as the request is, also when the answer and the client have gone (C6 of src/net/http_conn.c)", async (t) => {
  for (const [more, headers, address] of [["", {}, "127.0.0.1"], ['[cairn]\ntrusted_proxies = ["127.0.0.0/8"]\n', { "X-Forwarded-For": "9.9.9.9" }, "9.9.9.9"]]) {
    const ask = await start(t, more);
    for (const connection of ["keep-alive", "close"]) {
      await ask({ ...headers, "x-wait": "100", connection }, "/late");
      let seen = null;
      for (const until = Date.now() + 30_000; seen === null && Date.now() < until; ) seen = await ask({}, "/seen");
      assert.deepEqual(seen, [address, address, "/late", "HTTP/1.1"]);
    }
  }
});

test("A1: behind a trusted proxy it is the last address that is none of them", async (t) => {
  const ask = await start(t, '[cairn]\ntrusted_proxies = ["127.0.0.0/8", "10.0.0.0/8"]\n');
  const of = async (headers) => (await ask({ "CF-Connecting-IP": "1.2.3.4", ...headers })).slice(0, 3);
  for (const [list, address] of [
    ["9.9.9.9", "9.9.9.9"], ["1.1.1.1, 9.9.9.9, 10.0.0.7", "9.9.9.9"], ["2001:db8::1 ,10.1.1.1", "2001:db8::1"],
    ["10.0.0.1", "10.0.0.1"], ["8.8.8.8, nonsense", "127.0.0.1"], ["", "127.0.0.1"],
  ]) assert.deepEqual(await of({ "X-Forwarded-For": list }), [address, true, address], list);
});

test("DO-TX-3: what an async callback of transactionSync() does at once is in the transaction; its promise is the result", async (t) => {
  const ask = await start(t);
  assert.deepEqual(await ask({}, "/sql"), [true, "later", "text"]);
});
