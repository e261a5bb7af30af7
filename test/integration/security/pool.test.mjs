// Work that scripts leave to threads (src/js/work.h): however much of it takes minutes, others find a thread for theirs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { actor } from "./lib.mjs";

// A key of 16,384 bits takes minutes. More of them than there are threads in libuv's pool.
const SLOW = 12;

test("W1: keys that take minutes to make do not keep others' files, hashes and compression from their threads", async (t) => {
  const server = await actor({
    slow: `(request, env) => {
      globalThis.finished = 0;
      const parameters = { name: "RSA-OAEP", modulusLength: 16384, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" };
      for (let i = 0; i < ${SLOW}; i++) crypto.subtle.generateKey(parameters, true, ["encrypt", "decrypt"]).then(() => globalThis.finished++, () => {});
    }`,
    finished: `() => globalThis.finished`,
    file: `async (request, env) => { await env.BUCKET.put("k", "x".repeat(100_000)); return (await (await env.BUCKET.get("k")).text()).length; }`,
    key: `async () => { const { publicKey } = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]); return publicKey.type; }`,
    derive: `async () => {
      const key = await crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]);
      return (await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt: new Uint8Array(8), iterations: 100_000 }, key, 256)).byteLength;
    }`,
    zip: `async () => (await new Response(new Blob(["x".repeat(1e6)]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer()).byteLength > 0`,
  }, { lanes: 1 });
  t.after(() => server.kill());
  assert.deepEqual(await server.act("slow"), { value: null });
  assert.deepEqual(await server.act("file"), { value: 100_000 });
  assert.deepEqual(await server.act("key"), { value: "public" });
  assert.deepEqual(await server.act("derive"), { value: 32 });
  assert.deepEqual(await server.act("zip"), { value: true });
  const { value } = await server.act("finished");
  assert.ok(value <= SLOW - 4, `${value} of them were made meanwhile: they were no hindrance`);
});

test("W2: so many slow ones wait, and no more", async (t) => {
  const server = await actor({
    many: `async () => {
      const { generatePrime } = await import("node:crypto");
      const errors = [];
      for (let i = 0; i < 400; i++) generatePrime(8192, { safe: true }, (error) => { if (error) errors.push(String(error)); });
      await new Promise((resolve) => setTimeout(resolve, 1));
      return [errors.length, errors[0]];
    }`,
  }, { lanes: 1, more: { compatibility_flags: ["nodejs_compat"] } });
  t.after(() => server.kill());
  const { value: [count, first] } = await server.act("many");
  assert.ok(count >= 400 - 256 - 2 && count <= 400 - 256, String(count));
  assert.match(first, /RangeError: Too many keys and primes are being made/);
});
