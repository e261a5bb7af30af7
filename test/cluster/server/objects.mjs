// Many live objects on a few nodes: made, called again, one node killed, all called once more; what each has is compared. Tells times and memory.
//
//     node test/cluster/server/objects.mjs --objects 100000 --nodes 3
//
// Exit code 0: every object answered each time with what it had. No time is judged.
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { tree } from "./processes.mjs";
import { absent, until } from "./postgres.mjs";
import { World, pause } from "./world.mjs";

const { values: options } = parseArgs({ options: { objects: { type: "string", default: "100000" }, nodes: { type: "string", default: "3" }, shards: { type: "string", default: "64" }, clients: { type: "string", default: "48" } } });
const OBJECTS = Number(options.objects), CLIENTS = Number(options.clients);
if (absent) {
  console.log(`objects: not run: ${absent}`);
  process.exit(0);
}

const base = mkdtempSync(path.join(os.tmpdir(), "cairn-objects-"));
chmodSync(base, 0o711);
const world = await World.make({ base, net: null, shards: Number(options.shards) });
process.on("exit", () => {
  world.end();
  rmSync(base, { recursive: true, force: true, maxRetries: 10 });
});
for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => process.exit(1));
for (let i = 0; i < Number(options.nodes); i++) await world.start(String.fromCharCode(97 + i));
await world.whole();
await until(() => world.isBalanced(Number(options.nodes)), "every node owns something", 300_000);

/** Resident memory of a node in MB. */
const memory = (name) => tree(world.nodes.get(name).pid).reduce((sum, pid) => {
  const match = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return sum + Number(match?.[1] ?? 0) / 1024;
}, 0);
const memories = () => world.names.filter((name) => !world.nodes.get(name).exit).map((name) => `${name} ${Math.round(memory(name))} MB`).join(", ");

const states = new Array(OBJECTS); // length and hash, as last acknowledged; undefined: a write whose outcome is not known
const at = new Array(OBJECTS); // who answered
let wrong = 0;

/** Calls every object once, by many clients; each until it has answered. */
async function round(what, target, check) {
  const began = performance.now(), times = [];
  let next = 0, unanswered = 0;
  const client = async () => {
    for (let i; (i = next++) < OBJECTS; ) {
      const asked = performance.now(), deadline = asked + 120_000;
      let node = at[i] ?? world.names[i % world.names.length], answer;
      for (let tries = 0; ; tries++) {
        answer = await world.try(node, target(i), { timeout: 20_000 });
        if (answer.status === 200 || performance.now() > deadline) break;
        const names = world.names.filter((name) => !world.nodes.get(name).exit);
        node = answer.owner && names.includes(answer.owner) && answer.owner !== node ? answer.owner : names[(i + tries) % names.length];
        if (tries > 2) await pause(20);
      }
      times.push(performance.now() - asked);
      if (answer.status !== 200) unanswered++;
      else at[i] = check(i, answer.value) ?? node;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  times.sort((a, b) => a - b);
  const seconds = (performance.now() - began) / 1000;
  const ms = (p) => times[Math.min(times.length - 1, Math.floor(times.length * p))].toFixed(1);
  console.log(`${what}: ${OBJECTS} in ${seconds.toFixed(1)} s (${Math.round(OBJECTS / seconds)}/s), p50 ${ms(0.5)} p99 ${ms(0.99)} max ${ms(1)} ms, ${unanswered} unanswered, ${wrong} wrong; ${memories()}`);
  wrong += unanswered;
}

const mistake = (i, value, why) => {
  if (wrong++ < 10) console.log(`object ${i}: ${why}: ${JSON.stringify(value)}, acknowledged was ${JSON.stringify(states[i])}`);
};
/** A write: tried again it is there twice, so the least is known. */
const wrote = (i, value) => {
  const least = (states[i]?.length ?? 0) + 1;
  if (value.length < least || value.torn) mistake(i, value, "lost");
  states[i] = { length: value.length, hash: value.hash };
};
const read = (i, value) => {
  if (value.length !== states[i].length || value.hash !== states[i].hash || value.torn) mistake(i, value, "not what was acknowledged");
};

console.log(`${options.nodes} nodes, ${options.shards} shards; before: ${memories()}`);
await round("made", (i) => `/add/o${i}/first-${i}`, wrote);
await round("called again", (i) => `/state/o${i}`, read);
const victim = world.names.at(-1), killed = performance.now();
const had = at.filter((name) => name === victim).length;
await world.kill(victim, true);
console.log(`${victim} is killed; it had ${had} of the objects`);
await round("called after that", (i) => `/state/o${i}`, read);
console.log(`all answered ${((performance.now() - killed) / 1000).toFixed(1)} s after it`);
await round("written after that", (i) => `/add/o${i}/second-${i}`, wrote);
for (const { name, output } of world.ended) {
  wrong++;
  console.log(`${name} ended by itself:\n${output.slice(-2000)}`);
}
console.log(wrong ? `${wrong} WRONG` : "nothing is wrong");
process.exit(wrong ? 1 : 0);
