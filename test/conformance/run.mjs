// Runs the conformance tests: node test/conformance/run.mjs [FILE or part of a name]...
//
// Each test/conformance/*/*.test.js is bundled with the harness and runs, by PEER, in
//   jsrun     (default) build/jsrun: the prelude with an event loop, no server
//   cairn     build/cairn serve: a worker that answers its results as JSON
//   workerd   the hosted platform's own runtime, so that expectations are known to be its
// VERBOSE=1 lists every test. The last line is "N passed, N failed".
import { build } from "esbuild";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { children, haveWorkerd, root, startCairn, startWorkerd } from "../lib/peers.mjs";
import { plainParts } from "../lib/plain-parts.mjs";
import { startServer } from "./server.mjs";

const here = path.dirname(fileURLToPath(import.meta.url)); // import.meta.dirname is not in Node.js 18
const peer = process.env.PEER || "jsrun";
const verbose = !!process.env.VERBOSE;
// Without a configuration there are no flags but these.
const JSRUN_OPTIONS = { compatibilityFlags: { cache_option_enabled: true, cache_no_cache_enabled: true, enable_nodejs_process_v2: true, diagnostics_channel_has_subscribers_getter: true } };
const FILE_TIMEOUT_MS = 120_000;

function testFiles() {
  const wanted = process.argv.slice(2);
  let files = [];
  for (const dir of readdirSync(here, { withFileTypes: true })) {
    if (!dir.isDirectory()) continue;
    const folder = path.join(here, dir.name);
    for (const name of readdirSync(folder)) if (name.endsWith(".test.js")) files.push(path.join(folder, name));
  }
  files.sort();
  // test/conformance/internal/ imports parts of the prelude: there is no peer for that.
  if (peer !== "jsrun") files = files.filter((f) => !f.includes("/internal/"));
  return wanted.length ? files.filter((f) => wanted.some((w) => f.includes(w) || path.resolve(w) === f)) : files;
}

/** The entry module of one bundle. */
function entry(file) {
  const imports = `import ${JSON.stringify(file)};\nimport { run } from ${JSON.stringify(path.join(here, "harness.js"))};\n`;
  if (peer === "jsrun") {
    return `${imports}run("jsrun", globalThis.__server ?? null).then(
      (results) => __native.log(1, "RESULTS " + JSON.stringify(results)),
      (error) => __native.log(3, "the harness failed: " + error));`;
  }
  return `${imports}export default { async fetch(request) {
    return Response.json(await run(${JSON.stringify(peer)}, request.headers.get("x-server")));
  } };`;
}

/**
 * `import data from "shared:wpt-url/x.json"` gives the vectors of ../shared/data (SHARED names
 * another place for that folder), or null where it is absent: the test then skips.
 */
const sharedData = {
  name: "shared-data",
  setup(build) {
    const folder = path.join(process.env.SHARED ?? path.join(root, "../shared"), "data");
    build.onResolve({ filter: /^shared:/ }, ({ path: name }) => ({ path: path.join(folder, name.slice(7)), namespace: "shared" }));
    build.onLoad({ filter: /.*/, namespace: "shared" }, ({ path: name }) => ({
      contents: existsSync(name) ? readFileSync(name) : "null",
      loader: "json",
    }));
  },
};

/** In jsrun the modules of the runtime are those that the prelude keeps by name. */
const providedModules = {
  name: "provided-modules",
  setup(build) {
    build.onResolve({ filter: /^(node|cloudflare):/ }, ({ path: name }) => ({ path: name, namespace: "provided" }));
    build.onLoad({ filter: /.*/, namespace: "provided" }, ({ path: name }) => ({
      contents: `const m = __modules[${JSON.stringify(name)}]; module.exports = m.default ?? m;`,
    }));
  },
};

async function bundle(file, out, server) {
  await build({
    stdin: { contents: entry(file), resolveDir: here, loader: "js" },
    outfile: out,
    bundle: true,
    format: peer === "jsrun" ? "iife" : "esm",
    target: "es2024",
    keepNames: false,
    external: peer === "jsrun" ? [] : ["node:*", "cloudflare:*"],
    // As the bundler does for a project that imports node:async_hooks.
    supported: peer !== "workerd" && readFileSync(file, "utf8").includes('"node:async_hooks"')
      ? { "async-await": false, "async-generator": false, "for-await": false } : {},
    banner: peer === "jsrun" ? { js: `globalThis.__server = ${JSON.stringify(server)}; globalThis.__options ??= {};` } : {},
    plugins: peer === "jsrun" ? [sharedData, providedModules, plainParts] : [sharedData],
    logLevel: "error",
  });
}

