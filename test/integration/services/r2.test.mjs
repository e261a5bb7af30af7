// R2 (R2-1..7): objects, metadata, conditions, ranges, checksums, multipart uploads, lists; and that
// what was acknowledged is there after a kill.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { execFileSync } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, statSync, writeSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { command } from "../admin/lib.mjs";
import { alone } from "../lib/differences.mjs";
import { project, serve, tempDir } from "../lib/server.mjs";

const worker = `
const plain = (o) => o === null ? null : ({ ...o, checksums: o.checksums.toJSON(), body: undefined, uploaded: +o.uploaded, kind: o.constructor.name });
const revive = (o) => {
  if (o && typeof o === "object" && !Array.isArray(o)) {
    for (const k of ["uploadedBefore", "uploadedAfter", "cacheExpiry"]) if (o[k] !== undefined) o[k] = new Date(o[k]);
    if (o.headers) return new Headers(o.headers);
    for (const k of Object.keys(o)) o[k] = revive(o[k]);
  }
  return o;
};
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const b = env.BUCKET;
    const key = decodeURIComponent(url.pathname.slice(1).split("/").slice(1).join("/"));
    const options = revive(JSON.parse(url.searchParams.get("o") ?? "null")) ?? undefined;
    try {
      switch (url.pathname.split("/")[1]) {
        case "stream": return Response.json(plain(await b.put(key, request.body, options)));
        case "gzip": return Response.json(plain(await b.put(key, request.body.pipeThrough(new CompressionStream("gzip")), options)));
        case "gunzip": return new Response((await b.get(key)).body.pipeThrough(new DecompressionStream("gzip")));
        case "put": return Response.json(plain(await b.put(key, await request.arrayBuffer(), options)));
        case "types": {
          await b.put("string", "té"); await b.put("view", new Uint8Array([1, 2, 3]).subarray(1)); await b.put("null", null);
          await b.put("blob", new Blob(["bl", "ob"])); await b.put("buffer", new Uint8Array([9]).buffer);
          const out = {};
          for (const k of ["string", "view", "null", "blob", "buffer"]) out[k] = [...await (await b.get(k)).bytes()];
          const json = await b.put("json", JSON.stringify({ a: 1 }), { httpMetadata: { contentType: "application/json" } });
          const o = await b.get("json");
          out.json = await o.json(); out.used = o.bodyUsed;
          try { await o.text(); } catch (e) { out.again = e.message; }
          const blob = await (await b.get("json")).blob(); out.blob2 = [blob.type, blob.size];
          return Response.json(out);
        }
        case "get": {
          const o = await b.get(key, options);
          if (o === null) return new Response("null", { status: 404 });
          if (!o.body) return Response.json(plain(o), { status: 412 });
          const headers = new Headers({ "x-object": JSON.stringify(plain(o)) });
          o.writeHttpMetadata(headers);
          headers.set("etag", o.httpEtag);
          return new Response(o.body, { headers });
        }
        case "head": return Response.json(plain(await b.head(key)));
        case "delete": await b.delete(options?.keys ?? key); return new Response("ok");
        case "list": { const r = await b.list(options); return Response.json({ ...r, objects: r.objects.map(plain) }); }
        case "create": { const u = await b.createMultipartUpload(key, options); return Response.json({ key: u.key, uploadId: u.uploadId }); }
        case "part": return Response.json(await b.resumeMultipartUpload(key, options.id).uploadPart(options.n, request.body ?? "", options.options));
        case "complete": return Response.json(plain(await b.resumeMultipartUpload(key, options.id).complete(options.parts)));
        case "abort": await b.resumeMultipartUpload(key, options.id).abort(); return new Response("ok");
      }
    } catch (error) {
      return new Response(error.name + ": " + error.message, { status: 400 });
    }
    return new Response("?", { status: 404 });
  },
};`;
const config = JSON.stringify({ name: "r", main: "index.js", compatibility_date: "2026-01-01", r2_buckets: [{ binding: "BUCKET", bucket_name: "files" }] });

