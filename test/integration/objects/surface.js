// One method or script per line of the checklist. POST /object/NAME/METHOD calls a method of an object
// with a JSON array of arguments, /script/NAME runs a script in the worker.
import { DurableObject, RpcTarget, WorkflowEntrypoint } from "cloudflare:workers";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const attempt = async (f) => { try { return { value: await f() }; } catch (e) { return { name: e?.name, message: e?.message, remote: e?.remote ?? false, retryable: e?.retryable ?? false, overloaded: e?.overloaded ?? false, reset: e?.durableObjectReset ?? false }; } };

class Counter extends RpcTarget {
  constructor(log) { super(); this.log = log; }
  n = 0;
  next() { return ++this.n; }
  [Symbol.dispose]() { this.log.disposed = (this.log.disposed ?? 0) + 1; }
}

export class Box extends DurableObject {
  started = Math.random();
  log = {};
  whoami() { return { started: this.started, name: this.ctx.id.name ?? null, jurisdiction: this.ctx.id.jurisdiction ?? null }; }
  put(k, v, o) { return this.ctx.storage.put(k, v, o); }
  get(k) { return this.ctx.storage.get(k); }
  ctxMembers() { return [typeof this.ctx.id, typeof this.ctx.storage, typeof this.ctx.exports.Box.getByName, this.ctx.props, this.env.NOTE]; }
  waitsUntil() { this.ctx.waitUntil(sleep(20).then(() => { this.log.waited = true; })); this.ctx.waitUntil(5); return "at once"; }
  async waited() { while (!this.log.waited) await sleep(5); return true; }
  // --- gates ---
  async slowTimer(ms) { this.log.order ??= []; await sleep(ms); this.log.order.push("timer"); return this.log.order; }
  async slowCall(other, ms) { this.log.order ??= []; await this.env.BOX.getByName(other).nap(ms); this.log.order.push("call"); return this.log.order; }
  async slowFetch(url) { this.log.order ??= []; await (await fetch(url)).text(); this.log.order.push("fetch"); return this.log.order; }
  async nap(ms) { await sleep(ms); }
  async section(ms) {
    this.log.order ??= [];
    return this.ctx.blockConcurrencyWhile(async () => {
      this.log.order.push("enter");
      for (let left = ms; left > 0; left -= 10) await sleep(10); // its own timers go on
      this.log.order.push("leave");
    });
  }
  sectionUntil(f) { return this.ctx.blockConcurrencyWhile(() => f()); }
  order() { return this.log.order; }
  clearOrder() { this.log.order = []; }
  async nestedSections() {
    return this.ctx.blockConcurrencyWhile(async () => {
      await sleep(1);
      const inner = await this.ctx.blockConcurrencyWhile(async () => { await sleep(1); return 1; });
      return inner + 1;
    });
  }
  async parallelSections() { return Promise.all([1, 2, 3].map((n) => this.ctx.blockConcurrencyWhile(async () => { await sleep(2); return n; }))); }
  async failingSection() { await this.ctx.blockConcurrencyWhile(async () => { await sleep(1); throw new Error("section failed"); }); }
  async endlessSection() { await this.ctx.blockConcurrencyWhile(() => new Promise(() => {})); }
  // --- life ---
  catchesAbort() { this.ctx.storage.kv.put("lost", 1); try { this.ctx.abort("gone"); } catch { globalThis.caught = true; } globalThis.caught = true; return "went on"; }
  caught() { return globalThis.caught ?? false; }
  async abortAfterWait() { this.ctx.storage.kv.put("first", 1); await this.ctx.storage.sync(); this.ctx.storage.kv.put("second", 1); this.ctx.abort(); }
  keepsTimer() { setInterval(() => {}, 5); return this.started; }
  // --- storage ---
  async kvOptions() {
    const { storage } = this.ctx;
    await storage.put("a", 1, { allowUnconfirmed: true, allowConcurrency: true, noCache: true });
    await storage.put({ b: 2, c: 3 }, { allowUnconfirmed: true });
    const got = [await storage.get("a", { allowConcurrency: true, noCache: true }), (await storage.get(["b", "c"], { noCache: true })).size];
    const listed = (await storage.list({ allowConcurrency: true, noCache: true })).size;
    const deleted = [await storage.delete("a", { allowUnconfirmed: true }), await storage.delete(["b", "x"], { allowUnconfirmed: true })];
    await storage.sync();
    return [got, listed, deleted, [...(await storage.list()).keys()]];
  }
  async manyKeys(n) {
    const entries = Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, i]));
    const tries = [await attempt(() => this.ctx.storage.put(entries)), await attempt(() => this.ctx.storage.get(Object.keys(entries))), await attempt(() => this.ctx.storage.delete(Object.keys(entries)))];
    return tries.map((t) => t.name ?? "ok");
  }
  async putIsWhole() { const t = await attempt(() => this.ctx.storage.put({ a: 1, b: () => {} })); return [t.name, (await this.ctx.storage.get("a")) ?? null]; }
  async byteOrder() {
    const keys = ["a", "\uffff", "\u{10000}", "\u00e9", "Z"];
    for (const k of keys) await this.ctx.storage.put(k, 1);
    return [...(await this.ctx.storage.list()).keys()].map((k) => k.codePointAt(0).toString(16));
  }
  async ranges() {
    for (const k of ["a", "ab", "abc", "b", "c"]) this.ctx.storage.kv.put(k, k);
    const keys = async (o) => [...(await this.ctx.storage.list(o)).keys()].join();
    return [await keys({ prefix: "ab" }), await keys({ start: "ab", end: "b" }), await keys({ startAfter: "ab", limit: 2 }), await keys({ prefix: "a", reverse: true, limit: 2 }), await keys({ end: "b", reverse: true, limit: 1 })];
  }
  syncKv() {
    const { kv } = this.ctx.storage;
    for (let i = 0; i < 600; i++) kv.put(`k${String(i).padStart(4, "0")}`, { i });
    const first = kv.list({ start: "k0010" })[Symbol.iterator]().next().value;
    const seen = [];
    for (const [key] of kv.list({ prefix: "k", limit: 520 })) { seen.push(key); if (seen.length === 300) kv.delete("k0599"); }
    return [kv.get("k0005").i, kv.get("none") ?? null, kv.delete("k0005"), kv.delete("k0005"), first[0], first[1].i, seen.length, [...kv.list({ reverse: true, limit: 1 })][0][0]];
  }
  // --- SQL ---
  sql(q, ...b) { return this.ctx.storage.sql.exec(q, ...b).toArray(); }
  sqlErrors(queries) { return queries.map((q) => { try { this.ctx.storage.sql.exec(q).toArray(); return null; } catch (e) { return e.message; } }); }
  cursorSurface() {
    const { sql } = this.ctx.storage;
    sql.exec("CREATE TABLE c(id INTEGER PRIMARY KEY, v); CREATE INDEX ci ON c(v)");
    const insert = sql.exec("INSERT INTO c(v) VALUES ('a'), ('b'), ('c')");
    const cursor = sql.exec("SELECT id, v FROM c ORDER BY id");
    const before = cursor.rowsRead;
    const first = cursor.next();
    const raw = cursor.raw();
    const second = raw.next().value;
    const rest = raw.toArray();
    const one = (q) => { try { return sql.exec(q).one(); } catch (e) { return e.message; } };
    return { written: insert.rowsWritten, columns: cursor.columnNames, first, second, rest, done: cursor.next().done, grew: cursor.rowsRead >= before, one: one("SELECT 5 AS x"), none: one("SELECT 1 WHERE 0"), two: one("SELECT id FROM c") };
  }
  async cursorAcrossAwait() {
    const { sql } = this.ctx.storage;
    sql.exec("CREATE TABLE d(id INTEGER PRIMARY KEY)");
    for (let i = 0; i < 50; i++) sql.exec("INSERT INTO d VALUES (?)", i);
    const cursor = sql.exec("SELECT id FROM d ORDER BY id");
    const seen = [cursor.next().value.id];
    await sleep(5);
    sql.exec("DELETE FROM d WHERE id > 10");
    for (const row of cursor) seen.push(row.id);
    sql.exec("DROP TABLE d");
    const open = sql.exec("SELECT name FROM sqlite_master");
    await this.ctx.storage.deleteAll();
    return [seen.length >= 1 && seen.every((id, i) => id === i), typeof open];
  }
  sameTextTwice() {
    const { sql } = this.ctx.storage;
    const q = "SELECT value AS v FROM json_each('[1,2,3]')";
    const a = sql.exec(q), b = sql.exec(q);
    return [a.next().value.v, b.next().value.v, b.next().value.v, [...a].map((r) => r.v), [...b].map((r) => r.v)];
  }
  manyCursors() {
    const { sql } = this.ctx.storage;
    const q = "SELECT value AS v FROM json_each('[1,2,3]')";
    const cursors = Array.from({ length: 1000 }, () => sql.exec(q));
    let ended = "";
    try { cursors[0].next(); cursors[0].next(); } catch (e) { ended = e.message; }
    return [ended, [...cursors[999]].length];
  }
  endlessSql() { return this.ctx.storage.sql.exec("WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT max(x) FROM r").one(); }
  databaseSize() { const before = this.ctx.storage.sql.databaseSize; this.sql("CREATE TABLE big(v)"); this.sql("INSERT INTO big SELECT zeroblob(100000)"); return [before >= 0, this.ctx.storage.sql.databaseSize - before >= 100000]; }
  // --- transactions ---
  nestedSync() {
    const { kv } = this.ctx.storage;
    const result = this.ctx.storage.transactionSync(() => {
      kv.put("outer", 1);
      try { this.ctx.storage.transactionSync(() => { kv.put("inner", 1); throw new Error("inner"); }); } catch {}
      return "result";
    });
    let refused = null;
    try { this.ctx.storage.transactionSync(async () => { kv.put("async", 1); }); } catch (e) { refused = e.name; }
    return [result, kv.get("outer"), kv.get("inner") ?? null, refused, kv.get("async") ?? null];
  }
  async nestedTransactions() {
    const { storage } = this.ctx;
    await storage.transaction(async () => {
      await storage.put("outer", 1);
      storage.sql.exec("CREATE TABLE IF NOT EXISTS tx(v)");
      await attempt(() => storage.transaction(async (txn) => { await txn.put("inner", 1); storage.sql.exec("INSERT INTO tx VALUES (1)"); await sleep(1); throw new Error("inner"); }));
      await storage.transaction(async (txn) => { await txn.put("second", 1); });
    });
    return [await storage.get("outer"), (await storage.get("inner")) ?? null, await storage.get("second"), storage.sql.exec("SELECT count(*) AS n FROM tx").one().n];
  }
  async parallelTransactions() {
    const { storage } = this.ctx;
    await storage.put("n", 0);
    await Promise.all([3, 1, 2].map((ms) => storage.transaction(async (txn) => { await sleep(ms); await txn.put("n", (await txn.get("n")) + 1); })));
    return storage.get("n");
  }
  async rolledBack() {
    const { storage } = this.ctx;
    let later;
    await storage.transaction(async (txn) => { await txn.put("x", 1); txn.rollback(); later = await attempt(() => txn.put("y", 1)); });
    return [(await storage.get("x")) ?? null, later.name];
  }
  // --- alarms ---
  async alarmRoundTrip() {
    const { storage } = this.ctx;
    await storage.setAlarm(new Date(Date.now() + 3_600_000));
    const set = await storage.getAlarm();
    await storage.deleteAlarm();
    const bad = await attempt(() => storage.setAlarm(NaN));
    return [set > Date.now(), await storage.getAlarm(), bad.name];
  }
  async alarmRolledBack() {
    await attempt(() => this.ctx.storage.transaction(async () => { await this.ctx.storage.setAlarm(Date.now() + 3_600_000); throw new Error("no"); }));
    return this.ctx.storage.getAlarm();
  }
  async plan(what, ms = 0) { this.ctx.storage.kv.put("plan", what); await this.ctx.storage.setAlarm(Date.now() + ms); return Date.now() + ms; }
  async alarm(info) {
    const { kv } = this.ctx.storage;
    const runs = kv.get("runs") ?? [];
    runs.push({ at: Date.now(), ...info, overlapping: this.log.inAlarm ?? false });
    kv.put("runs", runs);
    this.log.inAlarm = true;
    const plan = kv.get("plan");
    if (plan === "replace" && runs.length === 1) { await this.ctx.storage.setAlarm(Date.now() + 50); await this.ctx.storage.sync(); this.log.inAlarm = false; throw new Error("failed after setting another"); }
    if (plan === "abort" || plan === "abort without retry") { await this.ctx.storage.sync(); this.ctx.abort("in alarm", { retryAlarm: plan === "abort" }); }
    if (plan === "slow") { await this.ctx.storage.setAlarm(Date.now()); await sleep(60); }
    if (plan === "slow" && runs.length > 2) await this.ctx.storage.deleteAlarm();
    this.log.inAlarm = false;
  }
  runs() { return this.ctx.storage.kv.get("runs") ?? []; }
  async clearAll() { await this.ctx.storage.put("k", 1); await this.ctx.storage.setAlarm(Date.now() + 3_600_000); await this.ctx.storage.deleteAll(); return [(await this.ctx.storage.get("k")) ?? null, await this.ctx.storage.getAlarm()]; }
  // --- RPC ---
  echo(value) { return value; }
  target() { return new Counter(this.log); }
  both() { return { a: new Counter(this.log), list: [new Counter(this.log)] }; }
  disposed() { return this.log.disposed ?? 0; }
  async keep(f) { this.log.kept = f; return f(1); }
  async keepDup(f) { this.log.kept = f.dup(); return f(1); }
  async useKept() { return this.log.kept(2); }
  async useAndDrop() { const result = await this.log.kept(2); this.log.kept[Symbol.dispose](); return result; }
  async passOn(other, f) { return this.env.BOX.getByName(other).keep(f); }
  big(n) { return new Uint8Array(n); }
  size(bytes) { return bytes.length; }
  async throwsInCallback(f) { return attempt(() => f()); }
  async aborted(signal) { if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve)); return [signal.aborted, signal.reason.message]; }
  async write(stream) { const writer = stream.getWriter(); await writer.write(new TextEncoder().encode("written ")); await writer.write(new TextEncoder().encode("there")); await writer.close(); return true; }
  async kinds(request, response, headers) { return [request.method, request.url, await request.text(), response.status, await response.text(), headers.get("x")]; }
  #secret() { return 1; }
  alarmByRpc() {}
  get deep() { return new Counter(this.log); }
  async throwsKind(kind) {
    if (kind === "custom") { class MyError extends Error { constructor() { super("mine"); this.name = "MyError"; this.detail = { a: [1] }; } } throw new MyError(); }
    if (kind === "aggregate") throw new AggregateError([new Error("one")], "many", { cause: new TypeError("why") });
    if (kind === "string") throw "just text";
    if (kind === "dom") throw new DOMException("domain", "NotFoundError");
  }
}

