// Makes a project below build/projects/NAME/app: by its starter or from its list of packages, with the files
// of its folder; then builds it by its own commands. A stamp, written last, is the hash of all that
// decides the outcome: an unfinished folder has none and is made anew.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, cpSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { environment, here, out, toolsDir } from "./paths.mjs";

const COMMAND_TIMEOUT_MS = 15 * 60_000;
const NPM = "npm install --no-audit --no-fund --loglevel=error --prefer-offline";

/** Runs a command line; its output goes to the log, whose end is the error. */
function run(command, cwd, log) {
  return new Promise((resolve, reject) => {
    const fd = openSync(log, "a");
    writeFileSync(fd, `$ ${command}\n`);
    const child = spawn("/bin/sh", ["-c", command], { cwd, env: environment(cwd), stdio: ["ignore", fd, fd], timeout: COMMAND_TIMEOUT_MS });
    child.on("error", reject).on("close", (code, signal) => {
      closeSync(fd);
      if (code === 0) return resolve();
      reject(new Error(`${command}: ${signal ?? `status ${code}`}\n${readFileSync(log, "utf8").slice(-3000)}`));
    });
  });
}

/** Node.js and wrangler: Node.js first, for npm chooses packages by the version it runs on. */
export async function tools() {
  const wanted = readFileSync(path.join(here, "tools.json"), "utf8");
  const stamp = path.join(toolsDir, "stamp");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  rmSync(toolsDir, { recursive: true, force: true });
  mkdirSync(toolsDir, { recursive: true });
  writeFileSync(path.join(toolsDir, "package.json"), '{ "private": true }\n');
  for (const [name, version] of Object.entries(JSON.parse(wanted))) {
    console.log(`     installing ${name} ${version}`);
    await run(`${NPM} ${name}@${version}`, toolsDir, path.join(toolsDir, "log"));
  }
  writeFileSync(stamp, wanted);
}

/** The files of the project's folder but project.mjs: what its author writes. */
const authored = (name) => readdirSync(path.join(here, name), { recursive: true, withFileTypes: true })
  .filter((e) => e.isFile()).map((e) => path.relative(path.join(here, name), path.join(e.parentPath ?? e.path, e.name)))
  .filter((file) => file !== "project.mjs").sort();

const digest = (value) => createHash("sha256").update(JSON.stringify(value)).digest("hex");

function hashOf(project, files) {
  const { packages, starter, build, remove } = project;
  const hash = createHash("sha256").update(digest({ packages, starter, build, remove }));
  for (const file of files) hash.update(`\0${file}\0`).update(readFileSync(path.join(here, project.name, file)));
  return hash.digest("hex");
}

/** The project's packages. Those of an earlier run stay when only what its author writes has changed. */
async function install(project, home, dir, log) {
  const stamp = path.join(home, "installed"), hash = digest([project.packages, project.starter]);
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === hash) {
    const installed = new Set(["node_modules", "package.json", "package-lock.json"]);
    if (!project.starter) for (const name of readdirSync(dir)) if (!installed.has(name)) rmSync(path.join(dir, name), { recursive: true });
    return;
  }
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  if (project.starter) await run(project.starter, home, log);
  else {
    mkdirSync(dir);
    writeFileSync(path.join(dir, "package.json"), JSON.stringify({ name: project.name, private: true, type: "module" }) + "\n");
  }
  const list = Object.entries(project.packages ?? {}).map(([name, version]) => `${name}@${version}`);
  await run(`${NPM} ${list.join(" ")}`, dir, log);
  writeFileSync(stamp, hash);
}

/** The project's folder, built. */
export async function prepare(project) {
  const home = path.join(out, project.name), dir = path.join(home, "app");
  const log = path.join(home, "build.log"), stamp = path.join(home, "stamp");
  const files = authored(project.name), hash = hashOf(project, files);
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === hash) return dir;
  console.log(`     building ${project.name}`);
  rmSync(stamp, { force: true });
  await install(project, home, dir, log);
  for (const file of project.remove ?? []) rmSync(path.join(dir, file), { recursive: true });
  for (const file of files) cpSync(path.join(here, project.name, file), path.join(dir, file));
  for (const command of project.build ?? []) await run(command, dir, log);
  writeFileSync(stamp, hash);
  return dir;
}
