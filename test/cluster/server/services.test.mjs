// Services of a cluster: each is used from every node, then while nodes are killed and shards move. What is promised of each is in docs/reference/cluster.md.
import assert from "node:assert/strict";
import http from "node:http";
import test from "node:test";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 600_000 };
const LIMIT = 20;

const project = {
  "wrangler.toml": `name = "services"
main = "index.js"
compatibility_date = "2026-01-01"
kv_namespaces = [{ binding = "KV", id = "kv" }]
d1_databases = [{ binding = "DB", database_name = "db", database_id = "db" }]
ratelimits = [{ name = "LIMITER", namespace_id = "7", simple = { limit = ${LIMIT}, period = 60 } }]
analytics_engine_datasets = [{ binding = "POINTS", dataset = "visits" }]
[triggers]
crons = ["* * * * *"]
[[queues.producers]]
binding = "JOBS"
queue = "jobs"
[[queues.producers]]
binding = "BAD"
queue = "bad"
[[queues.consumers]]
queue = "jobs"
max_batch_size = 10
max_batch_timeout = 0
[[queues.consumers]]
queue = "bad"
max_batch_size = 10
max_batch_timeout = 0
max_retries = 1
dead_letter_queue = "dead"
[[queues.consumers]]
queue = "dead"
max_batch_timeout = 0
[cairn.cluster]
shards = 16
`,
  "index.js": `import { cache } from "cloudflare:workers";
const tables = ["entry(value TEXT)", "once(value TEXT PRIMARY KEY)", "delivered(queue TEXT, body TEXT, attempts INTEGER)", "run(time INTEGER)"];
const rows = async (db, sql, ...values) => (await db.prepare(sql).bind(...values).all()).results.map((row) => Object.values(row));
const routes = {
  setup: async (env) => (await env.DB.batch(tables.map((table) => env.DB.prepare("CREATE TABLE IF NOT EXISTS " + table))), "ready"),
  put: async (env, key, value) => (await env.KV.put(key, value, { metadata: { value } }), "put"),
  get: async (env, key) => env.KV.get(key),
  cached: async (env, key) => env.KV.get(key, { cacheTtl: 30 }),
  both: async (env, key) => env.KV.getWithMetadata(key),
  remove: async (env, key) => (await env.KV.delete(key), "deleted"),
  list: async (env, prefix) => (await env.KV.list({ prefix })).keys.map((key) => key.name),
  add: async (env, value) => (await env.DB.prepare("INSERT INTO entry VALUES (?)").bind(value).run()).meta.changes,
  once: async (env, value) => (await env.DB.prepare("INSERT OR IGNORE INTO once VALUES (?)").bind(value).run()).success,
  batch: async (env, a, b) => (await env.DB.batch([a, b].map((value) => env.DB.prepare("INSERT INTO once VALUES (?)").bind(value)))).length,
  all: async (env, table) => rows(env.DB, "SELECT * FROM " + table),
  large: async (env, size) => (await rows(env.DB, "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT hex(zeroblob(?)) FROM n", Number(size) / 2)).flat().join("").length,
  session: async (env, value, bookmark) => {
    const session = env.DB.withSession(bookmark ?? "first-primary");
    await session.prepare("INSERT INTO entry VALUES (?)").bind(value).run();
    const count = await session.prepare("SELECT count(*) AS n FROM entry WHERE value = ?").bind(value).first("n");
    return { count, bookmark: session.getBookmark() };
  },
  send: async (env, body) => (await env.JOBS.send(body), "sent"),
  sends: async (env, prefix, count) => (await env.JOBS.sendBatch(Array.from({ length: Number(count) }, (_, i) => ({ body: prefix + i }))), "sent"),
  bad: async (env, body) => (await env.BAD.send(body), "sent"),
  backlog: async (env) => (await env.JOBS.metrics()).backlogCount,
  point: async (env, count) => (Array.from({ length: Number(count) }, () => env.POINTS.writeDataPoint({ blobs: ["x"], doubles: [1] })), "noted"),
  keep: async (env, path) => (await caches.default.put("https://x.test/" + path, new Response(path, { headers: { "cache-control": "max-age=600", "cache-tag": "tag-" + path } })), "kept"),
  kept: async (env, path) => (await (await caches.default.match("https://x.test/" + path))?.text()) ?? null,
  forget: async (env, path) => caches.default.delete("https://x.test/" + path),
  purge: async (env, tag) => cache.purge({ tags: [tag] }),
  limit: async (env, key) => (await env.LIMITER.limit({ key })).success,
};
export default {
  async fetch(request, env) {
    const [, name, ...parts] = new URL(request.url).pathname.split("/");
    return routes[name] ? Response.json(await routes[name](env, ...parts)) : new Response("?", { status: 404 });
  },
  async queue(batch, env) {
    if (batch.queue === "bad") throw new Error("no");
    const insert = env.DB.prepare("INSERT INTO delivered VALUES (?, ?, ?)");
    await env.DB.batch(batch.messages.map((message) => insert.bind(batch.queue, message.body, message.attempts)));
  },
  async scheduled(controller, env) {
    await env.DB.prepare("INSERT INTO run VALUES (?)").bind(controller.scheduledTime).run();
  },
};
`,
};

