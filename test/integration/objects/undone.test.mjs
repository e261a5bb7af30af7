// What an abort() or a blockConcurrencyWhile() that throws undoes: what was written since the last event, section or transaction
// ended, and nothing before it. The states are those that workerd 2026-04-26 leaves for the same code,
// except for deleteAll() in transactionSync(), which is an internal error there.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { project, serve } from "../lib/server.mjs";

/** [what the object does, what of it is there afterwards]; it ends in `abort`, or by what it throws. */
const cases = {
  "a write, then abort": ["s.put('k', 1); abort();", ""],
  "a write that was awaited, then abort": ["await s.put('k', 1); abort();", ""],
  "a write and code that waits for microtasks, then abort": ["s.put('k', 1); for (let i = 0; i < 50; i++) await null; abort();", ""],
  "a write and sync(), then abort": ["s.put('k', 1); await s.sync(); abort();", "k"],
  "a write and a timer, then abort": ["s.put('k', 1); await scheduler.wait(1); abort();", "k"],
  "a transaction, then abort": ["await s.transaction(async (t) => { await t.put('k', 1); }); abort();", "k"],
  "a transaction, another write, then abort": ["await s.transaction(async (t) => { await t.put('k', 1); }); s.put('j', 1); abort();", "k"],
  "a write before a transaction in which abort comes": ["s.put('k', 1); await s.transaction(async (t) => { await t.put('j', 1); abort(); });", "k"],
  "a write beside a transaction in which abort comes": ["const p = s.transaction(async (t) => { await t.put('j', 1); abort(); }); s.put('k', 1); await p;", "k"],
  "a transaction that nobody awaits, then abort": ["s.transaction(async (t) => { await t.put('k', 1); }); abort();", ""],
  "a transaction inside one, and abort in the outer one": ["await s.transaction(async () => { await s.transaction(async (t) => { await t.put('k', 1); }); abort(); });", ""],
  "a section inside a transaction, and abort after it": ["await s.transaction(async (t) => { await t.put('k', 1); await ctx.blockConcurrencyWhile(async () => {}); abort(); });", ""],
  "transactionSync(), then abort": ["s.transactionSync(() => { s.kv.put('k', 1); }); abort();", ""],
  "blockConcurrencyWhile() that wrote, then abort": ["await ctx.blockConcurrencyWhile(async () => { await s.put('k', 1); }); abort();", "k"],
  "a write, then blockConcurrencyWhile() that throws": ["s.put('k', 1); await ctx.blockConcurrencyWhile(async () => { throw new Error('b'); });", "k"],
  "a write that was awaited, then one that throws at once": ["await s.put('k', 1); await ctx.blockConcurrencyWhile(() => { throw new Error('b'); });", "k"],
  "blockConcurrencyWhile() that writes and throws": ["await ctx.blockConcurrencyWhile(async () => { await s.put('k', 1); throw new Error('b'); });", ""],
  "one that writes, waits and throws": ["await ctx.blockConcurrencyWhile(async () => { s.put('k', 1); await scheduler.wait(1); throw new Error('b'); });", "k"],
  "deleteAll(), then abort": ["await s.put('k', 1); await s.sync(); await s.deleteAll(); abort();", ""],
  "a write, then an exception": ["s.put('k', 1); throw new Error('t');", "k"],
  "a transaction that throws, then a write": ["await s.transaction(async (t) => { await t.put('j', 1); throw 1; }).catch(() => {}); s.put('k', 1);", "k"],
  "deleteAll() in a transaction is refused": ["await s.put('k', 1); await s.transaction(async (t) => { for (const each of [s, t]) await assertRefused(each); });", "k"],
  "deleteAll() in transactionSync() is refused, and cursors go on": [
    "await s.put('k', 1); s.sql.exec('CREATE TABLE t (x); INSERT INTO t VALUES (1), (2)'); let refused; s.transactionSync(() => { " +
    "const rows = s.sql.exec('SELECT x FROM t'); rows.next(); refused = assertRefused(s); if (rows.next().value.x !== 2) throw new Error('the cursor has ended'); }); await refused;", "k"],
  "deleteAll() in a transaction that was rolled back is refused": ["await s.put('k', 1); await s.transaction(async (t) => { t.put('j', 1); t.rollback(); await assertRefused(s); });", "k"],
  "a transaction that is used after it was kept": [
    "let over; await s.transaction(async (t) => { over = t; await t.put('k', 1); }); await assertOver(() => over.put('j', 1), 'put() on transaction that has already committed'); await assertOver(() => over.rollback(), 'committed');", "k"],
  "a transaction that is used after it was rolled back": [
    "let over; await s.transaction(async (t) => { over = t; t.put('j', 1); t.rollback(); t.rollback(); }); await assertOver(() => over.put('j', 1), 'Cannot put() on rolled back transaction');", ""],
  "a transaction that is used after it has failed": [
    "let over; await s.transaction(async (t) => { over = t; throw 1; }).catch(() => {}); await assertOver(() => over.put('j', 1), 'Cannot put() on rolled back transaction'); over.rollback(); await s.put('k', 1);", "k"],
  "setAlarm() without a time": ["for (const time of [null, 9e15]) await s.setAlarm(time).then(() => { throw new Error('it was set'); }, () => {}); if (await s.getAlarm() !== null) throw new Error('an alarm');", ""],
  "put() of an array": ["await s.put(['x', 'y']).then(() => { throw new Error('it was put'); }, () => {});", ""],
};
/** What SQLite rolls back by itself, whatever the code makes of the error: the call fails. */
const ROLLS_BACK = "try { s.sql.exec('INSERT OR ROLLBACK INTO t VALUES (1)'); } catch {}";
const lost = {
  "the turn's writes": [`s.put('k', 1); s.sql.exec('CREATE TABLE t (x UNIQUE); INSERT INTO t VALUES (1)'); ${ROLLS_BACK}`, ""],
  "by a trigger": ["s.sql.exec(\"CREATE TABLE t (x); CREATE TRIGGER g BEFORE INSERT ON t BEGIN SELECT RAISE(ROLLBACK, 'no'); END\"); await s.sync(); s.put('k', 1); " + ROLLS_BACK, ""],
  "a transaction": [`s.put('k', 1); s.sql.exec('CREATE TABLE t (x UNIQUE)'); await s.transaction(async () => { s.sql.exec('INSERT INTO t VALUES (1)'); ${ROLLS_BACK} }).catch(() => {});`, "k"],
  "a section": [`s.put('k', 1); s.sql.exec('CREATE TABLE t (x UNIQUE)'); await ctx.blockConcurrencyWhile(async () => { s.sql.exec('INSERT INTO t VALUES (1)'); s.put('j', 1); ${ROLLS_BACK} }).catch(() => {});`, "k"],
};

