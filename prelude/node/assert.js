// node:assert. As on the platform, the functions of the legacy mode compare strictly too.
import { invalidArgType, invalidArgValue, invalidReturnValue, missingArgs, nodeError, specificType } from "./internal/errors.js";
import { AssertionError } from "./internal/assertion-error.js";
import { isDeepStrictEqual, isPartialStrictEqual } from "./internal/equal.js";
import { inspect } from "./internal/inspect.js";

function failed(message, actual, expected, operator, otherwise = undefined) {
  if (message instanceof Error) return message;
  const given = message !== undefined && message !== null && message !== "";
  const error = new AssertionError({ message: given ? `${message}` : otherwise, actual, expected, operator });
  error.generatedMessage = !given;
  return error;
}

function ok(value, message) {
  if (arguments.length === 0) {
    const error = new AssertionError({ message: "No value argument passed to `assert.ok()`", actual: undefined, expected: true, operator: "==" });
    error.generatedMessage = true;
    throw error;
  }
  if (!value) throw failed(message, value, true, "==", "The expression evaluated to a falsy value");
}
function assert(...args) {
  ok(...args);
}

const needTwo = (args) => {
  if (args.length < 2) throw missingArgs("actual", "expected");
};
function strictEqual(actual, expected, message) {
  needTwo(arguments);
  if (!Object.is(actual, expected)) throw failed(message, actual, expected, "strictEqual");
}
function notStrictEqual(actual, expected, message) {
  needTwo(arguments);
  if (Object.is(actual, expected)) throw failed(message, actual, expected, "notStrictEqual");
}
function deepStrictEqual(actual, expected, message) {
  needTwo(arguments);
  if (!isDeepStrictEqual(actual, expected)) throw failed(message, actual, expected, "deepStrictEqual");
}
function notDeepStrictEqual(actual, expected, message) {
  needTwo(arguments);
  if (isDeepStrictEqual(actual, expected)) throw failed(message, actual, expected, "notDeepStrictEqual");
}
function partialDeepStrictEqual(actual, expected, message) {
  needTwo(arguments);
  if (!isPartialStrictEqual(actual, expected)) throw failed(message, actual, expected, "partialDeepStrictEqual");
}
function equal(actual, expected, message) {
  needTwo(arguments);
  strictEqual(actual, expected, message);
}
function notEqual(actual, expected, message) {
  needTwo(arguments);
  notStrictEqual(actual, expected, message);
}
function deepEqual(actual, expected, message) {
  needTwo(arguments);
  deepStrictEqual(actual, expected, message);
}
function notDeepEqual(actual, expected, message) {
  needTwo(arguments);
  notDeepStrictEqual(actual, expected, message);
}

function fail(message, expected, ...rest) {
  if (message instanceof Error) throw message;
  const error = arguments.length > 1
    ? new AssertionError({ message: rest[0] ?? undefined, actual: message, expected, operator: rest[1] ?? "!=" })
    : new AssertionError({ message: message ?? "Failed", operator: "fail" });
  error.generatedMessage = message === undefined || (arguments.length > 1 && rest[0] === undefined);
  throw error;
}

function ifError(value) {
  if (value === null || value === undefined) return;
  let text = "ifError got unwanted exception: ";
  if (typeof value === "object" && typeof value.message === "string") {
    text += value.message.length === 0 && value.constructor ? value.constructor.name : value.message;
  } else {
    text += inspect(value);
  }
  const error = new AssertionError({ message: text, actual: value, expected: null, operator: "ifError" });
  error.generatedMessage = true;
  throw error;
}

