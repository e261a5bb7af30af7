// A backup of a cluster, made by any node while clients write: everything that was acknowledged before it began is in it, every object is in a state
// that it had, whoever dies or moves meanwhile; what is not whole or was damaged is never taken for one; a single server and another cluster are made of it.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, openSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync, writeSync, closeSync, readSync, cpSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { hello } from "../../integration/deploy/lib.mjs";
import { Server, cairn, tempDir } from "../../integration/lib/server.mjs";
import { Cluster } from "./cluster.mjs";
import { Fleet, get } from "./fleet.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 600_000 };
const NAMES = ["a", "b", "c"];
const LEDGERS = 24;

const project = (consumer) => ({
  "wrangler.toml": `name = "backup"
main = "index.js"
compatibility_date = "2026-01-01"
kv_namespaces = [{ binding = "KV", id = "kv" }]
d1_databases = [{ binding = "DB", database_name = "db", database_id = "db" }]
[[r2_buckets]]
binding = "R2"
bucket_name = "bucket"
[[durable_objects.bindings]]
name = "LEDGER"
class_name = "Ledger"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Ledger"]
[[queues.producers]]
binding = "QUEUE"
queue = "jobs"
${consumer ? `[[queues.consumers]]\nqueue = "jobs"\nmax_batch_size = 100\nmax_batch_timeout = 0\n` : ""}[cairn.cluster]
shards = 16
`,
  "index.js": `import { DurableObject } from "cloudflare:workers";
export class Ledger extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS entry(at INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT, pad BLOB)");
  }
  all() { return [...this.ctx.storage.sql.exec("SELECT value FROM entry ORDER BY at")].map((row) => row.value); }
  add(value, pad) { this.ctx.storage.sql.exec("INSERT INTO entry(value, pad) VALUES (?, randomblob(?))", value, Number(pad ?? 0)); return this.all().length; }
  ring(ms) { return this.ctx.storage.setAlarm(Date.now() + ms); }
  alarm() { this.ctx.storage.sql.exec("INSERT INTO entry(value) VALUES ('alarm')"); }
  rings() { return this.ctx.storage.getAlarm(); }
}
export default {
  async fetch(request, env) {
    const [, what, name, value, more] = new URL(request.url).pathname.split("/");
    const stub = env.LEDGER.getByName(name ?? "");
    if (what === "id") return Response.json(String(env.LEDGER.idFromName(name)));
    if (what === "add") return Response.json(await stub.add(value, more));
    if (what === "all") return Response.json(await stub.all());
    if (what === "ring") return Response.json((await stub.ring(Number(value)), "set"));
    if (what === "rings") return Response.json(await stub.rings());
    if (what === "put") return Response.json((await env.KV.put(name, value), "put"));
    if (what === "get") return Response.json(await env.KV.get(name));
    if (what === "insert") {
      await env.DB.exec("CREATE TABLE IF NOT EXISTS entry(value TEXT PRIMARY KEY)");
      return Response.json((await env.DB.prepare("INSERT OR IGNORE INTO entry VALUES (?)").bind(name).run()).success);
    }
    if (what === "select") return Response.json((await env.DB.prepare("SELECT value FROM entry").all()).results.map((row) => row.value));
    if (what === "send") return Response.json((await env.QUEUE.send(name), "sent"));
    if (what === "body" && request.method === "PUT") return Response.json((await env.R2.put(name, request.body)).size);
    if (what === "drop") return Response.json((await env.R2.delete(name), "gone"));
    if (what === "body") { const object = await env.R2.get(name); return object ? new Response(object.body) : new Response("none", { status: 404 }); }
    return new Response("?", { status: 404 });
  },
  async queue(batch) {
    for (const message of batch.messages) console.log("delivered " + message.body + ".");
  },
};
`,
});

const body = (name) => {
  const out = Buffer.alloc(40_000);
  for (let i = 0, block = createHash("sha256").update(name).digest(); i < out.length; i += 32) block.copy(out, i);
  return out;
};

/** Runs a command of cairn: {code, stdout, stderr}. */
async function run(...args) {
  const child = spawn(cairn, args, { stdio: ["ignore", "pipe", "pipe"] });
  const result = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) child[name].setEncoding("utf8").on("data", (text) => (result[name] += text));
  result.code = await new Promise((resolve) => child.on("close", resolve));
  return result;
}

