// Who deployed what, when and with which token: in the log, the control API and the dashboard (DA); and the dashboard's view of
// versions: what differs, the roll-out, the rollback.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { closeBrowser, inspect, noBrowser, VIEWS, withPage } from "../lib/browser.mjs";
import { load } from "../lib/typescript.mjs";
import { run } from "../lib/cairn.mjs";
import { root } from "../lib/server.mjs";
import { adminToken, Client, dataFolder, empty, hello, token } from "./lib.mjs";

const text = (name, value) => ({ type: "plain_text", name, text: value });
async function audit(server, data, parameters = "", bearer = adminToken(data)) {
  const response = await fetch(`${server.admin}/api/audit${parameters}`, { headers: { authorization: `Bearer ${bearer}` } });
  return { status: response.status, ...(await response.json()) };
}

test("DA: each change is noted with its token, durably, and what was refused is not", async (t) => {
  const data = dataFolder(t);
  let server = await empty(t, data);
  const laptop = token(data, "laptop"), ci = token(data, "ci");
  const one = new Client(server, laptop), two = new Client(server, ci);
  const gone = token(data, "gone", "read");
  assert.equal(run(["tokens", "revoke", "gone", "--data", data]).status, 0);
  await one.deploy("a", hello("1"));
  await two.deploy("a", hello("2"), { metadata: { annotations: { "workers/message": "second" } } });
  assert.equal((await two.script("a", "export default {")).status, 400);
  await two.result("PUT", "workers/scripts/a/secrets", { json: { name: "KEY", text: "never noted", type: "secret_text" } });
  const { items } = await one.result("GET", "workers/scripts/a/versions");
  await one.result("POST", "workers/scripts/a/deployments", { json: { versions: [{ version_id: items[2].id, percentage: 100 }] } });
  await one.result("PUT", "workers/scripts/a/schedules", { json: [{ cron: "*/5 * * * *" }] });
  await one.result("POST", "queues", { json: { queue_name: "jobs" } });
  await two.result("DELETE", "workers/scripts/a");
  const shown = (entries) => entries.map(({ by, token, action, worker, detail }) => [by, token === laptop.id ? "laptop" : token === ci.id ? "ci" : token, action, worker, detail]);
  const expected = [
    ["ci", "ci", "delete", "a", ""],
    ["laptop", "laptop", "create", "", "queue jobs"],
    ["laptop", "laptop", "schedules", "a", "*/5 * * * *"],
    ["laptop", "laptop", "roll-out", "a", `${items[2].id} 100.00%`],
    ["ci", "ci", "secret put", "a", "KEY"],
    ["ci", "ci", "deploy", "a", items[1].id],
    ["laptop", "laptop", "deploy", "a", items[2].id],
    ["admin", "", "token revoke", "", "gone (read)"],
    ["admin", "", "token create", "", "gone (read)"],
    ["admin", "", "token create", "", "ci (read,deploy,data)"],
    ["admin", "", "token create", "", "laptop (read,deploy,data)"],
  ];
  const { entries } = await audit(server, data);
  assert.deepEqual(shown(entries), expected);
  assert.ok(entries.every(({ time }, i) => time > 1.7e12 && (i === 0 || time <= entries[i - 1].time)));
  await server.until(/a was deleted by ci/);
  await server.kill();
  server = await empty(t, data);
  assert.deepEqual(shown((await audit(server, data)).entries), expected);
  assert.doesNotMatch(readFileSync(path.join(data, "deployed/state.json"), "utf8"), /never noted/);
  assert.ok(!JSON.stringify((await audit(server, data)).entries).includes(gone.token));
  // A part of it; and for the operator alone.
  assert.equal((await audit(server, data, "?worker=a&limit=2")).entries.length, 2);
  assert.deepEqual((await audit(server, data, "?worker=nobody")).entries, []);
  assert.equal((await audit(server, data, "?limit=x")).status, 400);
  assert.equal((await audit(server, data, "", laptop.token)).status, 403);
  assert.equal((await audit(server, data, "", "wrong")).status, 401);
});

test("what differs between the bindings of two versions", async (t) => {
  const { difference } = await load(path.join(root, "dashboard/views/versions.jsx"));
  assert.ok(t);
  assert.deepEqual(difference([text("A", "1"), text("B", "1"), { type: "secret_text", name: "S" }], [text("B", "2"), text("C", "1"), { type: "secret_text", name: "S" }]), [
    { name: "A", kind: "removed", before: 'plain text {"text":"1"}', after: undefined },
    { name: "B", kind: "changed", before: 'plain text {"text":"1"}', after: 'plain text {"text":"2"}' },
    { name: "C", kind: "added", before: undefined, after: 'plain text {"text":"1"}' },
  ]);
});

