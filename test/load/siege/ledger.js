// The innocent: answers at once, and keeps what it has acknowledged. `born` is lost if the script is restarted.
import { DurableObject } from "cloudflare:workers";

const born = String(Math.random());

export class Book extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS notes(id TEXT PRIMARY KEY)");
  }
  write(id) {
    this.ctx.storage.sql.exec("INSERT OR REPLACE INTO notes VALUES(?)", id);
    return id;
  }
  writeAll(ids) {
    for (const id of ids) this.write(id);
  }
  ids() {
    return this.ctx.storage.sql.exec("SELECT id FROM notes").toArray().map((row) => row.id);
  }
}

export default {
  async fetch(request, env) {
    const [, what, name, id] = new URL(request.url).pathname.split("/");
    if (what === "hello") return new Response(born);
    if (what === "write") return new Response(await env.BOOK.getByName(name).write(id));
    if (what === "ids") return Response.json(await env.BOOK.getByName(name).ids());
    if (what === "kv") return env.KV.put(id, "v").then(() => new Response(id));
    if (what === "kvget") return new Response(await env.KV.get(id));
    if (what === "queue") return env.QUEUE.send(id).then(() => new Response(id));
    return new Response("nothing here", { status: 404 });
  },
  async queue(batch, env) {
    await env.BOOK.getByName("sink").writeAll(batch.messages.map((message) => message.body));
  },
};
