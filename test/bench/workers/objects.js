// The Durable Object workloads of `make bench`: the same script on cairn and on workerd.
import { DurableObject } from "cloudflare:workers";

/** Memory, one read, and the three kinds of durable write. */
export class Counter extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS counter(id INTEGER PRIMARY KEY, n INTEGER)");
    ctx.storage.sql.exec("INSERT OR IGNORE INTO counter VALUES(1, 0)");
    this.n = 0;
  }
  async memory() {
    return ++this.n;
  }
  async read() {
    return this.ctx.storage.sql.exec("SELECT n FROM counter WHERE id = 1").one().n;
  }
  async kv() {
    const n = (this.ctx.storage.kv.get("n") ?? 0) + 1;
    this.ctx.storage.kv.put("n", n);
    return n;
  }
  async sql() {
    return this.ctx.storage.sql.exec("UPDATE counter SET n = n + 1 WHERE id = 1 RETURNING n").one().n;
  }
  async async() {
    const n = ((await this.ctx.storage.get("m")) ?? 0) + 1;
    await this.ctx.storage.put("m", n);
    return n;
  }
  async fetch(request) {
    return Response.json({ n: ++this.n, path: new URL(request.url).pathname });
  }
}

/** Has no storage at all. */
export class Memory extends DurableObject {
  n = 0;
  async hit() {
    return ++this.n;
  }
}

/** New with every request: a table and a row. */
export class Fresh extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS items(id INTEGER PRIMARY KEY, name TEXT, at INTEGER)");
  }
  async add(name) {
    return this.ctx.storage.sql.exec("INSERT INTO items(name, at) VALUES(?, ?) RETURNING id", name, Date.now()).one().id;
  }
}

/** A sliding window. Its limit is never reached, so that every request costs the same. */
export class Limiter extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS hits(key TEXT, at INTEGER)");
    ctx.storage.sql.exec("CREATE INDEX IF NOT EXISTS hits_by_key ON hits(key, at)");
  }
  async allow(key, limit, windowMs) {
    const { sql } = this.ctx.storage;
    const now = Date.now();
    const { n } = sql.exec("SELECT COUNT(*) AS n FROM hits WHERE key = ? AND at > ?", key, now - windowMs).one();
    if (n >= limit) return { allowed: false, n };
    sql.exec("INSERT INTO hits(key, at) VALUES(?, ?)", key, now);
    return { allowed: true, n: n + 1 };
  }
}

/** Notes when its alarm ran and when what it wrote was durable. */
export class Alarm extends DurableObject {
  async set(at) {
    await this.ctx.storage.put("due", at);
    await this.ctx.storage.setAlarm(at);
    return at;
  }
  async alarm() {
    await this.ctx.storage.put("fired", Date.now());
    await this.ctx.storage.sync();
    this.done = Date.now();
  }
  async report() {
    return { fired: await this.ctx.storage.get("fired"), done: this.done };
  }
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const name = url.searchParams.get("name") ?? "a";
    const [, kind, method] = url.pathname.split("/");
    const object = (ns) => ns.get(ns.idFromName(name));
    switch (kind) {
      case "hello":
        return new Response("hello");
      case "counter":
        if (method === "fetch") return object(env.COUNTER).fetch(request);
        return Response.json({ n: await object(env.COUNTER)[method]() });
      case "memory":
        return Response.json({ n: await object(env.MEMORY).hit() });
      case "create":
        return Response.json({ id: await object(env.FRESH).add(name) });
      case "limit": {
        const stub = env.LIMITER.get(env.LIMITER.idFromName(`shard${Number(name) % 10}`));
        return Response.json(await stub.allow(name, 1e9, 1000));
      }
      case "alarm":
        if (method === "set") return Response.json({ at: await object(env.ALARM).set(Number(url.searchParams.get("at"))) });
        return Response.json(await object(env.ALARM).report());
    }
    return new Response("not found", { status: 404 });
  },
};
