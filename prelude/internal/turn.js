// Who runs: the context of the code that runs now, and how code that has waited comes back to its own.
//
// A context stands for a line of work: an event that came in, or a section of it (gate.js), with the
// object it runs in, what caused it, and the values of AsyncLocalStorage. The engine has no hook for
// `await`, so scripts and this prelude are rewritten (tools/bundler/turns.mjs): an async function
// remembers the context it was called in and, wherever it resumes, goes back to it. Callbacks of
// then(), timers and natives are bound where they are given.
//
// C knows of all this what stands in the clock (src/js/vm.h): the numbers of the object, the trace
// and the request for which code runs. `mark` is the number of the context.
//
// T1  mark[0] is 0 when C begins a turn, and else the number of a context whose numbers are in the
//     clock. The global whose context it is has it in turns.c.
// T2  A context of an object that was reset is never gone back to: its code ends where it waits, for
//     what it did is undone. If the object was evicted, with nothing under way, what it has left waiting
//     (a loop at module level that serves others, say) goes on for nobody.
// T3  Code goes on in an object only while the input gate is open to its context (gate.js).
// T4  Scripts see `turns`, the mark, and contexts, but not what is in a context: whatever they do to
//     them, only their own code runs for another of their own, and natives name their objects
//     themselves.
// T5  Functions of the engine that settle a promise are nobody's code: they are called whatever has become
//     of the context in which they were given.
import { Clock } from "../../src/bindings/border.ts";
import { native, options } from "./native.js";

const clock = native.clock();
const { mark } = native.turns; // made where the prelude begins: its own code is rewritten too
/** What an invocation may do: open connections, write data points (AE-2). */
const SUBREQUESTS_MAX = options.subrequests ?? Infinity;
const POINTS_MAX = 250;
const { then } = Promise.prototype;
const PromisePrototype = Promise.prototype;
const { getPrototypeOf } = Object;
const { apply } = Reflect;

let spendSubrequest, spendPoint, enter, closed, frameOf, objectOf, levelOf, withLevel, withFrame, make;

