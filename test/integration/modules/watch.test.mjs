// Who watches sees objects and workers in C as those in JavaScript: the same room and the same worker in both languages
// (test/module/watched.c), behind the same worker, and the same assertions for both. Tail consumers, the log,
// spans and logs of OTLP, metrics, and what the dashboard asks for: objects, their data, SQL, history.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { WebSocket } from "ws";
import { adminPort, ask, command } from "../admin/lib.mjs";
import { closeBrowser, inspect, noBrowser, withPage } from "../lib/browser.mjs";
import { compile } from "../lib/module.mjs";
import { project, serve, tempDir } from "../lib/server.mjs";

const caller = `
const paths = {
  "/speak": (room) => room.speak("hello"),
  "/boom": (room) => room.boom().catch(() => {}),
  "/reset": (room) => room.reset().catch(() => {}),
  "/ring": (room) => room.ring(),
  "/keep": (room) => room.keep("something"),
  "/fetch": (room) => room.fetch("http://room/inside?x=1", { headers: { "x-plain": "seen" } }).then((response) => response.text()),
};
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    const room = env.ROOM.getByName("lobby");
    if (pathname === "/socket") return room.fetch(request);
    if (pathname === "/front") return env.FRONT.fetch("http://front/inner?x=1", { headers: { "x-plain": "seen" } });
    if (pathname === "/front/throw") return env.FRONT.fetch("http://front/throw").catch(() => new Response("failed"));
    if (pathname === "/front/call") return Response.json(await env.FRONT.anything() ?? null);
    return Response.json(await paths[pathname](room) ?? null);
  },
};`;

const classes = `
import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  async speak(text) {
    console.info("room says " + text);
    await new Promise((resolve) => setTimeout(resolve, 1));
    console.warn("room still speaks");
    queueMicrotask(() => console.debug("room has spoken"));
    return 1;
  }
  keep(value) {
    this.ctx.storage.kv.put("kept", value);
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS notes(id INTEGER PRIMARY KEY, text TEXT); INSERT INTO notes(text) VALUES('one')");
  }
  boom() { throw new RangeError("object boom"); }
  async ring() { await this.ctx.storage.setAlarm(Date.now()); }
  reset() { this.ctx.abort("on purpose"); }
  alarm() { console.info("alarm"); }
  fetch(request) {
    if (request.headers.get("upgrade")) {
      const [client, server] = Object.values(new WebSocketPair());
      this.ctx.acceptWebSocket(server);
      return new Response(null, { status: 101, webSocket: client });
    }
    console.info("room is asked");
    return new Response("here", { status: 202 });
  }
  webSocketMessage(socket, message) {
    console.info("got " + message);
    if (message === "throw") throw new Error("socket boom");
  }
  webSocketClose(socket) { socket.close(1000, ""); }
}`;

const front = `
import { WorkerEntrypoint } from "cloudflare:workers";
export default class extends WorkerEntrypoint {
  fetch(request) {
    if (request.url.includes("/throw")) throw new TypeError("worker boom");
    console.info("worker is asked");
    return new Response("ok", { status: 201 });
  }
  anything() { console.info("worker is called"); }
  scheduled() { console.info("scheduled"); }
}`;

const module = path.join(tempDir(), "watched.so");
const watched = { tail_consumers: [{ service: "watcher" }], triggers: { crons: ["0 0 1 1 *"] } };

/** The projects in one language: an application with its room, a worker behind a service binding, and who consumes their tails. */
function projects(language) {
  const inC = language === "C";
  const room = inC ? "watched:Room" : "Room";
  const settings = inC ? { modules: { watched: module } } : {};
  return [
    project({
      "wrangler.json": JSON.stringify({
        name: "app", main: "index.js", compatibility_date: "2026-03-01", tail_consumers: watched.tail_consumers, services: [{ binding: "FRONT", service: "front" }],
        durable_objects: { bindings: [{ name: "ROOM", class_name: room }] }, migrations: [{ tag: "v1", new_sqlite_classes: [room] }],
        cairn: settings,
      }),
      "index.js": inC ? caller : classes + caller,
    }),
    project({
      "wrangler.json": JSON.stringify({ name: "front", compatibility_date: "2026-03-01", ...watched, ...(inC ? {} : { main: "index.js" }), cairn: { hosts: ["front.test"], ...settings, ...(inC ? { worker: "watched:Front" } : {}) } }),
      ...(inC ? {} : { "index.js": front }),
    }),
    project({
      "wrangler.json": JSON.stringify({ name: "watcher", main: "index.js", compatibility_date: "2026-03-01", cairn: { hosts: ["watcher.test"] } }),
      "index.js": `export default { fetch: () => new Response(""), tail(items) { for (const item of items) console.log("ITEM " + JSON.stringify({ ...item, event: item.event && { ...item.event, request: item.event.request && { url: item.event.request.url, method: item.event.request.method, headers: item.event.request.headers } } })); } };`,
    }),
  ];
}

