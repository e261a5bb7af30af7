// Bundles dashboard/ and writes OUT.c, a table of what is served (src/admin/dashboard.h), with the files beside it
// in the folder OUT: each as it is and compressed. Names have a hash of their content, but for the page itself.
//
// Usage: node tools/build-dashboard.mjs OUT   (writes OUT.c, OUT.c.d, OUT/*)
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";

const [out] = process.argv.slice(2);
const types = {
  ".html": "text/html;charset=UTF-8", ".js": "text/javascript;charset=UTF-8", ".css": "text/css;charset=UTF-8", ".svg": "image/svg+xml",
};
const { outputFiles, metafile } = await build({
  entryPoints: ["dashboard/main.jsx", "dashboard/style.css", "dashboard/icon.svg"],
  entryNames: "[name]-[hash]",
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".svg": "copy" },
  legalComments: "none",
  metafile: true,
  write: false,
  logLevel: "warning",
});

const files = outputFiles.map((file) => ({ path: `/dashboard/${path.basename(file.path)}`, bytes: Buffer.from(file.contents), fixed: true }));
const named = (kind) => files.find((file) => file.path.endsWith(kind)).path;
const html = readFileSync("dashboard/index.html", "utf8")
  .replace("main.jsx", named(".js")).replace("style.css", named(".css")).replace("icon.svg", named(".svg"));
files.push({ path: "/", bytes: Buffer.from(html), fixed: false });

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const text = ["/* Made by tools/build-dashboard.mjs. */", '#include "admin/dashboard.h"', ""];
const rows = files.map(({ path: where, bytes, fixed }, i) => {
  const name = where === "/" ? "index.html" : path.basename(where);
  const packed = gzipSync(bytes, { level: 9 });
  writeFileSync(path.join(out, name), bytes);
  writeFileSync(path.join(out, `${name}.gz`), packed);
  text.push(
    `__asm__(".section .rodata\\nplain${i}: .incbin \\"${out}/${name}\\"\\npacked${i}: .incbin \\"${out}/${name}.gz\\"\\n.previous");`,
    `extern const unsigned char plain${i}[], packed${i}[];`,
  );
  const etag = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  return `    {"${where}", "${types[path.extname(name)]}", "\\"${etag}\\"", ${fixed}, plain${i}, ${bytes.length}, packed${i}, ${packed.length}},`;
});
text.push("", "const struct cn_dashboard_file cn_dashboard_files[] = {", ...rows, "};", `const unsigned cn_dashboard_file_count = ${files.length};`, "");
writeFileSync(`${out}.c`, text.join("\n"));
const inputs = [...Object.keys(metafile.inputs), "dashboard/index.html"];
writeFileSync(`${out}.c.d`, `${out}.c: ${inputs.join(" ")}\n${inputs.map((file) => `${file}:\n`).join("")}`);
