// What the tests of WebSockets talk to: an object with hibernatable sockets, one with accept()ed
// ones, and a worker with sockets of its own.
import { DurableObject } from "cloudflare:workers";

const VERSION = "v1";
const pairOf = () => Object.values(new WebSocketPair());
/** The first subprotocol offered, as a header. */
const protocolOf = (request) => {
  const protocol = request.headers.get("sec-websocket-protocol")?.split(",")[0];
  return protocol ? { "sec-websocket-protocol": protocol } : {};
};
const failure = (work) => {
  try {
    return ["no error", String(work())];
  } catch (error) {
    return [error.name, error.message];
  }
};

export class Room extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.born = Math.random();
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS log(id INTEGER PRIMARY KEY, text TEXT)");
    this.note(`constructor`);
  }
  note(text) {
    this.ctx.storage.sql.exec("INSERT INTO log(text) VALUES(?)", text);
  }
  log() {
    return this.ctx.storage.sql.exec("SELECT text FROM log ORDER BY id").toArray().map((row) => row.text);
  }
  life() {
    return this.born;
  }
  sockets(tag) {
    return this.ctx.getWebSockets(tag).length;
  }
  async fetch(request) {
    const url = new URL(request.url);
    const [client, server] = pairOf();
    const tags = url.searchParams.getAll("tag");
    this.ctx.acceptWebSocket(server, tags.length ? tags : undefined);
    if (url.searchParams.has("hello")) server.send("hello");
    if (url.searchParams.has("attach")) server.serializeAttachment({ who: url.searchParams.get("attach"), at: new Date(0) });
    return new Response(null, { status: 101, webSocket: client, headers: protocolOf(request) });
  }
  async webSocketMessage(ws, message) {
    if (typeof message !== "string") {
      this.note(`binary ${message.constructor.name} ${message.byteLength}`);
      ws.send(message);
      return;
    }
    const [word, ...rest] = message.split(" ");
    const reply = await this[`do_${word}`]?.(ws, ...rest);
    if (reply !== undefined) ws.send(typeof reply === "string" ? reply : JSON.stringify(reply));
  }
  webSocketClose(ws, code, reason, wasClean) {
    this.note(`close ${code} ${reason} ${wasClean} ${ws.readyState} listed=${this.ctx.getWebSockets().includes(ws)}`);
    ws.send("into the void");
    if (reason === "leave it") return;
    if (reason === "throw") throw new Error("in webSocketClose");
    ws.close(code === 1006 || code === 1005 ? 1000 : code, "from the object");
  }
  webSocketError(ws, error) {
    this.note(`error ${error.message}`);
  }
  do_echo(ws, ...words) { return words.join(" "); }
  do_life() { return { born: this.born, version: VERSION }; }
  do_tags(ws) { return this.ctx.getTags(ws); }
  do_attachment(ws) {
    const value = ws.deserializeAttachment();
    return value === null ? "null" : { ...value, date: value.at instanceof Date };
  }
  do_attach(ws, text) {
    const value = { list: [text] };
    ws.serializeAttachment(value);
    value.list.push("later");
    return ws.deserializeAttachment();
  }
  do_attachBytes(ws, count) { return failure(() => ws.serializeAttachment("x".repeat(Number(count)))); }
  do_all(ws, tag, ...words) {
    for (const each of this.ctx.getWebSockets(tag === "*" ? undefined : tag)) each.send(words.join(" "));
  }
  do_caching(ws) {
    // What was sent last, to a socket that is gone or closed, must not come out elsewhere.
    const [gone] = pairOf();
    this.ctx.acceptWebSocket(gone);
    ws.send("first");
    gone.close();
    try { gone.send("second"); } catch {}
    ws.send("second");
    ws.send("second");
    ws.send("x".repeat(70_000));
    ws.send("x".repeat(70_000));
    ws.send("second");
  }
  do_throw() { throw new Error("in webSocketMessage"); }
  do_same(ws) { return { same: this.ctx.getWebSockets().includes(ws) && this.ctx.getWebSockets()[0] === this.ctx.getWebSockets()[0] }; }
  do_props(ws) { return [ws.readyState, ws.protocol, ws.url, ws.extensions, ws instanceof WebSocket]; }
  do_auto(ws, request, response) {
    if (request === undefined) this.ctx.setWebSocketAutoResponse();
    else this.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(request, response));
    const pair = this.ctx.getWebSocketAutoResponse();
    return pair === null ? "null" : [pair.request, pair.response];
  }
  do_stamp(ws) {
    const time = this.ctx.getWebSocketAutoResponseTimestamp(ws);
    return { time: time === null ? null : time.getTime(), date: time instanceof Date };
  }
  do_timeout(ws, value) {
    if (value !== undefined) this.ctx.setHibernatableWebSocketEventTimeout(value === "none" ? undefined : Number(value));
    return { timeout: this.ctx.getHibernatableWebSocketEventTimeout() };
  }
  async do_sleep(ws, ms, word) {
    await new Promise((resolve) => setTimeout(resolve, Number(ms)));
    return word;
  }
  async do_hold(ws, word) {
    while (!this.released) await new Promise((resolve) => setTimeout(resolve, 5));
    return word;
  }
  do_release() {
    this.released = true;
  }
  async do_gate(ws, word) {
    ws.send(`sent ${word}`);
    this.note(`gate ${word}`);
    await this.ctx.storage.sync();
    return `synced ${word}`;
  }
  do_unsent(ws) {
    ws.send("must never arrive");
    this.note("must be rolled back");
    this.ctx.abort("on purpose");
  }
  do_close(ws, code, ...reason) {
    ws.close(Number(code), reason.join(" "));
    this.note(`after close: ${failure(() => ws.send("x")).join(" ")} ${ws.readyState}`);
    ws.close(4999, "ignored");
  }
  do_closeAndSay(ws) { ws.close(4000, "by order"); }
  do_sendAfterClose(ws, ...words) {
    const found = this.ctx.getWebSockets().filter((each) => each.readyState !== 1);
    return found.map((each) => failure(() => each.send("x")));
  }
  do_big(ws, size) { ws.send("z".repeat(Number(size))); }
  do_flood(ws, count, size) {
    const block = new Uint8Array(Number(size));
    for (let i = 0; i < Number(count); i++) ws.send(block);
  }
  errors() {
    const [a, b] = pairOf();
    const [c, d] = pairOf();
    const [e] = pairOf();
    c.accept();
    this.ctx.acceptWebSocket(a);
    void new Response(null, { status: 101, webSocket: b });
    return {
      tags: failure(() => this.ctx.acceptWebSocket(e, Array.from({ length: 11 }, (_, i) => `t${i}`))),
      tagLength: failure(() => this.ctx.acceptWebSocket(e, ["x".repeat(257)])),
      twice: failure(() => this.ctx.acceptWebSocket(a)),
      accepted: failure(() => this.ctx.acceptWebSocket(c)),
      acceptAfter: failure(() => a.accept()),
      notSocket: failure(() => this.ctx.acceptWebSocket({})),
      foreign: failure(() => this.ctx.getTags(d)),
      same: failure(() => this.ctx.acceptWebSocket(e, [...Array(20).fill("one"), "x".repeat(256)])),
      sameTags: this.ctx.getTags(e),
      unaccepted: failure(() => d.send("x")),
      code: failure(() => a.close(1005)),
      code2: failure(() => a.close(999)),
      reasonAlone: failure(() => a.close(undefined, "why")),
      longReason: failure(() => a.close(1000, "é".repeat(62))),
      autoLong: failure(() => this.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("x".repeat(2049), "y"))),
      timeoutLong: failure(() => this.ctx.setHibernatableWebSocketEventTimeout(604_800_001)),
      useAccepted: failure(() => new Response(null, { status: 101, webSocket: c }).status),
    };
  }
}

