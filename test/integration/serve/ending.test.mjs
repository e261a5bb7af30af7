// The end of an instance (a reload; worker/instance.h): what it has lent stays what it was, and what it leaves
// behind does no harm.
import assert from "node:assert/strict";
import net from "node:net";
import { test } from "node:test";
import { project, serve } from "../lib/server.mjs";
import { Client } from "../websockets/lib.mjs";

const MB = 1 << 20;

/** Reloads and waits until the server says so. */
async function reload(server) {
  const before = server.output.split("reloaded").length;
  server.signal("SIGHUP");
  await server.untilTrue(() => server.output.split("reloaded").length > before, "the reload");
}

/** A client that asks and reads nothing until it is told to; then all of it until the server closes. */
class SlowReader {
  constructor(port, target) {
    this.chunks = [];
    this.socket = net.connect({ port, host: "127.0.0.1", readableHighWaterMark: 1024 });
    this.socket.write(`GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    this.begun = new Promise((resolve, reject) => {
      this.socket.once("readable", resolve);
      this.socket.once("error", reject);
    });
  }
  async body() {
    for await (const chunk of this.socket) this.chunks.push(chunk);
    const all = Buffer.concat(this.chunks);
    return all.subarray(all.indexOf("\r\n\r\n") + 4);
  }
}

test("X3: a reload does not change bodies that slow clients are still reading", async (t) => {
  const dir = project({
    "index.js": `globalThis.registry = new FinalizationRegistry((value) => console.log("collected " + value));
export default {
  fetch(request) {
    const url = new URL(request.url);
    if (url.searchParams.has("probe")) {
      for (let i = 0; i < 20; i++) registry.register({ i }, url.searchParams.get("probe"));
      return new Response("ok");
    }
    return new Response(new Uint8Array(${8 * MB}).fill(Number(url.searchParams.get("fill"))));
  },
};`,
  });
  const server = await serve(dir);
  t.after(() => server.kill());
  const readers = [1, 2, 3, 4].map((fill) => new SlowReader(server.port, `/?fill=${fill}`));
  await Promise.all(readers.map((reader) => reader.begun));
  await reload(server);
  // Others use the memory meanwhile, and the old instance goes with the first tick of the house:
  // two collections are waited for.
  for (const time of ["first", "second"]) {
    await server.text(`/?probe=${time}`);
    await server.untilTrue(async () => {
      await (await server.fetch("/?fill=99")).arrayBuffer();
      return server.output.includes(`collected ${time}`);
    }, "a collection");
  }
  await reload(server);
  const bodies = await Promise.all(readers.map((reader) => reader.body()));
  for (const [i, body] of bodies.entries()) {
    assert.equal(body.length, 8 * MB);
    const wrong = body.findIndex((byte) => byte !== i + 1);
    assert.equal(wrong, -1, `reader ${i} got ${body[wrong]} at ${wrong}`);
  }
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});

const leftovers = `import { DurableObject, RpcTarget } from "cloudflare:workers";
class Target extends RpcTarget { hello() { return "hello"; } }
export class Giver extends DurableObject { give() { return new Target(); } }
globalThis.registry = new FinalizationRegistry((value) => {
  console.log("finalized " + value);
  setTimeout(() => console.log("too late"), 0);
  crypto.randomUUID();
});
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    for (let i = 0; i < 20; i++) {
      if (url.pathname === "/stubs") await (await env.GIVER.getByName("x").give()).hello();
      if (url.pathname === "/pairs") new WebSocketPair();
      if (url.pathname === "/accepted") new WebSocketPair()[0].accept();
      if (url.pathname === "/registered") registry.register({ i }, i);
      if (url.pathname === "/probe") registry.register({ i }, url.search);
    }
    return new Response("ok");
  },
};`;

test("X1: reloads with stubs, pairs and registered values that nobody has ended leave the server up", async (t) => {
  const config = `name = "x"\nmain = "index.js"\ncompatibility_date = "2026-01-01"
[[durable_objects.bindings]]\nname = "GIVER"\nclass_name = "Giver"
[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Giver"]\n`;
  const server = await serve(project({ "wrangler.toml": config, "index.js": leftovers }));
  t.after(() => server.kill());
  for (let i = 0; i < 2; i++) {
    for (const what of ["stubs", "pairs", "accepted", "registered"]) assert.equal(await server.text(`/${what}`), "ok");
    await reload(server);
    // Twice: garbage made after the reload has been found and told of, so what the old instance left was too.
    for (const time of ["first", "second"]) {
      await server.text(`/probe?${i}${time}`);
      await server.until(new RegExp(`finalized \\?${i}${time}`));
    }
  }
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});