const source = `import { DurableObject } from "cloudflare:workers";
const assertRefused = async (storage) => {
  const failure = await storage.deleteAll().then(() => "it was not refused", (error) => error.message);
  if (failure !== "Cannot call deleteAll() within a transaction") throw new Error(failure);
};
const assertOver = async (work, text) => {
  const failure = await (async () => work())().then(() => "it was not refused", (error) => error.message);
  if (!failure.includes(text)) throw new Error(failure);
};
const cases = {
${[...Object.values(cases), ...Object.values(lost)].map(([code], i) => `  async c${i}(ctx, s, abort) { ${code} },`).join("\n")}
};
export class Cell extends DurableObject {
  run(name) { return cases[name](this.ctx, this.ctx.storage, () => this.ctx.abort("aborted")); }
  async write() { await this.ctx.storage.put("later", 1); }
  async keys() { return [...(await this.ctx.storage.list()).keys()].join(); }
}
/** The first instance of each fails in its constructor, after a write. */
let failing = "";
export class Starts extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    if (failing === "") return;
    if (failing === "plain") { ctx.storage.put("k", 1); throw new Error("plain"); }
    ctx.blockConcurrencyWhile(async () => {
      ctx.storage.put("k", 1);
      if (failing === "waits") await scheduler.wait(1);
      throw new Error("in a section");
    });
  }
  async keys() { return [...(await this.ctx.storage.list()).keys()].join(); }
}
export default { async fetch(request, env) {
  const [, name, verb] = new URL(request.url).pathname.split("/");
  try {
    if (verb === "start") failing = name;
    if (name.startsWith("c")) return new Response(await env.CELL.getByName(name)[verb](name));
    return new Response(await env.STARTS.getByName(name).keys());
  } catch (error) {
    return new Response(error.message, { status: 500 });
  } finally {
    failing = "";
  }
} };`;

const classes = ["Cell", "Starts"];
describe("what is undone", () => {
  let server;
  before(async () => {
    server = await serve(project({ "index.js": source, "wrangler.json": JSON.stringify({
      name: "app", main: "index.js", compatibility_date: "2026-01-01",
      durable_objects: { bindings: classes.map((each) => ({ name: each.toUpperCase(), class_name: each })) },
      migrations: [{ tag: "v1", new_sqlite_classes: classes }],
    }) }), { nodes: 1 });
  });
  after(() => server.stop());
  Object.entries(cases).forEach(([name, [code, there]], i) => {
    test(`DO-TX-7: ${name}`, async () => {
      const { status } = await server.fetch(`/c${i}/run`);
      assert.equal(status, /abort\(\)|'b'|'t'\)/.test(code) ? 500 : 200);
      assert.equal(await server.text(`/c${i}/keys`), there);
    });
  });
  Object.entries(lost).forEach(([name, [, there]], at) => {
    const i = Object.keys(cases).length + at;
    test(`DO-TX-7: SQLite has rolled back ${name}`, async () => {
      assert.deepEqual([(await server.fetch(`/c${i}/run`)).status, await server.text(`/c${i}/keys`)], [500, there]);
      assert.equal((await server.fetch(`/c${i}/write`)).status, 200); // later writes are not refused
      assert.equal(await server.text(`/c${i}/keys`), there === "" ? "later" : `${there},later`);
    });
  });
  for (const [name, there] of Object.entries({ plain: "", section: "", waits: "k" })) {
    test(`DO-TX-7: a constructor that fails: ${name}`, async () => {
      assert.equal((await server.fetch(`/${name}/start`)).status, 500);
      assert.equal(await server.text(`/${name}/keys`), there);
    });
  }
});
