// Writes docs/reference/compatibility-ids.md: which test shows which part of the platform, by the ids in tools/compat-ids.txt.
//
//     tools/compat-table.mjs            writes it
//     tools/compat-table.mjs --check    fails if it is out of date
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = path.join(root, "docs/reference/compatibility-ids.md");
// In names of JavaScript tests DO-AL-3, in those of C DO_AL_3.
const ID = /(?<![A-Za-z0-9_-])(?:DO[-_][A-Z]+|RPC|WK|AS|KV|D1|R2|Q|CA|AE|CR|RL|WF|OB)[-_]\d+(?![A-Za-z0-9-]|\.\d)/g;

function fail(message) {
  console.error(`compat-table: ${message}`);
  process.exit(1);
}

/** [{title, items: [{id, about, note, suites}]}] */
function readIds() {
  const groups = [], seen = new Set();
  for (const line of readFileSync(path.join(root, "tools/compat-ids.txt"), "utf8").split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    if (line.startsWith("== ")) {
      groups.push({ title: line.slice(3), items: [] });
      continue;
    }
    const [id, about, last = ""] = line.split("|").map((part) => part.trim());
    if (about === undefined || seen.has(id)) fail(`tools/compat-ids.txt: ${about === undefined ? "no description" : "twice"}: ${line}`);
    seen.add(id);
    const suites = last.startsWith("@") ? last.split(",").map((part) => part.trim().slice(1)) : [];
    for (const suite of suites) if (!existsSync(path.join(root, suite))) fail(`tools/compat-ids.txt: ${id}: there is no ${suite}`);
    groups.at(-1).items.push({ id, about, note: suites.length > 0 ? "" : last, suites });
  }
  return groups;
}

/** Map of id -> the files that name it. */
function readTests() {
  const found = new Map();
  const visit = (folder) => {
    for (const entry of readdirSync(path.join(root, folder), { withFileTypes: true })) {
      const name = `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!["node_modules", "corpus"].includes(entry.name)) visit(name);
      } else if (/\.(?:mjs|js|ts|c)$/.test(entry.name)) {
        for (const [id] of readFileSync(path.join(root, name), "utf8").matchAll(ID)) {
          const key = id.replaceAll("_", "-");
          if (!found.has(key)) found.set(key, new Set());
          found.get(key).add(name);
        }
      }
    }
  };
  visit("test");
  return found;
}

const groups = readIds(), tests = readTests();
const known = new Set(groups.flatMap(({ items }) => items.map(({ id }) => id)));
for (const [id, files] of tests) if (!known.has(id)) fail(`${[...files][0]} names ${id}, which tools/compat-ids.txt does not have`);

/** A test by its name as the page shows it: without the folder that most are in, and without how the file ends. */
const link = (file) => `[${file.replace(/^test\/(?:integration\/)?/, "").replace(/(?:\.test)?\.\w+$/, "")}](../../${file})`;
const rows = [], counts = { tested: 0, missing: 0, "left out": 0 };
for (const { title, items } of groups) {
  rows.push("", `## ${title}`, "", "| id | what | status | tests |", "| --- | --- | --- | --- |");
  for (const { id, about, note, suites } of items) {
    const files = [...new Set([...(tests.get(id) ?? []), ...suites])].sort();
    if (files.length === 0 && !/^(?:missing|left out)\b/.test(note)) fail(`${id} has no test, and tools/compat-ids.txt has no reason`);
    const [status, ...reason] = files.length > 0 ? ["tested"] : note.split(": ");
    counts[status]++;
    rows.push(`| ${id} | ${about} | ${status}${reason.length > 0 ? `: ${reason.join(": ")}` : ""} | ${files.map(link).join(", ")} |`);
  }
}
const text = `# Compatibility by id

Made by \`make docs\` from \`tools/compat-ids.txt\` and the ids in the tests; \`make docs-check\` says whether it is up
to date. *Tested* means that tests with the id exist and that \`make test\` runs them. A test is named by its file below
\`test/\`, those of \`test/integration/\` without that folder. How the answers differ from the hosted platform's is told
in [compatibility.md](compatibility.md) and on the pages of this part, [in its index](../README.md#look-up).
A [lane](../understand/glossary.md) and other words of Cairn are in the glossary.

${counts.tested} tested, ${counts.missing} missing, ${counts["left out"]} left out.
${rows.join("\n")}
`;

if (!process.argv.includes("--check")) writeFileSync(page, text);
else if (!existsSync(page) || readFileSync(page, "utf8") !== text) fail("docs/reference/compatibility-ids.md is out of date; run: make docs");
