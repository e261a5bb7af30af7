// What is done to async functions so that they go on in their own turn changes nothing else of them:
// values, order of evaluation, errors, generators, the number of microtasks. Every case of
// turns/syntax.js answers as in Node.js, alone and while four objects wait in it at once.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { project, serve } from "../lib/server.mjs";
import { cases, run } from "./turns/syntax.js";

const source = readFileSync(new URL("turns/syntax.js", import.meta.url), "utf8");
const worker = (hooks) => `${hooks ? 'import { AsyncLocalStorage } from "node:async_hooks"; export const storage = new AsyncLocalStorage();' : ""}
import { DurableObject } from "cloudflare:workers";
import { run } from "./syntax.js";
export class Cell extends DurableObject {
  run(name) { return run(name); }
}
export default { async fetch(request, env) {
  const [, name, cell] = new URL(request.url).pathname.split("/").map(decodeURIComponent);
  try {
    return new Response(cell ? await env.CELL.getByName(cell).run(name) : await run(name));
  } catch (error) {
    return new Response(error.stack, { status: 500 });
  }
} };`;

for (const [hooks, minify] of [[false, false], [false, true], [true, false]]) {
  describe(`async functions ${hooks ? "with node:async_hooks" : minify ? "minified" : "as they are"}`, () => {
    let server;
    before(async () => {
      server = await serve(project({
        "wrangler.json": JSON.stringify({
          name: "syntax", main: "index.js", compatibility_date: "2026-01-01", compatibility_flags: ["nodejs_compat"], minify, keep_names: true,
          durable_objects: { bindings: [{ name: "CELL", class_name: "Cell" }] }, migrations: [{ tag: "v1", new_sqlite_classes: ["Cell"] }],
        }),
        "index.js": worker(hooks), "syntax.js": source,
      }));
    });
    after(() => server?.kill());
    for (const name of Object.keys(cases)) {
      const suite = hooks ? "syntax with hooks" : "syntax";
      test(`${suite}: ${name}`, async () => {
        const expected = await run(name);
        const path = `/${encodeURIComponent(name)}`;
        const ask = (cell) => server.text(path + cell);
        assert.equal(await ask(""), expected);
        const together = await Promise.all(["/a", "/b", "/c", "/d", ""].map(ask));
        assert.deepEqual(together, Array(5).fill(expected));
      });
    }
  });
}
