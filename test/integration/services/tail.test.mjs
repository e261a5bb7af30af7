// OB-2 Tail consumers: every kind of invocation is told, with the shape of the platform, after it has ended.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { WebSocket } from "ws";
import { ask } from "../admin/lib.mjs";
import { cairn, project, serve } from "../lib/server.mjs";
import { objects, queue, services } from "../lib/toml.mjs";

const producer = project({
  "wrangler.toml": `name = "producer"
main = "index.js"
compatibility_date = "2026-03-01"
compatibility_flags = ["nodejs_compat"]
${objects({ ROOM: "Room", FRAGILE: "Fragile" })}
[cairn.limits]
object_idle_ms = 300
${services({ SELF: { service: "producer", entrypoint: "Adder" } })}
${queue("QUEUE", "tailed", { max_batch_timeout: 0 })}
[triggers]
crons = ["0 0 1 1 *"]
[[tail_consumers]]
service = "watcher"
`,
  "index.js": `import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
import { channel } from "node:diagnostics_channel";
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export class Room extends DurableObject {
  async speak(what) {
    console.log("room says", what);
    await sleep(1);
    await this.ctx.storage.setAlarm(Date.now());
    console.warn("room is done");
    return 1;
  }
  boom() { throw new RangeError("object boom"); }
  alarm() { console.log("alarm"); }
  fetch() {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage(socket, message) {
    console.log("got", message);
    if (message === "throw") throw new Error("socket boom");
  }
  webSocketClose() {}
}
export class Fragile extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    console.log("constructed");
    if (ctx.storage.kv.get("broken")) throw new SyntaxError("the constructor failed");
  }
  hello() { console.log("hello"); }
  break() { this.ctx.storage.kv.put("broken", true); }
  fetch() {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage() {}
}
export class Adder extends WorkerEntrypoint {
  add(a, b) { console.log("add"); return a + b; }
  fetch() { return new Response("x", { status: 202 }); }
}
const cycle = {}; cycle.cycle = cycle;
class Custom { toJSON() { return "json!"; } }
const paths = {
  "/log": async (env, ctx) => {
    console.log("a", 1, true, null, undefined, { x: [1, { y: 2 }] }, new Error("inner"), new Map([[1, 2]]), 5n, Symbol("s"), new Date(0), NaN, [1, [2]], new Custom(), new Uint8Array([1, 2]), "é");
    console.debug("d"); console.info("i"); console.warn("w"); console.error("e", new TypeError("te")); console.log(); console.log(cycle);
    console.table([{ a: 1 }]);
    channel("my-channel").publish({ hello: "w" });
    ctx.waitUntil(sleep(20).then(() => console.log("late")));
    return new Response("ok", { status: 201 });
  },
  "/throw": async () => { await sleep(1); throw new TypeError("my error"); },
  "/reject": async (env, ctx) => { ctx.waitUntil(Promise.reject(new Error("in waitUntil"))); return new Response("r"); },
  "/rpc": async (env) => { await env.SELF.add(1, 2); return new Response("r"); },
  "/sub": async (env) => env.SELF.fetch("http://x/y?z=1"),
  "/object": async (env) => { await env.ROOM.getByName("n").speak({ a: 1 }); return new Response("r"); },
  "/boom": async (env) => { await env.ROOM.getByName("n").boom().catch(() => {}); return new Response("r"); },
  "/queue": async (env) => { await env.QUEUE.send({ a: 1 }); return new Response("r"); },
  "/fragile": async (env) => { await env.FRAGILE.getByName("f").hello(); return new Response("r"); },
  "/break": async (env) => { await env.FRAGILE.getByName("f").break(); return new Response("r"); },
  "/much": async () => { for (let i = 0; i < 100; i++) console.log("x".repeat(10_000)); return new Response("r"); },
  "/burn": async () => { let n = 0; for (let i = 0; i < 3e7; i++) n = (n * 31 + i) | 0; return new Response(String(n)); },
};
export default {
  fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    if (pathname === "/fragilesocket") return env.FRAGILE.getByName("f").fetch(request);
    if (pathname === "/socket") return env.ROOM.getByName("s").fetch(request);
    return paths[pathname]?.(env, ctx) ?? new Response("hi");
  },
  scheduled() { console.log("scheduled"); },
  queue(batch) { console.log("batch of", batch.messages.length); if (batch.messages[0].body.fail) throw new Error("no"); },
};
`,
});
const watcher = project({
  "wrangler.toml": `name = "watcher"
main = "index.js"
compatibility_date = "2026-03-01"
[[tail_consumers]]
service = "second"
[cairn]
hosts = ["watcher.test"]
`,
  "index.js": `const seen = (globalThis.seen = []);
export default {
  async tail(events, env, ctx) {
    for (const event of events) {
      const request = event.event?.request;
      console.log("ITEM " + JSON.stringify({ ...event, isArray: Array.isArray(events), isDate: event.event?.scheduledTime instanceof Date, whole: request?.getUnredacted() }));
    }
    if (events.some((event) => event.event?.request?.url.endsWith("/tailthrows"))) throw new Error("the consumer failed");
  },
  fetch: () => new Response("watcher"),
};
`,
});
const second = project({
  "wrangler.toml": 'name = "second"\nmain = "index.js"\ncompatibility_date = "2026-03-01"\n[cairn]\nhosts = ["second.test"]\n',
  "index.js": `export default {
  tail(events) { for (const event of events) if (event.event?.consumedEvents) console.log("SECOND " + JSON.stringify(event)); },
  fetch: () => new Response("second"),
};
`,
});

