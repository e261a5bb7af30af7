// What the program says of itself (`cairn help`), as data: the man pages, the completions (generate.mjs) and
// docs/reference/commands.md (tools/reference-pages.mjs) are made from it.
import { spawnSync } from "node:child_process";

function help(cairn, ...args) {
  const { status, stdout, stderr } = spawnSync(cairn, ["help", ...args], { encoding: "utf8" });
  if (status !== 0) throw new Error(`cairn help ${args.join(" ")}: ${stderr}`);
  return stdout;
}

/** {name, summary, usage, text, examples, verbs, options: [{letter, name, value, help, variable}]} of every command. */
export function readCommands(cairn) {
  const list = help(cairn).split("Commands:\n")[1].split("\n\n")[0];
  return list.split("\n").map((line) => {
    const [, name, summary] = /^ {2}(\S+) +(.*)$/.exec(line);
    const own = help(cairn, name);
    const [head, tail = ""] = own.split("\nOptions:\n");
    const [told, examples = ""] = head.split("\nExamples:\n");
    const [usage, ...text] = told.split("\n");
    const options = tail.split("\n").filter(Boolean).map((row) => {
      const found = /^ {2}(?:-(\w),| {3}) --([\w-]+)(?: (\S+))? +(.*?)(?: \[(CAIRN_\w+)\])?$/.exec(row);
      if (!found) throw new Error(`cannot read this option of ${name}: ${row}`);
      const [, letter, option, value, description, variable] = found;
      return { letter, name: option, value, help: description, variable };
    });
    return { name, summary, usage: usage.replace(/^usage: /, ""), text: text.join("\n").trim(), examples: examples.trimEnd(), verbs: readVerbs(name, text), options };
  });
}

/** {"list": [], "key": ["get", ...]}: the verbs of a command, and those of their groups, from its lines of examples. */
function readVerbs(name, text) {
  const verbs = {};
  for (const line of text) {
    const words = new RegExp(`^  cairn ${name}((?: [a-z][a-z0-9-]*)+)`).exec(line)?.[1].trim().split(" ");
    if (words === undefined) continue;
    verbs[words[0]] ??= [];
    if (words.length > 1 && !verbs[words[0]].includes(words[1])) verbs[words[0]].push(words[1]);
  }
  return verbs;
}
