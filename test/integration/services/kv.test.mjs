// KV namespaces: values, metadata, expiry, lists, limits, and that nothing acknowledged is lost.
import assert from "node:assert/strict";
import http from "node:http";
import { after, before, describe, test } from "node:test";
import { serve } from "../lib/server.mjs";
import { casesProject, run } from "./cases.mjs";
import { objects } from "../lib/toml.mjs";

const CONFIG = `
[[kv_namespaces]]
binding = "KV"
id = "first"
[[kv_namespaces]]
binding = "OTHER"
${objects({ WRITER: "Writer" })}`;

const CASES = `
  async put(env, key, value, options) { return (await env.KV.put(key, value, options)) === undefined; },
  get(env, key, options) { return env.KV.get(key, options); },
  getWithMetadata(env, key, options) { return env.KV.getWithMetadata(key, options); },
  list(env, options) { return env.KV.list(options); },
  async remove(env, key) { return (await env.KV.delete(key)) === undefined; },
  async types(env) {
    const bytes = new Uint8Array([0, 255, 128, 10]);
    await env.KV.put("t", bytes.subarray(1));
    await env.KV.put("b", bytes.buffer);
    const t = await env.KV.get("t", "arrayBuffer");
    const b = await env.KV.get("b", { type: "stream" });
    await env.KV.put("json", JSON.stringify({ a: [1, "ü"] }));
    return { isBuffer: t instanceof ArrayBuffer, t: [...new Uint8Array(t)], b: [...await new Response(b).bytes()],
      json: await env.KV.get("json", "json"), text: await env.KV.get("json", "text"), number: await env.KV.put("n", 5).then(() => env.KV.get("n")) };
  },
  async streamed(env, size) {
    let left = size;
    const stream = new ReadableStream({ pull(controller) {
      if (left === 0) return controller.close();
      const chunk = new Uint8Array(Math.min(left, 65536)).fill(left & 255);
      left -= chunk.length;
      controller.enqueue(chunk);
    } });
    await env.KV.put("streamed", stream.pipeThrough(new CompressionStream("gzip")));
    const back = (await env.KV.get("streamed", "stream")).pipeThrough(new DecompressionStream("gzip"));
    let count = 0;
    for await (const chunk of back) count += chunk.length;
    return count;
  },
  async large(env, size) {
    const bytes = new Uint8Array(size);
    for (let i = 0; i < size; i += 997) bytes[i] = i;
    await env.KV.put("large", bytes, { metadata: { size } });
    const { value, metadata } = await env.KV.getWithMetadata("large", "arrayBuffer");
    const back = new Uint8Array(value);
    let same = back.length === size && metadata.size === size;
    for (let i = 0; i < size; i += 997) same &&= back[i] === bytes[i];
    await env.KV.put("large", "small again");
    return same && (await env.KV.get("large")) === "small again";
  },
  async fill(env, prefix, count) {
    const all = [];
    for (let i = 0; i < count; i++) all.push(env.KV.put(prefix + String(i).padStart(5, "0"), "v" + i, { metadata: { i } }));
    await Promise.all(all);
    return true;
  },
  async bulk(env, keys, options) { return [...await env.KV.get(keys, options)]; },
  async bulkWithMetadata(env, keys, options) { return [...await env.KV.getWithMetadata(keys, options)]; },
  async names(env, ...keys) {
    for (const key of keys.flat()) if (typeof key === "string") await env.KV.put(key, "x");
    return (await env.KV.list({ prefix: "u:" })).keys.map((key) => key.name);
  },
  async apart(env) { await env.KV.put("same", "one"); return [await env.OTHER.get("same"), String(env.KV), (await env.OTHER.list()).keys.length]; },
  badValue(env) { return env.KV.put("x", { a: 1 }); },
  badMetadata(env) { return env.KV.put("x", "y", { metadata: "m".repeat(1025) }); },
  tooLarge(env) { return env.KV.put("x", new Uint8Array((25 << 20) + 1)); },
  tooLargeStream(env) { return env.KV.put("x", new Response(new Uint8Array((25 << 20) + 1)).body); },
  brokenStream(env) { return env.KV.put("broken", new ReadableStream({ pull(c) { c.error(new Error("source failed")); } })); },
  newNamespace(env) { return new env.KV.constructor(); },
  now() { return Math.floor(Date.now() / 1000); },
  async fromObject(env, key) { return env.WRITER.get(env.WRITER.idFromName("w")).write(key); },
  async readYourWrites(env, rounds) {
    for (let i = 0; i < rounds; i++) {
      await env.KV.put("ryw", "v" + i);
      if ((await env.KV.get("ryw")) !== "v" + i) return i;
      await env.KV.delete("ryw");
      if ((await env.KV.get("ryw")) !== null) return -i;
    }
    return "ok";
  },
`;

