// An engine that went back: a backup of it is put in its place while the disks of the nodes know more. Nobody serves with it, nothing on a disk is thrown away on
// its word, nodes that are started again refuse it, and what was acknowledged is there when the right one is back; or an operator goes on with it.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 600_000 };
const NODES = ["a", "b", "c"];
const DECIDE = 4; // the exit code that systemd does not start again

/** Copies of shards on the disk of a node. */
function copies(cluster, name) {
  const folder = path.join(cluster.base, name, "shards");
  return readdirSync(folder).filter((entry) => /^\d{4}$/.test(entry) && existsSync(path.join(folder, entry, "REPLICA")));
}

/** A cluster of two nodes with a backup of its engine; then a third node, which others move shards to, and writes that the backup does not have. */
async function scene(t) {
  const cluster = await Cluster.make(t);
  for (const name of NODES.slice(0, 2)) await cluster.start(name);
  await cluster.whole();
  const acknowledged = new Map();
  const write = async (from, to) => {
    for (let i = from; i < to; i++) acknowledged.set(`o${i % 20}`, (await cluster.ask(`/add/o${i % 20}/v${i}`)).value);
  };
  await write(0, 20);
  const backup = await cluster.backup();
  await cluster.start("c");
  await write(20, 60);
  // Shards that the old map has on a and b are on c by now, and one of the two has thrown its copy away.
  await until(() => copies(cluster, "c").length >= 8, "the third node has its share", 120_000);
  await cluster.whole();
  return { cluster, backup, acknowledged, write };
}

async function check(cluster, acknowledged) {
  for (const [name, values] of acknowledged) assert.deepEqual((await cluster.ask(`/all/${name}`)).value, values, name);
}

/** They end by themselves, each with the code that says so. */
async function allRefuse(cluster, names = NODES) {
  for (const name of names) {
    const server = cluster.nodes.get(name);
    server.told = true;
    const exit = await server.exited;
    assert.equal(exit.code, DECIDE, `${name}: ${server.output.slice(-1500)}`);
    assert.match(server.output, /the engine knows less than it has told this node.*cairn cluster accept-engine/s);
  }
}

test("an engine restored from an older backup is refused by nodes that run and by nodes that are started, and nothing is lost when the right one is back", options, async (t) => {
  const { cluster, backup, acknowledged, write } = await scene(t);
  const before = NODES.map((name) => copies(cluster, name));
  await cluster.putBack(backup);
  await allRefuse(cluster);
  for (let i = 0; i < 2; i++) { // as a service manager would that does not know better
    for (const name of NODES) await cluster.start(name, { wait: false });
    await allRefuse(cluster);
  }
  assert.deepEqual(NODES.map((name) => copies(cluster, name)), before, "no copy has gone");
  await cluster.putRight();
  for (const name of NODES) await cluster.start(name);
  await cluster.whole();
  await check(cluster, acknowledged);
  await write(60, 80);
  await check(cluster, acknowledged);
});

test("nodes that were killed and are started on an engine restored from an older backup refuse it", options, async (t) => {
  const { cluster, backup, acknowledged } = await scene(t);
  const before = NODES.map((name) => copies(cluster, name));
  for (const name of NODES) {
    cluster.nodes.get(name).told = true;
    cluster.nodes.get(name).signal("SIGKILL");
    await cluster.nodes.get(name).exited;
  }
  await cluster.putBack(backup);
  for (const name of NODES) await cluster.start(name, { wait: false });
  await allRefuse(cluster);
  assert.deepEqual(NODES.map((name) => copies(cluster, name)), before, "no copy has gone");
  await cluster.putRight();
  for (const name of NODES) await cluster.start(name);
  await cluster.whole();
  await check(cluster, acknowledged);
});

test("a node that has no record, of a release before, takes the engine as it is", options, async (t) => {
  const cluster = await Cluster.make(t);
  const server = await cluster.start("a");
  await cluster.ask("/add/x/1");
  server.told = true;
  server.signal("SIGTERM");
  await server.exited;
  const record = path.join(cluster.base, "a/shards/SEEN");
  assert.match(readFileSync(record, "utf8"), /^cairn seen version \d+ life \d+ session \d+ beat \d+ decision 0 crc [0-9a-f]{8}\n$/);
  rmSync(record);
  await cluster.start("a");
  assert.deepEqual((await cluster.ask("/add/x/2")).value, ["1", "2"]);
});

test("an operator goes on with an engine that went back: what the disks have is served, by one history on all nodes", options, async (t) => {
  const { cluster, backup, acknowledged, write } = await scene(t);
  let result = await cluster.command("accept-engine", "--yes");
  assert.equal(result.code, 1);
  assert.match(result.stderr, /nodes are alive and use this engine: there is nothing to accept/);
  await cluster.putBack(backup);
  await allRefuse(cluster);
  result = await cluster.command("accept-engine");
  assert.equal(result.code, 1);
  assert.match(result.stderr, /nothing is changed without --yes/);
  for (const name of NODES) await cluster.start(name, { wait: false });
  await allRefuse(cluster);
  result = await cluster.command("accept-engine", "--yes");
  assert.equal(result.code, 0, result.stderr);
  assert.match(result.stdout, /accepted: start all nodes; the 16 shards/);
  for (const name of NODES) await cluster.start(name);
  await cluster.whole();
  assert.equal(await cluster.engine.ask("SELECT count(*) FROM cairn.restored"), "0");
  // All nodes were there with all they had, so nothing is lost: each shard has one of its copies.
  await check(cluster, acknowledged);
  await write(60, 100);
  await check(cluster, acknowledged);
  // What the new owner has is what the others get.
  for (const name of NODES) {
    cluster.nodes.get(name).told = true;
    cluster.nodes.get(name).signal("SIGKILL");
    await cluster.nodes.get(name).exited;
    await check(cluster, acknowledged);
    await cluster.start(name);
    await cluster.whole();
  }
});