const good = (result) => {
  assert.equal(result.code, 0, result.stdout + result.stderr);
  return result;
};

async function begin(t, names = NAMES) {
  const cluster = await Cluster.make(t, { project: project(false) });
  for (const name of names) await cluster.start(name);
  await cluster.whole(Math.min(2, names.length));
  await until(async () => Number(await cluster.engine.ask("SELECT count(DISTINCT owner) FROM cairn.shard")) > 1, "shards have spread", 240_000);
  return cluster;
}

/** Clients that write until they are stopped, and remember what was acknowledged: a count for each ledger, and sets. */
class Load {
  constructor(cluster) {
    this.cluster = cluster;
    this.on = true;
    this.ledgers = new Map(Array.from({ length: LEDGERS }, (_, i) => [`ledger-${i}`, 0]));
    this.tried = new Map(this.ledgers); // what may have been written beyond that
    for (const kind of ["keys", "rows", "messages", "bodies"]) this[kind] = new Set();
    let nodes = 0;
    const node = () => [...cluster.nodes.keys()][nodes++ % cluster.nodes.size];
    const each = (name, target) => this.#loop(name, async (i) => (await cluster.try(node(), target(i))).status === 200);
    this.loops = [
      ...[...this.ledgers.keys()].map((name) => this.#write(name)),
      each("keys", (i) => `/put/key-${i}/value-${i}`),
      each("rows", (i) => `/insert/row-${i}`),
      each("messages", (i) => `/send/message-${i}`),
      this.#loop("bodies", async (i) => {
        const server = cluster.nodes.get(node());
        if (!server.url || server.exit) return false;
        const response = await fetch(`${server.url}/body/body-${i}`, { method: "PUT", body: body(`body-${i}`), signal: AbortSignal.timeout(5000) }).catch(() => undefined);
        await response?.arrayBuffer().catch(() => undefined);
        if (i % 5 === 4 && response?.status === 200) { // some go again
          if ((await cluster.try(node(), `/drop/body-${i}`)).status !== 200) return false;
          return null;
        }
        return response?.status === 200;
      }),
    ];
  }

  /** Values that rise: whatever the object has is 0, 1, 2, ... each once or, after an answer that was lost, again. */
  async #write(name) {
    for (let i = 0; this.on; ) {
      this.tried.set(name, i + 1);
      const { status } = await this.cluster.try([...this.cluster.nodes.keys()][i % this.cluster.nodes.size], `/add/${name}/${i}`);
      if (status === 200) this.ledgers.set(name, ++i);
      else await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async #loop(kind, write) {
    for (let i = 0; this.on; i++) {
      const done = await write(i);
      if (done) this[kind].add(i);
      else if (done === false) await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async atLeast(count) {
    await until(() => Math.min(...this.ledgers.values(), this.keys.size, this.rows.size, this.messages.size, this.bodies.size) >= count, `${count} of everything`, 120_000);
  }

  acknowledged() {
    return { ledgers: new Map(this.ledgers), ...Object.fromEntries(["keys", "rows", "messages", "bodies"].map((kind) => [kind, new Set(this[kind])])) };
  }

  async stop() {
    this.on = false;
    await Promise.all(this.loops);
  }
}

/** Everything that was acknowledged is there, and lists are beginnings of what was written. `ask` gets a path, and gives JSON. */
async function compare(before, load, ask, fetchBody) {
  for (const [name, count] of before.ledgers) {
    const values = (await ask(`/all/${name}`)).map(Number);
    const unique = [...new Set(values)];
    assert.deepEqual(unique, unique.map((_, i) => i), `${name} is a beginning of what was written`);
    assert.ok(unique.length >= count, `${name} has ${unique.length}, acknowledged were ${count}`);
    assert.ok(unique.length <= load.tried.get(name), name);
  }
  for (const i of before.keys) assert.equal(await ask(`/get/key-${i}`), `value-${i}`);
  const rows = new Set(await ask("/select"));
  for (const i of before.rows) assert.ok(rows.has(`row-${i}`), `row-${i}`);
  for (const i of before.bodies) {
    const got = await fetchBody(`/body/body-${i}`);
    assert.ok(got.equals(body(`body-${i}`)), `body-${i}`);
  }
}

async function server(t, dir, data) {
  const child = spawn("setpriv", ["--pdeathsig=KILL", cairn, "serve", dir, "--listen", "127.0.0.1:0", "--lanes", "2", "--data", data],
    { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, CAIRN_ADMIN: "off" } });
  const started = new Server(child, data);
  t.after(() => started.kill());
  await started.ready;
  return started;
}

