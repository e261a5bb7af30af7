// drizzle-orm on the SQL storage of a Durable Object: insert, join, group, a transaction undone.
import { DurableObject } from "cloudflare:workers";
import { count, desc, eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/durable-sqlite";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

const authors = sqliteTable("authors", { id: integer("id").primaryKey(), name: text("name").notNull() });
const books = sqliteTable("books", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  title: text("title").notNull(),
  author: integer("author").references(() => authors.id),
  tags: text("tags", { mode: "json" }),
});

export class Library extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.db = drizzle(ctx.storage);
    this.db.run(sql`CREATE TABLE IF NOT EXISTS authors (id INTEGER PRIMARY KEY, name TEXT NOT NULL)`);
    this.db.run(sql`CREATE TABLE IF NOT EXISTS books (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, author INTEGER, tags TEXT)`);
  }
  fill() {
    this.db.insert(authors).values([{ id: 1, name: "Le Guin" }, { id: 2, name: "Lem" }]).run();
    const inserted = this.db.insert(books).values([
      { title: "The Dispossessed", author: 1, tags: ["sf", "anarchy"] },
      { title: "The Left Hand of Darkness", author: 1, tags: ["sf"] },
      { title: "Solaris", author: 2, tags: [] },
    ]).returning({ id: books.id }).all();
    return inserted.map((row) => row.id);
  }
  summary() {
    return this.db.select({ name: authors.name, books: count(books.id) }).from(authors)
      .leftJoin(books, eq(books.author, authors.id)).groupBy(authors.id).orderBy(desc(count(books.id))).all();
  }
  tags(title) {
    return this.db.select().from(books).where(eq(books.title, title)).get()?.tags ?? null;
  }
  undone() {
    try {
      this.db.transaction((tx) => {
        tx.delete(books).run();
        throw new Error("changed my mind");
      });
    } catch (error) {
      return { error: error.message, left: this.db.$count ? this.summary().reduce((sum, row) => sum + row.books, 0) : null };
    }
  }
}

export default {
  async fetch(request, env) {
    const library = env.LIBRARY.get(env.LIBRARY.idFromName("main"));
    return Response.json({
      ids: await library.fill(),
      summary: await library.summary(),
      tags: await library.tags("The Dispossessed"),
      undone: await library.undone(),
    });
  },
};
