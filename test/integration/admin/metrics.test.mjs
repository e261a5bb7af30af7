// Metrics are well-formed Prometheus text and count what happened, across reloads and lanes.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { project, serve } from "../lib/server.mjs";
import { ask, call, dir } from "./lib.mjs";
import { kv, objects, queue } from "../lib/toml.mjs";
import { documentedMetrics, ofCluster, shownMetrics } from "../lib/metrics.mjs";

/** Checks the form of the whole text; returns {'name{labels}': number}. */
function parse(text) {
  const samples = {}, types = {};
  for (const line of text.trimEnd().split("\n")) {
    const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line);
    if (type) {
      assert.ok(!(type[1] in types), `${type[1]} is there twice`);
      types[type[1]] = type[2];
      continue;
    }
    if (/^# HELP \S+ \S/.test(line)) continue;
    const sample = /^(cairn_[a-z_]+)(\{(?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+\})? ([0-9.e+-]+)$/.exec(line);
    assert.ok(sample, line);
    const family = sample[1].replace(/_(bucket|sum|count)$/, "");
    assert.ok(types[sample[1]] || types[family] === "histogram", `${sample[1]} has no type`);
    assert.ok(!(sample[1] + (sample[2] ?? "") in samples), line);
    samples[sample[1] + (sample[2] ?? "")] = Number(sample[3]);
  }
  return samples;
}

describe("metrics", () => {
  let server;
  before(async () => { server = await serve(dir, { lanes: 2 }); });
  after(() => server.stop());
  const read = async () => parse((await ask({ data: server.data }, "GET", "/metrics")).text);

  test("requests, calls, exceptions and commits are counted", async () => {
    for (let i = 0; i < 10; i++) await call(server, `m${i}`, "add", "x");
    await server.text("/x/nothing", { method: "POST", body: "[]" }); // the worker answers 500
    await server.text("/x/add", { method: "POST", body: "not json" }).catch(() => {});
    let metrics; // a request counts once its last byte has left, which the client may have by then
    await server.untilTrue(async () => (metrics = await read())['cairn_request_duration_seconds_count{worker="app"}'] >= 12, "the count of the last request");
    assert.equal(metrics['cairn_requests_total{worker="app",status="2xx"}'], 10);
    assert.equal(metrics['cairn_requests_total{worker="app",status="5xx"}'], 2);
    assert.equal(metrics['cairn_request_duration_seconds_count{worker="app"}'], 12);
    assert.equal(metrics['cairn_request_duration_seconds_bucket{worker="app",le="+Inf"}'], 12);
    assert.ok(metrics['cairn_request_duration_seconds_sum{worker="app"}'] > 0);
    assert.ok(metrics['cairn_object_calls_total{namespace="app/Ledger"}'] >= 10);
    assert.equal(metrics['cairn_object_calls_total{namespace="app/Ledger"}'], metrics['cairn_object_call_duration_seconds_count{namespace="app/Ledger"}']);
    assert.ok(metrics['cairn_objects_started_total{namespace="app/Ledger"}'] >= 10);
    assert.ok(metrics.cairn_log_commits_total >= 10);
    assert.ok(metrics.cairn_checkpoint_lag_commits <= metrics.cairn_log_commits_total);
    assert.ok(metrics.cairn_log_flush_duration_seconds_count > 0);
    assert.equal(metrics.cairn_store_writable, 1);
    await server.untilTrue(async () => {
      const now = await read();
      return now['cairn_lane_objects{lane="0"}'] + now['cairn_lane_objects{lane="1"}'] >= 10 && now['cairn_lane_heap_bytes{lane="0"}'] > 0;
    }, "the gauges");
  });
  test("alarms are counted", async () => {
    await call(server, "alarm", "wake", Date.now());
    await server.untilTrue(async () => (await read())['cairn_alarms_fired_total{namespace="app/Ledger"}'] === 1, "the alarm");
    assert.equal((await read())['cairn_alarm_lateness_seconds_count{namespace="app/Ledger"}'], 1);
  });
  test("the account of memory is the same in /api/memory: kinds, sum, limit, what gave way", async () => {
    await server.untilTrue(async () => (await read()).cairn_memory_used_bytes > 0, "a look at memory");
    const { json } = await ask({ data: server.data }, "GET", "/api/memory"), metrics = await read();
    const labels = (name) => Object.keys(metrics).filter((key) => key.startsWith(`${name}{`)).map((key) => /="(.*)"/.exec(key)[1]);
    assert.deepEqual(Object.keys(json.kinds), labels("cairn_memory_bytes"));
    assert.deepEqual(json.steps.map(({ step }) => step), labels("cairn_memory_relief_total"));
    assert.equal(json.limit, metrics.cairn_memory_limit_bytes);
    assert.equal(json.level, "calm");
    assert.ok(json.used > 1e6 && json.used < json.limit);
    assert.ok(Object.values(json.kinds).reduce((sum, bytes) => sum + bytes, 0) >= json.used);
    const percents = json.steps.map(({ percent }) => percent);
    assert.deepEqual(percents, percents.toSorted((a, b) => a - b));
  });
  test("a reload does not start the counters anew", async () => {
    const before = (await read())['cairn_requests_total{worker="app",status="2xx"}'];
    server.signal("SIGHUP");
    await server.until(/reloaded/);
    await call(server, "m0", "add", "x");
    await server.untilTrue(async () => (await read())['cairn_requests_total{worker="app",status="2xx"}'] === before + 1, "the count of one more request");
  });
});

const everything = project({
  "wrangler.toml": `name = "all"
main = "index.js"
compatibility_date = "2026-03-01"
${objects({ ROOM: "Room" })}
${kv({ KV: "kv" })}
[[r2_buckets]]
binding = "R2"
bucket_name = "bucket"
[[d1_databases]]
binding = "DB"
database_name = "db"
database_id = "db"
${queue("QUEUE", "q")}
[[analytics_engine_datasets]]
binding = "POINTS"
dataset = "points"
`,
  "index.js": `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  fetch() {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
  work() { let n = 0; for (let i = 0; i < 3e7; i++) n = (n * 31 + i) | 0; return n; }
}
const handlers = {
  "/kv": async (env) => { await env.KV.put("k", "v"); await env.KV.get("k"); await env.KV.get("k"); await env.KV.delete("k"); await env.KV.list(); },
  "/r2": async (env) => { await env.R2.put("k", "v"); await (await env.R2.get("k")).text(); await env.R2.head("k"); },
  "/d1": async (env) => { await env.DB.prepare("SELECT 1").all(); },
  "/queue": async (env) => { await env.QUEUE.sendBatch([{ body: "a" }, { body: "b" }]); },
  "/cache": async () => { const key = "http://x/y"; await caches.default.put(key, new Response("y", { headers: { "cache-control": "max-age=60" } })); await caches.default.match(key); await caches.default.match("http://x/no"); },
  "/point": async (env) => { env.POINTS.writeDataPoint({ blobs: ["a"] }); },
  "/work": async (env) => { await env.ROOM.getByName("worker").work(); },
};
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/socket") return env.ROOM.getByName("sockets").fetch(request);
    await handlers[pathname](env);
    return new Response("ok");
  },
};
`,
});

describe("every documented metric", () => {
  let server;
  before(async () => { server = await serve(everything, { lanes: 2 }); });
  after(() => server.stop());
  const text = async () => (await ask({ data: server.data }, "GET", "/metrics")).text;
  const read = async () => parse(await text());
  const sum = (metrics, name) => Object.keys(metrics).filter((key) => key === name || key.startsWith(`${name}{`)).reduce((total, key) => total + metrics[key], 0);

  test("is there, and no other", async () => {
    await server.text("/point");
    const shown = shownMetrics(await text());
    // Only there once there is something of the past.
    if (!shown.includes("cairn_history_oldest_timestamp_seconds")) shown.push("cairn_history_oldest_timestamp_seconds");
    assert.deepEqual(documentedMetrics().filter((name) => !ofCluster(name)), shown.sort()); // those of a cluster: test/cluster/server/watched.test.mjs
  });
  test("operations of services are counted, those a cache answered too", async () => {
    for (const path of ["/kv", "/r2", "/d1", "/queue", "/cache"]) await server.text(path);
    const metrics = await read();
    const operations = (service, name, operation) => metrics[`cairn_service_operations_total{service="${service}",name="${name}",operation="${operation}"}`];
    assert.deepEqual(["get", "put", "delete"].map((operation) => operations("kv", "kv", operation)), [2, 1, 1]);
    assert.ok(operations("kv", "kv", "list") >= 1);
    assert.deepEqual(["get", "put", "head"].map((operation) => operations("r2", "bucket", operation)), [1, 1, 1]);
    assert.equal(operations("d1", "db", "query"), 1);
    assert.equal(operations("queue", "q", "send"), 1);
    assert.deepEqual(["http", "kv"].map((cache) => metrics[`cairn_cache_hits_total{cache="${cache}"}`]), [1, 1]);
    assert.deepEqual(["http", "kv"].map((cache) => metrics[`cairn_cache_misses_total{cache="${cache}"}`]), [1, 1]);
    assert.equal(metrics['cairn_cache_entries{cache="http"}'], 1);
  });
  test("a queue that nobody reads has a backlog, and it grows old", async () => {
    await server.untilTrue(async () => (await read())['cairn_queue_oldest_message_age_seconds{queue="q"}'] > 0, "the age");
    const metrics = await read();
    assert.equal(metrics['cairn_queue_backlog_messages{queue="q"}'], 2);
    assert.ok(metrics['cairn_queue_backlog_bytes{queue="q"}'] > 0);
  });
  test("CPU goes to the class and its worker", async () => {
    await server.text("/work");
    // A worker's time is published once a second, an object's at once.
    let metrics, object;
    await server.untilTrue(async () => {
      metrics = await read();
      object = metrics['cairn_object_cpu_seconds_total{namespace="all/Room"}'];
      return metrics['cairn_worker_cpu_seconds_total{worker="all"}'] >= object * 0.9;
    }, "the worker's time");
    assert.ok(object > 0.005, `${object}`);
    assert.ok(metrics['cairn_object_cpu_seconds_total{namespace="$d1/db"}'] > 0);
    assert.ok(metrics['cairn_object_cpu_seconds_total{namespace="$d1/db"}'] < object);
    const rooms = (name) => metrics[`cairn_objects_${name}{namespace="all/Room"}`];
    assert.equal(rooms("started_total"), 1);
    await server.untilTrue(async () => { // it may have left memory by now
      metrics = await read();
      return rooms("live") === 1 - rooms("evicted_total");
    }, "the count of what is in memory");
  });
  test("sockets are open, then hibernated", async () => {
    const { WebSocket } = await import("ws");
    const socket = new WebSocket(server.url.replace("http", "ws") + "/socket");
    await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
    // Each lane publishes its gauges for itself, once a second; connection and object may be on two of them.
    await server.untilTrue(async () => sum(await read(), "cairn_object_sockets") === 1, "the socket");
    await server.untilTrue(async () => sum(await read(), "cairn_websockets_open") === 1, "its connection");
    const seen = await read(); // its object may have left memory by now
    assert.ok(sum(seen, "cairn_object_sockets_hibernated") <= sum(seen, "cairn_object_sockets"));
    await server.untilTrue(async () => sum(await read(), "cairn_object_sockets_hibernated") === 1, "its hibernation");
    assert.ok((await read())['cairn_objects_evicted_total{namespace="all/Room"}'] >= 1);
    socket.close();
    await server.untilTrue(async () => sum(await read(), "cairn_object_sockets") === 0, "its end");
  });
});
