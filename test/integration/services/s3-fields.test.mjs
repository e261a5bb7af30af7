// S3: bodies in chunks that do not come whole change nothing (U1 of prelude/workers/s3-sign.js); every field of S3's own is honoured
// or refused (F1 to F3 of s3-fields.js).
import assert from "node:assert/strict";
import { createHash, createHmac, randomBytes } from "node:crypto";
import test from "node:test";
import { AwsClient, HOST, KEY, SECRET, start } from "./s3-lib.mjs";

const hmac = (key, text) => createHmac("sha256", key).update(text).digest();
const sha = (data) => createHash("sha256").update(data).digest("hex");
const base64 = (algorithm, data) => createHash(algorithm).update(data).digest("base64");
/** CRC-32 and CRC-32C, bit by bit. */
const crc = (polynomial) => (data) => {
  let value = 0xffffffff;
  for (const byte of Buffer.from(data)) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ polynomial : value >>> 1;
  }
  const out = Buffer.alloc(4);
  out.writeUInt32BE(~value >>> 0);
  return out.toString("base64");
};
const crc32 = crc(0xedb88320), crc32c = crc(0x82f63b78);

/** A request whose body is sent in chunks: {headers, body}. `change` alters the lines of the body after they were signed. */
function stream(target, chunks, { payload = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", length, trailers = {}, announce = Object.keys(trailers), change = (parts) => parts } = {}) {
  const signs = !payload.includes("UNSIGNED");
  const time = new Date().toISOString().replace(/[:-]|\.\d{3}/g, "");
  const scope = `${time.slice(0, 8)}/auto/s3/aws4_request`;
  const key = scope.split("/").reduce((before, part) => hmac(before, part), `AWS4${SECRET}`);
  const fields = { host: HOST, "x-amz-content-sha256": payload, "x-amz-date": time };
  if (length !== null) fields["x-amz-decoded-content-length"] = String(length ?? chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  if (announce.length > 0) fields["x-amz-trailer"] = announce.join(",");
  const names = Object.keys(fields).sort();
  const url = new URL(`http://${HOST}${target}`);
  const query = [...url.searchParams].map(([name, value]) => `${name}=${encodeURIComponent(value)}`).sort().join("&");
  const canonical = `PUT\n${url.pathname}\n${query}\n${names.map((name) => `${name}:${fields[name]}\n`).join("")}\n${names.join(";")}\n${payload}`;
  let before = hmac(key, `AWS4-HMAC-SHA256\n${time}\n${scope}\n${sha(canonical)}`).toString("hex");
  const authorization = `AWS4-HMAC-SHA256 Credential=${KEY}/${scope}, SignedHeaders=${names.join(";")}, Signature=${before}`;
  const next = (kind, ...rest) => (before = hmac(key, [`AWS4-HMAC-SHA256-${kind}`, time, scope, before, ...rest].join("\n")).toString("hex"));
  const parts = [];
  for (const chunk of [...chunks, Buffer.alloc(0)]) {
    parts.push(`${chunk.length.toString(16)}${signs ? `;chunk-signature=${next("PAYLOAD", sha(""), sha(chunk))}` : ""}\r\n`);
    if (chunk.length > 0) parts.push(chunk, "\r\n");
  }
  for (const [name, value] of Object.entries(trailers)) parts.push(`${name}:${value}\r\n`);
  if (signs && Object.keys(trailers).length > 0) parts.push(`x-amz-trailer-signature:${next("TRAILER", sha(Object.entries(trailers).map(([name, value]) => `${name}:${value}\n`).join("")))}\r\n`);
  parts.push("\r\n");
  return { method: "PUT", headers: { ...fields, authorization, "content-encoding": "aws-chunked" }, body: Buffer.concat(change(parts).map((part) => Buffer.from(part))) };
}

test("a body in chunks that does not come whole is refused, and nothing is changed (U1)", async (t) => {
  const server = await start(t);
  await server.s3("PUT", "/files/k", { body: "hello" });
  const id = /<UploadId>(.*?)</.exec((await server.s3("POST", "/files/parts?uploads")).text)[1];
  const part = `/files/parts?partNumber=1&uploadId=${id}`;
  const chunks = [Buffer.from("first"), Buffer.from("second")];
  const UNSIGNED = "STREAMING-UNSIGNED-PAYLOAD-TRAILER", TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
  const sum = { "x-amz-checksum-crc32": crc32("firstsecond") };
  const cases = [
    ["no body at all", {}, () => []], ["no last chunk", {}, (parts) => parts.slice(0, -2)], ["the first chunk alone", {}, (parts) => parts.slice(0, 3)], ["half a chunk", {}, (parts) => parts.slice(0, 2)],
    ["another length was said", { length: 5 }], ["a greater length was said", { length: 100 }], ["no body, no length", { length: null }, () => []], ["no number", { length: "x" }], ["the last chunk alone", {}, (parts) => parts.slice(-2)],
    ["unsigned, no body", { payload: UNSIGNED }, () => []], ["unsigned, no last chunk", { payload: UNSIGNED }, (parts) => parts.slice(0, -2)], ["unsigned, shorter", { payload: UNSIGNED, length: 12 }],
    ["no trailer that was announced", { payload: UNSIGNED, announce: ["x-amz-checksum-crc32"] }], ["a wrong sum behind", { payload: UNSIGNED, trailers: { "x-amz-checksum-crc32": crc32("other") } }],
    ["a trailer nobody announced", { payload: UNSIGNED, trailers: { "x-amz-checksum-sha1": "x" }, announce: [] }], ["no sum", { payload: UNSIGNED, trailers: { "x-amz-checksum-crc32": "?" } }],
    ["signed, a wrong sum behind", { payload: TRAILER, trailers: { "x-amz-checksum-crc32": crc32("other") } }], ["signed, the trailer changed", { payload: TRAILER, trailers: sum }, (parts) => parts.map((each) => (typeof each === "string" ? each.replace(sum["x-amz-checksum-crc32"], crc32("x")) : each))],
    ["signed, no signature of the trailer", { payload: TRAILER, trailers: sum }, (parts) => parts.filter((each) => !`${each}`.startsWith("x-amz-trailer-signature"))],
    ["another way to sign", { payload: "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-OTHER" }],
  ];
  for (const [what, options, change] of cases) {
    for (const target of ["/files/k", part]) {
      const answer = await server.send(`http://${HOST}${target}`, stream(target, chunks, { ...options, change }));
      assert.ok(answer.status >= 400 && answer.status !== 500, `${what} to ${target}: ${answer.status} ${answer.text}`);
      assert.ok(["IncompleteBody", "SignatureDoesNotMatch", "MalformedTrailerError", "BadDigest", "InvalidRequest", "InvalidArgument", "NotImplemented"].includes(answer.code), `${what}: ${answer.text}`);
    }
    assert.equal((await server.s3("GET", "/files/k")).text, "hello", what);
    assert.ok(!(await server.s3("GET", `/files/parts?uploadId=${id}`)).text.includes("<Part>"), what);
  }
  for (const options of [{}, { length: null }, { payload: UNSIGNED }, { payload: UNSIGNED, trailers: sum }, { payload: TRAILER, trailers: sum }, { payload: UNSIGNED, trailers: { "x-amz-checksum-sha256": base64("sha256", "firstsecond") } }]) {
    for (const target of ["/files/k", part]) {
      const answer = await server.send(`http://${HOST}${target}`, stream(target, chunks, options));
      assert.equal(answer.status, 200, `${JSON.stringify(options)}: ${answer.text}`);
    }
    assert.equal((await server.s3("GET", "/files/k")).text, "firstsecond");
  }
  const none = await server.send(`http://${HOST}/files/k`, stream("/files/k", []));
  assert.deepEqual([none.status, (await server.s3("GET", "/files/k")).text], [200, ""]); // empty by a chunk that says so
});

test("checksums that are given are those of what came, or nothing is changed (F3)", async (t) => {
  const server = await start(t);
  const body = randomBytes(100_000).toString("base64");
  await server.s3("PUT", "/files/k", { body: "hello" });
  const id = /<UploadId>(.*?)</.exec((await server.s3("POST", "/files/parts?uploads", { headers: { "x-amz-checksum-algorithm": "CRC32" } })).text)[1];
  const remove = "<Delete><Object><Key>k</Key></Object></Delete>";
  const sums = { "content-md5": (data) => base64("md5", data), "x-amz-checksum-crc32": crc32, "x-amz-checksum-crc32c": crc32c, "x-amz-checksum-sha1": (data) => base64("sha1", data), "x-amz-checksum-sha256": (data) => base64("sha256", data) };
  for (const [name, sum] of Object.entries(sums)) {
    for (const [method, target, data] of [["PUT", "/files/k", body], ["PUT", `/files/parts?partNumber=1&uploadId=${id}`, body], ["POST", "/files?delete", remove]]) {
      for (const headers of [{ [name]: sum("other") }, { [name]: "AAAA" }, { [name]: "?" }, { [name]: sum(data), "x-amz-checksum-crc32": crc32("other") }]) {
        const answer = await server.s3(method, target, { body: data, headers });
        assert.ok(["BadDigest", "InvalidDigest", "InvalidRequest"].includes(answer.code), `${name} of ${target} ${JSON.stringify(headers)}: ${answer.text}`);
      }
      assert.equal((await server.s3("GET", "/files/k")).text, "hello");
      if (method === "PUT") assert.equal((await server.s3(method, target, { body: data, headers: { [name]: sum(data) } })).status, 200, name);
      await server.s3("PUT", "/files/k", { body: "hello" });
    }
  }
  assert.equal((await server.s3("POST", "/files?delete", { body: remove, headers: { "content-md5": base64("md5", remove), "x-amz-sdk-checksum-algorithm": "CRC32", "x-amz-checksum-crc32": crc32(remove) } })).status, 200);
  assert.equal((await server.s3("PUT", "/files/k", { body: "x", headers: { "x-amz-sdk-checksum-algorithm": "CRC32" } })).code, "InvalidRequest");
  // In a presigned URL they are in the query (F2).
  const client = new AwsClient({ accessKeyId: KEY, secretAccessKey: SECRET, service: "s3", region: "auto" });
  const presign = async (more) => (await client.sign(`http://${HOST}/files/k?X-Amz-Expires=60&${more}`, { method: "PUT", aws: { signQuery: true } })).url;
  assert.equal((await server.send(await presign(`x-amz-checksum-crc32=${encodeURIComponent(crc32("a"))}`), { method: "PUT", body: "b" })).code, "BadDigest");
  assert.equal((await server.send(await presign(`x-amz-checksum-crc32=${encodeURIComponent(crc32("a"))}`), { method: "PUT", body: "a" })).status, 200);
  assert.equal((await server.send(await presign("x-amz-acl=public-read"), { method: "PUT", body: "a" })).code, "NotImplemented");
  assert.equal((await server.send(await presign("X-Amz-Security-Token=x"), { method: "PUT", body: "a" })).code, "InvalidToken");
});

test("copies: all four conditions on the source, those on the target, parts with and without a range", async (t) => {
  const server = await start(t);
  const body = randomBytes(6 << 20);
  const { etag } = (await server.s3("PUT", "/other/source", { body, headers: { "x-amz-meta-a": "1" } })).headers;
  const past = new Date(Date.now() - 3600e3).toUTCString(), future = new Date(Date.now() + 3600e3).toUTCString();
  const source = (more) => ({ headers: { "x-amz-copy-source": "/other/source", ...Object.fromEntries(Object.entries(more).map(([name, value]) => [name.startsWith("if-") ? `x-amz-copy-source-${name}` : name, value])) } });
  const id = /<UploadId>(.*?)</.exec((await server.s3("POST", "/files/big?uploads")).text)[1];
  const part = `/files/big?partNumber=1&uploadId=${id}`;
  const held = [{ "if-match": etag }, { "if-match": "*" }, { "if-none-match": '"x"' }, { "if-modified-since": past }, { "if-unmodified-since": future }, { "if-match": etag, "if-unmodified-since": past }];
  const failing = [{ "if-match": '"x"' }, { "if-none-match": etag }, { "if-none-match": "*" }, { "if-modified-since": future }, { "if-unmodified-since": past }, { "if-none-match": etag, "if-modified-since": past }];
  for (const target of ["/files/copy", part]) {
    for (const more of failing) {
      assert.equal((await server.s3("PUT", target, source(more))).code, "PreconditionFailed", JSON.stringify(more));
      assert.equal((await server.s3("HEAD", "/files/copy")).status, 404);
      assert.ok(!(await server.s3("GET", `/files/big?uploadId=${id}`)).text.includes("<Part>"));
    }
    if (target === part) continue;
    for (const more of held) {
      assert.equal((await server.s3("PUT", target, source(more))).status, 200, JSON.stringify(more));
      assert.equal((await server.s3("DELETE", "/files/copy")).status, 204);
    }
  }
  assert.equal((await server.s3("PUT", "/files/copy", { headers: { "x-amz-copy-source": "/other/source", "if-none-match": "*" } })).status, 200);
  assert.equal((await server.s3("PUT", "/files/copy", { headers: { "x-amz-copy-source": "/other/source", "if-none-match": "*" } })).code, "PreconditionFailed");
  assert.equal((await server.s3("PUT", "/files/copy", { headers: { "x-amz-copy-source": "/other/source?versionId=1" } })).code, "NotImplemented");
  assert.equal((await server.s3("PUT", "/files/copy", source({ "x-amz-copy-source-range": "bytes=0-9" }))).code, "InvalidArgument"); // of a part only
  // Parts.
  for (const range of ["bytes=0-", "bytes=5-4", "0-9", "bytes=-5", `bytes=0-${body.length}`, `bytes=${body.length}-${body.length + 1}`])
    assert.ok(["InvalidArgument", "InvalidRange"].includes((await server.s3("PUT", part, source({ "x-amz-copy-source-range": range }))).code), range);
  assert.equal((await server.s3("PUT", part, { headers: { "x-amz-copy-source": "/other/none" } })).code, "NoSuchKey");
  const first = await server.s3("PUT", part, source({ "x-amz-copy-source-range": `bytes=100-${(5 << 20) + 99}` }));
  const second = await server.s3("PUT", part.replace("=1", "=2"), source({ "x-amz-copy-source-range": "bytes=7-9", "if-match": etag }));
  const [one, two] = [first, second].map(({ text }) => /<CopyPartResult>.*<ETag>(.*?)<\/ETag>/.exec(text)[1].replaceAll("&#34;", '"'));
  const xml = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${one}</ETag></Part><Part><PartNumber>2</PartNumber><ETag>${two}</ETag></Part></CompleteMultipartUpload>`;
  const size = (5 << 20) + 3;
  assert.equal((await server.s3("POST", `/files/big?uploadId=${id}`, { body: xml, headers: { "x-amz-mp-object-size": String(size + 1) } })).code, "InvalidRequest");
  assert.equal((await server.s3("POST", `/files/big?uploadId=${id}`, { body: xml, headers: { "if-none-match": "*" } })).code, "NotImplemented");
  assert.equal((await server.s3("POST", `/files/big?uploadId=${id}`, { body: xml, headers: { "x-amz-checksum-crc32": crc32(xml) } })).code, "NotImplemented"); // it would be the object's
  assert.equal((await server.s3("POST", `/files/big?uploadId=${id}`, { body: xml, headers: { "x-amz-mp-object-size": String(size) } })).status, 200);
  assert.ok((await server.s3("GET", "/files/big")).bytes.equals(Buffer.concat([body.subarray(100, (5 << 20) + 100), body.subarray(7, 10)])));
  // The whole object as one part.
  const whole = /<UploadId>(.*?)</.exec((await server.s3("POST", "/files/whole?uploads")).text)[1];
  const only = /<ETag>(.*?)</.exec((await server.s3("PUT", `/files/whole?partNumber=1&uploadId=${whole}`, source({}))).text)[1].replaceAll("&#34;", '"');
  await server.s3("POST", `/files/whole?uploadId=${whole}`, { body: `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${only}</ETag></Part></CompleteMultipartUpload>` });
  assert.ok((await server.s3("GET", "/files/whole")).bytes.equals(body));
});

test("no field of S3's own is passed over in silence (F1), nor a part of the query that means another operation", async (t) => {
  const server = await start(t);
  await server.s3("PUT", "/files/k", { body: "hello" });
  const refused = {
    "x-amz-acl": "public-read", "x-amz-grant-read": "id=1", "x-amz-tagging": "a=b", "x-amz-tagging-directive": "REPLACE", "x-amz-server-side-encryption": "aws:kms", "x-amz-server-side-encryption-aws-kms-key-id": "x",
    "x-amz-object-lock-mode": "GOVERNANCE", "x-amz-object-lock-retain-until-date": "2030-01-01T00:00:00Z", "x-amz-object-lock-legal-hold": "ON", "x-amz-website-redirect-location": "/x", "x-amz-write-offset-bytes": "3", "x-amz-mfa": "1",
    "x-amz-bypass-governance-retention": "true", "x-amz-if-match-size": "1", "x-amz-something-new": "1",
    "x-amz-storage-class": "GLACIER", "x-amz-metadata-directive": "MERGE", "x-amz-expected-bucket-owner": "123456789012", "x-amz-source-expected-bucket-owner": "1", "x-amz-mp-object-size": "5",
    "x-amz-copy-source-if-match": "x", "x-amz-copy-source-range": "bytes=0-1", "x-amz-trailer": "x-amz-checksum-crc32", "x-amz-decoded-content-length": "5",
  };
  for (const [name, value] of Object.entries(refused)) {
    for (const [method, target, body] of [["PUT", "/files/k", "changed"], ["DELETE", "/files/k"], ["GET", "/files/k"], ["POST", "/files/k?uploads"]]) {
      const { status, code } = await server.s3(method, target, { body, headers: { [name]: value } });
      assert.ok([400, 403, 501].includes(status) && ["NotImplemented", "InvalidArgument", "InvalidRequest", "InvalidStorageClass", "AccessDenied"].includes(code), `${method} ${name}: ${status} ${code}`);
    }
    assert.equal((await server.s3("GET", "/files/k")).text, "hello", name);
  }
  assert.ok(!(await server.s3("GET", "/files?uploads")).text.includes("<Upload>"));
  for (const headers of [{ "x-amz-acl": "private" }, { "x-amz-storage-class": "STANDARD" }, { "x-amz-expected-bucket-owner": "cairn" }, { "x-amz-request-payer": "requester" }, { "x-amz-checksum-mode": "ENABLED" }])
    assert.equal((await server.s3("PUT", "/files/k", { body: "hello", headers })).status, 200, JSON.stringify(headers));
  for (const query of ["versionId=abc", "acl", "tagging", "restore", "retention", "legal-hold", "torrent", "attributes", "partNumber=1"]) {
    for (const method of ["GET", "PUT", "DELETE"]) assert.equal((await server.s3(method, `/files/k?${query}`, { body: method === "PUT" ? "x" : undefined })).code, "NotImplemented", `${method} ${query}`);
    assert.equal((await server.s3("GET", "/files/k")).text, "hello", query);
  }
  for (const query of ["versions", "object-lock", "replication", "ownershipControls"]) assert.equal((await server.s3("GET", `/files?${query}`)).code, "NotImplemented", query);
  // Conditions: of a HEAD as of a GET; of a deletion they are refused.
  const { etag } = (await server.s3("GET", "/files/k")).headers;
  assert.equal((await server.s3("HEAD", "/files/k", { headers: { "if-none-match": etag } })).status, 304);
  assert.equal((await server.s3("HEAD", "/files/k", { headers: { "if-match": '"x"' } })).status, 412);
  const head = await server.s3("HEAD", "/files/k", { headers: { "if-match": etag, range: "bytes=1-2" } });
  assert.deepEqual([head.status, head.headers["content-range"], head.headers["content-length"]], [206, "bytes 1-2/5", "2"]);
  assert.equal((await server.s3("DELETE", "/files/k", { headers: { "if-match": '"x"' } })).code, "NotImplemented");
  assert.equal((await server.s3("GET", "/files/k")).text, "hello");
});
