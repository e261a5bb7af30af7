// What `make lint` says of functions with many parameters (tools/lint-params.mjs).
import assert from "node:assert/strict";
import test from "node:test";
import { tooMany } from "../../../tools/lint-params.mjs";

const eight = "int a, int b, int c, int d,\n       int e, int f, int g, int h";

test("params: an eighth is too many, in a definition and in a prototype", () => {
  assert.deepEqual(tooMany(`\nstatic int sum(${eight})\n{\n}\n`), [{ line: 2, name: "sum", count: 8 }]);
  assert.deepEqual(tooMany(`struct cn_x *cn_x_new(${eight});\n`), [{ line: 1, name: "cn_x_new", count: 8 }]);
  assert.deepEqual(tooMany(`void say(${eight})\n    __attribute__((format(printf, 2, 3)));\n`), [{ line: 1, name: "say", count: 8 }]);
});

test("params: seven are not, nor the commas of a callback, a comment or a text", () => {
  assert.deepEqual(tooMany("int seven(int a, int b, int c, int d, int e, int f, int g);\n"), []);
  assert.deepEqual(tooMany("int each(int (*f)(int a, int b, int c, int d, int e, int f, int g), void *data);\n"), []);
  assert.deepEqual(tooMany("int one(int a /* b, c, d, e, f, g, h, i */);\n"), []);
});

test("params: a call is none", () => {
  assert.deepEqual(tooMany("int f(void)\n{\n    return g(1, 2, 3, 4, 5, 6, 7, 8);\n}\n"), []);
});
