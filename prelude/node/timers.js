// node:timers and node:timers/promises
import { abortError, invalidThis, validateAbortSignal, validateBoolean, validateFunction, validateNumber, validateObject } from "./internal/errors.js";
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
for (const f of [setTimeout, setInterval]) Object.defineProperty(f, "length", { value: 2, configurable: true });

function checkOptions(options) {
  validateObject(options, "options");
  const { signal, ref = true } = options;
  validateAbortSignal(signal, "options.signal");
  validateBoolean(ref, "options.ref");
  if (signal?.aborted) throw abortError(signal);
  return signal;
}

/** A timer as a promise of `value`, which a signal may end. */
function wait(begin, value, signal) {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      timer.close?.();
      clearImmediate(timer);
      reject(abortError(signal));
    };
    const timer = begin(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve(value);
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

const kScheduler = Symbol("kScheduler");
class Scheduler {
  [kScheduler] = true;
  yield() {
    if (!this?.[kScheduler]) throw invalidThis("Scheduler");
    return promises.setImmediate();
  }
  wait(...args) {
    if (!this?.[kScheduler]) throw invalidThis("Scheduler");
    return globalThis.scheduler.wait(...args);
  }
}

const promises = {
  async setTimeout(delay, value = undefined, options = {}) {
    if (delay !== undefined) validateNumber(delay, "delay");
    const signal = checkOptions(options);
    return wait((done) => setTimeout(done, delay), value, signal);
  },
  async setImmediate(value = undefined, options = {}) {
    const signal = checkOptions(options);
    return wait((done) => setImmediate(done), value, signal);
  },
  async *setInterval(delay, value = undefined, options = {}) {
    if (delay !== undefined) validateNumber(delay, "delay");
    const signal = checkOptions(options);
    let due = 0;
    let next = Promise.withResolvers();
    const onAbort = () => {
      clearInterval(interval);
      next.reject(abortError(signal));
    };
    const interval = setInterval(() => {
      due++;
      next.resolve();
    }, delay);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      for (;;) {
        if (signal?.aborted) throw abortError(signal);
        if (due === 0) {
          await next.promise;
          next = Promise.withResolvers();
          next.promise.catch(() => {});
        }
        for (; due > 0; due--) yield value;
      }
    } finally {
      clearInterval(interval);
      signal?.removeEventListener("abort", onAbort);
    }
  },
  scheduler: new Scheduler(),
};
for (const [f, length] of [[promises.setTimeout, 2], [promises.setImmediate, 1], [promises.setInterval, 2]]) Object.defineProperty(f, "length", { value: length, configurable: true });
Object.defineProperty(setTimeout, kCustom, { value: promises.setTimeout, configurable: true });
Object.defineProperty(setImmediate, kCustom, { value: promises.setImmediate, configurable: true });
Object.defineProperty(setInterval, kCustom, { value: promises.setInterval, configurable: true });

export { promises };
export const extras = { Timeout, Immediate };
export default {
  promises, setTimeout, clearTimeout, setImmediate, clearImmediate, setInterval, clearInterval,
  active() {},
  unenroll(timer) { clearTimeout(timer); },
  enroll() { throw new Error("Not implemented. Please use setTimeout() instead."); },
};
