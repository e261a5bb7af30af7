// make mistakes: what `cairn dev` and `wrangler dev` say of the same mistakes. Each of mistakes.mjs is made in a project,
// both programs serve it, and both outputs (terminal and answer) go into a table; so does which of the parts of a good
// message each has: the thing, the place, the line of the file, what to do, and whether it goes on after it is mended.
//
//     node test/mistakes/run.mjs --wrangler WRANGLER --cairn CAIRN [--out FILE] [--only NAME] [--cairn-only]
//
// Fails if a message of ours lacks a part that the other has.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { mistakes, plain } from "./mistakes.mjs";

const { values: given } = parseArgs({ options: { wrangler: { type: "string" }, cairn: { type: "string" }, out: { type: "string" }, only: { type: "string" }, show: { type: "boolean" } } });
const QUIET_MS = 700, START_MS = 60_000;

const programs = {
  "cairn dev": given.cairn && { argv: (port) => [path.resolve(given.cairn), "dev", "--port", port], env: { CAIRN_ADMIN: "off" } },
  "wrangler dev": given.wrangler && { kept: given.wrangler, argv: (port) => [process.execPath, path.resolve(given.wrangler), "dev", "--port", port, "--inspector-port", "0", "--show-interactive-dev-session=false"], env: { WRANGLER_SEND_METRICS: "false", CLOUDFLARE_CF_FETCH_ENABLED: "false" } },
};

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** A port that nobody has, or one that this process has. */
async function takePort(keep) {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  if (!keep) await new Promise((resolve) => server.close(resolve));
  return { port: String(port), close: () => server.close() };
}

function makeProject(mistake) {
  const dir = mkdtempSync(path.join(os.tmpdir(), "mistake-"));
  for (const [name, text] of Object.entries({ ...plain, ...mistake.files })) {
    if (text === null) continue;
    mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
    writeFileSync(path.join(dir, name), text);
  }
  return dir;
}

/** Until the program is ready, has failed or has ended, and then says nothing for a while. */
async function settled(run) {
  for (const deadline = Date.now() + START_MS; Date.now() < deadline; await wait(50)) {
    const began = run.exited || /ready on|Ready on|ERROR\]|waiting for a change/.test(plainText(run.output));
    if (began && (run.exited || Date.now() - run.last > QUIET_MS)) return;
  }
}

async function ask(port, target, seconds) {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}${target}`, { signal: AbortSignal.timeout(seconds * 1000), headers: { accept: "*/*" } });
    return `${answer.status} ${(await answer.text()).slice(0, 2000)}`;
  } catch (error) {
    return error.name === "TimeoutError" ? `(no answer in ${seconds} s)` : `(${error.cause?.code ?? error.message})`;
  }
}

const plainText = (text) => text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, "");

/** What it says, without what differs from run to run. */
function clean(text, dir) {
  return plainText(text).replaceAll(dir, "DIR").replaceAll(path.basename(dir), "DIR").replace(/\/\S*\/wrangler\/node_modules\//g, "node_modules/").trimEnd();
}

async function meet(program, mistake) {
  const dir = makeProject(mistake), home = mkdtempSync(path.join(os.tmpdir(), "home-"));
  const taken = await takePort(mistake.taken);
  const [file, ...argv] = program.argv(taken.port);
  const child = spawn(file, [...argv, ...(mistake.args ?? [])], { cwd: dir, stdio: ["ignore", "pipe", "pipe"], detached: true,
    env: { PATH: process.env.PATH, HOME: home, TMPDIR: os.tmpdir(), NO_COLOR: "1", ...program.env } });
  const run = { output: "", last: Date.now(), exited: false };
  for (const name of ["stdout", "stderr"]) child[name].setEncoding("utf8").on("data", (text) => { run.output += text; run.last = Date.now(); });
  const closed = new Promise((resolve) => child.on("exit", () => { run.exited = true; resolve(); }));
  await settled(run);
  const atStart = run.output;
  let answer = "";
  if (mistake.request && !run.exited) {
    answer = await ask(taken.port, mistake.request, mistake.seconds ?? 10);
    await settled(run);
  }
  const alive = !run.exited;
  let mends = false;
  if (alive && !mistake.ends && !mistake.args) {
    for (const [name, text] of Object.entries({ ...plain, ...mistake.mended })) {
      mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
      writeFileSync(path.join(dir, name), text);
    }
    for (const deadline = Date.now() + 10_000; Date.now() < deadline && !mends; await wait(100)) mends = (await ask(taken.port, "/", 5)) === "200 hello";
  }
  const output = mistake.request ? run.output : atStart;
  try { process.kill(-child.pid, "SIGKILL"); } catch { /* it has ended */ }
  await closed;
  taken.close();
  for (const each of [dir, home]) rmSync(each, { recursive: true, force: true, maxRetries: 5 });
  return { terminal: clean(output, dir), answer: clean(answer, dir), mends };
}

/** Which parts of a good message it has. */
function judge(mistake, said) {
  const all = `${said.terminal}\n${said.answer}`;
  const has = { thing: mistake.thing.every((pattern) => pattern.test(all)) };
  for (const part of ["place", "frame", "remedy"]) if (mistake[part]) has[part] = mistake[part].test(all);
  if (!mistake.ends && !mistake.args) has.mends = said.mends;
  // What is of the program and not of the project.
  has.clean = !/node_modules\/(wrangler|miniflare|esbuild)|wrangler-dist|at (failureErrorWithLog|responseCallbacks|handleIncomingPacket)|cairn:prelude|bundler\.mjs/.test(all);
  return has;
}

const names = { thing: "names it", place: "says where", frame: "shows the line", remedy: "says what to do", mends: "goes on when mended", clean: "no trace of its own" };
const list = (has) => Object.entries(names).map(([part, name]) => part in has && `${has[part] ? "yes" : "**no**"}: ${name}`).filter(Boolean).join(", ");
const block = (text) => "```text\n" + (text || "(nothing)").replaceAll("```", "'''") + "\n```";

