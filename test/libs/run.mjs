// `make test-libs`: well-known npm libraries in real use on the server. Each worker of workers/ is a
// project of its own; one server serves them all, each under a host of its own, and checks.mjs says
// what must come back: at the newest date, and in turn at one of those at which node: changed (DATES=all: at each of them). PEER=workerd runs the same on the hosted platform's runtime, so that the
// expectations are known to be its. TEST=part of a name chooses; UPDATE=1 writes the table of
// docs/reference/libraries.md from the run, which otherwise must agree with it.
import { build } from "esbuild";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync, copyFileSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { serve } from "../integration/lib/server.mjs";
import { nodeDates } from "../integration/lib/dates.mjs";
import { libraries } from "./checks.mjs";
import { startStandIns } from "./standins.mjs";
import { WORKERD, listening } from "../lib/workerd.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.join(here, "../..");
const peer = process.env.PEER || "cairn";
const chosen = libraries.filter((l) => l.name.includes(process.argv[2] ?? "") && !(peer === "workerd" && l.onlyCairn));
const DATE = "2026-10-01"; // modules of Node.js are there without a flag
const older = nodeDates.filter((date) => date < DATE);
/** The dates of a library, by its place in the list; `since` is that of the platform's part that its worker needs. */
function datesOf(i) {
  const possible = older.filter((date) => date >= (chosen[i].since ?? ""));
  return peer === "workerd" ? [DATE] : process.env.DATES === "all" ? [DATE, ...possible] : [DATE, possible[i % possible.length]];
}
const nameAt = ({ name }, date) => (date === DATE ? name : `${name}-${date}`);
const CHECK_TIMEOUT_MS = 30_000;

/** One request; redirects are not followed. */
function request(port, host, target, { method = "GET", headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const sent = http.request({ host: "127.0.0.1", port, path: target, method, headers: { host, ...headers }, agent: false, timeout: CHECK_TIMEOUT_MS }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part)).on("error", reject).on("end", () => {
        const bytes = Buffer.concat(parts), text = bytes.toString();
        const json = () => {
          try {
            return JSON.parse(text);
          } catch {
            throw new Error(`${target} answered ${response.statusCode}, not JSON: ${text.slice(0, 1000)}`);
          }
        };
        resolve({ status: response.statusCode, headers: response.headers, bytes, text, json });
      });
    });
    sent.on("error", reject).on("timeout", () => sent.destroy(new Error(`${target}: no answer`)));
    sent.end(body);
  });
}

/** A project per library, served by one cairn. */
async function startCairn(dir, env) {
  const projects = chosen.flatMap((library, i) => datesOf(i).map((date) => {
    const project = path.join(dir, nameAt(library, date));
    mkdirSync(project);
    copyFileSync(path.join(here, "workers", `${library.name}.js`), path.join(project, "index.js"));
    symlinkSync(path.join(here, "node_modules"), path.join(project, "node_modules"));
    const objects = Object.entries(library.objects ?? {}).map(([name, class_name]) => ({ name, class_name }));
    writeFileSync(path.join(project, "wrangler.json"), JSON.stringify({
      name: nameAt(library, date), main: "index.js", compatibility_date: date, compatibility_flags: date < "2026-08-04" ? ["nodejs_compat"] : [], vars: env,
      cairn: { hosts: [`${nameAt(library, date)}.test`] },
      ...(objects.length && {
        durable_objects: { bindings: objects },
        migrations: [{ tag: "v1", new_sqlite_classes: objects.map((o) => o.class_name) }],
      }),
    }));
    return project;
  }));
  const server = await serve(projects, { data: path.join(dir, "data") });
  return { port: () => server.port, stop: () => server.stop(), log: () => server.output };
}

