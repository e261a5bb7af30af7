// console: https://console.spec.whatwg.org/. Each call becomes one entry of the script's log.
import { currentTrace } from "../internal/turn.js";
import { native } from "../internal/native.js";
import inspection from "part:../internal/inspect.js";
import trace from "part:../internal/trace.js";

const DEBUG = 0;
const INFO = 1;
const WARN = 2;
const ERROR = 3;
/** Labels that count() and time() remember. */
const LABELS_MAX = 10_000;

const format = (args) => inspection().format(args);
const inspect = (value, options) => inspection().inspect(value, options);

const counts = new Map();
const timers = new Map();
let indent = "";

function print(level, text) {
  native.log(level, indent === "" ? text : indent + text.replaceAll("\n", `\n${indent}`));
}

const labelText = (label) => (label === undefined ? "default" : `${label}`);

function remember(map, label, value) {
  if (map.size >= LABELS_MAX && !map.has(label)) {
    print(WARN, `console: more than ${LABELS_MAX} labels; '${label}' is not kept`);
    return;
  }
  map.set(label, value);
}

function elapsed(label) {
  const ms = native.monotonicTime() - timers.get(label);
  return ms >= 1000 ? `${(ms / 1000).toFixed(3)}s` : `${ms.toFixed(3)}ms`;
}

/** Rows of cells in a frame, as console.table() draws them. */
function drawTable(head, rows) {
  const widths = head.map((cell, i) => rows.reduce((width, row) => Math.max(width, row[i].length), cell.length) + 2);
  const line = (cells) => `│${cells.map((cell, i) => ` ${cell}`.padEnd(widths[i])).join("│")}│`;
  const rule = (left, middle, right) => left + widths.map((width) => "─".repeat(width)).join(middle) + right;
  return [rule("┌", "┬", "┐"), line(head), rule("├", "┼", "┤"), ...rows.map(line), rule("└", "┴", "┘")].join("\n");
}

const isObject = (value) => value !== null && typeof value === "object";
const cell = (value) => inspect(value, { depth: 0 });

/** The five that tail consumers see, as the platform's do. */
function say(level, name, args) {
  if (currentTrace() !== 0) trace().noteLog(name, args);
  print(level, format(args));
}

export const console = {
  debug: (...args) => say(DEBUG, "debug", args),
  error: (...args) => say(ERROR, "error", args),
  info: (...args) => say(INFO, "info", args),
  log: (...args) => say(INFO, "log", args),
  warn: (...args) => say(WARN, "warn", args),
  dir(value, options) {
    print(INFO, inspect(value, isObject(options) ? options : {}));
  },
  dirxml: (...args) => print(INFO, format(args)),
  table(data, columns) {
    if (!isObject(data)) {
      print(INFO, format([data]));
      return;
    }
    const isMap = data instanceof Map;
    const entries = isMap || data instanceof Set ? [...data.entries()].map(([k, v], i) => [String(i), isMap ? [k, v] : v]) : Object.entries(data);
    const keys = new Set();
    let hasValues = false;
    for (const [, row] of entries) {
      if (isObject(row)) for (const key of Object.keys(row)) keys.add(key);
      if (!isObject(row)) hasValues = true;
    }
    const shown = Array.isArray(columns) ? columns.map(String) : [...keys];
    const head = ["(index)", ...shown, ...(hasValues ? ["Values"] : [])];
    const rows = entries.map(([index, row]) => [
      index,
      ...shown.map((key) => (isObject(row) && Object.hasOwn(row, key) ? cell(row[key]) : "")),
      ...(hasValues ? [isObject(row) ? "" : cell(row)] : []),
    ]);
    print(INFO, drawTable(head, rows));
  },
  trace(...args) {
    const text = format(args);
    print(INFO, `Trace${text === "" ? "" : `: ${text}`}\n${inspection().stackText(new Error().stack)}`);
  },
  group(...args) {
    if (args.length > 0) print(INFO, format(args));
    if (indent.length < 200) indent += "  ";
  },
  groupCollapsed(...args) {
    console.group(...args);
  },
  groupEnd() {
    indent = indent.slice(2);
  },
  clear() {},
  count(label = "default") {
    const name = labelText(label);
    const count = (counts.get(name) ?? 0) + 1;
    remember(counts, name, count);
    print(INFO, `${name}: ${count}`);
  },
  countReset(label = "default") {
    const name = labelText(label);
    if (!counts.delete(name)) print(WARN, `Count for '${name}' does not exist`);
  },
  assert(condition, ...args) {
    if (condition) return;
    if (args.length === 0) print(ERROR, "Assertion failed");
    else if (typeof args[0] === "string") print(ERROR, format([`Assertion failed: ${args[0]}`, ...args.slice(1)]));
    else print(ERROR, format(["Assertion failed:", ...args]));
  },
  profile() {},
  profileEnd() {},
  time(label = "default") {
    const name = labelText(label);
    if (timers.has(name)) print(WARN, `Timer '${name}' already exists`);
    else remember(timers, name, native.monotonicTime());
  },
  timeLog(label = "default", ...args) {
    const name = labelText(label);
    if (!timers.has(name)) print(WARN, `Timer '${name}' does not exist`);
    else print(INFO, format([`${name}: ${elapsed(name)}`, ...args]));
  },
  timeEnd(label = "default") {
    const name = labelText(label);
    if (!timers.has(name)) {
      print(WARN, `Timer '${name}' does not exist`);
      return;
    }
    print(INFO, `${name}: ${elapsed(name)}`);
    timers.delete(name);
  },
  timeStamp() {},
  context() {
    return console;
  },
};
Object.defineProperty(console, Symbol.toStringTag, { value: "console", writable: false, enumerable: false, configurable: true });
