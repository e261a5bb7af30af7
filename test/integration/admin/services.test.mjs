// The data of services through the control API: which workers and namespaces there are, keys and
// values of KV, objects of R2, messages of queues, dead letters on their way back.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { project, serve } from "../lib/server.mjs";
import { ask } from "./lib.mjs";
import { objects, queue } from "../lib/toml.mjs";

const dir = project({
  "wrangler.toml": `name = "shop"
main = "index.js"
compatibility_date = "2026-03-01"
[vars]
COLOUR = "red"
[[kv_namespaces]]
binding = "CARTS"
id = "carts"
[[r2_buckets]]
binding = "PICTURES"
bucket_name = "pictures"
[[d1_databases]]
binding = "DB"
database_name = "orders"
database_id = "orders-id"
${queue("MAIL", "mail", { max_batch_timeout: 0, max_retries: 0, dead_letter_queue: "mail-dead" })}
${queue("DEAD", "mail-dead")}
${objects({ ROOM: "Room" })}
[triggers]
crons = ["0 3 29 2 *"]
`,
  "index.js": `import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
export class Room extends DurableObject {
  get(key) { return this.ctx.storage.get(key); }
  put(key, value) { return this.ctx.storage.put(key, value); }
}
export class Back extends WorkerEntrypoint {}
export default {
  async fetch(request, env) {
    const { op, args } = await request.json();
    const room = env.ROOM.getByName("r");
    const ops = {
      kvPut: (...a) => env.CARTS.put(...a),
      kvGet: (key) => env.CARTS.getWithMetadata(key),
      r2Put: (key, text, options) => env.PICTURES.put(key, text, options).then((o) => o.etag),
      r2Text: (key) => env.PICTURES.get(key).then((o) => o && o.text()),
      r2Head: (key) => env.PICTURES.head(key),
      send: (body, options) => env.MAIL.send(body, options),
      sendDead: (body, options) => env.DEAD.send(body, options),
      succeed: () => env.CARTS.put("succeed", "yes"),
      seen: async () => (await env.CARTS.list({ prefix: "seen/" })).keys.map(({ name }) => Number(name.slice(5))),
      d1: (sql) => env.DB.prepare(sql).run().then(() => "done"),
      roomGet: async (key) => { const value = await room.get(key); return [Object.prototype.toString.call(value), value instanceof Map ? [...value] : value instanceof Uint8Array ? [...value] : String(value), JSON.stringify(value, (k, v) => typeof v === "bigint" ? String(v) : v)]; },
      roomPut: (key, value) => room.put(key, value),
    };
    return Response.json((await ops[op](...args)) ?? null);
  },
  async queue(batch, env) {
    if ((await env.CARTS.get("succeed")) === null) throw new Error("not now");
    // A key each: batches may be under way on every lane at once.
    for (const { body } of batch.messages) await env.CARTS.put(\`seen/\${body.letter}\`, "");
  },
  scheduled() {},
};
`,
});

let server, data;
before(async () => { server = await serve(dir, { lanes: 2 }); data = server.data; });
after(() => server.stop());
const run = async (op, ...args) => {
  const response = await server.fetch("/", { method: "POST", body: JSON.stringify({ op, args }) });
  return response.json();
};
const get = (target) => ask({ data }, "GET", target);

/** A request with a body of bytes. */
function send(method, target, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath: path.join(data, "control.sock"), method, path: target, headers }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () => {
        const bytes = Buffer.concat(parts);
        let json;
        try { json = JSON.parse(bytes.toString()); } catch {}
        resolve({ status: response.statusCode, headers: response.headers, bytes, json });
      });
    });
    request.on("error", reject);
    request.end(body);
  });
}

