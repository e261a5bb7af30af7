// RivenTracker against its stand-in market: what is sampled, what is kept, what survives.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test, { after, before, describe } from "node:test";
import { startMarket } from "../../../apps/riven-tracker/market/server.mjs";
import { ask } from "../admin/lib.mjs";
import { closeBrowser, inspect, noBrowser, VIEWS, withPage } from "../lib/browser.mjs";
import { run } from "../lib/cairn.mjs";
import { alone } from "../lib/differences.mjs";
import { clustered, deployed, root, serve, tempDir, withoutTriggers } from "../lib/server.mjs";
import { load } from "../lib/typescript.mjs";

const app = path.join(root, "apps/riven-tracker");
const token = "a-token-for-tests";
const PERIOD = 10_000 * 86_400; // no test sees the end of it: the next is in 2052

describe("ticks", () => {
  test("the index is the weighted mean of the ten cheapest, bait left out", async () => {
    const { bottomPrice, makeTick } = await load(path.join(app, "src/tick.ts"));
    assert.equal(bottomPrice([]), null);
    assert.equal(bottomPrice([100]), 100);
    assert.equal(bottomPrice([100, 200]), Math.round((100 + 0.8 * 200) / 1.8));
    assert.equal(bottomPrice([1, 100, 100, 100]), 100);
    assert.equal(bottomPrice([...Array(10).fill(50), 9999]), 50);
    const listings = [30, 10, 20, 50, 40].map((price) => ({ price, active: true })).concat({ price: 1, active: false });
    const tick = makeTick(listings, "pc", "lex", Date.parse("2026-01-09T10:00:59.999Z"), 60);
    assert.deepEqual(tick, {
      ts: "2026-01-09T10:00:00Z", platform: "pc", weapon_slug: "lex", bottom_price: 26, active_count: 5, min_price: 10, p5_price: 50, p10_price: null, source_status: "ok", created_at: "2026-01-09T10:00:59Z",
    });
    const nobody = makeTick([], "pc", "lex", 0, 60);
    assert.deepEqual([nobody.bottom_price, nobody.active_count, nobody.source_status], [null, 0, "ok"]);
  });

  test("what the market says is checked", async () => {
    const { parseListings } = await load(path.join(app, "src/market.ts"));
    const auction = { buyout_price: 10, platform: "pc", owner: { status: "ingame" } };
    assert.deepEqual(parseListings({ payload: { auctions: [auction, { ...auction, owner: { status: "offline" } }] } }, "pc"), [{ price: 10, active: true }, { price: 10, active: false }]);
    for (const odd of [null, 7, { ...auction, buyout_price: null }, { ...auction, buyout_price: -1 }, { ...auction, buyout_price: "10" }, { ...auction, closed: true }, { ...auction, platform: "xbox" }])
      assert.deepEqual(parseListings({ payload: { auctions: [odd] } }, "pc"), []);
    for (const broken of [null, [], {}, { payload: {} }]) assert.throws(() => parseListings(broken, "pc"), /no list of auctions/);
  });
});

