// node:timers and node:timers/promises
import { abortError, validateFunction } from "./internal/errors.js";

const { setTimeout: start, clearTimeout: stop, setInterval: startInterval } = globalThis;
const kCustom = Symbol.for("nodejs.util.promisify.custom");

export class Timeout {
  #id;
  #restart;
  #done = false;
  constructor(restart) {
    this.#restart = restart;
    this.#id = restart(this);
  }
  ref() { return this; }
  unref() { return this; }
  hasRef() { return !this.#done; }
  refresh() {
    stop(this.#id);
    this.#id = this.#restart(this);
    return this;
  }
  close() {
    this.#done = true;
    stop(this.#id);
    return this;
  }
  [Symbol.toPrimitive]() { return this.#id; }
  [Symbol.dispose ?? Symbol.for("Symbol.dispose")]() { this.close(); }
}

export function setTimeout(callback, delay, ...args) {
  validateFunction(callback, "callback");
  return new Timeout(() => start(callback, delay, ...args));
}
export function setInterval(callback, delay, ...args) {
  validateFunction(callback, "callback");
  return new Timeout(() => startInterval(callback, delay, ...args));
}
export function clearTimeout(timer) {
  if (timer instanceof Timeout) timer.close();
  else if (timer !== undefined && timer !== null) stop(Number(timer));
}

export class Immediate extends Timeout {}
export function setImmediate(callback, ...args) {
  validateFunction(callback, "callback");
  return new Immediate(() => start(callback, 0, ...args));
}
const clearInterval = (timer) => clearTimeout(timer);
const clearImmediate = (timer) => clearTimeout(timer);

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

export default { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, promises };
