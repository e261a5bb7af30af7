// Servers as nodes of a cluster, one thing after the other: who answers, who refuses, what is refused at the start. Under faults: faults.test.mjs.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { cairn, tempDir } from "../../integration/lib/server.mjs";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 600_000 };
const names = Array.from({ length: 16 }, (_, i) => `n${i}`);

test("every object has one owner, and every node answers for it; services, alarms and stops follow it", options, async (t) => {
  const cluster = await Cluster.make(t);
  for (const name of ["a", "b", "c"]) await cluster.start(name);
  await cluster.whole();
  await until(async () => (await cluster.engine.tryAsk("SELECT count(DISTINCT owner) FROM cairn.shard")) === "3", "all nodes own something", 200_000);
  const owners = new Set();
  for (const name of names) {
    await cluster.ask(`/add/${name}/first`);
    owners.add(await cluster.owner(name));
  }
  assert.ok(owners.size > 1);
  // (Shards may move for balance meanwhile: a call waits for that.)
  for (const name of names)
    for (const node of ["a", "b", "c"]) assert.deepEqual(await cluster.try(node, `/all/${name}`, 10_000), { status: 200, value: ["first"], owner: null });

  await cluster.ask("/put/key/value");
  assert.equal((await cluster.ask("/get/key")).value, "value");
  await cluster.ask("/insert/row");
  assert.deepEqual((await cluster.ask("/select")).value, ["row"]);
  await cluster.ask("/send/job");
  await until(() => [...cluster.nodes.values()].some((server) => server.output.includes("delivered job.")), "the message");
  await cluster.ask("/ring/bell/1500");
  const node = await cluster.owner("bell");

  // Its owner leaves in order: what it had is another's, and the alarm fires there.
  const left = cluster.nodes.get(node);
  assert.deepEqual(await left.stop(), { code: 0, signal: null }, left.output);
  await until(async () => (await cluster.ask("/all/bell")).value.includes("alarm"), "the alarm");
  for (const name of names) assert.deepEqual((await cluster.ask(`/all/${name}`)).value, ["first"]);

  // It comes back, another is killed (two would be as many as there are replicas), and the rest has everything.
  await cluster.start(node);
  await cluster.whole();
  const victim = ["a", "b", "c"].find((name) => name !== node);
  const order = ["a", "b", "c"].filter((name) => name !== victim);
  cluster.nodes.get(victim).signal("SIGKILL");
  for (const name of names) assert.deepEqual((await cluster.ask(`/all/${name}`, { order })).value, ["first"]);
  assert.equal((await cluster.ask("/get/key", { order })).value, "value");
});

test("a node that is cut off answers nothing after its lease, and comes back by itself", options, async (t) => {
  const cluster = await Cluster.make(t);
  for (const name of ["a", "b"]) await cluster.start(name);
  await cluster.whole();
  await cluster.ask("/add/x/before");
  const node = await cluster.owner("x");
  const other = node === "a" ? "b" : "a";
  cluster.cut(node, true);
  assert.deepEqual((await cluster.ask("/add/x/after", { order: [other] })).value, ["before", "after"]);
  const late = await cluster.try(node, "/all/x", 20_000); // another has it: the lease of this one is over, and it does not know whose it is now
  assert.equal(late.status, 503);
  assert.match(late.value, /does not answer for the object/);
  cluster.cut(node, false);
  await until(() => /joins anew/.test(cluster.nodes.get(node).output), "it finds its session ended");
  await cluster.whole();
  assert.deepEqual((await cluster.ask("/all/x")).value, ["before", "after"]);
});

test("a call whose answer may not leave is not left waiting: it fails as one whose outcome is not known, and the node serves again when it can", options, async (t) => {
  const cluster = await Cluster.make(t);
  const server = await cluster.start("a");
  await cluster.ask("/add/x/before");
  await cluster.ask("/send/first"); // what a shard learns at its first use is there
  await server.until(/delivered first\./);
  cluster.cut("a", true); // within its lease it still takes calls
  const [write, read] = await Promise.all([cluster.try("a", "/add/x/during", 60_000), cluster.try("a", "/slow/x/2500", 60_000)]);
  for (const held of [write, read]) {
    assert.equal(held.status, 503, held.value);
    assert.match(held.value, /try again \(the call was under way: whether it was carried out is not known\)/);
  }
  const refused = await cluster.try("a", "/all/x", 60_000);
  assert.deepEqual([refused.status, /not known/.test(refused.value)], [503, false], refused.value);
  assert.match(cluster.nodes.get("a").output, /has not been allowed to answer for 10 s/);
  cluster.cut("a", false);
  assert.deepEqual((await cluster.ask("/all/x")).value, ["before", "during"]); // nobody took over, so it was
  assert.deepEqual((await cluster.ask("/add/x/after")).value, ["before", "during", "after"]);
  assert.equal((await cluster.nodes.get("a").stop()).code, 0);
});

