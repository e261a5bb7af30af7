// A room of WebSockets, and answers that are large: whoever does not read them makes the server hold them.
import { DurableObject } from "cloudflare:workers";

const born = String(Math.random());

export class Room extends DurableObject {
  sockets = new Set();
  fetch(request) {
    const [client, server] = Object.values(new WebSocketPair());
    if (request.url.endsWith("/hibernated")) {
      this.ctx.acceptWebSocket(server);
    } else {
      server.accept();
      this.sockets.add(server);
      server.addEventListener("close", () => this.sockets.delete(server));
    }
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage() {}
  webSocketClose() {}
  broadcast(count, bytes) {
    const all = [...this.sockets, ...this.ctx.getWebSockets()];
    for (let i = 0; i < count; i++) {
      const message = new Uint8Array(bytes).fill(i);
      for (const socket of all) try { socket.send(message); } catch { /* it was closed */ }
    }
    return all.length;
  }
}

export default {
  async fetch(request, env) {
    const [, what, name, count, bytes] = new URL(request.url).pathname.split("/");
    if (what === "hello") return new Response(born);
    if (what === "socket") return env.ROOM.getByName(name).fetch(request);
    if (what === "broadcast") return new Response(String(await env.ROOM.getByName(name).broadcast(Number(count), Number(bytes))));
    if (what === "big") return new Response(new Uint8Array(8 << 20).fill(120));
    if (what === "stream") {
      let left = 128;
      return new Response(new ReadableStream({
        pull(controller) {
          if (left-- > 0) controller.enqueue(new Uint8Array(65536));
          else controller.close();
        },
      }));
    }
    return new Response("nothing here", { status: 404 });
  },
};
