// What the bundler inserts so that async code comes back to its context (tools/bundler/turns.mjs, W4):
// positions move along their lines, and the source map with them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decode } from "@jridgewell/sourcemap-codec";
import { transformSync } from "esbuild";
import { declarations, followTurns, moveMap, namesFor } from "../../../tools/bundler/turns.mjs";

const source = `
async function one_a(one_b) {
  const one_c = await one_b; one_mark();
  try { await one_d(one_c), one_e(); } catch (one_f) { one_g(one_f); } finally { one_h(); }
  for await (const one_i of one_j) one_k(await one_i, await one_l);
  return await one_m;
}
const two_a = async (two_b) => ({ two_c: await two_b, two_d: two_e(await two_f, await (await two_g)()) });
class Three { async *three_a() { const three_b = yield three_c; await three_d; yield* three_e(three_b); } }
globalThis.four_a = [one_a, two_a, Three];
`;

/** Every name of the script, with the place in the source that the map gives for it. */
function places(script, map) {
  const mappings = decode(map.mappings);
  return script.split("\n").flatMap((text, line) => [...text.matchAll(/\b(one|two|three|four)_[a-z]+\b/g)].map(({ 0: name, index }) => {
    const [, , sourceLine, sourceColumn] = mappings[line].findLast(([column]) => column <= index);
    return [name, sourceLine, sourceColumn];
  }));
}

for (const minify of [false, true]) {
  test(`every name is where the map says${minify ? ", minified" : ""}`, () => {
    const { code, map: json } = transformSync(source, {
      minifyWhitespace: minify, minifySyntax: minify, sourcemap: "external", sourcefile: "in.js", target: "esnext",
    });
    const names = namesFor(code);
    const { script, insertions } = followTurns(code, names);
    assert.ok(insertions.length > 20);
    assert.ok(insertions.every(([, text]) => !text.includes("\n")));
    const before = places(code, JSON.parse(json));
    const after = places(script, moveMap(JSON.parse(json), code, insertions));
    assert.ok(before.length > 30);
    assert.deepEqual(after, before);
  });
}

test("the names it uses are the script's last", () => {
  const script = "async function c$T() { await c0$c; } // c1$";
  const names = namesFor(script);
  assert.ok(Object.values(names).every((name) => name.startsWith("c2$")));
  assert.match(declarations(names, "x"), /^var c2\$T=x,c2\$m=/);
});

test("what awaits nothing is left as it is", () => {
  for (const script of ["const a = async (x) => x + 1;", "async function f() { return await g(); }", "function* g() { yield 1; }"]) {
    assert.doesNotMatch(followTurns(script, namesFor(script)).script, /make\(\)/);
  }
});
