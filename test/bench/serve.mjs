// `make bench`: the stateless server beside workerd. Each workload is measured on both in turn,
// several times, and the medians are compared: machines are noisy, only the ratio counts. Where others
// use the processors too, the ratio of CPU time is the steadier one; it includes the threads that help.
import { mkdtempSync, writeFileSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { format, get, median, root, sleep, startCairn, startWorkerd, usage, wrk } from "./lib.mjs";
import { note } from "./report.mjs";

const here = path.join(root, "test/bench");
const config = path.join(here, "workers/wrangler.serve.jsonc");
const script = path.join(here, "workers/serve.js");
const seconds = Number(process.env.BENCH_SECONDS || 3);
const repeats = Number(process.env.BENCH_REPEATS || 3);
const only = process.env.BENCH_ONLY?.split(",");

const temp = mkdtempSync(path.join(os.tmpdir(), "cairn-bench-"));
function postScript(name, body) {
  const file = path.join(temp, name);
  writeFileSync(file, `wrk.method = "POST"\nwrk.headers["content-type"] = "application/json"\nwrk.body = ${JSON.stringify(body)}\n`);
  return file;
}
const kilobyte = JSON.stringify({ items: Array.from({ length: 24 }, (_, i) => ({ id: i, name: `item number ${i}`, ok: true })) });
const megabyte = JSON.stringify({ text: "x".repeat(1 << 20) });

const workloads = [
  { name: "hello", path: "/hello", goal: 7 },
  { name: "json", path: "/json?name=bob&page=3&tag=a&tag=b", goal: 7 },
  { name: "url-headers", path: "/headers?a=1&b=2", goal: 1 },
  { name: "echo-json-1k", path: "/echo-json", lua: postScript("1k.lua", kilobyte), goal: 3 },
  { name: "echo-json-1m", path: "/echo-json", lua: postScript("1m.lua", megabyte), connections: 4, goal: 3 },
  { name: "echo-stream-1m", path: "/echo-stream", lua: postScript("1ms.lua", megabyte), connections: 4, goal: 3 },
  { name: "echo-text-1m", path: "/echo-text", lua: postScript("1mt.lua", megabyte), connections: 4, goal: 3 },
  { name: "echo-bytes-1m", path: "/echo-bytes", lua: postScript("1mb.lua", megabyte), connections: 4, goal: 3 },
  { name: "transform-100m", path: "/transform", connections: 1, seconds: 5, goal: 1 },
  { name: "gzip-10m", path: "/gzip", connections: 1, seconds: 8, goal: 1 },
  { name: "sha256-10m", path: "/sha256", connections: 4, goal: 1 },
  { name: "aes-gcm-10m", path: "/aes-gcm", connections: 4, goal: 1 },
  { name: "html-1m", path: "/html", connections: 1, seconds: 5, goal: 1 },
  { name: "cpu", path: "/cpu?seed=777", connections: 8, goal: 1.1 },
].filter((w) => !only || only.includes(w.name));

const line = (...cells) => console.log(cells.map((c, i) => i === 0 ? String(c).padEnd(26) : String(c).padStart(14)).join(""));
line("workload (req/s)", "workerd", "cairn", "ratio", "goal", "workerd us CPU", "cairn us CPU", "CPU ratio");

for (const workload of workloads) {
  const rates = { workerd: [], cairn: [] }, cost = { workerd: [], cairn: [] };
  for (let i = 0; i < repeats; i++) {
    for (const peer of ["workerd", "cairn"]) {
      const server = peer === "cairn" ? await startCairn(config) : await startWorkerd(script);
      try {
        await wrk(server, workload.path, { ...workload, seconds: 1 });
        const result = await wrk(server, workload.path, { ...workload, seconds: Math.max(seconds, workload.seconds ?? 0) });
        rates[peer].push(result.rate);
        cost[peer].push(result.cpuPerRequest);
      } finally {
        await server.stop();
      }
    }
  }
  const ratio = median(rates.cairn) / median(rates.workerd);
  line(workload.name, format(median(rates.workerd)), format(median(rates.cairn)), `${ratio.toFixed(2)}x`, `${workload.goal}x`,
    format(median(cost.workerd)), format(median(cost.cairn)), `${(median(cost.workerd) / median(cost.cairn)).toFixed(2)}x`);
  note("serve", workload.name, { peer: median(rates.workerd), cairn: median(rates.cairn), ratio, goal: `${workload.goal}×`, peerCost: median(cost.workerd), cost: median(cost.cairn) });
}

if (!only || only.includes("start")) {
  const starts = { workerd: [], cairn: [] }, memory = { workerd: [], cairn: [] };
  // The first start builds the bundle; what is measured is a start with the bundle built.
  const dir = mkdtempSync(path.join(os.tmpdir(), "cairn-bench-start-"));
  const again = async () => {
    const server = await startCairn(config, { dir });
    server.dir = path.join(dir, "gone"); // keep the data for the next start
    return server;
  };
  await (await again()).stop();
  for (let i = 0; i < 5; i++) {
    for (const peer of ["workerd", "cairn"]) {
      const server = peer === "cairn" ? await again() : await startWorkerd(script);
      starts[peer].push(server.startMs);
      await sleep(300);
      memory[peer].push(usage(server.pid).rss / 1e6);
      await server.stop();
    }
  }
  line("start to answer (ms)", format(median(starts.workerd)), format(median(starts.cairn)), `${(median(starts.cairn) / median(starts.workerd)).toFixed(2)}x`, "< 35 ms");
  line("memory at start (MB)", format(median(memory.workerd)), format(median(memory.cairn)), `${(median(memory.cairn) / median(memory.workerd)).toFixed(2)}x`, "<= 1x");
  for (const [name, { workerd, cairn }, goal] of [["start to answer, ms", starts, "35 ms"], ["memory at start, MB", memory, "no more"]]) {
    note("start", name, { peer: median(workerd), cairn: median(cairn), ratio: median(cairn) / median(workerd), goal });
  }
}

if (!only || only.includes("lanes")) {
  // Work that is the processor's: what a second lane adds, with the client on the same two cores.
  const rates = { 1: [], 2: [] };
  for (let i = 0; i < repeats; i++) {
    for (const lanes of [1, 2]) {
      const server = await startCairn(config, { lanes });
      try {
        await wrk(server, "/cpu?seed=777", { seconds: 1, connections: 8 });
        rates[lanes].push((await wrk(server, "/cpu?seed=777", { seconds, connections: 8 })).rate);
      } finally {
        await server.stop();
      }
    }
  }
  const [one, two] = [median(rates[1]), median(rates[2])];
  line("cpu: one lane, two", format(one), format(two), `${(two / one).toFixed(2)}x`, "1.8x", "(1st: one lane)");
  note("start", "cpu with two lanes beside one (first column), req/s", { peer: one, cairn: two, ratio: two / one, goal: "1.8×" });
}

if (!only || only.includes("connections")) {
  const server = await startCairn(config);
  const idle = [];
  try {
    await wrk(server, "/hello", { seconds: 1 });
    const few = [], many = [];
    for (let i = 0; i < repeats; i++) few.push((await wrk(server, "/hello", { seconds })).cpuPerRequest);
    for (let i = 0; i < 5000; i++) {
      idle.push(await new Promise((resolve, reject) => {
        const socket = net.connect(new URL(server.base).port, "127.0.0.1", () => resolve(socket));
        socket.on("error", reject);
      }));
      if (i % 500 === 0) await get(server.base + "/hello");
    }
    for (let i = 0; i < repeats; i++) many.push((await wrk(server, "/hello", { seconds })).cpuPerRequest);
    line("us/req, 5,000 idle open", format(median(few)), format(median(many)), `${(median(many) / median(few)).toFixed(2)}x`, "1x", "(1st: none idle)");
    note("start", "CPU per request without idle connections, µs", { cairn: median(few) });
    note("start", "the same with 5,000 open, µs", { cairn: median(many), goal: "the same" });
  } finally {
    for (const socket of idle) socket.destroy();
    await server.stop();
  }
}

if (!only || only.includes("stream")) {
  const server = await startCairn(config);
  try {
    await get(server.base + "/hello");
    await wrk(server, "/hello", { seconds: 1 });
    const before = usage(server.pid).rss;
    let peak = before;
    const watch = setInterval(() => { peak = Math.max(peak, usage(server.pid).rss); }, 20);
    const size = 1 << 30;
    const { default: http } = await import("node:http");
    const began = Date.now();
    const got = await new Promise((resolve, reject) => {
      const request = http.request(server.base + "/echo-stream", { method: "POST", agent: false }, (response) => {
        let received = 0;
        response.on("data", (part) => { received += part.length; });
        response.on("end", () => resolve(received));
        response.on("error", reject);
      });
      request.on("error", reject);
      const block = Buffer.alloc(1 << 20, "y");
      let sent = 0;
      const more = () => {
        while (sent < size) {
          sent += block.length;
          if (!request.write(block)) return request.once("drain", more);
        }
        request.end();
      };
      more();
    });
    clearInterval(watch);
    if (got !== size) throw new Error(`streamed ${got} of ${size} bytes`);
    line("1 GB through a worker", "", `${format(size / 1e6 / ((Date.now() - began) / 1000))} MB/s`, "", "", `+${format((peak - before) / 1e6)} MB (goal < 64)`);
    note("start", "1 GB streamed through a worker, MB over idle", { cairn: (peak - before) / 1e6, goal: "64 MB" });
  } finally {
    await server.stop();
  }
}
