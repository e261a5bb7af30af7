// `make bench`, fourth part: objects and workers in C beside those in JavaScript, on two servers that run at the same time and are
// loaded in turn; beside workerd, which has the script in JavaScript; and a worker in C beside bench_http, which has no worker at all.
//
// BENCH_ONLY=compiled chooses all of it, BENCH_ONLY=c-hello,c-mem,c-memory some; BENCH_SECONDS and BENCH_REPEATS say how long.
import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { configOf } from "./base.mjs";
import { format, freePort, median, root, Server, sleep, startCairn, startWorkerd, tempDir, usage, wrk } from "./lib.mjs";
import { note } from "./report.mjs";

const here = path.join(root, "test/bench");
const seconds = Number(process.env.BENCH_SECONDS || 3);
const repeats = Number(process.env.BENCH_REPEATS || 3);
const only = process.env.BENCH_ONLY?.split(",");
const chosen = (name) => !only || only.includes("compiled") || only.includes(name);
const run = promisify(execFile);
const lua = path.join(here, "names.lua");
const line = (...cells) => console.log(cells.map((c, i) => i === 0 ? String(c).padEnd(40) : String(c).padStart(13)).join(""));

/** Messages of a room per second, and the server's CPU time for one. */
async function broadcast(server, target) {
  const before = usage(server.pid).cpu;
  const { stdout } = await run(path.join(root, "build/bench/bench_ws"), ["broadcast", new URL(server.base).port, target, 200, seconds].map(String), { timeout: 60_000 });
  const { messages, seconds: took } = JSON.parse(stdout);
  return { rate: messages / took, cpuPerRequest: ((usage(server.pid).cpu - before) * 1e6) / (messages * (1 + 1 / seconds)) };
}

/** bench_http: what net/ costs with nothing behind it. */
async function startLimit() {
  const port = await freePort();
  return new Server().start([path.join(root, "build/bench/bench_http"), "--port", String(port)], port, "/", tempDir("http"));
}

const objects = { COUNTER: "Counter", MEMORY: "Memory", FRESH: "Fresh", LIMITER: "Limiter", ALARM: "Alarm" };
/** Who is measured: each is started once, and loaded in turn with the others of a row. */
const servers = {
  http: startLimit,
  js: () => startCairn(configOf("objects"), { probe: "/counter/memory" }),
  c: () => startCairn(configOf("front")),
  mixed: () => startCairn(configOf("compiled")),
  workerd: () => startWorkerd(path.join(here, "workers/objects.js"), { objects, probe: "/hello" }),
  workerdRooms: () => startWorkerd(path.join(here, "workers/sockets.js"), { objects: { ROOM: "Room" } }),
};
const LABELS = { js: "JavaScript", workerd: "workerd", workerdRooms: "workerd", http: "bench_http" };

