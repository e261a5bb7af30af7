// What an operator sees of a cluster: the commands as JSON, the admin endpoint, the dashboard's view.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { after } from "node:test";
import { hello } from "../../integration/deploy/lib.mjs";
import { closeBrowser, inspect, noBrowser, withPage } from "../../integration/lib/browser.mjs";
import { Fleet, NAMES } from "./fleet.mjs";
import { absent, until } from "./postgres.mjs";

after(closeBrowser);

test("status, nodes and shards as JSON, /api/cluster, and the view of the dashboard", { skip: absent || noBrowser, timeout: 600_000 }, async (t) => {
  const fleet = await Fleet.begin(t, NAMES, { shards: 64 });
  const clients = await fleet.clients();
  await clients.a.deploy("x", hello("one"));
  await until(async () => (await fleet.engine.tryAsk("SELECT count(DISTINCT owner) FROM cairn.shard WHERE cardinality(disks) = 2")) === "3", "all nodes own something", 200_000);

  if (process.env.SCREENSHOTS) await until(async () => Number(await fleet.engine.tryAsk("SELECT min(n) FROM (SELECT count(*) AS n FROM cairn.shard GROUP BY owner) x")) > 15, "a picture of balance", 300_000);

  const json = async (verb) => JSON.parse((await fleet.command(verb, "--json")).stdout);
  const status = await json("status");
  assert.deepEqual([status.shards, status.replicas, status.nodesAlive, status.deployment.workers, status.engine.standbys.length], [64, 2, 3, 1, 1]);
  assert.equal(status.deployment.underWay, null);
  assert.deepEqual((await json("nodes")).map(({ name, state, deployed }) => [name, state, deployed]), NAMES.map((name) => [name, "alive", status.deployment.version]));
  const shards = await json("shards");
  assert.deepEqual(shards.map(({ id }) => id), Array.from({ length: 64 }, (_, i) => i));
  for (const { owner, replicas } of shards) {
    assert.ok(replicas.some(({ node }) => node === owner));
    for (const { behind } of replicas) assert.ok(Number.isInteger(behind) && behind >= 0);
  }
  const table = await fleet.command("status");
  assert.match(table.stdout, /^its standbys +second streaming (sync|quorum) [^]*^what it may lose +nothing$[^]*^deployments +version \d+$/m);
  assert.match((await fleet.command("shards")).stdout, /^SHARD +OWNER +EPOCH +TRIM +REPLICAS +BEHIND$/m);

  const { admin, data } = fleet.nodes.get("b");
  const token = readFileSync(`${data}/admin.token`, "utf8").trim();
  assert.equal((await fetch(`${admin}/api/cluster`)).status, 401);
  const seen = await (await fetch(`${admin}/api/cluster`, { headers: { authorization: `Bearer ${token}` } })).json();
  assert.deepEqual([seen.member, seen.self.node, seen.self.lease, seen.nodes.length, seen.shards.length], [true, "b", true, 3, 64]);

  const look = (width, colorScheme, use) => withPage({ width, height: 900, colorScheme }, async (page) => {
    await page.goto(`${admin}/#token=${encodeURIComponent(token)}`);
    if (width > 800) await page.getByRole("link", { name: "Cluster" }).click(); // it is in the list, as this is a cluster
    else await page.goto(`${admin}/#/cluster`);
    await page.getByRole("img", { name: "64 shards by owner" }).waitFor();
    await use(page);
  });
  await look(1280, "light", async (page) => {
    await until(async () => (await page.locator(".findings").innerText()).startsWith("whole"), "all is well", 120_000);
    assert.equal(await page.locator(".shards rect").count(), 64);
    assert.match(await page.locator(".shards title").first().textContent(), /^shard 0: [abc], epoch \d+\n/);
    await inspect(page, "dashboard-cluster");
  });
  fleet.nodes.get("c").signal("SIGKILL");
  await look(1280, "dark", async (page) => {
    await page.getByText("c is away").waitFor();
    await page.getByText(/shards have fewer than 2 replicas alive/).waitFor();
    await inspect(page, "dashboard-cluster-lost");
  });
  await look(390, "light", (page) => inspect(page, "dashboard-cluster-phone"));
});
