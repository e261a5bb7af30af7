// What is known of one path in one hour (or day, or any span): counters and sketches that add up.
import { getHourBucket, type TrafficEvent } from "./event";
import { Digest, Uniques } from "./sketch";

/** A row of path_stats_hourly or path_stats_daily, BLOBs as D1 gives them. */
export interface StatsRow {
  path: string;
  requests: number;
  errors: number;
  sum_response_time: number;
  count_response_time: number;
  tdigest: ArrayLike<number>;
  hll_ip: ArrayLike<number>;
}

export class Stats {
  requests = 0;
  errors = 0;
  sumResponseTime = 0;
  countResponseTime = 0;
  digest = new Digest();
  uniques = new Uniques();

  add(event: Pick<TrafficEvent, "status" | "responseTime" | "clientIpHash">): void {
    this.requests++;
    if ((event.status ?? 0) >= 400) this.errors++;
    if (typeof event.responseTime === "number") {
      this.sumResponseTime += event.responseTime;
      this.countResponseTime++;
      this.digest.add(event.responseTime);
    }
    if (event.clientIpHash) this.uniques.add(event.clientIpHash.slice("hash:".length));
  }

  merge(other: Stats): void {
    this.requests += other.requests;
    this.errors += other.errors;
    this.sumResponseTime += other.sumResponseTime;
    this.countResponseTime += other.countResponseTime;
    this.digest.merge(other.digest);
    this.uniques.merge(other.uniques);
  }

  static fromRow(row: StatsRow): Stats {
    const stats = new Stats();
    stats.requests = row.requests;
    stats.errors = row.errors;
    stats.sumResponseTime = row.sum_response_time;
    stats.countResponseTime = row.count_response_time;
    stats.digest = Digest.fromBytes(row.tdigest);
    stats.uniques = Uniques.fromBytes(row.hll_ip);
    return stats;
  }

  /** requests, errors, sum_response_time, count_response_time, tdigest, hll_ip: for a statement. */
  values(): unknown[] {
    return [this.requests, this.errors, this.sumResponseTime, this.countResponseTime, this.digest.toBytes(), this.uniques.toBytes()];
  }

  /** What people read. */
  summary() {
    const round = (value: number | null): number | null => (value === null ? null : Math.round(value * 100) / 100);
    return {
      requests: this.requests,
      errors: this.errors,
      errorRate: this.requests ? Math.round((10_000 * this.errors) / this.requests) / 10_000 : 0,
      avgResponseTime: this.countResponseTime ? round(this.sumResponseTime / this.countResponseTime) : null,
      p50: round(this.digest.quantile(0.5)),
      p95: round(this.digest.quantile(0.95)),
      p99: round(this.digest.quantile(0.99)),
      uniqueIps: this.uniques.count(),
    };
  }
}

export type Summary = ReturnType<Stats["summary"]>;

/** What is counted together: a path in an hour. Also the name of its object. */
export const groupKey = (path: string, hourBucket: string): string => `${path}:${hourBucket}`;
export const splitKey = (key: string): [path: string, hourBucket: string] => [key.slice(0, key.lastIndexOf(":")), key.slice(key.lastIndexOf(":") + 1)];

/** Events by path and hour. */
export function groupEvents(events: TrafficEvent[]): Map<string, TrafficEvent[]> {
  return Map.groupBy(events, (event) => groupKey(event.path, getHourBucket(event.timestamp)));
}
