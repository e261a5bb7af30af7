// The reverse proxy that records what passes. The client waits for nothing of it: the event is sent after the answer.
import type { Env } from "./env";
import { generateIdempotentId, normalPath, sha256Hex, type TrafficEvent, VERSION } from "./event";
import { recordOld } from "./legacy";
import { count, flushMeters } from "./meters";
import { recordPathToD1Fallback } from "./pending";
import { currentPhase, writesNew, writesOld } from "./phase";
import type { CurrentSalt } from "./salt";

let salt: CurrentSalt | null = null;
async function currentSalt(env: Env): Promise<string> {
  if (!salt || salt.until <= Date.now()) salt = await env.SALT_DO.getByName("salt").current(Number(env.SALT_HOURS));
  return salt.salt;
}

// A flood must not become a flood of messages: so many per second and worker, the rest is only counted.
let second = 0, sentInSecond = 0;
function mayRecord(env: Env): boolean {
  if (Math.random() >= Number(env.SAMPLE_RATIO)) return false;
  const now = Math.floor(Date.now() / 1000);
  if (now !== second) [second, sentInSecond] = [now, 0];
  if (++sentInSecond <= Number(env.EVENTS_PER_SECOND)) return true;
  count("events.dropped");
  return false;
}

async function hashIP(request: Request, env: Env): Promise<string> {
  return (await sha256Hex(`${await currentSalt(env)}:${request.headers.get("cf-connecting-ip") ?? ""}`)).slice(0, 32);
}

async function describe(request: Request, status: number, timestamp: number, responseTime: number, env: Env): Promise<TrafficEvent> {
  const fields = new Set(env.FIELDS.split(","));
  const path = normalPath(new URL(request.url).pathname);
  const requestId = request.headers.get("cf-ray") ?? request.headers.get("x-request-id") ?? crypto.randomUUID();
  const ipHash = await hashIP(request, env);
  const event: TrafficEvent = { version: VERSION, id: await generateIdempotentId(timestamp, ipHash, path, requestId), path, timestamp, requestId: requestId.slice(0, 128) };
  if (fields.has("method")) event.method = request.method;
  if (fields.has("status")) event.status = status;
  if (fields.has("responseTime")) event.responseTime = responseTime;
  if (fields.has("clientIP")) event.clientIpHash = `hash:${ipHash}`;
  const meta: TrafficEvent["meta"] = {};
  if (fields.has("userAgent")) meta.userAgent = (request.headers.get("user-agent") ?? "").slice(0, 256);
  if (fields.has("country")) meta.country = String((request as { cf?: { country?: string } }).cf?.country ?? "").slice(0, 2);
  return Object.keys(meta).length ? { ...event, meta } : event;
}

async function send(event: TrafficEvent, env: Env): Promise<void> {
  try {
    await env.TRAFFIC_QUEUE.send(event);
    count("queue.sent");
  } catch (error) {
    console.warn("the queue refused an event; it waits in D1", error);
    count("queue.refused");
    await recordPathToD1Fallback(env, [event]);
  }
}

async function record(request: Request, status: number, timestamp: number, responseTime: number, env: Env, ctx: ExecutionContext): Promise<void> {
  const event = await describe(request, status, timestamp, responseTime, env);
  env.TRAFFIC_ANALYTICS?.writeDataPoint({ indexes: [String(event.status ?? "")], blobs: [event.path, event.method ?? "", event.clientIpHash ?? ""], doubles: [event.responseTime ?? 0] });
  const phase = await currentPhase(env);
  await Promise.all([writesNew(phase) && send(event, env), writesOld(phase) && recordOld(env, event)]);
  flushMeters(env, ctx);
}

/** Answers through `handle` and records the request. */
export async function collect(request: Request, env: Env, ctx: ExecutionContext, handle: (request: Request) => Promise<Response>): Promise<Response> {
  const began = Date.now();
  let status = 500;
  try {
    const response = await handle(request);
    status = response.status;
    return response;
  } finally {
    if (mayRecord(env)) ctx.waitUntil(record(request, status, began, Date.now() - began, env, ctx));
  }
}

/** The origin, or a small site that makes something to count. */
export async function origin(request: Request, env: Env): Promise<Response> {
  const url = new URL(request.url);
  if (env.ORIGIN_URL) {
    const target = new URL(env.ORIGIN_URL);
    target.pathname = url.pathname;
    target.search = url.search;
    return fetch(new Request(target, request), { redirect: "manual" });
  }
  if (url.pathname.startsWith("/site/missing")) return new Response("Not here.\n", { status: 404 });
  if (url.pathname.startsWith("/site/")) return new Response(`This is ${url.pathname}.\n`);
  return new Response("There is nothing here.\n", { status: 404 });
}
