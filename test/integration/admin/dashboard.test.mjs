// The dashboard in a browser: every view shows what is there, by mouse and by keys, light and dark, on a wide screen and on a phone; what is
// changed in it is changed in the object.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import WebSocket from "ws";
import { closeBrowser, inspect, noBrowser, VIEWS, withPage } from "../lib/browser.mjs";
import { root, serve } from "../lib/server.mjs";
import { adminPort, ask } from "./lib.mjs";
import { fill } from "./shop/fill.mjs";

describe("the dashboard", { skip: noBrowser }, () => {
  let server, port, token, address, alice, socket;
  const api = async (method, target, body) => (await ask({ data: server.data }, method, target, body && { body })).json;
  const sql = async (text) => {
    const answer = await api("POST", `/api/objects/shop%2FCart/${alice}/sql`, { sql: text });
    assert.ok(answer.results, JSON.stringify(answer));
    return answer.results.at(-1).rows;
  };

  before(async () => {
    server = await serve(path.join(root, "test/integration/admin/shop"), { args: ["--admin", "127.0.0.1:0"] });
    port = await adminPort(server);
    token = readFileSync(path.join(server.data, "admin.token"), "utf8").trim();
    address = `http://127.0.0.1:${port}/#token=${token}`;
    await fill((target, init) => server.fetch(target, init));
    alice = (await api("GET", "/api/objects?namespace=shop/Cart&prefix=alice")).objects[0].id;
    socket = new WebSocket(`${server.url.replace("http", "ws")}/room/lobby`);
    await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
  });
  after(async () => {
    socket?.terminate();
    await closeBrowser();
    await server?.stop();
  });

  /** Opens the dashboard and waits for the overview. */
  const open = async (page, place = "") => {
    await page.goto(address);
    await page.waitForSelector(".chart");
    if (place) await page.evaluate((place) => { location.hash = place; }, place);
  };
  const shows = (page, text, selector = "main") => page.waitForFunction(([selector, text]) => [...document.querySelectorAll(selector)].some((element) => element.textContent.includes(text)), [selector, text]);

  test("asks for the token, says when it is wrong, and forgets it", () => withPage({ expected: /401/ }, async (page) => {
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.fill("input[name=token]", "wrong");
    await page.keyboard.press("Enter");
    await shows(page, "That is not the token", ".wrong");
    await page.fill("input[name=token]", token);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".chart");
    assert.ok(!page.url().includes(token));
    await page.click("[aria-label='Forget the token']");
    await page.waitForSelector("input[name=token]");
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
    await page.goto(address); // what `cairn dashboard` prints, in the same tab
    await page.waitForSelector(".chart");
    assert.ok(!page.url().includes(token));
  }));

  // [place, what is there]
  const views = () => [
    ["#/overview", ["Requests", "Log flush", "shop/Cart", "Memory of the process", "JavaScript", "Nothing has given way"]],
    ["#/workers", ["shop", "CART", "catalogue", "*/5 * * * *"]],
    ["#/objects", ["alice@example.com", "cart-0003", "shop/Cart"]],
    [`#/object/shop%2FCart/${alice}`, ["alice@example.com", "compass", "Schema"]],
    [`#/object/shop%2FCart/${alice}/pairs`, ["customer", '"name":"Alice"', "$date"]],
    [`#/object/shop%2FCart/${alice}/history`, ["Restore to this moment", "11 of 11"]],
    [`#/object/shop%2FRoom/lobby/sockets`, ["visitor", "hibernatable"]],
    ["#/d1", ["catalogue", "shop: DB"]],
    ["#/d1/shop-catalogue", ["product"]],
    ["#/kv", ["SESSIONS"]],
    ["#/kv/shop-sessions", ["session-1003", "Firefox"]],
    ["#/r2", ["shop-images"]],
    ["#/r2/shop-images", ["readme.txt", "products/"]],
    ["#/r2/shop-images?prefix=products%2F", ["tent.png", "image/png"]],
    ["#/queues", ["orders", "orders-failed"]],
    ["#/queues/orders-failed", ["broken", "1 message"]],
    ["#/crons", ["*/5 * * * *", "0 3 29 2 *"]],
    ["#/logs", ["All workers"]],
    ["#/versions", ["Nothing was deployed by upload", "Nothing was changed yet"]],
    ["#/nothing", ["There is no such view"]],
  ];
  for (const { width, colorScheme } of VIEWS)
    test(`every view shows what is there, and axe-core finds nothing serious: ${colorScheme}, ${width} wide`, () => withPage({ width, colorScheme }, async (page) => {
      await open(page);
      const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(back, colorScheme === "dark" ? "rgb(18, 20, 22)" : "rgb(246, 246, 244)");
      for (const [place, texts] of views()) {
        await page.evaluate((place) => { location.hash = place; }, place);
        for (const text of texts) await shows(page, text);
        assert.equal(await page.locator("main .state.bad").count(), 0, place);
        await inspect(page, `dashboard-${place.replace(/[^a-z0-9]+/gi, "-").slice(2, 40)}`);
      }
    }));

  test("on a phone, Objects and Cron show every column: nothing is cut off", () => withPage({ width: 390, colorScheme: "light" }, async (page) => {
    for (const [place, texts] of [["#/objects", ["alice@example.com", "shop/Cart", "16 KiB", "ago"]], ["#/crons", ["*/5 * * * *", "Run now", "never"]]]) {
      await open(page, place);
      for (const text of texts) await shows(page, text, "td");
      const cut = await page.evaluate(() => [...document.querySelectorAll("main td")].filter((cell) => {
        const box = cell.getBoundingClientRect();
        return box.width > 0 && (box.right > innerWidth || box.left < 0 || cell.scrollWidth > cell.clientWidth + 1);
      }).map((cell) => cell.textContent));
      assert.deepEqual(cut, [], place);
      assert.ok(await page.evaluate(() => document.querySelector(".table-box").scrollWidth <= document.querySelector(".table-box").clientWidth), `${place} scrolls sideways`);
    }
    await page.click("text=Run now");
    await shows(page, "hand", "td");
  }));

  test("charts have both axes, and the time and values under the pointer and the keys", () => withPage({ width: 1280 }, async (page) => {
    await open(page);
    const chart = page.locator(".chart").nth(5);
    await page.waitForFunction(() => /MiB/.test(document.querySelectorAll(".chart")[5].querySelector(".axis.y").textContent));
    assert.match(await chart.locator(".axis.x").textContent(), /^(\d\d:\d\d:\d\d){3}$/);
    await page.waitForFunction(() => document.querySelectorAll(".chart")[5].querySelector(".line"));
    await chart.locator(".plot").hover();
    await page.waitForFunction(() => /^at \d\d:\d\d:\d\d$/.test(document.querySelectorAll(".chart")[5].querySelector("time").textContent));
    assert.match(await chart.locator(".legend").textContent(), /resident \d.* MiB/);
    await page.mouse.move(0, 0);
    await chart.locator(".plot").focus();
    await page.keyboard.press("ArrowLeft");
    await page.waitForFunction(() => /^at /.test(document.querySelectorAll(".chart")[5].querySelector("time").textContent));
  }));

  test("keys: g and a letter, / to search, j and k, Enter, Escape, ?, t", () => withPage({}, async (page) => {
    await open(page);
    await page.keyboard.press("g");
    await page.keyboard.press("o");
    await shows(page, "cart-0003", "td");
    await page.keyboard.press("/");
    await page.keyboard.type("alice");
    await page.waitForFunction(() => document.querySelectorAll("main tbody tr").length === 1);
    await page.keyboard.press("Escape");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await shows(page, "alice@example.com", "h1");
    await page.keyboard.press("]");
    await shows(page, "New pair");
    await page.keyboard.press("Escape");
    await shows(page, "Objects", "h1");
    await page.keyboard.press("?");
    await shows(page, "load again", "dialog");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.keyboard.press("t");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  }));

  test("an object is found by its id, by the beginning of it, and sorted", () => withPage({}, async (page) => {
    for (const q of [alice, alice.slice(0, 10)]) {
      await open(page, `#/objects?q=${q}`);
      await page.waitForFunction(() => document.querySelectorAll("main tbody tr").length === 1);
      await shows(page, "alice@example.com", "td");
    }
    await open(page, "#/objects?q=nobody");
    await shows(page, "Nothing found");
    await open(page, "#/objects?ns=shop%2FCart");
    await page.click("text=Alarm");
    await page.waitForFunction(() => document.querySelectorAll("main tbody tr").length === 1);
    await shows(page, "alice@example.com", "td");
  }));

  test("a pair, a cell, the alarm are changed; SQL runs; a moment is restored, and that undone", () => withPage({ expected: /403/ }, async (page) => {
    await open(page, `#/object/shop%2FCart/${alice}/pairs`);
    await page.click("tr:has-text('customer')");
    await page.fill("dialog textarea", '{"name":"Alice","language":"de"}');
    await page.click("dialog button[type=submit]");
    await shows(page, '"language":"de"', "td");
    const entries = (await api("GET", `/api/objects/shop%2FCart/${alice}/kv?prefix=customer`)).entries;
    assert.deepEqual(entries[0].value, { name: "Alice", language: "de" });

    await page.click(".tabs >> text=Tables");
    await page.click("td >> text=compass");
    await page.fill("dialog textarea", "sextant");
    await page.click("dialog button[type=submit]");
    await shows(page, "sextant", "td");
    assert.deepEqual(await sql("SELECT count(*) FROM item WHERE product = 'sextant'"), [[1]]);

    await page.click(".facts button >> text=Change");
    await page.fill("dialog input", "2033-05-18T03:33:20");
    await page.click("dialog button[type=submit]");
    await shows(page, "days", ".facts");
    assert.equal((await api("GET", `/api/objects/shop%2FCart/${alice}`)).alarm, new Date("2033-05-18T03:33:20").getTime());

    await page.click(".tabs >> text=Console");
    await page.fill("textarea", "SELECT product, amount * 2 AS twice FROM item WHERE product = 'sextant'");
    await page.keyboard.press("Control+Enter");
    await shows(page, "twice", "th");
    await page.fill("textarea", "DELETE FROM item");
    await page.keyboard.press("Control+Enter");
    await shows(page, "this statement writes", ".state.bad");
    await page.click("text=Allow writes");
    await page.keyboard.press("Escape");
    await page.click("button >> text=Run");
    await shows(page, "8 written");
    assert.deepEqual(await sql("SELECT count(*) FROM item"), [[0]]);

    await page.click(".tabs >> text=History");
    await page.focus("input[type=range]");
    await page.keyboard.press("ArrowLeft");
    await page.click("text=Restore to this moment");
    await page.click("dialog >> text=Restore >> nth=-1");
    await shows(page, "Restored.");
    assert.deepEqual(await sql("SELECT count(*) FROM item WHERE product = 'sextant'"), [[1]]);
    await page.click(".undo .button");
    await page.click("dialog button[type=submit]");
    await page.waitForSelector("dialog", { state: "detached" });
    await server.untilTrue(async () => (await sql("SELECT count(*) FROM item"))[0][0] === 0, "the undo");
  }));

  test("what is typed stays, whatever the page loads or draws meanwhile (I1)", () => withPage({}, async (page) => {
    // In the console: the object is loaded again after a write, and its first table with rows is another one then.
    await open(page, "#/object/shop%2FCart/cart-0006/sql");
    const text = "DELETE FROM item; INSERT INTO event VALUES(1, 'emptied')";
    await page.fill("textarea", text);
    await page.click("text=Allow writes");
    const facts = await page.textContent(".facts");
    await page.click("button >> text=Run");
    await page.waitForFunction((facts) => document.querySelector(".facts").textContent !== facts, facts);
    assert.equal(await page.inputValue("textarea"), text);
    // In dialogs: a message appears and goes, which draws them again.
    const drawn = async (typed) => {
      for (const [selector, value] of Object.entries(typed)) await page.fill(selector, value);
      await page.waitForSelector(".toast", { state: "detached" }); // some seconds after it came: usually while this waits
      for (const [selector, value] of Object.entries(typed)) assert.equal(await page.inputValue(selector), value);
    };
    await open(page, "#/object/shop%2FCart/cart-0006/pairs");
    await page.click("tr:has-text('total')");
    await page.click("dialog button[type=submit]");
    await page.waitForSelector(".toast");
    await page.click(".facts button >> text=Set");
    await drawn({ "dialog input": "2033-05-18T03:33:20" });
    await page.click("dialog button[type=submit]");
    await shows(page, "the alarm is set", ".toast");
    await page.evaluate(() => { location.hash = "#/kv/shop-sessions"; });
    await page.click("tr:has-text('session-1004')");
    await drawn({ "dialog textarea": "typed", "dialog input[name=metadata]": '{"typed":true}', "dialog input[name=expiration]": "2033-05-18T03:33:20" });
  }));

  test("an object is deleted only when its name is typed, and comes back from its history", () => withPage({ expected: /404/ }, async (page) => {
    await open(page, "#/object/shop%2FCart/cart-0007");
    await page.click(".head >> text=Delete");
    assert.ok(await page.isDisabled("dialog button[type=submit]"));
    await page.fill("dialog input", "cart-0007");
    await page.click("dialog button[type=submit]");
    await shows(page, "This object is not there");
    assert.equal((await api("GET", "/api/objects?namespace=shop/Cart&prefix=cart-0007")).objects.length, 0);
    await page.click("text=Restore to this moment");
    await page.click("dialog button[type=submit]");
    await page.waitForSelector(".tabs");
    await server.untilTrue(async () => (await api("GET", "/api/objects?namespace=shop/Cart&prefix=cart-0007")).objects.length === 1, "the object");
  }));

  test("services: SQL on D1, a value of KV, a picture of R2, dead letters, a run of cron", () => withPage({}, async (page) => {
    await open(page, "#/d1/shop-catalogue");
    await page.fill("textarea", "SELECT 1");
    await page.click(".chip >> text=product");
    await page.fill("textarea", "SELECT 2");
    await page.click(".chip >> text=product"); // again: its statement is there again
    await page.click("button >> text=Run");
    await shows(page, "compass", ".result td");
    await page.click("text=History");
    await shows(page, "Restore to this moment");

    await page.evaluate(() => { location.hash = "#/kv/shop-sessions"; });
    await page.click("tr:has-text('session-1003')");
    await page.fill("dialog textarea", "changed here");
    await page.click("dialog button[type=submit]");
    await page.waitForSelector("dialog", { state: "detached" });
    assert.equal((await ask({ data: server.data }, "GET", "/api/kv/shop-sessions/values/session-1003")).text, "changed here");

    await page.evaluate(() => { location.hash = "#/r2/shop-images?prefix=products%2F"; });
    await page.click("tr:has-text('tent.png')");
    await page.waitForFunction(() => document.querySelector("dialog img")?.naturalWidth === 64);
    await page.keyboard.press("Escape");

    await page.evaluate(() => { location.hash = "#/queues/orders-failed"; });
    await page.click("button >> text=Redrive");
    await page.click("dialog button[type=submit]");
    await shows(page, "sent again", ".toast");

    await page.evaluate(() => { location.hash = "#/crons"; });
    await page.click("tr:has-text('*/5') >> text=Run now");
    await shows(page, "hand", "td");
  }));

  test("what is stored does not run", () => withPage({}, async (page) => {
    const name = `<img src=x onerror="document.title='run'">`;
    const script = `<svg xmlns="http://www.w3.org/2000/svg" width="7" height="7" onload="parent.document.title='run'"><script>parent.document.title='run'</script></svg>`;
    await server.fetch(`/cart/${encodeURIComponent(name)}/add`, { method: "POST", body: JSON.stringify([name, 1, 1]) });
    await server.fetch("/images/evil.svg", { method: "POST", body: script, headers: { "content-type": "image/svg+xml" } });
    await server.fetch("/images/evil.html", { method: "POST", body: "<script>parent.document.title='run'</script>", headers: { "content-type": "text/html" } });
    await open(page, "#/objects");
    await page.click(`tr:has-text("onerror")`);
    await shows(page, name, "td");
    await shows(page, name, "h1");
    await page.evaluate(() => { location.hash = "#/r2/shop-images"; });
    await page.click("tr:has-text('evil.svg')");
    await page.waitForFunction(() => document.querySelector("dialog img")?.naturalWidth === 7);
    await page.keyboard.press("Escape");
    await page.click("tr:has-text('evil.html')");
    await shows(page, "<script>", "dialog pre");
    assert.doesNotMatch(await page.title(), /^run$/);
    assert.equal(await page.locator("main img, main script, dialog script").count(), 0);
  }));

  test("the log of all and of one object is live", () => withPage({}, async (page) => {
    await open(page, "#/logs");
    await shows(page, "live", ".badge");
    await server.fetch("/fail");
    await shows(page, "the shop is closed", ".line");
    await page.fill("[data-search]", "no such line");
    await shows(page, "No line passes");
    await page.evaluate((id) => { location.hash = `#/object/shop%2FCart/${id}/log`; }, alice);
    await shows(page, "live", ".badge");
    await server.fetch("/cart/cart-0001/add", { method: "POST", body: '["yurt",1,1]' });
    await server.fetch("/cart/alice@example.com/add", { method: "POST", body: '["sledge",1,1]' });
    await shows(page, "added 1 × sledge", ".line");
    assert.equal(await page.locator(".line", { hasText: "yurt" }).count(), 0);
  }));

  test("a server that is gone is said to be gone", () => withPage({ expected: /ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/ }, async (page) => {
    await open(page);
    await server.stop();
    await shows(page, "no answer", ".badge");
    await page.evaluate(() => { location.hash = "#/objects"; });
    await shows(page, "the server does not answer", ".state.bad");
    await page.evaluate(() => { location.hash = "#/logs"; });
    await shows(page, "the server does not answer", ".badge");
  }));
});
