// Runs the recipes of the pages, taken out of them (pages.mjs), on machines with a real systemd (machine.mjs):
//
//     node test/recipes/run.mjs PACKAGE.deb [PAGE...]     all of it; needs root, and minutes
//     node test/recipes/run.mjs --short CAIRN [PAGE...]   what can be seen without: syntax, commands and their options, settings of the service
//
// TRANSCRIPT=FILE adds what was typed and what came of it, as Markdown.
//
// Recipes of a page run one after the other, as a reader would go through it who begins with a fresh machine; the first that fails ends the page.
// The last lines count.
import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Machine, Network, absent, download, prepare } from "./machine.mjs";
import { agrees, commandCount, isCommands, isRun, isStray, recipes, scriptFor, textFor, within } from "./pages.mjs";

/** What can be on a machine when the reader of a page begins. */
const HAS = {
  nothing: "true",
  package: "apt-get install -qq ./cairn_*.deb >/dev/null",
  // A service with a project in which something has happened.
  service: `apt-get install -qq ./cairn_*.deb >/dev/null && cairn new /srv/cairn --template durable-object >/dev/null && systemctl enable -q --now cairn
    curl -fsS http://127.0.0.1:8787/ http://127.0.0.1:8787/lobby >/dev/null`,
  // A project that the page's shell is in, and `served`, which serves it as `cairn dev` does in another terminal.
  project: `apt-get install -qq ./cairn_*.deb >/dev/null && cairn new /root/app >/dev/null && echo cd /root/app >/run/recipe.shell`,
  // An engine for clusters of one node, at the address of its own.
  postgresql: `apt-get install -qq ./cairn_*.deb libpq5 postgresql >/dev/null && sudo -u postgres psql -qc "CREATE ROLE cairn LOGIN PASSWORD 'one'" -c "CREATE DATABASE cairn OWNER cairn" &&
    echo "$(hostname -I) db1 db2" >>/etc/hosts && echo "listen_addresses = '*'" >>/etc/postgresql/15/main/postgresql.conf &&
    echo 'host cairn cairn 10.0.0.0/24 scram-sha-256' >>/etc/postgresql/15/main/pg_hba.conf && systemctl restart postgresql`,
};

const counts = { passed: 0, failed: 0, skipped: 0 }, run = { pages: 0, withCommands: 0, commands: 0 };
const title = (block, address) => `${block.page}:${block.line}${address ? ` on ${address}` : ""}: ${block.text.split("\n")[0].slice(0, 80)}`;

function report(result, name, detail = "") {
  counts[result]++;
  console.log(`${{ passed: "ok     ", failed: "FAILED ", skipped: "skipped" }[result]} ${name}${detail}`);
}

function count(page) {
  for (const name of page.has) if (!HAS[name]) throw new Error(`${page.page}: no machine has ${name}: ${Object.keys(HAS).join(", ")}`);
  const commands = page.skip ? [] : page.blocks.filter(isCommands);
  run.pages++;
  if (commands.length) run.withCommands++;
  run.commands += commands.reduce((sum, block) => sum + commandCount(block), 0);
}

