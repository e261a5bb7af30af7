// The old way, for as long as the change-over lasts: PathCollector objects count in the request's own path, and reading asks all of
// them. It is here so that the new way can be compared with it and gone back from.
import { DurableObject } from "cloudflare:workers";
import { databases, type Env, shardOf } from "./env";
import { DAY, type TrafficEvent } from "./event";
import { storedPhase, writesBoth } from "./phase";

const SHARDS = 4;
const MINUTE = 60_000;
const SAMPLE_MOST = 5_000; // of a shard: all of them are asked for in one query

export interface OldTotals {
  requests: number;
  errors: number;
  paths: { path: string; requests: number; errors: number }[];
}

export class PathCollector extends DurableObject<Env> {
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.sql.exec(`
      CREATE TABLE IF NOT EXISTS counts (minute INTEGER, path TEXT, requests INTEGER NOT NULL, errors INTEGER NOT NULL, PRIMARY KEY (minute, path)) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS samples (id TEXT PRIMARY KEY, timestamp INTEGER NOT NULL) WITHOUT ROWID;
    `);
  }

  async record(event: TrafficEvent, verify: boolean): Promise<void> {
    if (event.timestamp < (this.ctx.storage.kv.get<number>("since") ?? 0)) return;
    const minute = Math.floor(event.timestamp / MINUTE);
    this.sql.exec(
      "INSERT INTO counts VALUES (?, ?, 1, ?) ON CONFLICT DO UPDATE SET requests = requests + 1, errors = errors + excluded.errors",
      minute, event.path, (event.status ?? 0) >= 400 ? 1 : 0,
    );
    if (verify && this.sql.exec<{ n: number }>("SELECT count(*) AS n FROM samples").one().n < SAMPLE_MOST) this.sql.exec("INSERT OR IGNORE INTO samples VALUES (?, ?)", event.id, event.timestamp);
    this.sql.exec("DELETE FROM counts WHERE minute < ?", minute - (3 * DAY) / MINUTE);
    this.sql.exec("DELETE FROM samples WHERE timestamp < ?", event.timestamp - 3 * DAY);
  }

  async reset(since: number): Promise<void> {
    this.sql.exec("DELETE FROM counts");
    this.sql.exec("DELETE FROM samples");
    this.ctx.storage.kv.put("since", since);
  }

  async totals(from: number, to: number): Promise<OldTotals["paths"]> {
    return this.sql
      .exec<OldTotals["paths"][number]>("SELECT path, sum(requests) AS requests, sum(errors) AS errors FROM counts WHERE minute >= ? AND minute < ? GROUP BY path", Math.floor(from / MINUTE), Math.ceil(to / MINUTE))
      .toArray();
  }

  async samples(to: number): Promise<string[]> {
    return this.sql.exec<{ id: string }>("SELECT id FROM samples WHERE timestamp < ? ORDER BY id", to).toArray().map(({ id }) => id);
  }
}

const shards = (env: Env): DurableObjectStub<PathCollector>[] => Array.from({ length: SHARDS }, (_, n) => env.PATH_COLLECTOR.getByName(`shard:${n}`));

/** About VERIFY_SHARE of the events, the same ones on both sides: the id decides. */
export const isVerified = (id: string, share: number): boolean => parseInt(id.slice(14), 16) < share * 2 ** 32;

export const recordOld = (env: Env, event: TrafficEvent): Promise<void> => shards(env)[shardOf(event.path, SHARDS)].record(event, isVerified(event.id, Number(env.VERIFY_SHARE)));

export async function resetOld(env: Env, since: number): Promise<void> {
  await Promise.all(shards(env).map((shard) => shard.reset(since)));
}

/** What the old way answers to /paths: every object is asked. */
export async function oldTotals(env: Env, from: number, to: number): Promise<OldTotals> {
  const paths = (await Promise.all(shards(env).map((shard) => shard.totals(from, to)))).flat().sort((a, b) => b.requests - a.requests);
  return { requests: paths.reduce((sum, path) => sum + path.requests, 0), errors: paths.reduce((sum, path) => sum + path.errors, 0), paths };
}

export interface Comparison {
  since: number;
  until: number;
  newStats: { totalRequests: number };
  oldStats: { totalRequests: number };
  difference: number;
  sample: { checked: number; missing: string[] };
}

/** Counts of both ways over the same requests, and the sample event by event. Null while there is nothing to compare. */
export async function compare(env: Env, settleMs: number): Promise<Comparison | null> {
  const phase = await storedPhase(env);
  if (!writesBoth(phase) || !phase.since) return null;
  const until = Math.floor((Date.now() - settleMs) / MINUTE) * MINUTE + (settleMs ? 0 : MINUTE);
  // Details are there for some days only.
  const since = Math.max(phase.since, Math.ceil((Date.now() - (Number(env.DETAIL_DAYS) - 1) * DAY) / MINUTE) * MINUTE);
  if (until <= since) return null;
  const [old, counts] = await Promise.all([
    oldTotals(env, since, until),
    Promise.all(databases(env).map((db) => db.prepare("SELECT count(*) AS n FROM traffic_events WHERE id >= ? AND id < ?").bind(String(since), String(until)).first<number>("n"))),
  ]);
  const totalRequests = counts.reduce<number>((sum, n) => sum + (n ?? 0), 0);
  return {
    since, until,
    newStats: { totalRequests },
    oldStats: { totalRequests: old.requests },
    difference: totalRequests - old.requests,
    sample: await verifySample(env, until),
  };
}

async function verifySample(env: Env, until: number): Promise<Comparison["sample"]> {
  const ids = (await Promise.all(shards(env).map((shard) => shard.samples(until)))).flat();
  const found = new Set<string>();
  for (const db of databases(env)) {
    const { results } = await db.prepare("SELECT id FROM traffic_events WHERE id IN (SELECT value FROM json_each(?))").bind(JSON.stringify(ids)).all<{ id: string }>();
    for (const { id } of results) found.add(id);
  }
  return { checked: ids.length, missing: ids.filter((id) => !found.has(id)) };
}
