// The project that a campaign serves: objects that are lists, alarms, and the services that are objects. Each node has a copy of its own that differs
// in NODE alone, so that an answer tells who ran it.
//
// A list keeps, with each entry, a hash of all up to it; every answer tells the length and the hash, so that it can be compared with what the
// list was in the end without being sent as a whole. `life` is the instance that answered: two that take turns would be two owners. `torn` is a state
// that contradicts itself: tables that disagree, or memory that is not what the tables say.

/** The hash of a list, entry by entry; the same here and in the worker. */
export function chain(before, value) {
  let a = 0x811c9dc5, b = 0x1b873593;
  const text = before + "/" + value;
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193);
    b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b) ^ (b >>> 13);
  }
  return (a >>> 0).toString(16) + (b >>> 0).toString(16);
}

export const files = ({ node, shards, r2 }) => ({
  "wrangler.toml": `name = "ledger"
main = "index.js"
compatibility_date = "2026-01-01"
kv_namespaces = [{ binding = "KV", id = "kv" }]
d1_databases = [{ binding = "DB", database_name = "db", database_id = "db" }]
${r2 ? 'r2_buckets = [{ binding = "R2", bucket_name = "bodies" }]' : ""}
[vars]
NODE = "${node}"
[[durable_objects.bindings]]
name = "LIST"
class_name = "List"
[[durable_objects.bindings]]
name = "BELL"
class_name = "Bell"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["List", "Bell"]
[[queues.producers]]
binding = "QUEUE"
queue = "jobs"
[[queues.consumers]]
queue = "jobs"
max_batch_size = 10
max_batch_timeout = 1
max_retries = 100
[cairn.cluster]
shards = ${shards}
`,
  "index.js": `import { DurableObject } from "cloudflare:workers";
${chain}
export class List extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.sql = ctx.storage.sql;
    this.life = crypto.randomUUID().slice(0, 8);
    this.sql.exec("CREATE TABLE IF NOT EXISTS entry(at INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT, life TEXT, node TEXT)");
    this.sql.exec("CREATE TABLE IF NOT EXISTS tip(one INTEGER PRIMARY KEY, length INTEGER, hash TEXT)");
    this.sql.exec("INSERT OR IGNORE INTO tip VALUES (1, 0, '')");
    this.length = this.tip().length;
  }
  tip() { return this.sql.exec("SELECT length, hash, (SELECT max(at) FROM entry) AS last FROM tip").one(); }
  state() {
    const { length, hash, last } = this.tip();
    return { length, hash, life: this.life, node: this.env.NODE, torn: length !== (last ?? 0) || length !== this.length };
  }
  add(value) {
    const { length, hash } = this.tip();
    this.sql.exec("INSERT INTO entry(value, life, node) VALUES (?, ?, ?)", value, this.life, this.env.NODE);
    this.sql.exec("UPDATE tip SET length = ?, hash = ?", length + 1, chain(hash, value));
    this.length++;
    return this.state();
  }
  list(from) { return { ...this.state(), entries: [...this.sql.exec("SELECT at, value, life, node FROM entry WHERE at > ? ORDER BY at LIMIT 2000", from)] }; }
}
export class Bell extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.sql = ctx.storage.sql;
    this.sql.exec("CREATE TABLE IF NOT EXISTS ring(at INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER, node TEXT)");
    this.sql.exec("CREATE TABLE IF NOT EXISTS plan(one INTEGER PRIMARY KEY, times INTEGER, ms INTEGER)");
  }
  async ring(times, ms) {
    this.sql.exec("INSERT OR IGNORE INTO plan VALUES (1, ?, ?)", times, ms);
    if (this.sql.exec("SELECT count(*) AS n FROM ring").one().n === 0) await this.ctx.storage.setAlarm(Date.now() + ms);
    return "set";
  }
  async alarm() {
    const { times, ms } = this.sql.exec("SELECT times, ms FROM plan").one();
    this.sql.exec("INSERT INTO ring(time, node) VALUES (?, ?)", Date.now(), this.env.NODE);
    if (this.sql.exec("SELECT count(*) AS n FROM ring").one().n < times) await this.ctx.storage.setAlarm(Date.now() + ms);
  }
  rings() { return [...this.sql.exec("SELECT time, node FROM ring ORDER BY at")]; }
}
export default {
  async fetch(request, env) {
    const [, what, name, value, more] = new URL(request.url).pathname.split("/");
    const list = () => env.LIST.getByName(name), bell = () => env.BELL.getByName(name);
    switch (what) {
      case "add": return Response.json(await list().add(value));
      case "state": return Response.json(await list().state());
      case "list": return Response.json(await list().list(Number(value)));
      case "ring": return Response.json(await bell().ring(Number(value), Number(more)));
      case "rings": return Response.json(await bell().rings());
      case "put": return Response.json((await env.KV.put(name, value), "put"));
      case "get": return Response.json({ value: await env.KV.get(name) });
      case "make": return Response.json((await env.DB.exec("CREATE TABLE IF NOT EXISTS entry(at INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT UNIQUE)"), "made"));
      case "insert": return Response.json({ length: (await env.DB.prepare("INSERT INTO entry(value) VALUES (?)").bind(name).run()).meta.last_row_id });
      case "count": {
        const { length, count } = await env.DB.prepare("SELECT ifnull(max(at), 0) AS length, count(*) AS count FROM entry").first();
        return Response.json({ length, torn: length !== count });
      }
      case "rows": return Response.json({ entries: (await env.DB.prepare("SELECT at, value FROM entry WHERE at > ? ORDER BY at LIMIT 2000").bind(Number(name)).all()).results });
      case "send": return Response.json((await env.QUEUE.send(name), "sent"));
      case "store": return Response.json((await env.R2.put(name, request.body, { customMetadata: { version: value } })).etag);
      case "fetch": {
        const object = await env.R2.get(name);
        return object ? new Response(object.body, { headers: { "x-version": object.customMetadata.version } }) : Response.json({ none: true }, { headers: { "x-version": "0" } });
      }
    }
    return new Response("?", { status: 404 });
  },
  async queue(batch) {
    for (const message of batch.messages) console.log("delivered " + message.body + ".");
  },
};
`,
});
