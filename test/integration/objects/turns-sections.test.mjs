// DO-CTX-3 blockConcurrencyWhile: nothing else of the object runs while a section waits, whatever it
// waits for, whatever was awaited before, and whoever else wants to enter. Counters whose sections
// read, wait and write in memory end exact.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Rig } from "../../stress/turns/rig.mjs";

const CALLS = 8;
const BEFORE = ["nothing", "json", "text", "timer", "kv", "rpc", "fetch", "shared", "storage", "section", "lent"];

for (const [lanes, hooks] of [[1, false], [2, true]]) {
  test(`sections, ${lanes} lanes, ${hooks ? "with" : "without"} node:async_hooks`, async (t) => {
    const rig = new Rig({ lanes, hooks, idle: 10_000 });
    t.after(() => rig.end());
    await rig.start();
    const { waits } = await rig.post("/ready");
    const results = new Map();
    const calls = BEFORE.flatMap((before) => waits.filter((inside) => inside !== "lent" || before === "nothing").map((inside) => async () => {
      const cell = `${before} ${inside}`.replaceAll(" ", "-");
      const answers = await Promise.all(Array.from({ length: CALLS }, (_, i) =>
        rig.post(`/count/${cell}`, { op: `${cell} ${i}`, before, inside }).catch((error) => ({ faults: [error.message] }))));
      const { n, faults } = await rig.post(`/dump/${cell}`);
      results.set(cell, {
        n, numbers: answers.map((answer) => answer.value).sort((a, b) => a - b), faults: [...answers.flatMap((answer) => answer.faults), ...faults].slice(0, 3),
      });
    }));
    // A few counters at a time: they share the lane, not their objects.
    await Promise.all(Array.from({ length: 4 }, async () => {
      for (let next; (next = calls.shift()); ) await next();
    }));
    const expected = { n: CALLS, numbers: Array.from({ length: CALLS }, (_, i) => i + 1), faults: [] };
    // Functions that a section lends are called in it.
    for (const [before, insides, name] of [...BEFORE.map((each) => [each, waits.filter((inside) => inside !== "lent"), `after ${each}`]), ["nothing", ["lent"], "a call of a function that it has lent"]]) {
      await t.test(`sections: ${name}`, () => {
        for (const inside of insides) assert.deepEqual(results.get(`${before} ${inside}`.replaceAll(" ", "-")), expected, `waiting for ${inside}`);
      });
    }
  });
}

test("sections: 25 requests with a body, as they come", async (t) => {
  const rig = new Rig();
  t.after(() => rig.end());
  await rig.start();
  for (const inside of ["timer", "kv", "rpc"]) {
    await Promise.all(Array.from({ length: 25 }, (_, i) => rig.post(`/count/${inside}`, { op: `${inside} ${i}`, before: "json", inside })));
    assert.equal((await rig.post(`/dump/${inside}`)).n, 25, inside);
  }
});
