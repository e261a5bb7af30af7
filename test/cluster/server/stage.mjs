// A cluster that serves an application of this tree as it is: PostgreSQL with a synchronous standby, and nodes that can be killed, drained, stopped and
// started again, with another build too. Nodes reach the engine by its own socket, so this process has nothing to carry but its clients.
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { Server, cairn, root } from "../../integration/lib/server.mjs";
import { Postgres, until } from "./postgres.mjs";
import { called, signal, signalTree, tree } from "./processes.mjs";

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** {p50, p99, max} of numbers, or null. */
export function spread(times) {
  if (times.length === 0) return null;
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: sorted.at(-1) };
}

export class Stage {
  nodes = new Map(); // name: Server
  ended = []; // those that ended by themselves
  #expected = new WeakSet();
  #after = [];

  /** `folder`: of the application; `args`: more of them for every node. All goes when this process ends. */
  static async make({ folder, args = [], shards, names, binary = cairn }) {
    const stage = Object.assign(new Stage(), { folder, args, shards, base: mkdtempSync(path.join(os.tmpdir(), "cairn-stage-")) });
    chmodSync(stage.base, 0o711); // the engine's user goes through it
    process.on("exit", () => stage.#end());
    for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => process.exit(1));
    stage.engine = await Postgres.make(stage, "*", ["autovacuum = on"], { base: stage.base });
    stage.engines = [stage.engine, await Postgres.copy(stage, stage.engine, "second", { base: stage.base })];
    const made = await stage.command("init", "--shards", String(shards));
    if (made.code !== 0) throw new Error(made.stderr);
    for (const name of names) await stage.start(name, binary);
    await stage.settled();
    return stage;
  }

  /** As a test's: what is done in the end. */
  after(what) {
    this.#after.push(what);
  }

  #end() {
    for (const [name, server] of this.nodes) {
      for (const pid of called("cairn-witness", this.data(name))) signal(pid, "SIGKILL");
      if (!server.exit) signalTree(server.pid, "SIGKILL");
    }
    for (const what of this.#after) what();
    rmSync(this.base, { recursive: true, force: true, maxRetries: 10 });
  }

  get names() {
    return [...this.nodes.keys()];
  }

  data(name) {
    return `${this.base}/${name}`;
  }

