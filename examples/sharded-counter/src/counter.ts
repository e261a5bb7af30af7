// A counter in many pieces. One object takes thousands of writes a second; a counter that needs more
// is spread over shards, each an object of its own, and a coordinator that adds them up.
//
// A shard counts durably and reports its value to the coordinator within a second, by alarm. It
// reports the value, not the difference: a report that comes twice, or late, does no harm. The
// coordinator's total is therefore at most about a second old; `exact` asks every shard.
import { DurableObject } from "cloudflare:workers";

export const SHARDS_LEAST = 10;
export const SHARDS_FIRST = 100;
export const SHARDS_MOST = 1000;
const REPORT_AFTER_MS = 1000;

interface Env {
  SHARDS: DurableObjectNamespace<Shard>;
  TOTALS: DurableObjectNamespace<Total>;
}

export const shardName = (counter: string, shard: number): string => `${counter}/${shard}`;

/** The same key always goes to the same shard (FNV-1a). */
export function shardOf(key: string, count: number): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(key)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash % count;
}

export class Shard extends DurableObject<Env> {
  async add(by: number): Promise<void> {
    const { kv } = this.ctx.storage;
    kv.put("value", (kv.get<number>("value") ?? 0) + by);
    if (kv.get("reporting")) return;
    kv.put("reporting", true);
    this.ctx.storage.setAlarm(Date.now() + REPORT_AFTER_MS);
  }

  async value(): Promise<number> {
    return this.ctx.storage.kv.get<number>("value") ?? 0;
  }

  async alarm(): Promise<void> {
    const name = this.ctx.id.name!;
    const slash = name.lastIndexOf("/");
    // What is added while the report is under way sets a new alarm.
    this.ctx.storage.kv.delete("reporting");
    await this.env.TOTALS.getByName(name.slice(0, slash)).report(Number(name.slice(slash + 1)), await this.value());
  }
}

export class Total extends DurableObject<Env> {
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.sql.exec("CREATE TABLE IF NOT EXISTS shards (shard INTEGER PRIMARY KEY, value INTEGER NOT NULL)");
  }

  /**
   * Over how many shards the counter is spread: 100 to begin with; measure, then change. It only grows once it counts: what a shard has
   * counted stays there.
   */
  async shardCount(): Promise<number> {
    return this.ctx.storage.kv.get<number>("shards") ?? SHARDS_FIRST;
  }

  async grow(count: number): Promise<number> {
    const untouched = this.sql.exec("SELECT 1 FROM shards LIMIT 1").toArray().length === 0 && this.ctx.storage.kv.get("shards") === undefined;
    const now = untouched ? 0 : await this.shardCount();
    if (count > now) this.ctx.storage.kv.put("shards", count);
    return Math.max(now, count);
  }

  /** Reports may arrive in any order; a counter that only grows makes the larger one the newer one. */
  async report(shard: number, value: number): Promise<void> {
    this.sql.exec("INSERT INTO shards (shard, value) VALUES (?, ?) ON CONFLICT (shard) DO UPDATE SET value = max(value, excluded.value)", shard, value);
  }

  async total(): Promise<{ total: number; shards: number; values: number[] }> {
    const shards = await this.shardCount();
    const values: number[] = Array(shards).fill(0);
    for (const { shard, value } of this.sql.exec<{ shard: number; value: number }>("SELECT shard, value FROM shards")) values[shard] = value;
    return { total: values.reduce((sum, value) => sum + value, 0), shards, values };
  }

  /** Asks every shard, also those that have not reported yet. */
  async exact(): Promise<number> {
    const name = this.ctx.id.name!;
    const count = await this.shardCount();
    const values = await Promise.all(Array.from({ length: count }, (_, shard) => this.env.SHARDS.getByName(shardName(name, shard)).value()));
    values.forEach((value, shard) => value && this.report(shard, value));
    return values.reduce((sum, value) => sum + value, 0);
  }
}
