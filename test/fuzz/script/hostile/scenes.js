// Where a script calls from: its code runs in callbacks of the platform, while something is half done there, and what it is
// given in them (tokens, controllers, sockets) does not outlive them. go(things) makes some calls, for and on `things` above
// all; they are kept, and so come back when they are stale. use(things) makes one call of something that one of them can do, on it.
const html = '<!DOCTYPE html><!--c--><div a="b" c><p>text &amp; more<br>x</p><!-- d --><script>s</script><img src=x></div>end';

async function rewriter(go) {
  let rounds = 0;
  const calls = (...things) => { if (rounds++ < 12) go(things); };
  let element;
  const transformed = new HTMLRewriter()
    .on("*", {
      element(e) { element = e; try { e.onEndTag((tag) => calls(tag, e)); } catch {} calls(e); },
      comments: (c) => calls(c, element),
      text: (t) => calls(t, element),
    })
    .onDocument({ doctype: (d) => calls(d, element), comments: calls, text: (t) => calls(t), end: (end) => calls(end, element) })
    .transform(new Response(html));
  await transformed.text();
}

async function streams(go) {
  const { readable, writable } = new TransformStream({ start: (c) => go([c]), transform(chunk, c) { c.enqueue(chunk); go([c]); }, flush: (c) => go([c]) });
  const bytes = new ReadableStream({ type: "bytes", pull(c) { go([c, c.byobRequest]); c.enqueue(new Uint8Array(8)); c.close(); } });
  const writer = writable.getWriter();
  writer.write(new Uint8Array([1, 2])).catch(() => {});
  writer.close().catch(() => {});
  go([writer, readable, bytes]);
  await Promise.race([new Response(readable).text(), scheduler.wait(20)]);
  await Promise.race([new Response(bytes.pipeThrough(new IdentityTransformStream())).arrayBuffer(), scheduler.wait(20)]);
}

async function sockets(go) {
  const pair = new WebSocketPair(), [a, b] = [pair[0], pair[1]];
  go([pair, a, b]);
  a.accept();
  b.accept();
  b.addEventListener("message", (event) => go([a, b, event]));
  b.addEventListener("close", (event) => go([a, b, event]));
  a.send("x");
  a.send(new Uint8Array(3));
  a.close(1000, "over");
  await scheduler.wait(5);
  go([a, b]);
}

async function storage(go, { ctx }) {
  const { storage } = ctx;
  storage.sql.exec("CREATE TABLE IF NOT EXISTS t(a)");
  const cursor = storage.sql.exec("SELECT 1 AS a UNION SELECT 2 UNION SELECT 3");
  cursor.next();
  storage.transactionSync(() => go([storage, storage.sql, cursor]));
  await storage.transaction(async (txn) => { await txn.put("k", 1); go([txn, cursor, storage]); });
  await ctx.blockConcurrencyWhile(async () => { await scheduler.wait(1); go([ctx, storage, cursor]); });
}

// --- lives: what is held of something, what ends it, and whatever of both in any order -------------------------------------------

/** What the events of an object do while a scene is about lives: (things) => {}. */
export const events = { handler: null };
/** What the next request does first, whoever that is. */
export const later = [];