function write(dir, files) {
  mkdirSync(dir, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(dir, name), text);
  return dir;
}

async function bodyOf(base, target) {
  const response = await fetch(base + target, { signal: AbortSignal.timeout(20_000) });
  assert.equal(response.status, 200, target);
  return Buffer.from(await response.arrayBuffer());
}

/** What a server that was made of the backup has. */
async function compareServer(t, copy, before, load) {
  const dir = tempDir();
  const data = path.join(dir, "data");
  const done = good(await run("restore", copy, "--data", data));
  assert.match(done.stdout, /a single server/);
  assert.match(good(await run("check", data)).stdout, /: clean/);
  const restored = await server(t, write(path.join(dir, "project"), project(true)), data);
  await compare(before, load, async (target) => (await restored.fetch(target)).json(), (target) => bodyOf(restored.url, target));
  for (const i of before.messages) await restored.until(new RegExp(`delivered message-${i}\\.`));
  return restored;
}

test("under load, by a node that owns a part: checked, and restored into a server and into a cluster", options, async (t) => {
  const cluster = await begin(t);
  const load = new Load(cluster);
  await load.atLeast(12);
  assert.equal((await cluster.ask("/ring/ledger-0/86400000")).value, "set");
  const id = (await cluster.ask("/id/ledger-1")).value;
  const before = load.acknowledged();
  const copy = path.join(tempDir(), "copy");
  const started = Date.now();
  const done = good(await run("backup", copy, "--data", `${cluster.base}/b`));
  t.diagnostic(`${done.stdout.trim()} in ${Date.now() - started} ms`);
  assert.match(done.stdout, /16 shards of the cluster [0-9a-f-]{36}: each object is as it was at one moment/);
  await load.atLeast(Math.max(...before.ledgers.values()) + 2); // it goes on
  await load.stop();

  const manifest = JSON.parse(readFileSync(path.join(copy, "BACKUP.json"), "utf8"));
  assert.match(manifest.consistency, /each object is as it was at one moment/);
  assert.deepEqual(manifest.shards.map(({ shard }) => shard), Array.from({ length: 16 }, (_, i) => i));
  assert.ok(manifest.shards.every(({ lsn, epoch, owner }) => lsn >= 0 && epoch > 0 && NAMES.includes(owner)), JSON.stringify(manifest.shards));
  assert.ok(new Set(manifest.shards.map(({ owner }) => owner)).size > 1, "shards of several nodes");
  assert.equal(manifest.cluster, await cluster.engine.ask("SELECT id FROM cairn.cluster"));
  assert.equal(statSync(copy).mode & 0o77, 0);
  assert.match(good(await run("check", copy)).stdout, /: clean/);

  // It is no data directory.
  for (const args of [["serve", cluster.project, "--data", copy, "--listen", "127.0.0.1:0"],
    ["serve", cluster.project, "--data", copy, "--listen", "127.0.0.1:0", "--cluster", cluster.url("x"), "--node", "x", "--peer", "127.0.0.1:0"], ["objects", "list", "--data", copy]]) {
    const refused = await run(...args);
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /this is a backup of a cluster/);
  }
  assert.match(good(await run("check", copy)).stdout, /: clean/);

  // A single server.
  const single = await compareServer(t, copy, before, load);
  assert.equal(await (await single.fetch("/id/ledger-1")).json(), id, "ids stay what they were");
  assert.ok((await (await single.fetch("/rings/ledger-0")).json()) > Date.now() + 80_000_000, "so do alarms");
  assert.equal(await (await single.fetch("/add/ledger-0/x")).json() > 0, true);
  await single.stop();

  // Another cluster; its first node has everything, the others get it.
  const other = await Cluster.make(t, { project: project(true) });
  const first = `${other.base}/a`;
  const restored = good(await run("restore", copy, "--data", first, "--cluster", other.url("a")));
  assert.match(restored.stdout, /the first node of the cluster/);
  await other.start("a");
  for (const name of ["b", "c"]) await other.start(name);
  await other.whole();
  const ask = async (target, order) => (await other.ask(target, { order })).value;
  await compare(before, load, (target) => ask(target), (target) => bodyOf(other.nodes.get("c").url, target));
  assert.equal(await ask("/id/ledger-1"), id);
  for (const i of before.messages) await until(() => [...other.nodes.values()].some((node) => node.output.includes(`delivered message-${i}.`)), `message-${i}`);
  // ... and is not needed any more.
  await until(async () => (await Promise.all(["b", "c"].map((name) => readdirSync(`${other.base}/${name}/blobs`).length))).every((count) => count > 1), "bodies are on other disks");
  good(await other.command("drain", "a"));
  await until(async () => (await other.engine.ask("SELECT count(*) FROM cairn.shard s JOIN cairn.disk d ON d.node = 'a' WHERE d.id = ANY (s.disks)")) === "0", "a is empty", 120_000);
  await other.nodes.get("a").kill();
  await compare(before, load, (target) => ask(target, ["b", "c"]), (target) => bodyOf(other.nodes.get("b").url, target));

  // Neither a cluster that has something, nor a directory that has, is restored into.
  for (const [args, why] of [[["--data", path.join(tempDir(), "x"), "--cluster", other.url("b")], /this cluster is not empty/], [["--data", `${other.base}/b`], /is not empty/]]) {
    const refused = await run("restore", copy, ...args);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, why);
  }
  assert.ok(before.ledgers.get("ledger-0") <= (await ask("/all/ledger-0", ["b", "c"])).length);
});

