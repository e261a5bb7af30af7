// Counting events into path_stats_hourly, once each, for ever.
//
// K1  Statistics and the marks of the events in them are written in one transaction, and deleted in one (src/rollup.ts): an
//     event counts if and only if it has no mark. There is no window after which a copy is new.
// K2  The transaction fails if the row has changed since it was read, and all of it is done again: no update is lost,
//     whoever counts and however many.
// K3  A mark is the event's id within its path and hour: 54 bits. It needs no detail row, so it outlives the archive.
import { databases, type Env, shardOf } from "./env";
import { COLUMNS, dateOf, getHourBucket, markOf, rowOf, type TrafficEvent } from "./event";
import { count as meter } from "./meters";
import { groupKey, Stats, type StatsRow } from "./stats";

export interface Group {
  path: string;
  hourBucket: string;
  events: TrafficEvent[];
}

const TRIES_MOST = 40;
const CHANGED = "changed meanwhile";
const isChanged = (error: unknown): boolean => /malformed JSON/.test((error as Error).message);

/** Every write to D1 goes through here: how many there are and how many fail is watched. */
export async function write(db: D1Database, statements: D1PreparedStatement[]): Promise<void> {
  meter("d1.writes");
  try {
    await db.batch(statements);
  } catch (error) {
    if (!isChanged(error)) meter("d1.failures");
    throw error;
  }
}

const KNOWN_MARKS = `SELECT j.key FROM json_each(?) j JOIN counted_hours h ON h.hour_bucket = j.value ->> 1 AND h.path = j.value ->> 0
  JOIN counted_events e ON e.hour = h.id AND e.mark = (j.value ->> 2) * 4294967296 + (j.value ->> 3)`;

/** Which of these events are counted, and which have a detail row: their places in the list. */
export async function knownEvents(env: Env, events: TrafficEvent[]): Promise<{ counted: number[]; kept: number[] }> {
  const marks = JSON.stringify(events.map((event) => [event.path, getHourBucket(event.timestamp), ...markOf(event.id)]));
  const ids = JSON.stringify(events.map((event) => event.id));
  const answers = await Promise.all(
    databases(env).map((db) =>
      db.batch<{ key: number }>([db.prepare(KNOWN_MARKS).bind(marks), db.prepare("SELECT j.key FROM json_each(?) j JOIN traffic_events e ON e.id = j.value").bind(ids)]),
    ),
  );
  const keys = (n: number): number[] => [...new Set(answers.flatMap((answer) => answer[n].results.map(({ key }) => key)))];
  return { counted: keys(0), kept: keys(1) };
}

/** What D1 knows of these groups: which of the events have their marks, and the rows as they are. */
async function read(db: D1Database, groups: Group[], wanted: Group[]): Promise<{ known: Set<string>; rows: Map<string, Stats> }> {
  const events = groups.flatMap((group) => group.events.map((event) => ({ group, event })));
  const marks = events.map(({ group, event }) => [group.path, group.hourBucket, ...markOf(event.id)]);
  const [found, rows] = await db.batch<unknown>([
    db.prepare(KNOWN_MARKS).bind(JSON.stringify(marks)),
    db
      .prepare("SELECT s.* FROM json_each(?) j JOIN path_stats_hourly s ON s.path = j.value ->> 0 AND s.hour_bucket = j.value ->> 1")
      .bind(JSON.stringify(wanted.map(({ path, hourBucket }) => [path, hourBucket]))),
  ]);
  return {
    known: new Set((found.results as { key: number }[]).map(({ key }) => events[key].event.id + events[key].group.path)),
    rows: new Map((rows.results as (StatsRow & { hour_bucket: string })[]).map((row) => [groupKey(row.path, row.hour_bucket), Stats.fromRow(row)])),
  };
}

