// Regular expressions of scripts that take time with the square of their text, or worse: the turn ends in its CPU time (X1 to X4 of
// src/js/engine/regexp.h), nothing of it runs behind the match, and neither the server nor a connection of a neighbour ends with it.
import assert from "node:assert/strict";
import test from "node:test";
import { Client } from "../websockets/lib.mjs";
import { without } from "../lib/engine.mjs";
import { Connection, project, serve } from "../lib/server.mjs";

// What each needs is minutes at least. `a` is 400,000 times "a" (8 bits a character), `w` the same behind a character of 16.
const cases = {
  "blanks at the end": "/[ ]+$/.test(' '.repeat(4e5) + 'x')",
  "two runs, test()": "/a*a*b/.test(a)",
  "two runs, exec() with groups": "/(a*)(a*)b/.exec(a)",
  "16 bits": "/a*a*b/.test(w)",
  "16 bits, groups": "/(a*)(a*)b/.exec(w)",
  "without regard to case": "/a*a*b/i.test(w)",
  "unicode": "/a*a*b/u.test(w)",
  "sets": "/[a--b]*a*b/v.test(w)",
  "choices": "/(?:a|x)*(?:a|y)*b/.test(a)",
  "counted": "/(?:aa|a){1,9}a*a*b/.test(a)",
  "named": "/(?<p>a*)a*b/d.exec(w)",
  "many lines": "/^a*a*b$/m.test(a)",
  "lookahead": "/a*(?=a*b)/.test(a)",
  "lookbehind": "/(?<=a)a*c/.test(a)",
  "lookbehind, first": "/(?<!b)a*c/.test(w)",
  "references": "/(a)\\1*b/.test(a)",
  "references without regard to case": "/(a)\\1*b/iu.test(w)",
  "sticky": "/a*a*a*b/y.test(a)",
  "match()": "a.match(/a*a*b/g)",
  "matchAll()": "[...a.matchAll(/a*a*b/g)]",
  "replace()": "a.replace(/a*a*b/g, 'x')",
  "replace() with a function": "a.replace(/a*a*b/, () => 'x')",
  "replaceAll()": "a.replaceAll(/a*a*b/g, 'x')",
  "split()": "a.split(/a*a*b/)",
  "search()": "a.search(/a*a*b/)",
  "again and again": "for (;;) /a*a*b/.test(a)",
  "caught": "try { /a*a*b/.test(a) } catch {}",
  "in optimized code": "const f = (s) => /a*a*b/.test(s); for (let i = 0; i < 2e5; i++) f('ab'); f(a)",
};

const hog = `
const a = "a".repeat(4e5), w = "\\u0100" + a;
const cases = { ${Object.entries(cases).map(([name, code]) => `${JSON.stringify(name)}: () => { ${code}; globalThis.after = true; }`).join(",\n")} };
export default { fetch(request) {
  const name = decodeURIComponent(new URL(request.url).pathname.slice(1));
  globalThis.after = false;
  if (name !== "") cases[name]();
  return Response.json(globalThis.after);
} };`;
const neighbour = `export default { fetch(request) {
  if (request.headers.get("upgrade") !== "websocket") return new Response("here");
  const [client, server] = Object.values(new WebSocketPair());
  server.accept();
  server.addEventListener("message", ({ data }) => server.send(data + "!"));
  return new Response(null, { status: 101, webSocket: client });
} };`;
const config = (name, more) => `name = "${name}"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\nroutes = ["${name}.test/*"]\n${more}`;

const skip = without("regexp");
for (const lanes of [1, 2])
  test(`regexps/neighbours_keep_their_connections_on_${lanes}_lanes`, { skip }, async (t) => {
    const server = await serve([
      project({ "wrangler.toml": config("hog", "[limits]\ncpu_ms = 200\n[cairn.limits]\nstuck_ms = 60000\n"), "index.js": hog }),
      project({ "wrangler.toml": config("neighbour", ""), "index.js": neighbour }),
    ], { lanes });
    t.after(() => server.kill());
    const socket = await Client.open(server, "/", [], { headers: { host: "neighbour.test" } });
    const kept = new Connection(server.port);
    t.after(() => kept.close());
    const ask = (host, path = "/") => kept.get(path, { headers: { host } });
    await ask("neighbour.test");
    for (const [i, name] of Object.keys(cases).entries()) {
      if (lanes > 1 && i % 7 > 0) continue; // the same code: all of them on one lane
      const { status, reused, text } = await ask("hog.test", `/${encodeURIComponent(name)}`);
      assert.deepEqual([name, status, reused], [name, 503, true], text);
      assert.deepEqual((await ask("neighbour.test")).text, "here");
      assert.equal(await socket.ask(name), `${name}!`);
    }
    assert.doesNotMatch(server.output, /starts itself anew/);
    assert.equal((await server.stop()).code, 0);
  });
