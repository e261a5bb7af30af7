// A cluster of real servers: PostgreSQL with a synchronous standby, and `cairn serve --cluster` processes on a project.
import { spawn } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { Server, cairn, tempDir } from "../../integration/lib/server.mjs";
import { Postgres, until } from "./postgres.mjs";

/** Whether the servers were built with a sanitizer (sanitized.mjs): they are slower, and larger. */
export const sanitized = Boolean(process.env.CAIRN_TEST_SANITIZED);

/** One durable object class with what it may have, and the services that are objects. */
export const files = {
  "wrangler.toml": `name = "ledger"
main = "index.js"
compatibility_date = "2026-01-01"
kv_namespaces = [{ binding = "KV", id = "kv" }]
d1_databases = [{ binding = "DB", database_name = "db", database_id = "db" }]
[[durable_objects.bindings]]
name = "LEDGER"
class_name = "Ledger"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Ledger"]
[[queues.producers]]
binding = "QUEUE"
queue = "jobs"
[[queues.consumers]]
queue = "jobs"
max_batch_size = 10
max_batch_timeout = 1
[cairn.cluster]
shards = 16
reads = "${process.env.CLUSTER_READS ?? "lease"}"
`,
  "index.js": `import { DurableObject } from "cloudflare:workers";
export class Ledger extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS entry(at INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT)");
  }
  all() { return [...this.ctx.storage.sql.exec("SELECT value FROM entry ORDER BY at")].map((row) => row.value); }
  add(value) { this.ctx.storage.sql.exec("INSERT INTO entry(value) VALUES (?)", value); return this.all(); }
  ring(ms) { return this.ctx.storage.setAlarm(Date.now() + ms); }
  alarm() { this.ctx.storage.sql.exec("INSERT INTO entry(value) VALUES ('alarm')"); }
  mark() { return this.ctx.storage.getCurrentBookmark(); }
  markAt(ms) { return this.ctx.storage.getBookmarkForTime(ms); }
  async back(bookmark) { await this.ctx.storage.onNextSessionRestoreBookmark(bookmark); this.ctx.abort("restored"); }
  async slow(ms) { await new Promise((resolve) => setTimeout(resolve, ms)); return "slept"; }
}
export default {
  async fetch(request, env) {
    const [, what, name, value] = new URL(request.url).pathname.split("/");
    const stub = env.LEDGER.getByName(name ?? "");
    if (what === "throw") throw new Error(decodeURIComponent(name)); // texts.test.mjs
    if (what === "id") return Response.json(String(env.LEDGER.idFromName(name)));
    if (what === "add") return Response.json(await stub.add(value));
    if (what === "all") return Response.json(await stub.all());
    if (what === "ring") return Response.json((await stub.ring(Number(value)), "set"));
    if (what === "mark") return Response.json(await stub.mark());
    if (what === "markAt") return Response.json(await stub.markAt(Number(value)));
    if (what === "back") return Response.json(await stub.back(value).catch((error) => { if (error.message !== "restored") throw error; return "restored"; }));
    if (what === "slow") return Response.json(await stub.slow(Number(value)));
    if (what === "put") return Response.json((await env.KV.put(name, value), "put"));
    if (what === "get") return Response.json(await env.KV.get(name));
    if (what === "insert") {
      await env.DB.exec("CREATE TABLE IF NOT EXISTS entry(value TEXT PRIMARY KEY)");
      return Response.json((await env.DB.prepare("INSERT OR IGNORE INTO entry VALUES (?)").bind(name).run()).success);
    }
    if (what === "select") return Response.json((await env.DB.prepare("SELECT value FROM entry ORDER BY value").all()).results.map((row) => row.value));
    if (what === "send") return Response.json((await env.QUEUE.send(name), "sent"));
    return new Response("?", { status: 404 });
  },
  async queue(batch, env) {
    for (const message of batch.messages) console.log("delivered " + message.body + ".");
  },
};
`,
};

