// docs/inside/seeds.md: the tests and files that it names are there.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { root } from "../lib/server.mjs";

const text = readFileSync(path.join(root, "docs/inside/seeds.md"), "utf8");
const rows = text.split("\n").filter((line) => /^\| (?!requirement|---)/.test(line)).map((line) => line.slice(1, -1).split(/(?<!\\) \| /).map((cell) => cell.trim()));

/** The titles of the tests in a file, as they stand in its source. */
const titles = new Map();
function titlesOf(file) {
  if (!titles.has(file)) {
    const source = readFileSync(path.join(root, "test/integration", file), "utf8");
    titles.set(file, [...source.matchAll(/\btest\(\s*(["'`])((?:\\.|(?!\1).)*)\1/gs)].map(([, , title]) => title.replaceAll('\\"', '"')));
  }
  return titles.get(file);
}

test("docs/inside/seeds.md: every row has a place that exists, and a test that exists or a reason", () => {
  assert.ok(rows.length > 80, `${rows.length} rows`);
  for (const [requirement, where, shown, ...more] of rows) {
    assert.equal(more.length, 0, `too many columns: ${requirement}`);
    const [, place] = /^`([^`]+)`/.exec(where) ?? [];
    assert.ok(place && existsSync(path.join(root, place)), `${requirement}: ${where} is not there`);
    const tests = [...shown.matchAll(/`([a-z/-]+\.test\.mjs)`: "([^"]+)"/g)];
    assert.ok(tests.length || /^Differs: /.test(shown), `${requirement}: neither a test nor a reason: ${shown}`);
    for (const [, file, name] of tests) {
      assert.ok(existsSync(path.join(root, "test/integration", file)), `${requirement}: ${file} is not there`);
      assert.ok(titlesOf(file).some((title) => title.includes(name)), `${requirement}: ${file} has no test “${name}”`);
    }
  }
});
