// Where /paths comes from: Cache, then the newest snapshot in KV, then the one before it, then D1.
//
//   Cache, fresh         cache, stale: false
//   Cache, older         cache, stale: true, renewed behind the answer
//   nothing, but KV      kv, put into Cache
//   nothing at all       d1, put into KV and Cache
//
// T1  One object makes all snapshots, one at a time, and its storage has the pointer: whoever wants one while it is being made
//     waits for that one, and how old the newest is cannot be asked of a copy in KV that is behind.
// T2  KV has the newest and the one before it; what is older goes when a newer one is there, and the last of them after 72 hours.
import { DurableObject } from "cloudflare:workers";
import { statsByPath } from "./database";
import type { Env } from "./env";
import { HOUR, hourOf } from "./event";
import { count, flushMeters } from "./meters";
import type { Summary } from "./stats";

export interface PathsDocument {
  version: number;
  lastUpdated: number;
  from: number;
  to: number;
  totalRequests: number;
  totalPaths: number;
  paths: ({ path: string } & Summary)[];
}

interface Pointer {
  version: number;
  prev: number | null;
}

const SPAN = 24 * HOUR;
const CACHE_SECONDS = 72 * 3600; // how long a stale one is there to be answered with
const SNAPSHOT_TTL = 72 * 3600;
const POINTER = "paths:snapshot:latest";
const snapshotKey = (version: number): string => `paths:snapshot:${version}`;
const CACHE_KEY = "https://path-stats.internal/paths?snapshot=true";

async function compute(env: Env): Promise<PathsDocument> {
  const version = Date.now();
  const to = hourOf(version) + HOUR, from = to - SPAN;
  const paths = [...(await statsByPath(env, from, to))].map(([path, stats]) => ({ path, ...stats.summary() }));
  paths.sort((a, b) => b.requests - a.requests || (a.path < b.path ? -1 : 1));
  const totalRequests = paths.reduce((sum, path) => sum + path.requests, 0);
  return { version, lastUpdated: version, from, to, totalRequests, totalPaths: paths.length, paths: paths.slice(0, Number(env.TOP_PATHS)) };
}

const pointerOf = (env: Env): Promise<Pointer | null> => env.KV.get<Pointer>(POINTER, "json");

/** T1 */
export class SnapshotDO extends DurableObject<Env> {
  private making: Promise<PathsDocument> | null = null;

  /** The new document; null if the newest is younger than `leastAgeMs`. */
  async refresh(leastAgeMs: number): Promise<PathsDocument | null> {
    const pointer = this.ctx.storage.kv.get<Pointer>("pointer");
    if (!this.making && pointer && Date.now() - pointer.version < leastAgeMs) return null;
    return (this.making ??= this.make(pointer).finally(() => (this.making = null)));
  }

  /** The pointer moves last: who follows it finds a whole snapshot. T2 */
  private async make(before: Pointer | undefined): Promise<PathsDocument> {
    const document = await compute(this.env);
    const pointer: Pointer = { version: document.version, prev: before?.version ?? null };
    await this.env.KV.put(snapshotKey(document.version), JSON.stringify(document), { expirationTtl: SNAPSHOT_TTL });
    await this.env.KV.put(POINTER, JSON.stringify(pointer));
    this.ctx.storage.kv.put("pointer", pointer);
    if (before?.prev) await this.env.KV.delete(snapshotKey(before.prev));
    return document;
  }
}

/** Has the document computed anew and put into KV and Cache; null if the newest is younger than `leastAgeMs`. */
export async function refreshSnapshot(env: Env, leastAgeMs = 0): Promise<PathsDocument | null> {
  const document = await env.SNAPSHOT_DO.getByName("paths").refresh(leastAgeMs);
  if (document) await keepInCache(document);
  return document;
}

async function keepInCache(document: PathsDocument): Promise<void> {
  const headers = { "content-type": "application/json", "cache-control": `public, max-age=${CACHE_SECONDS}`, "x-last-updated": String(document.lastUpdated) };
  await caches.default.put(CACHE_KEY, new Response(JSON.stringify(document), { headers }));
}

async function fromKv(env: Env): Promise<PathsDocument | null> {
  const pointer = await pointerOf(env);
  for (const version of [pointer?.version, pointer?.prev]) {
    const document = version && (await env.KV.get<PathsDocument>(snapshotKey(version), "json"));
    if (document) return document;
  }
  return null;
}

type Source = "cache" | "kv" | "d1";

/** The document as JSON text: what comes from Cache is passed on without being parsed. */
async function find(env: Env, ctx: ExecutionContext): Promise<{ text: string; lastUpdated: number; source: Source }> {
  const cached = await caches.default.match(CACHE_KEY);
  if (cached) return { text: await cached.text(), lastUpdated: Number(cached.headers.get("x-last-updated")), source: "cache" };
  const kept = await fromKv(env);
  if (kept) ctx.waitUntil(keepInCache(kept));
  const document = kept ?? (await refreshSnapshot(env))!;
  return { text: JSON.stringify(document), lastUpdated: document.lastUpdated, source: kept ? "kv" : "d1" };
}

/** The answer to /paths. A stale one goes out at once and is renewed behind it; so is one that was asked to be. */
export async function pathsAnswer(env: Env, ctx: ExecutionContext, refresh: boolean): Promise<Response> {
  const { text, lastUpdated, source } = await find(env, ctx);
  const stalenessSeconds = Math.max(0, Math.round((Date.now() - lastUpdated) / 1000));
  const stale = source === "cache" && Date.now() - lastUpdated > Number(env.FRESH_SECONDS) * 1000;
  if (refresh || stale) ctx.waitUntil(refreshSnapshot(env));
  count(`paths.${source}`);
  if (stale) count("paths.stale");
  flushMeters(env, ctx);
  const head = `{"dataSource":"${source}","stale":${stale},"stalenessSeconds":${stalenessSeconds},`;
  return new Response(head + text.slice(1), { headers: { "content-type": "application/json", "cache-control": "no-store" } });
}

export async function snapshotAge(env: Env): Promise<number | null> {
  const pointer = await pointerOf(env);
  return pointer && Date.now() - pointer.version;
}
