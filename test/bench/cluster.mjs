// `make bench-cluster`: a node of a cluster beside a single server and beside the engine alone. PostgreSQL with a synchronous standby is started for
// it, as an unprivileged user, below a folder of its own; both servers, the nodes and the load share this machine.
//
// BENCH_ONLY=cluster-commit,cluster-writes,cluster-idle,cluster-load,cluster-many,cluster-remote chooses parts, BENCH_SECONDS and BENCH_REPEATS how long;
// BENCH_LOAD the seconds of the load (20), BENCH_OBJECTS how many objects are made (100,000).
import { execFile } from "node:child_process";
import http from "node:http";
import { copyFileSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { Postgres, absent, until } from "../cluster/server/postgres.mjs";
import { format, get, median, root, sleep, startCairn, tempDir, usage, wrk } from "./lib.mjs";
import { note } from "./report.mjs";

const exec = promisify(execFile);
const here = path.join(root, "test/bench");
const lua = path.join(here, "names.lua");
const seconds = Number(process.env.BENCH_SECONDS || 3);
const repeats = Number(process.env.BENCH_REPEATS || 3);
const only = process.env.BENCH_ONLY?.split(",");
const chosen = (name) => !only || only.includes("cluster") || only.includes(`cluster-${name}`);
const parts = Object.entries({ commit, writes, idle, load, many, remote }).filter(([name]) => chosen(name));

if (parts.length === 0) process.exit(0);
if (absent) {
  console.log(`cluster: not measured: ${absent}`);
  process.exit(0);
}

// --- rows ----------------------------------------------------------------------------------------

const bytes = (n) => (n >= 1e9 ? `${format(n / 1e9)} GB` : n >= 1e6 ? `${format(n / 1e6)} MB` : n >= 1e4 ? `${format(n / 1e3)} kB` : `${Math.round(n).toLocaleString("en")} B`);
const ms = (n) => `${n.toFixed(2)} ms`;
const us = (n) => `${Math.round(n).toLocaleString("en")} µs`;
const per = (n) => `${format(n)}/s`;
const count = (n) => n.toLocaleString("en");

/** `beside`: what it is compared with; `goal` and whether it `holds`. */
function row(name, value, { beside = "", goal = "", holds } = {}) {
  const verdict = holds === undefined ? goal : `${goal}: ${holds ? "holds" : "missed"}`;
  console.log(`${name.padEnd(62)} ${value.padStart(16)}   ${beside}${verdict ? `   [${verdict}]` : ""}`);
  note("cluster", name, { value, beside, goal: verdict });
}

// --- servers -------------------------------------------------------------------------------------

const cleanups = [];
const scope = { after: (cleanup) => cleanups.push(cleanup) };

const project = tempDir("project"), config = path.join(project, "wrangler.jsonc");
scope.after(() => rmSync(project, { recursive: true, force: true }));
for (const name of ["objects.js", "cluster.js", "sockets.js"]) copyFileSync(path.join(here, "workers", name), path.join(project, name));

/** The project; `cluster`: its shards and replicas, which a single server has not. */
function configure(cluster) {
  const settings = JSON.parse(readFileSync(path.join(here, "workers/wrangler.objects.jsonc"), "utf8"));
  settings.main = "cluster.js";
  settings.durable_objects.bindings.push({ name: "ROOM", class_name: "Room" });
  settings.migrations[0].new_sqlite_classes.push("Room");
  settings.kv_namespaces = [{ binding: "KV", id: "kv" }];
  settings.cairn = { limits: { object_idle_ms: 3000 }, ...(cluster && { cluster }) };
  writeFileSync(config, JSON.stringify(settings));
  return config;
}

const settings = ["shared_buffers = 128MB", "autovacuum = on", "wal_keep_size = 1GB", "max_wal_size = 4GB"];
const primary = await Postgres.make(scope, "*", settings);
const standby = await Postgres.copy(scope, primary);

let databases = 0;
/** A cluster without nodes. */
class Cluster {
  static async make({ shards = 256, replicas = 1 } = {}) {
    const cluster = new Cluster();
    cluster.name = `bench${++databases}`;
    cluster.shape = { shards, replicas };
    cluster.nodes = [];
    await primary.ask(`CREATE DATABASE ${cluster.name}`);
    return cluster;
  }
  get url() {
    return `host=${primary.dir} user=cairn dbname=${this.name}`;
  }
  ask(sql) {
    return primary.ask(sql, this.name);
  }
  number(sql) {
    return this.ask(sql).then(Number);
  }
  /** Owned is not served yet: the first node answers for its objects, whatever their shard is. */
  async serves(node = this.nodes[0]) {
    for (let i = 0; i < 4 * this.shape.shards; i++) await until(async () => (await get(`${node.base}/memory/hit?name=probe${i}`)).status === 200, `shard of probe${i} is served`);
  }
  async start({ lanes = 1, dir } = {}) {
    const name = `n${this.nodes.length}`;
    const node = await startCairn(configure(this.shape), { lanes, dir, args: ["--cluster", this.url, "--node", name, "--peer", "127.0.0.1:0"] });
    scope.after(() => node.stop()); // if anything fails
    this.nodes.push(node);
    return node;
  }
  /** Every shard has an owner and its replicas, on live nodes; `nodes` have some. */
  whole(nodes = this.nodes.length) {
    return until(async () => await this.ask(`SELECT count(*) = ${this.shape.shards} AND count(DISTINCT owner) >= ${nodes} FROM cairn.shard s
      WHERE (SELECT count(*) FROM cairn.session x WHERE x.live AND x.disk = ANY (s.disks)) >= ${Math.min(nodes, this.shape.replicas)}
      AND EXISTS (SELECT 1 FROM cairn.session x WHERE x.live AND x.id = s.owner)`) === "t", "every shard has an owner and its replicas", 120_000);
  }
  /** Shards are spread, and none is moved any more. */
  async rest() {
    await until(async () => (await this.ask("SELECT max(n) - min(n) <= 1 FROM (SELECT count(*) AS n FROM cairn.shard GROUP BY owner) x")) === "t", "shards are spread", 120_000);
    for (let last, version; (version = await this.ask("SELECT version FROM cairn.cluster")) !== last; last = version) await sleep(7000);
  }
  /** Numbers i for which the counter `prefix`i belongs to the node, `total` of them. */
  async owned(node, prefix, total) {
    const owners = new Set((await this.ask(`SELECT string_agg(s.id::text, ' ') FROM cairn.shard s JOIN cairn.session x ON x.id = s.owner JOIN cairn.disk d ON d.id = x.disk WHERE d.node = 'n${node}'`)).split(" ").map(Number));
    const { body } = await get(`${this.nodes[node].base}/shards?prefix=${prefix}&total=${total * 2 * this.nodes.length}&count=${this.shape.shards}`);
    return JSON.parse(body).flatMap((shard, i) => (owners.has(shard) ? [i + 1] : [])).slice(0, total);
  }
  async stop() {
    for (const node of this.nodes.splice(0).reverse()) await node.stop();
  }
  async end() {
    await this.stop();
    await primary.ask(`DROP DATABASE ${this.name} WITH (FORCE)`);
  }
}

const stats = (pid) => {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
};
/** Processor time of both servers of the engine so far, in seconds; of their processes that ended, too. */
function engineCpu() {
  let ticks = 0;
  for (const server of [primary, standby]) {
    const fields = stats(server.child.pid);
    for (const i of [11, 12, 13, 14]) ticks += Number(fields[i]);
  }
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      const fields = stats(pid);
      if ([primary.child.pid, standby.child.pid].includes(Number(fields[1]))) ticks += Number(fields[11]) + Number(fields[12]);
    } catch {} // it ended
  }
  return ticks / 100;
}
const walPosition = () => primary.ask("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").then(Number);
const threads = (pid) => readdirSync(`/proc/${pid}/task`).length;

