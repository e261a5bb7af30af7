// AssertionError, whose message shows where two values differ.
import { invalidArgType } from "./errors.js";
import { inspect } from "./inspect.js";

const SHORT_MAX = 12; // both values together, to be shown as "a !== b"
const LINES_MAX = 50;
const HEADS = {
  deepStrictEqual: "Expected values to be strictly deep-equal:",
  strictEqual: "Expected values to be strictly equal:",
  strictEqualObject: 'Expected "actual" to be reference-equal to "expected":',
  deepEqual: "Expected values to be loosely deep-equal:",
  partialDeepStrictEqual: "Expected values to be partially and strictly deep-equal:",
  notDeepStrictEqual: 'Expected "actual" not to be strictly deep-equal to:',
  notStrictEqual: 'Expected "actual" to be strictly unequal to:',
  notStrictEqualObject: 'Expected "actual" not to be reference-equal to "expected":',
  notDeepEqual: 'Expected "actual" not to be loosely deep-equal to:',
  notIdentical: "Values identical but not reference-equal:",
};

const show = (value) =>
  inspect(value, { compact: true, customInspect: false, depth: 1000, maxArrayLength: Infinity, showHidden: false, showProxy: false, sorted: true, getters: true });
const isObject = (value) => typeof value === "object" && value !== null;

/** Lines of both values: [mark, text] with the mark " ", "+" or "-". */
function compareLines(actual, expected) {
  const lines = [];
  let waiting = []; // expected lines of a run that differs: they follow the actual ones
  const count = Math.max(actual.length, expected.length);
  for (let i = 0; i < count; i++) {
    const a = actual[i];
    const b = expected[i];
    const alike = a !== undefined && b !== undefined && a.replace(/,$/, "") === b.replace(/,$/, "");
    if (alike) {
      lines.push(...waiting, [" ", b.endsWith(",") ? b : a]);
      waiting = [];
      continue;
    }
    if (a !== undefined) lines.push(["+", a]);
    if (b !== undefined) waiting.push(["-", b]);
  }
  return [...lines, ...waiting];
}

/** Runs of equal lines keep two at each side. */
function shorten(lines) {
  const out = [];
  let skipped = false;
  for (let i = 0; i < lines.length;) {
    if (lines[i][0] !== " ") {
      out.push(lines[i++]);
      continue;
    }
    let end = i;
    while (end < lines.length && lines[end][0] === " ") end++;
    if (end - i > 5) {
      const last = end === lines.length ? 3 : 2;
      out.push(...lines.slice(i, i + 2), null, ...lines.slice(end - last, end));
      skipped = true;
    } else {
      out.push(...lines.slice(i, end));
    }
    i = end;
  }
  return { out, skipped };
}

function difference(actual, expected, operator) {
  const shown = show(actual);
  const other = show(expected);
  if (operator === "strictEqual" && ((isObject(actual) && isObject(expected)) || (typeof actual === "function" && typeof expected === "function"))) {
    operator = "strictEqualObject";
  }
  const head = HEADS[operator];
  let pointer = "";
  if (!shown.includes("\n") && !other.includes("\n") && shown !== other) {
    const size = shown.length + other.length;
    if (size <= SHORT_MAX) {
      if (!isObject(actual) && !isObject(expected) && (actual !== 0 || expected !== 0)) return `${head}\n\n${shown} !== ${other}\n`;
    } else if (operator !== "strictEqualObject" && size < 80) {
      let at = 0;
      while (shown[at] === other[at]) at++;
      if (at > 2) pointer = `\n  ${" ".repeat(at)}^`;
    }
  }
  if (shown === other) {
    const lines = shown.split("\n");
    return `${HEADS.notIdentical}\n\n${(lines.length > LINES_MAX ? [...lines.slice(0, 46), "..."] : lines).join("\n")}\n`;
  }
  const { out, skipped } = shorten(compareLines(shown.split("\n"), other.split("\n")));
  const cut = out.length > LINES_MAX + 1;
  const text = (cut ? [...out.slice(0, LINES_MAX), null] : out).map((line) => (line === null ? "..." : `${line[0]} ${line[1]}`)).join("\n");
  return `${head}\n+ actual - expected${skipped || cut ? " ... Lines skipped" : ""}\n\n${text}${pointer}`;
}

function unequal(actual, operator) {
  const objects = operator === "notStrictEqual" && (isObject(actual) || typeof actual === "function");
  const head = HEADS[objects ? "notStrictEqualObject" : operator];
  const lines = show(actual).split("\n");
  const text = lines.length > LINES_MAX ? [...lines.slice(0, 46), "..."] : lines;
  if (text.length === 1) return `${head}${text[0].length > 5 ? "\n\n" : " "}${text[0]}`;
  return `${head}\n\n${text.join("\n")}\n`;
}

function plainComparison(actual, expected, operator) {
  const cut = (text) => (text.length > 1024 ? `${text.slice(0, 1021)}...` : text);
  const left = cut(show(actual));
  const right = cut(show(expected));
  if (operator === "deepEqual") return `${HEADS.deepEqual}\n\n${left}\n\nshould equal\n\n${right}`;
  return `${left} ${operator} ${right}`;
}

/** An error without its stack, which would differ for reasons of its own. */
function withoutStack(error) {
  const copy = Object.assign(Object.create(Object.getPrototypeOf(error)), error);
  Object.defineProperty(copy, "message", { value: error.message });
  return copy;
}

export class AssertionError extends Error {
  constructor(options) {
    if (!isObject(options)) throw invalidArgType("options", "of type object", options);
    const { message, operator } = options;
    let { actual, expected } = options;
    let text;
    if (message !== null && message !== undefined) {
      text = String(message);
    } else {
      if (actual instanceof Error && expected instanceof Error) [actual, expected] = [withoutStack(actual), withoutStack(expected)];
      if (operator === "deepStrictEqual" || operator === "strictEqual" || operator === "partialDeepStrictEqual") text = difference(actual, expected, operator);
      else if (operator === "notDeepStrictEqual" || operator === "notStrictEqual") text = unequal(actual, operator);
      else text = plainComparison(actual, expected, operator);
    }
    super(text);
    this.generatedMessage = message === null || message === undefined;
    Object.defineProperty(this, "name", { value: "AssertionError", writable: true, configurable: true });
    this.code = "ERR_ASSERTION";
    this.actual = options.actual;
    this.expected = options.expected;
    this.operator = operator;
    if (options.stackStartFn ?? options.stackStartFunction) Error.captureStackTrace?.(this, options.stackStartFn ?? options.stackStartFunction);
  }
  toString() {
    return `${this.name} [${this.code}]: ${this.message}`;
  }
  [Symbol.for("nodejs.util.inspect.custom")](depth, options) {
    return inspect(this, { ...options, customInspect: false, depth: 0 });
  }
}
