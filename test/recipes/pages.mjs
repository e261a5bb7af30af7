// The recipes of a page: its blocks of commands, and of files that it shows, in order. A comment of HTML, which readers do not see, says what else is
// known about the page (anywhere in it) or about the block behind it:
//
//     <!-- recipes: KEY VALUE; KEY VALUE -->       the page
//
//     skip REASON            none of its blocks is run, and why
//     machines A, B          addresses of the machines it is about; default: 10.0.0.9
//     has A, B               what is on them when the reader begins (run.mjs, HAS); default: package
//     setup SCRIPT           and what else
//     shows REASON           commands in its blocks that are not sh are not meant to be run, and why
//
//     <!-- recipe: KEY VALUE; KEY VALUE -->        the block
//
//     skip REASON            it is not run, and why
//     on A, B                on these machines, one after the other; default: the page's first
//     elsewhere A SCRIPT     what happens on another machine first
//     file PATH              the block is this file; append PATH: its end
//     prints                 the block is what the one before it has printed: any number for a number, anything for ...
//     serves                 it does not end: it goes on in another terminal, once it has said that it is ready
//     stop                   what serves there is ended first, with Ctrl-C
//     before SCRIPT          run in front of it, in the same shell
//     then SCRIPT            must succeed behind it
//     with A=B, C=D          in the block, A is B: what a reader puts in (\n: a new line); A=>B where A has a =
//     each A|B|C, ...        in the block, A is B on the second machine, C on the third
//     endless A, B           lines that begin so do not end: they must say something
//     refused A, B           lines that begin so must fail with a sentence
//     columns                lines are a command and, behind two blanks, what it does
//
// A block of `sh` without a comment is run as it is, so a recipe that is added tomorrow is in it. The shell is one for the page, as a reader's is:
// folder and variables stay. Other blocks are shown: commands in them are a fault (strays), for nobody would run them.
import { readFileSync } from "node:fs";

const PAGE_KEYS = ["skip", "shows", "machines", "has", "setup"];
const KEYS = ["skip", "on", "elsewhere", "file", "append", "prints", "serves", "stop", "before", "then", "with", "each", "endless", "refused", "columns"];
const FLAGS = new Set(["prints", "serves", "stop", "columns"]);
const COMMAND = /^\s*(?:\$ )?(?:sudo |export \w+=\S+ *$|(?:[A-Z_]+=\S+ )*(?:cairn(?: |$)|curl |npx |npm |systemctl |journalctl |apt(?:-get)? |make(?: |$)|git |sqlite3 |openssl |psql ))/m;

function directive(text, where, keys = KEYS) {
  const found = {};
  for (const part of text.split(new RegExp(`;\\s+(?=(?:${keys.join("|")})(?:;|\\s|$))`))) {
    const [, key, value] = /^\s*(\S+?)(?:\s+([^]*?))?\s*$/.exec(part);
    if (!keys.includes(key)) throw new Error(`${where}: a recipe has no key ${JSON.stringify(key)}: ${keys.join(", ")}`);
    if (!value && !FLAGS.has(key)) throw new Error(`${where}: ${key} needs a value`);
    found[key] = value || true;
  }
  return found;
}

const list = (text) => (text ? text.split(/\s*,\s+/) : []);

