// What util.inspect() must know from the engine.
/* global __native, __options */

/** [target, handler] of a proxy, [null, null] of a revoked one, undefined of anything else. */
export function proxyDetails(value, all = true) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  let details;
  try {
    Array.isArray(value); // throws for a revoked proxy, and for nothing else
    details = __native.proxyDetails(value);
  } catch {
    details = [null, null];
  }
  if (details === undefined) return undefined;
  return all ? details : details[0];
}

/** [state, result] of a promise; the package has symbols for two states. */
export function promiseDetails(promise, pending, rejected) {
  const [state, result] = __native.promiseState(promise) ?? [0, undefined];
  return [[pending, undefined, rejected][state], result];
}

// Lines of the engine's own stacks: "function@file:line:column".
const OWN = /(?:^|@)(?:\[native code\])?$|:\d+:\d+$/;

/** An error's stack with its name and message in front and lines "at ...", as libraries expect it. */
export function stackOf(error) {
  const { stack } = error;
  if (typeof stack !== "string" || stack === "" || !stack.split("\n").every((line) => OWN.test(line))) return stack;
  let head = "Error";
  try {
    head = Error.prototype.toString.call(error);
  } catch {
    // a name or message that throws
  }
  const lines = __options.stackText(stack);
  return lines === "" ? head : `${head}\n${lines}`;
}

/** Keys of a list of pairs, which may repeat: a Map shows each as its text. */
const shownKey = (key, custom) => ({ [custom]: (_depth, options, inspect) => inspect(key, options) });

function showPlatform({ name, entries, shown, hidden }, custom) {
  return (depth, options, inspect) => {
    if (depth < 0) return options.stylize(`[${name}]`, "special");
    const record = entries === null ? shown : new Map(entries.map(([key, value]) => [shownKey(key, custom), value]));
    if (entries !== null) Object.assign(record, shown);
    for (const key of Object.keys(hidden)) Object.defineProperty(record, key, { value: hidden[key], enumerable: false });
    const text = inspect(record, { ...options, depth: options.depth === null || options.depth === undefined ? null : depth, showHidden: true });
    return entries === null ? `${name} ${text}` : `${name}${text.slice("Map".length)}`;
  };
}

/** The function that shows a value in its own way: its `custom` method, or ours for the platform's objects. */
export function customOf(value, custom) {
  const own = value[custom];
  if (own !== undefined || typeof value !== "object") return own;
  const parts = __options.platformParts(value);
  return parts === null ? own : showPlatform(parts, custom);
}
