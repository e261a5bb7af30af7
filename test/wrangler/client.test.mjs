// The npm package "cloudflare", the API's own client, against an empty server (`make test-wrangler`): scripts, KV, D1, R2, queues.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import { dataFolder, empty, token } from "../integration/deploy/lib.mjs";

const { Cloudflare, toFile } = createRequire(process.env.WRANGLER)("cloudflare");

/** All of a list that comes in pages. */
async function all(pages) {
  const items = [];
  for await (const item of pages) {
    items.push(item);
    assert.ok(items.length < 1000, "a list without end");
  }
  return items;
}

test("the API's own client makes, lists, uses and deletes what a worker has", { timeout: 300_000 }, async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const who = token(data);
  const account_id = who.account;
  const client = new Cloudflare({ apiToken: who.token, baseURL: server.api, maxRetries: 0, timeout: 60_000 });
  assert.equal((await client.user.tokens.verify()).status, "active");
  assert.deepEqual((await all(client.accounts.list())).map(({ id }) => id), [account_id]);

  const kv = await client.kv.namespaces.create({ account_id, title: "store" });
  await client.kv.namespaces.values.update("a/b", { account_id, namespace_id: kv.id, value: "from kv", metadata: JSON.stringify({ m: 1 }) });
  await client.kv.namespaces.keys.bulkUpdate(kv.id, { account_id, body: [{ key: "x", value: "1" }, { key: "y", value: "2" }] });
  assert.deepEqual((await all(client.kv.namespaces.keys.list(kv.id, { account_id }))).map(({ name }) => name), ["a/b", "x", "y"]);
  assert.equal(await (await client.kv.namespaces.values.get("a/b", { account_id, namespace_id: kv.id })).text(), "from kv");
  await client.kv.namespaces.values.delete("x", { account_id, namespace_id: kv.id });
  assert.deepEqual((await client.kv.namespaces.keys.bulkGet(kv.id, { account_id, keys: ["x", "y"] })).values, { x: null, y: "2" });
  assert.ok((await all(client.kv.namespaces.list({ account_id }))).some(({ id }) => id === kv.id));

  const d1 = await client.d1.database.create({ account_id, name: "db" });
  await all(client.d1.database.query(d1.uuid, { account_id, sql: "CREATE TABLE t (a)" }));
  await all(client.d1.database.query(d1.uuid, { account_id, sql: "INSERT INTO t VALUES (?)", params: ["from d1"] }));
  const [raw] = await all(client.d1.database.raw(d1.uuid, { account_id, sql: "SELECT a FROM t" }));
  assert.deepEqual(raw.results, { columns: ["a"], rows: [["from d1"]] });
  assert.deepEqual((await all(client.d1.database.list({ account_id }))).map(({ name }) => name), ["db"]);

  await client.r2.buckets.create({ account_id, name: "files" });
  assert.deepEqual((await client.r2.buckets.list({ account_id })).buckets.map(({ name }) => name), ["files"]);
  const queue = await client.queues.create({ account_id, queue_name: "jobs" });
  assert.equal((await client.queues.get(queue.queue_id, { account_id })).queue_name, "jobs");

  const source = `export default {
    async fetch(request, env) {
      const { pathname } = new URL(request.url);
      if (pathname === "/send") { await env.JOBS.send("job"); return new Response("sent"); }
      return new Response([await env.KV.get("a/b"), (await env.DB.prepare("SELECT a FROM t").first()).a, await env.KV.get("jobs")].join(", "));
    },
    async queue(batch, env) { await env.KV.put("jobs", "took " + batch.messages[0].body); },
  };`;
  const metadata = {
    main_module: "worker.mjs", compatibility_date: "2026-01-01",
    bindings: [
      { type: "kv_namespace", name: "KV", namespace_id: kv.id }, { type: "d1", name: "DB", id: d1.uuid },
      { type: "r2_bucket", name: "FILES", bucket_name: "files" }, { type: "queue", name: "JOBS", queue_name: "jobs" },
    ],
  };
  await client.workers.scripts.update("w", {
    account_id, metadata: await toFile(Buffer.from(JSON.stringify(metadata)), "metadata.json", { type: "application/json" }),
    files: { "worker.mjs": await toFile(Buffer.from(source), "worker.mjs", { type: "application/javascript+module" }) },
  });
  assert.equal(await server.text("/"), "from kv, from d1, ");
  await client.queues.consumers.create(queue.queue_id, { account_id, type: "worker", script_name: "w", settings: { max_wait_time_ms: 0 } });
  await server.text("/send");
  await server.untilTrue(async () => (await server.text("/")).endsWith("took job"), "the message at its consumer");
  await client.workers.scripts.secrets.update("w", { account_id, name: "SECRET", text: "s", type: "secret_text" });
  assert.deepEqual((await all(client.workers.scripts.secrets.list("w", { account_id }))).map(({ name }) => name), ["SECRET"]);
  await client.workers.scripts.schedules.update("w", { account_id, body: [{ cron: "*/30 * * * *" }] });
  assert.deepEqual((await client.workers.scripts.schedules.get("w", { account_id })).schedules.map(({ cron }) => cron), ["*/30 * * * *"]);
  assert.deepEqual((await all(client.workers.scripts.list({ account_id }))).map(({ id }) => id), ["w"]);
  const { deployments } = (await client.workers.scripts.deployments.list("w", { account_id })).result;
  assert.equal(deployments[0].versions[0].percentage, 100);

  await assert.rejects(client.workers.scripts.secrets.update("nobody", { account_id, name: "S", text: "s", type: "secret_text" }), Cloudflare.NotFoundError);
  await assert.rejects(client.workers.scripts.list({ account_id: "0".repeat(32) }), Cloudflare.PermissionDeniedError);
  await client.workers.scripts.delete("w", { account_id });
  assert.equal((await server.fetch("/")).status, 404);
  await client.r2.buckets.delete("files", { account_id });
  await client.queues.delete(queue.queue_id, { account_id });
  await client.d1.database.delete(d1.uuid, { account_id });
  await client.kv.namespaces.delete(kv.id, { account_id });
  assert.deepEqual(await all(client.d1.database.list({ account_id })), []);
});

