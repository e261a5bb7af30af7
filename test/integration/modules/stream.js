// What is behind test/module/river.c: a class of objects, and a worker that calls it.
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";

const pieces = (count, size, made = { count: 0 }) => new ReadableStream({
  type: "bytes",
  pull(controller) {
    if (made.count === count) {
      controller.close();
      controller.byobRequest?.respond(0);
      return;
    }
    made.count++;
    controller.enqueue(new Uint8Array(size).fill(120));
  },
});
const length = async (body) => (await new Response(body).bytes()).length;

async function answer(request, name) {
  const { pathname } = new URL(request.url);
  const [, , what, count] = `/${pathname.split("/").slice(-3).join("/")}`.match(/(\/|^)(echo|seen|teapot|throw|zipped|stream\/(\d+))$/) ?? [];
  if (what === undefined) return null;
  if (what === "echo") return new Response(request.body);
  if (what === "seen") return Response.json({ method: request.method, url: request.url, mine: request.headers.get("x-mine"), body: await request.text(), name });
  if (what === "teapot") return new Response("short", { status: 418 });
  if (what === "throw") throw new RangeError("thrown by the room");
  if (what === "zipped") return new Response("zipped", { headers: { "content-encoding": "gzip" } });
  return new Response(pieces(Number(count), 10_000));
}

export class Room extends DurableObject {
  cancelled = 0;
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname.endsWith("/cancelled")) return new Response(`${this.cancelled}`);
    if (pathname.endsWith("/endless")) {
      return new Response(new ReadableStream({ type: "bytes", pull: (controller) => controller.enqueue(new Uint8Array(10_000)), cancel: () => { this.cancelled++; } }));
    }
    if (request.headers.get("upgrade") === "websocket") {
      const [client, server] = Object.values(new WebSocketPair());
      this.ctx.acceptWebSocket(server, ["a tag"]);
      return new Response(null, { status: 101, webSocket: client, headers: { "x-room": this.ctx.id.name } });
    }
    return (await answer(request, this.ctx.id.name)) ?? new Response("none", { status: 404 });
  }
  webSocketMessage(socket, message) { socket.send(`room: ${message}`); }
  webSocketClose(socket, code, reason) { socket.close(code, reason); }
}

const asked = {
  sum: (env) => env.RIVER.sum(pieces(100, 10_000)),
  make: async (env) => length(await env.RIVER.make(10)),
  twice: (env) => env.RIVER.twice((x) => x * 2),
  write: async (env) => length((await env.RIVER.fetch("https://river/write/10")).body),
  post: async (env) => (await env.RIVER.fetch("https://river/count", { method: "POST", body: pieces(100, 10_000) })).text(),
  async "give-up"(env) {
    const reader = (await env.RIVER.fetch("https://river/endless")).body.getReader();
    await reader.read();
    await reader.cancel(new Error("enough"));
    const other = (await env.RIVER.make(-1)).getReader();
    await other.read();
    await other.cancel(new Error("enough"));
    return "ok";
  },
};

export default class extends WorkerEntrypoint {
  async fetch(request) {
    const name = new URL(request.url).pathname.split("/").pop();
    if (asked[name]) return Response.json(await asked[name](this.env));
    return (await answer(request, null)) ?? new Response("there is nothing here");
  }
}
