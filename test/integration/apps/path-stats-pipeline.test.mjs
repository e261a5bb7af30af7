// What looks after the pipeline of path-stats and what leads to it: alerts, metrics, fallbacks, snapshots, days, the change-over, and the
// place in front of a site.
import assert from "node:assert/strict";
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import test, { after, before, describe } from "node:test";
import { ask } from "../admin/lib.mjs";
import { run } from "../lib/cairn.mjs";
import { root, serve, tempDir } from "../lib/server.mjs";
import { app, DAY, dateOf, daysAgo, event, headers, HOUR, PathStats, token } from "./path-stats-lib.mjs";

/** A server that keeps what is posted to it. */
async function listener(answer = "") {
  const seen = [];
  const server = http.createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (part) => { text += part; }).on("end", () => {
      seen.push({ url: request.url, headers: request.headers, text });
      response.end(typeof answer === "function" ? answer(request) : answer);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { seen, url: `http://127.0.0.1:${server.address().port}`, stop: () => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); }) };
}

describe("path-stats: monitoring", () => {
  const stats = new PathStats();
  let webhook;
  const control = (method, target, body) => ask({ data: stats.data }, method, target, body && { body });
  const pause = (paused) => control("PATCH", "/api/queues/traffic-events", { settings: { delivery_paused: paused } });
  const open = async () => Object.fromEntries((await stats.json("/paths/metrics")).alerts.map((alert) => [alert.type, alert]));
  // Limits that everything is past, and none is.
  const always = { heartbeatMinutes: -1, backlogWarning: -1, delayMinutes: -1, delayCriticalMinutes: 1000, snapshotMinutes: -1, deadLetters: -1, pending: -1, failedArchives: -1, databaseMB: -1, difference: -1, unverified: -1,
    queueFailureShare: -1, batchMs: -1, d1FailureShare: -1, cacheHitShare: 2, cacheLeastRequests: 0, readFallbacks: -1, apiMs: -1, dropped: -1, settleSeconds: 0 };
  const never = { ...Object.fromEntries(Object.keys(always).map((name) => [name, 1e9])), cacheHitShare: -1 };

  before(async () => {
    webhook = await listener();
    stats.vars.WEBHOOK_URL = webhook.url;
    await stats.start({ command: "dev" });
  });
  after(async () => {
    await stats.stop();
    await webhook?.stop();
  });

  test("a consumer that never started is an alert while messages wait, and ends with the first batch", async () => {
    await pause(true);
    await stats.send([event(1, daysAgo(1))]);
    await stats.server.untilTrue(async () => (await stats.json("/paths/metrics")).queue.backlog === 1, "a waiting message");
    await stats.cron();
    const alert = (await open()).AGGREGATOR_NO_HEARTBEAT;
    assert.deepEqual([alert.severity, alert.details], ["critical", { waiting: 1 }]);
    await pause(false);
    await stats.untilCounted(daysAgo(1), 1);
    const beats = async () => (await control("GET", "/api/kv/path-stats/keys?prefix=aggregator:heartbeat")).json.keys.length;
    await stats.server.untilTrue(async () => (await beats()) === 1, "the heartbeat, which is written beside the counts");
    await stats.cron();
    assert.equal((await open()).AGGREGATOR_NO_HEARTBEAT, undefined);
    const told = webhook.seen.map(({ text }) => JSON.parse(text)).filter(({ type }) => type === "AGGREGATOR_NO_HEARTBEAT");
    assert.deepEqual(told.map(({ state, severity }) => [state, severity]), [["raised", "critical"], ["ended", "critical"]]);
  });

  test("a silent consumer, a backlog, dead letters, events that wait in D1: raised and ended by what causes them", async () => {
    await stats.restart({ command: "dev", vars: { THRESHOLDS: JSON.stringify({ backlogWarning: 3, backlogCritical: 1000 }) } });
    await pause(true);
    await stats.send(Array.from({ length: 5 }, (_, n) => event(10 + n, daysAgo(1))));
    await control("PUT", `/api/kv/path-stats/values/${encodeURIComponent("aggregator:heartbeat")}`, undefined);
    const put = run(["kv", "key", "put", "aggregator:heartbeat", String(Date.now() - 200_000), "--namespace-id", "path-stats", "--data", stats.data], { cwd: app });
    assert.equal(put.status, 0, put.stderr);
    const inserted = run(["d1", "execute", "path-stats", "--command", `INSERT INTO pending_events VALUES ('x', '${JSON.stringify(event(77, daysAgo(1)))}')`, "--data", stats.data], { cwd: app });
    assert.equal(inserted.status, 0, inserted.stderr);
    await control("POST", "/api/queues/traffic-events-dlq/messages", { body: { broken: true }, content_type: "json" });
    // The cron handler sends what waits again before it looks; so the events of D1 are looked at here.
    assert.equal((await stats.json("/paths/metrics")).queue.pending, 1);
    await stats.cron();
    const raised = await open();
    assert.equal(raised.AGGREGATOR_HEARTBEAT_TIMEOUT.severity, "critical");
    assert.match(raised.AGGREGATOR_HEARTBEAT_TIMEOUT.details.lastHeartbeat, /^\d{4}-.*Z$/);
    assert.deepEqual([raised.QUEUE_BACKLOG_HIGH.severity, raised.QUEUE_BACKLOG_HIGH.details.backlog], ["warning", 6]);
    assert.equal(raised.DEAD_LETTERS.severity, "critical");
    await pause(false);
    await control("POST", "/api/queues/traffic-events-dlq/purge");
    await stats.untilCounted(daysAgo(1), 7); // with the one that waited in D1
    await stats.untilQuiet();
    await stats.server.untilTrue(async () => Date.now() - (await stats.json("/paths/metrics")).aggregator.lastHeartbeat < 100_000, "the heartbeat, which is written beside the counts");
    await stats.cron();
    const left = await open();
    for (const type of ["AGGREGATOR_HEARTBEAT_TIMEOUT", "QUEUE_BACKLOG_HIGH", "DEAD_LETTERS"]) assert.equal(left[type], undefined, type);
    assert.equal((await stats.json("/paths/metrics")).queue.pending, 0);
  });

  test("a message that is no event goes to the dead letters at once", async () => {
    await control("POST", "/api/queues/traffic-events/messages", { body: { version: 9 }, content_type: "json" });
    await stats.server.untilTrue(async () => (await stats.json("/paths/metrics")).queue.deadLetters === 1, "a dead letter");
    await control("POST", "/api/queues/traffic-events-dlq/purge");
  });

  test("every alert there is can be raised by the cron and ended by it, with a type, a severity and a message", async () => {
    const { judge, DEFAULTS } = await (await import("../lib/typescript.mjs")).load(path.join(app, "src/checks.ts"));
    const types = judge({ now: 0, heartbeat: 0, backlog: 0, oldestMs: 0, snapshotMs: 0, deadLetters: 0, pending: 0, failedArchives: [], databaseMB: 0, difference: null, unverified: 0, meters: {} }, DEFAULTS).map(({ type }) => type);
    await stats.json("/admin/phase", { method: "POST", body: JSON.stringify({ phase: 1 }) });
    await pause(true);
    await stats.send([event(20, daysAgo(1))]);
    await stats.restart({ command: "dev", vars: { THRESHOLDS: JSON.stringify(always) } });
    await stats.server.untilTrue(async () => {
      await stats.cron();
      return Object.keys(await open()).length >= types.length - 1;
    }, "all alerts", 30_000);
    const raised = await open();
    // All but the one that excludes another: a consumer is either silent or was never heard of.
    assert.deepEqual(types.filter((type) => !raised[type]), ["AGGREGATOR_NO_HEARTBEAT"]);
    for (const alert of Object.values(raised)) {
      assert.ok(["info", "warning", "critical"].includes(alert.severity) && alert.message.endsWith(".") && alert.raised_at <= Date.now());
      assert.doesNotMatch(alert.message, /\b1 (messages|events|requests|answers)\b/);
    }
    assert.deepEqual([raised.D1_CAPACITY_WARNING.details.threshold, typeof raised.D1_CAPACITY_WARNING.details.action], [-1, "string"]);
    await pause(false);
    await stats.restart({ command: "dev", vars: { THRESHOLDS: JSON.stringify(never) } });
    await stats.cron();
    assert.deepEqual(await open(), {});
    const all = (await stats.json("/paths/alerts")).alerts;
    for (const type of types) assert.ok(all.some((alert) => alert.type === type && alert.ended_at >= alert.raised_at), type);
    const told = webhook.seen.map(({ text }) => JSON.parse(text));
    for (const type of types) assert.deepEqual([...new Set(told.filter((alert) => alert.type === type).map(({ state }) => state))].sort(), ["ended", "raised"], type);
    await stats.json("/admin/phase", { method: "POST", body: JSON.stringify({ phase: 5 }) });
  });

  test("metrics: rate and failures of the queue, time of a batch, failed writes, share of the cache, fallbacks", async () => {
    await stats.send(Array.from({ length: 200 }, (_, n) => event(1000 + n, daysAgo(1))));
    await stats.server.untilTrue(async () => (await stats.json("/paths")).dataSource === "cache", "the phase to be known"); // on this lane
    for (let n = 0; n < 20; n++) await stats.json("/paths");
    let metrics;
    await stats.server.untilTrue(async () => {
      metrics = await stats.json("/paths/metrics");
      return metrics.queue.consumedPerSecond > 0 && metrics.api.answered >= 6 && metrics.aggregator.d1Writes > 0;
    }, "metrics");
    assert.deepEqual(Object.keys(metrics), ["queue", "aggregator", "api", "snapshot", "d1", "minutes", "phase", "alerts"]);
    assert.ok(metrics.api.cacheHitShare > 0.5 && metrics.aggregator.batchMostMs >= metrics.aggregator.batchMeanMs && metrics.aggregator.d1FailureShare === 0);
    const sql = "SELECT index1, count() AS n FROM ANALYTICS GROUP BY index1 ORDER BY index1";
    const points = (await control("GET", `/api/analytics/sql?query=${encodeURIComponent(sql)}`)).json.data.map(({ index1 }) => index1);
    assert.ok(points.includes("consumer") && points.includes("alert"), points.join());
    await stats.cron("0 */6 * * *");
    const size = (await control("GET", `/api/analytics/sql?query=${encodeURIComponent("SELECT blob1, double1 FROM ANALYTICS WHERE blob1 = 'd1_capacity'")}`)).json.data;
    assert.ok(size[0].double1 > 0);
  });
});

