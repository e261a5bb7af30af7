// A randomized check that code runs in its own turn: objects, requests, two workers and all lanes
// share promises, locks, queues, streams, timers and functions at module level (test/stress/turns/),
// so that nearly everything is settled in the turn of somebody else, while idle objects are evicted
// within milliseconds, the code is reloaded (SIGHUP), objects are reset and the server is killed
// (SIGKILL) and started again on its data. Everything that is asked for is recorded. Then:
//
// T1  Every acknowledged write is there after the kill, in its own object and in no other.
// T2  Every line of the log names the object and the request that wrote it.
// T3  The AsyncLocalStorage value is the operation's own.
// T4  Nothing comes between what blockConcurrencyWhile protects: counters are exact.
// T5  Every answer and every WebSocket message reaches the one it is for; what was told is heard.
// T6  Nothing hangs, and the server does not end.
//
//     node test/stress/turns.mjs [--seconds 60] [--lanes 1,2] [--seed N] [--hooks off,on] [--sync MS]
//         [--ways PATTERN] [--quiet reload,kill,reset,sockets] [--kinds run,count,...] [--plant lose|cross|section|log|socket] [--all]
//
// The seed decides what the clients do, not how threads are scheduled. `--sync` makes the disk slow,
// `--ways` takes only ways whose name has it, `--quiet` leaves something out, `--kinds` asks for nothing else,
// `--all` prints every fault, `--plant` breaks a promise on purpose, which must be found.
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";
import { random, seedOfRun } from "../lib/random.mjs";
import { verify } from "./objects.mjs";
import { Rig, checkDump, checkLog } from "./turns/rig.mjs";

const CLIENTS = 24, SOCKETS = 6, CELLS = 30, RESETS = 3, ERA_MS = 5000;
const BEFORE = ["nothing", "json", "text", "timer", "kv", "rpc", "fetch", "shared", "storage", "section", "lent", "crypto"];

/** What the server may answer to what was under way when the code was reloaded, */
const RELOADED = /reset because its code was updated|was reset; its storage cannot be used|RPC stub|disposed|never be settled|code was updated|shutting down|no longer/i;
/** to what an object that is reset was asked, */
const RESET = /meant to reset|was reset; its storage cannot be used/;
/** to whoever waited for others while an object was reset, for microtasks that were left are lost with its turn, */
const LOST = /what it waited for was lost|\(503\): What the request waited for was lost/;
/** and to the use of an object's ctx when that instance has left memory. Everything else is a fault. */
const GONE = /was reset; its storage cannot be used|has left memory/;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const cellOf = (op) => op.split(" ")[0];

class Run {
  constructor({ seed, lanes, hooks, sync, ways = "", quiet = [], kinds = [], plant = "", until = null }) {
    Object.assign(this, { seed, quiet, kinds, until, waysPattern: ways });
    this.rig = new Rig({ lanes, hooks, sync, connections: CLIENTS * 2, extra: { vars: { PLANT: plant } } });
    this.faults = []; // {kind, text}
    this.errors = new Map(); // message -> count
    this.era = 0; // between two kills; each has objects of its own
    this.counts = { calls: 0, acknowledged: 0, kills: 0, reloads: 0, messages: 0 };
    this.reloading = 0;
    this.pausing = false; // nobody asks for more
    this.under = 0; // calls and WebSockets under way
    this.begin();
  }
  begin() {
    this.written = new Map(); // cell -> [operations whose writes were acknowledged]
    this.outside = []; // {cell, op} written on its ctx from elsewhere, acknowledged
    this.counted = new Map(); // cell -> history for verify()
    this.sockets = [];
    this.left = new Set(); // operations that were asked for on a socket which has closed and did not keep its object
  }
  /** Whether objects are reset in this era. */
  get resets() {
    return !this.quiet.includes("reset") && this.era % 3 !== 1;
  }
  /** Whether it ends when everything has been answered, and not in the middle, so that what hangs is seen (T6). */
  get drains() {
    return this.quiet.includes("kill") || this.era % 3 !== 0;
  }
  fault(kind, text) {
    this.faults.push({ kind, text });
  }
  /** Whether the fault is there that this run is for. */
  found() {
    return this.until !== null && this.faults.some(({ kind, text }) => this.until.test(`${kind}: ${text}`));
  }
  cell(i) {
    return `e${this.era}c${i}`;
  }

