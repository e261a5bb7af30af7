// node:async_hooks: AsyncLocalStorage and AsyncResource.
//
// The current frame (an immutable map from storages to values, or undefined for the empty one) is
// a variable. Whoever defers a callback captures the frame; whoever runs it puts the frame back and
// restores the one before. JavaScriptCore has no hook for `await`, so the bundler lowers the async
// functions of a project that imports this module to generators that call then(); what remains is
// to wrap then() here, when the module is first loaded, and callbacks of timers and microtasks
// where those are started (prelude/web/timers.js).
//
// A1  Between callbacks, that is whenever the engine takes the next microtask or task, the frame is
//     empty: every function here that sets it restores it before it returns.
// A2  A callback that was deferred in the empty frame needs no wrapping, because of A1. Code that
//     uses no AsyncLocalStorage therefore pays one comparison.
import { invalidArgType, validateFunction } from "./internal/errors.js";
import { setCapture } from "./internal/internals.js";

let frame; // undefined, or a Map that is never changed

function runIn(next, callback, self, args) {
  const before = frame;
  frame = next;
  try {
    return Reflect.apply(callback, self, args);
  } finally {
    frame = before;
  }
}

/** `callback` in the frame of now. */
function capture(callback) {
  const captured = frame;
  if (captured === undefined || typeof callback !== "function") return callback;
  return function (...args) {
    return runIn(captured, callback, this, args);
  };
}

{
  const { then } = Promise.prototype;
  const wrapped = {
    then(onFulfilled, onRejected) {
      if (frame === undefined) return Reflect.apply(then, this, [onFulfilled, onRejected]);
      return Reflect.apply(then, this, [capture(onFulfilled), capture(onRejected)]);
    },
  };
  Object.defineProperty(Promise.prototype, "then", { value: wrapped.then });
}
setCapture(capture);

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
    const captured = frame;
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
    const captured = frame;
    return (callback, ...args) => runIn(captured, callback, undefined, args);
  }

  getStore() {
    return frame !== undefined && frame.has(this) ? frame.get(this) : this.#defaultValue;
  }

  run(store, callback, ...args) {
    const next = new Map(frame);
    next.set(this, store);
    return runIn(next, callback, undefined, args);
  }

  exit(callback, ...args) {
    const next = new Map(frame);
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
  #frame = frame;
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
  executionAsyncResource: () => ({}),
  triggerAsyncId: () => 0,
  asyncWrapProviders: Object.freeze({ __proto__: null }),
};
