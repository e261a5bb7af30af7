// What a script gives is read once, and what it can change is never what the server decides by: promises whose then() calls back
// often or is gone at the second look, options with getters, arrays that have another length each time.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { project, serve } from "../lib/server.mjs";
import { kv, objects } from "../lib/toml.mjs";
import { Client } from "../websockets/lib.mjs";

const KINDS = ["twice", "plain", "once"];
const source = `import { DurableObject } from "cloudflare:workers";
/** Promises and thenables of a value that do not behave. */
const odd = {
  twice(value) { const promise = Promise.resolve(value); promise.then = (a, b) => { a(value); a(value); b?.(new Error("too late")); }; return promise; },
  plain: (value) => ({ then(a, b) { a(value); a(value); b?.(new Error("too late")); } }),
  once(value) { let looks = 0; return { get then() { return looks++ === 0 ? (a) => { a(value); a(value); } : undefined; } }; },
};
/** The values one after the other, then the last one. */
const changing = (...values) => { let i = 0; return () => values[Math.min(i++, values.length - 1)]; };
export class Cell extends DurableObject {
  kind = "plain";
  async fetch(request) {
    this.kind = new URL(request.url).pathname.split("/")[2];
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage(socket, message) { socket.send("got " + message); return odd[this.kind](); }
  /** How many pairs a list has whose limit is another one at each look. */
  async list() {
    for (let i = 0; i < 5; i++) this.ctx.storage.kv.put("k" + i, i);
    const limit = changing(2, -1), start = changing(undefined, "k4");
    return (await this.ctx.storage.list({ get limit() { return limit(); }, get startAfter() { return start(); } })).size;
  }
  wait(kind) { for (let i = 0; i < 3; i++) this.ctx.waitUntil(odd[kind]()); return "waited"; }
}
export default {
  async fetch(request, env, ctx) {
    const [, what, kind] = new URL(request.url).pathname.split("/");
    if (what === "socket") return env.CELL.getByName(kind).fetch(request);
    if (what === "late") { // is not cut off by those that end too often
      ctx.waitUntil(scheduler.wait(300).then(() => env.KV.put("late-" + kind, "done")));
      for (let i = 0; i < 5; i++) ctx.waitUntil(odd[kind]());
      return new Response("soon");
    }
    if (what === "read") return new Response(await env.KV.get(kind));
    const run = {
      list: () => env.CELL.getByName("list").list(),
      wait: () => env.CELL.getByName("wait").wait(kind),
      async d1() {
        const length = changing(1, 3);
        const params = new Proxy([1], { get: (target, key) => (key === "length" ? length() : key === "1" ? "DROP TABLE t" : key === "2" ? 0 : target[key]) });
        await env.DB.exec("CREATE TABLE t (x)");
        await env.DB.batch([{ statement: "SELECT ?", params }, env.DB.prepare("SELECT 2")]).catch(() => {});
        return (await env.DB.prepare("SELECT count(*) AS n FROM t").first()).n;
      },
      async kv() {
        class Small extends Uint8Array { get byteLength() { return 1; } }
        return env.KV.put("large", new Small((25 << 20) + 1));
      },
      async r2() {
        const upload = await env.BUCKET.createMultipartUpload("right");
        const part = await upload.uploadPart(1, new ReadableStream({ type: "bytes", pull(c) { upload.key = "wrong"; c.enqueue(new Uint8Array(3)); c.close(); } }));
        return (await upload.complete([part])).key;
      },
    };
    return new Response(await Promise.resolve(run[what]()).then(String, (error) => "refused: " + error.message));
  },
};`;

describe("what a script gives", () => {
  let server;
  before(async () => {
    server = await serve(project({ "index.js": source, "wrangler.toml": `name = "given"\nmain = "index.js"\ncompatibility_date = "2026-05-01"
${objects({ CELL: "Cell" })}${kv({ KV: "kv" })}
[[d1_databases]]\nbinding = "DB"\ndatabase_name = "d"\ndatabase_id = "d"
[[r2_buckets]]\nbinding = "BUCKET"\nbucket_name = "b"
` }));
  });
  after(() => server.stop());
  for (const kind of KINDS) {
    test(`a handler of WebSockets that returns a thenable: the next message comes (${kind})`, async () => {
      const client = await Client.open(server, `/socket/${kind}`);
      assert.equal(await client.ask("1"), "got 1");
      assert.equal(await client.ask("2"), "got 2");
      client.socket.close(1000);
      await client.closed;
    });
    test(`waitUntil() of what ends more than once ends nothing else (${kind})`, async () => {
      assert.equal(await server.text(`/wait/${kind}`), "waited");
      assert.equal(await server.text(`/late/${kind}`), "soon");
      await server.untilTrue(async () => (await server.text(`/read/late-${kind}`)) === "done", "the end of what was waited for");
    });
  }
  for (const [what, answer] of [
    ["list", "2"], ["d1", "0"], ["kv", "refused: KV PUT failed: 413 The value is larger than 25 MiB."], ["r2", "right"],
  ]) test(`${what}: options, arrays and fields that change are read once`, async () => assert.equal(await server.text(`/${what}`), answer));
});