class Context {
  n = ++clock[Clock.LAST_CONTEXT];
  #object;
  #trace;
  #high;
  #low;
  #hops;
  #event;
  #level; // of the gate (gate.js); null: there is no object
  #frame; // of AsyncLocalStorage: a Map that is never changed, or undefined
  #gone = false;
  #root; // the context of the whole event: it has what was spent
  #subrequests = 0;
  #points = 0;
  constructor(object, trace, high, low, hops, event, level, frame, root = null) {
    this.#root = root ?? this;
    this.#object = object;
    this.#trace = trace;
    this.#high = high;
    this.#low = low;
    this.#hops = hops;
    this.#event = event;
    this.#level = level;
    this.#frame = frame;
  }
  static {
    /** The context of a turn that C has begun, or of nobody if it was another global's. */
    make = () => {
      if (mark[0] !== 0) {
        const context = new Context(0, 0, 0, 0, 0, 0, null, undefined);
        enter(context);
        return context;
      }
      const object = clock[Clock.OBJECT];
      const context = new Context(object, clock[Clock.TRACE], clock[Clock.REQUEST_HIGH], clock[Clock.REQUEST_LOW], clock[Clock.HOPS], clock[Clock.EVENT], object === 0 ? null : rootLevel(object), undefined);
      mark[0] = context.n;
      return (turns.c = context);
    };
    /** The same at another level of an object, which may be another one, or with another frame. */
    withLevel = (context, level, object = context.#object) =>
      new Context(object, context.#trace, context.#high, context.#low, context.#hops, context.#event, level, context.#frame, context.#root);
    withFrame = (context, frame) =>
      new Context(context.#object, context.#trace, context.#high, context.#low, context.#hops, context.#event, context.#level, frame, context.#root);
    frameOf = (context) => context.#frame;
    spendSubrequest = (context) => ++context.#root.#subrequests <= SUBREQUESTS_MAX;
    spendPoint = (context) => ++context.#root.#points <= POINTS_MAX;
    objectOf = (context) => context.#object;
    levelOf = (context) => {
      let level = context.#level;
      while (level !== null && level.ended) level = level.parent;
      return (context.#level = level);
    };
    closed = (context) => {
      let level = context.#level;
      if (level === null) return false;
      if (level.ended) level = levelOf(context);
      return level.active !== null;
    };
    /** Code of the context goes on. False: its object was reset (T2). */
    enter = (context) => {
      if (context.#gone) return false;
      const object = clock[Clock.OBJECT], trace = clock[Clock.TRACE];
      if (context.#object !== object || context.#trace !== trace) {
        clock[Clock.OBJECT] = context.#object;
        clock[Clock.TRACE] = context.#trace;
        if (!native.turnSwitch()) {
          clock[Clock.OBJECT] = object;
          clock[Clock.TRACE] = trace;
          let root = context.#level;
          while (root.parent !== null) root = root.parent;
          context.#gone = !root.evicted;
          if (context.#gone) return false;
          context.#object = context.#trace = 0;
          context.#level = null;
          return enter(context);
        }
      }
      clock[Clock.REQUEST_HIGH] = context.#high;
      clock[Clock.REQUEST_LOW] = context.#low;
      clock[Clock.HOPS] = context.#hops;
      clock[Clock.EVENT] = context.#event;
      mark[0] = context.n;
      turns.c = context;
      return true;
    };
  }
}

let rootLevel, wait; // gate.js sets them
export function setGate(parts) {
  ({ rootLevel, wait } = parts);
}

/** The context of the code that runs now. */
export const here = () => (mark[0] === turns.c.n ? turns.c : make());
/** The same, if there is one already. */
const known = () => (mark[0] === turns.c.n ? turns.c : null);
export { closed, enter, levelOf, objectOf, withLevel };

/** Goes back to a context. False: not now, open() says when. */
function back(context) {
  return !closed(context) && enter(context);
}

/** A promise of the moment at which the context has been entered. */
function open(context) {
  return new Promise((resolve) => {
    if (closed(context)) wait(context, resolve);
    // Else its object is gone: never (T2).
  });
}

/** What a promise of the prelude that is no plain one has under this name: the one that it stands for. */
export const INNER = Symbol("inner promise");

/** What is awaited: a thenable that is no promise gets its call of then() in the context of now. */
function thenable(value) {
  if (typeof value === "object") {
    if (value === null || getPrototypeOf(value) === PromisePrototype) return value;
  } else if (typeof value === "function") {
    const inner = value[INNER];
    if (inner !== undefined) return inner;
  } else {
    return value;
  }
  return foreign(value);
}

function foreign(value) {
  const method = value.then;
  if (typeof method !== "function") return value;
  const context = here();
  return { then: (resolve, reject) => run(context, () => apply(method, value, [resolve, reject])) };
}

/** Calls `callback` in the context, now or once it may. For what is called from nobody's code. */
function run(context, callback) {
  if (mark[0] === context.n || back(context)) return callback();
  return then.call(open(context), callback);
}

/** What rewritten code uses (tools/bundler/turns.mjs). `c`: the context that was entered last. */
export const turns = Object.assign(native.turns, { c: new Context(0, 0, 0, 0, 0, 0, null, undefined), make, back, open, thenable });

/** Promise.prototype.then() without a context: for callbacks that enter one themselves. */
export const afterwards = (promise, onFulfilled, onRejected) => then.call(promise, onFulfilled, onRejected);

/**
 * A promise of what a script has given, for whoever decides by its end: `then` is looked up once, and it is settled once,
 * whatever the script's own `then` does and however often it calls back.
 */
export const promiseOf = (value) => new Promise((resolve) => { resolve(value); });

/** For such a callback: the context is entered, whether the gate is open to it or not. */
export function resume(context) {
  if (mark[0] !== context.n) enter(context);
}

/** Whether it is a function of the engine that only settles a promise. */
const settles = (callback) => callback.name === "" && apply(toString, callback, []) === SETTLES;
const { toString } = Function.prototype;
let SETTLES;
new Promise((resolve) => { SETTLES = apply(toString, resolve, []); });

// T5: the engine calls then() itself, for what a promise is resolved with, while anybody's code runs; the
// context is then not that of whoever waits, and must not keep it from going on.
function bound(callback, context) {
  if (typeof callback !== "function") return callback;
  return (value) => (mark[0] === context.n || back(context) || settles(callback) ? callback(value) : then.call(open(context), () => callback(value)));
}

const { finally: whenSettled } = PromisePrototype;
const methods = {
  then(onFulfilled, onRejected) {
    const context = here();
    return then.call(this, bound(onFulfilled, context), bound(onRejected, context));
  },
  // Bound itself: what the engine gives to then() for it looks like what settles a promise.
  finally(onFinally) {
    return whenSettled.call(this, bound(onFinally, here()));
  },
};
for (const name of ["then", "finally"]) Object.defineProperty(PromisePrototype, name, { value: methods[name] });

/**
 * `callback` for something that happens later: it runs in the context of now, and waits while the
 * gate is closed to it.
 */
export function gated(callback) {
  const context = here();
  return (a, b, c, d) => {
    if (mark[0] === context.n || back(context)) callback(a, b, c, d);
    else if (closed(context)) wait(context, () => callback(a, b, c, d));
  };
}

/** The level of the code that runs now; null: there is no object. */
export const currentLevel = () => levelOf(here());

/** Calls `callback` at a level of the object whose turn it is, at once or when the gate is open to it. */
export function runAt(level, callback) {
  if (level === null) return callback();
  const context = withLevel(here(), level);
  if (back(context)) callback();
  else if (closed(context)) wait(context, callback);
}

/** fetch(), connect() or new WebSocket(): throws if the invocation has done that too often. */
export function takeSubrequest() {
  if (!spendSubrequest(here())) throw new Error("Too many subrequests.");
}

/** The same for data points of Analytics Engine. */
export function takePoint() {
  if (!spendPoint(here())) throw new Error("Analytics Engine write limit exceeded.");
}

/** The number of the object whose code runs, or 0. */
/**
 * Whose inputs and outputs code works with that runs now: minus the number of its object, or that of the worker's event; 0: nobody's.
 * Calls of what an event has lent are events of their own, but that one's (lentBy).
 */
export function currentOwner() {
  const object = clock[Clock.OBJECT];
  if (object !== 0) return -object;
  const event = clock[Clock.EVENT];
  if (event <= lendersForgotten) return 0; // it may have been another's
  return lenders.size === 0 ? event : lenders.get(event) ?? event;
}
const lenders = new Map(); // events -> whose they are
const LENDERS_MAX = 4096;
let lendersForgotten = 0;

/** The event that runs now calls what `owner` has lent. */
export function lentBy(owner) {
  const event = clock[Clock.EVENT];
  if (event === 0 || owner === event || clock[Clock.OBJECT] !== 0) return;
  if (lenders.size >= LENDERS_MAX) {
    const [oldest] = lenders.keys();
    lenders.delete(oldest);
    if (oldest > lendersForgotten) lendersForgotten = oldest;
  }
  lenders.set(event, owner);
}

export const currentObject = () => clock[Clock.OBJECT];

/** The number of the trace that it adds to (trace.js), or 0: nobody watches. */
export const currentTrace = () => clock[Clock.TRACE];

/** When the turn began, in milliseconds. */
export const turnTime = () => clock[Clock.TIME];

/**
 * The output gate (DO-TX-5): undefined if what the object whose code runs has written is durable,
 * or there is no object; else a promise of that moment. It never settles if the object is reset.
 */
export function outputGate() {
  const object = clock[Clock.OBJECT];
  if ((object === 0 && clock[Clock.STRAY] === 0) || native.outputOpen(object)) return undefined;
  return new Promise((resolve, reject) => {
    native.storageSync(object, false, gated((failure) => (failure === undefined ? resolve() : reject(new Error(failure)))));
  });
}

/** Of AsyncLocalStorage, for node:async_hooks. */
export const frames = {
  current() {
    const context = known();
    return context === null ? undefined : frameOf(context);
  },
  /** Calls `callback` with another frame, which its caller does not see. */
  run(frame, callback, self, args) {
    const before = here();
    if (frameOf(before) === frame) return apply(callback, self, args);
    enter(withFrame(before, frame));
    try {
      return apply(callback, self, args);
    } finally {
      enter(before);
    }
  },
};
