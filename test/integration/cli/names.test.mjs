// What `make lint` says of file names in comments and documents (tools/lint-names.mjs).
import assert from "node:assert/strict";
import test from "node:test";
import { missing, missingLinks } from "../../../tools/lint-names.mjs";

const tree = new Set(["src/net/http.c", "src/net/http.h", "prelude/web/url.js", "docs/limits.md", "test/integration/serve/limits.test.mjs"]);
const found = (file, text) => missing(file, text, tree).map(({ line, name }) => `${line}: ${name}`);

test("names: a file that exists may be named in full, from a layer's folder, or alone", () => {
  assert.deepEqual(found("src/net/server.c", "/* src/net/http.c, net/http.h, http.c, web/url.js\n * and ../net/http.h */\n"), []);
  assert.deepEqual(found("docs/tour.md", "[limits](limits.md), `serve/limits.test.mjs`, `docs/limits.md`"), []);
});

test("names: a file that does not exist is found with its line, in C, JavaScript and documents", () => {
  assert.deepEqual(found("src/net/server.c", "int a;\n/* see net/gone.c */\n"), ["2: net/gone.c"]);
  assert.deepEqual(found("prelude/web/url.js", "// as net/http.c\nconst a = 1; // gone.js\n"), ["2: gone.js"]);
  assert.deepEqual(found("docs/limits.md", "all of\n`src/net/gone.h`"), ["2: src/net/gone.h"]);
});

test("names: what stands in a folder is not found in another", () => {
  assert.deepEqual(found("src/net/server.c", "/* worker/http.c */"), ["1: worker/http.c"]);
});

test("names: code, addresses, patterns and members of objects are no names of files", () => {
  assert.deepEqual(found("src/net/server.c", '#include "gone.h"\nopen("gone.c"); /* https://example.com/gone.js, cmd_*.c, gone.c.x, <name>.js */\n'), []);
  assert.deepEqual(found("docs/limits.md", "```\nnode gone.mjs\n```\n\n    gone.js\n"), []);
});

test("names: links, their anchors, programs of the build and patterns are followed", () => {
  const read = () => "# Limits\n\n## Of `a/b.h`, each\n";
  const links = (text) => missingLinks("docs/tour.md", text, new Set([...tree, "docs/tour.md", "test/unit/net/test_http.c"]), read).map(({ line, name }) => `${line}: ${name}`);
  assert.deepEqual(links("[a](limits.md), [b](limits.md#of-abh-each), [c](#limits), [d](https://x.test/#y), `build/unit/net/test_http`, `net/h*.c`"), []);
  assert.deepEqual(links("[a](gone.md)\n[b](limits.md#gone)\n`build/unit/test_http`\n`worker/h*.c`"), ["1: gone.md", "2: limits.md#gone", "3: build/unit/test_http", "4: worker/h*.c"]);
});
