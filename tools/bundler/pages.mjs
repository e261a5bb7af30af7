// The `functions/` folder of a Pages project as one module: its files are routes.
//
// P1  A file is the route of its path: `index` that of its folder, `[name]` a segment, `[[name]]` any
//     number of them, `_middleware` everything below its folder.
// P2  `onRequest` takes every method, `onRequestGet` and its like one; an array is a chain.
// P3  Of several routes that fit, the one with more segments wins, then the one with fewer wildcards and
//     names, from the left, then the one with a method, then the alphabet.
import { readdir } from "node:fs/promises";
import path from "node:path";

const SOURCE = /\.(mjs|js|jsx|ts|tsx)$/;
const METHODS = ["", "Get", "Post", "Put", "Patch", "Delete", "Head", "Options"];

/** Files below `folder`, and the folders themselves, whose change is a change of routes. */
async function walk(folder, files, folders) {
  folders.push(folder);
  const entries = await readdir(folder, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = path.join(folder, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== "node_modules") await walk(name, files, folders);
    } else if (SOURCE.test(entry.name) && !entry.name.endsWith(".d.ts")) {
      files.push(name);
    }
  }
}

const segment = (text) => text.replace(/^\[\[(.+)\]\]$/, ":$1*").replace(/^\[(.+)\]$/, ":$1");

function routeOf(root, file) {
  const parts = path.relative(root, file).replace(SOURCE, "").split(path.sep).map(segment);
  const name = parts.pop();
  const mount = "/" + parts.join("/");
  const middleware = name === "_middleware";
  const route = middleware || name === "index" ? mount : "/" + [...parts, name].join("/");
  return { route, mount, middleware };
}

function compare(a, b) {
  const [left, right] = [a, b].map(({ route }) => route.slice(1).split("/"));
  if (left.length !== right.length) return right.length - left.length;
  for (let i = 0; i < left.length; i++)
    for (const mark of ["*", ":"]) {
      const [one, other] = [left[i].includes(mark), right[i].includes(mark)];
      if (one !== other) return one ? 1 : -1;
    }
  if ((a.method === "") !== (b.method === "")) return a.method === "" ? 1 : -1;
  return a.route < b.route ? -1 : a.route > b.route ? 1 : 0;
}

/** @returns {Promise<{contents: string, folders: string[]}>} the source of the entry */
export async function functionsEntry(root) {
  const files = [];
  const folders = [];
  await walk(root, files, folders);
  const routes = files.flatMap((file, i) =>
    METHODS.map((method) => ({ ...routeOf(root, file), method: method.toUpperCase(), value: `m${i}.onRequest${method}` })),
  );
  routes.sort(compare);
  const contents = [
    `import { serve } from "cairn:pages-runtime";`,
    ...files.map((file, i) => `import * as m${i} from ${JSON.stringify(file)};`),
    `export default serve([${routes.map(({ value, ...route }) => `{...${JSON.stringify(route)},value:${value}}`).join(",\n")}]);`,
  ].join("\n");
  return { contents, folders };
}
