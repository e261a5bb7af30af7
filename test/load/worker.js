// What `make load` serves: every kind of storage, each write with an id that is looked for at the end.
import { DurableObject } from "cloudflare:workers";

export class Cell extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS notes(id TEXT PRIMARY KEY, filling TEXT)");
  }
  write(id, size) {
    this.ctx.storage.sql.exec("INSERT OR REPLACE INTO notes VALUES(?, ?)", id, "x".repeat(size));
    return id;
  }
  writeAll(ids) {
    for (const id of ids) this.write(id, 0);
  }
  read() {
    return this.ctx.storage.sql.exec("SELECT count(*) AS n FROM notes").one().n;
  }
  ids() {
    return this.ctx.storage.sql.exec("SELECT id FROM notes").toArray().map((row) => row.id);
  }
  async slow(milliseconds) {
    await this.ctx.blockConcurrencyWhile(() => new Promise((resolve) => setTimeout(resolve, milliseconds)));
  }
  fetch() {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage(socket, message) {
    const { id, flood } = JSON.parse(message);
    if (flood) for (let i = 0; i < flood; i++) socket.send("f".repeat(65536));
    else socket.send(this.write(id, 10)); // leaves when the write is durable
  }
}

const routes = {
  hello: () => new Response("hello"),
  async echo(request) {
    return new Response(String((await request.arrayBuffer()).byteLength));
  },
  big: (request, env, name) => new Response(new Uint8Array(Number(name)).fill(120)),
  stream(request, env, name) {
    let left = Number(name);
    return new Response(new ReadableStream({
      pull(controller) {
        if (left-- > 0) controller.enqueue(new Uint8Array(65536));
        else controller.close();
      },
    }));
  },
  ws: (request, env, name) => env.CELL.get(env.CELL.idFromName(name)).fetch(request),
  async write(request, env, name, id) {
    return new Response(await env.CELL.get(env.CELL.idFromName(name)).write(id, 200));
  },
  async fill(request, env, name, size) {
    return new Response(await env.CELL.get(env.CELL.idFromName(name)).write("filling", Number(size)));
  },
  async read(request, env, name) {
    return new Response(String(await env.CELL.get(env.CELL.idFromName(name)).read()));
  },
  async kv(request, env, name, id) {
    await env.KV.put(id, "v".repeat(300), { metadata: { name } });
    return new Response(id);
  },
  async kvget(request, env, name) {
    return new Response((await env.KV.get(name)) ?? "none");
  },
  async d1(request, env, name, id) {
    await env.DB.prepare("INSERT OR REPLACE INTO notes VALUES(?, ?)").bind(id, name).run();
    return new Response(id);
  },
  async d1get(request, env, name) {
    return Response.json(await env.DB.prepare("SELECT count(*) AS n FROM notes WHERE name = ?").bind(name).first());
  },
  async r2(request, env, name, id) {
    await env.BUCKET.put(id, request.body ?? "");
    return new Response(id);
  },
  async r2get(request, env, name) {
    const object = await env.BUCKET.get(name);
    return new Response(object ? object.body : "none");
  },
  async queue(request, env, name, id) {
    await env.QUEUE.send(id);
    return new Response(id);
  },
  /** Many calls of one object that takes its time: what it cannot take is refused. */
  async pile(request, env, name, count) {
    const cell = env.CELL.get(env.CELL.idFromName(name));
    cell.slow(300).catch(() => {});
    const ends = await Promise.allSettled(Array.from({ length: Number(count) }, () => cell.read()));
    const refused = ends.filter((end) => end.status === "rejected");
    for (const { reason } of refused) if (!reason.overloaded) throw reason;
    return Response.json({ refused: refused.length });
  },
  async setup(request, env) {
    await env.DB.exec("CREATE TABLE IF NOT EXISTS notes(id TEXT PRIMARY KEY, name TEXT)");
    return new Response("ready");
  },
  /** All ids that a place has. */
  async ids(request, env, name) {
    if (name === "kv" || name === "r2") {
      const ids = [];
      for (let cursor; ; ) {
        const page = name === "kv" ? await env.KV.list({ cursor }) : await env.BUCKET.list({ cursor });
        ids.push(...(page.keys ?? page.objects).map((item) => item.name ?? item.key));
        cursor = page.cursor;
        if (page.list_complete ?? !page.truncated) return Response.json(ids);
      }
    }
    if (name === "d1") return Response.json((await env.DB.prepare("SELECT id FROM notes").raw()).map(([id]) => id));
    return Response.json(await env.CELL.get(env.CELL.idFromName(name)).ids());
  },
};

export default {
  async fetch(request, env) {
    const [, route, name, id] = new URL(request.url).pathname.split("/");
    try {
      return await routes[route](request, env, name, id);
    } catch (error) {
      // As an uncaught error is answered, with its text for the check.
      return Response.json({ error: String(error?.message ?? error), overloaded: error?.overloaded === true }, { status: error?.overloaded ? 503 : 500 });
    }
  },
  async queue(batch, env) {
    await env.CELL.get(env.CELL.idFromName("sink")).writeAll(batch.messages.map((message) => message.body));
  },
};
