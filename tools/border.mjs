// Makes the C side of the border (src/bindings/border.ts, which says how it is written).
//
//     node tools/border.mjs src/bindings/border.ts OUT    writes OUT/FILE.h for each file, OUT/all.h, OUT/check.c
//
// A file is written only if it changes, so that nothing is compiled for nothing.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** { enums: [{name, prefix, header | file, members: [[name, value]]}], files: Map(file -> [function names]) } */
export function readBorder(text) {
  const enums = [];
  const files = new Map();
  let about = null, file = null;
  for (const [i, line] of text.split("\n").entries()) {
    const fail = (why) => {
      throw new Error(`border.ts:${i + 1}: ${why}: ${line.trim()}`);
    };
    if (line.startsWith("/** ")) about = line;
    else if (line.startsWith("export const enum ")) {
      const [, name, list] = /^export const enum (\w+) \{ (.*) \}$/.exec(line) ?? fail("not an enum on one line");
      const [, prefix, kind, place] = /C: (\w+) (in|for) (\S+) \*\/$/.exec(about ?? "") ?? fail("the line before does not say where it is in C");
      const members = list.split(", ").map((each) => /^(\w+) = (-?\d+)$/.exec(each)?.slice(1) ?? fail("not NAME = number"));
      enums.push({ name, prefix, [kind === "in" ? "header" : "file"]: place, members });
      about = null;
    } else if (/^  \/\/ \w+\.c\b/.test(line)) {
      file = /\w+\.c/.exec(line)[0];
      if (files.has(file)) fail("a second time");
      files.set(file, []);
    } else if (/^  \w/.test(line)) {
      const [, name] = /^  (\w+)\(.*\).*;$/.exec(line) ?? fail("not a function on one line");
      if (file === null) fail("of no file");
      if ([...files.values()].some((names) => names.includes(name))) fail("a second time");
      files.get(file).push(name);
    }
  }
  for (const each of enums) if (each.file !== undefined && !files.has(each.file)) throw new Error(`border.ts: ${each.name} is for ${each.file}, which has no functions`);
  return { enums, files };
}

/** requestUrl -> native_request_url, domainToASCII -> native_domain_to_ascii */
const functionOf = (name) => `native_${name.replace(/([a-z0-9])([A-Z]+)/g, (_, before, capital) => `${before}_${capital}`).toLowerCase()}`;
const tableOf = (file) => `cn_native_${path.basename(file, ".c")}`;
const MADE = "/* Made of src/bindings/border.ts by tools/border.mjs. */\n";

function headerOf(file, names, enums) {
  const own = enums.filter((each) => each.file === file);
  return `${MADE}#include "js/native.h"\n\n` +
    own.map(({ prefix, members }) => `enum { ${members.map(([name, value]) => `${prefix}${name} = ${value}`).join(", ")} };\n`).join("") +
    names.map((name) => `static JSValueRef ${functionOf(name)}(CN_JS_NATIVE_ARGS);\n`).join("") +
    `\nextern const struct cn_js_native ${tableOf(file)}[];\nconst struct cn_js_native ${tableOf(file)}[] = {\n` +
    names.map((name) => `    {"${name}", ${functionOf(name)}},\n`).join("") + "    {0},\n};\n";
}

const allOf = (files) => `${MADE}#include "js/native.h"\n\n` +
  [...files.keys()].map((file) => `extern const struct cn_js_native ${tableOf(file)}[];\n`).join("") +
  `\nstatic const struct cn_js_native *const tables[] = {\n${[...files.keys()].map((file) => `    ${tableOf(file)},\n`).join("")}};\n`;

function checkOf(enums) {
  const theirs = enums.filter((each) => each.header !== undefined);
  return MADE + [...new Set(theirs.map((each) => each.header))].sort().map((header) => `#include "${header}"\n`).join("") +
    theirs.map(({ name, prefix, members }) => `\n/* ${name} */\n${members.map(([member, value]) => `_Static_assert((int)${prefix}${member} == ${value}, "${prefix}${member}");\n`).join("")}`).join("");
}

function write(file, text) {
  try {
    if (readFileSync(file, "utf8") === text) return;
  } catch {}
  writeFileSync(file, text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [source, out] = process.argv.slice(2);
  const { enums, files } = readBorder(readFileSync(source, "utf8"));
  mkdirSync(out, { recursive: true });
  for (const [file, names] of files) write(path.join(out, file.replace(/c$/, "h")), headerOf(file, names, enums));
  write(path.join(out, "all.h"), allOf(files));
  write(path.join(out, "check.c"), checkOf(enums));
}
