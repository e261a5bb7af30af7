// Real servers on a real engine, under faults: nothing acknowledged is lost, no answer is stale, and all is served again when the faults stop.
// CLUSTER_SECONDS says how long. The control shows that a loss would be found: with an engine that does not wait for its standby there is one.
import assert from "node:assert/strict";
import test from "node:test";
import { Cluster } from "./cluster.mjs";
import { History } from "./history.mjs";
import { absent, until } from "./postgres.mjs";

const SECONDS = Number(process.env.CLUSTER_SECONDS ?? 60);
const NAMES = ["a", "b", "c", "d"];
const OBJECTS = Array.from({ length: 12 }, (_, i) => `object-${i}`);

let seed = Number(process.env.CAIRN_TEST_SEED ?? Date.now() % 2 ** 31) || 1;
const random = (n) => {
  seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
  return (seed >>> 8) % n;
};
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const pick = (list) => list[random(list.length)];

/** Clients, until `over.now`: each try is one operation. What was acknowledged of services is in `kept`. */
function load(cluster, history, over, clients = 5) {
  const kept = { put: [], insert: [], send: [], ring: [] };
  let number = 0;
  const client = async () => {
    while (!over.now) {
      const kind = random(10), id = `v${++number}`;
      if (random(20) === 0) void cluster.try(pick(NAMES), `/slow/${pick(OBJECTS)}/9000`, 12_000); // longer than a move waits
      if (kind < 5) {
        const object = pick(OBJECTS);
        for (const node of NAMES) if ((await history.note(object, `${id}${node}`, () => cluster.try(node, `/add/${object}/${id}${node}`))).ok) break;
      } else if (kind < 8) {
        const object = pick(OBJECTS);
        for (const node of NAMES) if ((await history.note(object, undefined, () => cluster.try(node, `/all/${object}`))).ok) break;
      } else {
        const what = pick(Object.keys(kept));
        for (const node of NAMES) if ((await cluster.try(node, `/${what}/${id}/${what === "ring" ? 500 : id}`)).status === 200) {
          kept[what].push(id);
          break;
        }
      }
      await pause(random(40));
    }
  };
  return { kept, done: Promise.all(Array.from({ length: clients }, client)) };
}

/** All that was acknowledged of services is there. */
async function checkServices(cluster, kept, outputs) {
  for (const id of kept.put) assert.equal((await cluster.ask(`/get/${id}`)).value, id, `KV: ${id}`);
  if (kept.insert.length) {
    const rows = new Set((await cluster.ask("/select")).value);
    for (const id of kept.insert) assert.ok(rows.has(id), `D1: ${id}`);
  }
  for (const id of kept.ring) await until(async () => (await cluster.ask(`/all/${id}`)).value.includes("alarm"), `the alarm of ${id}`);
  const delivered = () => kept.send.filter((id) => !outputs().some((text) => text.includes(`delivered ${id}.`)));
  await until(() => delivered().length === 0, `messages ${delivered()}`, 120_000);
}

