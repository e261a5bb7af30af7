// Clients that write to every kind of place, each write one line of a ledger, and the comparison of all places
// with it. Drivers say what happens to the server meanwhile: ../full.mjs, ../kills.mjs.
//
// L1  What was acknowledged is there. L2  What was refused is not. L3  An answer that says neither ("it is not known
// whether ...") comes only from a log that has failed, and no driver makes it fail. L4  After whatever was done,
// everything is written again.
//
// Places: objects, KV, D1, R2, a queue, alarms, and objects that are written to by messages of hibernating WebSockets.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { project, serve } from "../../integration/lib/server.mjs";
import { random } from "../../lib/random.mjs";

const WebSocket = createRequire(import.meta.url)("ws");
const CLIENTS = 6, CELLS = 5, FAR_MS = 1e9;

const config = (consumes) => ({
  name: "ledger", main: "worker.js", compatibility_date: "2026-01-01",
  durable_objects: { bindings: [{ name: "CELL", class_name: "Cell" }, { name: "CLOCK", class_name: "Clock" }] },
  migrations: [{ tag: "v1", new_sqlite_classes: ["Cell", "Clock"] }],
  kv_namespaces: [{ binding: "KV", id: "ledger" }],
  d1_databases: [{ binding: "DB", database_name: "ledger", database_id: "ledger" }],
  r2_buckets: [{ binding: "BUCKET", bucket_name: "ledger" }],
  queues: { producers: [{ binding: "QUEUE", queue: "ledger" }], consumers: consumes ? [{ queue: "ledger", max_batch_timeout: 0, max_retries: 100 }] : [] },
});

const worker = readFileSync(path.join(path.dirname(fileURLToPath(import.meta.url)), "worker.js"), "utf8");
const projectOf = (consumes) => project({ "worker.js": worker, "wrangler.json": JSON.stringify(config(consumes)) });

/** What became of each write: of a place and an id, whether it is there (true, false), or undefined if nobody can know. */
class Ledger {
  entries = new Map(); // "place/id" -> { there, why, cell, time }
  counts = { acknowledged: 0, refused: 0, cut: 0 };
  answer({ key, verb, entry }, outcome, why) {
    this.counts[outcome]++;
    const before = this.entries.get(key);
    const there = outcome === "cut" ? undefined : outcome === "acknowledged" ? verb === "put" : before?.there ?? false;
    this.entries.set(key, { ...before, ...entry, there, why: `${verb}: ${why}` });
  }
  of(place) {
    return [...this.entries].filter(([key]) => key.startsWith(`${place}/`)).map(([key, entry]) => ({ id: key.slice(place.length + 1), ...entry }));
  }
}

/**
 * A client's socket to an object of its own; opened when it is needed. Nobody waits for it: an object that is reset for a
 * write that failed keeps its sockets, and the client hears nothing.
 */
class Line {
  waiting = new Map(); // id -> (acknowledged) => ...; one at the most
  constructor(run, name) {
    Object.assign(this, { run, name });
  }
  open() {
    const socket = new WebSocket(`ws://127.0.0.1:${this.run.server.port}/socket/connect/${this.name}`);
    this.socket = socket;
    const end = () => {
      if (this.socket === socket) this.socket = null;
      for (const settle of this.waiting.values()) settle(false);
      this.waiting.clear();
    };
    socket.on("message", (id) => {
      this.waiting.get(String(id))?.(true);
      this.waiting.delete(String(id));
    }).on("close", end).on("error", end);
    return new Promise((resolve) => socket.on("open", resolve).on("close", resolve).on("error", resolve));
  }
  close() {
    this.socket?.terminate();
  }
  /** Whether it was acknowledged; if not, nobody knows. */
  async put(id, size) {
    if (!this.socket) await this.open();
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.socket.send(JSON.stringify({ id, size }));
    });
  }
}