// What the other program said does not change: it is kept.
if (given.out) mkdirSync(path.dirname(given.out), { recursive: true });
const keep = given.out && path.join(path.dirname(given.out), "mistakes-kept.json");
const kept = keep && existsSync(keep) ? JSON.parse(readFileSync(keep, "utf8")) : {};
const rows = [], sections = [], worse = [];
for (const mistake of mistakes.filter((each) => !given.only || each.name.includes(given.only))) {
  const results = {};
  for (const [name, program] of Object.entries(programs)) {
    if (!program) continue;
    const key = createHash("sha256").update(JSON.stringify([program.kept, mistake.files, mistake.request, mistake.args, mistake.mended])).digest("hex");
    const said = program.kept && kept[key] ? kept[key] : await meet(program, mistake);
    if (program.kept && keep) writeFileSync(keep, JSON.stringify({ ...kept, [key]: said }));
    if (program.kept) kept[key] = said;
    results[name] = { said, has: judge(mistake, said) };
    if (given.show) console.log(`=== ${mistake.name}: ${name}\n${said.terminal}\n--- answer: ${said.answer}\n--- ${list(results[name].has)}\n`);
  }
  const [ours, theirs] = [results["cairn dev"], results["wrangler dev"]];
  const count = (each) => each ? `${Object.values(each.has).filter(Boolean).length} of ${Object.keys(each.has).length}` : "";
  if (ours && theirs) for (const part of Object.keys(ours.has)) if (theirs.has[part] && !ours.has[part]) worse.push(`${mistake.name}: ${names[part]}`);
  rows.push(`| ${mistake.name} | ${count(ours)} | ${count(theirs)} |`);
  console.log(`mistakes: ${mistake.name}: ${Object.entries(results).map(([name, each]) => `${name} ${count(each)}`).join(", ")}`);
  const files = Object.entries(mistake.files).filter(([, text]) => text !== null).map(([name, text]) => `${name}:\n${text.trimEnd()}`).join("\n\n");
  sections.push(`## ${mistake.name[0].toUpperCase()}${mistake.name.slice(1)}\n\n${files ? `${block(files)}\n\n` : ""}${Object.entries(results).map(([name, { said, has }]) =>
    `**${name}** (${list(has)})\n\n${block(said.terminal)}${mistake.request ? `\n\nThe answer:\n\n${block(said.answer)}` : ""}`).join("\n\n")}`);
}
if (given.out) {
  writeFileSync(given.out, `# Mistakes\n\nWhat \`cairn dev\` and \`wrangler dev\` say of the same mistakes; made by \`make mistakes\`. The figures: how many parts of a good\nmessage it has (names the thing, says where, shows the line, says what to do, goes on when it is mended, no trace of its own).\n\n| mistake | cairn dev | wrangler dev |\n| --- | --- | --- |\n${rows.join("\n")}\n\n${sections.join("\n\n")}\n`);
}
console.log(`mistakes: ${rows.length} made, ours is behind in ${worse.length}${worse.length ? `:\n  ${worse.join("\n  ")}` : ""}`);
process.exitCode = worse.length ? 1 : 0;
