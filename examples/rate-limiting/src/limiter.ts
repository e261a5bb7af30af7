// A sliding window in SQL: one row for each request that was let in during the last window.
import { DurableObject } from "cloudflare:workers";

export interface Verdict {
  allowed: boolean;
  limit: number;
  /** How many more would be let in now. */
  remaining: number;
  /** Milliseconds until the next one is let in; 0 if one would be now. */
  retryAfterMs: number;
}

export class Limiter extends DurableObject {
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.sql.exec("CREATE TABLE IF NOT EXISTS hits (at INTEGER NOT NULL)");
    this.sql.exec("CREATE INDEX IF NOT EXISTS hits_at ON hits (at)");
  }

  /** Asks for one request. No `await` in here: nothing can come between the count and the insert. */
  async take(limit: number, windowMs: number): Promise<Verdict> {
    const now = Date.now();
    this.sql.exec("DELETE FROM hits WHERE at <= ?", now - windowMs);
    const { count, oldest } = this.sql.exec<{ count: number; oldest: number | null }>("SELECT count(*) AS count, min(at) AS oldest FROM hits").one();
    if (count >= limit) return { allowed: false, limit, remaining: 0, retryAfterMs: Math.max(1, oldest! + windowMs - now) };
    this.sql.exec("INSERT INTO hits (at) VALUES (?)", now);
    // Who has been away for two windows is forgotten: an idle client costs no storage.
    if (count === 0) this.ctx.storage.setAlarm(now + 2 * windowMs);
    return { allowed: true, limit, remaining: limit - count - 1, retryAfterMs: 0 };
  }

  async alarm(): Promise<void> {
    const { newest } = this.sql.exec<{ newest: number | null }>("SELECT max(at) AS newest FROM hits").one();
    const age = Date.now() - (newest ?? 0);
    const keep = 60_000;
    if (newest !== null && age < keep) await this.ctx.storage.setAlarm(newest + keep);
    else await this.ctx.storage.deleteAll();
  }
}