/** What `measure()` used of the engine: {result, cpu (seconds), wal (bytes), took (seconds)}. */
async function engineUse(measure) {
  const wal = await walPosition(), cpu = engineCpu(), began = performance.now();
  const result = await measure();
  const took = (performance.now() - began) / 1e3;
  return { result, took, cpu: engineCpu() - cpu, wal: (await walPosition()) - wal };
}

// --- one connection ------------------------------------------------------------------------------

/** What bench_append says of records of `size` bytes, one for each of `rows` shards. */
async function appends(cluster, size, rows, writers = 1) {
  const { stdout } = await exec(path.join(root, "build/bench/bench_append"), [cluster.url, size, rows, seconds, writers].map(String));
  return stdout.trim().split("\n").map((line) => JSON.parse(line));
}

async function commit() {
  const figures = { least: [], cairn: [], commit: [], p99: [], single: [] }, together = {};
  let size;
  for (let i = 0; i < repeats; i++) {
    const cluster = await Cluster.make();
    const node = await cluster.start();
    await cluster.whole();
    await cluster.serves();
    await wrk(node, "/counter/sql", { connections: 1, seconds: 1 });
    const result = await wrk(node, "/counter/sql", { connections: 1, seconds });
    figures.commit.push(result.p50);
    figures.p99.push(result.p99);
    size = Math.round(await cluster.number("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY octet_length(body)) FROM cairn.log")) - 4;
    await cluster.stop();
    for (const { append, p50 } of await appends(cluster, size, 1)) figures[append].push(p50);
    for (const writers of [8, 32]) (together[writers] ??= []).push(...(await appends(cluster, size, 16, writers)));
    await cluster.end();
    const single = await startCairn(configure(null));
    await wrk(single, "/counter/sql", { connections: 1, seconds: 1 });
    figures.single.push((await wrk(single, "/counter/sql", { connections: 1, seconds })).p50);
    await single.stop();
  }
  const p50 = Object.fromEntries(Object.entries(figures).map(([name, values]) => [name, median(values)]));
  const goal = 1.5 * p50.least + 0.2;
  row(`engine: the least fenced append of ${size} bytes, p50`, ms(p50.least), { beside: `one connection, one at a time (build/bench/bench_append)` });
  row("engine: the append that nodes send, p50", ms(p50.cairn), { beside: "the same program" });
  row("request with a durable write, one connection, p50", ms(p50.commit), {
    beside: `single server ${ms(p50.single)}; p99 ${ms(median(figures.p99))}`, goal: `≤ ${ms(goal)} (1.5 × the least append + 0.2 ms)`, holds: p50.commit <= goal });
  const of = (writers, key) => median(together[writers].map((figure) => figure[key]));
  row("engine: appends of 16 records to 16 shards, 8 sessions at once", per(of(8, "rate")), {
    beside: `p50 ${ms(of(8, "p50"))}, ${bytes(of(8, "wal"))} of WAL each; 32 sessions ${per(of(32, "rate"))}, p50 ${ms(of(32, "p50"))}, ${bytes(of(32, "wal"))}` });
}

