export default {
  title: "Drizzle on D1",
  does: "migrations by drizzle-kit, rows with blobs and dates, batches (one undone), relations, prepared statements, errors",
  packages: { "drizzle-orm": "0.45.4", "drizzle-kit": "0.31.11" },
  build: ["drizzle-kit generate --name first"],
  migrations: ["DB"],
  async script(t) {
    t.check((await t.post("/posts", { title: "one", body: "hello", tags: ["a", "b"] })).status === 201, "a post");
    await t.post("/posts", { title: "two", body: "…", tags: ["b"] });
    t.check((await t.get("/posts")).json()[0].tags.length === 2, "with its tags");
    t.check((await t.get("/tags")).json()[0].n === 2, "grouped");
    t.check((await t.post("/broken-batch", {})).status === 500, "a batch that fails");
    t.check((await t.get("/posts")).json().length === 2, "nothing of it stays");
    t.check((await t.request("/posts", { method: "PUT" })).json().changes === 2, "an update");
    await t.get("/prepared");
    t.check((await t.request("/posts?id=1", { method: "DELETE" })).json().length === 2, "deleted");
    await t.get("/raw");
    await t.post("/posts", { body: "no title", tags: [] });
  },
};
