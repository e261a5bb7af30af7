// Analytics Engine (AE-1..5): points are written without waiting, survive a kill, and are queried with SQL.
import assert from "node:assert/strict";
import test from "node:test";
import { project, serve, tempDir } from "../lib/server.mjs";

const worker = `export default {
  async fetch(request, env) {
    const { name = "VISITS", points, times = 1 } = await request.json();
    const revive = (value) => (value?.bytes ? new Uint8Array(value.bytes) : value);
    try {
      let last;
      for (let i = 0; i < times; i++) {
        for (const point of points) last = env[name].writeDataPoint({ ...point, blobs: point.blobs?.map(revive) });
      }
      return new Response(String(last));
    } catch (error) {
      return new Response(error.name + ": " + error.message, { status: 400 });
    }
  },
};`;
const config = (datasets) =>
  JSON.stringify({ name: "a", main: "index.js", compatibility_date: "2026-01-01", analytics_engine_datasets: datasets });
const datasets = [{ binding: "VISITS", dataset: "visits" }, { binding: "OTHER" }];

async function start(t, options) {
  const server = await serve(project({ "wrangler.json": config(datasets), "index.js": worker }), options);
  t.after(() => server.kill());
  server.write = async (points, more) => {
    const response = await server.fetch("/", { method: "POST", body: JSON.stringify({ points, ...more }) });
    return response.text();
  };
  return server;
}

test("AE-1 writeDataPoint returns undefined and takes what the platform takes", async (t) => {
  const server = await start(t);
  const good = [{}, { indexes: [] }, { indexes: ["i"], blobs: ["a", null], doubles: [1] }, { blobs: [{ bytes: [104, 105] }], doubles: ["2"] }];
  assert.equal(await server.write(good), "undefined");
});

test("AE-2 limits are told", async (t) => {
  const server = await start(t);
  const many = (count, value) => Array(count).fill(value);
  const cases = [
    [{ indexes: ["a", "b"] }, /^TypeError: .*Maximum of 1 indexes/],
    [{ indexes: ["x".repeat(97)] }, /^TypeError: .*indexes\[0\] exceeds 96 bytes/],
    [{ blobs: many(21, "a") }, /^TypeError: .*Maximum of 20 blobs/],
    [{ doubles: many(21, 1) }, /^TypeError: .*Maximum of 20 doubles/],
    [{ blobs: ["ü".repeat(8193)] }, /^TypeError: .*blobs exceeds 16384 bytes/],
    [{ indexes: "text" }, /^TypeError: .*indexes must be an array/],
  ];
  for (const [point, message] of cases) assert.match(await server.write([point]), message);
  const full = { indexes: ["x".repeat(96)], blobs: many(20, "b".repeat(819)), doubles: many(20, 1.5) };
  assert.equal(await server.write([full]), "undefined");
});