/** What a reader of it saw: commands, and the end of what they printed. */
function transcribe(block, index, address, done) {
  const text = textFor(block, index), file = block.file ?? block.append;
  const shown = `${done.stdout}\n${done.stderr}`.split(/\r|\n/).filter((line) => line.trim() && !/^(Get:|Selecting|Preparing|Unpacking|Setting up|Processing|\(Reading|WARNING: apt|debconf:|Reading|Building|The following|Suggested|Need to|After this|Created symlink)|^ *%|^ {2}\D/.test(line)).slice(-12);
  const body = block.prints ? null : file ? `${block.append ? "(added to" : "(written to"} ${file})` : [...text.split("\n").map((line) => `$ ${line}`), ...shown.map((line) => line.slice(0, 160))].join("\n");
  if (body) appendFileSync(process.env.TRANSCRIPT, `\n${address}:\n\n\`\`\`text\n${body}\n\`\`\`\n`);
}

// --- on machines

async function runOn(machine, block, index, printed) {
  if (block.stop) await machine.interrupt();
  if (block.file || block.append) { // not below /tmp, which a machine has in its memory
    const file = path.join(machine.root, path.resolve(await machine.cwd(), block.file ?? block.append));
    mkdirSync(path.dirname(file), { recursive: true });
    if (block.append) appendFileSync(file, `${textFor(block, index)}\n`);
    else writeFileSync(file, `${textFor(block, index)}\n`, path.extname(file) ? {} : { mode: 0o600 });
    return { code: 0, stdout: "", stderr: "" };
  }
  if (block.prints) {
    const missing = agrees(printed, textFor(block, index));
    return { code: missing === null ? 0 : 1, stdout: missing === null ? "" : `was not printed: ${missing}\nwas: ${printed}`, stderr: "" };
  }
  if (block.serves) return machine.serve(within(scriptFor(block, index)));
  return machine.run(within(scriptFor(block, index)), { env: { EDITOR: "true" }, seconds: 900 });
}

async function runPage(page, deb) {
  const machines = new Map(), network = new Network();
  const began = Date.now();
  let printed = "";
  try {
    for (const [i, address] of page.machines.entries()) {
      const machine = await Machine.start(network, `m${i + 1}`, address);
      machines.set(address, machine);
      for (const file of readdirSync(path.dirname(deb)).filter((name) => name.endsWith(".deb"))) cpSync(path.join(path.dirname(deb), file), path.join(machine.root, "root", file));
      for (const script of [...page.has.map((name) => HAS[name]), page.setup ?? "true"]) {
        const done = await machine.run(script, { seconds: 900 });
        if (done.code !== 0) return report("failed", `${page.page}: what is there at its beginning`, `\n${script}: ${done.stdout}${done.stderr}`);
      }
    }
    for (const block of page.blocks.filter((block) => block.skip || isRun(block))) {
      if (block.skip) {
        report("skipped", title(block), ` (${block.skip})`);
        continue;
      }
      const [, other, script] = /^(\S+) (.*)$/.exec(block.elsewhere ?? "") ?? [];
      if (other) await machines.get(other).run(script);
      for (const address of block.on ? block.on.split(/\s*,\s*/) : [page.machines[0]]) {
        const started = Date.now();
        const done = await runOn(machines.get(address), block, page.machines.indexOf(address), printed);
        if (isCommands(block)) printed = `${done.stdout}\n${done.stderr}`;
        if (process.env.TRANSCRIPT) transcribe(block, page.machines.indexOf(address), address, done);
        if (process.env.VERBOSE || done.code !== 0) console.log(`${done.stdout}${done.stderr}`.replace(/^/gm, "        "));
        report(done.code === 0 ? "passed" : "failed", title(block, address), ` (${((Date.now() - started) / 1000).toFixed(1)} s)`);
        if (done.code === 0) continue;
        for (const each of machines.values()) console.log(`${each.said}${(await each.run("journalctl -u cairn --no-pager | tail -n 15")).stdout}`.replace(/^/gm, `        ${each.address} `));
        return;
      }
    }
    console.log(`        ${page.page}: ${((Date.now() - began) / 1000).toFixed(0)} s`);
  } catch (error) {
    report("failed", page.page, `: ${error.message}`);
  } finally {
    for (const machine of machines.values()) await machine.stop();
    network.close();
  }
}

// --- without

/** The options that `cairn help COMMAND` names. */
const known = new Map();
function optionsOf(cairn, command) {
  if (!known.has(command)) {
    const help = spawnSync(cairn, ["help", command], { encoding: "utf8" });
    known.set(command, help.status === 0 ? new Set(help.stdout.match(/--[a-z][a-z0-9-]*/g)) : null);
  }
  return known.get(command);
}

/** What is wrong with it, as far as reading shows. */
function faults(cairn, block) {
  const found = [];
  if (block.prints || block.append) return found;
  if (block.file) {
    if (/^\/etc\/default\//.test(block.file))
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
  for (const block of page.blocks) {
    if (isStray(block) && !page.shows) report("failed", title(block), "\n        these are commands that nobody runs: a block of sh, or a comment that says why it is skipped");
    if (!block.skip && !isRun(block)) continue;
    if (block.skip) {
      report("skipped", title(block), ` (${block.skip})`);
      continue;
    }
    const found = faults(cairn, block);
    if (found.length) report("failed", title(block), found.map((text) => `\n        ${text}`).join(""));
    else counts.passed++;
  }
}

const [first, ...rest] = process.argv.slice(2);
const short = first === "--short", what = short ? rest.shift() : first;
const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "*.md"], { encoding: "utf8" }).split("\n");
const all = files.filter((file) => /^(?:README|SECURITY|CONTRIBUTING)\.md$|^docs\//.test(file) && existsSync(file)).sort();
const pages = (rest.length ? rest : all).map(recipes);
for (const page of pages) count(page);
const todo = pages.filter((page) => page.blocks.length && (!page.skip || report("skipped", page.page, ` (${page.skip})`)));
if (short) {
  for (const page of todo) readPage(what, page);
} else {
  const why = absent();
  if (why) {
    console.error(`recipes: ${why}; SHORT=1 reads them only`);
    process.exit(1);
  }
  prepare();
  download(what);
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => { // what runs now fails, and its machines are stopped
    todo.length = 0;
    for (const machine of Machine.all) process.kill(machine.leader, "SIGKILL");
  });
  while (todo.length) {
    const page = todo.shift();
    if (page.blocks.some(isRun)) await runPage(page, what);
  }
}
console.log(`${run.pages} pages, ${run.withCommands} with commands, ${run.commands} commands${short ? " (read, not run)" : ""}`);
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit(counts.failed ? 1 : 0);
