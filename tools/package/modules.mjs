// The npm packages whose code is in what is built: those that the bundles were made from (build/*.d), the tools that these
// embed, and esbuild. A line for each: its folder, name, version and licence.
//
//     node tools/package/modules.mjs
import { readdirSync, readFileSync } from "node:fs";

const folders = new Set(["node_modules/esbuild"]);
for (const file of readdirSync("build")) {
  if (!file.endsWith(".d")) continue;
  for (const [folder] of readFileSync(`build/${file}`, "utf8").matchAll(/(?<=[\s/])node_modules\/(?:@[^/\s]+\/)?[^/\s]+/g)) folders.add(folder);
}
for (const folder of [...folders].sort()) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  console.log(folder, name, version, license ?? "NOASSERTION");
}
