// Metrics are well-formed Prometheus text and count what happened, across reloads and lanes.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { serve } from "../lib/server.mjs";
import { ask, call, dir } from "./lib.mjs";

/** Checks the form of the whole text; returns {'name{labels}': number}. */
function parse(text) {
  const samples = {}, types = {};
  for (const line of text.trimEnd().split("\n")) {
    const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line);
    if (type) {
      assert.ok(!(type[1] in types), `${type[1]} is there twice`);
      types[type[1]] = type[2];
      continue;
    }
    if (/^# HELP \S+ \S/.test(line)) continue;
    const sample = /^(cairn_[a-z_]+)(\{(?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+\})? ([0-9.e+-]+)$/.exec(line);
    assert.ok(sample, line);
    const family = sample[1].replace(/_(bucket|sum|count)$/, "");
    assert.ok(types[sample[1]] || types[family] === "histogram", `${sample[1]} has no type`);
    assert.ok(!(sample[1] + (sample[2] ?? "") in samples), line);
    samples[sample[1] + (sample[2] ?? "")] = Number(sample[3]);
  }
  return samples;
}

describe("metrics", () => {
  let server;
  before(async () => { server = await serve(dir, { lanes: 2 }); });
  after(() => server.stop());
  const read = async () => parse((await ask({ data: server.data }, "GET", "/metrics")).text);

  test("requests, calls, exceptions and commits are counted", async () => {
    for (let i = 0; i < 10; i++) await call(server, `m${i}`, "add", "x");
    await server.text("/x/nothing", { method: "POST", body: "[]" }); // the worker answers 500
    await server.text("/x/add", { method: "POST", body: "not json" }).catch(() => {});
    const metrics = await read();
    assert.equal(metrics['cairn_requests_total{worker="app",status="2xx"}'], 10);
    assert.equal(metrics['cairn_requests_total{worker="app",status="5xx"}'], 2);
    assert.equal(metrics['cairn_request_duration_seconds_count{worker="app"}'], 12);
    assert.equal(metrics['cairn_request_duration_seconds_bucket{worker="app",le="+Inf"}'], 12);
    assert.ok(metrics['cairn_request_duration_seconds_sum{worker="app"}'] > 0);
    assert.ok(metrics['cairn_object_calls_total{namespace="app/Ledger"}'] >= 10);
    assert.equal(metrics['cairn_object_calls_total{namespace="app/Ledger"}'], metrics['cairn_object_call_duration_seconds_count{namespace="app/Ledger"}']);
    assert.ok(metrics['cairn_objects_started_total{namespace="app/Ledger"}'] >= 10);
    assert.ok(metrics.cairn_log_commits_total >= 10);
    assert.ok(metrics.cairn_checkpoint_lag_commits <= metrics.cairn_log_commits_total);
    assert.ok(metrics.cairn_log_flush_duration_seconds_count > 0);
    assert.equal(metrics.cairn_store_writable, 1);
    await server.untilTrue(async () => {
      const now = await read();
      return now['cairn_lane_objects{lane="0"}'] + now['cairn_lane_objects{lane="1"}'] >= 10 && now['cairn_lane_heap_bytes{lane="0"}'] > 0;
    }, "the gauges");
  });
  test("alarms are counted", async () => {
    await call(server, "alarm", "wake", Date.now());
    await server.untilTrue(async () => (await read())['cairn_alarms_fired_total{namespace="app/Ledger"}'] === 1, "the alarm");
    assert.equal((await read())['cairn_alarm_lateness_seconds_count{namespace="app/Ledger"}'], 1);
  });
  test("a reload does not start the counters anew", async () => {
    const before = (await read())['cairn_requests_total{worker="app",status="2xx"}'];
    server.signal("SIGHUP");
    await server.until(/reloaded/);
    await call(server, "m0", "add", "x");
    assert.equal((await read())['cairn_requests_total{worker="app",status="2xx"}'], before + 1);
  });
});
