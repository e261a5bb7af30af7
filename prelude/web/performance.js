// performance: https://w3c.github.io/hr-time/ and user timing, as the platform has them: the time
// origin is 1970, and the clock is that of Date.now() (see time.js).
import { finishInterface } from "../internal/interface.js";
import { illegalConstructor, illegalInvocation, isDictionary, isObject, parameterError } from "../internal/webidl.js";
import { DOMException } from "./dom-exception.js";
import { EventTarget } from "./events.js";
import { now } from "./time.js";

const INTERNAL = Symbol("internal");
/** Entries that mark() and measure() keep; the oldest go first. */
const ENTRIES_MAX = 10_000;

export let isEntry;
export class PerformanceEntry {
  #name;
  #startTime;
  #duration;
  #detail;
  constructor(token, name, startTime, duration, detail) {
    if (token !== INTERNAL) throw illegalConstructor();
    this.#name = name;
    this.#startTime = startTime;
    this.#duration = duration;
    this.#detail = detail;
  }
  static {
    isEntry = (value) => isObject(value) && #name in value;
  }
  static detail(entry) {
    if (!isEntry(entry)) throw illegalInvocation();
    return entry.#detail;
  }
  get name() {
    if (!isEntry(this)) throw illegalInvocation();
    return this.#name;
  }
  get entryType() {
    if (!isEntry(this)) throw illegalInvocation();
    return this instanceof PerformanceMark ? "mark" : "measure";
  }
  get startTime() {
    if (!isEntry(this)) throw illegalInvocation();
    return this.#startTime;
  }
  get duration() {
    if (!isEntry(this)) throw illegalInvocation();
    return this.#duration;
  }
  toJSON() {
    return { name: this.name, entryType: this.entryType, startTime: this.startTime, duration: this.duration };
  }
}
const withDetail = (json, detail) => (detail === null || detail === undefined ? json : { ...json, detail });
const detailOf = PerformanceEntry.detail;
delete PerformanceEntry.detail;

export class PerformanceMark extends PerformanceEntry {
  constructor(name, init = undefined, startTime = undefined, detail = undefined) {
    if (name === INTERNAL) {
      super(INTERNAL, init, startTime, 0, detail);
      return;
    }
    const { startTime: start, detail: given = null } = init ?? {};
    super(INTERNAL, `${name}`, start === undefined ? now() : +start, 0, given);
  }
  get detail() {
    return detailOf(this);
  }
  toJSON() {
    return withDetail(super.toJSON(), this.detail);
  }
}
export class PerformanceMeasure extends PerformanceEntry {
  get detail() {
    return detailOf(this);
  }
  toJSON() {
    return withDetail(super.toJSON(), this.detail);
  }
}

let isPerformance;
let entriesOf;

export class Performance extends EventTarget {
  #entries = [];
  constructor(token) {
    if (token !== INTERNAL) throw illegalConstructor();
    super();
  }
  static {
    isPerformance = (value) => isObject(value) && #entries in value;
    entriesOf = (value) => {
      if (!isPerformance(value)) throw illegalInvocation();
      return value.#entries;
    };
  }
  #add(entry) {
    const entries = this.#entries;
    if (entries.length >= ENTRIES_MAX) entries.splice(0, ENTRIES_MAX / 10);
    entries.push(entry);
    return entry;
  }
  #remove(type, name) {
    this.#entries = entriesOf(this).filter((e) => e.entryType !== type || (name !== undefined && e.name !== `${name}`));
  }
  /** The time a measure's end is given by: a number, the name of a mark, or nothing. */
  #at(value, fallback) {
    if (value === undefined) return fallback;
    if (typeof value === "number") return value;
    const mark = this.#entries.findLast((e) => e.entryType === "mark" && e.name === `${value}`);
    if (mark === undefined) throw new DOMException(`The mark '${value}' does not exist.`, "SyntaxError");
    return mark.startTime;
  }

  get timeOrigin() {
    entriesOf(this);
    return 0;
  }
  now() {
    entriesOf(this);
    return now();
  }
  mark(name, init = undefined) {
    entriesOf(this);
    if (arguments.length === 0) throw parameterError("mark", "Performance", 1, "string");
    return this.#add(new PerformanceMark(name, init));
  }
  measure(name, start = undefined, end = undefined) {
    entriesOf(this);
    if (arguments.length === 0) throw parameterError("measure", "Performance", 1, "string");
    const given = isObject(start) && isDictionary(start) ? start : { start, end };
    let to = this.#at(given.end, undefined);
    let from = this.#at(given.start, undefined);
    if (to === undefined) to = from !== undefined && given.duration !== undefined ? from + +given.duration : now();
    if (from === undefined) from = given.duration !== undefined ? to - +given.duration : 0;
    return this.#add(new PerformanceMeasure(INTERNAL, `${name}`, from, to - from, given.detail ?? null));
  }
  clearMarks(name = undefined) {
    this.#remove("mark", name);
  }
  clearMeasures(name = undefined) {
    this.#remove("measure", name);
  }
  clearResourceTimings() {
    entriesOf(this);
  }
  getEntries() {
    return entriesOf(this).slice();
  }
  getEntriesByName(name, type = undefined) {
    return entriesOf(this).filter((e) => e.name === `${name}` && (type === undefined || e.entryType === `${type}`));
  }
  getEntriesByType(type) {
    return entriesOf(this).filter((e) => e.entryType === `${type}`);
  }
  toJSON() {
    return { timeOrigin: this.timeOrigin };
  }
}
for (const Class of [PerformanceEntry, PerformanceMark, PerformanceMeasure, Performance]) finishInterface(Class);
for (const f of [Performance, PerformanceEntry, PerformanceMeasure, Performance.prototype.clearMarks, Performance.prototype.clearMeasures]) {
  Object.defineProperty(f, "length", { value: 0, configurable: true });
}

export const performance = new Performance(INTERNAL);
