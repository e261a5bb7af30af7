import { type Generated, Kysely, Migrator, ParseJSONResultsPlugin, sql } from "kysely";
import { jsonArrayFrom } from "kysely/helpers/sqlite";
import { D1Dialect } from "kysely-d1";

interface Schema {
  person: { id: Generated<number>; name: string; age: number | null };
  pet: { id: Generated<number>; owner: number; kind: string };
}
const migrations = {
  "001": {
    async up(db: Kysely<any>) {
      await db.schema.createTable("person").addColumn("id", "integer", (c) => c.primaryKey().autoIncrement()).addColumn("name", "text", (c) => c.notNull().unique()).addColumn("age", "integer").execute();
      await db.schema.createTable("pet").addColumn("id", "integer", (c) => c.primaryKey()).addColumn("owner", "integer", (c) => c.references("person.id")).addColumn("kind", "text").execute();
    },
  },
  "002": {
    async up(db: Kysely<any>) {
      await db.schema.createIndex("pet_owner").on("pet").column("owner").execute();
    },
  },
};
export default {
  async fetch(request: Request, env: { DB: D1Database }) {
    const db = new Kysely<Schema>({ dialect: new D1Dialect({ database: env.DB }), plugins: [new ParseJSONResultsPlugin()] });
    const { pathname } = new URL(request.url);
    try {
      return Response.json(await actions[pathname.slice(1)](db, request.method === "POST" ? await request.json() : null));
    } catch (error) {
      return Response.json({ error: (error as Error).message }, { status: 500 });
    }
  },
};
const actions: Record<string, (db: Kysely<Schema>, body: any) => Promise<unknown>> = {
  async migrate(db) {
    const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
    const { error, results } = await migrator.migrateToLatest();
    return { error: error ? String(error) : null, results };
  },
  async people(db, body) {
    const result = await db.insertInto("person").values(body).returningAll().execute();
    return result;
  },
  async pets(db, body) {
    const { insertId, numInsertedOrUpdatedRows } = await db.insertInto("pet").values(body).executeTakeFirstOrThrow();
    return { insertId: String(insertId), rows: String(numInsertedOrUpdatedRows) };
  },
  async all(db) {
    return db
      .selectFrom("person")
      .select((eb) => ["name", "age", jsonArrayFrom(eb.selectFrom("pet").select(["kind"]).whereRef("pet.owner", "=", "person.id").orderBy("kind")).as("pets")])
      .orderBy("name")
      .execute();
  },
  async grow(db) {
    const result = await db.updateTable("person").set((eb) => ({ age: eb("age", "+", 1) })).where("age", "is not", null).executeTakeFirst();
    return String(result.numUpdatedRows);
  },
  async stats(db) {
    return db.with("kinds", (q) => q.selectFrom("pet").select(["kind", (eb) => eb.fn.countAll<number>().as("n")]).groupBy("kind")).selectFrom("kinds").selectAll().orderBy("n", "desc").execute();
  },
  async tables(db) {
    return (await db.introspection.getTables()).map((t) => [t.name, t.columns.map((c) => c.name)]);
  },
  async raw(db) {
    return (await sql<{ v: number }>`select ${7} + 1 as v, ${"x"} as s, ${null} as n`.execute(db)).rows;
  },
  async transaction(db) {
    return db.transaction().execute(async () => "never");
  },
};