/** A shard above 0 that another node than a owns and a third one has a replica of: {shard, owner, other}. */
async function elsewhere(cluster) {
  const sql = `SELECT s.id || ' ' || d.node || ' ' || o.node FROM cairn.shard s JOIN cairn.session x ON x.id = s.owner AND x.live JOIN cairn.disk d ON d.id = x.disk
    JOIN cairn.disk o ON o.id = ANY (s.disks) AND o.id <> d.id WHERE s.id > 0 AND d.node <> 'a' AND o.node <> 'a' ORDER BY s.id LIMIT 1`;
  const [shard, owner, other] = (await until(() => cluster.engine.tryAsk(sql), "a shard that has nothing to do with a", 240_000)).split(" ");
  return { shard: Number(shard), owner, other };
}

/** Writes 24 MB to an object of the shard, so that copying it takes a while, and its database and history become files. */
async function fill(cluster, shard, round) {
  for (let i = 0; ; i++) {
    const name = `big-${round}-${i}`;
    if (Buffer.from((await cluster.ask(`/id/${name}`)).value, "hex").readBigUInt64LE(16) % 16n !== BigInt(shard)) continue;
    for (let k = 0; k < 16; k++) await cluster.ask(`/add/${name}/${k}/1500000`);
    return name;
  }
}

test("an owner that is killed, and a shard that moves, while it is copied", options, async (t) => {
  const cluster = await begin(t);
  good(await cluster.command("drain", "a")); // who has nothing of it can make a backup too; and the others have it all
  await until(async () => (await cluster.engine.ask("SELECT count(*) FROM cairn.shard s JOIN cairn.disk d ON d.node = 'a' WHERE d.id = ANY (s.disks)")) === "0", "a is empty", 240_000);
  const load = new Load(cluster);
  await load.atLeast(5);
  const base = tempDir();
  // Whether the copy is still under way when its owner is hurt is a matter of milliseconds: one that was not is as good a backup, and it is tried again.
  for (const round of ["killed", "moved"])
    for (let again = false, attempt = 0; !again; attempt++) {
      assert.ok(attempt < 5, `${round}: no copy was in the middle`);
      const { shard, owner, other } = await elsewhere(cluster);
      const big = await fill(cluster, shard, `${round}-${attempt}`);
      const before = load.acknowledged();
      const copy = path.join(base, `${round}-${attempt}`), asked = cluster.nodes.get("a");
      const folder = path.join(copy, "shards", String(shard).padStart(4, "0"));
      const backup = run("backup", copy, "--data", `${cluster.base}/a`);
      while (!existsSync(folder)) await new Promise((resolve) => setTimeout(resolve, 1));
      if (round === "killed") {
        cluster.nodes.get(owner).signal("SIGKILL");
      } else {
        asked.signal("SIGSTOP"); // it is shorter than what others take for death
        const moved = await cluster.command("move", String(shard), other);
        asked.signal("SIGCONT");
        good(moved);
      }
      const done = good(await backup);
      for (const [name, node] of cluster.nodes) if (name !== owner) assert.equal(node.exit, undefined, `${name}: ${node.output}`);
      t.diagnostic(`${round}: ${done.stdout.trim()}; ${asked.output.match(/backup: shard .*/g)?.join("; ")}`);
      again = new RegExp(`backup: shard ${shard}: .*; trying again`).test(asked.output);
      if (again) assert.notEqual(JSON.parse(readFileSync(path.join(copy, "BACKUP.json"), "utf8")).shards[shard].owner, owner);
      assert.ok(readdirSync(path.join(folder, "objects")).length > 0, "with databases that were checkpointed");
      assert.match(good(await run("check", copy)).stdout, /: clean/);
      const restored = await compareServer(t, copy, before, load);
      assert.deepEqual(await (await restored.fetch(`/all/${big}`)).json(), Array.from({ length: 16 }, (_, k) => String(k)));
      await restored.stop();
      asked.output = "";
      if (round === "killed") {
        await cluster.start(owner);
        await cluster.whole();
      }
    }
  await load.stop();
});

