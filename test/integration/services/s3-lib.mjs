// What the tests of the S3-compatible endpoint share: a server with buckets, and requests that are signed (by aws4fetch).
import { webcrypto } from "node:crypto";
import http from "node:http";
import { project, serve } from "../lib/server.mjs";

globalThis.crypto ??= webcrypto; // Node.js 18 has it, but not as a global
export const { AwsClient } = await import("aws4fetch");

export const HOST = "s3.test";
export const KEY = "AKIDEXAMPLE";
export const SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
export const config = ({ cpu_ms, ...more } = {}) => JSON.stringify({
  name: "app", limits: { cpu_ms }, main: "index.js", compatibility_date: "2026-01-01", r2_buckets: [{ binding: "B", bucket_name: "files" }, { binding: "C", bucket_name: "other" }, { binding: "OWN" }], cairn: { s3: { host: HOST }, ...more },
});
export const worker = `export default { async fetch(r, env) { const o = await env.B.get(new URL(r.url).pathname.slice(1)); return o ? new Response(o.body) : new Response("none", { status: 404 }); } };`;

export async function start(t, more, script = worker) {
  const server = await serve(project({ "wrangler.json": config(more), "index.js": script }), { lanes: 2, env: { CAIRN_S3_ACCESS_KEY_ID: KEY, CAIRN_S3_SECRET_ACCESS_KEY: SECRET } });
  t.after(() => server.kill());
  const client = new AwsClient({ accessKeyId: KEY, secretAccessKey: SECRET, service: "s3", region: "auto" });
  /** Sends what was signed, whatever name it was signed for. */
  server.send = (url, { method = "GET", headers = {}, body } = {}) => new Promise((resolve, reject) => {
    const { host, pathname, search } = new URL(url);
    const fields = Object.fromEntries(new Headers(headers));
    if (body !== undefined) fields["content-length"] ??= String(Buffer.byteLength(body));
    const request = http.request({ host: "127.0.0.1", port: server.port, method, path: pathname + search, headers: { ...fields, host } }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () => {
        const bytes = Buffer.concat(parts);
        resolve({ status: response.statusCode, headers: response.headers, bytes, text: bytes.toString(), code: /<Code>(\w+)<\/Code>/.exec(bytes)?.[1] });
      });
    });
    request.on("error", reject);
    request.end(body);
  });
  server.s3 = async (method, path, { body, headers, host = HOST, sign = {}, as = client } = {}) => {
    const url = `http://${host}${path}`;
    const signed = await as.sign(url, { method, body, headers, aws: sign });
    return server.send(signed.url, { method, headers: signed.headers, body });
  };
  return server;
}
