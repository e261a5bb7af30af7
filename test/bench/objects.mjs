// `make bench`, second part: Durable Objects beside workerd, both with every write synced to disk.
// Each workload is measured on both in turn, several times, and the medians are compared.
//
// BENCH_ONLY=do-mem,create chooses workloads, BENCH_SECONDS and BENCH_REPEATS how long.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { PEERS, comparePeers, format, median, root, sleep, startCairn, startWorkerd, tempDir, usage, wrk } from "./lib.mjs";
import { note as keep } from "./report.mjs";

const here = path.join(root, "test/bench");
const config = path.join(here, "workers/wrangler.objects.jsonc");
const script = path.join(here, "workers/objects.js");
const objects = { COUNTER: "Counter", MEMORY: "Memory", FRESH: "Fresh", LIMITER: "Limiter", ALARM: "Alarm" };
const lua = path.join(here, "names.lua");
const seconds = Number(process.env.BENCH_SECONDS || 3);
const repeats = Number(process.env.BENCH_REPEATS || 3);
const only = process.env.BENCH_ONLY?.split(",");
const chosen = (name) => !only || only.includes(name);

const start = (peer, options = {}) =>
  peer === "cairn" ? startCairn(options.config ?? config, options) : startWorkerd(script, { objects, ...options });

const agent = new http.Agent({ keepAlive: true, maxSockets: 32 });
const ask = (server, target) => new Promise((resolve, reject) => {
  http.get(server.base + target, { agent }, (response) => {
    let body = "";
    response.setEncoding("utf8").on("data", (part) => { body += part; }).on("error", reject);
    response.on("end", () => response.statusCode === 200 ? resolve(JSON.parse(body)) : reject(new Error(`${target}: ${response.statusCode} ${body}`)));
  }).on("error", reject);
});
/** Asks for each of `count` targets once, 32 at a time. */
async function askAll(server, count, target, each = () => {}) {
  let next = 0;
  await Promise.all(Array.from({ length: 32 }, async () => {
    while (next < count) {
      const i = next++;
      each(await ask(server, target(i)), i);
    }
  }));
}

const line = (...cells) => console.log(cells.map((c, i) => i === 0 ? String(c).padEnd(30) : String(c).padStart(13)).join(""));
/** Prints a row; `less` when a smaller figure is the better one. */
function row(name, figures, goal, { less = false, cost } = {}) {
  const [workerd, cairn] = PEERS.map((peer) => median(figures[peer]));
  const ratio = less ? workerd / cairn : cairn / workerd;
  line(name, format(workerd), format(cairn), `${ratio.toFixed(2)}x`, goal, cost === undefined ? "" : format(cost));
  keep("objects", name, { peer: workerd, cairn, ratio, goal: goal.replace(/x$/, "×"), cost });
}
const compare = (measure, count = repeats) => comparePeers(start, measure, count);

// --- requests per second -------------------------------------------------------------------------

const workloads = [
  { name: "do-mem: RPC", only: "do-mem", path: "/counter/memory", goal: 6 },
  { name: "do-fetch: stub.fetch", only: "do-fetch", path: "/counter/fetch", goal: 5 },
  { name: "do-read: one-row SELECT", only: "do-read", path: "/counter/read", goal: 8 },
  { name: "do-kv: write, storage.kv", only: "do-kv", path: "/counter/kv", goal: 20 },
  { name: "do-sql: write, SQL", only: "do-sql", path: "/counter/sql", goal: 20 },
  { name: "do-async: write, await", only: "do-async", path: "/counter/async", goal: 20 },
  { name: "do-sql-c1: one connection", only: "do-sql-c1", path: "/counter/sql", connections: 1, goal: 2.7 },
  { name: "many-write: 1,000 objects", only: "many-write", path: "/", lua, goal: 20, luaArgs: ["/counter/sql?name=many", "random", 1000],
    prepare: (server) => askAll(server, 1000, (i) => `/counter/sql?name=many${i + 1}`) },
  { name: "create: object, table, row", only: "create", path: "/", lua, luaArgs: ["/create?name=new", "next"], warm: ["/create?name=warm", "next"], goal: 30 },
  { name: "ratelimit", only: "ratelimit", path: "/", lua, luaArgs: ["/limit?name=", "random", 100], goal: 25 },
].filter((w) => chosen(w.only));

if (workloads.length) line("requests per second", "workerd", "cairn", "ratio", "goal", "cairn us/req");
for (const workload of workloads) {
  const cost = [];
  const figures = await compare(async (server, peer) => {
    await workload.prepare?.(server);
    await wrk(server, workload.path, { ...workload, seconds: 1, luaArgs: workload.warm ?? workload.luaArgs });
    const result = await wrk(server, workload.path, { ...workload, seconds });
    if (peer === "cairn") cost.push(result.cpuPerRequest);
    return result.rate;
  });
  row(workload.name, figures, `${workload.goal}x`, { cost: median(cost) });
}

// --- the first request to an object that is only on disk -----------------------------------------