const everything = `import { DurableObject, RpcTarget } from "cloudflare:workers";
class Target extends RpcTarget { hold() { return new Promise(() => {}); } }
const busy = new Set();
const chunk = new Uint8Array(65536).fill(7);
const endless = () => new ReadableStream({ pull: (controller) => controller.enqueue(chunk) }, { highWaterMark: 0 });
export class Thing extends DurableObject {
  state() { return this.ctx.storage.kv.get("saved") ?? 0; }
  async save() { const n = this.state() + 1; this.ctx.storage.kv.put("saved", n); return n; }
  give() { return new Target(); }
  hold() { return new Promise(() => {}); }
  async all() { // timers, a cursor, a transaction, pairs, accepted and not, stubs, a lent function, an alarm
    setTimeout(() => {}, 3_600_000);
    setInterval(() => this.ctx.storage.kv.get("saved"), 5);
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (v)");
    for (let i = 0; i < 10; i++) this.ctx.storage.sql.exec("INSERT INTO t VALUES (?)", i);
    this.cursor = this.ctx.storage.sql.exec("SELECT v FROM t");
    this.cursor.next();
    this.pairs = [new WebSocketPair(), new WebSocketPair()];
    this.pairs[0][0].accept();
    this.other = this.env.THING.getByName("other").hold();
    this.other.catch(() => {});
    this.lent = this.env.THING.getByName("other").take(() => new Promise(() => {}));
    this.lent.catch(() => {});
    busy.add("object");
    return new Promise(() => {});
  }
  async half() { // a transaction that stays open
    await this.ctx.storage.transaction(async (txn) => { await txn.put("saved", 99); busy.add("transaction"); await scheduler.wait(3_600_000); });
  }
  ring() { return this.ctx.storage.setAlarm(Date.now()); }
  async take(f) { return f(); }
  async alarm() { busy.add("alarm"); await new Promise(() => {}); }
  spin() { for (;;); }
  abort() { this.ctx.abort("asked to"); }
  fetch() {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
  async webSocketMessage(socket, message) { if (message === "hang") await new Promise(() => {}); socket.send(message); }
}
export default {
  async fetch(request, env, ctx) {
    const url = new URL(request.url);
    const thing = env.THING.getByName(url.searchParams.get("name") ?? "thing");
    switch (url.pathname) {
      case "/busy": return Response.json([...busy].sort());
      case "/save": return Response.json(await thing.save());
      case "/state": return Response.json(await thing.state());
      case "/all": ctx.waitUntil(scheduler.wait(20_000)); return Response.json(await thing.all());
      case "/alarm": return Response.json(await thing.ring());
      case "/half": return Response.json(await thing.half());
      case "/spin": return Response.json(await thing.spin());
      case "/abort": return Response.json(await thing.abort());
      case "/stub": { const target = await env.THING.getByName("giver").give(); busy.add("stub"); await target.hold(); }
      case "/down": busy.add("down"); return new Response(endless());
      case "/up": { const reader = request.body.getReader(); await reader.read(); busy.add("up"); await reader.read(); for (;;) if ((await reader.read()).done) return new Response("all"); }
      case "/socket": {
        if (url.searchParams.has("object")) return thing.fetch(request);
        const [client, server] = Object.values(new WebSocketPair());
        server.accept();
        server.addEventListener("message", (event) => server.send(event.data));
        return new Response(null, { status: 101, webSocket: client });
      }
      case "/r2/put": await env.BUCKET.put("big", new Uint8Array(${4 * MB}).fill(9)); return new Response("ok");
      case "/r2": busy.add("r2"); return new Response((await env.BUCKET.get("big")).body);
      case "/queue": await env.QUEUE.send("hold"); return new Response("ok");
    }
    return new Response("?", { status: 404 });
  },
  async queue(batch) { busy.add("queue"); await new Promise((resolve) => setTimeout(resolve, 3_600_000)); },
};
`;
const everythingConfig = `name = "all"\nmain = "index.js"\ncompatibility_date = "2026-05-01"
[[durable_objects.bindings]]\nname = "THING"\nclass_name = "Thing"
[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Thing"]
[[r2_buckets]]\nbinding = "BUCKET"\nbucket_name = "bucket"
[[queues.producers]]\nbinding = "QUEUE"\nqueue = "q"
[[queues.consumers]]\nqueue = "q"\nmax_batch_timeout = 0
[limits]\ncpu_ms = 300\n`;

