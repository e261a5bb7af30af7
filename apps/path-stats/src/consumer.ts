// The queue's consumer, in two ways.
//
// "objects": groups by path and hour and hands each group to the object that owns it, at most 45 calls at a time. What
//            succeeded is acknowledged, what failed comes back later. Any number of consumers may run.
// "single":  counts in the worker; rows, marks and details in one transaction per database (src/count.ts). If another
//            consumer was quicker it is done again; with max_concurrency = 1 that never happens.
import { allSettled, countGroups, detailStatement, spread, write } from "./count";
import type { Env } from "./env";
import { type TrafficEvent, whyNot } from "./event";
import { count, flushMeters, most } from "./meters";
import { groupEvents, splitKey } from "./stats";

const CHUNK_SIZE = 45;
const RETRY_MOST_S = 3600;
const BEAT_MS = 30_000;
export const HEARTBEAT_KEY = "aggregator:heartbeat";
const HEARTBEAT_TTL_S = 300;

export const retryDelay = (attempts: number): number => Math.min(60 * 2 ** attempts, RETRY_MOST_S);

/** The messages that are events. What is none can never succeed: it goes to the dead letters at once. */
async function sortOut(batch: MessageBatch<TrafficEvent>, env: Env): Promise<Message<TrafficEvent>[]> {
  const good: Message<TrafficEvent>[] = [];
  for (const message of batch.messages) {
    const problem = whyNot(message.body);
    if (problem === null) {
      good.push(message);
      continue;
    }
    console.error(`message ${message.id} is no event: ${problem}`);
    await env.DEAD_LETTER_QUEUE.send(message.body);
    message.ack();
  }
  return good;
}

/** The keys of the groups that could not be handed over. */
async function handOver(groups: [string, TrafficEvent[]][], env: Env): Promise<Set<string>> {
  const failedKeys = new Set<string>();
  for (let i = 0; i < groups.length; i += CHUNK_SIZE) {
    await Promise.all(
      groups.slice(i, i + CHUNK_SIZE).map(async ([key, events]) => {
        try {
          const response = await env.AGGREGATOR_DO.getByName(key).fetch("http://aggregator/aggregate", { method: "POST", body: JSON.stringify(events) });
          if (!response.ok) throw new Error(`the object answered ${response.status}`);
          await response.body?.cancel();
        } catch (error) {
          console.error(`${key} could not be aggregated`, error);
          failedKeys.add(key);
        }
      }),
    );
  }
  return failedKeys;
}

const writeDetails = (events: TrafficEvent[], env: Env): Promise<void> =>
  allSettled(spread(env, events, (event) => event.path).map(([db, part]) => write(db, [detailStatement(db, part)])));

/** The events that come again. */
async function byObjects(events: TrafficEvent[], env: Env): Promise<TrafficEvent[]> {
  const groups = [...groupEvents(events)];
  const failedKeys = await handOver(groups, env);
  const handed = groups.filter(([key]) => !failedKeys.has(key)).flatMap(([, group]) => group);
  try {
    if (handed.length) await writeDetails(handed, env);
  } catch (error) {
    console.error(`${handed.length} detail rows were not written`, error);
    return events;
  }
  return groups.filter(([key]) => failedKeys.has(key)).flatMap(([, group]) => group);
}

async function alone(events: TrafficEvent[], env: Env): Promise<TrafficEvent[]> {
  try {
    await allSettled(
      spread(env, events, (event) => event.path).map(([db, part]) => {
        const groups = [...groupEvents(part)].map(([key, group]) => ({ path: splitKey(key)[0], hourBucket: splitKey(key)[1], events: group }));
        return countGroups(db, groups, [detailStatement(db, part)]);
      }),
    );
    return [];
  } catch (error) {
    console.error(`${events.length} events were not counted`, error);
    return events;
  }
}

export async function consume(batch: MessageBatch<TrafficEvent>, env: Env, ctx: ExecutionContext): Promise<void> {
  const began = Date.now();
  heartbeat(env, ctx, began);
  const messages = await sortOut(batch, env);
  const failed = new Set(await (env.STRATEGY === "single" ? alone : byObjects)(messages.map((message) => message.body), env));
  for (const message of messages) {
    if (failed.has(message.body)) message.retry({ delaySeconds: retryDelay(message.attempts) });
    else message.ack();
  }
  measure(env, ctx, messages, failed.size, began);
}

function measure(env: Env, ctx: ExecutionContext, messages: Message<TrafficEvent>[], failed: number, began: number): void {
  const batchMs = Date.now() - began;
  // How late: since the message came to the queue, not since the request, which may be years ago in a replay.
  const delayMs = messages.length ? Date.now() - Math.min(...messages.map((message) => Number(message.timestamp))) : 0;
  count("queue.consumed", messages.length - failed);
  count("queue.failed", failed);
  count("batch.count");
  count("batch.ms", batchMs);
  most("batch.most_ms", batchMs);
  most("batch.delay_most_ms", delayMs);
  env.ANALYTICS?.writeDataPoint({ indexes: ["consumer"], blobs: [env.STRATEGY], doubles: [messages.length, delayMs, batchMs, failed] });
  flushMeters(env, ctx);
}

let lastBeat = 0;
/** So that the monitor sees that somebody works. */
function heartbeat(env: Env, ctx: ExecutionContext, now: number): void {
  if (now - lastBeat < BEAT_MS) return;
  lastBeat = now;
  ctx.waitUntil(env.KV.put(HEARTBEAT_KEY, now.toString(), { expirationTtl: HEARTBEAT_TTL_S }));
}
