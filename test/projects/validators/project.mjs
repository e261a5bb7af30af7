export default {
  title: "zod, valibot, jose, date-fns",
  does: "an order and a form checked, refused with paths; JSON schema; tokens signed, verified, sealed, expired; dates by locale",
  packages: { zod: "4.6.7", valibot: "1.5.0", jose: "6.2.17", "date-fns": "4.4.0" },
  async script(t) {
    const order = { id: "5b0f5c1e-7f0a-4b7e-9a53-6d7c9d3f0a11", email: "ADA@Example.com", lines: [{ sku: "AB-1", count: 2 }], total: "9.99", kind: { type: "gift", to: "Bob" }, when: "2026-01-02T03:04:05Z" };
    t.check((await t.post("/zod", order)).json().ok.email === "ada@example.com", "an order");
    t.check((await t.post("/zod", { ...order, id: "x", lines: [], kind: { type: "none" } })).json().issues.length >= 3, "a bad order");
    await t.post("/schema", {});
    t.check((await t.post("/valibot", { name: " Ada ", age: "36", user: "ada" })).json().ok.name === "Ada", "a form");
    await t.post("/valibot", { name: "A", age: "7", user: "taken" });
    await t.post("/valibot", { name: "same", age: "20", user: "same" });
    t.check((await t.post("/dates", { from: "24.12.2026", days: 10 })).json().days === 14, "business days");
    t.check((await t.post("/jwt", { claims: { sub: "ada" } })).json().expired === "ERR_JWT_EXPIRED", "tokens");
  },
};
