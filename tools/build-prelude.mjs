// Bundles a part of prelude/ into one function expression for JavaScriptCore:
//     (function (__native, __options) { ...; return __prelude; })
// bootstrap.js is evaluated in every context. node/index.js is evaluated when a script imports the
// first module of Node.js; __options then is what prelude/workers/node.js passes on.
// Usage: node tools/build-prelude.mjs ENTRY.js OUT.js   (writes OUT.js, OUT.js.map and OUT.js.d)
import { build } from "esbuild";
import { writeFileSync } from "node:fs";
import path from "node:path";

const [entry, out] = process.argv.slice(2);

/** What packages import from Node.js is ours. */
const nodeModules = {
  name: "node-modules",
  setup(build) {
    const ours = new Map(
      ["buffer", "events", "string_decoder", "process"].map((name) => [name, path.resolve("prelude/node", `${name}.js`)]),
    );
    build.onResolve({ filter: /^(buffer|events|string_decoder|process|safe-buffer|abort-controller)\/?$/ }, (args) => {
      if (!args.importer.includes("node_modules")) return undefined;
      const name = args.path.replace(/\/$/, "");
      if (name === "abort-controller") return { path: path.resolve("prelude/node/internal/abort-controller.js") };
      const file = ours.get(name === "safe-buffer" ? "buffer" : name);
      return { path: file, namespace: "node-default" };
    });
    // CommonJS, so that require() gives what it gives in Node.js: the default export.
    build.onLoad({ filter: /.*/, namespace: "node-default" }, ({ path: file }) => ({
      contents: `module.exports = require(${JSON.stringify(file)}).default;`,
      resolveDir: path.dirname(file),
    }));
  },
};

const result = await build({
  entryPoints: [entry],
  plugins: [nodeModules],
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
const inputs = Object.keys(result.metafile.inputs).filter((f) => !f.includes(":")).map((f) => path.relative(".", f));
writeFileSync(out + ".d", `${out}: ${inputs.join(" ")}\n${inputs.map((f) => f + ":\n").join("")}`);
