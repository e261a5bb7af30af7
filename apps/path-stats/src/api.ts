// What people and programs ask: statistics, exports, the archive, the change-over. All of it below the prefix: src/index.ts.
import { Hono, type Context } from "hono";
import { HTTPException } from "hono/http-exception";
import { detailCount, listArchives, oldestDay, readMetadata } from "./archive";
import { archiver } from "./archiver";
import { knownEvents } from "./count";
import { dayRows, fromAll, hourRows, mergeBy, saltPeriods } from "./database";
import { prefixOf, type Env } from "./env";
import { bucketTime, DAY, HOUR, hourOf, type TrafficEvent, whyNot } from "./event";
import { exportLines } from "./export";
import { readFile } from "./files";
import { compare, oldTotals, resetOld } from "./legacy";
import { count, flushMeters, most } from "./meters";
import { metrics, recentAlerts } from "./monitor";
import { currentPhase, PHASE_LAST, readsOld, setPhase, storedPhase, writesOld } from "./phase";
import { Stats } from "./stats";
import { pathsAnswer } from "./tiers";

export const app = new Hono<{ Bindings: Env }>();
type Call = Context<{ Bindings: Env }>;
const DATE = /^\d{4}-\d\d-\d\d$/;
const EXPORT_MOST = 366 * DAY;
const INGEST_MOST = 100;
const BY_DAY_ABOVE_HOURS = 48;

const refuse = (status: 400 | 401 | 403 | 404 | 409 | 410 | 500, message: string): never => {
  throw new HTTPException(status, { message });
};
app.onError((error, c) => {
  if (error instanceof HTTPException) return c.json({ error: error.message }, error.status);
  console.error(error);
  return c.json({ error: "Something went wrong here." }, 500);
});
app.notFound((c) => c.json({ error: `There is nothing at ${prefixOf(c.env)}${new URL(c.req.url).pathname}.` }, 404));

app.use("*", async (c, next) => {
  const began = Date.now();
  await next();
  count("api.count");
  count("api.ms", Date.now() - began);
  most("api.most_ms", Date.now() - began);
  flushMeters(c.env, c.executionCtx);
});

// --- who may ---------------------------------------------------------------------------------------

async function sameText(a: string, b: string): Promise<boolean> {
  const digest = (text: string) => crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return crypto.subtle.timingSafeEqual(await digest(a), await digest(b));
}

async function hasToken(c: Call, tokens: (string | undefined)[]): Promise<boolean> {
  const given = /^Bearer (.+)$/.exec(c.req.header("authorization") ?? "")?.[1];
  for (const token of tokens) if (given && token && (await sameText(given, token))) return true;
  return false;
}

async function mayAdminister(c: Call): Promise<void> {
  if (!c.env.ADMIN_TOKEN) refuse(403, "No ADMIN_TOKEN is set, so nobody may do this.");
  if (!(await hasToken(c, [c.env.ADMIN_TOKEN]))) refuse(401, "This needs the admin token: Authorization: Bearer TOKEN.");
}

app.use("/paths/*", async (c, next) => {
  if (c.env.READ_TOKEN && !(await hasToken(c, [c.env.READ_TOKEN, c.env.ADMIN_TOKEN]))) refuse(401, "These figures need a token: Authorization: Bearer TOKEN.");
  await next();
});

// Endpoints of the old way. Whoever still calls them should learn that they are gone for good; the comparison is there while there is something to compare.
const gone = (c: Call): Response => c.json({ error: "This endpoint has been retired." }, 410);
for (const path of ["/admin/paths/discovered", "/admin/paths/do/system-stats", "/admin/paths/do/ip/:ip", "/admin/paths/do/export", "/admin/health/do-overview", "/admin/health/do-detailed", "/admin/health/comparison"]) app.get(path, gone);
for (const path of ["/admin/paths/do/batch-cleanup", "/admin/health/auto-maintenance"]) app.post(path, gone);
app.get("/admin/paths/compare", async (c, next) => (writesOld(await storedPhase(c.env)) ? next() : gone(c)));

app.use("/admin/*", async (c, next) => {
  await mayAdminister(c);
  await next();
});

// --- statistics ------------------------------------------------------------------------------------

/** The old way's answer: counts alone, over the last 24 hours. */
async function oldAnswer(c: Call): Promise<Response> {
  const now = Date.now();
  const { requests, paths } = await oldTotals(c.env, now - DAY, now + HOUR);
  return c.json({ dataSource: "do", stale: false, stalenessSeconds: 0, lastUpdated: now, version: now, from: now - DAY, to: now, totalRequests: requests, totalPaths: paths.length, paths });
}