if (chosen("wake")) {
  const count = 200;
  const figures = { workerd: [], cairn: [] }, late = { workerd: [], cairn: [] };
  for (let i = 0; i < repeats; i++) {
    for (const peer of PEERS) {
      const dir = tempDir(peer);
      let server = await start(peer, { dir });
      await askAll(server, count, (k) => `/counter/sql?name=wake${k}`);
      await server.stop({ keep: true });
      server = await start(peer, { dir });
      const times = [];
      for (let k = 0; k < count; k++) {
        const began = process.hrtime.bigint();
        await ask(server, `/counter/read?name=wake${k}`);
        times.push(Number(process.hrtime.bigint() - began) / 1e6);
      }
      figures[peer].push(median(times));
      late[peer].push(times.sort((a, b) => a - b)[Math.floor(count * 0.99)]);
      await server.stop();
    }
  }
  row("wake: first request, p50 ms", figures, "4x", { less: true });
  row("wake: first request, p99 ms", late, "0.6 ms", { less: true });
}

// --- memory --------------------------------------------------------------------------------------

if (chosen("memory")) {
  const live = { workerd: [], cairn: [] }, kept = { workerd: [], cairn: [] };
  for (const peer of PEERS) {
    const server = await start(peer);
    for (let i = 0; i < 3000; i++) await ask(server, "/memory/hit?name=warm");
    await sleep(1000);
    const before = usage(server.pid).rss;
    const count = 1000; // all must be made before the first is let go
    await askAll(server, count, (i) => `/memory/hit?name=idle${i}`);
    live[peer].push((usage(server.pid).rss - before) / count / 1e3);
    await sleep(26_000); // both let idle objects go after 10 s
    kept[peer].push(Math.max(0, (usage(server.pid).rss - before) / count / 1e3));
    await server.stop();
  }
  const sql = { workerd: [], cairn: [] };
  for (const peer of PEERS) {
    const server = await start(peer);
    for (let i = 0; i < 3000; i++) await ask(server, "/counter/read?name=warm");
    await sleep(1000);
    const before = usage(server.pid).rss;
    const count = 3000;
    await askAll(server, count, (i) => `/counter/read?name=idle${i}`);
    sql[peer].push((usage(server.pid).rss - before) / count / 1e3);
    await server.stop();
  }
  row("memory of a live object, kB", live, "8x", { less: true });
  row("the same with a table in SQL, kB", sql, "20 kB", { less: true });
  row("memory kept when evicted, kB", kept, "0 kB", { less: true });
}

// --- alarms --------------------------------------------------------------------------------------

if (chosen("alarms")) {
  const figures = await compare(async (server) => {
    // How long setting them takes says when they can be due: after the last was set.
    const began = Date.now();
    await askAll(server, 100, (i) => `/alarm/set?name=trial${i}&at=${began + 3600_000}`);
    const rate = 100_000 / Math.max(1, Date.now() - began);
    const count = Math.min(2000, Math.max(100, Math.floor(rate * 30)));
    const due = Date.now() + (count / rate) * 1500 + 2000;
    await askAll(server, count, (i) => `/alarm/set?name=alarm${i}&at=${due}`);
    if (Date.now() > due) throw new Error("the alarms were not all set in time");
    await sleep(due + 4000 - Date.now());
    let last = 0, missing = 0;
    await askAll(server, count, (i) => `/alarm/report?name=alarm${i}`, (report) => {
      if (!report.fired) missing++;
      last = Math.max(last, report.done ?? report.fired);
    });
    if (missing) throw new Error(`${missing} alarms have not run`);
    return (count * 1000) / Math.max(1, last - due);
  });
  row("2,000 alarms at once, per s", figures, "20,000");
}

// --- growth --------------------------------------------------------------------------------------

if (chosen("growth")) {
  const first = [], last = [];
  line("objects live", "memory us/req", "req/s", "SQL us/req", "req/s", "MB resident");
  // Objects stay for as long as the measurement takes.
  const kept = path.join(here, "workers/wrangler.growth.jsonc");
  writeFileSync(kept, readFileSync(config, "utf8").replace("{", '{\n  "cairn": { "limits": { "object_idle_ms": 600000 } },'));
  try {
    for (const count of [10, 100, 1000, 10_000, 100_000]) {
      const server = await startCairn(kept);
      const cells = [];
      for (const target of ["/memory/hit?name=m", "/counter/read?name=c"]) {
        const known = Math.min(count, target.startsWith("/counter") ? 10_000 : count);
        await askAll(server, known, (i) => `${target}${i + 1}`);
        const options = { lua, luaArgs: [target, "random", known] };
        await wrk(server, "/", { ...options, seconds: 1 });
        const runs = [];
        for (let i = 0; i < repeats; i++) runs.push(await wrk(server, "/", { ...options, seconds }));
        const cost = median(runs.map((r) => r.cpuPerRequest));
        if (count === 10) first.push(cost);
        if (count === 100_000) last.push(cost);
        cells.push(format(cost), format(median(runs.map((r) => r.rate))));
      }
      line(count.toLocaleString("en"), ...cells, format(usage(server.pid).rss / 1e6));
      await server.stop();
    }
    for (const [i, name] of ["RPC", "SELECT"].entries()) {
      keep("objects", `growth: µs CPU of a ${name}, 10 live (first column), then 100,000${i ? " and 10,000 with SQL" : ""}`,
        { peer: first[i], cairn: last[i], ratio: last[i] / first[i], goal: "1.2×" });
    }
  } finally {
    rmSync(kept, { force: true });
  }
}
agent.destroy();