export class Broken extends DurableObject {
  constructor(ctx, env) { super(ctx, env); if ((ctx.storage.kv.get("fixed") ?? false) === false && env.BREAK !== "no") throw new RangeError("constructor failed"); }
  hello() { return "hello"; }
}

// No `extends`, the old names.
export class Old {
  constructor(state, env) { this.state = state; this.env = env; state.blockConcurrencyWhile(async () => { await sleep(1); this.value = (await state.storage.get("value")) ?? 0; }); }
  async fetch(request) {
    const path = new URL(request.url).pathname;
    if (path === "/add") { this.value++; await this.state.storage.put("value", this.value); }
    return new Response(`${path} ${this.value} ${this.state.id.name ?? "-"} ${this.env.NOTE}`);
  }
  async rpc(n) { return n + 1; }
}

const scripts = {
  async namespaces(env) {
    const { BOX } = env;
    const hints = ["wnam", "enam", "sam", "weur", "eeur", "apac", "apac-ne", "apac-se", "oc", "afr", "me", "nowhere"];
    for (const locationHint of hints) BOX.get(BOX.idFromName("hinted"), { locationHint, routingMode: "primary-only" });
    for (const options of [{ retry: { maxRetries: 11 } }, { retry: { timeoutMs: 1 } }, { routingMode: "replica" }]) {
      if ((await attempt(() => BOX.getByName("hinted", options))).name !== "RangeError") throw new Error(`taken: ${JSON.stringify(options)}`);
    }
    BOX.getByName("hinted", { retry: { maxRetries: 3, timeoutMs: 500 } });
    const broken = env.BROKEN.get(env.BROKEN.newUniqueId());
    const a = await BOX.getByName("same", { locationHint: "weur" }).whoami(), b = await BOX.get(BOX.idFromName("same")).whoami();
    const eu = BOX.jurisdiction("eu");
    const euId = eu.newUniqueId();
    const wrong = await attempt(() => eu.get(BOX.idFromName("x")));
    const stub = BOX.get(euId);
    return [a.started === b.started, (await attempt(() => broken.hello())).message, (await stub.whoami()).jurisdiction, BOX.idFromString(String(euId)).jurisdiction, (await attempt(() => eu.idFromString(String(BOX.newUniqueId())))).name, wrong.name ?? "accepted", stub.id.equals(euId), stub.name ?? null, BOX.getByName("n").name, (await attempt(() => BOX.jurisdiction("mars"))).name];
  },
  async longName(env) { const long = "x".repeat(1025); const id = env.BOX.idFromName(long); return [id.name ?? null, (await env.BOX.get(id).whoami()).name, (await env.BOX.get(env.BOX.idFromString(String(env.BOX.idFromName("known")))).whoami()).name]; },
  async brokenConstructor(env) { return attempt(() => env.BROKEN.getByName("b").hello()); },
  async legacy(env) {
    const stub = env.OLD.get(env.OLD.idFromName("old"));
    const texts = [];
    for (const path of ["https://example.com/add", "/add", "/read"]) texts.push(await (await stub.fetch(path)).text());
    return [...texts, (await attempt(() => stub.rpc(1))).message, await (await env.OLD.get(env.OLD.newUniqueId()).fetch(new Request("https://x/read", { method: "POST", body: "b" }))).text()];
  },
  async references(env, name) {
    const box = env.BOX.getByName(name);
    const log = [];
    const f = (n) => { log.push(n); return n * 10; };
    const result = [await box.keep(f)];
    result.push((await attempt(() => box.useKept())).message);
    result.push(await box.keepDup(f), await box.useKept(), await box.useAndDrop(), (await attempt(() => box.useKept())).message);
    result.push(await box.passOn(`${name}-other`, f), (await attempt(() => env.BOX.getByName(`${name}-other`).useKept())).message);
    return [result, log];
  },
  async disposal(env, name) {
    const box = env.BOX.getByName(name);
    const until = async (n) => { for (let i = 0; i < 200 && (await box.disposed()) < n; i++) await sleep(2); return box.disposed(); };
    const counts = [];
    { using target = await box.target(); await target.next(); }
    counts.push(await until(1));
    { using both = await box.both(); await both.a.next(); await both.list[0].next(); }
    counts.push(await until(3));
    const target = await box.target(), again = target.dup();
    target[Symbol.dispose]();
    counts.push(await again.next(), (await attempt(() => target.next())).message);
    again[Symbol.dispose]();
    counts.push(await until(4));
    return counts;
  },
  async sizes(env, name) {
    const box = env.BOX.getByName(name);
    const over = (32 << 20) + 1;
    return [await box.size(new Uint8Array(20 << 20)), (await attempt(() => box.size(new Uint8Array(over)))).name, (await attempt(() => box.big(over))).name, (await box.big(10)).length];
  },
  async callbacks(env, name) {
    const box = env.BOX.getByName(name);
    return [await box.throwsInCallback(() => { throw new RangeError("from the worker"); }), await box.throwsInCallback(async () => { await sleep(1); return 5; }), (await box.throwsInCallback(() => new WeakMap())).name];
  },
  async signals(env, name) {
    const box = env.BOX.getByName(name);
    const controller = new AbortController();
    const pending = box.aborted(controller.signal);
    setTimeout(() => controller.abort(new Error("enough")), 5);
    return [await pending, await box.aborted(AbortSignal.abort(new Error("before")))];
  },
  async writable(env, name) {
    const { readable, writable } = new IdentityTransformStream();
    const text = new Response(readable).text();
    return [await env.BOX.getByName(name).write(writable), await text];
  },
  async values(env, name) {
    const box = env.BOX.getByName(name);
    const cyclic = { map: new Map([[1, { set: new Set([2n]) }]]), date: new Date(3), re: /a/gi, error: new TypeError("e"), bytes: new Uint16Array([1, 2]), nothing: undefined };
    cyclic.self = cyclic;
    const back = await box.echo(cyclic);
    const kinds = await box.kinds(new Request("https://x/p", { method: "PUT", body: "body" }), new Response("text", { status: 202 }), new Headers({ x: "y" }));
    const refused = await Promise.all([() => box.echo(new (class A {})()), () => box.echo(Symbol("s")), () => box.echo(new WeakSet()), () => box.echo(Promise.resolve(1))].map(async (f) => (await attempt(f)).name ?? "sent"));
    return [back.self === back, back.map.get(1).set.has(2n), back.date.getTime(), back.re.flags, back.error instanceof TypeError, back.bytes instanceof Uint16Array, "nothing" in back, kinds, refused];
  },
  async hidden(env, name) {
    const box = env.BOX.getByName(name);
    const calls = [() => box.started(), () => box.log, () => box.secret(), () => box.alarm(), () => box.webSocketMessage(), () => box.constructor(), () => box.toString(), () => box.hasOwnProperty("x"), () => box.ctx, () => box.__proto__.x()];
    return Promise.all(calls.map(async (f) => { const r = await attempt(f); return r.name ?? JSON.stringify(r.value); }));
  },
  async deep(env, name) {
    const box = env.BOX.getByName(name);
    let path = box;
    const result = await attempt(async () => { for (let i = 0; i < 65; i++) path = path.p; });
    return [await box.deep.next(), await box.target().next(), result.name];
  },
  async errors(env, name) {
    const box = env.BOX.getByName(name);
    const out = [];
    try { await box.throwsKind("custom"); } catch (e) { out.push([e.name, e.message, e.detail, e.remote]); }
    try { await box.throwsKind("aggregate"); } catch (e) { out.push([e.constructor.name, e.errors?.[0]?.message ?? null, e.cause?.message ?? null]); }
    try { await box.throwsKind("string"); } catch (e) { out.push([e instanceof Error, e.message, e.remote]); }
    try { await box.throwsKind("dom"); } catch (e) { out.push([e.name, e.message]); }
    return out;
  },
  async overload(env, name) {
    const box = env.BOX.getByName(name);
    const full = Promise.withResolvers();
    let count = 0;
    const section = box.sectionUntil(() => full.promise);
    const results = await Promise.all(Array.from({ length: 10_050 }, async () => {
      const result = await attempt(() => box.order());
      if (result.overloaded && ++count === 50) full.resolve();
      return result;
    }));
    await section;
    const refused = results.filter((r) => r.overloaded);
    return [refused.length, refused.every((r) => !r.remote && !r.retryable && !r.reset), refused[0].message];
  },
  async overloadUncaught(env, name) {
    const box = env.BOX.getByName(name);
    const full = Promise.withResolvers();
    box.sectionUntil(() => full.promise);
    const calls = Array.from({ length: 10_050 }, () => box.order());
    calls.forEach((c) => c.catch(() => full.resolve()));
    await Promise.all(calls);
  },
  /** A slow method and then a section, in this order at one object: what the slow one saw. */
  async deferred(env, method, url) {
    const name = `${method}-${Math.random()}`;
    const box = env.BOX.getByName(name);
    await box.clearOrder();
    const args = { slowTimer: [30], slowCall: [`${name}-other`, 30], slowFetch: [`${url.origin}/slow/30`] }[method];
    const slow = box[method](...args);
    const section = box.section(150);
    const [seen] = await Promise.all([slow, section, box.order()]);
    return seen;
  },
  async spread(env, prefix) { // stubs that cross lanes: whichever lane this runs on, some of these are on the other
    const out = [];
    for (let i = 0; i < 8; i++) { const a = env.BOX.getByName(`${prefix}${i}`); out.push(await a.passOn(`${prefix}${i}-other`, (n) => n + i)); }
    return out;
  },
  workflowClass() { return typeof WorkflowEntrypoint; },
};

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const [, kind, name, method] = url.pathname.split("/").map(decodeURIComponent);
    if (kind === "slow") { await sleep(+name); return new Response("slow"); }
    if (kind === "script") {
      const result = await scripts[name](env, method, url);
      return Response.json(result ?? null);
    }
    const result = await attempt(async () => env.BOX.getByName(name)[method](...(request.method === "POST" ? await request.json() : [])));
    return Response.json("value" in result ? result.value ?? null : { error: result });
  },
};
