// Installs the packages of a folder's package-lock.json below its node_modules: node tools/npm-ci.mjs FOLDER [--omit=dev]
// --only=PLACE adds one package of the lock file to what is there, whichever machine it is for.
//
// `npm ci` does it where npm is installed. Debian's npm comes as some 340 packages, which nobody should need to build a
// server: without npm, each package is fetched from the registry, its checksum compared with the lock file, and unpacked.
// The registry is that of npm's own settings: $npm_config_registry, `registry=` in .npmrc of the folder or of the user.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, chmodSync } from "node:fs";
import os from "node:os";
import path from "node:path";

const [folder, ...flags] = process.argv.slice(2);
const withoutDev = flags.includes("--omit=dev");
const only = flags.find((each) => each.startsWith("--only="))?.slice("--only=".length);
const BESIDE = 8; // packages that are fetched at a time

function fail(text) {
  console.error(`setup: ${text}`);
  process.exit(1);
}

const lock = JSON.parse(readFileSync(path.join(folder, "package-lock.json"), "utf8"));
const isFor = (list, own) => !list || (list.includes(own) || list.some((each) => each[0] === "!")) && !list.includes(`!${own}`);
const { glibcVersionRuntime } = process.report.getReport().header;
const packages = Object.entries(lock.packages).filter(([place, p]) => only ? place === only : place && !p.link &&
  !(withoutDev && (p.dev || p.devOptional)) && isFor(p.os, process.platform) && isFor(p.cpu, process.arch) &&
  isFor(p.libc, glibcVersionRuntime ? "glibc" : "musl"));

console.log(`setup: ${packages.length} npm packages for ${path.relative(".", folder) || "the build"}`);
if (!only && spawnSync("npm", ["--version"], { stdio: "ignore" }).status === 0) {
  const { status } = spawnSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error",
    ...(withoutDev ? ["--omit=dev"] : [])], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  process.exit(status ?? 1);
}

function setting(name) {
  for (const file of [path.join(folder, ".npmrc"), path.join(os.homedir(), ".npmrc")]) {
    if (!existsSync(file)) continue;
    const found = readFileSync(file, "utf8").match(new RegExp(`^\\s*${name}\\s*=\\s*(\\S+)`, "m"));
    if (found) return found[1];
  }
}
const registry = (process.env.npm_config_registry ?? process.env.NPM_CONFIG_REGISTRY ?? setting("registry") ?? "https://registry.npmjs.org").replace(/\/+$/, "");

/** The archive of a package, whose checksum is that of the lock file. */
async function fetchArchive(place, { version, integrity, resolved }) {
  const name = place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length);
  const url = resolved ?? `${registry}/${name}/-/${path.posix.basename(name)}-${version}.tgz`;
  let problem;
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      const response = await fetch(url);
      if (!response.ok) {
        problem = `answers ${response.status}`;
        continue;
      }
      const archive = Buffer.from(await response.arrayBuffer());
      const [algorithm, digest] = integrity.split(" ")[0].split(/-(.*)/s);
      if (createHash(algorithm).update(archive).digest("base64") === digest) return archive;
      problem = "is not what package-lock.json names: its checksum is another";
    } catch (error) {
      problem = `cannot be fetched: ${error.cause?.message ?? error.message}`;
    }
  }
  fail(`${url} ${problem}`);
}

const modules = path.join(folder, "node_modules");
if (!only) rmSync(modules, { recursive: true, force: true });
mkdirSync(modules, { recursive: true });
let done = 0;
async function installAll(queue) {
  for (let next = queue.shift(); next; next = queue.shift()) {
    const [place, description] = next, into = path.join(folder, place);
    const archive = await fetchArchive(place, description);
    mkdirSync(into, { recursive: true });
    execFileSync("tar", ["-xz", "--strip-components=1", "--no-same-owner", "-C", into], { input: archive });
    if (++done % 50 === 0) console.log(`setup: ${done} of ${packages.length} npm packages`);
  }
}
// Outer packages first: a nested one is unpacked into its folder.
const queue = [...packages].sort(([a], [b]) => a.split("node_modules/").length - b.split("node_modules/").length);
await Promise.all(Array.from({ length: BESIDE }, () => installAll(queue)));

// The programs of the packages at the top, as npm links them.
for (const [place, { bin }] of packages) {
  if (!bin || place.lastIndexOf("node_modules/") !== 0) continue;
  mkdirSync(path.join(modules, ".bin"), { recursive: true });
  for (const [name, file] of Object.entries(bin)) {
    chmodSync(path.join(folder, place, file), 0o755);
    rmSync(path.join(modules, ".bin", name), { force: true });
    symlinkSync(path.join("..", place.slice("node_modules/".length), file), path.join(modules, ".bin", name));
  }
}
