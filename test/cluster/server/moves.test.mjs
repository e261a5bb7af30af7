// Planned moves of shards under load: nothing is lost, and for how long clients of the shard wait. The times are told, not judged.
// CLUSTER_MOVES says how many.
import assert from "node:assert/strict";
import test from "node:test";
import { Cluster } from "./cluster.mjs";
import { absent } from "./postgres.mjs";

const MOVES = Number(process.env.CLUSTER_MOVES ?? 20);
const NAMES = ["a", "b", "c"];

test("a shard that moves under load pauses briefly, and every acknowledged write is there", { skip: absent, timeout: 900_000 }, async (t) => {
  const cluster = await Cluster.make(t);
  for (const name of NAMES) await cluster.start(name);
  await cluster.whole(2);
  const objects = Array.from({ length: 8 }, (_, i) => `m${i}`);
  const acknowledged = new Map(objects.map((object) => [object, []]));
  const calls = []; // when, for how long, and how often it was refused before
  let over = false;

  const client = async (object, number) => {
    let node = NAMES[number % 3];
    for (let i = 0; !over; i++) {
      const from = performance.now();
      let tries = 0;
      for (; !over; tries++) {
        const { status, owner } = await cluster.try(node, `/add/${object}/${i}`, 30_000);
        if (status === 200) break;
        const named = owner?.split(" ")[0];
        node = named && named !== node ? named : NAMES[(NAMES.indexOf(node) + 1) % 3];
      }
      if (over) break;
      acknowledged.get(object).push(String(i));
      calls.push({ at: from, ms: performance.now() - from, tries });
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  };
  const clients = objects.map(client);

  const pauses = []; // of each move the longest call that met it
  for (let i = 0; i < MOVES; ) {
    const rows = (await cluster.command("shards")).stdout.trim().split("\n").slice(1).map((row) => row.split(/ {2,}/));
    const [shard, owner, , , replicas] = rows[(i * 5) % rows.length];
    const to = replicas?.split(", ").find((name) => name !== owner && NAMES.includes(name));
    i++;
    if (!to) continue;
    const from = performance.now();
    const moved = await cluster.command("move", shard, to);
    await new Promise((resolve) => setTimeout(resolve, 300));
    if (moved.code === 0) pauses.push(Math.max(...calls.filter((call) => call.at + call.ms > from).map((call) => call.ms)));
  }
  over = true;
  await Promise.all(clients);
  const of = (list, q) => list.sort((x, y) => x - y)[Math.min(list.length - 1, Math.floor(list.length * q))]?.toFixed(0);
  const all = calls.map((call) => call.ms);
  t.diagnostic(`${pauses.length} moves, the longest call during each: p50 ${of(pauses, 0.5)} ms, p99 ${of(pauses, 0.99)} ms; all calls p50 ${of(all, 0.5)} ms, p99 ${of(all, 0.99)} ms, of ${all.length}, ${calls.filter((call) => call.tries).length} of them refused first`);
  assert.ok(pauses.length > 0);
  for (const object of objects) {
    const there = new Set((await cluster.ask(`/all/${object}`)).value);
    for (const value of acknowledged.get(object)) assert.ok(there.has(value), `${object}: ${value}`);
  }
});
