// One recorded request, and the name that makes it the same wherever it turns up again.

export interface TrafficEvent {
  id: string;
  ts: number;
  path: string;
  method?: string;
  status?: number;
  ms?: number;
  ip_hash?: string;
  agent?: string;
  country?: string;
  request_id: string;
}

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
const PATH_MOST = 512;

export const hourOf = (ts: number): number => ts - (ts % HOUR);
export const dateOf = (ts: number): string => new Date(ts).toISOString().slice(0, 10);

/** A path as it is counted: no query, no doubled or trailing slashes, not too long. */
export function normalPath(pathname: string): string {
  const path = pathname.replace(/\/{2,}/g, "/").replace(/(.)\/$/, "$1");
  return path.length > PATH_MOST ? `${path.slice(0, PATH_MOST - 1)}…` : path;
}

export async function sha256Hex(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Time first, so that ids sort by it; then what makes the request this one. At most 64 characters. */
export async function eventId(ts: number, ipHash: string, path: string, requestId: string): Promise<string> {
  return `${ts.toString(36).padStart(9, "0")}-${(await sha256Hex(`${ipHash}:${path}:${requestId}`)).slice(0, 40)}`;
}

const within = (value: unknown, least: number, most: number): value is number => typeof value === "number" && value >= least && value <= most;
const short = (value: unknown, most: number): value is string => typeof value === "string" && value.length > 0 && value.length <= most;
const optional = (value: unknown, check: (value: unknown) => boolean): boolean => value === undefined || value === null || check(value);

/** Why something is no event, as a sentence; null if it is one. */
export function whyNot(value: unknown): string | null {
  const event = value as TrafficEvent;
  if (typeof event !== "object" || event === null) return "An event must be an object.";
  if (!short(event.id, 64)) return '"id" must be a text of at most 64 characters.';
  if (!within(event.ts, 1, 8.64e15) || !Number.isInteger(event.ts)) return '"ts" must be milliseconds since 1970.';
  if (!short(event.path, PATH_MOST) || !event.path.startsWith("/")) return `"path" must begin with / and have at most ${PATH_MOST} characters.`;
  if (!optional(event.status, (status) => within(status, 100, 999))) return '"status" must be a status code.';
  if (!optional(event.ms, (ms) => within(ms, 0, 1e9))) return '"ms" must be a number of milliseconds.';
  if (!optional(event.ip_hash, (hash) => typeof hash === "string" && /^[0-9a-f]{16,64}$/.test(hash))) return '"ip_hash" must be 16 to 64 hexadecimal digits.';
  for (const name of ["method", "agent", "country", "request_id"] as const) if (!optional(event[name], (text) => typeof text === "string" && text.length <= 512)) return `"${name}" must be a text.`;
  return null;
}
