// Hours become days, and what is older than it is kept goes.
import { databases, type Env, shardOf } from "./env";
import { DAY, dateOf, HOUR } from "./event";
import { statsByPath } from "./database";

const ROWS_AT_ONCE = 20;

/** Writes the daily rows of a day, whole: doing it again changes nothing. */
export async function rollUpDay(env: Env, date: string): Promise<number> {
  const from = Date.parse(date);
  const paths = await statsByPath(env, from, from + DAY);
  const all = databases(env);
  const statements = all.map((): D1PreparedStatement[] => []);
  for (const [path, stats] of paths) {
    const n = shardOf(path, all.length);
    statements[n].push(
      all[n]
        .prepare("INSERT OR REPLACE INTO path_stats_daily (path, day, requests, errors, ms_sum, ms_count, digest, uniques, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
        .bind(path, date, stats.requests, stats.errors, stats.msSum, stats.msCount, stats.digest.toBytes(), stats.uniques.toBytes(), Date.now()),
    );
  }
  await Promise.all(all.map(async (db, n) => {
    for (let at = 0; at < statements[n].length; at += ROWS_AT_ONCE) await db.batch(statements[n].slice(at, at + ROWS_AT_ONCE));
  }));
  return paths.size;
}

/** After the roll-up: hourly rows past their time. */
export async function forgetHours(env: Env, now: number): Promise<void> {
  const limit = now - Number(env.HOURLY_DAYS) * 24 * HOUR;
  await Promise.all(databases(env).map((db) => db.prepare("DELETE FROM path_stats_hourly WHERE hour < ?").bind(limit).run()));
}

export const yesterday = (now: number): string => dateOf(now - DAY);
