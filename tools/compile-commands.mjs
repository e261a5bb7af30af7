// compile-commands.mjs COMMAND: compile_commands.json for editors, on standard output: COMMAND for each C file of the tree.
import { execFileSync } from "node:child_process";

const files = execFileSync("git", ["ls-files", "src/*.c", "test/*.c"], { encoding: "utf8" }).trim().split("\n");
const rows = files.map((file) => ({ directory: process.cwd(), file, command: `${process.argv[2]} -c ${file}` }));
console.log(JSON.stringify(rows, null, 1));
