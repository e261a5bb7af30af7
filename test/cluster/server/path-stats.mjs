// The path statistics (apps/path-stats, as they are, with their cron triggers) on three nodes: events by way of each in turn, while each is killed and
// started again. Every event that was acknowledged counts once, and so does every other: what was not acknowledged is sent again, under its id, which
// the application counts once (apps/path-stats/src/count.ts, K1).
//
//     node test/cluster/server/path-stats.mjs --events 300000 --rounds 1
//
// A round kills each node once. Judged (exit code 1 if anything is wrong), asked of every node:
//   E1  Detail rows, the sum of what the hours have counted, and marks are as many as events.
//   E2  Requests and errors of each path are those of its events.
//   E3  No message lies in the dead letters, and none waits.
//   E4  No node has ended by itself.
// What fails in a batch comes again after two minutes (the application's own back-off), so the end of it takes that long after a kill.
import path from "node:path";
import { parseArgs } from "node:util";
import { root } from "../../integration/lib/server.mjs";
import { DAY, dateOf, daysAgo, event, headers, token } from "../../integration/apps/path-stats-lib.mjs";
import { absent, until } from "./postgres.mjs";
import { Stage, pause, spread } from "./stage.mjs";

const text = (value) => ({ type: "string", default: value });
const { values: options } = parseArgs({ options: { events: text("300000"), rounds: text("1"), senders: text("6"), nodes: text("3"), shards: text("24"), minutes: text("20") } });
const number = (name, least) => {
  const value = Number(options[name]);
  if (!(value >= least)) {
    console.error(`path-stats: --${name} must be a number, ${least} at the least: ${options[name]}`);
    process.exit(2);
  }
  return value;
};
const PATHS = 20, AT_ONCE = 100;
const TOTAL = Math.ceil(number("events", 1) / 200) * 200; // each path has as many, and each ten have an error
const ROUNDS = number("rounds", 0), SENDERS = number("senders", 1), LIMIT_MS = 60_000 * number("minutes", 1);
const NODES = Array.from({ length: number("nodes", 2) }, (_, i) => String.fromCharCode(97 + i));
if (absent) {
  console.log(`path-stats: not run: ${absent}`);
  process.exit(0);
}

