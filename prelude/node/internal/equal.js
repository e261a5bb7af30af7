// Deep equality, for node:assert and util.isDeepStrictEqual().
const { getPrototypeOf, keys, hasOwn, prototype: ObjectPrototype } = Object;
const enumerableSymbols = (object) =>
  Object.getOwnPropertySymbols(object).filter((symbol) => ObjectPrototype.propertyIsEnumerable.call(object, symbol));
const tagOf = (value) => ObjectPrototype.toString.call(value);
const same = (a, b, strict) => (strict ? Object.is(a, b) : a == b || (a !== a && b !== b));

function bytesEqual(a, b) {
  if (a.byteLength !== b.byteLength) return false;
  const left = new Uint8Array(a.buffer ?? a, a.byteOffset ?? 0, a.byteLength);
  const right = new Uint8Array(b.buffer ?? b, b.byteOffset ?? 0, b.byteLength);
  return left.every((byte, i) => byte === right[i]);
}

/** Every item of `a` has one of `b` that equals it; `equal` compares items. */
function matchAll(a, b, equal) {
  const left = [...b];
  return a.every((item) => {
    const at = left.findIndex((other) => equal(item, other));
    if (at < 0) return false;
    left.splice(at, 1);
    return true;
  });
}

function compareObjects(a, b, strict, seen) {
  if (strict && getPrototypeOf(a) !== getPrototypeOf(b)) return false;
  if (tagOf(a) !== tagOf(b)) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  if (Array.isArray(a) && a.length !== b.length) return false;
  if (a instanceof Date && b instanceof Date && !Object.is(a.getTime(), b.getTime())) return false;
  if (a instanceof RegExp && b instanceof RegExp && (String(a) !== String(b) || a.lastIndex !== b.lastIndex)) return false;
  if (a instanceof Error && b instanceof Error && (a.message !== b.message || a.name !== b.name)) return false;
  for (const type of [Number, String, Boolean, BigInt, Symbol]) {
    if (a instanceof type !== b instanceof type) return false;
    if (a instanceof type && !Object.is(type.prototype.valueOf.call(a), type.prototype.valueOf.call(b))) return false;
  }
  if (a instanceof ArrayBuffer || a instanceof DataView) {
    if (!bytesEqual(a, b)) return false;
  } else if (ArrayBuffer.isView(a)) {
    if (a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!same(a[i], b[i], strict)) return false;
    return true;
  }
  if (a instanceof WeakMap || a instanceof WeakSet || a instanceof Promise) return false;
  if (seen.get(a) === b) return true;
  seen.set(a, b);
  const equal = (x, y) => compare(x, y, strict, seen);
  if (a instanceof Set) {
    if (!(b instanceof Set) || a.size !== b.size) return false;
    if (!matchAll([...a], b, equal)) return false;
  } else if (a instanceof Map) {
    if (!(b instanceof Map) || a.size !== b.size) return false;
    if (!matchAll([...a], b, (x, y) => equal(x[0], y[0]) && equal(x[1], y[1]))) return false;
  }
  const names = keys(a);
  if (names.length !== keys(b).length || !names.every((name) => hasOwn(b, name))) return false;
  const symbols = strict ? enumerableSymbols(a) : [];
  if (strict && symbols.length !== enumerableSymbols(b).length) return false;
  if (![...names, ...symbols].every((name) => equal(a[name], b[name]))) return false;
  if (a instanceof Error && !(equal(a.cause, b.cause) && equal(a.errors, b.errors))) return false;
  return true;
}

function compare(a, b, strict, seen) {
  if (same(a, b, strict)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  return compareObjects(a, b, strict, seen);
}

export const isDeepStrictEqual = (a, b) => compare(a, b, true, new Map());
export const isDeepLooseEqual = (a, b) => compare(a, b, false, new Map());
