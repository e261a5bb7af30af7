import { DurableObject } from "cloudflare:workers";
import { acceptSocket, broadcast, parse } from "../../shared/sockets";
import { apply, transform, type Splice } from "./splice";

const TEXT_MAX = 100_000;
/** Changes that are kept for those who were away. */
const HISTORY = 1000;

interface Writer {
  client: string;
}

/**
 * A text that many write at once. The object decides the order: each change says which revision it was made
 * on, is transformed by what has come since, applied, kept, and sent to everybody, its author included.
 */
export class Document extends DurableObject {
  private text: string;
  private revision: number;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as never);
    ctx.storage.sql.exec(`
      CREATE TABLE IF NOT EXISTS document(id INTEGER PRIMARY KEY CHECK(id = 1), revision INTEGER, text TEXT);
      INSERT OR IGNORE INTO document VALUES(1, 0, '');
      CREATE TABLE IF NOT EXISTS changes(revision INTEGER PRIMARY KEY, client TEXT, number INTEGER, change TEXT);
    `);
    const { revision, text } = ctx.storage.sql.exec("SELECT revision, text FROM document").one();
    this.revision = Number(revision);
    this.text = String(text);
  }

  fetch(request: Request): Response {
    const client = new URL(request.url).searchParams.get("client")!;
    const { socket, response } = acceptSocket(this.ctx, { client } satisfies Writer);
    const { number } = this.ctx.storage.sql.exec("SELECT coalesce(max(number), 0) AS number FROM changes WHERE client = ?", client).one();
    socket.send(JSON.stringify({ type: "text", text: this.text, revision: this.revision, number }));
    this.tellWriters();
    return response;
  }

  webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): void {
    const { client } = socket.deserializeAttachment() as Writer;
    const message = parse(data, 2 * TEXT_MAX);
    const revision = Number(message?.revision);
    const number = Number(message?.number);
    let change = this.checked(message?.change);
    if (message?.type !== "change" || change === null || !(revision >= this.revision - HISTORY && revision <= this.revision) || !Number.isSafeInteger(number))
      return socket.close(1008, "not a change of this document");
    const since = this.ctx.storage.sql.exec("SELECT change FROM changes WHERE revision > ? ORDER BY revision", revision);
    for (const row of since) change = transform(change, JSON.parse(String(row.change)) as Splice)!;
    const text = apply(this.text, change);
    if (text.length > TEXT_MAX) return socket.close(1009, `a document has at most ${TEXT_MAX} characters`);
    this.text = text;
    this.revision++;
    const { sql } = this.ctx.storage;
    sql.exec("UPDATE document SET revision = ?, text = ?", this.revision, text);
    sql.exec("INSERT INTO changes VALUES(?, ?, ?, ?)", this.revision, client, number, JSON.stringify(change));
    sql.exec("DELETE FROM changes WHERE revision <= ?", this.revision - HISTORY);
    broadcast(this.ctx, { type: "change", revision: this.revision, client, number, change });
  }

  webSocketClose(socket: WebSocket): void {
    this.tellWriters(socket);
  }

  /** A splice within the bounds of any text, or null. */
  private checked(value: unknown): Splice | null {
    const { at, cut, put } = (value ?? {}) as Splice;
    const inside = Number.isInteger(at) && Number.isInteger(cut) && at >= 0 && cut >= 0 && at + cut <= TEXT_MAX;
    return inside && typeof put === "string" && put.length <= TEXT_MAX ? { at, cut, put } : null;
  }

  private tellWriters(except?: WebSocket): void {
    const count = this.ctx.getWebSockets().filter((socket) => socket !== except && socket.readyState === WebSocket.OPEN).length;
    broadcast(this.ctx, { type: "writers", count }, except);
  }
}
