// path-stats through its real pipeline: queue, consumer, objects, D1, KV, Cache, R2. CAIRN_TEST_FULL=1 sends a million events
// instead of a few thousand and reports how fast they went.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test, { after, before, describe } from "node:test";
import { closeBrowser, fits, noBrowser, withPage } from "../lib/browser.mjs";
import { run } from "../lib/cairn.mjs";
import { root, serve, tempDir } from "../lib/server.mjs";

const app = path.join(root, "apps/path-stats");
const token = "a-token-for-tests";
const full = Boolean(process.env.CAIRN_TEST_FULL);
const DAY = 86_400_000;

/** A recorded request; the same number gives the same one. */
function event(n, at, paths = 20) {
  const hex = (value, length) => Math.abs(Math.imul(value + 1, 0x9e3779b1) ^ (value << 7)).toString(16).padStart(8, "0").repeat(4).slice(0, length);
  return { id: `t${at.toString(36)}-${n}`, ts: at + (n % 1000), path: `/p/${n % paths}`, method: "GET", status: n % 10 === 0 ? 500 : 200, ms: 5 + (n % 200), ip_hash: hex(n % 777, 32), agent: "test", country: "NO", request_id: `r${n}` };
}

const residentMb = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;

/** The most memory that a process had while something was done. */
async function peakMb(pid, work) {
  let peak = residentMb(pid);
  const timer = setInterval(() => { peak = Math.max(peak, residentMb(pid)); }, 50);
  try {
    return [await work(), peak];
  } finally {
    clearInterval(timer);
  }
}