// --- 64 connections ------------------------------------------------------------------------------

const numbers = Array.from({ length: 1000 }, (_, i) => i + 1);
const loads = [
  { name: "one object", path: "/counter/sql" },
  { name: "1,000 objects", path: "/", lua, luaArgs: ["/counter/sql?name=many", "list", numbers], numbers },
];
/** Each of the objects is there, and the code is warm. */
const warm = async (server, load) => {
  const names = load.numbers?.slice() ?? [];
  while (names.length) await Promise.all(names.splice(0, 50).map((i) => get(`${server.base}/counter/sql?name=many${i}`)));
  await wrk(server, load.path, { ...load, connections: 64, seconds: 2 });
};

async function writes() {
  for (const load of loads) {
    const single = [], rate = [], cost = [], engine = [], wal = [], p99 = [], table = [];
    for (let i = 0; i < repeats; i++) {
      const alone = await startCairn(configure(null));
      await warm(alone, load);
      single.push(await wrk(alone, load.path, { ...load, connections: 64, seconds }));
      await alone.stop();

      const cluster = await Cluster.make();
      const node = await cluster.start();
      await cluster.whole();
      await cluster.serves();
      await warm(node, load);
      const before = await cluster.number("SELECT pg_total_relation_size('cairn.log_0') + pg_total_relation_size('cairn.log_1')");
      const use = await engineUse(() => wrk(node, load.path, { ...load, connections: 64, seconds }));
      const after = await cluster.number("SELECT pg_total_relation_size('cairn.log_0') + pg_total_relation_size('cairn.log_1')");
      rate.push(use.result.rate);
      p99.push(use.result.p99);
      cost.push(use.result.cpuPerRequest);
      engine.push((use.cpu * 1e6) / use.result.requests);
      wal.push(use.wal / use.result.requests);
      table.push((after - before) / use.result.requests);
      await cluster.end();
    }
    const alone = median(single.map((result) => result.rate)), ratio = median(rate) / alone;
    row(`durable writes, 64 connections, ${load.name}`, per(median(rate)), {
      beside: `single server ${per(alone)}: ${ratio.toFixed(2)} ×; p99 ${ms(median(p99))}`, goal: "≥ 0.5 ×", holds: ratio >= 0.5 });
    row("  processor time of a write: the node", us(median(cost)), { beside: `single server ${us(median(single.map((result) => result.cpuPerRequest)))}; both servers of the engine ${us(median(engine))}` });
    row("  bytes in the engine of a write", `${bytes(median(wal))} of WAL`, { beside: `${bytes(median(table))} of its log tables, until they are emptied` });
  }
}

