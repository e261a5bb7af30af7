// Calls of a service: a promise of what src/bindings/service_call.c answers.

import { Code, Fault } from "../../../src/bindings/border.ts";
import { noteFault } from "../../internal/fault.js";
import { gated } from "../../internal/turn.js";
import { needsEvent } from "../../internal/startup.js";

/**
 * @param {(callback: (value?: unknown, failure?: string, code?: number) => void) => void} start gives the callback to a native function
 * @param {(failure: string, code: number) => Error} [makeError]
 */
export function callService(start, makeError = (failure) => new Error(failure)) {
  return new Promise((resolve, reject) => {
    needsEvent();
    start(gated((value, failure, code) => {
      if (failure === undefined) resolve(value);
      else reject(noteFault(makeError(failure, code), code === Code.CLOSED || code === Code.OVERLOADED ? Fault.AWAY : 0, failure));
    }));
  });
}