for (const strategy of ["objects", "single"])
  describe(`strategy "${strategy}"`, () => {
    let server;
    const data = tempDir();
    const start = (vars = {}, command = "serve") => {
      const all = { ADMIN_TOKEN: token, STRATEGY: strategy, ...vars };
      return serve(app, { data, lanes: 2, command, args: Object.entries(all).flatMap(([name, value]) => ["--var", `${name}=${value}`]) });
    };
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const json = async (target, init) => (await server.fetch(target, { headers, ...init })).json();
    const post = (target, value) => server.fetch(target, { method: "POST", headers, body: JSON.stringify(value) });
    const date = (ts) => new Date(ts).toISOString().slice(0, 10);
    const counts = async (ts) => {
      if (full) await new Promise((resolve) => setTimeout(resolve, 2000)); // counting a million rows is work too
      return json(`/admin/counts?date=${date(ts)}`);
    };

    // The beginning of an hour, so that a run at its end does not see two.
    const at = Math.floor(Date.now() / 3_600_000) * 3_600_000;

    before(async () => {
      for (const name of ["path-stats-0", "path-stats-1"]) {
        const applied = run(["d1", "migrations", "apply", name, "--data", data], { cwd: app });
        assert.equal(applied.status, 0, applied.stderr);
      }
      server = await start();
    });
    after(() => server?.stop());

    test("every acknowledged event counts once, through kills and repetitions", async () => {
      const total = full ? 1_000_000 : 3_000;
      const batches = Array.from({ length: total / 100 }, (_, b) => b);
      const kills = new Set([Math.floor(batches.length / 3), Math.floor((2 * batches.length) / 3)]);
      const began = Date.now();
      let acknowledged = 0, restarting = null;
      const sender = async () => {
        for (let b; (b = batches.shift()) !== undefined; ) {
          const events = Array.from({ length: 100 }, (_, i) => event(b * 100 + i, at));
          for (;;) {
            try {
              await restarting;
              const answer = await post("/admin/events", { events });
              assert.equal(answer.status, 202, await answer.text());
              break;
            } catch (error) {
              if (error.code === "ERR_ASSERTION") throw error;
              await new Promise((resolve) => setTimeout(resolve, 20)); // killed under the request: send the same again
            }
          }
          if (kills.delete(acknowledged++)) restarting = server.kill().then(async () => { server = await start(); });
          await restarting;
        }
      };
      await Promise.all(Array.from({ length: 4 }, sender));
      const sent = Date.now();
      await server.untilTrue(async () => {
        const { events, counted } = await counts(at);
        return events >= total && counted >= total;
      }, `${total} counted events`, full ? 900_000 : 60_000);
      const { events, counted } = await counts(at);
      assert.deepEqual([events, counted], [total, total]);
      if (full) console.log(`${total} events: sent in ${(sent - began) / 1000} s, counted in ${(Date.now() - began) / 1000} s, ${Math.round((1000 * total) / (Date.now() - began))}/s end to end`);
      const stats = await json("/paths/stats?hours=24&path=/p/0");
      assert.deepEqual([stats.total.requests, stats.total.errors], [total / 20, total / 20]);
    });

    test("what was counted is not counted again", async () => {
      const before = await counts(at);
      const marker = { ...event(0, at), id: `marker-${strategy}`, path: "/marker" };
      assert.equal((await post("/admin/events", { events: [...Array.from({ length: 99 }, (_, n) => event(n, at)), marker] })).status, 202);
      await server.untilTrue(async () => (await counts(at)).counted > before.counted, "the marker");
      assert.equal((await counts(at)).counted, before.counted + 1);
    });

    test("the collector records what passes, with the visitor's address hashed", async () => {
      const since = Date.now();
      assert.equal(await server.text("/site/a"), "This is /site/a.\n");
      assert.equal((await server.fetch("/site/missing")).status, 404);
      await server.untilTrue(async () => (await json("/paths/stats?path=/site/missing")).total.requests === 1, "the recorded request");
      assert.equal((await json("/paths/stats?path=/site/missing")).total.errors, 1);
      const exported = await server.text(`/paths/events/export?from=${since}&to=${Date.now() + DAY}`, { headers });
      const lines = exported.trim().split("\n").map((line) => JSON.parse(line));
      const one = lines.find((line) => line.path === "/site/a");
      assert.match(one.ip_hash, /^[0-9a-f]{32}$/);
      assert.ok(!exported.includes("127.0.0.1"));
      const anonymous = await server.text(`/paths/events/export?from=${since}&to=${Date.now() + DAY}&anonymize=true`, { headers });
      assert.deepEqual(Object.keys(JSON.parse(anonymous.split("\n")[0])), ["id", "ts", "path", "method", "status", "ms"]);
      assert.equal(anonymous.trim().split("\n").length, lines.length);
    });

    test("/paths: database first, then cache, refreshed behind the answer", async () => {
      const first = await json("/paths?refresh=true");
      assert.ok(["cache", "kv", "d1"].includes(first.dataSource));
      await server.untilTrue(async () => (await json("/paths")).version !== first.version || first.dataSource === "d1", "a new version");
      const second = await json("/paths");
      assert.equal(second.dataSource, "cache");
      assert.equal(second.stale, false);
      assert.ok(second.stalenessSeconds < 60 && second.lastUpdated <= Date.now());
      assert.ok(second.paths.length >= 20 && second.paths[0].requests >= second.paths[1].requests);
    });

    test("a day moves to the archive, is verified, and goes from the database", async () => {
      const old = Date.parse(date(Date.now() - 5 * DAY));
      const rows = full ? 1_000_000 : 1_200;
      // In order, over all its hours; ids begin with the time, as the collector's do.
      const ofDay = (n) => {
        const ts = old + Math.floor((n * DAY) / rows);
        return { ...event(n, old), id: `${ts.toString(36)}-${n}`, ts };
      };
      let next = 0;
      const sender = async () => {
        for (let b; (b = next++) < rows / 100; ) assert.equal((await post("/admin/events", { events: Array.from({ length: 100 }, (_, i) => ofDay(b * 100 + i)) })).status, 202);
      };
      await Promise.all(Array.from({ length: 4 }, sender));
      await server.untilTrue(async () => (await counts(old)).events >= rows, "the old events", full ? 900_000 : 60_000);
      // Started anew: what filling the database took does not count.
      await server.stop();
      server = await start({ MULTIPART_ABOVE_BYTES: full ? 1_000_000 : 100_000_000 });
      await json("/paths");
      const idle = residentMb(server.pid);
      const [archived, peak] = await peakMb(server.pid, async () => (await server.fetch("/admin/archive/trigger", { method: "POST", headers, body: JSON.stringify({ date: date(old) }), signal: AbortSignal.timeout(600_000) })).json());
      if (full) console.log(`${rows} rows archived in ${(archived.endedAt - archived.startedAt) / 1000} s, ${archived.bytes} bytes, memory ${Math.round(peak - idle)} MB over idle`);
      assert.ok(peak - idle < 64, `${Math.round(peak - idle)} MB over idle`);
      assert.deepEqual([archived.phase, archived.rows, archived.deleted, archived.error], ["done", rows, rows, null]);
      assert.equal(archived.key, `events-archive/${date(old).slice(0, 4)}/${date(old).slice(5, 7)}/${date(old)}.jsonl.gz`);
      assert.equal((await counts(old)).events, 0);
      await server.untilTrue(async () => (await counts(old)).counted === rows, "statistics of what was archived");
      assert.deepEqual(await json(`/admin/archive/query?date=${date(old)}`), archived);
      assert.equal((await server.fetch("/admin/archive/query?date=2001-01-01", { headers })).status, 404);
    });

    if (strategy === "objects")
      test("as Parquet too, and the replay tool sends a file again", async () => {
        await server.stop();
        server = await start({ ARCHIVE_FORMAT: "parquet", MULTIPART_ABOVE_BYTES: 1 });
        const old = Date.parse(date(Date.now() - 6 * DAY)) + 3_600_000;
        const file = path.join(tempDir(), "events.jsonl");
        writeFileSync(file, Array.from({ length: 500 }, (_, n) => JSON.stringify(event(n, old)) + "\n").join(""));
        const replay = spawn(process.execPath, [path.join(app, "tools/replay.mjs"), file, "--url", server.url, "--token", token, "--verify"], { stdio: ["ignore", "pipe", "inherit"] });
        let output = "";
        replay.stdout.setEncoding("utf8").on("data", (text) => { output += text; });
        assert.equal(await new Promise((resolve) => replay.on("close", resolve)), 0);
        assert.match(output, /500 in the file, 500 kept, 500 counted/);
        const archived = await (await post("/admin/archive/trigger", { date: date(old) })).json();
        assert.deepEqual([archived.phase, archived.rows, archived.format, archived.error], ["done", 500, "parquet", null]);
      });

    test("monitoring: cron checks, metrics, snapshot in KV", async () => {
      await server.stop();
      server = await start({}, "dev"); // which runs cron handlers on request
      assert.equal((await server.fetch("/cdn-cgi/handler/scheduled?cron=*+*+*+*+*")).status, 200);
      const metrics = await json("/paths/metrics");
      assert.equal(metrics.strategy, strategy);
      assert.equal(metrics.databases, 2);
      assert.ok(metrics.consumer.at <= Date.now());
      assert.deepEqual(metrics.alerts, []);
      assert.equal((await server.fetch("/cdn-cgi/handler/scheduled?cron=0+2+*+*+*")).status, 200);
      assert.equal((await server.fetch("/cdn-cgi/handler/scheduled?cron=0+*/6+*+*+*")).status, 200);
    });

    test("refusals", async () => {
      for (const gone of ["/admin/paths/compare", "/admin/paths/discovered", "/admin/paths/do/x", "/admin/health/do-x", "/admin/health/auto-maintenance", "/admin/health/comparison"]) assert.equal((await server.fetch(gone)).status, 410, gone);
      for (const [target, status] of [["/admin/counts?date=2026-01-01", 401], ["/paths/events/export?from=1&to=2", 401], ["/paths/stats?hours=0", 400], ["/paths/nothing", 404]]) {
        const answer = await server.fetch(target);
        assert.equal(answer.status, status, target);
        assert.match((await answer.json()).error, /\.$/);
      }
      for (const body of ["{", "[]", '{"events":[]}', '{"events":[{"id":7}]}']) assert.equal((await server.fetch("/admin/events", { method: "POST", headers, body })).status, 400, body);
      assert.equal((await post("/admin/archive/trigger", { date: "soon" })).status, 400);
      assert.equal((await post("/admin/archive/trigger", { date: "2001-01-01" })).status, 404);
      assert.equal((await server.fetch("/paths/events/export?from=5&to=2", { headers })).status, 400);
    });

    if (strategy === "objects")
      test("the dashboard, on a phone's width too", { skip: noBrowser }, async () => {
        try {
          await withPage({ width: 380, colorScheme: "dark" }, async (page) => {
            await page.goto(server.url);
            await page.waitForURL(/dashboard/);
            await page.waitForSelector("tbody tr td button");
            await page.click("tbody tr td button");
            await page.waitForFunction(() => /requests to \//.test(document.body.textContent));
            await page.click("#refresh");
            await page.waitForFunction(() => document.getElementById("refresh").textContent === "Refresh");
            assert.match(await page.textContent("#source"), /^from (cache|snapshot|database)/);
            assert.ok(await fits(page));
            if (process.env.SCREENSHOTS) {
              await page.screenshot({ path: path.join(process.env.SCREENSHOTS, "path-stats-phone.png"), fullPage: true });
              await page.setViewportSize({ width: 1200, height: 900 });
              await page.emulateMedia({ colorScheme: "light" });
              await page.screenshot({ path: path.join(process.env.SCREENSHOTS, "path-stats.png"), fullPage: true });
            }
          });
        } finally {
          await closeBrowser();
        }
      });
  });
