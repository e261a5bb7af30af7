// What people and programs ask: statistics, exports, the archive.
import { Hono, type Context } from "hono";
import { HTTPException } from "hono/http-exception";
import { archiveDay, listArchives, readState } from "./archive";
import { dropped } from "./collector";
import { fromAll, statsByHour } from "./database";
import { databases, type Env } from "./env";
import { DAY, HOUR, hourOf, type TrafficEvent, whyNot } from "./event";
import { backlogOf, heartbeatOf, recentAlerts } from "./monitor";
import { Stats } from "./stats";
import { pathsAnswer } from "./tiers";

export const app = new Hono<{ Bindings: Env }>();
const DATE = /^\d{4}-\d\d-\d\d$/;
const EXPORT_MOST = 31 * DAY;
const INGEST_MOST = 100;

const refuse = (status: 400 | 401 | 403 | 404 | 409, message: string): never => {
  throw new HTTPException(status, { message });
};
app.onError((error, c) => {
  if (error instanceof HTTPException) return c.json({ error: error.message }, error.status);
  console.error(error);
  return c.json({ error: "Something went wrong here." }, 500);
});
app.notFound((c) => c.json({ error: `There is nothing at ${new URL(c.req.url).pathname}.` }, 404));

// --- statistics ------------------------------------------------------------------------------------

app.get("/paths", (c) => pathsAnswer(c.env, c.executionCtx as ExecutionContext, c.req.query("refresh") === "true"));

function hours(c: Context): [number, number] {
  const count = Number(c.req.query("hours") ?? "24");
  if (!Number.isInteger(count) || count < 1 || count > 24 * 90) refuse(400, '"hours" must be a whole number from 1 to 2160.');
  const to = hourOf(Date.now()) + HOUR;
  return [to - count * HOUR, to];
}

/** Traffic over time, of one path or of all. */
app.get("/paths/stats", async (c) => {
  const [from, to] = hours(c);
  const path = c.req.query("path");
  const byHour = await statsByHour(c.env, from, to, path);
  const total = new Stats();
  for (const stats of byHour.values()) total.merge(stats);
  const series = [...byHour].sort(([a], [b]) => a - b).map(([hour, stats]) => ({ hour, ...stats.summary() }));
  return c.json({ from, to, path: path ?? null, total: total.summary(), hours: series });
});

/** The pipeline itself. */
app.get("/paths/metrics", async (c) => {
  const [beat, backlog, alerts] = await Promise.all([heartbeatOf(c.env), backlogOf(c.env), recentAlerts(c.env)]);
  const [{ pending }] = (await databases(c.env)[0].prepare("SELECT count(*) AS pending FROM pending_events").all<{ pending: number }>()).results;
  return c.json({ backlog, consumer: beat, dropped, pending, databases: databases(c.env).length, strategy: c.env.STRATEGY, alerts: alerts.filter((alert) => alert.ended_at === null) });
});

app.get("/paths/alerts", async (c) => c.json({ alerts: await recentAlerts(c.env) }));
app.get("/paths/archives", async (c) => c.json({ archives: await listArchives(c.env) }));

// --- for those with the token ----------------------------------------------------------------------

async function sameText(a: string, b: string): Promise<boolean> {
  const digest = (text: string) => crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return crypto.subtle.timingSafeEqual(await digest(a), await digest(b));
}

async function allowed(c: Context<{ Bindings: Env }>): Promise<void> {
  if (!c.env.ADMIN_TOKEN) refuse(403, "No ADMIN_TOKEN is set, so nobody may do this.");
  const given = /^Bearer (.+)$/.exec(c.req.header("authorization") ?? "")?.[1];
  if (!given || !(await sameText(given, c.env.ADMIN_TOKEN!))) refuse(401, "This needs the admin token: Authorization: Bearer TOKEN.");
}

// Endpoints of earlier versions: whoever still calls them should learn that they are gone for good.
for (const retired of ["/admin/paths/compare", "/admin/paths/discovered", "/admin/paths/do/*", "/admin/health/do-*", "/admin/health/auto-maintenance", "/admin/health/comparison"])
  app.all(retired.replace("do-*", ":name{do-.*}"), (c) => c.json({ error: "This endpoint has been retired." }, 410));

