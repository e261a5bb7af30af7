import { relations, sql } from "drizzle-orm";
import { index, integer, real, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const users = sqliteTable("users", {
  id: integer().primaryKey({ autoIncrement: true }),
  name: text().notNull(),
  email: text().notNull().unique(),
  born: integer({ mode: "timestamp" }),
  settings: text({ mode: "json" }).$type<{ theme: string }>(),
});
export const orders = sqliteTable(
  "orders",
  {
    id: integer().primaryKey(),
    userId: integer().notNull().references(() => users.id, { onDelete: "cascade" }),
    price: real().notNull(),
    paid: integer({ mode: "boolean" }).notNull().default(false),
    note: text().default(sql`'none'`),
  },
  (t) => [index("orders_user").on(t.userId)],
);
export const usersRelations = relations(users, ({ many }) => ({ orders: many(orders) }));
export const ordersRelations = relations(orders, ({ one }) => ({ user: one(users, { fields: [orders.userId], references: [users.id] }) }));
