// Rules of a configuration: which files they are for (tools/bundler/rules.mjs, R1 and R2).
import assert from "node:assert/strict";
import test from "node:test";
import { project, serve } from "../lib/cairn.mjs";

test("R1: a glob matches the specifier as wrangler matches it, in folders above too", async (t) => {
  const dir = project(t, {
    "app/worker/wrangler.toml": `name = "w"
main = "src/index.js"
compatibility_date = "2026-01-01"
rules = [{ type = "Text", globs = ["*/frontend/**", "*.tpl", "*/deep/*.note"], fallthrough = true }]
`,
    "app/worker/src/index.js": `
import tos from "../../../frontend/tos.md";
import page from "./inner/page.tpl";
import note from "./deep/a/b/x.note";
import text from "./plain.txt";
export default { fetch: () => Response.json([tos, page, note, text]) };`,
    "frontend/tos.md": "terms",
    "app/worker/src/inner/page.tpl": "page",
    "app/worker/src/deep/a/b/x.note": "note",
    "app/worker/src/plain.txt": "plain",
  });
  const server = await serve(t, dir, { projects: [`${dir}/app/worker`] });
  assert.deepEqual(await (await server.fetch("/")).json(), ["terms", "page", "note", "plain"]);
});

test("R2: rules of type ESModule and CommonJS leave modules what they are", async (t) => {
  const dir = project(t, {
    "wrangler.toml": `name = "w"
main = "src/index.js"
compatibility_date = "2026-01-01"
rules = [
  { type = "ESModule", globs = ["**/*.js", "**/*.mjs", "**/*.own"] },
  { type = "CommonJS", globs = ["**/*.cjs", "**/*.odd"] },
  { type = "Text", globs = ["**/*.sql.js"], fallthrough = true },
]
`,
    "src/index.js": `
import { a } from "./a.js";
import b from "./b.cjs";
import { c } from "./c.mjs";
import { d } from "./d.own";
import e from "./e.odd";
import sql from "./f.sql.js";
import text from "./g.txt";
export default { fetch: () => Response.json([a, b.b, c, d, e.e, sql, text]) };`,
    "src/a.js": `export { c as a } from "./c.mjs";`,
    "src/b.cjs": `exports.b = require("./e.odd").e + "b";`,
    "src/c.mjs": `export const c = "c";`,
    "src/d.own": `import { c } from "./c.mjs"; export const d = c + "d";`,
    "src/e.odd": `module.exports = { e: "e" };`,
    "src/f.sql.js": `select 1`,
    "src/g.txt": "g",
  });
  const server = await serve(t, dir);
  assert.deepEqual(await (await server.fetch("/")).json(), ["c", "eb", "c", "cd", "e", "select 1", "g"]);
});

test("find_additional_modules: modules that are named by a pattern are there, others fail where they are asked for", async (t) => {
  const dir = project(t, {
    "wrangler.toml": `name = "w"\nmain = "src/index.js"\ncompatibility_date = "2026-01-01"\nfind_additional_modules = true\nrules = [{ type = "ESModule", globs = ["**/*.js"] }]\n`,
    "src/index.js": `
const names = { computed: ["./lang/", "de", ".js"].join("") };
export default { async fetch(request) {
  const name = new URL(request.url).pathname.slice(1);
  try { return new Response((name === "computed" ? await import(names.computed) : await import(\`./lang/\${name}.js\`)).default); }
  catch (e) { return new Response(String(e.message), { status: 404 }); }
} };`,
    "src/lang/de.js": `export default "hallo";`,
    "src/lang/en.js": `import de from "./de.js"; export default "hello, not " + de;`,
  });
  const server = await serve(t, dir);
  const get = async (target) => { const r = await server.fetch(target); return [r.status, await r.text()]; };
  assert.deepEqual(await get("/de"), [200, "hallo"]);
  assert.deepEqual(await get("/en"), [200, "hello, not hallo"]);
  assert.equal((await get("/fr"))[0], 404);
  assert.equal((await get("/computed"))[0], 404);
});
