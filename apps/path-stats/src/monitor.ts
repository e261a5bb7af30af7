// Looks after the pipeline: what is wrong becomes an alert, once, and ends when it is right again.
import { archiver } from "./archiver";
import { type Check, DEFAULTS, derive, judge, type Measures, type Severity, type Thresholds } from "./checks";
import { HEARTBEAT_KEY } from "./consumer";
import { databases, type Env } from "./env";
import { compare } from "./legacy";
import { pendingCount } from "./pending";
import { snapshotAge } from "./tiers";

export interface Alert {
  id: number;
  type: string;
  severity: Severity;
  message: string;
  details: Record<string, unknown>;
  raised_at: number;
  ended_at: number | null;
}

const METER_MINUTES = 5;

async function queueMetrics(queue: unknown): Promise<{ backlog: number; oldestMs: number }> {
  const metrics = await (queue as { metrics?: () => Promise<{ backlogCount: number; oldestMessageTimestamp?: Date | number }> }).metrics?.();
  const oldest = metrics?.oldestMessageTimestamp;
  return { backlog: metrics?.backlogCount ?? 0, oldestMs: oldest && metrics!.backlogCount ? Math.max(0, Date.now() - Number(oldest)) : 0 };
}

export async function databaseSizes(env: Env): Promise<number[]> {
  return Promise.all(databases(env).map(async (db) => (await db.prepare("SELECT 1").run()).meta.size_after / (1024 * 1024)));
}

export async function measure(env: Env): Promise<Measures> {
  const [heartbeat, queue, dead, snapshotMs, pending, jobs, sizes, comparison, meters] = await Promise.all([
    env.KV.get(HEARTBEAT_KEY), queueMetrics(env.TRAFFIC_QUEUE), queueMetrics(env.DEAD_LETTER_QUEUE), snapshotAge(env), pendingCount(env), archiver(env).jobs(), databaseSizes(env),
    compare(env, thresholdsOf(env).settleSeconds * 1000), env.METERS_DO.getByName("meters").read(METER_MINUTES),
  ]);
  return {
    now: Date.now(),
    heartbeat: heartbeat === null ? null : parseInt(heartbeat),
    backlog: queue.backlog,
    oldestMs: queue.oldestMs,
    snapshotMs,
    deadLetters: dead.backlog,
    pending,
    failedArchives: jobs.filter((job) => job.error !== null).map((job) => `${job.date}: ${job.error}`),
    databaseMB: Math.max(...sizes),
    difference: comparison && comparison.difference,
    unverified: comparison?.sample.missing.length ?? 0,
    meters,
  };
}

const thresholdsOf = (env: Env): Thresholds => ({ ...DEFAULTS, ...(env.THRESHOLDS ? (JSON.parse(env.THRESHOLDS) as Partial<Thresholds>) : {}) });

/** Every minute: measures, judges, raises and ends. */
export async function watch(env: Env): Promise<void> {
  const measures = await measure(env);
  if (measures.difference) console.warn(`the counts of the old and the new way differ by ${measures.difference}`);
  await report(env, judge(measures, thresholdsOf(env)));
}

/** Every six hours: how large the databases are, as a point. The check itself is made every minute. */
export async function checkD1Capacity(env: Env): Promise<void> {
  const largest = Math.max(...(await databaseSizes(env)));
  env.ANALYTICS?.writeDataPoint({ blobs: ["d1_capacity"], doubles: [largest], indexes: [largest > thresholdsOf(env).databaseMB ? "1" : "0"] });
}

/** Raises what is new, ends what is over, tells the webhook of both. */
export async function report(env: Env, checks: Check[]): Promise<void> {
  const [db] = databases(env);
  const { results } = await db.prepare("SELECT id, type, severity, message FROM alerts WHERE ended_at IS NULL").all<Alert>();
  const open = new Map(results.map((alert) => [alert.type, alert]));
  for (const { type, problem } of checks) {
    const alert = open.get(type);
    if (problem && !alert) {
      await db.prepare("INSERT INTO alerts (type, severity, message, details, raised_at) VALUES (?, ?, ?, ?, ?)").bind(type, problem.severity, problem.message, JSON.stringify(problem.details), Date.now()).run();
      await sendAlert(env, { type, ...problem, state: "raised" });
    } else if (problem && (alert!.message !== problem.message || alert!.severity !== problem.severity)) {
      await db.prepare("UPDATE alerts SET severity = ?, message = ?, details = ? WHERE id = ?").bind(problem.severity, problem.message, JSON.stringify(problem.details), alert!.id).run();
    } else if (!problem && alert) {
      await db.prepare("UPDATE alerts SET ended_at = ? WHERE id = ?").bind(Date.now(), alert.id).run();
      await sendAlert(env, { type, severity: alert.severity, message: alert.message, state: "ended" });
    }
  }
}

async function sendAlert(env: Env, alert: { type: string; severity: Severity; message: string; state: "raised" | "ended"; details?: Record<string, unknown> }): Promise<void> {
  (alert.state === "raised" ? console.error : console.log)(`alert ${alert.state}: ${alert.type} (${alert.severity}): ${alert.message}`);
  env.ANALYTICS?.writeDataPoint({ indexes: ["alert"], blobs: [alert.type, alert.state, alert.severity, alert.message], doubles: [1] });
  if (!env.WEBHOOK_URL) return;
  try {
    const { details, ...rest } = alert;
    const answer = await fetch(env.WEBHOOK_URL, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ ...rest, ...details }), signal: AbortSignal.timeout(5000) });
    await answer.body?.cancel();
  } catch (error) {
    console.warn("the webhook was not reached", error);
  }
}

export async function recentAlerts(env: Env): Promise<Alert[]> {
  const [db] = databases(env);
  const { results } = await db.prepare("SELECT * FROM alerts ORDER BY ended_at IS NOT NULL, id DESC LIMIT 50").all<Alert & { details: string }>();
  return results.map((alert) => ({ ...alert, details: JSON.parse(alert.details) }));
}

/** For /paths/metrics. */
export async function metrics(env: Env) {
  const measures = await measure(env);
  const d = derive(measures);
  const round = (value: number, digits = 2): number => Math.round(value * 10 ** digits) / 10 ** digits;
  return {
    queue: { backlog: measures.backlog, oldestMs: measures.oldestMs, consumedPerSecond: round(d.consumedPerSecond), failures: d.queueFailures, deadLetters: measures.deadLetters, refused: d.writeFallbacks, pending: measures.pending, dropped: d.dropped },
    aggregator: { lastHeartbeat: measures.heartbeat, batchMeanMs: round(d.batchMeanMs), batchMostMs: d.batchMostMs, delayMostMs: d.delayMostMs, d1Writes: d.d1Writes, d1Failures: d.d1Failures, d1FailureShare: round(d.d1FailureShare, 4), strategy: env.STRATEGY },
    api: { answered: d.answered, cacheHitShare: round(d.cacheHitShare, 4), fallbacks: d.readFallbacks, meanMs: round(d.apiMeanMs), mostMs: d.apiMostMs },
    snapshot: { ageMs: measures.snapshotMs },
    d1: { databases: databases(env).length, largestMB: round(measures.databaseMB) },
    minutes: METER_MINUTES,
  };
}
