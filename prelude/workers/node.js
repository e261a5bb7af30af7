// The modules of Node.js: names are known from the start, code is evaluated at the first import.
//
// prelude/node/ is a bundle of its own. It must not have copies of what has state or identity here
// (interfaces, inspect), so it gets those as one object, `internals`.
import { defineLazy, exposeEnumerable } from "../internal/interface.js";
import { compatibilityFlags, native, options } from "../internal/native.js";
import { withTaken } from "../internal/taken.js";
import inspection from "part:../internal/inspect.js";
import { describeError, reportException } from "../internal/report.js";
import { deserialize, serialize } from "../internal/serialize.js";
import * as nativeIds from "../web/crypto/native-ids.js";
import names from "../node/names.json";
import { currentTrace, frames, gated } from "../internal/turn.js";
import { isStarting, needsEvent } from "../internal/startup.js";
import platform from "part:../internal/inspect-platform.js";
import trace from "part:../internal/trace.js";
import subtleCrypto from "part:../web/crypto/part.js";
import { modules } from "./modules.js";
import * as timers from "./node-timers.js";

let bundle; // what prelude/node/index.js exports
const load = (name) => withTaken(() => {
  bundle ??= native.nodeBundle()(native, {
    compatibilityFlags, stackText: inspection().stackText, describeError, reportException, serialize, deserialize, nativeIds, modules, frames, gated, timers, isStarting, needsEvent, subtleCrypto, bundled: options.bundled,
    platformParts: (value) => platform().platformParts(value),
    noteChannel: (channel, message) => {
      if (currentTrace() !== 0) trace().noteChannel(channel, message);
    },
  });
  return bundle.load(name);
});

/** Makes the modules importable, and the globals of Node.js visible where the project wants them. */
export function installNode() {
  for (const name of names) defineLazy(modules, name, () => load(name), true);
  if (!compatibilityFlags.has("nodejs_compat_v2")) return; // nodejs_compat alone, before 2024-09-23: modules without globals
  defineLazy(globalThis, "Buffer", () => load("node:buffer").default.Buffer, false);
  defineLazy(globalThis, "process", () => load("node:process").default, false);
  defineLazy(globalThis, "global", () => globalThis, false);
  // By names of their own: the bundle of the prelude may have given a function another.
  const timerNames = compatibilityFlags.has("enable_nodejs_global_timers") ? ["setImmediate", "clearImmediate", "setTimeout", "setInterval"] : ["setImmediate", "clearImmediate"];
  for (const name of timerNames) exposeEnumerable(name, Object.defineProperty(timers[name], "name", { value: name, configurable: true }));
  for (const name of ["PerformanceObserver", "PerformanceObserverEntryList", "PerformanceResourceTiming"]) {
    defineLazy(globalThis, name, () => load("node:perf_hooks").default[name], false);
  }
  // As wrangler's bundler adds it, until the platform has a module for it.
  if (options.bundled && !compatibilityFlags.has("enable_nodejs_console_module")) defineLazy(console, "Console", () => load("node:console").default.Console, true);
}
