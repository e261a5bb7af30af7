// Text from outside costs time in proportion to its length: a client's 400 kB in any of these do not use up the CPU time of a turn. Nothing
// is timed here: what is quadratic needs minutes for it, and its turn has two seconds. `make slow` looks at every API.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { project, serve } from "../lib/server.mjs";

const N = 400_000;
const blanks = ` a${" ".repeat(N)}b `;
const cases = {
  url: ["try { new URL(text) } catch {}", blanks],
  headers: ["new Headers({ a: text })", ` a${"\t".repeat(N)}b `],
  label: ["try { new TextDecoder(text) } catch {}", blanks],
  blob: ["new Blob([], { type: text })", `a/b;c=${" ".repeat(N)}d`],
  type: ["await new Response('', { headers: { 'content-type': text } }).blob()", `a/b,${'"\\\\'.repeat(N / 3)}`],
  mime: ["try { new MIMEType(text) } catch {}", `a/b${" ".repeat(N)}c`],
  env: ["parseEnv(text)", 'A="\\'.repeat(N / 5)],
  strip: ["stripVTControlCharacters(text)", "\u009d".repeat(N)],
  error: ["const error = new Error(text); error.stack = text; inspect(error)", "    at (".repeat(N / 8)],
  own: ["const error = new Error('x'); error.stack = text; inspect(error)", "@:1".repeat(N / 3)],
};

let server;
before(async () => {
  const bodies = Object.entries(cases).map(([name, [body]]) => `async ${name}(text) { ${body}; }`).join(",\n");
  server = await serve(project({
    "wrangler.toml": 'name = "texts"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\ncompatibility_flags = ["nodejs_compat"]\n[limits]\ncpu_ms = 2000\n[cairn.limits]\nstuck_ms = 2000\n',
    "index.js": `import { MIMEType, inspect, parseEnv, stripVTControlCharacters } from "node:util";
const cases = { ${bodies} };
export default { async fetch(request) {
  await cases[new URL(request.url).pathname.slice(1)](await request.text());
  return new Response("done");
} };`,
  }));
});
after(() => server.stop());

for (const [name, [, text]] of Object.entries(cases))
  test(`texts/${name}_is_linear`, async () => {
    const response = await server.fetch(`/${name}`, { method: "POST", body: text });
    assert.deepEqual([response.status, await response.text()], [200, "done"]);
  });