async function paths(c: Call): Promise<Response> {
  const source = c.req.query("source");
  const phase = await currentPhase(c.env);
  if (source !== undefined && source !== "do" && source !== "d1") refuse(400, '"source" must be "do" or "d1".');
  if (source === "do" && !writesOld(phase)) return gone(c);
  if (source === "do" || (source === undefined && readsOld(phase))) return oldAnswer(c);
  return pathsAnswer(c.env, c.executionCtx as ExecutionContext, c.req.query("refresh") === "true");
}
app.get("/paths", paths);
app.get("/admin/paths", paths);

/** Traffic over time, of one path or of all: by hour up to two days, by day above. */
app.get("/paths/stats", async (c) => {
  const hours = Number(c.req.query("hours") ?? "24");
  if (!Number.isInteger(hours) || hours < 1 || hours > 24 * 90) refuse(400, '"hours" must be a whole number from 1 to 2160.');
  const path = c.req.query("path");
  const step = hours > BY_DAY_ABOVE_HOURS ? DAY : HOUR;
  const to = Math.floor(Date.now() / step) * step + step;
  const from = to - Math.ceil((hours * HOUR) / step) * step;
  const rows = await (step === DAY ? dayRows : hourRows)(c.env, from, to, path);
  const buckets = mergeBy(rows, (row: { bucket: string }) => row.bucket);
  const total = new Stats();
  for (const stats of buckets.values()) total.merge(stats);
  const series = [...buckets].map(([bucket, stats]) => ({ time: bucketTime(bucket), ...stats.summary() })).sort((a, b) => a.time - b.time);
  // Addresses are hashed with a salt that changes: over more than one of its periods, who comes in two counts twice.
  const periods = saltPeriods(c.env, from, to);
  return c.json({ from, to, step, path: path ?? null, total: total.summary(), series, visitors: { periods, counted: periods > 1 ? "visitor-periods" : "visitors", periodHours: Number(c.env.SALT_HOURS) } });
});

/** The pipeline itself. */
app.get("/paths/metrics", async (c) => {
  const [values, alerts] = await Promise.all([metrics(c.env), recentAlerts(c.env)]);
  return c.json({ ...values, phase: (await currentPhase(c.env)).phase, alerts: alerts.filter((alert) => alert.ended_at === null) });
});
app.get("/paths/alerts", async (c) => c.json({ alerts: await recentAlerts(c.env) }));
app.get("/paths/archives", async (c) => {
  const [archives, jobs] = await Promise.all([listArchives(c.env), archiver(c.env).jobs()]);
  return c.json({ archives: archives.reverse().slice(0, 400), jobs: jobs.filter((job) => job.state !== "done") });
});

/** Detail rows as JSON lines, streamed. `anonymize=true` leaves out everything about the visitor. */
app.get("/paths/events/export", async (c) => {
  await mayAdminister(c);
  const from = Number(c.req.query("from")), to = Number(c.req.query("to"));
  if (!Number.isInteger(from) || !Number.isInteger(to) || from < 1e12 || from >= to || to >= 1e13 || to - from > EXPORT_MOST) refuse(400, '"from" and "to" must be milliseconds since 1970, at most 366 days apart.');
  return new Response(ReadableStream.from(exportLines(c.env, from, to, c.req.query("anonymize") === "true")), { headers: { "content-type": "application/x-ndjson", "content-disposition": "attachment; filename=events.jsonl" } });
});

// --- the archive -----------------------------------------------------------------------------------

async function input<T>(c: Call): Promise<T> {
  const value = await c.req.json().catch(() => refuse(400, "The body must be JSON."));
  return typeof value === "object" && value !== null ? (value as T) : refuse(400, "The body must be a JSON object.");
}

function date(value: unknown): string {
  if (typeof value !== "string" || !DATE.test(value) || Number.isNaN(Date.parse(value))) refuse(400, '"date" must be a day: YYYY-MM-DD.');
  return value as string;
}

/** Archives a day, behind the answer. "oldest": whichever is the oldest, when a database is nearly full. */
app.post("/admin/archive/trigger", async (c) => {
  const given = (await input<{ date?: unknown }>(c)).date;
  const day = given === "oldest" ? ((await oldestDay(c.env)) ?? refuse(404, "There are no events.")) : date(given);
  if (!(await detailCount(c.env, day)) && !(await readMetadata(c.env, day))) refuse(404, `There are no events of ${day}.`);
  await archiver(c.env).request(day);
  return c.json({ message: `Archiving of ${day} has been asked for.`, status: "pending", date: day });
});

