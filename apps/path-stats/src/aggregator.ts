// Strategy A: one object per path and hour. All events of that path and hour come here, whichever consumer got them.
//
// A1  An event counts once. Its mark and its count are written in the same turn, so in one transaction: a
//     message that is delivered again after a failure is counted if and only if it was not.
// A2  This object alone writes its row of path_stats_hourly, and writes all of it: nothing is read, merged and written
//     across an await. The row follows within FLUSH_MS, by alarm; until then the truth is here.
// A3  Marks are kept for an hour after the last event, in storage; the newest also in memory, where looking is free. That is the
//     window in which a copy is recognised; retries end long before. Then the object is empty and costs nothing.
import { DurableObject } from "cloudflare:workers";
import { databaseOf, hourlyRow, hourlyStatement } from "./database";
import type { Env } from "./env";
import { HOUR, type TrafficEvent } from "./event";
import { Stats } from "./stats";
import type { StatsRow } from "./stats";

const FLUSH_MS = 2_000;
const MEMORY_MS = 5 * 60_000;
const MEMORY_MOST = 20_000;
const WINDOW_MS = HOUR;

export class Aggregator extends DurableObject<Env> {
  private readonly sql = this.ctx.storage.sql;
  private readonly kv = this.ctx.storage.kv;
  private stats: Stats | null = null;
  private recent = new Map<string, number>();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.sql.exec("CREATE TABLE IF NOT EXISTS marks (id TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID");
    // After a long pause the marks are gone and the totals are in D1 only: go on from there.
    if (!this.kv.get("row")) ctx.blockConcurrencyWhile(async () => { this.stats = await hourlyRow(env, this.path, this.hour); });
  }

  private get hour(): number {
    return Number(this.ctx.id.name!.slice(0, this.ctx.id.name!.indexOf(":")));
  }
  private get path(): string {
    return this.ctx.id.name!.slice(this.ctx.id.name!.indexOf(":") + 1);
  }

  /** How many of them were new. No `await`: A1. */
  async add(events: TrafficEvent[]): Promise<number> {
    const now = Date.now();
    const stats = this.load();
    let added = 0;
    for (const event of events) {
      if (this.recent.has(event.id)) continue;
      this.remember(event.id, now);
      if (this.sql.exec("INSERT INTO marks (id, at) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id", event.id, now).toArray().length === 0) continue;
      stats.add(event);
      added++;
    }
    if (added) this.save(stats);
    return added;
  }

  async alarm(): Promise<void> {
    if (this.kv.get("dirty")) {
      // What comes in during the write makes it dirty again and sets a new alarm.
      this.kv.delete("dirty");
      const statement = hourlyStatement(databaseOf(this.env, this.path), this.path, this.hour, this.load());
      try {
        await statement.run();
      } catch (error) {
        this.kv.put("dirty", true);
        throw error; // the alarm is tried again
      }
      if (!this.kv.get("dirty")) await this.ctx.storage.setAlarm(Date.now() + WINDOW_MS);
      return;
    }
    const { newest } = this.sql.exec<{ newest: number | null }>("SELECT max(at) AS newest FROM marks").one();
    if (newest !== null && Date.now() - newest < WINDOW_MS) await this.ctx.storage.setAlarm(newest + WINDOW_MS);
    else {
      await this.ctx.storage.deleteAll();
      // The next event starts a new instance, which goes on from D1. Not before the alarm has ended well.
      setTimeout(() => this.ctx.abort("nothing is left to remember"), 0);
    }
  }

  private remember(id: string, now: number): void {
    this.recent.set(id, now);
    for (const [old, at] of this.recent) {
      if (now - at < MEMORY_MS && this.recent.size <= MEMORY_MOST) break;
      this.recent.delete(old);
    }
  }

  private load(): Stats {
    if (this.stats) return this.stats;
    const row = this.kv.get<StatsRow>("row");
    return (this.stats = row ? Stats.fromRow(row) : new Stats());
  }

  private save(stats: Stats): void {
    const { requests, errors, msSum, msCount } = stats;
    this.kv.put("row", { path: this.path, requests, errors, ms_sum: msSum, ms_count: msCount, digest: stats.digest.toBytes(), uniques: stats.uniques.toBytes() });
    if (this.kv.get("dirty")) return;
    this.kv.put("dirty", true);
    this.ctx.storage.setAlarm(Date.now() + FLUSH_MS);
  }
}
