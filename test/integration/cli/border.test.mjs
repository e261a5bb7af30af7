// The table of the border between C and JavaScript (src/bindings/border.ts, tools/border.mjs).
import assert from "node:assert/strict";
import test from "node:test";
import { readBorder, readBorders } from "../../../tools/border.mjs";

const table = (body, head = "") => `${head}export interface Native {\n  // x.c\n${body}\n}\n`;

test("border: functions by file, enums by place", () => {
  const { files, enums } = readBorder(table("  a(n: number): void;\n  b(): string;", "/** Kinds. C: CN_K_ in a/b.h */\nexport const enum Kind { A = 0, B = -2 }\n"));
  assert.deepEqual([...files], [["x.c", ["a", "b"]]]);
  assert.deepEqual(enums, [{ name: "Kind", prefix: "CN_K_", header: "a/b.h", members: [["A", "0"], ["B", "-2"]] }]);
});

for (const [what, text, why] of [
  ["a function that stands twice", table("  a(): void;\n  a(): void;"), /a second time/],
  ["a function on two lines", table("  a(\n    n: number): void;"), /not a function on one line/],
  ["an enum of no place", table("", "export const enum Kind { A = 0 }\n"), /does not say where it is in C/],
  ["an enum without a number", table("", "/** C: K_ in a.h */\nexport const enum Kind { A }\n"), /not NAME = number/],
  ["an enum for a file without functions", table("", "/** C: K_ for y.c */\nexport const enum Kind { A = 0 }\n"), /has no functions/],
]) {
  test(`border: ${what} is refused`, () => assert.throws(() => readBorder(text), why));
}

test("border: the table itself is read with the parts of services, every function once", () => {
  const borders = readBorders(new URL("../../..", import.meta.url).pathname);
  const names = borders.flatMap(({ files }) => [...files.values()].flat());
  assert.ok(names.length > 200 && new Set(names).size === names.length);
  assert.ok(borders.some(({ service, files }) => service === "kv" && files.get("natives.c").includes("kvNamespaceGet")));
});

test("border: a part of a service adds to Native", () => {
  const { files } = readBorder('declare module "../../bindings/border.ts" {\n  interface Native {\n    // natives.c\n    /** What it does. */\n    a(n: number): void;\n  }\n}\n');
  assert.deepEqual([...files], [["natives.c", ["a"]]]);
});
