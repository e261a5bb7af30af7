// `make bench`, third part: hibernatable WebSockets beside workerd, with the same script.
//
// BENCH_ONLY=ws-echo,ws-broadcast,ws-idle,ws-max,ws-rooms chooses, BENCH_SECONDS and BENCH_REPEATS how long.
import { execFile, spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { PEERS, comparePeers, format, median, root, sleep, startCairn, startWorkerd, usage } from "./lib.mjs";
import { note } from "./report.mjs";

const here = path.join(root, "test/bench");
const config = path.join(here, "workers/wrangler.sockets.jsonc");
const script = path.join(here, "workers/sockets.js");
const load = path.join(root, "build/bench/bench_ws");
const seconds = Number(process.env.BENCH_SECONDS || 3);
const repeats = Number(process.env.BENCH_REPEATS || 3);
const only = process.env.BENCH_ONLY?.split(",");
const chosen = (name) => !only || only.includes(name);
const run = promisify(execFile);

const start = (peer) => (peer === "cairn" ? startCairn(config) : startWorkerd(script, { objects: { ROOM: "Room" } }));
const port = (server) => new URL(server.base).port;
const line = (...cells) => console.log(cells.map((c, i) => i === 0 ? String(c).padEnd(34) : String(c).padStart(13)).join(""));

const compare = (measure, count = repeats) => comparePeers(start, measure, count);

/** Messages per second, and the server's CPU time for each in microseconds. */
async function rate(server, mode, target, count) {
  const before = usage(server.pid).cpu;
  const { stdout } = await run(load, [mode, port(server), target, count, seconds].map(String), { timeout: 60_000 });
  const { messages, seconds: took } = JSON.parse(stdout);
  const cpu = ((usage(server.pid).cpu - before) * 1e6) / (messages * (1 + 1 / seconds)); // a second to warm up
  return { rate: messages / took, cpu };
}

/** Open sockets that do nothing; broadcast() makes every room speak once. */
class Idle {
  static async open(server, target, count, rooms) {
    const idle = new Idle();
    idle.child = spawn(load, ["idle", port(server), target, count, rooms].map(String), { stdio: ["pipe", "pipe", "inherit"] });
    idle.lines = createInterface({ input: idle.child.stdout })[Symbol.asyncIterator]();
    const first = await idle.lines.next();
    if (first.done) throw new Error("the sockets could not be opened");
    idle.opened = JSON.parse(first.value);
    return idle;
  }
  async broadcast() {
    this.child.stdin.write("b\n");
    return JSON.parse((await this.lines.next()).value);
  }
  async close() {
    const exited = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.stdin.end();
    await exited;
  }
}

line("WebSockets", "workerd", "cairn", "ratio", "goal", "cairn us/msg");
for (const [name, mode, target, count, goal, label] of [
  ["ws-echo", "echo", "/room?name=echo", 64, 4, "echo, 64 sockets (msg/s)"],
  ["ws-broadcast", "broadcast", "/room?name=all", 200, 5, "broadcast, 200 clients (msg/s)"],
]) {
  if (!chosen(name)) continue;
  const figures = await compare((server) => rate(server, mode, target, count));
  const [workerd, cairn] = PEERS.map((peer) => median(figures[peer].map((f) => f.rate)));
  const cost = median(figures.cairn.map((f) => f.cpu));
  line(label, format(workerd), format(cairn), `${(cairn / workerd).toFixed(2)}x`, `${goal}x`, format(cost));
  note("websockets", label, { peer: workerd, cairn, ratio: cairn / workerd, goal: `${goal}×`, cost });
}

/** Resident memory and descriptors per socket, once the objects have left memory. */
async function idleCost(server, count, rooms) {
  await (await Idle.open(server, "/room?name=warm", rooms, rooms)).close();
  await sleep(12_000);
  const before = usage(server.pid);
  const idle = await Idle.open(server, "/room?name=r", count, rooms);
  await sleep(14_000); // 10 s until they hibernate, and a collection
  const after = usage(server.pid);
  const { delivered, seconds: took } = await idle.broadcast();
  await idle.close();
  if (delivered !== count) throw new Error(`only ${delivered} of ${count} sockets were still there`);
  return { bytes: (after.rss - before.rss) / count, fds: (after.fds - before.fds) / count, wake: took * 1000, opened: count / idle.opened.seconds };
}

if (chosen("ws-idle")) {
  const figures = await compare((server) => idleCost(server, 5000, 100), 1);
  const [workerd, cairn] = PEERS.map((peer) => figures[peer][0]);
  line("5,000 idle: bytes per socket", format(workerd.bytes), format(cairn.bytes), `${(cairn.bytes / workerd.bytes).toFixed(3)}x`, "0.1x");
  note("websockets", "5,000 idle: bytes per socket", { peer: workerd.bytes, cairn: cairn.bytes, ratio: cairn.bytes / workerd.bytes, goal: "0.1×" });
  line("opening 5,000, per s", format(workerd.opened), format(cairn.opened), `${(cairn.opened / workerd.opened).toFixed(2)}x`, "5x");
  note("websockets", "opening 5,000, per s", { peer: workerd.opened, cairn: cairn.opened, ratio: cairn.opened / workerd.opened, goal: "5×" });
  line("5,000 idle: descriptors each", workerd.fds.toFixed(2), cairn.fds.toFixed(2), "", "1");
  line("5,000 idle: wake all rooms (ms)", format(workerd.wake), format(cairn.wake), `${(workerd.wake / cairn.wake).toFixed(2)}x`, "");
}

if (chosen("ws-max")) {
  const { stdout } = await run("bash", ["-c", "ulimit -Hn"]);
  // Both sides need a descriptor each, and the client a port.
  const count = Math.min(Number(stdout) - 200, 25_000);
  const server = await start("cairn");
  try {
    const { bytes, opened, wake } = await idleCost(server, count, 100);
    line(`${count.toLocaleString("en")} idle: bytes per socket`, "", format(bytes), "", "< 6 KiB", `${format(opened)}/s, ${format(wake)} ms`);
    note("websockets", `${count.toLocaleString("en")} idle: bytes per socket`, { cairn: bytes, goal: "6 KiB" });
  } finally {
    await server.stop();
  }
}

if (chosen("ws-rooms")) {
  // CPU per delivered message by the size of the room, and with 3,000 other sockets open.
  const server = await start("cairn");
  try {
    const costs = [];
    for (const count of [50, 200, 800]) costs.push((await rate(server, "broadcast", `/room?name=size${count}`, count)).cpu);
    const others = await Idle.open(server, "/room?name=other", 3000, 30);
    const crowded = (await rate(server, "broadcast", "/room?name=size200", 200)).cpu;
    await others.close();
    line("us per delivery: room of 50", "", format(costs[0]));
    line("  of 200, of 800", format(costs[1]), format(costs[2]), "", "as 50");
    line("  of 200, 3,000 in other rooms", "", format(crowded), "", "as 200");
  } finally {
    await server.stop();
  }
}
