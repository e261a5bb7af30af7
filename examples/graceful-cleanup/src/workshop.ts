// Work that leaves something to clear away: a temporary result, a lease, a reserved seat.
//
// Three lines of defence, each for what the one before cannot see:
//   1. `finally`: the work itself clears up, also when it throws;
//   2. `ctx.waitUntil()`: what the client need not wait for goes on after the answer has left;
//   3. an alarm: what a crash or an abort left lying is found again, because every temporary thing was
//      written down before it was made.
import { DurableObject } from "cloudflare:workers";

export interface Temporary extends Record<string, SqlStorageValue> {
  id: number;
  label: string;
  since: number;
}

export interface Cleaned extends Record<string, SqlStorageValue> {
  label: string;
  by: string;
  at: number;
}

const ORPHAN_AFTER_MS = 5_000;

export class Workshop extends DurableObject {
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.sql.exec(`
      CREATE TABLE IF NOT EXISTS temporaries (id INTEGER PRIMARY KEY AUTOINCREMENT, label TEXT NOT NULL, since INTEGER NOT NULL);
      CREATE TABLE IF NOT EXISTS cleaned (id INTEGER PRIMARY KEY AUTOINCREMENT, label TEXT NOT NULL, by TEXT NOT NULL, at INTEGER NOT NULL);
    `);
  }

  /** Answers as soon as the work is done; its temporary is cleared away afterwards. */
  async work(label: string, end: "well" | "throws" | "crashes"): Promise<string> {
    const temporary = this.open(label);
    try {
      await scheduler.wait(100);
      if (end === "throws") throw new Error(`The work on "${label}" failed.`);
      if (end === "crashes") {
        await this.ctx.storage.sync();
        this.ctx.abort(`The work on "${label}" took the object down.`);
      }
      return `"${label}" is done`;
    } finally {
      this.ctx.waitUntil(this.clear(temporary, end === "throws" ? "finally, after an error" : "waitUntil, after the answer"));
    }
  }

  async state(): Promise<{ temporaries: Temporary[]; cleaned: Cleaned[] }> {
    return {
      temporaries: this.sql.exec<Temporary>("SELECT id, label, since FROM temporaries ORDER BY id").toArray(),
      cleaned: this.sql.exec<Cleaned>("SELECT label, by, at FROM cleaned ORDER BY id DESC LIMIT 20").toArray(),
    };
  }

  /** The janitor: whatever is older than any work may take has been abandoned. */
  async alarm(): Promise<void> {
    const before = Date.now() - ORPHAN_AFTER_MS;
    for (const { id } of this.sql.exec<Temporary>("SELECT * FROM temporaries WHERE since <= ?", before).toArray()) this.finish(id, "alarm, found abandoned");
    this.setAlarm();
  }

  /** Written down before anything is made: there is no moment at which only memory knows of it. */
  private open(label: string): number {
    const { id } = this.sql.exec<{ id: number }>("INSERT INTO temporaries (label, since) VALUES (?, ?) RETURNING id", label, Date.now()).one();
    this.setAlarm();
    return id;
  }

  private async clear(id: number, by: string): Promise<void> {
    await scheduler.wait(1000); // deleting things elsewhere takes its time
    this.finish(id, by);
    this.setAlarm();
  }

  private finish(id: number, by: string): void {
    for (const { label } of this.sql.exec<{ label: string }>("DELETE FROM temporaries WHERE id = ? RETURNING label", id).toArray())
      this.sql.exec("INSERT INTO cleaned (label, by, at) VALUES (?, ?, ?)", label, by, Date.now());
    this.sql.exec("DELETE FROM cleaned WHERE id <= (SELECT max(id) FROM cleaned) - 100");
  }

  private setAlarm(): void {
    const { oldest } = this.sql.exec<{ oldest: number | null }>("SELECT min(since) AS oldest FROM temporaries").one();
    if (oldest === null) this.ctx.storage.deleteAlarm();
    else this.ctx.storage.setAlarm(oldest + ORPHAN_AFTER_MS);
  }
}
