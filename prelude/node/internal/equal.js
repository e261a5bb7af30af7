// Deep equality, for node:assert and util.isDeepStrictEqual(). Three ways to compare: "loose" (==),
// "strict" (Object.is, prototypes), "partial" (strict, but the expected side may leave things out).

const { getPrototypeOf, keys, hasOwn, prototype: ObjectPrototype } = Object;
const enumerableSymbols = (object) =>
  Object.getOwnPropertySymbols(object).filter((symbol) => ObjectPrototype.propertyIsEnumerable.call(object, symbol));
const tagOf = (value) => ObjectPrototype.toString.call(value);
const BOXES = [Number, String, Boolean, BigInt, Symbol];

function same(a, b, mode) {
  if (mode === "loose") return a == b || (a !== a && b !== b);
  return Object.is(a, b);
}
const isObject = (value) => typeof value === "object" && value !== null;

function viewBytes(value) {
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return new Uint8Array(value);
}
function bytesEqual(a, b, mode) {
  const left = viewBytes(a);
  const right = viewBytes(b);
  if (mode === "partial" ? left.length < right.length : left.length !== right.length) return false;
  return right.every((byte, i) => byte === left[i]);
}

/** Every item of `b` has one of `a` that equals it; `equal` compares items. */
function matchAll(a, b, equal) {
  const left = [...a];
  for (const item of b) {
    const at = left.findIndex((other) => equal(other, item));
    if (at < 0) return false;
    left.splice(at, 1);
  }
  return true;
}

/** What an object is inside, beyond its properties; true if `a` and `b` are alike in that. */
function compareInside(a, b, mode) {
  if (a instanceof Date !== b instanceof Date || a instanceof RegExp !== b instanceof RegExp) return false;
  if (a instanceof Date && !Object.is(Date.prototype.getTime.call(a), Date.prototype.getTime.call(b))) return false;
  if (a instanceof RegExp && (a.source !== b.source || a.flags !== b.flags || a.lastIndex !== b.lastIndex)) return false;
  if (a instanceof Error !== b instanceof Error) return false;
  if (a instanceof Error && (a.message !== b.message || a.name !== b.name)) return false;
  for (const type of BOXES) {
    if (a instanceof type !== b instanceof type) return false;
    if (!(a instanceof type)) continue;
    try {
      if (!Object.is(type.prototype.valueOf.call(a), type.prototype.valueOf.call(b))) return false;
    } catch {
      // an object whose prototype alone is that of a box
    }
  }
  if (a instanceof ArrayBuffer || a instanceof DataView || (typeof SharedArrayBuffer === "function" && a instanceof SharedArrayBuffer)) {
    if (!bytesEqual(a, b, mode)) return false;
  } else if (ArrayBuffer.isView(a)) {
    if (mode === "partial" ? a.length < b.length : a.length !== b.length) return false;
    for (let i = 0; i < b.length; i++) if (!same(a[i], b[i], mode)) return false;
  }
  if (mode !== "loose" && typeof URL === "function" && a instanceof URL && a.href !== b.href) return false;
  return true;
}

function compareEntries(a, b, mode, equal) {
  if (a instanceof Set !== b instanceof Set || a instanceof Map !== b instanceof Map) return false;
  if (a instanceof Set) {
    if (mode === "partial" ? a.size < b.size : a.size !== b.size) return false;
    return matchAll([...a], [...b], equal);
  }
  if (a instanceof Map) {
    if (mode === "partial" ? a.size < b.size : a.size !== b.size) return false;
    return matchAll([...a], [...b], (x, y) => equal(x[0], y[0]) && equal(x[1], y[1]));
  }
  return true;
}

function arraysPartly(a, b, equal) {
  // The expected items, in their order, among the actual ones.
  let at = 0;
  for (const item of b) {
    while (at < a.length && !equal(a[at], item)) at++;
    if (at++ >= a.length) return false;
  }
  return true;
}

function compareObjects(a, b, mode, seen) {
  if (mode !== "loose" && getPrototypeOf(a) !== getPrototypeOf(b)) return false;
  if (tagOf(a) !== tagOf(b)) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  if (a instanceof WeakMap || a instanceof WeakSet) return false;
  if (!compareInside(a, b, mode)) return false;
  // Within a cycle a pair that is being compared already is equal unless something else differs.
  const partners = seen.get(a);
  if (partners?.has(b)) return true;
  if (partners) partners.add(b);
  else seen.set(a, new Set([b]));
  const equal = (x, y) => compare(x, y, mode, seen);
  const result = (() => {
    if (!compareEntries(a, b, mode, equal)) return false;
    const list = ArrayBuffer.isView(a) && !(a instanceof DataView);
    if (mode === "partial" && Array.isArray(a)) {
      if (!arraysPartly(a, b, equal)) return false;
    } else if (Array.isArray(a) && a.length !== b.length) {
      return false;
    }
    const index = (name) => (list || (mode === "partial" && Array.isArray(a))) && /^(0|[1-9]\d*)$/.test(name);
    const names = keys(b).filter((name) => !index(name));
    if (mode !== "partial" && names.length !== keys(a).filter((name) => !index(name)).length) return false;
    if (!names.every((name) => hasOwn(a, name) && ObjectPrototype.propertyIsEnumerable.call(a, name))) return false;
    const symbols = mode === "loose" ? [] : enumerableSymbols(b);
    if (mode === "strict" && symbols.length !== enumerableSymbols(a).length) return false;
    if (![...names, ...symbols].every((name) => hasOwn(a, name) && equal(a[name], b[name]))) return false;
    if (a instanceof Error && !["cause", "errors"].every((name) => hasOwn(a, name) === hasOwn(b, name) && equal(a[name], b[name]))) return false;
    return true;
  })();
  seen.get(a).delete(b);
  return result;
}

function compare(a, b, mode, seen) {
  if (same(a, b, mode)) return true;
  if (!isObject(a) || !isObject(b)) return false;
  return compareObjects(a, b, mode, seen);
}

export const isDeepStrictEqual = (a, b) => compare(a, b, "strict", new Map());
export const isDeepLooseEqual = (a, b) => compare(a, b, "loose", new Map());
export const isPartialStrictEqual = (actual, expected) => compare(actual, expected, "partial", new Map());
