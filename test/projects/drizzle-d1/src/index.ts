import { count, eq, inArray, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import * as schema from "./schema";

const { posts, tags } = schema;
export default {
  async fetch(request: Request, env: { DB: D1Database }) {
    const db = drizzle(env.DB, { schema });
    const url = new URL(request.url);
    try {
      switch (`${request.method} ${url.pathname}`) {
        case "POST /posts": {
          const { title, body, tags: names } = (await request.json()) as { title: string; body: string; tags: string[] };
          const [post] = await db.insert(posts).values({ title, body: Buffer.from(body), created: new Date(1e12) }).returning({ id: posts.id, created: posts.created });
          if (names.length) await db.batch([db.insert(tags).values(names.map((tag) => ({ postId: post.id, tag }))), db.select().from(tags)]);
          return Response.json(post, { status: 201 });
        }
        case "GET /posts": {
          const rows = await db.query.posts.findMany({ with: { tags: { columns: { tag: true } } } });
          return Response.json(rows.map((row) => ({ ...row, body: row.body && Buffer.from(row.body).toString() })));
        }
        case "GET /tags":
          return Response.json(await db.select({ tag: tags.tag, n: count() }).from(tags).groupBy(tags.tag).orderBy(sql`count(*) desc`, tags.tag));
        case "POST /broken-batch":
          await db.batch([db.insert(posts).values({ id: 77, title: "x", created: new Date(0) }), db.insert(posts).values({ id: 77, title: "y", created: new Date(0) })]);
          return new Response("not here");
        case "PUT /posts": {
          const result = await db.update(posts).set({ title: sql`upper(${posts.title})` }).where(inArray(posts.id, [1, 2]));
          return Response.json({ changes: result.meta.changes, success: result.success });
        }
        case "DELETE /posts":
          return Response.json(await db.delete(tags).where(eq(tags.postId, Number(url.searchParams.get("id")))).returning());
        case "GET /prepared": {
          const one = db.select().from(posts).where(eq(posts.id, sql.placeholder("id"))).prepare();
          return Response.json((await Promise.all([1, 2, 3].map((id) => one.get({ id })))).map((p) => p?.title ?? null));
        }
        case "GET /raw":
          return Response.json([await db.all(sql`select 1 as a, 'x' as b`), await db.values(sql`select 1, null, 2.5`), await db.run(sql`select 1`).then((r) => r.success)]);
      }
      return new Response("nothing", { status: 404 });
    } catch (error) {
      const { message, cause } = error as Error;
      return Response.json({ message, cause: cause instanceof Error ? cause.message : null }, { status: 500 });
    }
  },
};
