import type { Aggregator } from "./aggregator";
import type { TrafficEvent } from "./event";
import type { Salt } from "./salt";

export interface Env {
  ASSETS: Fetcher;
  AGGREGATORS: DurableObjectNamespace<Aggregator>;
  SALTS: DurableObjectNamespace<Salt>;
  KV: KVNamespace;
  ARCHIVE: R2Bucket;
  TRAFFIC: Queue<TrafficEvent>;
  POINTS?: AnalyticsEngineDataset;
  ORIGIN_URL: string;
  SAMPLE_RATIO: number;
  EVENTS_PER_SECOND: number;
  FIELDS: string;
  SALT_HOURS: number;
  STRATEGY: "objects" | "single";
  WEBHOOK_URL: string;
  MULTIPART_ABOVE_BYTES: number;
  ARCHIVE_FORMAT: "jsonl" | "parquet";
  DETAIL_DAYS: number;
  HOURLY_DAYS: number;
  /** Secret: without it the admin routes are closed. */
  ADMIN_TOKEN?: string;
  [name: `DB_${number}`]: D1Database;
}

/** All databases, in order of their number. */
export function databases(env: Env): D1Database[] {
  const found: D1Database[] = [];
  for (let n = 0; env[`DB_${n}`]; n++) found.push(env[`DB_${n}`]);
  if (found.length === 0) throw new Error("There is no D1 binding DB_0.");
  return found;
}

/** The number of the database that a path lives in (FNV-1a). */
export function shardOf(path: string, count: number): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(path)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash % count;
}
