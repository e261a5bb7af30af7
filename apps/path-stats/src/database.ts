// Reading statistics: D1 is asked in all databases at once, and what comes is merged.
import { databases, type Env } from "./env";
import { DAY, dateOf, getHourBucket, HOUR } from "./event";
import { Stats, type StatsRow } from "./stats";

type BucketRow = StatsRow & { bucket: string };

/** Asks every database at the same time. */
export async function fromAll<T>(env: Env, sql: string, ...values: unknown[]): Promise<T[]> {
  const answers = await Promise.all(databases(env).map((db) => db.prepare(sql).bind(...values).all<T>()));
  return answers.flatMap(({ results }) => results);
}

export function mergeBy<K>(rows: StatsRow[], keyOf: (row: never) => K): Map<K, Stats> {
  const merged = new Map<K, Stats>();
  for (const row of rows) {
    const key = keyOf(row as never);
    const known = merged.get(key);
    if (known) known.merge(Stats.fromRow(row));
    else merged.set(key, Stats.fromRow(row));
  }
  return merged;
}

/** The hours between two times, of one path or of all. */
export function hourRows(env: Env, from: number, to: number, path?: string): Promise<BucketRow[]> {
  const sql = "SELECT *, hour_bucket AS bucket FROM path_stats_hourly WHERE hour_bucket >= ? AND hour_bucket < ?" + (path === undefined ? "" : " AND path = ?");
  return fromAll<BucketRow>(env, sql, getHourBucket(from), getHourBucket(to), ...(path === undefined ? [] : [path]));
}

export const statsByPath = async (env: Env, from: number, to: number): Promise<Map<string, Stats>> => mergeBy(await hourRows(env, from, to), (row: BucketRow) => row.path);

/**
 * Days between two midnights: the daily rows of those that are rolled up, the hours of the others (today, and days that
 * have changed since).
 */
export async function dayRows(env: Env, from: number, to: number, path?: string): Promise<BucketRow[]> {
  const sql = `SELECT d.*, d.day_bucket AS bucket FROM path_stats_daily d
    WHERE d.day_bucket >= ? AND d.day_bucket < ? AND d.day_bucket NOT IN (SELECT day_bucket FROM changed_days)` + (path === undefined ? "" : " AND d.path = ?");
  const rows = await fromAll<BucketRow>(env, sql, dateOf(from), dateOf(to), ...(path === undefined ? [] : [path]));
  const open = new Set((await fromAll<{ day_bucket: string }>(env, "SELECT day_bucket FROM changed_days WHERE day_bucket >= ? AND day_bucket < ?", dateOf(from), dateOf(to))).map((row) => row.day_bucket));
  // A day that has changed in one database only is taken from its hours in all of them: nothing twice, nothing missing.
  const kept = rows.filter((row) => !open.has(row.bucket));
  const hours = await Promise.all([...open].map((day) => hourRows(env, Date.parse(day), Date.parse(day) + DAY, path)));
  return [...kept, ...hours.flat().map((row) => ({ ...row, bucket: row.bucket.slice(0, 10) }))];
}

/** How many salts were in use: what somebody hashed with one cannot be recognised under the next. */
export const saltPeriods = (env: Env, from: number, to: number): number => {
  const length = Number(env.SALT_HOURS) * HOUR;
  return Math.floor((to - 1) / length) - Math.floor(from / length) + 1;
};
