// Verified reads: every answer is confirmed by the engine after it was ready. Under faults: CLUSTER_READS=verified make cluster-test-server.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 600_000 };

function setReads(cluster, reads) {
  const file = path.join(cluster.project, "wrangler.toml");
  writeFileSync(file, readFileSync(file, "utf8").replace(/^reads = .*$/m, `reads = "${reads}"`));
}

test("with verified reads every answer needs the engine, and leaves when that has answered", options, async (t) => {
  const cluster = await Cluster.make(t);
  setReads(cluster, "sometimes");
  const refused = await cluster.start("a", { wait: false });
  assert.equal((await refused.exited).code, 1);
  assert.match(refused.output, /reads must be "lease" or "verified", not "sometimes"/);
  setReads(cluster, "verified");
  await cluster.start("a");
  await cluster.ask("/add/x/1");
  await cluster.ask("/put/key/value");
  const beats = async () => Number(await cluster.engine.ask("SELECT sum(beat) FROM cairn.session WHERE live"));
  const before = await beats();
  for (let i = 0; i < 50; i++) {
    assert.deepEqual((await cluster.ask("/all/x")).value, ["1"]);
    assert.equal((await cluster.ask("/get/key")).value, "value");
  }
  assert.ok((await beats()) - before >= 100, "a statement for each read"); // by lease there are two in a second

  cluster.cut("a", true); // within the lease a node without verified reads would answer
  const read = await cluster.try("a", "/all/x", 60_000);
  assert.equal(read.status, 503);
  cluster.cut("a", false);
  assert.deepEqual((await cluster.ask("/add/x/2")).value, ["1", "2"]);

  await cluster.start("b");
  await cluster.whole();
  const { node } = await cluster.ask("/all/x");
  const other = node === "a" ? "b" : "a";
  cluster.nodes.get(node).signal("SIGSTOP");
  assert.deepEqual((await cluster.ask("/add/x/3", { order: [other] })).value, ["1", "2", "3"]);
  cluster.nodes.get(node).signal("SIGCONT");
  await until(async () => (await cluster.try(node, "/all/x")).status !== 0, "it answers something");
  for (const name of ["a", "b"]) assert.deepEqual((await cluster.ask("/all/x", { order: [name, node === name ? other : node] })).value, ["1", "2", "3"]);
});
