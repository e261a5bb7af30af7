// A tiny test harness that runs inside the JavaScript under test: in jsrun, in cairn and in
// workerd. It uses nothing but the language and setTimeout, so that it can test everything else.
//
//     import { test, assertEquals } from "../harness.js";
//     test("append() keeps the order", () => assertEquals([...headers], [["a", "1"]]));
//
// A test may be async. `options.differs` = { workerd: "reason" } says that the test is known to
// fail there; it must then be listed in docs/reference/compatibility.md, and is reported if it passes.
// `options.skip` = "reason" leaves the test out and says so.
// `options.needs` = "network" runs the test only where serverUrl() is given.

const tests = [];
const TIMEOUT_MS = 5000;
const state = { peer: "jsrun", server: null };

export function test(name, fn, options = {}) {
  tests.push({ name, fn, options });
}

/** Address of the runner's own HTTP server (test/conformance/server.mjs), without a slash at the end. */
export const serverUrl = () => state.server;
/** "jsrun", "cairn" or "workerd". */
export const peer = () => state.peer;

/** What a function throws; undefined: nothing. */
export function thrown(fn) {
  try {
    fn();
  } catch (error) {
    return error;
  }
  return undefined;
}

export class AssertionError extends Error {
  name = "AssertionError";
}

export function fail(message) {
  throw new AssertionError(message);
}

export function assert(condition, message = "expected a true value") {
  if (!condition) fail(message);
}

export function show(value) {
  const seen = new Set();
  const go = (v) => {
    if (typeof v === "string") return JSON.stringify(v);
    if (typeof v === "bigint") return `${v}n`;
    if (typeof v === "function") return `[function ${v.name}]`;
    if (typeof v !== "object" || v === null) return Object.is(v, -0) ? "-0" : String(v);
    if (seen.has(v)) return "[circular]";
    seen.add(v);
    if (v instanceof Error) return `${v.name}(${JSON.stringify(v.message)})`;
    if (Array.isArray(v)) return `[${v.map(go).join(", ")}]`;
    if (v instanceof Map) return `Map{${[...v].map(([k, x]) => `${go(k)} => ${go(x)}`).join(", ")}}`;
    if (v instanceof Set) return `Set{${[...v].map(go).join(", ")}}`;
    if (v instanceof Date) return `Date(${v.getTime()})`;
    if (v instanceof RegExp) return String(v);
    if (v instanceof ArrayBuffer) return `ArrayBuffer[${new Uint8Array(v)}]`;
    if (ArrayBuffer.isView(v) && !(v instanceof DataView)) return `${v.constructor.name}[${v}]`;
    return `{${Reflect.ownKeys(v).map((k) => `${String(k)}: ${go(v[k])}`).join(", ")}}`;
  };
  const text = go(value);
  return text.length > 400 ? `${text.slice(0, 400)}...` : text;
}

function equal(a, b, seen) {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (seen.get(a) === b) return true;
  seen.set(a, b);
  if (a instanceof Date) return Object.is(a.getTime(), b.getTime());
  if (a instanceof RegExp) return String(a) === String(b);
  if (a instanceof ArrayBuffer) return equal(new Uint8Array(a), new Uint8Array(b), seen);
  if (a instanceof Map || a instanceof Set) return a.size === b.size && equal([...a], [...b], seen);
  if (a instanceof Error) return a.name === b.name && a.message === b.message;
  const keys = Reflect.ownKeys(a);
  return keys.length === Reflect.ownKeys(b).length && keys.every((k) => Object.hasOwn(b, k) && equal(a[k], b[k], seen));
}

/** Deep: same prototype, same own properties, contents of collections and buffers. */
export function assertEquals(actual, expected, message) {
  if (!equal(actual, expected, new Map())) {
    fail(`${message ? `${message}: ` : ""}got ${show(actual)}, expected ${show(expected)}`);
  }
}

export function assertNotEquals(actual, expected, message) {
  if (equal(actual, expected, new Map())) fail(`${message ? `${message}: ` : ""}got ${show(actual)}, expected another value`);
}

