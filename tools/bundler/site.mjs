// The manifest of a Workers Site: every file of its bucket with the key that it has in __STATIC_CONTENT, which
// changes with the contents, so that what was cached for ever under a key stays right.
import { createHash } from "node:crypto";
import { readFile, readdir } from "node:fs/promises";
import path from "node:path";
import { globPattern } from "./rules.mjs";

/** Whether a pattern of `include` or `exclude` means a file: the path, or a name on the way to it. */
const fits = (patterns, name) => patterns.some((p) => p.test(name) || name.split("/").some((part) => p.test(part)));

async function walk(folder, files, folders) {
  folders.push(folder);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if ((entry.name.startsWith(".") && entry.name !== ".well-known") || entry.name === "node_modules") continue;
    const name = path.join(folder, entry.name);
    if (entry.isDirectory()) await walk(name, files, folders);
    else if (entry.isFile()) files.push(name);
  }
}

/** @returns {Promise<{text: string, inputs: string[]}>} the manifest as JSON, and what it was made of */
export async function siteManifest(bucket, include, exclude) {
  const files = [];
  const folders = [];
  await walk(bucket, files, folders);
  const [wanted, unwanted] = [include, exclude].map((list) => list.map((glob) => globPattern(glob.replace(/^\/|\/$/g, ""))));
  const manifest = {};
  for (const file of files.sort()) {
    const name = path.relative(bucket, file);
    if ((wanted.length > 0 && !fits(wanted, name)) || fits(unwanted, name)) continue;
    const hash = createHash("sha256").update(await readFile(file)).digest("hex").slice(0, 10);
    const extension = path.extname(name);
    manifest[name] = `${name.slice(0, name.length - extension.length)}.${hash}${extension}`;
  }
  return { text: JSON.stringify(manifest), inputs: [...files, ...folders] };
}
