// SQL of objects and of D1 stays in its own database: each of these is refused, changes no file, and the
// database is as it was. (The console of the control API: test/integration/admin/security.test.mjs.)
import assert from "node:assert/strict";
import { existsSync, readdirSync, statSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { tempDir } from "../lib/server.mjs";
import { actor } from "./lib.mjs";

const outside = tempDir(), file = path.join(outside, "file");

const escapes = {
  "other databases": [
    `ATTACH DATABASE '${file}' AS other`, "ATTACH ':memory:' AS other", "ATTACH '' AS other", "DETACH main", "DETACH DATABASE temp",
    "SELECT * FROM temp.sqlite_master; CREATE TEMP TABLE t2(a)", "CREATE TEMPORARY VIEW v AS SELECT 1", "CREATE TEMP TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END",
  ],
  files: [
    `VACUUM INTO '${file}'`, "VACUUM", "VACUUM main", "SELECT readfile('/etc/passwd')", `SELECT writefile('${file}', 'x')`, "SELECT edit('x')",
    "SELECT lsdir('/')", "SELECT * FROM fsdir('/')", "SELECT load_extension('libm.so.6')", "SELECT load_extension('libm.so.6', 'x')",
    "CREATE VIRTUAL TABLE x USING csv(filename='/etc/passwd')", "CREATE VIRTUAL TABLE x USING zipfile('/etc/passwd')", "CREATE VIRTUAL TABLE x USING fileio('/etc')",
  ],
  "the inside of the database": [
    "SELECT * FROM sqlite_dbpage", "SELECT * FROM dbstat", "SELECT * FROM sqlite_stmt", "SELECT * FROM bytecode('SELECT 1')", "SELECT * FROM tables_used('SELECT 1')",
    "CREATE VIRTUAL TABLE x USING dbstat", "CREATE VIRTUAL TABLE x USING sqlite_dbpage", "CREATE VIRTUAL TABLE x USING fts3(a, tokenize=simple)",
    "SELECT fts3_tokenizer('simple')", "SELECT fts3_tokenizer('x', x'0000000000000000')", "CREATE VIRTUAL TABLE x USING fts5(a, tokenize='nothing here')",
    "INSERT INTO sqlite_master VALUES('table', 'x', 'x', 0, '')", "UPDATE sqlite_schema SET sql = 'x'", "DELETE FROM sqlite_schema", "DROP TABLE sqlite_sequence",
    "CREATE TABLE sqlite_x(a)", "ALTER TABLE t RENAME TO sqlite_t",
  ],
  settings: [
    "PRAGMA writable_schema = 1", "PRAGMA writable_schema = RESET", "PRAGMA journal_mode = WAL", "PRAGMA journal_mode = OFF", "PRAGMA journal_mode", "PRAGMA main.journal_mode = MEMORY",
    "PRAGMA synchronous = OFF", "PRAGMA locking_mode = EXCLUSIVE", "PRAGMA page_size = 512", "PRAGMA cache_size = 1000000000", "PRAGMA temp_store_directory = '/tmp'",
    "PRAGMA data_store_directory = '/tmp'", "PRAGMA mmap_size = 1000000", "PRAGMA wal_checkpoint", "PRAGMA database_list", "PRAGMA trusted_schema = ON", "PRAGMA cell_size_check = 0",
    "PRAGMA hard_heap_limit = 1", "PRAGMA soft_heap_limit = 1", "PRAGMA max_page_count = 1", "PRAGMA secure_delete = 0", "PRAGMA user_version = 7", "PRAGMA application_id = 7",
    "PRAGMA schema_version = 7", "PRAGMA incremental_vacuum", "PRAGMA auto_vacuum = 1", "PRAGMA encoding = 'UTF-16'", "PRAGMA threads = 8", "PRAGMA shrink_memory",
    "PRAGMA module_list; SELECT * FROM pragma_database_list", "SELECT * FROM pragma_journal_mode", "SELECT * FROM pragma_writable_schema(1)", "PRAGMA page_count = 3",
  ],
  transactions: ["BEGIN", "BEGIN IMMEDIATE", "COMMIT", "END", "ROLLBACK", "SAVEPOINT a", "RELEASE a", "ROLLBACK TO a"],
  "what is reserved": [
    "SELECT * FROM _cf_KV", "select * from \"_CF_kv\"", "SELECT * FROM [_cf_KV]", "SELECT * FROM main._cf_KV", "INSERT INTO _cf_KV VALUES('a', 'b')", "DELETE FROM _cf_KV", "DROP TABLE _cf_KV",
    "ALTER TABLE _cf_KV RENAME TO mine", "ALTER TABLE t RENAME TO _cf_t", "CREATE TABLE _cf_mine(a)",
    "/**/ALTER TABLE t RENAME TO _cf_t", "-- x\nALTER TABLE t RENAME TO [_CF_t]", "ALTER /* to */ TABLE t RENAME TO \"_cf_t\"", "CREATE VIEW \"_cf_v\" AS SELECT 1", "CREATE INDEX `_cf_i` ON t(a)", "CREATE VIEW w AS SELECT * FROM _cf_KV; SELECT * FROM w",
    "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM _cf_KV; END; INSERT INTO t VALUES(9)", "CREATE INDEX i ON _cf_KV(value)", "PRAGMA table_info(_cf_KV)",
    "CREATE VIRTUAL TABLE _cf_f USING fts5(a)", "CREATE VIRTUAL TABLE f USING fts5(a, content='_cf_KV'); SELECT * FROM f", "WITH x AS (SELECT * FROM _cf_KV) SELECT * FROM x",
    "SELECT (SELECT count(*) FROM _cf_KV)", "REINDEX _cf_KV; SELECT * FROM _cf_KV", "ANALYZE _cf_KV; SELECT * FROM _cf_KV",
  ],
};

describe("SQL stays in its database", () => {
  let server;
  before(async () => {
    server = await actor({
      object: '(request, env) => request.json().then((query) => env.CELL.getByName("s").sql(query))',
      d1: "(request, env) => request.json().then((query) => env.DB.prepare(query).all())",
      d1exec: "(request, env) => request.json().then((query) => env.DB.exec(query))",
      d1batch: "(request, env) => request.json().then((query) => env.DB.batch([env.DB.prepare(query)]))",
      prepare: `async (request, env) => {
        await env.CELL.getByName("s").put("kept", "secret");
        await env.CELL.getByName("s").sql("CREATE TABLE t(a)");
        await env.CELL.getByName("s").sql("INSERT INTO t VALUES(1)");
        await env.DB.exec("CREATE TABLE t(a)");
        await env.DB.exec("INSERT INTO t VALUES(1)");
      }`,
      look: `async (request, env) => ({
        kv: await env.CELL.getByName("s").get("kept"), object: await env.CELL.getByName("s").sql("SELECT * FROM t"), d1: (await env.DB.prepare("SELECT * FROM t").all()).results,
      })`,
    });
    assert.deepEqual(await server.act("prepare"), { value: null });
  });
  after(() => server.stop());
  // D1 has no key-value table in its database: there the reserved names are only reserved.
  for (const where of ["object", "d1", "d1exec", "d1batch"])
    for (const [kind, queries] of Object.entries(escapes))
      test(`${where}: ${kind}`, async () => {
        for (const query of queries) {
          const { error, value } = await server.act(where, query);
          assert.ok(error, `${query} gave ${JSON.stringify(value)}`);
          assert.doesNotMatch(error, /secret/);
        }
        assert.deepEqual(await server.act("look"), { value: { kv: "secret", object: [{ a: 1 }], d1: [{ a: 1 }] } });
        assert.equal(existsSync(file), false);
        assert.deepEqual(readdirSync(outside), []);
      });
  test("statements, rows and parameters have their limits", async () => {
    for (const query of [`SELECT '${"x".repeat(100_000)}'`, `SELECT ${"(".repeat(3000)}1${")".repeat(3000)}`, "SELECT zeroblob(1000000000)", "SELECT randomblob(100000000)",
      `SELECT ${Array.from({ length: 3000 }, (_, i) => i).join(",")}`, "SELECT printf('%.*c', 100000000, 'x')", "SELECT replace(hex(zeroblob(1000000)), '0', hex(zeroblob(1000000)))",
      `SELECT 1 ${"UNION ALL SELECT 1 ".repeat(2000)}`, `SELECT ${Array.from({ length: 400 }, () => "?").join(",")}`]) {
      for (const where of ["object", "d1"]) assert.ok((await server.act(where, query)).error, `${where}: ${query.slice(0, 60)}`);
    }
    assert.equal(statSync(server.data).isDirectory(), true);
    assert.equal(await server.text("/hello"), "hello");
  });
});
