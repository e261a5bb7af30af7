// What is measured of the pipeline, and when it is wrong: one function of numbers, so that every limit can be tried out.

export type Severity = "info" | "warning" | "critical";

export interface Measures {
  now: number;
  /** Milliseconds since 1970; null: never, or forgotten. */
  heartbeat: number | null;
  backlog: number;
  oldestMs: number;
  snapshotMs: number | null;
  deadLetters: number;
  pending: number;
  failedArchives: string[];
  /** Of the largest database. */
  databaseMB: number;
  /** New minus old, while both ways are written; null otherwise. */
  difference: number | null;
  unverified: number;
  /** Sums of the last five minutes: src/meters.ts. */
  meters: Record<string, number>;
}

export interface Thresholds {
  heartbeatMinutes: number;
  backlogWarning: number;
  backlogCritical: number;
  delayMinutes: number;
  delayCriticalMinutes: number;
  snapshotMinutes: number;
  deadLetters: number;
  pending: number;
  failedArchives: number;
  databaseMB: number;
  difference: number;
  unverified: number;
  queueFailureShare: number;
  batchMs: number;
  d1FailureShare: number;
  cacheHitShare: number;
  cacheLeastRequests: number;
  readFallbacks: number;
  apiMs: number;
  dropped: number;
  /** How long events may be under way before both ways are compared. */
  settleSeconds: number;
}

export const DEFAULTS: Thresholds = {
  heartbeatMinutes: 3,
  backlogWarning: 10_000,
  backlogCritical: 50_000,
  delayMinutes: 5,
  delayCriticalMinutes: 10,
  snapshotMinutes: 10,
  deadLetters: 0,
  pending: 0,
  failedArchives: 0,
  databaseMB: 800,
  difference: 100,
  unverified: 0,
  queueFailureShare: 0.01,
  batchMs: 30_000,
  d1FailureShare: 0.01,
  cacheHitShare: 0.5,
  cacheLeastRequests: 20,
  readFallbacks: 20,
  apiMs: 2_000,
  dropped: 0,
  settleSeconds: 60,
};

export interface Check {
  type: string;
  /** Null: all is well. */
  problem: { severity: Severity; message: string; details: Record<string, unknown> } | null;
}

const MINUTE = 60_000;
const minutes = (ms: number): string => `${(ms / MINUTE).toFixed(1)} min`;
const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
const share = (part = 0, all = 0): number => (all ? part / all : 0);
const plural = (n: number, one: string, many = `${one}s`): string => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** The rates and shares that alerts and the page go by. */
export function derive(m: Measures) {
  const meters = m.meters;
  const answered = (meters["paths.cache"] ?? 0) + (meters["paths.kv"] ?? 0) + (meters["paths.d1"] ?? 0);
  const handled = (meters["queue.consumed"] ?? 0) + (meters["queue.failed"] ?? 0);
  return {
    consumedPerSecond: (meters["queue.consumed"] ?? 0) / 300,
    queueFailures: meters["queue.failed"] ?? 0,
    queueFailureShare: share(meters["queue.failed"], handled),
    batchMeanMs: share(meters["batch.ms"], meters["batch.count"]),
    batchMostMs: meters["batch.most_ms"] ?? 0,
    delayMostMs: meters["batch.delay_most_ms"] ?? 0,
    d1Writes: meters["d1.writes"] ?? 0,
    d1Failures: meters["d1.failures"] ?? 0,
    d1FailureShare: share(meters["d1.failures"], meters["d1.writes"]),
    answered,
    cacheHitShare: share(meters["paths.cache"], answered),
    readFallbacks: meters["paths.d1"] ?? 0,
    apiMeanMs: share(meters["api.ms"], meters["api.count"]),
    apiMostMs: meters["api.most_ms"] ?? 0,
    writeFallbacks: meters["queue.refused"] ?? 0,
    dropped: meters["events.dropped"] ?? 0,
  };
}