/** A folder with a socket of PostgreSQL that leads to the one in another; when it is cut, what is sent is swallowed. */
export class Wire {
  constructor(t, dir, to) {
    this.dir = dir;
    this.open = new Set();
    mkdirSync(dir);
    this.server = net.createServer((near) => {
      const far = net.connect(path.join(to, ".s.PGSQL.5432"));
      const pair = [near, far];
      this.open.add(pair);
      for (const [one, other] of [pair, [far, near]]) {
        one.on("error", () => {});
        one.on("close", () => {
          this.open.delete(pair);
          if (!this.isCut) other.destroy();
        });
        one.pipe(other);
      }
      if (this.isCut) this.#stop(pair);
    });
    this.server.listen(path.join(dir, ".s.PGSQL.5432"));
    t.after(() => {
      this.server.close();
      for (const pair of this.open) for (const end of pair) end.destroy();
    });
  }

  #stop(pair) {
    for (const end of pair) end.unpipe().pause();
  }

  cut(on) {
    this.isCut = on;
    for (const pair of this.open) {
      if (on) this.#stop(pair);
      else for (const end of pair) end.destroy(); // what was lost on the way is lost
    }
  }
}

export class Cluster {
  static async make(t, { options = "", standby = true, args = [], project = files } = {}) {
    const cluster = new Cluster();
    cluster.t = t;
    cluster.nodes = new Map();
    t.after(() => (sanitized ? cluster.end() : cluster.kill())); // before the engine ends, which is after() later
    cluster.base = tempDir();
    cluster.args = args;
    cluster.project = path.join(cluster.base, "project");
    mkdirSync(cluster.project);
    for (const [name, text] of Object.entries(project)) writeFileSync(path.join(cluster.project, name), text);
    cluster.engines = [await Postgres.make(t, standby ? "*" : "")];
    if (standby) cluster.engines.push(await Postgres.copy(t, cluster.engines[0]));
    cluster.primary = 0;
    cluster.engines.forEach((_, i) => cluster.#link(i));
    cluster.options = options;
    cluster.wires = new Map();
    return cluster;
  }

  /** The engine's servers have names that stay while they come and go. */
  #link(i) {
    rmSync(`${this.base}/pg${i}`, { force: true });
    symlinkSync(this.engines[i].dir, `${this.base}/pg${i}`);
  }

  /** The connection string of a node: by sockets of its own, which can be cut. */
  url(name) {
    if (!this.wires.has(name)) this.wires.set(name, this.engines.map((_, i) => new Wire(this.t, `${this.base}/${name}.pg${i}`, `${this.base}/pg${i}`)));
    return `host=${this.wires.get(name).map((wire) => wire.dir)} user=cairn dbname=postgres${this.options}`;
  }

  /** Nothing goes between the node and the engine any more, or again. */
  cut(name, on) {
    for (const wire of this.wires.get(name)) wire.cut(on);
  }

  get engine() {
    return this.engines[this.primary];
  }

