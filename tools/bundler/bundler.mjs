// Turns a Workers project into one script for JavaScriptCore, with esbuild.
//
// It runs in cairn-bundler (src/bundler/main.c), which cairn starts once and speaks lines with: a line is a job
// (JSON, see src/project/bundle.c), and so is the answer, {"ok":true} or {"ok":false,"text":"..."}. Between jobs of
// one output folder esbuild's context is kept, so that a rebuild in `cairn dev` costs milliseconds.
//
// The script is a function expression
//     (function(__cairn){ ...; return exports })
// or, where a module awaits at its top level, one that returns a promise of them. `__cairn.modules`
// holds the modules that the runtime provides, by specifier, `__cairn.files` the bytes of data and wasm
// imports, `__cairn.turns` what async functions need to come back to whoever they run for (turns.mjs).
//
// Written into the job's folder: HASH.js, HASH.js.map, a file per data or wasm import, and last
// manifest.json, which names them and every input with its size and time. A manifest is therefore
// complete or absent.
import { createHash } from "node:crypto";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { builtinModules } from "node:module";
import path from "node:path";
import * as esbuild from "esbuild";
import { confined, withoutForeignMap } from "./confined.mjs";
import modules from "./modules.json";
import { functionsEntry } from "./pages.mjs";
import pagesRuntime from "./pages-runtime.mjs?text";
import { contentRules, ruleFilter, ruleFor } from "./rules.mjs";
import { shims } from "./shims.mjs";
import { siteManifest } from "./site.mjs";
import { serviceWorkerWrapper, usesServiceWorkerSyntax } from "./service-worker.mjs";
import { DECLARED, declarations, followTurns, moveMap, namesFor } from "./turns.mjs";
import { MAIN, provideExternally, requiredModule, uploadOptions, uploadedFile } from "./upload.mjs";

/** `import.meta`, which a function cannot have: one object of the whole script, as of one module. */
const META = "__cairn_meta";
const TLA = /Top-level await is (currently )?not (supported|available)/;

/** Files beside the configuration that decide what an import means. */
const resolution = [
  "package.json",
  "tsconfig.json",
  "jsconfig.json",
  "node_modules/.package-lock.json",
  "pnpm-lock.yaml",
  "yarn.lock",
  "bun.lock",
  "bun.lockb",
];

/** Contexts of esbuild by output folder: {key, context, state}. */
const contexts = new Map();

async function build(job) {
  const started = Date.now();
  try {
    if (job.upload) return await runUpload(job, started);
    const { result, state, wrap } = await bundle(job);
    // The second bundle is esbuild's work, the rest is ours: both at once.
    const exports = job.objects ? exportedNames(job, result) : Promise.resolve(null);
    exports.catch(() => {}); // whoever awaits it is told
    await write(job, result, state, wrap, started, exports);
    return { ok: true, text: await format(job, result.warnings, "warning") };
  } catch (error) {
    if (!error.errors) throw error;
    return { ok: false, text: await format(job, error.errors, "error") };
  }
}

/** The same for an upload (upload.mjs), which is built once. */
async function runUpload(job, started) {
  const state = { files: new Map(), types: new Map(), inputs: new Set() };
  let result = await esbuild.build(options(job, state, false));
  const entry = entryOf(job, result);
  const serviceWorker = entry?.[1].format !== "esm" && usesServiceWorkerSyntax(await readFile(job.entry, "utf8"));
  if (serviceWorker && !job.functions) result = await esbuild.build(options({ ...job, serviceWorker }, state, false));
  await writeUpload(job, result, state, started, serviceWorker && !job.functions);
  return { ok: true, text: await format(job, result.warnings, "warning") };
}

async function writeUpload(job, result, state, started, serviceWorker) {
  const text = result.outputFiles.find((f) => f.path.endsWith(".js")).text;
  const map = JSON.parse(result.outputFiles.find((f) => f.path.endsWith(".map")).text);
  map.sources = map.sources.map((s) => path.relative(job.dir, path.resolve(job.out, s)));
  // A module imports the manifest of a site; for the older syntax it is a global.
  const names = serviceWorker && state.manifest !== undefined ? `const __STATIC_CONTENT_MANIFEST=${JSON.stringify(state.manifest)};` : "";
  await replaceOutputs(job, new Map([
    [MAIN, `${names}${text}//# sourceMappingURL=${MAIN}.map\n`], [`${MAIN}.map`, JSON.stringify(map)], ...state.files,
  ]), {
    script: MAIN,
    map: `${MAIN}.map`,
    files: [...state.files.keys()],
    types: Object.fromEntries(state.types),
    serviceWorker,
    site: state.manifest === undefined ? {} : JSON.parse(state.manifest),
    inputs: await inputs(job, result, state, started),
  });
}

