// Bundles a part of prelude/ into one function expression for JavaScriptCore:
//     (function (__native, __options, __core) { ...; return exports; })
// bootstrap.js is evaluated in every context. node/index.js is evaluated when a script imports the
// first module of Node.js; __options then is what prelude/workers/node.js passes on.
//
// `import part from "part:./x.js"` makes x.js, and what only it imports, a script of its own, which
// is evaluated when part() is first called (prelude/internal/parts.js). The parts stand one after
// the other in OUT-parts.js; where each begins is known to OUT. A module that the bundle itself or
// several parts import is in the bundle: __core(name) gives its exports to the parts. But what is in the
// folder of a part called part.js belongs to that part, which is evaluated before those that import
// something of it.
//
// `import parts from "parts:./folder/name"` gives { x: part } for each x.js of the folder that exports something of this
// name. So a file that is added there is known without being listed.
//
// Usage: node tools/build-prelude.mjs ENTRY.js OUT.js   (writes OUT.js, OUT-parts.js, OUT.js.map, OUT.js.d)
import { build } from "esbuild";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { primordials } from "./primordials.mjs";
import { declarations, followTurns, moveMap, namesFor } from "./bundler/turns.mjs";

const [entry, out] = process.argv.slice(2);
const folder = path.resolve("prelude");
const nameOf = (file) => path.relative(folder, file);
const fileOf = (name) => path.join(folder, name);
const inputs = new Set();
// The modules of Node.js work on what the core gives them, and bring packages of their own.
const primordialsOfParts = new Set(); // what parts use of internal/primordials.js
const isCore = path.resolve(entry) === path.join(folder, "bootstrap.js");

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

