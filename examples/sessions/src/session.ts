// One object per session. Its name is the secret that the browser keeps in a cookie; whoever does
// not know it cannot reach the object. It ends by itself, by alarm, when nobody has used it for a while.
import { DurableObject } from "cloudflare:workers";

export interface SessionData {
  user: string;
  createdAt: number;
  expiresAt: number;
  visits: number;
}

export class Session extends DurableObject {
  async begin(user: string, lifetimeMs: number): Promise<SessionData> {
    const now = Date.now();
    const data = { user, createdAt: now, expiresAt: now + lifetimeMs, visits: 0 };
    this.ctx.storage.kv.put("lifetime", lifetimeMs);
    this.save(data);
    return data;
  }

  /** The session, its life extended; null if there is none (any more). */
  async visit(): Promise<SessionData | null> {
    const data = this.ctx.storage.kv.get<SessionData>("data");
    // The alarm may be late; the time counts.
    if (!data || data.expiresAt <= Date.now()) return null;
    const next = { ...data, visits: data.visits + 1, expiresAt: Date.now() + this.ctx.storage.kv.get<number>("lifetime")! };
    this.save(next);
    return next;
  }

  /** Ends it now; nothing is left in storage. */
  async end(): Promise<void> {
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
  }

  async alarm(): Promise<void> {
    await this.end();
  }

  private save(data: SessionData): void {
    this.ctx.storage.kv.put("data", data);
    this.ctx.storage.setAlarm(data.expiresAt);
  }
}
