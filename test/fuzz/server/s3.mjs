// The S3 endpoint by grammar: requests that are signed, badly signed, or signed and then changed. A request that was not signed as it
// is sent must not succeed, and none may be answered with an internal error.
import { createHash, createHmac } from "node:crypto";
import http from "node:http";
import { brief, main, mutate } from "./lib.mjs";

const HOST = "s3.test", KEY = "AKIDEXAMPLE", SECRET = "a secret of the fuzzer";
const files = {
  "wrangler.json": JSON.stringify({ name: "app", main: "index.js", compatibility_date: "2026-01-01", r2_buckets: [{ binding: "B", bucket_name: "files" }, { binding: "C", bucket_name: "other" }], cairn: { s3: { host: HOST } } }),
  "index.js": 'export default { fetch() { return new Response("plain"); } };',
};
const sha = (data) => createHash("sha256").update(data).digest("hex");
const hmac = (key, text) => createHmac("sha256", key).update(text).digest();
const encode = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

const KEYS = ["a", "b/c", "x y", "\u00e4\u20ac", "..", "a/../b", "$secret", "%2e%2e", "k".repeat(1025), "", "?", "key+plus", "\u0001", "-", "constructor"];
const QUERIES = ["uploads", "uploadId", "partNumber", "list-type", "prefix", "delimiter", "max-keys", "continuation-token", "start-after", "marker", "encoding-type", "delete", "location", "acl", "response-content-type", "versionId", "X-Amz-Expires"];
const VALUES = ["", "1", "2", "0", "-1", "10001", "99999999999", "url", "/", "a", "\u0000", "x".repeat(3000), "null", "NaN", "%", "AAAA", "{}", "<x>"];
const HEADERS = ["range", "if-match", "if-none-match", "if-modified-since", "content-type", "content-md5", "content-encoding", "x-amz-copy-source", "x-amz-metadata-directive", "x-amz-meta-a", "x-amz-storage-class", "x-amz-acl", "x-amz-decoded-content-length",
  "x-amz-server-side-encryption-customer-algorithm", "x-amz-server-side-encryption-customer-key", "x-amz-server-side-encryption-customer-key-md5", "cache-control", "expires"];
const TEXTS = ["bytes=0-1", "bytes=5-", "bytes=-3", "bytes=9-1", "*", '"x"', "gzip", "aws-chunked", "/files/a", "other/b", "/%E0%A4%A", "REPLACE", "AES256", Buffer.alloc(32, 7).toString("base64"), createHash("md5").update(Buffer.alloc(32, 7)).digest("base64"), "Wed, 21 Oct 2015 07:28:00 GMT", "STANDARD_IA", "", "x".repeat(9000), "0"];
const BODIES = ["", "body", "<Delete><Object><Key>a</Key></Object></Delete>", "<Delete><Object></Object></Delete>", "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>", "<x>&#xffffffff;</x>", "<Delete><Object><Key>&#1114112;&amp;</Key></Object></Delete>", "5;chunk-signature=00\r\nhello\r\n0\r\n\r\n", "z\r\n", "ffffffffffffffffff\r\n"];

function make(random) {
  const hosted = random.chance(30), bucket = random.one(["files", "other", "none", "$host", ""]);
  const host = hosted && bucket ? `${bucket.replace("$", "")}.${HOST}` : HOST, key = random.one(KEYS);
  const segments = (hosted ? key : `${bucket}/${key}`).split("/").map(encode).join("/");
  const query = Array.from({ length: random.chance(50) ? 0 : 1 + random.below(3) }, () => [random.one(QUERIES), random.one(VALUES)]);
  const headers = {};
  for (let i = random.below(4); i > 0; i--) headers[random.one(HEADERS)] = random.one(TEXTS);
  let body = Buffer.from(random.one(BODIES));
  if (random.chance(30)) body = mutate(random, body, ["<Key>", "</Key>", "&#", "\r\n", "0\r\n", ";chunk-signature="]);
  return { method: random.one(["GET", "PUT", "POST", "DELETE", "HEAD", "GET", "PUT"]), host, path: `/${segments}`, query, headers, body };
}

