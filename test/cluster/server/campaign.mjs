// A campaign: real servers on a real engine, under load and under faults, and a judge over all that was answered.
//
//     node test/cluster/server/campaign.mjs --nodes 5 --faults 300 --failovers 30 --seed 7
//
// Exit code 0: nothing acknowledged was lost, no answer was stale, nobody was stuck. --expect-wrong turns that round: for servers or
// engines that are known to be wrong. --control is an engine that does not wait for its standby, and must lose something.
import { spawnSync } from "node:child_process";
import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { cairn } from "../../integration/lib/server.mjs";
import { Attack, plan } from "./attacks.mjs";
import { Judge } from "./judge.mjs";
import { Load, randomFrom } from "./load.mjs";
import { Net, inHub, inside, noHub } from "./net.mjs";
import { plant } from "./plants.mjs";
import { absent, until } from "./postgres.mjs";
import { World, pause } from "./world.mjs";

const usage = `campaign.mjs [--nodes 5] [--faults 300] [--failovers 30] [--seed N] [--seconds-max 3600]
  [--clients 12] [--think MS] [--objects 40] [--shards 32] [--r2] [--only KIND,KIND] [--no-net] [--keep DIR] [--quiet] [--quick]
  [--control | --expect-wrong [--plant NAME]]
  --plant        somebody who is not honest stands before the nodes (plants.mjs)
  --seconds-max  no fault begins later; --think: a client's pause between operations, on average; --only: kinds of faults (attacks.mjs)
  --no-net       without network namespaces, also where they work; --keep: where evidence goes if something is wrong
  --quick        a few faults of three nodes, for every day; what else is given is taken instead`;
const usual = { nodes: "5", faults: "300", failovers: "30", seed: String(Date.now() % 2 ** 31), shards: "32" };
const quick = { nodes: "3", faults: "5", failovers: "1", seed: "5", shards: "6", only: "kill,freeze,cut" };
const { values: given } = parseArgs({
  options: {
    nodes: { type: "string" }, faults: { type: "string" }, failovers: { type: "string" }, seed: { type: "string" }, shards: { type: "string" }, quick: { type: "boolean" }, "seconds-max": { type: "string", default: "3600" }, clients: { type: "string", default: "12" },
    think: { type: "string", default: "30" }, objects: { type: "string", default: "40" }, r2: { type: "boolean", default: false },
    only: { type: "string" }, "no-net": { type: "boolean", default: false }, keep: { type: "string" }, quiet: { type: "boolean", default: false },
    control: { type: "boolean", default: false }, "expect-wrong": { type: "boolean", default: false }, plant: { type: "string" }, help: { type: "boolean", default: false },
  },
});
const options = { ...(given.quick ? quick : usual), ...given };
const number = (name) => {
  const value = Number(options[name]);
  if (!Number.isInteger(value) || value < 0) throw new Error(`--${name} ${options[name]} is no number`);
  return value;
};
if (options.help) {
  console.log(usage);
  process.exit(0);
}
if (absent) {
  console.log(`campaign: not run: ${absent}`);
  process.exit(0);
}

const began = performance.now();
const seconds = () => Math.round((performance.now() - began) / 1000);
const say = (text) => options.quiet || console.log(`${String(seconds()).padStart(5)} s  ${text}`);

/** p50, p99 and the largest. */
function spread(list) {
  const sorted = [...list].sort((a, b) => a - b), at = (p) => Math.round(sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * p) - 1)]);
  return sorted.length ? `p50 ${at(0.5)}  p99 ${at(0.99)}  max ${at(1)} ms` : "none";
}

/** Whether file systems can be made here: nodes whose disk can be full. */
function canMount(base) {
  const dir = path.join(base, "mounts");
  mkdirSync(dir, { recursive: true });
  const can = spawnSync("mount", ["-t", "tmpfs", "tmpfs", dir]).status === 0;
  if (can) spawnSync("umount", [dir]);
  return can;
}

/** Does `what` with each of a list, some at a time. */
async function each(list, what, width = 16) {
  const items = [...list];
  let next = 0;
  await Promise.all(Array.from({ length: width }, async () => {
    for (let i; (i = next++) < items.length; ) await what(items[i]);
  }));
}