async function make(t, nodes) {
  const cluster = await Cluster.make(t, { project });
  for (const name of nodes) await cluster.start(name);
  await cluster.whole();
  await until(async () => (await cluster.engine.tryAsk("SELECT count(DISTINCT owner) FROM cairn.shard")) === String(nodes.length), "all nodes own something", 200_000);
  await cluster.ask("/setup");
  return cluster;
}

/** The answer of one node, which must be 200. */
async function say(cluster, node, target) {
  const { status, value } = await cluster.try(node, target, 20_000);
  assert.equal(status, 200, `${node} ${target}: ${value}`);
  return value;
}

/** A request to the control API of a node: the body of its answer, which must be 200. */
const control = (cluster, node, path, body, method = "POST") =>
  new Promise((resolve, reject) => {
    const request = http.request({ socketPath: `${cluster.base}/${node}/control.sock`, path, method }, async (response) => {
      const text = (await response.setEncoding("utf8").toArray()).join("");
      if (response.statusCode === 200) resolve(text);
      else reject(new Error(`${node} ${path}: ${response.statusCode} ${text}`));
    });
    request.on("error", reject).end(body);
  });

const texts = (rows) => rows.map(([value]) => value).sort();

test("every service answers the same on every node", options, async (t) => {
  const nodes = ["a", "b", "c"];
  const cluster = await make(t, nodes);
  const each = (run) => Promise.all(nodes.map(run));

  await t.test("KV: what one node wrote all read at once, with metadata and in lists", async () => {
    for (let i = 0; i < 12; i++) {
      const key = `k${i}`, writer = nodes[i % 3];
      await say(cluster, writer, `/put/${key}/${writer}${i}`);
      assert.deepEqual(await each((node) => say(cluster, node, `/get/${key}`)), nodes.map(() => `${writer}${i}`));
      assert.deepEqual((await say(cluster, nodes[(i + 1) % 3], `/both/${key}`)).metadata, { value: `${writer}${i}` });
    }
    const keys = Array.from({ length: 12 }, (_, i) => `k${i}`).sort();
    for (const node of nodes) assert.deepEqual(await say(cluster, node, "/list/k"), keys);
    await say(cluster, "b", "/remove/k3");
    assert.deepEqual(await each((node) => say(cluster, node, "/get/k3")), [null, null, null]);
  });

  await t.test("KV with cacheTtl: own writes are read at once, those of others when it is over", async () => {
    const keys = Array.from({ length: 6 }, (_, i) => `c${i}`);
    for (const key of keys) await say(cluster, "a", `/put/${key}/old`);
    for (const key of keys) assert.deepEqual(await each((node) => say(cluster, node, `/cached/${key}`)), ["old", "old", "old"]);
    const written = Date.now();
    for (const key of keys) {
      await say(cluster, "b", `/put/${key}/new`);
      assert.equal(await say(cluster, "b", `/cached/${key}`), "new");
      assert.deepEqual(await each((node) => say(cluster, node, `/get/${key}`)), ["new", "new", "new"]);
    }
    const seen = (await Promise.all(keys.flatMap((key) => ["a", "c"].map((node) => say(cluster, node, `/cached/${key}`)))));
    assert.ok(seen.includes("old"), "nothing came from memory"); // each key has one owner: of a and c at least one has it from elsewhere
    await new Promise((resolve) => setTimeout(resolve, 31_000 - (Date.now() - written)));
    for (const key of keys) assert.deepEqual(await each((node) => say(cluster, node, `/cached/${key}`)), ["new", "new", "new"]);
  });

  await t.test("D1: rows are exact, batches are whole, sessions go on on another node", async () => {
    await Promise.all(Array.from({ length: 60 }, (_, i) => say(cluster, nodes[i % 3], `/add/r${i}`)));
    for (const node of nodes) assert.equal((await say(cluster, node, "/all/entry")).length, 60);
    assert.equal(await say(cluster, "a", "/batch/x/y"), 2);
    for (const node of nodes) assert.equal((await cluster.try(node, `/batch/${node}/x`)).status, 500); // x is there: nothing of it happens
    for (const node of nodes) assert.deepEqual(texts(await say(cluster, node, "/all/once")), ["x", "y"]);
    let bookmark;
    for (let i = 0; i < 6; i++) {
      const before = bookmark;
      const answer = await say(cluster, nodes[i % 3], `/session/s${i}${before ? `/${before}` : ""}`);
      bookmark = answer.bookmark;
      assert.equal(answer.count, 1);
      assert.match(bookmark, /^[0-9a-f]{8}-[0-9a-f]{8}-/);
      if (before) assert.ok(bookmark > before, `${bookmark} after ${before}`);
    }
    assert.deepEqual(await each((node) => say(cluster, node, "/large/1000000")), nodes.map(() => 3_000_000));
  });

  await t.test("queues: each message once, dead letters too", async () => {
    const sent = [];
    for (const node of nodes) {
      await say(cluster, node, `/sends/${node}/50`);
      await say(cluster, node, `/bad/bad-${node}`);
      sent.push(...Array.from({ length: 50 }, (_, i) => `${node}${i}`));
    }
    const all = async () => say(cluster, "a", "/all/delivered");
    await until(async () => (await all()).length >= sent.length + 3, "all are delivered");
    const rows = await all();
    assert.deepEqual(rows.filter(([queue]) => queue === "jobs").map(([, body, attempts]) => `${body} ${attempts}`).sort(), sent.map((body) => `${body} 1`).sort());
    assert.deepEqual(rows.filter(([queue]) => queue === "dead").map(([, body]) => body).sort(), nodes.map((node) => `bad-${node}`));
    for (const node of nodes) assert.equal(await say(cluster, node, "/backlog"), 0);
  });

  await t.test("rate limits: one count for all nodes", async () => {
    const second = new Date().getSeconds();
    if (second > 40) await new Promise((resolve) => setTimeout(resolve, (61 - second) * 1000)); // so that it is one period
    const answers = await Promise.all(Array.from({ length: 3 * LIMIT }, (_, i) => say(cluster, nodes[i % 3], "/limit/someone")));
    assert.equal(answers.filter(Boolean).length, LIMIT);
  });

  await t.test("Cache: of each node its own, purges are for all", async () => {
    for (const node of nodes) for (const path of ["one", "two"]) await say(cluster, node, `/keep/${path}`);
    assert.equal(await say(cluster, "a", "/forget/one"), true);
    assert.deepEqual(await each((node) => say(cluster, node, "/kept/one")), [null, "one", "one"]);
    assert.deepEqual(await say(cluster, "b", "/purge/tag-two"), { success: true, errors: [] });
    assert.deepEqual(await each((node) => say(cluster, node, "/kept/two")), [null, null, null]);
    assert.deepEqual(await each((node) => say(cluster, node, "/kept/one")), [null, "one", "one"]);
  });

  await t.test("Analytics: a query is of the points of all nodes", async () => {
    for (const [i, node] of nodes.entries()) await say(cluster, node, `/point/${10 ** i}`);
    for (const node of nodes) {
      const sql = "SELECT SUM(_sample_interval * double1) AS n FROM visits FORMAT JSONEachRow";
      assert.equal(Number(JSON.parse(await control(cluster, node, "/api/analytics/sql", sql)).n), 111);
    }
  });

  await t.test("the control API of every node reaches them, also a namespace that only one node has heard of", async () => {
    for (const node of nodes) {
      await control(cluster, node, `/api/kv/kv/values/by-${node}`, node, "PUT");
      assert.deepEqual(await each((other) => control(cluster, other, `/api/kv/kv/values/by-${node}`, undefined, "GET")), [node, node, node]);
      assert.equal(JSON.parse(await control(cluster, node, "/api/queues/jobs", undefined, "GET")).result.metrics?.backlogCount ?? 0, 0);
      assert.ok(JSON.parse(await control(cluster, node, "/api/crons", undefined, "GET")).result.schedules[0].next > Date.now() - 60_000);
    }
    await control(cluster, "c", "/api/kv/made", undefined, "PUT");
    for (let i = 0; i < 8; i++) await control(cluster, "c", `/api/kv/made/values/m${i}`, "x", "PUT"); // of 16 objects, on three nodes
    for (let i = 0; i < 8; i++) assert.equal(await control(cluster, "c", `/api/kv/made/values/m${i}`, undefined, "GET"), "x");
  });

  await t.test("cron: every occurrence once", async () => {
    await until(async () => (await say(cluster, "b", "/all/run")).length >= 2, "two runs", 150_000);
    const times = texts(await say(cluster, "c", "/all/run"));
    assert.equal(new Set(times).size, times.length, String(times));
  });
});