/** Signs as a client does; presigned in the query, or in the Authorization field. */
function sign(request, random) {
  const presigned = random.chance(40), time = new Date().toISOString().replace(/[:-]|\.\d{3}/g, ""), scope = `${time.slice(0, 8)}/auto/s3/aws4_request`;
  const payload = presigned ? "UNSIGNED-PAYLOAD" : random.one([sha(request.body), "UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "x"]);
  const headers = { ...request.headers, host: request.host };
  if (!presigned) Object.assign(headers, { "x-amz-date": time, "x-amz-content-sha256": payload });
  const names = Object.keys(headers).sort();
  const query = [...request.query];
  if (presigned) query.push(["X-Amz-Algorithm", "AWS4-HMAC-SHA256"], ["X-Amz-Credential", `${KEY}/${scope}`], ["X-Amz-Date", time], ["X-Amz-Expires", "60"], ["X-Amz-SignedHeaders", names.join(";")]);
  const pairs = query.map(([name, value]) => [encode(name), encode(value)]).sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0));
  const canonical = [request.method, request.path, pairs.map((pair) => pair.join("=")).join("&"), names.map((name) => `${name}:${headers[name].trim().replace(/ +/g, " ")}\n`).join(""), names.join(";"), payload].join("\n");
  const key = ["auto", "s3", "aws4_request"].reduce(hmac, hmac(`AWS4${SECRET}`, time.slice(0, 8)));
  const signature = hmac(key, ["AWS4-HMAC-SHA256", time, scope, sha(canonical)].join("\n")).toString("hex");
  if (presigned) pairs.push(["X-Amz-Signature", signature]);
  else headers.authorization = `AWS4-HMAC-SHA256 Credential=${KEY}/${scope}, SignedHeaders=${names.join(";")}, Signature=${signature}`;
  return { ...request, headers, names, target: request.path + (pairs.length ? `?${pairs.map((pair) => pair.join("=")).join("&")}` : ""), presigned };
}

/** Changes something that the signature covers, or that must be covered. */
function spoil(signed, random) {
  const changed = { ...signed, headers: { ...signed.headers } };
  switch (random.below(6)) {
    case 0: changed.headers["x-amz-copy-source"] = signed.headers["x-amz-copy-source"] === "/files/z" ? "/files/y" : "/files/z"; break;
    case 1: changed.headers["x-amz-extra"] = "1"; break;
    case 2: changed.target = signed.target.replace(/^(\/[^?]*)/, "$1z"); break;
    case 3: changed.method = signed.method === "PUT" ? "DELETE" : "PUT"; break;
    case 4: changed.absolute = signed.host === HOST ? `files.${HOST}` : HOST; break;
    default: changed.target += `${signed.target.includes("?") ? "&" : "?"}more=1`; break;
  }
  return changed;
}

const send = (port, { method, target, headers, body, absolute }) => new Promise((resolve, reject) => {
  const sent = method !== "GET" && method !== "HEAD";
  let request;
  try {
    const fields = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Buffer.from(value).toString("latin1").replace(/[\r\n\0]/g, "")]));
    request = http.request({ host: "127.0.0.1", port, method, path: absolute ? `http://${absolute}${target}` : target, headers: sent ? { ...fields, "content-length": body.length } : fields, timeout: 20_000 }, (response) => {
      let text = "";
      response.on("data", (part) => (text += part)).on("end", () => resolve({ status: response.statusCode, text })).on("error", () => resolve({ status: 0, text }));
    });
  } catch {
    return resolve({ status: 0, text: "not sent" }); // what Node.js does not send
  }
  request.on("timeout", () => reject(new Error(`no answer to ${method} ${target}`))).on("error", () => resolve({ status: 0, text: "" }));
  request.end(sent ? body : undefined);
});

await main({
  name: "server s3", files, options: { env: { CAIRN_S3_ACCESS_KEY_ID: KEY, CAIRN_S3_SECRET_ACCESS_KEY: SECRET } },
  async once(server, random) {
    const signed = sign(make(random), random), spoilt = random.chance(40);
    const request = spoilt ? spoil(signed, random) : signed;
    const answer = await send(server.port, request);
    const what = `${request.method} ${request.absolute ?? ""} ${brief(request.target)} ${brief(JSON.stringify(request.headers))} ${brief(JSON.stringify(request.body.toString("latin1")), 300)}: ${answer.status} ${brief(answer.text, 300)}`;
    if (answer.status >= 500 && answer.status !== 501 && answer.status !== 503) throw new Error(`an internal error: ${what}\n${brief(server.output.slice(-5000))}`);
    if (spoilt && answer.status >= 200 && answer.status < 400) throw new Error(`not signed, and done: ${what}`);
    return answer.status;
  },
});
