// `make dashboard-million`: the dashboard in headless Chromium with a million objects in the catalog. Prints how long each view takes, from the
// key or click to its content on the screen, and fails if one takes more than 300 ms (the median of a few times). With a folder as argument it
// also takes the pictures of the documentation.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import WebSocket from "ws";
import { adminPort } from "../integration/admin/lib.mjs";
import { fill } from "../integration/admin/shop/fill.mjs";
import { closeBrowser, withPage } from "../integration/lib/browser.mjs";
import { root, serve, tempDir } from "../integration/lib/server.mjs";

const OBJECTS = Number(process.env.OBJECTS ?? 1_000_000), LIMIT_MS = 300, TIMES = 5;
const pictures = process.argv[2];
const shop = path.join(root, "test/integration/admin/shop");
const data = process.env.DATA ?? tempDir();

/** A real shop, whose catalog then grows. DATA keeps it for the next run. */
async function prepare() {
  const first = await serve(shop, { data });
  await fill((target, init) => first.fetch(target, init), { carts: 200 });
  // One with a past worth looking at.
  const add = (what, amount) => first.fetch("/cart/bob@example.com/add", { method: "POST", body: JSON.stringify([what, amount, 3]) }).then((response) => response.arrayBuffer());
  for (let i = 0; i < 120; i++) await add(`${["tent", "stove", "rope"][i % 3]} ${"with engraving ".repeat(i % 7 === 0 ? 90 : 4)}`, i);
  await first.stop();
  const began = Date.now();
  const said = execFileSync(process.env.FILL ?? path.join(root, "build/large/fill_catalog"), [data, "shop/Cart", String(OBJECTS)], { encoding: "utf8" });
  console.log(said.trim(), `in ${((Date.now() - began) / 1000).toFixed(1)} s`);
}

if (!existsSync(path.join(data, "catalog"))) await prepare();
const began = Date.now();
const server = await serve(shop, { data, args: ["--admin", "127.0.0.1:0"] });
console.log(`started in ${Date.now() - began} ms`);
const token = readFileSync(path.join(data, "admin.token"), "utf8").trim();
const address = `http://127.0.0.1:${await adminPort(server)}/#token=${token}`;
const sockets = [1, 2, 3].map(() => new WebSocket(`${server.url.replace("http", "ws")}/room/lobby`));
await Promise.all(sockets.map((socket) => new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject))));
let turn = 0;
const traffic = setInterval(() => {
  const quiet = (promise) => promise.then((response) => response.arrayBuffer()).catch(() => {});
  quiet(server.fetch("/"));
  quiet(server.fetch(`/cart/cart-${String(turn++ % 40).padStart(4, "0")}/add`, { method: "POST", body: '["tent",1,2]' }));
  if (turn % 25 === 0) quiet(server.fetch("/fail"));
}, 50);

/** Goes to a place (or does `act`) and waits until `ready` (a function of the page) holds and that is painted: milliseconds. */
const measure = (page, place, ready, act = "") => page.evaluate(`(async () => {
  const ready = () => !document.querySelector("main .skeleton, main .stale") && (${ready})();
  const start = performance.now();
  ${place ? `location.hash = ${JSON.stringify(place)};` : act}
  await new Promise((resolve) => setTimeout(resolve)); // the change of the address arrives as an event
  while (!ready()) {
    if (performance.now() - start > 10000) throw new Error("not ready: " + document.querySelector("main").innerText.slice(0, 300));
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  return performance.now() - start;
})()`);
const has = (selector, text = "") => `() => [...document.querySelectorAll(${JSON.stringify(selector)})].some((element) => element.textContent.includes(${JSON.stringify(text)}))`;
const title = (text, more = "true") => `() => document.querySelector("main h1")?.textContent === ${JSON.stringify(text)} && (${more})`;
const rows = (text, count = 1) => `[...document.querySelectorAll("main tbody tr")].filter((row) => row.textContent.includes(${JSON.stringify(text)})).length >= ${count}`;

