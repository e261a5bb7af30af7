// How README, SECURITY, CONTRIBUTING and docs/ read. Part of `make lint`; `make docs-lint` prints the table as well.
//
//     node tools/lint-docs.mjs            fails if a page is worse than tools/lint-docs.json allows
//     node tools/lint-docs.mjs --table    how each page reads, now and when its counts were first taken
//     node tools/lint-docs.mjs --all PAGE...  every place in these pages
//     node tools/lint-docs.mjs --write    lowers what is allowed to what there is; a page that was split keeps the sum
//     node tools/lint-docs.mjs --accept   allows what there is: for a new rule
//
// D1  A line of prose has at most 120 characters, and so has the cell of a table, as it is read.
// D2  A sentence has at most 35 words.
// D3  A term of ours (the glossary's) is a link to the glossary, or in *italics* where the page defines it, once on a page. Pages
//     in docs/inside and docs/understand name the glossary once instead. Words that everybody uses are not looked for: ORDINARY.
// D4  A page is in the index, docs/README.md, or in that of its folder. It begins with what it is for; those of start/ and do/
//     say it in at most three sentences, and show something to type within 40 lines.
// D5  No link is broken (lint-names.mjs).
// D6  What is allowed (tools/lint-docs.json) only falls, for each page and as a whole. A new page has none.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { missingLinks } from "./lint-names.mjs";

const LINE_MAX = 120, SENTENCE_MAX = 35;
const KINDS = ["lines", "cells", "sentences", "terms", "shape"];
const GLOSSARY = "docs/understand/glossary.md", RECORD = "tools/lint-docs.json";
/** Terms of the glossary that are words of everybody too: a page that has them does not say so by it. */
const ORDINARY = new Set(["turn", "context", "clock", "origin", "account", "level", "monitor", "native", "patch", "worker", "deployment", "instance", "event",
  "guest", "tap", "module", "face", "object", "namespace", "node", "call", "place", "desk", "letter", "service", "store", "log", "moment", "template", "ticket",
  "disk", "replica", "session", "life", "lease", "tail", "feed", "member", "host", "front", "link", "pipe", "question", "body", "registry", "owner", "beat", "image",
  "hosted", "engine", "judge", "ledger", "stranger", "rig", "input gate", "output gate", "watchdog", "mailbox", "queue", "bookmark", "trim", "lent"]);

// --- what a page has

/** Text as it is read: the label of a link, code as it stands, nothing of HTML. */
export const read = (text) => text.replace(/<!--.*?-->/g, "").replace(/!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)/g, "$1").replace(/<\/?[a-z][^>]*>/g, "").replace(/(?<![\w*])\*{1,2}(?=\S)|(?<=\S)\*{1,2}(?![\w*])/g, "").trim();

