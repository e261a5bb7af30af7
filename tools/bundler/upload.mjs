// A project as modules that can be uploaded (`upload` of the job): one ES module with everything that the
// project and its packages have, and a file for each data or wasm import. What the runtime provides stays an
// import, for the server that takes the upload bundles it once more for itself.
//
// L1  Nothing of the runtime's is in it (no `__cairn`, no rewritten async functions): it is what wrangler
//     would upload, and runs wherever that would.
// L2  A name of the runtime's that is required, not imported, is a module of its own that gives what
//     require() gives: the default export of a node: module, else the whole module.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";

const REQUIRED = new Set(["require-call", "require-resolve"]);
export const MAIN = "index.js";

/** What esbuild is told instead of what it is told for a script of this server. */
export function uploadOptions(common, entry, serviceWorker) {
  const define = { ...common.define };
  delete define["import.meta"];
  delete define["import.meta.url"];
  return { ...common, define, format: serviceWorker ? "iife" : "esm", entryPoints: [entry] };
}

/** Where an import of the runtime's leads. */
export function provideExternally({ kind, namespace }, name) {
  return REQUIRED.has(kind) && namespace !== "cairn-provided"
    ? { path: name, namespace: "cairn-provided" }
    : { path: name, external: true };
}

/** L2 */
export function requiredModule(name) {
  const value = name.startsWith("node:") ? "all.default ?? all" : "all";
  return `import * as all from ${JSON.stringify(name)}; module.exports = ${value};`;
}

/** A data or wasm import: a file of the upload, by a name that its contents decide. */
export async function uploadedFile(file, type, state) {
  const bytes = await readFile(file);
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  const name = `${hash}-${path.basename(file).replace(/[^\w.-]/g, "_")}`;
  state.inputs.add(file);
  state.files.set(name, bytes);
  state.types.set(name, type === "Data" ? "application/octet-stream" : "application/wasm");
  return { path: `./${name}`, external: true };
}
