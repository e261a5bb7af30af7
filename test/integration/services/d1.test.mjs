// D1 databases: the client API, atomic batches, sessions, long queries, and that nothing acknowledged is lost.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { serve } from "../lib/server.mjs";
import { casesProject, run } from "./cases.mjs";
import { objects } from "../lib/toml.mjs";

const CONFIG = `
[[d1_databases]]
binding = "DB"
database_name = "main"
database_id = "0000-1111"
[[d1_databases]]
binding = "SAME"
database_id = "0000-1111"
[[d1_databases]]
binding = "OTHER"
${objects({ WRITER: "Writer" })}`;

const CASES = `
  all(env, sql, ...params) { return env.DB.prepare(sql).bind(...params.slice(0, -1)).all(); },
  run(env, sql, ...params) { return env.DB.prepare(sql).bind(...params.slice(0, -1)).run(); },
  first(env, sql, column) { return typeof column === "string" ? env.DB.prepare(sql).first(column) : env.DB.prepare(sql).first(); },
  raw(env, sql, options) { return env.DB.prepare(sql).raw(options.columnNames ? options : undefined); },
  exec(env, sql) { return env.DB.exec(sql); },
  batch(env, list) { return env.DB.batch(list.map(([sql, ...params]) => env.DB.prepare(sql).bind(...params))); },
  dump(env) { return env.DB.dump(); },
  count(env, table) { return env.DB.prepare("SELECT count(*) AS n FROM " + table).first("n"); },
  async binds(env) {
    const hex = async (value) => { const row = await env.DB.prepare("SELECT hex(?1) AS x, typeof(?1) AS t").bind(value).first(); return row.t + " " + row.x; };
    const values = [null, 1, 1.5, -0.25, 1e20, "ü", true, false, new Uint8Array([1, 2, 255]), new Uint8Array([9, 8, 7]).buffer,
      [1, 2, 3], new Uint16Array([1, 300]), new DataView(new Uint8Array([5, 6]).buffer), NaN, Infinity];
    const out = [];
    for (const value of values) out.push(await hex(value));
    return out;
  },
  async refused(env) {
    const out = [];
    for (const value of [undefined, 5n, {}, () => 1, [1, "a"], Symbol("s")]) {
      try { env.DB.prepare("SELECT ?").bind(value); out.push("bound"); } catch (error) { out.push(error.message); }
    }
    return out;
  },
  async immutable(env) {
    const statement = env.DB.prepare("SELECT ?1 AS x");
    const bytes = new Uint8Array([1]);
    const [one, two, blob] = [statement.bind("one"), statement.bind("two"), statement.bind(bytes)];
    bytes[0] = 2;
    return [await one.first("x"), await two.first("x"), await one.first("x"), await blob.first("x")];
  },
  async session(env) {
    const session = env.DB.withSession("first-primary");
    const marks = [session.getBookmark()];
    await session.prepare("SELECT 1").all();
    marks.push(session.getBookmark());
    await session.batch([session.prepare("CREATE TABLE IF NOT EXISTS s(a)"), session.prepare("INSERT INTO s VALUES (1)")]);
    marks.push(session.getBookmark());
    const next = env.DB.withSession(marks[2]);
    marks.push(next.getBookmark());
    const seen = await next.prepare("SELECT count(*) AS n FROM s").first("n");
    return { marks, seen, unconstrained: env.DB.withSession().getBookmark(), names: [session, env.DB, env.DB.prepare("")].map((it) => it.constructor.name + String(it)) };
  },
  async apart(env) {
    await env.DB.exec("CREATE TABLE IF NOT EXISTS apart(a)");
    const has = (db) => db.prepare("SELECT count(*) AS n FROM sqlite_master WHERE name = 'apart'").first("n");
    return [await has(env.SAME), await has(env.OTHER)];
  },
  async fill(env, count) {
    await env.DB.exec("CREATE TABLE IF NOT EXISTS big(a INTEGER PRIMARY KEY, b TEXT)");
    await env.DB.prepare("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT OR IGNORE INTO big SELECT i, 'row ' || i FROM n").bind(count).run();
    return env.DB.prepare("SELECT count(*) AS n FROM big").first("n");
  },
  slow(env, n) { return env.DB.prepare("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT sum(i) AS s FROM n").bind(n).first("s"); },
  hello() { return "hello"; },
  async flood(env, count) {
    // Several, one after the other: on another lane queries are answered while these are still being asked.
    const slow = Promise.all(Array.from({ length: 8 }, () => env.DB.prepare("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT sum(i) FROM n").first()));
    const all = await Promise.allSettled(Array.from({ length: count }, () => env.DB.prepare("SELECT 1").first()));
    await slow;
    return { refused: all.filter(({ status }) => status === "rejected").length, reason: all.findLast(({ status }) => status === "rejected")?.reason.message };
  },
  async page(env, size) {
    let last = 0, rows = 0;
    for (;;) {
      const page = await env.DB.prepare("SELECT a, b FROM big WHERE a > ? ORDER BY a LIMIT ?").bind(last, size).raw();
      if (page.length === 0) return rows;
      rows += page.length;
      last = page.at(-1)[0];
    }
  },
  large(env, n) { return env.DB.prepare("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT printf('%.*c', 10000, 'x') AS x FROM n").bind(n).all().then((all) => all.results.length); },
  async fromObject(env) { return env.WRITER.get(env.WRITER.idFromName("w")).write(); },
  construct(env) { return new env.DB.constructor(); },
`;

