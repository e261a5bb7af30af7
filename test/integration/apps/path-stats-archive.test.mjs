// The archive of path-stats: what moves, what stays, what comes back; in both formats, through kills, and its whole life.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test, { after, before, describe } from "node:test";
import { parquetMetadata } from "hyparquet";
import { ask } from "../admin/lib.mjs";
import { run } from "../lib/cairn.mjs";
import { tempDir } from "../lib/server.mjs";
import { app, DAY, dateOf, daysAgo, event, PathStats } from "./path-stats-lib.mjs";

const lines = (text) => text.trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));

describe("the archive of path-stats", () => {
  const stats = new PathStats();
  before(() => stats.start({ command: "dev" }));
  after(() => stats.stop());

  const ofDay = (n, day, rows) => event(n, day, { every: DAY / rows });
  const fill = async (day, rows) => {
    await stats.send(Array.from({ length: rows }, (_, n) => ofDay(n, day, rows)));
    await stats.untilCounted(day, rows);
  };
  const kv = (key) => ask({ data: stats.data }, "GET", `/api/kv/path-stats/values/${encodeURIComponent(key)}`);
  const metadata = async (day) => (await kv(`archive:metadata:${dateOf(day)}`)).json;
  const files = async () => (await ask({ data: stats.data }, "GET", "/api/r2/traffic-events-archive/objects?prefix=events-archive/")).json.objects.map(({ key }) => key);
  const download = (key) => {
    const file = path.join(tempDir(), path.basename(key));
    const got = run(["r2", "object", "get", `traffic-events-archive/${key}`, "--file", file, "--data", stats.data], { cwd: app });
    assert.equal(got.status, 0, got.stderr);
    return file;
  };
  const exported = async (from, to, more = "") => lines(await (await stats.fetch(`/paths/events/export?from=${from}&to=${to}${more}`)).text());

  const first = daysAgo(5);
  test("a day moves to R2: asked for, pending, written, read back, deleted, its name in KV for a year (R2)", async () => {
    await fill(first, 500);
    const job = await stats.archive(dateOf(first));
    const key = `events-archive/${dateOf(first).slice(0, 4)}/${dateOf(first).slice(5, 7)}/${dateOf(first)}.jsonl.gz`;
    assert.deepEqual([job.recordCount, job.deleted, job.key], [500, 500, key]);
    const meta = await metadata(first);
    assert.deepEqual([meta.path, meta.recordCount, meta.format], [key, 500, "jsonl.gz"]);
    assert.ok(Date.now() - Date.parse(meta.archivedAt) < 60_000);
    const { keys } = (await ask({ data: stats.data }, "GET", "/api/kv/path-stats/keys?prefix=archive:metadata:")).json;
    const days = (keys[0].expiration * 1000 - Date.now()) / DAY;
    assert.ok(days > 364.9 && days < 365.1, `${days} days`);
    assert.deepEqual(await stats.counts(first).then(({ events, counted }) => [events, counted]), [0, 500]);
    const object = (await ask({ data: stats.data }, "GET", "/api/r2/traffic-events-archive/objects?prefix=events-archive/")).json.objects[0];
    assert.equal(object.size, meta.size);
    assert.doesNotMatch(object.etag, /-/); // one put()
    const points = (await ask({ data: stats.data }, "GET", `/api/analytics/sql?query=${encodeURIComponent("SELECT blob1, blob2, double1 FROM ANALYTICS WHERE blob1 = 'archive_daily'")}`)).json.data;
    assert.deepEqual(points.map(({ blob1, blob2, double1 }) => [blob1, blob2, double1]), [["archive_daily", dateOf(first), 500]]);
    const listed = await stats.json("/paths/archives");
    assert.deepEqual([listed.archives[0].date, listed.archives[0].recordCount, listed.jobs], [dateOf(first), 500, []]);
  });

  test("/admin/archive/query gives the events of the day", async () => {
    const answer = await stats.json(`/admin/archive/query?date=${dateOf(first)}`);
    assert.deepEqual([answer.date, answer.recordCount, answer.events.length], [dateOf(first), 500, 500]);
    const { id, timestamp, ...one } = answer.events[17];
    const sent = ofDay(17, first, 500);
    assert.deepEqual([id, timestamp], [sent.id, sent.timestamp]);
    assert.deepEqual(one, { path: "/p/17", method: "GET", status: 200, response_time: 22, client_ip_hash: sent.clientIpHash, event_date: dateOf(first), user_agent: "agent 3", country: "NO" });
  });

  test("an export takes from R2 and D1 together, each event once; a day archived again is one file (R4)", async () => {
    const late = Array.from({ length: 50 }, (_, n) => ({ ...event(9_000 + n, first + 1), path: "/late" }));
    await stats.send([...Array.from({ length: 250 }, (_, n) => ofDay(n, first, 500)), ...late]);
    await stats.untilCounted(first, 300, 550);
    const rows = await exported(first, first + DAY);
    assert.equal(rows.length, 550);
    assert.equal(new Set(rows.map(({ id }) => id)).size, 550);
    assert.deepEqual(rows.map(({ id }) => id), rows.map(({ id }) => id).sort());
    const noon = await exported(first + DAY / 2, first + DAY, "&anonymize=true");
    assert.equal(noon.length, 250);
    assert.ok(!JSON.stringify(noon).includes("hash:"));
    const job = await stats.archive(dateOf(first));
    assert.deepEqual([job.recordCount, job.deleted], [550, 300]);
    assert.deepEqual(await files(), [(await metadata(first)).path]);
    assert.equal((await stats.json(`/admin/archive/query?date=${dateOf(first)}`)).events.length, 550);
    assert.deepEqual(await stats.counts(first).then(({ events, counted }) => [events, counted]), [0, 550]);
  });

  test("Parquet is smaller than JSON lines, has dictionaries and zstd, and replays", async () => {
    const day = daysAgo(6), rows = 4_000;
    await fill(day, rows);
    const asLines = await stats.archive(dateOf(day));
    await stats.restart({ command: "dev", vars: { ARCHIVE_FORMAT: "parquet", MULTIPART_ABOVE_MB: 0 } });
    assert.equal((await stats.tool("replay.mjs", "--date", dateOf(day), "--rate", "20000", "--verify")).status, 0);
    const asParquet = await stats.archive(dateOf(day));
    assert.deepEqual([asParquet.recordCount, asParquet.deleted], [rows, rows]);
    assert.ok(asParquet.size < asLines.size, `${asParquet.size} is not smaller than ${asLines.size}`);
    const meta = await metadata(day);
    assert.equal(meta.format, "parquet");
    const { etag } = (await ask({ data: stats.data }, "GET", `/api/r2/traffic-events-archive/objects?prefix=${encodeURIComponent(meta.path)}`)).json.objects[0];
    assert.match(etag, /-1$/); // it went up in parts
    const file = download(meta.path);
    const bytes = readFileSync(file);
    const { row_groups, num_rows } = parquetMetadata(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
    assert.equal(Number(num_rows), rows);
    const columns = Object.fromEntries(row_groups[0].columns.map(({ meta_data }) => [meta_data.path_in_schema[0], meta_data]));
    for (const column of Object.values(columns)) assert.equal(column.codec, "ZSTD");
    for (const name of ["path", "method", "client_ip_hash", "user_agent", "country"]) assert.ok(columns[name].encodings.includes("RLE_DICTIONARY"), name);
    const replayed = await stats.tool("replay.mjs", file, "--rate", "20000", "--verify");
    assert.equal(replayed.status, 0, replayed.output);
    assert.match(replayed.output, /4000 in the file, 4000 kept, 4000 counted \(0 of them new\)/);
    assert.deepEqual((await exported(day, day + DAY)).length, rows);
  });

  test("killed in the middle of it, archiving goes on and loses and doubles nothing (R3)", async () => {
    const day = daysAgo(7), rows = 2_000;
    await stats.restart({ command: "dev" });
    await fill(day, rows);
    for (const pause of [0, 30, 80, 150]) {
      await stats.post("/admin/archive/trigger", { date: dateOf(day) });
      await new Promise((resolve) => setTimeout(resolve, pause)); // where it is cut off is left to chance
      await stats.server.kill();
      await stats.start({ command: "dev" });
    }
    await stats.archive(dateOf(day));
    assert.equal((await metadata(day)).recordCount, rows);
    assert.deepEqual(await stats.counts(day).then(({ events, counted }) => [events, counted]), [0, rows]);
    assert.equal((await exported(day, day + DAY)).length, rows);
    assert.deepEqual((await files()).filter((key) => key.includes(dateOf(day))), [(await metadata(day)).path]);
  });

  test("an archive that fails is an alert, deletes nothing, and ends when it succeeds", async () => {
    const day = daysAgo(8);
    await fill(day, 100);
    await stats.archive(dateOf(day));
    await fill(day, 100); // again: the marks are there, the rows are not
    const { path: key } = await metadata(day);
    await ask({ data: stats.data }, "DELETE", `/api/r2/traffic-events-archive/objects/${encodeURIComponent(key)}`);
    assert.equal((await stats.fetch(`/admin/archive/query?date=${dateOf(day)}`)).status, 500);
    await stats.post("/admin/archive/trigger", { date: dateOf(day) });
    await stats.server.untilTrue(async () => (await stats.json(`/admin/archive/status?date=${dateOf(day)}`)).error !== null, "a failure");
    await stats.cron();
    const alert = (await stats.json("/paths/metrics")).alerts.find(({ type }) => type === "ARCHIVE_FAILED");
    assert.equal(alert.severity, "critical");
    assert.match(alert.message, /is not in the archive/);
    assert.equal((await stats.counts(day)).events, 100);
    await ask({ data: stats.data }, "DELETE", `/api/kv/path-stats/values/${encodeURIComponent(`archive:metadata:${dateOf(day)}`)}`);
    await stats.archive(dateOf(day));
    await stats.cron();
    assert.ok(!(await stats.json("/paths/metrics")).alerts.some(({ type }) => type === "ARCHIVE_FAILED"));
    assert.equal((await stats.counts(day)).events, 0);
  });

  test("the night: days three days old are archived, JSON lines become Parquet, and after a year they go", async () => {
    const day = daysAgo(3);
    await fill(day, 100);
    await fill(daysAgo(2), 100);
    await stats.restart({ command: "dev", vars: { PARQUET_AFTER_DAYS: 4 } });
    await stats.cron("0 2 * * *");
    await stats.server.untilTrue(async () => (await metadata(day))?.recordCount === 100, "the archive of the night");
    await stats.server.untilTrue(async () => (await metadata(first))?.format === "parquet", "Parquet");
    assert.equal((await metadata(day)).format, "jsonl.gz"); // too young
    assert.equal((await stats.counts(daysAgo(2))).events, 100); // younger than three days
    const answer = await stats.json(`/admin/archive/query?date=${dateOf(first)}`);
    assert.deepEqual([answer.recordCount, answer.events.length], [550, 550]);
    assert.ok(!(await files()).some((key) => key.includes(`${dateOf(first)}.jsonl`) || key.includes(`${dateOf(first)}-2.jsonl`)));
    await stats.restart({ command: "dev", vars: { ARCHIVE_DAYS: 4 } });
    await stats.cron("0 2 * * *");
    await stats.server.untilTrue(async () => (await kv(`archive:metadata:${dateOf(first)}`)).status === 404, "the end of an archive");
    await stats.server.untilTrue(async () => (await files()).length === 1, "one file left");
    assert.ok((await files())[0].includes(dateOf(day)));
  });

  test("the oldest day can be archived by name when a database is nearly full", async () => {
    const job = await stats.archive("oldest");
    assert.equal(job.date, dateOf(daysAgo(2)));
  });
});
