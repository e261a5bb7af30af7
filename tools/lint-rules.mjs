// SPDX-License-Identifier: Apache-2.0
// Numbered rules of src/ ("L4" of store/log.c is log.L4): each is cited by a test, or is in tools/lint-rules.json.
//
//     node tools/lint-rules.mjs            complains about rules that are torn, defined twice, or gone from the list, and
//                                          notes new ones that no test cites; --strict complains about those too
//     node tools/lint-rules.mjs --list     all of them, and where they are cited
//     node tools/lint-rules.mjs --accept   writes those that no test cites to tools/lint-rules.json
//
// A test cites a rule by its name, log.L4, anywhere below test/; or by its label alone in the test of that file or room
// (test/unit/ROOM/test_FILE.c). In tools/lint-rules.json a rule has a reason, or "" if a test is still to be written:
// the list is to shrink.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';

const walk = (folder, ends) =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && ends.test(entry.name))
    .map((entry) => `${entry.parentPath ?? entry.path}/${entry.name}`)
    .sort();

const strict = process.argv[2] === '--strict';
const complaints = [], notes = [];
const rules = new Map(); // name -> { file, label, line }
for (const file of walk('src', /\.[ch]$/)) {
  const base = basename(file).replace(/\.[ch]$/, '');
  readFileSync(file, 'utf8').split('\n').forEach((line, index) => {
    const where = `${file}:${index + 1}`;
    if (/^ \*.*[a-z.,;)] [A-Z]{1,2}\d{1,2} {2}[A-Z]/.test(line)) complaints.push(`${where}: a rule begins inside a line`);
    const [, label] = /^ \* ([A-Z]{1,2}\d{1,2}) {2,}\S/.exec(line) ?? [];
    if (!label) return;
    let name = `${base}.${label}`;
    if (rules.has(name) && rules.get(name).file === file) complaints.push(`${where}: ${name} is defined twice`);
    if (rules.has(name)) name = `${dirname(file).split('/').pop()}/${file.endsWith('.c') ? `${base}.c` : base}.${label}`;
    rules.set(name, { file, label, room: dirname(file).replace(/^src\//, ''), base });
  });
}

const tests = walk('test', /\.(c|h|mjs|js|ts|json)$/)
  .filter((file) => !file.includes('node_modules'))
  .map((file) => [file, readFileSync(file, 'utf8')]);
const cites = (text, label) => new RegExp(`(^|[^\\w.])${label}(?![\\w])`, 'm').test(text);

function citation(name, { label, room, base }) {
  const own = tests.find(([file, text]) =>
    file.startsWith(`test/unit/${room}/`) && basename(file).startsWith(`test_${base}`) && cites(text, label));
  const other = own ?? tests.find(([, text]) => text.includes(name) && new RegExp(`${name.replace('.', '\\.')}(?!\\d)`).test(text));
  return other?.[0];
}

const listFile = 'tools/lint-rules.json';
const listed = (() => {
  try {
    return JSON.parse(readFileSync(listFile, 'utf8'));
  } catch {
    return {};
  }
})();
const found = new Map([...rules].map(([name, rule]) => [name, citation(name, rule)]));
if (process.argv[2] === '--list') {
  for (const [name, where] of found) console.log(`${name.padEnd(30)} ${where ?? `- ${listed[name] ?? 'NOT CITED'}`}`);
} else if (process.argv[2] === '--accept') {
  const uncited = [...found].filter(([, where]) => !where).map(([name]) => [name, listed[name] ?? '']);
  writeFileSync(listFile, `${JSON.stringify(Object.fromEntries(uncited.sort()), null, 2)}\n`);
}
if (process.argv[2] !== '--accept')
  for (const [name, where] of found)
    if (!where && !(name in listed)) (strict ? complaints : notes).push(`${rules.get(name).file}: no test cites ${name}, and it has no reason in ${listFile}`);
for (const name of Object.keys(listed))
  if (!found.has(name)) complaints.push(`${listFile}: ${name} is no rule any more`);
for (const line of [...complaints, ...notes]) console.log(line);
const open = [...found].filter(([name, where]) => !where && !listed[name]).length;
console.log(`lint-rules: ${rules.size} rules, ${[...found.values()].filter(Boolean).length} cited by tests, ${open} still to be`);
process.exitCode = complaints.length ? 1 : 0;
