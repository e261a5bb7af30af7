// What may stand in a project: languages, imports, packages, and what is said when it does not build.
import assert from "node:assert/strict";
import { readFileSync, readdirSync, statSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { project, run, serve, write } from "../lib/cairn.mjs";

// (module (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
const wasm = Buffer.from("0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b", "hex");

test("text, data, wasm and JSON imports, defines, aliases, top-level await, dynamic import", async (t) => {
  const dir = project(t, {
    "wrangler.toml": `
name = "w"
main = "src/index.tsx"
compatibility_date = "2026-01-01"
jsx_factory = "h"
rules = [{ type = "Text", globs = ["**/*.md"], fallthrough = true }, { type = "Data", globs = ["data/*.dat"] }]
define = { VERSION = '"1.2"' }
alias = { "old-name" = "./src/new-name.ts" }
`,
    "src/index.tsx": `
import text from "./hello.txt";
import markdown from "../docs/a.md";
import data from "../data/b.dat";
import module from "./add.wasm";
import again from "./add.wasm?module";
import json from "./c.json";
import aliased from "old-name";
import { env, WorkerEntrypoint } from "cloudflare:workers";
declare const VERSION: string;
const h = (tag: string, props: unknown, ...children: string[]) => "<" + tag + ">" + children.join("") + "</" + tag + ">";
enum Colour { Red = 3 }
const later = await Promise.resolve("awaited");
function decorate(value: any, context: ClassMethodDecoratorContext) { return () => "decorated " + String(context.name); }
class C { @decorate m() { return ""; } }
export default {
  async fetch() {
    const { lazy } = await import("./lazy");
    const add = new WebAssembly.Instance(module).exports.add as (a: number, b: number) => number;
    return Response.json({
      text, markdown, data: new TextDecoder().decode(data), add: add(2, 3), again: again instanceof WebAssembly.Module,
      json: json.list, aliased, lazy, later, version: VERSION, mode: process.env.NODE_ENV, colour: Colour.Red,
      jsx: <b>x</b>, url: import.meta.url, decorated: new C().m(), name: C.name, entry: typeof WorkerEntrypoint, env: env.X,
    });
  },
};`,
    "src/hello.txt": "hello",
    "docs/a.md": "# md",
    "data/b.dat": "bytes",
    "src/add.wasm": wasm,
    "src/c.json": `{"list":[1]}`,
    "src/new-name.ts": `export default "new" satisfies string;`,
    "src/lazy.ts": `export const lazy: string = "lazy";`,
    ".dev.vars": "X=x\n",
  });
  const server = await serve(t, dir);
  assert.deepEqual(await (await server.fetch("/")).json(), {
    text: "hello", markdown: "# md", data: "bytes", add: 5, again: true, json: [1], aliased: "new", lazy: "lazy",
    later: "awaited", version: "1.2", mode: "production", colour: 3, jsx: "<b>x</b>", url: "file:///src/index.tsx",
    decorated: "decorated m", name: "C", entry: "function", env: "x",
  });
});

test("packages from npm: hono, itty-router, zod", async (t) => {
  const dir = project(
    t,
    {
      "src/index.ts": `
import { Hono } from "hono";
import { AutoRouter } from "itty-router";
import { z } from "zod";
const schema = z.object({ n: z.coerce.number().int() });
const itty = AutoRouter({ base: "/itty" });
itty.get("/:name", ({ params }) => ({ hello: params.name }));
const app = new Hono<{ Bindings: { A: string } }>();
app.get("/hono/:id", (c) => c.json({ id: c.req.param("id"), query: c.req.query("q"), a: c.env.A }));
app.post("/zod", async (c) => {
  const result = schema.safeParse(await c.req.json());
  return c.json(result.success ? result.data : { issues: result.error.issues.length }, result.success ? 200 : 400);
});
app.all("/itty/*", (c) => itty.fetch(c.req.raw));
app.notFound((c) => c.text("nothing here", 404));
export default app;`,
      ".dev.vars": "A=a\n",
    },
    { npm: true },
  );
  const server = await serve(t, dir);
  assert.deepEqual(await (await server.fetch("/hono/7?q=x")).json(), { id: "7", query: "x", a: "a" });
  assert.deepEqual(await (await server.fetch("/itty/you")).json(), { hello: "you" });
  const post = (body) => server.fetch("/zod", { method: "POST", body: JSON.stringify(body) });
  assert.deepEqual(await (await post({ n: "5" })).json(), { n: 5 });
  assert.equal((await post({ n: "x" })).status, 400);
  assert.equal((await server.fetch("/nope")).status, 404);
});

test("JSX as the project's tsconfig has it", async (t) => {
  const dir = project(
    t,
    {
      "src/index.tsx": `import { Hono } from "hono";
const Page = ({ name }: { name: string }) => <main><h1>Hello {name}</h1></main>;
const app = new Hono();
app.get("/", (c) => c.html(<Page name="<you>" />));
export default app;`,
      "tsconfig.json": `{ "compilerOptions": { "jsx": "react-jsx", "jsxImportSource": "hono/jsx" } }`,
    },
    { npm: true },
  );
  const server = await serve(t, dir);
  assert.equal(await server.text("/"), "<main><h1>Hello &lt;you&gt;</h1></main>");
});

test("the older syntax: addEventListener and globals", async (t) => {
  const dir = project(t, {
    "index.js": `addEventListener("fetch", (event) => event.respondWith(answer(event.request)));
async function answer(request) { return new Response("sw " + GREETING + " " + new URL(request.url).pathname); }`,
    ".dev.vars": "GREETING=hi\n",
  });
  const server = await serve(t, dir);
  assert.equal(await server.text("/x"), "sw hi /x");
});

test("modules and globals of Node.js, under nodejs_compat only", async (t) => {
  const config = (flags) => `name = "w"\nmain = "index.mjs"\ncompatibility_date = "2026-01-01"\ncompatibility_flags = [${flags}]\n`;
  const dir = project(t, {
    "wrangler.toml": config(`"nodejs_compat"`),
    "index.mjs": `import path, { basename } from "node:path";
import EventEmitter, { once } from "events";
import { Buffer as B } from "node:buffer";
const { createHash } = require("node:crypto");
export default { fetch: () => Response.json({
  join: path.join("a", "..", "b"), base: basename("/x/y.z"), emitter: typeof new EventEmitter().on, once: typeof once,
  same: B === Buffer, hex: Buffer.from("hi").toString("hex"), process: typeof process.nextTick,
  hash: createHash("sha256").update("").digest("hex").slice(0, 8),
}) };`,
  });
  const server = await serve(t, dir);
  assert.deepEqual(await (await server.fetch("/")).json(), {
    join: "b", base: "y.z", emitter: "function", once: "function", same: true, hex: "6869", process: "function", hash: "e3b0c442",
  });
  write(dir, { "wrangler.toml": config(""), "index.mjs": `export default { fetch: () => new Response(typeof Buffer) };` });
  const plain = await serve(t, dir);
  assert.equal(await plain.text("/"), "undefined");
});

test("CommonJS, minified, names kept", async (t) => {
  const dir = project(t, {
    "wrangler.toml": `name = "w"\nmain = "index.cjs"\nminify = true\ncompatibility_date = "2026-01-01"\n`,
    "index.cjs": `const { part } = require("./part.cjs");\nmodule.exports = { default: { fetch() { return new Response(part()); } } };`,
    "part.cjs": `exports.part = function longFunctionName() { return longFunctionName.name; };`,
  });
  const server = await serve(t, dir);
  assert.equal(await server.text("/"), "longFunctionName");
});

test("what does not build is reported as esbuild words it", (t) => {
  const cases = [
    [`import "./missing";\nexport default {}`, /\[ERROR\] Could not resolve "\.\/missing"\n\n {4}index\.js:1:7:/],
    [`export default { fetch() { return 1 +; } }`, /\[ERROR\] Unexpected ";"\n\n {4}index\.js:1:37:\n {6}1 │ export default/],
    [`import fs from "node:fs"; export default fs`, /Could not resolve "node:fs"[\s\S]*need the compatibility flag "nodejs_compat"/],
    [`import x from "cloudflare:nope"; export default x`, /Could not resolve "cloudflare:nope"[\s\S]*cairn does not have this module/],
    [`import x from "left-pad-of-nowhere"; export default x`, /Could not resolve "left-pad-of-nowhere"/],
  ];
  for (const [source, text] of cases) {
    const dir = project(t, { "index.js": source });
    const result = run(["build", dir]);
    assert.equal(result.status, 1);
    assert.match(result.stderr, text);
    assert.match(result.stderr, /\ncairn: w: the project does not build\n$/);
  }
  const dir = project(t, { "wrangler.toml": `name = "w"\nmain = "nope.js"\n` });
  assert.match(run(["build", dir]).stderr, /"main" names nope\.js, which is not there/);
});

test("a build command runs first, and its failure is the build's", (t) => {
  const config = (command) =>
    `name = "w"\nmain = "dist/out.js"\ncompatibility_date = "2026-01-01"\n[build]\ncommand = "${command}"\n`;
  const dir = project(t, {
    "wrangler.toml": config("mkdir -p dist && cp src/in.js dist/out.js"),
    "src/in.js": "export default {}",
  });
  assert.equal(run(["build", dir]).status, 0);
  write(dir, { "wrangler.toml": config("exit 3") });
  assert.match(run(["build", dir]).stderr, /the build command "exit 3" failed with exit code 3/);
});

test("an unchanged project is not built again; a changed input is", (t) => {
  const dir = project(t, { "index.js": `import "./a.js"; export default {}`, "a.js": "console.log(1)" });
  const unchanged = () => /nothing changed/.test(run(["build", dir]).stdout);
  assert.equal(unchanged(), false);
  // A file written while the first build ran counts as changed; the second build settles that.
  unchanged();
  assert.equal(unchanged(), true);
  // The bundler is not started.
  assert.equal(run(["build", dir], { env: { CAIRN_BUNDLER: "/nonexistent" } }).status, 0);
  write(dir, { "a.js": "console.log(22)" });
  const failed = run(["build", dir], { env: { CAIRN_BUNDLER: "/nonexistent" } });
  assert.match(failed.stderr, /the bundler \/nonexistent cannot be started/);
  assert.equal(unchanged(), false);
  // Old output goes, what others put there stays.
  const out = path.join(dir, ".cairn/bundle/w");
  write(out, { "mine.txt": "x" });
  write(dir, { "a.js": "console.log(333)" });
  run(["build", dir]);
  const names = readdirSync(out);
  assert.equal(names.filter((name) => name.endsWith(".js")).length, 1);
  assert.ok(names.includes("mine.txt"));
  // A damaged output is built again.
  const script = path.join(out, names.find((name) => name.endsWith(".js")));
  const before = statSync(script).size;
  write(out, { "manifest.json": readFileSync(path.join(out, "manifest.json"), "utf8").slice(0, 50) });
  assert.equal(unchanged(), false);
  assert.equal(statSync(script).size, before);
});
