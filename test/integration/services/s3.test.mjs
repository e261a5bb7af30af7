// The S3-compatible endpoint of R2 (R2-8), driven by a client of another make (aws4fetch signs the
// requests), and what it refuses.
import assert from "node:assert/strict";
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { project, serve } from "../lib/server.mjs";
import { AwsClient, config, HOST, KEY, SECRET, start, worker } from "./s3-lib.mjs";

/** The endpoint itself, and the table of errors, without a server: bundled as the prelude is, for the numbers that it shares with C. */
async function endpoint() {
  const contents = 'export { handler } from "./workers/s3.js"; export * from "./workers/service/r2-problems.js";';
  const { outputFiles } = await build({ stdin: { contents, resolveDir: fileURLToPath(new URL("../../../prelude", import.meta.url)) }, bundle: true, format: "esm", target: "esnext", write: false });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

const md5 = (bytes) => createHash("md5").update(bytes).digest("hex");

test("R2-8 objects: put, get, head, ranges, conditions, copy, delete", async (t) => {
  const server = await start(t);
  const body = randomBytes(200_000);
  const put = await server.s3("PUT", "/files/dir/a%20b%2B%C3%A4", { body, headers: { "content-type": "image/x", "x-amz-meta-one": "1", "cache-control": "max-age=5" } });
  assert.equal(put.status, 200, put.text);
  assert.equal(put.headers.etag, `"${md5(body)}"`);
  const got = await server.s3("GET", "/files/dir/a%20b%2B%C3%A4");
  assert.ok(got.bytes.equals(body));
  assert.deepEqual([got.headers["content-type"], got.headers["x-amz-meta-one"], got.headers["cache-control"]], ["image/x", "1", "max-age=5"]);
  // The worker sees the same bucket.
  const own = await server.fetch("/dir/a b+ä".replace("ä", "%C3%A4").replace(" ", "%20"));
  assert.equal(own.status, 404, "the worker does not decode the path");
  const head = await server.s3("HEAD", "/files/dir/a%20b%2B%C3%A4");
  assert.equal(head.headers["content-length"], "200000");
  const part = await server.s3("GET", "/files/dir/a%20b%2B%C3%A4", { headers: { range: "bytes=10-19" } });
  assert.equal(part.status, 206);
  assert.equal(part.headers["content-range"], "bytes 10-19/200000");
  assert.ok(part.bytes.equals(body.subarray(10, 20)));
  assert.equal((await server.s3("GET", "/files/dir/a%20b%2B%C3%A4", { headers: { range: "bytes=200000-" } })).code, "InvalidRange");
  assert.equal((await server.s3("GET", "/files/dir/a%20b%2B%C3%A4", { headers: { "if-none-match": put.headers.etag } })).status, 304);
  assert.equal((await server.s3("GET", "/files/dir/a%20b%2B%C3%A4", { headers: { "if-match": '"x"' } })).code, "PreconditionFailed");
  assert.equal((await server.s3("PUT", "/files/dir/a%20b%2B%C3%A4", { body: "x", headers: { "if-none-match": "*" } })).code, "PreconditionFailed");
  const copy = await server.s3("PUT", "/files/copy", { headers: { "x-amz-copy-source": "/files/dir/a%20b%2B%C3%A4" } });
  assert.equal(copy.status, 200, copy.text);
  assert.equal((await server.s3("GET", "/files/copy")).headers["x-amz-meta-one"], "1");
  assert.ok(Buffer.from(await (await server.fetch("/copy")).arrayBuffer()).equals(body));
  assert.equal((await server.s3("DELETE", "/files/copy")).status, 204);
  assert.equal((await server.s3("GET", "/files/copy")).code, "NoSuchKey");
  assert.equal((await server.s3("HEAD", "/files/copy")).status, 404);
  assert.equal((await server.s3("GET", "/none/x")).code, "NoSuchBucket");
  assert.match((await server.s3("GET", "/")).text, /<Buckets><Bucket><Name>files<\/Name>/);
  const hosted = await server.s3("GET", "/dir/a%20b%2B%C3%A4", { host: `files.${HOST}` });
  assert.ok(hosted.bytes.equals(body), "the bucket as a host name");
});

test("R2-7 R2-8 SSE-C in S3's header fields", async (t) => {
  const server = await start(t);
  const fields = (key, prefix = "x-amz-server-side-encryption-customer-") => ({ [`${prefix}algorithm`]: "AES256", [`${prefix}key`]: key.toString("base64"), [`${prefix}key-MD5`]: createHash("md5").update(key).digest("base64") });
  const [mine, other] = [randomBytes(32), randomBytes(32)];
  const body = randomBytes(100_000);
  const put = await server.s3("PUT", "/files/e", { body, headers: fields(mine) });
  assert.equal(put.status, 200, put.text);
  assert.equal(put.headers["x-amz-server-side-encryption-customer-algorithm"], "AES256");
  assert.equal(put.headers["x-amz-server-side-encryption-customer-key-md5"], createHash("md5").update(mine).digest("base64"));
  const got = await server.s3("GET", "/files/e", { headers: fields(mine) });
  assert.ok(got.bytes.equals(body));
  assert.equal(got.headers["x-amz-server-side-encryption-customer-algorithm"], "AES256");
  const part = await server.s3("GET", "/files/e", { headers: { ...fields(mine), range: "bytes=65530-65549" } });
  assert.ok(part.bytes.equals(body.subarray(65530, 65550)));
  assert.equal((await server.s3("HEAD", "/files/e", { headers: fields(mine) })).status, 200);
  assert.equal((await server.s3("HEAD", "/files/e")).status, 400);
  assert.equal((await server.s3("HEAD", "/files/e", { headers: fields(other) })).status, 403);
  assert.equal((await server.s3("GET", "/files/e")).code, "InvalidRequest");
  assert.equal((await server.s3("GET", "/files/e", { headers: fields(other) })).code, "AccessDenied");
  for (const [change, code] of [[{ algorithm: "AES128" }, "InvalidEncryptionAlgorithmError"], [{ key: "AAAA" }, "InvalidArgument"], [{ "key-MD5": "AAAA" }, "InvalidArgument"], [{ key: "***" }, "InvalidArgument"]]) {
    const headers = fields(mine);
    for (const [name, value] of Object.entries(change)) headers[`x-amz-server-side-encryption-customer-${name}`] = value;
    assert.equal((await server.s3("PUT", "/files/x", { body: "x", headers })).code, code, JSON.stringify(change));
  }
  const source = { "x-amz-copy-source": "/files/e" };
  assert.equal((await server.s3("PUT", "/files/copy", { headers: source })).code, "InvalidRequest");
  const copied = await server.s3("PUT", "/files/copy", { headers: { ...source, ...fields(mine, "x-amz-copy-source-server-side-encryption-customer-"), ...fields(other) } });
  assert.equal(copied.status, 200, copied.text);
  assert.ok((await server.s3("GET", "/files/copy", { headers: fields(other) })).bytes.equals(body));
  const created = await server.s3("POST", "/files/multi?uploads", { headers: fields(mine) });
  const id = /<UploadId>(.*?)</.exec(created.text)[1];
  assert.equal((await server.s3("PUT", `/files/multi?partNumber=1&uploadId=${id}`, { body })).code, "InvalidRequest");
  const one = await server.s3("PUT", `/files/multi?partNumber=1&uploadId=${id}`, { body, headers: fields(mine) });
  const done = await server.s3("POST", `/files/multi?uploadId=${id}`, { body: `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${one.headers.etag}</ETag></Part></CompleteMultipartUpload>` });
  assert.equal(done.status, 200, done.text);
  assert.ok((await server.s3("GET", "/files/multi", { headers: fields(mine) })).bytes.equals(body));
});

test("R2-8 lists, deletes of many, multipart uploads", async (t) => {
  const server = await start(t);
  for (const key of ["a", "b/1", "b/2", "c&<d"]) assert.equal((await server.s3("PUT", `/files/${encodeURIComponent(key).replace("%2F", "/")}`, { body: key })).status, 200);
  const keys = (text) => [...text.matchAll(/<Key>(.*?)<\/Key>/g)].map((m) => m[1]);
  const first = await server.s3("GET", "/files?list-type=2&max-keys=2");
  assert.deepEqual(keys(first.text), ["a", "b/1"]);
  assert.match(first.text, /<IsTruncated>true/);
  const token = /<NextContinuationToken>(.*?)</.exec(first.text)[1];
  assert.deepEqual(keys((await server.s3("GET", `/files?list-type=2&continuation-token=${encodeURIComponent(token)}`)).text), ["b/2", "c&#38;&#60;d"]);
  const delimited = await server.s3("GET", "/files?list-type=2&delimiter=%2F&prefix=");
  assert.match(delimited.text, /<CommonPrefixes><Prefix>b\/<\/Prefix>/);
  assert.deepEqual(keys((await server.s3("GET", "/files?marker=b%2F1")).text), ["b/2", "c&#38;&#60;d"]);
  const removed = await server.s3("POST", "/files?delete", { body: "<Delete><Object><Key>a</Key></Object><Object><Key>c&amp;&lt;d</Key></Object></Delete>" });
  assert.equal(removed.status, 200, removed.text);
  assert.deepEqual(keys((await server.s3("GET", "/files?list-type=2")).text), ["b/1", "b/2"]);
  const created = await server.s3("POST", "/files/big?uploads", { headers: { "content-type": "x/y" } });
  const id = /<UploadId>(.*?)</.exec(created.text)[1];
  const bodies = [randomBytes(5 << 20), randomBytes(100)];
  const etags = [];
  for (const [i, body] of bodies.entries()) etags.push((await server.s3("PUT", `/files/big?partNumber=${i + 1}&uploadId=${id}`, { body })).headers.etag);
  assert.match((await server.s3("GET", "/files?uploads")).text, new RegExp(id));
  assert.equal([...(await server.s3("GET", `/files/big?uploadId=${id}`)).text.matchAll(/<Part>/g)].length, 2);
  const done = await server.s3("POST", `/files/big?uploadId=${id}`, { body: `<CompleteMultipartUpload>${etags.map((etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag}</ETag></Part>`).join("")}</CompleteMultipartUpload>` });
  assert.equal(done.status, 200, done.text);
  const whole = await server.s3("GET", "/files/big");
  assert.ok(whole.bytes.equals(Buffer.concat(bodies)));
  assert.equal(whole.headers["content-type"], "x/y");
  assert.match(whole.headers.etag, /^"[0-9a-f]{32}-2"$/);
  const other = /<UploadId>(.*?)</.exec((await server.s3("POST", "/files/gone?uploads")).text)[1];
  assert.equal((await server.s3("DELETE", `/files/gone?uploadId=${other}`)).status, 204);
  assert.equal((await server.s3("PUT", `/files/gone?partNumber=1&uploadId=${other}`, { body: "x" })).code, "NoSuchUpload");
});

test("R2-8 presigned URLs, and what is not signed well is refused", async (t) => {
  const server = await start(t);
  await server.s3("PUT", "/files/x", { body: "secret" });
  const presign = async (as, more = "") => (await as.sign(`http://${HOST}/files/x?X-Amz-Expires=60${more}`, { aws: { signQuery: true } })).url;
  const good = new AwsClient({ accessKeyId: KEY, secretAccessKey: SECRET, service: "s3", region: "eu-west-1" });
  assert.equal((await server.send(await presign(good))).text, "secret");
  assert.equal((await server.send((await presign(good)).replace("files/x", "files/y"))).code, "SignatureDoesNotMatch");
  assert.equal((await server.send(await good.sign(`http://${HOST}/files/x?X-Amz-Expires=604801`, { aws: { signQuery: true } }).then((r) => r.url))).code, "AuthorizationQueryParametersError");
  const past = new Date(Date.now() - 120_000).toISOString().replace(/[:-]|\.\d{3}/g, "");
  assert.equal((await server.send(await good.sign(`http://${HOST}/files/x?X-Amz-Expires=60`, { aws: { signQuery: true, datetime: past } }).then((r) => r.url))).code, "AccessDenied");
  const wrong = new AwsClient({ accessKeyId: KEY, secretAccessKey: "other", service: "s3", region: "auto" });
  assert.equal((await server.s3("GET", "/files/x", { as: wrong })).code, "SignatureDoesNotMatch");
  const stranger = new AwsClient({ accessKeyId: "STRANGER", secretAccessKey: SECRET, service: "s3", region: "auto" });
  assert.equal((await server.s3("GET", "/files/x", { as: stranger })).code, "InvalidAccessKeyId");
  assert.equal((await server.send(`http://${HOST}/files/x`)).code, "AccessDenied");
  assert.equal((await server.s3("GET", "/files/x", { sign: { datetime: "20200101T000000Z" } })).code, "RequestTimeTooSkewed");
  const signed = await good.sign(`http://${HOST}/files/x`, { method: "PUT", body: "as signed", headers: { "x-amz-content-sha256": createHash("sha256").update("as signed").digest("hex") } });
  assert.equal((await server.send(signed.url, { method: "PUT", headers: signed.headers, body: "otherwise" })).code, "BadDigest");
  assert.equal((await server.s3("GET", "/files/x")).text, "secret");
  assert.equal((await server.s3("GET", "/files/x?acl")).code, "NotImplemented");
});

test("R2-8 a presigned URL is good for what was signed: no field of S3's own besides, and no other bucket", async (t) => {
  const server = await start(t);
  const good = new AwsClient({ accessKeyId: KEY, secretAccessKey: SECRET, service: "s3", region: "auto" });
  const presign = async (url, method = "GET", headers = {}) => (await good.sign(url, { method, headers, aws: { signQuery: true } })).url;
  await server.s3("PUT", "/files/secret", { body: "secret" });
  await server.s3("PUT", "/other/mine", { body: "mine" });
  // Fields that were not signed: a copy of what the signer did not mean, metadata, a key, a storage class.
  const put = await presign(`http://${HOST}/other/upload?X-Amz-Expires=60`, "PUT");
  for (const headers of [{ "x-amz-copy-source": "/files/secret" }, { "X-Amz-Meta-Role": "admin" }, { "x-amz-storage-class": "STANDARD_IA" }, { "x-amz-anything": "1" }, { "x-amz-date": "20200101T000000Z" }]) {
    const answer = await server.send(put, { method: "PUT", headers, body: "" });
    assert.equal(answer.code, "AccessDenied", JSON.stringify(headers));
    assert.match(answer.text, /not signed/);
  }
  const signed = await good.sign(`http://${HOST}/other/upload`, { method: "PUT", body: "x" });
  assert.equal((await server.send(signed.url, { method: "PUT", headers: [...signed.headers, ["x-amz-copy-source", "/files/secret"]], body: "x" })).code, "AccessDenied");
  assert.equal((await server.s3("GET", "/other/upload")).code, "NoSuchKey");
  assert.equal((await server.send(put, { method: "PUT", body: "as meant" })).status, 200);
  assert.equal((await server.s3("GET", "/other/upload")).text, "as meant");
  // A URL for one bucket by its host, sent with an absolute target that names another.
  const raw = (target, host) => new Promise((resolve, reject) => {
    const request = http.request({ host: "127.0.0.1", port: server.port, path: target, headers: { host } }, (response) => {
      let text = "";
      response.on("data", (part) => (text += part)).on("end", () => resolve({ status: response.statusCode, text }));
    });
    request.on("error", reject);
    request.end();
  });
  const hosted = new URL(await presign(`http://other.${HOST}/secret?X-Amz-Expires=60`));
  const own = new URL(await presign(`http://other.${HOST}/mine?X-Amz-Expires=60`));
  for (const [target, host] of [
    [`http://files.${HOST}${hosted.pathname}${hosted.search}`, `other.${HOST}`], [`http://files.${HOST}${hosted.pathname}${hosted.search}`, `files.${HOST}`],
    [`http://${HOST}/files${hosted.pathname}${hosted.search}`, `other.${HOST}`], [`${hosted.pathname}${hosted.search}`, `files.${HOST}`],
  ]) {
    const answer = await raw(target, host);
    assert.equal(answer.status, 403, `${target} of ${host}: ${answer.text}`);
    assert.doesNotMatch(answer.text, /^secret$/);
  }
  // The target's host counts, and its signature holds, whatever the field says.
  assert.deepEqual(await raw(`http://other.${HOST}${own.pathname}${own.search}`, `files.${HOST}`), { status: 200, text: "mine" });
  assert.equal((await server.s3("PUT", "/files/x", { headers: { "x-amz-copy-source": "/%E0%A4%A" } })).code, "InvalidURI");
  assert.equal((await server.s3("PUT", "/files/x", { headers: { "x-amz-copy-source": "/$secret/x" } })).code, "NoSuchBucket");
});

test("R2-8 the SHA-256 that was signed is that of every body, not only of an object's", async (t) => {
  const server = await start(t);
  const sha = (data) => createHash("sha256").update(data).digest("hex");
  const good = new AwsClient({ accessKeyId: KEY, secretAccessKey: SECRET, service: "s3", region: "auto" });
  const swapped = async (method, path, meant, sent) => {
    const signed = await good.sign(`http://${HOST}${path}`, { method, body: meant, headers: { "x-amz-content-sha256": sha(meant) } });
    return server.send(signed.url, { method, headers: signed.headers, body: sent });
  };
  await server.s3("PUT", "/files/keep", { body: "kept" });
  const remove = (key) => `<Delete><Object><Key>${key}</Key></Object></Delete>`;
  assert.equal((await swapped("POST", "/files?delete", remove("nope"), remove("keep"))).code, "XAmzContentSHA256Mismatch");
  assert.equal((await server.s3("GET", "/files/keep")).text, "kept");
  const id = /<UploadId>(.*?)</.exec((await server.s3("POST", "/files/big?uploads")).text)[1];
  const part = (body, sent = body) => swapped("PUT", `/files/big?partNumber=1&uploadId=${id}`, body, sent);
  assert.equal((await part("meant", "taken")).code, "XAmzContentSHA256Mismatch");
  const etag = (await part("meant")).headers.etag;
  const complete = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${etag}</ETag></Part></CompleteMultipartUpload>`;
  assert.equal((await swapped("POST", `/files/big?uploadId=${id}`, "other text", complete)).code, "XAmzContentSHA256Mismatch");
  assert.equal((await swapped("POST", `/files/big?uploadId=${id}`, complete, complete)).status, 200);
  assert.equal((await server.s3("GET", "/files/big")).text, "meant");
});

test("R2-8 bodies signed chunk by chunk", async (t) => {
  const server = await start(t);
  const hmac = (key, text) => createHmac("sha256", key).update(text).digest();
  const sha = (data) => createHash("sha256").update(data).digest("hex");
  /** A PUT as an SDK streams it; `spoil` changes a byte after signing. */
  const stream = (chunks, spoil = false) => {
    const time = new Date().toISOString().replace(/[:-]|\.\d{3}/g, "");
    const scope = `${time.slice(0, 8)}/auto/s3/aws4_request`;
    const key = scope.split("/").reduce((before, part) => hmac(before, part), `AWS4${SECRET}`);
    const payload = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
    const names = "host;x-amz-content-sha256;x-amz-date";
    const canonical = `PUT\n/files/chunked\n\nhost:${HOST}\nx-amz-content-sha256:${payload}\nx-amz-date:${time}\n\n${names}\n${payload}`;
    let before = hmac(key, `AWS4-HMAC-SHA256\n${time}\n${scope}\n${sha(canonical)}`).toString("hex");
    const authorization = `AWS4-HMAC-SHA256 Credential=${KEY}/${scope}, SignedHeaders=${names}, Signature=${before}`;
    const parts = [];
    for (const chunk of [...chunks, Buffer.alloc(0)]) {
      before = hmac(key, `AWS4-HMAC-SHA256-PAYLOAD\n${time}\n${scope}\n${before}\n${sha("")}\n${sha(chunk)}`).toString("hex");
      parts.push(`${chunk.length.toString(16)};chunk-signature=${before}\r\n`, Buffer.from(chunk), "\r\n");
    }
    if (spoil) parts[1][0] ^= 1;
    const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
    return server.send(`http://${HOST}/files/chunked`, { method: "PUT", headers: { authorization, "x-amz-date": time, "x-amz-content-sha256": payload, "content-encoding": "aws-chunked" }, body });
  };
  const chunks = [randomBytes(65536), randomBytes(65536), randomBytes(17)];
  const put = await stream(chunks);
  assert.equal(put.status, 200, put.text);
  const got = await server.s3("GET", "/files/chunked");
  assert.ok(got.bytes.equals(Buffer.concat(chunks)));
  assert.equal(got.headers["content-encoding"], undefined);
  assert.equal((await stream([randomBytes(100), randomBytes(5)], true)).code, "SignatureDoesNotMatch");
  assert.ok((await server.s3("GET", "/files/chunked")).bytes.equals(Buffer.concat(chunks)), "a refused body changes nothing");
});

