// D1, spread over several databases by a hash of the path. Queries go to all of them and are merged.
import { databases, type Env, shardOf } from "./env";
import { dateOf, type TrafficEvent } from "./event";
import { Stats, type StatsRow } from "./stats";

/** The detail rows, and whatever else must be written with them, in one transaction per database. */
export async function insertEvents(env: Env, events: TrafficEvent[], also: (db: number) => D1PreparedStatement[] = () => []): Promise<void> {
  const all = databases(env);
  const byDatabase = all.map((): TrafficEvent[] => []);
  for (const event of events) byDatabase[shardOf(event.path, all.length)].push(event);
  const ends = await Promise.allSettled(
    all.map((db, n) => {
      const statements = also(n);
      if (byDatabase[n].length) statements.push(insertStatement(db, byDatabase[n]));
      return statements.length ? db.batch(statements) : undefined;
    }),
  );
  // Only when all have ended: whoever tries again must see what went through.
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

function insertStatement(db: D1Database, events: TrafficEvent[]): D1PreparedStatement {
  const rows = events.map((e) => [e.id, dateOf(e.ts), e.ts, e.path, e.method ?? null, e.status ?? null, e.ms ?? null, e.ip_hash ?? null, e.agent ?? null, e.country ?? null, e.request_id ?? null]);
  const column = (n: number): string => `value ->> ${n}`;
  return db
    .prepare(
      `INSERT INTO traffic_events (id, event_date, ts, path, method, status, ms, ip_hash, agent, country, request_id)
       SELECT ${rows[0].map((_, n) => column(n)).join(", ")} FROM json_each(?) WHERE true ON CONFLICT (id) DO NOTHING`,
    )
    .bind(JSON.stringify(rows));
}

/** Which of these events are in the detail table already. */
export async function knownIds(env: Env, events: TrafficEvent[]): Promise<Set<string>> {
  const all = databases(env);
  const ids = all.map((): string[] => []);
  for (const event of events) ids[shardOf(event.path, all.length)].push(event.id);
  const known = new Set<string>();
  await Promise.all(
    all.map(async (db, n) => {
      if (ids[n].length === 0) return;
      const { results } = await db.prepare("SELECT id FROM traffic_events WHERE id IN (SELECT value FROM json_each(?))").bind(JSON.stringify(ids[n])).all<{ id: string }>();
      for (const { id } of results) known.add(id);
    }),
  );
  return known;
}

/** Writes the whole row: whoever calls owns the truth about this path and hour. */
export function hourlyStatement(db: D1Database, path: string, hour: number, stats: Stats): D1PreparedStatement {
  return db
    .prepare("INSERT OR REPLACE INTO path_stats_hourly (path, hour, requests, errors, ms_sum, ms_count, digest, uniques, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
    .bind(path, hour, stats.requests, stats.errors, stats.msSum, stats.msCount, stats.digest.toBytes(), stats.uniques.toBytes(), Date.now());
}

/**
 * Fails, and with it its batch, if somebody has counted for this path and hour since `requests` was read, or one of these events is
 * there already. SQLite has no way to say that in a query but an error of another kind.
 */
export function unchangedStatement(db: D1Database, path: string, hour: number, requests: number, events: TrafficEvent[]): D1PreparedStatement {
  return db
    .prepare(
      `SELECT CASE WHEN coalesce((SELECT requests FROM path_stats_hourly WHERE path = ? AND hour = ?), 0) <> ?
         OR EXISTS (SELECT 1 FROM traffic_events WHERE id IN (SELECT value FROM json_each(?))) THEN json('${CHANGED}') END`,
    )
    .bind(path, hour, requests, JSON.stringify(events.map((event) => event.id)));
}
const CHANGED = "changed meanwhile";
export const isChanged = (error: unknown): boolean => /malformed JSON/.test((error as Error).message);

export const databaseOf = (env: Env, path: string): D1Database => {
  const all = databases(env);
  return all[shardOf(path, all.length)];
};

export async function hourlyRow(env: Env, path: string, hour: number): Promise<Stats | null> {
  const row = await databaseOf(env, path).prepare("SELECT * FROM path_stats_hourly WHERE path = ? AND hour = ?").bind(path, hour).first<StatsRow>();
  return row && Stats.fromRow(row);
}

/** Asks every database at the same time. */
export async function fromAll<T>(env: Env, sql: string, ...values: unknown[]): Promise<T[]> {
  const answers = await Promise.all(databases(env).map((db) => db.prepare(sql).bind(...values).all<T>()));
  return answers.flatMap(({ results }) => results);
}

/** Everything between two times, by path. */
export async function statsByPath(env: Env, from: number, to: number): Promise<Map<string, Stats>> {
  const paths = new Map<string, Stats>();
  for (const row of await fromAll<StatsRow>(env, "SELECT * FROM path_stats_hourly WHERE hour >= ? AND hour < ?", from, to)) {
    const known = paths.get(row.path);
    if (known) known.merge(Stats.fromRow(row));
    else paths.set(row.path, Stats.fromRow(row));
  }
  return paths;
}

/** The same by hour, over all paths or one. */
export async function statsByHour(env: Env, from: number, to: number, path?: string): Promise<Map<number, Stats>> {
  const hours = new Map<number, Stats>();
  const sql = "SELECT * FROM path_stats_hourly WHERE hour >= ? AND hour < ?" + (path === undefined ? "" : " AND path = ?");
  for (const row of await fromAll<StatsRow & { hour: number }>(env, sql, from, to, ...(path === undefined ? [] : [path]))) {
    const known = hours.get(row.hour);
    if (known) known.merge(Stats.fromRow(row));
    else hours.set(row.hour, Stats.fromRow(row));
  }
  return hours;
}
