// `cairn import kv:ID`, `queue:NAME` and `s3:BUCKET`: by the API of the hosted platform, which a server of ours stands for. What is here is not
// overwritten, a second run finds all there, and a message leaves there only when it is durable here.
import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { Client, empty, token } from "../deploy/lib.mjs";
import { folder, project, run } from "../lib/cairn.mjs";
import { KEY, SECRET, start } from "../services/s3-lib.mjs";

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

test("a bucket of an S3 server comes with metadata, and goes on where it stopped", async (t) => {
  const server = await start(t, { s3: { host: "s3.localhost" } }), here = project(t, { "index.js": "export default { fetch: () => new Response() }" });
  const keys = ["plain", "a/b c/é?&=+%.txt", "empty", "large"], put = (key, body, headers) => server.s3("PUT", `/files/${key.split("/").map(encodeURIComponent).join("/")}`, { host: "s3.localhost", body, headers });
  for (const key of keys) {
    const body = key === "empty" ? "" : key === "large" ? "0123456789".repeat(30_000) : `of ${key}`;
    assert.equal((await put(key, body, { "content-type": "text/x", "cache-control": "max-age=5", "x-amz-meta-of": key.length.toString() })).status, 200);
  }
  for (let n = 0; n < 20; n++) await put(`many/${n}`, `${n}`);
  const env = { AWS_ENDPOINT_URL: `http://s3.localhost:${server.port}`, AWS_ACCESS_KEY_ID: KEY, AWS_SECRET_ACCESS_KEY: SECRET };
  const move = (...args) => {
    const result = run(["import", "s3:files", "--project", here, "--json", ...args], { env });
    return { ...result, r2: JSON.parse(result.stdout.trim().split("\n").at(-1) || "{}").report?.r2 };
  };
  const r2 = (...args) => run(["r2", "object", ...args, "--data", path.join(here, ".cairn")]);
  const first = move();
  assert.deepEqual([first.status, first.r2?.came], [0, 24], first.stderr + first.stdout);
  assert.equal(r2("get", `files/${keys[1]}`, "--pipe").stdout, `of ${keys[1]}`);
  assert.equal(r2("get", "files/large", "--pipe").stdout.length, 300_000);
  const [entry] = r2("list", "files", "--prefix", keys[1], "--json").stdout.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual([entry.http.contentType, entry.http.cacheControl, entry.custom.of], ["text/x", "max-age=5", String(keys[1].length)]);
  assert.equal(r2("delete", "files/many/7").status, 0);
  assert.deepEqual([move().r2.came, move().r2.there], [1, 24]);
  assert.equal(move("--verify").r2.there, 24);
  await put("plain", "another");
  const conflict = move();
  assert.deepEqual([conflict.status, conflict.r2.conflict], [1, 1]);
  assert.match(run(["import", "s3:none", "--project", here], { env }).stderr, /the S3 server answers 404/);
  assert.match(run(["import", "s3:files", "--project", here], { env: { ...env, AWS_SECRET_ACCESS_KEY: "wrong" } }).stderr, /answers 403/);
});
