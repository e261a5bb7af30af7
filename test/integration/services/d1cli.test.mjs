// `cairn d1`: the same answers from a directory and from the server that has it.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { alone } from "../lib/differences.mjs";
import { cairn, serve, tempDir } from "../lib/server.mjs";
import { casesProject, run } from "./cases.mjs";

const CONFIG = `
[[d1_databases]]
binding = "DB"
database_name = "shop"
database_id = "shop-id"
migrations_dir = "changes"
[[d1_databases]]
binding = "COPY"
database_name = "copy"
`;
const CASES = `
  all(env, sql) { return env.DB.prepare(sql).all().then(({ results }) => results); },
  exec(env, sql) { return env.DB.exec(sql); },
`;
const FILES = {
  "changes/0001_users.sql": "-- Users; and their names\nCREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT NOT NULL);\nINSERT INTO users(name) VALUES ('a;b'), ('c''d');\n",
  "changes/0002_log.sql": "CREATE TABLE log(t TEXT);\nCREATE TRIGGER users_log AFTER INSERT ON users BEGIN INSERT INTO log VALUES ('new ' || new.name); SELECT 1; END;\n",
};

/** Runs `cairn d1 ...` on a project: {status, stdout, stderr}. */
function d1(dir, data, ...args) {
  return new Promise((resolve) => {
    execFile(cairn, ["d1", ...args, "--config", dir, "--data", data], { timeout: 60_000, maxBuffer: 64 << 20 }, (error, stdout, stderr) =>
      resolve({ status: error ? error.code : 0, stdout, stderr }));
  });
}

