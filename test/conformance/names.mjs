// The names that each module of Node.js exports, here, on workerd and in Node.js 22: node test/conformance/names.mjs (`make node-names`)
//
// What differs is the table of docs/reference/compatibility.md, which UPDATE=1 writes; each row has a reason, or the run fails. NODE names a Node.js 22
// if it is not the one that runs this; without one that column is taken from the table as it is.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { children, haveWorkerd, root, startCairn, startWorkerd } from "../lib/peers.mjs";

const modules = JSON.parse(readFileSync(path.join(root, "prelude/node/names.json"), "utf8")).filter((name) => name.startsWith("node:"));
const collect = `
const functionsOwn = new Set(["length", "name", "prototype", "caller", "arguments"]);
async function names() {
  const found = {};
  for (const [name, load] of Object.entries({ ${modules.map((name) => `"${name}": () => import("${name}")`).join(", ")} })) {
    try {
      const value = (await load()).default;
      found[name] = Object.getOwnPropertyNames(value).filter((key) => typeof value !== "function" || !functionsOwn.has(key)).sort();
    } catch (error) {
      found[name] = null;
    }
  }
  return found;
}
`;

/** Why a name is not where it is elsewhere: the first that fits [module, name] counts. */
const REASONS = {
  missing: [
    [/^node:net BoundSocket$/, "a socket that a server listens with; servers cannot listen here"],
    [/^node:cluster domain$/, "the property of an emitter that a domain sets: there are no domains"],
  ],
  more: [
    [/^node:_stream_/, "the class by its name, which the bundler reads from the default export; on the platform only `import * as` has it"],
    [/^node:(timers (Timeout|Immediate)|cluster Cluster)$/, "a class, which the bundler reads from the default export; on the platform only `import * as` has it"],
    [/^node:diagnostics_channel TracingChannel$/, "the class of what `tracingChannel()` gives"],
    [/^node:url URLPattern$/, "as in Node.js 24"],
  ],
};
const reasonOf = (kind, module, name) => REASONS[kind].find(([pattern]) => pattern.test(`${module} ${name}`))?.[1];

function inNode() {
  const command = process.env.NODE ?? process.execPath;
  if (!execFileSync(command, ["--version"], { encoding: "utf8" }).startsWith("v22.")) return null;
  return JSON.parse(execFileSync(command, ["--no-warnings", "--input-type=module", "-"], { encoding: "utf8", input: `${collect}; console.log(JSON.stringify(await names())); process.exit(0);` }));
}

if (!haveWorkerd) {
  console.log("skip: workerd is not installed (make workerd)");
  process.exit(0);
}
const dir = mkdtempSync(path.join(os.tmpdir(), "names-"));
let here, there;
try {
  for (const name of ["there.js", "here.js"]) writeFileSync(path.join(dir, name), `${collect}export default { fetch: async () => Response.json(await names()) };`);
  const peers = [await startCairn(dir, "here.js"), await startWorkerd(dir, ["there.js"])];
  [here, there] = await Promise.all([peers[0].address, peers[1].addresses[0]].map(async (address) => (await fetch(address)).json()));
} finally {
  for (const child of children) child.kill("SIGTERM");
  rmSync(dir, { recursive: true, force: true });
}

const file = path.join(root, "docs/reference/compatibility.md"), document = readFileSync(file, "utf8");
const node = inNode();
let failed = 0;
const rows = [];
/** Rows of the table: a cell has at most 120 characters (tools/lint-docs.mjs), further names are in a row of their own. */
const addRows = (module, where, found, why) => {
  const cells = [];
  for (const name of found.map((each) => `\`${each}\``))
    if (cells.length > 0 && `${cells.at(-1)}, ${name}`.length <= 120) cells[cells.length - 1] += `, ${name}`;
    else cells.push(name);
  for (const cell of cells) rows.push(`| \`${module}\` | ${where} | ${cell} | ${why} |`);
};
for (const module of modules) {
  const [ours, theirs] = [here, there].map((all) => all[module]);
  if (ours === null || theirs === null) {
    console.log(`FAIL ${module}: it cannot be loaded ${ours === null ? "here" : "on workerd"}`);
    failed++;
    continue;
  }
  const row = (kind, where, found) => {
    const reasons = new Set(found.map((name) => {
      const reason = reasonOf(kind, module, name);
      if (reason === undefined) {
        console.log(`FAIL ${module}: ${name} is ${where}, and nobody says why`);
        failed++;
      }
      return reason ?? "**no reason**";
    }));
    addRows(module, where, found, [...reasons].join("; "));
  };
  row("missing", "not here", theirs.filter((name) => !ours.includes(name)));
  row("more", "here alone", ours.filter((name) => !theirs.includes(name) && !node?.[module]?.includes(name)));
  const both = node === null ? [] : (node[module] ?? []).filter((name) => !ours.includes(name) && !theirs.includes(name));
  addRows(module, "in Node.js alone", both, "the platform does not have it either");
}
if (node === null) {
  console.log("Node.js 22 is not here (NODE=...): its names are not compared");
} else {
  const wanted = document.replace(/<!-- names -->\n[^]*?<!-- end -->/, () => `<!-- names -->\n| Module | Where | Names | Why |\n|---|---|---|---|\n${rows.join("\n")}\n<!-- end -->`);
  if (wanted !== document) {
    if (process.env.UPDATE) writeFileSync(file, wanted);
    else {
      console.log("FAIL docs/reference/compatibility.md: its table of names is not up to date (UPDATE=1 writes it)");
      failed++;
    }
  }
}
console.log(`${modules.length} modules, ${rows.length} rows, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