/** What the run has, read when all is well: lists whole, registers once more, messages and bells until they have come. */
async function judge(load, verdict, world, attack, { partial = false } = {}) {
  const wrong = [];
  const lists = new Map();
  const late = performance.now() + (partial ? 20_000 : Infinity);
  for (const name of verdict.lists.keys()) {
    if (performance.now() > late) break;
    const entries = [];
    try {
      for (;;) {
        const target = name === "d1" ? `/rows/${entries.length}` : `/list/${name}/${entries.length}`;
        const page = (await load.ask(target, partial ? 2000 : 120_000)).value.entries;
        entries.push(...page);
        if (page.length < 2000) break;
      }
      lists.set(name, entries);
    } catch (error) {
      if (!partial) wrong.push({ kind: "stuck", text: error.message });
      else say(error.message);
    }
  }
  for (const [name, entries] of lists) wrong.push(...Judge.checkList(name, verdict.lists.get(name), entries));
  if (partial) return wrong; // what is not there any more may be anywhere
  await each(verdict.registers, async ([name, register]) => {
    const kind = name.startsWith("put") ? "get" : "fetch";
    const asked = performance.now(), answer = await load.ask(`/${kind}/${name}`);
    register.reads.push({ asked, answered: performance.now(), final: true, ...load.seen(kind, name, answer) });
    wrong.push(...Judge.checkRegister(name, register));
  });
  say("keys are read");
  await each(verdict.rung, async ([bell, rung]) => {
    const rings = async () => (await load.ask(`/rings/${bell}`)).value;
    if (rung.ok) await until(async () => (await rings()).length >= rung.times, bell, 60_000).catch(() => {});
    const list = await rings();
    rung.came = list.length;
    wrong.push(...Judge.checkBell(bell, rung, list, (from, to) => attack.near(from, to)));
  });
  say("bells are read");
  const delivered = () => {
    const map = new Map();
    for (const output of [...world.outputs, ...[...world.nodes.values()].filter((server) => !server.exit).map((server) => server.output)])
      for (const [, message] of output.matchAll(/delivered (v\d+)\./g)) map.set(message, (map.get(message) ?? 0) + 1);
    return map;
  };
  const haveCome = () => {
    const come = delivered();
    return [...verdict.sent].every(([message, outcome]) => outcome !== "ok" || come.has(message));
  };
  await until(haveCome, "messages", 90_000).catch(() => {});
  verdict.delivered = delivered();
  wrong.push(...Judge.checkDeliveries(verdict.sent, verdict.delivered));
  return wrong;
}

function report(load, verdict, attack) {
  const counts = {};
  for (const { kind } of attack.records) counts[kind] = (counts[kind] ?? 0) + 1;
  console.log(`faults: ${Object.entries(counts).map(([kind, count]) => `${kind} ${count}`).join(", ") || "none"}`);
  console.log(`operations: ${Object.entries(load.counts).map(([kind, { tries, ok }]) => `${kind} ${ok} of ${tries}`).join(", ")}`);
  const acknowledged = [...verdict.lists.values()].flat().filter((op) => op.ok && op.write !== undefined).length;
  const rungs = [...verdict.rung.values()].filter((rung) => rung.ok);
  console.log(`acknowledged: ${acknowledged} writes of lists and rows, ${[...verdict.registers.values()].flatMap(({ writes }) => writes).filter((op) => op.ok).length} of keys, ` +
    `${[...verdict.sent.values()].filter((outcome) => outcome === "ok").length} messages (${[...(verdict.delivered ?? new Map()).values()].filter((count) => count > 1).length} came again), ` +
    `${rungs.length} bells (${rungs.filter((rung) => rung.came > rung.times).length} rang again)`);
  const isAlone = (one) => !one.bare && !attack.records.some((other) => other !== one && other.from < one.to && other.to > one.from);
  console.log("first durable write after a fault, from its beginning (fail-overs: from when there is a primary with a standby); alone: no other at that time, nor a replica that was lost:");
  for (const kind of [...Object.keys(counts)].sort()) {
    const timed = attack.records.filter((record) => record.kind === kind && record.write !== undefined);
    if (timed.length) console.log(`  ${kind.padEnd(18)} alone ${String(timed.filter(isAlone).length).padStart(3)}: ${spread(timed.filter(isAlone).map((record) => record.write)).padEnd(40)} all ${String(timed.length).padStart(3)}: ${spread(timed.map((record) => record.write))}`);
  }
}

/** What one needs to find the cause: outputs, tables, histories of what is wrong. */
async function keep(wrong, verdict, world, attack) {
  const dir = options.keep ?? mkdtempSync("/tmp/cairn-evidence-");
  mkdirSync(dir, { recursive: true });
  for (const [name, server] of world.nodes) writeFileSync(path.join(dir, `node-${name}.txt`), server.output);
  writeFileSync(path.join(dir, "nodes-before.txt"), world.outputs.join("\n-----\n"));
  world.slots.forEach((server, i) => server && writeFileSync(path.join(dir, `pg${i}.txt`), server.output));
  for (const table of ["session", "shard"]) writeFileSync(path.join(dir, `${table}.txt`), (await world.engine.tryAsk(`SELECT * FROM cairn.${table} ORDER BY id`)) ?? "");
  writeFileSync(path.join(dir, "faults.json"), JSON.stringify(attack.records, null, 1));
  for (const { kind, text } of wrong) {
    appendFileSync(path.join(dir, "wrong.txt"), `${kind}: ${text}\n`);
    const name = text.split(":")[0], ops = verdict.lists.get(name) ?? verdict.registers.get(name);
    if (ops) writeFileSync(path.join(dir, `history-${name}.json`), JSON.stringify(ops, null, 1));
  }
  return dir;
}

