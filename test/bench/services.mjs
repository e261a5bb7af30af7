// `make bench`, third part: services beside miniflare on the same script, in turn, several times; the
// medians are compared. Cairn syncs every write before it answers; miniflare's writes go through SQLite's.
//
// BENCH_ONLY=kv-get,d1-batch chooses workloads, BENCH_SECONDS and BENCH_REPEATS how long.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { format, freePort, get, median, root, Server, sleep, startCairn, tempDir, wrk } from "./lib.mjs";
import { note } from "./report.mjs";

const MINIFLARE = "4.20260426.0"; // the last for Node.js 20 and before
const here = path.join(root, "test/bench");
const script = path.join(here, "workers/services.js");
const seconds = Number(process.env.BENCH_SECONDS || 3);
const repeats = Number(process.env.BENCH_REPEATS || 3);
const only = process.env.BENCH_ONLY?.split(",");

/** Installs miniflare below build/: it is large, and only this needs it. */
function installMiniflare() {
  const dir = path.join(root, "build/miniflare");
  if (!existsSync(path.join(dir, "node_modules/miniflare"))) {
    mkdirSync(dir, { recursive: true });
    writeFileSync(path.join(dir, "package.json"), '{"private":true}\n');
    execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", `miniflare@${MINIFLARE}`], { cwd: dir, stdio: ["ignore", "ignore", "inherit"] });
  }
  return dir;
}

async function startMiniflare(modules) {
  const port = await freePort();
  const dir = tempDir("miniflare");
  return new Server().start([process.execPath, path.join(here, "miniflare.mjs"), modules, script, String(port), dir], port, "/hello", dir);
}

/** From the first send to the arrival of the last message, in batches of a hundred. */
async function measureQueue(server) {
  const seen = async () => Number((await get(`${server.base}/queue/seen`)).body);
  const before = await seen();
  const began = performance.now();
  const { cpuPerRequest } = await wrk(server, "/queue/send", { seconds, connections: 8, mayRefuse: true }); // miniflare holds 10,000
  let last = await seen(), changed = performance.now();
  while (performance.now() - changed < 2000) {
    await sleep(10);
    const now = await seen();
    if (now !== last) [last, changed] = [now, performance.now()];
  }
  return { rate: (last - before) / ((changed - began) / 1000), cpuPerRequest: cpuPerRequest / 100 };
}

const workloads = [
  { name: "KV get", only: "kv-get", path: "/kv/get", goal: 10 },
  { name: "KV put", only: "kv-put", path: "/kv/put", goal: 10 },
  { name: "D1 insert", only: "d1-insert", path: "/d1/insert", goal: 10 },
  { name: "D1 select, one row", only: "d1-select", path: "/d1/select", goal: 10 },
  { name: "D1 batch of 50 inserts", only: "d1-batch", path: "/d1/batch", goal: 20 },
  { name: "R2 put, 1 MB", only: "r2-put", path: "/r2/put", connections: 8, goal: 10 },
  { name: "R2 get, 1 MB", only: "r2-get", path: "/r2/get", connections: 8, goal: 5 },
  { name: "Cache match", only: "cache", path: "/cache/match", goal: 10 },
  { name: "Queue, messages per second", only: "queue", measure: measureQueue, goal: 15 },
].filter((workload) => !only || only.includes(workload.only));

if (workloads.length) {
  const modules = installMiniflare();
  const starters = { miniflare: () => startMiniflare(modules), cairn: () => startCairn(path.join(here, "workers/wrangler.services.jsonc")) };
  const figures = Object.fromEntries(workloads.map(({ name }) => [name, { miniflare: [], cairn: [], cost: [] }]));
  for (let i = 0; i < repeats; i++) {
    for (const [peer, start] of Object.entries(starters)) {
      const server = await start();
      try {
        if ((await get(`${server.base}/setup`)).status !== 200) throw new Error(`${peer} cannot be set up`);
        for (const workload of workloads) {
          const measure = workload.measure ?? (async () => {
            await wrk(server, workload.path, { ...workload, seconds: 1 });
            return wrk(server, workload.path, { ...workload, seconds });
          });
          const { rate, cpuPerRequest } = await measure(server);
          figures[workload.name][peer].push(rate);
          if (peer === "cairn") figures[workload.name].cost.push(cpuPerRequest);
        }
      } finally {
        await server.stop();
      }
    }
  }
  const line = (...cells) => console.log(cells.map((c, i) => i === 0 ? String(c).padEnd(30) : String(c).padStart(13)).join(""));
  line("requests per second", "miniflare", "cairn", "ratio", "goal", "cairn us/req");
  for (const { name, goal } of workloads) {
    const [miniflare, cairn] = [median(figures[name].miniflare), median(figures[name].cairn)];
    const cost = median(figures[name].cost);
    line(name, format(miniflare), format(cairn), `${(cairn / miniflare).toFixed(2)}x`, `${goal}x`, format(cost));
    note("services", name, { peer: miniflare, cairn, ratio: cairn / miniflare, goal: `${goal}×`, cost });
  }
}
