import { PrismaD1 } from "@prisma/adapter-d1";
import { PrismaClient } from "./generated/client";

const actions: Record<string, (db: PrismaClient, body: any) => Promise<unknown>> = {
  create: (db, { email, name, posts }) => db.user.create({ data: { email, name, posts: { create: posts } }, include: { posts: { select: { id: true, title: true, score: true } } } }),
  list: (db) => db.user.findMany({ include: { posts: { where: { score: { gt: 1 } }, orderBy: { score: "desc" }, omit: { created: true, big: true, data: true } }, _count: { select: { posts: true } } }, orderBy: { id: "asc" } }),
  stats: (db) => db.post.aggregate({ _sum: { score: true }, _avg: { score: true }, _count: true, _max: { id: true } }),
  grouped: (db) => db.post.groupBy({ by: ["authorId"], _sum: { score: true }, orderBy: { authorId: "asc" } }),
  types: async (db) => {
    const post = await db.post.create({ data: { title: "types", big: 2n ** 40n, data: new Uint8Array([1, 2, 255]), created: new Date(1e12), author: { connect: { id: 1 } } } });
    const again = await db.post.findUniqueOrThrow({ where: { id: post.id } });
    return { big: String(again.big), data: [...again.data!], created: again.created.getTime() };
  },
  update: (db, { id, name }) => db.user.update({ where: { id }, data: { name } }),
  upsert: (db, { email, name }) => db.user.upsert({ where: { email }, create: { email, name }, update: { name } }),
  remove: (db, { id }) => db.user.delete({ where: { id } }),
  batch: (db) => db.$transaction([db.user.count(), db.post.count()]),
  raw: (db) => db.$queryRaw`select count(*) as n, ${"x"} as s from User`.then((rows: any) => rows.map((r: any) => ({ n: Number(r.n), s: r.s }))),
};
export default {
  async fetch(request: Request, env: { DB: D1Database }) {
    const db = new PrismaClient({ adapter: new PrismaD1(env.DB) });
    try {
      return Response.json(await actions[new URL(request.url).pathname.slice(1)](db, await request.json()));
    } catch (error: any) {
      return Response.json({ name: error.name, code: error.code, meta: error.meta?.target ?? null }, { status: 500 });
    }
  },
};