  get #url() {
    return `host=${this.engine.dir} user=cairn dbname=postgres`;
  }

  /** Starts a node; resolves when it serves. */
  async start(name, binary = cairn) {
    const argv = ["--pdeathsig=KILL", binary, "serve", this.folder, "--listen", "127.0.0.1:0", "--lanes", "2", "--data", this.data(name), "--cluster", this.#url,
      "--node", name, "--peer", "127.0.0.1:0", ...this.args];
    const child = spawn("setpriv", argv, { stdio: ["ignore", "pipe", "pipe"], cwd: root, env: { ...process.env, CAIRN_ADMIN: "off" } });
    const server = new Server(child, this.data(name));
    server.ready.catch(() => {});
    void server.exited.then((exit) => {
      if (!this.#expected.has(server)) this.ended.push({ name, exit, output: server.output });
    });
    await server.ready;
    this.nodes.set(name, server);
    return server;
  }

  /** kill -9. Resolves when it has ended. */
  kill(name) {
    const server = this.nodes.get(name);
    this.#expected.add(server);
    signalTree(server.pid, "SIGKILL");
    return server.exited;
  }

  /** In order, by SIGTERM: {code, signal}. */
  stop(name) {
    const server = this.nodes.get(name);
    this.#expected.add(server);
    return server.stop();
  }

  /** Runs a command of cairn: {code, stdout, stderr}. */
  async run(...args) {
    const child = spawn(cairn, args, { stdio: ["ignore", "pipe", "pipe"], cwd: this.folder });
    const result = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) child[name].setEncoding("utf8").on("data", (text) => (result[name] += text));
    result.code = await new Promise((resolve) => child.on("close", resolve));
    return result;
  }

  command(...args) {
    return this.run("cluster", ...args, "--cluster", this.#url);
  }

  async drain(name, on) {
    const { code, stderr } = await this.command("drain", name, ...(on ? [] : ["--off"]));
    if (code !== 0) throw new Error(stderr);
  }

  /** Processor seconds of this process, the nodes that live, and the engine's servers, so far. On a machine with other work, times say less than this. */
  processor() {
    const { user, system } = process.cpuUsage();
    let ticks = 0;
    for (const pid of [...this.nodes.values()].filter(({ exit }) => !exit).map(({ pid }) => pid).concat(...this.engines.map(({ child }) => tree(child.pid))))
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
        const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        ticks += Number(fields[11]) + Number(fields[12]);
      } catch {} // it has ended meanwhile
    return (user + system) / 1e6 + ticks / 100;
  }

  /** Owners by shard: names of nodes, undefined where there is none that lives. */
  async owners() {
    const rows = await this.engine.ask("SELECT string_agg(s.id || ' ' || d.node, ',') FROM cairn.shard s JOIN cairn.session x ON x.id = s.owner AND x.live JOIN cairn.disk d ON d.id = x.disk");
    const owners = Array.from({ length: this.shards });
    for (const row of rows.split(",").filter(Boolean)) owners[Number(row.split(" ")[0])] = row.split(" ")[1];
    return owners;
  }

  /** The shard of an object by its id (64 digits). */
  shardOf(id) {
    return Number(Buffer.from(id, "hex").readBigUInt64LE(16) % BigInt(this.shards));
  }

  /** Resolves when every shard has a live owner and two live replicas, nothing is being copied, and each node that takes shards owns its share. */
  async settled(limit = 300_000) {
    const least = Math.max(1, Math.floor(this.shards / this.names.length) - 2);
    const sql = `SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM cairn.session x WHERE x.live AND x.id = s.owner) AND cardinality(s.disks) = 2
        AND (SELECT count(*) FROM cairn.session x WHERE x.live AND x.disk = ANY (s.disks)) = 2) = count(*)
      AND (SELECT min((SELECT count(*) FROM cairn.shard o JOIN cairn.session y ON y.id = o.owner WHERE y.disk = d.id AND y.live)) FROM cairn.disk d WHERE NOT d.draining) >= ${least} FROM cairn.shard s`;
    await until(async () => (await this.engine.tryAsk(sql)) === "t", "every shard has an owner and its replicas, and every node its share", limit);
  }

  /** Resolves when a node that is drained owns nothing and keeps nothing. */
  async emptied(name, limit = 300_000) {
    const sql = `SELECT count(*) FROM cairn.shard s JOIN cairn.disk d ON d.node = '${name}' WHERE d.id = ANY (s.disks) OR EXISTS (SELECT 1 FROM cairn.session x WHERE x.id = s.owner AND x.disk = d.id)`;
    await until(async () => (await this.engine.tryAsk(sql)) === "0", `${name} is empty`, limit);
  }

  /** A request to a node's control socket; its answer as a value. */
  control(name, method, target, body) {
    const text = body === undefined ? undefined : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const request = http.request({ socketPath: path.join(this.data(name), "control.sock"), method, path: target, agent: false, timeout: 30_000,
        headers: text ? { "content-type": "application/json", "content-length": Buffer.byteLength(text) } : {} }, (response) => {
        let answer = "";
        response.setEncoding("utf8").on("data", (part) => (answer += part)).on("error", reject).on("end", () => {
          if (response.statusCode !== 200) reject(new Error(`${name}: ${target}: ${response.statusCode} ${answer}`));
          else resolve(JSON.parse(answer));
        });
      });
      request.on("error", reject).on("timeout", () => request.destroy(new Error("no answer")));
      request.end(text);
    });
  }
}
