// tools/lint-docs.mjs: what it counts on a page, and what it lets pass.
import assert from "node:assert/strict";
import test from "node:test";
import { ease, faults, glossaryTerms, parts, read, sentences } from "../../../tools/lint-docs.mjs";

const terms = glossaryTerms("| *lane* | a thread |\n| *flusher*, *preparer* | threads |\n| *call* | a word of everybody |\n");
const found = (text, file = "docs/reference/x.md") => faults(file, text, terms).map(({ kind, line }) => `${line}: ${kind}`);

test("docs-lint: a line above 120 characters, not in code, in a comment or of a table", () => {
  assert.deepEqual(found(`short\n${"x".repeat(121)}\n${"x".repeat(120)}\n`), ["2: lines"]);
  assert.deepEqual(found(`text\n\n    ${"x".repeat(200)}\n\n\`\`\`\n${"x".repeat(200)}\n\`\`\`\n\n<!-- recipe: skip ${"x".repeat(200)} -->\n`), []);
});

test("docs-lint: a cell above 120 characters as it is read: the address of a link does not count", () => {
  assert.deepEqual(found(`| a | b |\n| --- | --- |\n| ${"y".repeat(121)} | c |\n`), ["3: cells"]);
  assert.deepEqual(found(`| a |\n| --- |\n| [${"y".repeat(100)}](../${"z".repeat(100)}.md) |\n`), []);
  assert.equal(read("**all** of [`x`](y.md), 2 * 3"), "all of `x`, 2 * 3");
});

test("docs-lint: a sentence above 35 words, on the line where it begins; a list's items are sentences of their own", () => {
  assert.deepEqual(found(`One. A\n${"word ".repeat(20)}\n${"word ".repeat(20)}. Two.\n`), ["1: sentences"]);
  assert.deepEqual(found(`- ${"a ".repeat(30)}\n- ${"a ".repeat(30)}\n`), []);
  assert.deepEqual(sentences("It is `a. B c`. Then `d` follows.\nEnd.").map(({ line, words }) => [line, words.length]), [[0, 3], [0, 3], [1, 1]]);
});

test("docs-lint: a term of ours is linked or defined; a word of everybody is not looked for", () => {
  assert.deepEqual(found("Each lane has one.\nThe call goes to the `lane`.\n"), ["1: terms"]);
  assert.deepEqual(found("Each [lane](../understand/glossary.md) has one, and lanes are threads.\n"), []);
  assert.deepEqual(found("A *lane* is a thread. A lane has a loop.\n"), []);
  assert.deepEqual(found("Each lane; words are in the [glossary](glossary.md).\n", "docs/understand/y.md"), []);
});

test("docs-lint: pages of start/ and do/ begin with what they are for, and something to type", () => {
  const page = (opening) => `# Title\n\n${opening}\n\n    type this\n`;
  assert.deepEqual(found(page("What it is for. It takes a minute."), "docs/do/x.md"), []);
  assert.deepEqual(found(page("One. Two. Three. Four."), "docs/do/x.md"), ["3: shape"]);
  assert.deepEqual(found("# Title\n\nWhat it is for.\n", "docs/start/x.md"), ["1: shape"]);
});

test("docs-lint: readability falls with long words and long sentences, and code does not help", () => {
  const plain = ease("The cat sat on the mat. It was a good cat. It ran off and did not come back.").flesch;
  const hard = ease("Notwithstanding institutional considerations, administrative intermediaries necessitate comprehensive reconfiguration of interoperability.").flesch;
  assert.ok(plain > 90 && hard < 0, `${plain} ${hard}`);
  assert.equal(ease("The `implementation_of_something` sat on the mat.").flesch >= ease("The cat sat on the mat.").flesch - 3, true);
  assert.deepEqual(parts("# A\n\ntext\n\n- item\n  more\n\n    code\n").map(({ kind, line }) => `${line} ${kind}`), ["1 head", "3 text", "5 text", "8 text"]);
});