describe("path-stats: snapshots and days", () => {
  const stats = new PathStats();
  before(() => stats.start({ command: "dev" }));
  after(() => stats.stop());
  const kv = (method, key) => ask({ data: stats.data }, method, `/api/kv/path-stats/values/${encodeURIComponent(key)}`);
  const sql = (database, text) => {
    const answer = run(["d1", "execute", database, "--command", text, "--json", "--data", stats.data], { cwd: app });
    assert.equal(answer.status, 0, answer.stderr);
    return JSON.parse(answer.stdout).at(-1).results;
  };
  const both = (text) => ["path-stats", "path-stats-2"].flatMap((name) => sql(name, text));

  test("the snapshot in KV is renewed by every tenth update of an object, not by the first nine (A4)", async () => {
    const hour = Math.floor(Date.now() / HOUR) * HOUR - HOUR;
    const name = `/tenth:${new Date(hour).toISOString().slice(0, 13)}`;
    const pointer = async () => (await kv("GET", "paths:snapshot:latest")).status;
    const updates = async () => {
      const { objects } = (await ask({ data: stats.data }, "GET", `/api/objects?namespace=path-stats/AggregatorDO&prefix=${encodeURIComponent(name)}`)).json;
      if (objects.length === 0) return 0;
      const { entries } = (await ask({ data: stats.data }, "GET", `/api/objects/path-stats%2FAggregatorDO/${objects[0].id}/kv`)).json;
      return entries.find(({ key }) => key === "updateCount")?.value ?? 0;
    };
    for (let n = 0; (await updates()) < 10; n++) {
      assert.equal(await pointer(), 404, `a snapshot after ${await updates()} updates`);
      const before = await updates();
      await stats.send(Array.from({ length: 100 }, (_, i) => ({ ...event(n * 100 + i, hour), path: "/tenth" }))); // a batch, so an update
      await stats.server.untilTrue(async () => (await updates()) > before, "an update");
    }
    await stats.server.untilTrue(async () => (await pointer()) === 200, "the snapshot of the tenth update");
    const { version, prev } = (await kv("GET", "paths:snapshot:latest")).json;
    assert.deepEqual([typeof version, prev], ["number", null]);
    const { keys } = (await ask({ data: stats.data }, "GET", "/api/kv/path-stats/keys?prefix=paths:snapshot:")).json;
    const until = Object.fromEntries(keys.map(({ name, expiration }) => [name, expiration]));
    assert.ok(Math.abs(until[`paths:snapshot:${version}`] - version / 1000 - 72 * 3600) < 120, "a snapshot is there for 72 hours");
    assert.equal(until["paths:snapshot:latest"] ?? null, null);
    const snapshot = (await kv("GET", `paths:snapshot:${version}`)).json;
    assert.deepEqual(Object.keys(snapshot), ["version", "lastUpdated", "from", "to", "totalRequests", "totalPaths", "paths"]);
    await stats.untilQuiet(); // a batch that a restart cuts off is retried by the application after two minutes
  });

  test("/paths: from Cache, else KV, else the snapshot before it, else D1; ?refresh=true answers first", async () => {
    const first = await stats.json("/paths?refresh=true");
    await stats.server.untilTrue(async () => (await stats.json("/paths")).version !== first.version, "a new version behind the answer");
    const second = await stats.json("/paths");
    assert.deepEqual([second.dataSource, second.stale], ["cache", false]);
    await stats.restart({ command: "dev" }); // the cache is empty then
    const pointer = (await kv("GET", "paths:snapshot:latest")).json;
    await kv("DELETE", `paths:snapshot:${pointer.version}`);
    const older = await stats.json("/paths");
    assert.deepEqual([older.dataSource, older.stale, older.version], ["kv", false, pointer.prev]);
    await stats.server.untilTrue(async () => (await stats.json("/paths")).dataSource === "cache", "what was put into the cache");
    await stats.restart({ command: "dev" });
    await kv("DELETE", "paths:snapshot:latest");
    const last = await stats.json("/paths");
    assert.deepEqual([last.dataSource, last.stale], ["d1", false]);
    assert.equal((await kv("GET", "paths:snapshot:latest")).json.version, last.version);
    assert.equal((await stats.json("/paths")).dataSource, "cache");
  });

  test("a stale answer goes out at once, says so, and is renewed behind", async () => {
    await stats.restart({ command: "dev", vars: { FRESH_SECONDS: 1 } });
    await stats.json("/paths");
    let stale;
    await stats.server.untilTrue(async () => (stale = await stats.json("/paths")).stale, "a stale answer");
    assert.equal(stale.dataSource, "cache");
    assert.ok(stale.stalenessSeconds >= 1);
    await stats.server.untilTrue(async () => (await stats.json("/paths")).version > stale.version, "a newer version");
  });

  test("days are rolled up, read by the API, rolled up again when they change, and pruned with their hours and marks", async () => {
    const day = daysAgo(2);
    await stats.restart({ command: "dev" });
    await stats.send(Array.from({ length: 400 }, (_, n) => event(n, day, { every: DAY / 400 })));
    await stats.untilCounted(day, 400);
    await stats.untilQuiet();
    await stats.cron();
    const daily = () => both(`SELECT coalesce(sum(requests), 0) AS n FROM path_stats_daily WHERE day_bucket = '${dateOf(day)}'`).reduce((sum, { n }) => sum + n, 0);
    const seen = async () => (await stats.json("/paths/stats?hours=240")).series.find(({ time }) => time === day)?.requests;
    assert.equal(daily(), 400);
    assert.equal(await seen(), 400);
    for (const name of ["path-stats", "path-stats-2"]) sql(name, `UPDATE path_stats_daily SET requests = requests + 1 WHERE day_bucket = '${dateOf(day)}' AND path = '/p/0'`);
    assert.equal(await seen(), 401); // so it is the daily row that is read
    await stats.send([event(5000, day)]);
    await stats.untilCounted(day, 401);
    await stats.server.untilTrue(async () => (await seen()) === 401, "the hours of a day that has changed");
    await stats.untilQuiet();
    await stats.cron();
    assert.equal(daily(), 401);
    const { visitors } = await stats.json("/paths/stats?hours=240");
    assert.deepEqual([visitors.counted, visitors.periodHours], ["visitor-periods", 24]);
    await stats.restart({ command: "dev", vars: { AGGREGATE_DAYS: 1 } });
    await stats.cron("0 2 * * *");
    assert.deepEqual(await stats.json(`/admin/counts?date=${dateOf(day)}&marks`).then(({ counted, marks }) => [counted, marks]), [0, 0]);
    assert.equal(daily(), 0);
    // What is forgotten is forgotten with its marks: sent again it counts into an empty day, once.
    for (let round = 0; round < 2; round++) {
      await stats.send(Array.from({ length: 400 }, (_, n) => event(n, day, { every: DAY / 400 })));
      await stats.untilQuiet();
      await stats.server.untilTrue(async () => (await stats.counts(day)).counted >= 400, "the day anew");
      assert.equal((await stats.counts(day)).counted, 400);
    }
  });

  test("the schema is the document's: tables, columns, keys and indexes, in every database; paths are spread over them", () => {
    const columns = (name, table) => sql(name, `SELECT name, type, "notnull" AS needed, pk FROM pragma_table_info('${table}')`).map((column) => [column.name, column.type, ...(column.needed ? ["NOT NULL"] : []), ...(column.pk ? [`key ${column.pk}`] : [])].join(" "));
    const stats = ["requests INTEGER NOT NULL", "errors INTEGER NOT NULL", "sum_response_time REAL NOT NULL", "count_response_time INTEGER NOT NULL", "tdigest BLOB", "hll_ip BLOB"];
    for (const name of ["path-stats", "path-stats-2"]) {
      assert.deepEqual(columns(name, "traffic_events"), ["id TEXT key 1", "path TEXT NOT NULL", "method TEXT", "status INTEGER", "response_time REAL", "client_ip_hash TEXT", "timestamp INTEGER", "event_date TEXT", "user_agent TEXT", "country TEXT"]);
      assert.deepEqual(columns(name, "path_stats_hourly"), ["path TEXT NOT NULL key 1", "hour_bucket TEXT NOT NULL key 2", ...stats]);
      assert.deepEqual(columns(name, "path_stats_daily"), ["path TEXT NOT NULL key 1", "day_bucket TEXT NOT NULL key 2", ...stats]);
      const indexes = sql(name, "SELECT tbl_name || ' ' || sql AS text FROM sqlite_schema WHERE type = 'index' AND name LIKE 'idx_%' ORDER BY name").map(({ text }) => text);
      assert.deepEqual(indexes, [
        "traffic_events CREATE INDEX idx_events_date ON traffic_events(event_date)",
        "traffic_events CREATE INDEX idx_events_path_date ON traffic_events(path, event_date)",
        "path_stats_daily CREATE INDEX idx_stats_day ON path_stats_daily(day_bucket)",
        "path_stats_hourly CREATE INDEX idx_stats_hour ON path_stats_hourly(hour_bucket)",
      ]);
      const [{ paths, blobs }] = sql(name, "SELECT count(DISTINCT path) AS paths, sum(typeof(tdigest) = 'blob' AND typeof(hll_ip) = 'blob') = count(*) AS blobs FROM path_stats_hourly");
      assert.ok(paths >= 5 && blobs === 1, `${name}: ${paths} paths`); // of twenty, by their hash
      // What is deleted and looked for by day is found by an index.
      const [{ detail }] = sql(name, "EXPLAIN QUERY PLAN SELECT rowid FROM traffic_events WHERE event_date = '2026-01-01' LIMIT 5000");
      assert.match(detail, /USING (COVERING )?INDEX idx_events_date/);
    }
  });

  test("the numbers are the document's", () => {
    const text = readFileSync(path.join(app, "wrangler.toml"), "utf8");
    for (const line of ["FRESH_SECONDS = 300 ", "DETAIL_DAYS = 3 ", "AGGREGATE_DAYS = 90 ", "PARQUET_AFTER_DAYS = 90 ", "ARCHIVE_DAYS = 365 ", "MULTIPART_ABOVE_MB = 100 ", "VERIFY_SHARE = 0.01 ", 'ARCHIVE_FORMAT = "jsonl.gz" ', "max_batch_size = 100", "max_batch_timeout = 5",
      "max_retries = 3", 'dead_letter_queue = "traffic-events-dlq"', 'crons = ["* * * * *", "0 2 * * *", "0 */6 * * *"]', 'bucket_name = "traffic-events-archive"', ...["D1", "KV", "R2_BUCKET", "TRAFFIC_QUEUE", "DEAD_LETTER_QUEUE", "TRAFFIC_ANALYTICS", "ANALYTICS"].map((name) => `binding = "${name}"`), 'name = "AGGREGATOR_DO"'])
      assert.ok(text.includes(`\n${line}`), line);
  });

  test("an event that the queue refuses waits in D1 and is counted later", async () => {
    const copy = tempDir();
    cpSync(app, copy, { recursive: true });
    symlinkSync(path.join(root, "node_modules"), path.join(copy, "node_modules"));
    writeFileSync(path.join(copy, "wrangler.toml"), readFileSync(path.join(app, "wrangler.toml"), "utf8").replace('binding = "TRAFFIC_QUEUE"', 'binding = "ELSEWHERE"'));
    await stats.stop();
    const broken = await serve(copy, { data: stats.data, args: ["--var", `ADMIN_TOKEN=${token}`] });
    assert.equal((await broken.fetch("/site/refused")).status, 200);
    await broken.until(/the queue refused an event; it waits in D1/);
    await broken.untilTrue(async () => sql("path-stats", "SELECT count(*) AS n FROM pending_events")[0].n === 1, "the event in D1");
    await broken.stop();
    await stats.start({ command: "dev" });
    await stats.cron();
    await stats.server.untilTrue(async () => (await stats.json("/paths/stats?path=/site/refused")).total.requests === 1, "the event");
    assert.equal(sql("path-stats", "SELECT count(*) AS n FROM pending_events")[0].n, 0);
  });
});