/** A package that is not installed: what to type, in the place of how to do without it. */
function advise(message) {
  const name = /^Could not resolve "((?:@[\w.-]+\/)?[\w-][\w.-]*)(?:\/[^"]*)?"$/.exec(message.text)?.[1];
  if (name === undefined || !message.notes.some((note) => /mark the path/.test(note.text))) return;
  message.notes = [{ text: `The package "${name}" is not installed in the project: npm install ${name}` }];
}

async function format(job, messages, kind) {
  if (!messages?.length) return "";
  for (const message of messages) {
    message.pluginName = "";
    advise(message);
  }
  const texts = await esbuild.formatMessages(messages, { kind, color: job.color, terminalWidth: 100 });
  return texts.join("").trimEnd();
}

/** Bundles; a project with a top-level await is tried again in the form that allows it. */
async function bundle(job) {
  const key = JSON.stringify(job);
  let entry = contexts.get(job.out);
  if (entry?.key !== key) {
    await entry?.context.dispose();
    contexts.delete(job.out);
    entry = await open(job, key, false);
  }
  try {
    return await rebuild(job, entry);
  } catch (error) {
    if (entry.awaits || !error.errors?.some((e) => TLA.test(e.text))) throw error;
  }
  await entry.context.dispose();
  return rebuild(job, await open(job, key, true));
}

async function open(job, key, awaits) {
  const state = { files: new Map(), inputs: new Set() };
  const context = await esbuild.context(options(job, state, awaits));
  const entry = { key, context, state, awaits };
  contexts.set(job.out, entry);
  return entry;
}

async function rebuild(job, { context, state, awaits }) {
  state.files.clear();
  state.inputs.clear();
  const result = await context.rebuild();
  return { result, state, wrap: await wrapper(job, result, awaits) };
}

/**
 * What stands before esbuild's output, on one line, and after it; DECLARED is replaced by what the
 * rewritten script needs (turns.mjs).
 */
async function wrapper(job, result, awaits) {
  if (job.functions && !awaits) return [`(function(__cairn){"use strict";${DECLARED}\n`, "\nreturn __worker;\n})\n"];
  if (awaits) return [`(function(__cairn){"use strict";${DECLARED}return(async()=>{\n`, "\nreturn __cairn.exports;\n})()})\n"];
  const entry = entryOf(job, result);
  if (entry && entry[1].format !== "esm" && usesServiceWorkerSyntax(await readFile(job.entry, "utf8")))
    return serviceWorkerWrapper;
  return [`(function(__cairn){"use strict";${DECLARED}\n`, "\nreturn __worker;\n})\n"];
}

/** The entry module among esbuild's inputs: [name, what is known of it]. */
const entryOf = (job, result) =>
  Object.entries(result.metafile.inputs).find(([name]) => path.resolve(job.dir, name) === job.entry);

/** What the entry module exports, or null if it is not an ES module: only a bundle in that form has the list. */
async function exportedNames(job, result) {
  const entry = entryOf(job, result);
  if (entry?.[1].format !== "esm") return null;
  const state = { files: new Map(), inputs: new Set() };
  const { stdin, ...settings } = options(job, state, true);
  const list = await esbuild.build({ ...settings, entryPoints: [job.entry], sourcemap: false, minify: false });
  return Object.values(list.metafile.outputs).find((output) => output.entryPoint)?.exports ?? null;
}

