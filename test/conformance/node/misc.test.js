// node:process, node:timers, node:diagnostics_channel, node:os, node:perf_hooks, node:module, node:net and the stubs.
import process from "node:process";
import timers from "node:timers";
import { setTimeout as sleep } from "node:timers/promises";
import dc from "node:diagnostics_channel";
import os from "node:os";
import perf from "node:perf_hooks";
import module from "node:module";
import net from "node:net";
import http from "node:http";
import vm from "node:vm";
import child from "node:child_process";
import { test, assert, assertEquals, assertThrows, serverUrl } from "../harness.js";

test("process", async () => {
  const order = [];
  await new Promise((done) => {
    process.nextTick((x) => order.push(x), "tick");
    setTimeout(() => done(order.push("timer")), 1);
  });
  assertEquals(order, ["tick", "timer"]);
  assert(process.platform === "linux" && typeof process.hrtime.bigint() === "bigint" && process.version.startsWith("v"));
  assert(typeof process.env === "object" && typeof process.cwd() === "string" && Array.isArray(process.argv));
});

test("timers", async () => {
  assertEquals(await sleep(1, "value"), "value");
  const seen = [];
  const timer = timers.setTimeout(() => seen.push("no"), 1);
  timers.clearTimeout(timer);
  await new Promise((r) => timers.setImmediate(() => r(seen.push("immediate"))));
  await sleep(5);
  assertEquals(seen, ["immediate"]);
  const controller = new AbortController();
  controller.abort();
  assertEquals((await sleep(1000, null, { signal: controller.signal }).catch((e) => e)).name, "AbortError");
});

test("a timer of node:timers is an object that can be refreshed", async () => {
  let fired = 0;
  const timer = timers.setTimeout(() => fired++, 1);
  assert(timer.unref() === timer && timer.ref() === timer && timer.refresh() === timer && typeof +timer === "number");
  await sleep(10);
  assertEquals(fired, 1);
  clearTimeout(timers.setTimeout(() => fired++, 1));
  clearTimeout(+timers.setTimeout(() => fired++, 1));
  timers.setInterval(() => fired++, 1).close();
  await sleep(10);
  assertEquals(fired, 1);
});

test("diagnostics_channel", () => {
  const seen = [];
  const channel = dc.channel("test");
  const listener = (message, name) => seen.push([message, name]);
  channel.publish(0);
  dc.subscribe("test", listener);
  assert(channel.hasSubscribers && dc.channel("test") === channel);
  channel.publish(1);
  dc.unsubscribe("test", listener);
  assertEquals(channel.hasSubscribers, false);
  assertEquals(seen, [[1, "test"]]);
  const trace = dc.tracingChannel("op");
  const events = [];
  trace.subscribe({ start: () => events.push("start"), end: (c) => events.push(["end", c.result]) });
  assertEquals(trace.traceSync((x) => x * 2, {}, null, 4), 8);
  assertEquals(events, ["start", ["end", 8]]);
});

test("os, perf_hooks, module, net", () => {
  assertEquals([os.EOL, os.platform(), os.tmpdir().replace(/\/$/, "")], ["\n", "linux", "/tmp"]);
  assert(perf.performance === performance);
  assert(module.isBuiltin("node:fs") && module.builtinModules.includes("buffer"));
  assert(module.createRequire("/x.js")("node:path").join("a", "b") === "a/b");
  assertEquals([net.isIP("1.2.3.4"), net.isIP("::1"), net.isIP("x"), net.isIPv4("01.2.3.4")], [4, 6, 0, false]);
  const list = new net.BlockList();
  list.addSubnet("10.0.0.0", 8);
  assertEquals([list.check("10.1.2.3"), list.check("11.0.0.1")], [true, false]);
});

test("what a worker cannot do says so when it is used", () => {
  assertThrows(Error, () => child.spawn("ls"));
  assertThrows(Error, () => vm.runInThisContext("1"));
  assertEquals([http.STATUS_CODES[404], http.METHODS.includes("GET")], ["Not Found", true]);
});

test("http.request sends and receives", async () => {
  const body = await new Promise((resolve, reject) => {
    const request = http.request(`${serverUrl()}/echo`, { method: "POST", headers: { "X-Test": "1" } }, (response) => {
      let all = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => (all += chunk));
      response.on("end", () => resolve([response.statusCode, all]));
    });
    request.on("error", reject);
    request.end("sent");
  });
  assertEquals(body[0], 200);
  assert(body[1].includes("sent"), body[1]);
}, { needs: "network" });
