// `cairn import kv:ID` and `queue:NAME`: by the API of the hosted platform, which a server of ours stands for. What is here is not
// overwritten, a second run finds all there, and a message leaves there only when it is durable here.
import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { Client, empty, token } from "../deploy/lib.mjs";
import { folder, project, run } from "../lib/cairn.mjs";

const LATE = 2145916800;

/** An empty server with a namespace and a queue, and how the import is run against it. */
async function platform(t) {
  const data = folder(t), server = await empty(t, data), who = token(data), client = new Client(server, who);
  const kv = (await client.result("POST", "storage/kv/namespaces", { json: { title: "values" } })).id;
  const { queue_id } = await client.result("POST", "queues", { json: { queue_name: "jobs" } });
  await client.result("POST", `queues/${queue_id}/consumers`, { json: { type: "http_pull" } });
  const here = project(t, { "index.js": "export default { fetch: () => new Response() }" });
  const move = (source, ...args) => {
    const env = { CLOUDFLARE_API_BASE_URL: server.api, CLOUDFLARE_API_TOKEN: who.token, CLOUDFLARE_ACCOUNT_ID: who.account };
    const result = run(["import", source, "--project", here, "--json", ...args], { env });
    const lines = result.stdout.trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));
    return { ...result, report: lines.at(-1)?.report, told: lines.slice(0, -1) };
  };
  return { client, kv, queue_id, move, local: path.join(here, ".cairn") };
}

test("what a platform's API gives comes here", async (t) => {
  const { client, kv, queue_id, move, local } = await platform(t);

  // A KV namespace, with metadata and expiry.
  const pairs = Array.from({ length: 30 }, (_, n) => ({ key: `k${n}/é?&`, value: Buffer.alloc(n * 100, n).toString("base64"), base64: true, ...(n % 2 ? { metadata: { n } } : {}), ...(n % 3 ? {} : { expiration: LATE + n }) }));
  await client.result("PUT", `storage/kv/namespaces/${kv}/bulk`, { json: pairs });
  const first = move(`kv:${kv}`);
  assert.equal(first.status, 0, first.stderr);
  assert.equal(first.report.kv.came, 30);
  const keys = run(["kv", "key", "list", "--namespace-id", kv, "--data", local, "--json"]).stdout.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(keys.map(({ name, expiration, metadata }) => [name, expiration, metadata]).sort(), pairs.map(({ key, expiration, metadata }) => [key, expiration, metadata]).sort());
  assert.equal(move(`kv:${kv}`).report.kv.there, 30);
  assert.equal(move(`kv:${kv}`, "--verify").report.kv.there, 30);
  assert.equal(run(["kv", "key", "put", pairs[3].key, "other", "--namespace-id", kv, "--data", local]).status, 0);
  const again = move(`kv:${kv}`);
  assert.deepEqual([again.status, again.report.kv.conflict, again.report.kv.there], [1, 1, 29]);
  assert.equal(run(["kv", "key", "get", pairs[3].key, "--namespace-id", kv, "--data", local]).stdout, "other");

  // Messages that wait, of both types that can be sent from here.
  const messages = Array.from({ length: 150 }, (_, n) => (n % 2 ? { body: `text ${n} é`, content_type: "text" } : { body: { n }, content_type: "json" }));
  for (const at of [0, 75]) await client.result("POST", `queues/${queue_id}/messages/batch`, { json: { messages: messages.slice(at, at + 75) } });
  const moved = move("queue:jobs");
  assert.equal(moved.status, 0, moved.stderr);
  assert.equal(moved.report.queues.came, 150);
  assert.equal(move("queue:jobs").report.queues.came, 0);
  const peeked = run(["queues", "peek", "jobs", "--limit", "200", "--data", local, "--json"]).stdout.trim().split("\n");
  assert.equal(peeked.length, 150, peeked[0]);

  // What is not there is told.
  assert.match(move("kv:0123").stderr, /404/);
  assert.match(move("queue:none").stderr, /has no queue "none"/);
  assert.match(move("kv:../x").stderr, /hexadecimal/);
  assert.match(run(["import", "kv:0123"], { cwd: folder(t) }).stderr, /./);
});
