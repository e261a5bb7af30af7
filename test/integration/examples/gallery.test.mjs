// The examples as `make run` serves them: all on one server, each on its own host. First their APIs, then
// their pages in a browser.
import assert from "node:assert/strict";
import { readdirSync, existsSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import test, { after, before, describe } from "node:test";
import { closeBrowser, inspect, noBrowser, VIEWS, withPage } from "../lib/browser.mjs";
import { ask } from "../admin/lib.mjs";
import { EXAMPLES, exampleInC } from "../lib/module.mjs";
import { root, serve, tempDir } from "../lib/server.mjs";
import { load } from "../lib/typescript.mjs";

const projects = readdirSync(path.join(root, "examples"))
  .filter((name) => name !== "hello" && existsSync(path.join(root, "examples", name, "wrangler.toml")))
  .sort((a, b) => (b === "gallery") - (a === "gallery"));
const data = tempDir();
const inC = process.env.CAIRN_EXAMPLES_IN === "c"; // gallery-c.test.mjs
const folderOf = inC ? exampleInC : (name) => path.join(root, "examples", name);
const folders = projects.map(folderOf);
const start = () => serve(folders, { data, lanes: 2 });

let server;
before(async () => { server = await start(); });
after(() => server?.stop());

/** A request to an example's host; an object as body is sent as JSON. Resolves to {status, headers, value}. */
function call(folder, target, input, { method = input === undefined ? "GET" : "POST", headers = {} } = {}) {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port: server.port, path: target, method, headers: { host: `${folder}.localhost`, ...headers }, timeout: 60_000 };
    const request = http.request(options, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => { text += part; });
      response.on("end", () => {
        try {
          resolve({ status: response.statusCode, headers: response.headers, value: JSON.parse(text) });
        } catch {
          resolve({ status: response.statusCode, headers: response.headers, value: text });
        }
      });
      response.on("error", reject);
    });
    request.on("error", reject);
    request.end(input === undefined ? undefined : typeof input === "string" ? input : JSON.stringify(input));
  });
}

