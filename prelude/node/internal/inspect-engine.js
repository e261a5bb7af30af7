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

// Lines of the engine's own stacks: "function@file:line:column".
const OWN = /^(?:[^\n]*@)?(?:[^\n]*:\d+:\d+|\[native code\])?$/;

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