/** Every check, with or without a problem: what is no longer one ends its alert. */
export function judge(m: Measures, t: Thresholds): Check[] {
  const d = derive(m);
  const check = (type: string, wrong: boolean, severity: Severity, message: string, details: Record<string, unknown> = {}): Check => ({ type, problem: wrong ? { severity, message, details } : null });
  const silence = m.heartbeat === null ? null : m.now - m.heartbeat;
  const waiting = m.backlog > 0; // a consumer with nothing to do is silent and well
  return [
    check("AGGREGATOR_NO_HEARTBEAT", waiting && silence === null, "critical", "The consumer has never been heard of, or long ago, and messages wait.", { waiting: m.backlog }),
    check("AGGREGATOR_HEARTBEAT_TIMEOUT", waiting && silence !== null && silence > t.heartbeatMinutes * MINUTE, "critical",
      `The consumer has not been heard of for ${minutes(silence ?? 0)} while messages wait.`, { lastHeartbeat: m.heartbeat === null ? null : new Date(m.heartbeat).toISOString() }),
    check("QUEUE_BACKLOG_HIGH", m.backlog > t.backlogWarning, m.backlog > t.backlogCritical ? "critical" : "warning", `Waiting in the queue: ${plural(m.backlog, "message")}.`, { backlog: m.backlog, threshold: t.backlogWarning }),
    check("AGGREGATION_DELAY", m.oldestMs > t.delayMinutes * MINUTE, m.oldestMs > t.delayCriticalMinutes * MINUTE ? "critical" : "warning", `Events are counted ${minutes(m.oldestMs)} late.`, { delayMs: m.oldestMs, threshold: t.delayMinutes * MINUTE }),
    check("SNAPSHOT_STALE", m.snapshotMs !== null && m.snapshotMs > t.snapshotMinutes * MINUTE, "warning", `The newest snapshot is ${minutes(m.snapshotMs ?? 0)} old.`, { ageMs: m.snapshotMs }),
    check("QUEUE_FAILURES", d.queueFailureShare > t.queueFailureShare, "warning", `${percent(d.queueFailureShare)} of the messages of the last five minutes could not be handled.`, { failures: d.queueFailures }),
    check("BATCH_SLOW", d.batchMostMs > t.batchMs, "warning", `A batch took ${(d.batchMostMs / 1000).toFixed(1)} s.`, { mostMs: d.batchMostMs, threshold: t.batchMs }),
    check("D1_WRITE_FAILURES", d.d1FailureShare > t.d1FailureShare, "critical", `${percent(d.d1FailureShare)} of the writes to D1 failed.`, { failures: d.d1Failures, writes: d.d1Writes }),
    check("CACHE_HIT_RATE_LOW", d.answered >= t.cacheLeastRequests && d.cacheHitShare < t.cacheHitShare, "info", `${percent(d.cacheHitShare)} of the answers came from the cache.`, { threshold: t.cacheHitShare }),
    check("READ_FALLBACKS", d.readFallbacks > t.readFallbacks, "warning", `${plural(d.readFallbacks, "answer")} had to come from D1.`, { threshold: t.readFallbacks }),
    check("API_SLOW", d.apiMostMs > t.apiMs, "info", `An answer took ${(d.apiMostMs / 1000).toFixed(1)} s.`, { mostMs: d.apiMostMs }),
    check("QUEUE_REFUSED", m.pending > t.pending, "warning", `Refused by the queue and waiting in D1: ${plural(m.pending, "event")}.`, { pending: m.pending }),
    check("EVENTS_DROPPED", d.dropped > t.dropped, "warning", `Not recorded, for there were more than EVENTS_PER_SECOND: ${plural(d.dropped, "event")}.`, { dropped: d.dropped }),
    check("DEAD_LETTERS", m.deadLetters > t.deadLetters, "critical", `In traffic-events-dlq, for they could not be handled: ${plural(m.deadLetters, "message")}.`, { deadLetters: m.deadLetters }),
    check("ARCHIVE_FAILED", m.failedArchives.length > t.failedArchives, "critical", `The archive failed: ${m.failedArchives.join("; ")}.`, { failed: m.failedArchives }),
    check("D1_CAPACITY_WARNING", m.databaseMB > t.databaseMB, "critical", `D1 has ${m.databaseMB.toFixed(2)} MB.`, { threshold: t.databaseMB, action: 'Archive the oldest day: POST /admin/archive/trigger {"date":"oldest"}' }),
    check("COUNT_DIFFERENCE", m.difference !== null && Math.abs(m.difference) > t.difference, "warning", `The old and the new way differ by ${plural(Math.abs(m.difference ?? 0), "request")}.`, { difference: m.difference }),
    check("VERIFICATION_FAILED", m.unverified > t.unverified, "critical", `${plural(m.unverified, "event")} of the verified share arrived one way only.`, { missing: m.unverified }),
  ];
}
