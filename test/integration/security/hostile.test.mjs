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
  const longText = /^RangeError: (Cannot create a string longer|Out of memory)/; // there may not be so much at all
  const expected = [longText, longText, /^Error: TypeError$/, /^Error: true$/];
  for (const [i, name] of Object.keys(cases).entries()) {
    const said = await server.text(`/${encodeURIComponent(name)}`);
    assert.match(said, expected[i], `${name}: ${said}`);
    assert.equal(await server.text("/"), "hello", name);
  }
});

test("patched builtins see nothing of the prelude's inside, and the natives least of all", async (t) => {
  const dir = project(t, {
    "wrangler.toml": 'name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\nkv_namespaces = [{ binding = "KV", id = "kv" }]\n',
    "index.js": `
      const seen = new Map(), { apply } = Reflect;
      let spying = false, found = [];
      const look = (value) => {
        if (value === null || (typeof value !== "object" && typeof value !== "function")) return;
        if (typeof value === "function" ? ["utf8Decode", "fetchStart", "kvGet", "respond"].includes(value.name) : Object.hasOwn(value, "fetchStart")) found.push("a native");
      };
      function spy(holder, name, key) {
        const original = holder[key];
        holder[key] = function (...args) {
          if (!spying) return apply(original, this, args);
          spying = false;
          seen.set(name, (seen.get(name) ?? 0) + 1);
          try { look(this); args.forEach(look); } finally { spying = true; }
          return apply(original, this, args);
        };
      }
      for (const [name, keys] of Object.entries({ Map: ["get", "set", "has", "delete"], WeakMap: ["get", "set", "has"], Set: ["add", "has", "delete"], Array: ["push", "map", "forEach", "shift", "find"],
        Promise: ["then", "catch", "finally"], Function: ["call", "apply", "bind"] }))
        for (const key of keys) spy(globalThis[name].prototype, name + "." + key, key);
      for (const [name, keys] of Object.entries({ Object: ["keys", "defineProperty", "assign", "entries", "getOwnPropertyDescriptor"], Reflect: ["apply", "ownKeys", "get"], JSON: ["parse", "stringify"], Promise: ["resolve"], Array: ["isArray", "from"] }))
        for (const key of keys) spy(globalThis[name], name + "::" + key, key);
      for (const name of ["Map", "Set", "WeakMap", "Promise", "Uint8Array", "Array"]) globalThis[name] = class extends globalThis[name] { constructor(...a) { super(...a); if (spying) seen.set("new " + name, 1); } };
      async function use(env, request) {
        await env.KV.put("a", "b");
        const text = await env.KV.get("a");
        const body = await new Response(new Blob([text, new TextEncoder().encode("c")]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
        const headers = new Headers(request.headers);
        headers.append("x", "y");
        const target = new EventTarget();
        target.addEventListener("e", () => {});
        target.dispatchEvent(new Event("e"));
        const digest = await crypto.subtle.digest("SHA-256", body);
        await new HTMLRewriter().on("p", { element(e) { e.setAttribute("a", "b"); } }).transform(new Response("<p></p>")).text();
        return structuredClone({ text, size: digest.byteLength, url: new URL("?q", request.url).search, form: [...new URLSearchParams("a=1&b=2")].length, x: headers.get("x") });
      }
      export default {
        async fetch(request, env) {
          spying = true;
          let result;
          try { result = await use(env, request); } finally { spying = false; }
          return Response.json({ result, found, seen: Object.fromEntries(seen) });
        },
      };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1"] });
  for (let i = 0; i < 2; i++) {
    const { result, found, seen } = JSON.parse(await server.text("/"));
    assert.deepEqual(result, { text: "b", size: 32, url: "?q", form: 2, x: "y" });
    assert.deepEqual(found, []);
    // What the engine itself looks up, as the standard has it (Promise.all, new Set(list)): it is given promises and values.
    assert.deepEqual(Object.keys(seen).filter((name) => !["Promise.then", "Promise::resolve", "Set.add", "Map.set"].includes(name)), []);
  }
});