async function start(t, options) {
  const server = await serve(project({ "wrangler.json": config, "index.js": worker }), options);
  t.after(() => server.kill());
  const target = (what, key, o) => `/${what}/${encodeURIComponent(key ?? "")}${o === undefined ? "" : `?o=${encodeURIComponent(JSON.stringify(o))}`}`;
  server.ask = async (what, key, o, body) => {
    const response = await server.fetch(target(what, key, o), body === undefined ? {} : { method: "POST", body, duplex: "half" });
    const text = await response.text();
    return response.headers.get("content-type")?.startsWith("application/json") ? JSON.parse(text) : text;
  };
  server.get = (key, o) => server.fetch(target("get", key, o));
  server.bytes = async (key, o) => Buffer.from(await (await server.get(key, o)).arrayBuffer());
  return server;
}
const hash = (name, bytes) => createHash(name).update(bytes).digest("hex");
/** Every file below a folder. */
const allFiles = (folder) => readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
  const name = path.join(folder, entry.name);
  return entry.isDirectory() ? allFiles(name) : entry.isFile() ? [name] : [];
});

for (const lanes of [1, 2]) {
  test(`R2-1 R2-2 objects of every size and type, ${lanes} lanes`, async (t) => {
    const server = await start(t, { lanes });
    const types = await server.ask("types");
    assert.deepEqual(types, {
      string: [...Buffer.from("té")], view: [2, 3], null: [], blob: [...Buffer.from("blob")], buffer: [9], json: { a: 1 }, used: true,
      again: "Body has already been used. It can only be used once. Use tee() first if you need to read it twice.", blob2: ["application/json", 7],
    });
    for (const size of [0, 1, 16384, 16385, 3_000_000]) {
      const body = randomBytes(size);
      for (const how of ["put", "stream"]) {
        const put = await server.ask(how, "k/ä", { httpMetadata: { contentType: "text/x", cacheControl: "max-age=1", cacheExpiry: 1e12 }, customMetadata: { a: "ü" } }, body);
        assert.equal(put.size, size);
        assert.equal(put.etag, hash("md5", body));
        assert.equal(put.httpEtag, `"${put.etag}"`);
        assert.deepEqual(put.checksums, { md5: put.etag });
        assert.ok((await server.bytes("k/ä")).equals(body), `${how} ${size}`);
        const { kind, ...head } = await server.ask("head", "k/ä");
        assert.equal(kind, "R2Object");
        assert.deepEqual(head.range, { offset: 0, length: size });
        delete head.range;
        assert.deepEqual({ ...head, kind }, put);
        assert.deepEqual(head.customMetadata, { a: "ü" });
      }
    }
    const response = await server.get("k/ä");
    assert.equal(response.headers.get("content-type"), "text/x");
    assert.equal(response.headers.get("expires"), "Sun, 09 Sep 2001 01:46:40 GMT");
    assert.equal(response.headers.get("content-length"), "3000000");
    assert.equal(await server.ask("delete", "k/ä"), "ok");
    assert.equal((await server.get("k/ä")).status, 404);
    assert.equal(await server.ask("head", "k/ä"), null);
    assert.equal(await server.ask("delete", "never"), "ok");
  });
}

test("R2-3 conditions", async (t) => {
  const server = await start(t);
  const put = await server.ask("put", "c", undefined, "one");
  const etag = put.etag;
  const get = async (onlyIf) => (await server.get("c", { onlyIf })).status;
  assert.equal(await get({ etagMatches: etag }), 200);
  assert.equal(await get({ etagMatches: "x" }), 412);
  assert.equal(await get({ etagMatches: ["x", etag] }), 200);
  assert.equal(await get({ etagDoesNotMatch: etag }), 412);
  assert.equal(await get({ etagDoesNotMatch: "x" }), 200);
  assert.equal(await get({ uploadedBefore: put.uploaded + 1 }), 200);
  assert.equal(await get({ uploadedBefore: put.uploaded }), 412);
  assert.equal(await get({ uploadedAfter: put.uploaded }), 412);
  assert.equal(await get({ uploadedAfter: put.uploaded - 1 }), 200);
  assert.equal(await get({ headers: { "if-none-match": `"${etag}"` } }), 412);
  assert.equal(await get({ headers: { "if-match": `"x", "${etag}"` } }), 200);
  assert.match(await server.ask("put", "c", { onlyIf: { etagMatches: `"${etag}"` } }, "x"), /should not be wrapped in quotes/);
  assert.match(await server.ask("put", "c", 60, "unasked"), /parameter 3 is not of type 'PutOptions'/);
  for (const onlyIf of ["*", 1, true, { uploadedBefore: "never" }, { uploadedAfter: {} }]) { // what is not understood never holds
    assert.match(await server.ask("put", "c", { onlyIf }, "unasked"), /TypeError: (Incorrect type for|The value cannot be)/);
  }
  assert.equal(await server.ask("put", "c", { onlyIf: { etagMatches: [] } }, "unasked"), null);
  assert.equal(await server.ask("put", "c", { onlyIf: { etagMatches: "x" } }, "two"), null);
  assert.equal((await server.ask("put", "c", { onlyIf: { etagMatches: etag } }, "three")).size, 5);
  assert.equal(await server.ask("put", "c", { onlyIf: { etagDoesNotMatch: "*" } }, "four"), null);
  assert.equal((await server.ask("put", "new", { onlyIf: { etagDoesNotMatch: "*" } }, "four")).size, 4);
  assert.equal(await server.ask("put", "none", { onlyIf: { etagMatches: "*" } }, "five"), null);
  assert.equal(await server.ask("put", "big", { onlyIf: { etagMatches: "*" } }, randomBytes(100_000)), null);
});

