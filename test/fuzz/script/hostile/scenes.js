// Where a script calls from: its code runs in callbacks of the platform, while something is half done there, and what it is
// given in them (tokens, controllers, sockets) does not outlive them. go(things) makes some calls, for and on `things` above
// all; they are kept, and so come back when they are stale.
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

/** The object is reset, and its code goes on: in this turn, and in what it had left waiting. */
async function reset(go, { ctx, native, random }) {
  const pair = new WebSocketPair(), more = new WebSocketPair();
  const things = [ctx, ctx.storage, ctx.storage.sql, pair[0], pair[1], more[0], more[1]];
  setTimeout(() => go(things), 1);
  if (native && random.chance(0.7)) {
    native.objectReset(native.clock()[1], 1, "reset", false);
    go(things);
  }
  await ctx.blockConcurrencyWhile(async () => { throw new Error("reset"); }).catch(() => go(things));
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

export const scenes = [rewriter, streams, sockets, callbacks];
/** Those that need an object; twice, for they come less often. */
export const objectScenes = [storage, reset, storage, reset];

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
