// Analytics Engine (AE-1..5): points are written without waiting, survive a kill, and are queried with SQL.
import assert from "node:assert/strict";
import test from "node:test";
import http from "node:http";
import path from "node:path";
import { readFileSync } from "node:fs";
import { adminPort, ask } from "../admin/lib.mjs";
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
  server.sql = (text, target = "/api/analytics/sql") => post({ socketPath: path.join(server.data, "control.sock") }, target, text);
  return server;
}

/** The answer to a body that is SQL: {status, type, text, json}. */
function post(where, target, text, headers = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request({ ...where, method: "POST", path: target, headers }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () => {
        const answer = { status: response.statusCode, type: response.headers["content-type"], text: Buffer.concat(parts).toString() };
        try { answer.json = JSON.parse(answer.text); } catch {}
        resolve(answer);
      });
    });
    // Queries change nothing; see admin/lib.mjs about EPIPE.
    request.on("error", (error) => (error.code === "EPIPE" ? resolve(post(where, target, text, headers)) : reject(error)));
    request.end(text);
  });
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

for (const lanes of [1, 2]) {
  test(`AE-3 points of all requests are found by SQL, ${lanes} lanes`, async (t) => {
    const server = await start(t, { lanes });
    const towns = ["Bonn", "Kiel", "Ulm"];
    await Promise.all(
      Array.from({ length: 30 }, (_, i) => server.write([{ indexes: [`i${i % 2}`], blobs: [towns[i % 3], null, { bytes: [104, 105] }], doubles: [i, 0.5] }], { times: 10 })),
    );
    const { status, type, json } = await server.sql(`
      SELECT blob1 AS town, SUM(_sample_interval) AS n, quantileExactWeighted(0.5)(double1, _sample_interval) AS median, blob3
      FROM visits WHERE timestamp > NOW() - INTERVAL '1' HOUR AND index1 IN ('i0', 'i1')
      GROUP BY town, blob3 ORDER BY town`);
    assert.equal(status, 200);
    assert.equal(type, "application/json");
    assert.deepEqual(json.meta.map(({ type }) => type), ["String", "UInt64", "Float64", "String"]);
    assert.deepEqual(json.data, [
      { town: "Bonn", n: "100", median: 12, blob3: "hi" },
      { town: "Kiel", n: "100", median: 13, blob3: "hi" },
      { town: "Ulm", n: "100", median: 14, blob3: "hi" },
    ]);
    assert.equal(json.rows, 3);
    const rows = await server.sql("SELECT count() AS n FROM visits WHERE double2 = 0.5 FORMAT JSONEachRow");
    assert.equal(rows.text, '{"n":"300"}\n');
    assert.equal((await server.sql("SHOW TABLES FORMAT TabSeparated")).text, "OTHER\nvisits\n");
  });
}

test("AE-3 the platform's path, a token, and bad SQL", async (t) => {
  const server = await start(t, { args: ["--admin", "127.0.0.1:0"] });
  await server.write([{ doubles: [4] }], { name: "OTHER" });
  const port = await adminPort(server);
  const authorization = `Bearer ${readFileSync(path.join(server.data, "admin.token"), "utf8").trim()}`;
  const target = "/client/v4/accounts/0123456789abcdef/analytics_engine/sql";
  const sql = "SELECT sum(double1) AS s FROM OTHER";
  assert.equal((await post({ host: "127.0.0.1", port }, target, sql)).status, 401);
  const answer = await post({ host: "127.0.0.1", port }, target, sql, { authorization });
  assert.deepEqual(answer.json?.data, [{ s: 4 }], answer.text);
  const got = await ask({ data: server.data }, "GET", `/api/analytics/sql?query=${encodeURIComponent(sql)}`);
  assert.deepEqual(got.json.data, [{ s: 4 }]);
  assert.match((await ask({ port }, "GET", "/metrics")).text, /^cairn_analytics_points_total 1$/m);
  const bad = [
    ["SELEC 1", 400, /line 1, column 1: SELECT or SHOW is expected/],
    ["SELECT count() FROM nothing", 404, /there is no dataset "nothing"/],
    ["SELECT blob1, count() FROM OTHER", 400, /neither in GROUP BY/],
    ["", 400, /the SQL is missing/],
    ["SELECT 1 ".padEnd(300_000), 413, /longer than/],
  ];
  for (const [text, status, message] of bad) {
    const { status: got, json } = await server.sql(text);
    assert.equal(got, status, text.slice(0, 40));
    assert.match(json.error.message, message);
  }
});

