// What `BENCH_WRITE=1 make bench` writes into README.md, docs/understand/performance.md and docs/understand/cluster.md: the tables of one run, with its date, its
// machine and how busy that was, between two markers. What stands there belongs to the run that is named, all of it.
//
//     node test/bench/report.mjs begin ROWS    before the first part: looks at the machine, makes the file ROWS
//     BENCH_ROWS=ROWS                          each part adds a line of JSON per row: note()
//     node test/bench/report.mjs end ROWS      replaces the blocks
//
// A row is { part, name, peer, cairn, ratio, goal, cost?, peerCost? }: medians as numbers, costs in microseconds of CPU time
// per request; what was not measured is left out. Those of the part "cluster" are of docs/understand/cluster.md, and have their units with
// them: { part, name, value, beside, goal }.
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { LIMITS } from "./limits.mjs";

export const BEGIN = "<!-- bench: begin -->";
export const END = "<!-- bench: end -->";
/** A machine is quiet up to this load average per processor. */
export const QUIET = 0.25;

/** The tables, in their order: the key of `part`, a title, the peer, and who is beside it (cairn). */
const PARTS = [
  ["serve", "Requests per second", "workerd"],
  ["start", "At rest", "workerd"],
  ["objects", "Durable Objects", "workerd"],
  ["websockets", "WebSockets", "workerd"],
  ["compiled", "Objects and workers in C; the ratio and its goal are of CPU time", "the other", "in C"],
  ["compiled-workerd", "Objects and workers in C beside JavaScript in workerd, by CPU time", "workerd", "in C"],
  ["services", "Services", "miniflare"],
];
/** What README shows, by part and name. */
const SHORT = [
  ["serve", "hello", "hello world, req/s"],
  ["serve", "json", "URL, searchParams, JSON, req/s"],
  ["objects", "do-mem: RPC", "call of an object, req/s"],
  ["start", "memory at start, MB", "memory, idle, MB"],
];

/** Keeps a row for the tables, if somebody will write them. */
export function note(part, name, row) {
  if (process.env.BENCH_ROWS) appendFileSync(process.env.BENCH_ROWS, `${JSON.stringify({ part, name, ...row })}\n`);
}

export function machine(now = new Date()) {
  const cpus = os.cpus();
  const load = os.loadavg()[0];
  return {
    date: now.toISOString().slice(0, 10), cpu: cpus[0]?.model.trim() ?? "unknown processor", cores: cpus.length,
    kernel: `${os.type()} ${os.release()}`, load, quiet: load <= QUIET * cpus.length,
    seconds: Number(process.env.BENCH_SECONDS || 3), repeats: Number(process.env.BENCH_REPEATS || 3),
  };
}

/** One sentence: when, on what, how busy. */
export function describe({ date, cpu, cores, kernel, load, quiet, seconds, repeats }) {
  return `Measured on ${date}: ${cpu}, ${cores} ${cores === 1 ? "core" : "cores"}, ${kernel}; load average before the run ${load.toFixed(2)}: ` +
    `**${quiet ? "quiet" : "not quiet"}**. Medians of ${repeats} ${repeats === 1 ? "run" : "runs"} of ${seconds} s.`;
}

/** In lines as all pages have them. */
const filled = (text) => text.replace(/(.{1,118})(?: |$)/g, "$1\n").trimEnd();

function number(n) {
  if (n === undefined || n === null || !Number.isFinite(n)) return "";
  return n >= 100 ? Math.round(n).toLocaleString("en") : n.toFixed(n >= 10 ? 1 : 2);
}
/** CPU time, given in microseconds. */
const cpu = (n) => (n === undefined || n === null ? "" : n >= 1000 ? `${number(n / 1000)} ms` : `${number(n)} µs`);
const cell = (text) => String(text).replaceAll("|", "\\|");
const times = (ratio) => (ratio === undefined || !Number.isFinite(ratio) ? "" : `${ratio.toFixed(ratio < 0.1 ? 3 : ratio < 10 ? 2 : 1)}×`);

function table(head, rows) {
  const line = (cells) => `| ${cells.map(cell).join(" | ")} |`;
  return [line(head), `| --- |${" ---: |".repeat(head.length - 1)}`, ...rows.map(line)].join("\n");
}

/** All of a run, for docs/understand/performance.md. */
export function longBlock(machine, rows) {
  const parts = PARTS.map(([part, title, peer, own = "cairn"]) => {
    const mine = rows.filter((row) => row.part === part);
    if (mine.length === 0) return null;
    return `### ${title}\n\n${table(["", peer, own, "ratio", "goal", `CPU per request, ${peer}`, own, "what limits it"],
      mine.map((row) => [row.name, number(row.peer), number(row.cairn), times(row.ratio), row.goal ?? "",
        cpu(row.peerCost), cpu(row.cost), LIMITS[row.name] ?? ""]))}`;
  });
  return [filled(describe(machine)), ...parts.filter(Boolean)].join("\n\n");
}

/** Nodes of a cluster, for docs/understand/cluster.md. */
export function clusterBlock(machine, rows) {
  return `${filled(describe(machine))}\n\n${table(["", "measured", "beside", "goal"], rows.map((row) => [row.name.trim(), row.value, row.beside, row.goal]))}`;
}

/** The few rows of README. */
export function shortBlock(machine, rows) {
  const chosen = SHORT.map(([part, name, label]) => [label, rows.find((row) => row.part === part && row.name === name)]).filter(([, row]) => row !== undefined);
  return `${filled(describe(machine))}\n\n${table(["", "workerd", "cairn", "ratio"],
    chosen.map(([label, row]) => [label, number(row.peer), number(row.cairn), times(row.ratio)]))}`;
}

/** `text` with what is between the markers replaced; throws if they are not there once each, in order. */
export function replaceBlock(text, block) {
  const begin = text.indexOf(BEGIN), end = text.indexOf(END);
  if (begin < 0 || end < begin || text.indexOf(BEGIN, begin + 1) >= 0 || text.indexOf(END, end + 1) >= 0) {
    throw new Error(`${BEGIN} and ${END} must stand in it once each, in this order`);
  }
  return `${text.slice(0, begin + BEGIN.length)}\n${block}\n${text.slice(end)}`;
}

/** Writes the files below `root` that the rows of a run are of; nothing was measured: nothing is written. */
export function writeReport(root, machine, rows) {
  if (rows.length === 0) throw new Error("nothing was measured");
  const cluster = rows.filter((row) => row.part === "cluster"), files = [];
  if (cluster.length < rows.length) files.push(["README.md", shortBlock(machine, rows)], ["docs/understand/performance.md", longBlock(machine, rows)]);
  if (cluster.length > 0) files.push(["docs/understand/cluster.md", clusterBlock(machine, cluster)]);
  const texts = files.map(([name, block]) => {
    const file = path.join(root, name);
    try {
      return [file, replaceBlock(readFileSync(file, "utf8"), block)];
    } catch (error) {
      throw new Error(`${name}: ${error.message}`);
    }
  });
  for (const [file, text] of texts) writeFileSync(file, text); // all or none
  return files.map(([name]) => name);
}

export function readRows(file) {
  const [first, ...rows] = readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return { machine: first, rows };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [, , verb, file] = process.argv;
  if (verb === "begin") {
    mkdirSync(path.dirname(file), { recursive: true });
    const found = machine();
    writeFileSync(file, `${JSON.stringify(found)}\n`);
    console.log(describe(found));
  } else {
    const { machine: found, rows } = readRows(file);
    const files = writeReport(path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../.."), found, rows);
    console.log(`${files.join(", ")}: ${rows.length} rows written`);
  }
}