/** How far that is. */
app.get("/admin/archive/status", async (c) => {
  const day = date(c.req.query("date"));
  const job = (await archiver(c.env).jobs()).find((job) => job.date === day);
  return job ? c.json(job) : refuse(404, `Nobody has asked to archive ${day}.`);
});

/** The events of an archived day, streamed: {date, recordCount, archivedAt, events}. */
app.get("/admin/archive/query", async (c) => {
  const day = date(c.req.query("date"));
  const meta = (await readMetadata(c.env, day)) ?? refuse(404, "That day has not been archived.");
  if (!(await c.env.R2_BUCKET.head(meta.path))) refuse(500, `${meta.path} is missing in R2.`);
  const bucket = c.env.R2_BUCKET;
  async function* body(): AsyncGenerator<Uint8Array> {
    const encoder = new TextEncoder();
    yield encoder.encode(`${JSON.stringify({ date: day, recordCount: meta.recordCount, archivedAt: meta.archivedAt }).slice(0, -1)},"events":[`);
    let comma = "";
    for await (const page of readFile(bucket, meta.path)) {
      yield encoder.encode(comma + page.map((row) => JSON.stringify(row)).join(",\n"));
      comma = ",\n";
    }
    yield encoder.encode("]}");
  }
  return new Response(ReadableStream.from(body()), { headers: { "content-type": "application/json" } });
});

// --- replaying, the change-over ------------------------------------------------------------------------

async function eventsOf(c: Call): Promise<TrafficEvent[]> {
  const { events } = await input<{ events?: unknown }>(c);
  if (!Array.isArray(events) || events.length === 0 || events.length > INGEST_MOST) refuse(400, `"events" must be a list of 1 to ${INGEST_MOST} events.`);
  for (const event of events as unknown[]) {
    const problem = whyNot(event);
    if (problem) refuse(400, problem);
  }
  return events as TrafficEvent[];
}

/** Takes events again (tools/replay.mjs). */
app.post("/admin/events", async (c) => {
  const events = await eventsOf(c);
  await c.env.TRAFFIC_QUEUE.sendBatch(events.map((body) => ({ body })));
  return c.json({ accepted: events.length }, 202);
});

/** Which of these events are counted, and kept in detail, already: their places in the list. */
app.post("/admin/events/known", async (c) => c.json(await knownEvents(c.env, await eventsOf(c))));

/** What is in D1 of a day: detail rows, and what the hours have counted. What replaying is checked against. */
app.get("/admin/counts", async (c) => {
  const day = date(c.req.query("date"));
  const from = Date.parse(day);
  const [events, counted, marks] = await Promise.all([
    detailCount(c.env, day),
    fromAll<{ n: number }>(c.env, "SELECT coalesce(sum(requests), 0) AS n FROM path_stats_hourly WHERE hour_bucket >= ? AND hour_bucket < ?", `${day}T00`, `${day}T24`),
    c.req.query("marks") === undefined ? [] : fromAll<{ n: number }>(c.env, "SELECT count(*) AS n FROM counted_hours h JOIN counted_events e ON e.hour = h.id WHERE h.hour_bucket >= ? AND h.hour_bucket < ?", `${day}T00`, `${day}T24`),
  ]);
  const sum = (rows: { n: number }[]): number => rows.reduce((total, { n }) => total + n, 0);
  return c.json({ date: day, from, events, counted: sum(counted), ...(c.req.query("marks") === undefined ? {} : { marks: sum(marks) }) });
});

app.get("/admin/phase", async (c) => c.json(await storedPhase(c.env)));
app.post("/admin/phase", async (c) => {
  const { phase } = await input<{ phase?: unknown }>(c);
  if (typeof phase !== "number" || !Number.isInteger(phase) || phase < 0 || phase > PHASE_LAST) refuse(400, `"phase" must be a whole number from 0 to ${PHASE_LAST}.`);
  return c.json(await setPhase(c.env, phase as number, (since) => resetOld(c.env, since)));
});

/** Counts of both ways over the same requests. `settle`: seconds that events may still be under way. */
app.get("/admin/paths/compare", async (c) => {
  const settle = Number(c.req.query("settle") ?? "60");
  if (!Number.isInteger(settle) || settle < 0 || settle > 3600) refuse(400, '"settle" must be a whole number of seconds, at most 3600.');
  return c.json((await compare(c.env, settle * 1000)) ?? { since: null, difference: null });
});
