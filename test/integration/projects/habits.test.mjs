// What people are used to from wrangler: how packages resolve, where errors point, what ends by itself.
import assert from "node:assert/strict";
import test from "node:test";
import { project, run, serve } from "../lib/cairn.mjs";
import { without } from "../lib/engine.mjs";

const config = `name = "w"\nmain = "src/index.js"\ncompatibility_date = "2026-01-01"\ncompatibility_flags = ["nodejs_compat"]\n`;

test("debug is what Node.js loads; packages that bring a fetch() get the runtime's", async (t) => {
  const dir = project(t, {
    "wrangler.toml": config,
    "src/index.js": `
import debug from "debug";
import fetch, { Headers as H, isRedirect } from "node-fetch";
import cross from "cross-fetch";
import inherits from "inherits";
const required = require("node-fetch");
export default { async fetch() {
  function A() {} function B() {} inherits(A, B);
  return Response.json([debug(), await (await fetch("data:,one")).text(), await (await cross("data:,two")).text(), H === Headers, isRedirect(302),
    await (await required("data:,three")).text(), new A() instanceof B]);
} };`,
    "node_modules/debug/package.json": `{ "name": "debug", "main": "./node.js", "browser": "./browser.js" }`,
    "node_modules/debug/node.js": `module.exports = () => "for Node.js";`,
    "node_modules/debug/browser.js": `module.exports = () => "for browsers";`,
    "node_modules/node-fetch/package.json": `{ "name": "node-fetch", "main": "./index.js" }`,
    "node_modules/node-fetch/index.js": `throw new Error("not this one");`,
  });
  const server = await serve(t, dir);
  assert.deepEqual(await (await server.fetch("/")).json(), ["for Node.js", "one", "two", true, true, "three", true]);
});

test("an error of D1 names the project's own line", { skip: without("stacks") }, async (t) => {
  const dir = project(t, {
    "wrangler.toml": config + `[[d1_databases]]\nbinding = "DB"\ndatabase_name = "d"\n`,
    "src/index.js": `
const calls = {
  async all(db) { await db.prepare("select * from nope").all(); },
  async batch(db) { await db.batch([db.prepare("select 1"), db.prepare("nope")]); },
  async exec(db) { await db.exec("nope"); },
};
export default { async fetch(request, env) {
  const f = new URL(request.url).pathname.slice(1);
  try { await calls[f](env.DB); } catch (e) { return Response.json([e.message.split(":")[0], e.stack]); }
} };`,
  });
  const server = await serve(t, dir);
  for (const [name, line] of [["all", 3], ["batch", 4], ["exec", 5]]) {
    const [kind, stack] = await (await server.fetch("/" + name)).json();
    assert.match(kind, /^D1_(EXEC_)?ERROR$/);
    assert.match(stack, new RegExp(`^Error: D1_.*\\n    at ${name} \\(src/index\\.js:${line}:\\d+\\)`));
    assert.doesNotMatch(stack, /cairn:prelude/);
  }
});

