import { relations } from "drizzle-orm";
import { blob, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const posts = sqliteTable("posts", {
  id: integer().primaryKey(),
  title: text().notNull(),
  body: blob({ mode: "buffer" }),
  created: integer({ mode: "timestamp_ms" }).notNull(),
});
export const tags = sqliteTable("tags", { postId: integer().notNull().references(() => posts.id), tag: text().notNull() }, (t) => [primaryKey({ columns: [t.postId, t.tag] })]);
export const postsRelations = relations(posts, ({ many }) => ({ tags: many(tags) }));
export const tagsRelations = relations(tags, ({ one }) => ({ post: one(posts, { fields: [tags.postId], references: [posts.id] }) }));