describe("path-stats: what is recorded", () => {
  const stats = new PathStats();
  before(() => stats.start({ vars: { FIELDS: "status" } }));
  after(() => stats.stop());

  test("the message has the fields of the document", async () => {
    await stats.restart({ vars: { FIELDS: "method,status,responseTime,clientIP,userAgent,country" } });
    const queue = (method, target, body) => ask({ data: stats.data }, method, `/api/queues/traffic-events${target}`, body && { body });
    await queue("PATCH", "", { settings: { delivery_paused: true } });
    const began = Date.now();
    assert.equal((await stats.server.fetch("/site/missing?q=1", { method: "POST", body: "x", headers: { "user-agent": "a browser", "x-request-id": "request-1" } })).status, 404);
    let messages;
    await stats.server.untilTrue(async () => (messages = (await queue("GET", "/messages")).json.messages).length === 1, "the message");
    const { id, timestamp, responseTime, clientIpHash, requestId, meta, ...event } = typeof messages[0].body === "string" ? JSON.parse(messages[0].body) : messages[0].body;
    assert.deepEqual(event, { version: 1, path: "/site/missing", method: "POST", status: 404 });
    assert.match(id, new RegExp(`^${timestamp}-[0-9a-f]{8}$`));
    assert.ok(timestamp >= began && timestamp <= Date.now() && responseTime >= 0 && responseTime <= Date.now() - began);
    assert.match(clientIpHash, /^hash:[0-9a-f]{32}$/);
    assert.ok(requestId.length > 0);
    assert.deepEqual([meta.userAgent, typeof meta.country], ["a browser", "string"]);
    await queue("PATCH", "", { settings: { delivery_paused: false } });
    await stats.untilQuiet();
    await stats.restart({ vars: { FIELDS: "status" } });
  });

  test("fields, share and rate of what is recorded are settings", async () => {
    const since = Date.now() - 1000;
    await stats.server.fetch("/site/few-fields", { headers: { "user-agent": "secret agent" } });
    await stats.server.untilTrue(async () => (await stats.json("/paths/stats?path=/site/few-fields")).total.requests === 1, "the request");
    const text = (await (await stats.fetch(`/paths/events/export?from=${since}&to=${Date.now() + HOUR}`)).text()).split("\n").find((line) => line.includes("/site/few-fields"));
    const { method, status, response_time, client_ip_hash, user_agent, country } = JSON.parse(text);
    assert.deepEqual([method, status, response_time, client_ip_hash, user_agent, country], [null, 200, null, null, null, null]);
    await stats.restart({ vars: { SAMPLE_RATIO: 0 } });
    await stats.server.fetch("/site/not-sampled");
    await stats.restart({ vars: { EVENTS_PER_SECOND: 3 } });
    let sent = 0;
    await stats.server.untilTrue(async () => {
      for (let n = 0; n < 50; n++, sent++) await stats.server.fetch("/site/flood");
      return (await stats.json("/paths/metrics")).queue.dropped > 0;
    }, "dropped events", 30_000);
    await stats.untilQuiet();
    let counted = 0;
    await stats.server.untilTrue(async () => (counted = (await stats.json("/paths/stats?path=/site/flood")).total.requests) > 0, "those that were recorded");
    assert.ok(counted < sent, `${counted} of ${sent}`);
    assert.equal((await stats.json("/paths/stats?path=/site/not-sampled")).total.requests, 0);
  });
});

