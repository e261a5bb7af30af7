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

function makeDate() {
  const construct = Reflect.construct;
  // A function, not a class: Date() without `new` gives a string.
  function Date(year, month, day, hours, minutes, seconds, milliseconds) {
    if (new.target === undefined) return new EngineDate(clock[0]).toString();
    const count = arguments.length;
    if (new.target === Date) {
      if (count === 0) return new EngineDate(clock[0]);
      if (count === 1) return new EngineDate(year);
      return new EngineDate(...arguments);
    }
    return construct(EngineDate, count === 0 ? [clock[0]] : arguments, new.target);
  }
  const hidden = { writable: true, enumerable: false, configurable: true };
  Object.defineProperties(Date, {
    name: { value: "Date", configurable: true },
    prototype: { value: EngineDate.prototype, writable: false, enumerable: false, configurable: false },
    now: { value: { now: () => clock[0] }.now, ...hidden },
    parse: { value: EngineDate.parse, ...hidden },
    UTC: { value: EngineDate.UTC, ...hidden },
  });
  Object.defineProperty(EngineDate.prototype, "constructor", { value: Date, ...hidden });
  return Date;
}

export function installTime() {
  Object.defineProperty(globalThis, "Date", { value: makeDate(), writable: true, enumerable: false, configurable: true });
}
