// The context of an event: what handlers receive as `ctx`.
import { currentOwner, currentTrace, promiseOf } from "../internal/turn.js";
import { compatibilityFlags, native } from "../internal/native.js";
import { describeError } from "../internal/report.js";
import { finishInterface } from "../internal/interface.js";
import trace from "part:../internal/trace.js";
import extra from "part:./service/extra.js";
import cache from "part:../web/cache.js";
import tracing from "part:./tracing.js";

const token = Symbol("construct");
let exportsOf = () => ({}); // modules.js sets it
export function setExportsOf(find) {
  exportsOf = find;
}
/** The script's own exports as bindings: `ctx.exports`. */
export const loopbackExports = () => exportsOf();

/** `ctx.cache`, and what `cloudflare:workers` exports as `cache`. */
const purge = async (options) => cache().purge(options);
export const cacheContext = Object.freeze({ purge, invalidate: async (options) => purge(options) });

/** @returns {ExecutionContext} */
export function newContext(handle, props) {
  return new ExecutionContext(token, handle, props);
}

/**
 * The flag nonclass_entrypoint_reuses_ctx_across_invocations: handlers that are no class's all get one `ctx`, without
 * props; what they ask of it is the current event's.
 */
const REUSES = compatibilityFlags.has("nonclass_entrypoint_reuses_ctx_across_invocations");
const living = new Map(); // by event, with that flag
let shared = null;
const current = () => {
  const context = living.get(currentOwner());
  if (context === undefined) throw new Error("There is no event whose context this could be.");
  return context;
};
const makeShared = () => Object.create(ExecutionContext.prototype, {
  waitUntil: { value: (promise) => current().waitUntil(promise) },
  passThroughOnException: { value() {} },
  abort: { value: (reason) => current().abort(reason) },
  props: { value: {}, writable: true, enumerable: true, configurable: true },
});

/** The `ctx` of handlers that are no class's. */
export function handlersContext(context, handle) {
  if (!REUSES) return context;
  living.set(handle, context);
  return (shared ??= makeShared());
}

export class ExecutionContext {
  #handle;
  #pending = 0;
  #answered = false;
  #props;
  #lifetime = null; // of the stubs it was given; null: of none
  #failure = null; // [reason] of the first waitUntil() promise that was rejected
  #settled = null; // [resolve, reject] of whoever waits for all of them

  constructor(key, handle, props) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#handle = handle;
    this.#props = props;
  }

  /** Keeps the event alive until `promise` has settled, 30 s after the response at most. */
  waitUntil(promise) {
    this.#pending++;
    const settled = () => {
      if (--this.#pending !== 0) return;
      if (this.#settled !== null) this.#settle();
      if (this.#answered) this.#done();
    };
    // Anything may be given; what is not a promise is done already.
    promiseOf(promise).then(settled, (error) => {
      if (currentTrace() !== 0) trace().noteException(error);
      native.log(4, `A waitUntil() promise was rejected: ${describeError(error)}`);
      this.#failure ??= [error];
      settled();
    });
  }

  passThroughOnException() {
    // There is no origin behind a self-hosted worker to pass the request through to: the exception
    // is answered with a 500 all the same.
  }

  /** The event fails at once; what it still does goes nowhere. */
  abort(reason) {
    const message = reason === undefined ? "The event was aborted by its handler." : String(reason?.message ?? reason);
    native.eventFail(this.#handle, message, false, "");
    this.#lifetime?.end();
    throw reason instanceof Error ? reason : new Error(message);
  }

  get props() {
    return (this.#props ??= {});
  }
  set props(value) {
    this.#props = value;
  }

  get exports() {
    return exportsOf();
  }

  mapVirtualHost(fetcher, port) {
    return extra().mapVirtualHost(fetcher, port);
  }

  get cache() {
    return cacheContext;
  }

  get tracing() {
    return tracing().tracing;
  }

  #settle() {
    const [resolve, reject] = this.#settled;
    this.#settled = null;
    if (this.#failure === null) resolve();
    else reject(this.#failure[0]);
  }

  #done() {
    if (REUSES) living.delete(this.#handle);
    native.eventDone(this.#handle);
    this.#lifetime?.release();
  }

  /** The response has been handed over: the event ends when nothing is waited for. */
  static answered(context) {
    context.#answered = true;
    if (context.#pending === 0) context.#done();
  }
  /** A promise of the end of every waitUntil() promise, rejected like the first of them that was. */
  static settled(context) {
    return new Promise((resolve, reject) => {
      context.#settled = [resolve, reject];
      if (context.#pending === 0) context.#settle();
    });
  }
  /** `lifetime` (object/rpc.js) is released when the event is over, and ends if it is aborted. */
  static bind(context, lifetime) {
    context.#lifetime = lifetime;
  }
}
export const contextAnswered = ExecutionContext.answered;
export const bindLifetime = ExecutionContext.bind;
export const contextSettled = ExecutionContext.settled;
delete ExecutionContext.answered;
delete ExecutionContext.settled;
delete ExecutionContext.bind;
finishInterface(ExecutionContext);
