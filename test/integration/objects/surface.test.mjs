// What a program can see of Durable Objects and RPC, line by line of the checklist; every test with
// one lane and with two.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { project, serve, tempDir } from "../lib/server.mjs";
import { objects } from "../lib/toml.mjs";

const worker = readFileSync(new URL("surface.js", import.meta.url), "utf8");
const config = (limits = "") => `name = "surface"
main = "index.js"
compatibility_date = "2026-04-21"
${limits}
[vars]
NOTE = "a note"
${objects({ BOX: "Box", BROKEN: "Broken", OLD: "Old" })}`;
const dir = project({ "wrangler.toml": config(), "index.js": worker });
// Only for what is about limits: whatever else is asked of such a server comes too late on a busy machine.
const limits = (idle) => `[limits]\ncpu_ms = 500\n[cairn.limits]\nobject_idle_ms = ${idle}\nobject_block_ms = 2000`;
const strict = project({ "wrangler.toml": config(limits(200)), "index.js": worker });

for (const lanes of [1, 2]) {
  describe(`with ${lanes} lane${lanes > 1 ? "s" : ""}`, () => {
    let server, limited;
    before(async () => { [server, limited] = await Promise.all([dir, strict].map((project) => serve(project, { lanes, data: tempDir() }))); });
    after(() => Promise.all([server, limited].map((each) => each?.stop())));

    let unique = 0;
    const fresh = () => `o${++unique}`;
    const callOf = async (server, name, method, ...args) => (await server.fetch(`/object/${name}/${method}`, { method: "POST", body: JSON.stringify(args) })).json();
    const call = (...args) => callOf(server, ...args);
    const callLimited = (...args) => callOf(limited, ...args);
    const script = async (name, argument = fresh()) => (await server.fetch(`/script/${name}/${argument}`)).json();

    test("DO-NS-4 DO-NS-5 DO-NS-6 DO-NS-7 DO-NS-8 DO-ST-1: namespaces and stubs", async () => {
      assert.deepEqual(await script("namespaces"), [true, "constructor failed", "eu", "eu", "TypeError", "TypeError", true, null, "n", "TypeError"]);
    });
    test("DO-ID-2: long names route but are not kept; an id from a string has none until its object knows it", async () => {
      assert.deepEqual(await script("longName"), [null, null, null]);
    });
    test("DO-CL-1 DO-CL-2: classes without extends, state.storage, relative URLs", async () => {
      const [first, second, third, rpc, other] = await script("legacy");
      assert.deepEqual([first, second, third], ["/add 1 old a note", "/add 2 old a note", "/read 2 old a note"]);
      assert.match(rpc, /does not support RPC/);
      assert.equal(other, "/read 0 - a note");
    });
    test("DO-CL-1: a constructor that throws fails the call, and the next one tries again", async () => {
      for (let i = 0; i < 2; i++) {
        const error = await script("brokenConstructor");
        assert.deepEqual([error.name, error.message, error.remote], ["RangeError", "constructor failed", true]);
      }
    });
    test("DO-CTX-1: id, storage, exports, props, env", async () => {
      assert.deepEqual(await call(fresh(), "ctxMembers"), ["object", "object", "function", {}, "a note"]);
    });
    test("DO-CTX-2: waitUntil() does not delay the answer, takes anything, and goes on", async () => {
      const name = fresh();
      assert.equal(await call(name, "waitsUntil"), "at once");
      assert.equal(await call(name, "waited"), true);
    });
    test("DO-CTX-3: what other events have started waits while blockConcurrencyWhile() runs", async () => {
      for (const method of ["slowTimer", "slowCall", "slowFetch"]) {
        assert.deepEqual(await script("deferred", method), ["enter", "leave", method.slice(4).toLowerCase()], method);
      }
    });
    test("DO-CTX-3: sections nest, and run side by side", async () => {
      assert.equal(await call(fresh(), "nestedSections"), 2);
      assert.deepEqual(await call(fresh(), "parallelSections"), [1, 2, 3]);
    });
    test("DO-CTX-3 DO-ERR-1: a section that throws, or lasts too long, resets the object", async () => {
      const name = fresh();
      const { started } = await call(name, "whoami");
      const { error } = await call(name, "failingSection");
      assert.deepEqual([error.message, error.reset, error.overloaded], ["section failed", true, false]);
      assert.notEqual((await call(name, "whoami")).started, started);
      // Whichever arrives first: once the section has begun, the next call waits for its end.
      const after = await callLimited(name, "whoami");
      let over = false, waiting;
      const section = callLimited(name, "endlessSection").finally(() => { over = true; });
      do waiting = await callLimited(name, "whoami");
      while (!waiting.error && !over);
      const late = await section;
      assert.deepEqual([late.error.reset, late.error.overloaded], [true, true]);
      assert.match(late.error.message, /blockConcurrencyWhile\(\).*waited for too long/);
      assert.ok(waiting.error?.overloaded);
      assert.notEqual((await callLimited(name, "whoami")).started, after.started);
    });
    test("DO-CTX-4: abort() cannot be caught; what was not yet committed is lost, the rest stays", async () => {
      const name = fresh();
      const { error } = await call(name, "catchesAbort");
      assert.deepEqual(error, { name: "Error", message: "gone", remote: false, retryable: false, overloaded: false, reset: true });
      assert.equal(await call(name, "caught"), false);
      assert.equal(await call(name, "get", "lost"), null);
      assert.match((await call(name, "abortAfterWait")).error.message, /abort\(\)/);
      assert.deepEqual([await call(name, "get", "first"), await call(name, "get", "second")], [1, null]);
      await server.until(/abort\(\) was called: gone/);
    });
    test("DO-KV-1: multi-key calls, 128 keys at most, all or nothing", async () => {
      assert.deepEqual(await call(fresh(), "manyKeys", 128), ["ok", "ok", "ok"]);
      assert.deepEqual(await call(fresh(), "manyKeys", 129), ["RangeError", "RangeError", "RangeError"]);
      assert.deepEqual(await call(fresh(), "putIsWhole"), ["DataCloneError", null]);
    });
    test("DO-KV-2: allowConcurrency, allowUnconfirmed, noCache", async () => {
      assert.deepEqual(await call(fresh(), "kvOptions"), [[1, 2], 3, [true, 1], ["c"]]);
    });
    test("DO-KV-3: list() in the order of UTF-8 bytes, with every option", async () => {
      assert.deepEqual(await call(fresh(), "byteOrder"), ["5a", "61", "e9", "ffff", "10000"]);
      assert.deepEqual(await call(fresh(), "ranges"), ["ab,abc", "ab,abc", "abc,b", "abc,ab", "abc"]);
    });
    test("DO-KV-5: the synchronous kv; list() is lazy", async () => {
      assert.deepEqual(await call(fresh(), "syncKv"), [5, null, true, false, "k0010", 10, 520, "k0598"]);
    });
    test("DO-KV-8: deleteAll() takes the alarm too", async () => {
      assert.deepEqual(await call(fresh(), "clearAll"), [null, null]);
    });
    test("DO-SQL-2: the whole cursor", async () => {
      assert.deepEqual(await call(fresh(), "cursorSurface"), {
        written: 6, columns: ["id", "v"], first: { done: false, value: { id: 1, v: "a" } }, second: [2, "b"], rest: [[3, "c"]], done: true, grew: true,
        one: { x: 5 }, none: "Expected exactly one result from SQL query, but got no results.", two: "Expected exactly one result from SQL query, but got multiple results.",
      });
    });
    test("DO-SQL-5: databaseSize", async () => {
      assert.deepEqual(await call(fresh(), "databaseSize"), [true, true]);
    });
    test("DO-SQL-6: limits of statements", async () => {
      const many = (n, text, glue = ", ") => Array.from({ length: n }, (_, i) => text.replace("#", i)).join(glue);
      const errors = await call(fresh(), "sqlErrors", [
        `CREATE TABLE wide(${many(101, "c#")})`, `SELECT '${"x".repeat(100_001)}'`, `SELECT ${many(101, "?")}`, "SELECT zeroblob(5000000)",
        `SELECT max(${many(130, "#")})`, `SELECT 'a' LIKE '${"a".repeat(51)}'`, many(6, "SELECT #", " UNION ALL "), `SELECT ${"(".repeat(102)}1${")".repeat(102)}`, `SELECT ${many(110, "#", " + ")}`,
      ]);
      errors.forEach((error, i) => { if (i !== 7) assert.ok(error, `statement ${i}`); });
      const allowed = await call(fresh(), "sqlErrors", [`CREATE TABLE wide(${many(100, "c#")})`, `SELECT max(${many(32, "#")})`, `SELECT 'a' LIKE '${"a".repeat(50)}'`, many(5, "SELECT #", " UNION ALL ")]);
      assert.deepEqual(allowed, [null, null, null, null]);
    });
    test("DO-SQL-7: the pragmas that are allowed", async () => {
      const errors = await call(fresh(), "sqlErrors", ["CREATE TABLE t(id INTEGER PRIMARY KEY, a REFERENCES t)", "PRAGMA table_info(t)", "PRAGMA table_list", "PRAGMA table_xinfo(t)", "PRAGMA foreign_key_list(t)", "PRAGMA foreign_key_check", "PRAGMA defer_foreign_keys = on", "PRAGMA case_sensitive_like = on", "PRAGMA quick_check", "PRAGMA optimize", "PRAGMA page_size", "PRAGMA data_version"]);
      assert.deepEqual(errors.filter((e) => e !== null), []);
      for (const error of await call(fresh(), "sqlErrors", ["PRAGMA synchronous = off", "PRAGMA page_size = 512", "PRAGMA writable_schema = on", "PRAGMA user_version = 5", "SELECT load_extension('x')"])) assert.ok(error);
      assert.deepEqual(await call(fresh(), "sql", "PRAGMA foreign_keys"), [{ foreign_keys: 1 }]);
    });
    test("DO-SQL-8: FTS5, JSON, jsonb, math, R*Tree, UPDATE with LIMIT", async () => {
      const name = fresh();
      await call(name, "sql", "CREATE VIRTUAL TABLE f USING fts5(body); INSERT INTO f VALUES ('the quick fox'), ('lazy dog')");
      assert.deepEqual(await call(name, "sql", "SELECT body FROM f WHERE f MATCH 'quick'"), [{ body: "the quick fox" }]);
      await call(name, "sql", "CREATE VIRTUAL TABLE fv USING fts5vocab('f', 'row')");
      assert.equal((await call(name, "sql", "SELECT count(*) AS n FROM fv"))[0].n, 5);
      assert.deepEqual(await call(name, "sql", `SELECT json_extract('{"a":[1,2]}', '$.a[1]') AS j, json(jsonb('[1]')) AS b, round(sqrt(2), 3) AS m, string_agg(value, '-') AS s FROM json_each('["x","y"]')`), [{ j: 2, b: "[1]", m: 1.414, s: "x-y" }]);
      await call(name, "sql", "CREATE VIRTUAL TABLE r USING rtree(id, x0, x1); INSERT INTO r VALUES (1, 0, 10), (2, 20, 30)");
      assert.deepEqual(await call(name, "sql", "SELECT id FROM r WHERE x0 > 15"), [{ id: 2 }]);
      await call(name, "sql", "CREATE TABLE u(v); INSERT INTO u VALUES (1), (1), (1); UPDATE u SET v = 2 ORDER BY rowid LIMIT 1; DELETE FROM u WHERE v = 1 LIMIT 1");
      assert.deepEqual(await call(name, "sql", "SELECT v FROM u"), [{ v: 2 }, { v: 1 }]);
    });
    test("DO-SQL-9 DO-SQL-10: cursors across await, the same text twice, cursors that are given up", async () => {
      assert.deepEqual(await call(fresh(), "cursorAcrossAwait"), [true, "object"]);
      assert.deepEqual(await call(fresh(), "sameTextTwice"), [1, 1, 2, [2, 3], [3]]);
      const [ended, rows] = await call(fresh(), "manyCursors");
      assert.match(ended, /cursor was ended/);
      assert.equal(rows, 3);
    });
    test("DO-TX-6 DO-LC-5: a statement without end resets the object and not the server", async () => {
      const name = fresh();
      await callLimited(name, "put", "k", 5);
      const { error } = await callLimited(name, "endlessSql");
      assert.match(error.message, /CPU time limit/);
      assert.ok(error.reset);
      assert.equal(await callLimited(name, "get", "k"), 5);
    });
    test("DO-TX-2: transactionSync nests, and takes an async callback", async () => {
      assert.deepEqual(await call(fresh(), "nestedSync"), ["result", 1, null, null, 1]);
    });
    test("DO-TX-3: transactions nest, run side by side, and are over after rollback()", async () => {
      assert.deepEqual(await call(fresh(), "nestedTransactions"), [1, null, 1, 0]);
      assert.equal(await call(fresh(), "parallelTransactions"), 3);
      assert.deepEqual(await call(fresh(), "rolledBack"), [null, "Error"]);
    });
    test("DO-AL-1: set, get, delete; rolled back with the rest", async () => {
      assert.deepEqual(await call(fresh(), "alarmRoundTrip"), [true, null, "TypeError"]);
      assert.equal(await call(fresh(), "alarmRolledBack"), null);
    });
    const runs = async (name, count) => {
      let seen;
      await server.untilTrue(async () => (seen = await call(name, "runs")).length >= count, `${count} alarms`);
      return seen;
    };
    test("DO-AL-2 DO-AL-5 DO-AL-9: a past time fires at once, none fires early", async () => {
      const name = fresh();
      await call(name, "plan", "run", -5000);
      const [{ isRetry, retryCount, scheduledTime, at }] = await runs(name, 1);
      assert.deepEqual([isRetry, retryCount, scheduledTime <= at], [false, 0, true]);
      const later = fresh();
      const time = await call(later, "plan", "run", 80);
      const [run] = await runs(later, 1);
      assert.ok(run.at >= run.scheduledTime && run.scheduledTime <= time, JSON.stringify(run));
    });
    test("DO-AL-6: setAlarm() in the handler replaces the retry", async () => {
      const name = fresh();
      await call(name, "plan", "replace");
      const [first, second] = await runs(name, 2);
      assert.deepEqual([first.isRetry, second.isRetry, second.retryCount], [false, false, 0]);
    });
    test("DO-AL-7: never two at once, though the next is due already; other events come in between", async () => {
      const name = fresh();
      await call(name, "plan", "slow");
      const seen = await runs(name, 3);
      assert.ok(seen.every((run) => !run.overlapping), JSON.stringify(seen));
    });
    test("DO-CTX-4: abort() in an alarm: tried again unless retryAlarm is false", async () => {
      const again = fresh(), once = fresh();
      await call(once, "plan", "abort without retry");
      await call(again, "plan", "abort");
      assert.equal((await runs(again, 2)).length >= 2, true); // after about 2 s
      assert.equal((await call(once, "runs")).length, 1);
      await call(again, "plan", "run", 3_600_000);
    });
    test("DO-LC-2: an idle object leaves memory, whether or not an alarm is pending", async () => {
      const name = fresh();
      await callLimited(name, "plan", "run", 3_600_000);
      const { started } = await callLimited(name, "whoami");
      await limited.untilTrue(async () => {
        await new Promise((resolve) => setTimeout(resolve, 600)); // calls that come too often would keep it
        return (await callLimited(name, "whoami")).started !== started;
      }, "the eviction");
      assert.equal((await callLimited(name, "whoami")).name, name);
    });
    test("DO-LC-7 DO-ERR-1: past the bound of waiting calls they are refused as overloaded; over HTTP 503", async () => {
      const [count, flags, message] = await script("overload");
      assert.deepEqual([count, flags], [50, true]);
      assert.match(message, /overloaded/);
      const response = await server.fetch(`/script/overloadUncaught/${fresh()}`);
      assert.deepEqual([response.status, response.headers.get("retry-after")], [503, "1"]);
    });
    test("RPC-1: WorkflowEntrypoint can be imported", async () => {
      assert.equal(await script("workflowClass"), "function");
    });
    test("RPC-2: values of every kind, and what is refused", async () => {
      assert.deepEqual(await script("values"), [true, true, 3, "gi", true, true, true, ["PUT", "https://x/p", "body", 202, "text", "y"],
        ["DataCloneError", "DataCloneError", "DataCloneError", "DataCloneError"]]);
      assert.deepEqual(await script("writable"), [true, "written there"]);
    });
    test("RPC-3: instance properties, private methods and reserved names are out of reach; what every object has is the stub's own", async () => {
      assert.deepEqual(await script("hidden"), [...Array(6).fill("TypeError"), '"[object DurableObject]"', "false", "TypeError", "TypeError"]);
    });
    test("RPC-4: pipelining through properties; 64 names at most", async () => {
      assert.deepEqual(await script("deep"), [1, 1, "TypeError"]);
    });
    test("RPC-5: 32 MiB, arguments and results", async () => {
      assert.deepEqual(await script("sizes"), [20 << 20, "RangeError", "RangeError", 10]);
    });
    test("RPC-6: parameters end with the call unless dup()ed, also when passed on", async () => {
      const broken = "RPC stub used after being disposed.";
      assert.deepEqual(await script("references"), [[10, broken, 10, 20, 20, broken, 10, broken], [1, 1, 2, 2, 1]]);
    });
    test("RPC-6: disposing of results, of the stubs in them, of one of two", async () => {
      assert.deepEqual(await script("disposal"), [1, 3, 1, "RPC stub used after being disposed.", 4]);
    });
    test("RPC-7 RPC-8: stubs cross lanes; what a callback throws comes back", async () => {
      assert.deepEqual(await script("spread"), [1, 2, 3, 4, 5, 6, 7, 8]);
      const [thrown, value, refused] = await script("callbacks");
      assert.deepEqual([thrown.name, thrown.message, thrown.remote, value, refused], ["RangeError", "from the worker", true, { value: 5 }, "DataCloneError"]);
    });
    test("RPC-9: an AbortSignal as an argument", async () => {
      assert.deepEqual(await script("signals"), [[true, "enough"], [true, "before"]]);
    });
    test("DO-ERR-2: errors of every kind cross", async () => {
      assert.deepEqual(await script("errors"), [["MyError", "mine", { a: [1] }, true], ["AggregateError", "one", "why"], [true, "just text", true], ["NotFoundError", "domain"]]);
    });
  });
}

