// Many events, one alarm. An object has a single alarm; it is always set for the earliest event. When
// it goes off, everything that is due runs, in order of its time.
//
// An event that ran and the note that it did are one turn, so one transaction: after a crash in the
// middle the event runs again, and what it wrote before is undone. Work outside of the object (a fetch)
// happens at least once, as alarms do.
import { DurableObject } from "cloudflare:workers";

export interface Event extends Record<string, SqlStorageValue> {
  id: number;
  due: number;
  label: string;
  /** Milliseconds until it is due again, or null. */
  every: number | null;
}

export interface Run extends Record<string, SqlStorageValue> {
  id: number;
  label: string;
  due: number;
  ran: number;
}

const EVENTS_MAX = 10_000;
const RUNS_KEPT = 100;

export class Scheduler extends DurableObject {
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.sql.exec(`
      CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY AUTOINCREMENT, due INTEGER NOT NULL, label TEXT NOT NULL, every INTEGER);
      CREATE INDEX IF NOT EXISTS events_due ON events (due, id);
      CREATE TABLE IF NOT EXISTS runs (seq INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL, label TEXT NOT NULL, due INTEGER NOT NULL, ran INTEGER NOT NULL);
    `);
  }

  /** The event's number, or null if there are too many. */
  async schedule(label: string, due: number, every: number | null): Promise<number | null> {
    if (this.sql.exec<{ n: number }>("SELECT count(*) AS n FROM events").one().n >= EVENTS_MAX) return null;
    const { id } = this.sql.exec<{ id: number }>("INSERT INTO events (due, label, every) VALUES (?, ?, ?) RETURNING id", due, label, every).one();
    this.setAlarm();
    return id;
  }

  async cancel(id: number): Promise<boolean> {
    const cancelled = this.sql.exec("DELETE FROM events WHERE id = ? RETURNING id", id).toArray().length > 0;
    this.setAlarm();
    return cancelled;
  }

  async state(): Promise<{ pending: Event[]; runs: Run[]; alarm: number | null }> {
    return {
      pending: this.sql.exec<Event>("SELECT id, due, label, every FROM events ORDER BY due, id LIMIT 100").toArray(),
      runs: this.sql.exec<Run>("SELECT id, label, due, ran FROM runs ORDER BY seq DESC LIMIT 20").toArray(),
      alarm: await this.ctx.storage.getAlarm(),
    };
  }

  async alarm(): Promise<void> {
    const now = Date.now();
    for (const event of this.sql.exec<Event>("SELECT id, due, label, every FROM events WHERE due <= ? ORDER BY due, id", now).toArray()) {
      this.sql.exec("INSERT INTO runs (id, label, due, ran) VALUES (?, ?, ?, ?)", event.id, event.label, event.due, now);
      if (event.every === null) this.sql.exec("DELETE FROM events WHERE id = ?", event.id);
      // From its own time on, so that it does not drift; times that passed while nobody was there are left out.
      else this.sql.exec("UPDATE events SET due = ? WHERE id = ?", event.due + event.every * Math.ceil((now + 1 - event.due) / event.every), event.id);
    }
    this.sql.exec("DELETE FROM runs WHERE seq <= (SELECT max(seq) FROM runs) - ?", RUNS_KEPT);
    this.setAlarm();
  }

  private setAlarm(): void {
    const { due } = this.sql.exec<{ due: number | null }>("SELECT min(due) AS due FROM events").one();
    if (due === null) this.ctx.storage.deleteAlarm();
    else this.ctx.storage.setAlarm(due);
  }
}
