// Code goes on in its own turn, whoever settles what it waited for. Objects on one lane share a thing
// at module level (test/stress/turns/); each waits for it, goes on in its own way, and then writes,
// logs and looks at its AsyncLocalStorage value. T1: every acknowledged write is there after kill -9,
// in its own object and in no other. T2: every line of the log names its own object and request. T3:
// the AsyncLocalStorage value is its own.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Rig, checkDump, checkLog, evicted } from "../../stress/turns/rig.mjs";

const OBJECTS = 5;
const cellOf = (op) => op.split(" ")[0];

for (const [lanes, hooks] of [[1, false], [2, false], [1, true], [2, true]]) {
  test(`ways to go on, ${lanes} lanes, ${hooks ? "with" : "without"} node:async_hooks`, async (t) => {
    const rig = new Rig({ lanes, hooks, idle: 10_000 }); // nobody is evicted: of the objects, some serve others
    t.after(() => rig.end());
    await rig.start();
    const { ways, foreign } = await rig.post("/ready");
    const all = [...ways, ...foreign];
    const faults = all.map(() => []);
    const acknowledged = new Map();
    await Promise.all(all.flatMap((way, w) => Array.from({ length: OBJECTS }, async (_, i) => {
      const cell = `c${w}-${i}`, op = `${cell} ${w}`;
      try {
        const answer = await rig.post(`/run/${cell}/${encodeURIComponent(way)}`, { op, group: way, by: i % 2 ? "fetch" : "rpc" });
        if (answer.op !== op || answer.name !== cell) faults[w].push(`${op} got the answer of ${answer.op} by ${answer.name}`);
        faults[w].push(...answer.faults);
        acknowledged.set(cell, [op]);
      } catch (error) {
        faults[w].push(`${op}: ${error.message}`);
      }
    })));
    await rig.kill();
    await rig.start();
    await Promise.all(all.flatMap((_, w) => Array.from({ length: OBJECTS }, async (_, i) => {
      const cell = `c${w}-${i}`;
      checkDump(await rig.post(`/dump/${cell}`), cell, acknowledged.get(cell) ?? [], cellOf, (text) => faults[w].push(text));
    })));
    checkLog(rig.log(), cellOf, (text, op) => {
      const w = Number(op.split(" ")[1]);
      if (w < ways.length) faults[w].push(text);
    });
    for (const [w, way] of all.entries()) {
      const suite = w < ways.length ? "ways" : "foreign";
      await t.test(`${suite}: ${way}`, () => assert.deepEqual(faults[w].slice(0, 3), []));
    }
  });
}

describe("after eviction", () => {
  let rig;
  before(async () => {
    rig = new Rig({ idle: 15 });
    await rig.start();
  });
  after(() => rig.end());
  for (const way of ["await a shared promise", "a lock made of a chain of promises", "a semaphore of two, left in finally"]) {
    test(`ways: evicted: ${way}`, async () => {
      const cells = Array.from({ length: 6 }, (_, i) => `${way.length}-${i}`);
      const answers = await Promise.all(cells.map((cell) => rig.post(`/run/${cell}/${encodeURIComponent(way)}`, { op: `${cell} x`, group: way })));
      assert.deepEqual(answers.map((answer) => answer.name), cells);
      await evicted(rig);
      for (const cell of cells) {
        const dump = await rig.post(`/dump/${cell}`);
        assert.deepEqual(dump.marks, [`${cell} x`]);
      }
    });
  }
});
