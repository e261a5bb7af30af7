// D1: the history of all ticks.
import type { Tick } from "./tick";

export interface Failure {
  ts: number;
  platform: string;
  weapon_slug: string;
  reason: string;
}

export interface TrendPoint {
  ts: number;
  bottom_price: number | null;
  min_price: number | null;
  active_count: number;
}

/** All of a batch or nothing. A tick that is there already stays as it is. */
export async function insertTicks(db: D1Database, ticks: Tick[], failures: Failure[]): Promise<void> {
  const tick = db.prepare(
    `INSERT INTO riven_bottom_tick (ts, platform, weapon_slug, bottom_price, active_count, min_price, p5_price, p10_price, source_status, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  );
  const failure = db.prepare("INSERT INTO riven_failure (ts, platform, weapon_slug, reason) VALUES (?, ?, ?, ?)");
  const statements = [
    ...ticks.map((t) => tick.bind(t.ts, t.platform, t.weapon_slug, t.bottom_price, t.active_count, t.min_price, t.p5_price, t.p10_price, t.source_status, t.created_at)),
    ...failures.map((f) => failure.bind(f.ts, f.platform, f.weapon_slug, f.reason)),
  ];
  if (statements.length) await db.batch(statements);
}

/** One weapon between two times, in at most `points` steps: the mean of the index, the lowest price. */
export async function trend(db: D1Database, platform: string, slug: string, from: number, to: number, points: number): Promise<TrendPoint[]> {
  const step = Math.max(60_000, Math.ceil((to - from) / points));
  const { results } = await db
    .prepare(
      `SELECT ?4 + (ts - ?4) / ?5 * ?5 AS ts, round(avg(bottom_price), 2) AS bottom_price, min(min_price) AS min_price, round(avg(active_count), 1) AS active_count
       FROM riven_bottom_tick WHERE platform = ?1 AND weapon_slug = ?2 AND ts >= ?4 AND ts < ?3 GROUP BY 1 ORDER BY 1`,
    )
    .bind(platform, slug, to, from, step)
    .all<TrendPoint>();
  return results;
}

/** The index of every weapon over the last hours, for the small charts: {slug: prices}. */
export async function sparklines(db: D1Database, platform: string, from: number, to: number, points: number): Promise<Record<string, number[]>> {
  const step = Math.ceil((to - from) / points);
  const { results } = await db
    .prepare(
      `SELECT weapon_slug AS slug, round(avg(bottom_price), 1) AS price FROM riven_bottom_tick
       WHERE platform = ?1 AND ts >= ?2 AND ts < ?3 AND bottom_price IS NOT NULL GROUP BY weapon_slug, (ts - ?2) / ?4 ORDER BY weapon_slug, (ts - ?2) / ?4`,
    )
    .bind(platform, from, to, step)
    .all<{ slug: string; price: number }>();
  const lines: Record<string, number[]> = {};
  for (const { slug, price } of results) (lines[slug] ??= []).push(price);
  return lines;
}

export async function recentFailures(db: D1Database, since: number): Promise<{ count: number; last: string | null }> {
  const row = await db
    .prepare("SELECT count(*) AS count, (SELECT weapon_slug || ': ' || reason FROM riven_failure ORDER BY id DESC LIMIT 1) AS last FROM riven_failure WHERE ts >= ?")
    .bind(since)
    .first<{ count: number; last: string | null }>();
  return row!;
}
