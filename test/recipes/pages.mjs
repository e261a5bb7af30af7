// The recipes of a page: its code blocks, indented or fenced, each with what a comment of HTML in front of it says, which readers do not see:
//
//     <!-- recipe: KEY VALUE; KEY VALUE -->
//
//     skip REASON            it is not run, and why
//     on A, B                on these machines (addresses), one after the other; default: the page's first
//     elsewhere A SCRIPT     what happens on another machine first
//     file PATH              the block is this file
//     before SCRIPT          run in front of it, in the same shell
//     then SCRIPT            must succeed behind it
//     with A=B, C=D          in the block, A is B: what a reader puts in
//     each A|B|C, ...        in the block, A is B on the second machine, C on the third
//     endless A, B           lines that begin so do not end: they must say something
//     refused A, B           lines that begin so must fail with a sentence
//     columns                lines are a command and, behind two blanks, what it does
//
// A block without a comment is run as it is, so a recipe that is added tomorrow is in it.
import { readFileSync } from "node:fs";

const KEYS = ["skip", "on", "elsewhere", "file", "before", "then", "with", "each", "endless", "refused", "columns"];

function directive(text, where) {
  const found = {};
  for (const part of text.split(new RegExp(`;\\s+(?=(?:${KEYS.join("|")})(?:\\s|$))`))) {
    const [, key, value] = /^\s*(\S+)\s*([^]*?)\s*$/.exec(part);
    if (!KEYS.includes(key)) throw new Error(`${where}: a recipe has no key ${JSON.stringify(key)}: ${KEYS.join(", ")}`);
    if (!value && key !== "columns") throw new Error(`${where}: ${key} needs a value`);
    found[key] = value || true;
  }
  return found;
}

const list = (text) => (text ? text.split(/\s*,\s+/) : []);

/** Every block: {page, line, text, skip, on, file, ...}. */
export function recipes(page) {
  const lines = readFileSync(page, "utf8").split("\n");
  const blocks = [];
  let comment = null;
  for (let i = 0; i < lines.length; i++) {
    const where = `${page}:${i + 1}`;
    let line = lines[i];
    if (/^\s*<!-- recipe: /.test(line)) while (!line.endsWith("-->") && i + 1 < lines.length) line += ` ${lines[++i].trim()}`;
    const said = /^\s*<!-- recipe: (.*) -->$/.exec(line);
    if (said) {
      if (comment) throw new Error(`${where}: two comments, and no block between them`);
      comment = directive(said[1], where);
      continue;
    }
    const fence = /^(\s*)```/.exec(lines[i]);
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
    blocks.push({ page, line: first + 1, ...comment, text: body.map((line) => line.slice(margin)).join("\n") });
    comment = null;
    i = end - (fence ? 0 : 1);
  }
  if (comment) throw new Error(`${page}: a recipe's comment at its end`);
  return blocks;
}

/** The block's text for the machine with this index. */
export function textFor(block, index) {
  let text = block.text;
  for (const pair of list(block.with)) {
    const [, from, to] = /^([^=]+)=([^]*)$/.exec(pair);
    text = text.replaceAll(from, to);
  }
  for (const row of list(block.each)) {
    const choices = row.split("|");
    text = text.replaceAll(choices[0], choices[index] ?? choices[0]);
  }
  return text;
}

const begins = (line, prefixes) => list(prefixes).some((prefix) => line === prefix || line.startsWith(`${prefix} `));
const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** What bash runs for it. */
export function scriptFor(block, index) {
  const body = textFor(block, index).split("\n").map((line) => {
    if (block.columns === true) line = line.split(/ {2,}/)[0];
    if (begins(line, block.endless)) // someone comes by meanwhile, so that there is something to say
      return `( while sleep 0.5; do curl -s -o /dev/null http://127.0.0.1:8787/ || true; done ) & visitor=$!; said=0; timeout 15 bash -c ${quote(line)} >/tmp/said 2>&1 || said=$?; kill $visitor; cat /tmp/said; [ $said = 124 ]; [ -s /tmp/said ]`;
    if (begins(line, block.refused)) return `if ${line} 2>/tmp/said; then echo "was not refused: ${line}"; exit 1; fi; cat /tmp/said; grep -q '^cairn: ' /tmp/said`;
    return line;
  }).join("\n");
  return `set -o pipefail\n${block.before ?? ""}\n${body}\n${block.then ? `${block.then}\n` : ""}`;
}