let rounds = 0;
/** Begins one of everything that an instance can have under way; \`end\` cuts what the clients hold. */
async function beginEverything(server) {
  const open = [];
  const pending = (target) => server.fetch(target).catch(() => {});
  for (const target of ["/all", "/stub", `/half?name=half${rounds}`]) pending(target);
  for (const target of ["/down", "/r2"]) open.push(new SlowReader(server.port, target));
  const upload = net.connect(server.port, "127.0.0.1");
  upload.on("error", () => {});
  upload.write(`POST /up HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n${"u".repeat(100_000)}`);
  await server.text("/queue");
  await server.text(`/alarm?name=alarm${rounds++}`); // one whose last run was cut off waits before the next
  const sockets = [await Client.open(server, "/socket"), await Client.open(server, "/socket?object=1&name=room")];
  for (const socket of sockets) assert.equal(await socket.ask("hello"), "hello");
  sockets[1].send("hang");
  let busy;
  await server.untilTrue(async () => (busy = await (await server.fetch("/busy")).json()).length === 8, "everything under way").catch((error) => { error.message += busy; throw error; });
  return {
    end: () => {
      upload.destroy();
      for (const each of open) { each.socket.on("error", () => {}); each.socket.destroy(); }
      for (const each of sockets) each.socket.terminate();
    },
  };
}

test("I2 I3: an instance ends with everything under way: abort(), its CPU limit, a reload, the end of the server", async (t) => {
  const server = await serve(project({ "wrangler.toml": everythingConfig, "index.js": everything }), { lanes: 1 });
  t.after(() => server.kill());
  await server.text("/r2/put");
  let saved = 0;
  const save = async () => {
    await server.untilTrue(async () => (await server.fetch("/save?name=safe")).status === 200 && ++saved, "an answer");
    assert.equal(await (await server.fetch("/state?name=safe")).json(), saved);
  };
  await save();
  for (const way of ["abort", "spin", "reload"]) {
    const under = await beginEverything(server);
    if (way === "reload") await reload(server);
    else assert.ok((await server.fetch(`/${way}`)).status >= 500);
    await save();
    assert.equal(await (await server.fetch("/state")).json(), 0); // it has started anew
    // A transaction that was open when its object ended is undone.
    if (way === "reload") assert.equal(await (await server.fetch(`/state?name=half${rounds - 1}`)).json(), 0);
    under.end();
    await save();
    await reload(server); // for a list of its own
  }
  await beginEverything(server);
  server.signal("SIGTERM");
  await server.until(/finishing the requests under way/);
  server.signal("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null }, server.output);
  assert.doesNotMatch(server.output, /assertion failed|Sanitizer|runtime error/);
});

test("W3: neither a reload nor the end waits for primes and keys that nobody wants any more", async (t) => {
  // Hours of work, more of it than there are threads; of the last wish every number has the factor 3.
  const dir = project({
    "wrangler.toml": 'name = "primes"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\ncompatibility_flags = ["nodejs_compat"]\n',
    "index.js": `import { generateKeyPair, generatePrime } from "node:crypto";
export default {
  async fetch(request) {
    if (request.url.endsWith("/small")) return new Response(String(await new Promise((resolve) => generatePrime(64, { safe: true }, () => resolve("found")))));
    const never = () => console.log("found after all");
    generatePrime(64, { add: 6n, rem: 3n, safe: true }, never);
    generateKeyPair("rsa", { modulusLength: 16384 }, never);
    for (let i = 0; i < 5; i++) generatePrime(8192, { safe: true }, never);
    return new Response("begun");
  },
};`,
  });
  const server = await serve(dir);
  t.after(() => server.kill());
  assert.equal(await server.text("/"), "begun");
  await reload(server);
  assert.equal(await server.text("/small"), "found"); // there is a thread again
  assert.equal(await server.text("/"), "begun");
  assert.deepEqual(await server.stop(), { code: 0, signal: null }, server.output);
  assert.doesNotMatch(server.output, /found after all/);
});