app.use("/admin/*", async (c, next) => {
  await allowed(c);
  await next();
});

async function input<T>(c: Context): Promise<T> {
  const value = await c.req.json().catch(() => refuse(400, "The body must be JSON."));
  return typeof value === "object" && value !== null ? (value as T) : refuse(400, "The body must be a JSON object.");
}

function date(value: unknown): string {
  if (typeof value !== "string" || !DATE.test(value) || Number.isNaN(Date.parse(value))) refuse(400, '"date" must be a day: YYYY-MM-DD.');
  return value as string;
}

app.post("/admin/archive/trigger", async (c) => {
  const day = date((await input<{ date?: unknown }>(c)).date);
  const state = await archiveDay(c.env, day);
  return state ? c.json(state) : c.json({ error: `There are no events of ${day}.` }, 404);
});

app.get("/admin/archive/query", async (c) => {
  const state = await readState(c.env, date(c.req.query("date")));
  return state ? c.json(state) : c.json({ error: "That day has not been archived." }, 404);
});

/** Takes events again (tools/replay.mjs). */
app.post("/admin/events", async (c) => {
  const { events } = await input<{ events?: unknown }>(c);
  if (!Array.isArray(events) || events.length === 0 || events.length > INGEST_MOST) refuse(400, `"events" must be a list of 1 to ${INGEST_MOST} events.`);
  for (const event of events as unknown[]) {
    const problem = whyNot(event);
    if (problem) refuse(400, problem);
  }
  await c.env.TRAFFIC.sendBatch((events as TrafficEvent[]).map((body) => ({ body })));
  return c.json({ accepted: (events as unknown[]).length }, 202);
});

/** Detail rows as JSON lines, streamed page by page. `anonymize=true` leaves out everything about the visitor. */
app.get("/paths/events/export", async (c) => {
  await allowed(c);
  const from = Number(c.req.query("from")), to = Number(c.req.query("to"));
  if (!Number.isInteger(from) || !Number.isInteger(to) || from >= to || to - from > EXPORT_MOST) refuse(400, '"from" and "to" must be milliseconds since 1970, at most 31 days apart.');
  const fields = c.req.query("anonymize") === "true" ? "id, ts, path, method, status, ms" : "id, ts, path, method, status, ms, ip_hash, agent, country, request_id";
  const env = c.env;
  async function* lines(): AsyncGenerator<Uint8Array> {
    const encoder = new TextEncoder();
    for (const db of databases(env)) {
      for (let ts = from - 1, row = 0; ; ) {
        const { results } = await db
          .prepare(`SELECT row, ${fields} FROM traffic_events WHERE ts >= ?1 AND ts < ?2 AND (ts > ?3 OR ts = ?3 AND row > ?4) ORDER BY ts, row LIMIT 2000`)
          .bind(from, to, ts, row)
          .all<{ row: number; ts: number }>();
        if (results.length === 0) break;
        yield encoder.encode(results.map(({ row: _, ...event }) => `${JSON.stringify(event)}\n`).join(""));
        ({ ts, row } = results[results.length - 1]);
      }
    }
  }
  return new Response(ReadableStream.from(lines()), { headers: { "content-type": "application/x-ndjson", "content-disposition": "attachment; filename=events.jsonl" } });
});

/** Counts by path and hour as the detail rows have them: what replaying is checked against. */
app.get("/admin/counts", async (c) => {
  const day = date(c.req.query("date"));
  const rows = await fromAll<{ path: string; n: number }>(c.env, "SELECT path, count(*) AS n FROM traffic_events WHERE event_date = ? GROUP BY path", day);
  const counted = await statsByHour(c.env, Date.parse(day), Date.parse(day) + DAY);
  let requests = 0;
  for (const stats of counted.values()) requests += stats.requests;
  return c.json({ date: day, events: rows.reduce((sum, { n }) => sum + n, 0), counted: requests, paths: Object.fromEntries(rows.map(({ path, n }) => [path, n])) });
});
