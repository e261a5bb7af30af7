// scheduler.wait(milliseconds, { signal }): a timer as a promise.
import { finishInterface } from "../internal/interface.js";
import { fieldError, illegalConstructor, illegalInvocation, isDictionary, isObject, parameterError } from "../internal/webidl.js";
import { forgetAborted, isAbortSignal, whenAborted } from "./abort.js";
import { clearTimeout, setTimeout } from "./timers.js";

const INTERNAL = Symbol("internal");
let isScheduler;

export class Scheduler {
  #brand = true;
  constructor(token) {
    if (token !== INTERNAL) throw illegalConstructor();
  }
  static {
    isScheduler = (value) => isObject(value) && #brand in value;
  }
  async wait(delay, options = undefined) {
    if (!isScheduler(this)) throw illegalInvocation();
    if (!isDictionary(options)) throw parameterError("wait", "Scheduler", 2, "WaitOptions");
    const signal = options?.signal;
    if (signal !== undefined && signal !== null && !isAbortSignal(signal)) throw fieldError("signal", "WaitOptions", "AbortSignal");
    signal?.throwIfAborted();
    await new Promise((resolve, reject) => {
      if (!signal) {
        setTimeout(resolve, delay);
        return;
      }
      const stop = (reason) => {
        clearTimeout(id);
        reject(reason);
      };
      const id = setTimeout(() => {
        forgetAborted(signal, stop);
        resolve();
      }, delay);
      whenAborted(signal, stop);
    });
  }
}
finishInterface(Scheduler);
export const scheduler = new Scheduler(INTERNAL);
