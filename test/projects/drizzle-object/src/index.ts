import { DurableObject } from "cloudflare:workers";
import { and, count, desc, eq, gt, like, sql, sum } from "drizzle-orm";
import { drizzle, type DrizzleSqliteDODatabase } from "drizzle-orm/durable-sqlite";
import { migrate } from "drizzle-orm/durable-sqlite/migrator";
import migrations from "../drizzle/migrations";
import * as schema from "./schema";

const { users, orders } = schema;
type Env = { SHOP: DurableObjectNamespace<Shop> };

export class Shop extends DurableObject<Env> {
  db: DrizzleSqliteDODatabase<typeof schema>;
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.db = drizzle(ctx.storage, { schema, logger: false });
    ctx.blockConcurrencyWhile(() => migrate(this.db, migrations));
  }
  addUser(user: typeof users.$inferInsert) {
    return this.db.insert(users).values(user).returning().get();
  }
  async addOrders(userId: number, prices: number[]) {
    return this.db.insert(orders).values(prices.map((price) => ({ userId, price }))).returning({ id: orders.id });
  }
  async report() {
    return this.db
      .select({ name: users.name, orders: count(orders.id), total: sum(orders.price).mapWith(Number) })
      .from(users)
      .leftJoin(orders, eq(orders.userId, users.id))
      .groupBy(users.id)
      .orderBy(desc(sql`3`));
  }
  async withOrders() {
    return this.db.query.users.findMany({ with: { orders: { where: gt(orders.price, 2), columns: { id: true, price: true, paid: true } } }, orderBy: users.id });
  }
  async pay(id: number, fail: boolean) {
    try {
      return await this.db.transaction(async (tx) => {
        const [row] = await tx.update(orders).set({ paid: true, note: sql`upper(${orders.note})` }).where(eq(orders.id, id)).returning();
        if (fail) tx.rollback();
        return row;
      });
    } catch (error) {
      return { error: (error as Error).message };
    }
  }
  async paidCount() {
    return this.db.$count(orders, eq(orders.paid, true));
  }
  async upsert(email: string, name: string) {
    return this.db.insert(users).values({ email, name }).onConflictDoUpdate({ target: users.email, set: { name } }).returning();
  }
  async remove(id: number) {
    await this.db.delete(users).where(and(eq(users.id, id), like(users.name, "%")));
    return this.db.$count(orders);
  }
  async raw() {
    return this.db.all(sql`select name from sqlite_master where type = 'table' and name in ('users', 'orders', '__drizzle_migrations') order by name`);
  }
}
export default {
  async fetch(request: Request, env: Env) {
    const [, shop, method] = new URL(request.url).pathname.split("/");
    try {
      const stub = env.SHOP.getByName(shop) as any;
      return Response.json((await stub[method](...((await request.json()) as unknown[]))) ?? null);
    } catch (error) {
      const { message, cause } = error as Error;
      return Response.json({ message, cause: cause instanceof Error ? cause.message : null }, { status: 500 });
    }
  },
};