const inspect = async (target) => (await fetch(new URL(target, address), { headers: { authorization: `Bearer ${token}` } })).json();
const { objects: [alice] } = await inspect("/api/objects?namespace=shop/Cart&prefix=alice");
const { objects: [bob] } = await inspect("/api/objects?namespace=shop/Cart&prefix=bob");
const { objects: [lobby] } = await inspect("/api/objects?namespace=shop/Room&prefix=lobby");
const object = (id, tab = "", ns = "shop%2FCart") => `#/object/${ns}/${id}${tab && `/${tab}`}`;
const type = (text) => `const box = document.querySelector("[data-search]"); box.value = ${JSON.stringify(text)}; box.dispatchEvent(new Event("input", { bubbles: true }));`;
const views = [
  ["overview", "#/overview", title("Overview", `document.querySelectorAll(".chart").length === 6`)],
  ["workers", "#/workers", title("Workers", `document.querySelector(".worker .bindings")`)],
  ["logs", "#/logs", title("Logs", `document.querySelector(".log")`)],
  ["objects, all classes, last change", "#/objects", title("Objects", rows("shop/", 50))],
  ["objects of a class", "#/objects?ns=shop%2FCart", title("Objects", rows("", 50))],
  ["... by size", "#/objects?ns=shop%2FCart&sort=size&desc=1", title("Objects", `document.querySelector("th[aria-sort=descending]")?.textContent.includes("Size") && ${rows("MiB", 45)}`)],
  ["... smallest first", "#/objects?ns=shop%2FCart&sort=size&desc=", title("Objects", rows("KiB", 50))],
  ["... by alarm", "#/objects?ns=shop%2FCart&sort=alarm", title("Objects", rows("in ", 45))],
  ["... by name", "#/objects?ns=shop%2FCart&sort=name", title("Objects", rows("", 50))],
  ["... by id", "#/objects?ns=shop%2FCart&sort=id", title("Objects", rows("", 50))],
  ["... named device-0123…", "#/objects?ns=shop%2FCart&q=device-0123", title("Objects", rows("device-0123", 50))],
  ["... with an id", `#/objects?q=${alice.id}`, title("Objects", rows("alice"))],
  ["... with the beginning of an id", `#/objects?q=${alice.id.slice(0, 12)}`, title("Objects", rows("alice"))],
  ["one object: tables", object(alice.id), title("alice@example.com", rows("compass"))],
  ["... storage", object(alice.id, "pairs"), title("alice@example.com", rows("newsletter"))],
  ["... console", object(alice.id, "sql"), title("alice@example.com", `document.querySelector("textarea")`)],
  ["... a query", null, has(".result td", "compass"), `document.querySelector(".button.primary").click();`, object(alice.id, "sql")],
  ["... sockets", object(lobby.id, "sockets", "shop%2FRoom"), title("lobby", `document.querySelector("main tbody tr")`)],
  ["... history", object(alice.id, "history"), title("alice@example.com", `document.querySelector("input[type=range]")`)],
  ["... log", object(alice.id, "log"), title("alice@example.com", `document.querySelector(".log")`)],
  ["D1", "#/d1", title("D1", rows("catalogue"))],
  ["... console", "#/d1/shop-catalogue", title("catalogue", `document.querySelector(".chip")`)],
  ["KV", "#/kv", title("KV", rows("SESSIONS"))],
  ["... keys", "#/kv/shop-sessions", title("SESSIONS", rows("session-"))],
  ["R2", "#/r2", title("R2", rows("shop-images"))],
  ["... objects", "#/r2/shop-images", title("shop-images", rows("readme.txt"))],
  ["queues", "#/queues", title("Queues", rows("orders"))],
  ["... messages", "#/queues/orders-failed", title("orders-failed", rows("broken"))],
  ["cron", "#/crons", title("Cron", rows("*/5"))],
];

const slow = [];
try {
  await withPage({ width: 1280, height: 820 }, async (page) => {
    await page.goto(address);
    await page.waitForSelector(".chart");
    console.log(`\n${"view".padEnd(40)} ${"median".padStart(8)} ${"worst".padStart(8)}   ms`);
    for (const [name, place, ready, act, from] of views.filter(([name]) => !process.env.ONLY || new RegExp(process.env.ONLY).test(name))) {
      const times = [];
      for (let i = 0; i < TIMES; i++) {
        await measure(page, "#/nothing", has("main", "There is no such view"));
        if (from) await measure(page, from, has("main .console"));
        times.push(await measure(page, place, ready, act));
      }
      times.sort((a, b) => a - b);
      const median = times[TIMES >> 1];
      console.log(`${name.padEnd(40)} ${median.toFixed(0).padStart(8)} ${times.at(-1).toFixed(0).padStart(8)}`);
      if (median > LIMIT_MS) slow.push(name);
    }
  });
  if (pictures) await takePictures();
} finally {
  clearInterval(traffic);
  for (const socket of sockets) socket.terminate();
  await closeBrowser();
  await server.stop();
}
if (slow.length) {
  console.error(`more than ${LIMIT_MS} ms: ${slow.join("; ")}`);
  process.exitCode = 1;
}

async function takePictures() {
  mkdirSync(pictures, { recursive: true });
  for (const [name, place, ready, options = {}, before = async () => {}] of [
    ["overview", "#/overview", title("Overview", `document.querySelectorAll(".line").length > 8`), {}, (page) => page.waitForTimeout(45_000)],
    ["objects", "#/objects?ns=shop%2FCart&sort=alarm", title("Objects", rows("in ", 45)), {}, async (page) => {
      await page.click("text=Count");
      await page.waitForSelector("text=1,000,");
    }],
    ["object", object(alice.id), title("alice@example.com", rows("compass")), { colorScheme: "dark" }],
    ["history", object(bob.id, "history"), title("bob@example.com", `document.querySelector("input[type=range]")`), {}, async (page) => {
      for (let i = 0; i < 37; i++) await page.press("input[type=range]", "ArrowLeft");
      await page.evaluate(() => document.activeElement.blur());
    }],
    ["logs", "#/logs", title("Logs", `document.querySelectorAll(".log .line").length > 24`), { colorScheme: "dark" }],
    ["phone", "#/objects?ns=shop%2FCart", title("Objects", rows("", 50)), { width: 390, height: 780 }],
  ]) {
    await withPage({ width: 1280, height: 800, ...options }, async (page) => {
      await page.goto(address);
      await page.waitForSelector(".chart");
      await measure(page, place, ready);
      await before(page);
      const file = path.join(pictures, `dashboard-${name}.png`);
      await page.screenshot({ path: file });
      spawnSync("pngquant", ["--force", "--output", file, "--speed", "1", "128", file]); // a third of the size, where it is installed
    });
  }
}
