// An account that can be paid into. A payment has an id, and counts once however often it comes: whoever tries again does no harm.
import { DurableObject } from "cloudflare:workers";

export class Account extends DurableObject {
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.sql.exec("CREATE TABLE IF NOT EXISTS payments (id TEXT PRIMARY KEY, amount INTEGER NOT NULL)");
    this.sql.exec("CREATE TABLE IF NOT EXISTS trouble (id TEXT PRIMARY KEY, times INTEGER NOT NULL)");
  }

  async balance(): Promise<number> {
    return this.sql.exec<{ sum: number }>("SELECT coalesce(sum(amount), 0) AS sum FROM payments").one().sum;
  }

  /** `fails` so many times after the payment was written, as if the object had been reset before its answer left. */
  async pay(id: string, amount: number, fails: number): Promise<number> {
    this.sql.exec("INSERT INTO payments VALUES (?, ?) ON CONFLICT DO NOTHING", id, amount);
    const { times } = this.sql.exec<{ times: number }>("INSERT INTO trouble VALUES (?, 1) ON CONFLICT DO UPDATE SET times = times + 1 RETURNING times", id).one();
    if (times <= fails) {
      await this.ctx.storage.sync(); // the payment stays; only the answer does not leave
      throw Object.assign(new Error("The answer was lost on its way."), { retryable: true });
    }
    return this.balance();
  }

  /** Keeps the object from doing anything else until `over()`, the caller's, is. */
  async hold(over: () => Promise<void>): Promise<void> {
    await this.ctx.blockConcurrencyWhile(async () => { await over(); });
  }
}