/** The parts of a page in order: { kind: "text" | "cell" | "head" | "code", line, text, lines }. Comments of HTML are left out. */
export function parts(text) {
  const found = [];
  let open = null;
  const lines = text.split("\n");
  const close = () => { open = null; };
  for (let i = 0; i < lines.length; i++) {
    let line = lines[i];
    if (/^\s*<!--/.test(line)) {
      while (!lines[i].includes("-->") && i + 1 < lines.length) i++;
      close();
      continue;
    }
    const fence = /^\s*(```+)/.exec(line);
    if (fence) {
      const first = i++;
      while (i < lines.length && !lines[i].trim().startsWith(fence[1])) i++;
      found.push({ kind: "code", line: first + 1, text: lines.slice(first + 1, i).join("\n") });
      close();
      continue;
    }
    if (!line.trim()) { close(); continue; }
    if (!open && /^ {4,}\S/.test(line) && !/^\s*(?:[-*+]|\d+\.) /.test(line) && !found.at(-1)?.list) {
      const first = i;
      while (i + 1 < lines.length && (/^ {4,}/.test(lines[i + 1]) || (!lines[i + 1].trim() && /^ {4,}/.test(lines[i + 2] ?? "")))) i++;
      found.push({ kind: "code", line: first + 1, text: lines.slice(first, i + 1).join("\n") });
      continue;
    }
    if (/^#+ /.test(line)) { found.push({ kind: "head", line: i + 1, text: line.replace(/^#+ /, ""), lines: [line] }); close(); continue; }
    if (/^\s*\|/.test(line)) {
      close();
      if (/^\s*\|[\s|:-]+$/.test(line)) continue;
      for (const cell of line.trim().split(/(?<!\\)\|/).slice(1, -1)) if (cell.trim()) found.push({ kind: "cell", line: i + 1, text: cell.trim() });
      continue;
    }
    const item = /^\s*(?:[-*+]|\d+\.) /.test(line);
    if (!open || item) found.push((open = { kind: "text", line: i + 1, text: "", lines: [], list: item || (!open && /^ {2,}/.test(line)) }));
    open.lines.push(line);
    open.text += `${open.text ? "\n" : ""}${line.replace(/^\s*(?:(?:[-*+]|\d+\.) |>\s?)?/, "")}`;
  }
  return found;
}

/** The sentences of a text: [{ line (from its first), words }]. Code is one word each. */
export function sentences(text) {
  const shown = text.replace(/`[^`]*`/g, (code) => `code${"\n".repeat(code.split("\n").length - 1)}`);
  const found = [];
  let at = 0;
  for (const piece of shown.split(/((?<=[.!?][)*"”]*)\s+(?=["“(*\[]*[A-Z0-9`]|code\b))/)) {
    const words = read(piece.replaceAll("\n", " ")).match(/[\p{L}\p{N}][\p{L}\p{N}'’._/-]*/gu) ?? [];
    if (words.length > 0) found.push({ line: shown.slice(0, at).split("\n").length - 1, words });
    at += piece.length;
  }
  return found;
}

const syllables = (word) => Math.max(1, (word.toLowerCase().replace(/(?:[^laeiouy]es|[^laeiouytd]ed|[^laeiouy]e)$/, "").match(/[aeiouy]+/g) ?? []).length);

/** How it reads: words, words a sentence, and Flesch's reading ease (60 and above is plain; 30 and below is hard). Code makes a sentence longer, not easier. */
export function ease(text) {
  let words = 0, spoken = 0, beats = 0, count = 0;
  for (const part of parts(text)) {
    if (part.kind === "code" || part.kind === "head") continue;
    for (const sentence of sentences(part.text)) {
      if (part.kind === "cell" && sentence.words.length < 5) continue; // names and numbers
      count++;
      words += sentence.words.length;
      for (const word of sentence.words) {
        if (word === "code" || /[/_]|\w\.\w/.test(word)) continue;
        spoken++;
        beats += syllables(word);
      }
    }
  }
  if (count === 0) return { words, sentence: 0, flesch: 0 };
  return { words, sentence: Math.round((words / count) * 10) / 10, flesch: Math.round(206.835 - 1.015 * (words / count) - 84.6 * (beats / (spoken || 1))) };
}

/** Terms of the glossary that are looked for: [[term, pattern]]. */
export function glossaryTerms(text) {
  const found = new Map();
  for (const row of text.matchAll(/^\| ([^|]+) \|/gm)) for (const [, term] of row[1].matchAll(/\*([^*]+)\*/g))
    if (!ORDINARY.has(term.toLowerCase())) found.set(term, new RegExp(`(?<![\\w-])${term}(?:s|es)?(?![\\w-])`, "i"));
  return [...found];
}

/** What is wrong with a page: [{ kind, line, text }]. */
export function faults(file, text, terms) {
  const found = [], all = parts(text);
  const fault = (kind, line, said) => found.push({ kind, line, text: said });
  for (const part of all) {
    if (part.kind === "code") continue;
    if (part.kind === "cell") {
      const size = read(part.text).length;
      if (size > LINE_MAX) fault("cells", part.line, `a cell of ${size} characters`);
    } else part.lines.forEach((line, i) => {
      if (line.length > LINE_MAX) fault("lines", part.line + i, `a line of ${line.length} characters`);
    });
    if (part.kind !== "head") for (const { line, words } of sentences(part.text))
      if (words.length > SENTENCE_MAX) fault("sentences", part.line + line, `a sentence of ${words.length} words: ${words.slice(0, 8).join(" ")} …`);
  }
  if (file !== GLOSSARY) {
    const inner = /^docs\/(?:inside|understand)\/|^CONTRIBUTING/.test(file);
    const linked = text.includes("glossary.md");
    for (const [term, pattern] of terms) {
      const first = all.find((part) => part.kind !== "code" && pattern.test(part.text.replace(/`[^`]*`/g, "").replace(/\]\([^)]*\)/g, "]")));
      if (!first || (inner && linked)) continue;
      const defined = all.some((part) => part.kind !== "code" &&
        ([...part.text.matchAll(/\[([^\]]*)\]\([^)]*glossary\.md[^)]*\)/g)].some(([, label]) => pattern.test(label)) ||
         [...part.text.matchAll(/(?<!\*)\*{1,2}([^*\n]+)\*{1,2}/g)].some(([, label]) => pattern.test(label))));
      if (!defined) fault("terms", first.line, `"${term}" is a word of ours: link it to the glossary, or say what it is in *italics*`);
    }
  }
  if (/^docs\/(?:start|do)\//.test(file)) {
    const opening = all.find((part) => part.kind === "text");
    if (!opening || all[0]?.kind !== "head") fault("shape", 1, "it does not begin with a heading and what it is for");
    else if (sentences(opening.text).length > 3) fault("shape", opening.line, "what it is for takes more than three sentences");
    const code = all.find((part) => part.kind === "code");
    if (!code || code.line > 40) fault("shape", 1, "there is nothing to type within 40 lines");
  }
  return found;
}

// --- all pages

