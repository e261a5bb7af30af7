// node:async_hooks: AsyncLocalStorage and AsyncResource.
//
// The values of storages are in the context of the code that runs (prelude/internal/turn.js), which
// follows promises, `await`, timers and callbacks: as its frame, an immutable map from storages to
// values, or undefined for the empty one.
import { invalidArgType, validateFunction } from "./internal/errors.js";
import { frames } from "./internal/internals.js";

const runIn = frames.run;

export class AsyncLocalStorage {
  #defaultValue;
  #name;

  constructor(options = {}) {
    if (options === null || typeof options !== "object") throw invalidArgType("options", "of type object", options);
    this.#defaultValue = options.defaultValue;
    this.#name = options.name === undefined ? "" : String(options.name);
  }

  get name() {
    return this.#name;
  }

  /** A function that runs `callback` in the frame of now. */
  static bind(callback) {
    validateFunction(callback, "fn");
    const captured = frames.current();
    return Object.defineProperty(
      function (...args) {
        return runIn(captured, callback, this, args);
      },
      "length",
      { value: callback.length, configurable: true },
    );
  }

  /** A function that runs what it is given in the frame of now. */
  static snapshot() {
    const captured = frames.current();
    return (callback, ...args) => runIn(captured, callback, undefined, args);
  }

  getStore() {
    const frame = frames.current();
    return frame !== undefined && frame.has(this) ? frame.get(this) : this.#defaultValue;
  }

  run(store, callback, ...args) {
    const next = new Map(frames.current());
    next.set(this, store);
    return runIn(next, callback, undefined, args);
  }

  exit(callback, ...args) {
    const next = new Map(frames.current());
    next.delete(this);
    return runIn(next.size === 0 ? undefined : next, callback, undefined, args);
  }

  enterWith() {
    throw new Error("asyncLocalStorage.enterWith() is not implemented");
  }

  disable() {
    throw new Error("asyncLocalStorage.disable() is not implemented");
  }
}

let lastId = 0;

export class AsyncResource {
  #frame = frames.current();
  #id = ++lastId;
  #type;

  constructor(type, options = undefined) {
    if (typeof type !== "string") throw invalidArgType("type", "of type string", type);
    void options;
    this.#type = type;
  }

  static bind(fn, type = fn?.name || "bound-anonymous-fn", thisArg = undefined) {
    return new AsyncResource(type).bind(fn, thisArg);
  }

  get type() {
    return this.#type;
  }

  asyncId() {
    return this.#id;
  }
  triggerAsyncId() {
    return 0;
  }
  emitDestroy() {
    return this;
  }

  bind(fn, thisArg = undefined) {
    validateFunction(fn, "fn");
    const resource = this;
    return Object.defineProperties(
      function (...args) {
        return resource.runInAsyncScope(fn, thisArg ?? this, ...args);
      },
      {
        length: { value: fn.length, configurable: true },
        asyncResource: { value: resource, writable: true, enumerable: true, configurable: true },
      },
    );
  }

  runInAsyncScope(fn, thisArg, ...args) {
    return runIn(this.#frame, fn, thisArg, args);
  }
}

export default {
  AsyncLocalStorage,
  AsyncResource,
  createHook: () => ({ enable() { return this; }, disable() { return this; } }),
  executionAsyncId: () => 0,
  executionAsyncResource: () => Object.create(null),
  triggerAsyncId: () => 0,
  asyncWrapProviders: Object.freeze({ __proto__: null }),
};
