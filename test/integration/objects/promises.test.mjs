// Many clients call many objects at random, objects are evicted, reset and the server killed meanwhile:
// no acknowledged write is lost, nothing is torn, counters are linear, nothing comes into a section.
// CAIRN_TEST_SEED repeats the choices (not the timing).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { project, serve, tempDir } from "../lib/server.mjs";

const OBJECTS = 12;
const CLIENTS = 24;
const CALLS = 1500; // of all clients together, with each number of lanes
const KILLS = 2;

const dir = project({
  "wrangler.toml": `name = "promises"
main = "index.js"
compatibility_date = "2026-04-21"
[cairn.limits]
object_idle_ms = 10
[[durable_objects.bindings]]
name = "CELL"
class_name = "Cell"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Cell"]
`,
  "index.js": readFileSync(new URL("promises.js", import.meta.url), "utf8"),
});

const seed = Number(process.env.CAIRN_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
function randomFrom(state) {
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

for (const lanes of [1, 2]) {
  test(`promises hold with ${lanes} lane${lanes > 1 ? "s" : ""} (CAIRN_TEST_SEED=${seed})`, async () => {
    const data = tempDir();
    let server = await serve(dir, { lanes, data });
    const names = Array.from({ length: OBJECTS }, (_, i) => `cell${i}`);
    const acknowledged = new Map(names.map((name) => [name, new Map()])); // name -> n -> token
    const sent = new Set();
    let made = 0, restarting = null;

    const call = async (...parts) => {
      const response = await server.fetch("/", { method: "POST", body: JSON.stringify(parts) });
      const answer = await response.json();
      assert.ok(!answer.error?.startsWith("BROKEN"), `${answer.error} (${JSON.stringify(parts)})`);
      return answer;
    };
    const client = async (random) => {
      const pick = (list) => list[Math.floor(random() * list.length)];
      while (made < CALLS) {
        const token = `t${++made}`;
        if (made % Math.floor(CALLS / (KILLS + 1)) === 0 && restarting === null) {
          server.signal("SIGKILL");
          restarting = server.exited.then(async () => { server = await serve(dir, { lanes, data }); restarting = null; });
        }
        if (restarting !== null) await restarting;
        const name = pick(names);
        const chance = random();
        sent.add(token);
        try {
          const counted = chance < 0.45 ? ["increment", token] : chance < 0.6 ? ["guarded", token] : chance < 0.7 ? ["other", pick(names), token] : null;
          const answer = counted !== null ? await call(name, ...counted) : chance < 0.85 ? await call(name, "both", random() < 0.5) : chance < 0.97 ? await call(name, "wait", Math.floor(random() * 20)) : await call(name, "abort");
          if (counted === null || answer.value === undefined) continue;
          const of = acknowledged.get(counted[0] === "other" ? counted[1] : name);
          assert.ok(!of.has(answer.value), `${name}: ${answer.value} was given twice, to ${of.get(answer.value)} and ${token}`);
          of.set(answer.value, token);
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error;
          if (restarting !== null) await restarting; // the server was killed under the call
        }
      }
    };
    try {
      await Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(randomFrom(seed + i))));
      if (restarting !== null) await restarting;
      let total = 0;
      for (const name of names) {
        const { value: history, error } = await call(name, "history");
        assert.ok(history, error);
        history.forEach(([n, token], i) => {
          assert.equal(n, i + 1, `${name} has a gap`);
          assert.ok(sent.has(token), `${name} has a write that nobody sent`);
        });
        assert.equal(new Set(history.map(([, token]) => token)).size, history.length, `${name} has a write twice`);
        for (const [n, token] of acknowledged.get(name)) assert.equal(history[n - 1]?.[1], token, `${name} lost the acknowledged write ${n}`);
        total += acknowledged.get(name).size;
      }
      assert.ok(total > CALLS / 4, `only ${total} writes were acknowledged`);
    } finally {
      await server.stop();
    }
  });
}
