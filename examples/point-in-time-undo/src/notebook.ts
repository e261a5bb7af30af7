// A notebook that can go back to any moment before a risky operation.
//
// A restore puts the WHOLE object back, so the list of bookmarks must live somewhere else: in an object
// of its own. The restore happens when the object starts the next time; abort() makes that now.
import { DurableObject } from "cloudflare:workers";

export interface Note extends Record<string, SqlStorageValue> {
  id: number;
  text: string;
}

export class Notebook extends DurableObject {
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.sql.exec("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL)");
  }

  async add(text: string): Promise<void> {
    this.sql.exec("INSERT INTO notes (text) VALUES (?)", text);
  }

  async list(): Promise<Note[]> {
    return this.sql.exec<Note>("SELECT id, text FROM notes ORDER BY id DESC LIMIT 200").toArray();
  }

  /** Where we are now, to come back to. */
  async bookmark(): Promise<string> {
    return this.ctx.storage.getCurrentBookmark();
  }

  /** The risky operations. */
  async replace(what: string, by: string): Promise<void> {
    this.sql.exec("UPDATE notes SET text = replace(text, ?, ?)", what, by);
  }
  async clear(): Promise<void> {
    this.sql.exec("DELETE FROM notes");
  }

  /** Asks for the restore and returns the bookmark that undoes it. Takes effect at the next start. */
  async goTo(bookmark: string): Promise<string> {
    const undo = await this.ctx.storage.onNextSessionRestoreBookmark(bookmark);
    // After the answer has left: this instance ends, the next one starts on the restored database.
    this.ctx.waitUntil(scheduler.wait(0).then(() => this.ctx.abort("restarting on an earlier state")));
    return undo;
  }
}

export interface Mark extends Record<string, SqlStorageValue> {
  id: number;
  bookmark: string;
  label: string;
  at: number;
}

const MARKS_KEPT = 50;

export class History extends DurableObject {
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.sql.exec("CREATE TABLE IF NOT EXISTS marks (id INTEGER PRIMARY KEY AUTOINCREMENT, bookmark TEXT NOT NULL, label TEXT NOT NULL, at INTEGER NOT NULL)");
  }

  async push(bookmark: string, label: string): Promise<void> {
    this.sql.exec("INSERT INTO marks (bookmark, label, at) VALUES (?, ?, ?)", bookmark, label, Date.now());
    this.sql.exec("DELETE FROM marks WHERE id <= (SELECT max(id) FROM marks) - ?", MARKS_KEPT);
  }

  async list(): Promise<Mark[]> {
    return this.sql.exec<Mark>("SELECT id, bookmark, label, at FROM marks ORDER BY id DESC").toArray();
  }

  async find(id: number): Promise<Mark | null> {
    return this.sql.exec<Mark>("SELECT id, bookmark, label, at FROM marks WHERE id = ?", id).toArray()[0] ?? null;
  }
}
