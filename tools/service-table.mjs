// Writes docs/reference/bindings.md: the services, from their descriptors (src/service/def.h), in the order of src/service/table.c.
//
//     tools/service-table.mjs            writes it
//     tools/service-table.mjs --check    fails if it is out of date
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const HEAD = `# Services

A line for each service that a binding leads to, made of its descriptor and its table of keys by \`make docs\`
([a service, whole](../inside/hacking.md#a-service-whole) says what those are). The keys of a table within a key are
listed below. Bindings to objects, workers and assets, and what happens to keys that are not here, are in
[configuration.md](configuration.md).

| service | key | and its keys | what it is | command | inside |
| --- | --- | --- | --- | --- | --- |
`;

/** The names of a table of keys (src/config/keys.h), and of the tables in it: [{name, inside}]; not those of the hosted platform. */
function schemaKeys(source, name) {
  const start = source.indexOf(`SCHEMA(${name}, `);
  if (start < 0) fail(`there is no SCHEMA(${name}`);
  const body = source.slice(start, source.indexOf(");\n", start));
  const members = body.matchAll(/\b(?:STRINGS?|BOOL|INT|NODE|LIST|TABLE)\(\w+, (\w+)(?:, (?=[a-z])(\w+))?|\{\.name = "(\w+)"[^}]*\}/g);
  return Array.from(members, ([text, member, inside, other]) => {
    if (/QUIET|HOSTED/.test(text)) return null;
    return { name: member ?? other, inside: inside && source.includes(`SCHEMA(${inside}, `) ? schemaKeys(source, inside) : [] };
  }).filter((each) => each !== null);
}

const code = (text) => (text ? `\`${text}\`` : "");
const names = (keys) => keys.map(({ name }) => code(name)).join(", ");

/** Items of a list, one for each table within these keys, at most 120 characters a line. */
function nestedKeys(within, keys) {
  return keys.filter(({ inside }) => inside.length > 0).map(({ name, inside }) => {
    const words = `- ${code(`${within}.${name}`)}: ${names(inside)}.`.split(" ");
    const lines = [words.shift()];
    for (const word of words) lines.at(-1).length + word.length < 120 ? (lines[lines.length - 1] += ` ${word}`) : lines.push(`  ${word}`);
    return `${lines.join("\n")}\n${nestedKeys(`${within}.${name}`, inside)}`;
  }).join("");
}

/** The text of a descriptor's members, from the sources of a folder. */
function readService(root, name) {
  const folder = `${root}/src/service/${name}`;
  const sources = readdirSync(folder).filter((file) => file.endsWith(".c")).map((file) => readFileSync(`${folder}/${file}`, "utf8"));
  const take = (start, pattern) => {
    const source = sources.find((text) => text.includes(start));
    return source && pattern.exec(source.slice(source.indexOf(start)))?.[1];
  };
  const member = (key) => take(`const struct cn_service_def cn_service_${name} = {`, new RegExp(`\\.${key} =\\s+"((?:[^"\\\\]|\\\\.)*)"`));
  const [title, about, page] = ["title", "about", "page"].map((key) => member(key) ?? fail(`src/service/${name}/: its descriptor has no .${key} in one text`));
  const config = "const struct cn_service_config ";
  const key = take(config, /\.key = \{\s*\.name = "(\w+)"/), own = take(config, /(\.in_cairn = true)/);
  const schema = take(config, /\.sub = &(\w+)/);
  const keys = key ? schemaKeys(sources.find((text) => text.includes(config)), schema) : [];
  const command = take("const struct cn_command ", /\.name = "([\w-]+)"/);
  return { name, title, about, page, keys, key: key && (own ? `cairn.${key}` : key), command };
}

function fail(why) {
  throw new Error(why);
}

export function servicePage(root) {
  const table = readFileSync(`${root}/src/service/table.c`, "utf8");
  const services = [...table.matchAll(/^ {4}each\((\w+)\)/gm)].map(([, name]) => readService(root, name));
  const rows = services.map(({ title, key, keys, about, page, command, name }) =>
    `| [${title}](${path.relative("reference", page)}) | ${code(key)} | ${names(keys)} | ${about} | ${code(command && `cairn ${command}`)} | \`src/service/${name}/\` |\n`);
  return `${HEAD}${rows.join("")}\nTables within keys:\n\n${services.map(({ key, keys }) => nestedKeys(key, keys)).join("")}`;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const root = new URL("..", import.meta.url).pathname;
  const file = `${root}/docs/reference/bindings.md`, text = servicePage(root);
  if (process.argv[2] !== "--check") writeFileSync(file, text);
  else if (readFileSync(file, "utf8") !== text) {
    console.error("docs/reference/bindings.md is out of date: make docs");
    process.exit(1);
  }
}
