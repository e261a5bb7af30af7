// A few rounds of `make full` and of `make kills`: no answer is wrong, neither way.
import assert from "node:assert/strict";
import { test } from "node:test";
import { mountDisk, runFull } from "../../load/full.mjs";
import { runKills } from "../../load/kills.mjs";
import { alone } from "../lib/differences.mjs";
import { deployed } from "../lib/server.mjs";

test("a full disk: what is acknowledged is there, what is refused is not", { ...alone("disk") }, async (t) => {
  const mount = deployed ? null : mountDisk();
  if (mount === null) return t.skip("a tmpfs needs root, and a project of its own");
  const seed = 7;
  const { wrong, acknowledged, refused } = await runFull(mount, { rounds: 5, seed });
  assert.deepEqual(wrong, [], `seed ${seed}`);
  assert.ok(acknowledged > 0 && refused > 0, `seed ${seed}: ${acknowledged} acknowledged, ${refused} refused`);
});

test("kill -9: what is acknowledged is there, what is refused is not", { ...alone("disk") }, async (t) => {
  if (deployed) return t.skip("a project of its own");
  const { wrong, acknowledged } = await runKills({ rounds: 5, seed: 7 });
  assert.deepEqual(wrong, []);
  assert.ok(acknowledged > 0);
  const planted = await runKills({ rounds: 1, seed: 7, plant: true });
  assert.match(planted.wrong.join(), /^L1: kv\/i\d+ is not there/);
});
