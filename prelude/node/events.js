// node:events
import { abortError, invalidArgType, nodeError, outOfRange, validateFunction } from "./internal/errors.js";
import { inspect } from "./internal/internals.js";

const kCapture = Symbol("kCapture");
const kRejection = Symbol.for("nodejs.rejection");
const kErrorMonitor = Symbol("events.errorMonitor");
let defaultMaxListeners = 10;
let captureByDefault = false;

// Listeners of one event are a function or an array that is replaced, never changed, while it may
// be walked through: emit() needs no copy.
function listenersOf(emitter, type) {
  const found = emitter._events?.[type];
  return found === undefined ? [] : typeof found === "function" ? [found] : found;
}

function add(emitter, type, listener, prepend) {
  validateFunction(listener, "listener");
  const events = (emitter._events ??= { __proto__: null });
  if (events.newListener !== undefined) emitter.emit("newListener", type, listener.listener ?? listener);
  const existing = emitter._events[type];
  if (existing === undefined) {
    emitter._events[type] = listener;
    emitter._eventsCount = (emitter._eventsCount ?? 0) + 1;
    return emitter;
  }
  const list = typeof existing === "function" ? [existing] : existing;
  const next = prepend ? [listener, ...list] : [...list, listener];
  const max = emitter.getMaxListeners();
  if (max > 0 && next.length > max && !list.warned) {
    next.warned = true;
    console.warn(
      `MaxListenersExceededWarning: Possible EventEmitter memory leak detected. ${next.length} ${String(type)} listeners added to ${inspect(emitter, { depth: -1 })}. MaxListeners is ${max}. Use emitter.setMaxListeners() to increase limit`,
    );
  } else if (list.warned) {
    next.warned = true;
  }
  emitter._events[type] = next;
  return emitter;
}

function onceWrapper(emitter, type, listener) {
  validateFunction(listener, "listener");
  let fired = false;
  const wrapped = function (...args) {
    if (fired) return undefined;
    fired = true;
    emitter.removeListener(type, wrapped);
    return Reflect.apply(listener, emitter, args);
  };
  wrapped.listener = listener;
  return wrapped;
}

function callListener(emitter, listener, type, args) {
  const result = Reflect.apply(listener, emitter, args);
  if (emitter[kCapture] && result !== null && result !== undefined && typeof result.then === "function") {
    result.then(undefined, (error) => {
      if (typeof emitter[kRejection] === "function") emitter[kRejection](error, type, ...args);
      else if (type === "error") queueMicrotask(() => { throw error; });
      else emitter.emit("error", error);
    });
  }
}

// A function, not a class: old code calls EventEmitter.call(this) and util.inherits().
export function EventEmitter(options) {
  EventEmitter.init.call(this, options);
}
EventEmitter.init = function (options) {
  if (this._events === undefined || this._events === Object.getPrototypeOf(this)._events) {
    this._events = { __proto__: null };
    this._eventsCount = 0;
  }
  this._maxListeners ??= undefined;
  if (options?.captureRejections || captureByDefault) this[kCapture] = true;
};
EventEmitter.prototype._events = undefined;
EventEmitter.prototype._eventsCount = 0;
EventEmitter.prototype._maxListeners = undefined;

Object.assign(EventEmitter.prototype, {
  setMaxListeners(n) {
    if (typeof n !== "number" || n < 0 || Number.isNaN(n)) throw outOfRange("n", "a non-negative number", n);
    this._maxListeners = n;
    return this;
  },
  getMaxListeners() {
    return this._maxListeners ?? defaultMaxListeners;
  },
  emit(type, ...args) {
    const events = this._events;
    if (type === "error") {
      if (events?.[kErrorMonitor] !== undefined) this.emit(kErrorMonitor, ...args);
      if (events?.error === undefined) {
        const [error] = args;
        if (error instanceof Error) throw error;
        const unhandled = nodeError(Error, "ERR_UNHANDLED_ERROR", `Unhandled error. (${typeof error === "string" ? `'${error}'` : inspect(error)})`);
        unhandled.context = error;
        throw unhandled;
      }
    }
    const listener = events?.[type];
    if (listener === undefined) return false;
    if (typeof listener === "function") callListener(this, listener, type, args);
    else for (let i = 0; i < listener.length; i++) callListener(this, listener[i], type, args);
    return true;
  },
  addListener(type, listener) {
    return add(this, type, listener, false);
  },
  prependListener(type, listener) {
    return add(this, type, listener, true);
  },
  once(type, listener) {
    return this.on(type, onceWrapper(this, type, listener));
  },
  prependOnceListener(type, listener) {
    return this.prependListener(type, onceWrapper(this, type, listener));
  },
  removeListener(type, listener) {
    validateFunction(listener, "listener");
    const list = listenersOf(this, type);
    for (let i = list.length - 1; i >= 0; i--) {
      if (list[i] !== listener && list[i].listener !== listener) continue;
      const removed = list[i].listener ?? list[i];
      if (list.length === 1) {
        delete this._events[type];
        this._eventsCount--;
      } else {
        this._events[type] = list.toSpliced(i, 1);
      }
      if (this._events.removeListener !== undefined) this.emit("removeListener", type, removed);
      break;
    }
    return this;
  },
  removeAllListeners(type) {
    if (this._events === undefined) return this;
    if (this._events.removeListener !== undefined) {
      const types = arguments.length === 0 ? Reflect.ownKeys(this._events).filter((t) => t !== "removeListener") : [type];
      for (const each of types) {
        for (const listener of listenersOf(this, each).toReversed()) this.removeListener(each, listener);
      }
      if (arguments.length > 0) return this;
    }
    if (arguments.length === 0) {
      this._events = { __proto__: null };
      this._eventsCount = 0;
    } else if (this._events[type] !== undefined) {
      delete this._events[type];
      this._eventsCount--;
    }
    return this;
  },
  listeners(type) {
    return listenersOf(this, type).map((listener) => listener.listener ?? listener);
  },
  rawListeners(type) {
    return [...listenersOf(this, type)];
  },
  listenerCount(type, listener) {
    const list = listenersOf(this, type);
    return listener === undefined ? list.length : list.filter((l) => l === listener || l.listener === listener).length;
  },
  eventNames() {
    return this._events === undefined ? [] : Reflect.ownKeys(this._events);
  },
});
EventEmitter.prototype.on = EventEmitter.prototype.addListener;
EventEmitter.prototype.off = EventEmitter.prototype.removeListener;
for (const name of Object.keys(EventEmitter.prototype)) {
  if (typeof EventEmitter.prototype[name] === "function") continue;
  Object.defineProperty(EventEmitter.prototype, name, { enumerable: false });
}