describe("the view of versions", { skip: noBrowser }, () => {
  let server, client, address, cleanups = [];
  const context = { after: (callback) => cleanups.push(callback) };
  before(async () => {
    const data = dataFolder(context);
    server = await empty(context, data);
    client = new Client(server, token(data, "laptop"));
    await client.deploy("shop", hello("one"), { metadata: { bindings: [text("MODE", "old"), text("GONE", "x")], annotations: { "workers/tag": "v1" } } });
    await client.deploy("shop", hello("two"), { metadata: { bindings: [text("MODE", "new"), text("FRESH", "y")], annotations: { "workers/tag": "v2", "workers/message": "the second" } } });
    address = `${server.admin}/#token=${adminToken(data)}`;
  });
  after(async () => {
    await closeBrowser();
    for (const cleanup of cleanups.reverse()) await cleanup();
  });
  const shows = (page, text, selector = "main") => page.waitForFunction(([selector, text]) => [...document.querySelectorAll(selector)].some((element) => element.textContent.includes(text)), [selector, text]);
  const open = async (page, place) => {
    await page.goto(address);
    await page.waitForSelector(".chart");
    await page.evaluate((place) => { location.hash = place; }, place);
  };
  const serving = async () => (await client.result("GET", "workers/scripts/shop/deployments")).deployments[0].versions.map(({ percentage }) => percentage);

  for (const { width, colorScheme } of VIEWS)
    test(`shows workers, versions, what differs and who did it: ${colorScheme}, ${width} wide`, () => withPage({ width, colorScheme }, async (page) => {
      await open(page, "#/versions");
      for (const part of ["shop", "laptop", "deploy"]) await shows(page, part);
      await inspect(page, "dashboard-versions");
      await page.evaluate(() => { location.hash = "#/versions/shop"; });
      for (const part of ["the second", "v1", "100 %", "Roll-out", "Who changed what"]) await shows(page, part);
      for (const part of ["removed", "added", "changed", "FRESH", "GONE"]) await shows(page, part, "td");
      assert.equal(await page.locator("main .state.bad").count(), 0);
      await inspect(page, "dashboard-versions-shop");
    }));

  test("the slider rolls a version out, and a rollback takes it back", () => withPage({ width: 1280 }, async (page) => {
    await open(page, "#/versions/shop");
    await shows(page, "FRESH", "td");
    await page.locator("input[type=range]").fill("30");
    await page.click("text=Roll out to 30 %");
    await page.click("dialog button[type=submit]");
    await shows(page, "30 %", "td");
    assert.deepEqual((await serving()).sort(), [30, 70]);
    await page.click("text=Deploy to 100 %");
    await page.click("dialog button[type=submit]");
    await page.waitForFunction(() => /100 %/.test(document.querySelector(".facts").textContent));
    assert.equal(await server.text("/"), "one");
    await page.click(".head-tools >> text=Roll back");
    await page.click("dialog button[type=submit]");
    await shows(page, "rolled back", ".toast");
    assert.equal(await server.text("/"), "two");
    await shows(page, "admin", "td"); // who did it: the operator
  }));

  test("a version that does not serve is told in all views, with the way back", () => withPage({ width: 1280 }, async (page) => {
    const data = dataFolder(context);
    let other = await empty(context, data);
    const mine = new Client(other, token(data, "laptop"));
    await mine.deploy("ill", hello("one"));
    await mine.deploy("ill", hello("two"));
    const [{ id: version }] = (await mine.result("GET", "workers/scripts/ill/versions")).items;
    await mine.deploy("well", hello("well"));
    await other.stop();
    writeFileSync(path.join(data, "deployed/code", version, "src/index.js"), "damaged");
    other = await empty(context, data);
    await page.goto(`${other.admin}/#token=${adminToken(data)}`);
    await page.waitForSelector(".chart");
    const sees = async (place, ...texts) => {
      await page.evaluate((place) => { location.hash = place; }, place);
      for (const text of texts) await shows(page, text);
    };
    await sees("#/versions", "does not serve", "well");
    await inspect(page, "dashboard-versions-broken");
    await sees("#/versions/ill", "src/index.js is damaged", `Version ${version.slice(0, 8)} does not serve`, "cairn rollback --name ill", "100 % fails");
    await inspect(page, "dashboard-versions-ill");
    await sees("#/workers", "src/index.js is damaged");
    await inspect(page, "dashboard-workers-ill");
    await page.evaluate(() => { location.hash = "#/versions/ill"; });
    await page.getByRole("button", { name: "Roll back" }).first().click();
    await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
    await page.waitForFunction(() => !document.querySelector("main .state.bad"));
    mine.server = other;
    assert.equal((await mine.result("GET", "workers/scripts/ill/deployments")).deployments.length, 3);
  }));
});
