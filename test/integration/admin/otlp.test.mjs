// OB-3 OTLP: a collector gets traces, logs and metrics in the shape that the protocol's JSON encoding
// demands, in every field; one that fails, is slow or away harms nobody.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import http from "node:http";
import { after, before, describe, test } from "node:test";
import { cairn, project, serve } from "../lib/server.mjs";
import { ask } from "./lib.mjs";
import { objects, queue } from "../lib/toml.mjs";

/* --- a collector that refuses what is not as it should be ------------------------------------- */

const keys = (object, required, optional = []) => {
  for (const key of required) assert.ok(key in object, `${key} is missing in ${JSON.stringify(object)}`);
  for (const key of Object.keys(object)) assert.ok(required.includes(key) || optional.includes(key), `unknown field ${key}`);
};
const is64 = (value) => assert.match(value, /^\d{1,20}$/); // 64-bit numbers are strings
const isTime = (value) => { is64(value); assert.ok(Math.abs(Number(BigInt(value) / 1000000n) - Date.now()) < 3600_000, `${value} is not now`); };
const isHex = (value, size) => { assert.match(value, new RegExp(`^[0-9a-f]{${size}}$`)); assert.match(value, /[1-9a-f]/); };

/** KeyValue[] as an object. */
function attributes(list) {
  const result = {};
  assert.ok(Array.isArray(list));
  for (const pair of list) {
    keys(pair, ["key", "value"]);
    assert.ok(!(pair.key in result), `${pair.key} is there twice`);
    const [[kind, value]] = Object.entries(pair.value);
    assert.equal(Object.keys(pair.value).length, 1);
    if (kind === "intValue") is64(value);
    else if (kind === "boolValue") assert.equal(typeof value, "boolean");
    else if (kind === "doubleValue") assert.equal(typeof value, "number");
    else assert.equal(kind, "stringValue");
    result[pair.key] = value;
  }
  return result;
}

function unwrap(body, plural, singular, elements) {
  keys(body, [`resource${plural}`]);
  assert.equal(body[`resource${plural}`].length, 1);
  const [group] = body[`resource${plural}`];
  keys(group, ["resource", `scope${plural}`]);
  keys(group.resource, ["attributes"]);
  const resource = attributes(group.resource.attributes);
  for (const name of ["service.name", "service.version", "service.instance.id", "host.name", "process.pid"]) assert.ok(resource[name], name);
  assert.equal(group[`scope${plural}`].length, 1);
  const [scope] = group[`scope${plural}`];
  keys(scope, ["scope", elements]);
  keys(scope.scope, ["name", "version"]);
  assert.equal(scope.scope.name, "cairn");
  assert.ok(scope[elements].length > 0, `no ${singular}`);
  return { resource, items: scope[elements] };
}