function statements(db: D1Database, changes: { group: Group; before: number; stats: Stats; fresh: TrafficEvent[] }[]): D1PreparedStatement[] {
  const keys = changes.map(({ group, before }) => [group.path, group.hourBucket, before]);
  const marks = changes.flatMap(({ group, fresh }) => fresh.map((event) => [group.path, group.hourBucket, ...markOf(event.id)]));
  return [
    // K2. SQLite has no way to say that in a query but an error of another kind.
    db
      .prepare(
        `SELECT CASE WHEN EXISTS (SELECT 1 FROM json_each(?) j WHERE
           coalesce((SELECT requests FROM path_stats_hourly WHERE path = j.value ->> 0 AND hour_bucket = j.value ->> 1), 0) <> j.value ->> 2) THEN json('${CHANGED}') END`,
      )
      .bind(JSON.stringify(keys)),
    ...changes.map(({ group, stats }) =>
      db
        .prepare("INSERT OR REPLACE INTO path_stats_hourly (path, hour_bucket, requests, errors, sum_response_time, count_response_time, tdigest, hll_ip) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
        .bind(group.path, group.hourBucket, ...stats.values()),
    ),
    db.prepare("INSERT INTO counted_hours (path, hour_bucket) SELECT value ->> 0, value ->> 1 FROM json_each(?) WHERE true ON CONFLICT DO NOTHING").bind(JSON.stringify(keys)),
    db
      .prepare(
        `INSERT INTO counted_events (hour, mark) SELECT h.id, (j.value ->> 2) * 4294967296 + (j.value ->> 3)
         FROM json_each(?) j JOIN counted_hours h ON h.hour_bucket = j.value ->> 1 AND h.path = j.value ->> 0`,
      )
      .bind(JSON.stringify(marks)),
    db
      .prepare("INSERT INTO changed_days (day_bucket) SELECT DISTINCT value FROM json_each(?) WHERE true ON CONFLICT DO NOTHING")
      .bind(JSON.stringify([...new Set(changes.flatMap(({ fresh }) => fresh.map((event) => dateOf(event.timestamp))))])),
  ];
}

/**
 * Counts groups of one database; `also` is written in the same transaction. `cache` holds rows as they were last written by the
 * caller: K2 finds out if that is no longer so. Resolves with how many events were new.
 */
export async function countGroups(db: D1Database, groups: Group[], also: D1PreparedStatement[] = [], cache = new Map<string, Stats>()): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const keyOf = (group: Group): string => groupKey(group.path, group.hourBucket);
    const { known, rows } = await read(db, groups, groups.filter((group) => !cache.has(keyOf(group))));
    const changes = groups
      .map((group) => {
        const unique = new Map(group.events.map((event) => [event.id, event]));
        const fresh = [...unique.values()].filter((event) => !known.has(event.id + group.path));
        const stats = cache.get(keyOf(group)) ?? rows.get(keyOf(group)) ?? new Stats();
        const before = stats.requests;
        cache.delete(keyOf(group)); // until it is written
        for (const event of fresh) stats.add(event);
        return { group, before, stats, fresh };
      })
      .filter(({ fresh }) => fresh.length);
    try {
      const all = [...(changes.length ? statements(db, changes) : []), ...also];
      if (all.length) await write(db, all);
      for (const { group, stats } of changes) cache.set(keyOf(group), stats);
      return changes.reduce((sum, { fresh }) => sum + fresh.length, 0);
    } catch (error) {
      if (!isChanged(error) || attempt === TRIES_MOST) throw error;
      await scheduler.wait(Math.min(1000, 20 * attempt) * Math.random());
    }
  }
}

/** By database: what belongs there. */
export function spread<T>(env: Env, items: T[], pathOf: (item: T) => string): [D1Database, T[]][] {
  const all = databases(env);
  const parts = all.map((): T[] => []);
  for (const item of items) parts[shardOf(pathOf(item), all.length)].push(item);
  return all.map((db, n): [D1Database, T[]] => [db, parts[n]]).filter(([, part]) => part.length);
}

/** The detail rows of events. A second copy is the same row. */
export function detailStatement(db: D1Database, events: TrafficEvent[]): D1PreparedStatement {
  const rows = events.map((event) => {
    const row = rowOf(event);
    return COLUMNS.map((name) => row[name]);
  });
  return db
    .prepare(`INSERT INTO traffic_events (${COLUMNS.join(", ")}) SELECT ${COLUMNS.map((_, n) => `value ->> ${n}`).join(", ")} FROM json_each(?) WHERE true ON CONFLICT (id) DO NOTHING`)
    .bind(JSON.stringify(rows));
}

/** Waits for all before it fails: whoever tries again must see what went through. */
export async function allSettled(work: Promise<unknown>[]): Promise<void> {
  for (const end of await Promise.allSettled(work)) if (end.status === "rejected") throw end.reason;
}
