// One object per path and hour: all events of that path and hour come here, whichever consumer got them, and are counted in turn.
//
// A1  An event that was taken is durable here before the consumer acknowledges it; it leaves when D1 has counted it.
// A2  What is here and counted already (the process ended between D1's commit and ours) does not count twice: D1 has its mark
//     (src/count.ts). So nothing here needs to be remembered but `updateCount`, which lasts as long as the hour's statistics.
// A3  An object is emptied when its hour's statistics go, and only if nothing is in `taken`; what is there decides, not a flag:
//     an alarm that the end of the process cut off comes again and finds its work.
// A4  Every tenth update writes at once and renews the snapshot in KV; the others are written together, FLUSH_MS later.
// A5  What was written is logged: which events, and what the statistics are with them. A replay can be compared with it.
import { DurableObject } from "cloudflare:workers";
import { countGroups } from "./count";
import { databaseOf, type Env } from "./env";
import { bucketTime, DAY, type TrafficEvent } from "./event";
import { flushMeters } from "./meters";
import { groupKey, splitKey, type Stats } from "./stats";
import { refreshSnapshot } from "./tiers";

const TABLE = "CREATE TABLE IF NOT EXISTS taken (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, event TEXT NOT NULL)";
const FLUSH_MS = 2_000;
const AT_ONCE = 2_000;
const RETRY_MS = 5_000;
const EMPTY_AFTER_MS = 10 * 60_000; // an hour whose statistics are gone may be replayed
const SNAPSHOT_EVERY = 10;
const SNAPSHOT_LEAST_AGE_MS = 10_000;

export class AggregatorDO extends DurableObject<Env> {
  private readonly sql = this.ctx.storage.sql;
  private readonly kv = this.ctx.storage.kv;
  private readonly cache = new Map<string, Stats>();

  async fetch(request: Request): Promise<Response> {
    if (request.url.endsWith("/aggregate") && request.method === "POST") {
      this.aggregateEvents(await request.json<TrafficEvent[]>());
      return new Response("OK");
    }
    return new Response("Not Found", { status: 404 });
  }

  /** No `await`: all of it is one turn, so one transaction. A1 */
  private aggregateEvents(events: TrafficEvent[]): void {
    if (events.length === 0) return;
    this.sql.exec(TABLE);
    this.sql.exec("INSERT INTO taken (id, event) SELECT value ->> 'id', value FROM json_each(?) WHERE true ON CONFLICT DO NOTHING", JSON.stringify(events));
    const nextCount = (this.kv.get<number>("updateCount") ?? 0) + 1;
    this.kv.put("updateCount", nextCount);
    const refresh = nextCount % SNAPSHOT_EVERY === 0;
    if (refresh) this.kv.put("refresh", true);
    if (refresh || !this.kv.get("waiting")) this.ctx.storage.setAlarm(Date.now() + (refresh ? 0 : FLUSH_MS));
    this.kv.put("waiting", true);
  }

  async alarm(): Promise<void> {
    if (this.isEmpty() && Date.now() >= this.endOfStatistics()) return this.ctx.storage.deleteAll(); // A3
    this.kv.delete("waiting"); // what comes in from here on sets a new alarm
    try {
      await this.flush();
      if (this.kv.get("refresh")) {
        this.kv.delete("refresh");
        await refreshSnapshot(this.env, SNAPSHOT_LEAST_AGE_MS);
      }
    } catch (error) {
      console.warn(`${this.ctx.id.name}: not written, tried again`, error);
      this.kv.put("waiting", true);
      await this.ctx.storage.setAlarm(Date.now() + RETRY_MS);
      return flushMeters(this.env, this.ctx);
    }
    if (!this.kv.get("waiting")) await this.ctx.storage.setAlarm(Math.max(this.endOfStatistics(), Date.now() + EMPTY_AFTER_MS));
    flushMeters(this.env, this.ctx);
  }

  private isEmpty(): boolean {
    this.sql.exec(TABLE);
    return this.sql.exec("SELECT 1 FROM taken LIMIT 1").toArray().length === 0;
  }

  /** When src/rollup.ts deletes what this object has counted. */
  private endOfStatistics(): number {
    const [, hourBucket] = splitKey(this.ctx.id.name!);
    return bucketTime(hourBucket) + (Number(this.env.AGGREGATE_DAYS) + 1) * DAY;
  }

  private async flush(): Promise<void> {
    const [path, hourBucket] = splitKey(this.ctx.id.name!);
    for (;;) {
      const taken = this.sql.exec<{ seq: number; event: string }>("SELECT seq, event FROM taken ORDER BY seq LIMIT ?", AT_ONCE).toArray();
      if (taken.length === 0) return;
      const events = taken.map(({ event }) => JSON.parse(event) as TrafficEvent);
      const counted = await countGroups(databaseOf(this.env, path), [{ path, hourBucket, events }], [], this.cache);
      this.report(path, hourBucket, events, counted);
      this.sql.exec("DELETE FROM taken WHERE seq <= ?", taken[taken.length - 1].seq); // A2
    }
  }

  /** A5. Ids begin with their times: the first and the last say what a replay has to send again. */
  private report(path: string, hourBucket: string, events: TrafficEvent[], counted: number): void {
    const ids = events.map(({ id }) => id).sort();
    const stats = this.cache.get(groupKey(path, hourBucket))?.summary();
    console.log(JSON.stringify({ aggregated: { path, hourBucket, events: events.length, counted, first: ids[0], last: ids[ids.length - 1], ...stats } }));
  }
}