// --- at rest -------------------------------------------------------------------------------------

/** Memory, threads and processor time of nodes that nobody asks anything, and what they ask of the engine. */
async function rest(cluster, span = 8) {
  // What was begun is done: objects are let go, databases written.
  for (let i = 0, before = 1e9; i < 40; i++) {
    const cpu = cluster.nodes.reduce((sum, node) => sum + usage(node.pid).cpu, 0);
    if (i > 1 && cpu - before < 0.05 * cluster.nodes.length) break;
    before = cpu;
    await sleep(3000);
  }
  const transactions = () => cluster.number(`SELECT xact_commit FROM pg_stat_database WHERE datname = '${cluster.name}'`);
  const before = cluster.nodes.map((node) => usage(node.pid)), first = await transactions();
  const use = await engineUse(() => sleep(span * 1000));
  const after = cluster.nodes.map((node) => usage(node.pid));
  return {
    rss: median(after.map(({ rss }) => rss)), threads: threads(cluster.nodes[0].pid), fds: median(after.map(({ fds }) => fds)),
    cpu: median(after.map(({ cpu }, i) => ((cpu - before[i].cpu) / use.took) * 100)),
    statements: ((await transactions()) - first - 3) / use.took / cluster.nodes.length, wal: use.wal / use.took / cluster.nodes.length, engine: (use.cpu / use.took) * 100,
  };
}
const atRest = ({ rss, threads, fds, cpu }) => `${bytes(rss)}, ${threads} threads, ${fds} descriptors, ${cpu.toFixed(1)} % of a core`;
const asked = ({ statements, wal }) => `${format(statements)} transactions and ${bytes(wal)} of WAL per s and node`;

