// The short form of `make stress`: the promises hold at random, and the check finds what breaks them.
import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { alone } from "../lib/differences.mjs";
import { stress } from "../../stress/objects.mjs";
import { stressTurns } from "../../stress/turns.mjs";

for (const [language, lanes] of [["js", 1], ["js", 2], ["c", 1], ["c", 2]]) {
  test(`random calls, evictions and kills, objects in ${language}, ${lanes} lanes: nothing lost, torn, reordered or interleaved`, async (t) => {
    const { seed, faults, acknowledged } = await stress({ seconds: 3, lanes, language });
    t.diagnostic(`seed ${seed}, ${acknowledged} acknowledged`);
    assert.deepEqual(faults.slice(0, 5), [], `seed ${seed}`);
    assert.ok(acknowledged >= 100, `only ${acknowledged} calls were acknowledged`);
  });
}

const PLANTED = [["gate", "js", /read gave|numbers are not|counter says/], ["tear", "js", /torn transaction/], ["lose", "js", /was acknowledged as/], ["lose", "c", /was acknowledged as/]];
for (const [plant, language, found] of PLANTED) {
  test(`the check finds a planted fault: ${plant}, objects in ${language}`, plant === "lose" ? alone("disk") : {}, async () => {
    let last;
    for (let i = 0; i < 10; i++) { // a busy machine gets little done in a second
      last = await stress({ seconds: 1, kills: 1, plant, language });
      if (found.test(last.faults.join("\n"))) return;
    }
    assert.match(last.faults.join("\n"), found, `seed ${last.seed}`);
  });
}

const texts = (faults) => faults.slice(0, 5).map(({ kind, text }) => `${kind}: ${text}`);

for (const [lanes, hooks] of [[1, false], [2, true]]) {
  test(`what objects share, at random, under evictions, reloads, resets and a kill, ${lanes} lanes, ${hooks ? "with" : "without"} node:async_hooks`, async (t) => {
    const { seed, faults, counts } = await stressTurns({ seconds: 10, lanes, hooks });
    t.diagnostic(`seed ${seed}, ${JSON.stringify(counts)}`);
    assert.deepEqual(texts(faults), [], `seed ${seed}`);
    assert.ok(counts.acknowledged >= 20, `only ${counts.acknowledged} calls were acknowledged`);
  });
}

describe("the check of what objects share finds a planted fault", { concurrency: 2 }, () => {
  for (const [plant, kinds, found] of [
    ["lose", ["run"], /lost: .* was acknowledged and is lost/], ["cross", ["run"], /foreign: .* has /], ["section", ["count"], /section: .* two in one section|counter: /],
    ["log", ["run"], /log: the line .* is logged as of the object/], ["socket", ["tell"], /socket: .* has not heard it/],
  ]) {
    test(plant, async () => {
      const run = await stressTurns({ seconds: 60, until: found, plant, kinds, quiet: ["reload", "reset", "kill"] });
      assert.ok(run.found(), `seed ${run.seed}, ${JSON.stringify(run.counts)}, ${texts(run.faults)}`);
    });
  }
});
