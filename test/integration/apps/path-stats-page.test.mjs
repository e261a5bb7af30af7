// The page of path-stats in a browser: at both widths and in both themes, empty, filled, stale, denied and without its server.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test, { after, before, describe } from "node:test";
import { closeBrowser, inspect, noBrowser, VIEWS, withPage } from "../lib/browser.mjs";
import { app, event, HOUR, PathStats } from "./path-stats-lib.mjs";

describe("the page of path-stats", { skip: noBrowser }, () => {
  const stats = new PathStats();
  before(() => stats.start());
  after(async () => {
    await closeBrowser();
    await stats.stop();
  });

  const open = async (page) => {
    await page.goto(stats.server.url);
    await page.waitForURL(/\/dashboard\/$/);
    await page.waitForSelector("section h2");
  };

  test("empty, it says what to do; nothing loads for ever", () => withPage({ width: 390 }, async (page) => {
    await open(page);
    await page.waitForSelector("text=Nothing has been counted in the last 24 hours");
    await page.waitForSelector("text=No alert has been raised");
    await page.waitForSelector("text=Nothing is archived yet");
    assert.equal(await page.locator('text="None."').count(), 0);
    assert.equal(await page.locator("text=Loading").count(), 0);
    await inspect(page, "path-stats-empty");
  }));

  test("a site that answers in no time still has a chart of its response times", async () => {
    const hour = Math.floor(Date.now() / HOUR) * HOUR;
    await stats.send(Array.from({ length: 100 }, (_, n) => ({ ...event(n, hour - 2 * HOUR), path: "/quick", responseTime: 0 })));
    await stats.server.untilTrue(async () => (await stats.json("/paths/stats?path=/quick")).total.requests === 100, "what was sent");
    await withPage({}, async (page) => {
      await open(page);
      await page.click("#refresh");
      await page.click("td button:has-text('/quick')");
      await page.waitForSelector("text=requests to /quick");
      const line = await page.waitForSelector("[data-chart=Milliseconds] .line[stroke*=accent]", { state: "attached" });
      assert.match(await line.getAttribute("d"), /^M[\d.]+ 100\.00h0$/); // a dot on the ground
      const ticks = await page.$$eval("[data-chart=Milliseconds] .y span", (spans) => spans.map((span) => span.textContent));
      assert.deepEqual([ticks[0], ticks.at(-1)], ["0", "1"]);
    });
  });

  test("filled: axes, what is under the pointer and under the keys, at every width and in every theme", async () => {
    const hour = Math.floor(Date.now() / HOUR) * HOUR;
    const events = Array.from({ length: 1500 }, (_, n) => ({ ...event(n, hour - 23 * HOUR, { every: (22 * HOUR) / 1500 }), path: `/articles/${n % 9}/${"long-".repeat(n % 4)}title`, responseTime: 20 + (n % 97) + (n % 40 === 0 ? 400 : 0) }));
    await stats.send(events);
    await stats.server.untilTrue(async () => (await stats.json("/paths/stats?hours=24")).total.requests >= 1500, "what was sent");
    for (const view of VIEWS)
      await withPage(view, async (page) => {
        await open(page);
        await page.click("#refresh");
        await page.waitForFunction(() => document.querySelectorAll("[data-chart='Requests per hour'] rect").length > 40);
        for (const name of ["Requests per hour", "Milliseconds"]) {
          const chart = page.locator(`[data-chart='${name}']`);
          assert.ok((await chart.locator(".y span").count()) >= 3 && (await chart.locator(".x span").count()) >= 4, "both axes");
          await chart.scrollIntoViewIfNeeded();
          const box = await chart.locator(".plot").boundingBox();
          await page.mouse.move(box.x + box.width / 3, box.y + box.height / 2);
          await chart.locator(".tip").waitFor();
          assert.match(await chart.locator(".tip").textContent(), /\d\d:\d\d.* to .*\d\d:\d\d.*: [\d.,]+/);
          await chart.locator(".plot").focus();
          await page.keyboard.press("ArrowLeft");
          await chart.locator(".tip").waitFor();
        }
        assert.match(await page.textContent("#source"), /^From (the cache|the snapshot in KV|the database), updated .*ago\)$/);
        await inspect(page, "path-stats");
        await page.selectOption("select", "168");
        await page.waitForSelector("[data-chart='Requests per day']");
        // A week has more than one period of the salt; the last 24 hours have one in the hour before midnight.
        await page.waitForFunction(() => /visitors, counted once a day.*counts twice/.test(document.querySelector(".tiles").textContent));
      });
  });

  test("stale figures are shown and said to be stale", async () => {
    await stats.restart({ vars: { FRESH_SECONDS: 0 } });
    await stats.server.untilTrue(async () => (await stats.json("/paths")).stale, "a stale answer");
    await withPage({ width: 390 }, async (page) => {
      await open(page);
      await page.waitForSelector("#stale");
      await inspect(page, "path-stats-stale");
    });
  });

  test("it asks again every 60 s, at most every 30 s for the same, and not when it gets the focus", async () => {
    await stats.restart();
    await withPage({}, async (page) => {
      await page.clock.install();
      let asked = 0;
      page.on("request", (request) => { if (new URL(request.url()).pathname === "/paths") asked++; });
      await open(page);
      await page.waitForSelector("#source");
      assert.equal(asked, 1);
      const again = async () => {
        await page.evaluate(() => { dispatchEvent(new Event("focus")); document.dispatchEvent(new Event("visibilitychange")); });
        await page.clock.runFor(100);
      };
      await again();
      await page.clock.runFor(55_000);
      await again();
      assert.equal(asked, 1);
      const next = page.waitForRequest((request) => new URL(request.url()).pathname === "/paths");
      await page.clock.runFor(5_000);
      await next;
      assert.equal(asked, 2);
    });
    assert.match(readFileSync(path.join(app, "dashboard/data.ts"), "utf8"), /refreshInterval: 60_000, dedupingInterval: 30_000, revalidateOnFocus: false/);
  });

  test("with READ_TOKEN it asks for the token, and shows the figures then", async () => {
    await stats.restart({ vars: { READ_TOKEN: "for-readers" } });
    await withPage({ expected: /401/ }, async (page) => {
      await open(page);
      await page.waitForSelector("text=These figures need a token");
      await inspect(page, "path-stats-denied");
      await page.fill("input[name=token]", "for-readers");
      await page.click("text=Show the figures");
      await page.waitForSelector("td button");
    });
  });

  test("a failed load says so and never looks like nothing", async () => {
    await withPage({ width: 390, colorScheme: "dark", expected: /ERR_|500|Failed to load/ }, async (page) => {
      await page.route("**/paths/alerts", (route) => route.fulfill({ status: 500, contentType: "text/html", body: "<h1>broken</h1>" }));
      await page.route("**/paths/archives", (route) => route.abort());
      await stats.restart();
      await open(page);
      await page.waitForSelector(".failed:has-text('Could not be loaded: The server answered with 500.')");
      await page.waitForSelector(".failed:has-text('Could not be loaded: The server does not answer.')");
      assert.equal(await page.locator("text=No alert has been raised").count(), 0);
      assert.equal(await page.locator("text=Unexpected token").count(), 0);
      await inspect(page, "path-stats-failed");
    });
  });
});
