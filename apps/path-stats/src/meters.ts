// Counters of the pipeline itself. Every worker counts in memory and hands over what came together, about once a second, to one
// object that keeps the sums of each minute for a day.
import { DurableObject } from "cloudflare:workers";
import type { Env } from "./env";

const HAND_OVER_MS = 1_000;
const MINUTE = 60_000;
const KEPT_MINUTES = 24 * 60;

const sums = new Map<string, number>();
const mosts = new Map<string, number>();
let since = 0; // when somebody began to wait for the hand-over

export const count = (name: string, by = 1): void => void (by && sums.set(name, (sums.get(name) ?? 0) + by));
export const most = (name: string, value: number): void => void mosts.set(name, Math.max(mosts.get(name) ?? 0, value));

/** Hands over, behind whatever is answered now. Only one waits at a time; one that was cut off is replaced. */
export function flushMeters(env: Env, ctx: { waitUntil(promise: Promise<unknown>): void }): void {
  if (Date.now() - since < 5 * HAND_OVER_MS || (sums.size === 0 && mosts.size === 0)) return;
  since = Date.now();
  ctx.waitUntil(handOver(env));
}

async function handOver(env: Env): Promise<void> {
  await scheduler.wait(HAND_OVER_MS);
  const [added, highest] = [[...sums], [...mosts]];
  sums.clear();
  mosts.clear();
  since = 0;
  try {
    await env.METERS_DO.getByName("meters").add(added, highest);
  } catch (error) {
    console.warn("counters were not handed over; they are kept", error);
    for (const [name, value] of added) count(name, value);
    for (const [name, value] of highest) most(name, value);
  }
}

export class MetersDO extends DurableObject<Env> {
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.sql.exec("CREATE TABLE IF NOT EXISTS minutes (minute INTEGER, name TEXT, value REAL NOT NULL, PRIMARY KEY (minute, name)) WITHOUT ROWID");
  }

  async add(added: [string, number][], highest: [string, number][]): Promise<void> {
    const minute = Math.floor(Date.now() / MINUTE);
    for (const [name, value] of added) this.sql.exec("INSERT INTO minutes VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value", minute, name, value);
    for (const [name, value] of highest) this.sql.exec("INSERT INTO minutes VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = max(value, excluded.value)", minute, name, value);
    this.sql.exec("DELETE FROM minutes WHERE minute < ?", minute - KEPT_MINUTES);
  }

  /** Sums (of names with "most": the largest) over the last minutes, the present one included. */
  async read(minutes: number): Promise<Record<string, number>> {
    const from = Math.floor(Date.now() / MINUTE) - minutes;
    const rows = this.sql.exec<{ name: string; sum: number; most: number }>("SELECT name, sum(value) AS sum, max(value) AS most FROM minutes WHERE minute > ? GROUP BY name", from).toArray();
    return Object.fromEntries(rows.map(({ name, sum, most }) => [name, name.includes("most") ? most : sum]));
  }

  /** Value by minute of one name, for charts. */
  async series(name: string, minutes: number): Promise<{ minute: number; value: number }[]> {
    const from = Math.floor(Date.now() / MINUTE) - minutes;
    return this.sql.exec<{ minute: number; value: number }>("SELECT minute * 60000 AS minute, value FROM minutes WHERE name = ? AND minute > ? ORDER BY minute", name, from).toArray();
  }
}
