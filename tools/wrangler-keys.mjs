#!/usr/bin/env node
// The keys that wrangler's configuration may have, from the config-schema.json of its npm packages, of all versions given:
//
//   tools/wrangler-keys.mjs old/node_modules/wrangler node_modules/wrangler > test/unit/config/wrangler_keys.h
//
// "d1_databases[].binding" is a key of the tables of a list, "exports.*.type" one of the tables of a table. What one key holds of whole
// other configurations is left out: cairn knows those by that key alone.
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const WHOLE = new Set(["cloudchamber", "containers", "previews"]);

/** Every key of the schema of the package in a folder, sorted. */
export function keysOf(folder) {
  const schema = JSON.parse(readFileSync(path.join(folder, "config-schema.json"), "utf8"));
  const keys = new Set();
  const resolve = (node) => (node?.$ref ? resolve(schema.definitions[decodeURIComponent(node.$ref.replace("#/definitions/", ""))]) : node);
  const inside = new Set(); // a type of itself (any JSON) has no keys of its own
  const walk = (reference, at) => {
    const node = resolve(reference);
    if (typeof node !== "object" || node === null || inside.has(node)) return;
    inside.add(node);
    for (const part of [...(node.anyOf ?? []), ...(node.oneOf ?? []), ...(node.allOf ?? [])]) walk(part, at);
    for (const item of [node.items ?? []].flat()) walk(item, `${at}[]`);
    for (const [key, value] of Object.entries(node.properties ?? {})) {
      if (at === "" && (key === "env" || key === "$schema")) continue;
      const name = at === "" ? key : `${at}.${key}`;
      keys.add(name);
      if (!WHOLE.has(name)) walk(value, name);
    }
    walk(node.additionalProperties, `${at}.*`);
    inside.delete(node);
  };
  walk(schema, "");
  return [...keys].sort();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folders = process.argv.slice(2);
  if (folders.length === 0) {
    console.error("usage: wrangler-keys.mjs FOLDER-OF-WRANGLER...");
    process.exit(2);
  }
  const versions = folders.map((folder) => JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")).version);
  const keys = [...new Set(folders.flatMap(keysOf))].sort();
  console.log(`/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of wrangler ${versions.join(" and ")}, as tools/wrangler-keys.mjs lists them. Generated. */
static const char *const wrangler_keys[] = {
${keys.map((key) => `    "${key}",`).join("\n")}
};`);
}
