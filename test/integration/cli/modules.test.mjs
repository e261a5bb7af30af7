// tools/bundler/modules.json lists what the runtime provides: the two must agree.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { project, root, serve } from "../lib/cairn.mjs";

const listed = JSON.parse(readFileSync(path.join(root, "tools/bundler/modules.json"), "utf8"));

test("every listed module can be imported", async (t) => {
  const dir = project(t, {
    "wrangler.toml": `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-09-01"\ncompatibility_flags = ["nodejs_compat"]\n`,
    "index.js":
      listed.map((name, i) => `import * as m${i} from "${name}";\n`).join("") +
      `export default { fetch: () => Response.json([${listed.map((_, i) => `Object.keys(m${i}).length > 0`).join()}]) };`,
  });
  const server = await serve(t, dir);
  assert.deepEqual(await (await server.fetch("/")).json(), listed.map(() => true));
});

test("every module that the prelude provides is listed", () => {
  const files = readdirSync(path.join(root, "prelude"), { recursive: true }).filter((name) => name.endsWith(".js"));
  const provided = files.flatMap((name) =>
    [...readFileSync(path.join(root, "prelude", name), "utf8").matchAll(/^\s*"((?:cloudflare|node):[^"]+)":/gm)].map((m) => m[1]),
  );
  assert.ok(provided.length > 0);
  assert.deepEqual([...new Set(provided)].sort(), [...listed].sort());
});