describe("sampling", () => {
  let market, server;
  const data = tempDir();
  const start = (vars = {}, command = "serve") => {
    const all = { MARKET_URL: market.url, ADMIN_TOKEN: token, TICK_SECONDS: PERIOD, SNAPSHOT_SECONDS: 2, MARKET_TRIES: 2, ...vars };
    return serve(withoutTriggers(app), { data, lanes: 2, command, args: Object.entries(all).flatMap(([name, value]) => ["--var", `${name}=${value}`]) });
  };
  const admin = (target, init = {}) => server.fetch(`/admin/${target}`, { method: "POST", ...init, headers: { authorization: `Bearer ${token}` } });
  const json = async (target) => (await server.fetch(target)).json();
  const sql = (text) => JSON.parse(run(["d1", "execute", "riven-tracker", "--command", text, "--json", "--data", data], { cwd: app }).stdout)[0].results;

  before(async () => {
    market = await startMarket();
    if (clustered) server = await start(); // a node's databases are there when it is
    const applied = run(["d1", "migrations", "apply", "riven-tracker", "--data", data], { cwd: app });
    assert.equal(applied.status, 0, applied.stderr);
    server ??= await start();
  });
  after(async () => {
    await server?.stop();
    await market?.stop();
  });

  test("eight workers at once sample everything once, also across kill -9", async () => {
    const total = 1_000;
    const slugs = Array.from({ length: total }, (_, n) => `weapon_${n}`);
    const lists = { hot: slugs.slice(0, total / 5), cold: slugs.slice(total / 5) };
    assert.equal((await admin("lists", { method: "PUT", body: JSON.stringify(lists) })).status, 200);
    let sampled = 0, killed = false;
    const worker = async () => {
      for (;;) {
        let answer;
        try {
          answer = await admin("sample");
        } catch {
          return; // the server was killed under this request
        }
        assert.equal(answer.status, 200);
        const result = await answer.json();
        assert.equal(result.failed, 0);
        if (result.sampled === 0) return;
        sampled += result.sampled;
        if (sampled > total / 2 && !killed) {
          killed = true;
          server.child.kill("SIGKILL");
        }
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    assert.ok(killed);
    await server.exited;
    server = await start();
    await Promise.all(Array.from({ length: 8 }, worker));
    // What was handed out and never handed in, because of the kill, is still leased and not forgotten.
    const { leased } = await json("/api/health");
    assert.ok(leased <= 8 * 5, `${leased} leased`);
    const [{ rows, weapons }] = sql("SELECT count(*) AS rows, count(DISTINCT weapon_slug) AS weapons FROM riven_bottom_tick");
    assert.equal(rows, weapons, "a weapon was sampled twice in one period");
    assert.ok(sampled <= rows, "an acknowledged tick is missing");
    assert.ok(total - rows <= leased, "a weapon was skipped");
    for (const [slug, times] of market.asked) assert.ok(times === 1 || leased > 0, `${slug} was asked for ${times} times`);
  });

  test("the coordinator's storage has the fields by their names, and the ticks as a map (C5)", async () => {
    const { objects } = (await ask({ data }, "GET", "/api/objects?namespace=riven-tracker/RivenCoordinatorDO")).json;
    assert.deepEqual(objects.map(({ name }) => name), ["pc"]);
    const { entries } = (await ask({ data }, "GET", `/api/objects/riven-tracker%2FRivenCoordinatorDO/${objects[0].id}/kv`)).json;
    const stored = Object.fromEntries(entries.map(({ key, value }) => [key, value]));
    assert.deepEqual(["cursorHot", "cursorCold", "listHot", "listCold", "dirty", "latestBySlug"].filter((name) => !(name in stored)), []);
    assert.equal(stored.listHot.length, 200);
    assert.match(JSON.stringify(stored.latestBySlug), /weapon_0/);
  });

  test("the numbers are the document's: a minute, five minutes, KV and DB", () => {
    const text = readFileSync(path.join(app, "wrangler.toml"), "utf8");
    for (const line of ["TICK_SECONDS = 60 ", "SNAPSHOT_SECONDS = 300 ", 'crons = ["* * * * *"]', 'binding = "KV"', 'binding = "DB"', 'class_name = "RivenCoordinatorDO"']) assert.ok(text.includes(`\n${line}`), line);
  });

  test("/next-batch gives five, /append-results takes samples, and D1 has every field (C1, C3)", async () => {
    const [row] = sql("SELECT * FROM riven_bottom_tick WHERE weapon_slug = 'weapon_3'");
    assert.deepEqual(Object.keys(row), ["ts", "platform", "weapon_slug", "bottom_price", "active_count", "min_price", "p5_price", "p10_price", "source_status", "created_at"]);
    assert.match(row.ts, /^\d{4}-\d\d-\d\dT00:00:00Z$/); // periods begin with a day in this test
    assert.match(row.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.deepEqual([row.platform, row.source_status], ["pc", "ok"]);
    assert.ok(Number.isInteger(row.bottom_price));
    const columns = sql("SELECT name, type, pk FROM pragma_table_info('riven_bottom_tick')").map(({ name, type, pk }) => `${name} ${type}${pk ? ` ${pk}` : ""}`);
    assert.deepEqual(columns, ["ts TEXT 1", "platform TEXT 2", "weapon_slug TEXT 3", "bottom_price INTEGER", "active_count INTEGER", "min_price INTEGER", "p5_price INTEGER", "p10_price INTEGER", "source_status TEXT", "created_at TEXT"]);
    // History is read by an index: the query of src/database.ts, as it is.
    const [, query] = /async function trend\b.*?\.prepare\(\s*`([^`]+)`/s.exec(readFileSync(path.join(app, "src/database.ts"), "utf8"));
    const values = ["'pc'", "'lex'", "'2026-01-01T00:00:00Z'", "'2027-01-01T00:00:00Z'", "0", "60"];
    const plan = sql(`EXPLAIN QUERY PLAN ${query.replace(/\?(\d)/g, (_, n) => values[n - 1])}`).map(({ detail }) => detail).join("; ");
    assert.match(plan, /SEARCH riven_bottom_tick USING (COVERING )?INDEX riven_bottom_tick_trend \(platform=\? AND weapon_slug=\? AND ts>\? AND ts<\?\)/);
  });

  test("the snapshot goes to KV as {slug: tick}, at most once per interval, and is answered from there (C4)", async () => {
    await server.untilTrue(async () => {
      const { dataSource, latest } = await json("/api/snapshot");
      return dataSource === "kv" && Object.keys(latest).length > 900;
    }, "a snapshot in KV");
    const kept = (await ask({ data }, "GET", `/api/kv/riven-tracker/values/${encodeURIComponent("riven:latest:pc")}`)).json;
    assert.deepEqual(Object.keys(kept.weapon_5), ["ts", "platform", "weapon_slug", "bottom_price", "active_count", "min_price", "p5_price", "p10_price", "source_status", "created_at"]);
    const seen = new Set();
    const began = Date.now();
    const few = JSON.stringify({ hot: ["lex", "soma"], cold: ["braton", "bo", "fang"] });
    await admin("lists", { method: "PUT", body: few });
    while (seen.size < 3) {
      await admin("sample");
      await admin("lists", { method: "PUT", body: few });
      const snapshot = await json("/api/snapshot");
      assert.equal(snapshot.dataSource, "kv");
      seen.add(snapshot.updatedAt);
      assert.ok(Date.now() - began < 60_000, "no further snapshots came");
    }
    const times = [...seen].sort();
    for (let i = 1; i < times.length; i++) assert.ok(times[i] - times[i - 1] >= 2000, `snapshots after ${times[i] - times[i - 1]} ms`);
  });

  test("without a snapshot in KV the coordinator answers", async () => {
    await server.stop();
    server = await start({ SNAPSHOT_SECONDS: 300 });
    await server.untilTrue(async () => {
      const { dirty, snapshotAt } = await json("/api/health");
      return !dirty && (await json("/api/snapshot")).updatedAt === snapshotAt; // it has arrived in KV
    }, "the last snapshot of before");
    const [{ id }] = (await ask({ data }, "GET", "/api/objects?namespace=riven-tracker/RivenCoordinatorDO")).json.objects;
    const object = async () => (await ask({ data }, "GET", `/api/objects/riven-tracker%2FRivenCoordinatorDO/${id}`)).json;
    assert.equal((await object()).alarm, null); // not dirty: nothing will be written
    await ask({ data }, "DELETE", `/api/kv/riven-tracker/values/${encodeURIComponent("riven:latest:pc")}`);
    const { dataSource, latest } = await json("/api/snapshot");
    assert.deepEqual([dataSource, Object.keys(latest).sort()], ["do", ["bo", "braton", "fang", "lex", "soma"]]);
  });

  test("a failing market is recorded and changes no tick", async () => {
    await server.stop();
    server = await start({ TICK_SECONDS: 1, MARKET_TIMEOUT_MS: 300 });
    const before = sql("SELECT count(*) AS n FROM riven_bottom_tick")[0].n;
    await ask({ data }, "DELETE", `/api/kv/riven-tracker/values/${encodeURIComponent("riven:latest:pc")}`); // the coordinator's own map is what is asked for
    const { dataSource, latest } = await json("/api/snapshot");
    assert.equal(dataSource, "do");
    for (const [status, reason] of [[503, "status 503"], [429, "status 429"], ["garbage", "the answer is no JSON"], [404, "status 404"], ["hang", "timed out"]]) {
      Object.assign(market.control, { fail: 1, status, retryAfter: status === 429 ? 1 : null });
      await server.untilTrue(async () => {
        if (!((await (await admin("sample")).json()).failed > 0)) return false;
        const { failures, failuresLastHour } = await json("/api/health");
        return failuresLastHour > 0 && failures.some((failure) => failure.reason === reason);
      }, `a failure with ${status}: ${reason}`);
    }
    assert.equal(sql("SELECT count(*) AS n FROM riven_bottom_tick")[0].n, before);
    assert.deepEqual((await json("/api/snapshot")).latest, latest);
    Object.assign(market.control, { fail: 0, retryAfter: null });
    await server.untilTrue(async () => (await (await admin("sample")).json()).sampled > 0, "a sample after the faults");
  });

  test("the cron handler samples five", { skip: deployed && "cairn dev runs it on request", ...alone("dev") }, async () => {
    const tick = () => Math.floor(Date.now() / 1000), last = tick(); // in which all have been sampled
    await server.stop();
    server = await start({ TICK_SECONDS: 1 }, "dev"); // which runs it on request
    await server.untilTrue(() => tick() > last, "the next period");
    const known = sql("SELECT count(*) AS n FROM riven_bottom_tick")[0].n;
    market.asked.clear();
    market.load.most = 0;
    market.control.together = 5; // all of them are there before the first is answered
    assert.equal((await server.fetch("/cdn-cgi/handler/scheduled")).status, 200);
    market.control.together = 0;
    assert.equal(market.load.most, 5, "they are sampled at the same time");
    assert.deepEqual([market.asked.size, sql("SELECT count(*) AS n FROM riven_bottom_tick")[0].n], [5, known + 5]); // five a minute
  });

  test("trends, health and refusals", async () => {
    const trend = await json("/api/trends/lex?range=1h&points=10");
    assert.ok(trend.points.length >= 1 && trend.points.length <= 11);
    assert.ok((await json("/api/weapons")).hot.includes("lex"));
    for (const target of ["/api/trends/LEX", "/api/trends/lex?range=3y", "/api/trends/lex?points=0", "/api/trends/lex?from=soon", "/api/trends/lex?from=9&to=5", "/api/trends/lex?from=99999999999999999999"]) {
      const answer = await server.fetch(target);
      assert.equal(answer.status, 400, target);
      assert.match((await answer.json()).error, /\.$/);
    }
    assert.equal((await server.fetch("/admin/sample", { method: "POST" })).status, 401);
    assert.equal((await server.fetch("/admin/sample", { method: "POST", headers: { authorization: "Bearer wrong" } })).status, 401);
    assert.equal((await admin("lists", { method: "PUT", body: "{" })).status, 400);
    assert.equal((await admin("lists", { method: "PUT", body: '{"hot":["../x"],"cold":[]}' })).status, 400);
    assert.equal((await server.fetch("/api/nothing")).status, 404);
  });

  test("the page: empty it says what comes, a stand-in is called one, failures are shown, a failed load says so", { skip: noBrowser }, async () => {
    try {
      await withPage({ width: 390, expected: /ERR_|500/ }, async (page) => {
        await page.route("**/api/snapshot", (route) => route.fulfill({ json: { platform: "pc", dataSource: "do", updatedAt: Date.now(), latest: {} } }));
        await page.goto(server.url);
        await page.waitForSelector("text=No weapon has been sampled yet");
        await inspect(page, "riven-tracker-empty");
        await page.unroute("**/api/snapshot");
        await page.route("**/api/snapshot", (route) => route.fulfill({ status: 500, contentType: "text/html", body: "<h1>broken" }));
        await page.reload();
        await page.waitForSelector("text=The prices could not be loaded: the server answered with 500.");
        assert.ok(await page.isHidden("#empty"));
        await page.unroute("**/api/snapshot");
        await page.reload();
        await page.waitForSelector("#stand-in:has-text('These prices are made up.')");
        await page.waitForSelector("#failures summary:has-text('failed in the last hour')");
        await page.click("#failures summary");
        await page.waitForSelector("#failures li:has-text('timed out')");
        await inspect(page, "riven-tracker-failures");
      });
    } finally {
      await closeBrowser();
    }
  });

  test("the page sorts, searches and draws with axes, at every width and in every theme", { skip: noBrowser }, async () => {
    // A day of history, so that there is something to draw.
    const values = Array.from({ length: 1440 / 5 }, (_, n) => {
      const ts = new Date(Math.floor(Date.now() / 60_000) * 60_000 - n * 300_000).toISOString().replace(".000Z", "Z");
      return `('${ts}', 'pc', 'lex', ${Math.round(100 + 20 * Math.sin(n / 20))}, 12, ${Math.round(80 + 20 * Math.sin(n / 20))}, 110, 130, 'ok', '${ts}')`;
    });
    sql(`INSERT INTO riven_bottom_tick VALUES ${values.join(", ")} ON CONFLICT DO NOTHING`);
    try {
      for (const view of VIEWS)
        await withPage(view, async (page) => {
          await page.goto(server.url);
          await page.waitForFunction(() => document.querySelectorAll("#rows tr").length === 5);
          await page.click("th[data-by=weapon_slug] button");
          assert.equal(await page.textContent("#rows tr td"), "bo");
          await page.fill("#search", "nothing like it");
          await page.waitForSelector("#empty:has-text('No weapon is called')");
          await page.fill("#search", "lex");
          assert.equal(await page.$$eval("#rows tr", (rows) => rows.length), 1);
          await page.click("#rows tr button");
          await page.waitForSelector("#chart .line", { state: "attached" });
          assert.ok((await page.locator("#chart .y span").count()) >= 3 && (await page.locator("#chart .x span").count()) >= 3, "both axes");
          await page.locator("#chart .plot").hover({ position: { x: 60, y: 60 } });
          assert.match(await page.textContent("#chart .tip"), /\d\d:\d\dindex: \d+cheapest: \d+/);
          await page.focus("#chart .plot");
          await page.keyboard.press("ArrowLeft");
          assert.ok(await page.isVisible("#chart .tip"));
          await page.fill("#search", "");
          await inspect(page, "riven-tracker");
          await page.click("[data-range='1h']");
          await page.waitForFunction(() => /platinum now/.test(document.getElementById("summary").textContent));
        });
    } finally {
      await closeBrowser();
    }
  });
});
