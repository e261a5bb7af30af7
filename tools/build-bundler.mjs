// Bundles tools/bundler, with esbuild's library and what else it imports, into the script of cairn-bundler
// (src/bundler/main.c). Modules of Node.js come from tools/bundler/host.
//
// Usage: node tools/build-bundler.mjs OUT.js   (writes OUT.js, OUT.js.d)
import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const [out] = process.argv.slice(2);
const host = (name) => path.resolve(`tools/bundler/host/${name}.mjs`);
const modules = { fs: "fs", "fs/promises": "fs", crypto: "crypto", child_process: "child_process", module: "module", os: "os", tty: "os" };
const alias = { path: "path-browserify" };
for (const [name, file] of Object.entries(modules)) alias[name] = host(file);
for (const [name, file] of Object.entries(alias)) alias[`node:${name}`] = file;

const { metafile } = await build({
  entryPoints: [host("main")],
  outfile: out,
  bundle: true,
  format: "iife",
  platform: "neutral",
  mainFields: ["module", "main"],
  target: "safari18",
  charset: "utf8",
  alias,
  // A module whose text is wanted: the name of its file, and "?text".
  plugins: [{
    name: "text",
    setup(build) {
      build.onResolve({ filter: /\?text$/ }, (args) => ({ path: path.resolve(args.resolveDir, args.path.slice(0, -"?text".length)), suffix: "?text" }));
      build.onLoad({ filter: /.*/ }, ({ path: file, suffix }) => (suffix === "?text" ? { contents: readFileSync(file), loader: "text" } : undefined));
    },
  }],
  external: ["worker_threads", "pnpapi"], // esbuild's library does without
  define: { __filename: '"esbuild"', __dirname: '""', "process.env.ESBUILD_WORKER_THREADS": '"0"' },
  footer: { js: "__host;" },
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});
writeFileSync(`${out}.d`, `${out}: ${Object.keys(metafile.inputs).filter((name) => !name.startsWith("(")).map((name) => name.replace(/\?.*$/, "")).join(" ")}\n`);