  async start() {
    await this.rig.start();
    this.rig.up = false;
    const { server } = this.rig;
    void server.exited.then(({ code, signal }) => {
      if (this.rig.up) this.fault("ended", `the server ended (${code ?? signal}): ${server.stderr.split("\n").filter((line) => !line.startsWith("{")).slice(-15).join("\n")}`);
    });
    const ready = await this.rig.post("/ready");
    const wanted = (list) => list.filter((name) => name.includes(this.waysPattern) && !ready.loops.includes(name));
    this.ways = wanted([...ready.ways, ...ready.foreign]);
    this.foreign = new Set(ready.foreign);
    this.waits = ready.waits.filter((name) => name !== "lent");
    this.outsides = ready.outside;
    this.rig.up = true;
  }

  /** One operation, chosen at random: {kind, cell, op, target, body}. */
  choose(next, op) {
    const pick = (list) => list[Math.floor(next() * list.length)];
    const cell = this.cell(Math.floor(next() ** 1.5 * CELLS));
    const name = `${cell} ${op}`;
    const what = next();
    if (what < 0.62) {
      const way = pick(this.ways);
      return { kind: this.foreign.has(way) ? "foreign" : "run", way, cell, op: name, target: `/run/${cell}/${encodeURIComponent(way)}`, body: { op: name, group: `${way} ${Math.floor(next() * 2)}`, by: pick(["rpc", "fetch"]) } };
    }
    if (what < 0.82) {
      const counter = this.cell(Math.floor(next() * 8)); // few, so that many meet
      const before = pick(BEFORE), inside = pick(this.waits);
      return { kind: "count", way: `${before}, then ${inside} in a section`, cell: counter, op: `${counter} ${op}`, target: `/count/${counter}`, body: { op: `${counter} ${op}`, before, inside } };
    }
    if (what < 0.9) {
      const how = pick(this.outsides), other = this.cell(Math.floor(next() * CELLS));
      const by = next() < 0.5 ? { target: `/outside/${cell}/${encodeURIComponent(how)}`, way: `outside: ${how}` } : { target: `/other/${other}/${encodeURIComponent(how)}`, way: `in another's turn: ${how}` };
      return { kind: "outside", cell, op: name, ...by, body: { op: name, other: cell } };
    }
    if (what < 0.94) return { kind: "shared", way: "handlers", cell: "h", op: `h ${op}`, target: `/shared/h`, body: { op: `h ${op}`, group: "handlers" } };
    if (what < 0.96) return { kind: "late", way: "handlers", cell: "h", op: `h ${op}`, target: `/late/h`, body: { op: `h ${op}`, group: "handlers" } };
    if (what < 0.98 || !this.resets) {
      const heard = this.cell(Math.floor(next() * SOCKETS)); // one of those that have WebSockets
      return { kind: "tell", way: "tell", cell: heard, op: `${heard} ${op}`, target: `/tell/${heard}`, body: { op: `${heard} ${op}` } };
    }
    const fragile = `e${this.era}r${Math.floor(next() * RESETS)}`;
    const method = pick(["waitFor", "waitFor", "reset"]);
    return { kind: method, way: method, cell: fragile, op: `${fragile} ${op}`, target: `/${method}/${fragile}`, body: { op: `${fragile} ${op}`, group: "fragile" } };
  }