test("workers are listed with what they are bound to", async () => {
  const { json } = await get("/api/workers");
  assert.equal(json.length, 1);
  const [worker] = json;
  assert.equal(worker.name, "shop");
  assert.equal(worker.main, "index.js");
  assert.equal(worker.compatibilityDate, "2026-03-01");
  assert.deepEqual(worker.entrypoints.sort(), ["Back", "default"]);
  assert.deepEqual(worker.classes, [{ name: "Room", namespace: "shop/Room" }]);
  assert.deepEqual(worker.crons, ["0 3 29 2 *"]);
  assert.ok(Math.abs(worker.deployedAt - Date.now()) < 600_000);
  const targets = Object.fromEntries(worker.bindings.map(({ name, type, target }) => [name, [type, target]]));
  assert.deepEqual(targets.CARTS, ["kv_namespace", "carts"]);
  assert.deepEqual(targets.PICTURES, ["r2_bucket", "pictures"]);
  assert.deepEqual(targets.ROOM, ["durable_object_namespace", "shop/Room"]);
  assert.deepEqual(targets.MAIL, ["queue", "mail"]);
  assert.deepEqual(targets.COLOUR, ["var", null]);
  assert.ok(!JSON.stringify(json).includes("red")); // it could be a secret
});

test("services are listed with who uses them", async () => {
  await run("kvPut", "a", "1");
  await run("d1", "CREATE TABLE IF NOT EXISTS t(x)");
  const kv = (await get("/api/kv")).json.namespaces;
  assert.deepEqual(kv.map(({ id, title, bindings }) => ({ id, title, bindings })), [{ id: "carts", title: "CARTS", bindings: [{ worker: "shop", name: "CARTS" }] }]);
  assert.ok(kv[0].bytes > 0);
  const d1 = (await get("/api/d1")).json.databases;
  assert.deepEqual(d1.map(({ id, name }) => [id, name]), [["orders-id", "orders"]]);
  assert.ok(d1[0].bytes > 0);
  const { queues } = (await get("/api/queues")).json;
  const mail = queues.find(({ name }) => name === "mail"), dead = queues.find(({ name }) => name === "mail-dead");
  assert.equal(mail.deadLetterQueue, "mail-dead");
  assert.deepEqual(mail.consumers.map(({ worker, type, maxRetries }) => [worker, type, maxRetries]), [["shop", "worker", 0]]);
  assert.deepEqual(dead.deadLettersOf, ["mail"]);
  assert.equal(dead.paused, false);
});

