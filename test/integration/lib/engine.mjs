// What Cairn does inside the JavaScript engine (src/js/engine/patch.h) may be off: by CAIRN_ENGINE_PATCHES, or on a library that
// does not fit (`make engine-tests`). A test of what such a patch gives is left out then, with the reason; in a usual run
// nothing is: a patch that is off there fails it.
//
//     node test/integration/lib/engine.mjs FOLDER     makes a library that does not fit, for LD_LIBRARY_PATH
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { cairn } from "./server.mjs";

const version = (env = process.env) => spawnSync(cairn, ["version", "--engine"], { encoding: "utf8", env }).stdout;
const chosen = process.env.CAIRN_ENGINE_PATCHES || process.env.LD_LIBRARY_PATH;
const off = new Map(!chosen ? [] : [...version().matchAll(/^(\w+): off, (.*)$/gm)].map((m) => [m[1], m[2]]));

/** For `{ skip: without("alloc") }`: false, or why not. */
export function without(...patches) {
  const name = patches.find((patch) => off.has(patch));
  return name ? `the engine's patch ${name} is off: ${off.get(name)}` : false;
}

/**
 * A copy of the system's library in `dir`, of an unknown build if `buildId`. A symbol is renamed where the table of names has it, to a name with
 * the same hash: nothing else in the file needs to change, and nobody finds the old name. A list is of names, of which it has one.
 */
export function makeOtherLibrary(dir, { rename = [], buildId = false }) {
  const { LD_LIBRARY_PATH, ...env } = process.env;
  const library = /=> (\S*libjavascriptcoregtk\S*)/.exec(spawnSync("ldd", [cairn], { encoding: "utf8", env }).stdout)[1];
  const bytes = Buffer.from(readFileSync(library));
  for (const names of rename) {
    const symbol = [names].flat().find((name) => bytes.includes(`\0${name}\0`));
    if (!symbol) throw new Error(`the library has no ${names}`);
    const at = bytes.indexOf(`\0${symbol}\0`) + 1;
    bytes[at + symbol.length - 2] += 1;
    bytes[at + symbol.length - 1] -= 33; // the hash is h * 33 + byte
  }
  if (buildId) {
    const id = Buffer.from(/build ([0-9a-f]+)/.exec(version(env))[1], "hex");
    const at = bytes.indexOf(id);
    if (at < 0) throw new Error("the library does not have its build id");
    bytes[at] ^= 0xff;
  }
  mkdirSync(dir, { recursive: true });
  writeFileSync(path.join(dir, path.basename(library)), bytes);
  return dir;
}

if (process.argv[1]?.endsWith("lib/engine.mjs"))
  makeOtherLibrary(process.argv[2], { buildId: true, rename: ["_ZN3JSC6JSLock12DropAllLocksC1EPNS_14JSGlobalObjectE"] });
