// The other end of the resilient client: takes each message once, in order, and says so.
//
// The number of the last message of each client is in storage and is written in the turn that takes the message, so the
// acknowledgement leaves when both are durable. Sockets hibernate: an inbox whose clients are quiet is not in memory.
import { DurableObject } from "cloudflare:workers";

interface Entry extends Record<string, SqlStorageValue> {
  client: string;
  seq: number;
  body: string;
}

const BODY_MOST = 1000;
const ENTRIES_KEPT = 500;

export class Inbox extends DurableObject {
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.sql.exec(`
      CREATE TABLE IF NOT EXISTS clients (client TEXT PRIMARY KEY, seq INTEGER NOT NULL);
      CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY AUTOINCREMENT, client TEXT NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL);
    `);
  }

  async fetch(request: Request): Promise<Response> {
    const client = new URL(request.url).searchParams.get("client") ?? "";
    if (!/^[\w-]{8,64}$/.test(client)) return Response.json({ error: '"client" must be 8 to 64 letters and digits.' }, { status: 400 });
    const { 0: ours, 1: theirs } = new WebSocketPair();
    this.ctx.acceptWebSocket(theirs, [client]);
    theirs.serializeAttachment(client);
    theirs.send(JSON.stringify({ type: "ready", seq: this.last(client) }));
    return new Response(null, { status: 101, webSocket: ours });
  }

  async webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): Promise<void> {
    const client = socket.deserializeAttachment() as string;
    let message: { seq?: unknown; body?: unknown } | null;
    try {
      message = JSON.parse(String(data));
    } catch {
      return socket.close(1003, "Messages must be JSON.");
    }
    const { seq, body } = message ?? {};
    if (!Number.isSafeInteger(seq) || typeof body !== "string" || body.length > BODY_MOST) return socket.close(1008, "A message needs a number and a short text.");
    const last = this.last(client);
    // A copy is acknowledged again: the first acknowledgement may have been lost. A gap means that one got lost: start over.
    if ((seq as number) > last + 1) return socket.close(4001, "A message is missing.");
    if (seq === last + 1) {
      this.sql.exec("INSERT OR REPLACE INTO clients (client, seq) VALUES (?, ?)", client, seq);
      this.sql.exec("INSERT INTO entries (client, seq, body) VALUES (?, ?, ?)", client, seq, body);
      this.sql.exec("DELETE FROM entries WHERE id <= (SELECT max(id) FROM entries) - ?", ENTRIES_KEPT);
      for (const other of this.ctx.getWebSockets()) other.send(JSON.stringify({ type: "entry", client, seq, body }));
    }
    socket.send(JSON.stringify({ type: "ack", seq: Math.max(last, seq as number) }));
  }

  async entries(): Promise<Entry[]> {
    return this.sql.exec<Entry>("SELECT client, seq, body FROM entries ORDER BY id DESC LIMIT 100").toArray();
  }

  /** Takes the object down, connections and all: what a crash of its machine looks like to clients. */
  async crash(): Promise<void> {
    for (const socket of this.ctx.getWebSockets()) socket.close(1012, "restarting");
    this.ctx.waitUntil(scheduler.wait(0).then(() => this.ctx.abort("crashed on request")));
  }

  private last(client: string): number {
    return this.sql.exec<{ seq: number }>("SELECT seq FROM clients WHERE client = ?", client).toArray()[0]?.seq ?? 0;
  }
}
