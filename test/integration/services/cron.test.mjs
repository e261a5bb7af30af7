// Cron triggers (CR-1..4): runs on time, once per occurrence, made up after a pause, by hand, listed.
import assert from "node:assert/strict";
import test from "node:test";
import { ask, command } from "../admin/lib.mjs";
import { project, serve, tempDir } from "../lib/server.mjs";

const worker = `
import { DurableObject } from "cloudflare:workers";
export class Log extends DurableObject {
  add(e) { const all = this.ctx.storage.kv.get("all") ?? []; all.push(e); this.ctx.storage.kv.put("all", all); }
  all() { return this.ctx.storage.kv.get("all") ?? []; }
}
export default {
  async fetch(request, env) { return Response.json(await env.LOG.getByName("log").all()); },
  async scheduled(controller, env, ctx) {
    controller.noRetry();
    if (controller.cron === "throw") throw new Error("it threw");
    ctx.waitUntil(env.LOG.getByName("log").add({ cron: controller.cron, time: controller.scheduledTime, type: controller.type, now: Date.now() }));
  },
};`;
const config = (crons) => JSON.stringify({
  name: "c", main: "index.js", compatibility_date: "2026-01-01", triggers: { crons },
  durable_objects: { bindings: [{ name: "LOG", class_name: "Log" }] }, migrations: [{ tag: "v1", new_sqlite_classes: ["Log"] }],
});

async function start(t, crons, options) {
  const server = await serve(project({ "wrangler.json": config(crons), "index.js": worker }), options);
  t.after(() => server.kill());
  server.all = async () => (await server.fetch("/")).json();
  server.runs = async () => (await ask({ data: server.data }, "GET", "/api/crons/c")).json.result.runs;
  return server;
}

/** Makes the server believe, at its next start, that the expression last ran so long ago. */
async function backdate(data, expression, ms) {
  const result = await command(data, "objects", "sql", "$cron/c", "0", `UPDATE trigger SET last = ${Date.now() - ms} WHERE expression = '${expression}'`);
  assert.equal(result.status, 0, result.stderr);
}

test("CR-3 the latest missed run is made up at the start, once", async (t) => {
  const data = tempDir();
  const hourly = `${new Date().getUTCMinutes()} * * * *`; // this minute has begun: it counts for the next start
  let server = await start(t, [hourly, "0 0 1 1 *"], { data, lanes: 2 });
  await server.untilTrue(async () => (await ask({ data }, "GET", "/api/crons/c")).status === 200, "the triggers");
  await server.stop();
  await backdate(data, hourly, 5 * 3600_000);
  server = await start(t, [hourly, "0 0 1 1 *"], { data, lanes: 2 });
  await server.untilTrue(async () => (await server.all()).length > 0, "the missed run");
  await server.until(/a run was missed and is made up/);
  await server.kill();
  server = await start(t, [hourly], { data });
  await server.untilTrue(async () => (await server.runs()).length > 0, "the list");
  const all = await server.all();
  assert.equal(all.length, 1, "one of five, and not again after a kill");
  assert.equal(all[0].cron, hourly);
  assert.equal(all[0].type, "scheduled");
  assert.equal(all[0].time % 60_000, 0);
  assert.ok(Date.now() - all[0].time < 3600_000 + 120_000);
  const [run] = await server.runs();
  assert.equal(run.outcome, "ok");
  assert.equal(run.manual, false);
});

test("CR-2 CR-3 every minute: on time, never early, once for all lanes", async (t) => {
  const server = await start(t, ["* * * * *", "*/1 * * * *"], { lanes: 2 });
  await server.untilTrue(async () => (await server.all()).length >= 2, "the next minute", 75_000);
  const all = await server.all();
  assert.deepEqual(all.map((e) => e.cron).sort(), ["* * * * *", "*/1 * * * *"]);
  for (const entry of all) {
    assert.equal(entry.time % 60_000, 0);
    assert.ok(entry.now >= entry.time, "not early");
  }
  assert.equal(new Set(all.map((e) => e.time)).size, 1);
});

test("CR-4 by hand in development; runs and what they threw are listed", async (t) => {
  const server = await start(t, ["0 0 1 1 *"], { command: "dev" });
  const by = async (query) => { const r = await server.fetch(`/cdn-cgi/handler/scheduled${query}`); return `${r.status} ${await r.text()}`; };
  assert.equal(await by("?cron=0+0+1+1+*&time=1700000000000"), "200 ok");
  assert.equal(await by("?cron=throw"), "500 exception");
  await server.until(/it threw/);
  const all = await server.all();
  assert.deepEqual([all[0].cron, all[0].time], ["0 0 1 1 *", 1700000000000]);
  await server.untilTrue(async () => (await server.runs())[0].outcome !== null, "the end of the run");
  const runs = await server.runs();
  assert.deepEqual(runs.map((r) => [r.cron, r.outcome, r.manual]), [["throw", "exception", true], ["0 0 1 1 *", "ok", true]]);
  assert.match(runs[0].message, /it threw/);
  const production = await start(t, ["0 0 1 1 *"]);
  assert.equal((await production.fetch("/cdn-cgi/handler/scheduled")).headers.get("content-type"), "application/json", "not in production");
});

test("CR-1 a bad expression is refused with its place", async () => {
  const refused = (crons, pattern) => assert.rejects(serve(project({ "wrangler.json": config(crons), "index.js": worker })), pattern);
  await refused(["* * * *"], /triggers\.crons\[0\].*must have five fields/);
  await refused(["* * * * *", "0 0 * * 0"], /triggers\.crons\[1\].*is not a day of week \(1 to 7\)/);
});
