// Hours become days, and what is older than it is kept goes.
import { databases, type Env } from "./env";
import { DAY, dateOf, getHourBucket } from "./event";
import { mergeBy } from "./database";
import type { StatsRow } from "./stats";

const ROWS_AT_ONCE = 20;

/**
 * Writes the rows of a day anew in one database. While the day is marked as changed its hours are read, so half of it is never
 * seen; the mark goes last, in a transaction that fails if the hours have changed since they were read.
 */
async function rollUpDay(db: D1Database, day: string): Promise<void> {
  const hours = [`${day}T00`, `${day}T24`];
  const { results } = await db.prepare("SELECT * FROM path_stats_hourly WHERE hour_bucket >= ? AND hour_bucket < ?").bind(...hours).all<StatsRow>();
  const paths = [...mergeBy(results, (row: StatsRow) => row.path)];
  for (let at = 0; at < paths.length; at += ROWS_AT_ONCE)
    await db.batch(
      paths.slice(at, at + ROWS_AT_ONCE).map(([path, stats]) =>
        db
          .prepare("INSERT OR REPLACE INTO path_stats_daily (path, day_bucket, requests, errors, sum_response_time, count_response_time, tdigest, hll_ip) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
          .bind(path, day, ...stats.values()),
      ),
    );
  const requests = paths.reduce((sum, [, stats]) => sum + stats.requests, 0);
  await db
    .prepare("DELETE FROM changed_days WHERE day_bucket = ? AND (SELECT coalesce(sum(requests), 0) FROM path_stats_hourly WHERE hour_bucket >= ? AND hour_bucket < ?) = ?")
    .bind(day, ...hours, requests)
    .run();
}

/** Every day that is over and has changed since it was rolled up. Today is read from its hours. */
export async function rollUpDays(env: Env, now: number): Promise<number> {
  let count = 0;
  for (const db of databases(env)) {
    const { results } = await db.prepare("SELECT day_bucket FROM changed_days WHERE day_bucket < ?").bind(dateOf(now)).all<{ day_bucket: string }>();
    for (const { day_bucket } of results) {
      await rollUpDay(db, day_bucket);
      count++;
    }
  }
  return count;
}

/**
 * Statistics past their time go, hour by hour, each with the marks of what it counted in one transaction (K1 of src/count.ts): a
 * replay of something that old counts into an empty hour.
 */
export async function forgetAggregates(env: Env, now: number): Promise<void> {
  const limit = now - (now % DAY) - Number(env.AGGREGATE_DAYS) * DAY;
  for (const db of databases(env)) {
    const { results } = await db.prepare("SELECT DISTINCT hour_bucket FROM path_stats_hourly WHERE hour_bucket < ?").bind(getHourBucket(limit)).all<{ hour_bucket: string }>();
    for (const { hour_bucket } of results)
      await db.batch([
        db.prepare("DELETE FROM path_stats_hourly WHERE hour_bucket = ?").bind(hour_bucket),
        db.prepare("DELETE FROM counted_events WHERE hour IN (SELECT id FROM counted_hours WHERE hour_bucket = ?)").bind(hour_bucket),
        db.prepare("DELETE FROM counted_hours WHERE hour_bucket = ?").bind(hour_bucket),
      ]);
    await db.batch([
      db.prepare("DELETE FROM path_stats_daily WHERE day_bucket < ?").bind(dateOf(limit)),
      db.prepare("DELETE FROM changed_days WHERE day_bucket < ?").bind(dateOf(limit)),
    ]);
  }
}