test("F6: a worker that asks for itself again and again ends with an error", async (t) => {
  const dir = project(t, {
    "wrangler.toml": config,
    "src/index.js": `
let count = 0;
export default { async fetch(request) {
  const url = new URL(request.url);
  if (url.pathname === "/count") return Response.json(count);
  count++;
  if (url.pathname === "/once" && !url.search) return fetch(url + "?again");
  if (url.pathname === "/pass") return fetch(request);
  if (url.pathname === "/loop") { try { return await fetch(request.url); } catch (e) { return new Response(e.message); } }
  return new Response("done " + request.headers.get("cdn-loop"));
} };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1"] });
  assert.equal(await (await server.fetch("/once")).text(), "done cairn; loops=1");
  assert.equal(await (await server.fetch("/other")).text(), "done null");
  assert.match(await (await server.fetch("/loop")).text(), /asked for itself 16 times in a row: it is in a loop/);
  assert.equal(await (await server.fetch("/count")).json(), 2 + 1 + 17);
  assert.equal((await server.fetch("/pass")).status, 500);
  assert.equal(await (await server.fetch("/count")).json(), 20 + 17);
});

test("scheduled() by hand, in development alone, at both of wrangler's addresses", async (t) => {
  const dir = project(t, {
    "wrangler.toml": config + `[triggers]\ncrons = ["0 0 1 1 *"]\n`,
    "src/index.js": `let last = null; export default { fetch: (request) => Response.json([new URL(request.url).pathname, last]), scheduled(event) { last = event.cron; } };`,
  });
  const developed = await serve(t, dir, { command: "dev", args: ["--test-scheduled"] });
  assert.equal(await developed.text("/__scheduled?cron=1+*+*+*+*"), "Ran scheduled event");
  assert.deepEqual(await (await developed.fetch("/x")).json(), ["/x", "1 * * * *"]);
  assert.equal((await developed.fetch("/cdn-cgi/handler/scheduled?cron=2+*+*+*+*")).status, 200);
  assert.deepEqual(await (await developed.fetch("/__scheduledx")).json(), ["/__scheduledx", "2 * * * *"]);
  await developed.kill();
  const served = await serve(t, dir);
  assert.deepEqual(await (await served.fetch("/__scheduled?cron=1+*+*+*+*")).json(), ["/__scheduled", null]);
});

test("C3: workers and objects that call one another without end come to an error", async (t) => {
  const dir = project(t, {
    "wrangler.toml": config + `services = [{ binding = "SELF", service = "w" }, { binding = "NAMED", service = "w", entrypoint = "Named" }]
[[durable_objects.bindings]]
name = "OBJ"
class_name = "Obj"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Obj"]
`,
    "src/index.js": `
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
const deeper = async (n, call) => { try { return await call(n + 1); } catch (e) { return [n, e.message]; } };
export class Named extends WorkerEntrypoint { go(n) { return deeper(n, (n) => this.env.NAMED.go(n)); } }
export class Obj extends DurableObject {
  go(n) { return deeper(n, (n) => this.env.OBJ.getByName("o" + n).go(n)); }
  async later(n) { await scheduler.wait(1); return deeper(n, (n) => this.env.OBJ.getByName("o" + n).later(n)); }
  async fetch(request) { return this.env.SELF.fetch(request.url.replace("/both", "/mixed")); }
  one() { return 1; }
}
export default { async fetch(request, env) {
  const url = new URL(request.url), n = Number(url.searchParams.get("n") ?? 0);
  const again = (path) => new URL(path + "?n=" + (n + 1), url);
  switch (url.pathname) {
    case "/fetch": return Response.json(await deeper(n, async () => (await env.SELF.fetch(again("/fetch"))).json()));
    case "/rpc": return Response.json(await env.NAMED.go(1));
    case "/object": return Response.json(await env.OBJ.getByName("x").go(1));
    case "/later": return Response.json(await env.OBJ.getByName("x").later(1));
    case "/mixed": return Response.json(await deeper(n, async () => (await env.OBJ.getByName("m" + n).fetch(again("/both"))).json()));
    case "/wide": { let sum = 0; for (let i = 0; i < 100; i++) sum += await env.OBJ.getByName("w").one(); return Response.json(sum); }
  }
} };`,
  });
  for (const lanes of ["1", "2"]) {
    const server = await serve(t, dir, { args: ["--lanes", lanes] });
    const ask = async (target) => (await server.fetch(target)).json();
    for (const target of ["/fetch", "/rpc", "/object", "/later"]) {
      const [depth, message] = await ask(target);
      assert.equal(depth, 32, target);
      assert.match(message, /^Subrequest depth limit exceeded/);
    }
    assert.match((await ask("/mixed"))[1], /^Subrequest depth limit exceeded/);
    assert.equal(await ask("/wide"), 100);
    await server.stop();
  }
});

test("a regular expression is the engine's to judge, and what it says has no place of the server's own files", async (t) => {
  const dir = project(t, { "wrangler.toml": config, "src/index.js": "const wrong = /(?<a/;\nexport default { async fetch() { return new Response(String(wrong)); } };" });
  assert.equal(run(["build", dir]).status, 0);
  const { status, stdout, stderr } = run(["serve", dir, "--listen", "127.0.0.1:0", "--admin", "off"]);
  assert.equal(status, 1);
  assert.match(stderr, /worker w failed to start: SyntaxError: Invalid regular expression: invalid group specifier name/);
  assert.doesNotMatch(stdout + stderr, /bundler|turns\.mjs|node_modules/);
});
