// What the tests of Durable Objects talk to: POST /NAME/METHOD with a JSON array of arguments calls
// that method of the object of that name; the answer is JSON of the result or of the error.
import { DurableObject, RpcTarget, WorkerEntrypoint, env as imported } from "cloudflare:workers";

class Bomb extends RpcTarget {
  #ctx;
  constructor(ctx) { super(); this.#ctx = ctx; }
  hang() { return new Promise(() => {}); }
  ping() { return "pong"; }
  explode() { this.#ctx.abort("exploded"); }
}

class Cart extends RpcTarget {
  #items = [];
  constructor(log) {
    super();
    this.log = log;
  }
  add(item) {
    this.#items.push(item);
    return this.#items.length;
  }
  get total() {
    return this.#items.length;
  }
  [Symbol.dispose]() {
    this.log.disposed = true;
  }
}

export class Box extends DurableObject {
  started = Math.random();
  log = {};
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, v)");
  }
  // --- storage ---
  /** How often a getter is read in an argument of one call, of calls to objects on this lane and on others. */
  async argumentReads(count) {
    const counts = [];
    for (let i = 0; i < count; i++) {
      let reads = 0;
      await this.env.BOX.getByName(`reads ${i}`).taken({ get x() { return ++reads; } });
      counts.push(reads);
    }
    return counts;
  }
  taken({ x }) { return x; }
  async put(key, value) { await this.ctx.storage.put(key, value); return "ok"; }
  async get(key) { return this.ctx.storage.get(key); }
  async kinds() {
    const value = { map: new Map([["a", 1]]), set: new Set([1, 2]), date: new Date(5), bytes: new Uint8Array([1, 2]), big: 10n ** 20n, error: new RangeError("r"), re: /x/g, nested: [1, [2]] };
    value.self = value;
    await this.ctx.storage.put("kinds", value);
    const back = await this.ctx.storage.get("kinds");
    return [back.map.get("a"), back.set.has(2), back.date.getTime(), [...back.bytes], String(back.big), back.error instanceof RangeError, back.re.flags, back.self === back];
  }
  async many() {
    const { storage } = this.ctx;
    await storage.put({ "b": 2, "a": 1, "c": 3, "\u00e9": 4 });
    const list = [...(await storage.list()).keys()];
    const range = [...(await storage.list({ start: "a", end: "c", reverse: true })).entries()];
    const after = [...(await storage.list({ startAfter: "a", limit: 1 })).keys()];
    const got = [...(await storage.get(["c", "a", "zz"])).keys()];
    const deleted = await storage.delete(["a", "zz"]);
    return { list, range, after, got, deleted, kv: [...storage.kv.list({ prefix: "b" })] };
  }
  async limits() {
    const errors = [];
    const attempt = async (f) => { try { await f(); errors.push(null); } catch (e) { errors.push(e.name + ": " + e.message); } };
    await attempt(() => this.ctx.storage.put("x".repeat(2049), 1));
    await attempt(() => this.ctx.storage.put("k", () => {}));
    await attempt(() => this.ctx.storage.put("k", undefined));
    await attempt(() => this.ctx.storage.get(Array(129).fill("k")));
    await attempt(() => this.ctx.storage.put("big", new Uint8Array(3 << 20)));
    await attempt(() => this.ctx.storage.list({ start: "a", startAfter: "b" }));
    return errors;
  }
  sql(query, ...bindings) {
    const cursor = this.ctx.storage.sql.exec(query, ...bindings);
    const rows = cursor.toArray();
    return { rows, names: cursor.columnNames, read: cursor.rowsRead, written: cursor.rowsWritten };
  }
  sqlKinds() {
    const { sql } = this.ctx.storage;
    sql.exec("CREATE TABLE k(a, b, c, d, e); INSERT INTO k VALUES(?, ?, ?, ?, ?)", null, 1.5, "text", new Uint8Array([7, 8]), 9007199254740991);
    const row = sql.exec("SELECT * FROM k").one();
    return [row.a, row.b, row.c, row.d instanceof ArrayBuffer, [...new Uint8Array(row.d)], row.e, sql.exec("SELECT 1 AS x, 2 AS y").raw().toArray(), sql.databaseSize > 0];
  }
  cursorAcross() {
    const { sql } = this.ctx.storage;
    for (let i = 1; i <= 5; i++) sql.exec("INSERT INTO t(v) VALUES(?)", i);
    const cursor = sql.exec("SELECT v FROM t ORDER BY id");
    const first = cursor.next().value.v;
    const again = sql.exec("SELECT v FROM t ORDER BY id").one;
    return [first, [...cursor].map((r) => r.v), typeof again, cursor.next().done];
  }
  // --- transactions ---
  async atomic(fail) {
    this.ctx.storage.sql.exec("INSERT INTO t(v) VALUES('sql')");
    this.ctx.storage.kv.put("atomic", 1);
    if (fail) throw new Error("after writing");
    return "ok";
  }
  txSync(fail) {
    this.ctx.storage.kv.put("outer", 1);
    try {
      this.ctx.storage.transactionSync(() => {
        this.ctx.storage.kv.put("inner", 1);
        this.ctx.storage.sql.exec("INSERT INTO t(v) VALUES('inner')");
        if (fail) throw new Error("no");
      });
    } catch (e) { if (e.message !== "no") throw e; }
    return [this.ctx.storage.kv.get("outer") ?? null, this.ctx.storage.kv.get("inner") ?? null, this.ctx.storage.sql.exec("SELECT count(*) AS n FROM t WHERE v = 'inner'").one().n];
  }
  async tx(mode) {
    try {
      await this.ctx.storage.transaction(async (txn) => {
        await txn.put("tx", mode);
        await new Promise((r) => setTimeout(r, 10));
        if (mode === "rollback") txn.rollback();
        if (mode === "throw") throw new Error("no");
      });
    } catch (e) { if (e.message !== "no") throw e; }
    return (await this.ctx.storage.get("tx")) ?? null;
  }
  // --- gates ---
  async slowIncrement() {
    const n = (await this.ctx.storage.get("n")) ?? 0;
    await this.ctx.storage.put("n", n + 1);
    return n + 1;
  }
  async lockedIncrement(ms) {
    return this.ctx.blockConcurrencyWhile(async () => {
      const n = this.n ?? 0;
      await new Promise((r) => setTimeout(r, ms));
      this.n = n + 1;
      return this.n;
    });
  }
  async synced() { this.ctx.storage.kv.put("s", 1); await this.ctx.storage.sync(); return "durable"; }
  // --- life ---
  whoami() { return { name: this.ctx.id.name ?? null, hex: String(this.ctx.id), started: this.started }; }
  /** Lists of ctx.storage.kv: a new one ends the one before it, unless that is over. */
  kvLists() {
    const { kv } = this.ctx.storage;
    const told = (work) => { try { return work(); } catch (e) { return e.message; } };
    for (const key of ["a", "b", "c"]) kv.put(key, key);
    const first = kv.list(), whole = [...kv.list({ limit: 2 })].length;
    const begun = kv.list();
    begun.next();
    const over = kv.list({ prefix: "a" });
    const rest = [...over].length;
    kv.list();
    return [whole, told(() => [...first].length), told(() => begun.next().value), rest, told(() => over.next().done), told(() => kv.list({ start: "a", startAfter: "b" })), told(() => kv.list({ limit: 0 }))];
  }
  sqlTexts(...statements) {
    this.ctx.storage.kv.put("k", 1); // the table that is not the script's
    return statements.map((text) => { try { this.ctx.storage.sql.exec(text); return null; } catch (e) { return e.message; } });
  }
  bomb() { return new Bomb(this.ctx); }
  abort(message) { this.ctx.storage.kv.put("aborted", 1); this.ctx.abort(message); }
  throws(kind) {
    const error = new (kind === "type" ? TypeError : Error)("thrown inside");
    error.code = 42;
    throw error;
  }
  spin() { for (;;); }
  async deleteAll() { await this.ctx.storage.deleteAll(); return (await this.ctx.storage.list()).size; }
  // --- alarms ---
  async setAlarm(ms) { await this.ctx.storage.setAlarm(Date.now() + ms); return this.ctx.storage.getAlarm().then((t) => t !== null); }
  async alarm(info) {
    const inside = await this.ctx.storage.getAlarm();
    const runs = (await this.ctx.storage.get("runs")) ?? [];
    runs.push({ retry: info.retryCount, inside, name: this.ctx.id.name ?? null });
    await this.ctx.storage.put("runs", runs);
  }
  async runs() { return { runs: (await this.ctx.storage.get("runs")) ?? [], alarm: await this.ctx.storage.getAlarm() }; }
  // --- rpc ---
  echo(value) { return value; }
  keep(value) { this.kept = value; return value; }
  sameAsKept() { this.kept.a += 10; return this.kept; }
  badResult() { return { get a() { throw new RangeError("no result"); } }; }
  types() { return [new Map([[1, 2]]), new Set([3]), new Date(7), 5n, new Uint8Array([1]), undefined]; }
  async callback(f) { return (await f(20)) + 1; }
  cart() { return new Cart(this.log); }
  nested() { return { cart: new Cart(this.log), fn: (x) => x * 2 }; }
  disposed() { return this.log.disposed ?? false; }
  instance() { return new (class Plain {})(); }
  stream() { return new Response("streamed text").body; }
  async readStream(stream) { return new Response(stream).text(); }
  get version() { return "v1"; }
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname === "/throw") throw new Error("fetch failed inside");
    if (url.pathname === "/big") return new Response(new ReadableStream({ async pull(c) { this.n = (this.n ?? 0) + 1; c.enqueue(new Uint8Array(65536).fill(65)); if (this.n === 64) c.close(); } }));
    return Response.json({ method: request.method, path: url.pathname, host: url.host, body: await request.text(), header: request.headers.get("x-test") }, { status: 201, headers: { "x-from": "object" } });
  }
}

