// The modules of Node.js: names are known from the start, code is evaluated at the first import.
//
// prelude/node/ is a bundle of its own. It must not have copies of what has state or identity here
// (interfaces, inspect), so it gets those as one object, `internals`.
import { compatibilityFlags, native } from "../internal/native.js";
import { format, inspect } from "../internal/inspect.js";
import { describeError, reportException } from "../internal/report.js";
import { deserialize, serialize } from "../internal/serialize.js";
import * as nativeIds from "../web/crypto/native-ids.js";
import names from "../node/names.json";
import { modules } from "./modules.js";

let bundle; // what prelude/node/index.js exports
function load(name) {
  bundle ??= native.nodeBundle()(native, {
    compatibilityFlags, inspect, format, describeError, reportException, serialize, deserialize, nativeIds, modules,
  });
  return bundle.load(name);
}

/** A property that is computed when it is first read. */
function lazy(object, name, read, enumerable) {
  Object.defineProperty(object, name, {
    get() {
      const value = read();
      Object.defineProperty(object, name, { value, writable: true, enumerable, configurable: true });
      return value;
    },
    set(value) {
      Object.defineProperty(object, name, { value, writable: true, enumerable, configurable: true });
    },
    enumerable,
    configurable: true,
  });
}

/** Makes the modules importable, and the globals of Node.js visible where the project wants them. */
export function installNode() {
  for (const name of names) lazy(modules, name, () => load(name), true);
  if (!compatibilityFlags.has("nodejs_compat")) return;
  lazy(globalThis, "Buffer", () => load("node:buffer").default.Buffer, false);
  lazy(globalThis, "process", () => load("node:process").default, false);
  lazy(globalThis, "global", () => globalThis, false);
  for (const name of ["setImmediate", "clearImmediate"]) lazy(globalThis, name, () => load("node:timers").default[name], true);
}
