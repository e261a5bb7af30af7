import { AutoRouter, cors, error, IttyRouter, json, text, withContent, withCookies, withParams } from "itty-router";

const { preflight, corsify } = cors({ origin: ["https://front.example"] });
const api = IttyRouter({ base: "/api" })
  .all("*", withParams)
  .post("/items/:id", withContent, async (request: any, env: any) => {
    await env.STORE.put(request.id, JSON.stringify(request.content instanceof FormData ? [...request.content] : request.content));
    return json({ id: request.id, content: request.content }, { status: 201 });
  })
  .get("/items/:id", async (request: any, env: any) => json((await env.STORE.get(request.id, "json")) ?? (await error(404, "no such item").json())))
  .get("/files/:path+", (request: any) => text(request.params.path))
  .get("/image.:kind?", (request: any) => json({ kind: request.params.kind ?? "none" }));

const router = AutoRouter({ before: [preflight] });
router
  .all("/api/*", api.fetch)
  .get("/cookies", withCookies, (request: any) => request.cookies)
  .get("/query", (request) => corsify(json(request.query), request))
  .get("/throws", () => {
    throw new Error("on purpose");
  })
  .get("/refused", () => error(418, { teapot: true }));
export default router;
