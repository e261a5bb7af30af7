// Hibernatable WebSockets for the benchmarks: "e..." is echoed, "b..." goes to everyone.
import { DurableObject } from "cloudflare:workers";

export class Room extends DurableObject {
  fetch(request) {
    if (request.headers.get("Upgrade") !== "websocket") return Response.json({ sockets: this.ctx.getWebSockets().length });
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage(ws, message) {
    if (message[0] === "b") {
      for (const each of this.ctx.getWebSockets()) each.send(message);
    } else {
      ws.send(message);
    }
  }
  webSocketClose(ws) {
    ws.close(1000, "bye");
  }
}

export default {
  fetch(request, env) {
    const url = new URL(request.url);
    if (url.pathname === "/hello") return new Response("hello");
    return env.ROOM.get(env.ROOM.idFromName(url.searchParams.get("name"))).fetch(request);
  },
};