describe("APIs", () => {
  test("rate-limiting lets in exactly the limit, whatever comes at once, for each user", async () => {
    const answers = await Promise.all(Array.from({ length: 25 }, () => call("rate-limiting", "/api/hello?user=burst")));
    assert.equal(answers.filter(({ status }) => status === 200).length, 10);
    const refused = answers.find(({ status }) => status === 429);
    assert.match(refused.value.error, /^Too many requests: 10 in 10 s/);
    assert.ok(Number(refused.headers["retry-after"]) >= 1 && Number(refused.headers["retry-after"]) <= 10);
    assert.equal((await call("rate-limiting", "/api/hello?user=other")).status, 200);
    assert.equal((await call("rate-limiting", "/api/hello?user=")).status, 400);
  });

  test("rate-limiting: the window moves on, and lets in as many again", async () => {
    // The burst of the test before fills the window; when its first request is older than that, others are let in, never more than the limit.
    await server.untilTrue(async () => (await call("rate-limiting", "/api/hello?user=burst")).status === 200, "the end of the window");
    const answers = await Promise.all(Array.from({ length: 12 }, () => call("rate-limiting", "/api/hello?user=burst")));
    assert.ok(answers.filter(({ status }) => status === 200).length <= 9);
  });

  test("distributed-lock: one holder, waiters in order, fencing", async () => {
    const lock = (action, input) => call("distributed-lock", `/locks/t/${action}`, input);
    const first = (await lock("acquire", { owner: "a", ttlMs: 60_000 })).value;
    assert.equal(first.token, 1);
    assert.equal((await lock("acquire", { owner: "b" })).status, 409);
    const second = lock("acquire", { owner: "b", ttlMs: 60_000, waitMs: 20_000 });
    await server.untilTrue(async () => (await call("distributed-lock", "/locks/t")).value.waiting.length === 1, "b waiting");
    const third = lock("acquire", { owner: "c", ttlMs: 60_000, waitMs: 20_000 });
    await server.untilTrue(async () => (await call("distributed-lock", "/locks/t")).value.waiting.join() === "b,c", "c waiting");
    assert.equal((await lock("release", { token: 1 })).status, 200);
    assert.deepEqual([(await second).value.owner, (await second).value.token], ["b", 2]);
    assert.equal((await lock("write", { owner: "b", token: 2, text: "x" })).status, 200);
    const late = await lock("write", { owner: "a", token: 1, text: "late" });
    assert.deepEqual([late.status, late.value.error], [409, "A later holder has written already: fenced off."]);
    assert.equal((await lock("release", { token: 1 })).status, 409);
    assert.equal((await lock("release", { token: 2 })).status, 200);
    assert.equal((await third).value.token, 3);
    assert.equal((await lock("acquire", { owner: 7 })).status, 400);
    assert.equal((await lock("acquire", "no json")).status, 400);
  });

  test("distributed-lock: the alarm frees a lock whose holder is gone", async () => {
    await call("distributed-lock", "/locks/gone/acquire", { owner: "a", ttlMs: 100 });
    const next = await call("distributed-lock", "/locks/gone/acquire", { owner: "b", waitMs: 20_000 });
    assert.deepEqual([next.value.owner, next.value.token], ["b", 2]);
  });

  test("sharded-counter counts every request once, over 100 shards to begin with", async () => {
    await Promise.all(Array.from({ length: 200 }, (_, n) => call("sharded-counter", "/counters/t/add", { key: `user-${n}` })));
    assert.equal((await call("sharded-counter", "/counters/t?exact")).value.total, 200);
    const used = (await call("sharded-counter", "/counters/t")).value.values.filter((value) => value > 0);
    assert.ok(used.length > 60 && Math.max(...used) < 10, `200 keys are on ${used.length} shards, ${Math.max(...used)} on one`); // a hash, and an even one
    const same = await Promise.all([1, 2, 3].map(async () => (await call("sharded-counter", "/counters/keys/add", { key: "ada" })).value.shard));
    assert.equal(new Set(same).size, 1);
    assert.equal((await call("sharded-counter", "/counters/t")).value.shards, 100);
    assert.deepEqual((await call("sharded-counter", "/counters/t/shards", { count: 140 })).value, { shards: 140 });
    await Promise.all(Array.from({ length: 100 }, () => call("sharded-counter", "/counters/t/add", { by: 2 })));
    await server.untilTrue(async () => (await call("sharded-counter", "/counters/t")).value.total === 400, "the reported total");
    assert.ok((await call("sharded-counter", "/counters/t")).value.values.slice(100).some((value) => value > 0));
    assert.deepEqual((await call("sharded-counter", "/counters/t/shards", { count: 10 })).value, { shards: 140 }); // what is there stays
    assert.deepEqual((await call("sharded-counter", "/counters/few/shards", { count: 10 })).value, { shards: 10 });
    assert.equal((await call("sharded-counter", "/counters/t/shards", { count: 5000 })).status, 400);
  });

  test("unique-shards: every writer has an object by newUniqueId(), nobody guesses one, reading has all", { skip: inC }, async () => {
    const writers = await Promise.all(Array.from({ length: 12 }, async () => (await call("unique-shards", "/journals/t/writers", {})).value.writer));
    assert.equal(new Set(writers).size, 12);
    for (const writer of writers) assert.match(writer, /^[0-9a-f]{64}$/);
    await Promise.all(writers.flatMap((writer) => [1, 2, 3].map((n) => call("unique-shards", `/journals/t/writers/${writer}`, { text: `entry ${n}` }))));
    const { shards, entries, latest } = (await call("unique-shards", "/journals/t")).value;
    assert.deepEqual([shards, entries, latest.length], [12, 36, 5]);
    for (const wrong of ["0".repeat(64), "../x", writers[0].slice(1)]) assert.equal((await call("unique-shards", `/journals/t/writers/${encodeURIComponent(wrong)}`, { text: "x" })).status, 404, wrong);
    assert.equal((await call("unique-shards", `/journals/other/writers/${writers[0]}`, { text: "x" })).status, 404); // another journal's
  });

  test("retrying-client: .retryable is tried again with growing pauses, .overloaded is not, and a payment counts once", { skip: inC }, async () => {
    const pay = (id, fails) => call("retrying-client", "/accounts/t/pay", { id, amount: 10, fails });
    assert.deepEqual((await pay("a", 0)).value, { balance: 10, attempts: 1 });
    assert.deepEqual((await pay("b", 3)).value, { balance: 20, attempts: 4 });
    const given = await pay("c", 9);
    assert.deepEqual([given.status, given.headers["retry-after"], given.value.error], [503, "1", "Tried five times: The answer was lost on its way."]);
    assert.deepEqual((await call("retrying-client", "/accounts/t")).value, { balance: 30 }); // it was written all the same, once
    const { answered, overloaded, failed } = (await call("retrying-client", "/accounts/flooded/flood", {})).value;
    assert.deepEqual([answered + overloaded, failed], [10_500, 0]);
    assert.ok(overloaded > 0, "nothing was overloaded");
    const { backOff } = await load(path.join(root, "examples/retrying-client/src/retry.ts"));
    assert.deepEqual([1, 2, 3, 4, 20].map((attempt) => [backOff(attempt, 0), backOff(attempt, 1)]), [[50, 100], [100, 200], [200, 400], [400, 800], [2500, 5000]]);
  });

  test("sessions begin, are visited, end by themselves and on request", async () => {
    const login = await call("sessions", "/api/login", { user: "ada", lifetimeSeconds: 600 });
    const [cookie] = login.headers["set-cookie"][0].split(";");
    assert.match(login.headers["set-cookie"][0], /^session=[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/);
    assert.equal((await call("sessions", "/api/me", undefined, { headers: { cookie } })).value.visits, 1);
    await call("sessions", "/api/logout", {}, { headers: { cookie } });
    assert.equal((await call("sessions", "/api/me", undefined, { headers: { cookie } })).status, 401);
    const brief = (await call("sessions", "/api/login", { user: "ada", lifetimeSeconds: 1 })).headers["set-cookie"][0].split(";")[0];
    // Asking extends a session's life, so this looks at its end from outside: nothing is left to log out of.
    await new Promise((resolve) => setTimeout(resolve, 1100));
    assert.equal((await call("sessions", "/api/me", undefined, { headers: { cookie: brief } })).status, 401);
    // By alarm: of both nothing is left in storage.
    await server.untilTrue(async () => (await ask({ data }, "GET", `/api/objects?namespace=sessions/${inC ? "session:" : ""}Session`)).json.objects.every(({ size, alarm }) => size === 0 && alarm === null), "the end of both sessions");
    assert.equal((await call("sessions", "/api/login", { user: "" })).status, 400);
  });

  test("scheduler runs events in order of their time, repeats and cancels", async () => {
    const schedule = (input) => call("scheduler", "/schedulers/t/schedule", input);
    await schedule({ label: "third", delayMs: 300 });
    await schedule({ label: "first", delayMs: 0 });
    await schedule({ label: "second", delayMs: 150 });
    const { value: { id } } = await schedule({ label: "never", delayMs: 86_400_000 });
    const state = async () => (await call("scheduler", "/schedulers/t")).value;
    await server.untilTrue(async () => (await state()).runs.length === 3, "three runs");
    const { runs } = await state(); // the last one first; when each was due depends on when it was asked for
    assert.deepEqual(runs.map(({ label }) => label).sort(), ["first", "second", "third"]);
    assert.deepEqual(runs.map(({ due }) => due), runs.map(({ due }) => due).sort((a, b) => b - a));
    assert.ok(runs.every(({ due, ran }) => ran >= due));
    assert.equal((await call("scheduler", "/schedulers/t/cancel", { id })).status, 200);
    assert.equal((await call("scheduler", "/schedulers/t/cancel", { id })).status, 404);
    assert.equal((await state()).alarm, null);
    assert.equal((await schedule({ label: "x" })).status, 400);
  });

  test("graceful-cleanup: everything temporary goes, whichever way the work ends", { skip: inC }, async () => {
    const state = async () => (await call("graceful-cleanup", "/api/state")).value;
    for (const [end, status] of [["well", 200], ["throws", 500]]) assert.equal((await call("graceful-cleanup", "/api/work", { label: end, end })).status, status);
    await server.untilTrue(async () => (await state()).cleaned.length === 2, "the work behind the answers");
    assert.equal((await call("graceful-cleanup", "/api/work", { label: "crashes", end: "crashes" })).status, 500);
    await server.untilTrue(async () => (await state()).temporaries.length === 0, "an empty workshop");
    const by = Object.fromEntries((await state()).cleaned.map(({ label, by }) => [label, by]));
    assert.deepEqual([by.well, by.throws, by.crashes], ["waitUntil, after the answer", "finally, after an error", "alarm, found abandoned"]);
    assert.deepEqual(Object.keys(by).sort(), ["crashes", "throws", "well"]);
  });

  test("point-in-time-undo goes back, and back again", async () => {
    const notebook = (action, input) => call("point-in-time-undo", `/notebooks/t/${action}`, input);
    const texts = async () => (await call("point-in-time-undo", "/notebooks/t")).value.notes.map(({ text }) => text);
    for (const text of ["milk", "bread"]) await notebook("add", { text });
    await notebook("clear", {});
    assert.deepEqual(await texts(), []);
    assert.equal((await notebook("undo", { mark: 1 })).status, 200);
    await server.untilTrue(async () => (await texts()).length === 2, "the restored notes");
    assert.deepEqual(await texts(), ["bread", "milk"]);
    const { value: { marks } } = await call("point-in-time-undo", "/notebooks/t");
    assert.equal((await notebook("undo", { mark: marks[0].id })).status, 200);
    await server.untilTrue(async () => (await texts()).length === 0, "the undone undo");
    assert.equal((await notebook("undo", { mark: 99 })).status, 404);
  });

  test("rpc-and-fetch: the same counter either way", { skip: inC }, async () => {
    const post = async (target) => (await call("rpc-and-fetch", target, undefined, { method: "POST" })).value;
    assert.deepEqual(await post("/rpc/add?by=2"), { value: 2 });
    assert.deepEqual(await post("/fetch/add?by=3"), { value: 5 });
    assert.deepEqual(await post("/rpc/batch"), { value: 11 });
    assert.deepEqual((await call("rpc-and-fetch", "/rpc/steps")).value, { steps: [1, 2, 3, 4, 5] });
    assert.equal((await call("rpc-and-fetch", "/fetch/add", undefined, { method: "DELETE" })).status, 405);
  });

  test("what was acknowledged is there after kill -9", async () => {
    const grant = (await call("distributed-lock", "/locks/k/acquire", { owner: "a", ttlMs: 600_000 })).value;
    await call("sharded-counter", "/counters/k/add", { by: 5 });
    await call("scheduler", "/schedulers/k/schedule", { label: "later", delayMs: 500 });
    await server.kill();
    server = await start();
    assert.deepEqual((await call("distributed-lock", "/locks/k")).value.holder, grant);
    assert.equal((await call("sharded-counter", "/counters/k?exact")).value.total, 5);
    await server.untilTrue(async () => (await call("scheduler", "/schedulers/k")).value.runs.length === 1, "the event after the restart");
  });
});

describe("pages", { skip: noBrowser }, () => {
  after(closeBrowser);
  const url = (folder) => `http://${folder}.localhost:${server.port}/`;

  // What a visitor does first on each page, and what shows that it worked.
  const visits = {
    "rate-limiting": async (page) => {
      await page.fill("#user", "visitor");
      await page.click("#many");
      await page.waitForFunction(() => document.querySelectorAll("#log li").length === 15);
      assert.equal(await page.textContent("#allowed"), "10");
      assert.equal(await page.textContent("#refused"), "5");
    },
    "distributed-lock": async (page) => {
      const [ada, grace] = await page.$$("#clients section");
      await (await ada.$("[data-do=acquire]")).click();
      await page.waitForFunction(() => document.getElementById("holder").textContent === "Ada");
      await (await grace.$("[data-do=acquire]")).click();
      await page.waitForFunction(() => /Grace/.test(document.getElementById("waiting").textContent));
      await (await ada.$("[data-do=release]")).click();
      await page.waitForFunction(() => document.getElementById("holder").textContent === "Grace");
      await (await grace.$("[data-do=write]")).click();
      await page.waitForFunction(() => document.querySelectorAll("#entries tr").length === 1);
    },
    "sharded-counter": async (page) => {
      await page.click("#many");
      await page.waitForFunction(() => document.getElementById("exact").textContent === "500" && document.getElementById("total").textContent === "500");
      await page.click("#grow");
      await page.waitForFunction(() => document.getElementById("count").textContent === "200");
    },
    "unique-shards": async (page) => {
      await page.click("#write button.main");
      await page.waitForFunction(() => /saw a cairn/.test(document.getElementById("latest").textContent));
      await page.click("#ten");
      await page.waitForFunction(() => document.getElementById("entries").textContent === "101");
    },
    "retrying-client": async (page) => {
      await page.click("#pay");
      await page.waitForFunction(() => document.getElementById("attempts").textContent === "3");
      await page.click("#again");
      await page.waitForFunction(() => document.getElementById("attempts").textContent === "1");
      assert.equal(await page.textContent("#balance"), "10");
      await page.click("#flood");
      await page.waitForFunction(() => /\d/.test(document.getElementById("overloaded").textContent));
    },
    sessions: async (page) => {
      await page.click("#login button");
      await page.waitForFunction(() => document.getElementById("who").textContent === "ada");
      await page.click("#visit");
      await page.waitForFunction(() => /^1 visit since/.test(document.getElementById("detail").textContent));
      await page.click("#logout");
      await page.waitForFunction(() => document.getElementById("who").textContent === "not logged in");
    },
    scheduler: async (page) => {
      await page.fill("#delay", "0");
      await page.click("#new button.main");
      await page.waitForFunction(() => /reminder/.test(document.getElementById("runs").textContent));
    },
    "graceful-cleanup": async (page) => {
      await page.click("[data-end=well]");
      await page.waitForFunction(() => /waitUntil/.test(document.getElementById("cleaned").textContent));
    },
    "point-in-time-undo": async (page) => {
      await page.fill("#text", "a note");
      await page.click("#add button");
      await page.waitForFunction(() => /a note/.test(document.getElementById("notes").textContent));
      await page.click("#clear");
      await page.waitForFunction(() => document.getElementById("notes").textContent === "");
      await page.click("#marks button");
      await page.waitForFunction(() => /a note/.test(document.getElementById("notes").textContent));
    },
    "resilient-client": async (page) => {
      await page.waitForFunction(() => document.getElementById("state").textContent === "open");
      await page.click("#stream");
      await page.waitForFunction(() => Number(document.getElementById("arrived").textContent) >= 5);
      await page.click("#cut");
      await page.waitForFunction(() => Number(document.getElementById("waiting").textContent) > 0);
      await page.click("#crash");
      await page.click("#stream");
      // Everything that was sent meanwhile has arrived, in order: the page marks a gap as bad.
      await page.waitForFunction(() => document.getElementById("waiting").textContent === "0" && document.getElementById("state").textContent === "open");
      assert.equal(await page.$eval("#arrived", (element) => element.classList.contains("bad")), false);
    },
    "chat-room": async (page) => {
      await page.fill("#name", "Ada");
      await page.click("#join button");
      await page.waitForSelector("#text:enabled");
      await page.fill("#text", "Is anybody here?");
      await page.press("#text", "Enter");
      await page.waitForFunction(() => /Is anybody here/.test(document.getElementById("messages").textContent));
      assert.equal(await page.textContent("#here"), "Ada");
    },
    "collaborative-document": async (page) => {
      await page.waitForSelector("#text:enabled");
      await page.type("#text", "A cairn is a heap of stones.");
      await page.waitForFunction(() => /^saved/.test(document.getElementById("saved").textContent));
      assert.equal(await page.textContent("#writers"), "only you");
    },
    presence: async (page) => {
      await page.fill("#name", "Ada");
      await page.click("#join button");
      await page.waitForFunction(() => document.getElementById("people").textContent === "Ada (you)");
    },
    documents: async (page) => {
      await page.fill("#query", "object yesterday");
      await page.click("#results a");
      await page.waitForURL(/\/do\/backup/);
      assert.equal(await page.textContent("h1"), "Back up and restore");
    },
    "rpc-and-fetch": async (page) => {
      for (const button of await page.$$("main button.main")) await button.click();
      await page.waitForFunction(() => document.querySelectorAll("#log li").length === 2);
    },
  };

  test("the index links every example, and each link works", { skip: inC }, () =>
    withPage({}, async (page) => {
      await page.goto(server.url);
      const links = await page.$$eval("main a", (anchors) => anchors.map((anchor) => anchor.href));
      const applications = readdirSync(path.join(root, "apps")).filter((name) => existsSync(path.join(root, "apps", name, "wrangler.toml")));
      assert.deepEqual(links.map((link) => new URL(link).host.split(".")[0]).sort(), [...projects.filter((name) => name !== "gallery"), ...applications].sort());
      await page.click("main a");
      await page.waitForURL(links[0]);
      await page.click("#home");
      await page.waitForURL((address) => address.host.startsWith("localhost"));
    }));

  test("every example has a visit", () => assert.deepEqual(Object.keys(visits).sort(), projects.filter((name) => name !== "gallery").sort()));

  for (const [folder, visit] of Object.entries(visits).filter(([name]) => !inC || name in EXAMPLES))
    test(`${folder} works; it fits a phone and a desk, light and dark, and axe-core finds nothing serious`, () =>
      withPage({ width: 390, colorScheme: "dark", expected: folder === "rate-limiting" ? /429/ : undefined }, async (page) => {
        await page.goto(url(folder));
        await visit(page);
        for (const { width, colorScheme } of VIEWS) {
          await page.emulateMedia({ colorScheme });
          await page.setViewportSize({ width, height: 800 });
          await inspect(page, folder);
        }
      }));

  test("the gallery itself, in every view", { skip: inC }, async () => {
    for (const view of VIEWS)
      await withPage(view, async (page) => {
        await page.goto(server.url);
        await inspect(page, "gallery");
      });
  });
});