test("AE-4 AE-5 aggregates and functions over real points", async (t) => {
  const server = await start(t);
  await server.write(Array.from({ length: 100 }, (_, i) => ({ blobs: [i < 70 ? "GET" : "post", `/p/${i % 4}`], doubles: [i] })));
  const { json } = await server.sql(`
    SELECT upper(blob1) AS method, count(DISTINCT blob2) AS paths, argMax(blob2, double1) AS top, countIf(double1 >= 50) AS late,
      round(avg(double1), 1) AS mean, topK(1)(blob2) AS common, toStartOfInterval(min(timestamp), INTERVAL '1' DAY) <= now() AS sane
    FROM visits WHERE startsWith(blob2, '/p/') GROUP BY method ORDER BY method DESC`);
  assert.deepEqual(json.data, [
    { method: "POST", paths: "4", top: "/p/3", late: "30", mean: 84.5, common: [json.data[0].common[0]], sane: 1 },
    { method: "GET", paths: "4", top: "/p/1", late: "20", mean: 34.5, common: [json.data[1].common[0]], sane: 1 },
  ]);
});

test("AE-1 what a query has seen survives kill -9, and a stop loses nothing", async (t) => {
  const data = tempDir();
  let server = await start(t, { data, lanes: 2 });
  for (let i = 0; i < 2; i++) await server.write([{ doubles: [1] }], { times: 250 });
  const count = async () => Number((await server.sql("SELECT sum(_sample_interval) AS n FROM visits")).json.data[0].n);
  assert.equal(await count(), 500);
  await server.kill();
  server = await start(t, { data, lanes: 2 });
  assert.equal(await count(), 500);
  await server.write([{ doubles: [1] }], { times: 7 });
  await server.stop();
  server = await start(t, { data, lanes: 1 });
  assert.equal(await count(), 507);
});

for (const lanes of [1, 2]) test(`AE-2 an invocation writes 250 points, also in an object; lanes: ${lanes}`, async (t) => {
  const objects = `import { DurableObject } from "cloudflare:workers";
    async function fill(env, count, wait) {
      let written = 0;
      try {
        for (let i = 0; i < count; i++) {
          if (wait && i % 100 === 50) await new Promise((go) => setTimeout(go, 1));
          env.VISITS.writeDataPoint({ doubles: [1] });
          written++;
        }
      } catch (error) { return written + " " + error; }
      return String(written);
    }
    export class O extends DurableObject { fill(count, wait) { return fill(this.env, count, wait); } }
    export default { async fetch(request, env) {
      const { object, count, wait } = await request.json();
      return new Response(object ? await env.O.getByName(object).fill(count, wait) : await fill(env, count, wait));
    } };`;
  const wrangler = { ...JSON.parse(config(datasets)), durable_objects: { bindings: [{ name: "O", class_name: "O" }] }, migrations: [{ tag: "v1", new_sqlite_classes: ["O"] }] };
  const server = await serve(project({ "wrangler.json": JSON.stringify(wrangler), "index.js": objects }), { lanes });
  t.after(() => server.kill());
  const fill = async (parts) => (await server.fetch("/", { method: "POST", body: JSON.stringify(parts) })).text();
  const over = "250 Error: Analytics Engine write limit exceeded.";
  for (const object of [undefined, "one", "two"]) {
    for (const wait of [false, true]) {
      assert.equal(await fill({ object, count: 250, wait }), "250");
      assert.equal(await fill({ object, count: 251, wait }), over);
      assert.equal(await fill({ object, count: 1, wait }), "1", "the next one begins anew");
    }
  }
  // Several at once: none within its limit is refused, whoever else runs.
  const all = await Promise.all(Array.from({ length: 12 }, (_, i) => fill({ object: i % 3 ? "one" : undefined, count: 250, wait: true })));
  assert.deepEqual(all, Array(12).fill("250"));
});
test("AE-2 a name that cannot be a dataset is refused", async () => {
  const dir = project({ "wrangler.json": config([{ binding: "A", dataset: "../up" }]), "index.js": worker });
  await assert.rejects(serve(dir), /cannot name a dataset/);
});
