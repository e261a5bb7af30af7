// Commands on a data directory print the same whether a server runs on it or not, and a live object
// is handled as if the operation were one more of its events, or ended first.
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { serve, tempDir } from "../lib/server.mjs";
import { ask, call, command, dir, objectPath } from "./lib.mjs";

const ns = "app/Ledger";

describe("the same answers from a server and from a directory", () => {
  const data = tempDir();
  let server;
  const online = {}, offline = {};
  const steps = {
    list: () => command(data, "objects", "list"),
    listOne: () => command(data, "objects", "list", ns, "--json"),
    listPrefix: () => command(data, "objects", "list", ns, "--prefix", "a b"),
    listNothing: () => command(data, "objects", "list", "app/None"),
    sql: () => command(data, "objects", "sql", ns, "alice", "SELECT id, text FROM entry; SELECT 1.5 AS x, NULL AS y, 'a\tb' AS z, x'01ff' AS b"),
    sqlJson: () => command(data, "objects", "sql", ns, "alice", "SELECT id, text FROM entry", "--json"),
    sqlWrong: () => command(data, "objects", "sql", ns, "alice", "SELECT * FROM nowhere"),
    sqlForbidden: () => command(data, "objects", "sql", ns, "alice", "SELECT * FROM _cf_KV"),
    nobody: () => command(data, "objects", "sql", ns, "nobody", "SELECT 1"),
    exportOld: () => command(data, "objects", "export", ns, "alice", path.join(data, "../none/x.db")),
    restoreWrong: () => command(data, "objects", "restore", ns, "alice", "--bookmark", "nonsense"),
    restoreFuture: () => command(data, "objects", "restore", ns, "alice", "--time", "2999-01-01T00:00:00Z"),
    restoreBefore: () => command(data, "objects", "restore", ns, "alice", "--time", "2001-01-01T00:00:00Z"),
    afterwards: () => command(data, "objects", "sql", ns, "alice", "SELECT count(*) AS n FROM entry"),
    deleteNobody: () => command(data, "objects", "delete", ns, "nobody", "--force"),
    deleteUnasked: () => command(data, "objects", "delete", ns, "alice"),
    usage: () => command(data, "objects", "sql", ns),
  };
  before(async () => {
    server = await serve(dir, { data, lanes: 2 });
    for (const name of ["alice", "a b/c?d=e&f%", "bob"])
      for (let i = 0; i < 3; i++) await call(server, name, "add", `${name} ${i}`);
    for (const [name, step] of Object.entries(steps)) online[name] = await step();
    await server.stop();
    for (const [name, step] of Object.entries(steps)) offline[name] = await step();
  });
  for (const name of Object.keys(steps))
    test(name, () => assert.deepEqual(online[name], offline[name]));
  test("and they are right", () => {
    assert.equal(online.list.stdout.trim().split("\n").length, 3);
    assert.equal(JSON.parse(online.listOne.stdout.split("\n")[0]).namespace, ns);
    assert.match(online.listPrefix.stdout, /a b\/c\?d=e&f%\n$/);
    assert.match(online.sql.stdout, /^id {2}text\n1 {3}alice 0\n2 {3}alice 1\n3 {3}alice 2\nx +y +z +b\n1\.5 +null +a\\x09b +\{"base64":"Af8="\}\n$/);
    assert.deepEqual(JSON.parse(online.sqlJson.stdout.split("\n")[2]), { id: 3, text: "alice 2" });
    assert.match(online.sqlWrong.stderr, /no such table: nowhere/);
    assert.match(online.sqlForbidden.stderr, /_cf_/);
    for (const name of ["listNothing", "sqlWrong", "sqlForbidden", "nobody", "restoreWrong", "restoreFuture", "restoreBefore", "deleteNobody", "deleteUnasked", "exportOld"])
      assert.equal(online[name].status, 1, name);
    assert.match(online.restoreBefore.stderr, /no data at that time/);
    assert.equal(online.afterwards.stdout, "n\n3\n");
    assert.equal(online.usage.status, 2);
  });
});

