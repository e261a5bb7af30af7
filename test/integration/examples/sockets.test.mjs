// The examples with WebSockets as several people use them at once, in a browser; their client through a
// connection that is lost. A proxy between the pages and the server can cut every connection.
import assert from "node:assert/strict";
import net from "node:net";
import path from "node:path";
import test, { after, before, describe } from "node:test";
import { closeBrowser, noBrowser, withPage } from "../lib/browser.mjs";
import { root, serve, tempDir } from "../lib/server.mjs";

const names = ["chat-room", "collaborative-document", "presence"];

class Proxy {
  sockets = new Set();
  refusing = false;
  constructor(port) {
    this.server = net.createServer((socket) => {
      if (this.refusing) return socket.destroy();
      const other = net.connect(port, "127.0.0.1");
      for (const each of [socket, other]) {
        this.sockets.add(each);
        each.on("close", () => { this.sockets.delete(each); (each === socket ? other : socket).destroy(); });
        each.on("error", () => {});
      }
      return socket.pipe(other).pipe(socket);
    });
  }
  async listen() {
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return this.server.address().port;
  }
  cut() {
    for (const socket of this.sockets) socket.destroy();
  }
}

describe("examples with WebSockets", { skip: noBrowser }, () => {
  let server, proxy, port;
  before(async () => {
    server = await serve(names.map((name) => path.join(root, "examples", name)), { data: tempDir(), lanes: 2 });
    proxy = new Proxy(server.port);
    port = await proxy.listen();
  });
  after(async () => {
    await closeBrowser();
    proxy.cut();
    proxy.server.close();
    await server?.stop();
  });
  const url = (folder) => `http://${folder}.localhost:${port}/`;
  const lost = /WebSocket connection to .* failed/;
  /** Two pages side by side. */
  const both = (folder, use, options = {}) =>
    withPage({ ...options, expected: lost }, (one) => withPage({ width: 400, colorScheme: "dark", ...options, expected: lost }, async (two) => {
      await Promise.all([one.goto(url(folder)), two.goto(url(folder))]);
      await use(one, two);
      if (process.env.SCREENSHOTS) {
        await one.screenshot({ path: path.join(process.env.SCREENSHOTS, `${folder}-two-light.png`) });
        await two.screenshot({ path: path.join(process.env.SCREENSHOTS, `${folder}-two-dark.png`), fullPage: true });
      }
    }));
  const shows = (page, selector, pattern) =>
    page.waitForFunction(([s, p]) => new RegExp(p).test(document.querySelector(s).value ?? document.querySelector(s).textContent), [selector, pattern]);

  test("chat: everybody reads it, latecomers get the history, a lost connection comes back by itself", () =>
    both("chat-room", async (ada, grace) => {
      const join = async (page, name) => {
        await page.fill("#name", name);
        await page.click("#join button");
        await page.waitForSelector("#text:enabled");
      };
      const say = async (page, text) => {
        await page.fill("#text", text);
        await page.press("#text", "Enter");
      };
      await join(ada, "Ada");
      await say(ada, "hello <b>room</b>");
      await shows(ada, "#messages", "hello <b>room</b>");
      await join(grace, "Grace");
      await shows(grace, "#messages", "hello <b>room</b>");
      await shows(ada, "#here", "AdaGrace");
      await say(grace, "hello Ada");
      await shows(ada, "#messages", "hello Ada");
      proxy.refusing = true;
      proxy.cut();
      await Promise.all([ada, grace].map((page) => shows(page, "#state", "trying again in")));
      proxy.refusing = false;
      await Promise.all([ada, grace].map((page) => shows(page, "#state", "^connected$")));
      await say(ada, "back again");
      for (const page of [ada, grace]) {
        await shows(page, "#messages", "back again"); // each by its own connection, in any order
        assert.equal(await page.locator("#messages li").count(), 3, "nothing twice after the reconnect");
      }
    }));

  test("document: two write at once and offline, and see the same in the end", () =>
    both("collaborative-document", async (one, two) => {
      await Promise.all([one.waitForSelector("#text:enabled"), two.waitForSelector("#text:enabled")]);
      await one.type("#text", "start end");
      await shows(two, "#text", "^start end$");
      await Promise.all([one.focus("#text"), two.focus("#text")]); // where nobody writes, the cursor does not follow
      await two.evaluate(() => document.getElementById("text").setSelectionRange(6, 6));
      // Both at the same time, letter by letter: at the front and in the middle.
      await one.evaluate(() => document.getElementById("text").setSelectionRange(0, 0));
      await Promise.all([one.type("#text", "AAAAAAAAAA ", { delay: 5 }), two.type("#text", "bbbbbbbbbb ", { delay: 7 })]);
      const same = async () => {
        await Promise.all([shows(one, "#saved", "^saved"), shows(two, "#saved", "^saved")]);
        await one.waitForFunction((other) => document.getElementById("text").value.length === other, (await two.inputValue("#text")).length);
        const [a, b] = await Promise.all([one.inputValue("#text"), two.inputValue("#text")]);
        assert.equal(a, b);
        return a;
      };
      await shows(one, "#text", "b{10} end$");
      await shows(two, "#text", "^A{10} ");
      assert.equal(await same(), "AAAAAAAAAA start bbbbbbbbbb end");
      // Typed while there is no connection: kept, sent later, merged.
      proxy.refusing = true;
      proxy.cut();
      await shows(one, "#state", "trying again in");
      await one.evaluate(() => { const t = document.getElementById("text"); t.setSelectionRange(t.value.length, t.value.length); });
      await one.type("#text", " one-offline");
      await two.evaluate(() => document.getElementById("text").setSelectionRange(0, 0));
      await two.type("#text", "two-offline ");
      proxy.refusing = false;
      await shows(one, "#text", "^two-offline .* one-offline$");
      await shows(two, "#text", "^two-offline .* one-offline$");
      assert.equal(await same(), "two-offline AAAAAAAAAA start bbbbbbbbbb end one-offline");
    }));

  test("presence: who is here, where they point, and that they have gone", () =>
    both("presence", async (ada, grace) => {
      for (const [page, name] of [[ada, "Ada"], [grace, "Grace"]]) {
        await page.fill("#name", name);
        await page.click("#join button");
      }
      await shows(ada, "#people", "Ada \\(you\\)Grace");
      await grace.hover("#space", { position: { x: 100, y: 100 } });
      await ada.hover("#space", { position: { x: 300, y: 200 } });
      await ada.waitForSelector("#space b >> text=Grace");
      await grace.waitForSelector("#space b >> text=Ada");
      await grace.goto("about:blank");
      await ada.waitForFunction(() => document.getElementById("people").textContent === "Ada (you)" && document.querySelector("#space b") === null);
      await grace.goto(url("presence"));
      await grace.fill("#name", "Grace");
      await grace.click("#join button");
      await shows(ada, "#people", "Grace");
      await grace.hover("#space", { position: { x: 100, y: 100 } });
      await ada.waitForSelector("#space b >> text=Grace");
    }));
});

test("the reconnecting client waits twice as long each time, 30 s at most", async () => {
  const { readFileSync } = await import("node:fs");
  const source = readFileSync(path.join(root, "examples/shared/browser/reconnecting.js"), "utf8");
  Object.assign(globalThis, { location: { href: "http://x/" }, addEventListener() {}, document: { addEventListener() {} } });
  globalThis.WebSocket = class {};
  const every = globalThis.setInterval;
  globalThis.setInterval = () => 0;
  const { ReconnectingSocket } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  const socket = new ReconnectingSocket("/x");
  globalThis.setInterval = every;
  for (let failures = 0; failures < 12; failures++) {
    const most = Math.min(30_000, 500 * 2 ** failures);
    for (let i = 0; i < 50; i++) {
      const wait = socket.delay(failures);
      assert.ok(wait >= most / 2 && wait <= most, `${wait} after ${failures}`);
    }
  }
});