  /** Starts a node; resolves when it serves. */
  async start(name, { data = `${this.base}/${name}`, args = [], wait = true, admin = false } = {}) {
    const argv = ["--pdeathsig=KILL", cairn, "serve", this.project, "--listen", "127.0.0.1:0", "--lanes", "2", "--data", data,
      "--cluster", this.url(name), "--node", name, "--peer", "127.0.0.1:0", ...this.args, ...args];
    const child = spawn("setpriv", argv, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, CAIRN_ADMIN: admin ? "127.0.0.1:0" : "off", CAIRN_STRICT: "1" } });
    const server = new Server(child, data);
    server.ready.catch(() => {}); // those who wait are told
    this.nodes.set(name, server);
    if (wait) await server.ready;
    if (admin) [, server.adminUrl] = await server.until(/admin on (http:\S+)/);
    return server;
  }

  /** Runs `cairn cluster ...`: {code, stdout, stderr}. */
  async command(...args) {
    const child = spawn(cairn, ["cluster", ...args, "--cluster", `host=${this.engines.map((engine) => engine.dir)} user=cairn dbname=postgres`], { stdio: ["ignore", "pipe", "pipe"] });
    const result = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) child[name].setEncoding("utf8").on("data", (text) => (result[name] += text));
    result.code = await new Promise((resolve) => child.on("close", resolve));
    return result;
  }

  /** In order, for sanitizers that look at what is left; whoever cannot end is killed. */
  async end() {
    const nodes = [...this.nodes.values()].filter((server) => !server.exit);
    for (const server of nodes) {
      server.told = true; // it does not end by itself
      server.signal("SIGCONT");
      server.signal("SIGTERM");
    }
    const late = setTimeout(() => this.kill(), 60_000);
    for (const server of nodes) {
      const exit = await server.exited;
      if (exit.code !== 0) console.log(`a server ended with ${JSON.stringify(exit)}: ${server.output.slice(-2000)}`);
    }
    clearTimeout(late);
  }

  kill() {
    for (const server of this.nodes.values()) {
      server.signal("SIGCONT");
      server.signal("SIGKILL");
    }
  }

  /** The primary dies, or lives on for a moment as a zombie; its standby takes its place and gets a new one. */
  async promote({ zombie = 0 } = {}) {
    const old = this.primary;
    if (!zombie) this.engines[old].kill();
    await this.engines[1 - old].promote();
    this.primary = 1 - old;
    if (zombie) await new Promise((resolve) => setTimeout(resolve, zombie));
    this.engines[old].kill();
    await this.engines[old].exited;
    this.engines[old] = await Postgres.copy(this.t, this.engine);
    this.#link(old);
  }

  /** A backup of the engine, as somebody would take it to disk: the folder of its data. */
  backup() {
    return this.engine.backup();
  }

  /** The engine is stopped, and one from the backup takes its place, with a standby of its own. */
  async putBack(backup) {
    this.right = this.engines;
    for (const engine of this.engines) await engine.stop();
    this.primary = 0;
    this.engines = [await Postgres.restore(this.t, backup)];
    this.engines.push(await Postgres.copy(this.t, this.engines[0]));
    this.engines.forEach((_, i) => this.#link(i));
  }

  /** The other way round. */
  async putRight() {
    for (const engine of this.engines) await engine.stop();
    this.engines = this.right;
    for (const engine of this.engines) await engine.start();
    this.engines.forEach((_, i) => this.#link(i));
  }

  /** By the engine: all shards have a live owner, and as many live replicas as there can be, up to two. */
  whole(replicas = 2) {
    const sql = `SELECT count(*) FROM cairn.shard s WHERE (SELECT count(*) FROM cairn.session x WHERE x.live AND x.disk = ANY (s.disks)) >= ${replicas}
      AND EXISTS (SELECT 1 FROM cairn.session x WHERE x.live AND x.id = s.owner)`;
    return until(async () => (await this.engine.tryAsk(sql)) === "16", "every shard has an owner and its replicas", 120_000);
  }

  /** By the engine: no shard has got another owner for ten seconds. */
  async settled() {
    let last, since = Date.now();
    await until(async () => {
      const owners = await this.engine.tryAsk("SELECT string_agg(owner::text, ',' ORDER BY id) FROM cairn.shard");
      if (owners !== last) since = Date.now();
      last = owners;
      return Date.now() - since > 10_000;
    }, "shards stay where they are", 200_000);
  }

  /** The node that owns the object of this name, by the engine. */
  async owner(name) {
    const { value: id } = await this.ask(`/id/${name}`);
    const shard = Buffer.from(id, "hex").readBigUInt64LE(16) % 16n;
    return this.engine.ask(`SELECT d.node FROM cairn.shard s JOIN cairn.session x ON x.id = s.owner JOIN cairn.disk d ON d.id = x.disk WHERE s.id = ${shard}`);
  }

  /** One try at one node: {status, value, owner}; status 0: there was no answer. */
  async try(node, target, timeout = 4000) {
    const server = this.nodes.get(node);
    if (!server?.url || server.exit) return { status: 0 };
    try {
      const response = await fetch(server.url + target, { signal: AbortSignal.timeout(timeout) });
      const text = await response.text();
      return { status: response.status, value: response.status === 200 ? JSON.parse(text) : text, owner: response.headers.get("cairn-owner") };
    } catch (error) {
      return { status: 0, value: String(error) };
    }
  }

  /** Asks nodes in turn until one answers 200: {value, node}. `order`: who is asked first. */
  async ask(target, { limit = 60_000, timeout = 4000, order = [...this.nodes.keys()] } = {}) {
    let last;
    for (const deadline = Date.now() + limit; Date.now() < deadline; ) {
      for (const node of order) {
        const { status, value } = await this.try(node, target, timeout);
        if (status === 200) return { value, node };
        last = `${node}: ${status} ${value}`;
      }
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    throw new Error(`${target}: nobody answers: ${last}`);
  }
}
