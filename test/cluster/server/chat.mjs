// The gallery's chat room (examples/chat-room, as it is) on three nodes, with clients that talk all the time, while nodes are killed, drained and replaced.
//
//     node test/cluster/server/chat.mjs --clients 2000 --rooms 60 --every 25 --rounds 1 [--faults kill,drain,upgrade] [--old BINARY] [--within 3]
//
// A round does each fault to each node. Clients are spread over rooms and nodes, say something every so many seconds, one message at a time, and connect
// again as the gallery's pages do (examples/shared/browser/reconnecting.js: after 0.25 to 0.5 s, twice as long after each failure), by a balancer: the next
// node that takes them. When a node is back its clients go home to it, as people come and go.
//
//   kill      kill -9, and a start when everybody is back
//   drain     `cairn cluster drain` until it is empty, then --off: no socket is lost, those of the drained node neither
//   upgrade   as docs/do/three-nodes.md says: drain, SIGTERM, start, --off. With --old nodes begin with that binary, and this build takes its place; sockets of
//             the node itself are lost with it, no others
//
// Judged (exit code 1 if anything is wrong): rooms.mjs R1 to R6, and
//   S1  A socket is lost only by its own node's end, or with 1012 by a kill of the node that had its room.
//   S2  Who lost it so is back, which is to hear the room again, --within seconds after the kill (or after its socket was lost, where the node was stopped
//       in order); 0: not judged.
//   S3  What is said on an open socket is acknowledged, or the socket is lost: within 20 s.
//   S4  In the end everybody is connected, and no node has ended by itself.
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { cairn, root } from "../../integration/lib/server.mjs";
import { absent, until } from "./postgres.mjs";
import { Judge, KEPT } from "./rooms.mjs";
import { Stage, pause, spread } from "./stage.mjs";
import { Thin } from "./thin.mjs";

const text = (value) => ({ type: "string", default: value });
const { values: options } = parseArgs({ options: {
  clients: text("2000"), rooms: text("60"), every: text("25"), rounds: text("1"), faults: text("kill,drain,upgrade"), nodes: text("3"), shards: text("24"),
  old: { type: "string" }, within: text("3"), calm: text("5"),
} });
const number = (name, least) => {
  const value = Number(options[name]);
  if (!(value >= least)) {
    console.error(`chat: --${name} must be a number, ${least} at the least: ${options[name]}`);
    process.exit(2);
  }
  return value;
};
const CLIENTS = number("clients", 1), ROOMS = number("rooms", 1), EVERY_MS = 1000 * number("every", 1), ROUNDS = number("rounds", 0), WITHIN_MS = 1000 * number("within", 0), CALM_MS = 1000 * number("calm", 0);
const NODES = Array.from({ length: number("nodes", 2) }, (_, i) => String.fromCharCode(97 + i));
const FAULTS = options.faults.split(",").filter(Boolean);
for (const fault of FAULTS)
  if (!["kill", "drain", "upgrade"].includes(fault)) {
    console.error(`chat: there is no fault called ${fault}`);
    process.exit(2);
  }
if (absent) {
  console.log(`chat: not run: ${absent}`);
  process.exit(0);
}

const FIRST_MS = 500, MOST_MS = 30_000; // reconnecting.js
const JOINING_MS = 15_000, ANSWER_MS = 20_000;
const AFTER_KILL_MS = 20_000; // so long a loss is laid to its charge

const began = performance.now();
const now = () => performance.now();
const say = (line) => console.log(`${((now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`);
const judge = new Judge();

say(`${CLIENTS} clients in ${ROOMS} rooms on ${NODES.length} nodes; each says something every ${EVERY_MS / 1000} s`);
const stage = await Stage.make({ folder: path.join(root, "examples/chat-room"), shards: number("shards", 1), names: NODES, binary: options.old ?? cairn });
say("the cluster is there");

// --- faults --------------------------------------------------------------------------------------