test("R2-4 ranges", async (t) => {
  const server = await start(t);
  for (const size of [10, 40_000]) {
    const body = randomBytes(size);
    await server.ask("put", "r", undefined, body);
    for (const [range, from, to] of [[{ offset: 2 }, 2, size], [{ length: 3 }, 0, 3], [{ offset: 4, length: 2 }, 4, 6], [{ suffix: 4 }, size - 4, size],
      [{ suffix: 1e9 }, 0, size], [{ offset: size - 1, length: 100 }, size - 1, size], [{ headers: { range: "bytes=3-5" } }, 3, 6],
      [{ headers: { range: "bytes=-2" } }, size - 2, size], [{ headers: { range: "bytes=6-" } }, 6, size], [{ headers: { range: "nonsense" } }, 0, size]]) {
      const response = await server.get("r", { range });
      assert.ok(Buffer.from(await response.arrayBuffer()).equals(body.subarray(from, to)), JSON.stringify(range));
      assert.deepEqual(JSON.parse(response.headers.get("x-object")).range, { offset: from, length: to - from });
    }
    for (const range of [{ offset: size }, { offset: -1 }, { length: 0 }, { suffix: 0 }]) {
      assert.match(await (await server.get("r", { range })).text(), /get: The requested range is not satisfiable \(10039\)/);
    }
  }
});

test("R2-5 checksums are verified", async (t) => {
  const server = await start(t);
  for (const body of [randomBytes(100), randomBytes(100_000)]) {
    for (const name of ["md5", "sha1", "sha256", "sha384", "sha512"]) {
      const put = await server.ask("put", name, { [name]: hash(name, body) }, body);
      assert.deepEqual(put.checksums, { md5: hash("md5", body), [name]: hash(name, body) });
      const wrong = hash(name, "other");
      assert.match(await server.ask("put", "bad", { [name]: wrong }, body), new RegExp(`checksum you specified did not match what we received.[^]*${wrong}[^]*${hash(name, body)} \\(10037\\)`));
    }
  }
  assert.equal(await server.ask("head", "bad"), null);
  assert.match(await server.ask("put", "x", { md5: "zz" }, "x"), /md5 is not a valid hex string/);
  assert.match(await server.ask("put", "x", { md5: hash("md5", "x"), sha1: hash("sha1", "x") }, "x"), /multiple hashing algorithms/);
});