const OBJECT = `
  import { DurableObject } from "cloudflare:workers";
  export class Writer extends DurableObject {
    async write() {
      this.ctx.storage.kv.put("n", (this.ctx.storage.kv.get("n") ?? 0) + 1);
      await this.env.DB.exec("CREATE TABLE IF NOT EXISTS w(a)");
      await this.env.DB.prepare("INSERT INTO w VALUES (?)").bind(this.ctx.storage.kv.get("n")).run();
      return this.env.DB.prepare("SELECT count(*) AS n FROM w").first("n");
    }
  }
`;

const dir = casesProject(CONFIG, CASES, OBJECT);

for (const lanes of [1, 2]) {
  describe(`D1 with ${lanes} lane(s)`, () => {
    let server;
    before(async () => {
      server = await serve(dir, { lanes });
      await run(server, "exec", "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL, d BLOB)");
    });
    after(() => server.stop());
    const rejects = (promise, message, cause) => assert.rejects(promise, cause === undefined ? { message } : { message, cause });

    test("D1-1 run, all, first, raw", async () => {
      const made = await run(server, "run", "INSERT INTO t(b, c, d) VALUES ('x', 1.5, x'0102ff'), (NULL, -2, x'')");
      assert.equal(made.success, true);
      assert.deepEqual(made.results, []);
      const { results } = await run(server, "all", "SELECT * FROM t ORDER BY a");
      assert.deepEqual(results, [{ a: 1, b: "x", c: 1.5, d: [1, 2, 255] }, { a: 2, b: null, c: -2, d: [] }]);
      assert.deepEqual(await run(server, "first", "SELECT a, b FROM t"), { a: 1, b: "x" });
      assert.equal(await run(server, "first", "SELECT a, b FROM t", "b"), "x");
      assert.equal(await run(server, "first", "SELECT a FROM t WHERE a = 9"), null);
      assert.equal(await run(server, "first", "SELECT b FROM t WHERE a = 2", "b"), null);
      await rejects(run(server, "first", "SELECT a FROM t", "zz"), "D1_COLUMN_NOTFOUND: Column not found (zz)", "Column not found");
      assert.deepEqual(await run(server, "raw", "SELECT a, b FROM t ORDER BY a", {}), [[1, "x"], [2, null]]);
      assert.deepEqual(await run(server, "raw", "SELECT a, b FROM t WHERE a = 9", { columnNames: true }), [["a", "b"]]);
      assert.deepEqual(await run(server, "raw", "SELECT 1 AS a, 2 AS a", {}), [[1, 2]]);
      assert.deepEqual((await run(server, "all", "INSERT INTO t(b) VALUES ('r') RETURNING a, b")).results, [{ a: 3, b: "r" }]);
      assert.deepEqual((await run(server, "all", "SELECT 9e999 AS x, 9007199254740993 AS y, 'a' || char(0) || 'ü\\\"' AS z, cast(x'ff41' AS text) AS w")).results,
        [{ x: null, y: 9007199254740992, z: 'a\u0000ü\\"', w: "\ufffdA" }]);
      await rejects(run(server, "dump"), /^D1_DUMP_ERROR: dump\(\) is deprecated/);
      await rejects(run(server, "construct"), "Illegal constructor");
    });

    test("D1-2 meta", async () => {
      const { meta } = await run(server, "run", "INSERT INTO t(a, b) VALUES (100, 'm'), (101, 'n')");
      assert.deepEqual(Object.keys(meta).sort(), ["changed_db", "changes", "duration", "last_row_id", "rows_read", "rows_written", "served_by",
        "served_by_colo", "served_by_primary", "served_by_region", "size_after", "timings", "total_attempts"]);
      assert.equal(meta.changes, 2);
      assert.equal(meta.last_row_id, 101);
      assert.equal(meta.rows_written, 2);
      assert.equal(meta.changed_db, true);
      assert.equal(meta.served_by_primary, true);
      assert.equal(meta.size_after % 4096, 0);
      assert.ok(meta.size_after > 0 && meta.duration >= 0 && meta.timings.sql_duration_ms >= 0);
      const read = (await run(server, "all", "SELECT * FROM t")).meta;
      assert.equal(read.changes, 0);
      assert.equal(read.changed_db, false);
      assert.equal(read.rows_written, 0);
      assert.equal(read.rows_read, await run(server, "count", "t"));
    });

    test("D1-3 sessions and bookmarks", async () => {
      const { marks, seen, unconstrained, names } = await run(server, "session");
      assert.equal(marks[0], null);
      assert.match(marks[1], /^[0-9a-f]{8}-[0-9a-f]{8}-/);
      assert.ok(marks[1] < marks[2], "a write moves the bookmark on");
      assert.equal(marks[3], marks[2]);
      assert.ok(seen >= 1);
      assert.equal(unconstrained, null);
      assert.deepEqual(names, ["D1DatabaseSession[object D1DatabaseSession]", "D1Database[object D1Database]", "D1PreparedStatement[object D1PreparedStatement]"]);
    });

    test("D1-4 what can be bound, and what is refused", async () => {
      assert.deepEqual(await run(server, "binds"), ["null ", "real 312E30", "real 312E35", "real 2D302E3235", "real 312E30652B3230", "text C3BC", "real 312E30",
        "real 302E30", "blob 0102FF", "blob 090807", "blob 010203", "blob 012C", "blob 0506", "null ", "null "]);
      assert.deepEqual(await run(server, "refused"), ["undefined", "bigint", "object", "function", "object", "symbol"].map((type, i) =>
        `D1_TYPE_ERROR: Type '${type}' not supported for value '${["undefined", "5", "[object Object]", "() => 1", "1,a", "Symbol(s)"][i]}'`));
      assert.deepEqual(await run(server, "immutable"), ["one", "two", "one", [1]]);
    });

    test("D1-4 errors have the platform's prefixes", async () => {
      await rejects(run(server, "all", "SELEC 1"), /^D1_ERROR: near "SELEC": syntax error.*: SQLITE_ERROR$/);
      await rejects(run(server, "all", "SELECT * FROM nope"), "D1_ERROR: no such table: nope: SQLITE_ERROR", "no such table: nope: SQLITE_ERROR");
      await rejects(run(server, "run", "INSERT INTO t(a) VALUES (1)"), /^D1_ERROR: UNIQUE constraint failed: t\.a: SQLITE_CONSTRAINT/);
      await rejects(run(server, "all", "SELECT ?, ?", 1), "D1_ERROR: Wrong number of parameter bindings for SQL query.");
      await rejects(run(server, "all", "SELECT ?", 1, 2), "D1_ERROR: Wrong number of parameter bindings for SQL query.");
      await rejects(run(server, "all", "-- nothing"), "D1_ERROR: SQL code did not contain a statement.");
      await rejects(run(server, "batch", []), "D1_ERROR: No SQL statements detected.");
      await rejects(run(server, "run", "BEGIN"), /^D1_ERROR: To execute a transaction, please use the state\.storage\.transaction\(\)/);
      await rejects(run(server, "run", "ATTACH 'x' AS y"), /^D1_ERROR: not authorized/);
      await rejects(run(server, "run", "CREATE TABLE _cf_x(a)"), /^D1_ERROR: not authorized/);
    });

    test("D1-1 exec runs lines, all or none", async () => {
      const before = await run(server, "count", "t");
      const done = await run(server, "exec", "INSERT INTO t(b) VALUES ('e1')\n\n-- a comment\nINSERT INTO t(b) VALUES ('e2'); INSERT INTO t(b) VALUES ('e3')\n");
      assert.equal(done.count, 2);
      assert.ok(done.duration >= 0);
      assert.equal(await run(server, "count", "t"), before + 3);
      await rejects(run(server, "exec", "INSERT INTO t(b) VALUES ('e4')\nINSERT INTO nope VALUES (1)"),
        "D1_EXEC_ERROR: Error in line 2: INSERT INTO nope VALUES (1): no such table: nope: SQLITE_ERROR");
      assert.equal(await run(server, "count", "t"), before + 3);
      await rejects(run(server, "exec", "INSERT INTO t(b)\nVALUES ('e6')"), /^D1_EXEC_ERROR: Error in line 1: INSERT INTO t\(b\): incomplete input/);
      await rejects(run(server, "exec", ""), "D1_EXEC_ERROR: Error in line 1: : No SQL statements detected.");
    });

    test("D1-1 every statement of a batch has its own result, also those with the same text", async () => {
      const insert = "INSERT INTO same(b) VALUES (?)";
      await run(server, "exec", "CREATE TABLE same(a INTEGER PRIMARY KEY, b)");
      const writes = await run(server, "batch", [[insert, "one"], [insert, "two"], ["DELETE FROM same WHERE b = ?", "none"], [insert, "three"]]);
      assert.deepEqual(writes.map(({ meta: { last_row_id, changes, rows_written } }) => [last_row_id, changes, rows_written]), [[1, 1, 1], [2, 1, 1], [2, 0, 0], [3, 1, 1]]);
      assert.deepEqual(writes.map(({ results }) => results), [[], [], [], []]);
      const select = "SELECT a, b FROM same WHERE b = ?";
      const reads = await run(server, "batch", [[select, "two"], [select, "none"], [insert, "four"], [select, "four"]]);
      assert.deepEqual(reads.map(({ results }) => results), [[{ a: 2, b: "two" }], [], [], [{ a: 4, b: "four" }]]);
      assert.deepEqual(reads.map(({ meta }) => meta.changed_db), [false, false, true, false]);
    });
    test("D1-1 a batch is atomic", async () => {
      const before = await run(server, "count", "t");
      const results = await run(server, "batch", [["INSERT INTO t(b) VALUES (?)", "b1"], ["SELECT count(*) AS n FROM t"], ["UPDATE t SET c = 1 WHERE b = ?", "b1"]]);
      assert.deepEqual(results.map(({ results, meta }) => [results, meta.changes]), [[[], 1], [[{ n: before + 1 }], 0], [[], 1]]);
      await rejects(run(server, "batch", [["INSERT INTO t(b) VALUES ('b2')"], ["CREATE TABLE b3(a)"], ["SELECT * FROM nope"]]), "D1_ERROR: no such table: nope: SQLITE_ERROR");
      assert.equal(await run(server, "count", "t"), before + 1);
      await rejects(run(server, "count", "b3"), /no such table: b3/);
    });

    test("D1-6 limits", async () => {
      await rejects(run(server, "all", `SELECT ${Array(101).fill("?").join()}`, ...Array(101).fill(1)), /^D1_ERROR: too many SQL variables/);
      await rejects(run(server, "run", `CREATE TABLE wide(${Array.from({ length: 101 }, (_, i) => `c${i}`).join()})`), /^D1_ERROR: too many columns/);
      await rejects(run(server, "all", "SELECT length(zeroblob(2000001))"), /^D1_ERROR: .*SQLITE_TOOBIG/);
      await rejects(run(server, "large", 7000), /^D1_ERROR: the result is larger than 64 MiB: use LIMIT/);
      assert.equal(await run(server, "large", 1000), 1000);
    });

    test("D1-6 LIMIT on UPDATE and DELETE, pragmas", async () => {
      await run(server, "exec", "CREATE TABLE lim(a)\nINSERT INTO lim VALUES (1), (2), (3), (4)");
      assert.equal((await run(server, "run", "DELETE FROM lim ORDER BY a DESC LIMIT 1")).meta.changes, 1);
      assert.equal((await run(server, "run", "UPDATE lim SET a = a + 10 ORDER BY a LIMIT 2")).meta.changes, 2);
      assert.deepEqual((await run(server, "raw", "SELECT a FROM lim ORDER BY a", {})).flat(), [3, 11, 12]);
      assert.ok((await run(server, "first", "PRAGMA page_count", "page_count")) > 1);
      await rejects(run(server, "all", "PRAGMA journal_mode"), /^D1_ERROR: not authorized/);
      await run(server, "exec", "CREATE TABLE parent(id INTEGER PRIMARY KEY)\nCREATE TABLE child(p REFERENCES parent(id))");
      await rejects(run(server, "batch", [["PRAGMA foreign_keys = off"], ["INSERT INTO child VALUES (5)"]]), /FOREIGN KEY constraint failed/);
      await run(server, "batch", [["PRAGMA defer_foreign_keys = on"], ["INSERT INTO child VALUES (5)"], ["INSERT INTO parent VALUES (5)"]]);
    });

    test("D1-6 a long query does not hold up the lane, and others of its database wait", async () => {
      let slowDone = false;
      const slow = run(server, "slow", 3_000_000).then((sum) => { slowDone = true; return sum; });
      let between = 0;
      while (!slowDone) {
        assert.equal(await run(server, "hello"), "hello");
        between++;
      }
      assert.equal(await slow, 4500001500000);
      assert.ok(between > 5, `${between} requests were answered meanwhile`); // behind it they would be one or two
      // Three at once: they take turns, and a write after them is not lost.
      const before = await run(server, "count", "t");
      const [a, b] = await Promise.all([run(server, "slow", 200_000), run(server, "slow", 200_001), run(server, "run", "INSERT INTO t(b) VALUES ('after')")]);
      assert.deepEqual([a, b], [20000100000, 20000300001]);
      assert.equal(await run(server, "count", "t"), before + 1);
    });

    test("D1-6 too many waiting queries are refused, the others are answered", async () => {
      const { refused, reason } = await run(server, "flood", 10_500);
      assert.ok(refused > 0 && refused <= 600, `${refused} were refused`);
      assert.equal(reason, "D1_ERROR: D1 DB is overloaded. Too many requests queued.");
    });

    test("D1-6 a long write is made on a thread, all or nothing", async () => {
      assert.equal(await run(server, "fill", 200_000), 200_000);
      assert.equal(await run(server, "page", 5_000), 200_000);
      await rejects(run(server, "batch", [["DELETE FROM big"], ["SELECT * FROM nope"]]), /no such table/);
      assert.equal(await run(server, "count", "big"), 200_000);
    });

    test("D1-1 databases are apart by id, objects can use them", async () => {
      assert.deepEqual(await run(server, "apart"), [1, 0]);
      const before = await run(server, "fromObject");
      assert.equal(await run(server, "fromObject"), before + 1);
    });

    test("D1-1 what was acknowledged survives kill -9, a query under way among it", async () => {
      await run(server, "exec", "CREATE TABLE crash(writer, n, PRIMARY KEY (writer, n))");
      const known = new Map();
      let running = true;
      const writers = Array.from({ length: 6 }, async (_, writer) => {
        for (let i = 0; running; i++) {
          try {
            await run(server, "batch", [["INSERT INTO crash VALUES (?, ?)", writer, 2 * i], ["INSERT INTO crash VALUES (?, ?)", writer, 2 * i + 1]]);
            known.set(writer, 2 * i + 1);
          } catch {
            return;
          }
        }
      });
      await server.untilTrue(() => known.size === 6 && [...known.values()].every((n) => n > 20), "every writer's tenth batch");
      const slow = run(server, "slow", 500_000_000).catch(() => "cut");
      await server.kill();
      running = false;
      await Promise.all(writers);
      assert.equal(await slow, "cut");
      server = await serve(dir, { lanes: 3 - lanes, data: server.data });
      for (const [writer, last] of known) {
        const rows = (await run(server, "raw", `SELECT n FROM crash WHERE writer = ${writer} ORDER BY n`, {})).flat();
        assert.ok(rows.length > last, `writer ${writer} has ${rows.length} rows, ${last + 1} were acknowledged`);
        assert.equal(rows.length % 2, 0, "half of a batch is there");
      }
    });

    test("D1-1 the server stops while a query runs", async () => {
      const slow = run(server, "slow", 500_000_000).catch((error) => error);
      await server.untilTrue(async () => (await run(server, "hello")) === "hello", "an answer");
      server.signal("SIGTERM");
      await server.until(/finishing the requests under way/);
      assert.deepEqual(await server.stop(), { code: 0, signal: null });
      assert.ok((await slow) instanceof Error);
      server = await serve(dir, { lanes, data: server.data });
      assert.ok((await run(server, "count", "t")) > 0);
    });
  });
}
