// Nothing that cairn.h says is refused harms the server, whatever a module does: every function of the header with handles that are none,
// gone (their memory in use again), of another kind or thread, without what it needs, and at times that are not for it; and values of
// JavaScript that are meant to hurt. The class is test/module/hostile.c; `make modules-san` runs this under sanitizers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { compile, configuration } from "../lib/module.mjs";
import { project, root, serve, tempDir } from "../lib/server.mjs";
import { Client } from "../websockets/lib.mjs";

const module = compile("test/module/hostile.c", path.join(tempDir(), "hostile.so"), ["-pthread"]);
const script = readFileSync(new URL("hostile.js", import.meta.url), "utf8");

async function start(t, options = {}) {
  const files = { "wrangler.json": configuration("hostile:Hostile"), "index.js": script, "hostile.so": readFileSync(module) };
  const server = await serve(project(files), { data: tempDir(), ...options });
  t.after(() => server.kill());
  server.ask = async (name, method) => (await server.fetch(`/call/${name}/${method}`)).json();
  server.works = async () => assert.deepEqual(await server.ask(`fresh${Math.random()}`, "nothing"), { value: null });
  return server;
}

test("the module calls every function of the header", () => {
  const header = readFileSync(path.join(root, "include/cairn.h"), "utf8").split("struct cairn_api {")[1].split("\n};")[0];
  const source = readFileSync(path.join(root, "test/module/hostile.c"), "utf8");
  const names = [...header.matchAll(/\(\*(\w+)\)\(/g)].map(([, name]) => name).filter((name) => name !== "each");
  assert.ok(names.length > 100);
  assert.deepEqual(names.filter((name) => !source.includes(`cairn->${name}(`)), []);
});

for (const lanes of [1, 2]) {
  test(`G1: handles that are none, of another kind or another thread's are refused by every function, ${lanes} lane(s)`, async (t) => {
    const server = await start(t, { lanes });
    for (const method of ["null", "garbage", "kinds", "thread"]) assert.deepEqual(await server.ask("a", method), { value: "" }, method);
    await server.works();
    assert.equal((await server.stop()).code, 0);
  });

  test(`G4: handles that are gone are refused though their memory is in use again, ${lanes} lane(s)`, async (t) => {
    const server = await start(t, { lanes });
    for (let i = 0; i < 20; i++) {
      await server.ask("a", "leave");
      assert.deepEqual(await server.ask("a", "stale"), { value: "" });
    }
    assert.deepEqual(await server.ask("a", "later"), { value: null });
    await server.until(/after its answer: ""/);
    assert.equal((await server.stop()).code, 0);
  });
}

test("what a function needs and is not given is told by its name", async (t) => {
  const server = await start(t);
  assert.match((await server.ask("a", "texts")).error, /abort\(\) was called|an error|misuse|forbids|Error/);
  await server.until(/request_header\(\) of cairn\.h was refused: name is NULL/);
  await server.works();
  assert.equal((await server.stop()).code, 0);
});

test("an object that resets itself before, between and after everything else", async (t) => {
  const server = await start(t);
  for (const method of ["all", "abortFirst", "abortList", "rollBack", "all"]) {
    await server.ask("a", method);
    await server.works();
  }
  assert.match((await server.ask("stillborn", "nothing")).error, /before it was born/);
  assert.ok((await server.ask("busy", "nothing")).error);
  assert.equal((await server.stop()).code, 0); // destroy() does everything once more
});

test("P3: a request that was passed on, or a stream, is the server's", async (t) => {
  const server = await start(t);
  assert.equal(await (await server.fetch("/object/a/forward")).text(), "plain");
  await server.until(/event_answer\(\) of cairn\.h was refused: the event is gone/);
  const body = "x".repeat(300000);
  assert.equal(await (await server.fetch("/object/a/pipe", { method: "POST", body })).text(), body);
  await server.until(/stream_end\(\) of cairn\.h was refused: the stream was given to stream_pipe\(\)/);
  await server.fetch("/object/a/everything", { method: "POST", body });
  await server.works();
  assert.equal((await server.stop()).code, 0);
});

test("everything in an event of a WebSocket", async (t) => {
  const server = await start(t);
  const client = await Client.open(server, "/object/a/socket");
  client.send("now");
  await server.until(/an event of a WebSocket failed|a line/);
  client.socket.terminate();
  await server.works();
  assert.equal((await server.stop()).code, 0);
});

test("limits of an object are told, and it goes on", async (t) => {
  const server = await start(t);
  assert.deepEqual(await server.ask("a", "limits"), { value: [10000, 1000, 60] });
  assert.deepEqual(await server.ask("a", "nothing"), { value: null });
});

test("an event that is never answered goes with its object", async (t) => {
  const server = await start(t);
  const waits = server.ask("a", "never");
  await server.works();
  server.signal("SIGHUP");
  assert.match((await waits).error, /code was updated/);
  await server.works();
  assert.equal((await server.stop()).code, 0);
});

test("values that are meant to hurt arrive, or are refused with a sentence", async (t) => {
  const server = await start(t);
  const told = {};
  for (const name of await (await server.fetch("/values")).json()) told[name] = await (await server.fetch(`/values/${name}`)).text();
  const same = ["deep", "long text", "array of 100,000", "shared", "30 MB", "map", "dates", "numbers", "bigints", "typed arrays", "surrogates", "proto"];
  const another = ["sparse", "floats", "view", "half a surrogate"]; // holes are undefined, views bytes, and U+FFFD: build_value() says so
  for (const [name, result] of Object.entries(told))
    assert.match(result, same.includes(name) ? /^same$/ : another.includes(name) ? /^another$/ : /^refused: .{10,}/, name);
  await server.works();
  assert.equal((await server.stop()).code, 0);
});
