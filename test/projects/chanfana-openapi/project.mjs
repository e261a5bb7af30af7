export default {
  title: "chanfana on Hono, OpenAPI",
  does: "tasks in D1 behind validated endpoints, its generated endpoints, the OpenAPI document and page",
  packages: { chanfana: "3.4.0", hono: "4.13.17", zod: "4.6.7" },
  migrations: ["DB"],
  async script(t) {
    t.check((await t.post("/tasks", { name: "write" })).status === 201, "a task is made");
    await t.post("/tasks", { name: "read", done: true });
    t.check((await t.post("/tasks", { name: "" })).status === 400, "an empty name is refused");
    await t.post("/tasks", { done: "maybe" });
    t.check((await t.get("/tasks/1?upper=true")).json().name === "WRITE", "the task is there");
    await t.get("/tasks/one");
    t.check((await t.get("/tasks/99")).status === 404, "no task 99");
    t.check((await t.get("/rows")).json().result.length === 2, "two rows");
    await t.get("/rows?done=1");
    await t.get("/rows?order_by=name&order_by_direction=desc");
    await t.get("/rows/2");
    await t.request("/rows/2", { method: "DELETE" });
    t.check((await t.get("/rows")).json().result.length === 1, "one row is left");
    t.check((await t.get("/openapi.json")).json().paths["/tasks"].post, "the document");
    await t.get("/");
  },
};
