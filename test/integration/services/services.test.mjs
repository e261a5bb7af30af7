// Service bindings, ctx.exports and what cloudflare:workers exports: two workers of one server that
// call each other and themselves. Every test with one lane and with two.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { project, serve, tempDir } from "../lib/server.mjs";
import { objects, services } from "../lib/toml.mjs";

const read = (name) => readFileSync(new URL(name, import.meta.url), "utf8");
const front = project({
  "wrangler.toml": `name = "front"
main = "index.js"
compatibility_date = "2026-04-21"
[cairn]
hosts = ["*"]
[limits]
cpu_ms = 300
${services({ BACK: "back" })}
[[services]]
binding = "ADMIN"
service = "back"
entrypoint = "Admin"
props = { user = "root", level = 3 }
${services({ PLAIN: { service: "back", entrypoint: "plain" }, MISSING: { service: "back", entrypoint: "Nothing" }, SELF: "front" })}
${objects({ BOX: "Box" })}`,
  "index.js": read("front.js"),
});
const back = project({
  "wrangler.toml": `name = "back"
main = "index.js"
compatibility_date = "2026-04-21"
[cairn]
hosts = ["back.example"]
[limits]
cpu_ms = 300
[vars]
WHO = "back's own"
`,
  "index.js": read("back.js"),
});

for (const lanes of [1, 2]) {
  describe(`with ${lanes} lane${lanes > 1 ? "s" : ""}`, () => {
    let server;
    before(async () => { server = await serve([front, back], { lanes, data: tempDir() }); });
    after(() => server.stop());
    const run = async (name, init) => {
      const response = await server.fetch(`/${name}`, init);
      return response.json();
    };

    test("WK-9: fetch: method, URL, headers, bodies, status", async () => {
      assert.deepEqual(await run("fetch"), [201, "back", { method: "POST", url: "https://any.example/p?q=1", header: "h", body: "sent", who: "back's own" }]);
    });
    test("WK-9: fetch: bodies are streamed both ways", async () => {
      assert.deepEqual(await run("streamed"), [4 << 20, 3]);
      assert.equal(await run("echo", { method: "POST", body: "x".repeat(300_000) }), 300_000);
    });
    test("WK-9: a fetch that throws rejects with the error", async () => {
      assert.deepEqual(await run("fetchThrows"), ["RangeError", "thrown by fetch", 7, true]);
    });
    test("WK-9: redirects are followed to the same service, unless the request says otherwise", async () => {
      assert.deepEqual(await run("redirects"), ["https://x/here", "GET", "", 302, "TypeError", "Too many redirects: more than 20.", "TypeError"]);
    });
    test("WK-9: fetch() with a signal ends when that is aborted", async () => {
      assert.equal(await run("fetchAborted"), "AbortError");
    });
    test("WK-9 RPC-1: methods of named and default entrypoints, ctx.props", async () => {
      assert.deepEqual(await run("rpc"), ["back's own:1", { user: "root", level: 3 }, {}, 42]);
    });
    test("WK-9: each call has an entrypoint of its own", async () => {
      assert.deepEqual(await run("state"), [1, 1]);
    });
    test("RPC-2: functions, targets, streams and stubs over a service binding", async () => {
      assert.deepEqual(await run("references"), [30, [1, 2, 2], "streamed text", "from the front", 5]);
    });
    test("RPC-3: what an entrypoint does not show", async () => {
      assert.deepEqual(await run("hidden"), ["TypeError", "TypeError", "TypeError", "TypeError", "TypeError"]);
    });
    test("RPC-4: pipelining over a service binding", async () => {
      assert.deepEqual(await run("pipelining"), [1, 2]);
    });
    test("DO-ERR-1 DO-ERR-2: errors over a service binding", async () => {
      assert.deepEqual(await run("errors"), [true, "TypeError", "thrown by rpc", 42, true]);
    });
    test("WK-9: an object of handlers as entrypoint: one argument, then env and ctx", async () => {
      assert.deepEqual(await run("plain"), ["back's own:5", "TypeError", "plain fetch"]);
    });
    test("WK-9: an entrypoint that is not there", async () => {
      const errors = await run("missing");
      for (const text of errors) assert.match(text, /has no entrypoint "Nothing"/);
    });
    test("WK-9: a worker can bind itself, also deep", async () => {
      assert.equal(await run("self?depth=20"), 20);
    });
    test("WK-9: an endless callee ends for its caller too; others go on", async () => {
      const [endless, fine] = await Promise.all([run("endless"), run("fetch")]);
      assert.match(endless, /CPU/);
      assert.equal(fine[0], 201);
    });
    test("WK-9 RPC-8: one that spins after a wait, or in a function that was lent, is an error and no hang", async () => {
      assert.match(await run("endlessLater"), /CPU/);
      assert.match(await run("endlessCallback"), /CPU/);
    });
    test("WK-9: waitUntil() of a callee goes on after its answer", async () => {
      assert.deepEqual(await run("waits"), ["answered", "waited"]);
    });
    test("WK-9 DO-ST-3: from an object, and stubs of objects through a service", async () => {
      assert.deepEqual(await run("objects"), ["back's own:9", 5]);
    });
    test("DO-CTX-1 RPC-9: ctx.exports: entrypoints with props, the default one, objects", async () => {
      assert.deepEqual(await run("exports"), ["hello undefined", "hello world", "TypeError", 7, "hello from an object", ["Box", "Greeter", "default"]]);
    });
    test("WK-2: ctx.abort() fails the event, whatever it does afterwards", async () => {
      assert.equal(await run("aborts"), "enough");
      assert.equal((await server.fetch("/abortsSelf")).status, 500);
    });
    test("WK-2: cloudflare:workers: env, exports, waitUntil, withEnv", async () => {
      assert.deepEqual(await run("module"), ["function", "hello undefined", "other", "function", true, true]);
    });
    test("RPC-6: new RpcStub, dup and dispose", async () => {
      assert.deepEqual(await run("stubs"), [3, 4, true, true, "RPC stub used after being disposed."]);
    });
  });
}