const asked = (server, target) => new Promise((resolve, reject) => {
  const request = http.get({ host: "127.0.0.1", port: server.port, path: target, headers: { host: "front.test" } }, (response) => { response.resume().on("end", () => resolve(response.statusCode)); });
  request.on("error", reject);
});

for (const language of ["JavaScript", "C"]) {
  const className = language === "C" ? "watched:Room" : "Room";
  before(() => { if (language === "C") compile("test/module/watched.c", module); });

  describe(`${language}: tail consumers`, () => {
    let server;
    before(async () => { server = await serve(projects(language)); });
    after(() => server.stop());
    const items = () => [...server.output.matchAll(/ITEM (\{.*\})$/gm)].map(([, text]) => JSON.parse(text));
    /** Waits for a trace and takes its essence. */
    async function told(fits) {
      await server.untilTrue(() => items().some(fits), "the trace");
      const item = items().find(fits);
      assert.ok(Math.abs(item.eventTimestamp - Date.now()) < 60_000 && item.wallTime >= 0 && item.cpuTime >= 0 && item.truncated === false);
      for (const { timestamp } of [...item.logs, ...item.exceptions]) assert.ok(timestamp >= item.eventTimestamp);
      return {
        entrypoint: item.entrypoint, model: item.executionModel, outcome: item.outcome, event: item.event,
        logs: item.logs.map(({ level, message }) => [level, ...message]), exceptions: item.exceptions.map(({ name, message }) => [name, message]),
      };
    }
    const inRoom = { entrypoint: className, model: "durableObject", outcome: "ok", logs: [], exceptions: [] };
    const ofRoom = (fits) => (item) => item.entrypoint === className && fits(item.event);

    test("a call, with what its callbacks log, and after its answer", async () => {
      assert.equal(await server.text("/speak"), "1");
      assert.deepEqual(await told(ofRoom((event) => event.rpcMethod === "speak")), {
        ...inRoom, event: { rpcMethod: "speak" }, logs: [["info", "room says hello"], ["warn", "room still speaks"], ["debug", "room has spoken"]],
      });
    });
    test("a call that fails, and one whose object was reset", async () => {
      await server.text("/boom");
      assert.deepEqual(await told(ofRoom((event) => event.rpcMethod === "boom")), { ...inRoom, event: { rpcMethod: "boom" }, outcome: "exception", exceptions: [["RangeError", "object boom"]] });
      await server.text("/reset");
      const { outcome } = await told(ofRoom((event) => event.rpcMethod === "reset"));
      assert.equal(outcome, "exception");
    });
    test("a request, with its headers and its status", async () => {
      assert.equal(await server.text("/fetch"), '"here"');
      const { event, ...rest } = await told(ofRoom((each) => each.request !== undefined));
      assert.deepEqual(rest, { ...inRoom, logs: [["info", "room is asked"]] });
      assert.deepEqual([event.request.url, event.request.method, event.request.headers["x-plain"], event.response], ["http://room/inside?x=1", "GET", "seen", { status: 202 }]);
    });
    test("an alarm", async () => {
      await server.text("/ring");
      const { event, ...rest } = await told(ofRoom((each) => each.scheduledTime !== undefined));
      assert.deepEqual(rest, { ...inRoom, logs: [["info", "alarm"]] });
      assert.ok(Math.abs(new Date(event.scheduledTime) - Date.now()) < 60_000);
    });
    test("events of a WebSocket", async () => {
      const socket = new WebSocket(`${server.url.replace("http", "ws")}/socket`);
      await new Promise((resolve, reject) => { socket.on("open", resolve); socket.on("error", reject); });
      socket.send("hi");
      socket.send("throw");
      const type = (event) => event.getWebSocketEvent?.webSocketEventType;
      const message = await told((item) => type(item.event ?? {}) === "message" && item.outcome === "ok");
      assert.deepEqual(message, { ...inRoom, event: { getWebSocketEvent: { webSocketEventType: "message" } }, logs: [["info", "got hi"]] });
      const failed = await told((item) => type(item.event ?? {}) === "message" && item.outcome === "exception");
      assert.deepEqual([failed.exceptions, failed.logs[0]], [[["Error", "socket boom"]], ["info", "got throw"]]);
      socket.close(3001, "enough");
      const close = await told((item) => type(item.event ?? {}) === "close");
      assert.deepEqual([close.outcome, close.event], ["ok", { getWebSocketEvent: { webSocketEventType: "close", code: 3001, wasClean: true } }]);
      const { event } = await told((item) => item.entrypoint === className && item.event.response?.status === 101);
      assert.match(event.request.url, /\/socket$/);
    });
    test("a worker: requests from outside and inside, methods, cron triggers, failures", async () => {
      const byUrl = (url) => (item) => item.scriptName === "front" && item.event.request?.url.includes(url);
      const stateless = { entrypoint: undefined, model: "stateless", outcome: "ok", logs: [["info", "worker is asked"]], exceptions: [] };
      assert.equal(await asked(server, "/outside?x=1"), 201);
      const { event, ...rest } = await told(byUrl("/outside?x=1"));
      assert.deepEqual(rest, stateless);
      assert.deepEqual([event.request.method, event.request.headers.host, event.response], ["GET", "front.test", { status: 201 }]);
      assert.equal(await server.text("/front"), "ok");
      const inner = await told(byUrl("front/inner?x=1"));
      assert.deepEqual([inner.event.response, inner.event.request.headers["x-plain"], inner.logs], [{ status: 201 }, "seen", stateless.logs]);
      await server.text("/front/call");
      assert.deepEqual(await told((item) => item.event?.rpcMethod === "anything"), { ...stateless, event: { rpcMethod: "anything" }, logs: [["info", "worker is called"]] });
      assert.equal(await asked(server, "/throw"), 500);
      const thrown = await told(byUrl("front.test/throw"));
      assert.deepEqual([thrown.outcome, thrown.exceptions, thrown.event.response], ["exception", [["TypeError", "worker boom"]], undefined]);
      await server.text("/front/throw");
      const inside = await told(byUrl("front/throw"));
      assert.deepEqual([inside.outcome, inside.exceptions], ["exception", [["TypeError", "worker boom"]]]);
      const run = await ask({ data: server.data }, "POST", "/api/crons/front/trigger", { body: { cron: "0 0 1 1 *" } });
      assert.equal(run.status, 200, run.text);
      const cron = await told((item) => item.event?.cron !== undefined);
      assert.deepEqual([cron.event.cron, cron.logs, cron.outcome], ["0 0 1 1 *", [["info", "scheduled"]], "ok"]);
    });
  });

  describe(`${language}: the log, metrics and administration`, () => {
    let server;
    before(async () => { server = await serve(projects(language), { args: ["--log", "json"], lanes: 2 }); });
    after(() => server.stop());
    const lines = (text) => server.stderr.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line)).filter((line) => line.message === text);
    const object = (rest = "") => `/api/objects/${encodeURIComponent(`app/${className}`)}/lobby${rest}`;

    test("lines name worker, class, object, name and request; of an alarm, too", async () => {
      await server.text("/speak");
      await server.text("/ring");
      await server.untilTrue(() => lines("room still speaks").length === 1 && lines("alarm").length === 1, "the lines");
      const [says] = lines("room says hello"), [still] = lines("room still speaks"), [alarm] = lines("alarm");
      for (const line of [says, still, alarm]) {
        assert.deepEqual([line.worker, line.class, line.name], ["app", className, "lobby"]);
        assert.match(line.object, /^[0-9a-f]{64}$/);
        assert.match(line.request, /^[0-9a-f]{16}$/);
      }
      assert.equal(says.request, still.request);
      assert.notEqual(says.request, alarm.request);
      assert.deepEqual([says.level, still.level], ["info", "warn"]);
    });
    test("metrics count calls, failures and live objects of the class", async () => {
      await server.text("/boom");
      const { text } = await ask({ data: server.data }, "GET", "/metrics");
      const value = (name) => Number(text.split("\n").find((line) => line.startsWith(`${name}{namespace="app/${className}"} `))?.split(" ")[1]);
      const names = ["cairn_object_calls_total", "cairn_object_call_failures_total", "cairn_objects_live", "cairn_objects_started_total", "cairn_objects_reset_total", "cairn_alarms_fired_total", "cairn_object_call_duration_seconds_count"];
      assert.deepEqual(names.map(value), [4, 1, 1, 1, 0, 1, 4]); // speak, ring, the alarm, boom
      assert.ok(value("cairn_object_cpu_seconds_total") > 0);
      for (const [target, status] of [["/a", 201], ["/throw", 500]]) assert.equal(await asked(server, target), status);
      await server.untilTrue(async () => {
        const { text } = await ask({ data: server.data }, "GET", "/metrics");
        const has = (line) => text.includes(`\n${line}`);
        return has(`cairn_requests_total{worker="front",status="2xx"} 1\n`) && has(`cairn_worker_exceptions_total{worker="front"} 1\n`) && has(`cairn_worker_cpu_seconds_total{worker="front"} 0.0`);
      }, "the worker's metrics");
    });
    test("the object browser, its data, SQL, history and a way back", async () => {
      await server.text("/keep");
      const at = { data: server.data };
      const { json } = await ask(at, "GET", `/api/objects?namespace=${encodeURIComponent(`app/${className}`)}`);
      assert.deepEqual(json.objects.map(({ name }) => name), ["lobby"]);
      const shown = (await ask(at, "GET", object())).json;
      assert.deepEqual([shown.name, shown.live, shown.keys, shown.alarm], ["lobby", true, 1, null]);
      assert.deepEqual(shown.tables.map(({ name, rows }) => [name, rows]), [["notes", 1]]);
      const pairs = (await ask(at, "GET", object("/kv"))).text;
      assert.match(pairs, /"kept"/);
      assert.match(pairs, /something/);
      const { commits } = (await ask(at, "GET", object("/history"))).json;
      assert.ok(commits.length > 0 && commits.every(({ kind, bookmark }) => kind && bookmark));
      const rows = await command(server.data, "objects", "sql", `app/${className}`, "lobby", "SELECT text FROM notes");
      assert.deepEqual([rows.status, rows.stdout], [0, "text\none\n"]);
      const earlier = shown.bookmark;
      await command(server.data, "objects", "sql", `app/${className}`, "lobby", "DELETE FROM notes");
      assert.equal((await command(server.data, "objects", "sql", `app/${className}`, "lobby", "SELECT text FROM notes")).stdout, "text\n");
      const back = await command(server.data, "objects", "restore", `app/${className}`, "lobby", "--bookmark", earlier);
      assert.equal(back.status, 0, back.stderr);
      assert.equal((await command(server.data, "objects", "sql", `app/${className}`, "lobby", "SELECT text FROM notes")).stdout, "text\none\n");
      assert.match((await command(server.data, "objects", "inspect", `app/${className}`, "lobby")).stdout, /notes/);
    });
  });

  test(`${language}: the dashboard`, { skip: noBrowser }, async (t) => {
    const server = await serve(projects(language), { args: ["--admin", "127.0.0.1:0"] });
    t.after(async () => { await closeBrowser(); await server.stop(); });
    const port = await adminPort(server);
    const secret = readFileSync(path.join(server.data, "admin.token"), "utf8").trim();
    for (const target of ["/keep", "/speak", "/boom"]) await server.text(target);
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/socket`);
    t.after(() => socket.terminate());
    await new Promise((resolve, reject) => { socket.on("open", resolve); socket.on("error", reject); });
    const namespace = `app/${className}`, place = `#/object/${encodeURIComponent(namespace)}/lobby`;
    await withPage({ width: 1280 }, async (page) => {
      const shows = (text) => page.waitForFunction((text) => document.querySelector("main").textContent.includes(text), text);
      await page.goto(`http://127.0.0.1:${port}/#token=${secret}`);
      await page.waitForSelector(".chart");
      for (const [hash, texts] of [
        ["#/overview", [namespace]],
        ["#/workers", ["app", "ROOM", className, language === "C" ? "watched:Front" : "front"]],
        ["#/objects", ["lobby", namespace]],
        [place, ["lobby", "notes", "one", "Schema"]],
        [`${place}/pairs`, ["kept", "something"]],
        [`${place}/history`, ["Restore to this moment"]],
        [`${place}/sockets`, ["hibernatable"]],
      ]) {
        await page.evaluate((hash) => { location.hash = hash; }, hash);
        for (const text of texts) await shows(text);
        assert.equal(await page.locator("main .state.bad").count(), 0, hash);
        await inspect(page, `${language}-${hash.replace(/[^a-z0-9]+/gi, "-").slice(2, 50)}`);
      }
      await page.evaluate(() => { location.hash = "#/logs"; });
      await shows("All workers");
      await server.untilTrue(async () => { await server.text("/speak"); return page.evaluate(() => document.querySelector("main").textContent.includes("room still speaks")); }, "the lines in the view of logs");
      await inspect(page, `${language}-logs`);
    });
  });

  describe(`${language}: OTLP`, () => {
    let server, collector;
    const seen = { traces: [], logs: [] };
    before(async () => {
      collector = http.createServer(async (request, response) => {
        let text = "";
        for await (const part of request.setEncoding("utf8")) text += part;
        const body = JSON.parse(text);
        if (request.url === "/v1/traces") seen.traces.push(...body.resourceSpans[0].scopeSpans[0].spans);
        if (request.url === "/v1/logs") seen.logs.push(...body.resourceLogs[0].scopeLogs[0].logRecords);
        response.writeHead(200, { "content-type": "application/json" }).end("{}");
      });
      await new Promise((resolve) => collector.listen(0, "127.0.0.1", resolve));
      server = await serve(projects(language), { env: { CAIRN_OTLP_ENDPOINT: `http://127.0.0.1:${collector.address().port}`, CAIRN_OTLP_INTERVAL: "1" } });
    });
    after(async () => { await server.stop(); collector.closeAllConnections(); collector.close(); });
    const attribute = (of, key) => Object.values(of.attributes.find((each) => each.key === key)?.value ?? {})[0];

    test("a call of an object is a span below its request's, and its lines belong to it", async () => {
      await server.text("/speak", { headers: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" } });
      await server.text("/boom");
      await server.text("/front");
      const span = (name) => seen.traces.find((each) => each.name === name);
      await server.untilTrue(() => ["GET /speak", `${className}.speak`, `${className}.boom`, "GET /inner"].every(span), "the spans");
      await server.untilTrue(() => seen.logs.some((each) => each.body.stringValue === "room still speaks"), "the lines");
      const request = span("GET /speak"), call = span(`${className}.speak`);
      assert.deepEqual([call.traceId, call.parentSpanId], ["0af7651916cd43dd8448eb211c80319c", request.spanId]);
      assert.deepEqual(["cairn.worker", "rpc.method", "cairn.object.name", "cairn.outcome"].map((key) => attribute(call, key)), ["app", "speak", "lobby", "ok"]);
      assert.match(attribute(call, "cairn.object.id"), /^[0-9a-f]{64}$/);
      const boom = span(`${className}.boom`);
      assert.deepEqual([boom.status.code, boom.events[0].name, attribute(boom.events[0], "exception.type"), attribute(boom.events[0], "exception.message")], [2, "exception", "RangeError", "object boom"]);
      for (const text of ["room says hello", "room still speaks"]) {
        const line = seen.logs.find((each) => each.body.stringValue === text);
        assert.deepEqual([line.traceId, line.spanId, attribute(line, "cairn.class")], [call.traceId, call.spanId, className]);
      }
      const inner = span("GET /inner"), outer = span("GET /front");
      assert.deepEqual([inner.traceId, inner.parentSpanId, attribute(inner, "http.response.status_code")], [outer.traceId, outer.spanId, "201"]);
    });
  });
}
