// A journal with a shard per writer. Nobody shares a shard, so writers never wait for each other; a directory knows all of them, and
// reading asks them together.
//
// A shard's id is made by newUniqueId(): it has no name that somebody could guess, so to know it is to be allowed to write. It
// exists only because the directory wrote it down.
import { DurableObject } from "cloudflare:workers";

export const SHARDS_MOST = 1000;
const LATEST = 5;

export interface Entry {
  at: number;
  text: string;
}

export class Shard extends DurableObject {
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.sql.exec("CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, text TEXT NOT NULL)");
  }

  async append(text: string): Promise<number> {
    return this.sql.exec<{ id: number }>("INSERT INTO entries (at, text) VALUES (?, ?) RETURNING id", Date.now(), text).one().id;
  }

  async latest(): Promise<{ count: number; entries: Entry[] }> {
    const { count } = this.sql.exec<{ count: number }>("SELECT count(*) AS count FROM entries").one();
    return { count, entries: this.sql.exec<Entry & Record<string, SqlStorageValue>>("SELECT at, text FROM entries ORDER BY id DESC LIMIT ?", LATEST).toArray() };
  }
}

interface Env {
  SHARDS: DurableObjectNamespace<Shard>;
}

export class Directory extends DurableObject<Env> {
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.sql.exec("CREATE TABLE IF NOT EXISTS shards (id TEXT PRIMARY KEY)");
  }

  /** The id of a new shard; null if there are too many. */
  async open(): Promise<string | null> {
    if (this.sql.exec<{ n: number }>("SELECT count(*) AS n FROM shards").one().n >= SHARDS_MOST) return null;
    const id = this.env.SHARDS.newUniqueId().toString();
    this.sql.exec("INSERT INTO shards VALUES (?)", id);
    return id;
  }

  async has(id: string): Promise<boolean> {
    return this.sql.exec("SELECT 1 FROM shards WHERE id = ?", id).toArray().length > 0;
  }

  async read(): Promise<{ shards: number; entries: number; latest: Entry[] }> {
    const ids = this.sql.exec<{ id: string }>("SELECT id FROM shards").toArray();
    const all = await Promise.all(ids.map(({ id }) => this.env.SHARDS.get(this.env.SHARDS.idFromString(id)).latest()));
    const latest = all.flatMap(({ entries }) => entries).sort((a, b) => b.at - a.at).slice(0, LATEST);
    return { shards: ids.length, entries: all.reduce((sum, { count }) => sum + count, 0), latest };
  }
}
