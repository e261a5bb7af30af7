// Durable Objects from outside: every test with one lane and with two.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { project, serve, tempDir } from "../lib/server.mjs";
import { objects } from "../lib/toml.mjs";

const worker = readFileSync(new URL("worker.js", import.meta.url), "utf8");
const config = `name = "objects"
main = "index.js"
compatibility_date = "2026-03-01"
[limits]
cpu_ms = 300
${objects({ BOX: "Box", LEGACY: "Legacy" })}`;
const dir = project({ "wrangler.toml": config, "index.js": worker });

for (const lanes of [1, 2]) {
  describe(`with ${lanes} lane${lanes > 1 ? "s" : ""}`, () => {
    const data = tempDir();
    let server;
    before(async () => { server = await serve(dir, { lanes, data }); });
    after(() => server.stop());

    let unique = 0;
    const fresh = () => `o${++unique}`;
    const call = async (name, method, ...args) => {
      const response = await server.fetch(`/${name}/${method}`, { method: "POST", body: JSON.stringify(args) });
      return response.json();
    };

    test("DO-NS-1 DO-NS-2 DO-NS-3 DO-NS-6 DO-ID-1: ids", async () => {
      assert.deepEqual(await call("x", "ids"), [true, "n1", null, 64, "eu", false, ["TypeError", "TypeError", "TypeError"], true]);
    });
    test("DO-ID-2: ctx.id.name is set for names", async () => {
      const { name, hex } = await call("some name", "whoami");
      assert.equal(name, "some name");
      assert.match(hex, /^[0-9a-f]{64}$/);
    });
    test("DO-LC-1: one instance, however many call at once", async () => {
      const name = fresh();
      const ids = await Promise.all(Array.from({ length: 50 }, () => call(name, "whoami")));
      assert.equal(new Set(ids.map((i) => i.started)).size, 1);
    });
    test("an argument is read once, wherever the object lives: nothing is copied for a call that then goes by bytes", async () => {
      assert.deepEqual(await call(fresh(), "argumentReads", 16), Array(16).fill(1));
    });
    test("DO-KV-1 DO-KV-3: get, put, list, delete of many keys", async () => {
      assert.deepEqual(await call(fresh(), "many"), {
        list: ["a", "b", "c", "\u00e9"], range: [["b", 2], ["a", 1]], after: ["b"], got: ["a", "c"], deleted: 1, kv: [["b", 2]],
      });
    });
    test("DO-KV-4: values by structured clone, limits with their errors", async () => {
      assert.deepEqual(await call(fresh(), "kinds"), [1, true, 5, [1, 2], "100000000000000000000", true, "g", true]);
      const errors = await call(fresh(), "limits");
      assert.equal(errors.filter((e) => e === null).length, 0, JSON.stringify(errors));
      assert.match(errors[1], /DataCloneError/);
    });
    test("DO-SQL-1 DO-SQL-2 DO-SQL-3: statements, cursors, values", async () => {
      const name = fresh();
      const { rows, names } = await call(name, "sql", "INSERT INTO t(v) VALUES(?) RETURNING id, v", "x");
      assert.deepEqual(rows, [{ id: 1, v: "x" }]);
      assert.deepEqual(names, ["id", "v"]);
      assert.deepEqual(await call(name, "sqlKinds"), [null, 1.5, "text", true, [7, 8], 9007199254740991, [[1, 2]], true]);
      assert.deepEqual(await call(fresh(), "cursorAcross"), [1, [2, 3, 4, 5], "function", true]);
    });
    test("DO-SQL-4 DO-SQL-7 DO-SQL-11 DO-KV-6: what SQL may not do", async () => {
      const name = fresh();
      await call(name, "put", "k", 1);
      for (const query of ["BEGIN", "COMMIT", "SAVEPOINT a", "ATTACH ':memory:' AS x", "PRAGMA journal_mode", "SELECT * FROM _cf_KV", "DROP TABLE _CF_kv", "CREATE TABLE _cf_mine(a)"]) {
        const { error } = await call(name, "sql", query);
        assert.ok(error, query);
      }
      assert.match((await call(name, "sql", "INSERT INTO t(id) VALUES(1), (1)")).error, /SQLITE_CONSTRAINT/);
      assert.match((await call(name, "sql", "SELECT ?")).error, /parameter/);
      assert.equal(await call(name, "get", "k"), 1);
    });
    test("DO-TX-1: what a turn wrote is committed as a whole, also when it throws afterwards", async () => {
      const name = fresh();
      assert.equal(await call(name, "atomic", false), "ok");
      assert.equal(await call(name, "get", "atomic"), 1);
      assert.equal((await call(name, "atomic", true)).error, "after writing");
      assert.equal((await call(name, "sql", "SELECT count(*) AS n FROM t")).rows[0].n, 2);
    });
    test("DO-TX-2: transactionSync rolls back what it wrote", async () => {
      assert.deepEqual(await call(fresh(), "txSync", true), [1, null, 0]);
      assert.deepEqual(await call(fresh(), "txSync", false), [1, 1, 1]);
    });
    test("DO-TX-3: transaction commits, rolls back, fails", async () => {
      const name = fresh();
      assert.equal(await call(name, "tx", "keep"), "keep");
      assert.equal(await call(name, "tx", "rollback"), "keep");
      assert.equal(await call(name, "tx", "throw"), "keep");
    });
    test("DO-TX-4: no event comes between a read and a write of storage", async () => {
      const name = fresh();
      const results = await Promise.all(Array.from({ length: 40 }, () => call(name, "slowIncrement")));
      assert.deepEqual(results.sort((a, b) => a - b), Array.from({ length: 40 }, (_, i) => i + 1));
    });
    test("DO-CTX-3: blockConcurrencyWhile lets no other event in", async () => {
      const name = fresh();
      const results = await Promise.all(Array.from({ length: 8 }, () => call(name, "lockedIncrement", 5)));
      assert.deepEqual(results.sort((a, b) => a - b), [1, 2, 3, 4, 5, 6, 7, 8]);
    });
    test("DO-KV-7: sync() resolves when it is durable", async () => {
      assert.equal(await call(fresh(), "synced"), "durable");
    });
    test("DO-KV-8: deleteAll", async () => {
      const name = fresh();
      await call(name, "put", "a", 1);
      assert.equal(await call(name, "deleteAll"), 0);
      assert.equal(await call(name, "get", "a"), null);
    });
    test("DO-ST-1: fetch on a stub, absolute and relative, streamed, throwing", async () => {
      assert.deepEqual(await call(fresh(), "fetches"), [201, "object",
        { method: "POST", path: "/relative", host: "object", body: "data", header: "h" }, "example.com", 64 * 65536, "fetch failed inside"]);
    });
    test("DO-CL-1: a class without extends", async () => {
      const [a, b] = await call("x", "legacy");
      assert.match(a, /^\/a \d+$/);
      assert.match(b, /^\/b \d+$/);
    });
    test("DO-ST-2: calls on one stub arrive in order", async () => {
      assert.deepEqual(await call(fresh(), "order"), Array.from({ length: 20 }, (_, i) => i + 1));
    });
    test("DO-ST-2 RPC-8: stubs that have seen their object reset stay broken, and those it gave out; a fresh one works", async () => {
      const exploded = ["exploded", true];
      const gone = ["The execution context which hosts this callback is no longer running.", false];
      const [hang, explode, ping, later, get, fetched, same, put, value, still] = await call(fresh(), "broken");
      assert.deepEqual([hang, explode, ping, later, get, fetched], [exploded, exploded, exploded, gone, exploded, exploded]);
      assert.deepEqual([same, put, value, still], [false, "ok", 5, exploded]);
    });
    test("DO-ST-1: what a stub shows of itself, and properties that a script gives it", async () => {
      const answer = await call(fresh(), "shown");
      assert.ok(Array.isArray(answer), JSON.stringify(answer));
      const [before, own, shared, named, cloned, promise, text] = answer;
      assert.deepEqual(before, ["object", ["name", "id"], "[object DurableObject]", true, false, false, true]);
      assert.deepEqual(own, [["name", "id", "extra"], "own", 1, true, "function", ["name", "id"]]);
      assert.deepEqual([shared, named, cloned, promise, text], [false, true, "DataCloneError", "[object JsRpcPromise]", "[object DurableObject]"]);
    });
    test("DO-KV-5: a new list of ctx.storage.kv ends the one before it; arguments are checked at once", async () => {
      const ended = "kv.list() iterator was invalidated because a new call to kv.list() was started. Only one kv.list() iterator can exist at a time.";
      assert.deepEqual(await call(fresh(), "kvLists"), [2, ended, ended, 1, true, "list() cannot be called with both start and startAfter values.", "List limit must be positive."]);
    });
    test("DO-SQL-4: errors of SQL name the place in the statement, the extended code, the reason of a refusal", async () => {
      const [, , syntax, column, none, unique, missing, reserved, denied, pragma] = await call(fresh(), "sqlTexts", "CREATE TABLE u(x UNIQUE, y NOT NULL)", "INSERT INTO u VALUES (1, 1)",
        "SELECT -;", "SELECT nope FROM u", "SELECT * FROM nope", "INSERT INTO u VALUES (1, 2)", "INSERT INTO u VALUES (3, NULL)", "SELECT * FROM _cf_KV", "ATTACH 'x' AS y", "PRAGMA page_size = 8192");
      assert.deepEqual([syntax, column, none, unique, missing, reserved], [
        'near ";": syntax error at offset 8: SQLITE_ERROR', "no such column: nope at offset 7: SQLITE_ERROR", "no such table: nope: SQLITE_ERROR",
        "UNIQUE constraint failed: u.x: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)", "NOT NULL constraint failed: u.y: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_NOTNULL)",
        "access to _cf_KV.key is prohibited: SQLITE_AUTH"]);
      assert.match(denied, /^not authorized: SQLITE_AUTH/);
      assert.match(pragma, /^not authorized: SQLITE_AUTH/);
    });
    test("DO-ST-3: a stub can be sent", async () => {
      assert.equal(await call(fresh(), "stubArg"), 1);
    });
    test("RPC-2: values of every kind, callbacks, targets, streams", async () => {
      assert.deepEqual(await call(fresh(), "rpcKinds"), [2, true, 7, "5", 1, true]);
      assert.deepEqual(await call(fresh(), "callbacks"), [20, 41]);
      assert.deepEqual(await call(fresh(), "targets"), [1, 2, 2]);
      assert.deepEqual(await call(fresh(), "streams"), ["streamed text", "from the worker"]);
    });
    test("RPC-3: what cannot be called or sent", async () => {
      assert.deepEqual(await call(fresh(), "refused"), ["DataCloneError", "TypeError", "TypeError", "DataCloneError"]);
    });
    test("RPC-2: values are copies, however near the object is; what cannot be read rejects the call", async () => {
      assert.deepEqual(await call(fresh(), "copies"), [11, 3, true, ["SyntaxError: no argument", "RangeError: no result"], "detached", 3, true]);
    });
    test("RPC-4: pipelining", async () => {
      assert.deepEqual(await call(fresh(), "pipelining"), [1, 1, 42, "v1"]);
    });
    test("RPC-6: disposing of a stub disposes of its target", async () => {
      assert.equal(await call(fresh(), "dispose"), true);
    });
    test("DO-ERR-1 DO-ERR-2: errors keep type, message and properties and are marked remote", async () => {
      assert.deepEqual(await call(fresh(), "errors"), [true, "TypeError", "thrown inside", 42, true, false]);
    });
    test("DO-CTX-4: abort resets the object; what the turn wrote is not kept", async () => {
      assert.deepEqual(await call(fresh(), "aborted"), ["because", true, false, false, null]);
    });
    test("DO-LC-5: the CPU limit resets the object and not the server", async () => {
      const name = fresh();
      await call(name, "put", "k", 5);
      const { error } = await call(name, "spin");
      assert.match(error, /CPU/);
      assert.equal(await call(name, "get", "k"), 5);
    });
    test("DO-AL-1 DO-AL-2 DO-AL-5: an alarm runs once, sees no alarm, knows its name", async () => {
      const name = fresh();
      assert.equal(await call(name, "setAlarm", 20), true);
      let state;
      do state = await call(name, "runs"); while (state.runs.length === 0);
      assert.deepEqual(state, { runs: [{ retry: 0, inside: null, name }], alarm: null });
    });
    test("storage, names and overdue alarms are there after a restart", async () => {
      const name = fresh();
      await call(name, "put", "kept", { deep: [1] });
      await call(name, "setAlarm", 300);
      await server.stop();
      server = await serve(dir, { lanes, data });
      assert.deepEqual(await call(name, "get", "kept"), { deep: [1] });
      let state;
      do state = await call(name, "runs"); while (state.runs.length === 0);
      assert.equal(state.runs[0].name, name);
    });
    test("kill -9: every acknowledged write is there", async () => {
      const names = Array.from({ length: 10 }, fresh);
      const acknowledged = new Map(names.map((n) => [n, 0]));
      let killed = false;
      const clients = names.map(async (name) => {
        while (!killed) {
          try {
            acknowledged.set(name, await call(name, "slowIncrement"));
          } catch {}
          if (acknowledged.get(names[0]) >= 30 && !killed) { killed = true; server.signal("SIGKILL"); }
        }
      });
      await Promise.all(clients);
      await server.exited;
      server = await serve(dir, { lanes, data });
      for (const [name, n] of acknowledged) {
        const now = await call(name, "get", "n");
        assert.ok(now >= n && now <= n + 1, `${name}: acknowledged ${n}, found ${now}`);
      }
    });
  });
}
