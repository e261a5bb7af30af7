// What the examples with WebSockets have in common: the handshake, and the client of their pages.
import client from "./browser/reconnecting.js";
import { Refusal } from "./http";

/** The script that the pages import. */
export const clientScript = (): Response =>
  new Response(client as unknown as string, { headers: { "content-type": "text/javascript;charset=utf-8", "cache-control": "no-cache" } });

export function requireUpgrade(request: Request): void {
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") throw new Refusal(426, "Connect with a WebSocket.");
}

/** Accepts a socket for hibernation and answers the handshake with `response`; "ping" is answered without waking the object. */
export function acceptSocket(ctx: DurableObjectState, attachment: unknown, tags: string[] = []): { socket: WebSocket; response: Response } {
  const [client, socket] = Object.values(new WebSocketPair());
  ctx.acceptWebSocket(socket, tags);
  socket.serializeAttachment(attachment);
  ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
  return { socket, response: new Response(null, { status: 101, webSocket: client }) };
}

/** A message of a client as an object, or null: not what our pages send. */
export function parse(message: string | ArrayBuffer, most = 100_000): Record<string, unknown> | null {
  if (typeof message !== "string" || message.length > most) return null;
  try {
    const value: unknown = JSON.parse(message);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

export function broadcast(ctx: DurableObjectState, value: unknown, except?: WebSocket): void {
  const text = JSON.stringify(value);
  for (const socket of ctx.getWebSockets()) {
    // One that is closing takes nothing more.
    if (socket !== except && socket.readyState === WebSocket.OPEN) socket.send(text);
  }
}
