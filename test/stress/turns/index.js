// The worker of test/stress/turns.mjs and of the tests test/integration/objects/turns*.test.mjs:
// objects that do things in ways (ways.js) that make their code run where another's turn is.
//
//     POST /run/NAME/WAY {op, group, by}      the object NAME runs it; by: "rpc", "fetch"
//     POST /count/NAME {op, before, inside}   a counter in a section: [what is awaited before, inside]
//     POST /outside/NAME/HOW {op}             the default handler uses the object's ctx
//     POST /dump/NAME                         what is stored
//     /ws/NAME                                a WebSocket
import { DurableObject, RpcTarget, WorkerEntrypoint } from "cloudflare:workers";
import { hooks, started, store, within } from "./hooks.js";
import { Channel, SHARED_MS, cells, pause, room } from "./shared.js";
import { foreign, loops, ways } from "./ways.js";

const all = { ...ways, ...foreign };

/** What a section, or the code before it, may wait for. */
const waits = {
  nothing: () => undefined,
  microtask: () => Promise.resolve(),
  timer: () => pause(1 + Math.random() * 3),
  "scheduler.wait": () => scheduler.wait(2),
  storage: (cell) => cell.ctx.storage.get("n"),
  kv: (cell) => cell.env.KV.get("missing"),
  d1: (cell) => cell.env.DB.prepare("SELECT 1").first(),
  r2: (cell) => cell.env.BUCKET.head("missing"),
  cache: () => caches.default.match("https://cache.test/missing"),
  rpc: (cell) => cell.env.HELPER.getByName("h").quick(),
  "stub.fetch": async (cell) => (await cell.env.HELPER.getByName("h").fetch("https://h/")).text(),
  fetch: async (cell) => (await cell.env.SELF.fetch("https://self/slow")).text(),
  crypto: () => crypto.subtle.digest("SHA-256", new Uint8Array(100_000)),
  stream: () => new Response(new Blob(["x".repeat(1000)]).stream()).text(),
  compression: () => new Response(new Response("x".repeat(10_000)).body.pipeThrough(new CompressionStream("gzip"))).arrayBuffer(),
  event: () => new Promise((resolve) => {
    const target = new EventTarget();
    target.addEventListener("go", resolve);
    setTimeout(() => target.dispatchEvent(new Event("go")), 1);
  }),
  abort: () => scheduler.wait(1000, { signal: AbortSignal.timeout(2) }).catch(() => {}),
  lent: (cell) => cell.env.HELPER.getByName("h").callback(async () => pause(1)),
  section: (cell) => cell.ctx.blockConcurrencyWhile(() => pause(1)),
  "two sections": async (cell) => {
    await cell.ctx.blockConcurrencyWhile(() => pause(1));
    await cell.ctx.blockConcurrencyWhile(() => pause(1));
  },
  "two sections at once": (cell) => Promise.all([cell.ctx.blockConcurrencyWhile(() => pause(2)), cell.ctx.blockConcurrencyWhile(() => pause(1))]),
  "section in a section": (cell) => cell.ctx.blockConcurrencyWhile(async () => {
    await pause(1);
    await cell.ctx.blockConcurrencyWhile(() => pause(1));
    await pause(1);
  }),
  transaction: (cell) => cell.ctx.storage.transaction(async (txn) => {
    await txn.put("waited", 1);
    await pause(1);
  }),
  // Not one that was begun outside: its timer waits for the section.
  shared: (cell, where) => room("counters").memo(`${where} ${where === "inside" ? cell.name : ""}`, () => pause(2)),
};

export class Cell extends DurableObject {
  #faults = [];
  #inside = 0;

  constructor(ctx, env) {
    super(ctx, env);
    this.name = ctx.id.name;
    cells.set(this.name, this);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS marks(op TEXT PRIMARY KEY)");
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS ops(op TEXT PRIMARY KEY, n INTEGER)");
    ctx.blockConcurrencyWhile(async () => {
      await room("constructors").memo("all", () => pause(1));
      this.n = (await ctx.storage.get("n")) ?? 0;
    });
  }

  fault(text) {
    this.#faults.push(text);
  }

