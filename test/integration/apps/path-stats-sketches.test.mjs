// The sketches of path-stats: how far off they are, and that merging and keeping them changes nothing.
import assert from "node:assert/strict";
import { createHash, webcrypto } from "node:crypto";
import path from "node:path";
import test from "node:test";
import { root } from "../lib/server.mjs";
import { load } from "../lib/typescript.mjs";

globalThis.crypto ??= webcrypto; // Node.js 18

const source = (name) => load(path.join(root, "apps/path-stats/src", name));

/** The same numbers in every run (mulberry32). */
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

test("percentiles of a million values are within one per cent", async () => {
  const { Digest } = await source("sketch.ts");
  const next = random(1);
  // Response times: most are short, some very long.
  const values = Float64Array.from({ length: 1_000_000 }, () => 5 + Math.exp(3 + 1.1 * Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())));
  // As the pipeline does it: many small digests, kept as bytes, merged.
  let all = new Digest();
  for (let at = 0; at < values.length; at += 10_000) {
    const part = new Digest();
    for (const value of values.subarray(at, at + 10_000)) part.add(value);
    all.merge(Digest.fromBytes(part.toBytes()));
    all = Digest.fromBytes(all.toBytes());
  }
  values.sort();
  for (const q of [0.5, 0.9, 0.95, 0.99]) {
    const exact = values[Math.floor(q * values.length)], found = all.quantile(q);
    assert.ok(Math.abs(found - exact) / exact < 0.01, `p${100 * q}: ${found} instead of ${exact}`);
  }
  assert.ok(all.toBytes().length < 8192, `${all.toBytes().length} bytes`);
});

test("a digest of few values is exact at the ends, of none it is nothing", async () => {
  const { Digest } = await source("sketch.ts");
  const digest = new Digest();
  assert.equal(digest.quantile(0.5), null);
  digest.add(7);
  assert.equal(digest.quantile(0.5), 7);
  for (const value of [1, 2, 3, 4, 100]) digest.add(value);
  assert.equal(digest.quantile(0), 1);
  assert.equal(digest.quantile(1), 100);
  assert.throws(() => Digest.fromBytes(new Uint8Array(24)), /no digest/);
});

test("unique addresses among a million are within two per cent, at every size", async () => {
  const { Uniques } = await source("sketch.ts");
  for (const count of [1, 10, 1000, 20_000, 60_000, 400_000]) {
    const parts = Array.from({ length: 7 }, () => new Uniques());
    // Every address comes more than once, and in several parts.
    for (let n = 0; n < count; n++) {
      const hash = createHash("sha256").update(`address ${n}`).digest("hex").slice(0, 32);
      parts[n % 7].add(hash);
      parts[(n * 3) % 7].add(hash);
    }
    const all = new Uniques();
    for (const part of parts) all.merge(Uniques.fromBytes(part.toBytes()));
    const found = Uniques.fromBytes(all.toBytes()).count();
    assert.ok(Math.abs(found - count) <= Math.max(0.02 * count, 0.5), `${found} instead of ${count}`);
  }
  assert.throws(() => Uniques.fromBytes(Uint8Array.of(9)), /no set of uniques/);
});

test("an event's id is the same for the same request, sorts by time and is short", async () => {
  const { eventId, normalPath, whyNot } = await source("event.ts");
  const id = await eventId(1_794_722_400_000, "ab".repeat(32), "/a", "ray");
  assert.equal(id, await eventId(1_794_722_400_000, "ab".repeat(32), "/a", "ray"));
  assert.notEqual(id, await eventId(1_794_722_400_000, "ab".repeat(32), "/b", "ray"));
  assert.ok(id < (await eventId(1_794_722_400_001, "00", "/a", "ray")));
  assert.ok(id.length <= 64);
  assert.equal(normalPath("//a///b/"), "/a/b");
  assert.equal(normalPath("/"), "/");
  assert.equal(normalPath("/" + "x".repeat(2000)).length, 512);
  assert.equal(whyNot({ id, ts: 1, path: "/a", request_id: "r" }), null);
  for (const wrong of [null, {}, { id: "", ts: 1, path: "/" }, { id, ts: "1", path: "/" }, { id, ts: 1, path: "a" }, { id, ts: 1, path: "/", status: 5 }, { id, ts: 1, path: "/", ms: -1 }, { id, ts: 1, path: "/", ip_hash: "x" }])
    assert.match(whyNot(wrong), /\.$/);
});

test("retries wait a minute, then twice as long, at most an hour", async () => {
  const { retryDelay } = await source("consumer.ts");
  assert.deepEqual([1, 2, 3, 6, 7, 20].map(retryDelay), [60, 120, 240, 1920, 3600, 3600]);
});
