// The public API, and a few routes for whoever has the token.
import { Hono, type Context } from "hono";
import { HTTPException } from "hono/http-exception";
import type { Bundle } from "./coordinator";
import { recentFailures, sparklines, trend } from "./database";
import { coordinatorOf, type Env, snapshotKey } from "./env";
import { sampleBatch } from "./sample";

const HOUR = 3_600_000;
const RANGES: Record<string, number> = { "1h": HOUR, "6h": 6 * HOUR, "24h": 24 * HOUR, "7d": 168 * HOUR, "30d": 720 * HOUR };
const SLUG = /^[a-z0-9_]{1,64}$/;
const SLUGS_MOST = 2_000; // of both lists together: their latest ticks are one value in storage, and one in KV

export const app = new Hono<{ Bindings: Env }>();

app.onError((error, c) => {
  if (error instanceof HTTPException) return c.json({ error: error.message }, error.status);
  console.error(error);
  return c.json({ error: "Something went wrong here." }, 500);
});
app.notFound((c) => c.json({ error: `There is nothing at ${new URL(c.req.url).pathname}.` }, 404));

const refuse = (status: 400 | 401 | 403 | 404, message: string): never => {
  throw new HTTPException(status, { message });
};

/** The bundle from KV; from the coordinator itself while there is none. */
async function latest(env: Env): Promise<{ dataSource: "kv" | "do"; updatedAt: number; latest: Bundle }> {
  try {
    const { value, metadata } = await env.KV.getWithMetadata<Bundle, { updatedAt: number }>(snapshotKey(env.PLATFORM), "json");
    if (value && metadata) return { dataSource: "kv", updatedAt: metadata.updatedAt, latest: value };
  } catch (error) {
    console.warn("KV could not be read; the coordinator answers", error);
  }
  return { dataSource: "do", updatedAt: Date.now(), latest: await coordinatorOf(env).latest() };
}

app.get("/api/snapshot", async (c) => c.json({ platform: c.env.PLATFORM, ...(await latest(c.env)) }, 200, { "cache-control": "public, max-age=15" }));

app.get("/api/weapons", async (c) => {
  const { listHot, listCold } = await coordinatorOf(c.env).state();
  return c.json({ hot: listHot, cold: listCold });
});

app.get("/api/sparklines", async (c) => {
  const to = Date.now();
  return c.json({ hours: 24, lines: await sparklines(c.env.DB, c.env.PLATFORM, to - 24 * HOUR, to, 24) }, 200, { "cache-control": "public, max-age=60" });
});

function time(c: Context, name: string, otherwise: number): number {
  const given = c.req.query(name);
  if (given === undefined) return otherwise;
  const value = /^\d+$/.test(given) ? Number(given) : Date.parse(given);
  return Math.abs(value) <= 8.64e15 ? value : refuse(400, `"${name}" must be a time: ISO 8601, or milliseconds since 1970.`);
}

app.get("/api/trends/:slug", async (c) => {
  const slug = c.req.param("slug");
  if (!SLUG.test(slug)) refuse(400, "A weapon's name has small letters, digits and _ only.");
  const range = c.req.query("range") ?? "24h";
  const length = RANGES[range] ?? refuse(400, `"range" must be one of ${Object.keys(RANGES).join(", ")}.`);
  const to = time(c, "to", Date.now() + 60_000);
  const from = time(c, "from", to - length);
  if (from >= to) refuse(400, '"from" must be before "to".');
  const points = Number(c.req.query("points") ?? "200");
  if (!Number.isInteger(points) || points < 1 || points > 2000) refuse(400, '"points" must be a whole number from 1 to 2000.');
  return c.json({ platform: c.env.PLATFORM, weapon_slug: slug, from, to, points: await trend(c.env.DB, c.env.PLATFORM, slug, from, to, points) });
});

app.get("/api/health", async (c) => {
  const state = await coordinatorOf(c.env).state();
  const failures = await recentFailures(c.env.DB, c.env.PLATFORM, Date.now() - HOUR);
  const { listHot, listCold, ...rest } = state;
  return c.json({ ok: true, hot: listHot.length, cold: listCold.length, ...rest, market: new URL(c.env.MARKET_URL).host, failuresLastHour: failures.count, failures: failures.weapons });
});

async function sameText(a: string, b: string): Promise<boolean> {
  const digest = (text: string) => crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return crypto.subtle.timingSafeEqual(await digest(a), await digest(b));
}

app.use("/admin/*", async (c, next) => {
  if (!c.env.ADMIN_TOKEN) refuse(403, "No ADMIN_TOKEN is set, so nobody may do this.");
  const given = /^Bearer (.+)$/.exec(c.req.header("authorization") ?? "")?.[1];
  if (!given || !(await sameText(given, c.env.ADMIN_TOKEN!))) refuse(401, "This needs the admin token: Authorization: Bearer TOKEN.");
  await next();
});

app.post("/admin/sample", async (c) => c.json(await sampleBatch(c.env)));

app.put("/admin/lists", async (c) => {
  const { hot, cold } = await c.req.json<{ hot?: unknown; cold?: unknown }>().catch(() => refuse(400, "The body must be JSON."));
  const list = (value: unknown, name: string): string[] => {
    if (!Array.isArray(value) || value.length > SLUGS_MOST || !value.every((slug) => typeof slug === "string" && SLUG.test(slug))) refuse(400, `"${name}" must be a list of at most ${SLUGS_MOST} weapons' names.`);
    return [...new Set(value as string[])];
  };
  const lists = [list(hot, "hot"), list(cold, "cold")];
  if (lists[0].length + lists[1].length > SLUGS_MOST) refuse(400, `Both lists together may have at most ${SLUGS_MOST} weapons.`);
  await coordinatorOf(c.env).setLists(lists[0], lists[1]);
  return c.json({ ok: true });
});
