// Single calls that once ended the process: whatever a script calls, on whatever, it gets an error, and the server
// goes on. test/fuzz/script looks for more of them.
import assert from "node:assert/strict";
import test from "node:test";
import { project, serve } from "../lib/cairn.mjs";

const cases = {
  "a text of 2^31 bytes": "new TextDecoder().decode(new Uint8Array(2 ** 31)); return 'no error'",
  "a text of 2^31 bytes, in another encoding": "new TextDecoder('shift_jis').decode(new Uint8Array(2 ** 31)); return 'no error'",
  "onEndTag on a text": `
    let element, seen = "";
    const rewriter = new HTMLRewriter().on("p", {
      element(e) { element = e; },
      text(t) { try { Object.getPrototypeOf(element).onEndTag.call(t, () => {}); } catch (e) { seen = e.name; } },
    });
    await rewriter.transform(new Response("<p>text</p>")).text();
    throw new Error(seen)`,
  "methods of an element on every other token": `
    let proto, seen = 0;
    const attack = (token) => {
      for (const key of Object.getOwnPropertyNames(proto)) {
        const { get, set, value } = Object.getOwnPropertyDescriptor(proto, key);
        for (const f of [get, set, value]) if (f) try { f.call(token, "x", () => {}); } catch { seen++; }
      }
    };
    let kept;
    const rewriter = new HTMLRewriter().on("p", { element(e) { proto = Object.getPrototypeOf(e); kept = e; }, text: attack, comments: attack })
      .onDocument({ doctype: (d) => proto && attack(d), end: (e) => { attack(e); attack(kept); } });
    await rewriter.transform(new Response("<p>text<!--c--></p><!doctype html>")).text();
    attack(kept);
    throw new Error(String(seen > 10))`,
};

test("calls on the wrong things and with the wrong sizes are errors", async (t) => {
  const dir = project(t, {
    "index.js": `const cases = { ${Object.entries(cases).map(([name, body]) => `${JSON.stringify(name)}: async () => { ${body} }`).join(",\n")} };
      export default {
        async fetch(request) {
          const run = cases[decodeURIComponent(new URL(request.url).pathname.slice(1))];
          if (!run) return new Response("hello");
          try { return new Response(await run()); } catch (error) { return new Response(error.name + ": " + error.message); }
        },
      };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1"] });
  const expected = [/^RangeError: Cannot create a string longer/, /^RangeError: Cannot create a string longer/, /^Error: TypeError$/, /^Error: true$/];
  for (const [i, name] of Object.keys(cases).entries()) {
    assert.match(await server.text(`/${encodeURIComponent(name)}`), expected[i], name);
    assert.equal(await server.text("/"), "hello", name);
  }
});
