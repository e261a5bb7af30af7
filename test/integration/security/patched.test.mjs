// A script replaces every method of every builtin, before it imports or calls anything else, and then uses what there is: of the
// platform and of Node.js. What its replacements are given is its own: no native, no object that has natives, nothing of a worker
// beside it. And when they lie or throw, that is the script's own trouble.
import assert from "node:assert/strict";
import test from "node:test";
import http from "node:http";
import { project, serve } from "../lib/server.mjs";

const secret = "the-secret-of-the-neighbour";
const neighbour = {
  "wrangler.toml": 'name = "neighbour"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\ncompatibility_flags = ["nodejs_compat"]\n[cairn]\nhosts = ["neighbour"]\n[[durable_objects.bindings]]\nname = "OBJECT"\nclass_name = "Own"\n[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Own"]\n',
  "index.js": `import { DurableObject } from "cloudflare:workers";
    import { createHash } from "node:crypto";
    export class Own extends DurableObject {
      async fetch(request) {
        const text = await request.text();
        await this.ctx.storage.put("secret", text.split("-").join("-"));
        return new Response(createHash("sha256").update(await this.ctx.storage.get("secret")).digest("hex").replace(/x/g, "y"));
      }
    }
    export default { fetch: (request, env) => env.OBJECT.getByName("own").fetch(request) };`,
};
const hostile = {
  "wrangler.toml": 'name = "hostile"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\ncompatibility_flags = ["nodejs_compat"]\nkv_namespaces = [{ binding = "KV", id = "kv" }]\n[cairn]\nhosts = ["hostile"]\n[[durable_objects.bindings]]\nname = "OBJECT"\nclass_name = "Own"\n[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Own"]\n',
  // The modules of Node.js come first, for packages in them look at builtins while they are evaluated.
  "index.js": `import * as buffer from "node:buffer";
    import * as nodeCrypto from "node:crypto";
    import * as stream from "node:stream";
    import * as zlib from "node:zlib";
    import * as util from "node:util";
    import * as url from "node:url";
    import * as path from "node:path";
    import * as events from "node:events";
    import * as hooks from "node:async_hooks";
    import * as string from "node:string_decoder";
    import { spied, mood } from "./patch.js";
    import { DurableObject } from "cloudflare:workers";
    export class Own extends DurableObject {
      async fetch(request) {
        const { storage } = this.ctx;
        await storage.put("a", { b: await request.text() });
        storage.sql.exec("CREATE TABLE IF NOT EXISTS t(a)");
        storage.sql.exec("INSERT INTO t VALUES (?)", "x");
        return Response.json([await storage.get("a"), storage.sql.exec("SELECT * FROM t").toArray().length > 0]);
      }
      add(a, b) { return a + b; }
    }
    const uses = {
      kv: async (env) => { await env.KV.put("a", "b", { metadata: { c: 1 } }); await env.KV.get("a"); await env.KV.list(); },
      object: async (env) => { const stub = env.OBJECT.getByName("own"); await (await stub.fetch("http://a/", { method: "POST", body: "x" })).json(); await stub.add(1, 2); },
      streams: () => new Response(new Blob(["a", new Uint8Array(3)]).stream().pipeThrough(new CompressionStream("gzip")).pipeThrough(new DecompressionStream("gzip"))).text(),
      bodies: async () => { const form = new FormData(); form.set("a", new File(["b"], "c")); await new Response(form).formData(); await new Response("a=b", { headers: { "content-type": "application/x-www-form-urlencoded" } }).formData(); await new Response("{}").json(); },
      urls: () => { new URL("http://a/b?c=d#e").searchParams.sort(); new URLPattern({ pathname: "/:a" }).exec("http://a/b"); new Headers({ a: "b", c: "d" }).forEach(() => {}); },
      html: () => new HTMLRewriter().on("p[a^=b]", { element(e) { e.setAttribute("a", "b").append("<b>", { html: true }); e.onEndTag((tag) => tag.before("x")); }, text(t) { t.replace("y"); } }).transform(new Response("<p a=bc>text</p>")).text(),
      crypto: async () => { const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 128 }, true, ["encrypt", "decrypt"]); await crypto.subtle.exportKey("jwk", key); await crypto.subtle.encrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, key, new Uint8Array(3)); await crypto.subtle.digest("SHA-256", new Uint8Array(3)); },
      events: () => { const target = new EventTarget(); target.addEventListener("e", () => {}); target.dispatchEvent(new Event("e")); const controller = new AbortController(); AbortSignal.any([controller.signal]); controller.abort(); },
      sockets: async () => { const pair = new WebSocketPair(), a = pair[0], b = pair[1]; a.accept(); b.accept(); b.addEventListener("message", () => {}); a.send("x"); await scheduler.wait(1); a.close(); },
      clone: () => structuredClone({ a: new Map([[1, new Set([new Date(), /x/g, new Error("e")])]]), b: new Uint8Array(3) }),
      text: () => { new TextDecoder("shift_jis").decode(new TextEncoder().encode("a")); atob(btoa("abc")); console.log("a", { b: [1, new Map([[1, 2]])] }, /x/); },
      cache: async () => { await caches.default.put("http://a/c", new Response("x", { headers: { "cache-control": "max-age=60" } })); await (await caches.default.match("http://a/c"))?.text(); },
      node: async () => {
        const { Buffer } = buffer, { Readable } = stream;
        Buffer.from("abc").toString("base64"); Buffer.concat([Buffer.from("a"), Buffer.alloc(3)]).indexOf("a");
        nodeCrypto.createHash("sha256").update("x").digest("hex"); nodeCrypto.createHmac("sha1", "k").update("x").digest(); nodeCrypto.randomBytes(4); nodeCrypto.createCipheriv("aes-128-cbc", Buffer.alloc(16), Buffer.alloc(16)).final();
        zlib.gunzipSync(zlib.gzipSync("abc")); util.inspect({ a: new Map([[1, 2]]) }); util.format("%s %o", 1, {}); new url.URL("http://a/"); url.parse("http://a/b?c"); path.join("a", "..", "b");
        const emitter = new events.EventEmitter(); emitter.on("a", () => {}); emitter.emit("a"); new hooks.AsyncLocalStorage().run(1, () => {}); new string.StringDecoder("utf8").end(Buffer.from("x"));
        await new Promise((resolve) => Readable.from(["a", "b"]).on("data", () => {}).on("end", resolve).on("error", resolve));
      },
    };
    export default {
      async fetch(request, env) {
        const name = request.url.slice(request.url.lastIndexOf("/") + 1);
        mood.on = request.headers.has("lie") ? "lie" : "look";
        let said = "fine";
        if (name === "probe") [{ requestRead: 1 }].slice().concat("${secret}".trim()); // what they would say
        else try { await uses[name](env); } catch (error) { said = "threw " + (error?.stack ?? error); } finally { mood.on = ""; }
        return new Response(JSON.stringify({ said, names: Object.keys(uses), found: spied.found, count: spied.count }));
      },
    };`,
  // Every function of every builtin, those that have a symbol for a name too. Nothing here uses one while it looks.
  "patch.js": `
    const { apply, construct, ownKeys, getOwnPropertyDescriptor, defineProperty, getPrototypeOf } = Reflect, includes = String.prototype.includes;
    export const mood = { on: "" }, spied = { found: [], count: 0 };
    const secret = ${JSON.stringify(secret)};
    const note = (what) => { const { found } = spied; for (let i = 0; i < found.length; i++) if (found[i] === what) return; found[found.length] = what; };
    function look(value, depth, from) {
      if (typeof value === "string") { if (apply(includes, value, [secret])) note("a secret by " + from); return; }
      if (value === null || (typeof value !== "object" && typeof value !== "function")) return;
      let keys;
      try { keys = ownKeys(value); } catch { return; }
      for (let i = 0; i < keys.length && i < 50; i++) {
        if (keys[i] === "requestRead" || keys[i] === "objectReset" || keys[i] === "utf8Decode") note("the natives by " + from);
        if (depth === 0) continue;
        const own = getOwnPropertyDescriptor(value, keys[i]);
        if (own && "value" in own) look(own.value, depth - 1, from);
      }
      if (typeof value === "function") { const name = getOwnPropertyDescriptor(value, "name"); if (name && (name.value === "objectReset" || name.value === "requestRead" || name.value === "utf8Decode")) note("a native by " + from); }
    }
    const holders = [];
    for (const name of ["Object", "Function", "Array", "String", "Number", "Boolean", "BigInt", "Symbol", "RegExp", "Date", "Map", "Set", "WeakMap", "WeakSet", "WeakRef", "Promise", "ArrayBuffer", "DataView", "Uint8Array", "Error", "FinalizationRegistry"]) holders.push([name + ".prototype.", globalThis[name].prototype], [name + ".", globalThis[name]]);
    holders.push(["Reflect.", Reflect], ["JSON.", JSON], ["Math.", Math], ["TypedArray.", getPrototypeOf(Uint8Array)], ["TypedArray.prototype.", getPrototypeOf(Uint8Array.prototype)], ["ArrayIterator.", getPrototypeOf([][Symbol.iterator]())], ["MapIterator.", getPrototypeOf(new Map().keys())],
      ["SetIterator.", getPrototypeOf(new Set().keys())], ["StringIterator.", getPrototypeOf(""[Symbol.iterator]())], ["RegExpStringIterator.", getPrototypeOf("".matchAll(/x/g))], ["Generator.", getPrototypeOf(getPrototypeOf((function* () {})()))], ["Iterator.", getPrototypeOf(getPrototypeOf([][Symbol.iterator]()))]);
    let turn = 0;
    for (let h = 0; h < holders.length; h++) {
      const [prefix, holder] = holders[h], keys = ownKeys(holder);
      for (let k = 0; k < keys.length; k++) {
        const key = keys[k], descriptor = getOwnPropertyDescriptor(holder, key), label = prefix + (typeof key === "symbol" ? key.description : key);
        if (!descriptor.configurable || key === "constructor" || key === "prototype" || (typeof descriptor.value !== "function" && !descriptor.get)) continue;
        if (typeof descriptor.value === "function" && descriptor.value.prototype && descriptor.value !== Promise) continue;
        const original = descriptor.value ?? descriptor.get;
        let inside = false;
        const spy = function (...args) {
          if (mood.on !== "" && !inside) {
            inside = true;
            const was = mood.on;
            mood.on = "";
            try { spied.count++; look(this, 2, label); for (let i = 0; i < args.length; i++) look(args[i], 2, label); } finally { mood.on = was; inside = false; }
            if (was === "lie" && ++turn % 7 === 0) { if (turn % 14 === 0) throw new RangeError("a lie"); return turn % 21 === 0 ? undefined : -1; }
          }
          return apply(original, this, args);
        };
        defineProperty(holder, key, descriptor.get ? { configurable: true, enumerable: false, get: spy, set: descriptor.set } : { configurable: true, enumerable: false, writable: true, value: spy });
      }
    }
    `,
};

