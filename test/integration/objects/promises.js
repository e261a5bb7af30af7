// Objects that would notice if a promise were broken. See promises.test.mjs.
import { DurableObject } from "cloudflare:workers";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const broken = (what) => { throw new Error(`BROKEN: ${what}`); };

export class Cell extends DurableObject {
  inside = 0; // sections running
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS log(n INTEGER PRIMARY KEY, token TEXT)");
  }
  check() {
    const { kv, sql } = this.ctx.storage;
    const [left, right, n] = [kv.get("left") ?? 0, kv.get("right") ?? 0, kv.get("n") ?? 0];
    if (left !== right) broken(`a transaction is torn: ${left} and ${right}`);
    const { count, last } = sql.exec("SELECT count(*) AS count, coalesce(max(n), 0) AS last FROM log").one();
    if (count !== n || last !== n) broken(`a turn is torn: kv says ${n}, sql ${count} rows up to ${last}`);
    if (this.inside !== 0) broken("an event came into a section");
    return { n, left };
  }
  /** Reads and writes with awaits of storage between: no event may come in between. */
  async increment(token) {
    this.check();
    const n = ((await this.ctx.storage.get("n")) ?? 0) + 1;
    this.ctx.storage.sql.exec("INSERT INTO log VALUES (?, ?)", n, token);
    await this.ctx.storage.put("n", n);
    this.check();
    return n;
  }
  /** The same over a timer, which needs a section. */
  async guarded(token) {
    return this.ctx.blockConcurrencyWhile(async () => {
      if (this.inside++ !== 0) broken("two sections at once");
      const n = ((await this.ctx.storage.get("n")) ?? 0) + 1;
      await sleep(1);
      if (((await this.ctx.storage.get("n")) ?? 0) !== n - 1) broken("somebody wrote during a section");
      this.ctx.storage.transactionSync(() => {
        this.ctx.storage.kv.put("n", n);
        this.ctx.storage.sql.exec("INSERT INTO log VALUES (?, ?)", n, token);
      });
      this.inside--;
      return n;
    });
  }
  /** Two keys change in one transaction that waits in between, or not at all. */
  async both(fail) {
    this.check();
    try {
      await this.ctx.storage.transaction(async (txn) => {
        const value = ((await txn.get("left")) ?? 0) + 1;
        await txn.put("left", value);
        await sleep(1);
        if (fail) throw new Error("on purpose");
        await txn.put("right", value);
      });
    } catch (error) {
      if (error.message !== "on purpose") throw error;
    }
    return this.check().left;
  }
  async wait(ms) { await sleep(ms); this.check(); return null; } // goes on while others work
  async other(name, token) { return this.env.CELL.getByName(name).increment(token); }
  abort() { this.ctx.storage.kv.put("left", -1); this.ctx.abort("on purpose"); }
  history() { this.check(); return this.ctx.storage.sql.exec("SELECT n, token FROM log ORDER BY n").raw().toArray(); }
}

export default {
  async fetch(request, env) {
    const [name, method, ...args] = await request.json();
    try {
      return Response.json({ value: await env.CELL.getByName(name)[method](...args) });
    } catch (error) {
      return Response.json({ error: error.message });
    }
  },
};