function match(text, pattern, message) {
  needTwo(arguments);
  if (!(pattern instanceof RegExp)) throw invalidArgType("regexp", ["RegExp"], pattern);
  if (typeof text !== "string") throw failed(message, text, pattern, "match", `The "string" argument must be of type string. Received ${specificType(text)}`);
  if (!pattern.test(text)) throw failed(message, text, pattern, "match", `The input did not match the regular expression ${inspect(pattern)}. Input:\n\n${inspect(text)}\n`);
}
function doesNotMatch(text, pattern, message) {
  needTwo(arguments);
  if (!(pattern instanceof RegExp)) throw invalidArgType("regexp", ["RegExp"], pattern);
  if (typeof text !== "string") {
    if (message) throw failed(message, text, pattern, "doesNotMatch");
    throw nodeError(TypeError, "ERR_INVALID_ARG_TYPE", `The "string" argument must be of type string. Received ${specificType(text)}`);
  }
  if (pattern.test(text)) throw failed(message, text, pattern, "doesNotMatch", `The input was expected to not match the regular expression ${inspect(pattern)}. Input:\n\n${inspect(text)}\n`);
}

// ---- exceptions

const NOTHING = Symbol("nothing was thrown");
const isErrorClass = (f) => f === Error || Object.prototype.isPrototypeOf.call(Error, f);

/** An object that is expected: each of its properties is compared. */
function checkProperties(error, expected, message, operator) {
  const names = Object.keys(expected);
  if (expected instanceof Error) names.push("name", "message");
  else if (names.length === 0) throw invalidArgValue("error", expected, "may not be an empty object");
  for (const name of names) {
    if (typeof error?.[name] === "string" && expected[name] instanceof RegExp && expected[name].test(error[name])) continue;
    if (error !== null && typeof error === "object" && name in error && isDeepStrictEqual(error[name], expected[name])) continue;
    if (message) throw failed(message, error, expected, operator);
    // Both sides with the properties that were asked for: the difference is what is shown.
    const pick = (source, keep) => {
      const copy = {};
      for (const key of names) if (source !== null && typeof source === "object" && key in source) copy[key] = keep && expected[key] instanceof RegExp && typeof source[key] === "string" && expected[key].test(source[key]) ? expected[key] : source[key];
      return copy;
    };
    const shown = new AssertionError({ actual: pick(error, true), expected: pick(expected, false), operator: "deepStrictEqual" });
    shown.actual = error;
    shown.expected = expected;
    shown.operator = operator;
    shown.generatedMessage = true;
    throw shown;
  }
}

/** Whether a thrown error is what was expected; throws an AssertionError with the reason if not. */
function checkError(error, expected, message, operator) {
  if (expected === undefined) return;
  const refuse = (reason) => failed(message, error, expected, operator, reason);
  if (expected instanceof RegExp) {
    if (!expected.test(String(error))) throw refuse(`The input did not match the regular expression ${inspect(expected)}. Input:\n\n${inspect(String(error))}\n`);
    return;
  }
  if (typeof expected === "object") {
    if (error === null || typeof error !== "object") {
      const shown = failed(message, error, expected, "deepStrictEqual");
      shown.operator = operator;
      throw shown;
    }
    checkProperties(error, expected, message, operator);
    return;
  }
  if (expected.prototype !== undefined && error instanceof expected) return;
  if (isErrorClass(expected)) {
    const got = error?.constructor?.name ?? inspect(error);
    throw refuse(`The error is expected to be an instance of "${expected.name}". Received ${error instanceof Error ? `an error with identical name but a different prototype.`.slice(0, 0) + `"${got}"` : `"${inspect(error, { depth: -1 })}"`}${error?.message ? `\n\nError message:\n\n${error.message}` : ""}`);
  }
  const verdict = Reflect.apply(expected, {}, [error]);
  if (verdict === true) return;
  const name = expected.name ? `"${expected.name}" ` : "";
  throw refuse(`The ${name}validation function is expected to return "true". Received ${inspect(verdict)}${error instanceof Error ? `\n\nCaught error:\n\n${error}` : ""}`);
}

function checkExpectation(expected, message) {
  if (expected === undefined || (typeof expected === "string" && message === undefined)) return;
  if (typeof expected === "string" || (typeof expected !== "function" && (typeof expected !== "object" || expected === null))) {
    throw invalidArgType("error", ["Function", "Error", "RegExp", "Object"], expected);
  }
  if (Object.getPrototypeOf(expected) === Object.prototype && Object.keys(expected).length === 0) {
    throw invalidArgValue("error", expected, "may not be an empty object");
  }
}