function main(args) {
  process.chdir(new URL("..", import.meta.url).pathname);
  const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], { encoding: "utf8" }).split("\n").filter((file) => file && existsSync(file));
  const pages = files.filter((file) => /^(?:README|SECURITY|CONTRIBUTING)\.md$|^docs\/.*\.md$/.test(file)).sort();
  const all = new Set(files);
  const texts = new Map(pages.map((file) => [file, readFileSync(file, "utf8")]));
  const terms = glossaryTerms(texts.get(GLOSSARY));
  const record = existsSync(RECORD) ? JSON.parse(readFileSync(RECORD, "utf8")) : { allowed: {}, before: {} };
  const found = new Map(pages.map((file) => [file, faults(file, texts.get(file), terms)]));
  const count = (file) => Object.fromEntries(KINDS.map((kind) => [kind, found.get(file).filter((each) => each.kind === kind).length]).filter(([, n]) => n > 0));
  const sum = (rows) => Object.fromEntries(KINDS.map((kind) => [kind, rows.reduce((n, row) => n + (row[kind] ?? 0), 0)]));
  const now = Object.fromEntries(pages.map((file) => [file, count(file)]));
  let bad = 0;
  const complain = (text) => { console.log(text); bad++; };

  if (args[0] === "--all") {
    for (const file of args.slice(1)) for (const { line, text } of found.get(file) ?? []) console.log(`${file}:${line}: ${text}`);
    return 0;
  }
  if (args[0] === "--accept") {
    if (!Object.keys(record.before).length) record.before = Object.fromEntries(pages.map((file) => [file, { ...ease(texts.get(file)), ...now[file] }]));
    record.allowed = now;
  }
  const total = sum(Object.values(now)), allowed = sum(Object.values(record.allowed));
  for (const kind of KINDS) if (total[kind] > allowed[kind]) complain(`${kind}: ${total[kind]}, and ${allowed[kind]} are allowed`);
  const moved = KINDS.every((kind) => total[kind] <= allowed[kind]) && args[0] === "--write";
  for (const file of pages) for (const kind of KINDS) {
    const has = now[file][kind] ?? 0, may = record.allowed[file]?.[kind] ?? 0;
    if (has <= may || moved) continue;
    for (const { line, text } of found.get(file).filter((each) => each.kind === kind)) console.log(`${file}:${line}: ${text}`);
    complain(`${file}: ${kind}: ${has}, and ${may} are allowed`);
  }
  const indexed = new Set();
  for (const index of pages.filter((file) => /(?:^|\/)README\.md$/.test(file)))
    for (const [, link] of texts.get(index).matchAll(/\]\((?!\w+:)([^)#\s]+)/g)) indexed.add(path.normalize(path.join(path.dirname(index), link)));
  for (const file of pages) {
    if (file.startsWith("docs/") && file !== "docs/README.md" && !indexed.has(file)) complain(`${file}: no index has it: docs/README.md`);
    for (const { line, name } of missingLinks(file, texts.get(file), all)) complain(`${file}:${line}: there is no ${name}`);
  }
  if (args[0] === "--table") table(pages, texts, now, record);
  if (args[0] === "--write" || args[0] === "--accept") {
    if (bad) return 1;
    const line = ([file, counts]) => `    ${JSON.stringify(file)}: ${JSON.stringify(counts)}`;
    const block = (entries) => entries.map(line).join(",\n");
    writeFileSync(RECORD, `{\n  "allowed": {\n${block(Object.entries(now).filter(([, counts]) => Object.keys(counts).length))}\n  },\n  "before": {\n${block(Object.entries(record.before))}\n  }\n}\n`);
  }
  console.log(`docs-lint: ${pages.length} pages; ${KINDS.map((kind) => `${kind} ${total[kind]} of ${sum(Object.values(record.before))[kind] ?? 0}`).join(", ")}`);
  return bad ? 1 : 0;
}

function table(pages, texts, now, record) {
  const rows = pages.map((file) => ({ file, ...ease(texts.get(file)), ...now[file], was: record.before[file] }));
  const weigh = (list) => {
    const words = list.reduce((n, row) => n + row.words, 0), part = (key) => list.reduce((n, row) => n + row[key] * row.words, 0) / (words || 1);
    return `${String(words).padStart(7)} words, ${part("sentence").toFixed(1)} a sentence, reading ease ${part("flesch").toFixed(1)}`;
  };
  console.log(`${"page".padEnd(44)}  words  a sentence  ease  (before)  over: ${KINDS.join(" ")}`);
  for (const row of rows)
    console.log(`${row.file.padEnd(44)} ${String(row.words).padStart(6)} ${String(row.sentence).padStart(11)} ${String(row.flesch).padStart(5)}  ${(row.was ? `(${row.was.sentence}, ${row.was.flesch})` : "(new)").padEnd(10)} ${KINDS.map((kind) => String(row[kind] ?? 0).padStart(3)).join(" ")}`);
  for (const part of ["start", "do", "reference", "understand", "inside"]) {
    const within = rows.filter((row) => row.file.startsWith(`docs/${part}/`));
    if (within.length) console.log(`${`docs/${part}`.padEnd(20)} ${weigh(within)}`);
  }
  console.log(`${"all, before".padEnd(20)} ${weigh(Object.values(record.before))}\n${"all, now".padEnd(20)} ${weigh(rows)}`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) process.exitCode = main(process.argv.slice(2));
