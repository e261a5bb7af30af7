// The single source of truth about sampling: who samples what next, and the latest tick of every weapon.
//
// C1  A weapon is handed out at most once per tick period, whoever asks: handing out moves a cursor, and
//     a turn of an object is never interrupted by another.
// C2  What was handed out and not handed in within LEASE_MS is handed out again first: a worker that died
//     skips nothing.
// C3  The database is written before the map: what a snapshot shows is in D1. Two results for the same minute
//     are one row, so handing in twice does no harm.
// C4  At most one KV write per SNAPSHOT_SECONDS, by alarm, and none if nothing changed.
//
// Everything is in storage and comes back after a restart.
import { DurableObject } from "cloudflare:workers";
import { insertTicks, type Failure } from "./database";
import { type Env, snapshotKey } from "./env";
import type { Tick } from "./tick";
import { weapons } from "./weapons";

export interface Batch {
  id: number;
  slugs: string[];
}

export interface Results {
  batch: number;
  ticks: Tick[];
  failures: Failure[];
}

export interface Snapshot {
  platform: string;
  updatedAt: number;
  ticks: Tick[];
}

export interface State {
  cursorHot: number;
  cursorCold: number;
  listHot: string[];
  listCold: string[];
  dirty: boolean;
  leased: number;
  known: number;
  snapshotAt: number;
}

const BATCH_SIZE = 5;
const HOT_PER_BATCH = 3;
const LEASE_MS = 120_000;

