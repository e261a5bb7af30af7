// Errors with the codes that Node.js gives them (libraries look at `code`), and the checks of
// arguments that throw them. `expected` of invalidArgType() is a list of types, or a phrase.
import { inspect } from "./inspect.js";

/** An error of class `Base` whose code is `code`. */
export function nodeError(Base, code, message, properties = undefined) {
  const error = new Base(message);
  error.code = code;
  Object.defineProperty(error, "name", { value: Base.name, writable: true, configurable: true });
  Object.defineProperty(error, "toString", {
    value() {
      return `${this.name} [${code}]: ${this.message}`;
    },
    writable: true,
    configurable: true,
  });
  return properties === undefined ? error : Object.assign(error, properties);
}

function shorten(value) {
  const text = inspect(value, { colors: false });
  return text.length > 28 ? `${text.slice(0, 25)}...` : text;
}

/** How a value is named in "but got ...". */
export function specificType(value) {
  if (value === null || value === undefined) return `${value}`;
  if (typeof value === "function" && value.name !== "") return `function ${value.name}`;
  if (typeof value === "object") {
    return value.constructor?.name ? `an instance of ${value.constructor.name}` : inspect(value, { depth: -1 });
  }
  return `type ${typeof value} (${shorten(value)})`;
}

const TYPES = new Set(["string", "function", "number", "object", "Function", "Object", "boolean", "bigint", "symbol"]);

function list(words) {
  if (words.length > 2) return `${words.slice(0, -1).join(", ")}, or ${words.at(-1)}`;
  return words.join(" or ");
}

function expectation(expected) {
  const types = [];
  const instances = [];
  const others = [];
  for (const word of [expected].flat()) {
    if (TYPES.has(word)) types.push(word.toLowerCase());
    else if (/^([A-Z][a-z0-9]*)+$/.test(word)) instances.push(word);
    else others.push(word);
  }
  // "of type object" would say less than the classes beside it.
  if (instances.length > 0 && types.includes("object")) {
    types.splice(types.indexOf("object"), 1);
    instances.push("Object");
  }
  const phrases = [];
  if (types.length > 0) phrases.push(`${types.length > 1 ? "one of type" : "of type"} ${list(types)}`);
  if (instances.length > 0) phrases.push(`an instance of ${list(instances)}`);
  if (others.length > 1) phrases.push(`one of ${list(others)}`);
  else if (others.length === 1) phrases.push(others[0].toLowerCase() !== others[0] ? `an ${others[0]}` : others[0]);
  return phrases.join(" or ");
}

export function invalidArgType(name, expected, value, Base = TypeError) {
  const kind = name.endsWith(" argument") ? name : `"${name}" ${name.includes(".") ? "property" : "argument"}`;
  const phrase = typeof expected === "string" && (/ /.test(expected) || !/^\w+$/.test(expected)) ? expected : expectation(expected);
  return nodeError(Base, "ERR_INVALID_ARG_TYPE", `The ${kind} must be ${phrase}. Received ${specificType(value)}`);
}

export function invalidArgValue(name, value, reason = "is invalid", Base = TypeError) {
  let text = inspect(value);
  if (text.length > 128) text = `${text.slice(0, 128)}...`;
  return nodeError(Base, "ERR_INVALID_ARG_VALUE", `The ${name.includes(".") ? "property" : "argument"} '${name}' ${reason}. Received ${text}`);
}

/** Digits in groups of three from the right, behind a sign. */
function grouped(text) {
  const digits = text.startsWith("-") ? text.slice(1) : text, first = digits.length % 3 || 3;
  return (digits === text ? "" : "-") + digits.slice(0, first) + digits.slice(first).replace(/\d{3}/g, "_$&");
}

export function outOfRange(name, range, value, replace = false) {
  let received;
  if (Number.isInteger(value) && Math.abs(value) > 2 ** 32) {
    received = grouped(String(value));
  } else if (typeof value === "bigint") {
    received = `${value > 2n ** 32n || value < -(2n ** 32n) ? grouped(String(value)) : value}n`;
  } else {
    received = inspect(value);
  }
  // Unlike other errors it does not name its code as a text.
  return Object.assign(new RangeError(
    `${replace ? name : `The value of "${name}" is out of range.`} It must be ${range}. Received ${received}`), { code: "ERR_OUT_OF_RANGE" });
}

/** A function of Node.js that has no meaning in a worker. */
export const notImplemented = (name) =>
  nodeError(Error, "ERR_METHOD_NOT_IMPLEMENTED", `The ${name} method is not implemented`);
export const optionNotImplemented = (name) =>
  nodeError(Error, "ERR_OPTION_NOT_IMPLEMENTED", `The ${name} option is not implemented`);
export const unsupportedOperation = () =>
  nodeError(Error, "ERR_UNSUPPORTED_OPERATION", "The requested operation is unsupported");
