// `make bench`, last part: /paths of apps/path-stats out of the cache beside a hello world on the same kind of
// server, in turn, several times; the medians are compared.
//
// BENCH_ONLY=paths chooses it, BENCH_SECONDS and BENCH_REPEATS how long.
import { execFileSync } from "node:child_process";
import path from "node:path";
import { event } from "../integration/apps/path-stats-lib.mjs";
import { format, get, median, root, sleep, startCairn, tempDir, wrk } from "./lib.mjs";

const app = path.join(root, "apps/path-stats");
const token = "a-token-for-the-benchmark";
const PATHS = 20;
const seconds = Number(process.env.BENCH_SECONDS || 3);
const repeats = Number(process.env.BENCH_REPEATS || 3);
const only = process.env.BENCH_ONLY?.split(",");

/** path-stats with a little traffic counted and its answer in the cache. */
async function startPaths() {
  const dir = tempDir("paths");
  for (const name of ["path-stats", "path-stats-2"])
    execFileSync(path.join(root, "build/cairn"), ["d1", "migrations", "apply", name, "--data", path.join(dir, "data")], { cwd: app, stdio: ["ignore", "ignore", "inherit"] });
  const server = await startCairn(app, { dir, probe: "/site/a", args: ["--var", `ADMIN_TOKEN=${token}`] });
  const at = Date.now();
  const events = Array.from({ length: 100 }, (_, n) => event(n, at, { paths: PATHS }));
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const sent = await get(`${server.base}/admin/events`, { method: "POST", headers, body: JSON.stringify({ events }) });
  if (sent.status !== 202) throw new Error(`path-stats takes no events: ${sent.status} ${sent.body}`);
  for (const began = Date.now(); ; await sleep(50)) {
    const { body } = await get(`${server.base}/paths?refresh=true`);
    const { dataSource, paths } = JSON.parse(body);
    if (dataSource === "cache" && paths.length >= PATHS) return server;
    if (Date.now() - began > 60_000) throw new Error(`/paths does not come from the cache: ${body.slice(0, 200)}`);
  }
}

if (!only || only.includes("paths")) {
  const peers = {
    hello: [() => startCairn(path.join(root, "test/bench/workers/wrangler.serve.jsonc")), "/hello"],
    paths: [startPaths, "/paths"],
  };
  const rates = { hello: [], paths: [] }, costs = { hello: [], paths: [] };
  for (let i = 0; i < repeats; i++) {
    for (const [name, [start, target]] of Object.entries(peers)) {
      const server = await start();
      try {
        await wrk(server, target, { seconds: 1 });
        const { rate, cpuPerRequest } = await wrk(server, target, { seconds });
        rates[name].push(rate);
        costs[name].push(cpuPerRequest);
      } finally {
        await server.stop();
      }
    }
  }
  const [hello, paths] = [median(rates.hello), median(rates.paths)];
  console.log(`hello world ${format(hello)}/s (${format(median(costs.hello))} us each); /paths from the cache, ${PATHS} paths, ${format(paths)}/s (${format(median(costs.paths))} us each): ${(hello / paths).toFixed(1)} times a hello world`);
}
