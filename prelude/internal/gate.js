// The input gate of objects, as far as it concerns what they wait for.
//
// While an object is in a critical section (blockConcurrencyWhile, a transaction) no new event comes
// in; src/object/ sees to that. But events that are under way have started timers, calls and
// fetches, and what those bring must wait as well: a completion goes on only if its operation was
// started after the innermost section was entered, that is by the section itself.
//
// Operations and sections of an object are numbered together.
// I1  A completion whose number is below that of the innermost section is put aside; it runs, in
//     order of arrival, when every section above its number has ended.
import { native } from "./native.js";
import { reportException } from "./report.js";

/** C writes: [0] the time (web/time.js), [1] the number of the object whose turn it is, or 0, [2] that of its trace, or 0. */
const turn = native.clock();

/** The number of the object whose turn it is, or 0. */
export const currentObject = () => turn[1];

/** The number of the trace that the turn adds to (trace.js), or 0: nobody watches. */
export const currentTrace = () => turn[2];

/** When the turn began, in milliseconds. */
export const turnTime = () => turn[0];

class Gate {
  last = 0; // number given last
  sections = []; // numbers of those under way, innermost last
  deferred = []; // completions put aside: [number, function]
}
const gates = new Map(); // number of the object -> Gate

function gateOf(object) {
  let gate = gates.get(object);
  if (gate === undefined) gates.set(object, (gate = new Gate()));
  return gate;
}

/** `callback` for a completion: it waits while the gate of the object that asks now is closed to it. */
export function gated(callback) {
  const object = turn[1];
  if (object === 0) return callback;
  const gate = gateOf(object);
  const number = ++gate.last;
  return (a, b, c, d) => {
    if (gate.sections.length === 0 || number > gate.sections.at(-1)) callback(a, b, c, d);
    else gate.deferred.push([number, () => callback(a, b, c, d)]);
  };
}

/** A section begins. Returns its number. */
export function enterSection(object) {
  native.objectLock(object);
  const gate = gateOf(object);
  gate.sections.push(++gate.last);
  return gate.last;
}

export function leaveSection(object, number) {
  const gate = gateOf(object);
  gate.sections = gate.sections.filter((each) => each !== number);
  native.objectUnlock(object);
  // After what waited for the section itself.
  if (gate.deferred.length > 0) Promise.resolve().then(() => resume(gate));
}

function resume(gate) {
  const waiting = gate.deferred;
  gate.deferred = [];
  for (const entry of waiting) {
    if (gate.sections.length > 0 && entry[0] < gate.sections.at(-1)) {
      gate.deferred.push(entry);
      continue;
    }
    try {
      entry[1]();
    } catch (error) {
      reportException(error);
    }
  }
}

/** The object has left memory. */
export function forgetGate(object) {
  gates.delete(object);
}

/**
 * The output gate (DO-TX-5): undefined if what the object whose turn it is has written is durable,
 * or there is no object; else a promise of that moment. It never settles if the object is reset.
 */
export function outputGate() {
  const object = turn[1];
  if (object === 0 || native.outputOpen(object)) return undefined;
  return new Promise((resolve, reject) => {
    native.storageSync(object, false, gated((failure) => (failure === undefined ? resolve() : reject(new Error(failure)))));
  });
}
