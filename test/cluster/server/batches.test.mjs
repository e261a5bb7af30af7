// Batches of one queue on all nodes (background/consumers.h, N3): where they run, how many at a time, and what becomes of them when a node is lost.
import assert from "node:assert/strict";
import http from "node:http";
import test from "node:test";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 600_000 };
const nodes = ["a", "b", "c"];

// A batch is one message. It says that it has begun, and where; then it waits until it is let go.
const project = {
  "wrangler.toml": `name = "batches"
main = "index.js"
compatibility_date = "2026-01-01"
kv_namespaces = [{ binding = "KV", id = "kv" }]
d1_databases = [{ binding = "DB", database_name = "db", database_id = "db" }]
[[queues.producers]]
binding = "jobs"
queue = "jobs"
[[queues.producers]]
binding = "few"
queue = "few"
[[queues.consumers]]
queue = "jobs"
max_batch_size = 1
max_batch_timeout = 0
[[queues.consumers]]
queue = "few"
max_batch_size = 1
max_batch_timeout = 0
max_concurrency = 4
[cairn.cluster]
shards = 16
`,
  "index.js": `let self;
const me = () => (self ??= crypto.randomUUID()); // one for each lane of each node
const rows = async (db, sql, ...values) => (await db.prepare(sql).bind(...values).all()).results;
const routes = {
  setup: async (env) => (await env.DB.batch(["begun(body, self, attempts)", "done(body, self)"].map((table) => env.DB.prepare("CREATE TABLE IF NOT EXISTS " + table))), "ready"),
  self: async () => me(),
  send: async (env, queue, prefix, count) => (await env[queue].sendBatch(Array.from({ length: Number(count) }, (_, i) => ({ body: prefix + "/" + i }))), "sent"),
  open: async (env, prefix) => (await env.KV.put("open/" + prefix, "yes"), "open"),
  begun: async (env, prefix) => rows(env.DB, "SELECT * FROM begun WHERE body LIKE ?", prefix + "/%"),
  done: async (env, prefix) => rows(env.DB, "SELECT * FROM done WHERE body LIKE ?", prefix + "/%"),
  backlog: async (env, queue) => (await env[queue].metrics()).backlogCount,
};
/** Nodes go away in the middle: what fails is tried again. */
async function insist(run) {
  for (;;) {
    try { return await run(); } catch { await new Promise((resolve) => setTimeout(resolve, 50)); }
  }
}
export default {
  async fetch(request, env) {
    const [, name, ...parts] = new URL(request.url).pathname.split("/");
    return routes[name] ? Response.json(await routes[name](env, ...parts)) : new Response("?", { status: 404 });
  },
  async queue(batch, env) {
    const [message] = batch.messages, prefix = message.body.split("/")[0];
    await insist(() => env.DB.prepare("INSERT INTO begun VALUES (?, ?, ?)").bind(message.body, me(), message.attempts).run());
    while (!(await insist(() => env.KV.get("open/" + prefix)))) await new Promise((resolve) => setTimeout(resolve, 50));
    if (prefix === "throws" && message.attempts === 1) throw new Error("not yet");
    if (prefix === "retries" && message.attempts === 1) return message.retry();
    await insist(() => env.DB.prepare("INSERT INTO done VALUES (?, ?)").bind(message.body, me()).run());
  },
};
`,
};

async function make(t) {
  const cluster = await Cluster.make(t, { project });
  for (const name of nodes) await cluster.start(name);
  await cluster.whole();
  await until(async () => (await cluster.engine.tryAsk("SELECT count(DISTINCT owner) FROM cairn.shard")) === String(nodes.length), "all nodes own something", 200_000);
  await cluster.settled();
  await cluster.ask("/setup");
  return cluster;
}

const ask = async (cluster, target, order) => (await cluster.ask(target, { order })).value;

/** On a connection of its own, which any lane of the node may get. */
const selfOf = (server) =>
  new Promise((resolve, reject) => {
    http.get({ host: "127.0.0.1", port: server.port, path: "/self", agent: false }, async (response) => resolve(JSON.parse((await response.toArray()).join("")))).on("error", reject);
  });

/** Which node each instance is of; each has two lanes. */
async function places(cluster) {
  const of = new Map();
  for (const node of nodes)
    await until(async () => {
      for (const self of await Promise.all(Array.from({ length: 8 }, () => selfOf(cluster.nodes.get(node))))) of.set(self, node);
      return [...of.values()].filter((each) => each === node).length === 2;
    }, `both lanes of ${node} have answered`);
  return of;
}

/** Sends as many messages; resolves with the rows of those that have begun when all have. */
async function begin(cluster, queue, prefix, count, begun = count) {
  await ask(cluster, `/send/${queue}/${prefix}/${count}`);
  return waitBegun(cluster, prefix, (rows) => new Set(rows.map(({ body }) => body)).size >= begun);
}
async function waitBegun(cluster, prefix, enough, order) {
  let rows;
  await until(async () => enough((rows = await ask(cluster, `/begun/${prefix}`, order))), `batches of ${prefix} have begun`, 120_000);
  return rows;
}

/** All are let go, and are done, and the queue is empty. */
async function finish(cluster, queue, prefix, count, order) {
  await ask(cluster, `/open/${prefix}`, order);
  await until(async () => new Set((await ask(cluster, `/done/${prefix}`, order)).map(({ body }) => body)).size === count, `all of ${prefix} are done`, 120_000);
  await until(async () => (await ask(cluster, `/backlog/${queue}`, order)) === 0, "nothing is left", 120_000);
  return ask(cluster, `/done/${prefix}`, order);
}

