// The two servers that a project runs on. Each starts with no data, applies the project's migrations as its
// user would, and says itself where it listens.
import { spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { environment, out, root } from "./paths.mjs";

const START_TIMEOUT_MS = 120_000;
const FAILED = /Build failed with \d+ error/; // wrangler dev then waits for a change of the source
const cairn = process.env.CAIRN ?? path.join(root, "build/cairn");

function fresh(project, name) {
  const dir = path.join(out, project.name, name);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  return dir;
}

/** Ends a whole group of processes: wrangler has children of its own. */
function stopper(child) {
  const ended = new Promise((resolve) => child.on("close", resolve));
  const signal = (name) => {
    try {
      process.kill(-child.pid, name);
    } catch { /* it has ended */ }
  };
  process.on("exit", () => signal("SIGKILL"));
  return async () => {
    signal("SIGTERM");
    const late = setTimeout(() => signal("SIGKILL"), 10_000);
    await ended;
    clearTimeout(late);
    signal("SIGKILL"); // whoever of the group is left
  };
}

/** Starts a program, waits for `ready` in what it prints, and keeps all of that in a file. */
async function start(argv, dir, ready, log) {
  const child = spawn(argv[0], argv.slice(1), { cwd: dir, env: { ...environment(dir), CAIRN_ADMIN: "off" }, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const stop = stopper(child);
  let output = `$ ${argv.join(" ")}\n`;
  try {
    const url = await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`did not start in ${START_TIMEOUT_MS / 1000} s:\n${output}`)), START_TIMEOUT_MS);
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding("utf8").on("data", (text) => {
          output += text;
          const match = ready.exec(output);
          if (match) clearTimeout(late), resolve(match[1]);
          if (FAILED.test(output)) clearTimeout(late), reject(new Error(`did not start:\n${output}`));
        });
      child.on("error", reject).on("close", (code, signal) => {
        clearTimeout(late);
        reject(new Error(`ended at start (${signal ?? code}):\n${output}`));
      });
    });
    return { url, stop: async () => (await stop(), writeFileSync(log, output)) };
  } catch (error) {
    await stop();
    writeFileSync(log, output);
    throw error;
  }
}

/** A command that must succeed. */
function command(argv, dir) {
  return new Promise((resolve, reject) => {
    const child = spawn(argv[0], argv.slice(1), { cwd: dir, env: environment(dir), stdio: ["ignore", "pipe", "pipe"], timeout: START_TIMEOUT_MS });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => { output += text; });
    child.on("error", reject).on("close", (code) => (code === 0 ? resolve(output) : reject(new Error(`${argv.join(" ")}: status ${code}\n${output}`))));
  });
}

export async function startWrangler(project, dir, vars) {
  const state = fresh(project, "wrangler-state");
  for (const name of project.migrations ?? [])
    await command(["wrangler", "d1", "migrations", "apply", name, "--local", "--persist-to", state], dir);
  const given = Object.entries(vars).flatMap(([name, value]) => ["--var", `${name}:${value}`]);
  const argv = ["wrangler", "dev", "--ip", "127.0.0.1", "--port", "0", "--inspector-port", "0", "--persist-to", state, "--show-interactive-dev-session=false", ...(project.wrangler ?? []), ...given];
  return start(argv, dir, /Ready on (http:\/\/127\.0\.0\.1:\d+)/, path.join(out, project.name, "wrangler.log"));
}

export async function startCairn(project, dir, vars) {
  const data = fresh(project, "cairn-data");
  for (const name of project.migrations ?? []) await command([cairn, "d1", "migrations", "apply", name, "--data", data], dir);
  const given = Object.entries(vars).flatMap(([name, value]) => ["--var", `${name}=${value}`]);
  const argv = [cairn, "serve", dir, "--listen", "127.0.0.1:0", "--lanes", "2", "--data", data, ...(project.cairn ?? []), ...given];
  return start(argv, dir, /^cairn: ready on (http\S+)$/m, path.join(out, project.name, "cairn.log"));
}
