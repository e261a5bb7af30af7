// Start, reload, drain, stop; several projects on one server.
import assert from "node:assert/strict";
import { writeFileSync, existsSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { Connection, project, serve, tempDir } from "../lib/server.mjs";

const worker = (text) => `export default { async fetch(request) {
  const ms = Number(new URL(request.url).searchParams.get("ms") ?? 0);
  if (ms) console.log("begun");
  if (ms) await new Promise((r) => setTimeout(r, ms));
  return new Response(${JSON.stringify(text)});
} };`;

test("SIGHUP reloads without dropping a connection; a request under way finishes on the old code", async () => {
  const dir = project({ "index.js": worker("one") });
  const server = await serve(dir);
  const connection = new Connection(server.port);
  assert.equal((await connection.get("/")).text, "one");
  const slow = server.fetch("/?ms=1500").then((r) => r.text());
  await server.until(/begun/);
  writeFileSync(path.join(dir, "index.js"), worker("two"));
  server.signal("SIGHUP");
  await server.until(/reloaded/);
  const after = await connection.get("/");
  assert.equal(after.text, "two");
  assert.equal(after.reused, true);
  assert.equal(await slow, "one");
  connection.close();
  await server.stop();
});

test("a version that does not build or start leaves the last good one serving", async () => {
  const dir = project({ "index.js": worker("good") });
  const server = await serve(dir);
  writeFileSync(path.join(dir, "index.js"), "export default { fetch( { }");
  server.signal("SIGHUP");
  await server.until(/last good version keeps serving/);
  assert.equal(await (await server.fetch("/")).text(), "good");
  server.output = "";
  writeFileSync(path.join(dir, "index.js"), 'throw new Error("at start"); export default {};');
  server.signal("SIGHUP");
  await server.until(/at start/);
  assert.equal(await (await server.fetch("/")).text(), "good");
  await server.stop();
});

test("SIGTERM lets requests under way finish, then ends with 0", async () => {
  const server = await serve(project({ "index.js": worker("done") }));
  const slow = server.fetch("/?ms=400").then((r) => r.text());
  await server.until(/begun/);
  const exit = server.stop();
  assert.equal(await slow, "done");
  assert.deepEqual(await exit, { code: 0, signal: null });
  assert.equal(existsSync(`/proc/${server.pid}`), false);
});

test("V3: signals that come while it ends do not kill it", async () => {
  const server = await serve(project({ "wrangler.toml": 'name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\nkv_namespaces = [{ binding = "KV", id = "kv" }]\n', "index.js": 'export default { async fetch(request, env) { await env.KV.put("a", "b"); return new Response("ok"); } };' }), { data: tempDir() });
  assert.equal(await server.text("/"), "ok");
  const names = ["SIGTERM", "SIGINT", "SIGHUP"];
  for (let i = 0; !server.exit; i++) {
    server.signal(i === 0 ? "SIGTERM" : names[i % 3]);
    await new Promise(setImmediate);
  }
  assert.deepEqual(server.exit, { code: 0, signal: null }, server.output);
});

test("a second signal does not wait", async () => {
  const server = await serve(project({ "index.js": worker("never") }));
  const slow = server.fetch("/?ms=60000").then(() => "answered", () => "cut");
  await server.until(/begun/);
  server.signal("SIGTERM");
  await server.until(/finishing the requests/);
  server.signal("SIGTERM");
  assert.equal((await server.exited).code, 0);
  assert.equal(await slow, "cut");
});

test("several projects on one server are picked by host and path", async () => {
  const config = (name, routes) => `name = "${name}"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\nroutes = ${JSON.stringify(routes)}\n`;
  const a = project({ "wrangler.toml": config("a", ["a.test/*", "shared.test/a/*"]), "index.js": worker("a") });
  const b = project({ "wrangler.toml": config("b", ["*.b.test/*", "shared.test/*"]), "index.js": worker("b") });
  const server = await serve([a, b]);
  const connection = new Connection(server.port);
  const at = async (host, target) => connection.get(target, { headers: { host } });
  assert.equal((await at("a.test", "/x")).text, "a");
  assert.equal((await at("deep.b.test", "/x")).text, "b");
  assert.equal((await at("shared.test", "/a/x")).text, "a");
  assert.equal((await at("shared.test", "/b")).text, "b");
  assert.equal((await at("nobody.test", "/")).status, 404);
  connection.close();
  await server.stop();
});

test("two lanes share the port and serve alike", async () => {
  const server = await serve(project({ "index.js": worker("both") }), { lanes: 2 });
  const connections = Array.from({ length: 20 }, () => new Connection(server.port));
  for (let round = 0; round < 5; round++) {
    const answers = await Promise.all(connections.map((c) => c.get("/")));
    for (const answer of answers) assert.equal(answer.text, "both");
  }
  for (const c of connections) c.close();
  await server.stop();
});

test("a script that awaits at its top level is ready when it is", async () => {
  const server = await serve(project({
    "index.js": 'const value = await crypto.subtle.digest("SHA-256", new Uint8Array(1 << 20)).then(() => "waited");\nexport default { fetch: () => new Response(value) };',
  }));
  assert.equal(await (await server.fetch("/")).text(), "waited");
  await server.stop();
});
