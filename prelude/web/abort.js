// AbortController and AbortSignal: https://dom.spec.whatwg.org/#aborting-ongoing-activities
//
// A signal made by any() follows others. Those know it by a weak reference, so that a long-lived
// signal does not keep every signal that ever followed it; once somebody listens to a follower,
// the followed ones hold it fast.
import { finishInterface } from "../internal/interface.js";
import { illegalConstructor, illegalInvocation, isObject, parameterError } from "../internal/webidl.js";
import { DOMException } from "./dom-exception.js";
import { Event, EventTarget, defineHandlers, fire, setEventHooks } from "./events.js";
import { setTimeout } from "./timers.js";

const INTERNAL = Symbol("internal");
export let isAbortSignal;
let abortSignal;
let addAlgorithm;
let removeAlgorithm;
let makeFollower;
let heldFast;

export class AbortSignal extends EventTarget {
  #aborted = false;
  #reason = undefined;
  #algorithms = null; // Set of functions: run before the event
  #sources = null; // signals this one follows
  #followers = null; // WeakRefs of signals that follow this one
  #held = null; // Set of those that somebody listens to

  constructor(token) {
    if (token !== INTERNAL) throw illegalConstructor();
    super();
  }

  static {
    isAbortSignal = (value) => isObject(value) && #aborted in value;
    abortSignal = (signal, reason) => {
      if (signal.#aborted) return;
      const all = [];
      signal.#mark(reason === undefined ? new DOMException("The operation was aborted", "AbortError") : reason, all);
      for (const one of all) one.#run();
    };
    addAlgorithm = (signal, algorithm) => {
      (signal.#algorithms ??= new Set()).add(algorithm);
      signal.#hold();
    };
    removeAlgorithm = (signal, algorithm) => (signal.#algorithms ? signal.#algorithms.delete(algorithm) : undefined);
    heldFast = (signal) => signal.#hold();
    makeFollower = (signals) => {
      const follower = new AbortSignal(INTERNAL);
      for (const signal of signals) {
        if (!signal.#aborted) continue;
        follower.#aborted = true;
        follower.#reason = signal.#reason;
        return follower;
      }
      follower.#sources = new Set();
      for (const signal of signals) {
        // Following a follower is following what it follows.
        for (const source of signal.#sources ?? [signal]) {
          if (follower.#sources.has(source)) continue;
          follower.#sources.add(source);
          source.#addFollower(follower);
        }
      }
      return follower;
    };
  }

  #addFollower(follower) {
    this.#followers ??= { refs: [], sweepAt: 16 };
    const list = this.#followers;
    list.refs.push(new WeakRef(follower));
    if (list.refs.length < list.sweepAt) return;
    list.refs = list.refs.filter((ref) => ref.deref() !== undefined);
    list.sweepAt = Math.max(16, list.refs.length * 2);
  }

  #hold() {
    if (this.#sources === null) return;
    for (const source of this.#sources) (source.#held ??= new Set()).add(this);
  }

  #mark(reason, all) {
    this.#aborted = true;
    this.#reason = reason;
    all.push(this);
    const followers = this.#followers?.refs ?? [];
    this.#followers = this.#held = null;
    for (const ref of followers) {
      const follower = ref.deref();
      if (follower !== undefined && !follower.#aborted) follower.#mark(reason, all);
    }
  }

  #run() {
    const algorithms = this.#algorithms;
    this.#algorithms = null;
    if (this.#sources !== null) {
      for (const source of this.#sources) if (source.#held) source.#held.delete(this);
      this.#sources = null;
    }
    if (algorithms !== null) for (const algorithm of algorithms) algorithm(this.#reason);
    fire(this, new Event("abort"));
  }

  static abort(reason = undefined) {
    const signal = new AbortSignal(INTERNAL);
    signal.#aborted = true;
    signal.#reason = reason === undefined ? new DOMException("The operation was aborted", "AbortError") : reason;
    return signal;
  }
  static timeout(milliseconds) {
    if (arguments.length === 0) throw parameterError("timeout", "AbortSignal", 1, "number");
    const delay = +milliseconds; // any number: setTimeout() knows the bounds
    const signal = new AbortSignal(INTERNAL);
    setTimeout(() => abortSignal(signal, new DOMException("The operation was aborted due to timeout", "TimeoutError")), delay);
    return signal;
  }
  static any(signals) {
    if (!isObject(signals) || typeof signals[Symbol.iterator] !== "function") throw parameterError("any", "AbortSignal", 1, "Array");
    const list = [...signals];
    list.forEach((signal, i) => {
      if (!isAbortSignal(signal)) {
        throw new TypeError(`Incorrect type for array element ${i}: the provided value is not of type 'AbortSignal'.`);
      }
    });
    return makeFollower(list);
  }

  get aborted() {
    if (!isAbortSignal(this)) throw illegalInvocation();
    return this.#aborted;
  }
  get reason() {
    if (!isAbortSignal(this)) throw illegalInvocation();
    return this.#reason;
  }
  throwIfAborted() {
    if (!isAbortSignal(this)) throw illegalInvocation();
    if (this.#aborted) throw this.#reason;
  }
}
defineHandlers(AbortSignal.prototype, ["abort"]);
finishInterface(AbortSignal);
for (const f of [AbortSignal, AbortSignal.abort]) Object.defineProperty(f, "length", { value: 0, configurable: true });

setEventHooks((target, type) => {
  if (type === "abort" && isAbortSignal(target)) heldFast(target);
}, { isSignal: isAbortSignal, whenAborted: addAlgorithm });

/** Runs `algorithm(reason)` when the signal aborts, before its event; until removed. */
export const whenAborted = (signal, algorithm) => addAlgorithm(signal, algorithm);
export const forgetAborted = (signal, algorithm) => removeAlgorithm(signal, algorithm);
/** A new signal that aborts with `signal`. */
export const followSignal = (signal) => makeFollower([signal]);

export class AbortController {
  #signal = new AbortSignal(INTERNAL);

  static #check(value) {
    if (!(isObject(value) && #signal in value)) throw illegalInvocation();
    return value.#signal;
  }
  get signal() {
    return AbortController.#check(this);
  }
  abort(reason = undefined) {
    abortSignal(AbortController.#check(this), reason);
  }
}
finishInterface(AbortController);
Object.defineProperty(AbortController.prototype.abort, "length", { value: 0, configurable: true });