function runJsrun(script) {
  return new Promise((resolve) => {
    const child = execFile(path.join(root, "build/jsrun"), [script, JSON.stringify(JSRUN_OPTIONS)], { timeout: FILE_TIMEOUT_MS, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      children.delete(child);
      const line = stdout.split("\n").find((l) => l.startsWith("RESULTS "));
      if (line) resolve(JSON.parse(line.slice(8)));
      else resolve([{ name: "the file", status: "fail", error: `no results (${error?.signal ?? error?.code ?? "the loop ended with a test pending"}): ${stderr.slice(-2000)}` }]);
    });
    children.add(child);
    // A timer of AbortSignal.timeout(2 ** 53 - 1) keeps the loop for as long: what counts has been said.
    let said = "";
    child.stdout.on("data", (text) => {
      said = said.slice(said.lastIndexOf("\n") + 1) + text;
      if (/^RESULTS .*\n/m.test(said)) child.kill("SIGKILL");
    });
  });
}

async function ask(address, server) {
  const response = await fetch(address, { headers: { "x-server": server }, signal: AbortSignal.timeout(FILE_TIMEOUT_MS) });
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    return [{ name: "the file", status: "fail", error: `answered ${response.status}: ${text.slice(0, 2000)}` }];
  }
}

/** Compares the table of known differences in docs/reference/compatibility.md with what was seen; UPDATE=1 writes it. */
function checkDocument(differences) {
  const file = path.join(root, "docs/reference/compatibility.md");
  const document = readFileSync(file, "utf8");
  const cell = (text) => text.replaceAll("|", "\\|");
  const rows = differences.map((d) => `| \`${d.file}\` | ${cell(d.name)} | ${cell(d.reason)} |`);
  const table = ["| File | Test | On workerd |", "|---|---|---|", ...rows].join("\n");
  const wanted = document.replace(/<!-- differences -->\n[^]*<!-- end -->/, () => `<!-- differences -->\n${table}\n<!-- end -->`);
  if (wanted === document) return true;
  if (process.env.UPDATE) writeFileSync(file, wanted);
  else console.log("FAIL docs/reference/compatibility.md: its table of differences is not up to date (UPDATE=1 writes it)");
  return !!process.env.UPDATE;
}

const files = testFiles();
if (peer === "workerd" && !haveWorkerd) {
  console.log("skip: workerd is not installed (make workerd)");
  console.log("0 passed, 0 failed");
  process.exit(0);
}
const dir = mkdtempSync(path.join(os.tmpdir(), "conformance-"));
const server = await startServer();
const totals = { pass: 0, fail: 0, skip: 0, differs: 0 };
const differences = [];
try {
  const names = [];
  for (const file of files) {
    const name = `${path.relative(here, file).replace(/[^\w]/g, "-")}.js`;
    await bundle(file, path.join(dir, name), server.url);
    names.push(name);
  }
  const addresses = peer === "workerd" && names.length ? (await startWorkerd(dir, names)).addresses : [];
  for (let i = 0; i < files.length; i++) {
    let results;
    try {
      if (peer === "jsrun") results = await runJsrun(path.join(dir, names[i]));
      else if (peer === "workerd") results = await ask(addresses[i], server.url);
      else if (peer === "cairn") {
        const { child, address } = await startCairn(dir, names[i], { verbose });
        results = await ask(address, server.url);
        children.delete(child);
        child.kill("SIGTERM");
      } else throw new Error(`PEER=${peer} is none of jsrun, cairn, workerd`);
    } catch (error) {
      results = [{ name: "the file", status: "fail", error: String(error) }];
    }
    const title = path.relative(here, files[i]);
    for (const r of results) {
      totals[r.status]++;
      if (r.status === "fail") console.log(`FAIL ${title}: ${r.name}\n     ${r.error.replaceAll("\n", "\n     ")}`);
      else if (r.status === "differs") differences.push({ file: title, ...r });
      if (r.status === "differs") console.log(`differs ${title}: ${r.name} (${r.reason})`);
      else if (r.status === "skip") console.log(`skip ${title}: ${r.name} (${r.reason})`);
      else if (verbose) console.log(`${r.status} ${title}: ${r.name}`);
    }
  }
} finally {
  for (const child of children) child.kill("SIGTERM");
  server.close();
  rmSync(dir, { recursive: true, force: true });
}
if (peer === "workerd" && process.argv.length === 2 && !checkDocument(differences)) totals.fail++;
if (totals.differs || totals.skip) console.log(`${totals.differs} known differences, ${totals.skip} skipped on ${peer}`);
console.log(`${totals.pass} passed, ${totals.fail} failed`);
process.exitCode = totals.fail || !files.length ? 1 : 0;
