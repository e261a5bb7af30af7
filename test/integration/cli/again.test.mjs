// tools/again.mjs, by which a run of these tests forgives one that fails by accident and nothing else.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import test from "node:test";
import { folder } from "../lib/cairn.mjs";

const root = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), "../../..");

/** Runs `source` as a test file under the reporter, then tools/again.mjs on what it wrote. */
function again(t, source, { cut = false, limit = 60_000 } = {}) {
  const dir = folder(t);
  const file = path.join(dir, "some.test.mjs");
  const list = path.join(dir, "failed.jsonl");
  fs.writeFileSync(file, `import assert from "node:assert/strict"; import fs from "node:fs"; import test from "node:test";
    const times = () => { fs.appendFileSync(${JSON.stringify(path.join(dir, "times"))}, "."); return fs.statSync(${JSON.stringify(path.join(dir, "times"))}).size; };
    ${source}`);
  const env = { ...process.env };
  delete env.NODE_TEST_CONTEXT; // this is a test itself
  const first = spawnSync(process.execPath, ["--test", `--test-timeout=${limit}`, "--test-reporter=tap", "--test-reporter-destination=stdout",
    `--test-reporter=${path.join(root, "test/integration/lib/failures.mjs")}`, `--test-reporter-destination=${list}`, file], { env, cwd: dir });
  if (cut) fs.writeFileSync(list, fs.readFileSync(list, "utf8").split("\n").filter((line) => !line.includes('"done"')).join("\n"));
  const second = spawnSync(process.execPath, [path.join(root, "tools/again.mjs"), list], { env, cwd: dir, encoding: "utf8" });
  return { first: first.status, status: second.status, said: second.stdout };
}

test("again: a test that fails once and then passes is named and forgiven", (t) => {
  const { first, status, said } = again(t, `test("now and (then)", () => assert.ok(times() > 1));`);
  assert.equal(first, 1);
  assert.equal(status, 0, said);
  assert.match(said, /^UNSTEADY: "now and \(then\)" \(some\.test\.mjs\)/);
});

test("again: a file that comes to no end once is named and forgiven, and run whole", (t) => {
  const { first, status, said } = again(t, `test("one", () => times() > 1 || new Promise(() => setInterval(() => {}, 1000)));`, { limit: 3000 });
  assert.equal(first, 1);
  assert.equal(status, 0, said);
  assert.match(said, /^UNSTEADY: ".*some\.test\.mjs" \(some\.test\.mjs\)/);
});

test("summary: a file that comes to no end has failed", (t) => {
  const dir = folder(t);
  fs.writeFileSync(path.join(dir, "a.test.mjs"), `import test from "node:test"; test("a", () => new Promise(() => setInterval(() => {}, 1000)));`);
  const env = { ...process.env };
  delete env.NODE_TEST_CONTEXT;
  const { status, stdout } = spawnSync("bash", ["-c", `"$0" --test --test-timeout=2000 --test-reporter=spec a.test.mjs | "$1"`, process.execPath, path.join(root, "tools/summary")], { env, cwd: dir, encoding: "utf8" });
  assert.equal(status, 1);
  assert.match(stdout, /^0 passed, 1 failed, 0 skipped$/m);
});

for (const [name, source, reason] of [
  ["a test that fails again", `test("one", () => assert.ok(times() === 2));`, /fails again/],
  ["a server that ended by a signal", `test("one", () => { if (times() < 2) throw new Error('cairn ended ({"signal":"SIGABRT"})'); });`, /is not run again: it says "SIGABRT"/],
  ["the same inside of a subtest", `test("one", (t) => t.test("two", () => { if (times() < 2) throw new Error("AddressSanitizer: x"); }));`, /it says "Sanitizer"/],
  ["a write that is lost", `test("one", () => assert.ok(times() > 1, "3 writes lost"));`, /it says "lost"/],
  ["three at once", `for (const n of "abc") test(n, () => assert.ok(times() > 3));`, /3 tests failed: none is run again/],
  ["a file that cannot be read", `if (times() < 2) throw new Error("no");`, /it is no test of a file/],
])
  test(`again: ${name} is not forgiven`, (t) => {
    const { first, status, said } = again(t, source);
    assert.equal(first, 1);
    assert.equal(status, 1, said);
    assert.match(said, reason);
  });

test("again: a run that was ended before its time is not forgiven", (t) => {
  const { status, said } = again(t, `test("one", () => assert.ok(times() > 1));`, { cut: true });
  assert.equal(status, 1);
  assert.match(said, /did not come to its end/);
});