  /** What code of the object does when it runs again. */
  markSync(op, settings) {
    this.#look("mark", op, settings);
    if (this.#planted("lose")) return;
    if (this.#planted("cross")) op = `x${op}`;
    this.ctx.storage.sql.exec("INSERT INTO marks VALUES(?)", op);
    this.ctx.storage.kv.put(`sync ${op}`, this.name);
  }
  async mark(op, settings) {
    this.markSync(op, settings);
    if (this.env.PLANT !== "lose") await this.ctx.storage.put(`async ${op}`, this.name);
    this.#look("marked", op, settings);
  }
  /** Whether a promise is to be broken on purpose, so that the check is seen to find it. */
  #planted(what, share = 0.1) {
    return this.env.PLANT === what && Math.random() < share;
  }
  /** Says where it is: a line of the log, and its AsyncLocalStorage value. */
  #look(where, op, { log = true, als = true } = {}) {
    if (log) console.log(`@${log === true ? where : log} ${this.#planted("log") ? `x${op}` : op}`);
    if (als && hooks && store() !== op) this.fault(`${op}: at ${where} the AsyncLocalStorage value is ${store()}`);
  }

  async run(way, op, group) {
    return within(op, async () => {
      this.#look("start", op);
      await all[way](this, op, room(group));
      this.#look("end", op);
      return { op, name: this.name, faults: this.#faults.splice(0) };
    });
  }

  /** A counter whose section must let nobody in between, whatever it waits for. */
  count(op, before, inside, request) {
    return within(op, async () => {
      if (request !== undefined && before === "json") await request.json();
      else if (request !== undefined && before === "text") await request.text();
      else if (before in waits) await waits[before](this, "before");
      const section = this.#planted("section", 0.5) ? (run) => run() : (run) => this.ctx.blockConcurrencyWhile(run);
      const n = await section(async () => {
        if (++this.#inside !== 1) this.fault(`${op}: two in one section`);
        const seen = this.n;
        await waits[inside](this, "inside");
        if (this.n !== seen) this.fault(`${op}: ${this.n} in memory, was ${seen} when the section began`);
        this.n = seen + 1;
        await this.ctx.storage.put("n", seen + 1);
        this.ctx.storage.sql.exec("INSERT INTO ops VALUES(?, ?)", op, seen + 1);
        this.#look("mark", op);
        this.#inside--;
        return seen + 1;
      });
      this.#look("end", op);
      return { op, name: this.name, value: n, faults: this.#faults.splice(0) };
    });
  }

  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname === "/ws") return this.#connect(request, url.searchParams.get("id"));
    if (url.pathname === "/count") {
      const { op, before, inside } = Object.fromEntries(url.searchParams);
      return Response.json(await this.count(op, before, inside, request));
    }
    const { op, way, group } = await request.json();
    return Response.json(await this.run(way, op, group));
  }

  #connect(request, id) {
    const [client, server] = Object.values(new WebSocketPair());
    if (id.startsWith("plain")) {
      server.accept();
      server.addEventListener("message", (event) => this.webSocketMessage(server, event.data));
      server.addEventListener("close", () => server.close());
    } else {
      this.ctx.acceptWebSocket(server, [id]);
      server.serializeAttachment({ id, name: this.name });
    }
    return new Response(null, { status: 101, webSocket: client });
  }
  /** Runs what is asked for and answers on the same socket. */
  async webSocketMessage(socket, text) {
    const { op, way, group } = JSON.parse(text);
    try {
      socket.send(JSON.stringify({ ...(await this.run(way, op, group)), id: socket.deserializeAttachment()?.id }));
    } catch (error) {
      socket.send(JSON.stringify({ op, name: this.name, error: String(error?.message ?? error) }));
    }
  }
  webSocketClose(socket, code) {
    socket.close(code === 1005 ? 1000 : code);
  }
  /** To every socket of this object, whoever calls. */
  tell(text) {
    for (const socket of this.ctx.getWebSockets()) if (this.env.PLANT !== "socket") socket.send(JSON.stringify({ told: text, name: this.name, id: socket.deserializeAttachment()?.id }));
  }