function thrownBy(fn) {
  if (typeof fn !== "function") throw invalidArgType("fn", "of type function", fn);
  try {
    fn();
  } catch (error) {
    return error;
  }
  return NOTHING;
}

const isThenable = (value) =>
  value !== null && (typeof value === "object" || typeof value === "function") && typeof value.then === "function" && typeof value.catch === "function";

async function rejectionOf(promiseFn) {
  let promise = promiseFn;
  if (typeof promiseFn === "function") {
    promise = promiseFn();
    if (!isThenable(promise)) throw invalidReturnValue("instance of Promise", "promiseFn", promise);
  } else if (!isThenable(promise)) {
    throw invalidArgType("promiseFn", ["function", "Promise"], promiseFn);
  }
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return NOTHING;
}

function expectThrown(error, expected, message, operator) {
  if (typeof expected === "string") {
    if (error !== NOTHING && (error?.message === expected || error === expected)) {
      throw nodeError(TypeError, "ERR_AMBIGUOUS_ARGUMENT", `The "error/message" argument is ambiguous. The error ${error?.message === expected ? "message " : ""}"${expected}" is identical to the message.`);
    }
    [expected, message] = [undefined, expected];
  }
  if (error === NOTHING) {
    const what = operator === "rejects" ? "rejection" : "exception";
    const name = expected?.name ? ` (${expected.name})` : "";
    if (message instanceof Error) throw message;
    const missing = new AssertionError({ message: `Missing expected ${what}${name}${message ? `: ${message}` : "."}`, actual: undefined, expected, operator });
    missing.generatedMessage = !message;
    throw missing;
  }
  checkError(error, expected, message, operator);
}

function expectNothing(error, expected, message, operator) {
  if (error === NOTHING) return;
  if (typeof expected === "string") [expected, message] = [undefined, expected];
  let hit = expected === undefined;
  if (expected instanceof RegExp) hit = expected.test(String(error));
  else if (typeof expected === "function") hit = (expected.prototype !== undefined && error instanceof expected) || (!isErrorClass(expected) && expected.call({}, error) === true);
  if (!hit) throw error;
  const what = operator === "doesNotReject" ? "rejection" : "exception";
  const refused = new AssertionError({ message: `Got unwanted ${what}${message ? `: ${message}` : "."}\nActual message: "${error?.message}"`, actual: error, expected, operator });
  refused.generatedMessage = !message;
  throw refused;
}

function throws(fn, expected, message) {
  if (typeof fn !== "function") throw invalidArgType("fn", "of type function", fn);
  checkExpectation(expected, message);
  expectThrown(thrownBy(fn), expected, message, "throws");
}
function doesNotThrow(fn, expected, message) {
  expectNothing(thrownBy(fn), expected, message, "doesNotThrow");
}
async function rejects(promiseFn, expected, message) {
  checkExpectation(expected, message);
  expectThrown(await rejectionOf(promiseFn), expected, message, "rejects");
}
async function doesNotReject(promiseFn, expected, message) {
  expectNothing(await rejectionOf(promiseFn), expected, message, "doesNotReject");
}

const members = {
  AssertionError, deepEqual, deepStrictEqual, doesNotMatch, doesNotReject, doesNotThrow, equal, fail, ifError, match, notDeepEqual,
  notDeepStrictEqual, notEqual, notStrictEqual, ok, partialDeepStrictEqual, rejects, strictEqual, throws,
};
Object.assign(assert, members);

function strict(...args) {
  ok(...args);
}
Object.assign(strict, members, { equal: strictEqual, notEqual: notStrictEqual, deepEqual: deepStrictEqual, notDeepEqual: notDeepStrictEqual });
strict.strict = strict;
assert.strict = strict;

export { AssertionError };
export default assert;
