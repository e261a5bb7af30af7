// Builds a server with the service of this folder: a copy of the tree gets these files and one line of src/service/table.c, and
// nothing else. docs/inside/hacking.md shows it.
//
//     node test/service-example/build.mjs BUILD OUT    OUT/build/cairn, beginning with the objects that are in BUILD
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url)), root = path.resolve(here, "../..");
const [built, out] = process.argv.slice(2).map((each) => path.resolve(each));

/** With their times, so that what is built stays built. */
const copy = (from, to) => existsSync(from) && cpSync(from, to, { recursive: true, preserveTimestamps: true });

rmSync(out, { recursive: true, force: true });
mkdirSync(path.join(out, "build"), { recursive: true });
for (const name of ["src", "include", "prelude", "dashboard", "templates", "tools", "docs", "test/lib", "test/unit/rules.mk", "test/unit/service/test_table.c", "Makefile", "package.json", "package-lock.json"]) {
  copy(path.join(root, name), path.join(out, name));
}
symlinkSync(path.join(root, "node_modules"), path.join(out, "node_modules"));
for (const name of ["obj", "third", "testlib", "border", "libcairn.a", "libtest.a", "openapi.json", "dashboard", "dashboard.c", "dashboard.c.d", "templates.h",
  ...["prelude", "prelude-node"].flatMap((each) => [`${each}.js`, `${each}-parts.js`, `${each}.js.d`, `${each}.js.map`])]) {
  copy(path.join(built, name), path.join(out, "build", name));
}

for (const name of ["src", "prelude"]) cpSync(path.join(here, name), path.join(out, name), { recursive: true });
const table = path.join(out, "src/service/table.c"), text = readFileSync(table, "utf8");
const longer = text.replace(/^#define SERVICES\(each\).*\n/m, (line) => `${line}    each(tally)        \\\n`);
if (longer === text) throw new Error("src/service/table.c has no list of services");
writeFileSync(table, longer);

const run = (...argv) => execFileSync(argv[0], argv.slice(1), { cwd: out, stdio: "inherit" });
run("make", "--no-print-directory", "-j2", "SAN=", "build/cairn", "build/unit/service/test_table");
run("build/unit/service/test_table");
run("node", "tools/lint-rooms.mjs");
run("node", "tools/lint-border.mjs");
run("node", "tools/service-table.mjs");
