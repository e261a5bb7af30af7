// The single source of truth about sampling: who samples what next, and the latest tick of every weapon.
//
// C1  A weapon is handed out at most once per tick period, whoever asks: handing out moves a cursor, and
//     a turn of an object is never interrupted by another.
// C2  What was handed out and not handed in within LEASE_MS is handed out again first: a worker that died
//     skips nothing.
// C3  The database is written before the map: what a snapshot shows is in D1. Two results for the same minute
//     are one row, so handing in twice does no harm.
// C4  KV is written every SNAPSHOT_SECONDS at most, by alarm, and not if nothing changed.
// C5  Everything is in storage, under the names of its fields, from the first start on, and comes back after a restart.
import { DurableObject } from "cloudflare:workers";
import { insertSamples, type Failure } from "./database";
import { type Env, snapshotKey } from "./env";
import type { Tick } from "./tick";
import { weapons } from "./weapons";

export interface Batch {
  id: number;
  slugs: string[];
}

export interface Results {
  batch: number;
  samples: Tick[];
  failures: Failure[];
  /** The market said that it is a stand-in and its prices are made up. */
  standIn: boolean;
}

/** What KV has: the latest tick of every weapon by its slug. */
export type Bundle = Record<string, Tick>;

export interface State {
  cursorHot: number;
  cursorCold: number;
  listHot: string[];
  listCold: string[];
  dirty: boolean;
  leased: number;
  known: number;
  snapshotAt: number;
  standIn: boolean;
}

const BATCH_SIZE = 5;
const HOT_PER_BATCH = 3;
const LEASE_MS = 120_000;
const FIELDS = ["cursorHot", "cursorCold", "listHot", "listCold", "dirty", "latestBySlug", "batches", "snapshotAt", "standIn"] as const;

export class RivenCoordinatorDO extends DurableObject<Env> {
  private cursorHot = 0;
  private cursorCold = 0;
  private listHot = weapons.hot;
  private listCold = weapons.cold;
  private dirty = false;
  private latestBySlug = new Map<string, Tick>();
  private batches = 0;
  private snapshotAt = 0;
  private standIn = false;
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.sql.exec(`
      CREATE TABLE IF NOT EXISTS leases (slug TEXT PRIMARY KEY, batch INTEGER NOT NULL, until INTEGER NOT NULL);
      CREATE INDEX IF NOT EXISTS leases_until ON leases (until);
      CREATE TABLE IF NOT EXISTS handed (slug TEXT PRIMARY KEY, period INTEGER NOT NULL);
    `);
    ctx.blockConcurrencyWhile(async () => {
      const stored = await ctx.storage.get([...FIELDS]);
      for (const [name, value] of stored) Object.assign(this, { [name]: value });
      this.keep(...FIELDS.filter((name) => !stored.has(name)));
    });
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
    const { cursorHot, cursorCold, listHot, listCold, dirty, snapshotAt, standIn } = this;
    return { cursorHot, cursorCold, listHot, listCold, dirty, leased, known: this.latestBySlug.size, snapshotAt, standIn };
  }

  async latest(): Promise<Bundle> {
    return Object.fromEntries(this.latestBySlug);
  }

  /** Replaces the lists. What is on none of them any more disappears from the snapshot; its history stays. */
  async setLists(hot: string[], cold: string[]): Promise<void> {
    this.listHot = hot;
    this.listCold = cold.filter((slug) => !hot.includes(slug));
    this.cursorHot = this.cursorCold = 0;
    const listed = new Set([...this.listHot, ...this.listCold]);
    for (const slug of [...this.latestBySlug.keys()].filter((slug) => !listed.has(slug))) this.latestBySlug.delete(slug);
    this.setDirty();
    this.keep("listHot", "listCold", "cursorHot", "cursorCold", "latestBySlug");
  }

  /** C4 */
  async alarm(): Promise<void> {
    if (!this.dirty) return;
    // What comes in while KV is being written makes it dirty again.
    this.dirty = false;
    this.snapshotAt = Date.now();
    this.keep("dirty", "snapshotAt");
    try {
      await this.env.KV.put(snapshotKey(this.env.PLATFORM), JSON.stringify(await this.latest()), { metadata: { updatedAt: this.snapshotAt } });
    } catch (error) {
      console.warn("the snapshot was not written and will be tried again", error);
      this.setDirty();
    }
  }

  /** Up to five weapons to sample now; fewer, or none, if all have been handed out in this minute. No `await`: C1. */
  private nextBatch(): Batch {
    const now = Date.now();
    const period = Math.floor(now / (this.env.TICK_SECONDS * 1000));
    const slugs = this.expired(now);
    const take = (list: "Hot" | "Cold", wanted: number): void => {
      const slugsOfList = this[`list${list}`];
      for (let seen = 0; seen < slugsOfList.length && wanted > 0 && slugs.length < BATCH_SIZE; seen++) {
        const slug = slugsOfList[this[`cursor${list}`] % slugsOfList.length];
        // The oldest of the list has had its turn in this minute, so all have.
        if (slugs.includes(slug) || this.isTaken(slug, period)) break;
        this[`cursor${list}`] = (this[`cursor${list}`] + 1) % slugsOfList.length;
        slugs.push(slug);
        wanted--;
      }
    };
    take("Hot", HOT_PER_BATCH);
    take("Cold", BATCH_SIZE);
    take("Hot", BATCH_SIZE);
    const id = this.batches + 1;
    if (slugs.length === 0) return { id, slugs };
    for (const slug of slugs) {
      this.sql.exec("INSERT OR REPLACE INTO leases (slug, batch, until) VALUES (?, ?, ?)", slug, id, now + LEASE_MS);
      this.sql.exec("INSERT OR REPLACE INTO handed (slug, period) VALUES (?, ?)", slug, period);
    }
    this.batches = id;
    this.keep("batches", "cursorHot", "cursorCold");
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

  private async appendResults({ batch, samples, failures, standIn }: Results): Promise<{ written: number; failed: number }> {
    await insertSamples(this.env.DB, samples, failures); // C3
    for (const tick of samples) {
      const known = this.latestBySlug.get(tick.weapon_slug);
      if (!known || known.ts <= tick.ts) this.latestBySlug.set(tick.weapon_slug, tick);
    }
    for (const { weapon_slug } of [...samples, ...failures]) this.sql.exec("DELETE FROM leases WHERE slug = ? AND batch = ?", weapon_slug, batch);
    if (samples.length) {
      this.standIn = standIn;
      this.setDirty();
      this.keep("latestBySlug", "standIn");
    }
    return { written: samples.length, failed: failures.length };
  }

  /** C4: the alarm is set for the earliest moment at which KV may be written again. */
  private setDirty(): void {
    this.dirty = true;
    this.keep("dirty");
    this.ctx.storage.setAlarm(Math.max(this.snapshotAt + this.env.SNAPSHOT_SECONDS * 1000, Date.now()));
  }

  /** C5. Not awaited: what a turn puts is one write, and answers wait for it. */
  private keep(...names: (typeof FIELDS)[number][]): void {
    if (names.length > 0) this.ctx.storage.put(Object.fromEntries(names.map((name) => [name, this[name]])));
  }
}
