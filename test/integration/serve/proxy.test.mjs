// A worker between a client and an origin: bodies that pass through, content codings, uploads,
// answers that nobody reads, clients that go away.
import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { after, before, test } from "node:test";
import zlib from "node:zlib";
import { startServer } from "../../conformance/server.mjs";
import { project, raw as rawRequest, serve } from "../lib/server.mjs";

let server;
let origin;
before(async () => {
  origin = await startServer();
  server = await serve(project({
    "wrangler.toml": `name = "proxy"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[vars]\nORIGIN = "${origin.url}"\n`,
    "index.js": `
let waiting = 0;
let aborted = 0;
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const target = env.ORIGIN + (url.searchParams.get("to") ?? "");
    switch (url.pathname) {
      case "/pass": return fetch(target);
      case "/wrap": { const r = await fetch(target); return new Response(r.body, r); }
      case "/plain": { const r = await fetch(target); const h = new Headers(r.headers); h.delete("content-encoding"); return new Response(r.body, { headers: h }); }
      case "/upper": { const r = await fetch(target); return new Response((await r.text()).toUpperCase(), r); }
      case "/coded": return new Response("text ".repeat(100), { headers: { "content-encoding": url.searchParams.get("coding") } });
      case "/manual": return new Response("as it is", { headers: { "content-encoding": "gzip" }, encodeBody: "manual" });
      case "/header": {
        const r = await fetch(url.searchParams.get("raw"), { headers: { "x-in": request.headers.get("x-in") } });
        return new Response([...r.headers.get("x-out") + r.statusText].map((c) => c.charCodeAt(0)).join(), { headers: { "x-out": r.headers.get("x-out") } });
      }
      case "/upload": return fetch(target, { method: "POST", body: request.body });
      case "/unread": { for (let i = 0; i < 200; i++) await fetch(target); return new Response("all sent"); }
      case "/wait": {
        waiting++;
        request.signal.addEventListener("abort", () => aborted++);
        await scheduler.wait(20000, { signal: request.signal }).catch(() => {});
        return new Response("late");
      }
      case "/aborted": return Response.json({ waiting, aborted });
    }
    return new Response("?", { status: 404 });
  },
};`,
  }), { lanes: 1 });
});
after(() => {
  origin.close();
  return server.stop();
});

/** The answer as it came over the wire: { status, headers, body }. */
function get(path, options = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request(server.url + path, options, async (response) => {
      const parts = [];
      try {
        for await (const part of response) parts.push(part);
      } catch (error) {
        return reject(error);
      }
      return resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) });
    });
    request.on("error", reject);
    request.end(options.body);
  });
}
const to = (path) => `to=${encodeURIComponent(path)}`;
const text = "coded text ".repeat(100);

for (const way of ["pass", "wrap"]) {
  test(`a coded answer goes on as it came (${way})`, async () => {
    const { headers, body } = await get(`/${way}?${to("/coded?coding=gzip")}`);
    assert.equal(headers["content-encoding"], "gzip");
    assert.equal(zlib.gunzipSync(body).toString(), text);
  });
}

test("without its header a coded answer is decoded", async () => {
  const { headers, body } = await get(`/plain?${to("/coded?coding=br")}`);
  assert.equal(headers["content-encoding"], undefined);
  assert.equal(body.toString(), text);
});

test("a changed body is coded again", async () => {
  const { headers, body } = await get(`/upper?${to("/coded?coding=gzip")}`);
  assert.equal(headers["content-encoding"], "gzip");
  assert.equal(zlib.gunzipSync(body).toString(), text.toUpperCase());
});

test("content-encoding makes the server code the body, unless encodeBody is manual", async () => {
  assert.equal(zlib.gunzipSync((await get("/coded?coding=gzip")).body).toString(), "text ".repeat(100));
  assert.equal(zlib.brotliDecompressSync((await get("/coded?coding=br")).body).toString(), "text ".repeat(100));
  assert.equal((await get("/manual")).body.toString(), "as it is");
});

test("F5: bytes of a head that are no ASCII pass as they are, both ways", async () => {
  let asked = "";
  const raw = net.createServer((socket) => socket.setEncoding("latin1").on("data", (text) => {
    asked += text;
    if (asked.includes("\r\n\r\n")) socket.end(Buffer.from("HTTP/1.1 200 caf\xe9\r\nx-out: \xfcb\xc3\xa9r\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", "latin1"));
  }));
  await new Promise((resolve) => raw.listen(0, "127.0.0.1", resolve));
  const answer = await rawRequest(server.port, Buffer.from(`GET /header?raw=${encodeURIComponent(`http://127.0.0.1:${raw.address().port}/`)} HTTP/1.1\r\nhost: x\r\nx-in: na\xefve\r\nconnection: close\r\n\r\n`, "latin1"));
  raw.close();
  assert.match(asked, /^x-in: na\xefve\r$/m);
  assert.match(answer, /^x-out: \xfcb\xc3\xa9r\r$/m);
  assert.ok(answer.endsWith([..."\xfcb\xc3\xa9rcaf\xe9"].map((c) => c.charCodeAt(0)).join()), answer);
});
test("20 MB pass through", async () => {
  const { body } = await get(`/pass?${to("/chunks?n=320&size=65536&ms=0")}`);
  assert.equal(body.length, 320 * 65536);
});

test("an upload passes through", async () => {
  const data = Buffer.alloc(3_000_001, "upload");
  const { status, body } = await get(`/upload?${to("/mirror")}`, { method: "POST", body: data });
  assert.equal(status, 200);
  assert.ok(body.equals(data));
});

test("short answers that nobody reads hold no connections", async () => {
  const { body } = await get(`/unread?${to("/status?status=200&text=x")}`);
  assert.equal(body.toString(), "all sent");
});

test("an origin that cannot be reached is an exception of the worker", async () => {
  const { status } = await get("/pass?to=:1");
  assert.equal(status, 500);
});

test("a client that goes away aborts the request's signal", async () => {
  const request = http.get(`${server.url}/wait`);
  request.on("error", () => {});
  const until = async (name) => {
    for (let i = 0; JSON.parse((await get("/aborted")).body)[name] === 0; i++) {
      assert.ok(i < 500, `${name} is still 0`);
      await new Promise((r) => setTimeout(r, 10));
    }
  };
  await until("waiting");
  request.destroy();
  await until("aborted");
});