test("the API's own client sends metadata as fields of a form, and they are read as what they stand for", { timeout: 120_000 }, async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const who = token(data);
  const account_id = who.account;
  const client = new Cloudflare({ apiToken: who.token, baseURL: server.api, maxRetries: 0, timeout: 60_000 });
  const file = async (text) => toFile(Buffer.from(text), "worker.mjs", { type: "application/javascript+module" });
  const source = `import { DurableObject } from "cloudflare:workers";
    export class A extends DurableObject { n() { return 1; } }
    export class B extends DurableObject { n() { return 2; } }
    export default { async fetch(request, env) {
      await env.KV.put("k", "from kv");
      return Response.json([env.TEXT, env.NUMBER, env.JSON, await env.KV.get("k"), await env.A.getByName("a").n(), await env.B.getByName("b").n()]);
    } };`;
  const bindings = [
    { type: "plain_text", name: "TEXT", text: "x[1]=ü & more" }, { type: "plain_text", name: "NUMBER", text: "42" },
    { type: "json", name: "JSON", json: { list: [1, "two", true], deep: { a: "b" } } }, { type: "kv_namespace", name: "KV", namespace_id: "kv" },
    { type: "durable_object_namespace", name: "A", class_name: "A" }, { type: "durable_object_namespace", name: "B", class_name: "B" },
  ];
  const metadata = {
    main_module: "worker.mjs", compatibility_date: "2026-01-01", compatibility_flags: ["nodejs_compat"], bindings, logpush: false,
    observability: { enabled: true, head_sampling_rate: 0.5 }, migrations: { new_tag: "v1", new_sqlite_classes: ["A", "B"] },
    annotations: { "workers/message": "by fields" },
  };
  await client.workers.scripts.update("w", { account_id, metadata, files: [await file(source)] });
  assert.deepEqual(await (await server.fetch("/")).json(), ["x[1]=ü & more", "42", { list: [1, "two", true], deep: { a: "b" } }, "from kv", 1, 2]);
  const version = await client.workers.scripts.versions.create("w", {
    account_id, metadata: { main_module: "worker.mjs", compatibility_date: "2026-01-01", bindings: [{ type: "plain_text", name: "TEXT", text: "second" }] },
    files: [await file("export class A {} export class B {} export default { fetch: (request, env) => new Response(env.TEXT) };")],
  });
  await client.workers.scripts.deployments.create("w", { account_id, strategy: "percentage", versions: [{ version_id: version.id, percentage: 100 }] });
  assert.equal(await server.text("/"), "second");
  await assert.rejects(client.workers.scripts.update("w", { account_id, metadata: { main_module: "other.mjs" }, files: [await file(source)] }), /other\.mjs is not among the modules/);
});
