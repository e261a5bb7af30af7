// setTimeout, setInterval and their clear functions; queueMicrotask.
import { gated } from "../internal/gate.js";
import { native } from "../internal/native.js";
import { reportException } from "../internal/report.js";
import { needsEvent } from "../internal/startup.js";

let lastId = 0;

/** Wraps every callback that is deferred here: how node:async_hooks keeps its context. */
let capture = (callback) => callback;
export function setCapture(wrap) {
  capture = wrap;
}

function start(callback, delay, repeats, args) {
  if (typeof callback !== "function") {
    throw new TypeError(`The first argument of ${repeats ? "setInterval" : "setTimeout"} must be a function.`);
  }
  needsEvent();
  const id = ++lastId;
  const run = capture(callback);
  let waiting = false; // a tick of an interval waits for the gate: one is enough
  const tick = () => {
    waiting = false;
    try {
      run(...args);
    } catch (error) {
      reportException(error);
    }
  };
  const deferrable = gated(tick);
  native.timerStart(id, +delay || 0, repeats, deferrable === tick ? tick : () => {
    if (waiting) return;
    waiting = true;
    deferrable();
  });
  return id;
}

export function setTimeout(callback, delay, ...args) {
  return start(callback, delay, false, args);
}
export function setInterval(callback, delay, ...args) {
  return start(callback, delay, true, args);
}
export function clearTimeout(id) {
  if (id !== undefined && id !== null) native.timerStop(+id || 0);
}
export function clearInterval(id) {
  clearTimeout(id);
}

const resolved = Promise.resolve();
const { then } = Promise.prototype;

export function queueMicrotask(callback) {
  if (typeof callback !== "function") {
    throw new TypeError("Failed to execute 'queueMicrotask' on 'ServiceWorkerGlobalScope': parameter 1 is not of type 'Function'.");
  }
  const run = capture(callback);
  then.call(resolved, () => {
    try {
      run();
    } catch (error) {
      reportException(error);
    }
  });
}
