// What a load balancer and Prometheus see of a node.
import assert from "node:assert/strict";
import test from "node:test";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";
import { documentedMetrics, ofCluster, shownMetrics } from "../../integration/lib/metrics.mjs";

const options = { skip: absent, timeout: 600_000 };
const admin = ["--admin", "127.0.0.1:0", "--admin-token", "secret-of-the-test"];

async function adminOf(server) {
  await server.until(/admin on http:\/\/[^ ]+/);
  const [, base] = /admin on (http:\/\/[^ ]+)/.exec(server.output);
  return async (target) => {
    const response = await fetch(base + target, { headers: { authorization: "Bearer secret-of-the-test" } });
    return { status: response.status, text: await response.text() };
  };
}

test("a node is ready while it may answer and nobody wants it empty; its health is another matter", options, async (t) => {
  const cluster = await Cluster.make(t);
  const ask = await adminOf(await cluster.start("a", { args: admin }));
  await cluster.start("b");
  await cluster.whole();
  for (let i = 0; i < 8; i++) await cluster.ask(`/add/object-${i}/1`); // some of them a's
  await until(async () => (await ask("/readyz")).status === 200, "a is ready");

  assert.deepEqual(shownMetrics((await ask("/metrics")).text).filter(ofCluster), documentedMetrics().filter(ofCluster));
  const metric = async (name) => Number(new RegExp(`^cairn_cluster_${name} (.*)$`, "m").exec((await ask("/metrics")).text)?.[1]);
  await until(async () => (await metric('shards{role="serving"}')) + (await metric('shards{role="following"}')) === 16, "a has a replica of everything");
  assert.equal(await metric('state{state="live"}'), 1);
  assert.equal(await metric("ready"), 1);
  assert.equal(await metric("lease"), 1);
  await until(async () => (await metric("nodes")) === 2 && (await metric("links")) > 0 && (await metric("replicas_behind")) === 0, "it sees b");
  assert.ok((await metric("takeovers_total")) > 0);
  if ((await metric('shards{role="serving"}')) > 0) await until(async () => (await metric("append_duration_seconds_count")) > 0 && (await metric("unsettled_records")) === 0, "appends are counted");

  cluster.cut("a", true);
  await until(async () => (await ask("/readyz")).status === 503, "it is not ready without its engine");
  assert.match((await ask("/readyz")).text, /^no lease: the engine does not answer/);
  assert.equal(await metric("lease"), 0);
  assert.equal((await ask("/healthz")).status, 200);
  cluster.cut("a", false);
  await until(async () => (await ask("/readyz")).status === 200, "it is ready again");
  assert.ok((await metric("engine_links_broken_total")) > 0);

  assert.equal((await cluster.command("drain", "a")).code, 0);
  await until(async () => (await ask("/readyz")).text.startsWith("draining"), "it says that it is to be emptied");
  assert.equal((await cluster.command("drain", "a", "--off")).code, 0);
  await until(async () => (await ask("/readyz")).status === 200, "it is wanted again");
});
