// Point-in-time recovery from JavaScript: every test with one lane and with two, kill -9 among them.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { alone } from "../lib/differences.mjs";
import { project, serve, tempDir } from "../lib/server.mjs";
import { objects } from "../lib/toml.mjs";

const config = `name = "recovery"
main = "index.js"
compatibility_date = "2026-03-01"
${objects({ BOX: "Box" })}`;
const worker = `import { DurableObject } from "cloudflare:workers";
export class Box extends DurableObject {
  nameAtStart = this.ctx.id.name;
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t(v)");
  }
  async set(value) {
    this.ctx.storage.kv.put("v", value);
    this.ctx.storage.sql.exec("DELETE FROM t");
    this.ctx.storage.sql.exec("INSERT INTO t VALUES(?)", value);
  }
  get() {
    return [this.ctx.storage.kv.get("v") ?? null, this.ctx.storage.sql.exec("SELECT v FROM t").toArray()[0]?.v ?? null];
  }
  called() { return this.nameAtStart; }
  clear() { return this.ctx.storage.deleteAll(); }
  bookmark() { return this.ctx.storage.getCurrentBookmark(); }
  async setAndBookmark(value) {
    await this.set(value);
    const bookmark = await this.ctx.storage.getCurrentBookmark();
    await this.set("later " + value);
    return bookmark;
  }
  bookmarkAt(time) { return this.ctx.storage.getBookmarkForTime(time); }
  bookmarkAtDate(time) { return this.ctx.storage.getBookmarkForTime(new Date(time)); }
  now() { return Date.now(); }
  restore(bookmark) { return this.ctx.storage.onNextSessionRestoreBookmark(bookmark); }
  async restoreAndAbort(bookmark) {
    await this.ctx.storage.onNextSessionRestoreBookmark(bookmark);
    this.ctx.abort("restoring");
  }
  restoreUnawaited(bookmark) {
    this.ctx.storage.onNextSessionRestoreBookmark(bookmark);
    this.ctx.abort("restoring");
  }
  abort() { this.ctx.abort("aborted"); }
  setAlarm(time) { return this.ctx.storage.setAlarm(time); }
  getAlarm() { return this.ctx.storage.getAlarm(); }
  alarm() { this.ctx.storage.kv.put("rang", this.ctx.id.name); }
  rang() { return this.ctx.storage.kv.get("rang") ?? null; }
  async seed(other, bookmark) {
    const snapshot = await this.ctx.storage.snapshot(bookmark);
    const refused = [];
    for (const attempt of [() => this.ctx.storage.put("s", snapshot), () => structuredClone(snapshot), () => new snapshot.constructor(), () => JSON.parse(JSON.stringify(snapshot)).length])
      try { refused.push(await attempt() ?? null); } catch (error) { refused.push(error.name); }
    try { await this.env.BOX.getByName(other).copy(snapshot); } catch (error) { refused.push(error.message); }
    return refused;
  }
  async copy(snapshot) {
    await this.ctx.onNextSessionRestore(snapshot);
    this.ctx.abort("copying");
  }
  async badSnapshot() { await this.ctx.onNextSessionRestore({}); }
}
export default {
  async fetch(request, env) {
    const [, name, method] = new URL(request.url).pathname.split("/").map(decodeURIComponent);
    try {
      return Response.json((await env.BOX.getByName(name)[method](...(await request.json()))) ?? null);
    } catch (error) {
      return Response.json({ error: error.message, reset: error.durableObjectReset === true }, { status: 500 });
    }
  },
};
`;
const dir = project({ "wrangler.toml": config, "index.js": worker });