/** Each gives { held, ends }: references to something that has a life, and what changes or ends that. */
const lives = [
  () => { const pair = new WebSocketPair(), [a, b] = [pair[0], pair[1]]; return { held: [a, b], ends: [() => a.accept(), () => b.accept(), () => a.send("x"), () => a.close(), () => b.close(1000, "over")] }; },
  () => {
    let controller;
    const readable = new ReadableStream({ start(c) { controller = c; } }, { highWaterMark: 3 }), reader = readable.getReader();
    return { held: [readable, reader, controller], ends: [() => reader.read(), () => reader.cancel(), () => reader.releaseLock(), () => controller.enqueue("x"), () => controller.close(), () => controller.error(1)] };
  },
  () => {
    const { readable, writable } = new IdentityTransformStream(), writer = writable.getWriter(), reader = readable.getReader({ mode: "byob" });
    return { held: [readable, writable, reader, writer], ends: [() => reader.read(new Uint8Array(4)), () => reader.cancel(), () => writer.write(new Uint8Array(3)), () => writer.close(), () => writer.abort(), () => writer.releaseLock()] };
  },
  () => { const controller = new AbortController(); return { held: [controller, controller.signal, AbortSignal.any([controller.signal])], ends: [() => controller.abort()] }; },
  () => { const bytes = new Uint8Array(64), blob = new Blob([bytes]); return { held: [bytes, bytes.buffer, blob, blob.stream()], ends: [() => bytes.buffer.transfer()] }; },
  ({ request }) => {
    const { body } = request;
    return { held: [request, body].filter(Boolean), ends: [() => body.getReader().read(), () => body.cancel(), () => request.text(), () => request.clone(), () => body.tee(), () => body.pipeTo(new WritableStream())] };
  },
  async ({ env, random }) => {
    const stub = env.OBJECT.getByName(random.pick(["b", "c"])), target = stub.target(), feed = await stub.feed();
    return { held: [stub, target, feed, await target], ends: [() => stub.end(), () => target[Symbol.dispose](), () => target.ping(), () => stub.keep(target), () => feed.cancel(), () => feed.getReader().read()] };
  },
  async ({ env }) => { const upload = await env.R2.createMultipartUpload("lives"); return { held: [upload], ends: [() => upload.uploadPart(1, "x"), () => upload.abort(), () => upload.complete([])] }; },
  async ({ env }) => { await env.R2.put("lives", "x".repeat(200_000)); const object = await env.R2.get("lives"); return { held: [object, object.body], ends: [() => object.text(), () => object.body.cancel(), () => env.R2.delete("lives")] }; },
  () => { const channel = new MessageChannel(); return { held: [channel.port1, channel.port2], ends: [() => channel.port1.close(), () => channel.port1.start?.(), () => channel.port2.postMessage(channel.port1)] }; },
];
/** Those of an object: its own, too. */
const ownLives = [
  ({ ctx }) => {
    const pair = new WebSocketPair(), [a, b] = [pair[0], pair[1]];
    return { held: [a, b, ctx], ends: [() => ctx.acceptWebSocket(b, ["t"]), () => a.accept(), () => b.accept(), () => a.send("x"), () => a.close(), () => ctx.getWebSockets("t").forEach((socket) => socket.close()), () => b.serializeAttachment({ a })] };
  },
  ({ ctx }) => {
    const { storage } = ctx, { sql } = storage;
    sql.exec("CREATE TABLE IF NOT EXISTS t(a)");
    const cursor = sql.exec("SELECT 1 AS a UNION SELECT 2 UNION SELECT 3");
    return { held: [ctx, storage, sql, cursor], ends: [() => cursor.next(), () => sql.exec("DROP TABLE t"), () => storage.deleteAll(), () => storage.put("k", 1), () => storage.setAlarm(Date.now()), () => storage.sync()] };
  },
  ({ ctx }) => { let held; ctx.storage.transaction(async (txn) => { held = txn; await scheduler.wait(5); }).catch(() => {}); return { held: [ctx.storage, held].filter(Boolean), ends: [() => held.rollback(), () => ctx.storage.deleteAll()] }; },
  ({ ctx, native, random }) => ({
    held: [ctx, ctx.storage],
    ends: [
      () => native?.objectReset(native.clock()[1], 1, "reset", random.chance(0.5)),
      () => ctx.blockConcurrencyWhile(async () => { throw new Error("reset"); }),
      () => { ctx.abort("reset"); },
    ],
  }),
];

/** Some things with a life; then uses and ends of them, in this turn and in others, in any order. */
async function anyOrder(go, at, use) {
  const { random, ctx } = at, held = [], ends = [], resets = ctx.storage && random.chance(0.7);
  const quietly = (job) => { try { const made = job(); made?.catch?.(() => {}); } catch {} };
  for (let i = random.below(3) + 1; i > 0; i--) {
    const made = await Promise.race([random.pick(ctx.storage ? [...lives, ...ownLives] : lives)(at), scheduler.wait(50)]).catch(() => {});
    if (made) held.push(...made.held), ends.push(...made.ends);
  }
  if (resets) { const own = ownLives.at(-1)(at); held.push(...own.held), ends.push(...own.ends); }
  if (held.length === 0) return;
  events.handler = (things) => { for (let i = random.below(6); i > 0; i--) use([...things, ...held]); };
  for (let i = 30; i > 0; i--) {
    if (random.chance(0.25)) quietly(random.pick(ends));
    else if (random.chance(0.1)) await (random.chance(0.5) ? null : scheduler.wait(1));
    else if (random.chance(0.1)) setTimeout(() => use(held), random.below(3));
    else if (random.chance(0.05)) go(held);
    else use(held);
  }
}

/**
 * What an object still does in the turn in which it was reset: with what it had, with what it makes then. Whatever it takes then must not
 * belong to it, for it is gone when the turn ends; what it has lent is used and ended by others afterwards.
 */
async function lastTurn(go, at, use) {
  const { random } = at, held = [], ends = [];
  const quietly = (job) => { try { const made = job(); made?.catch?.(() => {}); } catch {} };
  const make = () => { try { const made = random.pick(ownLives.slice(0, -1))(at); held.push(...made.held), ends.push(...made.ends); } catch {} };
  const reset = ownLives.at(-1)(at).ends;
  for (let i = random.below(3); i > 0; i--) make();
  if (random.chance(0.3)) for (let i = 5; i > 0 && ends.length > 0; i--) quietly(random.pick(ends));
  later.push(() => ends.forEach(quietly));
  quietly(random.pick(reset));
  for (let i = 20; i > 0; i--) {
    if (held.length === 0 || random.chance(0.15)) make();
    else if (random.chance(0.6)) quietly(random.pick(ends));
    else use(held);
  }
}

