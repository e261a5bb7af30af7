// The patches of the JavaScript engine (src/js/engine/patch.h): with a library that is not what they
// were made for, those that do not fit are off, it is said, and the server serves.
import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { folder, project, run, serve } from "../lib/cairn.mjs";
import { makeOtherLibrary, without } from "../lib/engine.mjs";
import { ask } from "../admin/lib.mjs";
import { cairn } from "../lib/server.mjs";

const names = ["strings", "lock", "stop", "clock", "memory", "alloc", "pages", "names", "stacks", "dates", "regexp", "promises"];
const shim = path.join(path.dirname(cairn), "load/otherengine.so");

/** Per patch: "on", or why not. */
function patches(env) {
  const { stdout, stderr, status } = run(["version", "--engine"], { env });
  assert.equal(status, 0, stderr);
  const found = [...stdout.matchAll(/^(\w+): (on|off, .*|not needed, .*)$/gm)].map((m) => [m[1], m[2]]);
  return { ...Object.fromEntries(found), text: stdout };
}

/** A library that differs, in a folder that goes with the test. */
const otherLibrary = (t, how) => ({ LD_LIBRARY_PATH: makeOtherLibrary(folder(t), how) });

const UNNEEDED = "not needed, the library does it by itself";
const unneeded = new Set(Object.entries(patches({ LD_LIBRARY_PATH: "" })).flatMap(([name, state]) => state === UNNEEDED ? [name] : []));
/** How a patch stands: `state`, or P6. */
const stands = (name, state) => unneeded.has(name) ? UNNEEDED : state;

/** What is off for want of another (P5). */
const needs = { clock: "stop", pages: "alloc", regexp: "clock" };

