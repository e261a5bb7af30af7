// The reverse proxy that records what passes. The client waits for nothing of it: the event is sent after the answer.
import type { Env } from "./env";
import { eventId, normalPath, sha256Hex, type TrafficEvent } from "./event";
import { keepPending } from "./pending";
import type { CurrentSalt } from "./salt";

let salt: CurrentSalt | null = null;
async function currentSalt(env: Env): Promise<string> {
  if (!salt || salt.until <= Date.now()) salt = await env.SALTS.getByName("salt").current(Number(env.SALT_HOURS));
  return salt.salt;
}

// A flood must not become a flood of messages: so many per second and worker, the rest is only counted.
let second = 0, sentInSecond = 0;
export let dropped = 0;
function mayRecord(env: Env): boolean {
  if (Math.random() >= Number(env.SAMPLE_RATIO)) return false;
  const now = Math.floor(Date.now() / 1000);
  if (now !== second) [second, sentInSecond] = [now, 0];
  if (++sentInSecond <= Number(env.EVENTS_PER_SECOND)) return true;
  dropped++;
  return false;
}

async function describe(request: Request, status: number, began: number, ms: number, env: Env): Promise<TrafficEvent> {
  const fields = new Set(env.FIELDS.split(","));
  const path = normalPath(new URL(request.url).pathname);
  const requestId = request.headers.get("cf-ray") ?? request.headers.get("x-request-id") ?? crypto.randomUUID();
  const ipHash = await sha256Hex(`${await currentSalt(env)}:${request.headers.get("cf-connecting-ip") ?? ""}`);
  const event: TrafficEvent = { id: await eventId(began, ipHash, path, requestId), ts: began, path, request_id: requestId };
  if (fields.has("method")) event.method = request.method;
  if (fields.has("status")) event.status = status;
  if (fields.has("ms")) event.ms = ms;
  if (fields.has("ip")) event.ip_hash = ipHash.slice(0, 32);
  if (fields.has("agent")) event.agent = (request.headers.get("user-agent") ?? "").slice(0, 256);
  if (fields.has("country")) event.country = String((request as { cf?: { country?: string } }).cf?.country ?? "").slice(0, 2);
  return event;
}

async function record(request: Request, status: number, began: number, ms: number, env: Env): Promise<void> {
  const event = await describe(request, status, began, ms, env);
  try {
    await env.TRAFFIC.send(event);
  } catch (error) {
    console.warn("the queue refused an event; it waits in D1", error);
    await keepPending(env, [event]);
  }
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
    if (mayRecord(env)) ctx.waitUntil(record(request, status, began, Date.now() - began, env));
  }
}

/** The origin, or a small site that makes something to count. */
export async function origin(request: Request, env: Env): Promise<Response> {
  const url = new URL(request.url);
  if (env.ORIGIN_URL) {
    const target = new URL(env.ORIGIN_URL);
    target.pathname = url.pathname;
    target.search = url.search;
    return fetch(new Request(target, request));
  }
  if (url.pathname.startsWith("/site/missing")) return new Response("Not here.\n", { status: 404 });
  if (url.pathname.startsWith("/site/")) return new Response(`This is ${url.pathname}.\n`);
  return new Response("There is nothing here.\n", { status: 404 });
}
