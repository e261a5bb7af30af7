// What is known of one path in one hour (or day, or any span): counters and sketches that add up.
import { hourOf, type TrafficEvent } from "./event";
import { Digest, Uniques } from "./sketch";

/** A row of path_stats_hourly or path_stats_daily, BLOBs as D1 gives them. */
export interface StatsRow {
  path: string;
  requests: number;
  errors: number;
  ms_sum: number;
  ms_count: number;
  digest: ArrayLike<number>;
  uniques: ArrayLike<number>;
}

export class Stats {
  requests = 0;
  errors = 0;
  msSum = 0;
  msCount = 0;
  digest = new Digest();
  uniques = new Uniques();

  add(event: TrafficEvent): void {
    this.requests++;
    if ((event.status ?? 0) >= 400) this.errors++;
    if (typeof event.ms === "number") {
      this.msSum += event.ms;
      this.msCount++;
      this.digest.add(event.ms);
    }
    if (event.ip_hash) this.uniques.add(event.ip_hash);
  }

  merge(other: Stats): void {
    this.requests += other.requests;
    this.errors += other.errors;
    this.msSum += other.msSum;
    this.msCount += other.msCount;
    this.digest.merge(other.digest);
    this.uniques.merge(other.uniques);
  }

  static fromRow(row: StatsRow): Stats {
    const stats = new Stats();
    stats.requests = row.requests;
    stats.errors = row.errors;
    stats.msSum = row.ms_sum;
    stats.msCount = row.ms_count;
    stats.digest = Digest.fromBytes(row.digest);
    stats.uniques = Uniques.fromBytes(row.uniques);
    return stats;
  }

  /** What people read. */
  summary() {
    const round = (value: number | null): number | null => (value === null ? null : Math.round(value * 100) / 100);
    return {
      requests: this.requests,
      errors: this.errors,
      errorRate: this.requests ? Math.round((10_000 * this.errors) / this.requests) / 10_000 : 0,
      meanMs: this.msCount ? round(this.msSum / this.msCount) : null,
      p50: round(this.digest.quantile(0.5)),
      p95: round(this.digest.quantile(0.95)),
      p99: round(this.digest.quantile(0.99)),
      uniques: this.uniques.count(),
    };
  }
}

export type Summary = ReturnType<Stats["summary"]>;

export const groupKey = (path: string, hour: number): string => `${hour}:${path}`;

/** Events by path and hour. */
export function groupEvents(events: TrafficEvent[]): Map<string, TrafficEvent[]> {
  const groups = new Map<string, TrafficEvent[]>();
  for (const event of events) {
    const key = groupKey(event.path, hourOf(event.ts));
    const group = groups.get(key);
    if (group) group.push(event);
    else groups.set(key, [event]);
  }
  return groups;
}
