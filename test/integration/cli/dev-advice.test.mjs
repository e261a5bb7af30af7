// What `cairn dev` says of mistakes (src/worker/advice.h, src/config/frame.h): the place in the project, the lines around it, what to type, and
// no frames of the server's own JavaScript. All of them beside wrangler's: make mistakes.
import assert from "node:assert/strict";
import test from "node:test";
import { project, run, serve, write } from "../lib/cairn.mjs";

const toml = (more = "") => `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n${more}`;
const objects = toml(`[[durable_objects.bindings]]\nname = "ROOM"\nclass_name = "Room"\n[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Room"]\n`);
const handler = (body) => `export default {\n  async fetch(request, env) {\n    ${body}\n  },\n};\n`;

test("errors of requests: place, lines, what to type, nothing of ours", async (t) => {
  const dir = project(t, { "wrangler.toml": toml(`[vars]\nHERE = "here"\n[[d1_databases]]\nbinding = "DB"\ndatabase_name = "shop"\ndatabase_id = "shop"\n`), "index.js": handler("return new Response();") });
  const server = await serve(t, dir, { command: "dev" });
  for (const [body, ...patterns] of [
    [`return new Response(await env.USERS.get("a"));`, /^> +3 \| .*env\.USERS\.get/m, /^hint: .* no binding USERS\. If it is a KV namespace.*\n\n\[\[kv_namespaces\]\]\nbinding = "USERS"\nid = /m],
    [`return new Response(env.ROOM.idFromName("a"));`, /a Durable Object, add[^]*name = "ROOM"/],
    [`return new Response(await env.db.prepare("SELECT 1").first());`, /\[\[d1_databases\]\]\nbinding = "db"/],
    [`return new Response(env.API_KEY.trim());`, /^hint: API_KEY is neither a variable nor a secret .* API_KEY=\.\.\. in \.dev\.vars/m],
    [`return Response.json(await env.DB.prepare("SELECT * FROM users").all());`, /no such table: users/, /^> +3 \|/m, /`cairn d1 migrations apply DB`/],
    [`await 0; return "text";`, /did not resolve to 'Response'/, /^hint: [^]*return new Response/m],
    [`const a = new Response("a"); await a.text(); return new Response(await a.text());`, /^> +3 \|/m, /^hint: a body can be read once/m],
    [`let n = 0;\n    while (n < 10) n = JSON.parse("1");`, /ran for longer than a script may hold its lane/, /at fetch \(index\.js:4:/, /^> +4 \| .*while/m, /^hint: .* ends a script after 10 s [^]*\[limits\] cpu_ms/m],
  ]) {
    write(dir, { "index.js": handler(body) });
    const said = await server.text("/");
    for (const pattern of patterns) assert.match(said, pattern);
    assert.ok(!said.includes("cairn:prelude"), said);
    assert.ok(server.stderr.includes(said.trim().split("\n")[0]), "the terminal has it too");
  }
  write(dir, { "index.js": handler(`return new Response(env.HERE.nothing.more);`) }); // it is there: no advice
  assert.ok(!/hint:/.test(await server.text("/")));
  write(dir, { "index.js": "export const a = 1;" }); // no handler
  assert.match(await server.text("/"), /no fetch\(\) handler\nhint: [^]*export default \{/);
  write(dir, { "index.js": `import { a } from "@scope/thing/part";\nexport default a;` });
  const missing = await server.text("/");
  assert.match(missing, /index\.js:1:18:[^]*npm install @scope\/thing$/m);
  assert.ok(!missing.includes("external"), missing);
});

test("errors of objects: the lines of the object, and of the call if no code of the project has thrown", async (t) => {
  const dir = project(t, { "wrangler.toml": objects, "index.js": `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  broken() {
    return this.missing.name;
  }
}
export default {
  async fetch(request, env) {
    const room = env.ROOM.getByName("a");
    if (request.url.endsWith("/later")) {
      Promise.reject(new Error("nobody awaits me"));
      return new Response("sent");
    }
    return new Response(request.url.endsWith("/none") ? await room.brokn() : await room.broken());
  },
};` });
  const server = await serve(t, dir, { command: "dev" });
  const thrown = await server.text("/");
  assert.match(thrown, /at broken \(index\.js:4:\d+\)[^]*^> +4 \| +return this\.missing\.name;/m);
  const none = await server.text("/none");
  assert.match(none, /does not implement the method "brokn"[^]*^> +14 \|/m);
  assert.ok(!(thrown + none).includes("cairn:prelude"), none);
  assert.equal(await server.text("/later"), "sent");
  await server.until(/Uncaught \(in promise\) Error: nobody awaits me[^]*> +11 \|/);
});

test("a start with objects that fails is mended by a change, and says what is missing", async (t) => {
  const dir = project(t, { "wrangler.toml": objects, "index.js": "class Room {}\nexport default { fetch: () => new Response('a') };" });
  const server = await serve(t, dir, { command: "dev" });
  assert.match(await server.text("/"), /exports no class "Room": the main module needs an `export class`/);
  write(dir, { "index.js": "export class Room {}\nexport default { fetch: () => new Response('mended') };" });
  assert.equal(await server.text("/"), "mended");
});

test("a mistake in the configuration is shown with its line", (t) => {
  const dir = project(t, { "wrangler.toml": toml("[limits]\ncpu_ms = \"3\"\n"), "index.js": "" });
  const { status, stderr } = run(["dev", dir]);
  assert.equal(status, 1);
  assert.match(stderr, /wrangler\.toml:5:\d+: [^\n]*cpu_ms[^\n]*\n> +5 \| cpu_ms = "3"\n {7}\| +\^\n$/);
});
