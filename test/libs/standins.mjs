// What two of the libraries talk to: an object store that checks every signature (AWS Signature
// Version 4) and a chat service that streams. Both are HTTP servers on a port of their own.
import { createHash, createHmac } from "node:crypto";
import http from "node:http";

export const KEY_ID = "AKIDTEST", SECRET = "keep this to yourself";

const hmac = (key, text) => createHmac("sha256", key).update(text).digest();
const hash = (text) => createHash("sha256").update(text).digest("hex");
const escape = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

/** Whether `request` was signed with SECRET, in its header or in its query. */
function signed(request, url) {
  const query = new URLSearchParams(url.search);
  const header = /^AWS4-HMAC-SHA256 Credential=(\S+), ?SignedHeaders=(\S+), ?Signature=(\w+)$/.exec(request.headers.authorization ?? "");
  const credential = header ? header[1] : query.get("X-Amz-Credential");
  if (!credential) return false;
  const names = (header ? header[2] : query.get("X-Amz-SignedHeaders")).split(";");
  const signature = header ? header[3] : query.get("X-Amz-Signature");
  const date = header ? request.headers["x-amz-date"] : query.get("X-Amz-Date");
  query.delete("X-Amz-Signature");
  const [id, day, region, service] = credential.split("/");
  const canonical = [
    request.method,
    url.pathname.split("/").map((part) => escape(decodeURIComponent(part))).join("/"),
    [...query].map(([k, v]) => `${escape(k)}=${escape(v)}`).sort().join("&"),
    ...names.map((name) => `${name}:${request.headers[name].trim().replace(/ +/g, " ")}`), "",
    names.join(";"),
    header ? request.headers["x-amz-content-sha256"] : "UNSIGNED-PAYLOAD",
  ].join("\n");
  const scope = `${day}/${region}/${service}/aws4_request`;
  const key = [day, region, service, "aws4_request"].reduce(hmac, `AWS4${SECRET}`);
  return id === KEY_ID && hmac(key, `AWS4-HMAC-SHA256\n${date}\n${scope}\n${hash(canonical)}`).toString("hex") === signature;
}

function objectStore() {
  const objects = new Map();
  const xml = (response, status, text) => response.writeHead(status, { "content-type": "application/xml" }).end(`<?xml version="1.0" encoding="UTF-8"?>${text}`);
  return (request, response, url, body) => {
    if (!signed(request, url)) return xml(response, 403, "<Error><Code>SignatureDoesNotMatch</Code></Error>");
    const sum = request.headers["x-amz-content-sha256"];
    if (/^[0-9a-f]{64}$/.test(sum ?? "") && sum !== hash(body)) return xml(response, 400, "<Error><Code>XAmzContentSHA256Mismatch</Code></Error>");
    const name = decodeURIComponent(url.pathname);
    const [, bucket, ...key] = name.split("/");
    if (!key.join("/")) {
      const prefix = `/${bucket}/${url.searchParams.get("prefix") ?? ""}`;
      const found = [...objects].filter(([other]) => other.startsWith(prefix)).sort(([a], [b]) => (a < b ? -1 : 1));
      return xml(response, 200, `<ListBucketResult><Name>${bucket}</Name><KeyCount>${found.length}</KeyCount><IsTruncated>false</IsTruncated>${
        found.map(([other, { body }]) => `<Contents><Key>${other.slice(bucket.length + 2)}</Key><Size>${body.length}</Size></Contents>`).join("")}</ListBucketResult>`);
    }
    if (request.method === "PUT") {
      objects.set(name, { body, type: request.headers["content-type"] ?? "application/octet-stream" });
      return response.writeHead(200, { etag: `"${createHash("md5").update(body).digest("hex")}"` }).end();
    }
    if (request.method === "DELETE") return objects.delete(name), response.writeHead(204).end();
    const object = objects.get(name);
    if (!object) return xml(response, 404, "<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>");
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
    const part = range ? object.body.subarray(+range[1], +range[2] + 1) : object.body;
    response.writeHead(range ? 206 : 200, { "content-type": object.type, "content-length": part.length }).end(part);
  };
}

function chat(request, response, url, body) {
  const asked = JSON.parse(body);
  if (request.headers.authorization !== "Bearer sk-test") return response.writeHead(401).end("{}");
  if (asked.model !== "small") return response.writeHead(404, { "content-type": "application/json" }).end('{"error":{"message":"no such model"}}');
  const head = { id: "1", created: 0, model: asked.model };
  if (!asked.stream) {
    const message = { role: "assistant", content: null, tool_calls: [{ id: "c1", type: "function", function: { name: "count", arguments: "{}" } }] };
    return response.writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ ...head, object: "chat.completion", choices: [{ index: 0, finish_reason: "tool_calls", message }] }));
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const content of ["one, ", "two, ", "thr", "ee \u{1F389}"])
    response.write(`data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta: { content } }] })}\n\n`);
  response.end("data: [DONE]\n\n");
}

/** Starts both; resolves { env, close }, env being what the workers get to know. */
export async function startStandIns() {
  const servers = await Promise.all([objectStore(), chat].map((handle) => new Promise((resolve) => {
    const server = http.createServer((request, response) => {
      const parts = [];
      request.on("data", (part) => parts.push(part));
      request.on("end", () => handle(request, response, new URL(request.url, "http://x"), Buffer.concat(parts)));
    });
    server.listen(0, "127.0.0.1", () => resolve(server));
  })));
  const [S3, API] = servers.map((server) => `http://127.0.0.1:${server.address().port}`);
  return {
    env: { S3, API, KEY_ID, SECRET },
    close: () => servers.forEach((server) => (server.closeAllConnections(), server.close())),
  };
}