function options(job, state, awaits) {
  const common = {
    absWorkingDir: job.dir,
    bundle: true,
    write: false,
    metafile: true,
    outfile: path.join(job.out, "worker.js"),
    platform: "browser",
    conditions: ["workerd", "worker", "browser"],
    target: "safari18", // lowers what JavaScriptCore lacks: decorators, `using`
    charset: "utf8",
    loader: { ".js": "jsx", ".mjs": "jsx", ".cjs": "jsx" },
    sourcemap: "external",
    sourcesContent: true,
    minify: job.minify,
    keepNames: job.keepNames,
    define: {
      "process.env.NODE_ENV": JSON.stringify(job.mode),
      "global.process.env.NODE_ENV": JSON.stringify(job.mode),
      "globalThis.process.env.NODE_ENV": JSON.stringify(job.mode),
      "import.meta": META,
      "import.meta.url": JSON.stringify("file:///" + path.relative(job.dir, job.entry)),
      ...job.define,
    },
    tsconfig: job.tsconfig ?? undefined,
    tsconfigRaw: job.inside ? {} : undefined, // no file is looked for
    jsxFactory: job.jsxFactory ?? undefined,
    jsxFragment: job.jsxFragment ?? undefined,
    logLevel: "silent",
    logOverride: { "empty-import-meta": "silent" },
    plugins: [confined(job), site(job, state), functions(job, state), aliases(job), shims(job), provided(job, state), content(job, state)],
  };
  const entry = job.functions ? "cairn:functions" : job.entry;
  if (job.upload) return uploadOptions(common, entry, job.serviceWorker);
  if (!awaits) return { ...common, format: "iife", globalName: "__worker", entryPoints: [entry] };
  // Only ES modules may await; this one exports nothing, so that its text fits into a function.
  return {
    ...common,
    format: "esm",
    stdin: {
      contents: `import * as exports from ${JSON.stringify(entry)}; __cairn.exports = exports;`,
      resolveDir: job.dir,
      sourcefile: "cairn:entry",
    },
  };
}

/** `__STATIC_CONTENT_MANIFEST` of a Workers Site: a module, and a global of the older syntax. */
function site(job, state) {
  const name = /^__STATIC_CONTENT_MANIFEST$/;
  return {
    name: "cairn-site",
    setup(build) {
      if (!job.site) return;
      build.onStart(async () => {
        const { text, inputs } = await siteManifest(job.site, job.siteInclude, job.siteExclude);
        state.manifest = text;
        state.site = inputs;
      });
      build.onResolve({ filter: name }, () => ({ path: "manifest", namespace: "cairn-site" }));
      build.onLoad({ filter: /.*/, namespace: "cairn-site" }, () => ({ contents: `export default ${JSON.stringify(state.manifest)};`, loader: "js" }));
    },
  };
}

/** The entry of a Pages project: its `functions/` (pages.mjs). */
function functions(job, state) {
  return {
    name: "cairn-functions",
    setup(build) {
      if (!job.functions) return;
      build.onResolve({ filter: /^cairn:functions$/ }, () => ({ path: "entry", namespace: "cairn-functions" }));
      build.onResolve({ filter: /^cairn:pages-runtime$/ }, () => ({ path: "runtime", namespace: "cairn-pages" }));
      build.onLoad({ filter: /.*/, namespace: "cairn-pages" }, () => ({ contents: pagesRuntime, loader: "js" }));
      build.onLoad({ filter: /.*/, namespace: "cairn-functions" }, async () => {
        const { contents, folders } = await functionsEntry(job.functions);
        for (const folder of folders) state.inputs.add(folder);
        return { contents, loader: "js", resolveDir: job.dir };
      });
    },
  };
}

/**
 * `alias` comes before everything else, names that the runtime provides among them: a whole
 * specifier, or a package with what is in it. What it stands for is found from the project's folder.
 */
