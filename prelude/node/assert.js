// node:assert
import { invalidArgType, nodeError } from "./internal/errors.js";
import { isDeepLooseEqual, isDeepStrictEqual } from "./internal/equal.js";
import { inspect } from "./internal/internals.js";

export class AssertionError extends Error {
  constructor(options) {
    const { message, actual, expected, operator } = options;
    super(message ?? `${inspect(actual)} ${operator} ${inspect(expected)}`);
    this.generatedMessage = message === undefined || message === null;
    this.code = "ERR_ASSERTION";
    this.actual = actual;
    this.expected = expected;
    this.operator = operator;
    if (options.stackStartFn) Error.captureStackTrace?.(this, options.stackStartFn);
  }
  get name() {
    return "AssertionError";
  }
  toString() {
    return `${this.name} [${this.code}]: ${this.message}`;
  }
}

function failed(message, actual, expected, operator, otherwise) {
  if (message instanceof Error) return message;
  const error = new AssertionError({ message: message ?? otherwise, actual, expected, operator });
  if (message === undefined || message === null) error.generatedMessage = true;
  return error;
}

function assert(...args) {
  ok(...args);
}

function ok(value, message) {
  if (arguments.length === 0) throw failed("No value argument passed to `assert.ok()`", value, true, "==");
  if (!value) throw failed(message, value, true, "==", "The expression evaluated to a falsy value");
}

/** assert.name(actual, expected[, message]) that holds where `holds` does. */
function comparison(name, holds, words) {
  return {
    [name](actual, expected, message) {
      if (arguments.length < 2) {
        throw nodeError(TypeError, "ERR_MISSING_ARGS", 'The "actual" and "expected" arguments must be specified');
      }
      if (!holds(actual, expected)) {
        throw failed(message, actual, expected, name, `${words}:\n\n${inspect(actual)}\n\nshould ${name.startsWith("not") ? "not " : ""}equal\n\n${inspect(expected)}`);
      }
    },
  }[name];
}

/** Whether a thrown error is what was expected; throws an AssertionError with the reason if not. */
function checkError(error, expected, message, operator) {
  if (expected === undefined) return;
  const refuse = (reason) => failed(message, error, expected, operator, reason);
  if (expected instanceof RegExp) {
    if (!expected.test(String(error))) throw refuse(`The input did not match the regular expression ${expected}. Input:\n\n${inspect(String(error))}\n`);
    return;
  }
  if (typeof expected === "function") {
    if (expected.prototype !== undefined && error instanceof expected) return;
    if (Object.prototype.isPrototypeOf.call(Error, expected) || expected === Error) {
      throw refuse(`The error is expected to be an instance of "${expected.name}". Received "${error?.constructor?.name ?? error}"\n\nError message:\n\n${error?.message}`);
    }
    if (expected.call({}, error) !== true) throw refuse(`The ${expected.name ? `"${expected.name}" ` : ""}validation function is expected to return "true".`);
    return;
  }
  if (typeof expected !== "object" || expected === null) {
    throw invalidArgType("expected", "of type function or an instance of Error, RegExp, or Object", expected);
  }
  const names = Object.keys(expected);
  if (expected instanceof Error) names.push("name", "message");
  for (const name of names) {
    const matches =
      typeof error?.[name] === "string" && expected[name] instanceof RegExp
        ? expected[name].test(error[name])
        : isDeepStrictEqual(error?.[name], expected[name]);
    if (!matches) throw refuse(`The error's property "${name}" is ${inspect(error?.[name])}, expected ${inspect(expected[name])}`);
  }
}

const NOTHING = Symbol("nothing was thrown");

function thrownBy(fn) {
  if (typeof fn !== "function") throw invalidArgType("fn", "of type function", fn);
  try {
    fn();
  } catch (error) {
    return error;
  }
  return NOTHING;
}