  /** Resolves when something may be asked for. */
  async ready(goesOn) {
    while ((!this.rig.up || this.pausing) && goesOn()) await sleep(5);
  }
  async client(id, goesOn) {
    const next = random(this.seed * 1000 + id);
    for (let i = 0; goesOn(); i++) {
      await this.ready(goesOn);
      if (!goesOn()) return;
      let chosen = this.choose(next, `${id}.${i}`);
      while (this.kinds.length > 0 && !this.kinds.includes(chosen.kind)) chosen = this.choose(next, `${id}.${i}`);
      const era = this.era, reloads = this.reloading; // odd: it is reloaded now
      const entry = { op: chosen.op, method: chosen.way, begin: performance.now(), end: Infinity };
      if (chosen.kind === "count") {
        if (!this.counted.has(chosen.cell)) this.counted.set(chosen.cell, []);
        this.counted.get(chosen.cell).push(entry);
      }
      this.counts.calls++;
      this.under++;
      try {
        const answer = await this.rig.post(chosen.target, chosen.body);
        entry.end = performance.now();
        if (this.era === era) this.answered(chosen, entry, answer);
      } catch (error) {
        entry.error = error.message;
        if (this.era === era && this.rig.up) this.failed(chosen, error, this.reloading !== reloads || reloads % 2 === 1);
      }
      this.under--;
    }
  }
  answered(chosen, entry, answer) {
    const { kind, cell, op, way } = chosen;
    if (answer?.elsewhere) return;
    this.counts.acknowledged++;
    entry.value = answer?.value;
    if (kind === "reset") return this.fault("answer", `reset() of ${cell} was answered`);
    if (answer?.op !== op || (answer.name ?? cell) !== cell) this.fault("answer", `${op} (${way}) got ${JSON.stringify(answer).slice(0, 200)}`);
    for (const text of answer.faults ?? []) this.fault(/AsyncLocalStorage/.test(text) ? "als" : /section/.test(text) ? "section" : "other", `${text} (${way})`);
    if (kind === "outside") this.outside.push({ cell, op, way });
    else if (kind === "run" || kind === "foreign" || kind === "waitFor") this.wrote(cell, op, way);
    else if (kind === "tell") this.told(cell, op, entry.begin);
  }
  wrote(cell, op, way) {
    if (!this.written.has(cell)) this.written.set(cell, []);
    this.written.get(cell).push({ op, way });
  }
  /** `reloaded`: the code was, meanwhile. */
  failed({ op, way, kind }, { message }, reloaded) {
    this.errors.set(message, (this.errors.get(message) ?? 0) + 1);
    if (/no answer/.test(message)) return this.fault("hung", `${op} (${way}): ${message}`);
    if (/ECONN|EPIPE|aborted|socket hang up/.test(message)) return; // it was killed, or ended by itself, which is noted
    if (reloaded && RELOADED.test(message)) return;
    if (this.resets && LOST.test(message)) return;
    if (/^e\d+r/.test(op) && RESET.test(message)) return;
    if (/outside|foreign|tell/.test(kind) && GONE.test(message)) return;
    this.fault("error", `${op} (${way}): ${message}`);
  }

