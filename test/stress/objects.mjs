// A randomized check of what Durable Objects promise (docs/understand/durability.md): many clients call many
// objects at random, with awaits inside, while idle objects are evicted within milliseconds, others
// are reset, and the server is killed (SIGKILL) and started again on its data. Recorded: every call,
// when it began and ended, and what it answered. Then:
//
// P1  No acknowledged write is lost: its note is there, with the number that was answered.
// P2  Nothing is half there: a counter is the number of its notes; the sum of a pair never changes.
// P3  Counters are linearizable: numbers are distinct, and their order does not contradict the order
//     of calls of which one had ended before the other began; reads fit in between.
// P4  Nothing comes between what a gate protects: sections, transactions, awaited storage operations.
// P5  One instance: what an object has in memory is what is stored, at every event.
//
//     node test/stress/objects.mjs [--seconds 30] [--lanes 2] [--seed N] [--language c] [--plant gate|tear|lose]
//
// The objects are class Cell of worker.js, or, with `--language c`, that of test/module/cell.c: all the rest is the same.
// The seed decides what the clients do, not how threads are scheduled. `--plant` breaks a promise on
// purpose; the check must find it.
import { mkdirSync, readFileSync, readdirSync, statSync, truncateSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import http from "node:http";
import { compile } from "../integration/lib/module.mjs";
import { project, serve, tempDir } from "../integration/lib/server.mjs";
import { random, seedOfRun } from "../lib/random.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const CLIENTS = 24, CELLS = 40;

/** A running server that can be killed and started again on the same data. */
class Rig {
  constructor({ lanes, plant, language }) {
    const inC = language === "c", class_name = inC ? "cell:Cell" : "Cell";
    this.dir = project({
      "worker.js": readFileSync(path.join(here, "worker.js"), "utf8"),
      "wrangler.json": JSON.stringify({
        name: "stress", main: "worker.js", compatibility_date: "2026-01-01", vars: { PLANT: plant ?? "" },
        durable_objects: { bindings: [{ name: "CELL", class_name }] },
        migrations: [{ tag: "v1", new_sqlite_classes: [class_name] }],
        cairn: { limits: { object_idle_ms: 15 }, ...(inC && { modules: { cell: "cell.so" } }) },
      }),
    });
    if (inC) compile("test/module/cell.c", path.join(this.dir, "cell.so"));
    this.lanes = lanes;
    this.data = path.join(tempDir(), "data");
    mkdirSync(this.data);
    this.acknowledged = 0;
    this.agent = new http.Agent({ keepAlive: true, maxSockets: CLIENTS });
  }
  async start() {
    this.server = await serve(this.dir, { lanes: this.lanes, data: this.data });
    this.up = true;
  }
  async kill() {
    this.up = false;
    await this.server.kill();
  }
  /** {value, faults} or {error}; rejects if the server was killed meanwhile. */
  call(cell, method, args) {
    return new Promise((resolve, reject) => {
      const target = `/${cell}/${method}?args=${encodeURIComponent(JSON.stringify(args))}`;
      http.get({ host: "127.0.0.1", port: this.server.port, path: target, agent: this.agent, timeout: 20_000 }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part) => { text += part; }).on("error", reject);
        response.on("aborted", () => reject(new Error("aborted")));
        response.on("end", () => {
          try {
            resolve(JSON.parse(text));
          } catch {
            reject(new Error(`not an answer: ${text}`));
          }
        });
      }).on("error", reject).on("timeout", function () { this.destroy(new Error("no answer within 20 s")); });
    });
  }
}

const METHODS = ["incSync", "incAsync", "incSection", "incTransaction", "incAndWait"];

/** One operation of a client, chosen by its random numbers: what is called, and on which cell it counts. */
function choose(next, op) {
  const cell = `cell${Math.floor(next() ** 2 * CELLS)}`; // some are busy, others mostly idle
  const method = METHODS[Math.floor(next() * METHODS.length)];
  const what = next();
  if (what < 0.5) return { cell, counts: cell, method, args: [op, method === "incTransaction" && next() < 0.3] };
  if (what < 0.62) {
    const other = `cell${Math.floor(next() * CELLS)}`;
    return { cell, counts: other, method: "relay", args: [op, other, method === "incTransaction" ? "incSync" : method] };
  }
  if (what < 0.8) return { cell, counts: cell, method: "read", args: [], reads: true };
  if (what < 0.98) return { cell, method: "move", args: [Math.floor(next() * 10), next() < 0.2] };
  return { cell, method: "reset", args: [] };
}

async function client(rig, id, seed, goesOn, history, faults) {
  const next = random(seed * 1000 + id);
  for (let i = 0; goesOn(); i++) {
    while (!rig.up) await new Promise((resolve) => setTimeout(resolve, 5));
    const op = `${id}.${i}`;
    const chosen = choose(next, op);
    const entry = { ...chosen, op, begin: performance.now(), end: Infinity, value: undefined };
    history.push(entry);
    try {
      const { value, faults: found, error } = await rig.call(chosen.cell, chosen.method, chosen.args);
      if (found?.length) faults.push(...found.map((fault) => `${chosen.cell}: ${fault}`));
      entry.error = error;
      if (error === undefined) {
        entry.end = performance.now();
        rig.acknowledged++;
        entry.value = value;
      }
    } catch (error) {
      if (rig.up && error.message.startsWith("no answer")) faults.push(`${op} ${chosen.method}: ${error.message}`);
      entry.error = "the server was killed";
    }
  }
}

