// A lock that somebody holds for a limited time.
//
// Who holds it is in storage, never only in memory: an object that leaves memory and comes back
// still knows it, so eviction, a restart or a crash never frees a lock early. An alarm frees it when
// its time is up. Every grant has a fencing token, larger than all before it: whoever acts on the
// locked thing passes it along, and the thing refuses a token older than one it has seen.
//
// Those who wait do so inside their call, which keeps the object in memory; a caller whose
// connection is lost asks again.
import { DurableObject } from "cloudflare:workers";

export interface Grant {
  owner: string;
  token: number;
  expiresAt: number;
}

interface Waiter {
  owner: string;
  ttlMs: number;
  settle: (grant: Grant | null) => void;
  timer: ReturnType<typeof setTimeout>;
}

const WAITERS_MAX = 100;

export class Lock extends DurableObject {
  private waiters: Waiter[] = [];

  /** The lock, or null if it did not become free within `waitMs`. First come, first served. */
  async acquire(owner: string, ttlMs: number, waitMs: number): Promise<Grant | null> {
    if (!this.holder() && this.waiters.length === 0) return this.grant(owner, ttlMs);
    if (waitMs === 0 || this.waiters.length >= WAITERS_MAX) return null;
    return new Promise((settle) => {
      const waiter: Waiter = { owner, ttlMs, settle, timer: setTimeout(() => this.giveUp(waiter), waitMs) };
      this.waiters.push(waiter);
    });
  }

  /** False if the token is no longer the holder's: the time was up, and somebody else may be at work. */
  async release(token: number): Promise<boolean> {
    if (this.holder()?.token !== token) return false;
    this.free();
    return true;
  }

  /** More time for the holder, from now on; null if it has lost the lock. */
  async extend(token: number, ttlMs: number): Promise<Grant | null> {
    const holder = this.holder();
    if (holder?.token !== token) return null;
    const grant = { ...holder, expiresAt: Date.now() + ttlMs };
    this.keep(grant);
    return grant;
  }

  async status(): Promise<{ holder: Grant | null; waiting: string[] }> {
    return { holder: this.holder(), waiting: this.waiters.map((waiter) => waiter.owner) };
  }

  async alarm(): Promise<void> {
    const holder = this.stored();
    if (!holder) return;
    // It may have been extended since the alarm was set off.
    if (holder.expiresAt > Date.now()) await this.ctx.storage.setAlarm(holder.expiresAt);
    else this.free();
  }

  private stored(): Grant | undefined {
    return this.ctx.storage.kv.get<Grant>("holder");
  }

  /** A holder whose time is up is none, even if the alarm is late. */
  private holder(): Grant | null {
    const grant = this.stored();
    return grant && grant.expiresAt > Date.now() ? grant : null;
  }

  private grant(owner: string, ttlMs: number): Grant {
    const token = (this.ctx.storage.kv.get<number>("token") ?? 0) + 1;
    const grant = { owner, token, expiresAt: Date.now() + ttlMs };
    this.ctx.storage.kv.put("token", token);
    this.keep(grant);
    return grant;
  }

  private keep(grant: Grant): void {
    this.ctx.storage.kv.put("holder", grant);
    this.ctx.storage.setAlarm(grant.expiresAt);
  }

  private free(): void {
    this.ctx.storage.kv.delete("holder");
    this.ctx.storage.deleteAlarm();
    const next = this.waiters.shift();
    if (!next) return;
    clearTimeout(next.timer);
    next.settle(this.grant(next.owner, next.ttlMs));
  }

  private giveUp(waiter: Waiter): void {
    this.waiters = this.waiters.filter((other) => other !== waiter);
    waiter.settle(null);
  }
}