export class Run {
  ledger = new Ledger();
  wrong = [];
  next = 0;
  constructor(data, { seed, lanes }) {
    this.data = data;
    this.pick = random(seed);
    this.lanes = lanes;
    this.lines = Array.from({ length: CLIENTS }, (_, i) => new Line(this, `line${i}`));
    this.projects = { true: projectOf(true), false: projectOf(false) };
  }

  choose(list) {
    return list[Math.floor(this.pick() * list.length)];
  }

  async start(consumes) {
    this.server = await serve(this.projects[consumes], { lanes: this.lanes, data: this.data });
  }

  async ask(target, init) {
    const response = await this.server.fetch(target, init);
    return { status: response.status, text: await response.text() };
  }

  async json(target) {
    const { status, text } = await this.ask(target);
    if (status !== 200) throw new Error(`${target}: ${status} ${text}`);
    return JSON.parse(text);
  }

  /** What only has to be there, before the first round. */
  async setUp() {
    this.ledger.entries.clear();
    await this.start(false);
    await this.json("/setup");
    await this.server.stop();
  }

  // --- writing ---------------------------------------------------------------------------------

  /** A write of a place, or the end of one that is there. */
  nextWrite(line) {
    const place = this.choose(["object", "object", "kv", "d1", "r2", "queue", "alarm", ...(line.writes ? [] : ["socket"])]);
    const there = ["queue", "alarm", "socket"].includes(place) || this.pick() > 0.2 ? [] : this.ledger.of(place).filter((entry) => entry.there && !entry.busy);
    if (there.length) {
      const { id, cell } = this.choose(there);
      return { place, verb: "delete", id, entry: { cell }, more: cell === undefined ? "" : `/${cell}` };
    }
    const entry = place === "object" ? { cell: `cell${Math.floor(this.pick() * CELLS)}` } : place === "alarm" ? { time: Date.now() + this.choose([50, FAR_MS]) } : {};
    return { place, verb: "put", id: `i${++this.next}`, entry, more: entry.cell ? `/${entry.cell}` : entry.time ? `/${entry.time}` : "" };
  }

  async write(line) {
    const write = this.nextWrite(line);
    if (write.place === "socket") write.entry = { cell: line.name };
    write.key = `${write.place}/${write.id}`;
    const before = this.ledger.entries.get(write.key);
    if (before) before.busy = true; // one write of an id at a time
    const size = this.choose(write.place === "queue" ? [10, 1000, 100_000] : [10, 1000, 100_000, 400_000]);
    if (write.place === "socket") {
      line.writes = line.put(write.id, size).then((acknowledged) => {
        line.writes = null;
        this.ledger.answer(write, acknowledged ? "acknowledged" : "cut", acknowledged ? "by a message" : "its socket closed");
      });
      return;
    }
    try {
      const { status, text } = await this.ask(`/${write.place}/${write.verb}/${write.id}/${size}${write.more}`, { method: "POST" });
      if (status !== 200 && /not known/.test(text)) this.wrong.push(`L3: ${write.key}: ${text}`);
      this.ledger.answer(write, status === 200 ? "acknowledged" : "refused", `${status} ${text.slice(0, 160)}`);
    } catch (error) { // the server was killed
      this.ledger.answer(write, "cut", String(error.cause?.code ?? error.message));
    }
    this.ledger.entries.get(write.key).busy = false;
  }

  /** Clients write until told to stop. */
  clients() {
    let stopped = false;
    const all = Promise.all(this.lines.map(async (line) => { while (!stopped && !this.server.exit) await this.write(line); }));
    return async () => {
      stopped = true;
      await all;
      for (const line of this.lines) line.close();
      await Promise.all(this.lines.map((line) => line.writes));
    };
  }

  async writes(count) {
    const end = this.ledger.counts.acknowledged + this.ledger.counts.refused + count;
    const stop = this.clients();
    await this.server.untilTrue(() => this.ledger.counts.acknowledged + this.ledger.counts.refused >= end, `${count} writes`);
    await stop();
  }

