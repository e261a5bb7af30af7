// The short form of `make stress`: the promises hold at random, and the check finds what breaks them.
import assert from "node:assert/strict";
import test from "node:test";
import { stress } from "../../stress/objects.mjs";

for (const lanes of [1, 2]) {
  test(`random calls, evictions and kills, ${lanes} lanes: nothing lost, torn, reordered or interleaved`, async (t) => {
    const { seed, faults, acknowledged } = await stress({ seconds: 3, lanes });
    t.diagnostic(`seed ${seed}, ${acknowledged} acknowledged`);
    assert.deepEqual(faults.slice(0, 5), [], `seed ${seed}`);
    assert.ok(acknowledged >= 100, `only ${acknowledged} calls were acknowledged`);
  });
}

for (const [plant, found] of [["gate", /read gave|numbers are not|counter says/], ["tear", /torn transaction/], ["lose", /was acknowledged as/]]) {
  test(`the check finds a planted fault: ${plant}`, async () => {
    const { seed, faults } = await stress({ seconds: 1, kills: 1, plant });
    assert.match(faults.join("\n"), found, `seed ${seed}`);
  });
}
