import { createRoute, OpenAPIHono, z } from "@hono/zod-openapi";
import { Suspense } from "hono/jsx";
import { jsxRenderer } from "hono/jsx-renderer";
import { renderToReadableStream } from "hono/jsx/streaming";

const app = new OpenAPIHono({ defaultHook: (result, c) => (result.success ? undefined : c.json({ issues: result.error.issues.map((i) => [i.path.join("."), i.code]) }, 422)) });
const Book = z.object({ id: z.string().openapi({ example: "1" }), title: z.string() }).openapi("Book");
const route = createRoute({
  method: "get",
  path: "/books/{id}",
  request: { params: z.object({ id: z.string().regex(/^\d+$/) }), query: z.object({ shout: z.stringbool().optional() }) },
  responses: { 200: { description: "a book", content: { "application/json": { schema: Book } } }, 422: { description: "wrong" } },
});
app.openapi(route, (c) => {
  const { id } = c.req.valid("param");
  return c.json({ id, title: c.req.valid("query").shout ? "EMMA" : "Emma" }, 200);
});
app.openapi(
  createRoute({ method: "post", path: "/books", request: { body: { content: { "application/json": { schema: Book } }, required: true } }, responses: { 201: { description: "made", content: { "application/json": { schema: Book } } } } }),
  (c) => c.json(c.req.valid("json"), 201),
);
app.doc31("/doc", { openapi: "3.1.0", info: { title: "Books", version: "1" } });
app.use("/page/*", jsxRenderer(({ children, title }: any) => <html><head><title>{title}</title></head><body>{children}</body></html>));
app.get("/page/:name", (c) => (c.render as any)(<h1>{c.req.param("name")}</h1>, { title: "A page" }));
const Later = async () => (await new Promise((r) => setTimeout(r, 200)), <p>later</p>);
app.get("/stream", (c) => c.body(renderToReadableStream(<html><body><Suspense fallback={<p>wait</p>}><Later /></Suspense></body></html>), { headers: { "content-type": "text/html; charset=UTF-8", "transfer-encoding": "chunked" } }));
export default app;
