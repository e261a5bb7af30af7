// The two that the same scripts run on: build/cairn, and workerd, the hosted platform's own runtime.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { fileURLToPath } from "node:url";
import { WORKERD, listening } from "./workerd.mjs";

export const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "..", ".."); // import.meta.dirname is not in Node.js 18
export const haveWorkerd = existsSync(WORKERD);
export const COMPATIBILITY_DATE = "2026-10-01";
/** Those that run: whoever starts one ends it. */
export const children = new Set();

/** Starts workerd with a service and a socket for each file of `names` in `dir`, which may have classes of `objects`; resolves to their addresses, in that order. */
export async function startWorkerd(dir, names, { date = COMPATIBILITY_DATE, flags = [], objects = [] } = {}) {
  const list = (make) => `[ ${objects.map(make).join(", ")} ]`;
  const config = path.join(dir, "config.capnp");
  if (objects.length) mkdirSync(path.join(dir, "disk"));
  writeFileSync(config, `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ ${objects.length ? `(name = "disk", disk = (path = "${path.join(dir, "disk")}", writable = true)), ` : ""}(name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))),
${names.map((n, i) => `    (name = "w${i}", worker = .w${i})`).join(",\n")} ],
  sockets = [
${names.map((n, i) => `    (name = "w${i}", address = "127.0.0.1:0", http = (), service = "w${i}")`).join(",\n")} ]
);
${names.map((n, i) => `const w${i} :Workerd.Worker = (
  modules = [ (name = "worker", esModule = embed "${n}") ],
  compatibilityFlags = ${JSON.stringify(flags)},
  durableObjectNamespaces = ${list((name) => `(className = "${name}", uniqueKey = "${name}", enableSql = true)`)},
  durableObjectStorage = ${objects.length ? '(localDisk = "disk")' : "(none = void)"},
  bindings = ${list((name) => `(name = "${name}", durableObjectNamespace = "${name}")`)},
  compatibilityDate = "${date}");`).join("\n")}
`);
  const child = spawn(WORKERD, ["serve", "--experimental", "--control-fd=3", config], { stdio: ["ignore", "inherit", "inherit", "pipe"] });
  children.add(child);
  const ports = await listening(child, names.length);
  return { child, addresses: names.map((n, i) => `http://127.0.0.1:${ports.get(`w${i}`)}/`) };
}

/** Starts cairn on one of them, which it moves into a project; resolves to its address. */
export async function startCairn(dir, name, { date = COMPATIBILITY_DATE, flags = [], objects = [], verbose = false } = {}) {
  const project = path.join(dir, name.replace(/\.js$/, ""));
  mkdirSync(project);
  renameSync(path.join(dir, name), path.join(project, "worker.js"));
  writeFileSync(path.join(project, "wrangler.json"), JSON.stringify({
    name: "conformance", main: "worker.js", compatibility_date: date, compatibility_flags: flags,
    durable_objects: { bindings: objects.map((name) => ({ name, class_name: name })) }, migrations: objects.length ? [{ tag: "v1", new_sqlite_classes: objects }] : [] }));
  const child = spawn(path.join(root, "build/cairn"), ["serve", project, "--listen", "127.0.0.1:0", "--lanes", "1", ...(objects.length ? ["--data", path.join(dir, "data")] : [])], { stdio: ["ignore", "pipe", verbose ? "inherit" : "ignore"] });
  children.add(child);
  const address = await new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`cairn ended at start (${code})`)));
    readline.createInterface({ input: child.stdout }).on("line", (line) => {
      const ready = /cairn: ready on (http:\S+)/.exec(line);
      if (ready) resolve(ready[1]);
    });
  });
  return { child, address };
}
