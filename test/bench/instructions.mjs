// `make bench-instructions [BASE=commit]`: how many instructions a lane needs for a request, by callgrind, of this tree's
// server and of another commit's. Unlike times they hardly depend on what else the machine does; they say nothing of
// caches and of the kernel. Compiled JavaScript counts; how much of it is compiled well depends on the requests before.
//
// BENCH_ONLY=hello,do-sql chooses rows, BENCH_WARM and BENCH_COUNT the requests before and while instructions are counted.
// The reports (callgrind_annotate, kcachegrind) stay below build/instructions.
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { build, configOf, percent, probes, rows, setups } from "./base.mjs";
import { freePort, get, root, Server, sleep, tempDir } from "./lib.mjs";

const base = process.argv[2];
const warm = Number(process.env.BENCH_WARM || 40_000);
const count = Number(process.env.BENCH_COUNT || 4_000);
const CONNECTIONS = 8;
const run = (name, ...args) => execFileSync(name, args, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] });

/** The path of a row, or of those with names the one with the name `i`. */
function targetOf(row, prefix) {
  if (!row.lua) return () => row.path;
  const [path, , among] = row.luaArgs;
  return (i) => (among ? `${path}${1 + ((i * 7919) % among)}` : `${path}${prefix}${i}`);
}

/** Sends `total` requests over a few connections, each after the answer to the one before. */
function load(server, target, total) {
  const { hostname, port, host } = new URL(server.base);
  let left = total;
  return Promise.all(Array.from({ length: CONNECTIONS }, () => new Promise((resolve, reject) => {
    const socket = net.connect(Number(port), hostname);
    let got = "";
    const next = () => (left-- > 0 ? socket.write(`GET ${target(left)} HTTP/1.1\r\nHost: ${host}\r\n\r\n`) : socket.end());
    socket.on("connect", next);
    socket.on("data", (data) => {
      got += data;
      const end = got.indexOf("\r\n\r\n");
      if (end < 0 || got.length < end + 4 + Number(/content-length: (\d+)/i.exec(got)[1])) return;
      if (!got.startsWith("HTTP/1.1 200")) reject(new Error(got));
      got = "";
      next();
    });
    socket.on("error", reject);
    socket.on("close", resolve);
  })));
}

/** Instructions of the lane, the thread of those that serve HTTP that ran most (one that compiles JavaScript may have run more), without what the server does by the clock: house-keeping, which looks at its heap and collects. */
function counted(dir) {
  let most = 0, report = "";
  for (const name of readdirSync(dir)) {
    if (!name.startsWith("out")) continue;
    const text = readFileSync(path.join(dir, name), "utf8");
    if (!text.includes("net/http_conn.c")) continue;
    const total = Number(/^totals: (\d+)/m.exec(text)?.[1] ?? 0);
    if (total > most) [most, report] = [total, path.join(dir, name)];
  }
  if (!report) return null;
  const lines = run("callgrind_annotate", "--tree=caller", "--inclusive=yes", "--threshold=100", report).split("\n");
  const cost = (name) => {
    const line = lines.find((each) => each.includes(" * ") && each.includes(name));
    return line ? Number(/[\d,]+/.exec(line)[0].replaceAll(",", "")) : 0;
  };
  return most - Math.max(cost("worker/lane.c:on_house"), cost("JSGetMemoryUsageStatistics"));
}

async function measure(row, name, binary) {
  const dir = path.join(root, "build/instructions", `${row.name}-${name}`);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  const port = await freePort();
  const server = await new Server().start(["valgrind", "--tool=callgrind", "--smc-check=all-non-file", "--instr-atstart=no", "--separate-threads=yes", `--callgrind-out-file=${dir}/out`,
    binary, "serve", configOf(row.project), "--listen", `127.0.0.1:${port}`, "--data", path.join(dir, "data"), "--lanes", "1"], port, probes[row.project], tempDir("instructions"), 300);
  try {
    if (setups[row.project]) await get(server.base + setups[row.project]);
    await load(server, targetOf(row, "warm"), warm);
    run("callgrind_control", "--instr=on", String(server.pid));
    await load(server, targetOf(row, "new"), count);
    run("callgrind_control", "--instr=off", String(server.pid));
    run("callgrind_control", "--dump", String(server.pid));
    for (let tries = 0; tries < 300; tries++) { // the server writes it when it next gets to it
      await sleep(100);
      const total = counted(dir);
      if (total !== null) return total / count;
    }
    throw new Error("callgrind has counted nothing");
  } finally {
    await server.stop();
    rmSync(path.join(dir, "data"), { recursive: true, force: true });
  }
}

const before = base ? build(base) : null;
console.log(`${before ? `before: ${before.id}; ` : ""}${count} requests, after ${warm}`);
console.log(`${"instructions".padEnd(20)}${before ? "before".padStart(10) : ""}${"now".padStart(10)}${before ? "change".padStart(10) : ""}`);
for (const row of rows) {
  const then = before ? await measure(row, "before", before.binary) : 0;
  const now = await measure(row, "now", path.join(root, "build/cairn"));
  console.log(`${row.name.padEnd(20)}${before ? then.toFixed(0).padStart(10) : ""}${now.toFixed(0).padStart(10)}${before ? percent(now, then).padStart(10) : ""}`);
}
