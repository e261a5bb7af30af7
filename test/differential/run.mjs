// Runs random calls of APIs on build/cairn and on workerd and compares what they give: node test/differential/run.mjs [options]
//
//   --family web        test/differential/web.mjs and its like; all of them if none is named
//   --seed 1            each program's own seed follows from it
//   --programs 400      in each family
//   --only N            one program (by the number in a report), with its source and every result
//   --all               lists known differences, too
//
// A family exports
//   name, flags         compatibility flags for both
//   prelude             optional: text of a script that the programs see
//   objects             optional: names of classes of Durable Objects that both have under env; `runProgramIn()` of the prelude
//                       says where a program runs
//   more(programs)      optional: more text of the script
//   program(random)     a list of calls, each { kind, text }: `kind` names the API ("URL.href ="), `text` is an expression;
//                       `$0` in it is what call 0 gave, `$1` call 1, and so on
//   known               what is known to differ: a list of { cause, reason, when(difference) }, each in docs/reference/compatibility.md
//   causeOf(difference) optional: the name under which a difference that is not known is reported
// and a difference is { kind, text, here, there, calls }: what cairn and workerd gave for one call, and all texts up to it.
//
// Only the first difference of a program that is not known counts: what follows may be its consequence. A program that differs is run again,
// alone, on both: what does not differ then (time, load) is not reported.
import { readFileSync, readdirSync, writeFileSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { random } from "../lib/random.mjs";
import { children, haveWorkerd, root, startCairn, startWorkerd } from "../lib/peers.mjs";

const here = path.dirname(fileURLToPath(import.meta.url)); // import.meta.dirname is not in Node.js 18
const BATCH = 25; // programs of a request
const ANSWER_MS = 15_000;
const options = { family: [], seed: 1, programs: 400, only: -1, all: false };
for (let i = 2; i < process.argv.length; i++) {
  const name = process.argv[i].replace(/^--/, "");
  if (name === "family") options.family.push(process.argv[++i]);
  else if (name === "all") options.all = true;
  else if (name in options) options[name] = Number(process.argv[++i]);
  else throw new Error(`unknown option ${process.argv[i]}`);
}

function sourceOf(program) {
  const reach = (text) => text.replace(/\$(\d+)/g, "v$1");
  return `programs.push(async (call, { box, ctx, storage, sql, env }) => {\n${program.map(({ text }, i) => `  const v${i} = await call(() => (${reach(text)}));`).join("\n")}\n});`;
}

async function results(address, from, to) {
  const response = await fetch(`${address}/?from=${from}&to=${to}`.replace(/([^:])\/\//, "$1/"), { signal: AbortSignal.timeout(ANSWER_MS) });
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`answered ${response.status}: ${text.slice(0, 500)}`);
  }
}

/** Those of some programs; one that takes the rest with it is found by halves. */
async function collect(address, from, to) {
  try {
    return await results(address, from, to);
  } catch (error) {
    if (to - from === 1) return [[`no answer: ${error.name}`]];
    const middle = (from + to) >> 1;
    return [...(await collect(address, from, middle)), ...(await collect(address, middle, to))];
  }
}

/** The calls that differ, in order. */
function differences(program, here, there) {
  const found = [];
  for (let i = 0; i < program.length; i++) {
    if (here[i] === there[i]) continue;
    found.push({ ...program[i], here: here[i] ?? here.at(-1), there: there[i] ?? there.at(-1), calls: program.slice(0, i + 1).map((c) => c.text) });
  }
  return found;
}

const shape = (text) => /^(throws|rejects) .*|^pending|^no answer/.exec(text ?? "nothing")?.[0] ?? "a value";

/** The API, what both gave, and, of two values, the property in which they first differ. */
function nameOf(family, d) {
  const named = family.causeOf?.(d);
  if (named) return named;
  if (shape(d.here) !== "a value" || shape(d.there) !== "a value") return `${d.kind}: ${shape(d.here)}, there ${shape(d.there)}`;
  let at = 0;
  while (at < d.here.length && d.here[at] === d.there[at]) at++;
  const before = [...d.there.slice(0, at + 20).matchAll(/([A-Za-z]\w*): /g)].filter((m) => m.index <= at);
  return `${d.kind}: ${before.at(-1)?.[1] ?? "its value"}`;
}

async function runFamily(family) {
  const known = family.known ?? [];
  const programs = [];
  for (let i = 0; i < options.programs; i++) programs.push(family.program(random(options.seed * 1_000_003 + i)));
  const text = [readFileSync(path.join(here, "probe.js"), "utf8"), family.prelude ?? "", family.more?.(programs) ?? "", ...programs.map(sourceOf)].join("\n");
  const dir = mkdtempSync(path.join(os.tmpdir(), "differential-"));
  try {
    for (const name of ["there.js", "here.js"]) writeFileSync(path.join(dir, name), text);
    const there = await startWorkerd(dir, ["there.js"], { flags: family.flags, objects: family.objects });
    const cairn = await startCairn(dir, "here.js", { flags: family.flags, objects: family.objects, verbose: options.only >= 0 });
    const addresses = [cairn.address, there.addresses[0]];
    if (options.only >= 0) {
      const [a, b] = await Promise.all(addresses.map((address) => collect(address, options.only, options.only + 1)));
      programs[options.only].forEach(({ text: call }, i) => console.log(`$${i} ${call}\n${a[0][i] === b[0][i] ? `    ${a[0][i]}` : `  cairn   ${a[0][i]}\n  workerd ${b[0][i]}`}`));
      return 0;
    }
    const groups = new Map(); // cause -> { reason, examples }
    let calls = 0, seen = 0, faded = 0;
    for (let from = 0; from < programs.length; from += BATCH) {
      const to = Math.min(from + BATCH, programs.length);
      const [a, b] = await Promise.all(addresses.map((address) => collect(address, from, to)));
      for (let i = from; i < to; i++) {
        calls += programs[i].length;
        let found = differences(programs[i], a[i - from], b[i - from]);
        if (found.length === 0) continue;
        const [c, d] = await Promise.all(addresses.map((address) => collect(address, i, i + 1)));
        const again = differences(programs[i], c[0], d[0]);
        const stays = found.filter((f) => again.some((g) => g.text === f.text && g.here === f.here && g.there === f.there));
        if (stays.length === 0) {
          faded++;
          continue;
        }
        found = stays;
        seen += found.length;
        for (const difference of found) {
          const entry = known.find((k) => k.when(difference));
          const cause = entry?.cause ?? nameOf(family, difference);
          const group = groups.get(cause) ?? groups.set(cause, { reason: entry?.reason, examples: [] }).get(cause);
          group.examples.push({ ...difference, index: i });
          if (!entry) break;
        }
      }
    }
    const unexplained = [...groups].filter(([, g]) => g.reason === undefined).sort((x, y) => y[1].examples.length - x[1].examples.length);
    for (const [cause, group] of [...groups].filter(([, g]) => g.reason !== undefined)) {
      console.log(`known ${String(group.examples.length).padStart(5)}  ${cause} (${group.reason})`);
      if (options.all) show(group.examples[0]);
    }
    for (const [cause, group] of unexplained) {
      console.log(`DIFFERS ${String(group.examples.length).padStart(3)}  ${cause}`);
      show(group.examples.reduce((x, y) => (y.calls.join().length < x.calls.join().length ? y : x)));
    }
    console.log(`${family.name}: seed ${options.seed}, ${programs.length} programs, ${calls} calls, ${seen} differ, ${unexplained.reduce((n, [, g]) => n + g.examples.length, 0)} of them not explained, ${faded} programs differed once only`);
    return unexplained.length;
  } finally {
    await Promise.all([...children].map((child) => new Promise((resolve) => child.once("exit", resolve).kill("SIGTERM"))));
    children.clear();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The lines that a call needs, and what both gave. */
function show({ calls, here, there, index }) {
  const needed = new Set([calls.length - 1]);
  for (const i of [...calls.keys()].reverse()) if (needed.has(i)) for (const [, n] of calls[i].matchAll(/\$(\d+)/g)) {
    // Whatever was done to the same value before may count.
    for (let j = 0; j <= i; j++) if (j === +n || calls[j].includes(`$${n}`)) needed.add(j);
  }
  for (const i of [...needed].sort((a, b) => a - b)) console.log(`      $${i} = ${calls[i]}`);
  let at = 0;
  while (at < here.length && here[at] === there[at]) at++;
  const cut = (text) => (text.length > 200 ? `${at > 80 ? "..." : ""}${text.slice(Math.max(0, at - 80), at + 120)}` : text);
  console.log(`        cairn   ${cut(here)}\n        workerd ${cut(there)}   (--only ${index})`);
}

/** Compares the table in docs/reference/compatibility.md with what the families know; UPDATE=1 writes it. */
function checkDocument(families) {
  const file = path.join(root, "docs/reference/compatibility.md");
  const document = readFileSync(file, "utf8");
  const rows = families.flatMap((f) => (f.known ?? []).map((k) => `| ${f.name} | ${k.cause.replaceAll("|", "\\|")} | ${k.reason.replaceAll("|", "\\|")} |`));
  const wanted = document.replace(/<!-- differential -->\n[^]*?<!-- end -->/, () => `<!-- differential -->\n| Family | Difference | Why |\n|---|---|---|\n${rows.join("\n")}\n<!-- end -->`);
  if (wanted === document) return 0;
  if (process.env.UPDATE) writeFileSync(file, wanted);
  else console.log("FAIL docs/reference/compatibility.md: its table of known differences is not up to date (UPDATE=1 writes it)");
  return process.env.UPDATE ? 0 : 1;
}

if (!haveWorkerd) {
  console.log("skip: workerd is not installed (make workerd)");
  process.exit(0);
}
const all = [];
for (const name of readdirSync(here).sort()) if (/^[a-z]+\.mjs$/.test(name) && name !== "run.mjs" && name !== "draw.mjs") all.push(await import(path.join(here, name)));
const wanted = options.family.length ? all.filter((f) => options.family.includes(f.name)) : all;
if (wanted.length === 0) throw new Error(`no such family: ${options.family}`);
let failed = checkDocument(all);
for (const family of wanted) failed += await runFamily(family);
process.exitCode = failed ? 1 : 0;
