// Every row of the tables of promises (limits, what is defended against, what survives) names a test, and the test is there.
//
// A name in backticks in a row's last cell is a target of make ("make load"), a path, a unit test ("test_log"), or a file of test/integration or
// test/conformance without its beginning: "a/x" with the folder, "x" without (that of `security` first). (`title`) behind it is part of a test's
// title in that file.
import { existsSync, readFileSync, readdirSync } from "node:fs";

const pages = [["docs/reference/limits.md", "tested by"], ["SECURITY.md", "where"], ["docs/understand/durability.md", "tested by"]];
const rules = ["Makefile", ...readdirSync("test").map((name) => `test/${name}/rules.mk`)].filter((file) => existsSync(file));
const targets = new Set(rules.flatMap((file) => [...readFileSync(file, "utf8").matchAll(/^([\w-]+):/gm)].map(([, name]) => name)));
const folders = readdirSync("test/integration");
const layers = readdirSync("test/unit", { recursive: true, withFileTypes: true }).filter((each) => each.isDirectory()).map((each) => `${each.parentPath}/${each.name}`);

/** The files that a name may stand for. */
function filesOf(name) {
  const [path] = name.split("#");
  const candidates = [path, `test/${path}`, `test/integration/${path}`, `test/integration/${path}.test.mjs`, `test/conformance/${path}`];
  for (const folder of ["security", "services", ...folders]) candidates.push(`test/integration/${folder}/${path}.test.mjs`, `test/integration/${folder}/${path}`);
  for (const layer of layers) candidates.push(`${layer}/${path}.c`, `${layer}/${path}`);
  return candidates.filter((file) => file.includes("test/") && /\.\w+$/.test(file) && existsSync(file));
}

const problems = [];
for (const [page, heading] of pages) {
  let within = false;
  for (const [number, line] of readFileSync(page, "utf8").split("\n").entries()) {
    if (!line.startsWith("|")) { within = false; continue; }
    const cells = line.split(/(?<!\\)\|/).slice(1, -1).map((cell) => cell.trim());
    const last = cells.at(-1);
    if (last === heading) { within = true; continue; }
    if (!within || /^-+$/.test(last) || cells.slice(1).every((cell) => !cell)) continue;
    const where = `${page}:${number + 1}`;
    const names = [...last.matchAll(/(?<!\()`([^`]+)`(?: \(`([^`]+)`\))?/g)];
    let found = 0;
    for (const [, name, title] of names) {
      const command = /^make ([\w-]+)/.exec(name);
      if (command && targets.has(command[1])) { found++; continue; }
      const files = command ? [] : filesOf(name);
      if (!files.length) problems.push(`${where}: there is no test ${name}`);
      else if (title && !files.some((file) => readFileSync(file, "utf8").includes(title))) problems.push(`${where}: ${files[0]} has no "${title}"`);
      else found++;
    }
    if (!found && !problems.some((text) => text.startsWith(`${where}:`))) problems.push(`${where}: no test is named: ${cells[0]}`);
  }
}
for (const text of problems) console.log(text);
process.exit(problems.length ? 1 : 0);