test("what does not come to its end is no backup: a full disk, a folder that cannot be written, the asked node killed", options, async (t) => {
  const cluster = await begin(t, ["a", "b"]);
  await Promise.all(Array.from({ length: 32 }, (_, i) => cluster.ask(`/add/large-${i}/0/1000000`)));
  const noBackup = async (folder) => {
    const check = await run("check", folder);
    assert.notEqual(check.code, 0);
    assert.match(check.stderr, /not whole|no file FORMAT|cannot open/);
    const data = path.join(tempDir(), "data");
    const restore = await run("restore", folder, "--data", data);
    assert.equal(restore.code, 1);
    assert.ok(!existsSync(data), "nothing was made of it");
    const serve = await run("serve", cluster.project, "--data", folder, "--listen", "127.0.0.1:0");
    assert.notEqual(serve.code, 0);
  };
  const small = tempDir();
  if (spawnSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", small]).status === 0) {
    t.after(() => spawnSync("umount", ["-l", small]));
    const folder = path.join(small, "copy");
    const full = await run("backup", folder, "--data", `${cluster.base}/a`);
    assert.equal(full.code, 1);
    assert.match(full.stderr, /^cairn: .*No space left on device/);
    assert.ok(!existsSync(folder), "what was written goes");
  }
  const nowhere = await run("backup", "/proc/nothing/here", "--data", `${cluster.base}/a`);
  assert.equal(nowhere.code, 1);
  const used = tempDir();
  writeFileSync(path.join(used, "something"), "x");
  assert.match((await run("backup", used, "--data", `${cluster.base}/a`)).stderr, /is not empty/);
  assert.deepEqual(readdirSync(used), ["something"]);

  // The node itself serves on; then it is killed while it makes one.
  assert.deepEqual((await cluster.ask("/all/large-0")).value, ["0"]);
  const folder = path.join(tempDir(), "cut");
  const cut = run("backup", folder, "--data", `${cluster.base}/a`);
  await until(() => existsSync(path.join(folder, "shards/0000/REPLICA")), "the backup is under way");
  const second = await run("backup", path.join(tempDir(), "second"), "--data", `${cluster.base}/a`);
  assert.match(second.stderr, /making a backup already/);
  cluster.nodes.get("a").signal("SIGKILL");
  assert.equal((await cut).code, 1);
  assert.ok(!existsSync(folder), "what was written goes");
  // Who is killed himself leaves what is no backup.
  const killed = spawn(cairn, ["backup", folder, "--data", `${cluster.base}/b`], { stdio: "ignore" });
  await until(() => existsSync(path.join(folder, "shards/0000/REPLICA")), "the backup is under way");
  killed.kill("SIGKILL");
  await new Promise((resolve) => killed.on("exit", resolve));
  await noBackup(folder);
  assert.match((await run("backup", path.join(`${cluster.base}/b`, "inside"), "--data", `${cluster.base}/b`)).stderr, /is inside the data directory/);
  // The other one gives nothing to it any more, and makes one of its own.
  const copy = path.join(tempDir(), "copy");
  good(await run("backup", copy, "--data", `${cluster.base}/b`));
  assert.match(good(await run("check", copy)).stdout, /: clean/);
});