  async alarmIn(op, group) {
    await this.ctx.storage.put("alarm", { op, group });
    await this.ctx.storage.setAlarm(Date.now());
    return { op, name: this.name };
  }
  async alarm() {
    const { op, group } = await this.ctx.storage.get("alarm");
    await within(op, async () => {
      this.#look("start", op);
      await room(group).memo("alarm");
      await this.mark(op);
    });
  }

  /** Waits for what another settles, and writes then; the object may have been reset meanwhile. */
  async waitFor(op, group) {
    await room(group).thing("zombies", () => ({ waiting: Promise.withResolvers() })).waiting.promise;
    await this.mark(op);
    return { op, name: this.name };
  }
  release(_, group) {
    const held = room(group).thing("zombies", () => ({ waiting: Promise.withResolvers() }));
    held.waiting.resolve();
    held.waiting = Promise.withResolvers();
  }
  reset() {
    this.ctx.abort("meant to reset");
  }
  /** In its turn, uses the ctx of another object of the same lane. */
  async useOther(name, how, op) {
    return outside[how](cells.get(name), op);
  }
  /** As many subrequests as an invocation may have, after a wait for another. */
  async subrequests(count, group) {
    await room(group).memo("subrequests");
    for (let i = 0; i < Number(count); i++) await fetch("http://127.0.0.1:9/").catch((error) => {
      if (/Too many subrequests/.test(error.message)) throw error;
    });
    return { name: this.name };
  }
  /** Begins a loop at module level that serves everybody. */
  beginLoop(_, group) {
    const jobs = room(group).thing("jobs", () => new Channel());
    void (async () => {
      for await (const job of jobs) job.taken(this.name);
    })();
    return this.name;
  }
  /** Who takes a job from the loop, or null if nobody does while microtasks run. */
  async useLoop(_, group) {
    let by = null;
    room(group).thing("jobs", () => new Channel()).put({ taken: (name) => { by = name; } });
    for (let i = 0; i < 20; i++) await null;
    return by;
  }
  /** A promise that follows one that another settles; the next ones wait for it. */
  passOn(_, group) {
    const held = room(group).thing("followed", () => Promise.withResolvers());
    room(group).thing("following", () => new Promise((resolve) => resolve(held.promise)));
    return this.name;
  }
  async follow(op, group) {
    room(group).thing("followed").resolve();
    await room(group).thing("following");
    await this.mark(op);
    return { op, name: this.name };
  }
  /** A row of a cursor that another object opened. */
  async openCursor() {
    this.ctx.storage.sql.exec("INSERT OR IGNORE INTO marks VALUES(?), (?)", `${this.name} a`, `${this.name} b`);
    this.cursor = this.ctx.storage.sql.exec("SELECT op FROM marks ORDER BY op");
    return this.cursor.next().value.op;
  }
  async readCursor(name) {
    return cells.get(name)?.cursor.next().value?.op ?? null;
  }
  /** Waits for a shared promise and then uses up its CPU time. */
  async spin(_, group) {
    await room(group).memo("spin");
    for (;;);
  }
  async share(_, group) {
    await room(group).memo("spin");
    await pause(SHARED_MS);
    return this.name;
  }
  hello() {
    return this.name;
  }
  dump() {
    const { storage } = this.ctx;
    return {
      name: this.name,
      marks: [...storage.sql.exec("SELECT op FROM marks").raw()].map(([op]) => op),
      keys: [...storage.kv.list()].filter(([key]) => /^a?sync /.test(key)),
      n: storage.kv.get("n") ?? 0,
      ops: [...storage.sql.exec("SELECT op, n FROM ops").raw()],
      outside: [...storage.kv.list({ prefix: "outside " })],
      alarm: storage.kv.get("rang") ?? null,
      faults: this.#faults.splice(0),
    };
  }
}

export class Helper extends DurableObject {
  async slow() {
    await pause(SHARED_MS);
    return 1;
  }
  quick() {
    return 1;
  }
  async fetch() {
    await pause(2);
    return new Response("helped");
  }
  counter() {
    return new Counter();
  }
  async callback(back) {
    await pause(1);
    return back(7);
  }
}
class Counter extends RpcTarget {
  async slow() {
    await pause(SHARED_MS);
    return 2;
  }
}

