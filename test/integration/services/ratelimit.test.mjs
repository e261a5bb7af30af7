// Rate limiting (RL-1): counts per key and period, shared by namespace_id, surviving a restart.
import assert from "node:assert/strict";
import test from "node:test";
import { ask } from "../admin/lib.mjs";
import { project, serve, tempDir } from "../lib/server.mjs";

const worker = `export default {
  async fetch(request, env) {
    const { name, options, times } = await request.json();
    try {
      const out = [];
      for (let i = 0; i < (times ?? 1); i++) out.push((await env[name].limit(options)).success);
      return Response.json(out);
    } catch (error) {
      return new Response(error.message, { status: 400 });
    }
  },
};`;
const config = (limits) => JSON.stringify({ name: "r", main: "index.js", compatibility_date: "2026-01-01", ratelimits: limits });
const limits = [
  { name: "A", namespace_id: "1001", simple: { limit: 5, period: 60 } },
  { name: "B", namespace_id: "1001", simple: { limit: 5, period: 60 } },
  { name: "C", namespace_id: "1002", simple: { limit: 2, period: 60 } },
];

async function start(t, options) {
  const server = await serve(project({ "wrangler.json": config(limits), "index.js": worker }), options);
  t.after(() => server.kill());
  server.limit = async (name, options, times) => {
    const response = await server.fetch("/", { method: "POST", body: JSON.stringify({ name, options, times }) });
    const text = await response.text();
    return response.ok ? JSON.parse(text) : text;
  };
  return server;
}

/** Periods are those of the clock: what fails because one has ended meanwhile is tried in the next. */
async function withinAPeriod(attempt) {
  const period = () => Math.floor(Date.now() / 60_000);
  for (;;) {
    const began = period();
    try {
      return await attempt();
    } catch (error) {
      if (period() === began) throw error;
    }
  }
}

for (const lanes of [1, 2]) {
  test(`RL-1 so many calls per key, shared by namespace_id, ${lanes} lanes`, (t) => withinAPeriod(async () => {
    const server = await start(t, { lanes });
    assert.deepEqual(await server.limit("A", { key: "x" }, 4), [true, true, true, true]);
    assert.deepEqual(await server.limit("B", { key: "x" }, 2), [true, false]);
    assert.deepEqual(await server.limit("C", { key: "x" }, 3), [true, true, false]);
    assert.deepEqual(await server.limit("A", { key: "y" }, 1), [true]);
    const many = await Promise.all(Array.from({ length: 12 }, () => server.limit("A", { key: "z" })));
    assert.equal(many.flat().filter(Boolean).length, 5);
  }));
}

test("RL-1 counts survive a restart and a kill within the period", (t) => withinAPeriod(async () => {
  const data = tempDir();
  let server = await start(t, { data });
  assert.deepEqual(await server.limit("A", { key: "k" }, 3), [true, true, true]);
  // Counts are written down every quarter of a second.
  const written = async ({ id }) => (await ask({ data }, "POST", `/api/objects/%24ratelimit%2F1001/${id}/sql`, { body: { sql: "SELECT sum(count) FROM counter" } })).json.results[0].rows[0][0];
  await server.untilTrue(async () => {
    const { objects } = (await ask({ data }, "GET", "/api/objects?namespace=%24ratelimit%2F1001")).json;
    return (await Promise.all((objects ?? []).map(written))).includes(3);
  }, "the counts on disk");
  await server.kill();
  server = await start(t, { data });
  assert.deepEqual(await server.limit("A", { key: "k" }, 3), [true, true, false]);
  await server.limit("A", { key: "other" });
  assert.deepEqual(await server.stop(), { code: 0, signal: null }, "also with counts that are not written down yet");
}));

test("RL-1 bad input is told", async (t) => {
  const server = await start(t);
  for (const options of [null, {}, { key: 1 }]) assert.match(await server.limit("A", options), /object with a key/);
  assert.match(await server.limit("A", { key: "a", other: 1 }), /unknown option "other"/);
  assert.match(await server.limit("A", { key: "k".repeat(5000) }), /longer than 4096 bytes/);
  await assert.rejects(serve(project({ "wrangler.json": config([{ name: "A", namespace_id: "1", simple: { limit: 1, period: 30 } }]), "index.js": worker })), /must be 10 or 60/);
  await assert.rejects(serve(project({ "wrangler.json": config([{ name: "A", namespace_id: "one", simple: { limit: 1, period: 10 } }]), "index.js": worker })), /namespace_id.*whole number/);
});
