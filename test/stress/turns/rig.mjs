// Starts the worker of this folder with or without node:async_hooks, kills it and starts it again on
// its data, and reads what it has logged.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { spawn } from "node:child_process";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { ask } from "../../integration/admin/lib.mjs";
import { project, root, serve, tempDir } from "../../integration/lib/server.mjs";
import { WORKERD } from "../../lib/workerd.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const source = (name) => readFileSync(path.join(here, name), "utf8");

const NO_ANSWER_MS = 10_000;

export const configuration = (name, hooks, extra = {}) => ({
  name, main: "index.js", compatibility_date: "2026-01-01", ...(hooks && { compatibility_flags: ["nodejs_compat"] }),
  durable_objects: { bindings: [{ name: "CELL", class_name: "Cell" }, { name: "HELPER", class_name: "Helper" }, { name: "KEEPER", class_name: "Keeper", script_name: "peer" }] },
  migrations: [{ tag: "v1", new_sqlite_classes: ["Cell", "Helper"] }],
  services: [{ binding: "SELF", service: name, entrypoint: "Self" }, { binding: "PEER", service: "peer", entrypoint: "Peer" }],
  kv_namespaces: [{ binding: "KV" }], d1_databases: [{ binding: "DB", database_name: "db" }], r2_buckets: [{ binding: "BUCKET", bucket_name: "bucket" }],
  ...extra,
});

export class Rig {
  constructor({ lanes = 1, hooks = false, idle = 15, connections = 64, extra = {}, sync = 0 } = {}) {
    const files = Object.fromEntries(readdirSync(here).filter((name) => /\.[jt]s$/.test(name)).map((name) => [name, source(name)]));
    this.peer = project({
      "index.js": source("peer/index.js"), "shared.js": files["shared.js"],
      "wrangler.json": JSON.stringify({
        name: "peer", main: "index.js", compatibility_date: "2026-01-01", durable_objects: { bindings: [{ name: "KEEPER", class_name: "Keeper" }] },
        migrations: [{ tag: "v1", new_sqlite_classes: ["Keeper"] }], cairn: { hosts: ["peer.test"], limits: { object_idle_ms: idle } },
      }),
    });
    this.dir = project({
      ...files, "hooks.js": source(hooks ? "hooks-on.js" : "hooks-off.js"),
      "wrangler.json": JSON.stringify(configuration("turns", hooks, { cairn: { limits: { object_idle_ms: idle, object_block_ms: 3000 } }, ...extra })),
    });
    this.lanes = lanes;
    this.env = {};
    if (sync > 0) {
      // A disk that takes so many milliseconds to sync: an answer that does not wait for it is seen.
      const control = path.join(tempDir(), "disk");
      writeFileSync(control, Buffer.from(Uint32Array.of(sync, 0, 0).buffer));
      this.env = { LD_PRELOAD: path.join(root, "build/load/slowdisk.so"), CAIRN_SLOWDISK: control };
    }
    this.data = path.join(tempDir(), "data");
    mkdirSync(this.data);
    this.agent = new http.Agent({ keepAlive: true, maxSockets: connections });
    this.earlier = []; // lines logged by servers that have ended
  }
  async start() {
    this.server = await serve([this.dir, this.peer], { lanes: this.lanes, data: this.data, args: ["--log", "json"], env: this.env, nodes: 1 });
    this.up = true;
  }
  async kill() {
    this.up = false;
    await this.server.kill();
    this.earlier.push(...records(this.server.output));
  }
  /** Has it load the same code anew; resolves when the new instances serve. */
  async reload() {
    const { server } = this;
    const seen = server.output.split("reloaded").length;
    server.signal("SIGHUP");
    await server.until({ exec: (text) => (text.split("reloaded").length > seen ? [text] : null) });
  }
  end() {
    this.agent.destroy();
    return this.server?.kill();
  }
  /** What the server answers, as JSON; rejects if it did not, or with its error. */
  async post(target, body = {}) {
    const { status, text } = await this.send(target, JSON.stringify(body));
    let value;
    try {
      value = JSON.parse(text);
    } catch {
      throw new Error(`not an answer (${status}): ${text}`);
    }
    if (value?.error !== undefined) throw new Error(value.error);
    return value;
  }
  send(target, body) {
    return new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port: this.server.port, method: "POST", path: target, agent: this.agent, timeout: NO_ANSWER_MS };
      const request = http.request(options, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part) => { text += part; }).on("error", reject);
        response.on("aborted", () => reject(new Error("aborted")));
        response.on("end", () => resolve({ status: response.statusCode, text }));
      });
      request.on("error", reject).on("timeout", () => request.destroy(new Error(`no answer within ${NO_ANSWER_MS} ms`)));
      request.end(body);
    });
  }
  /** Lines logged so far. */
  log() {
    return [...this.earlier, ...records(this.server.exit ? "" : this.server.output)];
  }
}

