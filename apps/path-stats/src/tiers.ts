// Where /paths comes from: Cache (five minutes), then the newest snapshot in KV, then the one before it, then D1.
import { statsByPath } from "./database";
import type { Env } from "./env";
import { HOUR, hourOf } from "./event";
import type { Summary } from "./stats";

export interface PathsDocument {
  lastUpdated: number;
  version: string;
  from: number;
  to: number;
  paths: ({ path: string } & Summary)[];
}

interface Pointer {
  version: string;
  prev: string | null;
}

const SPAN = 24 * HOUR;
const CACHE_SECONDS = 300;
const STALE_AFTER_SECONDS = 300;
const SNAPSHOT_TTL = 72 * 3600;
const PATHS_MOST = 1000;
const POINTER = "paths:snapshot:latest";
const snapshotKey = (version: string): string => `paths:snapshot:${version}`;
const CACHE_KEY = "https://path-stats.internal/paths";

async function compute(env: Env): Promise<PathsDocument> {
  const now = Date.now();
  const to = hourOf(now) + HOUR, from = to - SPAN;
  const paths = [...(await statsByPath(env, from, to))].map(([path, stats]) => ({ path, ...stats.summary() }));
  paths.sort((a, b) => b.requests - a.requests || (a.path < b.path ? -1 : 1));
  return { lastUpdated: now, version: now.toString(36), from, to, paths: paths.slice(0, PATHS_MOST) };
}

/** Computes the document anew and puts it into KV and Cache. The pointer moves last: who follows it finds a whole snapshot. */
export async function refreshSnapshot(env: Env): Promise<PathsDocument> {
  const document = await compute(env);
  const pointer = await env.KV.get<Pointer>(POINTER, "json");
  await env.KV.put(snapshotKey(document.version), JSON.stringify(document), { expirationTtl: SNAPSHOT_TTL });
  await env.KV.put(POINTER, JSON.stringify({ version: document.version, prev: pointer?.version ?? null }));
  await keepInCache(document);
  return document;
}

async function keepInCache(document: PathsDocument): Promise<void> {
  const headers = { "content-type": "application/json", "cache-control": `public, max-age=${CACHE_SECONDS}`, "x-last-updated": String(document.lastUpdated) };
  await caches.default.put(CACHE_KEY, new Response(JSON.stringify(document), { headers }));
}

async function fromKv(env: Env): Promise<PathsDocument | null> {
  const pointer = await env.KV.get<Pointer>(POINTER, "json");
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
  const document = kept ?? (await refreshSnapshot(env));
  return { text: JSON.stringify(document), lastUpdated: document.lastUpdated, source: kept ? "kv" : "d1" };
}

/** The answer to /paths. A stale one goes out at once and is renewed behind it; so is one that was asked to be. */
export async function pathsAnswer(env: Env, ctx: ExecutionContext, refresh: boolean): Promise<Response> {
  const { text, lastUpdated, source } = await find(env, ctx);
  const stalenessSeconds = Math.max(0, Math.round((Date.now() - lastUpdated) / 1000));
  const stale = stalenessSeconds > STALE_AFTER_SECONDS;
  if ((refresh || stale) && source !== "d1") ctx.waitUntil(refreshSnapshot(env));
  const head = `{"dataSource":"${source}","stale":${stale},"stalenessSeconds":${stalenessSeconds},`;
  return new Response(head + text.slice(1), { headers: { "content-type": "application/json", "cache-control": "no-store" } });
}

export async function snapshotAge(env: Env): Promise<number | null> {
  const pointer = await env.KV.get<Pointer>(POINTER, "json");
  return pointer ? Date.now() - parseInt(pointer.version, 36) : null;
}
