// `make flames`: where the processor time of each row of `make bench` goes, by perf: a flame graph per row in build/bench/flames/NAME.svg, and a
// table of shares. Stacks come from DWARF, so those of compiled JavaScript end at it: what it calls stands beside it.
//
// BENCH_ONLY=hello,do-sql chooses rows, BENCH_SECONDS how long each is watched.
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { configOf, probes, rows as named, setups } from "./base.mjs";
import { draw, fold, PLACES, shares } from "./flamegraph.mjs";
import { get, root, sleep, startCairn, tempDir, wrk } from "./lib.mjs";

const run = promisify(execFile);
const seconds = Number(process.env.BENCH_SECONDS || 2);
const only = process.env.BENCH_ONLY?.split(",");
const out = path.join(root, "build/bench/flames");
const HERTZ = 997;

const scripts = mkdtempSync(path.join(os.tmpdir(), "cairn-flames-"));
function post(name, body) {
  const lua = path.join(scripts, `${name}.lua`);
  writeFileSync(lua, `wrk.method = "POST"\nwrk.headers["content-type"] = "application/json"\nwrk.body = ${JSON.stringify(body)}\n`);
  return lua;
}
const megabyte = JSON.stringify({ text: "x".repeat(1 << 20) });
const bodies = ["json", "stream", "text", "bytes"].map((kind) => ({ name: `echo-${kind}-1m`, path: `/echo-${kind}`, connections: 4, lua: post(kind, megabyte) }));
const more = [
  ...bodies,
  { name: "gzip-10m", path: "/gzip", connections: 1 },
  { name: "aes-gcm-10m", path: "/aes-gcm", connections: 4 },
  { name: "html-1m", path: "/html", connections: 1 },
  { name: "cpu", path: "/cpu?seed=777", connections: 8 },
].map((row) => ({ ...row, project: "serve" })).filter((row) => !only || only.includes(row.name));
// Those in C and their twins in JavaScript are told by `make bench-instructions`.
const rows = [...named.filter((row) => row.project !== "compiled" && row.project !== "front"), ...more];

/** The folded stacks of a server while `row` is asked of it. */
async function watch(server, row) {
  const folder = tempDir("perf"), data = path.join(folder, "perf.data");
  const load = (length, turn) => wrk(server, row.path, { seconds: length, connections: row.connections, lua: row.lua,
    luaArgs: row.fresh ? [`${row.luaArgs[0]}${turn}-`, ...row.luaArgs.slice(1)] : row.luaArgs });
  await load(4, 0); // until most of it is compiled
  const perf = spawn("perf", ["record", "-q", "-o", data, "-F", String(HERTZ), "--call-graph", "dwarf,4096", "-p", String(server.pid)], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  perf.stderr.on("data", (bytes) => (said += bytes));
  const ended = new Promise((resolve) => perf.once("exit", resolve).once("error", (error) => resolve(said += error.message)));
  while (!existsSync(data) && perf.exitCode === null) await sleep(20); // until it watches
  await load(seconds, 1);
  perf.kill("SIGINT");
  await ended;
  try {
    const { stdout } = await run("perf", ["script", "-i", data, "--no-inline", "-F", "comm,ip,sym,dso"], { maxBuffer: 1 << 30 });
    const stacks = fold(stdout);
    if (stacks.length === 0) throw new Error("no samples");
    return stacks;
  } catch (error) {
    throw new Error(`perf tells nothing (${said.trim() || error.message}); it is in Debian's linux-perf, and needs root or kernel.perf_event_paranoid <= 1`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

mkdirSync(out, { recursive: true });
console.log(`Load average before: ${os.loadavg()[0].toFixed(2)}. Shares of the processor time of all threads, in percent.\n`);
console.log(`| | ${PLACES.join(" | ")} | the largest two of these | the next two |\n| --- | ${PLACES.map(() => "---: |").join(" ")} --- | --- |`);
for (const project of new Set(rows.map((row) => row.project))) {
  const server = await startCairn(configOf(project), { probe: probes[project] });
  try {
    if (setups[project]) await get(server.base + setups[project]);
    for (const row of rows.filter((each) => each.project === project)) {
      const stacks = await watch(server, row);
      writeFileSync(path.join(out, `${row.name}.svg`), draw(stacks, row.name));
      const { places, top } = shares(stacks);
      console.log(`| ${row.name} | ${PLACES.map((place) => (places[place] * 100).toFixed(0)).join(" | ")} | ${[top.slice(0, 2), top.slice(2, 4)].map((two) => two.map(([name, share]) => `\`${name}\` ${(share * 100).toFixed(1)}`).join(", ")).join(" | ")} |`);
    }
  } finally {
    await server.stop();
  }
}
console.log(`\n${path.relative(process.cwd(), out)}/*.svg`);
