// Date and the clock behind it.
//
// As on the platform, time stands still while a script computes and moves on with I/O: Date.now()
// is the wall clock at the start of the turn (one entry into JavaScript until its microtasks are
// drained). C writes it to shared memory when a turn begins, so reading it costs a memory access,
// less than the engine's own Date.now().
import { native } from "../internal/native.js";

/** [0] milliseconds since 1970 at the start of the turn. */
const clock = native.clock();
const EngineDate = Date;

/** Milliseconds since 1970, as scripts are told. */
export const now = () => clock[0];

/** A date and a time as ISO 8601 writes them, with a small t or z: the engine wants them large. */
const SMALL_LETTERS = /^([+-]\d\d)?\d{4}-\d\d-\d\d(t|T(?=.*z$))\d\d:\d\d(:\d\d([.,]\d+)?)?(z|[+-]\d\d:?\d\d)?$/i;
const engineParse = EngineDate.parse;

function parse(text) {
  const at = engineParse(text);
  if (at === at || typeof text !== "string" || !SMALL_LETTERS.test(text)) return at;
  return engineParse(text.toUpperCase());
}

function makeDate() {
  const construct = Reflect.construct;
  // A function, not a class: Date() without `new` gives a string.
  function Date(year, month, day, hours, minutes, seconds, milliseconds) {
    if (new.target === undefined) return new EngineDate(clock[0]).toString();
    const count = arguments.length;
    if (new.target === Date) {
      if (count === 0) return new EngineDate(clock[0]);
      if (count === 1) return new EngineDate(typeof year === "string" ? parse(year) : year);
      return new EngineDate(...arguments);
    }
    const values = count === 0 ? [clock[0]] : count === 1 && typeof year === "string" ? [parse(year)] : arguments;
    return construct(EngineDate, values, new.target);
  }
  const hidden = { writable: true, enumerable: false, configurable: true };
  Object.defineProperties(Date, {
    name: { value: "Date", configurable: true },
    prototype: { value: EngineDate.prototype, writable: false, enumerable: false, configurable: false },
    now: { value: { now: () => clock[0] }.now, ...hidden },
    parse: { value: { parse: (string) => parse(`${string}`) }.parse, ...hidden },
    UTC: { value: EngineDate.UTC, ...hidden },
  });
  Object.defineProperty(EngineDate.prototype, "constructor", { value: Date, ...hidden });
  return Date;
}

export function installTime() {
  Object.defineProperty(globalThis, "Date", { value: makeDate(), writable: true, enumerable: false, configurable: true });
}
