// What happens to an exception that nobody caught.
//
// It becomes an "error" event on the global object, and a rejection an "unhandledrejection"
// event; if no listener prevents the default, it is logged.
import { currentTrace } from "./turn.js";
import { native } from "./native.js";
import inspection from "part:./inspect.js";
import trace from "part:./trace.js";

let announce = null;

/** web/global-scope.js gives announce(error): true if a listener took care of it. */
export function setAnnounce(function_) {
  announce = function_;
}

export function describeError(error) {
  return inspection().inspect(error);
}

let reporting = false;

export function reportException(error) {
  // An exception in a listener for exceptions is logged, or this would never end.
  if (!reporting && announce !== null) {
    reporting = true;
    let handled;
    try {
      handled = announce(error);
    } finally {
      reporting = false;
    }
    if (handled) return;
  }
  if (currentTrace() !== 0) trace().noteException(error);
  native.log(4, `Uncaught ${describeError(error)}`);
}
