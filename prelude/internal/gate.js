// The input gate of objects, as far as it concerns code that has waited.
//
// While an object is in a critical section (blockConcurrencyWhile, a transaction) no new event comes
// in; src/object/ sees to that. But events that are under way wait for promises, and must not go on
// either: only the section's own code does. Sections are levels, the innermost of which is open:
//
//     root level of the object ── active section ── its active section ── ...
//
// Code belongs to the level that its context names: events to the root, the callback of a section to
// the section.
//
// I1  Code goes on only while its level has no active section. What cannot goes on is put aside, and goes
//     on in order of arrival, each in a turn of its own, when it may.
// I2  A level has one active section at a time: one that is begun while another is active, or while
//     something waits for the level, waits in the same line.
// I3  When a section has ended, its level is the one above, for code of it that goes on, and for a
//     section of its own that has not ended.
// I4  The sections of an object that leaves memory fail: other code may wait for them.
// I5  Back-pressure (O8 of src/object/object.h) is a section of the innermost level without code of its own: while
//     it is there nothing of the object goes on.
import { native } from "./native.js";
import { reportException } from "./report.js";
import { afterwards, closed, enter, here, levelOf, objectOf, setGate, withLevel } from "./turn.js";

class Level {
  active = null; // a level: the section under way
  ended = false;
  evicted = false; // of a root: its object has left memory, having done all that it had to
  constructor(parent) {
    this.parent = parent;
  }
}

class Gate {
  root = new Level(null);
  waiting = []; // [context, function], in order
  sections = new Set(); // that have not ended: what fails each (I4)
  press = null; // a level (I5)
}
const gates = new Map(); // number of the object -> Gate

function gateOf(object) {
  let gate = gates.get(object);
  if (gate === undefined) gates.set(object, (gate = new Gate()));
  return gate;
}

/** `callback` is called once code of the context may go on; never, if its object is gone. */
function wait(context, callback) {
  const gate = gates.get(objectOf(context));
  if (gate !== undefined) gate.waiting.push([context, callback]);
}
setGate({ rootLevel: (object) => gateOf(object).root, wait });

/** C calls, in a turn of the object: the first that may goes on (I1). */
export function objectResume(object) {
  const waiting = gates.get(object)?.waiting ?? [];
  const index = waiting.findIndex(([context]) => !closed(context));
  if (index < 0) return;
  const [[context, callback]] = waiting.splice(index, 1);
  if (waiting.length > 0) native.objectKick(object);
  if (!enter(context)) return;
  try {
    callback();
  } catch (error) {
    reportException(error);
  }
}

/** C calls, in a turn of the object: back-pressure begins or ends (I5). */
export function objectPress(object, begins) {
  const gate = gateOf(object);
  if (begins) {
    let level = gate.root;
    while (level.active !== null) level = level.active;
    gate.press = level.active = new Level(level);
    return;
  }
  gate.press.ended = true;
  gate.press.parent.active = null;
  gate.press = null;
  if (gate.waiting.length > 0) native.objectKick(object);
}

/** A context of the object: the one of now, or one of its root level if other code asks. */
function contextIn(object) {
  const context = here();
  return objectOf(context) === object ? context : withLevel(context, gateOf(object).root, object);
}

/**
 * Runs `work`, an async function, as a section of the object: soon, or when those before it have ended. What was written
 * before it is committed by itself, and so is what it wrote if it succeeds: its failure, or that of the code behind it, undoes neither.
 * @returns {Promise<unknown>} of its result
 */
export function runSection(object, work) {
  const context = contextIn(object);
  const section = new Level(null);
  const begin = () => {
    section.parent = levelOf(context);
    section.parent.active = section;
    native.objectLock(object);
  };
  const end = () => {
    section.ended = true;
    section.parent.active = section.active; // I3
    if (section.active !== null) section.active.parent = section.parent;
    native.objectUnlock(object);
    if (gates.get(object)?.waiting.length > 0) native.objectKick(object);
  };
  const { sections } = gateOf(object);
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Error("This instance of the Durable Object has left memory; its input gate cannot be used."));
    sections.add(fail);
    const run = () => {
      if (!enter(withLevel(context, section))) return forgetGate(object, false);
      const over = () => { sections.delete(fail); end(); };
      const failed = (error) => { over(); reject(error); };
      const commit = (then) => (value) => {
        try {
          native.storageCommit(object);
        } catch (error) {
          return failed(error);
        }
        then(value);
      };
      commit(() => afterwards(work(), commit((value) => { over(); resolve(value); }), failed))();
    };
    const level = levelOf(context);
    if (level.active === null && !gateOf(object).waiting.some(([other]) => levelOf(other) === level)) {
      begin();
      // The callback begins when the code that asks has done what it can do now.
      afterwards(Promise.resolve(), run);
    } else {
      wait(context, () => { begin(); run(); });
    }
  });
}

/** The object has left memory: nothing was under way in it (`evicted`), or it was reset (turn.js, T2). */
export function forgetGate(object, evicted) {
  const gate = gates.get(object);
  if (gate === undefined) return;
  gate.root.evicted = evicted;
  gates.delete(object);
  for (const fail of gate.sections) fail(); // I4
}
