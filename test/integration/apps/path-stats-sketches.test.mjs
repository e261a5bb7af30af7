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

test("an event's id is the same for the same request, is its time and eight digits, and sorts by time", async () => {
  const { generateIdempotentId, markOf, normalPath, whyNot } = await source("event.ts");
  const at = 1_794_722_400_000;
  const id = await generateIdempotentId(at, "ab".repeat(16), "/a", "ray");
  assert.match(id, /^1794722400000-[0-9a-f]{8}$/);
  assert.equal(id, await generateIdempotentId(at, "ab".repeat(16), "/a", "ray"));
  assert.notEqual(id, await generateIdempotentId(at, "ab".repeat(16), "/b", "ray"));
  assert.notEqual(id, await generateIdempotentId(at, "ab".repeat(16), "/a", "other"));
  assert.ok(id < (await generateIdempotentId(at + 1, "00", "/a", "ray")) && id.length <= 64);
  assert.deepEqual(markOf(`${at + 5}-ffffffff`), [5, 0xffffffff]);
  assert.equal(normalPath("//a///b/"), "/a/b");
  assert.equal(normalPath("/"), "/");
  assert.equal(normalPath("/" + "x".repeat(2000)).length, 512);
  const good = { version: 1, id, path: "/a", timestamp: at };
  assert.equal(whyNot(good), null);
  assert.equal(whyNot({ ...good, method: "GET", status: 200, responseTime: 120, clientIpHash: `hash:${"ab".repeat(16)}`, meta: { country: "CN" } }), null);
  for (const wrong of [null, {}, { ...good, version: 2 }, { ...good, id: "" }, { ...good, id: `${at}-xyz` }, { ...good, timestamp: at + 1 }, { ...good, timestamp: String(at) }, { ...good, path: "a" }, { ...good, status: 5 }, { ...good, responseTime: -1 },
    { ...good, clientIpHash: "1.2.3.4" }, { ...good, meta: 7 }, { ...good, meta: { country: 7 } }])
    assert.match(whyNot(wrong) ?? "", /\.$/, JSON.stringify(wrong));
});

test("ids of a million requests are all different", async () => {
  const { generateIdempotentId } = await source("event.ts");
  const { createHash } = await import("node:crypto");
  // As generateIdempotentId makes them (compared below), without a promise each: a day of a million requests, in bursts of ten per millisecond.
  const ids = new Set();
  const make = (n) => `${1_794_722_400_000 + Math.floor(n / 10) * 864}-${createHash("sha256").update(`client${n % 5000}:/path/${n % 300}:request-${n}`).digest("hex").slice(0, 8)}`;
  for (let n = 0; n < 1_000_000; n++) ids.add(make(n));
  assert.equal(ids.size, 1_000_000);
  for (const n of [0, 17, 999_999]) assert.equal(make(n), await generateIdempotentId(1_794_722_400_000 + Math.floor(n / 10) * 864, `client${n % 5000}`, `/path/${n % 300}`, `request-${n}`));
});

test("retries wait 60 s times two to the number of attempts, at most an hour", async () => {
  const { retryDelay } = await source("consumer.ts");
  assert.deepEqual([1, 2, 3, 5, 6, 20].map(retryDelay), [120, 240, 480, 1920, 3600, 3600]);
});