/** Works on emitters and event targets alike. */
function listen(target, type, listener, options = {}) {
  if (typeof target?.on === "function") {
    target[options.once ? "once" : "on"](type, listener);
    return () => target.removeListener(type, listener);
  }
  if (typeof target?.addEventListener === "function") {
    target.addEventListener(type, listener, options);
    return () => target.removeEventListener(type, listener, options);
  }
  throw invalidArgType("emitter", "an instance of EventEmitter", target);
}

export function once(emitter, type, { signal } = {}) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(abortError(signal));
    const stops = [];
    const finish = (settle) => (...args) => {
      for (const stop of stops) stop();
      settle(args);
    };
    stops.push(listen(emitter, type, finish(resolve), { once: true }));
    if (type !== "error" && typeof emitter.on === "function") {
      stops.push(listen(emitter, "error", finish(([error]) => reject(error)), { once: true }));
    }
    if (signal) stops.push(listen(signal, "abort", finish(() => reject(abortError(signal))), { once: true }));
    return undefined;
  });
}

export function on(emitter, type, options = {}) {
  const { signal } = options;
  if (signal?.aborted) throw abortError(signal);
  const values = [];
  const waiting = [];
  const stops = [];
  let failure = null;
  let finished = false;
  const fail = (error) => {
    if (waiting.length > 0) waiting.shift().reject(error);
    else failure = error;
    end();
  };
  const end = () => {
    for (const stop of stops.splice(0)) stop();
    finished = true;
    for (const { resolve } of waiting.splice(0)) resolve({ value: undefined, done: true });
    return Promise.resolve({ value: undefined, done: true });
  };
  stops.push(listen(emitter, type, (...args) => {
    if (waiting.length > 0) waiting.shift().resolve({ value: args, done: false });
    else values.push(args);
  }));
  if (type !== "error" && typeof emitter.on === "function") stops.push(listen(emitter, "error", fail));
  for (const name of options.close ?? []) stops.push(listen(emitter, name, end));
  if (signal) stops.push(listen(signal, "abort", () => fail(abortError(signal)), { once: true }));
  return {
    next() {
      if (values.length > 0) return Promise.resolve({ value: values.shift(), done: false });
      if (failure !== null) {
        const error = failure;
        failure = null;
        return Promise.reject(error);
      }
      if (finished) return Promise.resolve({ value: undefined, done: true });
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
    },
    return: end,
    throw(error) {
      fail(error);
      return Promise.reject(error);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

export class EventEmitterAsyncResource extends EventEmitter {
  constructor(options = {}) {
    super(options);
    const { AsyncResource } = require("./async_hooks.js");
    this.asyncResource = new AsyncResource(options.name ?? new.target.name);
  }
  emit(...args) {
    return this.asyncResource.runInAsyncScope(super.emit, this, ...args);
  }
}

Object.defineProperties(EventEmitter, {
  defaultMaxListeners: {
    enumerable: true,
    get: () => defaultMaxListeners,
    set(n) {
      if (typeof n !== "number" || n < 0 || Number.isNaN(n)) throw outOfRange("defaultMaxListeners", "a non-negative number", n);
      defaultMaxListeners = n;
    },
  },
  captureRejections: {
    enumerable: true,
    get: () => captureByDefault,
    set(value) {
      captureByDefault = !!value;
    },
  },
});
Object.assign(EventEmitter, {
  EventEmitter,
  EventEmitterAsyncResource,
  once,
  on,
  usingDomains: false,
  captureRejectionSymbol: kRejection,
  kMaxEventTargetListeners: Symbol("events.maxEventTargetListeners"),
  kMaxEventTargetListenersWarned: Symbol("events.maxEventTargetListenersWarned"),
  errorMonitor: kErrorMonitor,
  getEventListeners: (emitter, type) => (typeof emitter.listeners === "function" ? emitter.listeners(type) : []),
  getMaxListeners: (emitter) => (typeof emitter.getMaxListeners === "function" ? emitter.getMaxListeners() : defaultMaxListeners),
  listenerCount: (emitter, type) => emitter.listenerCount(type),
  setMaxListeners(n = defaultMaxListeners, ...targets) {
    if (targets.length === 0) EventEmitter.defaultMaxListeners = n;
    for (const target of targets) target.setMaxListeners?.(n);
  },
  addAbortListener(signal, listener) {
    validateFunction(listener, "listener");
    if (signal.aborted) queueMicrotask(() => listener());
    else signal.addEventListener("abort", listener, { once: true });
    return { [Symbol.dispose ?? Symbol.for("Symbol.dispose")]: () => signal.removeEventListener("abort", listener) };
  },
});

export default EventEmitter;
