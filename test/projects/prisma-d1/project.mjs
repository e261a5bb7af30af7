export default {
  title: "Prisma on D1 (its D1 adapter)",
  does: "generated client: nested writes, filters, aggregates, groups, big integers, bytes, dates, upserts, cascades, error codes",
  packages: { prisma: "7.10.0", "@prisma/client": "7.10.0", "@prisma/adapter-d1": "7.10.0" },
  build: ["prisma generate"],
  migrations: ["DB"],
  async script(t) {
    t.check((await t.post("/create", { email: "a@a", name: "Ada", posts: [{ title: "one", score: 1.5 }, { title: "two", score: 3 }] })).json().posts?.length === 2, "nested rows");
    await t.post("/create", { email: "b@b", name: null, posts: [] });
    t.check((await t.post("/create", { email: "a@a", name: "x", posts: [] })).json().code === "P2002", "the email is taken");
    t.check((await t.post("/list", {})).json()[0].posts.length === 2, "relations");
    await t.post("/stats", {});
    await t.post("/grouped", {});
    t.check((await t.post("/types", {})).json().big === String(2 ** 40), "types");
    await t.post("/update", { id: 2, name: "Bob" });
    t.check((await t.post("/update", { id: 99, name: "x" })).json().code === "P2025", "nobody there");
    await t.post("/upsert", { email: "b@b", name: "Bo" });
    await t.post("/batch", {});
    await t.post("/remove", { id: 1 });
    t.check((await t.post("/batch", {})).json()[1] === 0, "cascades");
    await t.post("/raw", {});
  },
};
