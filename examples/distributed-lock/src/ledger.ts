// The thing that the lock protects. It trusts no clock and no client: a write with a token older
// than one it has seen comes from a holder who has lost the lock, and is refused.
import { DurableObject } from "cloudflare:workers";

export interface Entry {
  token: number;
  owner: string;
  text: string;
}

export class Ledger extends DurableObject {
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.sql.exec("CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, token INTEGER NOT NULL, owner TEXT NOT NULL, text TEXT NOT NULL)");
  }

  /** False: fenced off. */
  async write(entry: Entry): Promise<boolean> {
    const { newest } = this.sql.exec<{ newest: number | null }>("SELECT max(token) AS newest FROM entries").one();
    if (newest !== null && entry.token < newest) return false;
    this.sql.exec("INSERT INTO entries (token, owner, text) VALUES (?, ?, ?)", entry.token, entry.owner, entry.text);
    return true;
  }

  async latest(count: number): Promise<Entry[]> {
    return this.sql.exec<Entry & Record<string, SqlStorageValue>>("SELECT token, owner, text FROM entries ORDER BY id DESC LIMIT ?", count).toArray();
  }
}
