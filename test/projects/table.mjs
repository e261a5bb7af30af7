// The table of docs/reference/libraries.md that a whole run makes.
import { readFileSync, writeFileSync } from "node:fs";

const CELL_MAX = 120; // tools/lint-docs.mjs

const cell = (text) => text.replaceAll("|", "\\|").replaceAll(/\s*\n\s*/g, "; ");

function packagesOf({ starter, packages = {} }) {
  const list = Object.entries(packages).map(([name, version]) => `${name} ${version}`);
  if (!starter) return list.join(", ");
  const program = starter.match(/([\w@/-]+)@(\d[\w.-]*)/);
  return [`made by ${starter.includes("npm create") ? "create-" : ""}${program[1]} ${program[2]}`, ...list].join(", ");
}

function resultOf({ result, why }) {
  if (result === "works") return "works";
  const first = cell(why.split("\n")[0]).slice(0, 300);
  return `**${result}**: ${first}`;
}

/** Long lists of packages stand below the table: a cell has at most 120 characters, and so has a line. */
export function tableOf(rows) {
  const long = ({ packages }) => packages.length > CELL_MAX;
  const list = rows.filter(long).flatMap(({ title, packages }) => {
    const lines = ["-"];
    for (const word of `${title}: ${packages}.`.split(" ")) lines.at(-1).length + word.length < CELL_MAX ? (lines[lines.length - 1] += ` ${word}`) : lines.push(`  ${word}`);
    return lines;
  });
  return ["| Project | Packages | What is done with it | Result |", "| --- | --- | --- | --- |",
    ...rows.map((row) => `| ${row.title} | ${long(row) ? "below" : row.packages} | ${row.does} | ${row.result} |`),
    ...(list.length > 0 ? ["", "The longer lists of packages:", "", ...list] : [])].join("\n");
}

/** Whether the document has the table of these results; UPDATE=1 writes it. */
export function checkDocument(file, results) {
  const table = tableOf(results.map((r) => ({ title: r.project.title, packages: packagesOf(r.project), does: r.project.does, result: resultOf(r) })));
  const document = readFileSync(file, "utf8");
  const wanted = document.replace(/<!-- projects -->\n[^]*?<!-- end projects -->/, () => `<!-- projects -->\n${table}\n<!-- end projects -->`);
  if (wanted === document) return true;
  if (process.env.UPDATE) return writeFileSync(file, wanted), true;
  console.log(`FAIL ${file}: its table of projects is not up to date (UPDATE=1 writes it)`);
  return false;
}