test("nodes that are killed while they open shards, that cannot reach the engine when they are to end, or whose engine has lost data", options, async (t) => {
  const cluster = await Cluster.make(t);
  for (const name of ["a", "b"]) await cluster.start(name);
  await cluster.whole();
  await cluster.ask("/add/x/1");
  for (let i = 0; i < 6; i++) {
    const b = cluster.nodes.get("b");
    b.signal("SIGKILL");
    await b.exited;
    await cluster.start("b", { wait: false });
    await new Promise((resolve) => setTimeout(resolve, 300 + i * 300)); // somewhere in its start
  }
  await cluster.nodes.get("b").ready;
  await cluster.whole();
  assert.deepEqual((await cluster.ask("/add/x/2")).value, ["1", "2"]);

  cluster.cut("b", true);
  assert.deepEqual(await cluster.nodes.get("b").stop(), { code: 0, signal: null });
  cluster.cut("b", false);
  await cluster.start("b");
  await cluster.whole();
  await cluster.ask("/add/x/3");
  const node = await cluster.owner("x");

  await cluster.engine.ask("UPDATE cairn.session SET head = head - 1 WHERE live AND head > 0");
  const loser = cluster.nodes.get(node);
  await until(async () => (await cluster.try(node, "/add/x/4", 500), loser.exit), "it ends");
  assert.equal(loser.exit.code, 1);
  assert.match(loser.output, /^cairn: the engine knows less than it has acknowledged/m);
});

test("a link that ends while a node starts does not end the node (server/run.h, U1)", options, async (t) => {
  const cluster = await Cluster.make(t);
  const a = await cluster.start("a", { wait: false });
  await a.until(/cluster: a is a node of/); // it has links and a session, and begins to build its projects
  const ignored = BigInt(`0x${/^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${a.pid}/status`, "utf8"))[1]}`);
  assert.ok(ignored & (1n << BigInt(constants.signals.SIGPIPE - 1)), "SIGPIPE is not ignored");
  await a.ready;
});

test("a move does not wait for ever for what runs in its shard", options, async (t) => {
  const cluster = await Cluster.make(t);
  await cluster.start("a");
  await cluster.ask("/add/x/1");
  const slow = cluster.try("a", "/slow/x/600000", 600_000);
  await cluster.start("b");
  const a = cluster.nodes.get("a");
  assert.equal((await cluster.command("drain", "a")).code, 0);
  await until(async () => /^a +draining +0 /m.test((await cluster.command("nodes")).stdout), "a owns nothing", 200_000);
  assert.match(a.output, /calls to objects of shard \d+ have not ended in 5 s; they fail/);
  assert.equal((await slow).status, 503);
  assert.deepEqual((await cluster.ask("/add/x/2")).value, ["1", "2"]);

  // It ends at once, with shards that move to it and from it.
  assert.equal((await cluster.command("drain", "a", "--off")).code, 0);
  await until(async () => /^a +alive +[1-9]/m.test((await cluster.command("nodes")).stdout), "a owns something", 200_000);
  a.signal("SIGTERM");
  a.signal("SIGTERM");
  assert.equal((await a.exited).code, 0, a.output);
  assert.deepEqual((await cluster.ask("/add/x/3")).value, ["1", "2", "3"]);
});

test("cairn cluster shows nodes and shards, moves, drains and forgets", options, async (t) => {
  const cluster = await Cluster.make(t);
  await cluster.start("a");
  await cluster.ask("/add/x/1");
  await cluster.start("b");
  await cluster.whole();
  assert.match((await cluster.command("status")).stdout, /^shards +16$[^]*^nodes alive +2$[^]*^shards without an owner +0$/m);
  const rows = (await cluster.command("shards")).stdout.trim().split("\n").slice(1).map((row) => row.split(/ {2,}/));
  assert.equal(rows.length, 16);
  const [shard, owner] = rows.findLast((row) => row[4] === "a, b");
  const other = owner === "a" ? "b" : "a";
  const moved = await cluster.command("move", shard, other);
  assert.deepEqual([moved.code, moved.stdout], [0, `shard ${shard} is ${other}'s\n`], moved.stderr);
  for (const [why, ...args] of [["no node of the cluster is called x", "forget", "x"], ["no node of the cluster is called x", "drain", "x"], ["is no number of a shard", "move", "y", "a"],
    ["a is not forgotten: it is alive", "forget", "a"], ["there is no shard 99", "move", "99", "a"]]) {
    const result = await cluster.command(...args);
    assert.deepEqual([result.code, result.stderr.includes(why)], [1, true], result.stderr);
  }
  assert.equal((await cluster.command("nothing")).code, 2);

  // A third comes, the first is emptied, stopped and forgotten.
  await cluster.start("c");
  assert.equal((await cluster.command("drain", "a")).code, 0);
  await until(async () => /^a +draining +0 +0 /m.test((await cluster.command("nodes")).stdout), "a is empty", 200_000);
  assert.deepEqual(await cluster.nodes.get("a").stop(), { code: 0, signal: null });
  assert.equal((await cluster.command("forget", "a")).stdout, "a is forgotten\n");
  assert.doesNotMatch((await cluster.command("nodes")).stdout, /^a /m);
  assert.deepEqual((await cluster.ask("/add/x/2")).value, ["1", "2"]);
  cluster.nodes.get("b").signal("SIGKILL"); // the last but one: it may not be forgotten while it has what nobody else has
  assert.deepEqual((await cluster.ask("/all/x", { order: ["c"] })).value, ["1", "2"]);
});