const check = {
  traces(body) {
    const { resource, items } = unwrap(body, "Spans", "span", "spans");
    for (const span of items) {
      keys(span, ["traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes", "events", "status", "flags"], ["parentSpanId"]);
      isHex(span.traceId, 32);
      isHex(span.spanId, 16);
      if (span.parentSpanId !== undefined) isHex(span.parentSpanId, 16);
      assert.ok([1, 2, 3, 4, 5].includes(span.kind));
      isTime(span.startTimeUnixNano);
      isTime(span.endTimeUnixNano);
      assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano));
      keys(span.status, ["code"], ["message"]);
      assert.ok([0, 1, 2].includes(span.status.code));
      assert.equal(span.flags, 1);
      assert.ok(span.name.length > 0);
      span.attributes = attributes(span.attributes);
      for (const event of span.events) {
        keys(event, ["timeUnixNano", "name", "attributes"]);
        isTime(event.timeUnixNano);
        event.attributes = attributes(event.attributes);
      }
    }
    return { resource, items };
  },
  logs(body) {
    const { resource, items } = unwrap(body, "Logs", "log record", "logRecords");
    for (const record of items) {
      keys(record, ["timeUnixNano", "observedTimeUnixNano", "severityNumber", "severityText", "body", "attributes"], ["traceId", "spanId", "flags"]);
      isTime(record.timeUnixNano);
      isTime(record.observedTimeUnixNano);
      assert.equal({ DEBUG: 5, INFO: 9, WARN: 13, ERROR: 17 }[record.severityText], record.severityNumber);
      keys(record.body, ["stringValue"]);
      if (record.traceId !== undefined) isHex(record.traceId, 32);
      if (record.spanId !== undefined) isHex(record.spanId, 16);
      record.attributes = attributes(record.attributes);
    }
    return { resource, items };
  },
  metrics(body) {
    const { resource, items } = unwrap(body, "Metrics", "metric", "metrics");
    const names = new Set();
    for (const metric of items) {
      const kind = ["sum", "gauge", "histogram"].find((each) => each in metric);
      keys(metric, ["name", "unit", "description", kind]);
      assert.ok(!names.has(metric.name));
      names.add(metric.name);
      const data = metric[kind];
      keys(data, { sum: ["dataPoints", "aggregationTemporality", "isMonotonic"], gauge: ["dataPoints"], histogram: ["dataPoints", "aggregationTemporality"] }[kind]);
      if (kind !== "gauge") assert.equal(data.aggregationTemporality, 2);
      if (kind === "sum") assert.equal(data.isMonotonic, true);
      for (const point of data.dataPoints) {
        isTime(point.timeUnixNano);
        if (kind !== "gauge") isTime(point.startTimeUnixNano);
        point.attributes = attributes(point.attributes);
        if (kind === "histogram") {
          keys(point, ["attributes", "startTimeUnixNano", "timeUnixNano", "count", "sum", "bucketCounts", "explicitBounds"]);
          point.bucketCounts.forEach(is64);
          assert.equal(point.bucketCounts.length, point.explicitBounds.length + 1);
          for (let i = 1; i < point.explicitBounds.length; i++) assert.ok(point.explicitBounds[i] > point.explicitBounds[i - 1]);
          assert.equal(point.bucketCounts.reduce((sum, each) => sum + BigInt(each), 0n), BigInt(point.count));
        } else {
          keys(point, ["attributes", "timeUnixNano"], ["startTimeUnixNano", "asInt", "asDouble"]);
          assert.ok("asInt" in point !== "asDouble" in point);
          if ("asInt" in point) is64(point.asInt);
          else assert.equal(typeof point.asDouble, "number");
        }
      }
    }
    return { resource, items };
  },
};

