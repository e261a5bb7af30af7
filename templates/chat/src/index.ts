import { DurableObject } from "cloudflare:workers";

interface Env {
  ROOMS: DurableObjectNamespace<Room>;
}

const KEPT = 100; // messages of a room
const LENGTH = 2000; // characters of a message

/** A room: its sockets, and its last messages. It may leave memory while they are open. */
export class Room extends DurableObject<Env> {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL)");
  }

  async fetch(request: Request): Promise<Response> {
    const name = new URL(request.url).searchParams.get("name")?.slice(0, 40) || "somebody";
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server);
    server.serializeAttachment({ name });
    const last = this.ctx.storage.sql.exec("SELECT name, text FROM messages ORDER BY id").toArray();
    server.send(JSON.stringify({ type: "history", messages: last }));
    return new Response(null, { status: 101, webSocket: client });
  }

  webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    if (typeof message !== "string" || !message.trim()) return;
    const { name } = socket.deserializeAttachment() as { name: string };
    const text = message.slice(0, LENGTH);
    const { sql } = this.ctx.storage;
    sql.exec("INSERT INTO messages (name, text) VALUES (?, ?)", name, text);
    sql.exec("DELETE FROM messages WHERE id <= (SELECT max(id) FROM messages) - ?", KEPT);
    const line = JSON.stringify({ type: "message", name, text });
    for (const each of this.ctx.getWebSockets()) each.send(line);
  }

  webSocketClose(socket: WebSocket): void {
    socket.close();
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const room = new URL(request.url).pathname.match(/^\/room\/([\w-]{1,64})$/)?.[1];
    if (!room) return new Response("There is no such page.\n", { status: 404 });
    if (request.headers.get("upgrade") !== "websocket")
      return new Response("A room is a WebSocket.\n", { status: 426 });
    return env.ROOMS.getByName(room).fetch(request);
  },
};