export class Coordinator extends DurableObject<Env> {
  private cursorHot: number;
  private cursorCold: number;
  private listHot: string[];
  private listCold: string[];
  private dirty: boolean;
  private latestBySlug = new Map<string, Tick>();
  private readonly kv = this.ctx.storage.kv;
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.sql.exec(`
      CREATE TABLE IF NOT EXISTS latest (slug TEXT PRIMARY KEY, tick TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS leases (slug TEXT PRIMARY KEY, batch INTEGER NOT NULL, until INTEGER NOT NULL);
      CREATE INDEX IF NOT EXISTS leases_until ON leases (until);
      CREATE TABLE IF NOT EXISTS handed (slug TEXT PRIMARY KEY, period INTEGER NOT NULL);
    `);
    this.cursorHot = this.kv.get<number>("cursorHot") ?? 0;
    this.cursorCold = this.kv.get<number>("cursorCold") ?? 0;
    this.listHot = this.kv.get<string[]>("listHot") ?? weapons.hot;
    this.listCold = this.kv.get<string[]>("listCold") ?? weapons.cold;
    this.dirty = this.kv.get<boolean>("dirty") ?? false;
    for (const { slug, tick } of this.sql.exec<{ slug: string; tick: string }>("SELECT slug, tick FROM latest")) this.latestBySlug.set(slug, JSON.parse(tick));
  }

  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (request.method !== "POST") return Response.json({ error: "Use POST." }, { status: 405 });
    if (pathname === "/next-batch") return Response.json(this.nextBatch());
    if (pathname === "/append-results") return Response.json(await this.appendResults(await request.json<Results>()));
    return Response.json({ error: `There is nothing at ${pathname}.` }, { status: 404 });
  }

  async state(): Promise<State> {
    const leased = this.sql.exec<{ n: number }>("SELECT count(*) AS n FROM leases").one().n;
    const { cursorHot, cursorCold, listHot, listCold, dirty } = this;
    return { cursorHot, cursorCold, listHot, listCold, dirty, leased, known: this.latestBySlug.size, snapshotAt: this.kv.get<number>("snapshotAt") ?? 0 };
  }

  async snapshot(): Promise<Snapshot> {
    return { platform: this.env.PLATFORM, updatedAt: Date.now(), ticks: [...this.latestBySlug.values()] };
  }

  /** Replaces the lists. What is on none of them any more disappears from the snapshot; its history stays. */
  async setLists(hot: string[], cold: string[]): Promise<void> {
    this.listHot = hot;
    this.listCold = cold.filter((slug) => !hot.includes(slug));
    this.cursorHot = this.cursorCold = 0;
    for (const name of ["listHot", "listCold", "cursorHot", "cursorCold"] as const) this.kv.put(name, this[name]);
    const listed = new Set([...this.listHot, ...this.listCold]);
    for (const slug of [...this.latestBySlug.keys()].filter((slug) => !listed.has(slug))) {
      this.latestBySlug.delete(slug);
      this.sql.exec("DELETE FROM latest WHERE slug = ?", slug);
    }
    this.setDirty();
  }

  async alarm(): Promise<void> {
    if (!this.dirty) return;
    // What comes in while KV is being written makes it dirty again.
    this.dirty = false;
    const snapshot = await this.snapshot();
    this.kv.put("snapshotAt", snapshot.updatedAt);
    this.kv.put("dirty", false);
    try {
      await this.env.SNAPSHOTS.put(snapshotKey(this.env.PLATFORM), JSON.stringify(snapshot));
    } catch (error) {
      console.warn("the snapshot was not written and will be tried again", error);
      this.setDirty();
    }
  }

  /** Up to five weapons to sample now; fewer, or none, if all have been handed out in this minute. No `await`: C1. */
  private nextBatch(): Batch {
    const now = Date.now();
    const period = Math.floor(now / (this.env.TICK_SECONDS * 1000));
    const id = (this.kv.get<number>("batches") ?? 0) + 1;
    const slugs = this.expired(now);
    const take = (list: "Hot" | "Cold", wanted: number): void => {
      const slugsOfList = this[`list${list}`];
      for (let seen = 0; seen < slugsOfList.length && wanted > 0 && slugs.length < BATCH_SIZE; seen++) {
        const slug = slugsOfList[this[`cursor${list}`] % slugsOfList.length];
        if (slugs.includes(slug) || this.isTaken(slug, period)) {
          // The oldest of the list has had its turn in this minute, so all have.
          break;
        }
        this[`cursor${list}`] = (this[`cursor${list}`] + 1) % slugsOfList.length;
        slugs.push(slug);
        wanted--;
      }
    };
    take("Hot", HOT_PER_BATCH);
    take("Cold", BATCH_SIZE);
    take("Hot", BATCH_SIZE);
    for (const slug of slugs) {
      this.sql.exec("INSERT OR REPLACE INTO leases (slug, batch, until) VALUES (?, ?, ?)", slug, id, now + LEASE_MS);
      this.sql.exec("INSERT OR REPLACE INTO handed (slug, period) VALUES (?, ?)", slug, period);
    }
    if (slugs.length) {
      this.kv.put("batches", id);
      this.kv.put("cursorHot", this.cursorHot);
      this.kv.put("cursorCold", this.cursorCold);
    }
    return { id, slugs };
  }

  /** Leases that ran out, oldest first. C2 */
  private expired(now: number): string[] {
    return this.sql
      .exec<{ slug: string }>("DELETE FROM leases WHERE slug IN (SELECT slug FROM leases WHERE until <= ? ORDER BY until LIMIT ?) RETURNING slug", now, BATCH_SIZE)
      .toArray()
      .map(({ slug }) => slug);
  }

  private isTaken(slug: string, period: number): boolean {
    return this.sql.exec("SELECT 1 FROM handed WHERE slug = ? AND period = ?", slug, period).toArray().length > 0;
  }

  private async appendResults({ batch, ticks, failures }: Results): Promise<{ written: number; failed: number }> {
    await insertTicks(this.env.DB, ticks, failures); // C3
    for (const tick of ticks) {
      const known = this.latestBySlug.get(tick.weapon_slug);
      if (known && known.ts > tick.ts) continue;
      this.latestBySlug.set(tick.weapon_slug, tick);
      this.sql.exec("INSERT OR REPLACE INTO latest (slug, tick) VALUES (?, ?)", tick.weapon_slug, JSON.stringify(tick));
    }
    for (const { weapon_slug } of [...ticks, ...failures]) this.sql.exec("DELETE FROM leases WHERE slug = ? AND batch = ?", weapon_slug, batch);
    if (ticks.length) this.setDirty();
    return { written: ticks.length, failed: failures.length };
  }

  /** C4: the alarm is set for the earliest moment at which KV may be written again. */
  private setDirty(): void {
    this.dirty = true;
    this.kv.put("dirty", true);
    const at = (this.kv.get<number>("snapshotAt") ?? 0) + this.env.SNAPSHOT_SECONDS * 1000;
    this.ctx.storage.setAlarm(Math.max(at, Date.now()));
  }
}