/** `respond(signal, n)` may give [status, headers, body] for the nth request of a signal, or a promise. */
async function collector(respond = () => undefined) {
  const seen = { traces: [], logs: [], metrics: [], requests: [], problems: [], resource: null };
  const counts = {};
  const server = http.createServer(async (request, response) => {
    let text = "";
    for await (const part of request.setEncoding("utf8")) text += part;
    const signal = request.url.replace("/v1/", "");
    const n = (counts[signal] = (counts[signal] ?? 0) + 1);
    seen.requests.push({ signal, at: Date.now(), headers: request.headers });
    const answer = await respond(signal, n);
    if (answer === undefined || answer[0] === 200) {
      try {
        assert.equal(request.method, "POST");
        assert.equal(request.headers["content-type"], "application/json");
        const { resource, items } = check[signal](JSON.parse(text));
        seen.resource = resource;
        if (signal === "metrics") seen.metrics = items;
        else seen[signal].push(...items);
      } catch (error) {
        seen.problems.push(error);
      }
    }
    response.writeHead(answer?.[0] ?? 200, { "content-type": "application/json", ...answer?.[1] }).end(answer?.[2] ?? "{}");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  seen.url = `http://127.0.0.1:${server.address().port}`;
  seen.close = () => { server.closeAllConnections?.(); server.close(); };
  return seen;
}

/* --- the worker ------------------------------------------------------------------------------- */

const files = (otlp) => ({
  "wrangler.toml": `name = "app"
main = "index.js"
compatibility_date = "2026-03-01"
${objects({ ROOM: "Room" })}
${queue("QUEUE", "spans", { max_batch_timeout: 0 })}
[triggers]
crons = ["0 0 1 1 *"]
${otlp}
`,
  "index.js": `import { DurableObject, tracing } from "cloudflare:workers";
const nap = () => new Promise((resolve) => setTimeout(resolve, 1));
export class Room extends DurableObject {
  async measured() {
    return tracing.enterSpan("in the object", (span) => span.spanContext().traceId);
  }
  async speak() {
    console.log("room speaks");
    await this.ctx.storage.setAlarm(Date.now());
  }
  alarm() {}
}
export default {
  async fetch(request, env, ctx) {
    const url = new URL(request.url);
    if (url.pathname === "/spans") {
      const open = ctx.tracing.startSpan("open").setAttributes({ text: "t\\u{1f600}", count: 3, part: 0.5, yes: true, no: undefined, object: {} });
      const failed = await tracing.enterSpan("outer", async (outer) => {
        await nap();
        const inner = tracing.enterSpan("inner", (span, word) => [word, tracing.getActiveSpan() === span], "word");
        await nap();
        return [inner, await tracing.enterSpan("failing", async (span) => {
          await nap();
          span.recordException(new RangeError("deliberate"));
          span.setStatus({ code: "error", message: "it failed" });
          throw new Error("out");
        }).catch((error) => error.message), tracing.getActiveSpan() === outer];
      });
      const seen = [open.isTraced, open.updateName("renamed").end(), open.isTraced, open.setAttribute("late", 1) === open, tracing.getActiveSpan().isTraced];
      const long = tracing.startSpan("é".repeat(60));
      long.setAttribute("first", "x".repeat(60000)).setAttribute("second", "y".repeat(60000)).end();
      tracing.startSpan("never ended");
      return Response.json([failed, seen, await env.ROOM.getByName("lobby").measured(), open.spanContext().traceId]);
    }
    if (url.pathname === "/throw") throw new TypeError("deliberate");
    if (url.pathname === "/object") { await env.ROOM.getByName("lobby").speak(); console.warn("after the object"); }
    if (url.pathname === "/queue") await env.QUEUE.send(1);
    if (url.pathname === "/out") return fetch(url.searchParams.get("to"));
    return new Response("ok");
  },
  queue() {},
  scheduled() {},
};
`,
});

describe("OB-3 a collector", () => {
  let server, seen;
  before(async () => {
    seen = await collector();
    const dir = project(files(`[cairn.otlp]\nendpoint = "${seen.url}/"\ninterval = 1\nheaders = { "x-key" = "secret" }\n`));
    server = await serve(dir, { lanes: 2, env: { OTEL_SERVICE_NAME: "my-service", OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test,team=a%20b" } });
  });
  after(async () => { await server.stop(); seen.close(); });
  const span = (fits) => seen.traces.find(fits);

  test("OB-3 gets a span for each request, with its parent's ids", async () => {
    const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    assert.equal(await server.text("/object", { headers: { traceparent: parent } }), "ok");
    await server.untilTrue(async () => ["GET /object", "Room.speak", "Room.alarm"].every((name) => span((each) => each.name === name)), "the spans"); // each goes out when it is over
    const request = span((each) => each.name === "GET /object");
    assert.equal(request.traceId, "0af7651916cd43dd8448eb211c80319c");
    assert.equal(request.parentSpanId, "b7ad6b7169203331");
    assert.equal(request.kind, 2);
    const { "cairn.cpu_ms": cpu, "cairn.request": id, ...rest } = request.attributes;
    assert.deepEqual(rest, { "cairn.worker": "app", "cairn.event": "fetch", "cairn.outcome": "ok", "http.request.method": "GET", "url.path": "/object", "http.response.status_code": "200" });
    assert.ok(cpu > 0);
    const call = span((each) => each.name === "Room.speak");
    assert.deepEqual([call.traceId, call.parentSpanId, call.attributes["cairn.request"]], [request.traceId, request.spanId, id]);
    assert.equal(call.attributes["rpc.method"], "speak");
    assert.equal(call.attributes["cairn.object.name"], "lobby");
    assert.match(call.attributes["cairn.object.id"], /^[0-9a-f]{64}$/);
    const alarm = span((each) => each.name === "Room.alarm");
    assert.notEqual(alarm.traceId, request.traceId);
    // The log's lines belong to the spans that said them.
    await server.untilTrue(async () => ["room speaks", "after the object"].every((text) => seen.logs.some((record) => record.body.stringValue === text)), "the logs");
    const [inside] = seen.logs.filter((record) => record.body.stringValue === "room speaks");
    const [outside] = seen.logs.filter((record) => record.body.stringValue === "after the object");
    assert.deepEqual([inside.traceId, inside.spanId, outside.traceId, outside.spanId], [call.traceId, call.spanId, request.traceId, request.spanId]);
    assert.deepEqual([inside.severityText, outside.severityText], ["INFO", "WARN"]);
    assert.deepEqual([inside.attributes["cairn.worker"], inside.attributes["cairn.class"], inside.attributes["cairn.name"]], ["app", "Room", "lobby"]);
  });
  test("OB-3 gets exceptions, queues and cron triggers", async () => {
    await server.text("/throw");
    await server.text("/queue");
    await ask({ data: server.data }, "POST", "/api/crons/app/trigger", { body: { cron: "0 0 1 1 *" } });
    await server.untilTrue(async () => ["GET /throw", "queue spans", "scheduled 0 0 1 1 *"].every((name) => span((each) => each.name === name)), "the spans");
    const thrown = span((each) => each.name === "GET /throw");
    assert.equal(thrown.status.code, 2);
    assert.equal(thrown.attributes["cairn.outcome"], "exception");
    assert.equal(thrown.events[0].name, "exception");
    assert.deepEqual([thrown.events[0].attributes["exception.type"], thrown.events[0].attributes["exception.message"]], ["TypeError", "deliberate"]);
    assert.match(thrown.events[0].attributes["exception.stacktrace"], /index\.js/);
    assert.deepEqual([span((each) => each.name === "queue spans").kind, span((each) => each.name === "queue spans").attributes["messaging.destination.name"]], [5, "spans"]);
  });
  test("OB-3 gets the spans that a script makes, below its own", async () => {
    const [failed, seenThere, there, here] = JSON.parse(await server.text("/spans"));
    assert.deepEqual(failed, [["word", true], "out", true]);
    assert.deepEqual(seenThere, [true, null, false, true, false]);
    assert.equal(there, here); // a call is of the same trace
    await server.untilTrue(async () => ["GET /spans", "renamed", "inner", "outer", "failing", "in the object", "é".repeat(32)].every((name) => span((each) => each.name === name)), "the spans");
    const [request, renamed, outer, inner, failing, far, long, call] = ["GET /spans", "renamed", "outer", "inner", "failing", "in the object", "é".repeat(32), "Room.measured"].map((name) => span((each) => each.name === name));
    for (const each of [renamed, outer, inner, failing, far, long]) assert.equal(each.traceId, request.traceId);
    assert.deepEqual([renamed.parentSpanId, outer.parentSpanId, inner.parentSpanId, failing.parentSpanId, far.parentSpanId],
      [request.spanId, request.spanId, outer.spanId, outer.spanId, call.spanId]);
    assert.deepEqual(renamed.attributes, { "cairn.worker": "app", text: "t\u{1f600}", count: "3", part: 0.5, yes: true, object: "[object Object]" });
    assert.deepEqual([failing.status, outer.status], [{ code: 2, message: "it failed" }, { code: 0 }]);
    assert.deepEqual(failing.events.map((event) => [event.name, event.attributes["exception.type"], event.attributes["exception.message"]]), [["exception", "RangeError", "deliberate"]]);
    assert.ok(BigInt(outer.endTimeUnixNano) - BigInt(outer.startTimeUnixNano) >= 2_000_000n); // the clock of spans goes on in a turn
    assert.deepEqual([long.attributes.second, long.attributes["cloudflare.warning.type"]], [undefined, "span_data_limit_exceeded"]);
    assert.equal(span((each) => each.name === "never ended"), undefined);
  });
  test("OB-3 requests that a worker makes carry its span", async () => {
    let header;
    const origin = http.createServer((request, response) => { header = request.headers.traceparent; response.end("x"); });
    await new Promise((resolve) => origin.listen(0, "127.0.0.1", resolve));
    await server.text(`/out?to=${encodeURIComponent(`http://127.0.0.1:${origin.address().port}/`)}`);
    await server.untilTrue(async () => span((each) => each.name === "GET /out"), "the span");
    const { traceId, spanId } = span((each) => each.name === "GET /out");
    assert.equal(header, `00-${traceId}-${spanId}-01`);
    origin.close();
  });
  test("OB-3 gets metrics, and everything has the process's resource and the headers asked for", async () => {
    const value = (name, label) => seen.metrics.find((metric) => metric.name === name)?.sum?.dataPoints.find((point) => Object.values(point.attributes).includes(label))?.asInt;
    await server.untilTrue(async () => Number(value("cairn_requests_total", "2xx")) >= 2, "the requests");
    await server.untilTrue(async () => Number(value("cairn_otlp_sent_total", "traces")) >= 5, "its own numbers");
    const duration = seen.metrics.find((metric) => metric.name === "cairn_request_duration_seconds");
    assert.equal(duration.unit, "s");
    assert.ok(Number(duration.histogram.dataPoints[0].count) >= 2);
    assert.equal(seen.resource["service.name"], "my-service");
    assert.equal(seen.resource.team, "a b");
    assert.ok(seen.requests.every((request) => request.headers["x-key"] === "secret"));
  });
  test("OB-3 gets what is left at the end, and nothing was malformed", async () => {
    await server.text("/last");
    await server.stop();
    assert.ok(span((each) => each.name === "GET /last"));
    assert.deepEqual(seen.problems, []);
  });
});

describe("OB-3 a collector that does not take everything", () => {
  const start = (seen, env = {}) => serve(project(files("")), { lanes: 1, env: { CAIRN_OTLP_ENDPOINT: seen.url, CAIRN_OTLP_INTERVAL: "1", ...env } });
  const metric = async (server, name, signal) => Number(new RegExp(`^${name}\\{signal="${signal}"\\} (\\d+)$`, "m").exec((await ask({ data: server.data }, "GET", "/metrics")).text)[1]);

  test("OB-3 429 and 503 are tried again when Retry-After says, and nothing is lost", async () => {
    const seen = await collector((signal, n) => (signal === "traces" && n <= 2 ? [n === 1 ? 503 : 429, { "retry-after": "2" }] : undefined));
    const server = await start(seen, { CAIRN_OTLP_SIGNALS: "traces" });
    await server.text("/kept");
    await server.untilTrue(async () => seen.traces.some((each) => each.name === "GET /kept"), "the span");
    const tries = seen.requests.filter(({ signal }) => signal === "traces");
    assert.equal(tries.length, 3);
    assert.ok(tries[1].at - tries[0].at >= 1900 && tries[2].at - tries[1].at >= 1900, "too early");
    assert.equal(await metric(server, "cairn_otlp_failures_total", "traces"), 2);
    assert.equal(await metric(server, "cairn_otlp_dropped_total", "traces"), 0);
    await server.until(/OTLP: \S+\/v1\/traces answers 503 to traces; it is tried again/);
    await server.until(/OTLP: traces are taken again/);
    assert.deepEqual(seen.requests.filter(({ signal }) => signal !== "traces"), []);
    await server.stop();
    seen.close();
  });
  test("OB-3 400 drops what was sent; a partial success is counted", async () => {
    const seen = await collector((signal, n) => (n === 1 ? [400] : [200, {}, JSON.stringify({ partialSuccess: { rejectedSpans: "1", errorMessage: "one too many" } })]));
    const server = await start(seen, { CAIRN_OTLP_SIGNALS: "traces" });
    await server.text("/first");
    await server.untilTrue(async () => (await metric(server, "cairn_otlp_dropped_total", "traces")) === 1, "the drop");
    await server.text("/second");
    await server.untilTrue(async () => (await metric(server, "cairn_otlp_dropped_total", "traces")) === 2, "the rejection");
    assert.equal(seen.traces.some((each) => each.name === "GET /first"), false);
    await server.stop();
    seen.close();
  });
  test("OB-3 one that never answers holds up neither requests nor the end", async () => {
    const seen = await collector(() => new Promise(() => {}));
    const server = await start(seen);
    await server.text("/x");
    await server.untilTrue(async () => seen.requests.length >= 2, "requests to the collector");
    for (let i = 0; i < 50; i++) assert.equal(await server.text("/x"), "ok");
    const began = Date.now();
    assert.equal((await server.stop()).code, 0);
    assert.ok(Date.now() - began < 30_000);
    seen.close();
  });
  test("OB-3 one that is not there is said once", async () => {
    const server = await start({ url: "http://127.0.0.1:1" }, { CAIRN_OTLP_SIGNALS: "traces" });
    await server.text("/x");
    await server.untilTrue(async () => (await metric(server, "cairn_otlp_failures_total", "traces")) >= 2, "two failures");
    assert.equal(server.stderr.match(/cannot be reached/g).length, 1);
    assert.equal((await server.stop()).code, 0);
  });
  test("OB-3 [observability] says how many invocations become spans", async () => {
    const seen = await collector();
    const dir = project(files("[observability]\nenabled = true\nhead_sampling_rate = 0.25\n"));
    const server = await serve(dir, { env: { OTEL_EXPORTER_OTLP_ENDPOINT: seen.url, CAIRN_OTLP_SIGNALS: "traces" } });
    await Promise.all(Array.from({ length: 400 }, () => server.text("/object")));
    await server.text("/unwanted", { headers: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00" } });
    assert.equal((await server.stop()).code, 0);
    assert.ok(!seen.traces.some((each) => each.name === "GET /unwanted"));
    const requests = seen.traces.filter((each) => each.name === "GET /object"), calls = seen.traces.filter((each) => each.name === "Room.speak");
    assert.ok(requests.length > 40 && requests.length < 200, `${requests.length} of 400`);
    // A request is exported with all that it caused, or not at all.
    assert.deepEqual(calls.map((each) => each.traceId).sort(), requests.map((each) => each.traceId).sort());
    assert.deepEqual(seen.problems, []);
    seen.close();
  });
  test("OB-3 settings that cannot be are refused", () => {
    const refused = (env, more = "") => {
      try {
        execFileSync(cairn, ["serve", project(files(more)), "--listen", "127.0.0.1:0"], { stdio: "pipe", timeout: 120_000, env: { CAIRN_ADMIN: "off", ...process.env, ...env } });
      } catch (error) {
        return String(error.stderr);
      }
      return "";
    };
    assert.match(refused({ OTEL_EXPORTER_OTLP_ENDPOINT: "grpc://x" }), /must begin with http:\/\/ or https:\/\//);
    assert.match(refused({ CAIRN_OTLP_ENDPOINT: "http://x", CAIRN_OTLP_SIGNALS: "traces,profiles" }), /signals are traces, logs and metrics, not "profiles"/);
    assert.match(refused({ CAIRN_OTLP_ENDPOINT: "http://x", CAIRN_OTLP_HEADERS: "novalue" }), /must be name=value/);
    assert.match(refused({}, "[observability]\nhead_sampling_rate = 2\n"), /wrangler\.toml:\d+:\d+: observability: head_sampling_rate must be a number from 0 to 1/);
    assert.match(refused({ CAIRN_OTLP_ENDPOINT: "http://x", CAIRN_OTLP_INTERVAL: "0" }), /CAIRN_OTLP_INTERVAL must be a number/);
  });
});