test("R2-6 multipart uploads", async (t) => {
  const server = await start(t);
  const part = 5 * 1024 * 1024;
  const bodies = [randomBytes(part), randomBytes(part), randomBytes(1234)];
  const { uploadId: id, key } = await server.ask("create", "multi", { httpMetadata: { contentType: "x/y" }, customMetadata: { m: "1" } });
  assert.equal(key, "multi");
  const parts = await Promise.all(bodies.map((body, i) => server.ask("part", "multi", { id, n: i + 1 }, body)));
  assert.deepEqual(parts, bodies.map((body, i) => ({ partNumber: i + 1, etag: hash("md5", body) })));
  assert.equal(await server.ask("head", "multi"), null, "not before it is complete");
  assert.match(await server.ask("complete", "multi", { id, parts: [parts[0], { partNumber: 9, etag: parts[1].etag }] }), /completeMultipartUpload: One or more of the specified parts could not be found. \(10025\)/);
  const whole = await server.ask("complete", "multi", { id, parts: [parts[2], parts[0], parts[1]] });
  assert.equal(whole.size, part * 2 + 1234);
  const md5s = Buffer.concat(bodies.map((b) => createHash("md5").update(b).digest()));
  assert.equal(whole.etag, `${hash("md5", md5s)}-3`);
  assert.deepEqual([whole.httpMetadata, whole.customMetadata], [{ contentType: "x/y" }, { m: "1" }]);
  assert.ok((await server.bytes("multi")).equals(Buffer.concat(bodies)));
  assert.ok((await server.bytes("multi", { range: { offset: part - 3, length: 6 } })).equals(Buffer.concat([bodies[0].subarray(-3), bodies[1].subarray(0, 3)])));
  for (const [what, o] of [["complete", { id, parts }], ["part", { id, n: 1 }], ["abort", { id: "none" }]]) {
    assert.match(await server.ask(what, "multi", o, "body"), /The specified multipart upload does not exist. \(10024\)/, what);
  }
  // The rules about sizes.
  const make = async (sizes) => {
    const { uploadId } = await server.ask("create", "sizes");
    const made = [];
    for (const [i, size] of sizes.entries()) made.push(await server.ask("part", "sizes", { id: uploadId, n: i + 1 }, Buffer.alloc(size, 1)));
    return server.ask("complete", "sizes", { id: uploadId, parts: made });
  };
  assert.match(await make([part - 1, 10]), /smaller than the minimum allowed object size. \(10011\)/);
  assert.match(await make([part, part + 1, 10]), /must have the same size. \(10048\)/);
  assert.match(await make([part, part + 1]), /must have the same size. \(10048\)/);
  assert.equal((await make([100])).size, 100);
  const again = await server.ask("create", "redo");
  await server.ask("part", "redo", { id: again.uploadId, n: 1 }, "first");
  const second = await server.ask("part", "redo", { id: again.uploadId, n: 1 }, "second");
  await server.ask("complete", "redo", { id: again.uploadId, parts: [second] });
  assert.equal((await server.bytes("redo")).toString(), "second");
  const gone = await server.ask("create", "gone");
  await server.ask("part", "gone", { id: gone.uploadId, n: 1 }, "x");
  assert.equal(await server.ask("abort", "gone", { id: gone.uploadId }), "ok");
  assert.match(await server.ask("part", "gone", { id: gone.uploadId, n: 0 }, "x"), /Part number must be between 1 and 10000/);
});