test("a batch goes to 45 objects at a time; what failed comes back later, the rest is acknowledged, one by one; all of it is measured", async () => {
  const before = { groupBy: Map.groupBy, scheduler: globalThis.scheduler, error: console.error };
  Map.groupBy ??= (items, keyOf) => items.reduce((map, item) => map.set(keyOf(item), [...(map.get(keyOf(item)) ?? []), item]), new Map()); // Node.js 20 has none
  globalThis.scheduler = { wait: async () => {} };
  console.error = () => {};
  try {
    const { consume } = await source("consumer.ts");
    let now = 0, most = 0, details = 0, broken = false;
    const asked = [], kept = [], work = [], meters = new Map();
    const statement = { bind: (json) => { details = JSON.parse(json).length; return statement; } };
    const env = {
      STRATEGY: "objects",
      D1: { prepare: () => statement, batch: async () => { if (broken) throw new Error("disk full"); } },
      KV: { put: async (...args) => void kept.push(args) },
      METERS_DO: { getByName: () => ({ add: async (added) => { for (const [name, value] of added) meters.set(name, (meters.get(name) ?? 0) + value); } }) },
      AGGREGATOR_DO: { getByName: (key) => ({
        fetch: async (url, { method, body }) => {
          asked.push([key, method, new URL(url).pathname, JSON.parse(body).length]);
          most = Math.max(most, ++now);
          await new Promise((resolve) => setTimeout(resolve, 20));
          now--;
          if (key.startsWith("/p/7:")) throw new Error("overloaded");
          return new Response("", { status: key.startsWith("/p/8:") ? 500 : 200 });
        },
      }) },
    };
    const at = 1_794_722_400_000;
    const batch = () => Array.from({ length: 100 }, (_, n) => {
      const message = { id: String(n), attempts: 2, timestamp: new Date(), body: { version: 1, id: `${at}-${n.toString(16).padStart(8, "0")}`, path: `/p/${n}`, timestamp: at } };
      return Object.assign(message, { ack: () => { message.end = "acknowledged"; }, retry: ({ delaySeconds }) => { message.end = delaySeconds; } });
    });
    const run = async (messages) => {
      await consume({ messages }, env, { waitUntil: (promise) => work.push(promise) });
      await Promise.all(work);
      return messages.map(({ end }) => end);
    };
    assert.deepEqual(await run(batch()), Array.from({ length: 100 }, (_, n) => (n === 7 || n === 8 ? 240 : "acknowledged")));
    assert.equal(most, 45);
    assert.deepEqual([asked.length, new Set(asked.map(([key]) => key)).size, asked[0]], [100, 100, ["/p/0:2026-11-15T06", "POST", "/aggregate", 1]]);
    assert.equal(details, 98); // what was not handed over has no detail row either
    assert.deepEqual(kept.map(([key, , options]) => [key, options]), [["aggregator:heartbeat", { expirationTtl: 300 }]]);
    assert.deepEqual(["queue.consumed", "queue.failed", "batch.count", "d1.writes", "d1.failures"].map((name) => meters.get(name) ?? 0), [98, 2, 1, 1, 0]);
    broken = true;
    assert.deepEqual(await run(batch()), Array(100).fill(240)); // nothing is lost with the details
    assert.deepEqual(["queue.consumed", "queue.failed", "d1.writes", "d1.failures"].map((name) => meters.get(name) ?? 0), [98, 102, 2, 1]);
  } finally {
    if (!before.groupBy) delete Map.groupBy;
    globalThis.scheduler = before.scheduler;
    console.error = before.error;
  }
});

test("archives of several sources are one, in order, with every row once", async () => {
  const { merged } = await source("files.ts");
  async function* pages(...lists) {
    for (const list of lists) yield list.map((id) => ({ id }));
  }
  const collect = async (...sources) => {
    const ids = [];
    for await (const page of merged(sources)) ids.push(...page.map(({ id }) => id));
    return ids;
  };
  assert.deepEqual(await collect(), []);
  assert.deepEqual(await collect(pages(), pages(["a"])), ["a"]);
  assert.deepEqual(await collect(pages(["a", "c"], ["e"]), pages(["b"], ["c", "d"]), pages(["a", "e", "f"])), ["a", "b", "c", "d", "e", "f"]);
  // Against sorting, at random.
  const next = random(7);
  for (let round = 0; round < 50; round++) {
    const lists = Array.from({ length: 3 }, () => [...new Set(Array.from({ length: Math.floor(next() * 40) }, () => String(1000 + Math.floor(next() * 60))))].sort());
    const cut = (list) => {
      const out = [];
      for (let at = 0; at < list.length; ) {
        const length = 1 + Math.floor(next() * 7);
        out.push(list.slice(at, at + length));
        at += length;
      }
      return out;
    };
    assert.deepEqual(await collect(...lists.map((list) => pages(...cut(list)))), [...new Set(lists.flat())].sort());
  }
});

