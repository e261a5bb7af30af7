// What a campaign is fought over: servers of PostgreSQL in three places, of which one is the primary and one its standby, and nodes, each in a place of
// its own. With namespaces (net.mjs) everything goes by addresses that can be cut in any shape; without, by sockets of files, and a node can be cut
// from the engine only.
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { Server, cairn } from "../../integration/lib/server.mjs";
import { Wire } from "./cluster.mjs";
import { Postgres, until } from "./postgres.mjs";
import { called, signal, signalTree } from "./processes.mjs";
import { files } from "./worker.mjs";

const SLOTS = 3;
const DISK_MB = 160; // of a node, if it has a file system of its own
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class World {
  nodes = new Map(); // name: Server; also those that are away for a while
  outputs = []; // of servers that have ended
  ended = []; // those that ended by themselves: {name, exit, output}
  #expected = new WeakSet(); // those that were to end
  #wires = new Map();
  #places = new Map();
  #dirs = new Map(); // name: a data directory that is not the first one
  #mounts = new Set();
  #after = [];

  static async make({ base, net, shards, r2 = false, async = false, allow = false, small = false }) {
    const world = Object.assign(new World(), { base, net, shards, r2, async, allow, small });
    for (let i = 0; i < SLOTS; i++) if (net) await net.place(`pg${i}`);
    world.slots = Array.from({ length: SLOTS }, () => null);
    world.primary = 0;
    world.standby = 1;
    world.slots[0] = await Postgres.make(world, "*", ["autovacuum = on"], world.#at(0));
    world.#link(0);
    await world.#follow(1);
    return world;
  }

  /** As a test's: what is done in the end. */
  after(what) {
    this.#after.push(what);
  }

  end() {
    for (const [name, server] of this.nodes) {
      for (const pid of this.#witnesses(name)) signal(pid, "SIGKILL");
      if (!server.exit) signalTree(server.pid, "SIGKILL");
    }
    for (const what of this.#after) what();
  }

  // --- the engine -----------------------------------------------------------------------------

  #at(slot) {
    return { place: this.net?.places.get(`pg${slot}`), base: this.base };
  }

  #link(slot) {
    rmSync(`${this.base}/pg${slot}`, { force: true });
    symlinkSync(this.slots[slot].dir, `${this.base}/pg${slot}`);
  }

  async #follow(slot) {
    this.slots[slot] = await Postgres.copy(this, this.engine, "second", this.#at(slot));
    this.#link(slot);
    this.standby = slot;
  }

  get engine() {
    return this.slots[this.primary];
  }

  get second() {
    return this.slots[this.standby];
  }

  /** Ends what waits for the standby, or the connections themselves. */
  cancel(slot = this.primary, how = "cancel") {
    const of = how === "cancel" ? "wait_event = 'SyncRep'" : "application_name LIKE 'cairn %'";
    return this.slots[slot]?.tryAsk(`SELECT count(pg_${how}_backend(pid)) FROM pg_stat_activity WHERE ${of} AND pid <> pg_backend_pid()`);
  }

  /**
   * Its standby takes the primary's place and gets one of its own. What becomes of the old one, by `kind`:
   *   killed   kill -9
   *   zombie   lives on beside its successor, cut off from it, with those connected that do not know better; waits on it are cancelled
   *   frozen   stands still when its successor comes, wakes when that has a standby, and has waits cancelled
   * Resolves when the new one has a standby, with `ended`: a promise for when the old one is gone.
   */
  async failOver({ kind, ms, cancel = true }) {
    const old = this.primary, next = this.standby, spare = 3 - old - next, server = this.slots[old];
    const cutOff = (on) => this.net?.cut([`pg${old}`], [`pg${next}`, `pg${spare}`], on);
    const isZombie = kind !== "killed";
    if (isZombie) cutOff(true);
    if (kind === "killed") server.kill();
    if (kind === "frozen") server.freeze(true);
    if (kind === "zombie" && cancel) void this.cancel(old);
    await this.slots[next].promote();
    this.primary = next;
    await this.#follow(spare);
    const ended = (async () => {
      if (kind === "frozen") server.freeze(false);
      for (const until = Date.now() + (isZombie ? ms : 0); Date.now() < until; await pause(100)) if (cancel) await this.cancel(old);
      server.kill();
      await server.exited;
      if (isZombie) cutOff(false);
      this.slots[old] = null;
      rmSync(server.dir, { recursive: true, force: true });
    })();
    return { ended };
  }

  /** The engine as it was at a backup takes the place of the one there is, with a standby of its own. Resolves with a function that puts the right one back. */
  async goBack(backup) {
    const slots = [this.primary, this.standby], right = slots.map((slot) => this.slots[slot]);
    for (const server of right) await server.stop();
    this.slots[this.primary] = await Postgres.restore(this, backup, this.#at(this.primary));
    this.#link(this.primary);
    await this.#follow(this.standby);
    return async () => {
      for (const slot of slots) await this.slots[slot].stop();
      for (const [i, slot] of slots.entries()) {
        rmSync(this.slots[slot].dir, { recursive: true, force: true });
        this.slots[slot] = await right[i].start();
        this.#link(slot);
      }
    };
  }

  /** By the engine: all shards have a live owner, and as many live replicas. */
  async isWhole(replicas = 2) {
    const sql = `SELECT count(*) FROM cairn.shard s WHERE (SELECT count(*) FROM cairn.session x WHERE x.live AND x.disk = ANY (s.disks)) >= ${replicas}
      AND EXISTS (SELECT 1 FROM cairn.session x WHERE x.live AND x.id = s.owner)`;
    return (await this.engine.tryAsk(sql)) === String(this.shards);
  }

  /** Whether as many nodes own shards. */
  async isBalanced(count) {
    return Number(await this.engine.tryAsk("SELECT count(DISTINCT owner) FROM cairn.shard")) >= count;
  }

  whole(limit = 240_000) {
    return until(() => this.isWhole(), "every shard has an owner and its replicas", limit);
  }

  // --- nodes ----------------------------------------------------------------------------------

  #url(name) {
    const options = this.async ? " options='-c synchronous_commit=local'" : "";
    if (this.net) return `host=${[0, 1, 2].map((i) => this.net.places.get(`pg${i}`).address)} user=cairn dbname=postgres${options}`;
    if (!this.#wires.has(name)) this.#wires.set(name, [0, 1, 2].map((i) => new Wire(this, `${this.base}/${name}.pg${i}`, `${this.base}/pg${i}`)));
    return `host=${this.#wires.get(name).map((wire) => wire.dir)} user=cairn dbname=postgres${options}`;
  }

  data(name) {
    return this.#dirs.get(name) ?? `${this.base}/${name}`;
  }

  /** With `small`, each node's directory is a file system of its own, which can be full. */
  #mount(dir) {
    if (!this.small || this.#mounts.has(dir)) return;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    if (spawnSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_MB}m,mode=700`, "tmpfs", dir]).status !== 0) throw new Error(`no file system for ${dir}`);
    this.#mounts.add(dir);
    this.after(() => spawnSync("umount", ["-l", dir]));
  }

  /** Nothing more can be written by the node, until it is emptied. It must end by itself: resolves with how it ended. */
  async fill(name, limit) {
    const path = `${this.data(name)}/filler`, ending = this.ending(name, limit);
    spawnSync("dd", ["if=/dev/zero", `of=${path}`, "bs=64k"], { stdio: "ignore" });
    const how = await ending;
    rmSync(path, { force: true });
    return how;
  }

  /** The node goes on from a copy of its directory beside the one that runs, which must end by itself: resolves with how it ended. */
  async clone(name, limit) {
    const from = this.data(name), to = `${this.base}/${name}.${Date.now()}`;
    this.#mount(to);
    this.freeze(name, true); // a snapshot is of one moment
    cpSync(from, to, { recursive: true, filter: (source) => !source.endsWith(".sock") });
    this.freeze(name, false);
    const ending = this.ending(name, limit);
    await pause(300);
    this.#dirs.set(name, to);
    await this.start(name);
    return ending;
  }

  /** Disks that the engine has in its list, and nobody has any more. */
  ghosts() {
    return this.engine.tryAsk("SELECT coalesce(string_agg(d.node || ' ' || to_hex(d.id), ', '), '') FROM cairn.disk d WHERE NOT EXISTS (SELECT 1 FROM cairn.session x WHERE x.live AND x.disk = d.id)");
  }

  /** A node that must end by itself: resolves with how it ended. */
  async ending(name, limit) {
    const server = this.nodes.get(name);
    this.#expected.add(server);
    const ended = await Promise.race([server.exited, pause(limit)]);
    return { ended, output: server.output };
  }

  /** Starts a node; resolves when it serves, or at once. */
  async start(name, { env = {}, ready = true } = {}) {
    this.#mount(this.data(name));
    const project = `${this.base}/${name}.project`;
    mkdirSync(project, { recursive: true });
    for (const [file, text] of Object.entries(files({ node: name, shards: this.shards, r2: this.r2 }))) writeFileSync(path.join(project, file), text);
    const place = await this.net?.place(name), address = place?.address ?? "127.0.0.1";
    const [program, ...argv] = [...(place?.prefix ?? []), "setpriv", "--pdeathsig=KILL", cairn, "serve", project, "--listen", `${address}:0`, "--lanes", "2",
      "--data", this.data(name), "--cluster", this.#url(name), "--node", name, "--peer", `${address}:0`, ...(this.async || this.allow ? ["--allow-async"] : [])];
    const child = spawn(program, argv, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, CAIRN_ADMIN: "off", ...env } });
    const server = new Server(child, this.data(name));
    server.agent = new http.Agent({ keepAlive: true, maxSockets: 256 });
    server.ready.catch(() => {});
    this.nodes.set(name, server);
    void server.exited.then((exit) => {
      server.agent.destroy();
      this.outputs.push(server.output);
      if (!this.#expected.has(server)) this.ended.push({ name, exit, output: server.output });
    });
    if (ready) await server.ready;
    return server;
  }

  get names() {
    return [...this.nodes.keys()];
  }

  /** The small process that sees a node die (fleet/witness.h), which is no child of it. */
  #witnesses(name) {
    return called("cairn-witness", this.data(name));
  }

  /** kill -9: of the server alone, or of its witness too, as when a machine dies. Resolves when it has ended. */
  async kill(name, all) {
    const server = this.nodes.get(name);
    this.#expected.add(server);
    if (all) for (const pid of this.#witnesses(name)) signal(pid, "SIGKILL");
    signalTree(server.pid, "SIGKILL");
    await server.exited;
  }

  freeze(name, on) {
    for (const pid of [...this.#witnesses(name), this.nodes.get(name).pid]) signalTree(pid, on ? "SIGSTOP" : "SIGCONT");
  }

  /** In order, by SIGTERM. */
  async stop(name) {
    const server = this.nodes.get(name);
    this.#expected.add(server);
    server.signal("SIGTERM");
    return server.exited;
  }

  wipe(name) {
    for (const entry of readdirSync(this.data(name))) rmSync(path.join(this.data(name), entry), { recursive: true, force: true });
  }

  /** Nodes from the engine's servers; `way` as net.mjs has it. */
  cutEngine(names, on, way = "both") {
    if (this.net) this.net.cut(names, ["pg0", "pg1", "pg2"], on, way);
    else for (const name of names) for (const wire of this.#wires.get(name)) wire.cut(on);
  }

  cutNodes(ones, others, on, way = "both") {
    this.net.cut(ones, others, on, way);
  }

  /** Runs `cairn cluster ...`: {code, stdout, stderr}. */
  async command(...args) {
    const child = spawn(cairn, ["cluster", ...args, "--cluster", `host=${this.slots.filter(Boolean).map((server) => server.dir)} user=cairn dbname=postgres`], { stdio: ["ignore", "pipe", "pipe"] });
    const result = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) child[name].setEncoding("utf8").on("data", (text) => (result[name] += text));
    result.code = await new Promise((resolve) => child.on("close", resolve));
    return result;
  }

  /**
   * One try at one node: {status, value, owner, refused}. Status 0: there was no answer. `refused`: it is promised that the call was not carried out.
   */
  try(name, target, { timeout = 4000, body } = {}) {
    const server = this.nodes.get(name);
    if (!server?.url || server.exit) return Promise.resolve({ status: 0, refused: true });
    return new Promise((resolve) => {
      const request = http.request(server.url + target, { agent: server.agent, method: body ? "PUT" : "GET" }, (response) => {
        const chunks = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("error", () => finish({ status: 0 }));
        response.on("end", () => {
          const bytes = Buffer.concat(chunks), version = response.headers["x-version"], owner = response.headers["cairn-owner"];
          let value = bytes;
          if (version === undefined) value = bytes.toString();
          if (response.statusCode === 200 && version === undefined) value = JSON.parse(value);
          finish({ status: response.statusCode, value, version, owner: owner?.split(" ")[0], refused: response.statusCode === 503 && owner !== undefined });
        });
      });
      const timer = setTimeout(() => request.destroy(new Error("late")), timeout);
      const finish = (answer) => (clearTimeout(timer), resolve(answer));
      request.on("error", (error) => finish({ status: 0, refused: error.code === "ECONNREFUSED", value: error.message }));
      request.end(body);
    });
  }
}
