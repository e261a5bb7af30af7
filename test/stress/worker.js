// The objects of the randomized check (test/stress/objects.mjs). Every operation that changes
// something has a name of its own and is noted in the same turn as its change, so that what survived
// can be compared with what was acknowledged. PLANT spoils one promise on purpose.
import { DurableObject } from "cloudflare:workers";

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Cell extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.faults = [];
    this.inside = 0; // how many are in a section that admits one
    this.sql = ctx.storage.sql;
    ctx.blockConcurrencyWhile(async () => {
      this.sql.exec("CREATE TABLE IF NOT EXISTS ops(op TEXT PRIMARY KEY, n INTEGER)");
      this.sql.exec("CREATE TABLE IF NOT EXISTS pair(id INTEGER PRIMARY KEY, n INTEGER)");
      this.sql.exec("INSERT OR IGNORE INTO pair VALUES(1, 1000), (2, 1000)");
      await wait(Math.random() * 3);
      this.n = (await ctx.storage.get("n")) ?? 0; // what this instance believes
      this.started = true;
    });
  }

  #check(condition, what) {
    if (!condition) this.faults.push(what);
  }

  /** What is stored is what the only instance has in memory. */
  #begin() {
    this.#check(this.started, "an event came in before the constructor had ended");
    const stored = this.ctx.storage.kv.get("n") ?? 0;
    if (this.env.PLANT !== "gate") this.#check(stored === this.n, `another instance wrote: ${stored} is stored, ${this.n} in memory`);
  }

  #note(op, n) {
    this.n = n;
    this.sql.exec("INSERT INTO ops VALUES(?, ?)", op, n);
    return n;
  }

  incSync(op) {
    this.#begin();
    const n = (this.ctx.storage.kv.get("n") ?? 0) + 1;
    this.ctx.storage.kv.put("n", n);
    return this.#note(op, n);
  }

  /** Nothing comes between awaited storage operations: the input gate. */
  async incAsync(op) {
    this.#begin();
    const n = ((await this.ctx.storage.get("n")) ?? 0) + 1;
    if (this.env.PLANT === "gate") await wait(1);
    await this.ctx.storage.put("n", n);
    return this.#note(op, n);
  }

  /** Nothing comes in while a section waits for anything at all. */
  incSection(op) {
    return this.ctx.blockConcurrencyWhile(async () => {
      this.#begin();
      this.#check(++this.inside === 1, "two events in one section");
      const n = ((await this.ctx.storage.get("n")) ?? 0) + 1;
      await wait(Math.random() * 3);
      await this.ctx.storage.put("n", n);
      this.#check(--this.inside === 0, "two events in one section");
      return this.#note(op, n);
    });
  }

  async incTransaction(op, fails) {
    return this.ctx.storage.transaction(async (txn) => {
      this.#begin();
      const n = ((await txn.get("n")) ?? 0) + 1;
      await txn.put("n", n);
      await wait(Math.random() * 2);
      if (fails) throw new Error("meant to fail");
      return this.#note(op, n);
    });
  }

  /** The change is made, the turn ends, and much later comes the answer. */
  async incAndWait(op) {
    const n = this.incSync(op);
    await wait(Math.random() * 5);
    return n;
  }

  /** The change happens in another object, perhaps on another lane. */
  async relay(op, name, method) {
    return this.env.CELL.get(this.env.CELL.idFromName(name))[method](op);
  }

  /** The sum of the pair never changes, whoever looks. */
  async move(amount, fails) {
    this.#sum();
    const move = (from, to) => {
      this.sql.exec("UPDATE pair SET n = n - ? WHERE id = ?", amount, from);
      if (fails) throw new Error("meant to fail");
      this.sql.exec("UPDATE pair SET n = n + ? WHERE id = ?", amount, to);
    };
    if (this.env.PLANT === "tear") {
      this.sql.exec("UPDATE pair SET n = n - ? WHERE id = 1", amount);
      await wait(2);
      this.sql.exec("UPDATE pair SET n = n + ? WHERE id = 2", amount);
      return;
    }
    this.ctx.storage.transactionSync(() => move(1, 2));
    await this.ctx.storage.transaction(async () => {
      this.sql.exec("UPDATE pair SET n = n - ? WHERE id = 2", amount);
      await wait(Math.random() * 2);
      this.sql.exec("UPDATE pair SET n = n + ? WHERE id = 1", amount);
    });
  }
  #sum() {
    const { sum } = this.sql.exec("SELECT SUM(n) AS sum FROM pair").one();
    this.#check(sum === 2000, `a torn transaction: the pair sums to ${sum}`);
  }

  read() {
    this.#begin();
    this.#sum();
    return this.ctx.storage.kv.get("n") ?? 0;
  }

  reset() {
    this.ctx.abort("meant to reset");
  }

  takeFaults() {
    return this.faults.splice(0);
  }

  all() {
    this.#begin();
    this.#sum();
    return { n: this.n, ops: [...this.sql.exec("SELECT op, n FROM ops").raw()], faults: this.faults };
  }
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const [, name, method] = url.pathname.split("/");
    const args = JSON.parse(url.searchParams.get("args") ?? "[]");
    const stub = env.CELL.get(env.CELL.idFromName(name));
    try {
      const value = await stub[method](...args);
      const faults = method === "all" || method === "reset" ? [] : await stub.takeFaults();
      return Response.json({ value, faults });
    } catch (error) {
      return Response.json({ error: String(error?.message ?? error) }, { status: 500 });
    }
  },
};
