// Calls whatever the platform has with long texts; test/slow/run.mjs says which, and measures from outside.
//
// What there is to call is found, not listed: every global and module that is not the language's own, what its functions have on their
// prototypes, and every binding. An interface that is added tomorrow is called tomorrow.
import { LOADERS } from "./modules.js";
import { textOf } from "./texts.js";

// The language's own: src/js/engine and docs/reference/limits.md speak of those.
const OWN = new Set(["Object", "Function", "Array", "Number", "parseFloat", "parseInt", "Boolean", "String", "Symbol", "Date", "Promise", "RegExp", "Error", "AggregateError", "EvalError", "RangeError",
  "ReferenceError", "SyntaxError", "TypeError", "URIError", "JSON", "Math", "Intl", "ArrayBuffer", "Atomics", "Uint8Array", "Int8Array", "Uint16Array", "Int16Array", "Uint32Array", "Int32Array",
  "Float16Array", "Float32Array", "Float64Array", "Uint8ClampedArray", "BigUint64Array", "BigInt64Array", "DataView", "Map", "BigInt", "Set", "Iterator", "WeakMap", "WeakSet", "WeakRef", "Proxy", "Reflect",
  "FinalizationRegistry", "SharedArrayBuffer", "eval", "isFinite", "isNaN", "escape", "unescape", "decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "globalThis", "WebAssembly", "global",
  "Infinity", "NaN", "undefined", "DisposableStack", "AsyncDisposableStack", "SuppressedError"]);
// They end the worker, wait for ever, or are another name for what is called anyway.
const NEVER = /^(?:exit|abort|reallyExit|kill|_debugProcess|_debugEnd|dlopen|binding|constructor|caller|callee|arguments|setTimeout|setInterval|setImmediate|wait|queueMicrotask|nextTick|runInContext|Function|gc)$/;
const SEEDS = [[], ["http://a/"], ["a"], [["a"], "a"], [{}], [new Uint8Array(8)], ["utf-8"], ["a", "b"], ["GET", "/"]];

/** [path, receiver, function] of everything that can be called. */
async function callables(env) {
  const found = [], seen = new Set(Object.getOwnPropertyNames(globalThis).filter((name) => OWN.has(name)).map((name) => globalThis[name]));
  const add = (path, receiver, value, depth) => {
    if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value) || depth > 4) return;
    seen.add(value);
    if (typeof value === "function") found.push([path, receiver, value]);
    for (let object = value; object; object = Object.getPrototypeOf(object)) {
      if (object === Object.prototype || object === Function.prototype || object === Array.prototype) break;
      for (const key of Reflect.ownKeys(object)) {
        if (typeof key !== "string" || NEVER.test(key) || key === "prototype" || /^[A-Z_]+$/.test(key)) continue;
        let member;
        try { member = value[key]; } catch { continue; }
        add(`${path}.${key}`, value, member, depth + 1);
        const { set } = Object.getOwnPropertyDescriptor(object, key) ?? {};
        if (set && !seen.has(set)) { seen.add(set); found.push([`${path}.${key}=`, value, set]); }
      }
    }
    if (typeof value === "function" && value.prototype && /^[A-Z]/.test(value.name)) for (const seed of SEEDS) {
      try { add(`${path}()`, undefined, new value(...seed), depth + 1); break; } catch {}
    }
  };
  for (const name of Object.getOwnPropertyNames(globalThis)) if (!OWN.has(name) && !NEVER.test(name)) add(name, undefined, globalThis[name], 0);
  for (const name of Object.keys(LOADERS)) add(name, undefined, (await LOADERS[name]()).default, 0);
  for (const name of Object.keys(env)) add(`env.${name}`, undefined, env[name], 0);
  return found;
}

/** An object of which every property is the text. */
const optionsOf = (text) => new Proxy({}, { get: (_, key) => (typeof key === "string" && key !== "then" && key !== "toJSON" && key !== "signal" ? text : undefined) });
/** The same, one level deeper. */
const deepOptionsOf = (text) => new Proxy({}, { get: (_, key) => (typeof key === "string" && key !== "then" && key !== "toJSON" && key !== "signal" ? optionsOf(text) : undefined) });
/** As many names, each another, as a text of this length has room for. */
const namesOf = (text) => Array.from({ length: Math.ceil(text.length / 16) }, (_, i) => `x${i}`);
const SHAPES = {
  first: (text) => [text, "a", "a"], second: (text) => ["a", text, "a"], both: (text) => [text, text], list: (text) => [[text], text],
  pairs: (text) => [[[text, text]]], bytes: (text) => [new TextEncoder().encode(text)], options: (text) => ["http://a/", optionsOf(text)], alone: (text) => [optionsOf(text)],
  deep: (text) => [deepOptionsOf(text), deepOptionsOf(text)], body: (text) => ["http://a/", { method: "POST", body: text, headers: { "content-type": "multipart/form-data; boundary=a", cookie: "a" } }],
  entries: (text) => [namesOf(text).map((name) => [name, "a"])], names: (text) => [Object.fromEntries(namesOf(text).map((name) => [name, "a"]))], items: (text) => [namesOf(text), namesOf(text)],
  same: (text) => [namesOf(text).map(() => ["x", "a"])],
};
/** They look at the length of the text alone. */
const BY_LENGTH = new Set(["entries", "names", "items", "same"]);

/** What a call has made is used: read, written out, gone through. */
function use(made, pending) {
  if (made === null || typeof made !== "object") return;
  try { String(made); } catch {}
  try { if (typeof made[Symbol.iterator] === "function") { let left = 1e6; for (const _ of made) if (--left === 0) break; } } catch {}
  for (let object = made; object && object !== Object.prototype; object = Object.getPrototypeOf(object)) {
    for (const key of Reflect.ownKeys(object)) {
      if (typeof key !== "string" || NEVER.test(key)) continue;
      try {
        const member = made[key];
        const result = typeof member === "function" && member.length === 0 ? member.call(made) : undefined;
        if (result && typeof result.then === "function") pending.push(Promise.resolve(result).catch(() => {}));
      } catch {}
    }
  }
}

let known;
export default {
  async fetch(request, env) {
    known ??= await callables(env);
    const job = await request.json();
    if (job.list) return Response.json({ names: known.map(([path]) => path), shapes: Object.keys(SHAPES).map((name) => ({ name, byLength: BY_LENGTH.has(name) })) });
    const [path, receiver, f] = known[job.index];
    const pending = [];
    for (const [head, unit, tail] of job.texts) {
      const text = textOf(head, unit, tail, job.length);
      const args = SHAPES[job.shape](text);
      const isClass = /^[A-Z]/.test(f.name) && f.prototype !== undefined;
      try {
        const result = isClass ? Reflect.construct(f, args) : Reflect.apply(f, receiver, args);
        if (result && typeof result.then === "function") pending.push(Promise.resolve(result).catch(() => {}));
        else use(result, pending);
      } catch {}
    }
    await Promise.race([Promise.all(pending), scheduler.wait(50)]);
    return new Response(path);
  },
};