describe("KV", () => {
  const keys = ["a/b", "a//b", "/a", "a/../b", "%2e", "ключ/✓", "a b+c?d=e&f#g", "nul\0nul", "...", "x".repeat(512)];
  test("every key goes there and back, however it is written in the path", async () => {
    for (const key of keys) {
      const target = `/api/kv/carts/values/${encodeURIComponent(key)}`;
      assert.equal((await send("PUT", target, `value of ${key}`)).status, 200, key);
      assert.equal((await run("kvGet", key)).value, `value of ${key}`, key);
      assert.equal((await get(target)).text, `value of ${key}`);
    }
    // Slashes may stand as they are; dots are not resolved, one round of decoding is done.
    assert.equal((await get("/api/kv/carts/values/a/b")).text, "value of a/b");
    assert.equal((await get("/api/kv/carts/values/a//b")).text, "value of a//b");
    assert.equal((await get("/api/kv/carts/values//a")).text, "value of /a");
    assert.equal((await get("/api/kv/carts/values/a/../b")).text, "value of a/../b");
    assert.equal((await get("/api/kv/carts/values/%252e")).text, "value of %2e");
    const listed = [];
    for (let cursor = ""; cursor !== null;) {
      const { json } = await get(`/api/kv/carts/keys?limit=3&cursor=${cursor}`);
      listed.push(...json.keys.map(({ name }) => name));
      assert.equal(json.complete, json.cursor === null);
      ({ cursor } = json);
    }
    const bytes = (text) => Buffer.from(text);
    assert.deepEqual(listed, [...new Set(["a", ...keys])].sort((a, b) => Buffer.compare(bytes(a), bytes(b))));
    for (const key of keys) assert.equal((await ask({ data }, "DELETE", `/api/kv/carts/values/${encodeURIComponent(key)}`)).status, 200);
    assert.deepEqual((await get("/api/kv/carts/keys")).json.keys, [{ name: "a" }]);
  });
  test("what is no key is refused", async () => {
    for (const [key, pattern] of [["", /empty/], ["..", /not allowed/], [".", /not allowed/], ["%2e%2e", /not allowed/], ["%ff", /UTF-8/], ["%zz", /percent/], ["x".repeat(513), /512 bytes/]]) {
      const { status, json } = await send("PUT", `/api/kv/carts/values/${key}`, "x");
      assert.equal(status, 400, key);
      assert.match(json.error.message, pattern);
    }
    assert.equal((await get("/api/kv/nowhere/keys")).status, 404);
    assert.equal((await get("/api/kv/carts/values/nothing")).status, 404);
    assert.equal((await get("/api/kv/carts/keys?cursor=zz")).status, 400);
  });
  test("metadata and expiry", async () => {
    const metadata = JSON.stringify({ price: 3, name: "Käse ✓ 😀" });
    const expiration = Math.floor(Date.now() / 1000) + 1000;
    assert.equal((await send("PUT", `/api/kv/carts/values/m?metadata=${encodeURIComponent(metadata)}&expiration=${expiration}`, "v")).status, 200);
    const answer = await get("/api/kv/carts/values/m");
    assert.deepEqual(JSON.parse(answer.headers["x-cairn-metadata"]), JSON.parse(metadata));
    assert.equal(answer.headers["x-cairn-expiration"], String(expiration));
    assert.deepEqual((await run("kvGet", "m")).metadata, JSON.parse(metadata));
    const [key] = (await get("/api/kv/carts/keys?prefix=m")).json.keys;
    assert.deepEqual(key, { name: "m", expiration, metadata: JSON.parse(metadata) });
    for (const query of ["expiration=5", "expiration_ttl=59", "expiration_ttl=x", "metadata={", `metadata=%22${"x".repeat(1100)}%22`])
      assert.ok([400, 413].includes((await send("PUT", `/api/kv/carts/values/m?${query}`, "v")).status), query);
    assert.equal((await send("PUT", "/api/kv/carts/values/big", Buffer.alloc((25 << 20) + 1))).status, 413);
    assert.equal((await send("PUT", "/api/kv/carts/values/big", Buffer.alloc(25 << 20, 7))).status, 200);
    const big = await get("/api/kv/carts/values/big");
    assert.ok(big.bytes.equals(Buffer.alloc(25 << 20, 7)));
    assert.equal((await send("PUT", "/api/kv/carts/values/empty", "")).status, 200);
    assert.equal((await get("/api/kv/carts/values/empty")).bytes.length, 0);
  });
});

test("bodies larger than what waits for a thread, several at once", async () => {
  for (let round = 0; round < 10; round++) {
    const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => send("PUT", `/api/kv/carts/values/large${i}`, Buffer.alloc(300_000 + 100_000 * i))));
    assert.deepEqual(answers.map(({ status }) => status), Array(8).fill(200));
  }
});