test("WK-9: reload while calls run: they end well, new ones reach the new code", async () => {
  const { writeFileSync } = await import("node:fs");
  const a = project({
    "wrangler.toml": 'name = "a"\nmain = "index.js"\n[cairn]\nhosts = ["*"]\n[[services]]\nbinding = "B"\nservice = "b"\n',
    "index.js": "export default { async fetch(r, env) { return env.B.fetch(r); } };",
  });
  const source = (version) => `export default { async fetch(r) { if (r.url.endsWith("/slow")) { console.log("begun"); await new Promise((f) => setTimeout(f, 400)); } return new Response("${version}"); } };`;
  const b = project({ "wrangler.toml": 'name = "b"\nmain = "index.js"\n[cairn]\nhosts = ["b.example"]\n', "index.js": source("old") });
  const server = await serve([a, b]);
  try {
    const slow = server.text("/slow");
    await server.until(/begun/);
    assert.equal(await server.text("/"), "old");
    writeFileSync(`${b}/index.js`, source("new"));
    server.signal("SIGHUP");
    await server.untilTrue(async () => (await server.text("/")) === "new", "the new version");
    assert.equal(await slow, "old");
  } finally {
    await server.stop();
  }
});

test("a server that is stopped while it reloads, with calls between objects and workers under way, ends in order", async () => {
  const server = await serve([front, back], { lanes: 2 });
  const calls = Array.from({ length: 20 }, (_, i) => server.text(i % 2 ? "/fetchAborted" : `/hanging?name=h${i}`).catch(() => "cut"));
  await server.untilTrue(async () => (await server.text("/fetch")).startsWith("[201"), "an answer");
  server.signal("SIGHUP");
  const { code, signal } = await server.stop();
  assert.deepEqual([code, signal], [0, null], server.output);
  await Promise.all(calls);
});

const alone = () =>
  project({
    "wrangler.toml": 'name = "alone"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n\n[[services]]\nbinding = "X"\nservice = "nowhere"\n',
    "index.js": `export default {
      async fetch(request, env) {
        if (new URL(request.url).pathname === "/") return new Response("here");
        const told = (error) => error.message;
        return Response.json([await env.X.fetch("http://x/").then((response) => response.status, told), await env.X.add(1, 2).catch(told)]);
      },
    };`,
  });

for (const command of ["serve", "dev"]) test(`WK-12: a service that no project has is a warning of cairn ${command}, and calls of it fail with a sentence`, async (t) => {
  const server = await serve(alone(), { command });
  t.after(() => server.stop());
  assert.equal(await server.text("/"), "here");
  const sentence = "The worker behind this service binding is not running.";
  assert.deepEqual(JSON.parse(await server.text("/calls")), [sentence, sentence]);
  assert.match(server.output, /warn .*wrangler\.toml:5:\d+: services: no project of this server is named "nowhere": calls of the binding X fail/);
});
