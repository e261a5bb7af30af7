// Commands of the real binary, as a person types them: server.mjs with every choice left open.
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
import { Server, cairn as binary, clustered, deployed, root } from "./server.mjs";

export { root };

/**
 * What a test has started and made, and one hook that ends it: first the servers, which write into the folders, then the folders. (A hook of
 * its own for each would run in the order in which they were asked for; and one that fails, as the folder of a server that still writes does,
 * keeps those behind it from running, so that the server stays and the file never ends.)
 */
const ends = new WeakMap();
function endsOf(t) {
  if (!ends.has(t)) {
    const mine = { servers: [], folders: [] };
    ends.set(t, mine);
    t.after(async () => {
      await Promise.all(mine.servers.map((server) => server.kill()));
      for (const dir of mine.folders) rmSync(dir, { recursive: true, force: true, maxRetries: 10 }); // children of a server may still end
    });
  }
  return ends.get(t);
}

/** A fresh folder that goes with the test. */
export function folder(t) {
  const dir = mkdtempSync(path.join(tmpdir(), "cairn-test-"));
  endsOf(t).folders.push(dir);
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

// Besides, what chooses how the binary itself works.
const kept = ["CAIRN_ENGINE_PATCHES", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_PRELOAD", "JSC_useConcurrentGC", "Malloc"].filter((name) => process.env[name] !== undefined);
const environment = (extra) => ({
  PATH: process.env.PATH, HOME: process.env.HOME, CAIRN_ADMIN: "off", CAIRN_STRICT: "1", CAIRN_SANDBOX: process.env.CAIRN_SANDBOX ?? "",
  ...Object.fromEntries(kept.map((name) => [name, process.env[name]])), ...extra,
});

/** Runs a command to its end: {status, stdout, stderr}. */
export function run(args, { cwd, env } = {}) {
  const result = spawnSync(binary, args, { cwd, env: environment(env), encoding: "utf8", timeout: 120_000 });
  if (result.error) throw result.error;
  return result;
}

/** Starts `cairn serve` (or dev) and waits for its ready line. */
export async function serve(t, dir, { command = "serve", args = [], env, projects = [dir], executable = binary } = {}) {
  if (deployed && projects.length) {
    const at = args.indexOf("--data");
    const { serveDeployed } = await import("../../wrangler/deployed.mjs");
    const server = await serveDeployed(projects, { command, env, data: at < 0 ? path.join(dir, ".cairn-deployed") : args[at + 1] });
    endsOf(t).servers.push(server);
    return server;
  }
  const listen = args.some((a) => a.startsWith("--listen")) || env?.CAIRN_LISTEN ? [] : ["--listen", "127.0.0.1:0"];
  const start = (more = []) => spawn(executable, [command, ...projects, ...listen, ...args, ...more], { cwd: dir, env: environment(env), stdio: ["ignore", "pipe", "pipe"] });
  if (clustered && command === "serve" && !args.includes("--data")) {
    const { serveNodes } = await import("./clustered.mjs");
    const server = await serveNodes(path.join(dir, ".cairn"), (name, more) => start(more));
    endsOf(t).servers.push(server);
    return server;
  }
  const server = new Server(start());
  endsOf(t).servers.push(server);
  await server.ready;
  return server;
}
