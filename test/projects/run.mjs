// `make test-projects`: projects as strangers have them, on the server and on `wrangler dev`.
//
// A folder here is a project: project.mjs says which packages it has (exact versions) or which starter
// makes it, how it is built, and what is asked of it; the other files of the folder are what its author
// writes. All of it is made below build/projects/NAME, once: it is made anew when its folder changes. Then
// the same script of requests runs against `wrangler dev` and `cairn serve` on that one folder.
//
// P1  Nothing of a project is changed for us: both servers are given the same folder, after the project's
//     own build command.
// P2  A script checks what came back, on both servers: two equal failures are no success.
// P3  Every answer is recorded, made independent of time and chance (record.mjs), and compared.
//
// TEST=a,b chooses (parts of names), UPDATE=1 writes the table of
// docs/reference/libraries.md, with which a whole run must otherwise agree. build/projects/NAME has
// result.json with everything that was seen, and the logs of both servers.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { prepare, tools } from "./build.mjs";
import { here, out, root } from "./paths.mjs";
import { difference } from "./record.mjs";
import { runScript } from "./script.mjs";
import { startCairn, startWrangler } from "./servers.mjs";
import { startStandIns } from "./standins.mjs";
import { checkDocument } from "./table.mjs";

const words = (process.argv[2] ?? "").split(",").filter(Boolean);
const names = readdirSync(here, { withFileTypes: true }).filter((e) => e.isDirectory()).map((e) => e.name).sort();
const chosen = names.filter((name) => !words.length || words.some((word) => name.includes(word)));

/** What one server answers: {failed, seen}. */
async function ask(start, project, dir, standIns) {
  let server;
  try {
    server = await start(project, dir, standIns.vars(project));
    return await runScript(project, dir, server.url, standIns);
  } catch (error) {
    return { failed: String(error.stack ?? error), seen: [] };
  } finally {
    await server?.stop();
  }
}

/** works, differs (why), or does not (why). */
function judge(project, wrangler, cairn) {
  if (wrangler.failed) return { result: "unknown", why: `wrangler dev: ${wrangler.failed}` };
  if (cairn.failed && project.missing?.message.test(cairn.failed)) return { result: "does not", why: project.missing.why, known: true };
  if (cairn.failed) return { result: "does not", why: cairn.failed };
  if (project.missing) return { result: "works", why: "its project.mjs says that it does not", stale: true };
  const why = difference(wrangler.seen, cairn.seen, project.known ?? []);
  if (why) return { result: "differs", why };
  return project.known ? { result: "differs", why: project.known.map((k) => k.why).join("; "), known: true } : { result: "works" };
}

const isGood = (r) => r.known || (r.result === "works" && !r.stale);

async function runProject(name, standIns) {
  const project = { name, ...(await import(pathToFileURL(path.join(here, name, "project.mjs")))).default };
  try {
    const dir = await prepare(project);
    const wrangler = await ask(startWrangler, project, dir, standIns);
    const cairn = await ask(startCairn, project, dir, standIns);
    return { project, ...judge(project, wrangler, cairn), wrangler, cairn };
  } catch (error) {
    return { project, result: "unknown", why: String(error.stack ?? error) };
  }
}

process.setMaxListeners(0);
process.on("unhandledRejection", (error) => console.log(`     a client: ${error?.stack ?? error}`));
await tools();
const standIns = await startStandIns();
const results = [];
const started = Date.now();
for (const name of chosen) {
  const before = Date.now();
  const result = await runProject(name, standIns);
  results.push(result);
  const { project, ...seen } = result;
  writeFileSync(path.join(out, name, "result.json"), JSON.stringify(seen, null, 1));
  const good = isGood(result);
  const steps = result.cairn?.seen.length ?? 0;
  console.log(`${good ? "ok  " : "FAIL"} [${results.length}/${chosen.length}] ${name}: ${result.result}, ${steps} answers, ${((Date.now() - before) / 1000).toFixed(0)} s${result.why ? `\n     ${result.why.replaceAll("\n", "\n     ")}` : ""}`);
}
standIns.close();

/** What an earlier run saw of a project that was not chosen. */
const earlier = async (name) => {
  const project = { name, ...(await import(pathToFileURL(path.join(here, name, "project.mjs")))).default };
  const file = path.join(out, name, "result.json");
  return existsSync(file) ? { project, ...JSON.parse(readFileSync(file, "utf8")) } : { project, result: "unknown", why: "not run" };
};
const all = await Promise.all(names.map((name) => results.find((r) => r.project.name === name) ?? earlier(name)));
const failed = results.filter((r) => !isGood(r)).length;
const whole = chosen.length === names.length || process.env.UPDATE;
const documented = whole ? checkDocument(path.join(root, "docs/reference/libraries.md"), all) : true;
console.log(`projects: ${((Date.now() - started) / 1000).toFixed(0)} s; what was seen is in build/projects/NAME/result.json`);
console.log(`${results.length - failed} passed, ${failed} failed`);
process.exit(failed || !documented ? 1 : 0);
