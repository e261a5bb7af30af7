// Servers of PostgreSQL for a test: a primary, a synchronous standby, and what may happen to them.
//
// They run as an unprivileged user below a folder of their own and listen on a socket in it, so no port is taken; one that has a place (net.mjs)
// listens at its address as well, and is followed there. What test/lib/postgres.h is for tests in C.
import { execFile, spawn } from "node:child_process";
import { appendFileSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { signalTree } from "./processes.mjs";
import { promisify } from "node:util";

const exec = promisify(execFile); // nothing here blocks: the wires of a cluster are in this process

const NOBODY = 65534;
const user = process.getuid() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
const versions = existsSync("/usr/lib/postgresql") ? readdirSync("/usr/lib/postgresql").sort((a, b) => a - b) : [];
const bin = versions.length ? `/usr/lib/postgresql/${versions.at(-1)}/bin` : null;
/** Itself, and not the script that Debian has in its place: that takes ten times as long. */
export const psql = bin && `${bin}/psql`;

/** Why there is none, or false: what a test's `skip` takes. */
export const absent = bin === null && "PostgreSQL is not installed (Debian package postgresql)";

export class Postgres {
  /** @param {string} standbys synchronous_standby_names; "": none is waited for
   *  @param {string[]} lines of its configuration, besides */
  static async make(t, standbys = "*", lines = [], { place, base } = {}) {
    const server = new Postgres(t, place, base);
    await server.#run("initdb", "-D", "data", "-U", "cairn", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C");
    server.#configure(`synchronous_standby_names = '${standbys}'`, "autovacuum = off", ...lines);
    return server.start();
  }

  constructor(t, place, base = "/tmp") {
    this.t = t;
    this.place = place;
    this.dir = mkdtempSync(`${base}/cairn-pg-`); // short: it has a socket
    if (user.uid) chownSync(this.dir, NOBODY, NOBODY);
    t.after(() => {
      this.kill();
      rmSync(this.dir, { recursive: true, force: true });
    });
  }

  async #run(program, ...args) {
    await exec(program === "cp" ? program : path.join(bin, program), args, { ...user, cwd: this.dir });
  }

  #configure(...lines) {
    appendFileSync(path.join(this.dir, "data/postgresql.conf"), [
      `listen_addresses = '${this.place?.address ?? ""}'`, `unix_socket_directories = '${this.dir}'`, "max_connections = 400", "shared_buffers = 16MB", "wal_level = replica",
      "max_wal_senders = 10", "hot_standby = on", "wal_keep_size = 64MB", "logging_collector = off", "log_checkpoints = off", ...lines, "",
    ].join("\n"));
    if (this.place) appendFileSync(path.join(this.dir, "data/pg_hba.conf"), "host all all 10.77.0.0/16 trust\nhost replication all 10.77.0.0/16 trust\n");
  }

  async start() {
    // setpriv: it ends with this process, whatever ends that.
    const argv = [...(user.uid ? [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"] : []), "--pdeathsig=QUIT", path.join(bin, "postgres"), "-D", "data"];
    const [program, ...rest] = [...(this.place?.prefix ?? []), "setpriv", ...argv];
    await this.exited;
    // One that was killed leaves processes, which end a moment later: until then it refuses to start beside them.
    for (const deadline = Date.now() + 60_000; ; await new Promise((resolve) => setTimeout(resolve, 100))) {
      this.child = spawn(program, rest, { cwd: this.dir, stdio: ["ignore", "pipe", "pipe"] });
      this.output = "";
      for (const stream of [this.child.stdout, this.child.stderr]) stream.setEncoding("utf8").on("data", (text) => (this.output += text));
      let ended = false;
      this.exited = new Promise((resolve) => this.child.on("exit", resolve)).then(() => (ended = true));
      await until(async () => ended || (await this.tryAsk("SELECT 1")) === "1", "PostgreSQL");
      if (!ended) break;
      if (Date.now() > deadline) throw new Error(`PostgreSQL does not start:\n${this.output}`);
      // Its number may be another's by now, who lives.
      if (Date.now() > deadline - 50_000) rmSync(path.join(this.dir, "data/postmaster.pid"), { force: true });
    }
    return this;
  }

  /** A copy of a running server that follows it. */
  static async copy(t, of, name = "second", { place, base } = {}) {
    const server = new Postgres(t, place, base);
    const conninfo = `host=${of.place?.address ?? of.dir} user=cairn application_name=${name}`;
    await server.#run("pg_basebackup", "-D", "data", "-d", `host=${of.dir} user=cairn`, "-X", "stream", "-c", "fast", "--no-sync");
    server.#configure(`primary_conninfo = '${conninfo}'`);
    writeFileSync(path.join(server.dir, "data/standby.signal"), "", { mode: 0o644 });
    if (user.uid) chownSync(path.join(server.dir, "data/standby.signal"), NOBODY, NOBODY);
    await server.start();
    await until(async () => (await of.tryAsk(`SELECT count(*) FROM pg_stat_replication WHERE application_name = '${name}' AND state = 'streaming'`)) === "1", "the standby follows");
    return server;
  }

  /** A copy of its data in a folder of its own, which no server runs on. */
  async backup() {
    const backup = mkdtempSync(`${path.dirname(this.dir)}/cairn-pg-`);
    if (user.uid) chownSync(backup, NOBODY, NOBODY);
    this.t.after(() => rmSync(backup, { recursive: true, force: true }));
    await this.#run("pg_basebackup", "-D", `${backup}/data`, "-d", `host=${this.dir} user=cairn`, "-X", "stream", "-c", "fast", "--no-sync");
    return backup;
  }

  /** A server that was restored from it, and does not know what came after. */
  static async restore(t, backup, { place, base } = {}) {
    const server = new Postgres(t, place, base);
    await server.#run("cp", "-a", `${backup}/data`, "data");
    server.#configure("synchronous_standby_names = '*'");
    return server.start();
  }

  /** In order, as an administrator would: all that was committed is on its disk. */
  async stop() {
    if (!this.child || this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill("SIGINT");
    await this.exited;
  }

  /** kill -9: its other processes end with it. */
  kill() {
    if (!this.child || this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill("SIGKILL");
  }

  /** All its processes stand still, or go on. */
  freeze(on) {
    signalTree(this.child.pid, on ? "SIGSTOP" : "SIGCONT");
  }

  promote() {
    return this.#run("pg_ctl", "promote", "-D", "data", "-w", "-s");
  }

  /** The first value of the first row; undefined if it did not work. */
  async tryAsk(sql, database = "postgres") {
    const argv = ["-X", "-A", "-t", "-q", "-h", this.dir, "-U", "cairn", "-d", database, "-c", "SET synchronous_commit = local", "-c", sql];
    return exec(psql, argv, { timeout: 20_000 }).then(({ stdout }) => stdout.trim(), () => undefined);
  }

  async ask(sql, database) {
    const value = await this.tryAsk(sql, database);
    if (value === undefined) throw new Error(`${sql}:\n${this.output}`);
    return value;
  }
}

/** Asks again and again; the limit is for what never comes. */
export async function until(condition, what, milliseconds = 60_000) {
  for (const deadline = Date.now() + milliseconds; ; ) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`${what} did not come`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
