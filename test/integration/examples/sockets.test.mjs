// The examples with WebSockets as several people use them at once, in a browser; their client through a
// connection that is lost. A proxy between the pages and the server can cut every connection.
import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import test, { after, before, describe } from "node:test";
import { ask } from "../admin/lib.mjs";
import { closeBrowser, noBrowser, withPage } from "../lib/browser.mjs";
import { deployed, root, serve, tempDir } from "../lib/server.mjs";
import { Client } from "../websockets/lib.mjs";

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

describe("examples with WebSockets, asleep", { skip: deployed && "how soon they sleep is said in a table that wrangler does not send" }, () => {
  const data = tempDir();
  let server, folders;
  const start = async () => { server = await serve(folders, { data, lanes: 2 }); };
  before(() => {
    // As they are, but a fifth of a second of silence is enough.
    const copy = tempDir();
    cpSync(path.join(root, "examples"), copy, { recursive: true });
    folders = names.map((name) => path.join(copy, name));
    for (const folder of folders) writeFileSync(path.join(folder, "wrangler.toml"), `${readFileSync(path.join(folder, "wrangler.toml"), "utf8")}\n[cairn.limits]\nobject_idle_ms = 200\n`);
    return start();
  });
  after(() => server?.stop());
  const connect = (folder, target) => Client.open(server, target, undefined, { headers: { host: `${folder}.localhost` } });
  /** The next message of that type; what comes before it is kept in `client.before`. */
  const next = async (client, type) => {
    client.before = [];
    for (;;) {
      const message = JSON.parse(await client.next());
      if (message.type === type) return message;
      client.before.push(message);
    }
  };
  /** Out of memory, and its sockets are there. Asking that here does not wake it, but one that is awake stays so: not too often. */
  const asleep = (object, sockets) => server.untilTrue(async () => {
    await new Promise((resolve) => setTimeout(resolve, 700));
    const { live, sockets: { count, hibernated } } = (await ask({ data }, "GET", `/api/objects/${object}`)).json;
    return !live && hibernated && count === sockets;
  }, "the object's sleep", 30_000);

  test("chat: out of memory, everybody stays: who they are by attachments, whom to tell by tags, what was said in storage", async () => {
    const join = (name) => connect("chat-room", `/rooms/lobby?name=${name}`);
    const say = (client, text) => client.send(JSON.stringify({ type: "say", text }));
    const [ada, grace, tab, bob] = [await join("Ada"), await join("Grace"), await join("Grace"), await join("Bob")];
    say(ada, "before");
    for (const client of [ada, grace, tab, bob]) assert.equal((await next(client, "message")).text, "before");
    await asleep("chat-room%2FRoom/lobby", 4);
    say(ada, "after");
    for (const client of [ada, grace, tab, bob]) {
      const { id, name, text } = await next(client, "message");
      assert.deepEqual([id, name, text], [2, "Ada", "after"]);
    }
    await asleep("chat-room%2FRoom/lobby", 4);
    say(ada, "@Grace between us");
    for (const client of [ada, grace, tab]) {
      const { name, to, text } = await next(client, "aside");
      assert.deepEqual([name, to, text], ["Ada", "Grace", "between us"]);
    }
    say(ada, "@Nobody hello");
    assert.equal((await next(ada, "refused")).reason, "Nobody called Nobody is here.");
    await asleep("chat-room%2FRoom/lobby", 4);
    say(ada, "the end");
    assert.equal((await next(bob, "message")).text, "the end");
    assert.ok(!bob.before.some(({ type }) => type === "aside"), "Bob heard it");
    await asleep("chat-room%2FRoom/lobby", 4);
    await grace.close(1000, "");
    await tab.close(1000, "");
    let here;
    do here = await next(bob, "here"); while (here.names.includes("Grace"));
    assert.deepEqual(here.names, ["Ada", "Bob"]);
    const late = await join("Late");
    assert.deepEqual((await next(late, "init")).state.messages.map(({ name, text }) => [name, text]), [["Ada", "before"], ["Ada", "after"], ["Ada", "the end"]]);
    for (const client of [ada, bob, late]) client.socket.terminate();
  });

  test("document: what others were told is in storage, after sleep and after kill -9", async () => {
    const open = (client) => connect("collaborative-document", `/documents/kept?client=${client}`);
    const [one, two] = [await open("one"), await open("two")];
    assert.equal((await next(one, "text")).text, "");
    one.send(JSON.stringify({ type: "change", revision: 0, number: 1, change: { at: 0, cut: 0, put: "kept" } }));
    assert.equal((await next(two, "change")).client, "one");
    await asleep("collaborative-document%2FDocument/kept", 2);
    two.send(JSON.stringify({ type: "change", revision: 1, number: 1, change: { at: 4, cut: 0, put: " for ever" } }));
    let change;
    do change = await next(one, "change"); while (change.client === "one"); // its own comes back too
    assert.equal(change.change.put, " for ever");
    await server.kill();
    await start();
    const three = await open("three");
    const { text, revision } = await next(three, "text");
    assert.deepEqual([text, revision], ["kept for ever", 2]);
    three.socket.terminate();
  });

  test("presence: user_left tells the others when a socket closes, with who it was", async () => {
    const join = (name) => connect("presence", `/spaces/square?name=${name}`);
    const ada = await join("Ada"), grace = await join("Grace");
    const { you } = await next(grace, "welcome");
    grace.socket.terminate(); // without a word
    assert.equal((await next(ada, "user_left")).userId, you);
    ada.socket.terminate();
  });
});

test("the resilient client waits 1 s, then twice as long each time, 30 s at most, and begins anew after a steady connection", async () => {
  const source = readFileSync(path.join(root, "examples/resilient-client/src/resilient-socket.client.js"), "utf8");
  const before = { WebSocket: globalThis.WebSocket, setTimeout: globalThis.setTimeout, addEventListener: globalThis.addEventListener };
  const timers = [], sockets = [];
  Object.assign(globalThis, { WebSocket: class { constructor() { sockets.push(this); } }, setTimeout: (run, ms) => timers.push({ run, ms }), addEventListener() {} });
  try {
    const { ResilientSocket } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
    new ResilientSocket("ws://x/");
    const lose = () => {
      sockets.at(-1).onclose();
      const { run, ms } = timers.at(-1);
      run();
      return ms;
    };
    const between = (ms, most) => assert.ok(ms >= most / 2 && ms <= most, `${ms} is not between half of ${most} and ${most}`);
    for (const most of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) between(lose(), most);
    sockets.at(-1).onopen();
    assert.equal(timers.at(-1).ms, 5000);
    between(lose(), 30_000); // it was not steady
    sockets.at(-1).onopen();
    timers.at(-1).run();
    between(lose(), 1000);
  } finally {
    Object.assign(globalThis, before);
  }
});

test("the reconnecting client waits twice as long each time, 30 s at most", async () => {
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
