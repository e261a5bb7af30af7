// The tables that BENCH_WRITE=1 make bench writes into README.md, docs/understand/performance.md and docs/understand/cluster.md (test/bench/report.mjs).
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { BEGIN, END, QUIET, describe, longBlock, machine, note, readRows, replaceBlock, shortBlock, writeReport } from "../../bench/report.mjs";
import { LIMITS } from "../../bench/limits.mjs";

const quiet = { date: "2026-11-15", cpu: "Some CPU @ 2.80GHz", cores: 2, kernel: "Linux 6.1.0", load: 0.07, quiet: true, seconds: 3, repeats: 5 };
const rows = [
  { part: "serve", name: "hello", peer: 10_000.4, cairn: 65_000, ratio: 6.5, goal: "5×", peerCost: 67.25, cost: 12 },
  { part: "objects", name: "do-mem: RPC", peer: 2396, cairn: 36_264, ratio: 15.135, goal: "6×", cost: 18 },
  { part: "objects", name: "create: object, table, row", peer: 25.8, cairn: 942, ratio: 36.5, goal: "30×", cost: 1287 },
  { part: "websockets", name: "5,000 idle: bytes per socket", peer: 75_500, cairn: 2700, ratio: 0.0358, goal: "0.1×" },
  { part: "start", name: "the same with 5,000 open, µs", cairn: 14.5, goal: "the same" },
];

test("bench report: one sentence says when, on what machine and how busy it was", () => {
  assert.equal(describe(quiet), "Measured on 2026-11-15: Some CPU @ 2.80GHz, 2 cores, Linux 6.1.0; load average before the run 0.07: **quiet**. Medians of 5 runs of 3 s.");
  assert.match(describe({ ...quiet, load: 9.5, quiet: false, repeats: 1 }), /run 9\.50: \*\*not quiet\*\*\. Medians of 1 run of 3 s\./);
});

test("bench report: a machine is called quiet by its load alone", () => {
  const { load, cores, quiet: called, cpu, kernel, date } = machine(new Date("2026-11-15T23:59:59Z"));
  assert.equal(called, load <= QUIET * cores);
  assert.ok(cores > 0 && cpu.length > 0 && kernel.includes(os.release()));
  assert.equal(date, "2026-11-15");
});

test("bench report: a table per part, in order, with what was not measured left empty", () => {
  const text = longBlock(quiet, rows);
  assert.deepEqual(text.match(/^### .*/gm), ["### Requests per second", "### At rest", "### Durable Objects", "### WebSockets"]);
  for (const line of [
    `| hello | 10,000 | 65,000 | 6.50× | 5× | 67.3 µs | 12.0 µs | ${LIMITS.hello} |`,
    "| do-mem: RPC | 2,396 | 36,264 | 15.1× | 6× |  | 18.0 µs |  |",
    `| create: object, table, row | 25.8 | 942 | 36.5× | 30× |  | 1.29 ms | ${LIMITS["create: object, table, row"]} |`,
    "| 5,000 idle: bytes per socket | 75,500 | 2,700 | 0.036× | 0.1× |  |  |  |",
    "| the same with 5,000 open, µs |  | 14.5 |  | the same |  |  |  |",
  ]) assert.ok(text.includes(line), `${line}\n${text}`);
  const tables = text.split("\n").filter((line) => line.startsWith("|"));
  assert.ok(tables.every((line) => line.match(/(?<!\\)\|/g).length === 9), "every line has eight cells");
});

test("bench report: README has the few rows that were measured, and the same figures", () => {
  const text = shortBlock(quiet, rows);
  assert.ok(text.includes("| hello world, req/s | 10,000 | 65,000 | 6.50× |"));
  assert.ok(text.includes("| call of an object, req/s | 2,396 | 36,264 | 15.1× |"));
  assert.ok(!text.includes("JSON"));
});

test("bench report: the block is replaced, again and again, and nothing else", () => {
  const text = `# A\n\n${BEGIN}\nold\n\nolder\n${END}\n\nrest\n`;
  const once = replaceBlock(text, "new");
  assert.equal(once, `# A\n\n${BEGIN}\nnew\n${END}\n\nrest\n`);
  assert.equal(replaceBlock(once, "new"), once);
  for (const wrong of ["no markers", `${END}${BEGIN}`, `${BEGIN}`, `${BEGIN}${END}${BEGIN}${END}`]) assert.throws(() => replaceBlock(wrong, "new"), /once each/);
});

test("bench report: rows are kept only if asked for, and both files are written or none", (t) => {
  const root = mkdtempSync(path.join(os.tmpdir(), "cairn-report-"));
  t.after(() => rmSync(root, { recursive: true }));
  const file = path.join(root, "rows");
  const read = (name) => readFileSync(path.join(root, name), "utf8");
  const before = process.env.BENCH_ROWS;
  t.after(() => (before === undefined ? delete process.env.BENCH_ROWS : (process.env.BENCH_ROWS = before)));
  writeFileSync(file, `${JSON.stringify(quiet)}\n`);
  process.env.BENCH_ROWS = "";
  note("serve", "hello", rows[0]);
  process.env.BENCH_ROWS = file;
  note("serve", "json", { peer: 1, cairn: 4, ratio: 4, goal: "5×" });
  assert.deepEqual(readRows(file), { machine: quiet, rows: [{ part: "serve", name: "json", peer: 1, cairn: 4, ratio: 4, goal: "5×" }] });

  mkdirSync(path.join(root, "docs/understand"), { recursive: true });
  writeFileSync(path.join(root, "README.md"), `${BEGIN}\nold\n${END}\n`);
  writeFileSync(path.join(root, "docs/understand/performance.md"), "no block\n");
  assert.throws(() => writeReport(root, quiet, rows), /docs\/understand\/performance\.md: .*once each/);
  assert.equal(read("README.md"), `${BEGIN}\nold\n${END}\n`);
  writeFileSync(path.join(root, "docs/understand/performance.md"), `${BEGIN}\n${END}\n`);
  assert.throws(() => writeReport(root, quiet, []), /nothing was measured/);
  writeReport(root, quiet, rows);
  assert.ok(read("README.md").includes("| hello world, req/s |") && read("docs/understand/performance.md").includes("| hello |"));

  // A run of the cluster alone leaves the other documents as they are.
  const cluster = [{ part: "cluster", name: "  durable writes", value: "14,441/s", beside: "single server 25,514/s: 0.57 ×", goal: "≥ 0.5 ×: holds" }];
  const kept = read("README.md") + read("docs/understand/performance.md");
  writeFileSync(path.join(root, "docs/understand/cluster.md"), `${BEGIN}\n${END}\n`);
  assert.deepEqual(writeReport(root, quiet, cluster), ["docs/understand/cluster.md"]);
  assert.ok(read("docs/understand/cluster.md").includes("| durable writes | 14,441/s | single server 25,514/s: 0.57 × | ≥ 0.5 ×: holds |"));
  assert.equal(read("README.md") + read("docs/understand/performance.md"), kept);
  assert.deepEqual(writeReport(root, quiet, [...rows, ...cluster]), ["README.md", "docs/understand/performance.md", "docs/understand/cluster.md"]);
  assert.ok(!read("docs/understand/performance.md").includes("durable writes"));
});

test("bench report: README, docs/understand/performance.md and docs/understand/cluster.md have a block each", () => {
  for (const name of ["README.md", "docs/understand/performance.md", "docs/understand/cluster.md"]) {
    assert.doesNotThrow(() => replaceBlock(readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8"), "new"), name);
  }
});
