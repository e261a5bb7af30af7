import { DurableObject } from "cloudflare:workers";
import { acceptSocket, broadcast, parse } from "../../shared/sockets";

const HISTORY = 100;
const TEXT_MAX = 2000;
/** A client may say so much at once, and then so much each second. */
const BURST = 10;
const PER_SECOND = 2;

interface Member {
  name: string;
  allowance: number; // messages it may send now
  at: number; // when that was so
}

const tagOf = (name: string): string => `name:${name}`;
const isOpen = (socket: WebSocket): boolean => socket.readyState === WebSocket.OPEN;

/** A room: who is here is what its sockets say, what was said is in SQL. Nothing is kept in memory, so it may leave it at any time. */
export class Room extends DurableObject {
  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as never);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS messages(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, text TEXT, at INTEGER)");
  }

  fetch(request: Request): Response {
    const name = new URL(request.url).searchParams.get("name")!.trim();
    const { socket, response } = acceptSocket(this.ctx, { name, allowance: BURST, at: Date.now() } satisfies Member, [tagOf(name)]);
    const messages = this.ctx.storage.sql.exec("SELECT * FROM (SELECT * FROM messages ORDER BY id DESC LIMIT ?) ORDER BY id", HISTORY).toArray();
    socket.send(JSON.stringify({ type: "init", state: { messages } }));
    this.tellWhoIsHere();
    return response;
  }

  webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): void {
    const message = parse(data, 4 * TEXT_MAX);
    const text = typeof message?.text === "string" ? message.text.trim() : "";
    if (message?.type !== "say" || text === "" || text.length > TEXT_MAX) return this.refuse(socket, `Say something of at most ${TEXT_MAX} characters.`);
    const member = socket.deserializeAttachment() as Member;
    const now = Date.now();
    member.allowance = Math.min(BURST, member.allowance + ((now - member.at) / 1000) * PER_SECOND);
    member.at = now;
    if (member.allowance < 1) return this.refuse(socket, "Not so fast.");
    member.allowance--;
    socket.serializeAttachment(member);
    const aside = /^@(\S+) (.+)$/s.exec(text);
    if (aside) return this.tellAside(socket, { name: member.name, to: aside[1], text: aside[2], at: now });
    const { id } = this.ctx.storage.sql.exec("INSERT INTO messages(name, text, at) VALUES(?, ?, ?) RETURNING id", member.name, text, now).one();
    this.ctx.storage.sql.exec("DELETE FROM messages WHERE id <= ?", Number(id) - 10 * HISTORY);
    // Nobody reads it before it is on disk.
    broadcast(this.ctx, { type: "message", id, name: member.name, text, at: now });
  }

  webSocketClose(socket: WebSocket): void {
    this.tellWhoIsHere(socket);
  }

  /** "@name …" goes to every tab of that name, found by their tag, and to nobody else; it is not kept. */
  private tellAside(from: WebSocket, aside: { name: string; to: string; text: string; at: number }): void {
    const theirs = this.ctx.getWebSockets(tagOf(aside.to)).filter(isOpen);
    if (theirs.length === 0) return this.refuse(from, `Nobody called ${aside.to} is here.`);
    for (const socket of new Set([from, ...theirs])) socket.send(JSON.stringify({ type: "aside", ...aside }));
  }

  private refuse(socket: WebSocket, reason: string): void {
    socket.send(JSON.stringify({ type: "refused", reason }));
  }

  private tellWhoIsHere(except?: WebSocket): void {
    const here = this.ctx.getWebSockets().filter((socket) => socket !== except && isOpen(socket));
    const names = [...new Set(here.map((socket) => (socket.deserializeAttachment() as Member).name))].sort();
    broadcast(this.ctx, { type: "here", names }, except);
  }
}