/** Cuts the end off the log: what a disk does that did not keep what it said it had. */
function loseEnd(data) {
  const folder = path.join(data, "log");
  const segments = readdirSync(folder).filter((name) => name.endsWith(".seg")).map((name) => path.join(folder, name)).sort();
  const last = segments.at(-1);
  const bytes = readFileSync(last);
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--; // segments are preallocated
  const { size } = statSync(last);
  truncateSync(last, Math.max(4096, end - 60_000));
  truncateSync(last, size);
}

/** P1 to P3 for one cell: `incs` and `reads` of the history, `stored` {n, ops}. */
export function verify(cell, incs, reads, stored, faults) {
  const fail = (text) => faults.push(`${cell}: ${text}`);
  const notes = new Map(stored.ops);
  if (stored.n !== notes.size) fail(`the counter says ${stored.n}, there are ${notes.size} notes`);
  const numbers = [...notes.values()].sort((a, b) => a - b);
  if (numbers.some((n, i) => n !== i + 1)) fail("its numbers are not 1, 2, 3, ...");
  const known = new Set(incs.map((entry) => entry.op));
  for (const op of notes.keys()) if (!known.has(op)) fail(`the note ${op} is nobody's`);
  const done = [];
  for (const entry of incs) {
    const n = notes.get(entry.op);
    if (entry.end < Infinity && n !== entry.value) {
      fail(`${entry.op} (${entry.method}) was acknowledged as ${entry.value}, stored is ${n ?? "nothing"}`);
    } else if (entry.error === "meant to fail" && n !== undefined) {
      fail(`${entry.op} failed and was rolled back, but is stored as ${n}`);
    } else if (n !== undefined) {
      done.push({ ...entry, n });
    }
  }
  done.sort((a, b) => a.n - b.n);
  let latest = null; // of those before: the one that began last
  for (const entry of done) {
    if (latest !== null && entry.end < latest.begin) fail(`${entry.op} got ${entry.n} and had ended when ${latest.op}, which got ${latest.n}, began`);
    if (latest === null || entry.begin > latest.begin) latest = entry;
  }
  for (const read of reads) {
    for (const entry of done) {
      if (entry.end < read.begin && entry.n > read.value) fail(`a read gave ${read.value} after ${entry.op} had got ${entry.n}`);
      if (entry.begin > read.end && entry.n <= read.value) fail(`a read gave ${read.value} before ${entry.op}, which got ${entry.n}, began`);
    }
  }
}

/**
 * Runs the check for so many seconds, and on a slow machine (up to ten times) longer, until `least`
 * calls were acknowledged; resolves { seed, faults, calls, acknowledged, kills }.
 */
export async function stress({ seconds = 30, least = 500, lanes = 1, language = "js", seed = seedOfRun(), plant, kills = Math.max(1, Math.floor(seconds / 2)) } = {}) {
  const rig = new Rig({ lanes, plant, language });
  const history = [], faults = [];
  await rig.start();
  try {
    const until = Date.now() + seconds * 1000;
    const goesOn = () => Date.now() < until || (rig.acknowledged < least && Date.now() < until + seconds * 9000);
    const clients = Array.from({ length: CLIENTS }, (_, id) => client(rig, id, seed, goesOn, history, faults));
    const next = random(seed);
    for (let i = 1; i <= kills; i++) {
      const at = until - seconds * 1000 * (1 - (i - next() * 0.5) / (kills + 0.5));
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, at - Date.now())));
      await rig.kill();
      if (plant === "lose") loseEnd(rig.data);
      await rig.start();
    }
    await Promise.all(clients);
    for (let i = 0; i < CELLS; i++) {
      const cell = `cell${i}`;
      const { value: stored, error } = await rig.call(cell, "all", []);
      if (error !== undefined) {
        faults.push(`${cell}: ${error}`);
        continue;
      }
      faults.push(...stored.faults.map((fault) => `${cell}: ${fault}`));
      verify(cell, history.filter((e) => e.counts === cell && !e.reads), history.filter((e) => e.cell === cell && e.reads && e.end < Infinity), stored, faults);
    }
  } finally {
    rig.agent.destroy();
    await rig.kill();
  }
  return { seed, faults, kills, calls: history.length, acknowledged: rig.acknowledged };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = (name, otherwise) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? otherwise : process.argv[at + 1];
  };
  const plant = option("plant");
  const seed = option("seed");
  const lanes = option("lanes")?.split(",").map(Number) ?? [1, 2];
  let bad = false;
  for (const count of lanes) {
    const result = await stress({ seconds: Number(option("seconds", 30)), lanes: count, plant, language: option("language"), ...(seed && { seed: Number(seed) }) });
    console.log(`lanes ${count}, seed ${result.seed}: ${result.calls} calls, ${result.acknowledged} acknowledged, ${result.kills} kills, ${result.faults.length} faults`);
    for (const fault of result.faults.slice(0, 20)) console.log(`  ${fault}`);
    bad ||= result.faults.length > 0;
  }
  process.exit(bad ? 1 : 0);
}