async function idle() {
  const figures = {};
  for (const shards of [1, 256, 1024]) {
    const cluster = await Cluster.make({ shards });
    await cluster.start();
    await cluster.whole();
    await cluster.serves();
    figures[shards] = await rest(cluster);
    await cluster.end();
  }
  const single = await startCairn(configure(null));
  await sleep(2000);
  const before = usage(single.pid);
  await sleep(5000);
  const after = usage(single.pid);
  row("a node at rest, 256 stores", atRest(figures[256]), { beside: `single server: ${atRest({ ...after, threads: threads(single.pid), cpu: (after.cpu - before.cpu) * 20 })}` });
  row("a node at rest, 1 store", atRest(figures[1]));
  row("a node at rest, 1,024 stores", atRest(figures[1024]));
  await single.stop();
  const three = await Cluster.make({ shards: 6, replicas: 2 }); // so few that they are spread soon
  for (let i = 0; i < 3; i++) await three.start();
  await three.whole(3);
  await three.rest();
  const figure = await rest(three);
  row("three nodes at rest: what each asks of the engine", `${format(figure.statements)}/s`, { beside: `${bytes(figure.wal)} of WAL per s and node; both servers of the engine ${figure.engine.toFixed(1)} % of a core in all` });
  await three.end();
}

// --- for a while ---------------------------------------------------------------------------------

async function load() {
  const span = Number(process.env.BENCH_LOAD || 20);
  const pair = await Cluster.make({ shards: 16, replicas: 2 }); // so few that they are spread soon
  const owner = await pair.start();
  await pair.start();
  await pair.whole();
  await pair.rest();
  const mine = await pair.owned(0, "many", 1000);
  const heavy = { ...loads[1], luaArgs: ["/counter/sql?name=many", "list", mine], numbers: mine };
  await warm(owner, heavy);
  const sizes = async () => JSON.parse(await pair.ask(`SELECT json_build_object('log', (SELECT sum(pg_total_relation_size(('cairn.log_' || i)::regclass)) FROM generate_series(0, 3) i),
    'slot', (SELECT slot FROM cairn.cluster), 'session', pg_total_relation_size('cairn.session'), 'shard', pg_total_relation_size('cairn.shard'),
    'cluster', pg_total_relation_size('cairn.cluster'), 'queue', pg_notification_queue_usage())`));
  const seen = [await sizes()];
  let over = false, cuts = 0;
  const running = wrk(owner, heavy.path, { ...heavy, connections: 64, seconds: span }).finally(() => { over = true; });
  while (!over) {
    await sleep(1000);
    seen.push(await sizes());
    cuts += seen.at(-1).slot !== seen.at(-2).slot;
  }
  const { rate, requests } = await running;
  const most = (key) => Math.max(...seen.map((one) => one[key]));
  if (process.env.BENCH_VERBOSE) for (const one of seen) console.log(JSON.stringify(one));
  row("the same with a second node, which follows", per(rate), { beside: `16 shards, ${count(requests)} writes to those of one node in ${span} s` });
  row("  the log tables, at most", bytes(most("log")), { beside: `the ring went on ${cuts} times` });
  row("  the tables session, shard and cluster, at most", ["session", "shard", "cluster"].map((key) => bytes(most(key))).join(", "), {
    beside: `at first ${["session", "shard", "cluster"].map((key) => bytes(seen[0][key])).join(", ")}; queue of notifications ${(most("queue") * 100).toFixed(2)} % full` });
  await pair.end();
}

// --- many objects --------------------------------------------------------------------------------

async function many() {
  const total = Number(process.env.BENCH_OBJECTS || 100_000), each = 50;
  const cluster = await Cluster.make();
  const node = await cluster.start();
  await cluster.whole();
  await cluster.serves();
  const began = performance.now(), use = await engineUse(async () => {
    let next = 0;
    await Promise.all(Array.from({ length: 4 }, async () => {
      while (next < total) {
        const from = (next += each) - each;
        // A machine that is too busy for the node's lease makes it refuse for a moment.
        await until(async () => (await get(`${node.base}/make?from=${from}&count=${each}`)).status === 200, "objects are made");
      }
    }));
  });
  const took = (performance.now() - began) / 1e3, made = usage(node.pid).rss;
  const figure = await rest(cluster);
  const tables = await cluster.number("SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'cairn' AND c.relkind IN ('r', 't')");
  const { stdout } = await exec("du", ["-s", "-B1", path.join(node.dir, "data")], { maxBuffer: 1 << 20 });
  row(`${count(total)} objects with a table and a row, made in ${Math.round(took)} s`, per(total / took), { beside: `by requests that make ${each} each; ${bytes(use.wal / total)} of WAL for one` });
  row("  then idle: memory of the node", bytes(figure.rss), { beside: `when they had been made ${bytes(made)}; ${figure.cpu.toFixed(1)} % of a core` });
  row("  its disk", bytes(Number(stdout.split("\t")[0])), { beside: `${bytes(Number(stdout.split("\t")[0]) / total)} for an object` });
  row("  the engine: tables, and what it is asked", bytes(tables), { beside: asked(figure) });
  await cluster.end();
}

