export default {
  title: "Kysely on D1 (kysely-d1)",
  does: "its migrator, inserts, JSON aggregates, common table expressions, introspection, errors",
  packages: { kysely: "0.28.18", "kysely-d1": "0.4.0" },
  async script(t) {
    t.check((await t.get("/migrate")).json().error === null, "migrated");
    await t.get("/migrate");
    t.check((await t.post("/people", [{ name: "Ada", age: 36 }, { name: "Bob", age: null }])).json().length === 2, "people");
    t.check((await t.post("/people", { name: "Ada", age: 1 })).status === 500, "a name is unique");
    await t.post("/pets", [{ owner: 1, kind: "dog" }, { owner: 1, kind: "cat" }, { owner: 2, kind: "dog" }]);
    t.check((await t.get("/all")).json()[0].pets.length === 2, "nested rows");
    t.check((await t.get("/grow")).json() === "1", "an update");
    await t.get("/stats");
    await t.get("/tables");
    await t.get("/raw");
    await t.get("/transaction");
    await t.get("/all");
  },
};
