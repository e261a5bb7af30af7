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
  const slow = []; // [when, for how long, tries] of calls that took more than a moment
  const usual = [];
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
      const ms = performance.now() - from;
      usual.push(ms);
      if (tries) slow.push({ at: from, ms, tries });
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  };
  const clients = objects.map(client);

  const pauses = [];
  for (let i = 0; i < MOVES; ) {
    const rows = (await cluster.command("shards")).stdout.trim().split("\n").slice(1).map((row) => row.split(/ {2,}/));
    const [shard, owner, , , replicas] = rows[(i * 5) % rows.length];
    const to = replicas?.split(", ").find((name) => name !== owner && NAMES.includes(name));
    i++;
    if (!to) continue;
    const from = performance.now();
    const moved = await cluster.command("move", shard, to);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const during = slow.filter((call) => call.at > from).map((call) => call.ms);
    if (moved.code === 0 && during.length) pauses.push(Math.max(...during));
  }
  over = true;
  await Promise.all(clients);
  const of = (list, q) => list.sort((x, y) => x - y)[Math.min(list.length - 1, Math.floor(list.length * q))]?.toFixed(0);
  t.diagnostic(`${pauses.length} moves seen by clients: pause p50 ${of(pauses, 0.5)} ms, p99 ${of(pauses, 0.99)} ms; a usual call p50 ${of(usual, 0.5)} ms, p99 ${of(usual, 0.99)} ms, of ${usual.length}`);
  assert.ok(pauses.length > 0);
  for (const object of objects) {
    const there = new Set((await cluster.ask(`/all/${object}`)).value);
    for (const value of acknowledged.get(object)) assert.ok(there.has(value), `${object}: ${value}`);
  }
});