test("DO-LC-3: an object that only an interval keeps leaves memory too", async () => {
  const server = await serve(project({ "wrangler.toml": config(limits(50)), "index.js": worker }));
  try {
    const call = async (method) => (await server.fetch(`/object/t/${method}`)).json();
    const started = await call("keepsTimer");
    await server.untilTrue(async () => {
      await new Promise((resolve) => setTimeout(resolve, 700));
      return (await call("whoami")).started !== started;
    }, "the eviction");
  } finally {
    await server.stop();
  }
});

test("DO-LC-4 DO-ERR-1: new code resets objects: calls under way fail as reset and retryable, storage is closed to them", async () => {
  const source = (version) => `import { DurableObject } from "cloudflare:workers";
export class Box extends DurableObject {
  async hang() { this.ctx.storage.kv.put("before", 1); await new Promise((r) => setTimeout(r, 60_000)); }
  read() { return ["${version}", this.ctx.storage.kv.get("before") ?? null]; }
  async clear() { await this.ctx.storage.setAlarm(Date.now() + 3_600_000); await this.ctx.storage.deleteAll(); return (await this.ctx.storage.getAlarm()) !== null; }
  alarm() {}
}
export default { async fetch(request, env) {
  const box = env.BOX.getByName("b");
  if (request.url.endsWith("/hang")) try { await box.hang(); } catch (e) { return Response.json([e.message, e.durableObjectReset, e.retryable, e.remote ?? false]); }
  if (request.url.endsWith("/clear")) return Response.json(await box.clear());
  return Response.json(await box.read());
} };`;
  const reloaded = project({
    "wrangler.toml": 'name = "r"\nmain = "index.js"\ncompatibility_date = "2025-01-01"\n[[durable_objects.bindings]]\nname = "BOX"\nclass_name = "Box"\n[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Box"]\n',
    "index.js": source("one"),
  });
  const server = await serve(reloaded);
  try {
    const hanging = server.fetch("/hang").then((r) => r.json());
    await server.untilTrue(async () => (await (await server.fetch("/")).json())[1] === 1, "the first write");
    writeFileSync(`${reloaded}/index.js`, source("two"));
    server.signal("SIGHUP");
    assert.deepEqual(await hanging, ["Durable Object reset because its code was updated.", true, true, false]);
    assert.deepEqual(await (await server.fetch("/")).json(), ["two", 1]);
    assert.equal(await (await server.fetch("/clear")).json(), true, "DO-KV-8: before 2026-02-24 deleteAll() leaves the alarm");
  } finally {
    await server.stop();
  }
});
