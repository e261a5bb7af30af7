// Cron triggers (CR-1..4): runs on time, once per occurrence, made up after a pause, by hand, listed.
import assert from "node:assert/strict";
import test from "node:test";
import { ask, command } from "../admin/lib.mjs";
import { alone } from "../lib/differences.mjs";
import { project, serve, tempDir } from "../lib/server.mjs";

const worker = `
import { DurableObject } from "cloudflare:workers";
export class Log extends DurableObject {
  add(e) { const all = this.ctx.storage.kv.get("all") ?? []; all.push(e); this.ctx.storage.kv.put("all", all); }
  async wait() { this.add("waits"); await new Promise((go) => { this.go = go; }); }
  release() { this.go(); }
  all() { return this.ctx.storage.kv.get("all") ?? []; }
}
export default {
  async fetch(request, env) { if (request.url.endsWith("/release")) await env.LOG.getByName("log").release(); return Response.json(await env.LOG.getByName("log").all()); },
  async scheduled(controller, env, ctx) {
    controller.noRetry();
    if (controller.cron === "throw" || controller.scheduledTime === 13) throw new Error("it threw");
    if (controller.scheduledTime === 15) {
      ctx.waitUntil(Promise.resolve("fine"));
      const fail = (text) => { throw new Error(text); };
      const first = scheduler.wait(50).then(() => fail("waited and failed"));
      ctx.waitUntil(first.catch(() => {}).then(() => fail("failed later")));
      ctx.waitUntil(first);
      return;
    }
    if (controller.scheduledTime === 14) await env.LOG.getByName("log").wait();
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

test("CR-3 the latest missed run is made up at the start, once", alone("offline"), async (t) => {
  const data = tempDir();
  const hourly = `${new Date().getUTCMinutes()} * * * *`; // this minute has begun: it counts for the next start
  let server = await start(t, [hourly, "0 0 1 1 *"], { data, lanes: 2 });
  await server.untilTrue(async () => (await ask({ data }, "GET", "/api/crons/c")).status === 200, "the triggers");
  await server.stop();
  await backdate(data, hourly, 5 * 3600_000);
  server = await start(t, [hourly, "0 0 1 1 *"], { data, lanes: 2 });
  await server.untilTrue(async () => (await server.all()).length > 0, "the missed run");
  await server.until(/a run was missed and is made up/);
  await server.untilTrue(async () => (await server.runs())[0]?.outcome === "ok", "the end of the run");
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
  const both = ["* * * * *", "*/1 * * * *"];
  const server = await start(t, both, { lanes: 2 });
  // What begins to be waited for when a minute has ended runs a minute later: one of the two may come alone first.
  const together = (all) => all.find(({ time }) => both.every((cron) => all.some((entry) => entry.cron === cron && entry.time === time)));
  await server.untilTrue(async () => together(await server.all()), "a minute with both", 240_000);
  const all = await server.all();
  for (const entry of all) {
    assert.equal(entry.time % 60_000, 0);
    assert.ok(entry.now >= entry.time, "not early");
  }
  assert.equal(new Set(all.map(({ cron, time }) => `${cron} ${time}`)).size, all.length, "each once");
});

test("CR-4 by hand in development; runs and what they threw are listed", async (t) => {
  const server = await start(t, ["0 0 1 1 *"], { command: "dev" });
  const by = async (query) => { const r = await server.fetch(`/cdn-cgi/handler/scheduled${query}`); return `${r.status} ${await r.text()}`; };
  assert.equal(await by("?cron=0+0+1+1+*&time=1700000000000"), "200 ok");
  assert.equal(await by("?cron=throw"), "500 exception");
  const without = await serve(project({ "wrangler.json": JSON.stringify({ name: "n", main: "index.js", compatibility_date: "2026-01-01" }), "index.js": "export default { fetch: () => new Response('x'), scheduled(c) { console.log('told', c.cron); } }" }), { command: "dev" });
  t.after(() => without.kill());
  assert.equal(await (await without.fetch("/cdn-cgi/handler/scheduled?cron=any")).text(), "ok");
  await without.until(/told any/);
  await server.until(/it threw/);
  let all;
  await server.untilTrue(async () => (all = await server.all()).length > 0, "what was noted");
  assert.deepEqual([all[0].cron, all[0].time], ["0 0 1 1 *", 1700000000000]);
  await server.untilTrue(async () => (await server.runs())[0].outcome !== null, "the end of the run");
  const runs = await server.runs();
  assert.deepEqual(runs.map((r) => [r.cron, r.outcome, r.manual]), [["throw", "exception", true], ["0 0 1 1 *", "ok", true]]);
  assert.match(runs[0].message, /it threw/);
  const production = await start(t, ["0 0 1 1 *"]);
  assert.equal((await production.fetch("/cdn-cgi/handler/scheduled")).headers.get("content-type"), "application/json", "not in production");
});

for (const lanes of [1, 2]) test(`CR-4 by hand in production, lanes: ${lanes}; the list of all`, async (t) => {
  const server = await start(t, ["0 0 1 1 *", "0 12 * * *"], { lanes });
  const data = server.data;
  const trigger = (body, worker = "c") => ask({ data }, "POST", `/api/crons/${worker}/trigger`, { body });
  const schedules = async () => (await ask({ data }, "GET", "/api/crons")).json.result.schedules;
  await server.untilTrue(async () => (await schedules()).every((s) => s.next !== null), "the triggers");
  assert.deepEqual((await schedules()).map((s) => [s.worker, s.cron, s.last]), [["c", "0 0 1 1 *", null], ["c", "0 12 * * *", null]]);
  for (const { next, cron } of await schedules()) {
    const date = new Date(next);
    assert.ok(next > Date.now());
    assert.match(date.toISOString(), cron === "0 12 * * *" ? /T12:00:00.000Z$/ : /-01-01T00:00:00.000Z$/);
  }
  const ok = (await trigger({ cron: "0 12 * * *", scheduledTime: 1700000000000 })).json.result;
  assert.deepEqual([ok.outcome, ok.error, ok.manual, ok.cron], ["ok", null, true, "0 12 * * *"]);
  assert.ok(Number.isInteger(ok.duration) && ok.duration >= 0);
  const [entry] = await server.all();
  assert.deepEqual([entry.cron, entry.time, entry.type], ["0 12 * * *", 1700000000000, "scheduled"]);
  const failed = (await trigger({ scheduledTime: 13 })).json.result;
  assert.deepEqual([failed.outcome, failed.cron], ["exception", "0 0 1 1 *"], "the first without a choice");
  assert.match(failed.error, /it threw/);
  // The first waitUntil() promise that fails is how the run ended.
  const waited = (await trigger({ scheduledTime: 15 })).json.result;
  assert.equal(waited.outcome, "exception");
  assert.match(waited.error, /waited and failed/);
  const runs = (await server.runs()).filter((r) => r.id !== waited.id); // as soon as it is answered
  assert.deepEqual(runs.map((r) => [r.id, r.outcome, r.manual, r.scheduledTime]), [[failed.id, "exception", true, 13], [ok.id, "ok", true, 1700000000000]]);
  assert.deepEqual((await schedules()).map((s) => s.last?.id), [waited.id, ok.id]);
  // refusals
  for (const [body, worker, status, pattern] of [
    [{ cron: "throw" }, "c", 400, /no cron trigger "throw"/], [{ cron: 1 }, "c", 400, /must be a string/], [{ scheduledTime: "now" }, "c", 400, /milliseconds/],
    [[], "c", 400, /must be an object/], [{}, "none", 404, /no worker none/]]) {
    const answer = await trigger(body, worker);
    assert.equal(answer.status, status, answer.text);
    assert.match(answer.json.error.message, pattern);
  }
  // the command
  const listed = await command(data, "crons", "list");
  assert.match(listed.stdout, /c +0 12 \* \* \* +20\d\d-\S+T12:00:00Z +20\S+ +ok/);
  const run = await command(data, "crons", "trigger", "c", "0 12 * * *");
  assert.match(run.stdout, /^c \(0 12 \* \* \*\): ok after \d+ ms\n$/);
  assert.equal((await command(data, "crons", "trigger", "c", "nonsense")).status, 1);
  assert.match((await command(data, "crons", "runs", "c")).stdout, /exception +.*it threw/);
  assert.equal((await command(data, "crons", "runs", "c", "--json")).stdout.trim().split("\n").length, 4);
  // a stop does not wait for ever for somebody who waits for a run
  const waiting = trigger({ scheduledTime: 14 }).then((a) => a.status, () => "cut");
  await server.untilTrue(async () => (await server.all()).includes("waits"), "the run");
  assert.equal((await server.runs())[0].outcome, null);
  await server.fetch("/release");
  assert.equal(await waiting, 200);
  const cut = trigger({ scheduledTime: 14 }).then((a) => a.status, () => "cut");
  await server.untilTrue(async () => (await server.runs())[0].outcome === null, "the second run");
  server.child.kill("SIGTERM");
  server.child.kill("SIGTERM");
  await server.exited;
  assert.ok(["cut", 503, 200].includes(await cut));
});

test("CR-1 a bad expression is refused with its place", async () => {
  const refused = (crons, pattern) => assert.rejects(serve(project({ "wrangler.json": config(crons), "index.js": worker })), pattern);
  await refused(["* * * *"], /triggers\.crons\[0\].*must have five fields/);
  await refused(["* * * * *", "0 0 * * 0"], /triggers\.crons\[1\].*is not a day of week \(1 to 7\)/);
});
