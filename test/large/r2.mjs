// `make large`: 2 GB into R2 and out again through a worker, with memory less than 64 MB over idle.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import { project, serve } from "../integration/lib/server.mjs";

const SIZE = 2e9;
const MEMORY_MB_MAX = 64;
const worker = `export default {
  async fetch(request, env) {
    if (request.method === "PUT") return Response.json((await env.BUCKET.put("large", request.body)).etag);
    return new Response((await env.BUCKET.get("large")).body);
  },
};`;
const config = { name: "large", main: "index.js", compatibility_date: "2026-01-01", r2_buckets: [{ binding: "BUCKET", bucket_name: "large" }], cairn: { limits: { body_bytes: 4e9 } } };
const server = await serve(project({ "wrangler.json": JSON.stringify(config), "index.js": worker }));
const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`))[1]) / 1024;
const idle = resident();
let peak = idle;
const watch = setInterval(() => { peak = Math.max(peak, resident()); }, 20);

/** Runs a transfer and says how fast it was and what it took. */
async function measure(name, transfer) {
  peak = resident();
  const began = Date.now();
  await transfer();
  const seconds = (Date.now() - began) / 1000;
  console.log(`${name}: ${(SIZE / 1e6 / seconds).toFixed(0)} MB/s, memory ${(peak - idle).toFixed(0)} MB over idle (${idle.toFixed(0)} MB)`);
  assert.ok(peak - idle < MEMORY_MB_MAX, `more than ${MEMORY_MB_MAX} MB`);
}

const block = Buffer.from(Uint8Array.from({ length: 1 << 20 }, (_, i) => (i * 31 + (i >> 8)) & 255));
const sent = createHash("md5");
try {
  await measure("put", () => new Promise((resolve, reject) => {
    const request = http.request({ port: server.port, method: "PUT", headers: { "content-length": SIZE } }, (response) => {
      let text = "";
      response.on("data", (part) => { text += part; }).on("end", () => {
        try {
          assert.equal(JSON.parse(text), sent.digest("hex"));
          resolve();
        } catch (error) {
          reject(error);
        }
      });
    });
    request.on("error", reject);
    let left = SIZE;
    const more = () => {
      while (left > 0) {
        const part = block.subarray(0, Math.min(left, block.length));
        left -= part.length;
        sent.update(part);
        if (!request.write(part)) return request.once("drain", more);
      }
      request.end();
    };
    more();
  }));
  await measure("get", () => new Promise((resolve, reject) => {
    http.get({ port: server.port }, (response) => {
      let size = 0;
      response.on("data", (part) => { size += part.length; }).on("error", reject).on("end", () => (size === SIZE ? resolve() : reject(new Error(`${size} bytes came`))));
    }).on("error", reject);
  }));
} finally {
  clearInterval(watch);
  await server.kill();
}
