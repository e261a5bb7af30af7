// A disk that fails under a real server (test/load/slowdisk.c): nothing is acknowledged that is not on it,
// callers get an error and not the answer in its place, reading goes on, and a restart has everything.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { alone } from "../lib/differences.mjs";
import { project, root, serve, tempDir } from "../lib/server.mjs";
import { objects } from "../lib/toml.mjs";
import { Client } from "../websockets/lib.mjs";

const files = {
  "wrangler.json": JSON.stringify({
    name: "app", main: "index.js", compatibility_date: "2026-01-01", durable_objects: { bindings: [{ name: "CELL", class_name: "Cell" }] },
    migrations: [{ tag: "v1", new_sqlite_classes: ["Cell"] }], kv_namespaces: [{ binding: "KV", id: "kv" }],
  }),
  "index.js": `import { DurableObject } from "cloudflare:workers";
export class Cell extends DurableObject {
  write(text) { this.ctx.storage.kv.put(text, text); return "value " + text; }
  read() { return [...this.ctx.storage.kv.list()].map(([key]) => key); }
}
export default { async fetch(request, env, ctx) {
  const [, name, method, text] = new URL(request.url).pathname.split("/");
  try {
    if (name === "kv") return Response.json({ value: method === "write" ? (await env.KV.put(text, text)) ?? null : await env.KV.get(text) });
    if (method === "later") return Response.json({ value: ctx.waitUntil(env.CELL.getByName(name).write(text)) ?? null });
    return Response.json({ value: await env.CELL.getByName(name)[method](text) });
  } catch (error) {
    return Response.json({ error: String(error?.message ?? error) }, { status: 500 });
  }
} };`,
};

/** A disk that is told how it is to be (slowdisk.c), and the environment of a server on it. */
function slowDisk() {
  const control = path.join(tempDir(), "disk");
  writeFileSync(control, Buffer.alloc(12)); // written over in place from here on: it is mapped
  return {
    set: (...numbers) => writeFileSync(control, Buffer.from(Uint32Array.from(numbers).buffer), { flag: "r+" }),
    env: { LD_PRELOAD: path.join(root, "build/load/slowdisk.so"), CAIRN_SLOWDISK: control },
  };
}

test("a failed sync: errors, not answers; reading goes on; a restart recovers", alone("disk"), async (t) => {
  const { set: setDisk, env } = slowDisk(), data = tempDir();
  const server = await serve(project(files), { data, env, lanes: 2 });
  t.after(() => server.kill());
  const ask = async (target, from = server) => (await from.fetch(target)).json();
  assert.deepEqual(await ask("/a/write/one"), { value: "value one" });
  assert.deepEqual(await ask("/b/write/one"), { value: "value one" });
  assert.deepEqual(await ask("/kv/write/one"), { value: null });
  setDisk(0, 0, 1);
  const { error } = await ask("/a/write/two");
  assert.match(error, /not known whether this was written|writes are refused|could not be committed/);
  setDisk(0, 0, 0); // too late: what the kernel has dropped is not known
  for (const target of ["/a/write/three", "/b/write/three", "/c/write/three", "/kv/write/three"]) assert.match((await ask(target)).error ?? "answered", /writes are refused/, target);
  assert.deepEqual(await ask("/b/read/"), { value: ["one"] });
  assert.deepEqual(await ask("/kv/read/one"), { value: "one" });
  await server.stop();
  const again = await serve(project(files), { data });
  t.after(() => again.kill());
  assert.deepEqual(await ask("/b/read/", again), { value: ["one"] });
  const { value } = await ask("/a/read/", again);
  assert.ok(value.includes("one") && !value.includes("three"), String(value));
  assert.deepEqual(await ask("/a/write/four", again), { value: "value four" });
  await again.stop();
});

test("a server that stops while a sync takes long waits for it, and ends well", alone("disk"), async (t) => {
  const { set: setDisk, env } = slowDisk(), data = tempDir();
  const server = await serve(project(files), { data, env, lanes: 2 });
  t.after(() => server.kill());
  const names = ["a", "b", "c"]; // whichever lane they are on
  for (const name of names) assert.equal((await server.fetch(`/${name}/write/one`)).status, 200);
  setDisk(2500, 0, 0); // longer than a lane waits until it looks after itself again (worker/lane.h, N3)
  for (const name of names) assert.equal((await server.fetch(`/${name}/later/two`)).status, 200); // answered before its write is made
  assert.deepEqual(await server.stop(), { code: 0, signal: null }, server.output);
  const again = await serve(project(files), { data });
  t.after(() => again.kill());
  for (const name of names) assert.deepEqual(await (await again.fetch(`/${name}/read/`)).json(), { value: ["one", "two"] });
  await again.stop();
});

// The answer to the close event waits for its write; the requests that come meanwhile are answered later still, but see what is.
test("K6: a socket is not listed after its webSocketClose(), whose write is not durable yet", alone("disk"), async (t) => {
  const { set: setDisk, env } = slowDisk();
  const server = await serve(project({
    "wrangler.toml": `name = "app"\nmain = "index.js"\ncompatibility_date = "2026-05-01"\n${objects({ ROOM: "Room" })}[cairn.limits]\nobject_idle_ms = 100\n`,
    "index.js": `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  async fetch(request) {
    if (request.headers.get("upgrade") === null) return Response.json({ all: this.ctx.getWebSockets().length, red: this.ctx.getWebSockets("red").length });
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server, ["red"]);
    return new Response(null, { status: 101, webSocket: client });
  }
  async webSocketClose(socket) {
    this.ctx.storage.kv.put("closed", this.ctx.getWebSockets().length);
    await null;
    console.log("the close was told, listed", this.ctx.getWebSockets().length);
  }
}
export default { fetch: (request, env) => env.ROOM.getByName("a").fetch(request) };` }), { env });
  t.after(() => server.kill());
  const sockets = [await Client.open(server, "/"), await Client.open(server, "/")];
  const list = async () => (await server.fetch("/")).json();
  assert.deepEqual(await list(), { all: 2, red: 2 });
  setDisk(3000, 0, 0);
  sockets[0].socket.close(1000);
  await server.until(/the close was told, listed 2/);
  assert.deepEqual(await list(), { all: 1, red: 1 }); // its turn runs before the sync is over
  setDisk(0, 0, 0);
  sockets[1].socket.close(1000);
  await server.stop();
});
