// path-stats through its real pipeline: queue, consumer, objects, D1, KV, Cache. The million events are in path-stats-million.test.mjs.
import assert from "node:assert/strict";
import path from "node:path";
import { writeFileSync } from "node:fs";
import test, { after, before, describe } from "node:test";
import { tempDir } from "../lib/server.mjs";
import { ask } from "../admin/lib.mjs";
import { DAY, dateOf, daysAgo, event, PathStats } from "./path-stats-lib.mjs";

for (const strategy of ["objects", "single"])
  describe(`path-stats, strategy "${strategy}"`, () => {
    const stats = new PathStats({ STRATEGY: strategy });
    before(() => stats.start());
    after(() => stats.stop());

    // Yesterday: nothing else counts there.
    const at = daysAgo(1) + 5 * 3_600_000;
    const total = 3_000;

    test(`${strategy}: every acknowledged event counts once, through kills and repetitions (K1, K2, A1, A2)`, async () => {
      const batches = Array.from({ length: total / 100 }, (_, b) => b);
      const kills = new Set([10, 20]);
      let acknowledged = 0, restarting = null;
      const sender = async () => {
        for (let b; (b = batches.shift()) !== undefined; ) {
          const events = Array.from({ length: 100 }, (_, i) => event(b * 100 + i, at));
          await stats.sendThroughKills(events, () => restarting);
          if (kills.delete(acknowledged++)) restarting = stats.server.kill().then(() => stats.start());
          await restarting;
        }
      };
      await Promise.all(Array.from({ length: 4 }, sender));
      await stats.untilCounted(at, total);
      const { total: one } = await stats.json("/paths/stats?hours=72&path=/p/0");
      assert.deepEqual([one.requests, one.errors, one.uniqueIps > 0, one.p95 > one.p50], [total / 20, total / 20, true, true]);
    });

    test(`${strategy}: what was counted is not counted again, also when two copies are in a batch`, async () => {
      const marker = { ...event(0x7fffffff, at), path: "/marker", timestamp: at, id: `${at}-7fffffff` };
      await stats.send([...Array.from({ length: 98 }, (_, n) => event(n, at)), marker, marker]);
      await stats.untilQuiet();
      await stats.untilCounted(at, total + 1);
    });

    test(`${strategy}: killed while what was taken is being written, nothing is lost (A1, A2, A3)`, async () => {
      const day = daysAgo(2);
      for (let round = 0; round < 6; round++) {
        const { counted } = await stats.counts(day);
        await stats.send(Array.from({ length: 400 }, (_, n) => event(round * 400 + n, day, { every: 1000, paths: 60 })));
        // The first are counted: others are being written, or wait for it.
        await stats.server.untilTrue(async () => (await stats.counts(day)).counted > counted, "the first of them", 60_000);
        await stats.server.kill();
        await stats.start();
      }
      await stats.untilCounted(day, 2_400);
    });

    test(`${strategy}: a replay from the archive counts nothing twice, however often, after restarts and when nothing is left but the marks (K1, K3)`, async () => {
      const old = daysAgo(5);
      const rows = 600;
      const file = path.join(tempDir(), "events.jsonl");
      writeFileSync(file, Array.from({ length: rows }, (_, n) => `${JSON.stringify(event(n, old, { every: DAY / rows }))}\n`).join(""));
      const first = await stats.tool("replay.mjs", file, "--verify");
      assert.equal(first.status, 0, first.output);
      assert.match(first.output, /600 in the file, 600 kept, 600 counted \(600 of them new\)/);
      for (let round = 1; round <= 2; round++) {
        const job = await stats.archive(dateOf(old));
        assert.deepEqual([job.recordCount, job.deleted], [rows, rows]);
        assert.deepEqual(await stats.counts(old).then(({ events, counted }) => [events, counted]), [0, rows]);
        await stats.server.kill(); // whatever objects remembered is gone
        await stats.start();
        const again = await stats.tool("replay.mjs", "--date", dateOf(old), "--verify");
        assert.equal(again.status, 0, again.output);
        assert.match(again.output, /600 in the file, 600 kept, 600 counted \(0 of them new\)/);
      }
      // Statistics in full agree too, not only their sum.
      const { total: all } = await stats.json("/paths/stats?hours=240&path=/p/1");
      assert.equal(all.requests, rows / 20 + total / 20 + 2_400 / 60);
    });

    test(`${strategy}: --verify fails when a day has more than the file and what was there`, async () => {
      const old = daysAgo(6);
      const file = path.join(tempDir(), "events.jsonl");
      writeFileSync(file, Array.from({ length: 200 }, (_, n) => `${JSON.stringify(event(n, old))}\n`).join(""));
      const replay = stats.tool("replay.mjs", file, "--verify", "--rate", "10");
      // Its first half is there, so it has looked at the day; before its second half somebody else writes.
      await stats.untilCounted(old, 100);
      await stats.send(Array.from({ length: 100 }, (_, n) => event(1_000 + n, old)));
      const { status, output } = await replay;
      assert.equal(status, 1, output);
      assert.match(output, /300 counted .*should be \d+ and 200/);
    });

    test(`${strategy}: the collector records what passes, with the visitor's address hashed, and an Analytics point per request`, async () => {
      const since = Date.now();
      assert.equal(await (await stats.server.fetch("/site/a?secret=1")).text(), "This is /site/a.\n");
      assert.equal((await stats.server.fetch("/site/missing")).status, 404);
      await stats.server.untilTrue(async () => (await stats.json("/paths/stats?path=/site/missing")).total.requests === 1, "the recorded request");
      assert.equal((await stats.json("/paths/stats?path=/site/missing")).total.errors, 1);
      const exported = await (await stats.fetch(`/paths/events/export?from=${since - 1000}&to=${Date.now() + DAY}`)).text();
      const row = exported.trim().split("\n").map((line) => JSON.parse(line)).find(({ path }) => path === "/site/a");
      assert.deepEqual(Object.keys(row), ["id", "path", "method", "status", "response_time", "client_ip_hash", "timestamp", "event_date", "user_agent", "country"]);
      assert.match(row.id, new RegExp(`^${row.timestamp}-[0-9a-f]{8}$`));
      assert.match(row.client_ip_hash, /^hash:[0-9a-f]{32}$/);
      assert.deepEqual([row.method, row.status, row.response_time >= 0, row.event_date], ["GET", 200, true, dateOf(row.timestamp)]);
      assert.ok(!exported.includes("127.0.0.1") && !exported.includes("secret"));
      const anonymous = await (await stats.fetch(`/paths/events/export?from=${since - 1000}&to=${Date.now() + DAY}&anonymize=true`)).text();
      assert.deepEqual(Object.keys(JSON.parse(anonymous.split("\n")[0])), ["id", "path", "method", "status", "response_time", "timestamp", "event_date"]);
      assert.equal(anonymous.trim().split("\n").length, exported.trim().split("\n").length);
      const points = await ask({ data: stats.data }, "GET", `/api/analytics/sql?query=${encodeURIComponent("SELECT blob1 AS path, SUM(_sample_interval) AS requests, AVG(double1) AS avg_response_time FROM TRAFFIC_ANALYTICS WHERE timestamp > NOW() - INTERVAL '1' HOUR GROUP BY blob1 ORDER BY requests DESC LIMIT 10")}`);
      assert.deepEqual(points.json.data.map(({ path, requests }) => [path, Number(requests)]).sort(), [["/site/a", 1], ["/site/missing", 1]]);
      const whole = await ask({ data: stats.data }, "GET", `/api/analytics/sql?query=${encodeURIComponent("SELECT index1, blob1, blob2, blob3 FROM TRAFFIC_ANALYTICS ORDER BY blob1")}`);
      assert.deepEqual(whole.json.data.map(({ index1, blob1, blob2, blob3 }) => [index1, blob1, blob2, blob3]), [["200", "/site/a", "GET", row.client_ip_hash], ["404", "/site/missing", "GET", row.client_ip_hash]]);
    });

    test(`${strategy}: refusals`, async () => {
      for (const [method, gone] of [["GET", "/admin/paths/compare"], ["GET", "/admin/paths/discovered"], ["GET", "/admin/paths/do/system-stats"], ["GET", "/admin/paths/do/ip/1.2.3.4"], ["POST", "/admin/paths/do/batch-cleanup"],
        ["GET", "/admin/paths/do/export"], ["GET", "/admin/health/do-overview"], ["GET", "/admin/health/do-detailed"], ["POST", "/admin/health/auto-maintenance"], ["GET", "/admin/health/comparison"], ["GET", "/paths?source=do"]])
        assert.equal((await stats.server.fetch(gone, { method })).status, 410, gone);
      for (const [target, status] of [["/admin/counts?date=2026-01-01", 401], ["/admin/paths", 401], ["/paths/events/export?from=1&to=2", 401], ["/paths/stats?hours=0", 400], ["/paths?source=elsewhere", 400], ["/paths/nothing", 404]]) {
        const answer = await stats.server.fetch(target);
        assert.equal(answer.status, status, target);
        assert.match((await answer.json()).error, /\.$/);
      }
      for (const body of ["{", "[]", '{"events":[]}', '{"events":[{"id":7}]}', JSON.stringify({ events: Array(101).fill(event(1, at)) })]) assert.equal((await stats.fetch("/admin/events", { method: "POST", body })).status, 400, body.slice(0, 40));
      assert.equal((await stats.post("/admin/archive/trigger", { date: "soon" })).status, 400);
      assert.equal((await stats.post("/admin/archive/trigger", { date: "2001-01-01" })).status, 404);
      assert.equal((await stats.fetch("/admin/archive/query?date=2001-01-01")).status, 404);
      assert.equal((await stats.fetch("/paths/events/export?from=1794000000005&to=1794000000002")).status, 400);
    });
  });

test("path-stats: strategies take turns on the same data, and every event counts once (K1, K2)", async () => {
  const stats = await new PathStats().start();
  const day = daysAgo(1);
  const events = Array.from({ length: 600 }, (_, n) => event(n, day, { paths: 5 }));
  try {
    await stats.send(events.slice(0, 300));
    await stats.untilCounted(day, 300);
    await stats.restart({ vars: { STRATEGY: "single" } });
    await stats.send(events); // half of it again
    await stats.untilCounted(day, 600);
    await stats.restart();
    await stats.send(events);
    await stats.untilQuiet();
    await stats.untilCounted(day, 600);
  } finally {
    await stats.stop();
  }
});
