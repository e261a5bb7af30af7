// Data by the platform's API: KV, D1, R2 and queues as wrangler asks for them, and a worker that is bound to what was made.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { run } from "../lib/cairn.mjs";
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

test("H1: a bulk read has a bound, says a key once, and holds what it says it holds", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  const kv = (await client.result("POST", "storage/kv/namespaces", { json: { title: "STORE" } })).id;
  const path = `storage/kv/namespaces/${kv}`, names = Array.from({ length: 100 }, (_, i) => `k${i}`);
  const body = "\0\u00e9".repeat(350_000); // a megabyte, that is two and a half when escaped
  for (const name of names) await client.result("PUT", `${path}/values/${name}`, { body, headers: { "content-type": "text/plain" } });
  const peak = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))[1]) / 1024;
  const before = peak();
  const { values } = await client.result("POST", `${path}/bulk/get`, { json: { keys: Array(100).fill("k1") } });
  assert.deepEqual(Object.keys(values), ["k1"]);
  assert.ok(values.k1 === body);
  assert.deepEqual(Object.values((await client.result("POST", `${path}/bulk/get`, { json: { keys: [...names.slice(0, 20), "none"] } })).values)
    .map((value) => value?.length ?? null), [...Array(20).fill(body.length), null]);
  const { status, body: refused } = await client.ask("POST", `${path}/bulk/get`, { json: { keys: names } });
  assert.equal(status, 413);
  assert.match(refused.errors[0].message, /more than 25 MiB together/);
  assert.ok(peak() - before < 100, `${Math.round(peak() - before)} MB more`);
});

test("D1: parameters, batches and rows apart", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  const { uuid } = await client.result("POST", "d1/database", { json: { name: "db" } });
  const query = (json, verb = "query") => client.result("POST", `d1/database/${uuid}/${verb}`, { json });
  await query({ sql: "CREATE TABLE t (a, b); CREATE TABLE u (c)" });
  await query({ sql: "INSERT INTO t VALUES (?, ?), (?, ?)", params: ["x'); DROP TABLE t; --", 1.5, null, true] });
  const [{ results }] = await query({ sql: "SELECT * FROM t WHERE a IS NOT ?", params: ["none"] });
  assert.deepEqual(results, [{ a: "x'); DROP TABLE t; --", b: 1.5 }, { a: null, b: 1 }]);
  const batch = await query({ batch: [{ sql: "INSERT INTO u VALUES (?)", params: [7] }, { sql: "SELECT c FROM u" }] });
  assert.deepEqual(batch[1].results, [{ c: 7 }]);
  assert.deepEqual((await query({ sql: "SELECT a, b FROM t ORDER BY b", params: [] }, "raw"))[0].results,
    { columns: ["a", "b"], rows: [[null, 1], ["x'); DROP TABLE t; --", 1.5]] });
  // A batch is whole or is not.
  const failed = await client.ask("POST", `d1/database/${uuid}/query`, { json: { batch: [{ sql: "INSERT INTO u VALUES (8)" }, { sql: "SELECT * FROM nothing" }] } });
  assert.equal(failed.status, 400);
  assert.deepEqual((await query({ sql: "SELECT c FROM u" }))[0].results, [{ c: 7 }]);
  for (const json of [{ sql: "SELECT ?; SELECT 1", params: [1] }, { sql: "SELECT ?", params: [[1]] }, { sql: "SELECT ?", params: "x" }, { batch: {} }, { batch: [1] }, {}, { sql: 1 }])
    assert.equal((await client.ask("POST", `d1/database/${uuid}/query`, { json })).status, 400, JSON.stringify(json));
});