test("R2-1 lists with prefix, delimiter, limit and cursor", async (t) => {
  const server = await start(t);
  const keys = ["a", "b/1", "b/2", "b/c/3", "b/c/4", "d", "dé/x", "e/", "e/1", "zz"];
  for (const key of keys) await server.ask("put", key, { httpMetadata: { contentType: "t/t" }, customMetadata: { k: key } }, key);
  const list = async (o) => {
    const r = await server.ask("list", "", o);
    return { keys: r.objects.map((x) => x.key), prefixes: r.delimitedPrefixes, truncated: r.truncated, cursor: r.cursor };
  };
  assert.deepEqual((await list()).keys, [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
  assert.deepEqual((await list({ prefix: "b/" })).keys, ["b/1", "b/2", "b/c/3", "b/c/4"]);
  assert.deepEqual(await list({ delimiter: "/" }), { keys: ["a", "d", "zz"], prefixes: ["b/", "dé/", "e/"], truncated: false, cursor: undefined });
  assert.deepEqual(await list({ prefix: "b/", delimiter: "/" }), { keys: ["b/1", "b/2"], prefixes: ["b/c/"], truncated: false, cursor: undefined });
  assert.deepEqual((await list({ startAfter: "b/2" })).keys[0], "b/c/3");
  assert.deepEqual((await list({ prefix: "d", startAfter: "a" })).keys, ["d", "dé/x"]);
  for (const o of [{}, { delimiter: "/" }, { prefix: "b/" }, { prefix: "b/", delimiter: "/" }, { delimiter: "é" }]) {
    const all = await list(o);
    for (const limit of [1, 2, 3]) {
      const seen = { keys: [], prefixes: [] };
      let cursor;
      do {
        const page = await list({ ...o, limit, cursor });
        assert.ok(page.keys.length + page.prefixes.length <= limit);
        seen.keys.push(...page.keys);
        seen.prefixes.push(...page.prefixes);
        cursor = page.cursor;
        assert.equal(page.truncated, cursor !== undefined);
      } while (cursor !== undefined);
      assert.deepEqual(seen, { keys: all.keys, prefixes: all.prefixes }, JSON.stringify({ ...o, limit }));
    }
  }
  const [bare] = (await server.ask("list", "", { limit: 1 })).objects;
  assert.deepEqual([bare.customMetadata, bare.httpMetadata], [{}, {}]);
  const [full] = (await server.ask("list", "", { limit: 1, include: ["customMetadata", "httpMetadata"] })).objects;
  assert.deepEqual([full.customMetadata, full.httpMetadata], [{ k: "a" }, { contentType: "t/t" }]);
  assert.equal(await server.ask("delete", "", { keys: ["a", "d", "none"] }), "ok");
  assert.equal((await list()).keys.length, keys.length - 2);
  for (const o of [{ limit: 0 }, { limit: 1001 }]) assert.match(await server.ask("list", "", o), /MaxKeys params must be positive integer <= 1000. \(10022\)/);
  assert.deepEqual(await list({ cursor: "nonsense" }), { keys: [], prefixes: [], truncated: false, cursor: undefined });
});

test("R2-7 limits and what is not supported are told", async (t) => {
  const server = await start(t);
  assert.match(await server.ask("put", "k".repeat(1025), undefined, "x"), /put: The specified object name is not valid. \(10020\)/);
  assert.equal((await server.ask("put", "k".repeat(1024), undefined, "x")).size, 1);
  assert.equal((await server.ask("put", "", undefined, "x")).key, "");
  assert.match(await server.ask("put", "m", { customMetadata: { a: "x".repeat(8192) } }, "x"), /metadata headers exceed the maximum allowed metadata size. \(10012\)/);
  assert.match(await server.ask("put", "m", { storageClass: "Cold" }, "x"), /Unknown storage class/);
  assert.equal((await server.ask("put", "m", { storageClass: "InfrequentAccess" }, "x")).storageClass, "InfrequentAccess");
  assert.match(await server.ask("put", "m", { ssecKey: "00" }, "x"), /SSE-C Key must be 32 bytes/);
  assert.match(await server.ask("put", "m", { ssecKey: "zz".repeat(32) }, "x"), /SSE-C Key has invalid format/);
  assert.match(await server.ask("put", "m", { ssecKey: 5 }, "x"), /^TypeError/);
  assert.match(await server.ask("delete", "", { keys: Array.from({ length: 1001 }, (_, i) => `k${i}`) }), /more than 1000 keys/);
});

const KEY = "0f".repeat(32);
const OTHER = "aa".repeat(32);
const keyMd5 = hash("md5", Buffer.from(KEY, "hex"));

for (const lanes of [1, 2]) test(`R2-7 SSE-C: bodies, ranges, conditions, checksums; wrong keys; after a restart; lanes: ${lanes}`, async (t) => {
  const data = tempDir();
  let server = await start(t, { data, lanes });
  const get = (key, options) => server.fetch(`/get/${key}?o=${encodeURIComponent(JSON.stringify(options))}`);
  const bytes = async (key, options) => Buffer.from(await (await get(key, options)).arrayBuffer());
  const bodies = { empty: Buffer.alloc(0), small: Buffer.from("a secret text that is easily found"), chunk: randomBytes(65536), large: randomBytes(300_001) };
  for (const [key, body] of Object.entries(bodies)) {
    const put = await server.ask("put", key, { ssecKey: KEY, sha256: hash("sha256", body) }, body);
    assert.deepEqual([put.size, put.ssecKeyMd5, put.etag, put.checksums.sha256], [body.length, keyMd5, hash("md5", body), hash("sha256", body)], key);
  }
  assert.match(await server.ask("put", "large", { ssecKey: KEY, md5: "00".repeat(16) }, bodies.large), /10037/);
  const streamed = await server.ask("stream", "streamed", { ssecKey: KEY }, bodies.large);
  assert.equal(streamed.size, bodies.large.length);
  const check = async () => {
    for (const [key, body] of Object.entries(bodies)) assert.ok((await bytes(key, { ssecKey: KEY })).equals(body), key);
    for (const range of [{ offset: 0, length: 1 }, { offset: 65535, length: 2 }, { offset: 131072, length: 65536 }, { offset: 1000, length: 250_000 }, { suffix: 10 }, { offset: 300_000 }]) {
      const start = range.suffix ? 300_001 - range.suffix : range.offset;
      const end = range.suffix || range.length === undefined ? 300_001 : start + range.length;
      assert.ok((await bytes("large", { ssecKey: KEY, range })).equals(bodies.large.subarray(start, end)), JSON.stringify(range));
    }
    for (const [options, pattern] of [[{}, /get: The object is encrypted .*\(10003\)/], [{ ssecKey: OTHER }, /get: The customer's encryption key .* is not the one .*\(10003\)/]]) {
      const answer = await get("large", options);
      assert.equal(answer.status, 400);
      assert.match(await answer.text(), pattern);
    }
  };
  await check();
  assert.equal((await get("large", { ssecKey: KEY, onlyIf: { etagMatches: "no" } })).status, 412);
  assert.equal((await get("large", { ssecKey: KEY, onlyIf: { etagMatches: hash("md5", bodies.large) } })).status, 200);
  assert.equal((await server.ask("head", "large")).ssecKeyMd5, keyMd5, "a description needs no key");
  assert.equal((await server.ask("list", "", {})).objects.find((o) => o.key === "large").ssecKeyMd5, keyMd5);
  await server.ask("put", "plain", undefined, "x");
  assert.equal("ssecKeyMd5" in (await server.ask("head", "plain")), false);
  assert.match(await (await get("plain", { ssecKey: KEY })).text(), /not encrypted. \(10003\)/);
  // nothing of the body or the key is on disk
  await server.kill();
  const files = server.directories.flatMap(allFiles);
  assert.ok(files.length > 3);
  for (const file of files) {
    const content = readFileSync(file);
    for (const secret of [bodies.small, bodies.large.subarray(0, 32), Buffer.from(KEY, "hex"), Buffer.from(KEY)]) assert.equal(content.indexOf(secret), -1, file);
  }
  server = await start(t, { data, lanes });
  await check();
  // replaced by one without, and back
  await server.ask("put", "large", undefined, bodies.small);
  assert.ok((await bytes("large", {})).equals(bodies.small));
  // a file that was changed is not given out
  const victims = server.directories.flatMap(allFiles).filter((file) => /blobs\/(\w+\/)?..\/[0-9a-f]{32}$/.test(file) && statSync(file).size === 65536 + 32 + 16 + 2 * 4 + 24);
  assert.ok(victims.length > 0);
  for (const victim of victims) {
    const fd = openSync(victim, "r+");
    writeSync(fd, Buffer.from([0xff, 0x00, 0xff, 0x00]), 0, 4, 30_000);
    closeSync(fd);
  }
  let given = null;
  try {
    const answer = await get("chunk", { ssecKey: KEY });
    const body = await answer.arrayBuffer();
    if (answer.status === 200) given = body.byteLength;
  } catch {
    // the answer is cut
  }
  assert.equal(given, null, "a damaged body is not given out");
  await server.until(/(blob [0-9a-f]{32}|a body of shard \d+) is damaged/);
});

test("R2-7 SSE-C: multipart uploads", async (t) => {
  const server = await start(t);
  const parts = [randomBytes(5 << 20), randomBytes(5 << 20), randomBytes(1234)];
  const { uploadId } = await server.ask("create", "m", { ssecKey: KEY, customMetadata: { a: "b" } });
  const upload = (n, options) => server.ask("part", "m", { id: uploadId, n: n + 1, options }, parts[n]);
  assert.match(await upload(2, {}), /uploadPart: .*\(10003\)/);
  assert.match(await upload(2, { ssecKey: OTHER }), /uploadPart: .*\(10003\)/);
  const uploaded = [];
  for (let n = 0; n < 3; n++) uploaded.push(await upload(n, { ssecKey: KEY }));
  assert.equal(uploaded[0].etag, hash("md5", parts[0]));
  const done = await server.ask("complete", "m", { id: uploadId, parts: uploaded });
  assert.deepEqual([done.ssecKeyMd5, done.size, done.customMetadata], [keyMd5, (10 << 20) + 1234, { a: "b" }]);
  const whole = Buffer.concat(parts);
  const get = async (options) => Buffer.from(await (await server.fetch(`/get/m?o=${encodeURIComponent(JSON.stringify({ ssecKey: KEY, ...options }))}`)).arrayBuffer());
  assert.ok((await get({})).equals(whole));
  for (const [offset, length] of [[(5 << 20) - 100, 200], [(10 << 20) - 1, 1000], [65536 * 3, 1]]) {
    assert.ok((await get({ range: { offset, length } })).equals(whole.subarray(offset, offset + length)));
  }
  const plain = await server.ask("create", "p", undefined);
  assert.match(await server.ask("part", "p", { id: plain.uploadId, n: 1, options: { ssecKey: KEY } }, "x"), /10003/);
});

test("R2-1 a body goes out whole whether the system has its file in memory or not, to clients that wait as to those that do not", async (t) => {
  const data = tempDir();
  const server = await start(t, { data });
  const body = randomBytes(6_000_001);
  await server.ask("stream", "large", undefined, body);
  const file = allFiles(data).find((name) => /blobs\/..\/[0-9a-f]{32}$/.test(name));
  const files = () => readdirSync(`/proc/${server.pid}/fd`).filter((fd) => {
    try { return readlinkSync(`/proc/${server.pid}/fd/${fd}`) === file; } catch { return false; } // it is closed meanwhile
  }).length;
  const forget = () => execFileSync("dd", [`of=${file}`, "oflag=nocache", "conv=notrunc,fdatasync", "count=0"], { stdio: "ignore" });
  for (const cold of [false, true, false]) {
    if (cold) forget();
    assert.ok((await server.bytes("large")).equals(body), `cold: ${cold}`);
    assert.ok((await server.bytes("large", { range: { offset: 100_001, length: 4_000_000 } })).equals(body.subarray(100_001, 4_100_001)));
  }
  const slow = await Promise.all(Array.from({ length: 300 }, () => server.get("large"))); // nobody reads
  await server.untilTrue(() => files() <= 260, "most files to be closed while their clients wait");
  assert.equal(await server.ask("head", "large").then((head) => head.size), body.length);
  for (const response of slow.splice(0, 5)) assert.ok(Buffer.from(await response.arrayBuffer()).equals(body));
  for (const response of slow) await response.body.cancel();
  await server.untilTrue(() => files() === 0, "every file to be closed");
});

test("R2-1 streams through compression, both ways", async (t) => {
  const server = await start(t);
  const body = Buffer.alloc(3_000_000, "compressible ");
  const put = await server.ask("gzip", "z", undefined, body);
  assert.ok(put.size < 100_000);
  const back = Buffer.from(await (await server.fetch("/gunzip/z")).arrayBuffer());
  assert.ok(back.equals(body));
});

/** Puts while the server is killed, three times; `look` (data directory) in between. */
async function putsAndKills(t, look) {
  const data = tempDir();
  const acknowledged = new Map();
  for (let round = 0; round < 3; round++) {
    const server = await start(t, { data, lanes: 2 });
    for (const [key, digest] of acknowledged) assert.equal(hash("sha1", await server.bytes(key)), digest, key);
    let count = 0;
    const writer = async (who) => {
      for (let i = 0; !server.exit; i++) {
        const body = randomBytes(i % 3 === 0 ? 2000 : 200_000);
        const key = `${who}/${i % 5}`;
        try {
          acknowledged.delete(key); // from here on either of two
          const put = await server.ask("stream", key, undefined, body);
          if (put.size === body.length) acknowledged.set(key, hash("sha1", body));
          count++;
        } catch {
          return;
        }
      }
    };
    const writers = [0, 1, 2].map(writer);
    await server.untilTrue(() => count >= 9 + 4 * round, "some puts"); // and others are under way
    await server.kill();
    await Promise.all(writers);
    await look(data);
  }
  const server = await start(t, { data });
  for (const [key, digest] of acknowledged) assert.equal(hash("sha1", await server.bytes(key)), digest, key);
  assert.ok(acknowledged.size >= 5);
}

test("R2-1 what was acknowledged is there after a kill, whole", (t) => putsAndKills(t, () => {}));

test("R3: after a kill there is no body that the index does not know of", alone("offline"), (t) =>
  putsAndKills(t, async (data) => {
    const sql = "SELECT hex(segments) AS id FROM object WHERE segments IS NOT NULL UNION ALL SELECT hex(blob) FROM pending UNION ALL SELECT hex(blob) FROM garbage";
    const known = await command(data, "objects", "sql", "$r2/files", "0", sql, "--json");
    assert.equal(known.status, 0, known.stderr);
    const bodies = allFiles(data).map((file) => /blobs\/..\/([0-9a-f]{32})$/.exec(file)?.[1]).filter(Boolean);
    assert.ok(bodies.length > 0);
    for (const id of bodies) assert.ok(known.stdout.toLowerCase().includes(id), `nothing knows of ${id}`);
  }));
