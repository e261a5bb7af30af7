// Compiles modules (include/cairn.h) for tests, and makes projects that use them.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { cairn, root, tempDir } from "./server.mjs";

// A module in a server under sanitizers is built with them too.
const sanitizers = /san-(address-undefined|thread)\//.exec(cairn)?.[1].replace("-", ",");
export const sanitized = sanitizers ? [`-fsanitize=${sanitizers}`, "-fno-sanitize-recover=all", "-O1", "-g"] : ["-O2"];

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

/** The examples whose classes examples/c has -> the module. */
export const EXAMPLES = { "rate-limiting": "limiter", "distributed-lock": "lock", "sharded-counter": "counter", sessions: "session", "chat-room": "room", scheduler: "scheduler", "point-in-time-undo": "notebook" };

let copies = null; // of examples/, with what they share

/** The folder of an example whose classes are those of examples/c; of one that has none there, its own. `settings` are tables of [cairn]. */
export function exampleInC(name, settings = {}) {
  const module = EXAMPLES[name];
  const own = path.join(root, "examples", name);
  if (module === undefined) return own;
  if (copies === null) {
    copies = path.join(tempDir(), "examples");
    cpSync(path.join(root, "examples/shared"), path.join(copies, "shared"), { recursive: true });
    symlinkSync(path.join(root, "node_modules"), path.join(copies, "node_modules"));
  }
  const folder = path.join(copies, name);
  cpSync(own, folder, { recursive: true, filter: (source) => path.basename(source) !== ".cairn" });
  compile(`examples/c/${module}.c`, path.join(folder, `${module}.so`));
  let config = readFileSync(path.join(own, "wrangler.toml"), "utf8");
  config = config.replace(/class_name = "(\w+)"/g, `class_name = "${module}:$1"`);
  config = config.replace(/new_sqlite_classes = \[.*\]/g, (list) => list.replace(/"(\w+)"/g, `"${module}:$1"`));
  config += `\n[cairn.modules]\n${module} = "${module}.so"\n`;
  for (const [table, keys] of Object.entries(settings)) config += `[cairn.${table}]\n${Object.entries(keys).map(([key, value]) => `${key} = ${value}\n`).join("")}`;
  writeFileSync(path.join(folder, "wrangler.toml"), config);
  return folder;
}
