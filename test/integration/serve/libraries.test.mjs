// Ordinary npm libraries run unchanged; WebAssembly, text and data imports work.
import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { project, root, serve } from "../lib/server.mjs";

function withPackages(files) {
  const dir = project(files);
  symlinkSync(path.join(root, "node_modules"), path.join(dir, "node_modules"));
  return dir;
}

test("Hono with zod, in TypeScript", async () => {
  const server = await serve(withPackages({
    "wrangler.toml": 'name = "hono"\nmain = "src/index.ts"\ncompatibility_date = "2026-01-01"\n',
    "src/index.ts": `import { Hono } from "hono";
import { cors } from "hono/cors";
import { z } from "zod";
const app = new Hono<{ Bindings: { X: string } }>();
app.use("*", cors());
const Body = z.object({ name: z.string().min(2), age: z.number().int() });
app.get("/hello/:name", (c) => c.text("hello " + c.req.param("name")));
app.post("/people", async (c) => {
  const parsed = Body.safeParse(await c.req.json());
  return parsed.success ? c.json(parsed.data, 201) : c.json({ issues: parsed.error.issues.length }, 400);
});
app.onError((error, c) => c.text(error.message, 500));
app.get("/boom", () => { throw new Error("boom"); });
export default app;`,
  }));
  assert.equal(await (await server.fetch("/hello/ann")).text(), "hello ann");
  const created = await server.fetch("/people", { method: "POST", body: '{"name":"Bo","age":3}' });
  assert.equal(created.status, 201);
  assert.equal(created.headers.get("access-control-allow-origin"), "*");
  assert.deepEqual(await created.json(), { name: "Bo", age: 3 });
  assert.equal((await server.fetch("/people", { method: "POST", body: '{"name":"B","age":1.5}' })).status, 400);
  assert.equal(await (await server.fetch("/boom")).text(), "boom");
  assert.equal((await server.fetch("/none")).status, 404);
  await server.stop();
});

test("itty-router", async () => {
  const server = await serve(withPackages({
    "index.js": `import { AutoRouter } from "itty-router";
const router = AutoRouter();
router.get("/items/:id", ({ id, query }) => ({ id, q: query.q ?? null }));
export default router;`,
  }));
  assert.deepEqual(await (await server.fetch("/items/7?q=x")).json(), { id: "7", q: "x" });
  assert.equal((await server.fetch("/nowhere")).status, 404);
  await server.stop();
});

test("WK-3: wasm, text, data and JSON imports", async () => {
  // (module (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
  const wasm = Buffer.from("0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b", "hex");
  const server = await serve(project({
    "add.wasm": wasm,
    "page.html": "<p>hi</p>",
    "blob.bin": Buffer.from([1, 2, 250]),
    "data.json": '{"n": 5}',
    "index.js": `import module from "./add.wasm";
import page from "./page.html";
import blob from "./blob.bin";
import data from "./data.json";
const { exports } = new WebAssembly.Instance(module);
export default { async fetch() {
  const again = await WebAssembly.instantiate(module);
  return Response.json({ sum: exports.add(2, 3), again: again.exports.add(4, 5), page, blob: [...new Uint8Array(blob)], n: data.n });
} };`,
  }));
  assert.deepEqual(await (await server.fetch("/")).json(), { sum: 5, again: 9, page: "<p>hi</p>", blob: [1, 2, 250], n: 5 });
  await server.stop();
});
