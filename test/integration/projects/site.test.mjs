// Workers Sites: files of a folder as a KV namespace, with a manifest of their names.
import assert from "node:assert/strict";
import test from "node:test";
import { project, run, serve, write } from "../lib/cairn.mjs";

const files = { "public/index.html": "<h1>home</h1>", "public/css/a b.css": "css", "public/noext": "plain", "public/.hidden": "no", "public/skip/x.txt": "no", "public/data.json": "[1]" };
const config = (more = "") => `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[site]\nbucket = "./public"\nexclude = ["skip"]\n${more}`;
const handler = `
async function respond(request, space, manifest) {
  const path = decodeURIComponent(new URL(request.url).pathname.slice(1)) || "index.html";
  if (path === "names") return Response.json(manifest);
  if (path === "writes") return new Response(await space.put("x", "y").catch((e) => e.message));
  if (path === "json") return Response.json([await space.get(manifest["data.json"], "json"), await space.getWithMetadata(manifest.noext), await space.get("nothing"), (await space.get(manifest.noext, "arrayBuffer")).byteLength]);
  const body = manifest[path] && (await space.get(manifest[path], { type: "stream" }));
  return body ? new Response(body) : new Response("none", { status: 404 });
}`;

async function check(server) {
  const get = async (target) => { const r = await server.fetch(target); return [r.status, await r.text()]; };
  const names = JSON.parse((await get("/names"))[1]);
  assert.deepEqual(Object.keys(names), ["css/a b.css", "data.json", "index.html", "noext"]);
  assert.match(names["index.html"], /^index\.[0-9a-f]{10}\.html$/);
  assert.deepEqual(await get("/"), [200, "<h1>home</h1>"]);
  assert.deepEqual(await get("/css/a%20b.css"), [200, "css"]);
  assert.deepEqual(await get("/skip/x.txt"), [404, "none"]);
  assert.deepEqual(JSON.parse((await get("/json"))[1]), [[1], { value: "plain", metadata: null, cacheStatus: null }, null, 5]);
  assert.match((await get("/writes"))[1], /__STATIC_CONTENT cannot be written/);
  return names;
}

test("as a module; a file that changes gets another key", async (t) => {
  const dir = project(t, { ...files, "wrangler.toml": config(),
    "index.js": `import text from "__STATIC_CONTENT_MANIFEST"; const manifest = JSON.parse(text); export default { fetch: (request, env) => respond(request, env.__STATIC_CONTENT, manifest) };` + handler });
  const server = await serve(t, dir);
  const names = await check(server);
  await server.kill();
  write(dir, { "public/index.html": "<h1>new</h1>" });
  const again = await serve(t, dir);
  assert.notEqual((await (await again.fetch("/names")).json())["index.html"], names["index.html"]);
  assert.equal(await (await again.fetch("/")).text(), "<h1>new</h1>");
});

test("in the older syntax, by globals, from an entry point", async (t) => {
  const dir = project(t, { ...files, "wrangler.toml": config(`entry-point = "workers-site"\n`).replace(`main = "index.js"\n`, ""),
    "workers-site/index.js": `addEventListener("fetch", (event) => event.respondWith(respond(event.request, __STATIC_CONTENT, JSON.parse(__STATIC_CONTENT_MANIFEST))));` + handler });
  await check(await serve(t, dir));
});

test("a site without a worker, and with assets, is refused", (t) => {
  assert.match(run(["build", project(t, { ...files, "wrangler.toml": config().replace(`main = "index.js"\n`, "") })]).stderr, /"site" needs a worker: the key "main" is missing/);
  assert.match(run(["build", project(t, { ...files, "wrangler.toml": config(`[assets]\ndirectory = "public"\n`) })]).stderr, /"site" and "assets" exclude each other/);
});
