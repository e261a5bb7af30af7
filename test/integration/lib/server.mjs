// Starts the real binary on a port of its own choosing, with a fresh directory, and stops it.
// Nothing here guesses or sleeps: the server says when it is ready, and tests wait for conditions.
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../..", import.meta.url));
/** Whether wrangler deploys what serve() is asked for: `make test-wrangler`. */
export const deployed = Boolean(process.env.CAIRN_TEST_DEPLOYED);
/** Whether serve() starts a cluster: `make integration CLUSTER=3`. What is for one server alone (`cairn dev`) is started as ever. */
export const clustered = Boolean(process.env.CAIRN_TEST_CLUSTER);
export const cairn = process.env.CAIRN ?? path.join(root, "build/cairn");

/** A directory that goes away when the test process ends. */
const made = [];
process.on("exit", () => {
  for (const dir of made) rmSync(dir, { recursive: true, force: true });
});
export function tempDir() {
  const dir = mkdtempSync(path.join(os.tmpdir(), "cairn-it-"));
  made.push(dir);
  return dir;
}

/** Writes files ({name: text or Buffer}) into a fresh project and returns its directory. */
export function project(files) {
  const dir = tempDir();
  if (!Object.keys(files).some((name) => /^wrangler\./.test(name))) {
    files = { "wrangler.toml": 'name = "test"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n', ...files };
  }
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
    writeFileSync(path.join(dir, name), content);
  }
  return dir;
}

/**
 * A copy of an application that has no cron triggers: its handler runs when the test asks for it (`cairn dev` does so on request) and
 * never beside it, in the middle of what is being compared. `changes` of its configuration: [pattern, text]. One copy for a test file, so
 * one build.
 */
const copies = new Map();
export function withoutTriggers(folder, changes = []) {
  if (!copies.has(folder)) {
    const copy = tempDir();
    cpSync(folder, copy, { recursive: true, filter: (source) => !["node_modules", ".cairn"].includes(path.basename(source)) });
    symlinkSync(path.join(root, "node_modules"), path.join(copy, "node_modules"));
    let config = readFileSync(path.join(folder, "wrangler.toml"), "utf8");
    for (const [pattern, text] of [[/^crons = .*$/m, "crons = []"], ...changes]) {
      if (!pattern.test(config)) throw new Error(`${folder}: ${pattern} is not in its configuration`);
      config = config.replace(pattern, text);
    }
    writeFileSync(path.join(copy, "wrangler.toml"), config);
    copies.set(folder, copy);
  }
  return copies.get(folder);
}

const lone = new Set(); // data directories of `cairn dev`, which is one server: none of them becomes one of a node

/**
 * Runs `cairn serve` (or `dev`) on projects; where they are to be deployed on none, and wrangler deploys them to it. Resolves when it is ready.
 * `nodes: 1`: where a cluster is asked for it has so many, for objects that have to share the variables of a script.
 * @returns {Promise<Server>}
 */
export async function serve(projects, { args = [], lanes = process.env.CAIRN_TEST_LANES ?? "1", command = "serve", env = {}, data = tempDir(), nodes, user } = {}) {
  projects = [projects].flat();
  if (deployed) return (await import("../../wrangler/deployed.mjs")).serveDeployed(projects, { args, lanes, command, env, data });
  if (command === "dev") lone.add(data);
  if (clustered && command === "serve" && !lone.has(data)) return (await import("./clustered.mjs")).serveClustered(projects, { args, lanes, env, data, nodes });
  const argv = [command, ...projects, "--listen", "127.0.0.1:0", "--lanes", String(lanes), "--data", data, ...args];
  const child = spawn(cairn, argv, { stdio: ["ignore", "pipe", "pipe"], env: { CAIRN_ADMIN: "off", CAIRN_STRICT: "1", ...process.env, ...env }, uid: user, gid: user });
  const server = new Server(child, data);
  await server.ready;
  return server;
}

/**
 * A test that fails leaves the server that it would have stopped, and a file whose children run never ends. So whatever runs when all tests of
 * a file are over is killed.
 */
const running = new Set();
if (process.env.NODE_TEST_CONTEXT) after(() => Promise.all([...running].map((server) => server.kill())));

