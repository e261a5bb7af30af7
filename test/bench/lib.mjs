// Starting servers, loading them with wrk, reading what they used. Shared by the benchmarks.
import { spawn, execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync, copyFileSync, openSync, closeSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { WORKERD } from "../lib/workerd.mjs";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const run = promisify(execFile);
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** One request; resolves { status, body }. */
export function get(url, options = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { agent: false, ...options }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () => resolve({ status: response.statusCode, body: Buffer.concat(parts).toString() }));
      response.on("error", reject);
    });
    request.on("error", reject);
    request.end(options.body);
  });
}

/** Processor time in seconds and resident bytes of a process. */
export function usage(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return {
    cpu: (Number(fields[11]) + Number(fields[12])) / 100,
    rss: Number(/^VmRSS:\s+(\d+)/m.exec(status)[1]) * 1024,
    fds: readdirSync(`/proc/${pid}/fd`).length,
  };
}

const running = new Set();
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    for (const child of running) child.kill("SIGKILL");
    process.exit(130);
  });
}

export class Server {
  /** Starts `command`, waits for the first answer to `probe`, for `patience` seconds. */
  async start(command, port, probe, dir, patience = 30) {
    this.dir = dir;
    this.base = `http://127.0.0.1:${port}`;
    this.log = path.join(dir, "log");
    const log = openSync(this.log, "a");
    const began = process.hrtime.bigint();
    this.child = spawn(command[0], command.slice(1), { stdio: ["ignore", log, log] });
    closeSync(log);
    running.add(this.child);
    this.pid = this.child.pid;
    this.exited = new Promise((resolve) => this.child.once("exit", (code, signal) => {
      running.delete(this.child);
      this.gone = `${code ?? signal}`;
      resolve();
    }));
    for (;;) {
      if (this.gone) throw new Error(`${command[0]} ended (${this.gone}): ${readFileSync(this.log, "utf8").slice(-800)}`);
      try {
        if ((await get(this.base + probe)).status === 200) break;
      } catch {}
      if (Number(process.hrtime.bigint() - began) > patience * 1e9) throw new Error(`${command[0]} does not answer`);
      await sleep(1);
    }
    this.startMs = Number(process.hrtime.bigint() - began) / 1e6;
    return this;
  }
  /** Ends the server; `keep` leaves its folder for another start. */
  async stop({ keep = false } = {}) {
    if (!this.gone) this.child.kill("SIGTERM");
    await Promise.race([this.exited, sleep(5000)]);
    if (!this.gone) this.child.kill("SIGKILL");
    await this.exited;
    if (!keep) rmSync(this.dir, { recursive: true, force: true });
  }
}

export const tempDir = (name) => mkdtempSync(path.join(os.tmpdir(), `cairn-bench-${name}-`));

/** cairn on a wrangler configuration; `dir` keeps the bundle and the data between starts. */
export async function startCairn(config, { lanes = 1, probe = "/hello", args = [], dir = tempDir("cairn"), binary = path.join(root, "build/cairn") } = {}) {
  const port = await freePort();
  const command = [binary, "serve", config, "--listen", `127.0.0.1:${port}`,
    "--data", path.join(dir, "data"), "--lanes", String(lanes), ...args];
  return new Server().start(command, port, probe, dir);
}

/** workerd on the same script; `objects` are its Durable Objects as { BINDING: "Class" }, kept on disk. */
export async function startWorkerd(script, { probe = "/hello", date = "2026-01-01", objects = {}, dir = tempDir("workerd") } = {}) {
  const port = await freePort();
  const data = path.join(dir, "data");
  mkdirSync(data, { recursive: true });
  const list = (each) => Object.entries(objects).map(each).join(", ");
  copyFileSync(script, path.join(dir, "worker.js"));
  writeFileSync(path.join(dir, "config.capnp"), `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = .w), (name = "disk", disk = (path = ${JSON.stringify(data)}, writable = true)) ],
  sockets = [ (name = "http", address = "127.0.0.1:${port}", http = (), service = "main") ]
);
const w :Workerd.Worker = (
  modules = [ (name = "worker", esModule = embed "worker.js") ],
  compatibilityDate = "${date}",
  durableObjectNamespaces = [ ${list(([, name]) => `(className = "${name}", uniqueKey = "${name}", enableSql = true)`)} ],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [ ${list(([binding, name]) => `(name = "${binding}", durableObjectNamespace = "${name}")`)} ],
);
`);
  const command = [WORKERD, "serve", path.join(dir, "config.capnp")];
  return new Server().start(command, port, probe, dir);
}

/** What wrk writes of a time, in milliseconds. */
function milliseconds(text, pattern) {
  const [, value, unit] = pattern.exec(text);
  return Number(value) * { us: 1e-3, ms: 1, s: 1e3, m: 6e4 }[unit];
}

/** Runs wrk; { rate, requests, cpuPerRequest (of the server, in microseconds), p50, p99 (of the time to an answer, in milliseconds) }. */
export async function wrk(server, target, { seconds = 4, connections = 32, lua, luaArgs = [], threads = 1 , mayRefuse = false } = {}) {
  const args = [`-t${threads}`, `-c${connections}`, `-d${seconds}s`, "--timeout", "10s", "--latency"];
  if (lua) args.push("-s", lua);
  const before = usage(server.pid);
  const { stdout } = await run("wrk", [...args, server.base + target, ...(luaArgs.length ? ["--", ...luaArgs.map(String)] : [])]);
  const after = usage(server.pid);
  const requests = Number(/(\d+) requests in/.exec(stdout)[1]);
  const bad = /Non-2xx or 3xx responses: (\d+)/.exec(stdout);
  if (bad && !mayRefuse) throw new Error(`${target}: ${bad[1]} bad answers`);
  return {
    rate: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)[1]),
    requests,
    cpuPerRequest: ((after.cpu - before.cpu) * 1e6) / requests,
    p50: milliseconds(stdout, /50%\s+([\d.]+)(us|ms|s|m)/),
    p99: milliseconds(stdout, /99%\s+([\d.]+)(us|ms|s|m)/),
  };
}

export const PEERS = ["workerd", "cairn"];

/** Runs `measure(server, peer)` on both peers in turn, each time on a fresh server of `start(peer)`. */
export async function comparePeers(start, measure, count) {
  const figures = { workerd: [], cairn: [] };
  for (let i = 0; i < count; i++) {
    for (const peer of PEERS) {
      const server = await start(peer);
      try {
        figures[peer].push(await measure(server, peer));
      } finally {
        await server.stop();
      }
    }
  }
  return figures;
}

export const median = (values) => values.slice().sort((a, b) => a - b)[Math.floor(values.length / 2)];
export const format = (n) => n >= 100 ? Math.round(n).toLocaleString("en") : n.toFixed(n >= 10 ? 1 : 2);