function aliases(job) {
  const names = Object.keys(job.alias);
  return {
    name: "cairn-alias",
    setup(build) {
      if (!names.length) return;
      const any = names.map((name) => name.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&")).join("|");
      build.onResolve({ filter: new RegExp(`^(?:${any})(?:/|$)`) }, async (args) => {
        if (args.kind === "entry-point" || args.pluginData?.cairnTried || args.pluginData?.cairnContent) return undefined;
        const fits = names.filter((name) => args.path === name || args.path.startsWith(name + "/"));
        if (!fits.length) return undefined;
        const longest = fits.reduce((a, b) => (b.length > a.length ? b : a));
        const found = await build.resolve(job.alias[longest] + args.path.slice(longest.length), {
          resolveDir: job.dir,
          importer: args.importer,
          kind: args.kind,
          pluginData: { cairnAliased: true },
        });
        return found.errors.length ? { errors: found.errors } : found;
      });
    },
  };
}

/** What a module means that only another tool has. */
const elsewhere = {
  "cloudflare:test": "It is a module of the test runner (@cloudflare/vitest-pool-workers): a server does not have it.",
};

/** Modules that the runtime provides: cloudflare:* and, under nodejs_compat, node:*. */
function provided(job) {
  const builtins = builtinModules.filter((name) => !name.startsWith("_"));
  const available = new Set(modules);
  // What is asked for while the script runs may never be asked for: it fails there, as on the platform.
  const refuse = ({ path: name, kind }, note) =>
    kind === "dynamic-import" || kind === "require-call" || kind === "require-resolve"
      ? { path: name, namespace: "cairn-missing" }
      : { errors: [{ text: `Could not resolve "${name}"`, notes: [{ text: note }] }] };
  const provide = (args, name) => (job.upload ? provideExternally(args, name) : { path: name, namespace: "cairn-provided" });
  return {
    name: "cairn-provided",
    setup(build) {
      build.onResolve({ filter: /^(cloudflare|workerd):/ }, (args) =>
        available.has(args.path)
          ? provide(args, args.path)
          : refuse(args, elsewhere[args.path] ?? "cairn does not have this module."),
      );
      build.onResolve({ filter: new RegExp(`^(node:.*|${builtins.join("|")})$`) }, async (args) => {
        const bare = args.path.replace(/^node:/, "");
        const prefixed = bare !== args.path;
        if (args.pluginData?.cairnTried) return undefined;
        const name = "node:" + bare;
        const enabled = job.nodejsCompat || (job.nodejsAls && bare === "async_hooks");
        if (enabled && available.has(name)) return provide(args, name);
        if (!prefixed) {
          // A package of that name may be installed (buffer, events, util...).
          const found = await build.resolve(args.path, {
            resolveDir: args.resolveDir,
            importer: args.importer,
            kind: args.kind,
            pluginData: { cairnTried: true },
          });
          if (!found.errors.length) return found;
        }
        return refuse(
          args,
          enabled
            ? `cairn does not have ${name} yet.`
            : `Modules of Node.js need the compatibility flag "nodejs_compat" in the project's configuration.`,
        );
      });
      build.onLoad({ filter: /.*/, namespace: "cairn-provided" }, ({ path: name }) => {
        // CommonJS on purpose: esbuild then reads each imported name from the object when it is
        // used, so that the bundle needs no list of names. A node: module's default export is what
        // require() of it gives; the others have none.
        if (job.upload) return { contents: requiredModule(name), loader: "js" };
        const module = `__cairn.modules[${JSON.stringify(name)}]`;
        const value = name.startsWith("node:") ? `${module}.default ?? ${module}` : module;
        return { contents: `module.exports = ${value};`, loader: "js" };
      });
      build.onLoad({ filter: /.*/, namespace: "cairn-missing" }, ({ path: name }) => {
        const text = `No such module "${name}".`;
        return { contents: `exports.missing = true; throw new Error(${JSON.stringify(text)});`, loader: "js" };
      });
    },
  };
}

/** Text, data, wasm and JSON imports by the project's rules, then by wrangler's defaults. */
function content(job, state) {
  const rules = contentRules(job.rules, Boolean(job.inside));
  return {
    name: "cairn-content",
    setup(build) {
      build.onResolve({ filter: ruleFilter(rules) }, async (args) => {
        if (args.kind === "entry-point" || args.pluginData?.cairnContent) return undefined;
        const rule = ruleFor(rules, args.path, path.relative(job.dir, path.resolve(args.resolveDir, args.path)));
        if (!rule) return undefined;
        const found = await build.resolve(args.path.replace(/\?[^?]*$/, ""), {
          resolveDir: args.resolveDir,
          importer: args.importer,
          kind: args.kind,
          pluginData: { cairnContent: true },
        });
        if (found.errors.length) return { errors: found.errors };
        if (job.upload && (rule.type === "Data" || rule.type === "CompiledWasm"))
          return uploadedFile(found.path, rule.type, state);
        return { path: found.path, namespace: "cairn-" + rule.type };
      });
      for (const type of ["Text", "JSON", "ESModule", "CommonJS", "Data", "CompiledWasm"])
        build.onLoad({ filter: /.*/, namespace: "cairn-" + type }, async ({ path: file }) => {
          state.inputs.add(file);
          const bytes = await readFile(file);
          const isCode = type === "ESModule" || type === "CommonJS";
          return { ...load(type, file, isCode ? withoutForeignMap(job, bytes) : bytes, state), resolveDir: path.dirname(file) };
        });
    },
  };
}

function load(type, file, bytes, state) {
  if (type === "Text") return { contents: bytes, loader: "text" };
  if (type === "JSON") return { contents: bytes, loader: "json" };
  if (type === "ESModule" || type === "CommonJS") return { contents: bytes, loader: "jsx" };
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  const name = `${hash}-${path.basename(file)}`;
  state.files.set(name, bytes);
  const buffer = `__cairn.files[${JSON.stringify(name)}]`;
  const value = type === "Data" ? buffer : `new WebAssembly.Module(${buffer})`;
  return { contents: `export default ${value};`, loader: "js" };
}

/** The modules of the bundle, as esbuild names them in it. */
const modulesOf = (result) => new Set(Object.values(result.metafile.outputs).flatMap((output) => Object.keys(output.inputs)));

/** What cannot be parsed is an error of the build, like any other. */
function follow(script, names, modules) {
  try {
    return followTurns(script, names, modules);
  } catch (error) {
    if (!(error instanceof SyntaxError) || !error.loc) throw error;
    const line = script.split("\n")[error.loc.line - 1].trim();
    throw Object.assign(new Error(error.message), { errors: [{ text: `${error.message.replace(/ \(\d+:\d+\)$/, "")}, in the bundled script at: ${line.slice(0, 200)}` }] });
  }
}

async function write(job, result, state, [before, after], started, exports) {
  const text = result.outputFiles.find((f) => f.path.endsWith(".js")).text;
  const names = namesFor(text);
  const siteNames = state.manifest === undefined ? "" : `const __STATIC_CONTENT_MANIFEST=${JSON.stringify(state.manifest)};`;
  const meta = text.includes(META) ? `const ${META}={__proto__:null};` : "";
  const whole = before.replace(DECLARED, () => siteNames + meta + declarations(names, "__cairn.turns")) + text + after;
  const { script, insertions } = follow(whole, names, modulesOf(result));
  let map = JSON.parse(result.outputFiles.find((f) => f.path.endsWith(".map")).text);
  map.mappings = ";" + map.mappings; // `before` is one line
  map = moveMap(map, whole, insertions);
  // Names as the user knows them: relative to the project.
  map.sources = map.sources.map((s) => path.relative(job.dir, path.resolve(job.out, s)));
  const hash = createHash("sha256").update(script).digest("hex").slice(0, 16);
  const outputs = new Map([[`${hash}.js`, script], [`${hash}.js.map`, JSON.stringify(map)], ...state.files]);
  await replaceOutputs(job, outputs, {
    script: `${hash}.js`,
    map: `${hash}.js.map`,
    files: [...state.files.keys()],
    exports: (await exports) ?? undefined,
    inputs: await inputs(job, result, state, started),
  });
}

/** Writes the files, then the manifest that names them; what the last build left goes, other files in the folder are not ours. */
async function replaceOutputs(job, files, made) {
  const manifest = { key: job.key, ...made };
  const put = async (name, bytes) => {
    const file = path.join(job.out, name);
    const temporary = `${file}.${process.pid}.tmp`; // two servers may share a folder
    await writeFile(temporary, bytes);
    await rename(temporary, file);
  };
  await mkdir(job.out, { recursive: true });
  for (const [name, bytes] of files) await put(name, bytes);
  const last = await readFile(path.join(job.out, "manifest.json"), "utf8").then(JSON.parse, () => null);
  await put("manifest.json", JSON.stringify(manifest));
  for (const name of last?.files ? [last.script, last.map, ...last.files] : [])
    if (!files.has(name)) await rm(path.join(job.out, path.basename(name)), { force: true });
}

/** Everything the bundle was made of, and what decides how names resolve, with size and time. */
async function inputs(job, result, state, started) {
  const names = new Set([...state.inputs, ...(state.site ?? [])]);
  for (const name of Object.keys(result.metafile.inputs))
    if (!/^(cairn-[A-Za-z]+|<stdin>|cairn|\(disabled\)):/.test(name)) names.add(path.resolve(job.dir, name));
  for (const name of resolution) names.add(path.join(job.dir, name));
  if (job.tsconfig) names.add(path.resolve(job.dir, job.tsconfig));
  const list = [];
  for (const name of names) {
    let info;
    try {
      info = await stat(name, { bigint: true });
    } catch {
      list.push({ path: name, size: -1, mtime: "" }); // must stay absent
      continue;
    }
    // A file touched while the build ran may have been read before or after: never up to date.
    const settled = info.mtimeMs < started - 10;
    list.push({ path: name, size: Number(info.size), mtime: settled ? String(info.mtimeNs) : "" });
  }
  return list;
}

/** @param {string} line a job; @returns what is answered */
export async function run(line) {
  try {
    return await build(JSON.parse(line));
  } catch (error) {
    // Where in this file it was is for the server's operator, not for whoever wrote the project.
    console.error(`${error?.message ?? error}\n${error?.stack ?? ""}`);
    return { ok: false, text: `the bundler failed: ${error?.message ?? error}` };
  }
}
