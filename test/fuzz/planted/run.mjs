// Whether the fuzzer of scripts (test/fuzz/script/) finds what it is for: bugs of the kinds that the server once had are planted
// into a copy of the tree, and it looks for them by itself.
//
//     node test/fuzz/planted/run.mjs [--seconds 600] [--seed 1] [NAME...]
//
// A bug is a patch beside this file. The lines before its first "diff" say what it takes away, and
//
//     Server: cairn-open      which binary is fuzzed: this one lends its natives to the script, "cairn" does not
//     Finding: REGEXP         what the server says at its end, so that another finding is not taken for this one
//
// The copy is below build/planted; from one bug to the next only what differs is built. For each it is printed after how many
// calls and seconds it was found; what was found once and is tried first in other runs is left out. One that is not found in time is a
// failure, and so is something else that is found, and a patch that does not apply.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync, chmodSync, statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.join(here, "../../..");
const tree = path.join(root, "build/planted");
const { values: options, positionals: wanted } = parseArgs({ allowPositionals: true, options: { seconds: { type: "string", default: "600" }, seed: { type: "string", default: "1" } } });
const names = readdirSync(here).filter((name) => name.endsWith(".patch")).map((name) => name.slice(0, -6)).sort();
for (const name of wanted) if (!names.includes(name)) throw new Error(`no such bug: ${name}. There are ${names.join(", ")}`);

function run(command, args, more) {
  const result = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28, ...more });
  if (result.error) throw result.error;
  return { status: result.status, text: result.stdout + result.stderr };
}
function must(command, args, more) {
  const { status, text } = run(command, args, more);
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${text.slice(-4000)}`);
  return text;
}

/** Those of the copy, without what it has built. */
function filesBelow(folder, name = "") {
  if (!existsSync(folder)) return [];
  return readdirSync(path.join(folder, name), { withFileTypes: true }).flatMap((entry) => {
    const below = path.join(name, entry.name);
    if (name === "" && (entry.name === "build" || entry.name === "node_modules")) return [];
    return entry.isDirectory() ? filesBelow(folder, below) : [below];
  });
}

/** Makes the copy what the tree is. Files that are the same keep their times, so that they are not built again. */
function copyTree() {
  const files = must("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root }).split("\0").filter((name) => name && existsSync(path.join(root, name)));
  for (const name of files) {
    const from = path.join(root, name), to = path.join(tree, name), bytes = readFileSync(from);
    if (existsSync(to) && readFileSync(to).equals(bytes)) continue;
    mkdirSync(path.dirname(to), { recursive: true });
    writeFileSync(to, bytes);
    chmodSync(to, statSync(from).mode);
  }
  const there = new Set(files);
  for (const name of filesBelow(tree)) if (!there.has(name)) rmSync(path.join(tree, name));
  if (!existsSync(path.join(tree, "node_modules"))) symlinkSync(path.join(root, "node_modules"), path.join(tree, "node_modules"));
}

let missed = 0;
for (const name of wanted.length > 0 ? wanted : names) {
  const file = path.join(here, `${name}.patch`);
  const head = readFileSync(file, "utf8").split(/^diff /m)[0];
  const field = (key) => new RegExp(`^${key}: (.*)$`, "m").exec(head)?.[1];
  copyTree();
  must("patch", ["-p1", "--silent", "--no-backup-if-mismatch", "-i", file], { cwd: tree });
  const binary = `build/san-address-undefined/${field("Server")}`;
  must("make", ["--no-print-directory", "-j2", "SAN=address,undefined", binary], { cwd: tree });
  const begin = Date.now(), left = () => Math.ceil(options.seconds - (Date.now() - begin) / 1000);
  let seed = Number(options.seed), found = null;
  while (!found && left() > 0) {
    const { status, text } = run(process.execPath, ["test/fuzz/script/run.mjs", String(left()), "--seed", String(seed), "--unaided"], { cwd: tree, env: { ...process.env, CAIRN: path.join(tree, binary) } });
    const after = /^after .*$/m.exec(text)?.[0];
    if (status === 0) break;
    if (!after) throw new Error(text.slice(-6000));
    if (new RegExp(field("Finding")).test(text)) {
      found = after;
    } else { // a bug that nobody has planted; behind it the search goes on
      missed++;
      console.log(`planted ${name}: SOMETHING ELSE WAS FOUND\n${text.slice(-6000)}`);
      seed = (Number(/at seed (\d+)$/.exec(after)?.[1]) || seed) + 1;
    }
  }
  if (found) console.log(`planted ${name}: found ${found}; ${Math.round((Date.now() - begin) / 1000)} s in all`);
  else missed++, console.log(`planted ${name}: NOT FOUND`);
}
process.exit(missed > 0 ? 1 : 0);