const balancer = { closed: new Set(), next: 0 }; // who is not to get clients
let fault = { kind: "none", at: 0 }; // the last one
let owners = new Map(); // of rooms, before it
const answers = new Map(); // by what was going on: how long acknowledgements took
const backs = new Map(); // by what was lost: how long until its client was back
const add = (map, key, value) => map.has(key) ? map.get(key).push(value) : map.set(key, [value]);

/** Why a member's socket may have gone: {what, since}; null: it should not have. S1 */
function cause(member, code) {
  const isRecent = now() - fault.at < AFTER_KILL_MS;
  if (fault.kind === "stop" && member.node === fault.node) return { what: "its node was stopped in order", since: now() };
  if (fault.kind !== "kill" || !isRecent) return null;
  if (member.node === fault.node) return { what: "its node was killed", since: fault.at };
  if (owners.get(member.room) === fault.node && code === 1012) return { what: "the node of its room was killed", since: fault.at };
  return null;
}

// --- members -------------------------------------------------------------------------------------

class Member {
  #thin = null;
  #ear = null;
  #failures = 0;
  #lost = null; // {what, since}
  #pending = null; // {text, at, during}
  #since = 0; // when it began to connect
  state = "away"; // away, joining, here
  isLeaving = false;
  constructor(i) {
    this.room = `r${i % ROOMS}`;
    this.name = `${this.room}.${i}`;
    this.home = NODES[Math.floor(i / ROOMS) % NODES.length];
    this.nextAt = 0;
  }

