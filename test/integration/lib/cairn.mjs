// Runs the real binary for integration tests: projects in fresh folders, servers on port 0.
//
//     const dir = project(t, { "wrangler.toml": "...", "src/index.js": "..." });
//     const server = await serve(t, dir);
//     (await server.fetch("/")).status
//
// Everything started here ends with the test that started it.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");
export const binary = process.env.CAIRN ?? path.join(root, "build/cairn");

/** A fresh folder that goes with the test. */
export function folder(t) {
  const dir = mkdtempSync(path.join(tmpdir(), "cairn-test-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

export function write(dir, files) {
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(dir, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

/** A folder with these files; without a configuration among them it gets a plain one. */
export function project(t, files, { npm = false } = {}) {
  const dir = folder(t);
  const config = Object.keys(files).some((name) => name.startsWith("wrangler."));
  const main = Object.keys(files).find((name) => /(^|\/)index\.[a-z]+$/.test(name));
  if (!config)
    files = { "wrangler.toml": `name = "w"\nmain = "${main}"\ncompatibility_date = "2026-01-01"\n`, ...files };
  write(dir, files);
  if (npm) symlinkSync(path.join(root, "node_modules"), path.join(dir, "node_modules"));
  return dir;
}

const environment = (extra) => ({ PATH: process.env.PATH, HOME: process.env.HOME, ...extra });

/** Runs a command to its end: {status, stdout, stderr}. */
export function run(args, { cwd, env } = {}) {
  const result = spawnSync(binary, args, { cwd, env: environment(env), encoding: "utf8", timeout: 30_000 });
  if (result.error) throw result.error;
  return result;
}

/** Starts `cairn serve` (or dev) and waits for its ready line. */
export async function serve(t, dir, { command = "serve", args = [], env, projects = [dir], executable = binary } = {}) {
  const listen = args.some((a) => a.startsWith("--listen")) || env?.CAIRN_LISTEN ? [] : ["--listen", "127.0.0.1:0"];
  const child = spawn(executable, [command, ...projects, ...listen, ...args], {
    cwd: dir,
    env: environment(env),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const server = new Server(child);
  t.after(() => server.kill());
  await server.until(() => /^cairn: ready on .*$/m.test(server.stdout), "the ready line");
  server.url = /^cairn: ready on (.*)$/m.exec(server.stdout)[1];
  return server;
}

class Server {
  stdout = "";
  stderr = "";
  #child;
  #exit;
  #changed = [];

  constructor(child) {
    this.#child = child;
    for (const name of ["stdout", "stderr"])
      child[name].setEncoding("utf8").on("data", (text) => {
        this[name] += text;
        this.#notify();
      });
    this.#exit = new Promise((resolve) =>
      child.on("close", (code, signal) => {
        this.exited = { code, signal };
        resolve(this.exited);
        this.#notify();
      }),
    );
  }

  get pid() {
    return this.#child.pid;
  }

  #notify() {
    for (const wake of this.#changed.splice(0)) wake();
  }

  /** Waits until the condition holds; checked whenever the server says something or exits. */
  async until(condition, what, milliseconds = 15_000) {
    const deadline = Date.now() + milliseconds;
    while (!(await condition())) {
      if (this.exited) throw new Error(`cairn ended while ${what} was awaited:\n${this.stdout}${this.stderr}`);
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`${what} did not come:\n${this.stdout}${this.stderr}`);
      await new Promise((resolve) => {
        this.#changed.push(resolve);
        setTimeout(resolve, Math.min(left, 50)).unref();
      });
    }
  }

  fetch(target, init = {}) {
    return fetch(this.url + target, { signal: AbortSignal.timeout(15_000), ...init });
  }

  async text(target, init) {
    return (await this.fetch(target, init)).text();
  }

  signal(name) {
    this.#child.kill(name);
  }

  /** Ends it in order: {code, signal}. */
  async stop(name = "SIGTERM") {
    this.signal(name);
    return this.#exit;
  }

  async kill() {
    if (!this.exited) this.#child.kill("SIGKILL");
    await this.#exit;
  }
}