// --- from node to node -----------------------------------------------------------------------------

/** Names of the class behind `binding` whose object is on the node, on each of its two lanes: [of lane 0, of lane 1]. */
async function namesOn(cluster, node, binding) {
  const owners = new Set((await cluster.ask(`SELECT string_agg(s.id::text, ' ') FROM cairn.shard s JOIN cairn.session x ON x.id = s.owner JOIN cairn.disk d ON d.id = x.disk WHERE d.node = 'n${node}'`)).split(" ").map(Number));
  const places = JSON.parse((await get(`${cluster.nodes[0].base}/places?binding=${binding}&total=500&count=${cluster.shape.shards}`)).body);
  return [0, 1].map((lane) => `place${places.findIndex((place) => owners.has(place.shard) && place.lane === lane)}`);
}

/** On one connection, so on one lane: calls one after the other, `each` by a request. {p50 (of a call, in ms), cpu (of all nodes, in us)} */
async function turns(cluster, names) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 }), each = 100, results = [];
  const ask = (target) => get(cluster.nodes[0].base + target, { agent });
  const cpu = () => cluster.nodes.reduce((sum, node) => sum + usage(node.pid).cpu, 0);
  for (const name of names) {
    for (let i = 0; i < 30; i++) await ask(`/turns?name=${name}&count=${each}`);
    const times = [], before = cpu(), until = performance.now() + seconds * 1000;
    while (performance.now() < until) {
      const began = performance.now();
      const { status, body } = await ask(`/turns?name=${name}&count=${each}`);
      if (status !== 200) throw new Error(`turns: ${status} ${body}`);
      times.push((performance.now() - began) / each);
    }
    results.push({ p50: median(times), cpu: ((cpu() - before) * 1e6) / (times.length * each) });
  }
  agent.destroy();
  return results;
}

/** The same, 64 at a time: {rate, cpu}. */
async function bursts(cluster, name) {
  const each = 2000, cpu = () => cluster.nodes.reduce((sum, node) => sum + usage(node.pid).cpu, 0);
  const ask = async () => {
    const { status, body } = await get(`${cluster.nodes[0].base}/turns?name=${name}&count=${each}&width=64`);
    if (status !== 200) throw new Error(`turns: ${status} ${body}`);
  };
  for (let i = 0; i < 3; i++) await ask();
  const before = cpu(), began = performance.now();
  let calls = 0;
  for (; performance.now() - began < seconds * 1000; calls += each) await ask();
  return { rate: calls / ((performance.now() - began) / 1e3), cpu: ((cpu() - before) * 1e6) / calls };
}