test("what was acknowledged stays, and is delivered, while nodes are killed and shards move", options, async (t) => {
  const nodes = ["a", "b", "c"];
  const cluster = await make(t, nodes);
  const acknowledged = { once: new Set(), send: new Set(), put: new Map() };
  const tried = { once: new Set(), send: new Set() };
  let going = true;

  /** Values of one kind one after the other through nodes in turn; one that fails is tried again with the same name. */
  const writer = async (number) => {
    for (let i = 0; going; i++) {
      const value = `w${number}-${i}`, kind = ["once", "send", "put"][i % 3];
      if (kind !== "put") tried[kind].add(value);
      const target = kind === "put" ? `/put/w${number}/${i}` : `/${kind}/${value}`;
      await cluster.ask(target, { order: [...nodes.slice(i % 3), ...nodes.slice(0, i % 3)] });
      if (kind === "put") acknowledged.put.set(`w${number}`, String(i));
      else acknowledged[kind].add(value);
    }
  };
  const writers = Array.from({ length: 6 }, (_, number) => writer(number));
  writers.forEach((each) => each.catch(() => (going = false)));
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  for (const [i, victim] of ["b", "c", "a"].entries()) {
    await pause(2000);
    if (i === 1) {
      await cluster.command("drain", victim);
      await pause(4000);
      await cluster.command("drain", victim, "--off");
    } else {
      const server = cluster.nodes.get(victim);
      server.signal("SIGKILL");
      await server.exited;
      await pause(4000);
      await cluster.start(victim);
    }
    await cluster.whole();
  }
  await pause(2000);
  going = false;
  await Promise.all(writers);
  assert.ok(acknowledged.once.size > 30 && acknowledged.send.size > 30, "enough was written");

  const once = new Set(texts((await cluster.ask("/all/once")).value));
  for (const value of acknowledged.once) assert.ok(once.has(value), `row ${value} is lost`);
  for (const value of once) assert.ok(tried.once.has(value), `row ${value} was never written`);
  for (const [key, value] of acknowledged.put) for (const node of nodes) assert.equal((await cluster.ask(`/get/${key}`, { order: [node] })).value, value);
  const delivered = async () => new Set((await cluster.ask("/all/delivered")).value.filter(([queue]) => queue === "jobs").map(([, body]) => body));
  await until(async () => {
    const bodies = await delivered();
    return [...acknowledged.send].every((body) => bodies.has(body));
  }, "every message that was acknowledged is delivered", 120_000);
  for (const body of await delivered()) assert.ok(tried.send.has(body), `message ${body} was never sent`);
  await until(async () => (await cluster.ask("/backlog")).value === 0, "nothing is left");
  const times = texts((await cluster.ask("/all/run")).value);
  assert.equal(new Set(times).size, times.length, `an occurrence ran twice: ${times}`);
  t.diagnostic(`${acknowledged.once.size} rows, ${acknowledged.send.size} messages (${(await cluster.ask("/all/delivered")).value.length} deliveries), ${times.length} runs`);
});
