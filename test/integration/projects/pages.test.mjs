// Pages projects: `pages_build_output_dir` with `_worker.js`, with `functions/` (tools/bundler/pages.mjs, P1 to P3), with neither.
import assert from "node:assert/strict";
import test from "node:test";
import { project, run, serve } from "../lib/cairn.mjs";

const config = (more = "") => `name = "site"\npages_build_output_dir = "./dist"\ncompatibility_date = "2026-01-01"\n${more}`;
const get = async (server, target, init) => {
  const response = await server.fetch(target, { redirect: "manual", ...init });
  return [response.status, await response.text()];
};

test("P1 to P3: functions are routes, with parameters, methods and middleware", async (t) => {
  const tell = (name) => `export const onRequest = ({ params, functionPath, data }) => Response.json({ name: "${name}", params, functionPath, data });`;
  const dir = project(t, {
    "wrangler.toml": config(`[vars]\nX = "x"\n`),
    "dist/index.html": "home", "dist/page.html": "page", "dist/_headers": "/page\n  x-static: yes\n", "dist/node_modules/a.js": "no",
    "functions/_middleware.ts": `
export const onRequest = [
  async (context: any) => { context.data.seen = [...(context.data.seen ?? []), "outer"]; const r = await context.next(); r.headers.set("x-outer", "1"); return r; },
  async ({ request, next }: any) => (new URL(request.url).pathname === "/blocked" ? new Response("no", { status: 403 }) : next()),
];`,
    "functions/api/_middleware.js": `export const onRequestGet = async (c) => { c.data.seen.push("inner"); return c.next(); };`,
    "functions/api/index.js": tell("api"),
    "functions/api/[id].ts": tell("id").replace("({", "({").replace("}) =>", "}: any) =>"),
    "functions/api/special.js": tell("special"),
    "functions/api/[id]/rest/[[path]].js": tell("rest"),
    "functions/api/methods.js": `export const onRequestGet = () => new Response("got"); export const onRequestPost = async ({ request, env }) => new Response("posted " + (await request.text()) + env.X);`,
    "functions/rewrite.js": `export const onRequest = ({ next }) => next("/page");`,
    "functions/wrong.js": `export const onRequest = () => "text";`,
    "functions/lazy.js": `export const onRequest = async () => new Response((await import("../lib/shared.js")).shared);`,
    "lib/shared.js": `export const shared = "shared";`,
    "functions/types.d.ts": `not a function`,
  });
  const server = await serve(t, dir);
  const json = async (target) => (await server.fetch(target)).json();
  assert.deepEqual(await json("/api"), { name: "api", params: {}, functionPath: "/api", data: { seen: ["outer", "inner"] } });
  assert.deepEqual(await json("/api/"), { name: "api", params: {}, functionPath: "/api", data: { seen: ["outer", "inner"] } });
  assert.deepEqual((await json("/api/42")).params, { id: "42" });
  assert.equal((await json("/api/special")).name, "special");
  assert.deepEqual(await json("/api/7/rest/a/b"), { name: "rest", params: { id: "7", path: ["a", "b"] }, functionPath: "/api/7/rest", data: { seen: ["outer", "inner"] } });
  assert.deepEqual((await json("/api/7/rest")).params, { id: "7" });
  assert.deepEqual(await get(server, "/api/methods"), [200, "got"]);
  assert.deepEqual(await get(server, "/api/methods", { method: "POST", body: "b" }), [200, "posted bx"]);
  assert.deepEqual(await get(server, "/blocked"), [403, "no"]);
  assert.deepEqual(await get(server, "/lazy"), [200, "shared"]);
  const page = await server.fetch("/page");
  assert.deepEqual([page.status, await page.text(), page.headers.get("x-outer"), page.headers.get("x-static")], [200, "page", "1", "yes"]);
  assert.deepEqual(await get(server, "/rewrite"), [200, "page"]);
  assert.deepEqual(await get(server, "/unknown/path"), [200, "home"]);
  assert.deepEqual(await get(server, "/node_modules/a.js"), [200, "home"]);
  assert.equal((await get(server, "/wrong"))[0], 500);
});

test("_worker.js is the worker, with _routes.json; its source is not served", async (t) => {
  const dir = project(t, {
    "wrangler.toml": config(), "dist/index.html": "home", "dist/about.html": "about", "dist/404.html": "nothing here", "dist/static/a.txt": "a", "functions/ignored.js": "",
    "dist/_worker.js": `import { word } from "./lib.js"; export default { async fetch(request, env) {
      const { pathname } = new URL(request.url);
      return pathname.startsWith("/api/") ? new Response(word + pathname) : env.ASSETS.fetch(request); } };`,
    "dist/lib.js": `export const word = "worker ";`,
    "dist/_routes.json": `{ "version": 1, "include": ["/api/*", "/about"], "exclude": ["/api/static/*"] }`,
  });
  const server = await serve(t, dir);
  assert.deepEqual(await get(server, "/api/x"), [200, "worker /api/x"]);
  assert.deepEqual(await get(server, "/api/static/x"), [404, "nothing here"]);
  assert.deepEqual(await get(server, "/about"), [200, "about"]);
  assert.deepEqual(await get(server, "/static/a.txt"), [200, "a"]);
  for (const hidden of ["/_worker.js", "/_routes.json"]) assert.deepEqual(await get(server, hidden), [404, "nothing here"], hidden);
});

test("assets alone, a folder as _worker.js, and what excludes each other", async (t) => {
  const plain = await serve(t, project(t, { "wrangler.toml": config(), "dist/index.html": "app" }));
  assert.deepEqual(await get(plain, "/any/where"), [200, "app"]);
  const folder = await serve(t, project(t, {
    "wrangler.toml": config(), "dist/index.html": "app", "dist/_worker.js/index.js": `import x from "./chunks/x.js"; export default { fetch: () => new Response(x) };`,
    "dist/_worker.js/chunks/x.js": `export default "chunk";`,
  }));
  assert.deepEqual(await get(folder, "/"), [200, "chunk"]);
  assert.match(run(["build", project(t, { "wrangler.toml": config(`main = "x.js"\n`) })]).stderr, /wrangler\.toml:2:\d+: "pages_build_output_dir" and "main" exclude each other/);
  assert.match(run(["build", project(t, { "wrangler.toml": config(), "dist/_worker.js": "", "dist/_routes.json": "[" })]).stderr, /_routes\.json:1:\d+/);
});
