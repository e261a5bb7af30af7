// docs/inside/tour.md names functions and their files, in C and in JavaScript: each is defined where it says.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const root = new URL("../../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");

/** A function of C: its name at the beginning of a line's declaration, its arguments, and a body. */
function definedInC(text, name) {
  return new RegExp(`^[a-z][\\w *]*?[ *]${name}\\([^;{}]*\\)\\s*\\{`, "m").test(text);
}

/** A function at the top of a module, or Class.method of a class at its top. */
function definedInJs(text, name) {
  const [owner, method] = name.split(".");
  if (method === undefined) return new RegExp(`^(?:export )?(?:async )?function ${name}\\(`, "m").test(text);
  const begin = text.search(new RegExp(`^(?:export )?class ${owner}\\b`, "m"));
  if (begin < 0) return false;
  const end = text.indexOf("\n}", begin);
  return new RegExp(`^  (?:static )?(?:async )?#?${method}\\([^;]*\\) \\{`, "m").test(text.slice(begin, end));
}

const defined = (path, text, name) => (path.endsWith(".c") ? definedInC : definedInJs)(text, name);

/** [{ title, steps: [{ number, name, path, text }] }] of a tour. */
function walks(markdown) {
  return markdown.split(/^## /m).slice(1).map((part) => {
    const [title, ...lines] = part.replace(/\n {2,}(?=\S)/g, " ").split("\n");
    const steps = lines.filter((line) => /^\d/.test(line)).map((line) => {
      const match = /^(\d+)\. `([\w.]+)\(\)` in `([\w./-]+)`: (\S.*\.)$/.exec(line);
      assert.ok(match, `not a step of a walk: ${line}`);
      return { number: Number(match[1]), name: match[2], path: match[3], text: match[4] };
    });
    return { title, steps };
  });
}

test("tour: a definition is told from a call, a declaration and another name", () => {
  const c = "int far(int a);\nstatic int near_by(int a)\n{\n    return far(a);\n}\nvoid *make(int a,\n           int b)\n{\n}\n";
  assert.deepEqual(["far", "near_by", "near", "by", "make"].map((name) => definedInC(c, name)), [false, true, false, false, true]);
  const js = "export async function far(a) {\n  near(a);\n}\nexport class Box {\n  open(a) {\n    this.shut(a);\n  }\n}\nclass Bag {\n  shut(a) {\n  }\n}\n";
  assert.deepEqual(["far", "near", "Box.open", "Box.shut", "Bag.shut", "Bin.shut"].map((name) => definedInJs(js, name)), [true, false, true, false, true, false]);
  assert.throws(() => walks("## A\n\n1. on_read() in src/net/stream.c: bytes.\n"), /not a step/);
});

const tour = walks(read("docs/inside/tour.md"));

test("tour: five walks, their steps counted from 1", () => {
  assert.equal(tour.length, 5);
  for (const { title, steps } of tour) {
    assert.ok(steps.length >= 10, `${title}: ${steps.length} steps`);
    assert.deepEqual(steps.map((step) => step.number), steps.map((_, i) => i + 1), title);
  }
});

for (const { title, steps } of tour) {
  test(`tour: every function of "${title}" is in its file`, () => {
    const wrong = steps.filter(({ name, path }) => {
      try {
        return !defined(path, read(path), name);
      } catch {
        return true;
      }
    });
    assert.deepEqual(wrong.map(({ number, name, path }) => `${number}. ${name}() in ${path}`), []);
  });
}
