// An engine that stalls holds up who waits for it, and no lane: base/block.h, O8 and O9 of object/object.h.
import assert from "node:assert/strict";
import test from "node:test";
import { Cluster } from "./cluster.mjs";
import { absent } from "./postgres.mjs";

const options = { skip: absent, timeout: 600_000 };

test("a class that is used for the first time while the engine stalls waits alone", options, async (t) => {
  const cluster = await Cluster.make(t);
  const server = await cluster.start("a");
  await cluster.ask("/add/x/before");
  for (const engine of cluster.engines) engine.freeze(true);
  const firsts = ["/put/k/v", "/insert/r", "/send/m"].map((path) => cluster.try("a", path, 120_000)); // each a class that no shard has seen
  for (let i = 0; i < 40; i++) { // more connections than lanes
    const answer = await cluster.try("a", "/id/x", 60_000);
    assert.equal(answer.status, 200, `plain requests are answered: ${JSON.stringify(answer)}`);
  }
  for (const engine of cluster.engines) engine.freeze(false);
  await Promise.all(firsts); // answered, or refused as away: never lost in between
  await server.untilTrue(async () => (await cluster.try("a", "/put/k/w", 60_000)).status === 200, "the class serves");
  assert.equal((await cluster.ask("/get/k")).value, "w");
  assert.deepEqual((await cluster.ask("/all/x")).value, ["before"]);
});
