// WebSocket frames by bytes: valid ones, lying ones and damaged ones, compressed or not, to a worker that echoes and to an object
// that hibernates. What comes back must be frames.
import { deflateRawSync } from "node:zlib";
import { exchange, main, mutate } from "./lib.mjs";

const files = {
  "wrangler.json": JSON.stringify({ name: "app", main: "index.js", compatibility_date: "2026-01-01", durable_objects: { bindings: [{ name: "ROOM", class_name: "Room" }] }, migrations: [{ tag: "v1", new_sqlite_classes: ["Room"] }] }),
  "index.js": `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  async fetch() { const { 0: client, 1: server } = new WebSocketPair(); this.ctx.acceptWebSocket(server, ["t"]); return new Response(null, { status: 101, webSocket: client }); }
  webSocketMessage(ws, message) { ws.send(message); if (this.ctx.getWebSockets("t").length < 20) for (const each of this.ctx.getWebSockets()) if (each !== ws) each.send("other"); }
  webSocketClose(ws, code) { try { ws.close(code); } catch {} }
}
export default { async fetch(request, env) {
  if (request.headers.get("upgrade") !== "websocket") return new Response("plain");
  if (new URL(request.url).pathname === "/room") return env.ROOM.getByName("r").fetch(request);
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.addEventListener("message", (event) => { if (event.data === "close") server.close(1000, "asked"); else server.send(event.data); });
  return new Response(null, { status: 101, webSocket: client });
} };`,
};

function frame(random, payload, { opcode, fin = true, rsv = 0, masked = true, length = payload.length }) {
  const head = [(fin ? 0x80 : 0) | (rsv << 4) | opcode];
  const form = random.chance(90) ? (length < 126 ? 0 : length < 65536 ? 1 : 2) : random.below(3);
  if (form === 0) head.push((masked ? 0x80 : 0) | (length & 127));
  else if (form === 1) head.push((masked ? 0x80 : 0) | 126, (length >> 8) & 255, length & 255);
  else head.push((masked ? 0x80 : 0) | 127, random.chance(5) ? 0x80 : 0, 0, 0, 0, (length >>> 24) & 255, (length >> 16) & 255, (length >> 8) & 255, length & 255);
  if (!masked) return Buffer.concat([Buffer.from(head), payload]);
  const key = random.bytes(4), out = Buffer.from(payload);
  for (let i = 0; i < out.length; i++) out[i] ^= key[i & 3];
  return Buffer.concat([Buffer.from(head), key, out]);
}

function message(random, deflate) {
  const size = random.chance(70) ? random.below(200) : random.one([0, 125, 126, 16381, 16384, 65535, 65536, 32768, 49149 + random.below(8)]);
  let payload = random.chance(50) ? random.bytes(size) : Buffer.alloc(size, random.one(["a", "\u00e4\u20ac", "{}", "\xff"]));
  if (random.chance(3)) payload = Buffer.from("close");
  let opcode = random.chance(80) ? random.one([1, 2]) : random.below(16), rsv = random.chance(95) ? 0 : random.below(8);
  if (opcode >= 8 && random.chance(90)) payload = payload.subarray(0, random.below(126));
  if (deflate && opcode < 3 && random.chance(60)) {
    payload = deflateRawSync(payload, { level: random.below(10) });
    if (random.chance(30)) payload = mutate(random, payload, ["\0\0\xff\xff", "\x03\0"]);
    rsv = 4;
  }
  const parts = random.chance(80) ? 1 : 1 + random.below(4), frames = [];
  for (let i = 0; i < parts; i++) {
    const piece = payload.subarray(Math.floor((payload.length * i) / parts), Math.floor((payload.length * (i + 1)) / parts));
    frames.push(frame(random, piece, { opcode: i ? 0 : opcode, fin: i === parts - 1 || random.chance(3), rsv: i ? 0 : rsv, masked: !random.chance(2), length: random.chance(97) ? piece.length : random.below(100_000) }));
  }
  return Buffer.concat(frames);
}

await main({
  name: "server websocket", files, width: 6,
  async once(server, random) {
    const deflate = random.chance(70);
    const head = `GET ${random.one(["/", "/room"])} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n` +
      (deflate ? `Sec-WebSocket-Extensions: permessage-deflate${random.one(["", "; client_max_window_bits", "; server_max_window_bits=9", "; server_no_context_takeover"])}\r\n` : "") + "\r\n";
    let body = Buffer.concat(Array.from({ length: 1 + random.below(6) }, () => message(random, deflate)));
    if (random.chance(25)) body = mutate(random, body, ["\x88\x80\0\0\0\0", "\x89\x80\0\0\0\0", "\xc1\xff", "\0"]);
    const pieces = [Buffer.from(head)];
    for (let at = 0; at < body.length;) {
      const size = random.chance(60) ? body.length : 1 + random.below(300);
      pieces.push(body.subarray(at, at + size));
      at += size;
    }
    const answer = (await exchange(server.port, pieces, { silence: 40, most: 4 << 20 })).toString("latin1");
    if (answer.length > 0 && !answer.startsWith("HTTP/1.1 101 ")) throw new Error(`no handshake: ${answer.slice(0, 200)}`);
    const end = answer.indexOf("\r\n\r\n") + 4;
    if (answer.length > end && (answer.charCodeAt(end) & 0x30 || answer.charCodeAt(end + 1) & 0x80)) throw new Error(`no frame of a server: ${answer.slice(end, end + 20)}`);
    return answer.slice(9, 12) || "silence";
  },
});