test("R2-8 every error of R2 has a word of S3's, from every operation, and none but its own is an internal error", async () => {
  const { handler, numberOf, PROBLEMS } = await endpoint();
  // P1: no other number in r2.js, nor in C.
  const source = (name) => readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8");
  const thrown = [...source("prelude/workers/service/r2.js").matchAll(/problem\(method, (\d+)/g), ...source("src/service/r2/r2.h").matchAll(/CN_R2_[A-Z_]+ = (\d{5,})/g)].map((match) => match[1]);
  assert.ok(thrown.length > 12, `${thrown}`);
  for (const number of thrown) assert.ok(number in PROBLEMS, number);
  assert.deepEqual([-10002, -10003, -10010, -10012, -10013, -10001, undefined].map(numberOf), [10043, 10043, 10043, 10043, 10043, 10001, 10001]);
  // P2: the endpoint itself over a bucket in which everything fails.
  const client = new AwsClient({ accessKeyId: KEY, secretAccessKey: SECRET, service: "s3", region: "auto" });
  crypto.subtle.timingSafeEqual ??= (a, b) => timingSafeEqual(a, b);
  const operations = [["GET", "/b/k"], ["HEAD", "/b/k"], ["PUT", "/b/k", "body"], ["PUT", "/b/k", "", { "x-amz-copy-source": "/b/x" }], ["DELETE", "/b/k"], ["GET", "/b"], ["GET", "/b?list-type=2"], ["GET", "/b?uploads"],
    ["POST", "/b?delete", "<Delete><Object><Key>a</Key></Object></Delete>"], ["POST", "/b/k?uploads", ""], ["PUT", "/b/k?partNumber=1&uploadId=x", "part"], ["GET", "/b/k?uploadId=x"], ["DELETE", "/b/k?uploadId=x"],
    ["POST", "/b/k?uploadId=x", "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>"]];
  const silent = console.error;
  console.error = () => {};
  try {
    for (const [number, [word]] of Object.entries(PROBLEMS)) {
      const fail = async () => { throw Object.assign(new Error("it failed"), { code: Number(number) }); };
      const upload = { uploadPart: fail, complete: fail, abort: fail };
      const bucket = { get: fail, head: fail, put: fail, delete: fail, list: fail, createMultipartUpload: fail, resumeMultipartUpload: () => upload };
      const env = { $host: HOST, $key: KEY, $secret: SECRET, b: { bucket, uploads: fail, parts: fail } };
      for (const [method, path, body, headers] of operations) {
        const signed = await client.sign(`http://${HOST}${path}`, { method, body, headers });
        const answer = await handler.fetch(signed, env), text = await answer.text();
        const what = `${number} from ${method} ${path}: ${answer.status} ${text}`;
        assert.equal(answer.status >= 500, ["InternalError", "ServiceUnavailable"].includes(word), what);
        assert.equal(answer.status === 500, word === "InternalError", what);
        // Without a key, 10003 is said otherwise of a body.
        if (method !== "HEAD") assert.ok([word, ...(number === "10003" ? ["InvalidRequest"] : [])].includes(/<Code>(\w+)</.exec(text)?.[1]), what);
      }
    }
  } finally {
    console.error = silent;
  }
});

test("R2-8 what is too large, too long or cannot be said is the client's error or a field less, and never internal", async (t) => {
  const server = await start(t, { limits: { body_bytes: 6 * 2 ** 30 } }, `export default { async fetch(request, env) {
    await env.B.put("odd", "odd body", { customMetadata: { "no name": "x", "\u00e4": "x", value: "a\\nb", good: "yes" }, httpMetadata: { contentType: "a\\nb" } });
    return new Response("kept");
  } };`);
  assert.equal((await server.s3("PUT", "/files/a", { body: "x", headers: { "x-amz-meta-a": "x".repeat(9000) } })).code, "MetadataTooLarge");
  assert.equal((await server.s3("POST", "/files/a?uploads", { headers: { "x-amz-meta-a": "x".repeat(9000) } })).code, "MetadataTooLarge");
  assert.equal((await server.s3("PUT", `/files/${"k".repeat(1025)}`, { body: "x" })).code, "KeyTooLongError");
  assert.equal(await (await server.fetch("/")).text(), "kept");
  const odd = await server.s3("GET", "/files/odd");
  assert.deepEqual([odd.status, odd.text, odd.headers["x-amz-meta-good"], odd.headers["x-amz-missing-meta"]], [200, "odd body", "yes", "3"]);
  assert.equal((await server.s3("HEAD", "/files/odd")).status, 200);
  assert.equal((await server.s3("GET", "/files/odd?response-content-type=%00")).code, "InvalidArgument");
  assert.equal((await server.s3("GET", "/files/odd?response-content-type=a%2Fb")).headers["content-type"], "a/b");
  // Larger than any object: refused by what it says of itself, before it has been sent.
  const huge = new AwsClient({ accessKeyId: KEY, secretAccessKey: SECRET, service: "s3", region: "auto" });
  const signed = await huge.sign(`http://${HOST}/files/huge`, { method: "PUT", headers: { "x-amz-content-sha256": "UNSIGNED-PAYLOAD" } });
  const refused = await new Promise((resolve, reject) => {
    const request = http.request({ host: "127.0.0.1", port: server.port, method: "PUT", path: "/files/huge", headers: { ...Object.fromEntries(signed.headers), host: HOST, "content-length": 5 * 2 ** 30 + 1 } }, (response) => {
      let text = "";
      response.on("data", (part) => (text += part)).on("end", () => resolve(text)).on("error", reject);
    });
    request.on("error", reject);
    request.write("it begins");
    t.after(() => request.destroy());
  });
  assert.match(refused, /<Code>EntityTooLarge</);
  assert.doesNotMatch(server.output, /internal error/i);
});

test("R2-8 without credentials it does not start", async () => {
  await assert.rejects(serve(project({ "wrangler.json": config(), "index.js": worker })), /needs the variables CAIRN_S3_ACCESS_KEY_ID/);
});

test("R2-8 a document of elements that do not end is read in time with its length", async (t) => {
  const server = await start(t, { cpu_ms: 2000 });
  const { status, code } = await server.s3("POST", "/files?delete=", { body: "<Object>".repeat(131_072) });
  assert.deepEqual([status, code], [400, "MalformedXML"]);
});