  /** A WebSocket that asks for things and hears what its object is told. */
  async listener(id, goesOn) {
    const next = random(this.seed * 2000 + id);
    for (let i = 0; goesOn(); ) {
      await this.ready(goesOn);
      if (!goesOn()) return;
      this.under++;
      const era = this.era, cell = this.cell(id % CELLS), name = `${id % 3 === 0 ? "plain" : "h"}${id}.${i}`;
      const socket = new WebSocket(`ws://127.0.0.1:${this.rig.server.port}/ws/${cell}?id=${name}`);
      const state = { cell, name, opened: Infinity, heard: new Set(), open: false };
      const pending = new Map(); // op -> {way, reloads}
      const closed = new Promise((resolve) => socket.on("close", resolve).on("error", resolve));
      socket.on("message", (data) => this.era === era && this.heard(state, pending, JSON.parse(data)));
      socket.on("open", () => {
        Object.assign(state, { open: true, opened: performance.now() });
        this.sockets.push(state);
      });
      await Promise.race([closed, new Promise((resolve) => socket.on("open", resolve))]);
      while (socket.readyState === WebSocket.OPEN && this.rig.up && !this.pausing && goesOn()) {
        const way = this.ways[Math.floor(next() * this.ways.length)], op = `${cell} w${id}.${i++}`;
        pending.set(op, { way, reloads: this.reloading });
        socket.send(JSON.stringify({ op, way, group: `${way} ${Math.floor(next() * 2)}` }));
        await Promise.race([closed, sleep(next() * 60)]); // sometimes long enough for it to hibernate
        if (next() < 0.02) break;
      }
      // Those that are still to come: a socket that stays open answers everything, but an object that is
      // reset, for whatever reason, forgets the messages that it works on.
      const due = () => [...pending].filter(([, { reloads }]) => !this.resets && this.reloading === reloads);
      for (const until = Date.now() + 10_000; due().length > 0 && socket.readyState === WebSocket.OPEN && this.rig.up; await sleep(10)) {
        if (Date.now() < until) continue;
        for (const [op, { way }] of due()) this.fault("hung", `${op} (${way}) was not answered on its WebSocket`);
        break;
      }
      state.open = false;
      if (name.startsWith("plain")) for (const op of pending.keys()) this.left.add(op); // nobody waits for its listeners
      socket.terminate();
      this.under--;
      await sleep(20);
    }
  }
  heard(state, pending, message) {
    this.counts.messages++;
    const { cell, name } = state;
    if (message.name !== cell || (message.id !== undefined && message.id !== name)) return this.fault("socket", `the socket ${name} of ${cell} got ${JSON.stringify(message).slice(0, 200)}`);
    if (message.told !== undefined) return void state.heard.add(message.told);
    const way = pending.get(message.op)?.way;
    if (!pending.delete(message.op)) return this.fault("socket", `the socket ${name} of ${cell} got the answer to ${message.op}, which it has not asked or has got`);
    if (message.error !== undefined) return this.failed({ op: message.op, way, kind: this.foreign.has(way) ? "foreign" : "run" }, { message: message.error }, true);
    for (const text of message.faults ?? []) this.fault(/AsyncLocalStorage/.test(text) ? "als" : "other", `${text} (${way})`);
    this.wrote(cell, message.op, way);
  }
  /** Every socket of the cell that was open hears it, unless it closes. */
  told(cell, op, begin) {
    const era = this.era;
    for (const state of this.sockets.filter((each) => each.cell === cell && each.opened < begin && each.open && each.name.startsWith("h"))) {
      void (async () => {
        for (const until = Date.now() + 3000; Date.now() < until; await sleep(20)) if (state.heard.has(op) || !state.open || !this.rig.up || this.era !== era) return;
        this.fault("socket", `${op} was told to ${cell}, the socket ${state.name} has not heard it`);
      })();
    }
  }

  /** Reloads, resets that others wait for, and at last the kill. */
  async upset(next, until) {
    const release = setInterval(() => {
      if (this.rig.up) for (let i = 0; i < RESETS; i++) this.rig.post(`/release/e${this.era}r${i}`, { group: "fragile" }).catch(() => {});
    }, 100);
    for (const reload of this.quiet.includes("reload") ? [] : [next() * 0.5, 0.5 + next() * 0.4]) {
      await sleep(Math.max(0, until - ERA_MS * (1 - reload) - Date.now()));
      this.reloading++; // odd while it reloads, and what was under way ends
      await Promise.race([this.rig.reload().catch(() => {}), sleep(15_000)]);
      await sleep(200);
      this.reloading++;
      this.counts.reloads++;
    }
    await sleep(Math.max(0, until - Date.now()));
    if (this.drains) await this.drain();
    clearInterval(release);
    await this.rig.kill();
    this.counts.kills++;
    this.pausing = false;
  }
  /** Lets what is under way end. */
  async drain() {
    this.pausing = true;
    while (this.under > 0 && this.rig.up) await sleep(10);
  }