/** Waits until no cell is in memory; asking one would begin a turn of it. */
export async function evicted(rig) {
  const none = async () => /cairn_objects_live\{[^}]*Cell[^}]*\} 0\n/.test((await ask(rig.server, "GET", "/metrics")).text);
  await rig.server.untilTrue(none, "eviction");
}

/** The lines of a log that are JSON; the last may be cut off. */
function records(output) {
  return output.split("\n").filter((line) => line.startsWith("{")).flatMap((line) => {
    try {
      return [JSON.parse(line)];
    } catch {
      return [];
    }
  });
}

/**
 * Every line that an operation has logged (`@where op`) is its object's, and all are of one request.
 * `cellOf(op)` names the object; calls `fault` with what is wrong. What `isLeft` may be nobody's: its object did not know
 * that it was still at work, and has left memory (prelude/internal/turn.js, T2).
 */
export function checkLog(lines, cellOf, fault, isLeft = () => false) {
  const requests = new Map();
  for (const { message, name, request } of lines) {
    const match = /^@(\w+) (.*)$/s.exec(message);
    if (!match) continue;
    const [, where, op] = match;
    const cell = cellOf(op);
    if (where === "asked" || where === "late" ? name !== undefined : cell !== undefined && name !== cell && !(name === undefined && isLeft(op))) {
      fault(`the line "${message}" is logged as of the object ${name}`, op);
    }
    if (!requests.has(op)) requests.set(op, request);
    else if (where !== "lent" && requests.get(op) !== request) fault(`the line "${message}" is logged as of another request`, op);
  }
}

/** What is stored in a cell is its own and complete: every acknowledged operation, and nothing of others. */
export function checkDump(dump, cell, acknowledged, cellOf, fault) {
  if (dump.name !== cell) fault(`${cell} says that it is ${dump.name}`, "");
  const marks = new Set(dump.marks), keys = new Set();
  for (const [key, owner] of dump.keys) {
    keys.add(key);
    const op = key.replace(/^a?sync /, "");
    if (owner !== cell || cellOf(op) !== cell) fault(`${cell} has "${key}" of ${owner}`, op);
  }
  for (const op of marks) if (cellOf(op) !== cell) fault(`${cell} has the row of ${op}`, op);
  for (const op of acknowledged) {
    if (!marks.has(op) || !keys.has(`sync ${op}`)) fault(`${op} was acknowledged and is lost`, op);
  }
}

/** The same worker on workerd, to see what the platform does: without KV, D1, R2 and caches, and its log is not read. */
export class PeerRig extends Rig {
  constructor(options) {
    super(options);
    this.hooks = options?.hooks ?? false;
  }
  async start() {
    const { build } = await import("esbuild");
    const file = path.join(this.dir, "config.capnp");
    await build({ entryPoints: [path.join(this.dir, "index.js")], outfile: path.join(this.dir, "bundle.js"), bundle: true, format: "esm", target: "es2022", external: ["node:*", "cloudflare:*"], logLevel: "error" });
    writeFileSync(file, `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "turns", worker = .w), (name = "disk", disk = (path = ${JSON.stringify(this.data)}, writable = true)),
    (name = "internet", network = (allow = ["public", "private"])) ],
  sockets = [ (name = "http", address = "127.0.0.1:0", http = (), service = "turns") ]
);
const w :Workerd.Worker = (
  modules = [ (name = "worker", esModule = embed "bundle.js") ], compatibilityDate = "2026-01-01", compatibilityFlags = ["nodejs_compat"],
  durableObjectNamespaces = [ (className = "Cell", uniqueKey = "Cell", enableSql = true), (className = "Helper", uniqueKey = "Helper", enableSql = true) ],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [ (name = "CELL", durableObjectNamespace = "Cell"), (name = "HELPER", durableObjectNamespace = "Helper"), (name = "SELF", service = (name = "turns", entrypoint = "Self")) ],
);
`);
    const child = spawn(WORKERD, ["serve", "--experimental", "--control-fd=3", file], { stdio: ["ignore", "pipe", "pipe", "pipe"] });
    this.server = { child, output: "", exit: null };
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => { this.server.output += text; });
    const exited = new Promise((resolve) => child.once("exit", resolve));
    this.server.kill = () => (child.kill("SIGKILL"), exited);
    await new Promise((resolve, reject) => {
      void exited.then((code) => reject(new Error(`workerd ended at start (${code}): ${this.server.output}`)));
      child.stdio[3].setEncoding("utf8").on("data", (line) => {
        this.server.port = JSON.parse(line.split("\n")[0]).port;
        resolve();
      });
    });
    this.up = true;
  }
}