test("damage is found, and not restored; a manifest that leads elsewhere is refused", options, async (t) => {
  const cluster = await begin(t, ["a", "b"]);
  const load = new Load(cluster);
  await load.atLeast(3);
  await load.stop();
  const copy = path.join(tempDir(), "copy");
  good(await run("backup", copy, "--data", `${cluster.base}/a`));
  const files = readFileSync(path.join(copy, "FILES"), "utf8").trim().split("\n").map((line) => line.split(" ")).map(([sum, size, ...name]) => ({ sum, size: Number(size), name: name.join(" ") }));
  const one = (pattern) => files.find(({ name, size }) => size > 0 && pattern.test(name)).name;
  let count = 0;
  const damaged = async (change, why) => {
    const again = path.join(tempDir(), `damaged-${count++}`);
    cpSync(copy, again, { recursive: true });
    change(again);
    const check = await run("check", again);
    assert.notEqual(check.code, 0);
    assert.match(check.stdout + check.stderr, why);
    const data = path.join(tempDir(), "data");
    const restore = await run("restore", again, "--data", data);
    assert.equal(restore.code, 1, restore.stdout);
    assert.match(restore.stderr, why);
    if (existsSync(data)) assert.match((await run("serve", cluster.project, "--data", data, "--listen", "127.0.0.1:0")).stderr, /a restore into this directory was interrupted/);
  };
  const flip = (name) => (folder) => {
    const file = openSync(path.join(folder, name), "r+"), byte = Buffer.alloc(1), at = Math.floor(statSync(path.join(folder, name)).size / 2);
    readSync(file, byte, 0, 1, at);
    byte[0] ^= 1;
    writeSync(file, byte, 0, 1, at);
    closeSync(file);
  };
  for (const pattern of [/^shards\/\d+\/log\/.*seg/, /^shards\/\d+\/catalog\//, /^blobs\//, /^cluster\.json/]) {
    const name = one(pattern);
    await damaged(flip(name), new RegExp(`${name.replace(/[.]/g, "\\.")} does not match its checksum`));
    await damaged((folder) => rmSync(path.join(folder, name)), new RegExp(`${name.replace(/[.]/g, "\\.")} is missing`));
  }
  await damaged(flip("FILES"), /FILES does not match its checksum/);
  await damaged((folder) => writeFileSync(path.join(folder, "BACKUP.json"), "{"), /BACKUP\.json/);
  await damaged((folder) => rmSync(path.join(folder, "BACKUP.json")), /no BACKUP\.json|no file FORMAT/);
  // Lines that would write elsewhere, with checksums that match.
  const outside = path.join(tempDir(), "outside");
  for (const name of ["../../outside", outside, "deployed/../../outside", "shards/0000/../../../outside", "shards/0099/FORMAT", "etc/passwd", "blobs/0/../../x", "deployed/code//x"])
    await damaged((folder) => {
      const line = `${createHash("sha256").update("x").digest("hex")} 1 ${name}\n`;
      const text = readFileSync(path.join(folder, "FILES"), "utf8") + line;
      writeFileSync(path.join(folder, "FILES"), text);
      const manifest = JSON.parse(readFileSync(path.join(folder, "BACKUP.json"), "utf8"));
      manifest.files++;
      manifest.files_sha256 = createHash("sha256").update(text).digest("hex");
      writeFileSync(path.join(folder, "BACKUP.json"), JSON.stringify(manifest));
      if (name.startsWith("..")) writeFileSync(path.join(folder, "../../outside"), "x");
    }, /is none that a backup has/);
  // A file that nobody has compared, where a store would read it.
  const log = one(/^shards\/\d+\/log\/.*seg/);
  await damaged((folder) => cpSync(path.join(folder, log), path.join(folder, `${path.dirname(log)}/more.seg`)), /more\.seg is not in the list of files/);
  // A state that leads to numbers of namespaces that there are not, with checksums that match.
  for (const namespace of [[4294967295, "x"], [0, "x"], [7, "x\0y"], [8], "x"]) {
    const again = path.join(tempDir(), `damaged-${count++}`);
    cpSync(copy, again, { recursive: true });
    const state = JSON.parse(readFileSync(path.join(again, "cluster.json"), "utf8"));
    state.namespaces.push(namespace);
    const body = JSON.stringify(state), sum = (text) => createHash("sha256").update(text).digest("hex");
    const text = readFileSync(path.join(again, "FILES"), "utf8").replace(/^.* cluster\.json$/m, `${sum(body)} ${Buffer.byteLength(body)} cluster.json`);
    const manifest = JSON.parse(readFileSync(path.join(again, "BACKUP.json"), "utf8"));
    manifest.bytes += Buffer.byteLength(body) - statSync(path.join(again, "cluster.json")).size;
    writeFileSync(path.join(again, "cluster.json"), body);
    writeFileSync(path.join(again, "FILES"), text);
    writeFileSync(path.join(again, "BACKUP.json"), JSON.stringify({ ...manifest, files_sha256: sum(text) }));
    const restore = await run("restore", again, "--data", path.join(tempDir(), `data-${count}`));
    assert.equal(restore.code, 1, restore.stdout);
    assert.match(restore.stderr, /the list of namespaces is none/);
  }
});

test("what was deployed by upload goes along: versions, secrets, assets, tokens", options, async (t) => {
  const fleet = await Fleet.begin(t, ["a", "b"]);
  const clients = await fleet.clients();
  const source = (text) => `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject { async fetch() { const n = ((await this.ctx.storage.get("n")) ?? 0) + 1; await this.ctx.storage.put("n", n); return new Response("${text} " + n); } }
export default { fetch(request, env) { return new URL(request.url).pathname === "/key" ? new Response(env.KEY) : env.ROOM.getByName("one").fetch(request); } };`;
  const metadata = { bindings: [{ type: "durable_object_namespace", name: "ROOM", class_name: "Room" }] };
  await clients.a.deploy("x", source("one"), { metadata: { ...metadata, migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] } } });
  await clients.b.result("PUT", "workers/scripts/x/secrets", { json: { name: "KEY", text: "hunter2", type: "secret_text" } });
  const jwt = await clients.a.assets("x", { "/a.txt": "an asset" });
  await clients.a.deploy("x", source("two"), { metadata: { ...metadata, assets: { jwt }, keep_bindings: ["secret_text"] } });
  await clients.a.deploy("y", hello("why"));
  assert.equal((await get(fleet.nodes.get("a"), "/", { host: "x.localhost" })).text, "two 1");
  const copy = path.join(tempDir(), "copy");
  good(await run("backup", copy, "--data", `${fleet.base}/b`));
  assert.match(good(await run("check", copy)).stdout, /: clean/);

  const answers = async (server, number) => {
    for (const [target, host, text] of [["/", "x.localhost", `two ${number}`], ["/key", "x.localhost", "hunter2"], ["/a.txt", "x.localhost", "an asset"], ["/", "y.localhost", "why"]])
      assert.equal((await get(server, target, { host })).text, text, `${host}${target}`);
  };
  // A single server: everything that was deployed serves, and the old token still deploys.
  const data = path.join(tempDir(), "data");
  good(await run("restore", copy, "--data", data));
  assert.match(good(await run("check", data)).stdout, /: clean/);
  const child = spawn("setpriv", ["--pdeathsig=KILL", cairn, "serve", "--listen", "127.0.0.1:0", "--lanes", "1", "--data", data, "--domain", "example.com"],
    { stdio: ["ignore", "pipe", "pipe"], cwd: fleet.empty, env: { ...process.env, CAIRN_ADMIN: "127.0.0.1:0" } });
  const single = new Server(child, data);
  t.after(() => single.kill());
  await single.ready;
  await answers(single, 2);
  const [, admin] = await single.until(/admin on (http:\S+)/);
  single.api = `${admin}/client/v4`;
  clients.a.server = single;
  const versions = (await clients.a.result("GET", "workers/scripts/x/versions")).items;
  assert.ok(versions.length >= 3, JSON.stringify(versions));
  await clients.a.deploy("y", hello("because"));
  assert.equal((await get(single, "/", { host: "y.localhost" })).text, "because");
  await single.stop();

  // Another cluster.
  const other = Object.setPrototypeOf(await Cluster.make(t), Fleet.prototype);
  Object.assign(other, { made: [], empty: fleet.empty });
  good(await run("restore", copy, "--data", `${other.base}/a`, "--cluster", other.url("a")));
  for (const name of ["a", "b"]) await other.up(name);
  await other.whole();
  await answers(other.nodes.get("b"), 2);
  await answers(other.nodes.get("a"), 3);
});