test("D1: files go in and out by addresses of their own, and back in time", async (t) => {
  const data = dataFolder(t);
  let server = await empty(t, data);
  const who = token(data);
  let client = new Client(server, who);
  const { uuid } = await client.result("POST", "d1/database", { json: { name: "db" } });
  const target = `d1/database/${uuid}`;
  const md5 = (text) => createHash("md5").update(text).digest("hex");
  const sql = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT);\n" + Array.from({ length: 500 }, (_, i) => `INSERT INTO t (name) VALUES ('it''s ${i}; "ä"');\n`).join("");

  // An empty database is an empty file.
  const none = await client.result("POST", `${target}/export`, { json: { output_format: "polling", dump_options: {} } });
  assert.equal(await (await fetch(none.result.signed_url)).text(), "");

  const { upload_url, filename } = await client.result("POST", `${target}/import`, { json: { action: "init", etag: md5(sql) } });
  const ingest = () => client.ask("POST", `${target}/import`, { json: { action: "ingest", filename, etag: md5(sql) } });
  assert.equal((await ingest()).status, 404); // nothing has come
  assert.equal((await fetch(upload_url, { method: "PUT", body: sql + " " })).status, 400); // F2
  assert.equal((await ingest()).status, 404);
  assert.equal((await fetch(upload_url)).status, 404); // it goes in, not out
  const put = await fetch(upload_url, { method: "PUT", body: sql });
  assert.equal(put.status, 200);
  assert.equal(put.headers.get("etag"), `"${md5(sql)}"`);
  const done = await ingest();
  assert.equal(done.body.result.status, "complete", JSON.stringify(done.body));
  assert.equal(done.body.result.result.num_queries, 501);
  assert.equal((await ingest()).status, 404); // once
  const before = done.body.result.result.final_bookmark;
  const count = async () => (await client.result("POST", `${target}/query`, { json: { sql: "SELECT count(*) AS n FROM t" } }))[0].results[0].n;
  assert.equal(await count(), 500);

  // A file that fails changes nothing and says where.
  const bad = "DELETE FROM t;\nINSERT INTO nowhere VALUES (1);\n";
  const second = await client.result("POST", `${target}/import`, { json: { action: "init", etag: md5(bad) } });
  await fetch(second.upload_url, { method: "PUT", body: bad });
  const failed = await client.ask("POST", `${target}/import`, { json: { action: "ingest", filename: second.filename, etag: md5(bad) } });
  assert.match(failed.body.errors[0].message, /nowhere.*line 2/);
  assert.equal(await count(), 500);

  // Out, and into another database, which is then the same.
  const out = await client.result("POST", `${target}/export`, { json: { output_format: "polling", dump_options: {} } });
  const dump = await (await fetch(out.result.signed_url)).text();
  assert.match(dump, /CREATE TABLE/);
  const schema = await client.result("POST", `${target}/export`, { json: { output_format: "polling", dump_options: { no_data: true, tables: ["t"] } } });
  assert.ok(!(await (await fetch(schema.result.signed_url)).text()).includes("INSERT"));
  const { uuid: copy } = await client.result("POST", "d1/database", { json: { name: "copy" } });
  const third = await client.result("POST", `d1/database/${copy}/import`, { json: { action: "init", etag: md5(dump) } });
  assert.equal((await client.ask("POST", `${target}/import`, { json: { action: "ingest", filename: third.filename, etag: md5(dump) } })).status, 404); // another database
  await fetch(third.upload_url, { method: "PUT", body: dump });
  await client.result("POST", `d1/database/${copy}/import`, { json: { action: "ingest", filename: third.filename, etag: md5(dump) } });
  const rows = (id) => client.result("POST", `d1/database/${id}/query`, { json: { sql: "SELECT * FROM t ORDER BY id" } });
  assert.deepEqual((await rows(copy))[0].results, (await rows(uuid))[0].results);

  // Time travel, there and back.
  await client.result("POST", `${target}/query`, { json: { sql: "DELETE FROM t WHERE id > 10" } });
  assert.equal(await count(), 10);
  const { bookmark: now } = await client.result("GET", `${target}/time_travel/bookmark`);
  const back = await client.result("POST", `${target}/time_travel/restore?bookmark=${before}`);
  assert.equal(await count(), 500);
  await client.result("POST", `${target}/time_travel/restore?bookmark=${back.previous_bookmark}`);
  assert.equal(await count(), 10);
  assert.ok(now);
  assert.equal((await client.ask("POST", `${target}/time_travel/restore`)).status, 400);
  assert.equal((await client.ask("POST", `${target}/time_travel/restore?bookmark=nonsense`)).status, 400);

  // Addresses end with the token, and none is left after a restart.
  const last = await client.result("POST", `${target}/export`, { json: { dump_options: {} } });
  const waiting = await client.result("POST", `${target}/import`, { json: { action: "init", etag: md5(sql) } });
  assert.equal((await fetch(`${new URL(waiting.upload_url).origin}/client/v4/transfers/${"0".repeat(32)}`)).status, 401);
  assert.equal((await fetch(`${new URL(waiting.upload_url).origin}/client/v4/transfers/${who.token}`)).status, 401);
  assert.equal(run(["tokens", "revoke", who.id, "--data", data]).status, 0);
  assert.ok((await fetch(waiting.upload_url, { method: "PUT", body: sql })).status >= 400);
  assert.ok((await fetch(last.result.signed_url)).status >= 400);
  await server.kill();
  server = await empty(t, data);
  client = new Client(server, token(data, "again"));
  assert.ok(!existsSync(path.join(data, "deployed/transfers")));
  assert.ok((await client.ask("GET", target)).body.success);
});

