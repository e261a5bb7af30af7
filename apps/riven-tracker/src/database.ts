// D1: the history of all ticks.
import { isoTime, type Tick } from "./tick";

export interface Failure {
  ts: string;
  platform: string;
  weapon_slug: string;
  reason: string;
}

export interface TrendPoint {
  ts: string;
  bottom_price: number | null;
  min_price: number | null;
  active_count: number;
}

/** All of a batch or nothing. A tick that is there already stays as it is. */
export async function insertSamples(db: D1Database, samples: Tick[], failures: Failure[]): Promise<void> {
  const tick = db.prepare(
    `INSERT INTO riven_bottom_tick (ts, platform, weapon_slug, bottom_price, active_count, min_price, p5_price, p10_price, source_status, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  );
  const failure = db.prepare("INSERT INTO riven_failure (ts, platform, weapon_slug, reason) VALUES (?, ?, ?, ?)");
  const statements = [
    ...samples.map((t) => tick.bind(t.ts, t.platform, t.weapon_slug, t.bottom_price, t.active_count, t.min_price, t.p5_price, t.p10_price, t.source_status, t.created_at)),
    ...failures.map((f) => failure.bind(f.ts, f.platform, f.weapon_slug, f.reason)),
  ];
  if (statements.length) await db.batch(statements);
}

/** One weapon between two times, in at most `points` steps: the mean of the index, the lowest price. */
export async function trend(db: D1Database, platform: string, slug: string, from: number, to: number, points: number): Promise<TrendPoint[]> {
  const step = Math.max(60, Math.ceil((to - from) / 1000 / points));
  const start = Math.floor(from / 1000);
  const { results } = await db
    .prepare(
      `SELECT strftime('%Y-%m-%dT%H:%M:%SZ', ?5 + (unixepoch(ts) - ?5) / ?6 * ?6, 'unixepoch') AS ts,
         round(avg(bottom_price)) AS bottom_price, min(min_price) AS min_price, round(avg(active_count), 1) AS active_count
       FROM riven_bottom_tick WHERE platform = ?1 AND weapon_slug = ?2 AND ts >= ?3 AND ts < ?4 GROUP BY 1 ORDER BY 1`,
    )
    .bind(platform, slug, isoTime(from), isoTime(to), start, step)
    .all<TrendPoint>();
  return results;
}

/** The index of every weapon over the last hours, for the small charts: {slug: prices}. */
export async function sparklines(db: D1Database, platform: string, from: number, to: number, points: number): Promise<Record<string, number[]>> {
  const step = Math.ceil((to - from) / 1000 / points);
  const { results } = await db
    .prepare(
      `SELECT weapon_slug AS slug, round(avg(bottom_price), 1) AS price FROM riven_bottom_tick
       WHERE platform = ?1 AND ts >= ?2 AND ts < ?3 AND bottom_price IS NOT NULL GROUP BY weapon_slug, unixepoch(ts) / ?4 ORDER BY weapon_slug, unixepoch(ts) / ?4`,
    )
    .bind(platform, isoTime(from), isoTime(to), step)
    .all<{ slug: string; price: number }>();
  const lines: Record<string, number[]> = {};
  for (const { slug, price } of results) (lines[slug] ??= []).push(price);
  return lines;
}

/** What could not be sampled since a time: how often, and the latest of each weapon. */
export async function recentFailures(db: D1Database, platform: string, since: number): Promise<{ count: number; weapons: Failure[] }> {
  const [counted, latest] = await db.batch<unknown>([
    db.prepare("SELECT count(*) AS count FROM riven_failure WHERE platform = ? AND ts >= ?").bind(platform, isoTime(since)),
    db.prepare("SELECT max(id), ts, platform, weapon_slug, reason FROM riven_failure WHERE platform = ? AND ts >= ? GROUP BY weapon_slug ORDER BY 1 DESC LIMIT 20").bind(platform, isoTime(since)),
  ]);
  return {
    count: (counted.results[0] as { count: number }).count,
    weapons: (latest.results as Failure[]).map(({ ts, platform: on, weapon_slug, reason }) => ({ ts, platform: on, weapon_slug, reason })),
  };
}