// The old form: no `extends`, state and env.
export class Legacy {
  constructor(state, env) { this.state = state; this.ready = state.blockConcurrencyWhile(async () => { this.value = (await state.storage.get("v")) ?? 0; }); }
  async fetch(request) { this.value++; await this.state.storage.put("v", this.value); return new Response(new URL(request.url).pathname + " " + this.value); }
}

// What happens inside the worker: calls that JSON over HTTP cannot express.
const scripts = {
  async callbacks(box) { let seen = 0; const r = await box.callback((x) => { seen = x; return x * 2; }); return [seen, r]; },
  async targets(box) {
    using cart = await box.cart();
    const first = await cart.add("a");
    return [first, await cart.add("b"), await cart.total];
  },
  async copies(box) {
    const sent = { a: 1 };
    const promise = box.keep(sent);
    sent.a = 2;
    const got = await promise;
    got.a = 3;
    const shared = { k: 1 };
    const twins = await box.echo({ p: shared, q: shared });
    const thrown = [];
    for (const f of [() => box.echo({ get a() { throw new SyntaxError("no argument"); } }), () => box.badResult()]) {
      const result = f(); // not thrown here
      thrown.push(await result.then(() => null, (e) => `${e.name}: ${e.message}`));
    }
    const { keep } = box;
    return [(await box.sameAsKept()).a, got.a, twins.p === twins.q, thrown, await keep("detached"), (await box.echo([1, "b", null])).length, Object.is(await box.echo(-0), -0)];
  },
  async pipelining(box) { return [await box.cart().add("x"), await box.nested().cart.add("y"), await box.nested().fn(21), await box.version]; },
  async dispose(box) {
    const cart = await box.cart();
    await cart.add(1);
    cart[Symbol.dispose]();
    for (let i = 0; i < 50 && !(await box.disposed()); i++) await new Promise((r) => setTimeout(r, 5));
    return box.disposed();
  },
  async streams(box) {
    const text = await new Response(await box.stream()).text();
    return [text, await box.readStream(new Response("from the worker").body)];
  },
  async order(box) { const all = []; for (let i = 0; i < 20; i++) all.push(box.slowIncrement()); return Promise.all(all); },
  async rpcKinds(box) { const [map, set, date, big, bytes, none] = await box.types(); return [map.get(1), set.has(3), date.getTime(), String(big), bytes[0], none === undefined]; },
  async refused(box) { const errors = []; for (const f of [() => box.instance(), () => box.missing(), () => box.started(), () => box.echo(new WeakMap())]) { try { await f(); errors.push(null); } catch (e) { errors.push(e.name); } } return errors; },
  async errors(box) { try { await box.throws("type"); } catch (e) { return [e instanceof TypeError, e.name, e.message, e.code, e.remote ?? false, e.durableObjectReset ?? false]; } },
  async aborted(box) { try { await box.abort("because"); } catch (e) { return [e.message, e.durableObjectReset ?? false, e.retryable ?? false, e.remote ?? false, (await imported.BOX.get(box.id).get("aborted")) ?? null]; } },
  /** An object gives out a target, and is reset: what each of its stubs says to calls before and after. */
  async broken(box) {
    const told = async (call) => { try { return await call(); } catch (e) { return [e.message, e.durableObjectReset ?? false]; } };
    const target = await box.bomb();
    const before = [target.hang(), target.explode(), target.ping()].map((call) => told(() => call));
    const out = await Promise.all(before);
    out.push(await told(() => target.ping()), await told(() => box.get("k")), await told(() => box.fetch("http://x/")));
    const again = imported.BOX.get(box.id);
    out.push(again === box, await again.put("k", 5), await again.get("k"), await told(() => box.get("k")));
    return out;
  },
  /** What a stub shows of itself. */
  shown(box) {
    const { id } = box;
    const before = [typeof box, Object.keys(box), Object.prototype.toString.call(box), "anything" in box, "then" in box, Symbol.iterator in box, Object.hasOwn(box, "id")];
    box.extra = () => "own";
    Object.defineProperty(box, "hidden", { value: 1, enumerable: false });
    const own = [Object.keys(box), box.extra(), box.hidden, delete box.extra, typeof box.extra, Object.keys(box)];
    const again = imported.BOX.get(id);
    let cloned;
    try { structuredClone(again); } catch (e) { cloned = e.name; }
    return [before, own, again.hidden === 1, JSON.parse(JSON.stringify(again)).name === id.name, cloned, String(again.get("x")), String(again)];
  },
  async fetches(box) {
    const a = await box.fetch("/relative?q=1", { method: "POST", body: "data", headers: { "x-test": "h" } });
    const b = await box.fetch("https://example.com/abs");
    const big = (await (await box.fetch("https://x/big")).arrayBuffer()).byteLength;
    let thrown; try { await box.fetch("https://x/throw"); } catch (e) { thrown = e.message; }
    return [a.status, a.headers.get("x-from"), await a.json(), (await b.json()).host, big, thrown];
  },
  async ids(box, env) {
    const ns = env.BOX;
    const named = ns.idFromName("n1"), unique = ns.newUniqueId(), eu = ns.jurisdiction("eu").idFromName("n1");
    const errors = []; for (const bad of ["zz", "0".repeat(64), String(env.LEGACY.idFromName("n1"))]) { try { ns.idFromString(bad); errors.push(null); } catch (e) { errors.push(e.name); } }
    return [named.equals(ns.idFromString(String(named))), named.name, unique.name ?? null, String(unique).length, eu.jurisdiction, eu.equals(named), errors, await ns.get(ns.idFromString(String(named))).whoami().then((i) => i.hex === String(named))];
  },
  async legacy(box, env) { const s = env.LEGACY.getByName("old"); return [await (await s.fetch("https://x/a")).text(), await (await s.fetch("/b")).text()]; },
  async stubArg(box, env) { const other = env.BOX.getByName("other"); const same = await box.echo(other); await same.put("via", 1); return other.get("via"); },
};

export default {
  async fetch(request, env) {
    const [, name, method] = new URL(request.url).pathname.split("/");
    const box = env.BOX.getByName(decodeURIComponent(name));
    try {
      if (scripts[method]) return Response.json(await scripts[method](box, env));
      const args = request.method === "POST" ? await request.json() : [];
      return Response.json((await box[method](...args)) ?? null);
    } catch (error) {
      return Response.json({ error: String(error?.message), name: error?.name, overloaded: error?.overloaded, reset: error?.durableObjectReset, retryable: error?.retryable, remote: error?.remote }, { status: 500 });
    }
  },
};
