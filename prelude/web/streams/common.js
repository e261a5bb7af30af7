// Helpers shared by the Streams files: promises without user-visible look-ups, the chunk queue,
// conversion of dictionaries and strategies.
//
// How the streams are built. A public object (ReadableStream, a reader, a controller) holds one
// private field: its record. All algorithms of the standard work on records, whose fields are
// plain properties. A promise is made when somebody asks for it, never to be thrown away:
// `reader.closed` and its like are LazyPromise, a read that finds a chunk resolves at once, and
// internal consumers (pipes, bodies, responses) get chunks by method call.
//
// Where the platform's streams do otherwise than the standard, and a script can notice, these do as
// the platform:
// S1  What a source, sink or transformer does not have succeeds at once, start() included: a stream
//     without start() pulls in its constructor.
// S2  A start() that throws errors the stream; the constructor does not throw.
// S3  A stream has one abort: abort() gives the same promise whenever it is called.
// S4  A writer that is released takes its queued writes with it (not those of the platform's own
//     streams, whose bytes are on their way).
// S5  Close answers a pending BYOB read; the source need not respond(0).
// S6  A default reader of a byte stream gets at most autoAllocateChunkSize bytes (4,096 unless it is
//     given, and unless a flag says that there is no default), from as many chunks as are queued.
// S7  tee(): cancel() of one branch is done at once, that of the second cancels the source with its
//     reason alone.
// S8  The platform's own streams serve one read at a time; cancel() rejects the read that waits.
// S9  And abort() of one does not wait for the write under way, unless a flag asks for that.

import { isFlagOff } from "../../internal/native.js";

const { resolve: promiseResolve, reject: promiseReject } = Promise;
const { then: promiseThen } = Promise.prototype;
const P = Promise;
export const noop = () => {};
const RESOLVED = P.resolve();

/** A promise for `value`, as the standard's "a promise resolved with". */
export const resolved = (value) => promiseResolve.call(P, value);
export const rejected = (reason) => promiseReject.call(P, reason);
export const then = (promise, onFulfilled, onRejected) => promiseThen.call(promise, onFulfilled, onRejected);
export const markHandled = (promise) => {
  promiseThen.call(promise, undefined, noop);
};

/** Runs one of the two functions in a later microtask, once `value` (promise or not) has settled. */
export function react(value, onFulfilled, onRejected) {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) {
    promiseThen.call(RESOLVED, onFulfilled);
  } else {
    promiseThen.call(promiseResolve.call(P, value), onFulfilled, onRejected);
  }
}

/** Calls an algorithm; what it throws becomes a rejected promise. */
export function attempt(algorithm, argument) {
  try {
    return algorithm(argument);
  } catch (error) {
    return rejected(error);
  }
}

const PENDING = 0;
const FULFILLED = 1;
const REJECTED = 2;

/** A promise that exists only once get() was called. Rejections count as handled. */
export class LazyPromise {
  constructor() {
    this.outcome = PENDING;
    this.value = undefined;
    this.promise = null;
    this.resolver = null;
    this.rejecter = null;
  }
  get() {
    if (this.promise === null) {
      if (this.outcome === FULFILLED) {
        this.promise = resolved(this.value);
      } else if (this.outcome === REJECTED) {
        this.promise = rejected(this.value);
        markHandled(this.promise);
      } else {
        this.promise = new P((resolve, reject) => {
          this.resolver = resolve;
          this.rejecter = reject;
        });
      }
    }
    return this.promise;
  }
  get pending() {
    return this.outcome === PENDING;
  }
  resolve(value) {
    if (this.outcome !== PENDING) return;
    this.outcome = FULFILLED;
    this.value = value;
    if (this.resolver !== null) this.resolver(value);
    this.resolver = this.rejecter = null;
  }
  /** Rejects, or, if it has settled already, becomes a new promise that is rejected. */
  reject(reason) {
    if (this.outcome !== PENDING) this.promise = null;
    this.outcome = REJECTED;
    this.value = reason;
    if (this.rejecter !== null) {
      markHandled(this.promise);
      this.rejecter(reason);
    }
    this.resolver = this.rejecter = null;
  }
  /** Becomes a new, pending promise. */
  reset() {
    this.outcome = PENDING;
    this.value = undefined;
    this.promise = this.resolver = this.rejecter = null;
  }
}