/** The same workers, bundled, on workerd: a socket for each. */
async function startWorkerd(dir, env) {
  for (const { name } of chosen) {
    await build({
      entryPoints: [path.join(here, "workers", `${name}.js`)], outfile: path.join(dir, `${name}.js`), bundle: true, format: "esm",
      conditions: ["workerd", "worker", "browser"], mainFields: ["browser", "module", "main"], external: ["node:*", "cloudflare:*"], logLevel: "error",
    });
  }
  const identifier = (name) => `w${name.replace(/\W/g, "")}`;
  const text = (library) => {
    const bindings = Object.entries(env).map(([name, value]) => `(name = "${name}", text = "${value}")`);
    for (const [name, className] of Object.entries(library.objects ?? {})) bindings.push(`(name = "${name}", durableObjectNamespace = "${className}")`);
    const namespaces = Object.values(library.objects ?? {}).map((c) => `(className = "${c}", uniqueKey = "${c}", enableSql = true)`);
    return `const ${identifier(library.name)} :Workerd.Worker = (
  modules = [ (name = "worker", esModule = embed "${library.name}.js") ], compatibilityDate = "${DATE}",
  bindings = [ ${bindings.join(", ")} ], durableObjectNamespaces = [ ${namespaces.join(", ")} ], durableObjectStorage = (localDisk = "disk"));`;
  };
  const disk = path.join(dir, "objects"), config = path.join(dir, "config.capnp");
  mkdirSync(disk);
  writeFileSync(config, `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "internet", network = (allow = ["public", "private"])),
    (name = "disk", disk = (path = "${disk}", writable = true)),
${chosen.map(({ name }) => `    (name = "${name}", worker = .${identifier(name)})`).join(",\n")} ],
  sockets = [
${chosen.map(({ name }) => `    (name = "${name}", address = "127.0.0.1:0", http = (), service = "${name}")`).join(",\n")} ]
);
${chosen.map(text).join("\n")}
`);
  const child = spawn(WORKERD, ["serve", "--experimental", "--control-fd=3", config], { stdio: ["ignore", "inherit", "inherit", "pipe"] });
  const ports = await listening(child, chosen.length);
  return { port: (name) => ports.get(name), stop: () => child.kill(), log: () => "" };
}

/** Compares the table in the document with this run; UPDATE=1 writes it. */
function checkDocument(passed) {
  const { dependencies } = JSON.parse(readFileSync(path.join(here, "package.json"), "utf8"));
  const rows = libraries.map((l) => `| ${l.kind} | ${l.packages.map((p) => `${p} ${dependencies[p]}`).join(", ")} | ${l.does} | ${passed.has(l.name) ? "passes" : "**fails**"} |`);
  const table = ["| Kind | Library | What the worker does with it | Result |", "| --- | --- | --- | --- |", ...rows].join("\n");
  const file = path.join(root, "docs/reference/libraries.md");
  const document = readFileSync(file, "utf8");
  const wanted = document.replace(/<!-- libraries -->\n[^]*<!-- end -->/, () => `<!-- libraries -->\n${table}\n<!-- end -->`);
  if (wanted === document) return true;
  if (process.env.UPDATE) return writeFileSync(file, wanted), true;
  console.log("FAIL docs/reference/libraries.md: its table is not up to date (UPDATE=1 writes it)");
  return false;
}

const dir = mkdtempSync(path.join(os.tmpdir(), "cairn-libs-"));
const standIns = await startStandIns();
const passed = new Set();
let server, ok = true;
try {
  server = await (peer === "workerd" ? startWorkerd : startCairn)(dir, standIns.env);
  for (const [i, library] of chosen.entries()) {
    const failed = [];
    for (const date of datesOf(i)) {
      try {
        await library.check((target, options) => request(server.port(library.name), `${nameAt(library, date)}.test`, target, options));
      } catch (error) {
        failed.push(date);
        console.log(`FAIL ${library.name} at ${date}: ${error.stack ?? error}`);
      }
    }
    if (failed.length) continue;
    passed.add(library.name);
    console.log(`ok   ${library.name} at ${datesOf(i).join(", ")}`);
  }
  if (passed.size < chosen.length && process.env.VERBOSE) console.log(server.log());
  if (peer === "cairn" && chosen.length === libraries.length) ok = checkDocument(passed);
} finally {
  await server?.stop();
  standIns.close();
  rmSync(dir, { recursive: true, force: true });
}
console.log(`${passed.size} passed, ${chosen.length - passed.size} failed`);
process.exit(passed.size === chosen.length && ok ? 0 : 1);
