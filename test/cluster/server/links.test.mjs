// What nodes say of the ways between them: a node that is not reached, a stranger, a node that cannot ask the engine and is told by others.
import assert from "node:assert/strict";
import net from "node:net";
import test from "node:test";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 600_000 };

test("a node that others cannot reach, and who connects without the key: once in the log, in status, in metrics", options, async (t) => {
  const cluster = await Cluster.make(t);
  const a = await cluster.start("a", { admin: true });
  await cluster.ask("/add/x/1");
  assert.doesNotMatch((await cluster.command("status")).stdout, /NO LINK/);

  // A live session of a node whose address leads nowhere, as behind a firewall that refuses.
  const disk = "-2"; // the highest: others dial it
  await cluster.engine.ask(`INSERT INTO cairn.disk(id, life, node, address) VALUES (${disk}, 1, 'walled', '127.0.0.1:1')`);
  await cluster.engine.ask(`INSERT INTO cairn.session(id, disk, life, live, link, head, beat) VALUES (nextval('cairn.session_id'), ${disk}, 1, true, 1, 0, 1); SELECT cairn.changed()`);
  let over = false;
  const beats = (async () => {
    while (!over) {
      await cluster.engine.tryAsk(`UPDATE cairn.session SET beat = beat + 1 WHERE disk = ${disk} AND live`);
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  })();
  await a.until(/there is no link to node walled at 127\.0\.0\.1:1: connection refused\. .*is the port open between the nodes/, 60_000);
  await until(async () => /^NO LINK +from a to walled at 127\.0\.0\.1:1: connection refused$/m.test((await cluster.command("status")).stdout), "status shows it", 30_000);
  const metrics = async () => (await fetch(`${a.adminUrl}/metrics`)).text();
  assert.match(await metrics(), /^cairn_cluster_nodes_unreached 1$/m);

  // Somebody who is no node: once for its address, however often it tries.
  const [, port] = /others reach it at 127\.0\.0\.1:(\d+)/.exec(a.output);
  for (let i = 0; i < 3; i++)
    await new Promise((resolve) => {
      const socket = net.connect(Number(port), "127.0.0.1", () => socket.end("GET / HTTP/1.1\r\nhost: x\r\n\r\n"));
      socket.on("error", () => {}).on("close", resolve).resume();
    });
  await a.until(/127\.0\.0\.1 has connected to the port of this node that is for other nodes, and does not have the key/);
  await until(async () => /^cairn_cluster_strangers_total 3$/m.test(await metrics()), "they are counted", 10_000);
  assert.equal(a.output.match(/does not have the key/g).length, 1);
  assert.equal(a.output.match(/there is no link to node walled/g).length, 1);

  // It has left: nothing of it stays.
  over = true;
  await beats;
  await cluster.engine.ask(`UPDATE cairn.session SET live = false WHERE disk = ${disk}; SELECT cairn.changed()`);
  await until(async () => !/NO LINK/.test((await cluster.command("status")).stdout) && /^cairn_cluster_nodes_unreached 0$/m.test(await metrics()), "nothing is left of it", 30_000);
});

test("a node that is cut off from the engine gives its calls back when others know that it is over", options, async (t) => {
  const cluster = await Cluster.make(t);
  for (const name of ["a", "b", "c"]) await cluster.start(name);
  await cluster.ask("/send/first");
  await cluster.whole();
  await cluster.settled();
  const { value: before } = await cluster.ask("/add/x/before");
  assert.deepEqual(before, ["before"]);
  const owner = await cluster.owner("x"), others = ["a", "b", "c"].filter((name) => name !== owner), server = cluster.nodes.get(owner);
  cluster.cut(owner, true);
  // Within its lease it takes them; it may not answer any more.
  const calls = ["/add/x/during", "/all/x", "/add/x/during2"].map((target) => cluster.try(owner, target, 60_000));
  const taken = cluster.ask("/add/x/after", { order: others, timeout: 20_000 });
  const answers = await Promise.all(calls);
  assert.doesNotMatch(server.output, /has not been allowed to answer for 10 s/, "they are given back before that");
  assert.match(server.output, /session was ended by another node/);
  for (const { status, value } of answers.filter(({ status }) => status !== 200)) {
    assert.equal(status, 503, value);
    assert.match(value, /try again/);
  }
  assert.ok(answers.some(({ status }) => status === 503), JSON.stringify(answers));
  const { value: after } = await taken;
  assert.deepEqual(after.filter((each) => !each.startsWith("during")), ["before", "after"]);
  cluster.cut(owner, false);
  await cluster.whole();
  assert.deepEqual((await cluster.ask("/all/x", { order: [owner] })).value, after);
});