for (const lanes of [1, 2]) {
  describe(`with ${lanes} lane${lanes > 1 ? "s" : ""}`, () => {
    const data = tempDir();
    let server;
    before(async () => { server = await serve(dir, { lanes, data }); });
    after(() => server.stop());
    const restart = async () => {
      await server.kill();
      server = await serve(dir, { lanes, data });
    };
    let unique = 0;
    const fresh = () => `o${++unique}`;
    const call = async (name, method, ...args) =>
      (await server.fetch(`/${encodeURIComponent(name)}/${method}`, { method: "POST", body: JSON.stringify(args) })).json();

    test("DO-PITR-1: bookmarks have their shape and are ordered", async () => {
      const name = fresh();
      const bookmarks = [await call(name, "bookmark")];
      for (let i = 0; i < 3; i++) {
        await call(name, "set", i);
        bookmarks.push(await call(name, "bookmark"));
      }
      for (const bookmark of bookmarks) assert.match(bookmark, /^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/);
      assert.deepEqual([...bookmarks].sort(), bookmarks);
    });
    test("DO-PITR-1: what was written before it in the same event belongs to it, what comes after does not", async () => {
      const name = fresh();
      const bookmark = await call(name, "setAndBookmark", "a");
      assert.deepEqual(await call(name, "get"), ["later a", "later a"]);
      assert.equal((await call(name, "restoreAndAbort", bookmark)).error, "restoring");
      assert.deepEqual(await call(name, "get"), ["a", "a"]);
    });
    test("DO-PITR-2: a bookmark for a time, as a number or a Date", async () => {
      const name = fresh();
      await call(name, "set", "first");
      const time = await call(name, "now");
      await server.untilTrue(async () => (await call(name, "now")) > time + 2, "the clock");
      await call(name, "set", "second");
      const bookmark = await call(name, "bookmarkAt", time);
      assert.equal((await call(name, "bookmarkAtDate", time)).slice(0, 17), bookmark.slice(0, 17));
      await call(name, "restoreAndAbort", bookmark);
      assert.deepEqual(await call(name, "get"), ["first", "first"]);
    });
    test("DO-PITR-2: a time to come and no time at all are refused", async () => {
      const name = fresh();
      await call(name, "set", 1);
      assert.match((await call(name, "bookmarkAt", Date.now() + 3_600_000)).error, /future/);
      assert.match((await call(name, "bookmarkAt", "tomorrow")).error, /parameter 1 is not of type 'date'/);
    });
    test("DO-PITR-3: restores SQL and key-value data; the undo bookmark takes it back", async () => {
      const name = fresh();
      await call(name, "set", "old");
      const bookmark = await call(name, "bookmark");
      await call(name, "set", "new");
      const undo = await call(name, "restore", bookmark);
      assert.match(undo, /^[0-9a-f]{8}-/);
      assert.ok(undo > bookmark);
      assert.deepEqual(await call(name, "get"), ["new", "new"]); // not yet
      await call(name, "set", "newest");
      assert.deepEqual(await call(name, "abort"), { error: "aborted", reset: true });
      assert.deepEqual(await call(name, "get"), ["old", "old"]);
      assert.equal(await call(name, "called"), name);
      await call(name, "restoreAndAbort", undo);
      assert.deepEqual(await call(name, "get"), ["newest", "newest"]);
      await call(name, "set", "after");
      await call(name, "abort");
      assert.deepEqual(await call(name, "get"), ["after", "after"]); // once, not at every start
    });
    test("DO-PITR-3: a restore that nobody awaited comes before the next event too", async () => {
      const name = fresh();
      await call(name, "set", "old");
      const bookmark = await call(name, "bookmark");
      await call(name, "set", "new");
      const [aborted] = await Promise.all([call(name, "restoreUnawaited", bookmark), ...Array.from({ length: 5 }, () => call(fresh(), "get"))]);
      assert.equal(aborted.error, "restoring");
      assert.deepEqual(await Promise.all([call(name, "get"), call(name, "get")]), [["old", "old"], ["old", "old"]]);
    });
    test("DO-PITR-3: back to before deleteAll(), and to before there was anything", async () => {
      const name = fresh(), other = fresh();
      const before = await call(other, "now");
      await server.untilTrue(async () => (await call(other, "now")) > before + 2, "the clock");
      await call(name, "set", "precious");
      const bookmark = await call(name, "bookmark");
      await call(name, "clear");
      assert.deepEqual(await call(name, "restoreAndAbort", await call(name, "bookmarkAt", before)), { error: "restoring", reset: true });
      assert.deepEqual(await call(name, "get"), [null, null]);
      await call(name, "restoreAndAbort", bookmark);
      assert.deepEqual(await call(name, "get"), ["precious", "precious"]);
      assert.equal(await call(name, "called"), name);
    });
    test("DO-PITR-3: bad bookmarks are refused and nothing happens", async () => {
      const name = fresh(), other = fresh();
      await call(name, "set", "stays");
      const foreign = await call(other, "bookmark");
      for (const bad of ["", "nonsense", foreign, foreign.replace(/^./, "f"), 7]) {
        const answer = await call(name, "restore", bad);
        assert.match(answer.error, /bookmark/, JSON.stringify([bad, answer]));
      }
      await call(name, "abort");
      assert.deepEqual(await call(name, "get"), ["stays", "stays"]);
    });
    test("DO-PITR-3 DO-PITR-4: a request survives kill -9, and so does the restored state", async () => {
      const name = fresh(), bystander = fresh();
      await call(name, "set", "old");
      const bookmark = await call(name, "bookmark");
      await call(name, "set", "new");
      await call(bystander, "set", "untouched");
      const undo = await call(name, "restore", bookmark);
      await restart();
      assert.deepEqual(await call(name, "get"), ["old", "old"]);
      assert.equal(await call(name, "called"), name);
      await call(name, "set", "written after");
      await restart();
      assert.deepEqual(await call(name, "get"), ["written after", "written after"]);
      assert.deepEqual(await call(bystander, "get"), ["untouched", "untouched"]);
      await call(name, "restoreAndAbort", undo);
      await restart();
      assert.deepEqual(await call(name, "get"), ["new", "new"]);
    });
    test("DO-PITR-3: kill -9 while the restore is carried out", async () => {
      const name = fresh();
      for (let round = 0; round < 6; round++) {
        await call(name, "set", `old ${round}`);
        const bookmark = await call(name, "bookmark");
        await call(name, "set", `new ${round}`);
        await call(name, "restoreAndAbort", bookmark);
        const starts = call(name, "get").catch(() => null); // begins to restore
        await new Promise((resolve) => setTimeout(resolve, round)); // wherever that meets it
        await restart();
        await starts;
        assert.deepEqual(await call(name, "get"), [`old ${round}`, `old ${round}`]);
      }
    });
    test("DO-PITR-3: the alarm of that moment comes back, and finds the object with its name", async () => {
      const name = fresh();
      const time = Date.now() + 3_600_000;
      await call(name, "set", "old");
      const without = await call(name, "bookmark");
      await call(name, "setAlarm", time);
      const far = await call(name, "bookmark");
      await call(name, "setAlarm", time + 1);
      await call(name, "restoreAndAbort", far);
      assert.equal(await call(name, "getAlarm"), time);
      await call(name, "restoreAndAbort", without);
      assert.equal(await call(name, "getAlarm"), null);
      let soon; // a moment before it rings
      await server.untilTrue(async () => {
        await call(name, "setAlarm", Date.now() + 1000);
        soon = await call(name, "bookmark");
        if ((await call(name, "rang")) === null) return true;
        await call(name, "restoreAndAbort", without); // too late: once more
        return false;
      }, "a moment with an alarm that is near");
      await call(name, "setAlarm", time);
      await call(name, "restore", soon);
      await restart();
      await server.untilTrue(async () => (await call(name, "rang")) === name, "the alarm");
      assert.deepEqual(await call(name, "get"), ["old", "old"]);
      assert.equal(await call(name, "getAlarm"), null);
    });
    test("DO-PITR-3: an alarm that starts the object to be restored does not ring in a state without it", async () => {
      const name = fresh();
      await call(name, "set", "old");
      const bookmark = await call(name, "bookmark");
      await call(name, "restore", bookmark);
      await call(name, "setAlarm", Date.now() + 700);
      await restart(); // nobody calls: the alarm comes first
      const due = Date.now() + 900;
      await server.untilTrue(() => Date.now() > due, "the time of the alarm");
      assert.equal(await call(name, "getAlarm"), null);
      assert.equal(await call(name, "rang"), null);
      assert.deepEqual(await call(name, "get"), ["old", "old"]);
    });
    test("DO-PITR-5 DO-CTX-6: a snapshot goes by RPC into another object, and nowhere else", alone("snapshots"), async () => {
      const name = fresh(), copy = `copy of ${name}`, early = `early ${name}`;
      await call(name, "set", "one");
      const bookmark = await call(name, "bookmark");
      await call(name, "set", "two");
      assert.deepEqual(await call(name, "seed", copy), ["DataCloneError", "DataCloneError", "TypeError", null, "copying"]);
      assert.deepEqual(await call(copy, "get"), ["two", "two"]);
      assert.equal((await call(name, "seed", early, bookmark)).at(-1), "copying");
      await restart();
      assert.deepEqual(await call(early, "get"), ["one", "one"]);
      assert.equal(await call(early, "called"), early);
      await call(copy, "set", "its own");
      assert.deepEqual(await call(name, "get"), ["two", "two"]);
      assert.match((await call(name, "badSnapshot")).error, /DurableObjectSnapshot/);
      assert.match((await call(name, "seed", copy, "nonsense")).at(-1), /bookmark/);
    });
  });
}
