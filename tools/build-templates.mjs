// The starters of `cairn new` and `cairn init` as a C table: every file of templates/NAME/, in which @NAME@ stands for the
// project's name. A file called gitignore is written as .gitignore: under its own name it would count in this tree.
// Arguments: the folder of templates, and the file to write.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";

const [folder, out] = process.argv.slice(2);

function files(dir, prefix = "") {
  return readdirSync(dir, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1)).flatMap((entry) =>
    entry.isDirectory() ? files(path.join(dir, entry.name), `${prefix}${entry.name}/`) : [prefix + entry.name]);
}

const quote = (text) => text.split("\n").map((line, i, all) => {
  const plain = line.replace(/["\\]/g, "\\$&").replace(/\t/g, "\\t").replace(/[^\x20-\x7e]/g, (c) =>
    [...Buffer.from(c)].map((byte) => "\\" + byte.toString(8).padStart(3, "0")).join(""));
  return i === all.length - 1 ? `"${plain}"` : `"${plain}\\n"`;
}).join("\n     ");

const names = readdirSync(folder).sort();
const symbol = (name) => `files_${name.replaceAll("-", "_")}`;
const lists = names.map((name) => {
  const rows = files(path.join(folder, name)).map((file) =>
    `    {"${file.replace(/(^|\/)gitignore$/, "$1.gitignore")}",\n     ${quote(readFileSync(path.join(folder, name, file), "utf8"))}},`);
  return `static const struct starter_file ${symbol(name)}[] = {\n${rows.join("\n")}\n};\n`;
});
const table = names.map((name) => `    {"${name}", ${symbol(name)}, CN_ARRAY_COUNT(${symbol(name)})},`);
writeFileSync(out, `/* Made by tools/build-templates.mjs. */\n${lists.join("\n")}
static const struct template templates[] = {\n${table.join("\n")}\n};\n`);
