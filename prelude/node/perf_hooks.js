// node:perf_hooks
import { unsupported } from "./internal/stub.js";

const { performance, Performance, PerformanceEntry, PerformanceMark, PerformanceMeasure } = globalThis;
export default {
  performance,
  Performance,
  PerformanceEntry,
  PerformanceMark,
  PerformanceMeasure,
  PerformanceObserver: globalThis.PerformanceObserver ?? unsupported("PerformanceObserver of node:perf_hooks"),
  monitorEventLoopDelay: unsupported("monitorEventLoopDelay() of node:perf_hooks"),
  createHistogram: unsupported("createHistogram() of node:perf_hooks"),
  eventLoopUtilization: () => ({ idle: 0, active: 0, utilization: 0 }),
  constants: Object.freeze({ NODE_PERFORMANCE_GC_MAJOR: 4, NODE_PERFORMANCE_GC_MINOR: 1, NODE_PERFORMANCE_GC_INCREMENTAL: 8, NODE_PERFORMANCE_GC_WEAKCB: 16 }),
};