  /** T1, T2, T4 for what the objects of this era have. The server has been started again. */
  async check() {
    const cells = [...Array.from({ length: CELLS }, (_, i) => this.cell(i)), ...Array.from({ length: RESETS }, (_, i) => `e${this.era}r${i}`)];
    for (const cell of cells) {
      let dump;
      try {
        dump = await this.rig.post(`/dump/${cell}`);
      } catch (error) {
        this.fault("error", `${cell} after the kill: ${error.message}`);
        continue;
      }
      const ways = new Map((this.written.get(cell) ?? []).map(({ op, way }) => [op, way]));
      checkDump(dump, cell, [...ways.keys()], cellOf, (text, op) => this.fault(/lost/.test(text) ? "lost" : "foreign", `${text} (${ways.get(op)})`));
      const outside = new Map(dump.outside);
      for (const { op, way } of this.outside.filter((each) => each.cell === cell)) {
        if (outside.get(`outside ${op}`) !== op) this.fault("lost", `${op} was acknowledged and is lost (${way})`);
      }
      for (const [key] of outside) if (cellOf(key.slice("outside ".length)) !== cell) this.fault("foreign", `${cell} has "${key}"`);
      const wrong = [];
      verify(cell, this.counted.get(cell) ?? [], [], dump, wrong);
      for (const text of wrong) this.fault("counter", text);
    }
    checkLog(this.rig.earlier.splice(0), (op) => (op.startsWith("h ") ? undefined : cellOf(op)), (text) => this.fault("log", text), (op) => this.left.has(op));
  }

  async go(seconds) {
    const next = random(this.seed);
    try {
      await this.start();
      const end = Date.now() + seconds * 1000;
      const goesOn = () => Date.now() < end && this.faults.length < 5000 && !this.found();
      const clients = Array.from({ length: CLIENTS }, (_, id) => this.client(id, goesOn));
      if (!this.quiet.includes("sockets")) clients.push(...Array.from({ length: SOCKETS }, (_, id) => this.listener(id, goesOn)));
      while (goesOn()) {
        await this.upset(next, Math.min(end, Date.now() + ERA_MS));
        await this.start();
        this.rig.up = false; // nobody asks for anything while it is checked
        await this.check();
        this.era++;
        this.begin();
        this.rig.up = true;
      }
      await Promise.all(clients);
    } finally {
      this.rig.up = false;
      await this.rig.end();
    }
    return this;
  }
}

/** Runs it, `until` a fault that matches is found at most; resolves {seed, faults: [{kind, text}], counts}. */
export async function stressTurns({ seconds = 30, seed = seedOfRun(), ...options } = {}) {
  return new Run({ seed, ...options }).go(seconds);
}

function report({ faults, counts, errors, seed }, { title, all }) {
  console.log(`turns, ${title}, seed ${seed}: ${counts.calls} calls, ${counts.acknowledged} acknowledged, ${counts.messages} messages, ${counts.kills} kills, ${counts.reloads} reloads, ${faults.length} faults`);
  const kinds = new Map();
  for (const { kind, text } of faults) kinds.set(kind, [...(kinds.get(kind) ?? []), text]);
  for (const [kind, texts] of kinds) {
    console.log(`  ${kind}: ${texts.length}`);
    for (const text of all ? texts : texts.slice(0, 4)) console.log(`    ${text}`);
  }
  for (const [message, count] of errors) console.log(`  answered ${count} times: ${message}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = (name, otherwise) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? otherwise : process.argv[at + 1];
  };
  const lanes = option("lanes", "1,2").split(",").map(Number);
  const hooks = option("hooks", "off,on").split(",");
  const seed = option("seed");
  let bad = false;
  for (const [i, count] of lanes.entries()) {
    const on = hooks[i % hooks.length] === "on";
    const result = await stressTurns({
      seconds: Number(option("seconds", 60)), lanes: count, hooks: on, sync: Number(option("sync", 0)), ways: option("ways"), plant: option("plant"), quiet: option("quiet", "").split(","), kinds: option("kinds")?.split(","), ...(seed && { seed: Number(seed) }),
    });
    report(result, { title: `${count} lanes, ${on ? "with" : "without"} node:async_hooks`, all: process.argv.includes("--all") });
    bad ||= result.faults.length > 0;
  }
  process.exit(bad ? 1 : 0);
}
