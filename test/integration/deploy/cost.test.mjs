// What a token may cost: exports of D1 (F3 and F4 of src/v4/v4_transfers.c) and operations at once (A3 of src/admin/admin.h).
import assert from "node:assert/strict";
import { existsSync, readdirSync, statSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import test from "node:test";
import { Client, adminToken, dataFolder, empty, token } from "./lib.mjs";

const MIB = 1 << 20;

/** A server with a database that has a table of `bytes`: {server, data, all, reader, target}. */
async function database(t, bytes) {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const all = new Client(server, token(data, "all")), reader = new Client(server, token(data, "reader", "read"));
  const { uuid } = await all.result("POST", "d1/database", { json: { name: "db" } });
  const target = `d1/database/${uuid}`;
  await all.result("POST", `${target}/query`, { json: { sql: "CREATE TABLE t (a); CREATE TABLE u (b)" } });
  for (let left = bytes; left > 0; left -= MIB) await all.result("POST", `${target}/query`, { json: { sql: "INSERT INTO t VALUES (zeroblob(?))", params: [MIB] } });
  const folder = path.join(data, "deployed/transfers");
  const files = () => (existsSync(folder) ? readdirSync(folder) : []);
  return { server, data, all, reader, target, files, size: () => files().reduce((sum, name) => sum + (statSync(path.join(folder, name), { throwIfNoEntry: false })?.size ?? 0), 0) };
}

test("a table that an export names many times is written once", async (t) => {
  const { reader, target, size } = await database(t, MIB);
  const once = await reader.result("POST", `${target}/export`, { json: { dump_options: { tables: ["t", "u"] } } });
  const text = await (await fetch(once.result.signed_url)).text();
  assert.ok(text.length > 2 * MIB && text.length < 3 * MIB);
  const many = await reader.result("POST", `${target}/export`, { json: { dump_options: { tables: Array(100).fill(["t", "u"]).flat() } } });
  assert.equal(await (await fetch(many.result.signed_url)).text(), text);
  assert.ok(size() < 6 * MIB, String(size()));
  const { status, body } = await reader.ask("POST", `${target}/export`, { json: { dump_options: { no_data: true, tables: Array.from({ length: 2000 }, (_, i) => `t${i}`) } } });
  assert.equal(status, 400, JSON.stringify(body));
});

test("exports of one token never keep others from theirs, and only its last are kept", async (t) => {
  const { all, reader, target, files } = await database(t, 0);
  const address = async (client) => (await client.result("POST", `${target}/export`, { json: { dump_options: { no_data: true } } })).result.signed_url;
  const kept = await address(all);
  const urls = [];
  for (let i = 0; i < 40; i++) urls.push(await address(reader));
  assert.equal(files().length, 5);
  const statuses = await Promise.all(urls.map(async (url) => (await fetch(url)).status));
  assert.deepEqual(statuses, [...Array(36).fill(401), ...Array(4).fill(200)]);
  assert.equal((await fetch(kept)).status, 200);
  assert.equal((await all.ask("POST", `${target}/import`, { json: { action: "init", etag: "0".repeat(32) } })).status, 200);
});

test("an export that nobody waits for any more ends, and leaves nothing", async (t) => {
  const { server, reader, target, files } = await database(t, 64 * MIB);
  const request = http.request(`${server.api}/accounts/${reader.account}/${target}/export`, { method: "POST", headers: { authorization: `Bearer ${reader.token}`, "content-type": "application/json" } });
  request.on("error", () => {});
  request.end('{"dump_options":{}}');
  await server.untilTrue(() => files().length > 0, "its beginning");
  request.destroy();
  await server.untilTrue(() => files().length === 0, "its end");
});

test("no token takes all operations, and together they leave some to the operator (A3)", async (t) => {
  const { server, data, all, reader } = await database(t, 0);
  const third = new Client(server, token(data, "third"));
  /** A call that waits for its body. */
  const hang = (client) => {
    const request = http.request(`${server.api}/accounts/${client.account}/storage/kv/namespaces`, { method: "POST", headers: { authorization: `Bearer ${client.token}`, "content-type": "application/json" } });
    request.on("response", (response) => response.resume()).on("error", () => {});
    request.write("{");
    return request;
  };
  const operator = { headers: { authorization: `Bearer ${adminToken(data)}` } };
  const asks = async (client) => (await client.ask("GET", "/user")).status;
  const hung = [];
  // The question takes a thread itself: one more hangs until there is none even for that.
  const fill = (client, asker, what) => server.untilTrue(async () => {
    if ((await asks(asker)) === 503) return true;
    hung.push(hang(client));
    return false;
  }, what);
  await fill(all, all, "the token's last");
  assert.equal(await asks(reader), 200);
  await fill(third, reader, "the last of all tokens");
  assert.equal((await fetch(`${server.admin}/api/workers`, operator)).status, 200);
  for (const request of hung) request.destroy();
  await server.untilTrue(async () => (await asks(reader)) === 200 && (await asks(all)) === 200, "room again");
});