for (const online of [false, true]) {
  describe(`cairn d1 ${online ? "beside a server" : "on a directory"}`, online ? {} : alone("offline"), () => {
    const setup = async (t) => {
      const dir = casesProject(CONFIG, CASES, "", FILES);
      const data = tempDir();
      const server = online ? await serve(dir, { data, lanes: 2 }) : null;
      t.after(() => server?.stop());
      return { dir, data, server, d1: (...args) => d1(dir, data, ...args) };
    };
    /** What a worker sees, with a server for it if there is none. */
    const ask = async ({ dir, data, server }, name, ...args) => {
      const own = server ?? await serve(dir, { data });
      try {
        return await run(own, name, ...args);
      } finally {
        if (!server) await own.stop();
      }
    };

    test("D1-5 migrations: list, apply, create", async (t) => {
      const it = await setup(t);
      let answer = await it.d1("migrations", "list", "shop", "--local");
      assert.deepEqual([answer.status, answer.stdout], [0, "Migrations to be applied:\n0001_users.sql\n0002_log.sql\n"], answer.stderr);
      answer = await it.d1("migrations", "apply", "DB", "--remote", "-y");
      assert.deepEqual([answer.status, answer.stdout], [0, "applied 0001_users.sql\napplied 0002_log.sql\n"], answer.stderr);
      assert.equal((await it.d1("migrations", "list", "shop-id")).stdout, "No migrations to apply!\n");
      assert.equal((await it.d1("migrations", "apply", "shop")).stdout, "No migrations to apply!\n");
      // A third one fails: nothing of it stays, the ones before do.
      answer = await it.d1("migrations", "create", "shop", "add a column");
      assert.equal(answer.status, 0);
      const file = path.join(it.dir, "changes/0003_add_a_column.sql");
      assert.match(readFileSync(file, "utf8"), /^-- Migration number: 0003 \t 20\d\d-/);
      writeFileSync(file, "ALTER TABLE users ADD COLUMN age;\n\nINSERT INTO nope VALUES (1);\n");
      answer = await it.d1("migrations", "apply", "shop");
      assert.equal(answer.status, 1);
      assert.match(answer.stderr, /Migration 0003_add_a_column\.sql failed, nothing of it was applied: no such table: nope: SQLITE_ERROR \(line 3\)/);
      assert.deepEqual(await ask(it, "all", "SELECT name FROM d1_migrations ORDER BY id"), [{ name: "0001_users.sql" }, { name: "0002_log.sql" }]);
      assert.deepEqual(await ask(it, "all", "SELECT * FROM users"), [{ id: 1, name: "a;b" }, { id: 2, name: "c'd" }]);
    });

    test("D1-5 execute: rows, files, errors", async (t) => {
      const it = await setup(t);
      await it.d1("migrations", "apply", "shop");
      let answer = await it.d1("execute", "shop", "--command", "SELECT id, name FROM users; SELECT count(*) AS n FROM users");
      assert.equal(answer.status, 0, answer.stderr);
      assert.match(answer.stdout, /id +name\n.*1 +a;b\n2 +c'd\nn/s);
      answer = await it.d1("execute", "shop", "--json", "--command=SELECT 1 AS one, x'01' AS b");
      assert.deepEqual(JSON.parse(answer.stdout)[0].results, [{ one: 1, b: [1] }]);
      writeFileSync(path.join(it.dir, "more.sql"), "INSERT INTO users(name) VALUES ('x');\nINSERT INTO users(name) VALUES ('y');\n");
      answer = await it.d1("execute", "shop", "--file", path.join(it.dir, "more.sql"));
      assert.match(answer.stdout, /^executed 2 queries \(\d+ rows read, \d+ rows written\)\n$/);
      assert.deepEqual(await ask(it, "all", "SELECT count(*) AS n FROM log"), [{ n: 2 }]);
      answer = await it.d1("execute", "shop", "--command", "INSERT INTO users(name) VALUES ('z'); SELEC");
      assert.deepEqual([answer.status, answer.stdout], [1, ""]);
      assert.match(answer.stderr, /near "SELEC": syntax error.*\(line 1\)/);
      assert.deepEqual(await ask(it, "all", "SELECT count(*) AS n FROM users"), [{ n: 4 }]);
      assert.match((await it.d1("execute", "shop")).stderr, /One of --command SQL and --file FILE/);
      assert.match((await it.d1("execute", "nope", "--command", "SELECT 1")).stderr, /has no D1 database "nope"; it has shop, copy/);
      assert.equal((await it.d1("nonsense")).status, 2);
    });

    test("D1-5 what is exported can be imported", async (t) => {
      const it = await setup(t);
      await it.d1("migrations", "apply", "shop");
      const values = `CREATE TABLE v(a INTEGER PRIMARY KEY AUTOINCREMENT, t, r REAL, b BLOB, g AS (a * 2));
        INSERT INTO v(t, r, b) VALUES ('it''s' || char(10) || 'ü', 0.1, x'00ff'), ('a' || char(0) || 'b', 2.0, NULL), (9e999, -9e999, zeroblob(3)), (printf('%.*c', 150000, 'x'), 1e100, x'');
        CREATE INDEX v_t ON v(t); CREATE VIEW vv AS SELECT a FROM v; CREATE TABLE "odd ""name"("order", "select");
        INSERT INTO "odd ""name" VALUES (1, 'two');`;
      let answer = await it.d1("execute", "shop", "--command", values);
      assert.equal(answer.status, 0, answer.stderr);
      const file = path.join(it.dir, "dump.sql");
      answer = await it.d1("export", "shop", "--output", file);
      assert.equal(answer.status, 0, answer.stderr);
      answer = await it.d1("import", "copy", file);
      assert.equal(answer.status, 0, answer.stderr);
      const look = async (name) => (await it.d1("execute", name, "--json", "--command",
        `SELECT a, hex(t) AS t, typeof(t) AS tt, r, typeof(r) AS tr, hex(b) AS b, typeof(b) AS tb, g FROM v ORDER BY a;
         SELECT * FROM "odd ""name"; SELECT * FROM vv; SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name;
         SELECT * FROM sqlite_sequence ORDER BY name; SELECT * FROM users; SELECT name FROM d1_migrations`)).stdout;
      const rows = (text) => JSON.parse(text).map(({ results }) => results);
      assert.equal(rows(await look("shop"))[0].length, 4);
      assert.deepEqual(rows(await look("copy")), rows(await look("shop")));
      const part = async (...args) => (await it.d1("export", "shop", "--output", "-", ...args)).stdout;
      const schema = await part("--no-data");
      assert.match(schema, /CREATE TRIGGER users_log/);
      assert.doesNotMatch(schema, /INSERT INTO "/);
      const users = await part("--table", "users", "--no-schema");
      assert.equal(users, `PRAGMA defer_foreign_keys=TRUE;\nINSERT INTO "users" ("id","name") VALUES(1,'a;b');\nINSERT INTO "users" ("id","name") VALUES(2,'c''d');\n`);
      await it.d1("execute", "shop", "--command", "CREATE VIRTUAL TABLE words USING fts5(t)");
      assert.match((await it.d1("export", "shop", "--output", file)).stderr, /words is a virtual table/);
      assert.match((await it.d1("export", "shop")).stderr, /--output FILE/);
    });

    test("D1-7 time travel", async (t) => {
      const it = await setup(t);
      await it.d1("migrations", "apply", "shop");
      const { bookmark } = JSON.parse((await it.d1("time-travel", "info", "shop", "--json")).stdout);
      await ask(it, "exec", "DELETE FROM users");
      let answer = await it.d1("time-travel", "restore", "shop", "--bookmark", bookmark, "--json");
      assert.equal(answer.status, 0, answer.stderr);
      const { undo } = JSON.parse(answer.stdout);
      assert.deepEqual(await ask(it, "all", "SELECT count(*) AS n FROM users"), [{ n: 2 }]);
      answer = await it.d1("time-travel", "restore", "shop", `--bookmark=${undo}`);
      assert.match(answer.stdout, /^restored; this bookmark undoes it: /);
      assert.deepEqual(await ask(it, "all", "SELECT count(*) AS n FROM users"), [{ n: 0 }]);
      assert.match((await it.d1("time-travel", "info", "shop", "--timestamp", new Date().toISOString())).stdout, /^the bookmark is [0-9a-f-]+\n/);
      assert.match((await it.d1("time-travel", "restore", "shop")).stderr, /--bookmark B or --timestamp T/);
      assert.match((await it.d1("time-travel", "restore", "shop", "--bookmark", "nonsense")).stderr, /bookmark/);
      assert.match((await it.d1("time-travel", "info", "shop", "--timestamp", "2999-01-01T00:00:00Z")).stderr, /^cairn: ./);
      assert.match((await it.d1("time-travel", "info", "shop", "--timestamp", "soon")).stderr, /"soon" is no time/);
    });

    test("D1-7 info", async (t) => {
      const it = await setup(t);
      await it.d1("migrations", "apply", "shop");
      const info = JSON.parse((await it.d1("info", "shop")).stdout);
      assert.equal(info.namespace, "$d1/shop-id");
      assert.ok(info.tables.some(({ name, rows }) => name === "users" && rows === 2));
    });
  });
}

test("D1-5 a long import beside a server neither stops it nor is seen half", async (t) => {
  const dir = casesProject(CONFIG, CASES, "", FILES);
  const server = await serve(dir);
  t.after(() => server.stop());
  await run(server, "exec", "CREATE TABLE big(a INTEGER PRIMARY KEY, b)");
  const file = path.join(dir, "big.sql");
  const lines = [];
  for (let i = 0; i < 60_000; i++) lines.push(`INSERT INTO big VALUES (${i}, 'value number ${i}');`);
  writeFileSync(file, lines.join("\n"));
  let done = false;
  const importing = d1(dir, server.data, "import", "shop", file).then((answer) => { done = true; return answer; });
  while (!done) assert.ok([0, 60_000].includes((await run(server, "all", "SELECT count(*) AS n FROM big"))[0].n));
  const answer = await importing;
  assert.deepEqual([answer.status, answer.stderr], [0, ""]);
  assert.match(answer.stdout, /^executed 60000 queries/);
  assert.deepEqual(await run(server, "all", "SELECT count(*) AS n FROM big"), [{ n: 60_000 }]);
});
