// RivenTracker against its stand-in market: what is sampled, what is kept, what survives. CAIRN_TEST_FULL=1 samples
// ten thousand ticks instead of a thousand.
import assert from "node:assert/strict";
import path from "node:path";
import test, { after, before, describe } from "node:test";
import { startMarket } from "../../../apps/riven-tracker/market/server.mjs";
import { closeBrowser, fits, noBrowser, withPage } from "../lib/browser.mjs";
import { run } from "../lib/cairn.mjs";
import { root, serve, tempDir } from "../lib/server.mjs";
import { load } from "../lib/typescript.mjs";

const app = path.join(root, "apps/riven-tracker");
const token = "a-token-for-tests";

describe("ticks", () => {
  test("the index is the weighted mean of the ten cheapest, bait left out", async () => {
    const { bottomPrice, makeTick } = await load(path.join(app, "src/tick.ts"));
    assert.equal(bottomPrice([]), null);
    assert.equal(bottomPrice([100]), 100);
    assert.equal(bottomPrice([100, 200]), Math.round(((100 + 0.8 * 200) / 1.8) * 100) / 100);
    assert.equal(bottomPrice([1, 100, 100, 100]), 100);
    assert.equal(bottomPrice([...Array(10).fill(50), 9999]), 50);
    const listings = [30, 10, 20, 50, 40].map((price) => ({ price, active: true })).concat({ price: 1, active: false });
    const tick = makeTick(listings, "pc", "lex", 1_794_722_459_999, 60);
    assert.deepEqual([tick.ts % 60_000, tick.min_price, tick.p5_price, tick.p10_price, tick.active_count, tick.source_status], [0, 10, 50, null, 5, "ok"]);
    assert.equal(makeTick([], "pc", "lex", 0, 60).source_status, "empty");
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
    const all = { MARKET_URL: market.url, ADMIN_TOKEN: token, TICK_SECONDS: 86400, SNAPSHOT_SECONDS: 2, MARKET_TRIES: 2, ...vars };
    return serve(app, { data, lanes: 2, command, args: Object.entries(all).flatMap(([name, value]) => ["--var", `${name}=${value}`]) });
  };
  const admin = (target, init = {}) => server.fetch(`/admin/${target}`, { method: "POST", ...init, headers: { authorization: `Bearer ${token}` } });
  const json = async (target) => (await server.fetch(target)).json();
  const sql = (text) => JSON.parse(run(["d1", "execute", "riven-tracker", "--command", text, "--json", "--data", data], { cwd: app }).stdout)[0].results;

  before(async () => {
    market = await startMarket();
    const applied = run(["d1", "migrations", "apply", "riven-tracker", "--data", data], { cwd: app });
    assert.equal(applied.status, 0, applied.stderr);
    server = await start();
  });
  after(async () => {
    await server?.stop();
    await market?.stop();
  });

  test("eight workers at once sample everything once, also across kill -9", async () => {
    const total = process.env.CAIRN_TEST_FULL ? 10_000 : 1_000;
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

  test("the snapshot goes to KV, at most once per interval, and is answered from there", async () => {
    await server.untilTrue(async () => (await json("/api/snapshot")).source === "kv", "a snapshot in KV");
    const seen = new Set();
    const began = Date.now();
    await admin("lists", { method: "PUT", body: JSON.stringify({ hot: ["lex", "soma"], cold: ["braton", "bo", "fang"] }) });
    while (seen.size < 3) {
      await admin("sample");
      await admin("lists", { method: "PUT", body: JSON.stringify({ hot: ["lex", "soma"], cold: ["braton", "bo", "fang"] }) });
      const snapshot = await json("/api/snapshot");
      assert.equal(snapshot.source, "kv");
      seen.add(snapshot.updatedAt);
      assert.ok(Date.now() - began < 60_000, "no further snapshots came");
    }
    const times = [...seen].sort();
    for (let i = 1; i < times.length; i++) assert.ok(times[i] - times[i - 1] >= 2000, `snapshots after ${times[i] - times[i - 1]} ms`);
  });

  test("a failing market is recorded and changes no tick", async () => {
    await server.stop();
    server = await start({ TICK_SECONDS: 1, MARKET_TIMEOUT_MS: 300 });
    const before = sql("SELECT count(*) AS n FROM riven_bottom_tick")[0].n;
    for (const [status, reason] of [[503, "status 503"], [429, "status 429"], ["garbage", "the answer is no JSON"], [404, "status 404"], ["hang", "timed out"]]) {
      Object.assign(market.control, { fail: 1, status, retryAfter: status === 429 ? 1 : null });
      await server.untilTrue(async () => (await (await admin("sample")).json()).failed > 0, `a failure with ${status}`);
      assert.match((await json("/api/health")).lastFailure, new RegExp(`: ${reason}$`));
    }
    assert.equal(sql("SELECT count(*) AS n FROM riven_bottom_tick")[0].n, before);
    Object.assign(market.control, { fail: 0, retryAfter: null });
    await server.untilTrue(async () => (await (await admin("sample")).json()).sampled > 0, "a sample after the faults");
  });

  test("the cron handler samples", async () => {
    await server.stop();
    server = await start({ TICK_SECONDS: 1 }, "dev"); // which runs it on request
    const known = sql("SELECT count(*) AS n FROM riven_bottom_tick")[0].n;
    await server.untilTrue(async () => {
      assert.equal((await server.fetch("/cdn-cgi/handler/scheduled")).status, 200);
      return sql("SELECT count(*) AS n FROM riven_bottom_tick")[0].n > known;
    }, "ticks by the cron handler");
  });

  test("trends, health and refusals", async () => {
    const trend = await json("/api/trends/lex?range=1h&points=10");
    assert.ok(trend.points.length >= 1 && trend.points.length <= 11);
    assert.ok((await json("/api/weapons")).hot.includes("lex"));
    for (const target of ["/api/trends/LEX", "/api/trends/lex?range=3y", "/api/trends/lex?points=0", "/api/trends/lex?from=soon", "/api/trends/lex?from=9&to=5"]) {
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

  test("the page sorts, searches and draws, on a phone's width too", { skip: noBrowser }, async () => {
    try {
      await withPage({ width: 380, colorScheme: "dark" }, async (page) => {
        await page.goto(server.url);
        await page.waitForFunction(() => document.querySelectorAll("#rows tr").length === 5);
        await page.click("th[data-by=weapon_slug] button");
        assert.equal(await page.textContent("#rows tr td"), "bo");
        await page.fill("#search", "lex");
        assert.equal(await page.$$eval("#rows tr", (rows) => rows.length), 1);
        await page.click("#rows tr");
        await page.waitForSelector("#chart .line", { state: "attached" });
        await page.click("[data-range='1h']");
        await page.waitForFunction(() => /platinum now/.test(document.getElementById("summary").textContent));
        assert.ok(await fits(page));
        if (process.env.SCREENSHOTS) {
          await page.fill("#search", "");
          await page.screenshot({ path: path.join(process.env.SCREENSHOTS, "riven-tracker-phone.png") });
          await page.setViewportSize({ width: 1100, height: 800 });
          await page.emulateMedia({ colorScheme: "light" });
          await page.screenshot({ path: path.join(process.env.SCREENSHOTS, "riven-tracker.png") });
        }
      });
    } finally {
      await closeBrowser();
    }
  });
});
