// node:perf_hooks: the global performance, with what Node.js has besides.
import { notImplemented, validateFunction } from "./internal/errors.js";

const { performance } = globalThis;
const Performance = performance.constructor;
const { PerformanceEntry = class PerformanceEntry {}, PerformanceMark = class PerformanceMark {}, PerformanceMeasure = class PerformanceMeasure {} } = globalThis;

const constants = {
  NODE_PERFORMANCE_GC_MAJOR: 4, NODE_PERFORMANCE_GC_MINOR: 1, NODE_PERFORMANCE_GC_INCREMENTAL: 8, NODE_PERFORMANCE_GC_WEAKCB: 16,
  NODE_PERFORMANCE_GC_FLAGS_NO: 0, NODE_PERFORMANCE_GC_FLAGS_CONSTRUCT_RETAINED: 2, NODE_PERFORMANCE_GC_FLAGS_FORCED: 4,
  NODE_PERFORMANCE_GC_FLAGS_SYNCHRONOUS_PHANTOM_PROCESSING: 8, NODE_PERFORMANCE_GC_FLAGS_ALL_AVAILABLE_GARBAGE: 16,
  NODE_PERFORMANCE_GC_FLAGS_ALL_EXTERNAL_MEMORY: 32, NODE_PERFORMANCE_GC_FLAGS_SCHEDULE_IDLE: 64,
  NODE_PERFORMANCE_ENTRY_TYPE_GC: 0, NODE_PERFORMANCE_ENTRY_TYPE_HTTP: 1, NODE_PERFORMANCE_ENTRY_TYPE_HTTP2: 2, NODE_PERFORMANCE_ENTRY_TYPE_NET: 3, NODE_PERFORMANCE_ENTRY_TYPE_DNS: 4,
  NODE_PERFORMANCE_MILESTONE_TIME_ORIGIN_TIMESTAMP: 0, NODE_PERFORMANCE_MILESTONE_TIME_ORIGIN: 1, NODE_PERFORMANCE_MILESTONE_ENVIRONMENT: 2,
  NODE_PERFORMANCE_MILESTONE_NODE_START: 3, NODE_PERFORMANCE_MILESTONE_V8_START: 4, NODE_PERFORMANCE_MILESTONE_LOOP_START: 5,
  NODE_PERFORMANCE_MILESTONE_LOOP_EXIT: 6, NODE_PERFORMANCE_MILESTONE_BOOTSTRAP_COMPLETE: 7,
};

function eventLoopUtilization() {
  return { idle: 0, active: 0, utilization: 0 };
}
function timerify(fn) {
  validateFunction(fn, "fn");
  return fn;
}
/** What happened is told to nobody; the lists are there. */
class EventCounts {
  get size() { return 0; }
  entries() { return [][Symbol.iterator](); }
  get() { return undefined; }
  has() { return false; }
  keys() { return [][Symbol.iterator](); }
  values() { return [][Symbol.iterator](); }
  forEach() {}
  [Symbol.iterator]() { return this.entries(); }
}
const eventCounts = new EventCounts();

class PerformanceResourceTiming {
  constructor() { throw new TypeError("Illegal constructor"); }
}
class PerformanceObserverEntryList {
  constructor() { throw new TypeError("Illegal constructor"); }
  getEntries() { return []; }
  getEntriesByType(_type) { return []; }
  getEntriesByName(_name, _type) { return []; }
}
class PerformanceObserver {
  static get supportedEntryTypes() { return ["measure", "mark"]; }
  constructor(callback) {
    validateFunction(callback, "callback");
  }
  observe(_options) {}
  disconnect() {}
  takeRecords() { return []; }
}

class PerformanceNodeTiming {
  constructor() {
    Object.assign(this, {
      name: "node", entryType: "node", startTime: 0, duration: 0, nodeStart: 0, v8Start: 0, bootstrapComplete: 0, environment: 0, loopStart: 0, loopExit: 0, idleTime: 0,
      uvMetricsInfo: { loopCount: 0, events: 0, eventsWaiting: 0 },
    });
  }
  toJSON() {
    return { ...this };
  }
}
const nodeTiming = new PerformanceNodeTiming();
const additions = {
  eventCounts: { get: () => eventCounts, enumerable: true },
  nodeTiming: { get: () => nodeTiming, enumerable: true },
  eventLoopUtilization: { value: eventLoopUtilization, writable: true, enumerable: true },
  markResourceTiming: { value: function markResourceTiming() {}, writable: true, enumerable: true },
  timerify: { value: timerify, writable: true, enumerable: true },
  setResourceTimingBufferSize: { value: function setResourceTimingBufferSize(_size) {}, writable: true, enumerable: true },
};
for (const [name, descriptor] of Object.entries(additions)) {
  if (!(name in Performance.prototype)) Object.defineProperty(Performance.prototype, name, { configurable: true, ...descriptor });
}

const absent = (name) => ({ [name]() { throw notImplemented(name); } })[name];
export default {
  Performance, PerformanceEntry, PerformanceMark, PerformanceMeasure,
  PerformanceObserver,
  PerformanceObserverEntryList,
  PerformanceResourceTiming,
  monitorEventLoopDelay: absent("monitorEventLoopDelay"),
  createHistogram: absent("createHistogram"),
  eventLoopUtilization, timerify, performance,
  constants: Object.freeze(constants),
};