/** A promise with its two functions. */
export class Deferred {
  constructor() {
    this.promise = new P((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}

/** First in, first out. */
export class Queue {
  constructor() {
    this.items = [];
    this.head = 0;
  }
  get length() {
    return this.items.length - this.head;
  }
  push(item) {
    this.items.push(item);
  }
  peek() {
    return this.items[this.head];
  }
  shift() {
    const { items } = this;
    const item = items[this.head];
    items[this.head++] = undefined;
    if (this.head === items.length) {
      items.length = 0;
      this.head = 0;
    } else if (this.head >= 1024 && this.head * 2 > items.length) {
      items.splice(0, this.head);
      this.head = 0;
    }
    return item;
  }
  clear() {
    this.items = [];
    this.head = 0;
  }
}

export const isObject = (value) =>
  (typeof value === "object" && value !== null) || typeof value === "function";

/** The object of a dictionary argument; undefined and null are an empty one. */
export function dictionary(value, what) {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) throw new TypeError(`${what} must be an object.`);
  return value;
}

/** A member of type "callback function", or undefined. */
export function callback(object, name, what) {
  const value = object[name];
  if (value === undefined) return undefined;
  if (typeof value !== "function") throw new TypeError(`${what}.${name} must be a function.`);
  return value;
}

/** Web IDL's `[EnforceRange] unsigned long long`. */
export function enforceRange(value, what) {
  const number = Math.trunc(+value);
  if (!(number >= 0 && number <= Number.MAX_SAFE_INTEGER)) {
    throw new TypeError(`${what} must be an integer that is not negative.`);
  }
  return number + 0;
}

/** A number that is no size: the platform refuses it as what it cannot convert, by a TypeError. */
export function refusedSize(value) {
  return new TypeError(
    value < 0
      ? "The value cannot be converted because it is negative and this API expects a positive bigint."
      : "The value cannot be converted because it is not an integer.",
  );
}

/** https://streams.spec.whatwg.org/#validate-and-normalize-high-water-mark, for a converted dictionary. */
export function highWaterMark(strategy, fallback) {
  if (strategy.highWaterMark === undefined) return fallback;
  const mark = strategy.highWaterMark;
  if (mark !== mark || mark < 0) throw refusedSize(mark);
  return mark;
}

/** What a strategy's size() has answered, as a number of the queue; throws if it is none. */
export function chunkSize(value) {
  const size = +value;
  if (!(size >= 0 && size < Infinity)) throw refusedSize(size);
  return size;
}

const ObjectPrototype = Object.prototype;
/**
 * Resolves a promise with {value, done}. A script may have put `then` on the prototype of all
 * objects: it must not be called in the middle of a stream's steps.
 */
export function settleResult(resolve, value, done) {
  const result = { value, done };
  if (!("then" in ObjectPrototype)) {
    resolve(result);
    return;
  }
  Object.defineProperty(result, "then", { value: undefined, configurable: true });
  resolve(result);
  delete result.then;
}

/** A promise of {value, done}, by the same rule. */
export const resultPromise = (value, done) =>
  "then" in ObjectPrototype
    ? new P((resolve) => settleResult(resolve, value, done))
    : promiseResolve.call(P, { value, done });

/** A reason as the error that the other end of one of the platform's own streams gets. */
export function reasonError(reason, fallback) {
  if (reason === undefined) return new Error(fallback);
  return isObject(reason) ? reason : new Error(String(reason));
}

/** The QueuingStrategy dictionary, members read in the order of the standard. */
export function queuingStrategy(value) {
  const object = dictionary(value, "A queuing strategy");
  const mark = object.highWaterMark;
  return {
    highWaterMark: mark === undefined ? undefined : +mark,
    size: callback(object, "size", "strategy"),
  };
}

/** A method called on something else, or a constructor that is not for users. */
export const illegalInvocation = (name) => new TypeError(`Illegal invocation: this is not a ${name}.`);
/** For streams of a script's own making, which old configurations do not have. */
const HAS_CONSTRUCTORS = !isFlagOff("streams_enable_constructors");
export function checkConstructors(name) {
  if (HAS_CONSTRUCTORS) return;
  throw new Error(
    `To use the new ${name}() constructor, enable the streams_enable_constructors compatibility flag. Refer to the docs for more information: https://developers.cloudflare.com/workers/platform/compatibility-dates/#compatibility-flags`,
  );
}
export const illegalConstructor = () => new TypeError("Illegal constructor");
/** Passed to constructors by our own code, so that one class serves both. */
export const INTERNAL = Symbol("internal");