const count = (values) => values.reduce((sums, value) => ({ ...sums, [value]: (sums[value] ?? 0) + 1 }), {});

/** A batch alone runs where its queue is. */
async function home(cluster, of, queue, prefix) {
  const [{ self }] = await begin(cluster, queue, prefix, 1);
  await finish(cluster, queue, prefix, 1);
  return of.get(self);
}

test("batches of one queue run on all nodes, each message once; max_concurrency is of all of them", options, async (t) => {
  const cluster = await make(t);
  const of = await places(cluster);
  const owner = await home(cluster, of, "jobs", "alone");
  assert.ok(nodes.includes(owner));

  const rows = await begin(cluster, "jobs", "many", 24);
  const at = count(rows.map(({ self }) => of.get(self)));
  t.diagnostic(`24 batches of a queue of ${owner}: ${JSON.stringify(at)}`);
  for (const node of nodes) assert.ok(at[node] >= 6, `${node}: ${JSON.stringify(at)}`);
  assert.equal(new Set(rows.map(({ self }) => self)).size, 6, "both lanes of each");
  const done = await finish(cluster, "jobs", "many", 24);
  assert.equal(done.length, 24, "nothing ran twice");

  // What a handler says of its messages counts wherever it runs: a throw, a retry.
  for (const prefix of ["throws", "retries"]) {
    await begin(cluster, "jobs", prefix, 12);
    assert.equal((await finish(cluster, "jobs", prefix, 12)).length, 12);
    const begun = await ask(cluster, `/begun/${prefix}`);
    assert.deepEqual(count(begun.map(({ attempts }) => attempts)), { 1: 12, 2: 12 });
    assert.equal(Object.keys(count(begun.filter(({ attempts }) => attempts === 1).map(({ self }) => of.get(self)))).length, 3, "on all nodes");
  }

  // New code in the middle, on every node: what had begun ends or comes again, and was not tried.
  await begin(cluster, "jobs", "reload", 12);
  for (const { child } of cluster.nodes.values()) child.kill("SIGHUP");
  await Promise.all([...cluster.nodes.values()].map((server) => server.reloaded()));
  await finish(cluster, "jobs", "reload", 12);
  assert.deepEqual(Object.keys(count((await ask(cluster, "/begun/reload")).map(({ attempts }) => attempts))), ["1"]);
  const later = await places(cluster); // instances of the new code
  for (const [self, node] of later) of.set(self, node);

  // Four, whichever nodes they are on; and the next when one of them is done.
  const few = await begin(cluster, "few", "few", 10, 4);
  assert.equal(few.length, 4);
  assert.ok(new Set(few.map(({ self }) => of.get(self))).size > 1, "on more than one node");
  await new Promise((resolve) => setTimeout(resolve, 1000)); // a fifth would have had time to
  assert.equal((await ask(cluster, "/begun/few")).length, 4);
  assert.equal((await finish(cluster, "few", "few", 10)).length, 10);
});

test("a node that runs batches of another's queue is killed: they run again elsewhere, as if they had not been tried", options, async (t) => {
  const cluster = await make(t);
  const of = await places(cluster);
  const owner = await home(cluster, of, "jobs", "alone");
  const victim = nodes.find((node) => node !== owner), left = nodes.filter((node) => node !== victim);
  const rows = await begin(cluster, "jobs", "kill", 12);
  const cut = rows.filter(({ self }) => of.get(self) === victim).map(({ body }) => body);
  assert.ok(cut.length > 0);
  const server = cluster.nodes.get(victim);
  server.signal("SIGKILL");
  await server.exited;
  const again = await waitBegun(cluster, "kill", (all) => cut.every((body) => all.filter((row) => row.body === body).length > 1), left);
  for (const row of again) assert.equal(row.attempts, 1, `${row.body} was not tried`);
  await finish(cluster, "jobs", "kill", 12, left);
});

test("the node of the queue is killed while others run its batches; then one that is drained: all are done", options, async (t) => {
  const cluster = await make(t);
  const of = await places(cluster);
  const victim = await home(cluster, of, "jobs", "alone"), left = nodes.filter((node) => node !== victim);
  await begin(cluster, "jobs", "owner", 12);
  const server = cluster.nodes.get(victim);
  server.signal("SIGKILL");
  await server.exited;
  await finish(cluster, "jobs", "owner", 12, left);
  await cluster.start(victim);
  await cluster.whole();

  // Drained: the queue goes elsewhere with batches on all nodes. What they say is heard by the next one (N2).
  const now = await places(cluster);
  const drained = await home(cluster, now, "jobs", "second");
  await begin(cluster, "jobs", "drain", 12);
  assert.equal((await cluster.command("drain", drained)).code, 0);
  await until(async () => new RegExp(`^${drained} +draining +0 `, "m").test((await cluster.command("nodes")).stdout), `${drained} owns nothing`, 200_000);
  await finish(cluster, "jobs", "drain", 12);

  // And gets no batches of others while it is.
  const rows = await begin(cluster, "jobs", "without", 12);
  assert.ok(!rows.some(({ self }) => now.get(self) === drained), "a node that is drained gets nothing");
  await finish(cluster, "jobs", "without", 12);
});
