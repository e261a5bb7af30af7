// The queue's consumer, in two ways.
//
// "objects": groups by path and hour and hands each group to the object that owns it, at most 45 calls at a time. What
//            succeeded is acknowledged, what failed comes back later. Any number of consumers may run.
// "single":  merges in the worker and writes rows and statistics in one transaction per database. The detail row is the mark: it
//            is written with the counts, not before. The transaction fails if somebody else has counted in between, and is made
//            anew; with max_concurrency = 1 that never happens.
import { databaseOf, hourlyRow, hourlyStatement, insertEvents, isChanged, knownIds, unchangedStatement } from "./database";
import { databases, type Env, shardOf } from "./env";
import { hourOf, type TrafficEvent, whyNot } from "./event";
import { groupEvents, Stats } from "./stats";

const CALLS_AT_ONCE = 45;
const MERGES_MOST = 40;
const RETRY_FIRST_S = 60;
const RETRY_MOST_S = 3600;
export const HEARTBEAT_KEY = "consumer:heartbeat";

export const retryDelay = (attempts: number): number => Math.min(RETRY_MOST_S, RETRY_FIRST_S * 2 ** Math.max(0, attempts - 1));

/** The messages that are events; what is none can never succeed, so it is acknowledged with a word in the log. */
function sortOut(batch: MessageBatch<TrafficEvent>): Message<TrafficEvent>[] {
  return batch.messages.filter((message) => {
    const problem = whyNot(message.body);
    if (problem === null) return true;
    console.error(`message ${message.id} is no event: ${problem}`);
    message.ack();
    return false;
  });
}

async function consumeByObjects(messages: Message<TrafficEvent>[], env: Env): Promise<void> {
  const byId = Map.groupBy(messages, (message) => message.body.id);
  const groups = [...groupEvents(messages.map((message) => message.body))];
  for (let at = 0; at < groups.length; at += CALLS_AT_ONCE) {
    await Promise.all(
      groups.slice(at, at + CALLS_AT_ONCE).map(async ([name, events]) => {
        const own = [...new Set(events.map((event) => event.id))].flatMap((id) => byId.get(id)!);
        try {
          await env.AGGREGATORS.getByName(name).add(events);
          await insertEvents(env, events); // a second copy is the same row
          for (const message of own) message.ack();
        } catch (error) {
          console.warn(`${events.length} events of ${name} come again later`, error);
          for (const message of own) message.retry({ delaySeconds: retryDelay(message.attempts) });
        }
      }),
    );
  }
}

async function mergeAlone(messages: Message<TrafficEvent>[], env: Env): Promise<void> {
  const known = await knownIds(env, messages.map((message) => message.body));
  const fresh = new Map(messages.filter((message) => !known.has(message.body.id)).map((message) => [message.body.id, message.body]));
  const all = databases(env);
  const rows = all.map((): D1PreparedStatement[] => []);
  await Promise.all(
    [...groupEvents([...fresh.values()]).values()].map(async (events) => {
      const { path, ts } = events[0];
      const hour = hourOf(ts), db = databaseOf(env, path);
      const stats = (await hourlyRow(env, path, hour)) ?? new Stats();
      const before = stats.requests;
      for (const event of events) stats.add(event);
      rows[shardOf(path, all.length)].push(unchangedStatement(db, path, hour, before, events), hourlyStatement(db, path, hour, stats));
    }),
  );
  await insertEvents(env, [...fresh.values()], (db) => rows[db]);
}

async function consumeAlone(messages: Message<TrafficEvent>[], env: Env): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await mergeAlone(messages, env);
    } catch (error) {
      // Databases whose transaction went through are skipped next time: their events are known.
      if (!isChanged(error) || attempt === MERGES_MOST) throw error;
      await scheduler.wait(Math.min(1000, 20 * attempt) * Math.random());
    }
  }
}

export async function consume(batch: MessageBatch<TrafficEvent>, env: Env): Promise<void> {
  const messages = sortOut(batch);
  if (env.STRATEGY === "single") {
    try {
      await consumeAlone(messages, env);
      for (const message of messages) message.ack();
    } catch (error) {
      console.warn(`${messages.length} events come again later`, error);
      for (const message of messages) message.retry({ delaySeconds: retryDelay(message.attempts) });
    }
  } else {
    await consumeByObjects(messages, env);
  }
  await heartbeat(messages, env);
}

let lastBeat = 0;
/** Once a minute, so that the monitor sees that somebody works, and how late. */
async function heartbeat(messages: Message<TrafficEvent>[], env: Env): Promise<void> {
  const now = Date.now();
  const delayMs = messages.length ? now - Math.min(...messages.map((message) => message.body.ts)) : 0;
  env.POINTS?.writeDataPoint({ indexes: ["consumer"], blobs: [env.STRATEGY], doubles: [messages.length, delayMs] });
  if (now - lastBeat < 60_000) return;
  lastBeat = now;
  await env.KV.put(HEARTBEAT_KEY, JSON.stringify({ at: now, delayMs }));
}
