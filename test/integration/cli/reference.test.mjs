// The pages of docs/reference/ that are made say what the program says, and a metric without a row is found.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { compareMetrics } from "../../../tools/reference-pages.mjs";
import { cairn, root } from "../lib/server.mjs";

const make = (...args) => spawnSync("node", ["tools/reference-pages.mjs", ...args], { cwd: root, encoding: "utf8" });

test("docs/reference/commands.md is what `cairn help` says", () => {
  const { status, stderr } = make("--commands", cairn, "--check");
  assert.equal(status, 0, `${stderr}: make docs`);
});

test("docs/reference/metrics.md has every metric of the code, and no other", () => {
  assert.deepEqual(compareMetrics(), { missing: [], unknown: [] });
  const page = readFileSync(path.join(root, "docs/reference/metrics.md"), "utf8");
  assert.deepEqual(compareMetrics(page.replace("| `cairn_build_info` |", "| `cairn_other` |")), { missing: ["cairn_build_info"], unknown: ["cairn_other"] });
});
