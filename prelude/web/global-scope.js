// The global object as an event target: ServiceWorkerGlobalScope and what hangs on it.
import { expose, exposeEnumerable, finishInterface } from "../internal/interface.js";
import { native, options } from "../internal/native.js";
import { describeError, setAnnounce } from "../internal/report.js";
import { placeOf } from "../internal/stacks.js";
import { illegalConstructor } from "../internal/webidl.js";
import { ErrorEvent, EventTarget, PromiseRejectionEvent, fire, hasListeners } from "./events.js";

class WorkerGlobalScope extends EventTarget {
  constructor() {
    throw illegalConstructor();
    super(); // eslint-disable-line no-unreachable
  }
}
class ServiceWorkerGlobalScope extends WorkerGlobalScope {}
finishInterface(WorkerGlobalScope);
finishInterface(ServiceWorkerGlobalScope);

/** True if a listener has taken care of the exception. */
function announceError(error) {
  if (!hasListeners(globalThis, "error")) return false;
  const message = error instanceof Error ? `Uncaught ${error.name}: ${error.message}` : `Uncaught ${describeError(error)}`;
  const [filename, lineno, colno] = placeOf(error);
  return !fire(globalThis, new ErrorEvent("error", { cancelable: true, message, filename, lineno, colno, error }));
}

function onRejection(promise, reason) {
  if (hasListeners(globalThis, "unhandledrejection")) {
    const event = new PromiseRejectionEvent("unhandledrejection", { cancelable: true, promise, reason });
    if (!fire(globalThis, event)) return;
  }
  native.log(4, `Uncaught (in promise) ${describeError(reason)}`);
}

/** Reports an exception as if nobody had caught it. */
export function reportError(error) {
  if (arguments.length === 0) {
    throw new TypeError("Failed to execute 'reportError' on 'ServiceWorkerGlobalScope': parameter 1 is not of type 'Value'.");
  }
  if (!announceError(error)) native.log(4, `Uncaught ${describeError(error)}`);
}

export function installGlobalScope() {
  // The engine's global object keeps its prototype, so what it would inherit is its own.
  for (const name of ["addEventListener", "removeEventListener", "dispatchEvent"]) {
    exposeEnumerable(name, EventTarget.prototype[name]);
  }
  Object.defineProperty(globalThis, Symbol.toStringTag, { value: "ServiceWorkerGlobalScope", configurable: true });
  expose("WorkerGlobalScope", WorkerGlobalScope);
  expose("ServiceWorkerGlobalScope", ServiceWorkerGlobalScope);
  exposeEnumerable("self", globalThis);
  exposeEnumerable("reportError", reportError);
  Object.defineProperty(globalThis, "origin", { value: "null", writable: false, enumerable: true, configurable: true });
  exposeEnumerable("Cloudflare", cloudflare);
  setAnnounce(announceError);
  native.onUnhandledRejection(onRejection);
}

class Cloudflare {
  compatibilityFlags = Object.freeze(Object.assign(Object.create(null), options.compatibilityFlags));
}
finishInterface(Cloudflare);
const cloudflare = Object.freeze(new Cloudflare());
