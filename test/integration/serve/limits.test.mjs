// What a worker may use: CPU time and memory. Whatever it does, the server goes on.
import assert from "node:assert/strict";
import test from "node:test";
import { project, serve } from "../lib/cairn.mjs";

// Each of them never ends by itself.
const endless = {
  loop: "for (;;) ;",
  await: "for (;;) await null;",
  then: "const again = () => Promise.resolve().then(again); await again();",
  queueMicrotask: "const again = () => queueMicrotask(again); again(); await new Promise(() => {});",
  regexp: '/^(a+)+$/.test("a".repeat(64) + "b");',
};

test("the CPU limit ends the event, whatever it does, and not the server", async (t) => {
  const cases = Object.entries(endless).map(([name, body]) => `"/${name}": async () => { ${body} },`);
  const dir = project(t, {
    "wrangler.toml": 'name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\nlimits = { cpu_ms = 100 }\n',
    "index.js": `
      const cases = { ${cases.join("\n")} };
      export default {
        async fetch(request) {
          await cases[new URL(request.url).pathname]?.();
          return new Response("hello");
        },
      };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1"] });
  for (const name of Object.keys(endless)) {
    const response = await server.fetch(`/${name}`);
    assert.equal(response.status, 503, name);
    const [reference] = /[0-9a-f]{16}/.exec(await response.text());
    assert.match(server.stderr, new RegExp(`reference=${reference} .*CPU limit of 100 ms`), name);
    assert.equal(await server.text("/"), "hello");
  }
});
