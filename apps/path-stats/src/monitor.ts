// Looks after the pipeline: what is wrong becomes an alert, once, and ends when it is right again.
import { HEARTBEAT_KEY } from "./consumer";
import { databases, type Env } from "./env";
import { snapshotAge } from "./tiers";

export interface Alert {
  id: number;
  kind: string;
  message: string;
  raised_at: number;
  ended_at: number | null;
}

export interface Check {
  kind: string;
  problem: string | null;
}

const MINUTE = 60_000;
const BACKLOG_WARNING = 10_000;
const BACKLOG_ALARM = 50_000;
const DATABASE_MOST = 800_000_000;

export interface Beat {
  at: number;
  delayMs: number;
}

export const heartbeatOf = (env: Env): Promise<Beat | null> => env.KV.get<Beat>(HEARTBEAT_KEY, "json");

/** What is measured of the queue; nulls where the platform does not tell. */
export async function backlogOf(env: Env): Promise<{ messages: number | null; oldestMs: number | null }> {
  const metrics = await (env.TRAFFIC as { metrics?: () => Promise<{ backlogCount: number; oldestMessageTimestamp?: Date | number }> }).metrics?.();
  if (!metrics) return { messages: null, oldestMs: null };
  const oldest = metrics.oldestMessageTimestamp;
  return { messages: metrics.backlogCount, oldestMs: oldest ? Math.max(0, Date.now() - Number(oldest)) : 0 };
}

/** The checks of every minute. */
export async function check(env: Env): Promise<Check[]> {
  const [beat, backlog, snapshotMs] = await Promise.all([heartbeatOf(env), backlogOf(env), snapshotAge(env)]);
  const silence = beat ? Date.now() - beat.at : null;
  const waiting = (backlog.messages ?? 0) > 0;
  const minutes = (ms: number): string => `${Math.round(ms / MINUTE)} min`;
  return [
    // A consumer with nothing to do is silent and well.
    { kind: "heartbeat", problem: waiting && silence !== null && silence > 3 * MINUTE ? `The consumer has not been heard of for ${minutes(silence)} while messages wait.` : null },
    { kind: "backlog", problem: (backlog.messages ?? 0) > BACKLOG_WARNING ? `${backlog.messages} messages wait (${backlog.messages! > BACKLOG_ALARM ? "alarm" : "warning"}).` : null },
    { kind: "delay", problem: (backlog.oldestMs ?? 0) > 5 * MINUTE ? `Events are counted ${minutes(backlog.oldestMs!)} late.` : null },
    { kind: "snapshot", problem: snapshotMs !== null && snapshotMs > 10 * MINUTE ? `The newest snapshot is ${minutes(snapshotMs)} old.` : null },
  ];
}

/** Every six hours. */
export async function checkSize(env: Env): Promise<Check> {
  const sizes = await Promise.all(databases(env).map(async (db) => (await db.prepare("SELECT 1").run()).meta.size_after ?? 0));
  const largest = Math.max(...sizes);
  return { kind: "database", problem: largest > DATABASE_MOST ? `A database has ${Math.round(largest / 1e6)} MB.` : null };
}

/** Raises what is new, ends what is over, tells the webhook of both. */
export async function report(env: Env, checks: Check[]): Promise<void> {
  const [db] = databases(env);
  const { results } = await db.prepare("SELECT * FROM alerts WHERE ended_at IS NULL").all<Alert>();
  const open = new Map(results.map((alert) => [alert.kind, alert]));
  for (const { kind, problem } of checks) {
    const alert = open.get(kind);
    if (problem && !alert) {
      await db.prepare("INSERT INTO alerts (kind, message, raised_at) VALUES (?, ?, ?)").bind(kind, problem, Date.now()).run();
      await tell(env, { kind, message: problem, state: "raised" });
    } else if (problem && alert!.message !== problem) {
      await db.prepare("UPDATE alerts SET message = ? WHERE id = ?").bind(problem, alert!.id).run();
    } else if (!problem && alert) {
      await db.prepare("UPDATE alerts SET ended_at = ? WHERE id = ?").bind(Date.now(), alert.id).run();
      await tell(env, { kind, message: alert.message, state: "ended" });
    }
  }
}

async function tell(env: Env, what: { kind: string; message: string; state: "raised" | "ended" }): Promise<void> {
  env.POINTS?.writeDataPoint({ indexes: ["alert"], blobs: [what.kind, what.state, what.message], doubles: [1] });
  if (!env.WEBHOOK_URL) return;
  try {
    const answer = await fetch(env.WEBHOOK_URL, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(what), signal: AbortSignal.timeout(5000) });
    await answer.body?.cancel();
  } catch (error) {
    console.warn("the webhook was not reached", error);
  }
}

export async function recentAlerts(env: Env): Promise<Alert[]> {
  const [db] = databases(env);
  return (await db.prepare("SELECT * FROM alerts ORDER BY ended_at IS NOT NULL, id DESC LIMIT 50").all<Alert>()).results;
}