const began = performance.now();
const say = (line) => console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`);
let wrong = 0;
const mistake = (line) => {
  wrong++;
  say(`WRONG ${line}`);
};

const folder = path.join(root, "apps/path-stats");
const stage = await Stage.make({ folder, shards: number("shards", 1), names: NODES, args: ["--var", `ADMIN_TOKEN=${token}`] });
for (const [i, name] of ["path-stats", "path-stats-2"].entries()) {
  const applied = await stage.run("d1", "migrations", "apply", name, "--data", stage.data(NODES[i % NODES.length]));
  if (applied.code !== 0) throw new Error(applied.stderr);
}
say("the cluster is there");

/** One try at one node: {status, value}; status 0: there was no answer. */
async function ask(node, target, body, timeout = 60_000) {
  const server = stage.nodes.get(node);
  if (server.exit) return { status: 0, value: "it is away" };
  try {
    const response = await fetch(server.url + target, { method: body ? "POST" : "GET", body: body && JSON.stringify(body), headers, signal: AbortSignal.timeout(timeout) });
    const answer = await response.text();
    return { status: response.status, value: response.ok ? JSON.parse(answer) : answer };
  } catch (error) {
    return { status: 0, value: String(error.cause?.code ?? error.message) };
  }
}

// --- sending, and kills ----------------------------------------------------------------------------

const day = daysAgo(1); // its details stay for three days
const batches = TOTAL / AT_ONCE, times = [], refusals = new Map();
const kills = []; // {at, node}: when so many batches are acknowledged
for (let i = 0; i < ROUNDS * NODES.length; i++) kills.push({ at: Math.floor(((i + 1) * batches) / (ROUNDS * NODES.length + 1)), node: NODES[i % NODES.length] });
let next = 0, acknowledged = 0, again = 0, turn = 0, killing = Promise.resolve();

async function send(events) {
  for (const from = performance.now(); ; ) {
    const { status, value } = await ask(NODES[turn++ % NODES.length], "/admin/events", { events });
    if (status === 202) return times.push(performance.now() - from);
    if (status >= 400 && status < 500) throw new Error(`${status} ${value}`);
    again++;
    const why = status ? `${status} ${String(value).slice(0, 60)}` : value;
    refusals.set(why, (refusals.get(why) ?? 0) + 1);
    await pause(20);
  }
}

async function kill({ node }) {
  say(`kill -9 ${node}; ${acknowledged * AT_ONCE} events are acknowledged`);
  await stage.kill(node);
  await pause(2000); // the others have what it had
  await stage.start(node);
  await stage.settled();
  say(`${node} is back, with its share`);
}

const sending = performance.now();
await Promise.all(Array.from({ length: SENDERS }, async () => {
  for (let batch; (batch = next++) < batches; ) {
    await send(Array.from({ length: AT_ONCE }, (_, i) => event(batch * AT_ONCE + i, day, { every: DAY / TOTAL, paths: PATHS })));
    acknowledged++;
    if (!(acknowledged >= kills[0]?.at)) continue;
    await killing; // one at a time; sending goes on until the next is due
    if (!(acknowledged >= kills[0]?.at)) continue; // another sender has been here
    killing = kill(kills.shift());
    killing.catch(() => {}); // told below
  }
}));
await killing;
const seconds = (performance.now() - sending) / 1000;
const { p50, p99, max } = spread(times);
say(`${TOTAL} events are acknowledged: ${Math.round(TOTAL / seconds)}/s; a hundred took p50 ${Math.round(p50)}, p99 ${Math.round(p99)}, at most ${Math.round(max)} ms with all tries`);
if (again) say(`${again} requests were sent again: ${[...refusals].map(([why, count]) => `${why} (${count})`).join(", ")}`);

// --- the end of it ---------------------------------------------------------------------------------

let told = 0;
await until(async () => {
  await pause(2000); // counting is work too
  const { status, value } = await ask(NODES[turn++ % NODES.length], `/admin/counts?date=${dateOf(day)}`);
  if (status !== 200) return false;
  if (performance.now() - told > 30_000) {
    told = performance.now();
    say(`${value.events} kept, ${value.counted} counted`);
  }
  return value.events >= TOTAL && value.counted >= TOTAL;
}, "every event is counted", LIMIT_MS).catch((error) => mistake(error.message));
say("counted");

const same = (what, is, should) => JSON.stringify(is) === JSON.stringify(should) || mistake(`${what}: ${JSON.stringify(is)}, should be ${JSON.stringify(should)}`);
for (const node of NODES) {
  const { value } = await ask(node, `/admin/counts?date=${dateOf(day)}&marks`);
  same(`E1: ${node}: kept, counted, marks`, [value.events, value.counted, value.marks], [TOTAL, TOTAL, TOTAL]);
  const all = (await ask(node, "/paths/stats?hours=48")).value.total;
  same(`E2: ${node}: requests, errors`, [all?.requests, all?.errors], [TOTAL, TOTAL / 10]);
  for (let i = 0; i < PATHS; i++) {
    const one = (await ask(node, `/paths/stats?hours=48&path=${encodeURIComponent(`/p/${i}`)}`)).value.total;
    same(`E2: ${node}: requests and errors of /p/${i}`, [one?.requests, one?.errors], [TOTAL / PATHS, i % 10 === 0 ? TOTAL / PATHS : 0]);
  }
}
// What the consumer does after the last count: it acknowledges. The application tells how its queues are, whichever node is asked.
let queue = {};
await until(async () => {
  queue = (await ask(NODES[turn++ % NODES.length], "/paths/metrics")).value.queue ?? {};
  return queue.backlog === 0 || queue.deadLetters > 0;
}, "an empty queue", 300_000).catch(() => {});
same("E3: messages that wait, dead letters", [queue.backlog, queue.deadLetters], [0, 0]);
for (const { name, exit, output } of stage.ended) mistake(`E4: ${name} ended by itself (${JSON.stringify(exit)}):\n${output.slice(-2000)}`);

console.log(wrong ? `${wrong} WRONG` : `${TOTAL} events, ${ROUNDS * NODES.length} kills: exact`);
process.exit(wrong ? 1 : 0);
