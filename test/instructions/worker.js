// The five hot paths of `make instructions`, one request or message each.
import { DurableObject } from "cloudflare:workers";

export class Counter extends DurableObject {
  n = 0;
  async memory() {
    return ++this.n;
  }
}

export class Rows extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS counter(id INTEGER PRIMARY KEY, n INTEGER)");
    ctx.storage.sql.exec("INSERT OR IGNORE INTO counter VALUES(1, 0)");
  }
  async add() {
    return this.ctx.storage.sql.exec("UPDATE counter SET n = n + 1 WHERE id = 1 RETURNING n").one().n;
  }
}

export class Room extends DurableObject {
  fetch() {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage(ws, message) {
    ws.send(message);
  }
}

const only = (namespace) => namespace.get(namespace.idFromName("a"));

export default {
  async fetch(request, env) {
    switch (new URL(request.url).pathname) {
      case "/hello":
        return new Response("hello");
      case "/do-mem":
        return Response.json({ n: await only(env.COUNTER).memory() });
      case "/do-sql":
        return Response.json({ n: await only(env.ROWS).add() });
      case "/ws-echo":
        return only(env.ROOM).fetch(request);
      case "/kv-put":
        await env.KV.put("key", "a value of a hundred bytes or so ".repeat(3));
        return new Response("ok");
      case "/kv-get":
        return new Response(await env.KV.get("key"));
    }
    return new Response("not found", { status: 404 });
  },
};