test("nothing acknowledged is lost and no answer is stale, whatever happens to nodes and engine", { skip: absent, timeout: (SECONDS + 900) * 1000 }, async (t) => {
  const cluster = await Cluster.make(t);
  const history = new History(), over = { now: false }, counts = {}, past = [];
  const healing = new Map(); // by node: what ends its fault
  for (const name of NAMES) await cluster.start(name);
  await cluster.whole();
  const { kept, done } = load(cluster, history, over);

  const restart = async (name) => {
    const server = cluster.nodes.get(name);
    await server.exited;
    past.push(server.output);
    await cluster.start(name);
  };
  const faults = {
    kill: (name) => (cluster.nodes.get(name).signal("SIGKILL"), [random(3000), () => restart(name)]),
    stop: (name) => (cluster.nodes.get(name).signal("SIGTERM"), [0, () => restart(name)]),
    freeze: (name) => (cluster.nodes.get(name).signal("SIGSTOP"), [200 + random(6000), () => cluster.nodes.get(name).signal("SIGCONT")]),
    cut: (name) => (cluster.cut(name, true), [200 + random(5000), () => cluster.cut(name, false)]),
  };
  const engineFaults = {
    promote: () => cluster.promote(),
    zombie: () => cluster.promote({ zombie: 200 + random(1000) }),
    restart: async () => (cluster.engine.kill(), cluster.engine.start()),
    terminate: () => cluster.engine.tryAsk("SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'cairn %' ORDER BY random() LIMIT 2) x"),
    cancel: () => cluster.engine.tryAsk("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"),
  };
  for (const end = Date.now() + SECONDS * 1000; Date.now() < end; await pause(300 + random(1500))) {
    const name = pick(NAMES);
    const kind = random(6) === 0 ? pick(Object.keys(engineFaults)) : pick(Object.keys(faults));
    if (engineFaults[kind]) {
      await engineFaults[kind]();
    } else {
      if (healing.has(name) || healing.size > 1) continue;
      const [ms, heal] = faults[kind](name);
      healing.set(name, pause(ms).then(heal).finally(() => healing.delete(name)));
    }
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  await Promise.all(healing.values());
  await cluster.whole();
  over.now = true;
  await done;

  const finals = new Map();
  for (const object of OBJECTS) finals.set(object, (await cluster.ask(`/all/${object}`)).value);
  const wrong = history.check(finals);
  const answered = history.ops.filter((op) => op.ok);
  t.diagnostic(`${history.ops.length} operations, ${answered.length} answered (${answered.filter((op) => op.write !== undefined).length} writes), ` +
    `services ${Object.entries(kept).map(([what, ids]) => `${what} ${ids.length}`).join(", ")}; faults ${JSON.stringify(counts)}; seed ${seed}`);
  for (const server of cluster.nodes.values()) assert.equal(server.exit, undefined, server.output);
  assert.deepEqual(wrong.slice(0, 10), []);
  assert.ok(answered.length > 50);
  await checkServices(cluster, kept, () => [...past, ...[...cluster.nodes.values()].map((server) => server.output)]);
  for (const server of cluster.nodes.values()) assert.deepEqual(await server.stop(), { code: 0, signal: null }, server.output);
});

test("the control: what an engine loses that does not wait for its standby is found", { skip: absent, timeout: 600_000 }, async (t) => {
  const cluster = await Cluster.make(t, { options: " options='-c synchronous_commit=local'", args: ["--allow-async"] });
  const history = new History();
  for (const name of NAMES) await cluster.start(name);
  await cluster.whole();
  const write = async (count, tag) => {
    for (let i = 0; i < count; i++) for (const node of NAMES) if ((await history.note(OBJECTS[i % 12], `${tag}${i}${node}`, () => cluster.try(node, `/add/${OBJECTS[i % 12]}/${tag}${i}${node}`))).ok) break;
  };
  await write(24, "x");
  cluster.engines[1].kill(); // the standby lags behind
  await cluster.engines[1].exited;
  await write(24, "y");
  assert.ok(history.ops.filter((op) => op.ok && op.write.startsWith("y")).length > 0);
  cluster.kill();
  cluster.engines[0].kill();
  for (const server of cluster.nodes.values()) await server.exited;
  await cluster.engines[1].start();
  await cluster.engines[1].promote();
  cluster.primary = 1;
  // On disks of their own, since the old ones have what the engine lost.
  for (const name of NAMES) await cluster.start(name, { wait: false, data: `${cluster.base}/${name}.new` });
  const ended = () => [...cluster.nodes.values()].filter((server) => server.exit || /knows less than it has acknowledged/.test(server.output)).length;
  let wrong = [];
  await until(() => ended() > 0 || [...cluster.nodes.values()].every((server) => server.url), "nodes find it, or serve");
  if (!ended()) {
    const finals = new Map();
    for (const object of OBJECTS) {
      // A shard whose log was cut is nobody's without the old disks.
      const answer = await cluster.ask(`/all/${object}`, { limit: 20_000 }).catch(() => null);
      if (answer) finals.set(object, answer.value);
    }
    wrong = history.check(finals);
  }
  t.diagnostic(`the control: ${ended()} nodes ended, ${wrong.length} wrong answers`);
  assert.ok(ended() > 0 || wrong.length > 0);
});

test("how soon another node acknowledges writes: told, not judged", { skip: absent, timeout: 600_000 }, async (t) => {
  const cluster = await Cluster.make(t);
  for (const name of NAMES) await cluster.start(name);
  let number = 0;
  const measure = async (what, hurt, heal) => {
    const times = [];
    for (let i = 0; i < 4; i++) {
      await cluster.whole();
      const { node } = await cluster.ask(`/add/x/${++number}`);
      const from = performance.now();
      await hurt(node);
      await cluster.ask(`/add/x/${++number}`, { order: NAMES.filter((name) => name !== node || what === "promoted"), timeout: 10_000 });
      times.push(Math.round(performance.now() - from));
      await heal(node);
    }
    t.diagnostic(`${what}: first durable write after ${times.join(", ")} ms`);
  };
  const signal = (name) => (node) => cluster.nodes.get(node).signal(name);
  await measure("killed", signal("SIGKILL"), async (node) => (await cluster.nodes.get(node).exited, cluster.start(node)));
  await measure("frozen", signal("SIGSTOP"), signal("SIGCONT"));
  await measure("stopped in order", signal("SIGTERM"), async (node) => (await cluster.nodes.get(node).exited, cluster.start(node)));
  await measure("promoted", () => cluster.promote(), () => {});
});
