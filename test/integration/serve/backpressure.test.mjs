// A disk that takes nothing holds back who writes, and nobody else on the lane: src/object/object.h, O8.
import assert from "node:assert/strict";
import test from "node:test";
import { adminPort, ask } from "../admin/lib.mjs";
import { project, serve } from "../lib/cairn.mjs";
import { scarcity } from "../lib/scarce.mjs";

const config = `name = "w"
main = "index.js"
compatibility_date = "2026-01-01"
kv_namespaces = [{ binding = "KV", id = "k" }]
d1_databases = [{ binding = "DB", database_name = "d", database_id = "d" }]
r2_buckets = [{ binding = "R2", bucket_name = "r" }]
[[queues.producers]]
binding = "Q"
queue = "q"
[[durable_objects.bindings]]
name = "WRITER"
class_name = "Writer"
[[durable_objects.bindings]]
name = "READER"
class_name = "Reader"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Writer", "Reader"]
[cairn.limits]
memory_bytes = 2147483648
`;

const script = `
import { DurableObject } from "cloudflare:workers";
let noise; // pages that cannot be made smaller
function big(size, i) {
  noise ??= crypto.getRandomValues(new Uint8Array(65536));
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += noise.length) bytes.set(noise.subarray(0, Math.min(noise.length, size - at)), at);
  bytes[0] = i;
  return bytes;
}
let done = 0; // writes that were answered
let steps = 0; // of the loop of an object
const ways = {
  kv: (env, i) => env.KV.put("k" + i, big(1.5e7, i)),
  d1: (env, i) => env.DB.prepare("INSERT INTO t VALUES (?)").bind(big(1.9e6, i)).run(),
  queue: (env, i) => env.Q.sendBatch(Array.from({ length: 2 }, (_, k) => ({ body: big(1.2e5, k), contentType: "bytes" }))),
  object: (env, i) => env.WRITER.getByName("o" + (i % 3)).write(i),
};
const counts = { kv: 20, d1: 100, queue: 400, object: 100 };
export class Writer extends DurableObject {
  write(i) { for (let k = 0; k < 8; k++) this.ctx.storage.kv.put("x" + i + ":" + k, big(1.2e6 / 8, k)); }
  async loop() {
    for (let i = 0; i < 100; i++) {
      for (let k = 0; k < 16; k++) this.ctx.storage.kv.put("l" + i + ":" + k, big(1.2e5, (i + k) % 200));
      steps++;
      await scheduler.wait(0);
    }
  }
}
export class Reader extends DurableObject {
  hello() { return "hello"; }
}
export default {
  async fetch(request, env, ctx) {
    const [, what, way] = new URL(request.url).pathname.split("/");
    if (what === "plain") return new Response("plain");
    if (what === "hello") return new Response(await env.READER.getByName("r").hello());
    if (what === "schema") { await env.DB.exec("CREATE TABLE t (b)"); await env.KV.put("a", "b"); return new Response("made"); }
    if (what === "done") return Response.json({ done, steps });
    if (what === "loop") { await env.WRITER.getByName("l").loop(); return new Response("looped"); }
    const all = [];
    for (let i = 0; i < counts[way]; i++) {
      all.push(ways[way](env, i).then(() => done++));
      await scheduler.wait(0);
    }
    await Promise.all(all);
    return new Response("written");
  },
  queue() {},
};
`;

const files = { "wrangler.toml": config, "index.js": script };
async function held(server) {
  const { text } = await ask({ port: await adminPort(server) }, "GET", "/metrics");
  return [...text.matchAll(/^cairn_objects_held_total\{.*\} (\d+)$/gm)].reduce((sum, match) => sum + Number(match[1]), 0);
}

async function start(t) {
  const disk = scarcity(t);
  const server = await serve(t, project(t, files), { env: disk.env, args: ["--lanes", "1", "--admin", "127.0.0.1:0"] });
  for (const path of ["/schema", "/hello"]) assert.equal((await server.fetch(path)).status, 200);
  return { disk, server };
}

for (const way of ["kv", "d1", "queue", "object"])
  test(`${way}: writes wait for the disk, and nobody else of the lane`, async (t) => {
    const { disk, server } = await start(t);
    disk.without("sync");
    const written = server.fetch(`/write/${way}`);
    await server.untilTrue(async () => (await held(server)) > 0, "somebody is held back");
    for (let i = 0; i < 20; i++) assert.equal(await (await server.fetch("/plain")).text(), "plain");
    disk.plenty();
    assert.equal(await (await written).text(), "written");
    assert.equal(await (await server.fetch("/hello")).text(), "hello");
    await server.stop();
  });

test("an object that writes in a loop of its own waits where it goes on", async (t) => {
  const { disk, server } = await start(t);
  const steps = async () => (await (await server.fetch("/done")).json()).steps;
  disk.without("sync");
  const looped = server.fetch("/loop");
  await server.untilTrue(async () => (await held(server)) > 0, "it is held back");
  const at = await steps();
  for (let i = 0; i < 50; i++) assert.ok((await steps()) <= at + 1, "its code goes on"); // a step may have been under way
  assert.ok(at < 100, "it has ended");
  disk.plenty();
  assert.equal(await (await looped).text(), "looped");
  assert.equal(await steps(), 100);
});

test("timers that start each other leave the lane to others", async (t) => {
  const script = `let on = 1;
    function busy() { for (const end = performance.now(), n = { k: 0 }; n.k < 200_000; n.k++); if (on) setTimeout(busy, 0); }
    export default { fetch(request, env, ctx) {
      const { pathname } = new URL(request.url);
      if (pathname === "/stop") on = 0;
      if (pathname === "/start") { ctx.waitUntil(new Promise((resolve) => setTimeout(function look() { on ? setTimeout(look, 5) : resolve(); }, 5))); busy(); }
      return new Response("answered");
    } };`;
  const server = await serve(t, project(t, { "index.js": script }), { args: ["--lanes", "1"] });
  for (const path of ["/start", "/plain", "/plain", "/stop"]) assert.equal(await (await server.fetch(path)).text(), "answered");
});
