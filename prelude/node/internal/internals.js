// What the first part of the prelude passes on (prelude/workers/node.js).
/* global __native, __options */
export const native = __native;
export const {
  compatibilityFlags, stackText, describeError, reportException, serialize, deserialize, nativeIds, modules, frames, gated, timers, noteChannel, isStarting, needsEvent, subtleCrypto, bundled,
} = __options;
export { inspect, format, formatWithOptions } from "./inspect.js";

/** Whether a value is a KeyObject: none is before the class is there (keys.js). */
export const keyObjects = { has: () => false };
