// The fetch handler: what it receives, what it may answer, what happens when it fails.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { project, serve, raw } from "../lib/server.mjs";

let server;
before(async () => {
  server = await serve(project({
    "wrangler.toml": `name = "handlers"
main = "index.js"
compatibility_date = "2026-01-01"
[vars]
GREETING = "hello"
LIMITS = { a = 1, b = [1, 2] }
[limits]
cpu_ms = 200
`,
    ".dev.vars": 'SECRET = "s3cret"\n',
    "index.js": `
import { env as importedEnv } from "cloudflare:workers";
let background = 0;
export default {
  async fetch(request, env, ctx) {
    const url = new URL(request.url);
    switch (url.pathname) {
      case "/echo": return new Response(request.body, { headers: { "x-method": request.method, "content-type": request.headers.get("content-type") ?? "" } });
      case "/text": return new Response((await request.text()).toUpperCase());
      case "/json": return Response.json({ got: await request.json() });
      case "/form": { const f = await request.formData(); return Response.json([...f].map(([k, v]) => [k, typeof v === "string" ? v : v.name + ":" + v.size])); }
      case "/env": return Response.json({ greeting: env.GREETING, limits: env.LIMITS, secret: env.SECRET, imported: importedEnv.GREETING });
      case "/throw": throw new RangeError("deliberate " + url.search);
      case "/reject": await null; throw new Error("later");
      case "/nothing": return undefined;
      case "/spin": for (;;);
      case "/spin-async": await null; for (;;);
      case "/wait": ctx.waitUntil(new Promise((r) => setTimeout(() => { background++; r(); }, 20))); return new Response("now");
      case "/background": return new Response(String(background));
      case "/reason": return new Response("x", { status: 200, statusText: "Gr\u00fc\u00dfe, all is well" });
      case "/reason-stream": return new Response(new ReadableStream({ start(c) { c.close(); } }), { status: 299, statusText: "Nearly" });
      case "/status": return new Response(null, { status: Number(url.searchParams.get("s")) });
      case "/redirect": return Response.redirect("https://example.com/there", 307);
      case "/cookies": { const h = new Headers(); h.append("set-cookie", "a=1"); h.append("set-cookie", "b=2"); return new Response("x", { headers: h }); }
      case "/stream": return new Response(new ReadableStream({ async start(c) { for (const part of ["a", "b", "c"]) { await new Promise((r) => setTimeout(r, 1)); c.enqueue(new TextEncoder().encode(part)); } c.close(); } }));
      case "/stream-breaks": return new Response(new ReadableStream({ async pull(c) { c.enqueue(new Uint8Array(10)); await null; throw new Error("mid-body"); } }));
      case "/unhandled": Promise.reject(new Error("nobody caught this")); return new Response("ok");
      case "/cf": return Response.json({ ip: request.headers.get("cf-connecting-ip"), cf: typeof request.cf });
      case "/slow": await new Promise((r) => setTimeout(r, Number(url.searchParams.get("ms")))); return new Response("slow");
    }
    return new Response("not found", { status: 404 });
  },
};`,
  }));
});
after(() => server.stop());

