export default {
  title: "Drizzle on Durable Objects (durable-sqlite)",
  does: "migrations by drizzle-kit, inserts, joins, relations, async transactions, one that throws, upserts, cascades, errors",
  packages: { "drizzle-orm": "0.45.4", "drizzle-kit": "0.31.11" },
  build: ["drizzle-kit generate --name first"],
  async script(t) {
    const call = async (method, ...args) => (await t.post(`/a/${method}`, args)).json();
    t.check((await call("addUser", { name: "Ada", email: "a@a", settings: { theme: "dark" } })).settings.theme === "dark", "a user");
    await call("addUser", { name: "Bob", email: "b@b" });
    t.check((await t.post("/a/addUser", [{ name: "Cy", email: "a@a" }])).status === 500, "the email is taken");
    await call("addOrders", 1, [1.5, 2.5, 4]);
    await call("addOrders", 9, [1]);
    t.check((await call("report"))[0].total === 8, "the report");
    t.check((await call("withOrders"))[0].orders.length === 2, "relations");
    t.check((await call("pay", 1, true)).error === "Rollback", "the transaction throws");
    await call("paidCount");
    t.check((await call("pay", 1, false)).paid === true, "the transaction is done");
    t.check((await call("paidCount")) === 1, "one is paid");
    t.check((await call("upsert", "b@b", "Bo"))[0].id === 2, "upsert");
    t.check((await call("remove", 1)) === 0, "its orders go with a user");
    t.check((await call("raw")).length >= 3, "its tables");
    await t.post("/b/report", []);
  },
};