describe("OB-2 tail consumers", () => {
  let server, taken = 0;
  before(async () => { server = await serve([producer, watcher, second], { args: ["--log", "json"], lanes: 1, env: { CAIRN_ADMIN: "off" } }); });
  after(() => server.stop());
  const items = (word) => server.stderr.split("\n").filter((line) => line.includes(`"message":"${word} `)).map((line) => JSON.parse(JSON.parse(line).message.slice(word.length + 1)));
  /** Waits for the next item that fits. */
  async function next(fits) {
    let found;
    await server.untilTrue(async () => {
      const all = items("ITEM");
      const index = all.findIndex((item, i) => i >= taken && fits(item));
      if (index < 0) return false;
      found = all[index];
      return true;
    }, `an item: ${fits}`);
    return found;
  }
  const of = (path) => (item) => item.event?.request?.url.endsWith(path);
  async function get(path, init) {
    taken = items("ITEM").length;
    await server.text(path, init);
  }

  /** Of every node. */
  const metrics = () => Promise.all(server.directories.map(async (data) => (await ask({ data }, "GET", "/metrics")).text));

  test("OB-2 a request: what was asked, logged and answered", async () => {
    await get("/log?secret=abcdef0123456789abcdef0123456789&x=1", { headers: { authorization: "Bearer x", "x-test": "1" } });
    const item = await next((each) => each.event?.request?.url.includes("/log"));
    assert.equal(item.isArray, true);
    assert.equal(item.scriptName, "producer");
    assert.equal(item.entrypoint, undefined);
    assert.equal(item.outcome, "ok");
    assert.equal(item.executionModel, "stateless");
    assert.equal(item.truncated, false);
    assert.ok(Math.abs(item.eventTimestamp - Date.now()) < 60_000);
    assert.ok(item.wallTime >= 20 && Number.isInteger(item.cpuTime));
    assert.deepEqual(item.exceptions, []);
    assert.deepEqual(item.event.response, { status: 201 });
    assert.ok((server.nodes ?? [server]).some(({ url }) => item.event.request.url === `${url}/log?secret=REDACTED&x=1`), item.event.request.url);
    assert.equal(item.event.request.method, "GET");
    assert.equal(item.event.request.headers.authorization, "REDACTED");
    assert.equal(item.event.request.headers["x-test"], "1");
    assert.equal(item.whole.headers.authorization, "Bearer x");
    assert.match(item.whole.url, /secret=abcdef/);
    assert.deepEqual(item.logs.map(({ level }) => level), ["log", "debug", "info", "warn", "error", "log", "log", "log"]);
    assert.deepEqual(item.logs[0].message, ["a", 1, true, null, null, { x: [1, { y: 2 }] }, "Error: inner", "[object Map]", "5", {}, "1970-01-01T00:00:00.000Z", null, [1, [2]], "json!", "1,2", "é"]);
    assert.deepEqual(item.logs.slice(4).map(({ message }) => message), [["e", "TypeError: te"], [], [{}], ["late"]]);
    for (const log of item.logs) assert.ok(log.timestamp >= item.eventTimestamp);
    assert.equal(item.diagnosticsChannelEvents.length, 1);
    assert.deepEqual({ ...item.diagnosticsChannelEvents[0], timestamp: 0 }, { timestamp: 0, channel: "my-channel", message: { hello: "w" } });
  });
  test("OB-2 exceptions, of the handler and in waitUntil()", async () => {
    await get("/throw");
    const thrown = await next(of("/throw"));
    assert.equal(thrown.outcome, "exception");
    assert.equal(thrown.event.response, undefined);
    assert.deepEqual(thrown.exceptions.map(({ name, message }) => [name, message]), [["TypeError", "my error"]]);
    assert.match(thrown.exceptions[0].stack, /index\.js/);
    await get("/reject");
    const rejected = await next(of("/reject"));
    assert.equal(rejected.outcome, "ok");
    assert.deepEqual(rejected.exceptions.map(({ message }) => message), ["in waitUntil"]);
  });
  test("OB-2 calls of entrypoints and objects, their requests, alarms", async () => {
    await get("/rpc");
    const rpc = await next((item) => item.event?.rpcMethod === "add");
    assert.deepEqual([rpc.entrypoint, rpc.executionModel, rpc.logs[0].message], ["Adder", "stateless", ["add"]]);
    await get("/sub");
    const sub = await next((item) => item.event?.request?.url === "http://x/y?z=1");
    assert.deepEqual([sub.entrypoint, sub.event.response], ["Adder", { status: 202 }]);
    await get("/object");
    const spoken = await next((item) => item.event?.rpcMethod === "speak");
    assert.deepEqual([spoken.entrypoint, spoken.executionModel, spoken.outcome], ["Room", "durableObject", "ok"]);
    assert.deepEqual(spoken.logs.map(({ message }) => message), [["room says", { a: 1 }], ["room is done"]]);
    assert.match(spoken.durableObjectId, /^[0-9a-f]{64}$/);
    const alarm = await next((item) => item.logs[0]?.message[0] === "alarm");
    assert.equal(alarm.isDate, true);
    assert.equal(alarm.entrypoint, "Room");
    await get("/boom");
    const boom = await next((item) => item.event?.rpcMethod === "boom");
    assert.deepEqual([boom.outcome, boom.exceptions[0].name, boom.exceptions[0].message], ["exception", "RangeError", "object boom"]);
  });
  test("OB-2 batches of queues, cron triggers, WebSockets", async () => {
    await get("/queue");
    const batch = await next((item) => item.event?.queue !== undefined);
    assert.deepEqual(batch.event, { queue: "tailed", batchSize: 1 });
    assert.deepEqual(batch.logs[0].message, ["batch of", 1]);
    taken = items("ITEM").length;
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/socket`);
    await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
    await next((item) => item.event?.request?.url.endsWith("/socket") && item.entrypoint === "Room" && item.event.response.status === 101);
    socket.send("hello");
    const message = await next((item) => item.event?.getWebSocketEvent?.webSocketEventType === "message");
    assert.deepEqual([message.entrypoint, message.logs[0].message, message.outcome], ["Room", ["got", "hello"], "ok"]);
    taken = items("ITEM").length;
    socket.send("throw");
    const failed = await next((item) => item.event?.getWebSocketEvent !== undefined);
    assert.deepEqual([failed.outcome, failed.exceptions[0].message], ["exception", "socket boom"]);
    socket.close(4001, "bye");
    const close = await next((item) => item.event?.getWebSocketEvent?.webSocketEventType === "close");
    assert.deepEqual(close.event.getWebSocketEvent, { webSocketEventType: "close", code: 4001, wasClean: true });
    const run = await ask({ data: server.data }, "POST", "/api/crons/producer/trigger", { body: { cron: "0 0 1 1 *" } });
    assert.ok(run.status < 300, run.text);
    const scheduled = await next((item) => item.event?.cron !== undefined);
    assert.equal(scheduled.event.cron, "0 0 1 1 *");
    assert.equal(typeof scheduled.event.scheduledTime, "number");
    assert.deepEqual(scheduled.logs[0].message, ["scheduled"]);
  });
  test("OB-2 a constructor belongs to the first call; if it throws, that call has failed", async () => {
    await get("/fragile");
    const first = await next((item) => item.event?.rpcMethod === "hello");
    assert.deepEqual(first.logs.map(({ message }) => message[0]), ["constructed", "hello"]);
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/fragilesocket`);
    await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
    await get("/break");
    const live = (text) => Number(/^cairn_objects_live\{namespace="producer\/Fragile"\} (\d+)$/m.exec(text)?.[1]);
    await server.untilTrue(async () => { // on whichever node it was
      const counts = (await metrics()).map(live);
      return counts.includes(0) && !counts.some((count) => count > 0);
    }, "the eviction");
    // The message wakes an object that cannot start.
    taken = items("ITEM").length;
    socket.send("wake up");
    const woken = await next((item) => item.entrypoint === "Fragile" && item.outcome === "exception");
    assert.deepEqual([woken.exceptions[0].name, woken.exceptions[0].message], ["SyntaxError", "the constructor failed"]);
    await get("/fragile");
    const failed = await next((item) => item.entrypoint === "Fragile" && item.outcome === "exception");
    assert.equal(failed.exceptions[0].message, "the constructor failed");
    assert.equal(await server.text("/alive"), "hi");
    socket.terminate();
  });
  test("OB-2 CPU time, and logs without end are cut", async () => {
    await get("/burn");
    assert.ok((await next(of("/burn"))).cpuTime > 5);
    await get("/much");
    const much = await next(of("/much"));
    assert.equal(much.truncated, true);
    assert.ok(much.logs.length > 5 && much.logs.length < 50);
  });
  test("OB-2 a consumer's own invocations are told to its own consumers, and a failure harms nobody", async () => {
    await get("/tailthrows");
    await server.until(/its tail\(\) handler failed: the consumer failed/);
    assert.equal(await server.text("/tailthrows"), "hi");
    await server.untilTrue(async () => items("SECOND").some((item) => item.outcome === "exception"), "the failure");
    const own = items("SECOND");
    assert.ok(own.every((item) => item.scriptName === "watcher" && item.event.consumedEvents.every(({ scriptName }) => scriptName === "producer")));
    assert.ok(own.find((item) => item.outcome === "ok").logs[0].message[0].startsWith("ITEM"));
    const all = (await metrics()).join("\n");
    assert.match(all, /^cairn_tail_events_total\{lane="0"\} [1-9]/m);
    assert.match(all, /^cairn_tail_failures_total\{lane="0"\} [1-9]/m);
  });
  test("OB-2 a flood is told in batches, as far as there is room", async () => {
    taken = items("ITEM").length;
    await Promise.all(Array.from({ length: 300 }, (_, i) => server.text(`/flood${i}`)));
    await server.untilTrue(async () => items("ITEM").filter((item) => /\/flood\d+$/.test(item.event?.request?.url)).length === 300, "all of them");
  });
});

