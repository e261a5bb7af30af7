// What SQL from outside must never do, in a live object and in one that is not in memory; and paths
// that try to leave where they belong.
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { project, raw, serve, tempDir } from "../lib/server.mjs";
import { ask, call, dir, objectPath } from "./lib.mjs";

describe("SQL", () => {
  const outside = tempDir();
  const file = path.join(outside, "file");
  let server;
  before(async () => {
    server = await serve(dir, { lanes: 1 });
    await call(server, "s", "add", "one");
    await call(server, "s", "values");
  });
  after(() => server.stop());
  const sql = (text) => ask({ data: server.data }, "POST", objectPath("s", "/sql"), { body: { sql: text } });

  test("does not reach files, other databases, extensions or settings", async () => {
    for (const text of [
      `ATTACH DATABASE '${file}' AS other`, `VACUUM INTO '${file}'`, "VACUUM", "DETACH main",
      "SELECT load_extension('libm.so.6')", "SELECT readfile('/etc/passwd')", `SELECT writefile('${file}', 'x')`, "SELECT edit('x')",
      "PRAGMA writable_schema = 1", "PRAGMA journal_mode = DELETE", "PRAGMA database_list", "PRAGMA locking_mode = NORMAL",
      "PRAGMA synchronous = OFF", "PRAGMA trusted_schema = 1", "PRAGMA temp_store_directory = '/tmp'", "PRAGMA mmap_size = 1000000000",
      "PRAGMA max_page_count = 1", "PRAGMA page_size = 512", "PRAGMA user_version = 7", "PRAGMA cache_size = 1000000000",
      "SELECT fts3_tokenizer('simple')", "CREATE VIRTUAL TABLE x USING csv(filename='/etc/passwd')", "CREATE VIRTUAL TABLE x USING fsdir('/')",
    ]) {
      const { status, text: answer } = await sql(text);
      assert.ok(status >= 400 && status < 500, `${text}: ${status} ${answer}`);
    }
    assert.deepEqual(readdirSync(outside), []);
  });
  test("does not touch the hidden tables, by no name and through nothing", async () => {
    const before = (await ask({ data: server.data }, "GET", objectPath("s", "/kv"))).text;
    for (const text of [
      "SELECT * FROM _cf_KV", "SELECT * FROM main._CF_kv", 'SELECT * FROM "_cf_KV"', "SELECT * FROM [_cf_KV]", "SELECT * FROM `_cf_kv`",
      "DELETE FROM _cf_KV", "UPDATE _cf_KV SET value = x'00'", "DROP TABLE _cf_KV", "ALTER TABLE _cf_KV RENAME TO mine", "ALTER TABLE entry RENAME TO _cf_entry",
      "CREATE TABLE _cf_mine(a)", "CREATE TABLE copy AS SELECT * FROM _cf_KV", "CREATE INDEX i ON _cf_KV(value)",
      "CREATE VIEW v AS SELECT * FROM _cf_KV; SELECT * FROM v", "CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM _cf_KV; END; INSERT INTO entry(text) VALUES('x')",
      "WITH k AS (SELECT * FROM _cf_KV) SELECT * FROM k", "SELECT (SELECT count(*) FROM _cf_KV)", "INSERT INTO entry(text) SELECT key FROM _cf_KV",
      "INSERT INTO sqlite_master VALUES('table', 'x', 'x', 0, '')", "UPDATE sqlite_schema SET sql = ''", "DELETE FROM sqlite_schema",
      "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "RELEASE a",
    ]) {
      const { status, text: answer } = await sql(text);
      assert.ok(status >= 400 && status < 500, `${text}: ${status} ${answer}`);
    }
    assert.equal((await ask({ data: server.data }, "GET", objectPath("s", "/kv"))).text, before);
    assert.equal(await call(server, "s", "count"), 1);
  });
  test("an endless one ends, and its object goes on", async () => {
    const { status } = await sql("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT sum(i) FROM c");
    assert.equal(status, 504);
    assert.deepEqual(await call(server, "s", "count"), 1);
  });
  test("large results are cut, and say so", async () => {
    const { json } = await sql("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 20000) SELECT i FROM c");
    assert.equal(json.results[0].rows.length, 10000);
    assert.equal(json.truncated, true);
  });
});

test("paths do not leave the folder of assets, nor header values their line", async () => {
  const folder = project({
    "wrangler.toml": 'name = "test"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[assets]\ndirectory = "./public"\nbinding = "ASSETS"\n',
    "public/page.txt": "page",
    "secret.txt": "secret",
    "index.js": `export default { fetch(request, env) {
  const { searchParams } = new URL(request.url);
  if (!searchParams.has("value")) return new Response("worker", { status: 404 });
  return new Response("x", { headers: { "x-value": searchParams.get("value") } });
} };`,
  });
  const server = await serve(folder);
  assert.equal(await server.text("/page.txt"), "page");
  for (const target of ["/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/%2e%2e%2fsecret.txt", "/page.txt/../../secret.txt", "/..\\\\secret.txt", "//secret.txt", "/public/../../secret.txt", "/%00/../secret.txt"]) {
    const answer = await raw(server.port, `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    assert.doesNotMatch(answer, /secret$/m, target);
  }
  for (const value of ["a%0d%0aset-cookie:%20b=1", "a%0aset-cookie:%20b=1", "a%00b"]) {
    const answer = await raw(server.port, `GET /?value=${value} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 500 /, value);
    assert.doesNotMatch(answer, /^set-cookie/mi, value);
  }
  assert.equal(existsSync(path.join(folder, "secret.txt")), true);
  await server.stop();
});
