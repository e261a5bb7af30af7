// What cairn.h forbids is refused with a code, and told in the log by the name of the module: wrong threads, handles that are gone or
// none, other objects, two answers; and a function that does not return is noticed. The class is test/module/misuse.c.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { compile, configuration } from "../lib/module.mjs";
import { project, serve, tempDir } from "../lib/server.mjs";

const module = compile("test/module/misuse.c", path.join(tempDir(), "misuse.so"), ["-pthread"]);
const script = `export default { async fetch(request, env) {
  const [, name, method] = new URL(request.url).pathname.split("/");
  return Response.json((await env.OBJECT.getByName(name)[method]()) ?? null);
} };`;

async function start(t, options = {}) {
  const server = await serve(project({ "wrangler.json": configuration("misuse:Misuse"), "index.js": script, "misuse.so": readFileSync(module) }), { data: tempDir(), ...options });
  t.after(() => server.kill());
  server.ask = async (name, method) => (await server.fetch(`/${name}/${method}`)).json();
  return server;
}
const EMISUSE = -6, ERROR = -1;

test("G1: calls from another thread are refused, and the object is as it was", async (t) => {
  const server = await start(t);
  assert.deepEqual(await server.ask("a", "wrongThread"), [EMISUSE, 0, EMISUSE, ERROR, EMISUSE, 0, 1, 0]);
  await server.until(/module "misuse": kv_put\(\) of cairn\.h was refused: the object is gone, or another thread's, or none/);
  await server.until(/module "misuse": build_int\(\) of cairn\.h was refused: the builder is gone/);
  await server.until(/a thread may log/);
  assert.equal(await server.ask("a", "works"), 7);
  assert.equal((await server.stop()).code, 0);
});

test("G1: events, builders, statements and streams that are gone, and what never was one", async (t) => {
  const server = await start(t);
  await server.ask("a", "leave");
  assert.deepEqual(await server.ask("a", "stale"), [EMISUSE, 0, 0, EMISUSE, EMISUSE, EMISUSE]);
  for (const name of ["response_status", "event_answer", "sql_step", "stream_write", "stream_end"])
    await server.until(new RegExp(`module "misuse", class misuse:Misuse: ${name}\\(\\) of cairn\\.h was refused: the \\w+ is gone`));
  assert.deepEqual(await server.ask("a", "nonsense"), [EMISUSE, EMISUSE, EMISUSE, EMISUSE, EMISUSE, EMISUSE, EMISUSE, 0]);
  await server.until(/socket_send\(\) of cairn\.h was refused: the socket is gone, or another object's, or none/);
  assert.equal(await server.ask("a", "works"), 7);
  assert.equal((await server.stop()).code, 0);
});

test("G2: an object is used by its own functions alone", async (t) => {
  const server = await start(t, { lanes: 1 });
  assert.equal(await server.ask("a", "works"), 7);
  assert.deepEqual(await server.ask("b", "another"), [EMISUSE, 0, ERROR, 64]);
  await server.until(/kv_delete\(\) of cairn\.h was refused: no function of that object's class is running/);
  assert.equal(await server.ask("a", "works"), 7);
});

test("an event is answered once, and one that never is fails with its object", async (t) => {
  const server = await start(t);
  assert.equal(await server.ask("a", "twice"), 2);
  assert.equal(await server.ask("a", "twiceLater"), 1);
  await server.until(/event_answer\(\) of cairn\.h was refused: the event is gone/);
  await server.until(/event_fail\(\) of cairn\.h was refused/);
  const kept = server.fetch("/a/keep").catch(() => null);
  assert.equal(await server.ask("a", "works"), 7);
  server.signal("SIGHUP");
  assert.notEqual((await kept)?.status, 200);
  assert.equal((await server.stop()).code, 0);
});

test("the watchdog names the module whose function does not return", async (t) => {
  const server = await start(t);
  server.fetch("/a/spin").catch(() => {});
  await server.until(/lane 0: the module "misuse", class misuse:Misuse, has not returned for \d+ s: nothing else on its lane runs/);
});