/** A running server; made by serve() here or in cairn.mjs. */
export class Server {
  constructor(child, data) {
    running.add(this);
    this.child = child;
    this.pid = child.pid;
    this.data = data;
    this.directories = [data]; // of all nodes, where there are several
    this.output = ""; // both of the next two, as they came
    this.stdout = "";
    this.stderr = "";
    this.waiting = [];
    for (const name of ["stdout", "stderr"])
      child[name].setEncoding("utf8").on("data", (text) => {
        this.output += text;
        this[name] += text;
        this.waiting = this.waiting.filter((check) => !check());
      });
    this.exited = new Promise((resolve) => child.on("close", (code, signal) => {
      this.exit = { code, signal };
      running.delete(this);
      resolve(this.exit);
      this.waiting = this.waiting.filter((check) => !check());
    }));
    this.ready = this.until(/^cairn: ready on (http\S+)$/m).then((match) => {
      this.url = match[1];
      this.port = Number(new URL(match[1]).port);
    });
  }

  /** Resolves with the match when what the server has printed matches; rejects if it ends first, or when that never comes. */
  until(pattern, milliseconds = 300_000) {
    return new Promise((resolve, reject) => {
      let timer;
      const check = () => {
        const match = pattern.exec(this.output);
        if (match) resolve(match);
        else if (this.exit) reject(new Error(`cairn ended (${JSON.stringify(this.exit)}) before ${pattern}:\n${this.output}`));
        else return false;
        clearTimeout(timer);
        return true;
      };
      if (check()) return;
      this.waiting.push(check);
      timer = setTimeout(() => reject(new Error(`${pattern} did not come:\n${this.output}`)), milliseconds);
    });
  }

  /** Resolves when the condition (which may be asynchronous) holds; asks again and again. The limit is for what never comes, on a busy machine too. */
  async untilTrue(condition, what, milliseconds = 60_000) {
    for (const deadline = Date.now() + milliseconds; !(await condition()); ) {
      if (this.exit) throw new Error(`cairn ended while ${what} was awaited:\n${this.output}`);
      if (Date.now() > deadline) throw new Error(`${what} did not come:\n${this.output}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  fetch(target, init) {
    return fetch(this.url + target, { signal: AbortSignal.timeout(60_000), ...init });
  }

  async text(target, init) {
    return (await this.fetch(target, init)).text();
  }

  signal(name) {
    this.child.kill(name);
  }

  /** Its projects are loaded anew: resolves when that was done `times` times since it was started, on every node of a cluster. */
  async reloaded(times = 1) {
    const pattern = new RegExp(Array(times).fill(" info +reloaded").join("[^]*"));
    await Promise.all((this.nodes ?? [this]).map((each) => each.until(pattern)));
  }

  /** From now on all requests are for one node of a cluster: of what each has for itself. */
  stay() {
    return this;
  }

  /** Ends it in order: {code, signal}. */
  async stop(name = "SIGTERM") {
    if (!this.exit) this.child.kill(name);
    return this.exited;
  }

  async kill() {
    if (!this.exit) this.child.kill("SIGKILL");
    await this.exited;
  }
}

/** Sends raw bytes on a connection and resolves with everything that came back until it closed. */
export function raw(port, ...parts) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, "127.0.0.1");
    let received = "";
    socket.setEncoding("latin1").on("data", (text) => { received += text; });
    socket.on("close", () => resolve(received));
    socket.on("error", (error) => (received ? resolve(received) : reject(error)));
    for (const part of parts) socket.write(part);
  });
}

/** A keep-alive connection on which requests can be made one by one. */
export class Connection {
  constructor(port) {
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    this.port = port;
  }
  get(target, options = {}) {
    return new Promise((resolve, reject) => {
      const request = http.request({ host: "127.0.0.1", port: this.port, path: target, agent: this.agent, ...options }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part) => { text += part; });
        response.on("end", () => resolve({ status: response.statusCode, text, headers: response.headers, reused: request.reusedSocket }));
        response.on("error", reject);
      });
      request.on("error", reject);
      request.end(options.body);
    });
  }
  close() {
    this.agent.destroy();
  }
}