test("R2 buckets go when they are empty, queues pause, secrets change many at a time", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  await client.result("POST", "r2/buckets", { json: { name: "files" } });
  await client.result("PUT", "r2/buckets/files/objects/a", { body: "x" });
  const full = await client.ask("DELETE", "r2/buckets/files");
  assert.equal(full.status, 409);
  assert.equal(full.body.errors[0].code, 10008);
  await client.result("DELETE", "r2/buckets/files/objects/a");
  await client.result("DELETE", "r2/buckets/files");
  assert.equal((await client.ask("GET", "r2/buckets/files")).status, 404);

  const { queue_id } = await client.result("POST", "queues", { json: { queue_name: "jobs" } });
  await client.deploy("w", `export default {
    async fetch(request, env) { if (request.url.endsWith("/send")) await env.JOBS.send(1); return new Response(String((await env.KV.get("n")) ?? 0)); },
    async queue(batch, env) { await env.KV.put("n", "took"); } };`, {
    metadata: { bindings: [{ type: "queue", name: "JOBS", queue_name: "jobs" }, { type: "kv_namespace", name: "KV", namespace_id: "0123456789abcdef0123456789abcdef" }] },
  });
  await client.result("POST", `queues/${queue_id}/consumers`, { json: { type: "worker", script_name: "w", settings: { max_wait_time_ms: 0 } } });
  await client.result("PATCH", `queues/${queue_id}`, { json: { queue_name: "jobs", settings: { delivery_paused: true } } });
  assert.equal((await client.ask("PATCH", `queues/${queue_id}`, { json: { queue_name: "other" } })).status, 400);
  await server.text("/send");
  assert.equal(await server.text("/"), "0");
  await client.result("PATCH", `queues/${queue_id}`, { json: { queue_name: "jobs", settings: { delivery_paused: false } } });
  await server.untilTrue(async () => (await server.text("/")) === "took", "the message after the pause");

  const form = (bindings) => { const body = new FormData(); body.set("settings", JSON.stringify({ bindings })); return { body }; };
  const keep = (await client.result("GET", "workers/scripts/w/settings")).bindings.map(({ type, name }) => ({ type, name }));
  const secret = (name, text) => ({ type: "secret_text", name, text });
  await client.result("PATCH", "workers/scripts/w/settings", form([...keep, secret("A", "1"), secret("B", "2")]));
  assert.deepEqual((await client.result("GET", "workers/scripts/w/secrets")).map(({ name }) => name), ["A", "B"]);
  // What the list leaves out goes; other bindings are an upload's.
  await client.result("PATCH", "workers/scripts/w/settings", form([...keep, { type: "secret_text", name: "B" }, secret("C", "3")]));
  assert.deepEqual((await client.result("GET", "workers/scripts/w/secrets")).map(({ name }) => name), ["B", "C"]);
  assert.equal((await client.ask("PATCH", "workers/scripts/w/settings", form([secret("D", "4")]))).status, 400);
  assert.equal((await client.ask("PATCH", "workers/scripts/w/settings", form([...keep, secret("D", 4)]))).status, 400);
  assert.equal((await client.ask("PATCH", "workers/scripts/w/settings", { body: new FormData() })).status, 400);
});
