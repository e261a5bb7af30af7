// Events that the queue did not take wait in the first database. Sending one twice does no harm: it has its id.
import { databases, type Env } from "./env";
import type { TrafficEvent } from "./event";

const AT_ONCE = 100;

export async function recordPathToD1Fallback(env: Env, events: TrafficEvent[]): Promise<void> {
  const [db] = databases(env);
  await db.batch(events.map((event) => db.prepare("INSERT INTO pending_events (id, event) VALUES (?, ?) ON CONFLICT DO NOTHING").bind(event.id, JSON.stringify(event))));
}

export async function pendingCount(env: Env): Promise<number> {
  const [db] = databases(env);
  return (await db.prepare("SELECT count(*) AS n FROM pending_events").first<number>("n")) ?? 0;
}

/** How many were sent. Stops at the first refusal; the rest waits on. */
export async function resendPending(env: Env): Promise<number> {
  const [db] = databases(env);
  for (let sent = 0; ; sent += AT_ONCE) {
    const { results } = await db.prepare("SELECT id, event FROM pending_events ORDER BY id LIMIT ?").bind(AT_ONCE).all<{ id: string; event: string }>();
    if (results.length === 0) return sent;
    await env.TRAFFIC_QUEUE.sendBatch(results.map(({ event }) => ({ body: JSON.parse(event) as TrafficEvent })));
    await db.prepare("DELETE FROM pending_events WHERE id IN (SELECT value FROM json_each(?))").bind(JSON.stringify(results.map(({ id }) => id))).run();
    if (results.length < AT_ONCE) return sent + results.length;
  }
}