test("what cannot be served is refused at the start, with a sentence", options, async (t) => {
  const cluster = await Cluster.make(t, { standby: false });
  const fails = async (name, pattern, more) => {
    const server = await cluster.start(name, { ...more, wait: false });
    assert.equal((await server.exited).code, 1, server.output);
    assert.match(server.output, pattern);
  };
  for (const peer of ["0.0.0.0:7701", "[::]:7701", "0:7701", "[::ffff:0.0.0.0]:7701"]) // others could not reach it
    await fails("a", /is no address where other nodes can reach this one: it stands for all interfaces/, { args: ["--peer", peer] });
  await fails("a", /synchronous_standby_names is empty: .*allow_async/);
  assert.equal(await cluster.engine.ask("SELECT to_regclass('cairn.cluster') IS NULL"), "t"); // nothing is made in it
  cluster.args = ["--allow-async"];
  await cluster.start("a");
  assert.match(cluster.nodes.get("a").output, /what was acknowledged may be lost/);
  await cluster.ask("/add/x/1");
  const first = cluster.nodes.get("a");
  await fails("again", /another process|is locked|in use/i, { data: first.data });

  // A directory of each kind, used as the other.
  const single = tempDir();
  const run = (...args) => spawnSync(cairn, args, { encoding: "utf8", env: { ...process.env, CAIRN_ADMIN: "off" }, timeout: 60_000 });
  assert.equal(run("deploy", cluster.project, "--data", single).status, 0);
  await fails("b", /is the data directory of a single server/, { data: single });
  const refused = run("serve", cluster.project, "--listen", "127.0.0.1:0", "--data", path.join(cluster.base, "a"));
  assert.match(refused.stderr, /is the data directory of a node of a cluster/);
  assert.match(run("check", path.join(cluster.base, "a")).stderr + run("kv", "namespace", "list", "--data", path.join(cluster.base, "b")).stderr, /cluster|data directory/);

  // Commands that write do so by its server, and not at all when there is none.
  const execute = (node) => promisify(execFile)(cairn, ["d1", "execute", "db", "--command", "CREATE TABLE IF NOT EXISTS told(x)", "--config", cluster.project, "--data", path.join(cluster.base, node)]);
  await execute("a");

  // Another version of the tables, and an engine that comes later.
  await cluster.engine.ask("UPDATE cairn.cluster SET major = major + 1");
  await fails("d", /another major version/);
  await cluster.engine.ask("UPDATE cairn.cluster SET major = major - 1");
  cluster.engine.kill();
  const patient = await cluster.start("d", { wait: false });
  await patient.until(/the engine of the cluster: .*trying again/);
  await cluster.engine.start();
  await patient.ready;
  assert.deepEqual((await cluster.ask("/add/y/1", { order: ["d"] })).value, ["1"]);

  // An engine that goes while a node makes its first deployment.
  const later = await cluster.start("e", { wait: false });
  await later.until(/ is a node of /);
  cluster.cut("e", true);
  await Promise.race([later.until(/the engine of the cluster: .*trying again/), later.ready]); // unless it was quicker
  cluster.cut("e", false);
  await later.ready;
  await later.kill();
  await assert.rejects(execute("e"), /is the data directory of a node of a cluster/);
});