/** `expected` is a constructor, the name of a DOMException ("AbortError"), or a value thrown as it is. */
function checkThrown(error, expected, message) {
  if (typeof expected === "function") {
    if (!(error instanceof expected) || (error.constructor !== expected && error.name !== expected.name)) {
      fail(`threw ${show(error)}, expected a ${expected.name}`);
    }
  } else if (typeof expected === "string") {
    if (!(error instanceof DOMException) || error.name !== expected) fail(`threw ${show(error)}, expected a DOMException ${expected}`);
  } else {
    assertEquals(error, expected, "thrown value");
  }
  if (message instanceof RegExp) {
    if (!message.test(error.message)) fail(`threw the message ${show(error.message)}, expected one like ${message}`);
  } else if (message !== undefined) {
    assertEquals(error.message, message, "message");
  }
  return error;
}

/** assertThrows(TypeError, fn[, message]); returns what was thrown. `message`: text or RegExp. */
export function assertThrows(expected, fn, message) {
  let value;
  try {
    value = fn();
  } catch (error) {
    return checkThrown(error, expected, message);
  }
  return fail(`returned ${show(value)}, expected an exception`);
}

/** The same for a promise or a function that returns one. */
export async function assertRejects(expected, promise, message) {
  let value;
  try {
    value = await (typeof promise === "function" ? promise() : promise);
  } catch (error) {
    return checkThrown(error, expected, message);
  }
  return fail(`resolved to ${show(value)}, expected a rejection`);
}

/**
 * The shape of an interface as Web IDL gives it: the global property, the class string, and
 * members = { methods: { name: length }, getters: [...], setters: [...] } of the prototype.
 */
export function assertInterface(name, { length = 0, methods = {}, getters = [], setters = [], statics = {} } = {}) {
  const C = globalThis[name];
  assert(typeof C === "function", `${name} is not defined`);
  if (state.peer !== "workerd") {
    // There they are enumerable, on the prototype of the global object.
    const d = Object.getOwnPropertyDescriptor(globalThis, name);
    assertEquals([d.writable, d.enumerable, d.configurable], [true, false, true], `descriptor of ${name}`);
  }
  assertEquals(C.name, name, "name");
  if (state.peer !== "workerd") assertEquals(C.length, length, `length of ${name}`);
  const tag = Object.getOwnPropertyDescriptor(C.prototype, Symbol.toStringTag);
  assertEquals(tag?.value, name, "class string");
  for (const [key, count] of Object.entries(methods)) {
    const m = Object.getOwnPropertyDescriptor(C.prototype, key);
    assert(m && typeof m.value === "function", `${name}.prototype.${key} is not a method`);
    assertEquals(m.value.name, key);
    // workerd gives every native method the length 0.
    if (state.peer !== "workerd") assertEquals(m.value.length, count, `length of ${key}`);
    assertEquals([m.writable, m.enumerable, m.configurable], [true, true, true], `descriptor of ${key}`);
  }
  for (const key of [...getters, ...setters]) {
    const m = Object.getOwnPropertyDescriptor(C.prototype, key);
    assert(m && typeof m.get === "function", `${name}.prototype.${key} is not an accessor`);
    assertEquals(typeof m.set, setters.includes(key) ? "function" : "undefined", `setter of ${key}`);
    assertEquals([m.enumerable, m.configurable], [true, true], `descriptor of ${key}`);
    assertThrows(TypeError, () => m.get.call({}));
  }
  for (const [key, count] of Object.entries(statics)) {
    assertEquals(typeof C[key], "function", `${name}.${key}`);
    if (state.peer !== "workerd") assertEquals(C[key].length, count, `length of ${name}.${key}`);
  }
}

/** Runs every test in order; the result is plain data. Called by the runner's entry module. */
export async function run(peerName, server) {
  state.peer = peerName;
  state.server = server;
  const results = [];
  for (const { name, fn, options } of tests) {
    if (options.skip) {
      results.push({ name, status: "skip", reason: options.skip });
      continue;
    }
    if (options.needs === "network" && !server) {
      results.push({ name, status: "skip", reason: "needs the network" });
      continue;
    }
    const differs = options.differs?.[peerName];
    let timer;
    let error = null;
    try {
      const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new AssertionError(`not done after ${TIMEOUT_MS} ms`)), TIMEOUT_MS);
      });
      await Promise.race([fn(), late]);
    } catch (e) {
      error = e;
    }
    clearTimeout(timer);
    const text = error && (error instanceof AssertionError ? error.message : `${error?.name}: ${error?.message}\n${error?.stack ?? ""}`);
    if (differs && error) results.push({ name, status: "differs", reason: differs, error: text });
    else if (differs) results.push({ name, status: "fail", error: `passes, but is listed as different here: ${differs}` });
    else results.push(error ? { name, status: "fail", error: text } : { name, status: "pass" });
  }
  return results;
}
