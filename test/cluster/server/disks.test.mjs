// Disks of nodes that are not as they were: full, emptied, copied. Whoever cannot be an owner ends with a sentence, others serve, and nothing is left behind.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, statfsSync, truncateSync, writeFileSync } from "node:fs";
import test from "node:test";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 600_000 };

/** A data directory on a file system of its own; why not, if it cannot be made. */
function small(t, dir, megabytes) {
  mkdirSync(dir);
  if (spawnSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", dir]).status !== 0) return "a file system of its own needs root";
  t.after(() => spawnSync("umount", ["-l", dir]));
  return "";
}

/** Nothing more can be written there. */
function fill(dir) {
  const { bavail, bsize } = statfsSync(dir);
  const path = `${dir}/filler`, block = Buffer.alloc(1 << 16);
  writeFileSync(path, "");
  for (let left = bavail * bsize; left > 0; left -= block.length)
    try {
      writeFileSync(path, block, { flag: "a" });
    } catch (error) {
      if (error.code !== "ENOSPC") throw error;
      break;
    }
  return path;
}

const nodes = async (cluster) => (await cluster.command("nodes")).stdout;

test("a node on a full disk is no owner: it ends at the first failure, and comes back when there is room", options, async (t) => {
  const cluster = await Cluster.make(t);
  const why = small(t, `${cluster.base}/a`, 48);
  if (why) return t.skip(why);
  await cluster.start("a");
  await cluster.ask("/add/x/1");
  await cluster.start("b");
  await cluster.whole();
  const a = cluster.nodes.get("a");
  await until(async () => /^a +alive +[1-9]/m.test(await nodes(cluster)), "a owns something", 60_000);
  const filler = fill(`${cluster.base}/a`);

  // Little is written: what keeps it from writing is found by its own chores, and not by a segment of the log that is full one day.
  let made = 1, refused = 0;
  const written = ["1"];
  for (const end = Date.now() + 90_000; Date.now() < end && !a.exit; ) {
    const { status, value } = await cluster.try("b", `/add/x/${++made}`, 8000);
    if (status === 200) written.push(String(made));
    else refused++;
    if (status === 200) assert.deepEqual(value.filter((each) => written.includes(each)), written);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.ok(a.exit, `a lives on a full disk:\n${a.output.slice(-1500)}`);
  assert.notEqual(a.exit.code, 0);
  assert.match(a.output, /No space left on device|no space to write/);
  const after = await cluster.ask("/add/x/last", { order: ["b"] });
  assert.deepEqual(after.value.filter((each) => written.includes(each)), written);
  t.diagnostic(`${written.length} writes acknowledged, ${refused} refused until b had all`);

  // It does not come back to leave again: not before there is room.
  const again = await cluster.start("a", { wait: false });
  assert.equal((await again.exited).code, 1, again.output);
  assert.match(again.output, /No space left on device/);
  truncateSync(filler, 0);
  rmSync(filler);
  await cluster.start("a");
  await cluster.whole();
  assert.deepEqual((await cluster.ask("/all/x", { order: ["a"] })).value, after.value);
});

test("a node whose directory was emptied leaves no row behind, and one that does can be forgotten", options, async (t) => {
  const cluster = await Cluster.make(t);
  for (const name of ["a", "b", "c"]) await cluster.start(name);
  await cluster.ask("/add/x/1");
  await cluster.whole();
  const rows = async (name) => (await nodes(cluster)).split("\n").filter((row) => row.startsWith(`${name} `)).map((row) => row.trim().split(/ {2,}/));
  const [[, , , , , ghost]] = await rows("a");
  await cluster.nodes.get("a").kill();
  rmSync(`${cluster.base}/a`, { recursive: true });
  await cluster.start("a");
  assert.equal((await rows("a")).length, 2);

  // While a shard may have no other copy it stays.
  await cluster.engine.ask("CREATE TABLE kept AS SELECT id, disks, checkpoints, trim FROM cairn.shard");
  await cluster.engine.ask(`UPDATE cairn.shard SET trim = 1, disks = ARRAY[(SELECT id FROM cairn.disk WHERE to_hex(id) = '${ghost}')], checkpoints = '{1}' WHERE id = 3`);
  const refused = await cluster.command("forget", "a");
  assert.deepEqual([refused.code, /it may have the last copy of shards 3\n/.test(refused.stderr)], [1, true], refused.stderr);
  await cluster.engine.ask("UPDATE cairn.shard s SET trim = k.trim, disks = k.disks, checkpoints = k.checkpoints FROM kept k WHERE k.id = s.id AND s.id = 3; DROP TABLE kept");

  // By its name while the new one lives; that one stays.
  const forgotten = await cluster.command("forget", "a");
  assert.deepEqual([forgotten.code, forgotten.stdout], [0, "a is forgotten\n"], forgotten.stderr);
  const [left, ...others] = await rows("a");
  assert.deepEqual(others, []);
  assert.notEqual(left[5], ghost);
  assert.match((await cluster.command("forget", "a")).stderr, /a is not forgotten: it is alive/);
  await cluster.whole();
  assert.deepEqual((await cluster.ask("/add/x/2")).value, ["1", "2"]);

  // By itself, when all that it had is on others.
  await cluster.nodes.get("b").kill();
  const [[, , , , , second]] = await rows("b");
  rmSync(`${cluster.base}/b`, { recursive: true });
  await cluster.start("b");
  await until(async () => (await rows("b")).length === 1, "the row of the lost disk is gone", 200_000);
  assert.notEqual((await rows("b"))[0][5], second);
  assert.equal(await cluster.engine.ask("SELECT count(*) FROM cairn.session x WHERE NOT EXISTS (SELECT 1 FROM cairn.disk d WHERE d.id = x.disk)"), "0");
  assert.deepEqual((await cluster.ask("/add/x/3")).value, ["1", "2", "3"]);

  // A lost disk whose node does not come back under its name, by its number.
  await cluster.nodes.get("c").kill();
  const [[, , , , , third]] = await rows("c");
  await cluster.start("d");
  await cluster.whole();
  assert.equal((await cluster.command("forget", third)).code, 0);
  assert.deepEqual(await rows("c"), []);
});

test("of a node and a copy of its directory one ends with a sentence", options, async (t) => {
  const cluster = await Cluster.make(t);
  const a = await cluster.start("a");
  await cluster.start("b");
  await cluster.ask("/add/x/1");
  await cluster.whole();
  // As a snapshot of a virtual machine: the files of a moment, while it runs.
  cpSync(`${cluster.base}/a`, `${cluster.base}/copy`, { recursive: true, filter: (source) => !source.endsWith(".sock") });
  await cluster.ask("/add/x/2");
  const copy = await cluster.start("copy", { wait: false });
  await copy.until(/ is a node of /);
  const exit = await Promise.race([a.exited, new Promise((resolve) => setTimeout(resolve, 60_000).unref())]);
  assert.ok(exit, `a lives beside its copy:\n${a.output.slice(-1500)}`);
  assert.equal(exit.code, 4); // a service manager does not start it again: the two would end each other in turn
  assert.match(a.output, /another process has joined the cluster with this disk/);
  await copy.ready;
  await cluster.whole();
  assert.deepEqual((await cluster.ask("/add/x/3", { order: ["copy", "b"] })).value, ["1", "2", "3"]);
});
