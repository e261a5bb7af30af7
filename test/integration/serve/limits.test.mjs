// What a worker may use: CPU time and memory. Whatever it does, the server goes on.
import assert from "node:assert/strict";
import test from "node:test";
import { project, serve } from "../lib/cairn.mjs";
import { without } from "../lib/engine.mjs";

// Each of them never ends by itself.
const endless = {
  loop: "for (;;) ;",
  await: "for (;;) await null;",
  then: "const again = () => Promise.resolve().then(again); await again();",
  queueMicrotask: "const again = () => queueMicrotask(again); again(); await new Promise(() => {});",
  "after a timer": "await new Promise((resolve) => setTimeout(resolve, 5)); for (;;) ;",
  "after the body": "await request.text(); for (;;) ;",
};

// With the engine's own clock nobody is asked in this one (docs/reference/limits.md).
if (without("clock")) delete endless.await;

test("the CPU limit ends the event, whatever it does, and not the server", async (t) => {
  const cases = Object.entries(endless).map(([name, body]) => `"/${name}": async (request) => { ${body} },`);
  const dir = project(t, {
    "wrangler.toml": 'name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\nlimits = { cpu_ms = 100 }\n',
    "index.js": `
      const cases = { ${cases.join("\n")} };
      export default {
        async fetch(request) {
          await cases[decodeURI(new URL(request.url).pathname)]?.(request);
          return new Response("hello");
        },
      };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1"] });
  for (const name of Object.keys(endless)) {
    const response = await server.fetch(`/${name}`, { method: "POST", body: "x".repeat(100_000) });
    assert.equal(response.status, 503, name);
    const [reference] = /[0-9a-f]{16}/.exec(await response.text());
    await server.until(new RegExp(`request=${reference} .*CPU limit`));
    assert.equal(await server.text("/"), "hello");
  }
});

test("a worker that hoards memory gets no new requests, and is started afresh", async (t) => {
  const dir = project(t, {
    "wrangler.toml":
      'name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[cairn.limits]\nheap_bytes = 67108864\n',
    "index.js": `
      const hoard = [];
      export default {
        async fetch(request) {
          if (new URL(request.url).pathname === "/hoard") hoard.push(new Uint8Array(32 << 20).fill(1));
          return new Response(String(hoard.length));
        },
      };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1"] });
  for (let kept = 1; kept <= 2; kept++) assert.equal(await server.text("/hoard"), String(kept));
  await server.until(/over its limit of 64 MB; new requests of worker w get 503/);
  const refused = await server.fetch("/");
  assert.equal(refused.status, 503);
  assert.notEqual(refused.headers.get("retry-after"), null);
  await server.until(/worker w held \d+ MB and is restarted/);
  assert.equal(await server.text("/"), "0");
  // What was hoarded is gone, and the limit is there for the new one too.
  await server.text("/hoard");
  assert.equal((await server.fetch("/")).status, 200);
});