/** The package of util.inspect() asks our engine, where it has only guesses. Each place must be there, once. */
const inspectEngine = {
  name: "inspect-engine",
  setup(build) {
    build.onLoad({ filter: /node-inspect-extracted\/dist\/inspect\.js$/ }, ({ path: file }) => {
      let text = readFileSync(file, "utf8");
      const promiseStates = /constants:\{kPending:(\w+),kRejected:(\w+)/.exec(text).slice(1, 3).join(",");
      const formatValue = /function (\w+)\(\w,\w,\w,\w\)\{if\("object"!==/.exec(text)[1];
      for (const [from, to] of [
        [/getProxyDetails:\w+\.getProxyDetails,/, "getProxyDetails:__engine.proxyDetails,"],
        [/getPromiseDetails:function\(\)\{return\[\w,void 0\]\}/, `getPromiseDetails:function(p){return __engine.promiseDetails(p,${promiseStates})}`],
        [/\{if\((\w)\.stack\)\{if\("string"==typeof \1\.stack\)return \1\.stack;/, (_, e) => `{var __stack=__engine.stackOf(${e});if(__stack){if("string"==typeof __stack)return __stack;`],
        // A proxy is named as one, and what it stands for is looked at without its traps.
        [/\}\((\w),(\w),(\w)\);\w=\2\}if\(\1\.customInspect\)/, (_, t, f, i) => `}(${t},${f},${i});return"Proxy("+${formatValue}(${t},${f},${i})+")"}if(${t}.customInspect)`],
        // The platform's own objects are shown by their attributes.
        [/if\((\w)\.customInspect\)\{var (\w),(\w)=(\w)\[(\w+)\];/, (_, t, s, v, e, custom) => `if(${t}.customInspect){var ${s},${v}=__engine.customOf(${e},${custom});`],
        [/function (\w+)\((\w)\)\{var (\w)=\w+\(\2,!1\);if\(void 0!==\3\)\{if\(null===\3\)return!0;\2=\3\}/, (all, f, t, e) => all.replace(`${t}=${e}}`, `return ${f}(${e})}`)],
      ]) {
        if (text.split(new RegExp(from, "g")).length < 2) throw new Error(`node-inspect-extracted: ${from} is not there`);
        text = text.replace(from, to);
      }
      const engine = path.resolve("prelude/node/internal/inspect-engine.js");
      return { contents: `var __engine=require(${JSON.stringify(engine)});\n${text}`, resolveDir: path.dirname(file) };
    });
  },
};

/** Resolves "part:./x.js" to the function that loads it; `found` gets the names. */
const parts = (found) => ({
  name: "parts",
  setup(build) {
    build.onResolve({ filter: /^part:/ }, ({ path: wanted, resolveDir }) => ({
      path: nameOf(path.join(resolveDir, wanted.slice(5))), namespace: "part",
    }));
    build.onLoad({ filter: /.*/, namespace: "part" }, ({ path: name }) => {
      found.add(name);
      return {
        contents: `import { definePart } from "./internal/parts.js";\nexport default definePart(${JSON.stringify(name)});`,
        resolveDir: folder,
      };
    });
    build.onResolve({ filter: /^parts:/ }, ({ path: wanted, resolveDir }) => ({ path: path.join(resolveDir, wanted.slice(6)), namespace: "parts" }));
    build.onLoad({ filter: /.*/, namespace: "parts" }, ({ path: wanted }) => {
      const from = path.dirname(wanted), name = path.basename(wanted);
      inputs.add(path.relative(".", from)); // a new file changes the time of its folder
      const files = readdirSync(from).sort().filter((file) => file.endsWith(".js") && new RegExp(`^export (const|function|async function) ${name}\\b`, "m").test(readFileSync(path.join(from, file), "utf8")));
      return {
        contents: `${files.map((file, i) => `import part${i} from "part:./${file}";`).join("\n")}\nexport default { ${files.map((file, i) => `${JSON.stringify(path.basename(file, ".js"))}: part${i}`).join(", ")} };`,
        resolveDir: from,
      };
    });
  },
});

/** Within a part: modules of the core are asked for, not bundled. `exportsOf` has their names. */
const fromCore = (exportsOf) => ({
  name: "from-core",
  setup(build) {
    build.onResolve({ filter: /^\.\.?\// }, ({ path: wanted, resolveDir, kind }) => {
      const name = nameOf(path.join(resolveDir, wanted));
      return kind !== "entry-point" && exportsOf.has(name) ? { path: name, namespace: "core" } : undefined;
    });
    build.onLoad({ filter: /.*/, namespace: "core" }, ({ path: name }) => ({
      contents: `const core = __core(${JSON.stringify(name)});\n${exportsOf.get(name).map((e) => `export const ${e} = core.${e};`).join("\n")}`,
    }));
  },
});

/** esbuild's own helpers in a part, which is evaluated after code of the user has run. */
function protectHelpers(body) {
  primordialsOfParts.add("$Object");
  return body
    .replace("var __defProp=Object.defineProperty;", 'var __safe=__core("internal/primordials.js").$Object,__defProp=__safe.defineProperty;')
    .replace("__getOwnPropDesc=Object.getOwnPropertyDescriptor", "__getOwnPropDesc=__safe.getOwnPropertyDescriptor")
    .replace("__getOwnPropNames=Object.getOwnPropertyNames", "__getOwnPropNames=__safe.getOwnPropertyNames")
    .replace("!__hasOwnProp.call(to,key)", "!__safe.hasOwn(to,key)");
}

async function bundle(options, plugins) {
  const result = await build({
    plugins: [nodeModules, inspectEngine, ...plugins, ...(isCore ? [primordials(folder, (file) => readFileSync(file, "utf8"), plugins.some((p) => p.name === "from-core") ? primordialsOfParts : null)] : [])],
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
    ...options,
  });
  const files = Object.keys(result.metafile.inputs).filter((f) => !f.includes(":") && f !== "<stdin>");
  for (const file of files) inputs.add(path.relative(".", file));
  const output = (suffix) => result.outputFiles.find((f) => f.path.endsWith(suffix)).text;
  // esbuild's own function goes: a function within a function is parsed once more. The rest stays
  // on its lines, so that the source map is true but for the first one.
  let body = /^(?:"use strict";)?var __prelude=\(\(\)=>\{([^]*)\}\)\(\);\s*$/.exec(output(".js"))[1];
  if (isCore && plugins.some((p) => p.name === "from-core")) body = protectHelpers(body);
  const names = namesFor(body);
  const whole = `(function(__native,__options,__core){"use strict";${declarations(names, "__native.turns??={mark:__native.mark(),c:null}")}${body}})\n`;
  const { script, insertions } = followTurns(whole, names);
  if (/[^\x00-\x7f]/.test(script)) throw new Error("the prelude must be ASCII");
  const map = JSON.stringify(moveMap(JSON.parse(output(".map")), whole, insertions));
  return { script, map, modules: files.map((f) => nameOf(path.resolve(f))) };
}

/** The names that modules export. */
async function exportNames(names) {
  const { metafile } = await build({
    entryPoints: names.map(fileOf), outdir: folder, outbase: folder, bundle: false, format: "esm", write: false, metafile: true, logLevel: "warning",
  });
  return new Map(Object.values(metafile.outputs).map((o) => [nameOf(path.resolve(o.entryPoint)), o.exports.filter((e) => e !== "default")]));
}

/** The modules that make up each part, by its name: everything it reaches that is not in `core`. */
async function findParts(found, core) {
  const members = new Map();
  for (const name of found) { // grows meanwhile: parts may ask for parts
    const { modules } = await bundle({ entryPoints: [fileOf(name)] }, [parts(found)]);
    members.set(name, modules.filter((m) => !core.has(m)));
  }
  return members;
}

/** A script that exports what the part does and, as `__modules`, what others need of its modules. */
const entryOf = (name, owned) => `export * from ${JSON.stringify(`./${name}`)};
${owned.map((m, i) => `import * as m${i} from ${JSON.stringify(`./${m}`)};`).join("\n")}
${owned.length ? `export const __modules = { ${owned.map((m, i) => `${JSON.stringify(m)}: m${i}`).join(", ")} };` : ""}`;

const found = new Set();
let { script, map, modules } = await bundle({ entryPoints: [entry] }, [parts(found)]);
let text = "";
if (found.size > 0) {
  const core = new Set(modules);
  const members = await findParts(found, core);
  // What several parts have goes to the one that owns it, or to the core.
  const owners = {};
  const counts = new Map();
  for (const list of members.values()) for (const m of list) counts.set(m, (counts.get(m) ?? 0) + 1);
  for (const [m, count] of counts) {
    if (count === 1) continue;
    if (found.has(m)) throw new Error(`${m} is a part, and another part imports it: use "part:" there too`);
    const owner = path.join(path.dirname(m), "part.js");
    if (members.has(owner)) owners[m] = owner;
    else core.add(m);
  }
  const asked = [...core, ...Object.keys(owners)].filter((m) => !m.startsWith("..") && m.endsWith(".js"));
  const exportsOf = await exportNames(asked);
  const places = {}, used = new Set();
  for (const name of found) {
    const others = new Map([...exportsOf].filter(([m]) => owners[m] !== name));
    const owned = Object.keys(owners).filter((m) => owners[m] === name);
    const watch = { name: "watch", setup: (b) => b.onLoad({ filter: /.*/, namespace: "core" }, ({ path: m }) => void used.add(m)) };
    const part = await bundle({ stdin: { contents: entryOf(name, owned), resolveDir: folder } }, [parts(found), watch, fromCore(others)]);
    places[name] = [text.length, part.script.length];
    text += part.script;
  }
  const names = [...used].filter((m) => owners[m] === undefined);
  const taken = [...primordialsOfParts].join(", ");
  const contents = `${taken && `import { ${taken} } from "./internal/primordials.js";`}
${names.map((m, i) => `import * as m${i} from ${JSON.stringify(`./${m}`)};`).join("\n")}
import { setCore } from "./internal/parts.js";
export * from ${JSON.stringify(`./${nameOf(path.resolve(entry))}`)};
setCore({ ${[...(taken ? [`"internal/primordials.js": { ${taken} }`] : []), ...names.map((m, i) => `${JSON.stringify(m)}: m${i}`)].join(", ")} }, ${JSON.stringify(places)}, ${JSON.stringify(owners)});`;
  ({ script, map } = await bundle({ stdin: { contents, resolveDir: folder } }, [parts(found)]));
}
writeFileSync(out, script);
writeFileSync(out.replace(/\.js$/, "-parts.js"), text);
writeFileSync(out + ".map", map);
writeFileSync(out + ".d", `${out}: ${[...inputs].join(" ")}\n${[...inputs].map((f) => f + ":\n").join("")}`);
