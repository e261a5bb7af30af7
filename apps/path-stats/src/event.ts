// One recorded request: as a message, as a row of traffic_events, and the id that makes it the same wherever it turns up again.

/** The message. Version 1. */
export interface TrafficEvent {
  version: 1;
  id: string;
  path: string;
  method?: string;
  status?: number;
  responseTime?: number;
  clientIpHash?: string;
  timestamp: number;
  requestId?: string;
  meta?: { country?: string; userAgent?: string };
}

/** The row, in D1 and in the archive. */
export interface EventRow {
  id: string;
  path: string;
  method: string | null;
  status: number | null;
  response_time: number | null;
  client_ip_hash: string | null;
  timestamp: number;
  event_date: string;
  user_agent: string | null;
  country: string | null;
}

export const COLUMNS = ["id", "path", "method", "status", "response_time", "client_ip_hash", "timestamp", "event_date", "user_agent", "country"] as const;

export const VERSION = 1;
export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
const PATH_MOST = 512;
const ID = /^(\d{13})-([0-9a-f]{8})$/;

export const hourOf = (timestamp: number): number => timestamp - (timestamp % HOUR);
export const dateOf = (timestamp: number): string => new Date(timestamp).toISOString().slice(0, 10);
export const getHourBucket = (timestamp: number): string => new Date(timestamp).toISOString().slice(0, 13);
export const bucketTime = (bucket: string): number => Date.parse(bucket.length === 10 ? bucket : `${bucket}:00Z`);

/** A path as it is counted: no query, no doubled or trailing slashes, not too long. */
export function normalPath(pathname: string): string {
  const path = pathname.replace(/\/{2,}/g, "/").replace(/(.)\/$/, "$1");
  return path.length > PATH_MOST ? `${path.slice(0, PATH_MOST - 1)}…` : path;
}

export async function sha256Hex(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** `1730956800000-a1b2c3d4`: time first, so that ids sort by it; then what makes the request this one. Always 22 characters. */
export async function generateIdempotentId(timestamp: number, client: string, path: string, requestId: string): Promise<string> {
  return `${timestamp}-${(await sha256Hex(`${client}:${path}:${requestId}`)).slice(0, 8)}`;
}

/** An id within its hour: milliseconds, and the hash as a number. */
export function markOf(id: string): [offset: number, hash: number] {
  return [Number(id.slice(0, 13)) % HOUR, parseInt(id.slice(14), 16)];
}

export const rowOf = (event: TrafficEvent): EventRow => ({
  id: event.id,
  path: event.path,
  method: event.method ?? null,
  status: event.status ?? null,
  response_time: event.responseTime ?? null,
  client_ip_hash: event.clientIpHash ?? null,
  timestamp: event.timestamp,
  event_date: dateOf(event.timestamp),
  user_agent: event.meta?.userAgent ?? null,
  country: event.meta?.country ?? null,
});

const within = (value: unknown, least: number, most: number): value is number => typeof value === "number" && value >= least && value <= most;
const short = (value: unknown, most: number): value is string => typeof value === "string" && value.length > 0 && value.length <= most;
const optional = (value: unknown, check: (value: unknown) => boolean): boolean => value === undefined || value === null || check(value);
const text = (value: unknown): boolean => typeof value === "string" && value.length <= 512;

/** Why something is no event, as a sentence; null if it is one. */
export function whyNot(value: unknown): string | null {
  const event = value as TrafficEvent;
  if (typeof event !== "object" || event === null) return "An event must be an object.";
  if (event.version !== VERSION) return `"version" must be ${VERSION}.`;
  if (typeof event.id !== "string" || !ID.test(event.id)) return '"id" must be the time in milliseconds, a hyphen and 8 hexadecimal digits.';
  if (!Number.isInteger(event.timestamp) || String(event.timestamp) !== event.id.slice(0, 13)) return '"timestamp" must be milliseconds since 1970, those that "id" begins with.';
  if (!short(event.path, PATH_MOST) || !event.path.startsWith("/")) return `"path" must begin with / and have at most ${PATH_MOST} characters.`;
  if (!optional(event.status, (status) => Number.isInteger(status) && within(status, 100, 999))) return '"status" must be a status code.';
  if (!optional(event.responseTime, (ms) => within(ms, 0, 1e9))) return '"responseTime" must be a number of milliseconds.';
  if (!optional(event.clientIpHash, (hash) => typeof hash === "string" && /^hash:[0-9a-f]{16,64}$/.test(hash))) return '"clientIpHash" must be "hash:" and 16 to 64 hexadecimal digits.';
  for (const name of ["method", "requestId"] as const) if (!optional(event[name], text)) return `"${name}" must be a text.`;
  if (!optional(event.meta, (meta) => typeof meta === "object")) return '"meta" must be an object.';
  for (const name of ["country", "userAgent"] as const) if (!optional(event.meta?.[name], text)) return `"meta.${name}" must be a text.`;
  return null;
}