describe("R2", () => {
  test("an object goes there and back, with what is known of it", async () => {
    const body = Buffer.alloc(3 << 20, "picture");
    const put = await send("PUT", "/api/r2/pictures/objects/a/b.html?cacheControl=no-cache&metadata=%7B%22by%22%3A%22%C3%9Cwe%22%7D", body, { "content-type": "text/html" });
    assert.equal(put.status, 200);
    assert.equal(put.json.size, body.length);
    assert.deepEqual(put.json.custom, { by: "Üwe" });
    const head = await run("r2Head", "a/b.html");
    assert.equal(head.etag, put.json.etag);
    assert.deepEqual(head.httpMetadata, { contentType: "text/html", cacheControl: "no-cache" });
    const answer = await get("/api/r2/pictures/objects/a%2Fb.html");
    assert.ok(answer.bytes.equals(body));
    assert.equal(answer.headers["content-type"], "text/html");
    assert.equal(answer.headers["content-disposition"], "attachment");
    assert.match(answer.headers["content-security-policy"], /sandbox/);
    assert.equal(answer.headers["x-content-type-options"], "nosniff");
    assert.deepEqual(JSON.parse(answer.headers["x-cairn-custom-metadata"]), { by: "Üwe" });
    const part = await get("/api/r2/pictures/objects/a/b.html?offset=1000&length=17");
    assert.ok(part.bytes.equals(body.subarray(1000, 1017)));
    const about = await ask({ data }, "HEAD", "/api/r2/pictures/objects/a/b.html");
    assert.equal(about.status, 200);
    assert.equal(about.headers["content-length"], String(body.length));
    assert.equal(about.headers.etag, `"${put.json.etag}"`);
    assert.equal(about.bytes.length, 0);
    assert.equal((await ask({ data }, "HEAD", "/api/r2/pictures/objects/none")).status, 404);
  });
  test("keys of every kind; lists with a delimiter, page by page", async () => {
    const keys = ["a/../b", "../../etc/passwd", "x/1", "x/2", "y/1", "ключ ✓", "//", "%2e%2e"];
    for (const key of keys) {
      assert.equal((await send("PUT", `/api/r2/pictures/objects/${encodeURIComponent(key)}`, key)).status, 200, key);
      assert.equal(await run("r2Text", key), key);
    }
    assert.equal((await send("PUT", "/api/r2/pictures/objects/?key=..", "dots")).status, 200);
    assert.equal(await run("r2Text", ".."), "dots");
    assert.equal((await send("PUT", "/api/r2/pictures/objects/a%00b", "x")).status, 400);
    assert.equal((await send("PUT", `/api/r2/pictures/objects/${"x".repeat(1025)}`, "x")).status, 400);
    const { json } = await get("/api/r2/pictures/objects?prefix=x/");
    assert.deepEqual(json.objects.map(({ key }) => key), ["x/1", "x/2"]);
    const found = [];
    for (let cursor = ""; cursor !== null;) {
      const page = (await get(`/api/r2/pictures/objects?delimiter=/&limit=2&cursor=${cursor}`)).json;
      found.push(...page.prefixes, ...page.objects.map(({ key }) => key));
      ({ cursor } = page);
    }
    assert.deepEqual(new Set(found), new Set(["%2e%2e", "..", "../", "/", "a/", "x/", "y/", "ключ ✓"]));
    assert.equal(new Set(found).size, found.length);
    for (const key of [...keys, ".."])
      assert.deepEqual((await ask({ data }, "DELETE", `/api/r2/pictures/objects/?key=${encodeURIComponent(key)}`)).json, { deleted: true });
    assert.deepEqual((await ask({ data }, "DELETE", "/api/r2/pictures/objects/x/1")).json, { deleted: false });
  });
  test("totals follow what workers and this API do", async () => {
    const bucket = async () => { const { objects, bytes } = (await get("/api/r2/pictures")).json; return { objects, bytes }; };
    const start = await bucket();
    await run("r2Put", "t1", "12345");
    await send("PUT", "/api/r2/pictures/objects/t2", "123");
    await run("r2Put", "t1", "1234567");
    assert.deepEqual(await bucket(), { objects: start.objects + 2, bytes: start.bytes + 10 });
    await ask({ data }, "DELETE", "/api/r2/pictures/objects/t1");
    await ask({ data }, "DELETE", "/api/r2/pictures/objects/t2");
    assert.deepEqual(await bucket(), start);
    const { buckets } = (await get("/api/r2")).json;
    assert.deepEqual(buckets.map(({ name }) => name), ["pictures"]);
  });
  test("a bucket can be made; a body that breaks off leaves nothing", async () => {
    assert.equal((await send("PUT", "/api/r2/new-one")).status, 200);
    assert.equal((await send("PUT", "/api/r2/No")).status, 400);
    assert.deepEqual((await get("/api/r2/new-one/objects")).json.objects, []);
    const request = http.request({ socketPath: path.join(data, "control.sock"), method: "PUT", path: "/api/r2/new-one/objects/half", headers: { "content-length": 1 << 20 } });
    request.on("error", () => {});
    await new Promise((resolve) => request.write(Buffer.alloc(300_000), resolve));
    request.destroy();
    assert.equal((await get("/api/r2/new-one/objects/half")).status, 404);
  });
  test("a large body passes through in little memory", async () => {
    const rss = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))[1]) / 1024;
    const before = rss();
    const size = 256 << 20, piece = Buffer.alloc(1 << 20, "abcdefg");
    const answer = await new Promise((resolve, reject) => {
      const request = http.request({ socketPath: path.join(data, "control.sock"), method: "PUT", path: "/api/r2/new-one/objects/large" }, (response) => {
        let text = "";
        response.on("data", (part) => { text += part; });
        response.on("end", () => resolve(JSON.parse(text)));
      });
      request.on("error", reject);
      let left = size;
      const write = () => {
        while (left > 0) {
          left -= piece.length;
          if (!request.write(piece)) return void request.once("drain", write);
        }
        request.end();
      };
      write();
    });
    assert.equal(answer.size, size);
    const received = await new Promise((resolve, reject) => {
      http.get({ socketPath: path.join(data, "control.sock"), path: "/api/r2/new-one/objects/large" }, (response) => {
        let count = 0;
        response.on("data", (part) => { count += part.length; });
        response.on("end", () => resolve(count));
      }).on("error", reject);
    });
    assert.equal(received, size);
    assert.ok(rss() - before < 64, `grew by ${rss() - before} MB`);
    await ask({ data }, "DELETE", "/api/r2/new-one/objects/large");
  });
});