/** For env.SELF. */
export class Self extends WorkerEntrypoint {
  async fetch() {
    await pause(SHARED_MS / 2);
    return new Response("self");
  }
}

/** An object's ctx, used where the turn is not the object's. Each resolves when its write is acknowledged. */
const outside = {
  put: (cell, op) => cell.ctx.storage.put(`outside ${op}`, op),
  "put several": (cell, op) => cell.ctx.storage.put({ [`outside ${op}`]: op, other: 1 }),
  "put after a wait": async (cell, op) => {
    await pause(3);
    await cell.ctx.storage.put(`outside ${op}`, op);
  },
  "kv.put and sync()": async (cell, op) => {
    cell.ctx.storage.kv.put(`outside ${op}`, op);
    await cell.ctx.storage.sync();
  },
  "transaction": (cell, op) => cell.ctx.storage.transaction(async (txn) => {
    await txn.put(`outside ${op}`, op);
    await pause(1);
  }),
  "transactionSync and sync()": async (cell, op) => {
    cell.ctx.storage.transactionSync(() => cell.ctx.storage.kv.put(`outside ${op}`, op));
    await cell.ctx.storage.sync();
  },
  "blockConcurrencyWhile": (cell, op) => cell.ctx.blockConcurrencyWhile(async () => {
    await pause(1);
    await cell.ctx.storage.put(`outside ${op}`, op);
  }),
  "put and delete": async (cell, op) => {
    await cell.ctx.storage.put("gone", op);
    await cell.ctx.storage.delete("gone");
    await cell.ctx.storage.put(`outside ${op}`, op);
  },
  "its own method": (cell, op) => cell.ctx.storage.get("n").then(() => cell.ctx.storage.put(`outside ${op}`, op)),
};

export default {
  async fetch(request, env, ctx) {
    const url = new URL(request.url);
    const [, what, name, detail] = url.pathname.split("/").map(decodeURIComponent);
    if (what === "slow") return env.SELF.fetch(request);
    if (what === "ready") return Response.json({ started, ways: Object.keys(ways), foreign: Object.keys(foreign), loops, waits: Object.keys(waits), outside: Object.keys(outside) });
    const stub = env.CELL.getByName(name);
    if (what === "ws") return stub.fetch(new Request(`https://cell/ws${url.search}`, request));
    try {
      const body = request.method === "POST" ? await request.json() : {};
      return Response.json((await answer(what, stub, name, detail, body, request, ctx)) ?? null);
    } catch (error) {
      return Response.json({ error: String(error?.message ?? error) }, { status: 500 });
    }
  },
};

async function answer(what, stub, name, detail, { op, group, by, before, inside, other }, request, ctx) {
  if (op !== undefined) console.log(`@asked ${op}`);
  switch (what) {
    case "run":
      if (by === "fetch") return (await stub.fetch("https://cell/", { method: "POST", body: JSON.stringify({ op, way: detail, group }) })).json();
      return stub.run(detail, op, group);
    case "count": {
      const query = new URLSearchParams({ op, before, inside });
      return (await stub.fetch(`https://cell/count?${query}`, { method: "POST", body: JSON.stringify({ some: "body" }) })).json();
    }
    case "outside":
      await stub.hello();
      if (!cells.has(name)) return { elsewhere: true };
      await outside[detail](cells.get(name), op);
      return { op, name };
    case "other":
      return cells.has(other) && cells.has(name) ? (await stub.useOther(other, detail, op), { op, name: other }) : { elsewhere: true };
    case "tell":
      if (cells.has(name)) cells.get(name).tell(op);
      else return { elsewhere: true };
      return { op, name };
    case "alarm":
      return stub.alarmIn(op, group);
    case "waitFor":
    case "follow":
      return stub[what](op, group);
    case "shared":
      await room(group).memo("handlers");
      console.log(`@end ${op}`);
      return { op };
    case "late":
      ctx.waitUntil(room(group).memo("waitUntil of handlers").then(() => console.log(`@late ${op}`)));
      return { op };
    default:
      return stub[what](detail, group);
  }
}