async function remote() {
  const pair = await Cluster.make({ shards: 16, replicas: 2 }); // so few that they are spread soon
  await pair.start({ lanes: 2 });
  await pair.start({ lanes: 2 });
  await pair.whole();
  await pair.rest();
  const [near, far] = [await namesOn(pair, 0, "MEMORY"), await namesOn(pair, 1, "MEMORY")];
  const same = [], cross = [], over = [], crossed = [], rates = { near: [], far: [] };
  const better = (one, other) => one.p50 - other.p50;
  for (let i = 0; i < repeats; i++) {
    // A connection is on one of the lanes: of two objects, one on each, the nearer one is on that.
    const [here, there] = (await turns(pair, near)).sort(better);
    same.push(here);
    cross.push(there);
    const [direct, passed] = (await turns(pair, far)).sort(better);
    over.push(direct);
    crossed.push(passed);
    rates.near.push(await bursts(pair, near[0]));
    rates.far.push(await bursts(pair, far[0]));
  }
  const p50 = (list) => median(list.map((one) => one.p50)), cpu = (list) => median(list.map((one) => one.cpu)), rate = (list) => median(list.map((one) => one.rate));
  const goal = p50(cross) * 1000 + 150;
  row("call to an object of another node, one after the other, p50", us(p50(over) * 1000), {
    beside: `same lane ${us(p50(same) * 1000)}, another lane ${us(p50(cross) * 1000)}; another node by way of another lane ${us(p50(crossed) * 1000)}`, goal: `≤ ${us(goal)} (another lane + 150 µs)`, holds: p50(over) * 1000 <= goal });
  row("  processor time of it, of both nodes", us(cpu(over)), { beside: `same lane ${us(cpu(same))}, another lane ${us(cpu(cross))}` });
  row("calls over one connection between two nodes, 64 under way", per(rate(rates.far)), { beside: `${us(cpu(rates.far))} of both nodes' processor time each; to an object of its own node ${per(rate(rates.near))}, ${us(cpu(rates.near))}` });

  await get(`${pair.nodes[0].base}/kv/put?key=key`);
  const reads = { cached: [[], []], plain: [[], []] };
  for (let i = 0; i < repeats; i++) {
    for (const [n, node] of pair.nodes.entries()) {
      for (const [name, ttl] of [["cached", 3600], ["plain", 0]]) {
        await wrk(node, `/kv/get?key=key&ttl=${ttl}`, { connections: 32, seconds: 1 });
        reads[name][n].push(await wrk(node, `/kv/get?key=key&ttl=${ttl}`, { connections: 32, seconds: Math.min(seconds, 2) }));
      }
    }
  }
  const shown = (results) => `${per(rate(results))}, ${us(median(results.map((one) => one.cpuPerRequest)))}`;
  row("KV reads with cacheTtl, of each node", reads.cached.map((results) => per(rate(results))).join(", "), {
    beside: `32 connections; ${reads.cached.map((results) => us(median(results.map((one) => one.cpuPerRequest)))).join(", ")} of the node's processor time; without it, of each node: ${reads.plain.map(shown).join("; ")}` });

  const [own] = await namesOn(pair, 0, "ROOM"), [others] = await namesOn(pair, 1, "ROOM"), echoes = { own: [], others: [] };
  const port = new URL(pair.nodes[0].base).port, nodesCpu = () => pair.nodes.reduce((sum, node) => sum + usage(node.pid).cpu, 0);
  for (let i = 0; i < repeats; i++) {
    for (const [name, room] of [["own", own], ["others", others]]) {
      const before = nodesCpu();
      const { stdout } = await exec(path.join(root, "build/bench/bench_ws"), ["echo", port, `/room?name=${room}`, 64, seconds].map(String), { timeout: 60_000 });
      const { messages, seconds: took } = JSON.parse(stdout);
      echoes[name].push({ rate: messages / took, cpu: ((nodesCpu() - before) * 1e6) / (messages * (1 + 1 / seconds)) }); // a second to warm up
    }
  }
  row("WebSocket echo, 64 sockets, their object on another node", per(rate(echoes.others)), { beside: `${us(cpu(echoes.others))} of both nodes' processor time each; at the owner ${per(rate(echoes.own))}, ${us(cpu(echoes.own))}` });
  await pair.end();
}

try {
  for (const [name, part] of parts) {
    const began = performance.now();
    await part();
    if (process.env.BENCH_VERBOSE) console.log(`(${name}: ${Math.round((performance.now() - began) / 1e3)} s)`);
  }
} finally {
  for (const cleanup of cleanups.reverse()) await cleanup();
}
