// Bounds: memory, queues, new objects. What gives way first, and what callers and clients are told.
import assert from "node:assert/strict";
import { test } from "node:test";
import { project, serve } from "../lib/server.mjs";

const worker = `import { DurableObject } from "cloudflare:workers";
export class Box extends DurableObject {
  started = Math.random();
  fill(bytes) { this.held = new Array(bytes / 8).fill(0).map((_, i) => i + 0.5); return this.started; }
  read() { return this.started; }
  save() { this.ctx.storage.kv.put("k", 1); return this.ctx.id.name; }
  whenOpen() { return new Promise((resolve) => { this.open = resolve; this.ctx.blockConcurrencyWhile(() => new Promise((done) => setTimeout(done, 20_000))); }); }
  take(bytes) { return bytes.length; }
}
export default {
  async fetch(request, env) {
    const [, name, method, argument] = new URL(request.url).pathname.split("/");
    const box = env.BOX.getByName(name);
    if (method === "flood") {
      // The object takes nothing in: what is sent waits in its mailbox until that is full.
      const bytes = new Uint8Array(8 << 20);
      box.whenOpen().catch(() => {});
      const sent = Array.from({ length: 20 }, () => box.take(bytes));
      for (const each of sent) each.catch(() => {});
      if (argument === "caught") {
        try { await Promise.race(sent.slice(-1)); } catch (error) { return Response.json([error.message, error.overloaded, error.retryable === true]); }
      }
      await sent.at(-1);
    }
    return Response.json((await box[method](Number(argument))) ?? null);
  },
};
`;
const config = (limits) => `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-03-01"
[[durable_objects.bindings]]\nname = "BOX"\nclass_name = "Box"
[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Box"]
[cairn.limits]\n${limits}\n`;

for (const lanes of [1, 2]) {
  test(`DO-LC-6: idle objects leave memory before requests are refused (${lanes} lanes)`, async () => {
    const dir = project({ "wrangler.toml": config("heap_bytes = 67108864\nobject_idle_ms = 600000"), "index.js": worker });
    const server = await serve(dir, { lanes });
    const started = new Map();
    // Far more than the limit, one after the other: no request may fail.
    for (let i = 0; i < 40 * lanes; i++) {
      const response = await server.fetch(`/o${i}/fill/${4 << 20}`);
      assert.equal(response.status, 200);
      started.set(`o${i}`, await response.json());
    }
    await server.until(/memory is short; \d+ idle objects were evicted/);
    let fresh = 0;
    for (const [name, before] of started) {
      const response = await server.fetch(`/${name}/read`);
      assert.equal(response.status, 200);
      if ((await response.json()) !== before) fresh++;
    }
    assert.ok(fresh > 0);
    assert.doesNotMatch(server.output, /new requests of worker w get 503/);
    await server.stop();
  });
}

test("DO-LC-7 DO-ERR-1: a full mailbox: the caller sees .overloaded, an HTTP client 503 with Retry-After", async () => {
  const dir = project({ "wrangler.toml": config("object_idle_ms = 600000"), "index.js": worker });
  const server = await serve(dir);
  assert.deepEqual(await (await server.fetch("/a/flood/caught")).json(), ["Durable Object is overloaded. Too much data queued.", true, false]);
  const response = await server.fetch("/b/flood/escapes");
  assert.equal(response.status, 503);
  assert.equal(response.headers.get("retry-after"), "1");
  assert.match(await response.text(), /reference [0-9a-f]{16}/);
  await server.kill();
});

test("DO-LC: new objects of a class are limited per minute if the configuration says so", async () => {
  const dir = project({ "wrangler.toml": config("new_objects_per_minute = 5"), "index.js": worker });
  const server = await serve(dir);
  const nodes = server.nodes?.length ?? 1; // each has its own five
  const asked = nodes > 1 ? 20 * nodes : 8;
  const minute = () => Math.floor(Date.now() / 60_000);
  let began, statuses, round = 0;
  do {
    const before = minute();
    if (round++ > 0 || Date.now() % 60_000 > 45_000) await server.untilTrue(() => minute() > before, "the next minute", 90_000);
    began = minute();
    statuses = [];
    for (let i = 0; i < asked; i++) statuses.push((await server.fetch(`/r${round}o${i}/save`)).status);
  } while (minute() !== began); // it ended in between, and the next has its own five
  if (nodes === 1) assert.deepEqual(statuses, [200, 200, 200, 200, 200, 503, 503, 503]);
  const made = [...statuses.keys()].filter((i) => statuses[i] === 200);
  assert.equal(made.length, 5 * nodes);
  assert.deepEqual(new Set(statuses), new Set([200, 503]));
  for (const i of made) assert.equal((await server.fetch(`/r${round}o${i}/save`)).status, 200); // they exist
  await server.kill();
});

test("I3: a restart for memory resets the objects that hold it, whatever they have under way", async () => {
  const hog = `import { DurableObject } from "cloudflare:workers";
export class Box extends DurableObject {
  started = Math.random();
  read() { return this.started; }
  hog() { // a call that is never answered, a timer of an hour, a cursor, a socket
    this.held = Array.from({ length: 12 }, () => new Uint8Array(8 << 20).fill(1));
    setTimeout(() => {}, 3_600_000);
    this.cursor = this.ctx.storage.sql.exec("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n LIMIT 100");
    this.cursor.next();
    this.socket = new WebSocketPair()[0];
    this.socket.accept();
    return new Promise(() => {});
  }
}
export default {
  async fetch(request, env) {
    const [, name, method] = new URL(request.url).pathname.split("/");
    return Response.json(await env.BOX.getByName(name)[method]());
  },
};
`;
  const dir = project({ "wrangler.toml": config("heap_bytes = 67108864"), "index.js": hog });
  const server = await serve(dir, { lanes: 1 });
  const before = await (await server.fetch("/a/read")).json();
  const stuck = server.fetch("/a/hog");
  await server.until(/over its limit of 64 MB; new requests of worker w get 503/);
  await server.until(/held \d+ MB and is restarted/);
  const failed = await stuck;
  assert.ok(failed.status >= 500, String(failed.status));
  await server.untilTrue(async () => (await server.fetch("/b/read")).status === 200, "a restarted worker");
  const again = await server.fetch("/a/read");
  assert.equal(again.status, 200);
  assert.notEqual(await again.json(), before);
  // And it stays: the memory is free.
  const warnings = server.output.split("new requests of worker w get 503").length;
  for (let i = 0; i < 20; i++) {
    assert.equal((await server.fetch("/a/read")).status, 200);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.equal(server.output.split("new requests of worker w get 503").length, warnings);
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});