// A goal is of CPU time: C needs at most 1/goal of what the other does.
const ask = (target, more) => (server) => wrk(server, target, { seconds, ...more });
const limit = { lua, luaArgs: ["/limit?name=", "random", 100] };
const rows = [
  { only: "c-hello", name: "hello, beside bench_http", sides: [["http", ask("/")], ["c", ask("/hello")]], goal: 0.8 },
  { only: "c-hello", name: "hello", sides: [["js", ask("/hello")], ["workerd", ask("/hello")], ["c", ask("/hello")]], goal: 1.5 },
  { only: "c-mem", name: "do-mem: worker and object in C", sides: [["js", ask("/counter/memory")], ["workerd", ask("/counter/memory")], ["c", ask("/counter/memory")]], goal: 1.5 },
  { only: "c-mem", name: "do-mem: only the object in C", sides: [["mixed", ask("/js/counter/memory"), "js"], ["mixed", ask("/c/counter/memory")]], goal: 1 },
  { only: "c-mem-100", name: "100 calls in a request, only the object in C", sides: [["mixed", ask("/js/counter/memory?times=100"), "js"], ["mixed", ask("/c/counter/memory?times=100")]], goal: 1 },
  { only: "c-read", name: "do-read: one-row SELECT", sides: [["js", ask("/counter/read")], ["workerd", ask("/counter/read")], ["c", ask("/counter/read")]], goal: 1.5 },
  { only: "c-sql", name: "do-sql: write, SQL", sides: [["js", ask("/counter/sql")], ["workerd", ask("/counter/sql")], ["c", ask("/counter/sql")]], goal: 1.5 },
  { only: "c-limit", name: "ratelimit", sides: [["js", ask("/", limit)], ["workerd", ask("/", limit)], ["c", ask("/", limit)]], goal: 1.5 },
  { only: "c-broadcast", name: "broadcast, 200 clients (msg/s)", sides: [["mixed", (server) => broadcast(server, "/js/room?name=all"), "js"], ["workerdRooms", (server) => broadcast(server, "/room?name=all")], ["mixed", (server) => broadcast(server, "/c/room?name=all")]], goal: 1 },
].filter((row) => chosen(row.only));

if (rows.length) line("C beside others, per second", "other", "C", "ratio", "other us CPU", "C us CPU", "CPU ratio", "goal (CPU)");
const running = {};
try {
  for (const row of rows) {
    const figures = row.sides.map(() => []);
    for (const [who] of row.sides) running[who] ??= await servers[who]();
    for (let round = -1; round < repeats; round++) {
      for (const [i, [who, measure]] of row.sides.entries()) {
        const result = await measure(running[who]);
        if (round >= 0) figures[i].push(result);
        await sleep(50);
      }
    }
    const of = (i, key) => median(figures[i].map((figure) => figure[key]));
    const mine = row.sides.length - 1;
    for (let i = 0; i < mine; i++) {
      const other = row.sides[i][2] ?? row.sides[i][0];
      const [theirs, ours, theirCost, cost] = [of(i, "rate"), of(mine, "rate"), of(i, "cpuPerRequest"), of(mine, "cpuPerRequest")];
      const goal = other === "js" || other === "http" ? row.goal : undefined;
      line(`${row.name}, ${LABELS[other]}`, format(theirs), format(ours), `${(ours / theirs).toFixed(2)}x`, format(theirCost), format(cost), `${(theirCost / cost).toFixed(2)}x`, goal ? `${goal}x` : "");
      note(other.startsWith("workerd") ? "compiled-workerd" : "compiled", other === "js" ? `${row.name}, beside JavaScript` : row.name,
        { peer: theirs, cairn: ours, ratio: theirCost / cost, goal: goal && `${goal}×`, peerCost: theirCost, cost });
    }
  }
} finally {
  for (const server of Object.values(running)) await server.stop();
}

// What a live object costs: made so fast that none has been let go (after 10 s) when the memory is read. Those with storage have
// a table, a row and two prepared statements; what that costs is their database's.
if (chosen("c-memory")) {
  for (const [name, target, time, goal] of [["live object without storage, bytes", "/memory/hit?name=o", 4, "1 kB"], ["with a database, bytes", "/counter/sql?name=o", 3]]) {
    const each = [];
    for (let i = 0; i < repeats; i++) {
      const server = await servers.c();
      try {
        await wrk(server, "/memory/hit?name=warm", { seconds: 1 });
        const before = usage(server.pid).rss;
        const { requests } = await wrk(server, "/", { seconds: time, connections: 16, lua, luaArgs: [target, "next"] });
        each.push({ bytes: (usage(server.pid).rss - before) / requests, count: requests });
      } finally {
        await server.stop();
      }
    }
    const bytes = median(each.map((one) => one.bytes));
    line(name, "", format(bytes), "", "", "", "", goal ?? "", `of ${format(median(each.map(({ count }) => count)))}`);
    note("compiled", name, { cairn: bytes, goal });
  }
}
