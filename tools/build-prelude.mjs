// Bundles prelude/ into one function expression that JavaScriptCore evaluates in every context:
//     (function (__native, __options) { ...; return __prelude; })
// Usage: node tools/build-prelude.mjs OUT.js   (writes OUT.js, OUT.js.map and OUT.js.d for make)
import { build } from "esbuild";
import { writeFileSync } from "node:fs";
import path from "node:path";

const out = process.argv[2];
const result = await build({
  entryPoints: ["prelude/bootstrap.js"],
  bundle: true,
  format: "iife",
  globalName: "__prelude",
  target: "esnext",
  charset: "ascii",
  minifyWhitespace: true,
  minifySyntax: true,
  keepNames: false,
  legalComments: "none",
  sourcemap: "external",
  metafile: true,
  write: false,
  outfile: out,
  logLevel: "warning",
});
const script = result.outputFiles.find((f) => f.path.endsWith(".js")).text;
const map = result.outputFiles.find((f) => f.path.endsWith(".map")).text;
// All on the bundle's own lines, so that the source map stays true: the opening shares line 1.
const wrapped = `(function(__native,__options){${script};return __prelude;})\n`;
if (/[^\x00-\x7f]/.test(wrapped)) throw new Error("the prelude must be ASCII");
writeFileSync(out, wrapped);
writeFileSync(out + ".map", map);
const inputs = Object.keys(result.metafile.inputs).map((f) => path.relative(".", f));
writeFileSync(out + ".d", `${out}: ${inputs.join(" ")}\n${inputs.map((f) => f + ":\n").join("")}`);
