import type { AggregatorDO } from "./aggregator";
import type { ArchiverDO } from "./archiver";
import type { TrafficEvent } from "./event";
import type { MetersDO } from "./meters";
import type { PathCollector } from "./legacy";
import type { SaltDO } from "./salt";
import type { SnapshotDO } from "./tiers";

export interface Env {
  ASSETS: Fetcher;
  AGGREGATOR_DO: DurableObjectNamespace<AggregatorDO>;
  ARCHIVER_DO: DurableObjectNamespace<ArchiverDO>;
  METERS_DO: DurableObjectNamespace<MetersDO>;
  SALT_DO: DurableObjectNamespace<SaltDO>;
  SNAPSHOT_DO: DurableObjectNamespace<SnapshotDO>;
  PATH_COLLECTOR: DurableObjectNamespace<PathCollector>;
  KV: KVNamespace;
  R2_BUCKET: R2Bucket;
  TRAFFIC_QUEUE: Queue<TrafficEvent>;
  DEAD_LETTER_QUEUE: Queue<unknown>;
  TRAFFIC_ANALYTICS?: AnalyticsEngineDataset;
  ANALYTICS?: AnalyticsEngineDataset;
  ORIGIN_URL: string;
  PREFIX: string;
  SAMPLE_RATIO: number;
  EVENTS_PER_SECOND: number;
  FIELDS: string;
  SALT_HOURS: number;
  STRATEGY: "objects" | "single";
  PHASE: number;
  VERIFY_SHARE: number;
  WEBHOOK_URL: string;
  THRESHOLDS: string;
  FRESH_SECONDS: number;
  TOP_PATHS: number;
  ARCHIVE_FORMAT: "jsonl.gz" | "parquet";
  MULTIPART_ABOVE_MB: number;
  DETAIL_DAYS: number;
  AGGREGATE_DAYS: number;
  PARQUET_AFTER_DAYS: number;
  ARCHIVE_DAYS: number;
  /** Secret: without it the admin routes are closed. */
  ADMIN_TOKEN?: string;
  /** Secret: with it, reading figures needs it (or the admin token). */
  READ_TOKEN?: string;
  D1: D1Database;
  [name: `D1_${number}`]: D1Database;
}

/** All databases: D1, D1_2, D1_3, ... */
export function databases(env: Env): D1Database[] {
  const found = [env.D1];
  for (let n = 2; env[`D1_${n}`]; n++) found.push(env[`D1_${n}`]);
  return found;
}

/** The number of the database that a path lives in (FNV-1a). */
export function shardOf(path: string, count: number): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(path)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash % count;
}

export const databaseOf = (env: Env, path: string): D1Database => {
  const all = databases(env);
  return all[shardOf(path, all.length)];
};

const BEHIND_A_SITE = "/_path-stats";

/** Below what the application's own routes live; "" or "/something". An observed site keeps its own /, /admin and /paths. */
export function prefixOf(env: Env): string {
  const given = (env.PREFIX || (env.ORIGIN_URL ? BEHIND_A_SITE : "")).replace(/\/+$/, "");
  return given === "" || given.startsWith("/") ? given : `/${given}`;
}
