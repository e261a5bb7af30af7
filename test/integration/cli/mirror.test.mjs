// What `make lint` says of files without a unit test (tools/lint-mirror.mjs).
import assert from "node:assert/strict";
import test from "node:test";
import { complaints, mirror, roles } from "../../../tools/lint-mirror.mjs";

const there = new Set(["test/unit/net/test_a.c", "test/unit/net/test_whole.c", "test/integration/serve/x.test.mjs"]);
const exists = (name) => there.has(name);
const tables = (more) => ({ PARTS: {}, GLUE: {}, OWED: {}, ...more });

test("mirror: a file has its test in the same place", () => {
  assert.equal(mirror("service/kv/kv.c"), "test/unit/service/kv/test_kv.c");
  assert.deepEqual(complaints(["net/a.c"], exists, tables()), []);
  assert.match(complaints(["net/b.c"], exists, tables()).join(), /src\/net\/b\.c: has no test\/unit\/net\/test_b\.c/);
});

test("mirror: a row needs a test that is there", () => {
  assert.deepEqual(complaints(["net/b.c"], exists, tables({ PARTS: { "net/b.c": "net/test_whole.c" } })), []);
  assert.deepEqual(complaints(["net/b.c"], exists, tables({ GLUE: { "net/b.c": ["prints", "integration/serve/x.test.mjs"] } })), []);
  assert.match(complaints(["net/b.c"], exists, tables({ GLUE: { "net/b.c": ["prints"] } })).join(), /names no test/);
  assert.match(complaints(["net/b.c"], exists, tables({ OWED: { "net/b.c": ["integration/gone.test.mjs"] } })).join(), /there is no test\/integration\/gone/);
});

test("mirror: the tables only shrink", () => {
  assert.match(complaints(["net/a.c"], exists, tables({ OWED: { "net/a.c": ["integration/serve/x.test.mjs"] } })).join(), /take its row out/);
  assert.match(complaints([], exists, tables({ PARTS: { "net/gone.c": "net/test_whole.c" } })).join(), /there is no src\/net\/gone\.c/);
  assert.match(complaints(["net/b.c"], exists, tables({ PARTS: { "net/b.c": "net/test_whole.c" }, OWED: { "net/b.c": ["integration/serve/x.test.mjs"] } })).join(), /twice/);
});

test("mirror: in the folder of a service that has a test, files are glue by their names", () => {
  const rows = roles(["service/kv/natives.c", "service/kv/control_browse.c", "service/kv/kv.c", "service/new/natives.c", "net/natives.c"], exists, ["kv.test.mjs"]);
  assert.deepEqual(Object.keys(rows), ["service/kv/natives.c", "service/kv/control_browse.c"]);
  assert.match(complaints(["service/new/natives.c"], exists, tables({ GLUE: roles(["service/new/natives.c"], exists, []) })).join(), /has no test/);
});