export const unknownEncoding = (encoding) => nodeError(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`);
export function missingArgs(...names) {
  const quoted = names.map((name) => (Array.isArray(name) ? name.map((n) => `"${n}"`).join(" or ") : `"${name}"`));
  const what = quoted.length > 2 ? `${quoted.slice(0, -1).join(", ")}, and ${quoted.at(-1)}` : quoted.join(" and ");
  return nodeError(TypeError, "ERR_MISSING_ARGS", `The ${what} argument${quoted.length > 1 ? "s" : ""} must be specified`);
}
export const invalidReturnValue = (expected, name, value) =>
  nodeError(TypeError, "ERR_INVALID_RETURN_VALUE", `Expected ${expected} to be returned from the "${name}" function but got ${specificType(value)}.`);
export const invalidThis = (type) => nodeError(TypeError, "ERR_INVALID_THIS", `Value of "this" must be of type ${type}`);

export function validateFunction(value, name) {
  if (typeof value !== "function") throw invalidArgType(name, "of type function", value);
}
export function validateString(value, name) {
  if (typeof value !== "string") throw invalidArgType(name, "of type string", value);
}
export function validateBoolean(value, name) {
  if (typeof value !== "boolean") throw invalidArgType(name, "of type boolean", value);
}
export function validateArray(value, name, minLength = 0) {
  if (!Array.isArray(value)) throw invalidArgType(name, ["Array"], value);
  if (value.length < minLength) throw invalidArgValue(name, value, `must be longer than ${minLength}`);
}
/** `allow` may name "array", "function" and "nullable". */
export function validateObject(value, name, ...allow) {
  if (value === null ? allow.includes("nullable") : typeof value === "object" && (allow.includes("array") || !Array.isArray(value))) return;
  if (typeof value === "function" && allow.includes("function")) return;
  throw invalidArgType(name, "of type object", value);
}
/**
 * Options as a table says: {name: [default, check]}. Each is checked as "options.name" in the table's order; `optionally` leaves
 * out what is not given.
 */
export function readOptions(options, table, prefix = "options") {
  validateObject(options, prefix);
  const values = {};
  for (const name of Object.keys(table)) {
    const [fallback, check] = table[name];
    values[name] = options[name] === undefined ? fallback : options[name];
    check?.(values[name], `${prefix}.${name}`);
  }
  return values;
}
export const optionally = (check) => (value, name) => {
  if (value !== undefined) check(value, name);
};
export function validateNumber(value, name, min = undefined, max = undefined) {
  if (typeof value !== "number") throw invalidArgType(name, "of type number", value);
  if ((min !== undefined && value < min) || (max !== undefined && value > max) || ((min !== undefined || max !== undefined) && Number.isNaN(value))) {
    throw outOfRange(name, `${min !== undefined ? `>= ${min}` : ""}${min !== undefined && max !== undefined ? " && " : ""}${max !== undefined ? `<= ${max}` : ""}`, value);
  }
}
export function validateInteger(value, name, min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER) {
  if (typeof value !== "number") throw invalidArgType(name, "of type number", value);
  if (!Number.isInteger(value)) throw outOfRange(name, "an integer", value);
  if (value < min || value > max) throw outOfRange(name, `>= ${min} && <= ${max}`, value);
}
export const validateInt32 = (value, name, min = -2147483648, max = 2147483647) => validateInteger(value, name, min, max);
export function validateUint32(value, name, positive = false) {
  if (typeof value !== "number") throw invalidArgType(name, "of type number", value);
  if (!Number.isInteger(value)) throw outOfRange(name, "an integer", value);
  const min = positive ? 1 : 0;
  if (value < min || value > 4294967295) throw outOfRange(name, `>= ${min} && < 4294967296`, value);
}
export function validateOneOf(value, name, choices) {
  if (choices.includes(value)) return;
  throw invalidArgValue(name, value, `must be one of: ${choices.map((c) => (typeof c === "string" ? `'${c}'` : String(c))).join(", ")}`);
}
export function validateBuffer(value, name = "buffer") {
  if (!ArrayBuffer.isView(value)) throw invalidArgType(name, ["Buffer", "TypedArray", "DataView"], value);
}
export function validateAbortSignal(signal, name) {
  if (signal === undefined) return;
  const canAbort = typeof signal === "object" && signal !== null && "aborted" in signal;
  if (!canAbort) throw invalidArgType(name, ["AbortSignal"], signal);
}
export function validateEncoding(data, encoding) {
  if (`${encoding}`.toLowerCase() === "hex" && data.length % 2 !== 0) {
    throw invalidArgValue("encoding", encoding, `is invalid for data of length ${data.length}`);
  }
}
export function abortError(signal = undefined, message = "The operation was aborted") {
  const error = nodeError(Error, "ABORT_ERR", message);
  error.name = "AbortError";
  const reason = signal instanceof AbortSignal ? signal.reason : signal?.reason;
  if (reason !== undefined) Object.defineProperty(error, "cause", { value: reason, writable: true, configurable: true });
  return error;
}
