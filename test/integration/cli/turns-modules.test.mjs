// W5 of tools/bundler/turns.mjs: a bundle is rewritten module by module, with the same outcome as in one piece.
import assert from "node:assert/strict";
import test from "node:test";
import { build } from "esbuild";
import { insertionsByModule, insertionsIn, namesFor } from "../../../tools/bundler/turns.mjs";

async function bundled(files, options = {}) {
  const virtual = {
    name: "virtual",
    setup(b) {
      b.onResolve({ filter: /^\.\// }, ({ path }) => (path in files ? { path, namespace: "v" } : undefined));
      b.onLoad({ filter: /.*/, namespace: "v" }, ({ path }) => ({ contents: files[path], loader: "js", resolveDir: process.cwd() }));
    },
  };
  const result = await build({
    entryPoints: ["./entry.js"], bundle: true, write: false, metafile: true, format: "iife", globalName: "__worker", platform: "browser",
    target: "safari18", keepNames: true, plugins: [virtual], outdir: "x", conditions: ["worker"], ...options,
  });
  const modules = new Set(Object.values(result.metafile.outputs).flatMap((output) => Object.keys(output.inputs)));
  const script = `(function(__cairn){"use strict";\n${result.outputFiles[0].text}\nreturn __worker;\n})\n`;
  return { script, modules };
}

test("a bundle of libraries, with CommonJS and what has no async at all", async () => {
  const { script, modules } = await bundled({
    "./entry.js": `import { Hono } from "hono"; import { z } from "zod"; import c from "./c.js"; import { plain } from "./plain.js";
      const app = new Hono(); app.get("/", async (x) => { await c(); return x.text(z.string().parse(plain)); }); export default app;`,
    "./c.js": `module.exports = async function () { for await (const x of [1]) await x; };`,
    "./plain.js": `export const plain = "plain";`,
  });
  const names = namesFor(script);
  const byModule = insertionsByModule(script, names, modules);
  assert.ok(byModule?.length > 50);
  assert.deepEqual(byModule, insertionsIn(script, names));
});

test("a text that looks like the beginning of a module does not mislead", async () => {
  const line = "  // v:./plain.js";
  const { script, modules } = await bundled({
    "./entry.js": "import './plain.js'; export const text = `\n  };\n" + line + "\n  async function f() { await g(); }\n`; export default { async fetch() { await text; return 1; } };",
    "./plain.js": `console.log(1);`,
  });
  assert.ok(script.split(line).length > 2, "it is in the script twice");
  const names = namesFor(script);
  assert.equal(insertionsByModule(script, names, modules), null);
});

test("what is minified has no such lines, and is taken as a whole", async () => {
  const { script, modules } = await bundled({ "./entry.js": `import "./a.js"; export default { async fetch() { await 1; return 2; } };`, "./a.js": `console.log(async () => { await 3; });` }, { minify: true });
  assert.equal(insertionsByModule(script, namesFor(script), modules), null);
});