  /** The node that the balancer chooses: its home, or the next that takes clients. */
  #choose(refused) {
    const open = NODES.filter((name) => !balancer.closed.has(name) && !refused.has(name));
    if (open.includes(this.home)) return this.home;
    return open.length ? open[balancer.next++ % open.length] : null;
  }

  connect(refused = new Set()) {
    if (refused.size === 0) this.#since = now();
    this.state = "joining";
    this.node = this.#choose(refused);
    if (!this.node) return this.#again();
    const ear = (this.#ear = judge.join(this.room, this.name));
    const thin = (this.#thin = new Thin({ port: stage.nodes.get(this.node).port, target: `/rooms/${this.room}?name=${this.name}` }, {
      message: (data) => this.#hear(ear, data),
      close: (code, reason) => {
        if (thin !== this.#thin) return;
        if (this.state === "joining" && reason === "ECONNREFUSED") this.connect(refused.add(this.node));
        else this.#over(code, reason);
      },
    }));
  }

  #hear(ear, data) {
    if (ear !== this.#ear) return;
    const value = ear.hear(data);
    if (value.type === "init") {
      this.state = "here";
      this.#failures = 0;
      this.nextAt ||= now() + Math.random() * EVERY_MS;
      if (!this.#lost) return;
      const took = now() - this.#lost.since;
      add(backs, this.#lost.what, took);
      if (WITHIN_MS && took > WITHIN_MS) judge.wrong("S2", `${this.name}: ${this.#lost.what}; it was back after ${Math.round(took)} ms`);
      this.#lost = null;
    } else if (value.type === "message" && value.text === this.#pending?.text) {
      judge.acknowledge(this.room, value.text);
      add(answers, this.#pending.during, now() - this.#pending.at);
      this.#pending = null;
      counts.acknowledged++;
    }
  }

  #again() {
    this.state = "away";
    setTimeout(() => this.connect(), Math.min(MOST_MS, FIRST_MS * 2 ** this.#failures++) * (0.5 + Math.random() / 2));
  }

  #over(code, reason) {
    if (this.state === "here") {
      if (this.#pending) counts.unknown++;
      this.#pending = null;
      if (this.isLeaving) {
        this.isLeaving = false;
        return this.connect();
      }
      this.#lost = cause(this, code);
      if (!this.#lost) {
        judge.wrong("S1", `${this.name}, a client of ${this.node} (its room was on ${owners.get(this.room)}), lost its socket: ${code} ${reason}; last fault: ${fault.kind} ${fault.node} ${Math.round(now() - fault.at)} ms before`);
        this.#lost = { what: "for no reason", since: now() };
      }
      counts.lost++;
    } else add(refusals, `${reason || code}`, now());
    this.#again();
  }

  speak() {
    this.nextAt = now() + EVERY_MS * (0.9 + Math.random() / 5);
    this.#pending = { text: judge.say(this.room, this.name), at: now(), during: fault.during ?? fault.kind };
    this.#thin.send(JSON.stringify({ type: "say", text: this.#pending.text }));
    counts.said++;
  }

  get isWaiting() {
    return this.#pending !== null;
  }

  goHome() {
    this.isLeaving = true;
    this.#thin.close();
  }

  look(isTalking) {
    if (this.state === "joining" && now() - this.#since > JOINING_MS) return this.#thin?.destroy("nothing came");
    if (this.state !== "here" || this.isLeaving) return;
    if (this.#pending && now() - this.#pending.at > ANSWER_MS) {
      judge.wrong("S3", `${this.name}, a client of ${this.node}: "${this.#pending.text}" is neither acknowledged nor refused`);
      this.#pending = null;
      counts.unknown++;
    }
    if (isTalking && !this.#pending && now() >= this.nextAt) this.speak();
  }
}

const counts = { said: 0, acknowledged: 0, unknown: 0, lost: 0 };
const refusals = new Map();
const members = Array.from({ length: CLIENTS }, (_, i) => new Member(i));
const here = () => members.reduce((sum, { state }) => sum + (state === "here"), 0);
const everybody = (limit = 60_000) => until(() => here() === CLIENTS, "everybody is connected", limit);

let isTalking = false;
setInterval(() => {
  for (const member of members) member.look(isTalking);
}, 50);

/** Who is on another node goes home, some at a time. */
async function goHome() {
  for (const member of members.filter(({ node, home }) => node !== home)) {
    await until(() => member.state === "here" && !member.isWaiting, `${member.name} can go home`);
    member.goHome();
    if (Math.random() < 0.1) await pause(100);
  }
  await everybody();
}

// --- what happens --------------------------------------------------------------------------------

for (let i = 0; i < CLIENTS; i += 50) {
  for (const member of members.slice(i, i + 50)) member.connect();
  await until(() => here() >= Math.min(CLIENTS, i + 50) - 50, "the first clients", 120_000);
}
await everybody(120_000);
say("everybody is connected");

const ids = new Map(); // of rooms
for (const node of NODES) {
  const { objects } = await stage.control(node, "GET", "/api/objects?namespace=chat-room/Room&limit=1000");
  for (const { name, id } of objects) ids.set(name, id);
}
async function lookAtOwners() {
  const of = await stage.owners();
  owners = new Map([...ids].map(([name, id]) => [name, of[stage.shardOf(id)]]));
}
await lookAtOwners();
const on = NODES.map((node) => `${node} ${[...owners.values()].filter((owner) => owner === node).length}`);
say(`rooms by node: ${on.join(", ")}`);
isTalking = true;
await pause(CALM_MS);

const begin = (kind, node, during = kind) => (fault = { kind, node, at: now(), during });
/** Everybody has what it needs, and a calm moment. */
async function rest() {
  await stage.settled();
  await everybody();
  fault.during = "going home";
  await goHome();
  begin("none");
  await pause(CALM_MS);
  await lookAtOwners();
}

const acts = {
  async kill(node) {
    begin("kill", node);
    await stage.kill(node);
    const used = stage.processor(); // without it
    await pause(500);
    await everybody();
    say(`  all are back ${((now() - fault.at) / 1000).toFixed(1)} s after the kill, which took ${(stage.processor() - used).toFixed(1)} s of processor time of ${os.availableParallelism()} cores; load ${os.loadavg()[0].toFixed(0)}`);
    await pause(CALM_MS);
    await stage.start(node);
  },
  async drain(node) {
    begin("drain", node);
    balancer.closed.add(node);
    await stage.drain(node, true);
    await stage.emptied(node);
    say(`  it is empty after ${((now() - fault.at) / 1000).toFixed(1)} s`);
    await pause(CALM_MS);
    await stage.drain(node, false);
    balancer.closed.delete(node);
  },
  async upgrade(node) {
    begin("drain", node, "upgrade: drain");
    balancer.closed.add(node);
    await stage.drain(node, true);
    await stage.emptied(node);
    begin("stop", node, "upgrade: stop");
    const end = await stage.stop(node);
    if (end.code !== 0) judge.wrong("S4", `${node} was stopped in order and ended with ${JSON.stringify(end)}: ${stage.nodes.get(node).output.slice(-500)}`);
    await until(() => members.every((member) => member.state !== "here" || member.node !== node), `clients of ${node} see that it is gone`);
    await everybody();
    begin("none", node, "upgrade: start");
    await stage.start(node);
    await stage.drain(node, false);
    balancer.closed.delete(node);
  },
};

const did = new Map();
async function rounds() {
  for (let round = 0; round < ROUNDS; round++)
    for (const kind of FAULTS)
      for (const node of NODES) {
        await lookAtOwners();
        say(`${kind} ${node}, which has ${members.filter((member) => member.node === node).length} clients and ${[...owners.values()].filter((owner) => owner === node).length} rooms`);
        await acts[kind](node);
        did.set(kind, (did.get(kind) ?? 0) + 1);
        await rest();
      }
}
await rounds().catch((error) => judge.wrong("S4", `${fault.kind} ${fault.node}: ${error.stack}`));

isTalking = false;
await until(() => members.every((member) => !member.isWaiting), "the last acknowledgements");
await everybody().catch((error) => judge.wrong("S4", `${error.message}: ${CLIENTS - here()} are not`));

// --- what is there -------------------------------------------------------------------------------

let rows = 0, unheard = 0, shortened = 0;
for (const [room, id] of ids) {
  const owner = (await stage.owners())[stage.shardOf(id)];
  const { results } = await stage.control(owner, "POST", `/api/objects/${encodeURIComponent("chat-room/Room")}/${id}/sql`, { sql: "SELECT id, name, text FROM messages ORDER BY id", readonly: true });
  const history = results[0].rows.map(([id, name, text]) => ({ id, name, text }));
  rows += history.length;
  unheard += judge.read(room, history);
  shortened += history.length >= KEPT;
}
if (shortened) say(`${shortened} rooms have let go what was older than their last ${KEPT} messages: those were compared while people joined`);
if (ids.size !== Math.min(ROOMS, CLIENTS)) judge.wrong("S4", `${ids.size} rooms are there, and should be ${ROOMS}`);
for (const { name, exit, output } of stage.ended) judge.wrong("S4", `${name} ended by itself (${JSON.stringify(exit)}):\n${output.slice(-2000)}`);

const line = ({ count, p50, p99, max }) => `${String(count).padStart(7)}   p50 ${String(Math.round(p50)).padStart(5)}   p99 ${String(Math.round(p99)).padStart(5)}   max ${String(Math.round(max)).padStart(5)} ms`;
console.log(`\n${[...did].map(([kind, count]) => `${count} × ${kind}`).join(", ") || "no fault"} in ${Math.round((now() - began) / 1000)} s`);
console.log(`${counts.said} messages said, ${counts.acknowledged} acknowledged, ${counts.unknown} cut off with their socket (of those and the others, ${unheard} are in a room and were heard by nobody); ${rows} in the rooms`);
console.log(`${counts.lost} sockets lost; until they were back:`);
for (const [what, times] of backs) console.log(`  ${what.padEnd(34)} ${line(spread(times))}`);
console.log("until a message was acknowledged, by what was going on when it was said:");
for (const [what, times] of answers) console.log(`  ${what.padEnd(34)} ${line(spread(times))}`);
if (refusals.size) console.log(`connections that did not come about: ${[...refusals].map(([why, list]) => `${why} ${list.length} times`).join(", ")}`);
for (const example of judge.examples) console.log(`WRONG ${example}`);
console.log(judge.count ? `${[...judge.wrongs].map(([rule, count]) => `${rule} ${count} times`).join(", ")} WRONG` : "nothing is wrong");
process.exit(judge.count ? 1 : 0);
