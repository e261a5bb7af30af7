// Objects of a class that begin alike share work (src/store/template.h, pool.h), and nothing else: whatever an object does first, and however many
// do the same beside it, it finds its own rows and no others, now and after a restart.
import assert from "node:assert/strict";
import { test } from "node:test";
import { project, serve, tempDir } from "../lib/server.mjs";

// What an object does in its constructor, and then in its first call. Each is a class, for what is learnt is learnt by class.
const WAYS = {
  KvPut: ["", "s.kv.put(name, name);"],
  KvGetThenPut: ["", "s.kv.get(name); s.kv.put(name, name);"],
  KvListThenPut: ["", "[...s.kv.list()]; s.kv.put(name, name);"],
  KvDeleteThenPut: ["", "s.kv.delete(name); s.kv.put(name, name);"],
  AsyncPut: ["", "await s.put(name, name);"],
  AsyncPutMany: ["", "await s.put({ [name]: name, ['2' + name]: name }); await s.delete('2' + name);"],
  PutInTransaction: ["", "s.transactionSync(() => s.kv.put(name, name));"],
  PutRolledBack: ["", "try { s.transactionSync(() => { s.kv.put('x' + name, name); throw 1; }); } catch {} s.kv.put(name, name);"],
  TableThenPut: ["s.sql.exec('CREATE TABLE IF NOT EXISTS t(name TEXT)');", "s.kv.put(name, name);"],
  PutBetweenTables: ["s.sql.exec('CREATE TABLE IF NOT EXISTS t(name TEXT)');", "s.kv.put(name, name); s.sql.exec('CREATE TABLE IF NOT EXISTS u(name TEXT)'); s.sql.exec('INSERT INTO u VALUES(?)', name);"],
  PutBeforeTable: ["s.kv.put(ctx.id.name, ctx.id.name); s.sql.exec('CREATE TABLE IF NOT EXISTS t(name TEXT)');", ""],
  Insert: ["s.sql.exec('CREATE TABLE IF NOT EXISTS t(name TEXT)');", "s.sql.exec('INSERT INTO t VALUES(?)', name);"],
  InsertInText: ["s.sql.exec('CREATE TABLE IF NOT EXISTS t(name TEXT)');", "s.sql.exec(`INSERT INTO t VALUES('${name}')`);"],
  TableWithRow: ["s.sql.exec(`CREATE TABLE IF NOT EXISTS t(name TEXT); INSERT INTO t VALUES('${ctx.id.name}')`);", ""],
  TableAsSelect: ["s.sql.exec(`CREATE TABLE IF NOT EXISTS t AS SELECT '${ctx.id.name}' AS name`);", ""],
  TableWithDefault: ["s.sql.exec(`CREATE TABLE IF NOT EXISTS t(n, name TEXT DEFAULT '${ctx.id.name}')`); s.sql.exec('INSERT INTO t(n) VALUES(1)');", ""],
  Alarm: ["s.sql.exec('CREATE TABLE IF NOT EXISTS t(name TEXT)');", "await s.setAlarm(4e12 + Number(name.slice(1)));"],
  AlarmThenPut: ["", "await s.setAlarm(4e12 + Number(name.slice(1))); s.kv.put(name, name);"],
  PutAndDeleteAll: ["", "s.kv.put('x' + name, name); await s.deleteAll(); s.kv.put(name, name);"],
};
const EACH = 120; // connections are shared from some tens of objects on

const script = `import { DurableObject } from "cloudflare:workers";
${Object.entries(WAYS).map(([name, [begin, first]]) => `export class ${name} extends DurableObject {
  constructor(ctx, env) { super(ctx, env); const s = ctx.storage; ${begin} }
  alarm() {}
  async first() { const s = this.ctx.storage, name = this.ctx.id.name; ${first} }
  async all() {
    const s = this.ctx.storage, rows = [];
    for (const { name } of [...s.sql.exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('t', 'u')")])
      for (const row of s.sql.exec("SELECT name FROM " + name)) rows.push(row.name);
    return { pairs: [...s.kv.list()].flat(), rows, alarm: await s.getAlarm() };
  }
}`).join("\n")}
export default { async fetch(request, env) {
  const [, way, name, method] = new URL(request.url).pathname.split("/");
  return Response.json((await env[way].getByName(name)[method]()) ?? null);
} };`;

test("objects that begin alike have nothing of each other", async (t) => {
  const ways = Object.keys(WAYS), data = tempDir();
  const folder = project({
    "wrangler.json": JSON.stringify({
      name: "app", main: "index.js", compatibility_date: "2026-01-01", durable_objects: { bindings: ways.map((name) => ({ name, class_name: name })) },
      migrations: [{ tag: "v1", new_sqlite_classes: ways }],
    }),
    "index.js": script,
  });
  let server = await serve(folder, { data, lanes: 2 });
  t.after(() => server.kill());
  const ask = async (...parts) => (await server.fetch(`/${parts.join("/")}`)).json();
  const names = Array.from({ length: EACH }, (_, i) => `n${i}`);
  const check = async (when) => {
    for (const way of ways) {
      const found = await Promise.all(names.map((name) => ask(way, name, "all")));
      for (const [i, { pairs, rows, alarm }] of found.entries()) {
        const what = `${way} ${names[i]}, ${when}: ${JSON.stringify({ pairs, rows, alarm })}`;
        assert.ok([...pairs, ...rows].every((text) => text === names[i]), what);
        assert.ok(pairs.length + rows.length > 0 || alarm !== null, what); // it has what it wrote
        if (alarm !== null) assert.equal(alarm, 4e12 + i, what);
      }
    }
  };
  for (const way of ways) {
    for (let at = 0; at < EACH; at += 8) await Promise.all(names.slice(at, at + 8).map((name) => ask(way, name, "first")));
  }
  await check("at once");
  await server.stop();
  server = await serve(folder, { data, lanes: 2 });
  await check("after a restart");
});