describe("path-stats: the change-over", () => {
  const stats = new PathStats({ VERIFY_SHARE: 0.5 });
  before(() => stats.start());
  after(() => stats.stop());

  test("old and new side by side: written both ways, compared, verified, switched, rolled back, retired", async () => {
    const phase = async (...args) => {
      const { status, output } = await stats.tool("phase.mjs", ...args);
      return [status, output.trim()];
    };
    assert.deepEqual(await phase("show"), [0, "phase 5"]);
    const [, first] = await phase("1");
    const since = Date.parse(/since (\S+)$/.exec(first)[1]);
    await stats.server.untilTrue(() => Date.now() > since + 100, "the beginning of both");
    for (let n = 0; n < 40; n++) await stats.server.fetch(`/site/page-${n % 4}`);
    let both; // each way counts at its own pace
    await stats.server.untilTrue(async () => {
      both = await stats.json("/admin/paths/compare?settle=0");
      return both.newStats.totalRequests >= 40 && both.oldStats.totalRequests >= 40;
    }, "what was counted both ways");
    await stats.server.untilTrue(async () => (await stats.json("/paths/stats?hours=2")).total.requests === 40, "the statistics of the new way");
    assert.deepEqual([both.newStats.totalRequests, both.oldStats.totalRequests, both.difference, both.sample.missing], [40, 40, 0, []]);
    assert.ok(both.sample.checked > 5 && both.sample.checked < 35, `${both.sample.checked} verified`);
    const [status, text] = await phase("compare", "--settle", "0");
    assert.equal(status, 0);
    assert.match(text, /new 40, old 40, difference 0; \d+ verified, 0 missing/);
    // Reads are the old way's, until phase 3.
    const old = await stats.json("/paths");
    assert.deepEqual([old.dataSource, old.totalRequests], ["do", 40]);
    assert.notEqual((await stats.json("/paths?source=d1")).dataSource, "do");
    await phase("3");
    // Whoever asks for the phase gets what is stored, in every lane, even if the lane has not learnt of it.
    for (let n = 0; n < 20; n++) assert.equal((await stats.json("/admin/phase")).phase, 3);
    await stats.server.untilTrue(async () => (await stats.json("/paths")).dataSource !== "do", "reading the new way");
    assert.equal((await stats.json("/paths?source=do")).totalRequests, 40);
    assert.match((await phase("rollback"))[1], /^phase 2, both ways written since/);
    await stats.server.untilTrue(async () => (await stats.json("/paths")).dataSource === "do", "reading the old way again");
    // An event that came one way only is found, event by event.
    const row = (await (await stats.fetch(`/paths/events/export?from=${since}&to=${Date.now() + HOUR}`)).text()).trim().split("\n").map((line) => JSON.parse(line)).find(({ id }) => parseInt(id.slice(14), 16) < 2 ** 31);
    for (const name of ["path-stats", "path-stats-2"]) run(["d1", "execute", name, "--command", `DELETE FROM traffic_events WHERE id = '${row.id}'`, "--data", stats.data], { cwd: app });
    const lost = await stats.json("/admin/paths/compare?settle=0");
    assert.deepEqual([lost.difference, lost.sample.missing], [-1, [row.id]]);
    assert.equal((await phase("compare", "--settle", "0"))[0], 1);
    await phase("5");
    await stats.server.untilTrue(async () => (await stats.fetch("/paths?source=do")).status === 410, "the end of the old way");
    assert.equal((await stats.fetch("/admin/paths/compare")).status, 410);
    assert.equal((await stats.post("/admin/phase", { phase: 9 })).status, 400);
  });

  test("in phase 0 only the old way is written", async () => {
    await stats.json("/admin/phase", { method: "POST", body: JSON.stringify({ phase: 0 }) });
    const set = Date.now();
    await stats.server.untilTrue(() => Date.now() > set + 2500, "every lane to know it (within two seconds: docs/phases.md)");
    assert.equal((await stats.json("/paths")).dataSource, "do");
    const before = (await stats.json("/paths")).totalRequests;
    await stats.server.fetch("/site/old-only");
    await stats.server.untilTrue(async () => (await stats.json("/paths")).totalRequests === before + 1, "the old way's count");
    await stats.untilQuiet();
    assert.equal((await stats.json("/paths/stats?path=/site/old-only")).total.requests, 0);
  });
});

