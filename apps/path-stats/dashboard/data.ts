// What the page reads, and how often: SWR asks again every minute, and at most every 30 seconds for the same thing.
import useSWR from "swr";

export interface Summary {
  requests: number;
  errors: number;
  errorRate: number;
  avgResponseTime: number | null;
  p50: number | null;
  p95: number | null;
  p99: number | null;
  uniqueIps: number;
}
export interface Paths {
  paths: ({ path: string } & Partial<Summary> & { requests: number; errors: number })[];
  totalRequests: number;
  totalPaths: number;
  lastUpdated: number;
  version: number;
  dataSource: "cache" | "kv" | "d1" | "do";
  stale: boolean;
  stalenessSeconds: number;
}
export interface Series {
  from: number;
  to: number;
  step: number;
  total: Summary;
  series: ({ time: number } & Summary)[];
  visitors: { periods: number; counted: "visitors" | "visitor-periods"; periodHours: number };
}
export interface Alert {
  id: number;
  type: string;
  severity: "info" | "warning" | "critical";
  message: string;
  raised_at: number;
  ended_at: number | null;
}
export interface Archives {
  archives: { date: string; path: string; recordCount: number; size: number; format: string; archivedAt: string }[];
  jobs: { date: string; state: string; error: string | null }[];
}
export interface Metrics {
  queue: { backlog: number; oldestMs: number; consumedPerSecond: number; failures: number; deadLetters: number; refused: number; pending: number; dropped: number };
  aggregator: { lastHeartbeat: number | null; batchMeanMs: number; batchMostMs: number; delayMostMs: number; d1Failures: number; d1FailureShare: number; strategy: string };
  api: { answered: number; cacheHitShare: number; fallbacks: number; meanMs: number; mostMs: number };
  snapshot: { ageMs: number | null };
  d1: { databases: number; largestMB: number };
  phase: number;
}

const TOKEN = "path-stats.token";
export const setToken = (token: string): void => sessionStorage.setItem(TOKEN, token);

/** A failed request, in a sentence; `denied` if it wants a token. */
export class Failure extends Error {
  constructor(message: string, readonly denied = false) {
    super(message);
  }
}

/** The page lies one folder below the API, whatever the prefix. */
export async function get<T>(target: string): Promise<T> {
  const token = sessionStorage.getItem(TOKEN);
  let response: Response;
  try {
    response = await fetch(`../${target}`, token ? { headers: { authorization: `Bearer ${token}` } } : {});
  } catch {
    throw new Failure("The server does not answer.");
  }
  const value = await response.json().catch(() => null);
  if (!response.ok || value === null) throw new Failure(value?.error ?? `The server answered with ${response.status}.`, response.status === 401);
  return value as T;
}

export const useData = <T,>(target: string) => useSWR<T, Failure>(target, get, { refreshInterval: 60_000, dedupingInterval: 30_000, revalidateOnFocus: false, keepPreviousData: true });