const OBJECT = `
  import { DurableObject } from "cloudflare:workers";
  export class Writer extends DurableObject {
    async write(key) {
      this.ctx.storage.kv.put("n", (this.ctx.storage.kv.get("n") ?? 0) + 1);
      await this.env.KV.put(key, "from the object");
      return this.env.KV.get(key);
    }
  }
`;

const dir = casesProject(CONFIG, CASES, OBJECT);

for (const lanes of [1, 2]) {
  describe(`KV with ${lanes} lane(s)`, () => {
    let server;
    before(async () => { server = await serve(dir, { lanes }); });
    after(() => server.stop());

    test("KV-1 KV-2 every type of value", async () => {
      const answer = await run(server, "types");
      assert.deepEqual(answer, { isBuffer: true, t: [255, 128, 10], b: [0, 255, 128, 10],
        json: { a: [1, "ü"] }, text: '{"a":[1,"ü"]}', number: "5" });
      assert.equal(await run(server, "get", "absent"), null);
      assert.equal(await run(server, "put", "empty", ""), true);
      assert.equal(await run(server, "get", "empty"), "");
      await assert.rejects(run(server, "get", "t", "xml"), { name: "TypeError", message: /Unknown response type\. Possible types/ });
      await run(server, "put", "nojson", "{");
      await assert.rejects(run(server, "get", "nojson", "json"), { name: "SyntaxError" });
    });

    test("KV-1 metadata", async () => {
      await run(server, "put", "m", "v", { metadata: { a: [1, null, "é"] } });
      assert.deepEqual(await run(server, "getWithMetadata", "m"), { value: "v", metadata: { a: [1, null, "é"] }, cacheStatus: null });
      assert.equal(await run(server, "get", "m"), "v");
      await run(server, "put", "m", "w");
      assert.deepEqual(await run(server, "getWithMetadata", "m", { type: "text" }), { value: "w", metadata: null, cacheStatus: null });
      assert.deepEqual(await run(server, "getWithMetadata", "absent"), { value: null, metadata: null, cacheStatus: null });
    });

    test("KV-1 bulk get", async () => {
      await run(server, "fill", "bulk", 3);
      assert.deepEqual(await run(server, "bulk", ["bulk00002", "absent", "bulk00000"]),
        [["bulk00002", "v2"], ["absent", null], ["bulk00000", "v0"]]);
      assert.deepEqual(await run(server, "bulkWithMetadata", ["bulk00001", "absent"], "text"),
        [["bulk00001", { value: "v1", metadata: { i: 1 } }], ["absent", null]]);
      await assert.rejects(run(server, "bulk", []), { message: "KV GET_BULK failed: 400 You must request a minimum of 1 key" });
      await assert.rejects(run(server, "bulk", Array(101).fill("k")), { message: "KV GET_BULK failed: 400 You can request a maximum of 100 keys" });
      await assert.rejects(run(server, "bulk", ["bulk00001"], "stream"), { message: 'KV GET_BULK failed: 400 "stream" is not a valid type. Use "json" or "text"' });
      await assert.rejects(run(server, "bulk", ["bulk00001"], "json"), { message: /KV GET_BULK failed: 400 At least one of the requested keys corresponds to a non-json value/ });
    });

    test("KV-3 list: prefix, limit, cursor, metadata, order of bytes", async () => {
      await run(server, "fill", "list", 250);
      const all = await run(server, "list", { prefix: "list" });
      assert.equal(all.list_complete, true);
      assert.equal("cursor" in all, false);
      assert.equal(all.cacheStatus, null);
      assert.deepEqual(all.keys.map((key) => key.name), Array.from({ length: 250 }, (_, i) => `list${String(i).padStart(5, "0")}`));
      assert.deepEqual(all.keys[7], { name: "list00007", metadata: { i: 7 } });
      let cursor;
      const names = [];
      for (let pages = 0; ; pages++) {
        const page = await run(server, "list", { prefix: "list", limit: 99, cursor });
        names.push(...page.keys.map((key) => key.name));
        assert.ok(pages < 4);
        if (page.list_complete) break;
        assert.equal(page.keys.length, 99);
        cursor = page.cursor;
      }
      assert.deepEqual(names, all.keys.map((key) => key.name));
      assert.equal((await run(server, "list", { prefix: "list", limit: 250 })).list_complete, true);
      assert.deepEqual((await run(server, "list", { prefix: "none" })).keys, []);
      await assert.rejects(run(server, "list", { limit: 1001 }), { message: "KV GET failed: 400 Invalid key_count_limit of 1001. Please specify an integer less than 1000." });
      await assert.rejects(run(server, "list", { limit: 0 }), { message: "KV GET failed: 400 Invalid key_count_limit of 0. Please specify an integer greater than 0." });
      await assert.rejects(run(server, "list", { cursor: "???" }), { message: "KV LIST failed: 400 Invalid cursor." });
      await assert.rejects(run(server, "list", { prefix: "p".repeat(513) }), { message: /^KV LIST failed: 414 UTF-8 encoded length of 513/ });
      // U+FFFD sorts before U+1F600 by bytes and after it by UTF-16 units.
      assert.deepEqual(await run(server, "names", ["u:\u{1f600}", "u:\ufffd", "u:a", "u:\u00e9", "u:a\u0000b"]),
        ["u:a", "u:a\u0000b", "u:\u00e9", "u:\ufffd", "u:\u{1f600}"]);
    });

    test("KV-4 delete, keys and limits", async () => {
      await run(server, "put", "gone", "x");
      assert.equal(await run(server, "remove", "gone"), true);
      assert.equal(await run(server, "get", "gone"), null);
      assert.equal(await run(server, "remove", "gone"), true);
      await assert.rejects(run(server, "get", ""), { name: "TypeError", message: "Key name cannot be empty." });
      await assert.rejects(run(server, "put", ".", "x"), { name: "TypeError", message: '"." is not allowed as a key name.' });
      await assert.rejects(run(server, "remove", ".."), { name: "TypeError", message: '".." is not allowed as a key name.' });
      assert.equal(await run(server, "put", "k".repeat(512), "long"), true);
      assert.equal(await run(server, "get", "k".repeat(512)), "long");
      await assert.rejects(run(server, "put", "é".repeat(257), "x"), { message: "KV PUT failed: 414 UTF-8 encoded length of 514 exceeds key length limit of 512." });
      await assert.rejects(run(server, "badMetadata"), { message: "KV PUT failed: 413 Metadata length of 1027 exceeds limit of 1024." });
      await assert.rejects(run(server, "badValue"), { name: "TypeError", message: /^KV put\(\) accepts only strings/ });
      await assert.rejects(run(server, "tooLarge"), { message: "KV PUT failed: 413 Value length of 26214401 exceeds limit of 26214400." });
      await assert.rejects(run(server, "tooLargeStream"), { message: /^KV PUT failed: 413 Value length of more than 26214400/ });
      await assert.rejects(run(server, "brokenStream"), { message: "source failed" });
      assert.equal(await run(server, "get", "broken"), null);
      await assert.rejects(run(server, "newNamespace"), { name: "TypeError", message: "Illegal constructor" });
    });

    test("KV-4 large values and streams", async () => {
      assert.equal(await run(server, "large", 3 << 20), true);
      assert.equal(await run(server, "large", 25 << 20), true);
      assert.equal(await run(server, "streamed", 5_000_000), 5_000_000);
    });

    test("KV-2 KV-6 expiration is checked", async () => {
      const now = await run(server, "now");
      const reject = (options, message) => assert.rejects(run(server, "put", "e", "v", options), { message });
      await reject(60, "Failed to execute 'put' on 'KvNamespace': parameter 3 is not of type 'PutOptions'.");
      await reject({ expirationTtl: 59 }, "KV PUT failed: 400 Invalid expiration_ttl of 59. Expiration TTL must be at least 60.");
      await reject({ expirationTtl: 0 }, "KV PUT failed: 400 Invalid expiration_ttl of 0. Please specify integer greater than 0.");
      await reject({ expirationTtl: "soon" }, "KV PUT failed: 400 Invalid expiration_ttl of 0. Please specify integer greater than 0.");
      await reject({ expiration: now - 1 }, `KV PUT failed: 400 Invalid expiration of ${now - 1}. Please specify integer greater than the current number of seconds since the UNIX epoch.`);
      await reject({ expiration: now + 30 }, `KV PUT failed: 400 Invalid expiration of ${now + 30}. Expiration times must be at least 60 seconds in the future.`);
      await reject({ expiration: (now + 100) * 1000 }, /Please specify seconds, not milliseconds/);
      await run(server, "put", "e1", "v", { expiration: now + 1000 });
      await run(server, "put", "e2", "v", { expirationTtl: 2000 });
      const { keys } = await run(server, "list", { prefix: "e" });
      assert.equal(keys.find((key) => key.name === "e1").expiration, now + 1000);
      assert.ok(Math.abs(keys.find((key) => key.name === "e2").expiration - now - 2000) < 60);
    });

    test("KV-5 cacheTtl is accepted and never serves what is old", async () => {
      await run(server, "put", "c", "1");
      assert.equal(await run(server, "get", "c", { cacheTtl: 3600 }), "1");
      await run(server, "put", "c", "2");
      assert.equal(await run(server, "get", "c", { cacheTtl: 3600 }), "2");
      await assert.rejects(run(server, "get", "c", { cacheTtl: 5 }), { message: "KV GET failed: 400 Invalid cache_ttl of 5. Cache TTL must be at least 30." });
      assert.equal(await run(server, "readYourWrites", 200), "ok");
    });

    test("KV-5 whoever was told of a write reads it, on whichever lane", async () => {
      // Every request comes by a connection of its own, so lanes change; the cache is warm with the value before.
      const get = (key) => new Promise((resolve, reject) => {
        http.get(`${server.url}/get?args=${encodeURIComponent(JSON.stringify([key]))}`, { agent: false }, (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (part) => { text += part; }).on("end", () => resolve(JSON.parse(text).result));
        }).on("error", reject);
      });
      await Promise.all(Array.from({ length: 6 }, async (_, writer) => {
        for (let i = 0; i < 40; i++) {
          await run(server, "put", `told${writer}`, `${i}`);
          for (const value of await Promise.all([1, 2, 3].map(() => get(`told${writer}`)))) assert.equal(value, `${i}`);
        }
      }));
    });

    test("KV-1 namespaces are apart, objects can use them", async () => {
      assert.deepEqual(await run(server, "apart"), [null, "[object KvNamespace]", 0]);
      assert.equal(await run(server, "fromObject", "byobject"), "from the object");
    });

    test("KV-2 what was acknowledged survives kill -9", async () => {
      // Writers that remember what was acknowledged, and a kill in the midst of them.
      const known = new Map();
      let running = true;
      const writers = Array.from({ length: 8 }, async (_, writer) => {
        for (let i = 0; running; i++) {
          const key = `crash${writer}-${i % 20}`;
          try {
            await run(server, "put", key, `${i}`, { metadata: i });
            known.set(key, i);
          } catch {
            return;
          }
        }
      });
      await server.untilTrue(() => known.size >= 100, "a hundred keys");
      await server.kill();
      running = false;
      await Promise.all(writers);
      server = await serve(dir, { lanes: 3 - lanes, data: server.data });
      for (const [key, i] of known) {
        const { value, metadata } = await run(server, "getWithMetadata", key);
        assert.ok(Number(value) >= i, `${key}: ${value} is older than ${i}`);
        assert.equal(metadata, Number(value));
      }
      assert.equal((await run(server, "list", { prefix: "list" })).keys.length, 250);
      assert.equal(await run(server, "get", "k".repeat(512)), "long");
    });
  });
}