describe("queues", () => {
  const backlog = async (name) => (await get("/api/queues")).json.queues.find((queue) => queue.name === name).backlog;
  test("messages are looked at without being taken", async () => {
    for (const body of [{ n: 1 }, "two", [3]]) await run("sendDead", body);
    await run("sendDead", "text", { contentType: "text" });
    await run("sendDead", "later", { delaySeconds: 3600 });
    const all = (await get("/api/queues/mail-dead/messages?limit=100")).json;
    assert.deepEqual(all.messages.map(({ body }) => body), [{ n: 1 }, "two", [3], "text", "later"]);
    assert.deepEqual(all.messages.map(({ contentType }) => contentType), ["json", "json", "json", "text", "json"]);
    assert.ok(all.messages[4].due > Date.now() && all.messages[0].due === null);
    assert.equal(new Set(all.messages.map(({ id }) => id)).size, 5);
    const paged = [];
    for (let cursor = ""; cursor !== null;) {
      const { json } = await get(`/api/queues/mail-dead/messages?limit=2&cursor=${cursor}`);
      paged.push(...json.messages);
      ({ cursor } = json);
    }
    assert.deepEqual(paged, all.messages);
    assert.equal(await backlog("mail-dead"), 5);
    assert.equal((await get("/api/queues/none/messages")).status, 404);
    assert.equal((await get("/api/queues/mail/messages?cursor=k00")).status, 400);
    await ask({ data }, "POST", "/api/queues/mail-dead/purge");
  });
  test("dead letters go back where they came from, also from a queue that is paused", async () => {
    for (let i = 0; i < 7; i++) await run("send", { letter: i });
    await server.untilTrue(async () => (await backlog("mail-dead")) === 7, "the dead letters");
    await ask({ data }, "PATCH", "/api/queues/mail-dead", { body: { settings: { delivery_paused: true } } });
    await run("succeed");
    const some = await ask({ data }, "POST", "/api/queues/mail-dead/redrive", { body: { limit: 2 } });
    assert.deepEqual(some.json, { moved: 2, to: "mail" });
    const rest = await ask({ data }, "POST", "/api/queues/mail-dead/redrive", { body: {} });
    assert.deepEqual(rest.json, { moved: 5, to: "mail" });
    await server.untilTrue(async () => (await run("seen")).length === 7, "the letters");
    assert.deepEqual(await run("seen"), [0, 1, 2, 3, 4, 5, 6]);
    assert.equal(await backlog("mail-dead"), 0);
  });
  test("a redrive needs a way", async () => {
    for (const [queue, body, pattern] of [["mail", {}, /say it with "to" \(--to QUEUE\)/], ["mail", { to: "mail" }, /already/], ["mail", { to: "none" }, /no queue none/], ["mail-dead", { limit: 0 }, /limit/]]) {
      const { status, json } = await ask({ data }, "POST", `/api/queues/${queue}/redrive`, { body });
      assert.ok(status >= 400 && status < 500);
      assert.match(json.error.message, pattern);
    }
  });
});

