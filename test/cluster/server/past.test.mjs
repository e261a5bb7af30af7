// The past of an object after others have taken it over, and what comes once however often that happens: cron.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 600_000 };
const NAMES = ["a", "b", "c"];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

test("a moment from before is restored on the node that took over, by bookmark and by time", options, async (t) => {
  const cluster = await Cluster.make(t);
  for (const name of NAMES) await cluster.start(name);
  await cluster.whole();
  await cluster.ask("/add/x/1");
  const { value: first, node } = await cluster.ask("/mark/x");
  await pause(50);
  const time = Date.now();
  await pause(50);
  await cluster.ask("/add/x/2");

  cluster.nodes.get(node).signal("SIGKILL");
  const order = NAMES.filter((name) => name !== node);
  assert.deepEqual((await cluster.ask("/add/x/3", { order })).value, ["1", "2", "3"]);
  const { value: third } = await cluster.ask("/mark/x", { order });
  assert.ok(third > first, "bookmarks go on");
  const { value: byTime } = await cluster.ask(`/markAt/x/${time}`, { order });
  assert.equal((await cluster.ask(`/back/x/${first}`, { order })).value, "restored");
  assert.deepEqual((await cluster.ask("/all/x", { order })).value, ["1"]);
  assert.equal((await cluster.ask(`/back/x/${third}`, { order })).value, "restored"); // and forward again
  assert.deepEqual((await cluster.ask("/all/x", { order })).value, ["1", "2", "3"]);
  assert.equal((await cluster.ask(`/back/x/${byTime}`, { order })).value, "restored");
  assert.deepEqual((await cluster.ask("/add/x/4", { order })).value, ["1", "4"]);

  // Also by a node that got its copy later than that, and when it is restored while its owner dies.
  await cluster.nodes.get(node).exited;
  await cluster.start(node);
  await cluster.whole(2);
  const { node: owner } = await cluster.ask("/mark/x");
  cluster.nodes.get(owner).signal("SIGKILL");
  const rest = NAMES.filter((name) => name !== owner);
  assert.equal((await cluster.ask(`/back/x/${third}`, { order: rest })).value, "restored");
  assert.deepEqual((await cluster.ask("/all/x", { order: rest })).value, ["1", "2", "3"]);
});

test("an occurrence of a cron trigger runs once, on one node, also when its owner is killed or left at that instant", options, async (t) => {
  const cluster = await Cluster.make(t);
  const toml = path.join(cluster.project, "wrangler.toml"), script = path.join(cluster.project, "index.js");
  writeFileSync(toml, readFileSync(toml, "utf8").replace("[[queues.producers]]", '[triggers]\ncrons = ["* * * * *"]\n[[queues.producers]]'));
  writeFileSync(script, readFileSync(script, "utf8").replace("async queue(batch", 'async scheduled(controller) { console.log("cron at " + controller.scheduledTime + "."); },\n  async queue(batch'));
  const outputs = [];
  for (const name of NAMES) outputs.push(await cluster.start(name));
  await cluster.whole();
  const runs = () => NAMES.flatMap((name) => [...outputs.filter((server) => server.data.endsWith(`/${name}`)).map((server) => server.output).join("").matchAll(/cron at (\d+)\./g)].map(([, at]) => ({ name, at: Number(at) })));
  await until(() => runs().length > 0, "the first occurrence", 130_000);
  for (const signal of ["SIGTERM", "SIGKILL"]) {
    const { name, at } = runs().at(-1);
    const next = Math.max(at, ...runs().map((run) => run.at)) + 60_000;
    await pause(next - Date.now() - 20); // it acts while the occurrence is claimed, or just before
    const server = cluster.nodes.get(name);
    server.signal(signal);
    await server.exited;
    outputs.push(await cluster.start(name));
    await until(() => runs().some((run) => run.at >= next), `an occurrence after ${signal}`, 150_000);
  }
  const times = runs().map((run) => run.at);
  assert.equal(new Set(times).size, times.length, JSON.stringify(runs()));
});