test("OB-2 a consumer that never ends holds nobody up: what finds no room is dropped and counted", async () => {
  const make = (name, more, source) => project({ "wrangler.toml": `name = "${name}"\nmain = "index.js"\ncompatibility_date = "2026-03-01"\n${more}`, "index.js": source });
  const server = await serve([
    make("fast", '[[tail_consumers]]\nservice = "stuck"\n', "export default { fetch: () => new Response('hi') }"),
    make("stuck", '[cairn]\nhosts = ["stuck.test"]\n', "export default { tail: () => scheduler.wait(3_600_000), fetch() {} }"),
  ], { lanes: 1 });
  server.stay(); // metrics are a node's own
  for (let i = 0; i < 15; i++) assert.deepEqual(new Set(await Promise.all(Array.from({ length: 50 }, () => server.text("/")))), new Set(["hi"]));
  const text = (await ask({ data: server.data }, "GET", "/metrics")).text;
  const [told, dropped] = ["events_total", "events_dropped_total"].map((name) => Number(new RegExp(`^cairn_tail_${name}\\{lane="0"\\} (\\d+)$`, "m").exec(text)[1]));
  assert.ok(told >= 4 && told < 300, `${told}`);
  assert.ok(dropped >= 200 && dropped < 750, `${dropped}`);
  assert.equal((await server.stop()).code, 0);
});

test("OB-2 a consumer that is not there, or would be told of itself, is refused", () => {
  const refused = (...projects) => {
    try {
      execFileSync(cairn, ["serve", ...projects, "--listen", "127.0.0.1:0"], { stdio: "pipe", timeout: 120_000 });
    } catch (error) {
      return String(error.stderr);
    }
    return "";
  };
  const make = (name, consumer) => project({ "wrangler.toml": `name = "${name}"\nmain = "index.js"\ncompatibility_date = "2026-03-01"\n[[tail_consumers]]\nservice = "${consumer}"\n[cairn]\nhosts = ["${name}.test"]\n`, "index.js": "export default { tail() {}, fetch() {} }" });
  assert.match(refused(producer), /tail_consumers: no project of this server is named "watcher"/);
  assert.match(refused(make("self", "self")), /wrangler\.toml:\d+:\d+: tail_consumers: a worker cannot be told of its own invocations/);
  assert.match(refused(make("a", "b"), make("b", "a")), /never end/);
});