/** The server serves, ends a loop and a chain of microtasks (`endings`), and says `expected` once. */
async function serves(t, env, expected, endings = ["loop", "then"]) {
  const dir = project(t, {
    "wrangler.toml": 'name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\nlimits = { cpu_ms = 50 }\n',
    "index.js": `
      const text = "\\u00e9\\u2603 caf\\u00e9 ";
      export default {
        async fetch(request) {
          const { pathname } = new URL(request.url);
          if (pathname === "/loop") for (;;) ;
          if (pathname === "/then") { const again = () => Promise.resolve().then(again); await again(); }
          return new Response(text + await request.text());
        },
      };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "2", "--data", path.join(dir, "data")], env });
  for (const ending of endings) assert.equal((await server.fetch(`/${ending}`)).status, 503, ending);
  const body = "ab\u00e9\u{1f600}".repeat(1000);
  assert.equal(await (await server.fetch("/", { method: "POST", body })).text(), "\u00e9\u2603 caf\u00e9 " + body);
  const said = server.stderr.split("\n").filter((line) => line.includes("engine: JavaScriptCore"));
  assert.equal(said.length, expected === null ? 0 : 1, server.stderr);
  if (expected !== null) assert.match(said[0], expected);
  return { data: path.join(dir, "data") };
}

test("P1: on the library of the package every patch proves itself", async (t) => {
  const off = without(...names);
  if (off) return t.skip(off);
  const found = patches();
  for (const name of names) assert.equal(found[name], stands(name, "on"), name);
});

test("the switch: off, single ones, all but single ones; a name that is none is refused", async (t) => {
  for (const [text, on] of [["off", []], ["lock,stop", ["lock", "stop"]], ["-dates", names.filter((n) => n !== "dates")]]) {
    const found = patches({ CAIRN_ENGINE_PATCHES: text, LD_LIBRARY_PATH: "" });
    for (const name of names) assert.equal(found[name], stands(name, on.includes(name) ? "on" : "off, by CAIRN_ENGINE_PATCHES"), `${text}: ${name}`);
  }
  assert.equal(patches({ CAIRN_ENGINE_PATCHES: "lock,clock", LD_LIBRARY_PATH: "" }).clock, "off, it needs stop");
  for (const text of ["lok", "-lok", "lock,-clock", "-clock,lock"]) {
    const { status, stderr } = run(["serve", project(t, { "index.js": "export default {}" })], { env: { CAIRN_ENGINE_PATCHES: text } });
    assert.notEqual(status, 0, text);
    assert.match(stderr, /CAIRN_ENGINE_PATCHES: "/, text);
  }
});

test("P3, P4: off, the server serves, keeps its CPU limit and says so", async (t) => {
  const server = await serves(t, { CAIRN_ENGINE_PATCHES: "off" }, /(\d+) of \1 patches are off: strings \(by CAIRN_ENGINE_PATCHES\);/);
  const { text } = await ask(server, "GET", "/metrics");
  for (const name of names) assert.match(text, new RegExp(`^cairn_engine_patch\\{patch="${name}"\\} ${unneeded.has(name) ? 1 : 0}$`, "m"));
});

// What each cannot do without: as the message names it, and where newer libraries have another, that one.
const symbols = {
  strings: ["_ZN3WTF10StringImpl6createESt4spanIKhLm18446744073709551615EE"],
  lock: ["_ZN3JSC6JSLock12DropAllLocksC1EPNS_14JSGlobalObjectE"],
  stop: ["_ZN3JSC7VMTraps24cancelThreadStopIfNeededEv", "_ZN3JSC7VMTraps31updateThreadStopRequestIfNeededEv"],
  clock: ["_ZN3WTF7CPUTime16forCurrentThreadEv"],
  memory: ["_ZN3WTF27releaseFastMallocFreeMemoryEv"],
  dates: ["_ZN3JSC9DateCache20resetIfNecessarySlowEv", "_ZN3JSC9DateCache22clearForTimeZoneChangeEv"],
  alloc: ["_ZN3WTF21tryFastCompactReallocEPvm"],
  pages: ["_ZN3WTF11OSAllocator7protectEPvmbb"],
  names: ["_ZN3JSC10Identifier4fromERNS_2VMEi"],
  stacks: ["_ZN3JSC8JSObject26getOwnSpecialPropertyNamesEPS0_PNS_14JSGlobalObjectERNS_17PropertyNameArrayENS_22DontEnumPropertiesModeE",
    "_ZN3JSC8JSObject26getOwnSpecialPropertyNamesEPS0_PNS_14JSGlobalObjectERNS_24PropertyNameArrayBuilderENS_22DontEnumPropertiesModeE"],
  regexp: ["_ZN3JSC36startOfFixedExecutableMemoryPoolImplEv"],
};

for (const [name, [symbol, ...newer]] of Object.entries(symbols))
  test(`P1, P5: a library without ${symbol}: ${name} is off with what needs it, the others on`, async (t) => {
    const env = { ...otherLibrary(t, { rename: [[symbol, ...newer]] }), CAIRN_ENGINE_PATCHES: "on" };
    const found = patches(env);
    const depends = (other) => needs[other] !== undefined && (needs[other] === name || depends(needs[other]));
    const needing = names.filter(depends);
    for (const other of names) {
      const state = needing.includes(other) ? `off, it needs ${needs[other]}` : "on";
      assert.equal(found[other], other === name ? `off, the library has no ${symbol}` : stands(other, state), other);
    }
    // A chain of microtasks that is ended without `stop` may end the server: see `cairn version --engine`.
    await serves(t, env, new RegExp(`${1 + needing.length} of \\d+ patches are off: ${name} \\(the library has no ${symbol}\\)`),
      name === "stop" ? ["loop"] : undefined);
  });

test("P2: a build that is not known is tried in a child, and used if it is as expected", async (t) => {
  const env = { ...otherLibrary(t, { buildId: true }), CAIRN_ENGINE_PATCHES: "on" };
  const found = patches(env);
  for (const name of names) assert.equal(found[name], stands(name, "on"), name);
  assert.match(found.text, /not known/);
  await serves(t, env, /is new to this version; its patches were tried and work/);
});

test("P2: what crashes in the child, or is laid out otherwise, is off, and the server serves", async (t) => {
  const unknown = { ...otherLibrary(t, { buildId: true }), CAIRN_ENGINE_PATCHES: "on", LD_PRELOAD: shim };
  for (const [other, name, reason] of [
    ["lock", "lock", "JSLockHolder is laid out otherwise"],
    ["crash", "lock", "its trial was ended by signal 6"],
    ["strings", "strings", "strings that are made are not what they should be"],
  ]) {
    const env = { ...unknown, OTHER_ENGINE: other };
    const found = patches(env);
    for (const each of names) assert.equal(found[each], each === name ? `off, ${reason}` : stands(each, "on"), `${other}: ${each}`);
    await serves(t, env, new RegExp(`1 of \\d+ patches are off: ${name} \\(${reason}\\)`));
  }
});
