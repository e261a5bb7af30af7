// setTimeout, setInterval and their clear functions; queueMicrotask.
import { afterwards, gated } from "../internal/turn.js";
import { native } from "../internal/native.js";
import { reportException } from "../internal/report.js";
import { needsEvent } from "../internal/startup.js";

let lastId = 0;

function start(callback, delay, repeats, args) {
  if (typeof callback !== "function") {
    throw new TypeError(`The first argument of ${repeats ? "setInterval" : "setTimeout"} must be a function.`);
  }
  needsEvent();
  const id = ++lastId;
  let waiting = false; // a tick of an interval waits for the gate: one is enough
  const tick = () => {
    waiting = false;
    try {
      callback(...args);
    } catch (error) {
      reportException(error);
    }
  };
  const deferrable = gated(tick);
  native.timerStart(id, +delay || 0, repeats, !repeats ? deferrable : () => {
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

export function queueMicrotask(callback) {
  if (typeof callback !== "function") {
    throw new TypeError("Failed to execute 'queueMicrotask' on 'ServiceWorkerGlobalScope': parameter 1 is not of type 'function'.");
  }
  afterwards(resolved, gated(() => {
    try {
      callback();
    } catch (error) {
      reportException(error);
    }
  }));
}