test("every check raises at its limit and ends below it, with its severity", async () => {
  const { DEFAULTS, judge } = await source("checks.ts");
  const now = 1_794_722_400_000;
  const well = { now, heartbeat: now, backlog: 0, oldestMs: 0, snapshotMs: 0, deadLetters: 0, pending: 0, failedArchives: [], databaseMB: 1, difference: null, unverified: 0, meters: { "queue.consumed": 1000, "d1.writes": 1000, "paths.cache": 99, "paths.kv": 1, "batch.count": 10, "batch.ms": 100 } };
  const wrong = (change, meters = {}) => judge({ ...well, ...change, meters: { ...well.meters, ...meters } }, DEFAULTS).filter(({ problem }) => problem).map(({ type, problem }) => `${type} ${problem.severity}`);
  assert.deepEqual(wrong({}), []);
  const minutes = (n) => n * 60_000;
  const cases = [
    // [type and severity, just wrong, just right]
    ["AGGREGATOR_NO_HEARTBEAT critical", { heartbeat: null, backlog: 1 }, { heartbeat: null, backlog: 0 }],
    ["AGGREGATOR_HEARTBEAT_TIMEOUT critical", { heartbeat: now - minutes(3) - 1, backlog: 1 }, { heartbeat: now - minutes(3), backlog: 1 }],
    ["QUEUE_BACKLOG_HIGH warning", { backlog: 10_001 }, { backlog: 10_000 }],
    ["QUEUE_BACKLOG_HIGH critical", { backlog: 50_001 }, { backlog: 10_000 }],
    ["AGGREGATION_DELAY warning", { oldestMs: minutes(5) + 1 }, { oldestMs: minutes(5) }],
    ["AGGREGATION_DELAY critical", { oldestMs: minutes(10) + 1 }, { oldestMs: minutes(5) }],
    ["SNAPSHOT_STALE warning", { snapshotMs: minutes(10) + 1 }, { snapshotMs: minutes(10) }],
    ["QUEUE_FAILURES warning", {}, {}, { "queue.failed": 11 }, { "queue.failed": 10 }],
    ["BATCH_SLOW warning", {}, {}, { "batch.most_ms": 30_001 }, { "batch.most_ms": 30_000 }],
    ["D1_WRITE_FAILURES critical", {}, {}, { "d1.failures": 11 }, { "d1.failures": 10 }],
    ["CACHE_HIT_RATE_LOW info", {}, {}, { "paths.cache": 9, "paths.kv": 11 }, { "paths.cache": 10, "paths.kv": 10 }],
    ["READ_FALLBACKS warning", {}, {}, { "paths.d1": 21 }, { "paths.d1": 20 }],
    ["API_SLOW info", {}, {}, { "api.most_ms": 2001 }, { "api.most_ms": 2000 }],
    ["QUEUE_REFUSED warning", { pending: 1 }, { pending: 0 }],
    ["EVENTS_DROPPED warning", {}, {}, { "events.dropped": 1 }, { "events.dropped": 0 }],
    ["DEAD_LETTERS critical", { deadLetters: 1 }, { deadLetters: 0 }],
    ["ARCHIVE_FAILED critical", { failedArchives: ["2026-11-01: no space"] }, { failedArchives: [] }],
    ["D1_CAPACITY_WARNING critical", { databaseMB: 801 }, { databaseMB: 800 }],
    ["COUNT_DIFFERENCE warning", { difference: -101 }, { difference: 100 }],
    ["VERIFICATION_FAILED critical", { unverified: 1 }, { unverified: 0 }],
  ];
  for (const [name, bad, good, badMeters, goodMeters] of cases) {
    assert.deepEqual(wrong(bad, badMeters), [name]);
    assert.deepEqual(wrong(good, goodMeters), []);
  }
  assert.deepEqual([...new Set(cases.map(([name]) => name.split(" ")[0]))], judge(well, DEFAULTS).map(({ type }) => type), "a check without a case");
});

test("a chart's axis ends at a round number above the largest value", async () => {
  const { scale } = await load(path.join(root, "apps/path-stats/dashboard/charts.tsx"));
  assert.deepEqual(scale(0), { top: 1, ticks: [0, 0.5, 1] });
  assert.deepEqual(scale(167), { top: 200, ticks: [0, 50, 100, 150, 200] });
  for (const most of [1, 3, 9.99, 10, 11, 99, 1234, 1e6]) {
    const { top, ticks } = scale(most);
    assert.ok(top >= most && top <= 2.5 * most && ticks.length >= 2 && ticks.length <= 6, `${most}: ${top}, ${ticks}`);
  }
});
