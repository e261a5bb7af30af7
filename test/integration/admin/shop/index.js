// A shop with something of everything, for the tests of the dashboard: carts and chat rooms as Durable Objects, a catalogue in D1,
// sessions in KV, pictures in R2, orders in a queue.
import { DurableObject } from "cloudflare:workers";

export class Cart extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS item(id INTEGER PRIMARY KEY, product TEXT NOT NULL, amount INTEGER NOT NULL, price REAL, note TEXT)");
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS event(at INTEGER PRIMARY KEY, what TEXT) WITHOUT ROWID");
  }
  async add(product, amount, price) {
    this.ctx.storage.sql.exec("INSERT INTO item(product, amount, price) VALUES(?, ?, ?)", product, amount, price);
    await this.ctx.storage.put("total", this.total());
    console.log(`added ${amount} × ${product}`);
    return this.total();
  }
  total() {
    return this.ctx.storage.sql.exec("SELECT coalesce(sum(amount * price), 0) AS sum FROM item").one().sum;
  }
  async customer(name) {
    await this.ctx.storage.put({ customer: { name, language: "en", newsletter: false }, since: new Date(), basket: new Map([["currency", "EUR"]]), signature: new Uint8Array([7, 8, 9]) });
  }
  remind(milliseconds) {
    return this.ctx.storage.setAlarm(Date.now() + milliseconds);
  }
  alarm() {
    console.warn("the cart was forgotten");
  }
}

export class Room extends DurableObject {
  async fetch(request) {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server, ["visitor"]);
    await this.ctx.storage.put("opened", (await this.ctx.storage.get("opened") ?? 0) + 1);
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage(socket, message) {
    for (const other of this.ctx.getWebSockets()) other.send(message);
  }
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const [, first, second, third] = url.pathname.split("/").map(decodeURIComponent);
    if (first === "cart") return Response.json((await env.CART.getByName(second)[third](...(await request.json()))) ?? null);
    if (first === "room") return env.ROOM.getByName(second).fetch(request);
    if (first === "sessions") return new Response(await env.SESSIONS.put(second, await request.text(), { metadata: { browser: "Firefox" }, expirationTtl: 86400 }));
    if (first === "images") { await env.IMAGES.put(url.pathname.slice(8), request.body, { httpMetadata: request.headers, customMetadata: { by: "upload" } }); return new Response("stored"); }
    if (first === "orders") { await env.ORDERS.send(await request.json()); return new Response("queued"); }
    if (first === "failed") { await env.FAILED.sendBatch((await request.json()).map((body) => ({ body }))); return new Response("queued"); }
    if (first === "sql") return Response.json(await env.DB.exec(await request.text()));
    if (first === "fail") throw new Error("the shop is closed");
    return new Response("Welcome to the shop\n", { status: first ? 404 : 200 });
  },
  async queue(batch) {
    for (const message of batch.messages) if (message.body.broken) message.retry(); else message.ack();
  },
  async scheduled(event) {
    console.log(`cron ${event.cron}`);
  },
};
