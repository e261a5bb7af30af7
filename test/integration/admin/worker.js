// A ledger of numbered entries per object: what the tests compare with what they were told.
import { DurableObject } from "cloudflare:workers";

export class Ledger extends DurableObject {
  #calls = 0; // in memory only: tells whether the instance is the same

  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS entry(id INTEGER PRIMARY KEY, text TEXT, bytes BLOB)");
  }
  add(text) {
    this.ctx.storage.sql.exec("INSERT INTO entry(text) VALUES(?)", text);
    return { calls: ++this.#calls, count: this.count() };
  }
  count() {
    return this.ctx.storage.sql.exec("SELECT count(*) AS n FROM entry").one().n;
  }
  all() {
    return this.ctx.storage.sql.exec("SELECT text FROM entry ORDER BY id").toArray().map((row) => row.text);
  }
  blob() {
    this.ctx.storage.sql.exec("INSERT INTO entry(text, bytes) VALUES('blob', ?)", new Uint8Array([1, 2, 255]).buffer);
  }
  async values() {
    await this.ctx.storage.put({
      plain: { a: [1, "ü", null, true], b: -1.5 },
      date: new Date(86400000),
      map: new Map([["k", new Set([1])]]),
      bytes: new Uint8Array([1, 2, 3]),
      big: 31n,
      wide: "\u4f60\u597d",
      nested: { none: undefined },
    });
  }
  async slow(milliseconds) {
    console.log(`waiting for ${milliseconds} ms`);
    await this.ctx.blockConcurrencyWhile(() => new Promise((resolve) => setTimeout(resolve, milliseconds)));
    return "done";
  }
  async transact(milliseconds) {
    await this.ctx.storage.transaction(async () => {
      this.ctx.storage.sql.exec("INSERT INTO entry(text) VALUES('in transaction')");
      console.log("in transaction");
      await new Promise((resolve) => setTimeout(resolve, milliseconds));
    });
    return "done";
  }
  async wake(time) {
    await this.ctx.storage.setAlarm(time);
  }
  async alarm() {
    this.ctx.storage.sql.exec("INSERT INTO entry(text) VALUES('alarm')");
  }
  getAlarm() {
    return this.ctx.storage.getAlarm();
  }
  bookmark() {
    return this.ctx.storage.getCurrentBookmark();
  }
}

export default {
  async fetch(request, env) {
    const [, name, method] = new URL(request.url).pathname.split("/").map(decodeURIComponent);
    if (method === "spin") {
      let sum = 0;
      for (let i = Number(name); i > 0; i--) sum += i;
      return new Response(String(sum));
    }
    try {
      const result = await env.LEDGER.getByName(name)[method](...(await request.json()));
      return Response.json(result ?? null);
    } catch (error) {
      return Response.json({ error: String(error), reset: error.durableObjectReset, retryable: error.retryable }, { status: 500 });
    }
  },
};