  // --- comparing -------------------------------------------------------------------------------

  compare(place, found, entries = this.ledger.of(place)) {
    const ids = new Set(found);
    for (const { id, there, why } of entries) {
      if (there === true && !ids.has(id)) this.wrong.push(`L1: ${place}/${id} is not there: ${why}`);
      if (there === false && ids.has(id)) this.wrong.push(`L2: ${place}/${id} is there: ${why}`);
    }
  }

  /** L4; then all places. */
  async check() {
    await this.server.untilTrue(async () => (await this.ask(`/object/put/space/1/space`, { method: "POST" })).status === 200, "a write");
    for (let i = 0; i < CELLS; i++) {
      const cell = `cell${i}`;
      this.compare("object", await this.json(`/object/ids/${cell}`), this.ledger.of("object").filter((entry) => entry.cell === cell));
    }
    for (const { name } of this.lines) this.compare("socket", await this.json(`/object/ids/${name}`), this.ledger.of("socket").filter((entry) => entry.cell === name));
    for (const place of ["kv", "d1", "r2"]) this.compare(place, await this.json(`/${place}/ids`));
    await this.checkAlarms();
  }

  async checkAlarms() {
    const entries = this.ledger.of("alarm").filter(({ checked }) => !checked);
    for (let i = 0; i < entries.length; i += 50) {
      const part = entries.slice(i, i + 50);
      const states = () => this.json(`/alarm/ids/${part.map(({ id }) => id)}`);
      const isNear = ({ time }) => time < Date.now() + FAR_MS / 2;
      await this.server.untilTrue(async () => (await states()).every(({ fired }, k) => fired || part[k].there !== true || !isNear(part[k])), "alarms that are due");
      const found = await states();
      this.compare("alarm", part.filter((_, k) => found[k].armed !== null).map(({ id }) => id), part);
      part.forEach(({ id, time, there, why }, k) => {
        if (there === true && !isNear({ time }) && found[k].alarm !== time) this.wrong.push(`L1: the alarm ${id} is of ${found[k].alarm}: ${why}`);
        if (there === false && (found[k].alarm !== null || found[k].fired)) this.wrong.push(`L2: the alarm ${id} is of ${found[k].alarm}, fired ${found[k].fired}: ${why}`);
        if (!isNear({ time }) || there === false) this.ledger.entries.get(`alarm/${id}`).checked = there !== undefined;
      });
    }
  }

  /** Messages are taken by a server that has a consumer. */
  async checkQueue() {
    await this.start(true);
    await this.server.untilTrue(async () => (await this.json("/backlog")) === 0, "the end of all messages");
    this.compare("queue", await this.json("/queue/ids"));
    await this.server.stop();
  }

  /** Begins with nothing to look at. */
}

/** A driver as a command: its options, its progress, its verdict. */
export async function main(name, what, { rounds: usual }, drive) {
  const option = (word, fallback) => {
    const at = process.argv.indexOf(`--${word}`);
    return at < 0 ? fallback : Number(process.argv[at + 1]);
  };
  const options = { rounds: option("rounds", usual), seed: option("seed", Date.now() % 1e9), lanes: option("lanes", 2) };
  console.log(`${name}: ${options.rounds} ${what}, seed ${options.seed}, ${options.lanes} lanes`);
  options.say = (round, counts) => console.log(`  ${String(round).padStart(4)}: ${JSON.stringify(counts)}`);
  const { wrong, ...counts } = await drive(options).catch((error) => ({ wrong: [String(error.stack).slice(0, 2000)] }));
  console.log(wrong.length ? `FAILED (seed ${options.seed})\n${wrong.slice(0, 20).map((text) => `  ${text}`).join("\n")}` : `${name}: ok, ${JSON.stringify(counts)}, no answer was wrong`);
  process.exit(wrong.length ? 1 : 0);
}
