import { fromHono, OpenAPIRoute, D1CreateEndpoint, D1ListEndpoint, D1ReadEndpoint, D1DeleteEndpoint, contentJson, NotFoundException } from "chanfana";
import { Hono } from "hono";
import { z } from "zod";

type Env = { DB: D1Database };
const Task = z.object({ id: z.number().int(), name: z.string().min(1), done: z.boolean() });

class CreateTask extends OpenAPIRoute {
  schema = {
    request: { body: contentJson(z.object({ name: z.string().min(1), done: z.boolean().default(false) })) },
    responses: { "201": { description: "the task", ...contentJson(Task) } },
  };
  async handle(c: any) {
    const { body } = await this.getValidatedData<typeof this.schema>();
    const row = await c.env.DB.prepare("insert into tasks (name, done) values (?, ?) returning *").bind(body.name, Number(body.done)).first();
    return c.json({ ...row, done: !!row.done }, 201);
  }
}
class GetTask extends OpenAPIRoute {
  schema = {
    request: { params: z.object({ id: z.coerce.number().int() }), query: z.object({ upper: z.coerce.boolean().optional() }) },
    responses: { "200": { description: "the task", ...contentJson(Task) }, ...NotFoundException.schema() },
  };
  async handle(c: any) {
    const { params, query } = await this.getValidatedData<typeof this.schema>();
    const row = await c.env.DB.prepare("select * from tasks where id = ?").bind(params.id).first();
    if (!row) throw new NotFoundException("no such task");
    return { ...row, name: query.upper ? row.name.toUpperCase() : row.name, done: !!row.done };
  }
}
const meta = { model: { schema: z.object({ id: z.number().int(), name: z.string(), done: z.number().int() }), primaryKeys: ["id"], tableName: "tasks" } };
class ListTasks extends D1ListEndpoint {
  _meta = meta;
  dbName = "DB";
  filterFields = ["done"];
  orderByFields = ["id", "name"];
}
class ReadRow extends D1ReadEndpoint {
  _meta = meta;
  dbName = "DB";
}
class DeleteRow extends D1DeleteEndpoint {
  _meta = meta;
  dbName = "DB";
}
const app = new Hono<{ Bindings: Env }>();
const openapi = fromHono(app, { docs_url: "/", schema: { info: { title: "Tasks", version: "1" } } });
openapi.post("/tasks", CreateTask);
openapi.get("/tasks/:id", GetTask);
openapi.get("/rows", ListTasks);
openapi.get("/rows/:id", ReadRow);
openapi.delete("/rows/:id", DeleteRow);
export default app;
