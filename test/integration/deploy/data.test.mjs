// Data by the platform's API: KV, D1, R2 and queues as wrangler asks for them, and a worker that is bound to what was made.
import assert from "node:assert/strict";
import test from "node:test";
import { Client, dataFolder, empty, token } from "./lib.mjs";

const source = `export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/kv") return new Response(await env.STORE.get("a/b"));
    if (pathname === "/d1") return Response.json((await env.DB.prepare("SELECT name FROM items").all()).results);
    if (pathname === "/r2") return new Response((await env.FILES.get("a/file"))?.body ?? null);
    if (pathname === "/send") { await env.JOBS.send("job"); return new Response("sent"); }
    return new Response((await env.STORE.get("jobs")) ?? "none");
  },
  async queue(batch, env) { await env.STORE.put("jobs", "took " + batch.messages[0].body); },
};`;

test("what is made by the API is what a worker finds", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  const kv = (await client.result("POST", "storage/kv/namespaces", { json: { title: "STORE" } })).id;
  assert.equal((await client.ask("POST", "storage/kv/namespaces", { json: { title: "STORE" } })).body.errors[0].code, 10014);
  assert.deepEqual((await client.result("GET", "storage/kv/namespaces")).map((item) => item.title), ["STORE"]);
  const values = `storage/kv/namespaces/${kv}/values`;
  await client.result("PUT", `${values}/a%2Fb`, { body: "plain", headers: { "content-type": "text/plain" } });
  const form = new FormData();
  form.set("value", "with metadata");
  form.set("metadata", '{"x":1}');
  await client.result("PUT", `${values}/form`, { body: form });
  assert.equal((await client.ask("GET", `${values}/form`)).body, "with metadata");
  assert.equal((await client.ask("GET", `${values}/none`)).body.errors[0].code, 10009);
  const bulk = await client.result("PUT", `storage/kv/namespaces/${kv}/bulk`,
    { json: [{ key: "x/1", value: "1", metadata: { y: 2 } }, { key: "x/2", value: "AP8=", base64: true }] });
  assert.equal(bulk.successful_key_count, 2);
  const { body } = await client.ask("GET", `storage/kv/namespaces/${kv}/keys?prefix=x%2F`);
  assert.deepEqual(body.result, [{ name: "x/1", metadata: { y: 2 } }, { name: "x/2" }]);
  await client.result("POST", `storage/kv/namespaces/${kv}/bulk/delete`, { json: ["x/1"] });
  assert.deepEqual(await client.result("POST", `storage/kv/namespaces/${kv}/bulk/get`, { json: { keys: ["x/1", "form"] } }),
    { values: { "x/1": null, form: "with metadata" } });

  const many = Array.from({ length: 101 }, (_, i) => `k${i}`);
  assert.equal((await client.ask("POST", `storage/kv/namespaces/${kv}/bulk/get`, { json: { keys: many } })).status, 400);

  const { uuid } = await client.result("POST", "d1/database", { json: { name: "items" } });
  assert.equal((await client.result("GET", "d1/database?name=items"))[0].uuid, uuid);
  const sql = "CREATE TABLE items (name TEXT); INSERT INTO items VALUES ('one'); SELECT count(*) AS n FROM items;";
  const results = await client.result("POST", `d1/database/${uuid}/query`, { json: { sql } });
  assert.deepEqual(results.at(-1).results, [{ n: 1 }]);
  assert.match((await client.ask("POST", `d1/database/${uuid}/query`, { json: { sql: "SELEC" } })).body.errors[0].message, /syntax error/);
  assert.equal((await client.ask("POST", "d1/database/none/query", { json: { sql: "SELECT 1" } })).status, 404);

  await client.result("POST", "r2/buckets", { json: { name: "files" } });
  assert.deepEqual((await client.result("GET", "r2/buckets")).buckets.map((bucket) => bucket.name), ["files"]);
  await client.result("PUT", "r2/buckets/files/objects/a%2Ffile", { body: "an object" });
  assert.equal((await client.ask("GET", "r2/buckets/files/objects/a%2Ffile")).body, "an object");
  await client.result("PUT", "r2/buckets/files/objects/empty", { body: "", headers: { "content-type": "text/x-own" } });
  const nothing = await client.ask("GET", "r2/buckets/files/objects/empty");
  assert.deepEqual([nothing.status, nothing.body, nothing.type], [200, "", "text/x-own"]);
  assert.equal((await client.ask("GET", "r2/buckets/files/objects/none")).status, 404);

  const { queue_id: queue } = await client.result("POST", "queues", { json: { queue_name: "jobs" } });
  assert.equal((await client.result("GET", "queues?name=jobs")).length, 1);
  assert.equal((await client.result("GET", "queues?name=other")).length, 0);

  await client.deploy("shop", source, {
    metadata: {
      bindings: [
        { type: "kv_namespace", name: "STORE", namespace_id: kv }, { type: "d1", name: "DB", id: uuid },
        { type: "r2_bucket", name: "FILES", bucket_name: "files" }, { type: "queue", name: "JOBS", queue_name: "jobs" },
      ],
    },
  });
  const consumer = { type: "worker", script_name: "shop", settings: { batch_size: 5, max_wait_time_ms: 0 } };
  await client.result("POST", `queues/${queue}/consumers`, { json: consumer });
  assert.equal((await client.result("GET", `queues/${queue}`)).consumers[0].settings.batch_size, 5);
  assert.equal(await server.text("/kv"), "plain");
  assert.equal(await server.text("/d1"), '[{"name":"one"}]');
  assert.equal(await server.text("/r2"), "an object");
  assert.equal(await server.text("/send"), "sent");
  await server.untilTrue(async () => (await server.text("/")) === "took job", "the message");

  // Who may only look, or only deploy, writes nothing.
  const reader = new Client(server, token(data, "reader", "read")), deployer = new Client(server, token(data, "deployer", "deploy"));
  for (const other of [reader, deployer]) {
    assert.equal((await other.ask("PUT", `${values}/z`, { body: "z" })).status, 403);
    assert.equal((await other.ask("POST", `d1/database/${uuid}/query`, { json: { sql: "SELECT 1" } })).status, 403);
    assert.equal((await other.ask("PUT", "r2/buckets/files/objects/z", { body: "z" })).status, 403);
    assert.equal((await other.ask("DELETE", `queues/${queue}`)).status, 403);
  }
  assert.equal((await reader.ask("GET", `${values}/form`)).body, "with metadata");
  assert.equal((await deployer.ask("GET", `${values}/form`)).status, 403);
});
