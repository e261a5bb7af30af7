// Kysely with a driver of a few lines on the SQL storage of a Durable Object.
import { DurableObject } from "cloudflare:workers";
import { Kysely, SqliteAdapter, SqliteQueryCompiler, sql } from "kysely";

class StorageDriver {
  constructor(sql) {
    this.sql = sql;
  }
  async init() {}
  async acquireConnection() {
    return {
      executeQuery: async ({ sql: text, parameters }) => {
        const cursor = this.sql.exec(text, ...parameters);
        return { rows: cursor.toArray() };
      },
    };
  }
  async releaseConnection() {}
  async destroy() {}
}

export class Shop extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.db = new Kysely({
      dialect: {
        createAdapter: () => new SqliteAdapter(),
        createDriver: () => new StorageDriver(ctx.storage.sql),
        createIntrospector: () => null,
        createQueryCompiler: () => new SqliteQueryCompiler(),
      },
    });
  }
  async report() {
    const { db } = this;
    await db.schema.createTable("sale").ifNotExists().addColumn("id", "integer", (c) => c.primaryKey())
      .addColumn("item", "text", (c) => c.notNull()).addColumn("price", "real").execute();
    await db.insertInto("sale").values([
      { item: "tea", price: 2.5 }, { item: "tea", price: 3 }, { item: "cake", price: 4 },
    ]).execute();
    const rows = await db.selectFrom("sale").select(["item", (e) => e.fn.sum("price").as("total")])
      .where("price", ">", 1).groupBy("item").having((e) => e.fn.countAll(), ">=", 1).orderBy("total", "desc").execute();
    const { sql: text } = db.updateTable("sale").set({ price: sql`price * ${2}` }).where("item", "in", ["tea", "cake"]).compile();
    return { rows, text };
  }
}

export default {
  async fetch(request, env) {
    return Response.json(await env.SHOP.get(env.SHOP.idFromName("main")).report());
  },
};