describe("path-stats: in front of a site", () => {
  const stats = new PathStats();
  let site;
  before(async () => {
    site = await listener((request) => `the site's own ${request.url}`);
    stats.vars.ORIGIN_URL = site.url;
    await stats.start();
  });
  after(async () => {
    await stats.stop();
    await site?.stop();
  });

  test("the site keeps its own /, /admin, /paths and /dashboard; the application is below its prefix", async () => {
    for (const target of ["/", "/admin", "/admin/archive/trigger", "/paths", "/paths/stats?hours=1", "/dashboard/", "/_path-statsish"]) assert.equal(await (await stats.server.fetch(target)).text(), `the site's own ${target}`);
    assert.equal((await stats.json("/_path-stats/paths")).dataSource, "d1");
    assert.equal((await stats.server.fetch("/_path-stats/admin/counts?date=2026-01-01")).status, 401);
    assert.equal((await stats.server.fetch("/_path-stats/elsewhere")).status, 404);
    const page = await stats.server.fetch("/_path-stats/");
    assert.match(page.url, /\/_path-stats\/dashboard\/$/);
    assert.match(await page.text(), /<title>Path statistics<\/title>/);
    assert.equal((await stats.server.fetch("/_path-stats/dashboard/app.js")).status, 200);
    await stats.server.untilTrue(async () => (await stats.json("/_path-stats/paths/stats?path=/paths/stats")).total.requests === 1, "the site's request, counted");
  });

  test("the prefix is configurable, and reading can be put behind a token", async () => {
    await stats.restart({ vars: { PREFIX: "/internal/stats/", READ_TOKEN: "for-readers" } });
    assert.equal(await (await stats.server.fetch("/_path-stats/paths")).text(), "the site's own /_path-stats/paths");
    const reading = ["/paths", "/paths/stats", "/paths/metrics", "/paths/alerts", "/paths/archives"];
    for (const target of reading) {
      assert.equal((await stats.server.fetch(`/internal/stats${target}`)).status, 401, target);
      assert.equal((await stats.server.fetch(`/internal/stats${target}`, { headers: { authorization: "Bearer wrong" } })).status, 401, target);
      assert.equal((await stats.server.fetch(`/internal/stats${target}`, { headers: { authorization: "Bearer for-readers" } })).status, 200, target);
      assert.equal((await stats.server.fetch(`/internal/stats${target}`, { headers })).status, 200, target); // whoever administers may read
    }
    assert.equal((await stats.server.fetch("/internal/stats/admin/paths", { headers: { authorization: "Bearer for-readers" } })).status, 401);
  });

  test("the tools reach NAME.localhost, and a prefix", async () => {
    stats.url = `http://path-stats.localhost:${stats.server.port}/internal/stats`;
    const { status, output } = await stats.tool("phase.mjs", "show");
    assert.deepEqual([status, output.trim()], [0, "phase 5"]);
    const file = path.join(tempDir(), "one.jsonl");
    writeFileSync(file, `${JSON.stringify(event(1, daysAgo(1)))}\n`);
    const replayed = await stats.tool("replay.mjs", file, "--verify");
    assert.equal(replayed.status, 0, replayed.output);
    assert.match(replayed.output, /1 in the file, 1 kept, 1 counted \(1 of them new\)/);
  });
});