/** A page: {page, skip, machines, has, setup, blocks: [{page, line, language, text, skip, on, file, ...}]}. */
export function recipes(page) {
  const lines = readFileSync(page, "utf8").split("\n");
  const found = { page, blocks: [] };
  let comment = null;
  for (let i = 0; i < lines.length; i++) {
    const where = `${page}:${i + 1}`;
    let line = lines[i];
    if (/^\s*<!-- recipes?: /.test(line)) while (!line.endsWith("-->") && i + 1 < lines.length) line += ` ${lines[++i].trim()}`;
    const [, many, said] = /^\s*<!-- recipe(s?): (.*) -->$/.exec(line) ?? [];
    if (many) {
      Object.assign(found, directive(said, where, PAGE_KEYS));
      continue;
    }
    if (said) {
      if (comment) throw new Error(`${where}: two comments, and no block between them`);
      comment = directive(said, where);
      continue;
    }
    const fence = /^(\s*)```(\w*)/.exec(lines[i]);
    const indented = /^ {4,}\S/.test(lines[i]) && (i === 0 || lines[i - 1].trim() === "");
    if (!fence && !indented) {
      if (lines[i].trim() && comment) throw new Error(`${where}: a recipe's comment is not in front of a block`);
      continue;
    }
    const first = fence ? i + 1 : i;
    let end = first;
    if (fence) while (end < lines.length && !/^\s*```/.test(lines[end])) end++;
    else while (end < lines.length && (/^ {4,}/.test(lines[end]) || (lines[end] === "" && /^ {4,}/.test(lines[end + 1] ?? "")))) end++;
    const body = lines.slice(first, end);
    const margin = Math.min(...body.filter((line) => line.trim()).map((line) => /^ */.exec(line)[0].length));
    found.blocks.push({ page, line: first + 1, language: fence?.[2] ?? "", said: comment !== null, ...comment, text: body.map((line) => line.slice(margin)).join("\n") });
    comment = null;
    i = end - (fence ? 0 : 1);
  }
  if (comment) throw new Error(`${page}: a recipe's comment at its end`);
  return { ...found, machines: list(found.machines ?? "10.0.0.9"), has: list(found.has ?? "package") };
}

/** Whether something is done with it, other than showing it. */
export const isRun = (block) => !block.skip && (block.language === "sh" || block.said);
/** Whether it is commands. */
export const isCommands = (block) => isRun(block) && !block.file && !block.append && !block.prints;
/** Whether there are commands in it that nobody runs. */
export const isStray = (block) => !block.skip && !isRun(block) && COMMAND.test(block.text);

/** How many commands there are in it. */
export function commandCount(block) {
  return block.text.replace(/\\\n/g, "").replace(/<<'?(\w+)'?[^]*?\n\1/g, "").split("\n").filter((line) => line.trim() && !/^\s*#/.test(line)).length;
}

/** The block's text for the machine with this index. */
export function textFor(block, index) {
  let text = block.text;
  for (const pair of list(block.with)) {
    const [, from, to] = /^(.+?)=>([^]*)$/.exec(pair) ?? /^([^=]+)=([^]*)$/.exec(pair);
    text = text.replaceAll(from, to.replaceAll("\\n", "\n"));
  }
  for (const row of list(block.each)) {
    const choices = row.split("|");
    text = text.replaceAll(choices[0], choices[index] ?? choices[0]);
  }
  return text;
}

/** Whether that was printed: the lines of `expected` in this order, other ones between them or not. */
export function agrees(printed, expected) {
  const pattern = (line) => new RegExp(`^\\s*${line.trim().split(/(\d+|\.\.\.|…|\s+)/).map((part, i) => (i % 2 === 0 ? part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
    : /^\d/.test(part) ? "\\d+" : /^\s/.test(part) ? "\\s+" : ".*")).join("")}\\s*$`);
  const lines = printed.split("\n");
  let at = 0;
  for (const line of expected.split("\n").filter((line) => line.trim())) {
    const want = pattern(line);
    while (at < lines.length && !want.test(lines[at])) at++;
    if (at++ >= lines.length) return line;
  }
  return null;
}

const begins = (line, prefixes) => list(prefixes).some((prefix) => line === prefix || line.startsWith(`${prefix} `));
const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// The shell of the page: each block begins where the one before has ended.
const SHELL = "/run/recipe.shell";
export const within = (script) => `[ ! -f ${SHELL} ] || . ${SHELL}\ntrap '{ export -p; echo "cd $(printf %q "$PWD")"; } >${SHELL}' EXIT\n${script}`;

/** What bash runs for it. */
export function scriptFor(block, index) {
  const body = textFor(block, index).split("\n").map((line) => {
    if (block.columns) line = line.split(/ {2,}/)[0];
    if (begins(line, block.endless)) // someone comes by meanwhile, so that there is something to say
      return `( while sleep 0.5; do curl -s -o /dev/null http://127.0.0.1:8787/ || true; done ) & visitor=$!; said=0; timeout 15 bash -c ${quote(line)} >/tmp/said 2>&1 || said=$?; kill $visitor; cat /tmp/said; [ $said = 124 ]; [ -s /tmp/said ]`;
    if (begins(line, block.refused)) return `if ${line} 2>/tmp/said; then echo "was not refused: ${line}"; exit 1; fi; cat /tmp/said; grep -q '^cairn: ' /tmp/said`;
    return line;
  }).join("\n");
  return `set -o pipefail\n${block.before ?? ""}\n${body}\n${block.then ? `echo\n${block.then}\n` : ""}`;
}
