// Makes the C side of the border (src/bindings/border.ts, which says how it is written; each service has a part of it in its folder).
//
//     node tools/border.mjs OUT    writes OUT/FILE.h for each file of src/bindings/, OUT/NAME/FILE.h for each of src/service/NAME/,
//                                  OUT/all.h, OUT/check.c
//
// A file is written only if it changes, so that nothing is compiled for nothing.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** { enums: [{name, prefix, header | file, members: [[name, value]]}], files: Map(file -> [function names]) } */
export function readBorder(text, source = "border.ts") {
  const enums = [];
  const files = new Map();
  let about = null, file = null;
  for (const [i, line] of text.split("\n").entries()) {
    const fail = (why) => {
      throw new Error(`${source}:${i + 1}: ${why}: ${line.trim()}`);
    };
    if (line.startsWith("/** ")) about = line;
    else if (line.startsWith("export const enum ")) {
      const [, name, list] = /^export const enum (\w+) \{ (.*) \}$/.exec(line) ?? fail("not an enum on one line");
      const [, prefix, kind, place] = /C: (\w+) (in|for) (\S+) \*\/$/.exec(about ?? "") ?? fail("the line before does not say where it is in C");
      const members = list.split(", ").map((each) => /^(\w+) = (-?\d+)$/.exec(each)?.slice(1) ?? fail("not NAME = number"));
      enums.push({ name, prefix, [kind === "in" ? "header" : "file"]: place, members });
      about = null;
    } else if (/^(  ){1,2}\/\/ \w+\.c\b/.test(line)) {
      file = /\w+\.c/.exec(line)[0];
      if (files.has(file)) fail("a second time");
      files.set(file, []);
    } else if (/^(  ){1,2}\w/.test(line) && line !== "  interface Native {") {
      const [, name] = /^ +(\w+)\(.*\).*;$/.exec(line) ?? fail("not a function on one line");
      if (file === null) fail("of no file");
      if ([...files.values()].some((names) => names.includes(name))) fail("a second time");
      files.get(file).push(name);
    }
  }
  for (const each of enums) if (each.file !== undefined && !files.has(each.file)) throw new Error(`${source}: ${each.name} is for ${each.file}, which has no functions`);
  return { enums, files };
}

/** [{ source, service, enums, files }]: the table, and the parts of it that are services'. `service` is "" for the table itself. */
export function readBorders(root = ".") {
  const services = readdirSync(path.join(root, "src/service")).filter((name) => existsSync(path.join(root, "src/service", name, "border.ts"))).sort();
  const borders = ["", ...services].map((service) => {
    const source = service === "" ? "src/bindings/border.ts" : `src/service/${service}/border.ts`;
    return { source, service, ...readBorder(readFileSync(path.join(root, source), "utf8"), source) };
  });
  const seen = new Map();
  for (const { source, files } of borders) {
    for (const name of [...files.values()].flat()) {
      if (seen.has(name)) throw new Error(`${source}: ${name} is in ${seen.get(name)} too`);
      seen.set(name, source);
    }
  }
  return borders;
}

/** requestUrl -> native_request_url, domainToASCII -> native_domain_to_ascii */
const functionOf = (name) => `native_${name.replace(/([a-z0-9])([A-Z]+)/g, (_, before, capital) => `${before}_${capital}`).toLowerCase()}`;
const tableOf = (service, file) => `cn_native_${service && `${service}_`}${path.basename(file, ".c")}`;
const madeOf = (source) => `/* Made of ${source} by tools/border.mjs. */\n`;

function headerOf({ source, service, enums }, file, names) {
  const own = enums.filter((each) => each.file === file);
  const table = tableOf(service, file);
  return `${madeOf(source)}#include "js/native.h"\n\n` +
    own.map(({ prefix, members }) => `enum { ${members.map(([name, value]) => `${prefix}${name} = ${value}`).join(", ")} };\n`).join("") +
    names.map((name) => `static JSValueRef ${functionOf(name)}(CN_JS_NATIVE_ARGS);\n`).join("") +
    `\nextern const struct cn_js_native ${table}[];\nconst struct cn_js_native ${table}[] = {\n` +
    names.map((name) => `    {"${name}", ${functionOf(name)}},\n`).join("") + "    {0},\n};\n";
}

const declared = (service, files) => [...files.keys()].map((file) => `extern const struct cn_js_native ${tableOf(service, file)}[];\n`).join("");

const allOf = ({ source, files }) => `${madeOf(source)}#include "js/native.h"\n\n${declared("", files)}` +
  `\nstatic const struct cn_js_native *const tables[] = {\n${[...files.keys()].map((file) => `    ${tableOf("", file)},\n`).join("")}};\n`;

/** cn_NAME_natives of each service (src/service/def.h), and C's numbers beside those of the border. */
function checkOf(borders) {
  const theirs = borders.flatMap(({ enums }) => enums).filter((each) => each.header !== undefined);
  const services = borders.filter(({ service }) => service !== "");
  return madeOf("border.ts") + ["js/native.h", ...new Set(theirs.map((each) => each.header))].sort().map((header) => `#include "${header}"\n`).join("") +
    services.map(({ service, files }) => `\n${declared(service, files)}extern const struct cn_js_natives cn_${service}_natives;\n` +
      `const struct cn_js_natives cn_${service}_natives = {{${[...files.keys()].map((file) => tableOf(service, file)).join(", ")}}};\n`).join("") +
    theirs.map(({ name, prefix, members }) => `\n/* ${name} */\n${members.map(([member, value]) => `_Static_assert((int)${prefix}${member} == ${value}, "${prefix}${member}");\n`).join("")}`).join("");
}

function write(file, text) {
  mkdirSync(path.dirname(file), { recursive: true });
  try {
    if (readFileSync(file, "utf8") === text) return;
  } catch {}
  writeFileSync(file, text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [out] = process.argv.slice(2);
  const borders = readBorders();
  for (const border of borders) {
    for (const [file, names] of border.files) write(path.join(out, border.service, file.replace(/c$/, "h")), headerOf(border, file, names));
  }
  write(path.join(out, "all.h"), allOf(borders[0]));
  write(path.join(out, "check.c"), checkOf(borders));
}
