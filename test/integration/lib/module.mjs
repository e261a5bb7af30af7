// Compiles modules (include/cairn.h) for tests, and makes projects that use them.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { cairn, root } from "./server.mjs";

// A module in a server under sanitizers is built with them too.
const sanitized = /san-address-undefined/.test(cairn) ? ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1", "-g"] : ["-O2"];

/** Makes `out` of a C file (below the root, or absolute). */
export function compile(source, out, flags = []) {
  const file = path.resolve(root, source);
  const compiler = process.env.CC ?? "cc";
  const args = ["-std=c11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-shared", "-fPIC", ...sanitized, "-I", path.join(root, "include"), ...flags, "-o", out, file];
  const { status, stderr, error } = spawnSync(compiler, args, { encoding: "utf8" });
  if (status !== 0 || !existsSync(out)) throw new Error(`${compiler} ${file}: ${error ?? stderr}`);
  return out;
}

/** The wrangler.json of a worker with one class of a module. */
export const configuration = (className, more = {}) => {
  const [module] = className.split(":");
  const { cairn: settings, ...rest } = more;
  return JSON.stringify({
    name: "app", main: "index.js", compatibility_date: "2026-01-01", compatibility_flags: ["nodejs_compat"],
    cairn: { modules: { [module]: `${module}.so` }, ...settings },
    durable_objects: { bindings: [{ name: "OBJECT", class_name: className }] },
    migrations: [{ tag: "v1", new_sqlite_classes: [className] }],
    ...rest,
  });
};