describe("the storage of an object", () => {
  const target = (key) => `/api/objects/shop%2FRoom/r/kv/${encodeURIComponent(key)}`;
  test("values are edited as they are shown", async () => {
    await run("roomPut", "a/b", 1);
    const values = {
      "a/b": [{ list: [1, -17, 112, 70000, 1.5, true, null, "ü", "你好 ✓", "x".repeat(40)] }, "Object"],
      date: [{ $date: 86400000 }, "Date"],
      map: [{ $map: [["k", { a: 1 }], [2, "z"]] }, "Map"],
      set: [{ $set: [1, 2] }, "Set"],
      bytes: [{ $bytes: "AQID/w==" }, "Uint8Array"],
      big: [{ $bigint: "-0x123456789abcdef01" }, "BigInt"],
      nan: [{ $number: "NaN" }, "Number"],
      plain: [{ "$date": 1, other: 2 }, "Object"],
    };
    for (const [key, [value, type]] of Object.entries(values)) {
      const { status, json, text } = await ask({ data }, "PUT", target(key), { body: value });
      assert.equal(status, 200, text);
      assert.deepEqual(json.value, value);
      assert.equal((await run("roomGet", key))[0], `[object ${type}]`, key);
    }
    assert.deepEqual((await run("roomGet", "bytes"))[1], [1, 2, 3, 255]);
    assert.equal((await run("roomGet", "big"))[1], String(-0x123456789abcdef01n));
    assert.deepEqual(JSON.parse((await run("roomGet", "a/b"))[2]), values["a/b"][0]);
    const { json } = await get("/api/objects/shop%2FRoom/r/kv");
    assert.deepEqual(Object.fromEntries(json.entries.map(({ key, value }) => [key, value])), Object.fromEntries(Object.entries(values).map(([key, [value]]) => [key, value])));
    assert.deepEqual((await ask({ data }, "DELETE", target("a/b"))).json, { deleted: true });
    assert.deepEqual((await ask({ data }, "DELETE", target("a/b"))).json, { deleted: false });
  });
  test("what cannot be written is refused", async () => {
    for (const value of [{ $raw: "AA==" }, { $regexp: "/a/" }, { $bigint: "12" }, { $bytes: "?" }, { $map: [1] }, { $date: "now" }])
      assert.equal((await ask({ data }, "PUT", target("bad"), { body: value })).status, 400, JSON.stringify(value));
    assert.equal((await ask({ data }, "PUT", target("bad"))).status, 400);
    assert.equal((await ask({ data }, "PUT", "/api/objects/shop%2FRoom/nobody/kv/k", { body: 1 })).status, 404);
  });
});