for (const lanes of [1, 2]) {
  describe(`a live object, ${lanes} lane${lanes > 1 ? "s" : ""}`, () => {
    let server, data;
    before(async () => { server = await serve(dir, { lanes }); data = server.data; });
    after(() => server.stop());

    test("SQL sees it, changes it, and does not end its instance", async () => {
      await call(server, "s", "add", "one");
      const answer = await ask({ data }, "POST", objectPath("s", "/sql"), { body: { sql: "INSERT INTO entry(text) VALUES(?) RETURNING id", params: ["two"] } });
      assert.deepEqual(answer.json.results[0].rows, [[2]]);
      assert.deepEqual(await call(server, "s", "add", "three"), { calls: 2, count: 3 });
      assert.deepEqual(await call(server, "s", "all"), ["one", "two", "three"]);
    });
    test("a script that fails changes nothing", async () => {
      await call(server, "f", "add", "one");
      const answer = await ask({ data }, "POST", objectPath("f", "/sql"), { body: { sql: "DELETE FROM entry; SELECT * FROM nowhere" } });
      assert.equal(answer.status, 400);
      assert.deepEqual(await call(server, "f", "add", "two"), { calls: 2, count: 2 });
      const denied = await ask({ data }, "POST", objectPath("f", "/sql"), { body: { sql: "DELETE FROM entry", readonly: true } });
      assert.equal(denied.status, 403);
      assert.equal(await call(server, "f", "count"), 2);
    });
    test("SQL waits for the input gate", async () => {
      await call(server, "g", "add", "one");
      const sql = () => ask({ data }, "POST", objectPath("g", "/sql"), { body: { sql: "SELECT count(*) FROM entry" } });
      const slow = call(server, "g", "slow", 300);
      assert.deepEqual((await sql()).json.results[0].rows, [[1]]);
      assert.equal(await slow, "done");
      const transaction = call(server, "g", "transact", 300);
      await server.until(/in transaction/);
      assert.deepEqual((await sql()).json.results[0].rows, [[2]]);
      assert.equal(await transaction, "done");
    });
    test("values of the key-value storage are shown", async () => {
      await call(server, "v", "values");
      const { json } = await ask({ data }, "GET", objectPath("v", "/kv"));
      assert.deepEqual(Object.fromEntries(json.entries.map((entry) => [entry.key, entry.value])), {
        big: { $bigint: "0x1f" },
        bytes: { $bytes: "AQID" },
        date: { $date: 86400000 },
        map: { $map: [["k", { $set: [1] }]] },
        nested: { none: { $undefined: true } },
        plain: { a: [1, "ü", null, true], b: -1.5 },
        wide: "你好",
      });
      const first = await ask({ data }, "GET", objectPath("v", "/kv?limit=2"));
      assert.deepEqual(first.json.entries.map((entry) => entry.key), ["big", "bytes"]);
      const next = await ask({ data }, "GET", objectPath("v", `/kv?limit=2&cursor=${first.json.cursor}`));
      assert.deepEqual(next.json.entries.map((entry) => entry.key), ["date", "map"]);
      const some = await ask({ data }, "GET", objectPath("v", "/kv?prefix=pl"));
      assert.deepEqual(some.json.entries.map((entry) => entry.key), ["plain"]);
    });
    test("restore ends the instance, the next call finds the past; its bookmark undoes it", async () => {
      await call(server, "r", "add", "one");
      const { json } = await ask({ data }, "GET", objectPath("r"));
      assert.equal(json.live, true);
      await call(server, "r", "add", "two");
      const restored = await command(data, "objects", "restore", ns, "r", "--bookmark", json.bookmark);
      assert.equal(restored.status, 0, restored.stderr);
      assert.deepEqual(await call(server, "r", "add", "three"), { calls: 1, count: 2 });
      const undo = /undoes it: (\S+)/.exec(restored.stdout)[1];
      assert.equal((await command(data, "objects", "restore", ns, "r", "--bookmark", undo)).status, 0);
      assert.deepEqual(await call(server, "r", "all"), ["one", "two"]);
    });
    test("a time at which there was no data is refused, and the instance goes on; --empty is asked for", async () => {
      await call(server, "e", "add", "one");
      const at = Date.now() - 1;
      const refused = await command(data, "objects", "restore", ns, "e", "--time", "2001-01-01T00:00:00Z");
      assert.equal(refused.status, 1);
      assert.match(refused.stderr, /no data at that time: it was not there yet, or had been deleted/);
      assert.deepEqual(await call(server, "e", "add", "two"), { calls: 2, count: 2 }); // the same instance
      assert.equal((await command(data, "objects", "delete", ns, "e", "--force")).status, 0);
      const gone = Date.now();
      await server.untilTrue(() => Date.now() > gone + 1, "the next moment");
      await call(server, "e", "add", "three");
      assert.equal((await command(data, "objects", "restore", ns, "e", "--time", String(gone))).status, 1, "it was deleted then");
      assert.deepEqual(await call(server, "e", "all"), ["three"]);
      assert.equal((await command(data, "objects", "restore", ns, "e", "--time", String(at), "--empty")).status, 0);
      const back = await command(data, "objects", "restore", ns, "e", "--time", String(gone), "--empty");
      assert.equal(back.status, 0, back.stderr);
      assert.deepEqual(await call(server, "e", "all"), []);
    });
    test("delete ends the instance and can be undone", async () => {
      await call(server, "d", "add", "one");
      const alarm = Date.now() + 3600_000;
      await call(server, "d", "wake", alarm);
      const running = call(server, "d", "slow", 60_000);
      await server.until(/waiting for 60000 ms/);
      const { id } = (await ask({ data }, "GET", "/api/objects?namespace=app%2FLedger&prefix=d")).json.objects[0];
      const deleted = await command(data, "objects", "delete", ns, "d", "--force");
      assert.equal(deleted.status, 0, deleted.stderr);
      const failed = await running;
      assert.match(failed.error, /deleted/);
      assert.equal(failed.reset, true);
      const listed = async () => (await ask({ data }, "GET", "/api/objects?namespace=app%2FLedger&prefix=d")).json.objects;
      assert.deepEqual(await listed(), []);
      const undo = /undoes it: (\S+)/.exec(deleted.stdout)[1];
      const back = await command(data, "objects", "restore", ns, id, "--bookmark", undo);
      assert.equal(back.status, 0, back.stderr);
      const [entry] = await listed(); // with its name and its alarm
      assert.deepEqual([entry.id, entry.name, entry.alarm], [id, "d", alarm]);
      assert.deepEqual(await call(server, "d", "all"), ["one"]);
      assert.equal(await call(server, "d", "getAlarm"), alarm);
    });
    test("an alarm that is set from outside fires", async () => {
      await call(server, "a", "add", "one");
      assert.equal((await ask({ data }, "PUT", objectPath("a", "/alarm"), { body: { time: Date.now() + 50 } })).status, 200);
      await server.untilTrue(async () => (await call(server, "a", "count")) === 2, "the alarm");
      await call(server, "a", "wake", Date.now() + 3600_000);
      assert.deepEqual((await ask({ data }, "DELETE", objectPath("a", "/alarm"))).json, { alarm: null });
      assert.equal(await call(server, "a", "getAlarm"), null);
    });
    test("calls that arrive during an operation wait, none is lost", async () => {
      for (let i = 0; i < 5; i++) await call(server, "w", "add", "x");
      const { json } = await ask({ data }, "GET", objectPath("w"));
      let added = 0, failed = 0;
      const calls = [], restores = [];
      for (let i = 0; i < 20; i++) {
        calls.push(call(server, "w", "add", "y").then((result) => (result.error ? failed++ : added++)));
        if (i % 5 === 0) restores.push(ask({ data }, "POST", objectPath("w", "/restore"), { body: { bookmark: json.bookmark } }));
      }
      await Promise.all(calls);
      for (const { status } of await Promise.all(restores)) assert.ok(status === 200 || status === 409, String(status));
      assert.equal(added + failed, 20);
      assert.ok((await call(server, "w", "count")) >= 5);
    });
    test("several calls on one object at once take turns", async () => {
      // After a restore the object is not in memory until it is called.
      await call(server, "turns", "add", "x");
      const { json } = await ask({ data }, "GET", objectPath("turns"));
      assert.equal((await ask({ data }, "POST", objectPath("turns", "/restore"), { body: { bookmark: json.bookmark } })).status, 200);
      const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => (i % 3
        ? ask({ data }, "POST", objectPath("turns", "/sql"), { body: { sql: `INSERT INTO entry(text) VALUES('${i}')` } })
        : ask({ data }, "GET", objectPath("turns")))));
      for (const { status, text } of answers) assert.equal(status, 200, text);
      assert.equal(await call(server, "turns", "count"), 9);
    });
    test("history lists commits with bookmarks that restore and export", async () => {
      for (let i = 0; i < 5; i++) await call(server, "h", "add", String(i));
      const { json } = await ask({ data }, "GET", objectPath("h", "/history?limit=3"));
      assert.deepEqual(json.commits.map(({ kind }) => kind), ["write", "write", "write"]);
      const rest = await ask({ data }, "GET", objectPath("h", `/history?limit=100&cursor=${json.cursor}`));
      const all = [...json.commits, ...rest.json.commits];
      assert.ok(all.length >= 5 && rest.json.cursor === null);
      assert.deepEqual(all.map(({ lsn }) => lsn), all.map(({ lsn }) => lsn).sort((a, b) => b - a));
      assert.equal((await ask({ data }, "POST", objectPath("h", "/restore"), { body: { bookmark: all[2].bookmark } })).status, 200);
      assert.deepEqual(await call(server, "h", "all"), ["0", "1", "2"]);
      const [latest] = (await ask({ data }, "GET", objectPath("h", "/history?limit=1"))).json.commits;
      assert.equal(latest.kind, "restore");
    });
    test("lists in every order, page by page", async () => {
      for (const name of ["l1", "l2", "l3", "l4"]) for (let i = 0; i < 1 + 40 * (name === "l2"); i++) await call(server, name, "add", "x".repeat(500));
      await call(server, "l3", "wake", Date.now() + 7200_000);
      const list = async (query) => {
        const found = [];
        for (let cursor = null, first = true; first || cursor !== null; first = false) {
          const { status, json, text } = await ask({ data }, "GET", `/api/objects?namespace=app%2FLedger&limit=3&${query}${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`);
          assert.equal(status, 200, text);
          found.push(...json.objects);
          ({ cursor } = json);
        }
        return found;
      };
      const everything = await list("");
      assert.ok(everything.length >= 4);
      for (const [query, value] of [["sort=size", (o) => o.size], ["sort=changed", (o) => o.changed], ["sort=id", (o) => o.id]]) {
        const up = await list(query);
        assert.equal(new Set(up.map((o) => o.id)).size, everything.length, query);
        for (let i = 1; i < up.length; i++) assert.ok(value(up[i - 1]) <= value(up[i]), query);
      }
      assert.equal((await list("sort=size&desc="))[0].name, "l2");
      assert.ok((await list("sort=alarm")).every((o) => o.alarm !== null));
      assert.deepEqual((await list("sort=name&prefix=l")).map((o) => o.name), ["l1", "l2", "l3", "l4"]);
      const ids = (await list("sort=id")).map((o) => o.id);
      for (const id of [ids[0], ids.at(-1), ids[1].slice(0, 20).toUpperCase(), ids[2].slice(0, 7)])
        assert.deepEqual((await list(`id=${id}`)).map((o) => o.id), ids.filter((other) => other.startsWith(id.toLowerCase())));
      assert.deepEqual((await list("id=0")).map((o) => o.id), ids);
      assert.deepEqual(await list(`id=${"f".repeat(64)}`), []);
      for (const wrong of ["id=xyz", `id=${"0".repeat(65)}`, "id=00&sort=size", "id=00&prefix=l", "sort=odd"])
        assert.equal((await ask({ data }, "GET", `/api/objects?namespace=app%2FLedger&${wrong}`)).status, 400, wrong);
      assert.equal((await ask({ data }, "GET", "/api/objects?namespace=app%2FLedger&sort=size&cursor=odd")).status, 400);
    });
    test("export of a live object is a plain SQLite file", async () => {
      await call(server, "e", "add", "one");
      await call(server, "e", "blob");
      const answer = await ask({ data }, "GET", objectPath("e", "/export"));
      assert.equal(answer.bytes.subarray(0, 15).toString(), "SQLite format 3");
      assert.equal(answer.bytes.length % 4096, 0);
      const file = path.join(tempDir(), "e.db");
      assert.equal((await command(data, "objects", "export", ns, "e", file)).status, 0);
      assert.ok(readFileSync(file).equals(answer.bytes));
      assert.equal((await command(data, "objects", "export", ns, "e", file)).status, 1); // it is there
      rmSync(file);
    });
  });
}

test("the control socket answers while every lane is busy, and goes with the server", async () => {
  const server = await serve(dir, { lanes: 1 });
  let spun = false;
  const spinning = server.fetch("/2e9/spin").then(() => { spun = true; });
  const health = await ask({ data: server.data }, "GET", "/healthz");
  assert.equal(health.text, "ok\n");
  assert.equal((await ask({ data: server.data }, "GET", "/readyz")).status, 200);
  assert.equal(spun, false);
  await spinning;
  await server.stop();
  await assert.rejects(ask({ data: server.data }, "GET", "/healthz"), /ENOENT/);
});