test("whoever replaces every builtin gets no native and nothing of a neighbour, and ends nothing", async (t) => {
  const server = await serve([project(hostile), project(neighbour)], { lanes: 1 });
  t.after(() => server.stop());
  const ask = (host, target, { method = "GET", headers, body } = {}) => new Promise((resolve, reject) => {
    const request = http.request(server.url + target, { method, headers: { host, ...headers }, timeout: 60_000 }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => (text += part)).on("error", reject).on("end", () => resolve({ status: response.statusCode, text }));
    });
    request.on("error", reject).end(body);
  });
  const told = async (target) => { const { status, text } = await ask("hostile", target); assert.equal(status, 200, text); return JSON.parse(text); };
  const keep = async () => { const answer = await ask("neighbour", "/", { method: "POST", body: secret }); return [answer.status, answer.text]; };
  const right = await keep();
  assert.equal(right[0], 200);
  const { names } = await told("/none");
  assert.ok(names.length > 10);
  const all = [];
  for (const name of names) {
    const [answer, beside] = await Promise.all([told(`/${name}`), keep()]);
    assert.deepEqual(beside, right, name);
    assert.deepEqual(answer.found, [], name);
    all.push(`${name} ${answer.said}`);
  }
  assert.deepEqual(all.filter((line) => / threw/.test(line)), []); // replacements that only look change nothing
  for (const name of names) {
    await ask("hostile", `/${name}`, { headers: { lie: "1" } }).catch(() => {});
    assert.deepEqual(await keep(), right, name);
  }
  const { found, count } = await told("/none");
  assert.deepEqual(found, []);
  assert.ok(count > 100);
  assert.deepEqual((await told("/probe")).found, ["the natives by Array.prototype.slice", "a secret by String.prototype.trim", "the natives by Array.prototype.concat", "a secret by Array.prototype.concat"]);
});
