// Runs the recipes of docs/do/operating.md and docs/do/three-nodes.md, taken from the pages (pages.mjs), on machines with a real systemd (machine.mjs):
//
//     node test/recipes/run.mjs PACKAGE.deb [PAGE...]     all of it; needs root, and minutes
//     node test/recipes/run.mjs --short CAIRN [PAGE...]   what can be seen without: syntax, commands and their options, settings of the service
//
// Recipes of a page run one after the other, as a reader would go through it; the first that fails ends the page. The last line counts.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Machine, Network, absent, download, prepare } from "./machine.mjs";
import { recipes, scriptFor, textFor } from "./pages.mjs";

/** Where a page's recipes run. */
const PAGES = {
  "docs/do/operating.md": ["10.0.0.9"],
  "docs/do/three-nodes.md": ["10.0.0.1", "10.0.0.2", "10.0.0.3"],
};

const counts = { passed: 0, failed: 0, skipped: 0 };
const title = (block, address) => `${block.page}:${block.line}${address ? ` on ${address}` : ""}: ${block.text.split("\n")[0].slice(0, 80)}`;

function report(result, name, detail = "") {
  counts[result]++;
  console.log(`${{ passed: "ok     ", failed: "FAILED ", skipped: "skipped" }[result]} ${name}${detail}`);
}

// --- on machines

async function runOn(machine, block, index) {
  if (block.file) {
    const file = path.join(machine.root, block.file);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, `${textFor(block, index)}\n`, { mode: 0o600 });
    return { code: 0, stdout: "", stderr: "" };
  }
  return machine.run(scriptFor(block, index), { env: { EDITOR: "true" }, seconds: 300 });
}

async function runPage(page, addresses, deb, network) {
  const machines = new Map();
  try {
    for (const [i, address] of addresses.entries()) {
      const machine = await Machine.start(network, `m${i + 1}`, address);
      machines.set(address, machine);
      cpSync(deb, path.join(machine.root, "root", path.basename(deb)));
    }
    for (const block of recipes(page)) {
      if (block.skip) {
        report("skipped", title(block), ` (${block.skip})`);
        continue;
      }
      const [, other, script] = /^(\S+) (.*)$/.exec(block.elsewhere ?? "") ?? [];
      if (other) await machines.get(other).run(script);
      for (const address of block.on ? block.on.split(/\s*,\s*/) : [addresses[0]]) {
        const began = Date.now();
        const done = await runOn(machines.get(address), block, addresses.indexOf(address));
        if (process.env.VERBOSE || done.code !== 0) console.log(`${done.stdout}${done.stderr}`.replace(/^/gm, "        "));
        report(done.code === 0 ? "passed" : "failed", title(block, address), ` (${((Date.now() - began) / 1000).toFixed(1)} s)`);
        if (done.code === 0) continue;
        for (const each of machines.values()) console.log((await each.run("journalctl -u cairn --no-pager | tail -n 15")).stdout.replace(/^/gm, `        ${each.address} `));
        return;
      }
    }
  } finally {
    for (const machine of machines.values()) await machine.stop();
  }
}

// --- without

/** The options that `cairn help COMMAND` names. */
function optionsOf(cairn, command) {
  const help = spawnSync(cairn, ["help", command], { encoding: "utf8" });
  return help.status === 0 ? new Set(help.stdout.match(/--[a-z][a-z0-9-]*/g)) : null;
}

/** What is wrong with it, as far as reading shows. */
function faults(cairn, block) {
  const found = [];
  if (block.file) {
    for (const line of textFor(block, 0).split("\n"))
      if (line && !/^(#.*|[A-Z_]+=[^#]*)$/.test(line)) found.push(`systemd reads this line of ${block.file} otherwise: ${line}`);
    return found;
  }
  const script = scriptFor(block, 0);
  const syntax = spawnSync("bash", ["-n"], { input: script, encoding: "utf8" });
  if (syntax.status !== 0) found.push(syntax.stderr.trim());
  for (const [, command, rest] of script.matchAll(/(?:^|[(;&|'] ?|\n\s*)cairn ([a-z0-9]+)([^\n;|&)#]*)/g)) {
    const options = optionsOf(cairn, command);
    if (!options) found.push(`there is no command cairn ${command}`);
    for (const option of options ? rest.match(/--[a-z][a-z0-9-]*/g) ?? [] : []) if (!options.has(option)) found.push(`cairn ${command} has no option ${option}`);
  }
  return found;
}

function readPage(cairn, page) {
  for (const block of recipes(page)) {
    if (block.skip) {
      report("skipped", title(block), ` (${block.skip})`);
      continue;
    }
    const found = faults(cairn, block);
    report(found.length ? "failed" : "passed", title(block), found.map((text) => `\n        ${text}`).join(""));
  }
}

const [first, ...rest] = process.argv.slice(2);
const short = first === "--short", what = short ? rest.shift() : first;
const pages = rest.length ? rest : Object.keys(PAGES);
if (short) {
  for (const page of pages) readPage(what, page);
} else {
  const why = absent();
  if (why) {
    console.error(`recipes: ${why}; SHORT=1 reads them only`);
    process.exit(1);
  }
  prepare();
  download(what);
  const network = new Network();
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
  try {
    for (const page of pages) await runPage(page, PAGES[page], what, network);
  } finally {
    network.close();
  }
}
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit(counts.failed ? 1 : 0);