/** Events that are dispatched, encoders that ask, things that convert themselves. */
async function callbacks(go) {
  const target = new EventTarget(), controller = new AbortController();
  target.addEventListener("x", (event) => go([event, target, controller]));
  controller.signal.addEventListener("abort", (event) => go([event, controller.signal]));
  target.dispatchEvent(new Event("x"));
  controller.abort();
  JSON.stringify({ toJSON() { go([target]); } });
  structuredClone({ get a() { go([controller]); return 1; } });
  new Headers({ get a() { go([controller]); return "b"; } });
  new URLSearchParams([["a", { toString() { go([]); return "b"; } }]]);
  await new Response(new ReadableStream({ pull(c) { go([c]); c.close(); } })).text();
}

export const scenes = [rewriter, streams, sockets, callbacks, anyOrder, anyOrder];
/** Those that need an object; more than once, for they come less often. */
export const objectScenes = [storage, storage, anyOrder, anyOrder, anyOrder, lastTurn, lastTurn, lastTurn];

/** Uses what there is as it is meant, so that natives have been called: what they were given is what the fuzzer begins with. */
export async function warmUp(env, ctx) {
  const bytes = new TextEncoder().encode("some text \u00e9\u2603"), quiet = async (job) => { try { await job(); } catch {} };
  const all = (stream) => new Response(stream).arrayBuffer();
  await Promise.all([
    () => { for (const name of ["utf-8", "latin1", "utf-16le", "shift_jis"]) new TextDecoder(name).decode(bytes); new TextDecoder("utf-8", { fatal: true }).decode(bytes); new TextEncoder().encodeInto("abc", bytes.slice()); },
    () => { atob(btoa("abc")); new URL("http://a/b?c#d").searchParams.get("c"); new URLPattern({ pathname: "/:a" }).exec("http://a/b"); structuredClone(new Map([[bytes, new Date()]])); },
    () => new Response(bytes).text(), () => new Response('{"a":1}').json(), () => new Response("a=b", { headers: { "content-type": "application/x-www-form-urlencoded" } }).formData(),
    async () => { const form = new FormData(); form.set("f", new File([bytes], "n")); await new Response(form).formData(); },
    async () => { for (const format of ["gzip", "deflate", "deflate-raw"]) await all(new Blob([await all(new Blob([bytes]).stream().pipeThrough(new CompressionStream(format)))]).stream().pipeThrough(new DecompressionStream(format))); },
    async () => { const digest = new crypto.DigestStream("SHA-256"), writer = digest.getWriter(); writer.write(bytes); writer.close(); await digest.digest; },
    async () => {
      await crypto.subtle.digest("SHA-256", bytes);
      const mac = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, true, ["sign", "verify"]);
      await crypto.subtle.verify("HMAC", mac, await crypto.subtle.sign("HMAC", mac, bytes), bytes);
      const aes = await crypto.subtle.generateKey({ name: "AES-GCM", length: 128 }, true, ["encrypt", "decrypt"]), iv = new Uint8Array(12);
      await crypto.subtle.decrypt({ name: "AES-GCM", iv }, aes, await crypto.subtle.encrypt({ name: "AES-GCM", iv }, aes, bytes));
    },
    async () => { await env.KV.put("k", bytes, { metadata: { a: 1 } }); await env.KV.get("k", "arrayBuffer"); await env.KV.list(); await env.KV.delete("k"); },
    async () => { await env.R2.put("k", bytes); await (await env.R2.get("k")).text(); await env.R2.list(); const upload = await env.R2.createMultipartUpload("m"); await upload.uploadPart(1, bytes); await upload.abort(); },
    async () => { await env.DB.prepare("SELECT ?1 AS a").bind(1).all(); await env.DB.batch([env.DB.prepare("SELECT 1"), env.DB.prepare("SELECT ?").bind("x")]); await env.DB.exec("SELECT 1"); },
    async () => { await env.QUEUE.send({ a: bytes }); await env.QUEUE.sendBatch([{ body: 1 }]); env.AE.writeDataPoint({ blobs: ["a"], doubles: [1], indexes: ["i"] }); },
    async () => { await caches.default.put("http://a/c", new Response("x", { headers: { "cache-control": "max-age=60" } })); await (await caches.default.match("http://a/c"))?.text(); },
    async () => {
      const { storage } = ctx;
      if (!storage) return;
      await storage.put({ a: 1, b: bytes });
      await storage.get(["a", "b"]);
      await storage.list({ prefix: "a" });
      storage.kv.put("c", 1);
      storage.sql.exec("CREATE TABLE IF NOT EXISTS t(a)");
      storage.sql.exec("INSERT INTO t VALUES (?)", bytes);
      storage.sql.exec("SELECT * FROM t").toArray();
      await storage.setAlarm(Date.now() + 1e6);
      await storage.getAlarm();
      await storage.deleteAlarm();
      const pair = new WebSocketPair();
      ctx.acceptWebSocket(pair[1], ["tag"]);
      pair[1].serializeAttachment({ a: 1 });
      ctx.getWebSockets("tag");
      pair[0].accept();
      pair[0].send("x");
      pair[0].close();
    },
  ].map(quiet));
}