const get = (target, init) => server.fetch(target, init);
const rawGet = (target) => raw(server.port, `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);

test("statusText is the reason on the status line", async () => {
  assert.match(await rawGet("/reason"), /^HTTP\/1\.1 200 Gr\xfc\xdfe, all is well\r\n/);
  assert.match(await rawGet("/reason-stream"), /^HTTP\/1\.1 299 Nearly\r\n/);
  assert.match(await rawGet("/text"), /^HTTP\/1\.1 200 OK\r\n/);
});

test("bodies go through untouched, as text, as JSON, as a form", async () => {
  const echo = await get("/echo", { method: "PUT", body: "abc", headers: { "content-type": "text/x" } });
  assert.equal(await echo.text(), "abc");
  assert.equal(echo.headers.get("x-method"), "PUT");
  assert.equal(echo.headers.get("content-type"), "text/x");
  assert.equal(await (await get("/text", { method: "POST", body: "h\u00e9llo" })).text(), "H\u00c9LLO");
  assert.deepEqual(await (await get("/json", { method: "POST", body: '{"a":[1,null]}' })).json(), { got: { a: [1, null] } });
  const form = new FormData();
  form.set("k", "v");
  form.set("f", new Blob(["12345"]), "x.txt");
  assert.deepEqual(await (await get("/form", { method: "POST", body: form })).json(), [["k", "v"], ["f", "x.txt:5"]]);
});

test("a large body comes back whole, gathered and streamed", async () => {
  const big = "0123456789".repeat(300_000);
  assert.equal(await (await get("/echo", { method: "POST", body: big })).text(), big);
  assert.equal((await (await get("/text", { method: "POST", body: big })).text()).length, big.length);
});

test("WK-10: variables and secrets are in env, and in cloudflare:workers", async () => {
  assert.deepEqual(await (await get("/env")).json(), { greeting: "hello", limits: { a: 1, b: [1, 2] }, secret: "s3cret", imported: "hello" });
});

test("a handler that throws answers 500 with a reference; the log has the stack in the user's file", async () => {
  const response = await get("/throw?x=1");
  assert.equal(response.status, 500);
  const reference = /reference ([0-9a-f]{16})/.exec(await response.text())[1];
  const match = await server.until(new RegExp(`request=${reference} RangeError: deliberate \\?x=1[^]*?index\\.js:\\d+`));
  assert.ok(match);
  assert.equal((await get("/reject")).status, 500);
  await server.until(/Error: later/);
});

test("an answer that is not a Response is an error", async () => {
  assert.equal((await get("/nothing")).status, 500);
  await server.until(/did not resolve to 'Response'/);
});

test("the CPU limit ends the event and not the server", async () => {
  for (const target of ["/spin", "/spin-async"]) {
    const response = await get(target);
    assert.equal(response.status, 503);
    assert.equal(await (await get("/status?s=200")).text(), "");
  }
  await server.until(/more than its CPU limit of 200 ms/);
});

test("WK-2: waitUntil goes on after the response", async () => {
  assert.equal(await (await get("/wait")).text(), "now");
  let seen = "0";
  while (seen === "0") seen = await (await get("/background")).text();
  assert.equal(seen, "1");
});

test("statuses without a body, redirects, several cookies", async () => {
  for (const status of [204, 304, 418, 599]) assert.equal((await get(`/status?s=${status}`)).status, status);
  const redirect = await get("/redirect", { redirect: "manual" });
  assert.equal(redirect.status, 307);
  assert.equal(redirect.headers.get("location"), "https://example.com/there");
  const cookies = await raw(server.port, "GET /cookies HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  assert.deepEqual(cookies.match(/^set-cookie: .*$/gim), ["set-cookie: a=1", "set-cookie: b=2"]);
});

test("streamed bodies arrive in order; one that breaks is cut, not ended", async () => {
  assert.equal(await (await get("/stream")).text(), "abc");
  await assert.rejects(async () => (await get("/stream-breaks")).arrayBuffer());
  await server.until(/mid-body/);
});

test("HEAD has the headers of GET and no body", async () => {
  const answer = await raw(server.port, "HEAD /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  assert.match(answer, /^HTTP\/1\.1 200 /);
  assert.equal(answer.split("\r\n\r\n")[1], "");
});

test("unhandled rejections are logged", async () => {
  assert.equal(await (await get("/unhandled")).text(), "ok");
  await server.until(/nobody caught this/);
});

test("many requests at once are each answered with their own", async () => {
  const bodies = Array.from({ length: 200 }, (_, i) => `body ${i}`);
  const answers = await Promise.all(bodies.map(async (body) => (await get("/text", { method: "POST", body })).text()));
  assert.deepEqual(answers, bodies.map((b) => b.toUpperCase()));
});

test("D1: scripts have UTC, whatever the machine's time zone is, in every entry", async (t) => {
  const elsewhere = await serve(project({
    "wrangler.toml": 'name = "zone"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n',
    "index.js": `
const seen = new Date(2024, 6, 1, 12); // kept by the engine from one entry to the next
export default {
  async fetch() {
    await null;
    const now = new Date();
    return Response.json([seen.toISOString(), String(seen), now.getTimezoneOffset(), now.getHours() === now.getUTCHours(), Intl.DateTimeFormat().resolvedOptions().timeZone, new Date("2024-03-10 02:30").toISOString()]);
  },
};
`,
  }), { env: { TZ: "America/New_York" } });
  t.after(() => elsewhere.stop());
  for (let n = 0; n < 3; n++) {
    assert.deepEqual(await (await elsewhere.fetch("/")).json(), ["2024-07-01T12:00:00.000Z", "Mon Jul 01 2024 12:00:00 GMT+0000 (Coordinated Universal Time)", 0, true, "UTC", "2024-03-10T02:30:00.000Z"]);
  }
});