async function rejectionOf(promiseFn) {
  const promise = typeof promiseFn === "function" ? promiseFn() : promiseFn;
  if (typeof promise?.then !== "function") throw invalidArgType("promiseFn", "of type function or an instance of Promise", promiseFn);
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return NOTHING;
}

function expectThrown(error, expected, message, operator) {
  if (typeof expected === "string") [expected, message] = [undefined, expected];
  if (error === NOTHING) {
    const what = operator === "rejects" ? "rejection" : "exception";
    const name = expected?.name ? ` (${expected.name})` : ".";
    throw failed(message, undefined, expected, operator, `Missing expected ${what}${name}`);
  }
  checkError(error, expected, message, operator);
}

function expectNothing(error, expected, message, operator) {
  if (error === NOTHING) return;
  if (typeof expected === "string") [expected, message] = [undefined, expected];
  const what = operator === "doesNotReject" ? "rejection" : "exception";
  if (expected === undefined || (typeof expected === "function" ? error instanceof expected : expected.test?.(String(error)))) {
    throw failed(message, error, expected, operator, `Got unwanted ${what}.\nActual message: "${error?.message}"`);
  }
  throw error;
}

const matchText = (name, wanted) => ({
  [name](text, pattern, message) {
    if (!(pattern instanceof RegExp)) throw invalidArgType("regexp", "an instance of RegExp", pattern);
    if (typeof text !== "string" || pattern.test(text) !== wanted) {
      throw failed(message, text, pattern, name, `The input ${wanted ? "did not match" : "was expected to not match"} the regular expression ${pattern}. Input:\n\n${inspect(text)}\n`);
    }
  },
}[name]);

Object.assign(assert, {
  AssertionError,
  ok,
  fail(message = "Failed") {
    throw failed(message, undefined, undefined, "fail");
  },
  equal: comparison("equal", (a, b) => a == b || (a !== a && b !== b), "Expected values to be loosely equal"),
  notEqual: comparison("notEqual", (a, b) => !(a == b || (a !== a && b !== b)), 'Expected "actual" to be loosely unequal to "expected"'),
  strictEqual: comparison("strictEqual", Object.is, "Expected values to be strictly equal"),
  notStrictEqual: comparison("notStrictEqual", (a, b) => !Object.is(a, b), 'Expected "actual" to be strictly unequal to "expected"'),
  deepEqual: comparison("deepEqual", isDeepLooseEqual, "Expected values to be loosely deep-equal"),
  notDeepEqual: comparison("notDeepEqual", (a, b) => !isDeepLooseEqual(a, b), 'Expected "actual" not to be loosely deep-equal to "expected"'),
  deepStrictEqual: comparison("deepStrictEqual", isDeepStrictEqual, "Expected values to be strictly deep-equal"),
  notDeepStrictEqual: comparison("notDeepStrictEqual", (a, b) => !isDeepStrictEqual(a, b), 'Expected "actual" not to be strictly deep-equal to "expected"'),
  match: matchText("match", true),
  doesNotMatch: matchText("doesNotMatch", false),
  throws: (fn, expected, message) => expectThrown(thrownBy(fn), expected, message, "throws"),
  doesNotThrow: (fn, expected, message) => expectNothing(thrownBy(fn), expected, message, "doesNotThrow"),
  rejects: async (promise, expected, message) => expectThrown(await rejectionOf(promise), expected, message, "rejects"),
  doesNotReject: async (promise, expected, message) => expectNothing(await rejectionOf(promise), expected, message, "doesNotReject"),
  ifError(value) {
    if (value !== null && value !== undefined) throw failed(undefined, value, null, "ifError", `ifError got unwanted exception: ${value?.message ?? inspect(value)}`);
  },
});

function strict(...args) {
  ok(...args);
}
Object.assign(strict, assert, {
  equal: assert.strictEqual,
  notEqual: assert.notStrictEqual,
  deepEqual: assert.deepStrictEqual,
  notDeepEqual: assert.notDeepStrictEqual,
});
strict.strict = strict;
assert.strict = strict;

export default assert;