export class Plain extends DurableObject {
  born = Math.random();
  life() {
    return this.born;
  }
  fetch(request) {
    const [client, server] = pairOf();
    const url = new URL(request.url);
    server.accept(url.searchParams.has("half") ? { allowHalfOpen: true } : undefined);
    const events = [];
    server.addEventListener("message", (event) => {
      if (event.data === "life") server.send(String(this.born));
      else if (event.data === "events") server.send(JSON.stringify(events));
      else if (event.data === "close") server.close(4002, "plain");
      else server.send(event.data);
    });
    server.addEventListener("close", (event) => {
      // Nothing keeps the object in memory any more.
      this.ctx.storage.kv.put("last", [event.type, event.code, event.reason, event.wasClean, server.readyState]);
    });
    server.addEventListener("error", (event) => { this.error = event.message; });
    return new Response(null, { status: 101, webSocket: client });
  }
  lastClose() {
    return this.ctx.storage.kv.get("last") ?? null;
  }
  lastError() {
    return this.error ?? null;
  }
  async locked() {
    const held = [];
    const [a, b] = pairOf();
    a.accept();
    b.accept();
    b.addEventListener("message", (event) => held.push(event.data));
    a.send("before");
    await this.ctx.blockConcurrencyWhile(async () => {
      a.send("inside");
      await new Promise((resolve) => setTimeout(resolve, 30));
      held.push("lock ends");
    });
    while (held.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
    return held;
  }
}

async function local() {
  const [a, b] = new WebSocketPair();
  const events = [];
  b.addEventListener("message", (event) => events.push([event.type, event.data instanceof ArrayBuffer ? "buffer" : event.data instanceof Blob ? "blob" : event.data]));
  const closed = new Promise((resolve) => b.addEventListener("close", (event) => resolve([event.code, event.reason, event.wasClean])));
  a.accept();
  a.send("queued before accept");
  b.accept();
  a.send("now");
  const during = events.length;
  a.send(new Uint8Array([1, 2]));
  b.binaryType = "blob";
  a.close(4001, "gone");
  const close = await closed;
  await new Promise((resolve) => a.addEventListener("close", resolve));
  const states = [a.readyState, b.readyState];
  return { during, events, close, states };
}

async function viaStub(stub) {
  const response = await stub.fetch("https://x/?hello&tag=s", { headers: { upgrade: "websocket" } });
  const socket = response.webSocket;
  const got = [];
  socket.accept();
  const closed = new Promise((resolve) => socket.addEventListener("close", (event) => resolve([event.code, event.reason, event.wasClean])));
  await new Promise((resolve) => {
    socket.addEventListener("message", (event) => {
      got.push(event.data);
      if (event.data === "hello") socket.send("echo one");
      else if (event.data === "one") socket.send("close 4003 by the room");
    });
    socket.addEventListener("close", resolve);
  });
  return { status: response.status, got, closed: await closed };
}

async function client(url, mode) {
  const to = url.searchParams.get("to");
  if (mode === "fetch") {
    const response = await fetch(to, { headers: { Upgrade: "websocket", "x-hello": "1" } });
    if (response.webSocket === null) return { status: response.status, body: await response.text() };
    const socket = response.webSocket;
    socket.accept();
    const got = await new Promise((resolve, reject) => {
      socket.onmessage = (event) => resolve(event.data);
      socket.onerror = (event) => reject(new Error(event.message));
      socket.send("through fetch");
    });
    const closed = new Promise((resolve) => { socket.onclose = (event) => resolve([event.code, event.wasClean]); });
    socket.close(1000, "done");
    return { status: response.status, got, protocol: socket.protocol, closed: await closed };
  }
  const socket = new WebSocket(to, url.searchParams.getAll("protocol"));
  const events = [socket.readyState];
  await new Promise((resolve) => {
    socket.onopen = () => {
      events.push("open", socket.readyState, socket.protocol, socket.extensions);
      socket.send("x".repeat(1000));
    };
    socket.onmessage = (event) => {
      events.push(event.data.length);
      socket.close(4004, "enough");
    };
    socket.onerror = () => events.push("error");
    socket.onclose = (event) => {
      events.push(["close", event.code, event.wasClean], socket.readyState);
      resolve();
    };
  });
  return events;
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const [, kind, name, method] = url.pathname.split("/");
    if (kind === "room" || kind === "plain") {
      const stub = (kind === "room" ? env.ROOM : env.PLAIN).getByName(name);
      if (method === "stub") return Response.json(await viaStub(stub));
      if (method) return Response.json(await stub[method](...url.searchParams.getAll("arg")));
      return stub.fetch(request);
    }
    if (kind === "local") return Response.json(await local());
    if (kind === "client") return Response.json(await client(url, name));
    if (kind === "upper") {
      const [client, server] = new WebSocketPair();
      server.accept();
      server.addEventListener("message", (event) => {
        if (event.data === "stop") server.close(4005, "stopped");
        else server.send(typeof event.data === "string" ? event.data.toUpperCase() : event.data);
      });
      return new Response(null, { status: 101, webSocket: client, headers: { "x-extra": "yes", ...protocolOf(request) } });
    }
    if (kind === "binary") {
      const [a, b] = new WebSocketPair();
      a.accept();
      b.accept();
      const got = new Promise((resolve) => { b.onmessage = (event) => resolve(event.data.constructor.name); });
      a.send(new Uint8Array(3));
      return Response.json(await got);
    }
    if (kind === "proxy") return fetch(url.searchParams.get("to"), request);
    if (kind === "dead") {
      const [client] = new WebSocketPair();
      return new Response(null, { status: 101, webSocket: client });
    }
    if (kind === "refuse") return new Response("not for you", { status: 403 });
    return new Response("hello");
  },
};