/** An engine that does not wait for its standby loses what it acknowledged when it fails over: it must be found. */
async function control(world, load) {
  load.start();
  await until(() => [...load.judge.lists.values()].flat().filter((op) => op.ok).length > 50, "some answers");
  world.second.kill(); // from now on it lags behind
  await world.second.exited;
  const before = performance.now();
  await until(() => [...load.judge.lists.values()].flat().filter((op) => op.ok && op.write !== undefined && op.asked > before).length > 20, "acknowledged writes that the standby has not");
  await load.stop();
  world.engine.kill();
  await Promise.all(world.names.map((name) => world.kill(name, true)));
  await world.second.start();
  await world.failOver({ kind: "killed", ms: 0 });
  // Disks may have what the engine lost: they are lost as well, and forgotten. The engine's log has been whole so far.
  for (const name of world.names) world.wipe(name);
  await world.engine.ask("UPDATE cairn.shard SET disks = '{}'; UPDATE cairn.session SET live = false");
  for (const name of world.names) await world.start(name);
}

async function main(base) {
  const seed = number("seed"), net = inHub ? Net.make() : null;
  const only = options.only?.split(","), small = !only || only.includes("full") ? canMount(base) : false;
  const world = await World.make({ base, net, shards: number("shards"), r2: options.r2, async: options.control, small });
  const verdict = new Judge(), load = new Load(world, verdict, { seed, objects: number("objects"), clients: number("clients"), r2: options.r2, think: number("think") });
  const broken = options["expect-wrong"]; // then nothing is waited for long
  const attack = new Attack(world, load, { say, limit: broken ? 15_000 : 90_000 });
  process.on("exit", () => {
    world.end();
    rmSync(base, { recursive: true, force: true, maxRetries: 10 });
  });
  if (!inHub) for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => process.exit(1)); // in a hub all ends with it
  for (let i = 0; i < number("nodes"); i++) await world.start(String.fromCharCode(97 + i));
  await load.ask("/make");
  await world.whole();
  // Faults are of more use when every node owns something; on a busy machine it is not waited for.
  if (!options.control) await until(() => world.isBalanced(number("nodes")), "", given.quick ? 30_000 : 120_000).catch(() => say("some nodes own nothing yet"));
  say(`${number("nodes")} nodes serve, ${net ? "each in a network namespace" : "without network namespaces"}; seed ${seed}`);

  let done = 0;
  const faults = plan({ seed, faults: number("faults"), failovers: number("failovers"), net, small, only });
  if (options.control) {
    await control(world, load);
  } else {
    if (options.plant) plant(world, options.plant, randomFrom(seed));
    load.start();
    await pause(1000);
    for (const fault of faults) {
      if (seconds() > number("seconds-max") || (broken && (attack.stuck.length || world.ended.length))) break;
      await attack.next(fault);
      done++;
    }
    await attack.end();
    await world.whole(broken ? 20_000 : 240_000).catch((error) => attack.stuck.push(error.message));
    if (!broken) await until(async () => (await world.ghosts()) === "", "", 90_000).catch(async () => attack.stuck.push(`the engine lists disks that nobody has: ${await world.ghosts()}`));
    await load.stop();
  }
  say("all is well again; what is there is read");
  const wrong = await judge(load, verdict, world, attack, { partial: options.control || broken });
  for (const { name, exit, output } of world.ended) wrong.push({ kind: "ended", text: `${name} ended by itself (${JSON.stringify(exit)}):\n${output.slice(-3000)}` });
  for (const text of attack.stuck) wrong.push({ kind: "stuck", text });

  console.log(`\n${cairn}: ${done} of ${faults.length} faults in ${seconds()} s, seed ${seed}`);
  report(load, verdict, attack);
  const count = (...kinds) => wrong.filter(({ kind }) => kinds.includes(kind)).length;
  console.log(`lost ${count("lost", "body")}, stale ${count("stale", "future", "never", "owners", "torn", "twice", "foreign", "refused")}, stuck ${count("stuck")}, ended by themselves ${count("ended")}`);
  for (const { kind, text } of wrong.slice(0, 20)) console.log(`  ${kind}: ${text}`);
  const expected = options.control || broken;
  if (wrong.length && !expected) console.log(`evidence: ${await keep(wrong, verdict, world, attack)}`);
  const found = options.control ? count("lost") > 0 : wrong.length > 0;
  if (expected) console.log(found ? "found, as it must be" : "NOT FOUND");
  return found === expected ? 0 : 1;
}

if (!inHub) {
  const base = mkdtempSync(path.join(os.tmpdir(), "cairn-campaign-"));
  chmodSync(base, 0o711); // PostgreSQL is another user's
  const why = options["no-net"] ? "--no-net" : noHub();
  if (!why) process.exit(await inside(base));
  console.log(`campaign: without network namespaces (${why}): nodes are cut from the engine only`);
  process.env.TMPDIR = base;
}
process.exit(await main(process.env.TMPDIR).catch((error) => (console.error(error), 1)));
