// node:timers and node:timers/promises
import { abortError, validateFunction } from "./internal/errors.js";
import { timers } from "./internal/internals.js";

const { clearTimeout, clearInterval, clearImmediate, Timeout, Immediate } = timers;
const kCustom = Symbol.for("nodejs.util.promisify.custom");

const checked = (name) => ({
  [name](callback, ...rest) {
    validateFunction(callback, "callback");
    return timers[name](callback, ...rest);
  },
}[name]);
const setTimeout = checked("setTimeout");
const setInterval = checked("setInterval");
const setImmediate = checked("setImmediate");

/** A timer as a promise of `value`, which a signal may end. */
function wait(begin, value, { signal } = {}) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(abortError(signal));
    const onAbort = () => {
      timer.close();
      reject(abortError(signal));
    };
    const timer = begin(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve(value);
    });
    signal?.addEventListener("abort", onAbort, { once: true });
    return undefined;
  });
}

const promises = {
  setTimeout: (delay, value, options) => wait((done) => setTimeout(done, delay), value, options),
  setImmediate: (value, options) => wait((done) => setImmediate(done), value, options),
  async *setInterval(delay, value, options) {
    for (;;) {
      await promises.setTimeout(delay, undefined, options);
      yield value;
    }
  },
  scheduler: {
    wait: (delay, options) => promises.setTimeout(delay, undefined, options),
    yield: () => promises.setImmediate(),
  },
};
Object.defineProperty(setTimeout, kCustom, { value: promises.setTimeout });
Object.defineProperty(setImmediate, kCustom, { value: promises.setImmediate });

export default { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, Timeout, Immediate, promises };
