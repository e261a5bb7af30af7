// `cairn tail` and the structured log: who said what, for which request or object.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import net from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { cairn, project, serve } from "../lib/server.mjs";
import { ask, command } from "./lib.mjs";
import { objects } from "../lib/toml.mjs";

const dir = project({
  "wrangler.toml": `name = "talker"
main = "index.js"
compatibility_date = "2026-03-01"
${objects({ ROOM: "Room" })}`,
  "index.js": `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  async speak(text) {
    console.log("room says", text);
    await this.ctx.storage.put("k", 1);
    await new Promise((resolve) => setTimeout(resolve, 1));
    console.warn("room still says", text);
  }
}
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/throw") throw new Error("deliberate");
    if (pathname === "/loud") for (let i = 0; i < 50; i++) console.log("x".repeat(20_000));
    if (pathname === "/room") await env.ROOM.getByName("lobby").speak("hello");
    console.log("worker saw", pathname);
    return new Response("ok");
  },
};
`,
});

/** Runs `cairn tail`; lines() are those so far, until() waits for one. */
function tail(t, data, ...args) {
  const child = spawn(cairn, ["tail", "--data", data, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "", wake = () => {};
  child.stdout.setEncoding("utf8").on("data", (part) => { text += part; wake(); });
  const exited = new Promise((resolve) => child.on("close", (code) => { wake(); resolve(code); }));
  t.after(() => child.kill());
  const lines = () => text.split("\n").slice(0, -1);
  return {
    lines,
    exited,
    async until(pattern) {
      for (const deadline = Date.now() + 60_000; ; ) {
        const found = lines().find((line) => pattern.test(line));
        if (found) return found;
        assert.ok(Date.now() < deadline, `${pattern} did not come:\n${text}`);
        await new Promise((resolve) => { wake = resolve; setTimeout(resolve, 100); });
      }
    },
  };
}

describe("tail", () => {
  let server;
  before(async () => { server = await serve(dir, { args: ["--log", "json"], lanes: 2 }); });
  after(() => server.stop());

  test("requests, console lines and exceptions come with what they belong to", async (t) => {
    const listener = tail(t, server.data, "--format", "json");
    // Requests until it listens: it says nothing of itself.
    await server.untilTrue(async () => { await server.text("/first"); return listener.lines().length > 0; }, "the first line");
    await server.text("/room?x=1");
    await server.text("/throw");
    const request = JSON.parse(await listener.until(/"target":"\/room\?x=1"/));
    assert.deepEqual({ ...request, time: 0, request: 0, durationMs: 0, host: 0, message: 0 }, {
      time: 0, level: "info", event: "request", worker: "talker", request: 0, method: "GET", host: 0,
      target: "/room?x=1", status: 200, durationMs: 0, outcome: "ok", message: 0,
    });
    assert.match(request.request, /^[0-9a-f]{16}$/);
    for (const [pattern, level] of [[/room says hello/, "info"], [/room still says hello/, "warn"]]) {
      const line = JSON.parse(await listener.until(pattern));
      assert.match(line.object, /^[0-9a-f]{64}$/);
      assert.deepEqual([line.worker, line.class, line.name, line.level], ["talker", "Room", "lobby", level]);
    }
    const first = JSON.parse(await listener.until(/worker saw \/first/));
    assert.match(first.request, /^[0-9a-f]{16}$/);
    const thrown = JSON.parse(await listener.until(/"level":"error".*deliberate/));
    const failed = JSON.parse(await listener.until(/"target":"\/throw"/));
    assert.deepEqual([failed.status, failed.outcome, failed.request], [500, "error", thrown.request]);
  });
  test("the log on standard error has the same fields", async () => {
    await server.text("/room");
    const [line] = await server.until(/^\{.*room says hello.*\}$/m);
    const parsed = JSON.parse(line);
    assert.deepEqual([parsed.level, parsed.worker, parsed.class, parsed.name, parsed.message], ["info", "talker", "Room", "lobby", "room says hello"]);
    assert.doesNotMatch(server.stderr, /"event":"request"/); // those are for listeners
  });
  test("filters, and lines for people", async (t) => {
    const errors = tail(t, server.data, "--status", "error");
    const others = tail(t, server.data, "nobody");
    const found = tail(t, server.data, "talker", "--search", "needle", "--method", "GET");
    await server.untilTrue(async () => { await server.text("/throw"); return errors.lines().length > 1; }, "an error");
    await server.untilTrue(async () => { await server.text("/needle"); return found.lines().length > 0; }, "the needle");
    assert.match(await errors.until(/GET \/throw/), /^[\d:.]{12} error talker \[[0-9a-f]{16}\] GET \/throw 500 [\d.]+ ms$/);
    for (const line of errors.lines()) assert.doesNotMatch(line, /needle/);
    for (const line of found.lines()) assert.match(line, /GET \/needle 200/);
    assert.deepEqual(others.lines(), []);
  });
  test("a listener who does not read holds nobody up: lines are dropped, and it is told how many", async () => {
    const socket = net.connect(path.join(server.data, "control.sock"));
    socket.write("GET /api/tail HTTP/1.0\r\n\r\n");
    let text = "";
    await new Promise((resolve) => socket.setEncoding("utf8").on("data", (part) => { text += part; if (/listening/.test(text)) resolve(); }));
    socket.pause();
    for (let i = 0; i < 6; i++) await server.text("/loud");
    assert.equal((await ask({ data: server.data }, "GET", "/healthz")).status, 200);
    socket.resume();
    await server.untilTrue(async () => { await server.text("/after"); return /\{"dropped":\d+\}/.test(text); }, "the number of dropped lines");
    socket.destroy();
  });
  test("it ends with the server", async (t) => {
    const listener = tail(t, server.data);
    await server.untilTrue(async () => { await server.text("/x"); return listener.lines().length > 0; }, "a line");
    await server.stop();
    assert.ok([0, 1].includes(await listener.exited));
  });
});

test("without a server there is nothing to listen to", async () => {
  const none = await command("/nonexistent", "tail");
  assert.equal(none.status, 1);
  assert.match(none.stderr, /no server runs/);
  assert.equal((await command("/nonexistent", "tail", "--status", "odd")).status, 2);
});
