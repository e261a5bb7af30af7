// Keys and names are data: whatever they look like, they lead to no file but the server's own, and come
// back as they were. (Paths of assets: admin/security.test.mjs and services/assets.test.mjs.)
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { raw, tempDir } from "../lib/server.mjs";
import { ask } from "../admin/lib.mjs";
import { actor } from "./lib.mjs";

const place = tempDir(), data = path.join(place, "data");
const keys = ["../escaped", "../../escaped", "/etc/escaped", `${place}/escaped`, "a/../../escaped", "./escaped", "..", ".", "a//b", "..\\escaped", "%2e%2e%2fescaped",
  "\u2025/escaped", "escaped\0.txt", "con", "~/.escaped", "file:///etc/escaped", "-rf", "a\nb", "'; DROP TABLE x; --", "\ud83d\ude00/.."];

let server;
const env = { CAIRN_S3_ACCESS_KEY_ID: "id", CAIRN_S3_SECRET_ACCESS_KEY: "secret" };
before(async () => {
  mkdirSync(data, { mode: 0o700 });
  server = await actor({
    r2: "(request, env) => request.json().then(async (key) => { await env.BUCKET.put(key, 'value of ' + key); return (await env.BUCKET.get(key)).text(); })",
    r2list: "(request, env) => env.BUCKET.list().then((list) => list.objects.map((object) => object.key))",
    kv: "(request, env) => request.json().then(async (key) => { await env.KV.put(key, 'value of ' + key); return env.KV.get(key); })",
    object: "(request, env) => request.json().then(async (name) => { await env.CELL.getByName(name).put('k', 'value of ' + name); return env.CELL.getByName(name).get('k'); })",
    storage: "(request, env) => request.json().then(async (key) => { await env.CELL.getByName('keys').put(key, 'value of ' + key); return env.CELL.getByName('keys').get(key); })",
    cache: `(request) => request.json().then(async (key) => {
      const url = new URL("http://x/" + encodeURIComponent(key));
      await (await caches.open(key)).put(url, new Response("value of " + key, { headers: { "cache-control": "max-age=60" } }));
      return (await (await caches.open(key)).match(url))?.text();
    })`,
  }, { data, env, more: { cairn: { s3: { host: "s3.test" } } } });
});
after(() => server.stop());

/** Everything in the folder that holds the data directory. */
const beside = () => readdirSync(place).sort();
function untouched() {
  assert.deepEqual(beside(), ["data"]);
  assert.equal(existsSync("/etc/escaped"), false);
  assert.equal(existsSync(path.join(server.dir, "escaped")), false);
}

for (const where of ["r2", "kv", "object", "storage", "cache"])
  test(`keys of ${where}`, async () => {
    for (const key of keys) {
      const { value, error } = await server.act(where, key);
      // KV has two names that are no keys; a name with a NUL is refused where it cannot be kept.
      if (error) assert.ok([".", ".."].includes(key) || key.includes("\0"), `${JSON.stringify(key)}: ${error}`);
      else assert.equal(value, `value of ${key}`, JSON.stringify(key));
    }
    untouched();
  });

test("keys of R2 come back in the list as they were", async () => {
  const { value } = await server.act("r2list");
  for (const key of keys.filter((each) => !each.includes("\0"))) assert.ok(value.includes(key), JSON.stringify(key));
});

/** A request to the S3 endpoint, signed (version 4) for exactly this path. */
function s3(method, target, body = "") {
  const date = new Date().toISOString().replace(/[-:]|\.\d+/g, ""), day = date.slice(0, 8), scope = `${day}/auto/s3/aws4_request`;
  const hash = createHash("sha256").update(body).digest("hex");
  const canonical = [method, target, "", "host:s3.test", `x-amz-content-sha256:${hash}`, `x-amz-date:${date}`, "", "host;x-amz-content-sha256;x-amz-date", hash].join("\n");
  const toSign = ["AWS4-HMAC-SHA256", date, scope, createHash("sha256").update(canonical).digest("hex")].join("\n");
  const key = [day, "auto", "s3", "aws4_request"].reduce((secret, text) => createHmac("sha256", secret).update(text).digest(), "AWS4secret");
  const authorization = `AWS4-HMAC-SHA256 Credential=id/${scope}, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=${createHmac("sha256", key).update(toSign).digest("hex")}`;
  return new Promise((resolve, reject) => {
    http.request({ host: "127.0.0.1", port: server.port, method, path: target, headers: { host: "s3.test", "x-amz-date": date, "x-amz-content-sha256": hash, authorization } }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => { text += part; }).on("end", () => resolve({ status: response.statusCode, text }));
    }).on("error", reject).end(body);
  });
}

test("the S3 endpoint", async () => {
  assert.equal((await s3("PUT", "/bucket/plain", "x")).status, 200);
  assert.equal((await s3("GET", "/bucket/plain")).text, "x");
  for (const target of ["/bucket/../../escaped", "/bucket/%2e%2e/%2e%2e/escaped", "/bucket/..%2f..%2fescaped", "/bucket//etc/escaped", "/../escaped", "/..%2fescaped/x", "/%2e%2e/bucket/x"]) {
    const { status, text } = await s3("PUT", target, "x");
    assert.ok(status < 500, `${target}: ${status} ${text}`);
    if (status === 200) assert.equal((await s3("GET", target)).text, "x", target);
  }
  for (const bucket of ["..", "bucket%2f..", "nothing", "%00", "$bucket", "kv", "db"]) {
    const { status } = await s3("GET", `/${bucket}/x`);
    assert.ok(status >= 400 && status < 500, `${bucket}: ${status}`);
  }
  untouched();
});

describe("the control API", () => {
  test("names of classes, objects, services and keys", async () => {
    const nasty = ["..%2f..%2fetc%2fpasswd", "%2e%2e", "..", "%00", "a%00b", "%ff%fe", "..%5c..", "$catalog", "*"];
    for (const name of nasty) {
      for (const target of [`/api/objects/${name}`, `/api/objects/app%2FCell/${name}/kv`, `/api/objects/${name}/x`, `/api/d1/${name}`, `/api/kv/${name}`, `/api/kv/kv/${name}`, `/api/kv/kv/values/${name}`,
        `/api/r2/${name}`, `/api/r2/bucket/${name}`, `/api/r2/bucket/objects/${name}`, `/api/queues/${name}`, `/${name}`, `/assets/${name}`, `/dashboard/${name}`]) {
        const { status, text } = await ask({ data }, "GET", target);
        assert.ok(status < 500, `${target}: ${status} ${text}`);
        assert.doesNotMatch(text, /root:.*:0:0:/, target);
      }
    }
    untouched();
  });
  test("a path that climbs", async () => {
    for (const target of ["/../../../../etc/passwd", "/api/../../etc/passwd", "/dashboard/../../../etc/passwd", "//etc/passwd"]) {
      const answer = await raw(server.port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      assert.doesNotMatch(answer, /root:.*:0:0:/, target);
    }
  });
});
