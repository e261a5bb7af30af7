// The table of docs/reference/libraries.md that a whole run makes.
import { readFileSync, writeFileSync } from "node:fs";

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

/** Whether the document has the table of these results; UPDATE=1 writes it. */
export function checkDocument(file, results) {
  const rows = results.map((r) => `| ${r.project.title} | ${packagesOf(r.project)} | ${r.project.does} | ${resultOf(r)} |`);
  const table = ["| Project | Packages | What is done with it | Result |", "| --- | --- | --- | --- |", ...rows].join("\n");
  const document = readFileSync(file, "utf8");
  const wanted = document.replace(/<!-- projects -->\n[^]*?<!-- end projects -->/, () => `<!-- projects -->\n${table}\n<!-- end projects -->`);
  if (wanted === document) return true;
  if (process.env.UPDATE) return writeFileSync(file, wanted), true;
  console.log(`FAIL ${file}: its table of projects is not up to date (UPDATE=1 writes it)`);
  return false;
}
