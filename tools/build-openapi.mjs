// The description of the control API: that of the server itself, src/admin/openapi.json, with that of the platform's API,
// src/v4/openapi.json, and what each service adds, which have the same form ("paths", "components") and stand in their folders.
//
//     node tools/build-openapi.mjs OUT
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

/** The whole document. A path or a component that two of them have is a mistake. */
export function readOpenapi(root = ".") {
  const read = (file) => JSON.parse(readFileSync(path.join(root, file), "utf8"));
  const whole = read("src/admin/openapi.json");
  const add = (to, from, file) => {
    for (const [key, value] of Object.entries(from ?? {})) {
      if (to[key] !== undefined) throw new Error(`${file}: ${key} is there already`);
      to[key] = value;
    }
  };
  for (const folder of ["src/v4", ...readdirSync(path.join(root, "src/service")).sort().map((name) => `src/service/${name}`)]) {
    const file = `${folder}/openapi.json`;
    if (!existsSync(path.join(root, file))) continue;
    const { paths, components = {} } = read(file);
    add(whole.paths, paths, file);
    for (const [kind, list] of Object.entries(components)) add(whole.components[kind] ??= {}, list, file);
  }
  return whole;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) writeFileSync(process.argv[2], `${JSON.stringify(readOpenapi(), null, 1)}\n`);
