// node:util
import { invalidArgType, invalidArgValue, nodeError, notImplemented, validateFunction, validateOneOf, validateString } from "./internal/errors.js";
import { isDeepStrictEqual } from "./internal/equal.js";
import { format, formatWithOptions, inspect } from "./internal/inspect.js";
import { proxyDetails } from "./internal/inspect-engine.js";
import { keyObjects } from "./internal/internals.js";
import { MIMEParams, MIMEType } from "./internal/mime.js";
import { parseEnv } from "./internal/dotenv.js";

export { format, formatWithOptions, inspect };
const kCustomPromisify = Symbol.for("nodejs.util.promisify.custom");
export const kCustomPromisifyArgs = Symbol("customPromisifyArgs");
const toStringTag = (value) => Object.prototype.toString.call(value).slice(8, -1);
const hasSlot = (check) => (value) => {
  try {
    check.call(value);
    return true;
  } catch {
    return false;
  }
};
const getter = (constructor, name) => Object.getOwnPropertyDescriptor(constructor.prototype, name).get;
const typedArrayTag = getter(Object.getPrototypeOf(Uint8Array), Symbol.toStringTag);
const isArrayBuffer = hasSlot(getter(ArrayBuffer, "byteLength"));
const isSharedArrayBuffer = typeof SharedArrayBuffer === "function" ? hasSlot(getter(SharedArrayBuffer, "byteLength")) : () => false;
const isObject = (value) => value !== null && typeof value === "object";
const boxed = (type) => (value) => isObject(value) && hasSlot(type.prototype.valueOf)(value);

export const types = {
  isAnyArrayBuffer: (value) => isArrayBuffer(value) || isSharedArrayBuffer(value),
  isArrayBuffer,
  isArrayBufferView: ArrayBuffer.isView,
  isArgumentsObject: (value) => isObject(value) && toStringTag(value) === "Arguments",
  isAsyncFunction: (value) => typeof value === "function" && toStringTag(value) === "AsyncFunction",
  isBigInt64Array: (value) => ArrayBuffer.isView(value) && typedArrayTag.call(value) === "BigInt64Array",
  isBigIntObject: boxed(BigInt),
  isBigUint64Array: (value) => ArrayBuffer.isView(value) && typedArrayTag.call(value) === "BigUint64Array",
  isBooleanObject: boxed(Boolean),
  isCryptoKey: (value) => typeof CryptoKey === "function" && value instanceof CryptoKey,
  isDataView: hasSlot(getter(DataView, "buffer")),
  isDate: hasSlot(Date.prototype.getTime),
  isExternal: () => false,
  isGeneratorFunction: (value) => typeof value === "function" && /GeneratorFunction$/.test(toStringTag(value)),
  isGeneratorObject: (value) => isObject(value) && toStringTag(value) === "Generator",
  isKeyObject: (value) => keyObjects.has(value),
  isMap: hasSlot(getter(Map, "size")),
  isMapIterator: (value) => isObject(value) && toStringTag(value) === "Map Iterator",
  isModuleNamespaceObject: (value) => isObject(value) && toStringTag(value) === "Module",
  isNativeError: (value) => (typeof Error.isError === "function" ? Error.isError(value) : value instanceof Error),
  isNumberObject: boxed(Number),
  isPromise: (value) => isObject(value) && value instanceof Promise,
  isProxy: (value) => proxyDetails(value) !== undefined,
  isRegExp: (value) => isObject(value) && value !== RegExp.prototype && hasSlot(getter(RegExp, "source"))(value),
  isSet: hasSlot(getter(Set, "size")),
  isSetIterator: (value) => isObject(value) && toStringTag(value) === "Set Iterator",
  isSharedArrayBuffer,
  isStringObject: boxed(String),
  isSymbolObject: boxed(Symbol),
  isTypedArray: (value) => ArrayBuffer.isView(value) && !(value instanceof DataView),
  isWeakMap: hasSlot(function () { WeakMap.prototype.has.call(this, {}); }),
  isWeakSet: hasSlot(function () { WeakSet.prototype.has.call(this, {}); }),
};
types.isBoxedPrimitive = (value) =>
  types.isNumberObject(value) || types.isStringObject(value) || types.isBooleanObject(value) || types.isBigIntObject(value) || types.isSymbolObject(value);
for (const name of ["Uint8Array", "Int8Array", "Uint8ClampedArray", "Uint16Array", "Int16Array", "Uint32Array", "Int32Array", "Float16Array", "Float32Array", "Float64Array"]) {
  types[`is${name}`] = (value) => ArrayBuffer.isView(value) && typedArrayTag.call(value) === name;
}


export function promisify(original) {
  validateFunction(original, "original");
  if (original[kCustomPromisify] !== undefined) {
    const custom = original[kCustomPromisify];
    validateFunction(custom, "util.promisify.custom");
    return Object.defineProperty(custom, kCustomPromisify, { value: custom, enumerable: false, writable: false, configurable: true });
  }
  const names = original[kCustomPromisifyArgs];
  function promised(...args) {
    return new Promise((resolve, reject) => {
      Reflect.apply(original, this, [...args, (error, ...values) => {
        if (error) return reject(error);
        if (names === undefined || values.length < 2) return resolve(values[0]);
        return resolve(Object.fromEntries(names.map((name, i) => [name, values[i]])));
      }]);
    });
  }
  Object.setPrototypeOf(promised, Object.getPrototypeOf(original));
  Object.defineProperty(promised, kCustomPromisify, { value: promised, enumerable: false, writable: false, configurable: true });
  return Object.defineProperties(promised, Object.getOwnPropertyDescriptors(original));
}
promisify.custom = kCustomPromisify;

export function callbackify(original) {
  validateFunction(original, "original");
  function callbackified(...args) {
    const callback = args.pop();
    validateFunction(callback, "last argument");
    const call = (...values) => queueMicrotask(() => Reflect.apply(callback, this, values));
    Reflect.apply(original, this, args).then(
      (value) => call(null, value),
      (reason) => {
        if (reason) return call(reason);
        return call(nodeError(Error, "ERR_FALSY_VALUE_REJECTION", "Promise was rejected with falsy value", { reason }));
      },
    );
  }
  const descriptors = Object.getOwnPropertyDescriptors(original);
  if (typeof descriptors.length.value === "number") descriptors.length.value++;
  if (typeof descriptors.name.value === "string") descriptors.name.value += "Callbackified";
  delete descriptors.prototype;
  for (const key of ["arguments", "caller"]) delete descriptors[key];
  return Object.defineProperties(callbackified, descriptors);
}

export function inherits(constructor, superConstructor) {
  if (constructor === undefined || constructor === null) throw invalidArgType("ctor", "of type function", constructor);
  if (superConstructor === undefined || superConstructor === null) throw invalidArgType("superCtor", "of type function", superConstructor);
  if (superConstructor.prototype === undefined) throw invalidArgType("superCtor.prototype", "of type object", superConstructor.prototype);
  Object.defineProperty(constructor, "super_", { value: superConstructor, writable: true, configurable: true });
  Object.setPrototypeOf(constructor.prototype, superConstructor.prototype);
}

export function _extend(target, source) {
  if (source === null || typeof source !== "object") return target;
  const names = Object.keys(source);
  for (let i = names.length; i-- > 0;) target[names[i]] = source[names[i]];
  return target;
}

const warned = new Set();
export function deprecate(fn, message, code = undefined) {
  validateFunction(fn, "fn");
  let done = false;
  const deprecated = function (...args) {
    if (!done) {
      done = true;
      if (code === undefined || !warned.has(code)) console.warn(`${code ? `[${code}] ` : ""}DeprecationWarning: ${message}`);
      if (code !== undefined) warned.add(code);
    }
    return new.target ? Reflect.construct(fn, args, new.target) : Reflect.apply(fn, this, args);
  };
  Object.setPrototypeOf(deprecated, fn);
  if (fn.prototype) deprecated.prototype = fn.prototype;
  return deprecated;
}

/** As on the platform, every section is enabled: there is no NODE_DEBUG to ask. */
export function debuglog(section, onReady = undefined) {
  const name = `${section}`.toUpperCase();
  let asked = false;
  const debug = (...args) => console.log(format("%s: %s\n", name, formatWithOptions({}, ...args)));
  const logger = (...args) => {
    if (!asked) {
      asked = true;
      if (typeof onReady === "function") onReady(debug);
    }
    return debug(...args);
  };
  return Object.defineProperty(logger, "enabled", { get: () => true, configurable: true, enumerable: true });
}

const pad = (number) => `${number}`.padStart(2, "0");
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
export function log(...args) {
  const now = new Date();
  console.log("%s - %s", `${now.getDate()} ${MONTHS[now.getMonth()]} ${[now.getHours(), now.getMinutes(), now.getSeconds()].map(pad).join(":")}`, format(...args));
}

export function stripVTControlCharacters(text) {
  validateString(text, "str");
  // Escape sequences of terminals: OSC ... BEL, ST or ESC \, then CSI and the like with a final byte.
  return text.replace(/(?:\u001b\]|\u009d)[^\u0007\u001b\u009c\u009d]*(?:\u0007|\u001b\\|\u009c)|[\u001b\u009b][[\]()#;?]*(?:\d{1,4}(?:[;:]\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~]/g, "");
}

/** The codes of a style: a name of inspect.colors, or a colour "#rgb" or "#rrggbb". */
function styleCodes(name) {
  if (name === "none") return ["", ""];
  const codes = inspect.colors[name];
  if (codes) return [`\u001b[${codes[0]}m`, `\u001b[${codes[1]}m`];
  throw invalidArgValue("format", name, `must be one of: ${Object.keys(inspect.colors).map((k) => `'${k}'`).join(", ")}`);
}
export function styleText(style, text, options = undefined) {
  validateString(text, "text");
  if (typeof style !== "string" && !Array.isArray(style)) throw invalidArgValue("format", style, `must be one of: ${Object.keys(inspect.colors).map((k) => `'${k}'`).join(", ")}`);
  if (options?.validateStream !== undefined && typeof options.validateStream !== "boolean") throw invalidArgType("options.validateStream", "of type boolean", options.validateStream);
  const stream = options?.stream;
  if (stream !== undefined && options.validateStream !== false && !(stream instanceof ReadableStream || stream instanceof WritableStream || (isObject(stream) && typeof stream.pipe === "function") || typeof stream?.write === "function")) {
    throw invalidArgType("stream", ["ReadableStream", "WritableStream", "Stream"], stream);
  }
  let left = "";
  let right = "";
  for (const name of [style].flat()) {
    validateOneOf(name, "format", ["none", ...Object.keys(inspect.colors)]);
    const [open, close] = styleCodes(name);
    left += open;
    right = `${close}${right}`;
  }
  return `${left}${text}${right}`;
}

/** https://nodejs.org/api/util.html#utilparseargsconfig */
export function parseArgs({ args = [], options = {}, strict = true, allowPositionals = !strict, allowNegative = false, tokens: wantTokens = false } = {}) {
  const values = { __proto__: null };
  const positionals = [];
  const tokens = [];
  const store = (name, value, rawName) => {
    const option = options[name];
    if (strict && option === undefined) throw nodeError(TypeError, "ERR_PARSE_ARGS_UNKNOWN_OPTION", `Unknown option '${rawName}'`);
    if (strict && option.type === "string" && value === undefined) {
      throw nodeError(TypeError, "ERR_PARSE_ARGS_INVALID_OPTION_VALUE", `Option '${rawName} <value>' argument missing`);
    }
    if (strict && option.type === "boolean" && typeof value === "string") {
      throw nodeError(TypeError, "ERR_PARSE_ARGS_INVALID_OPTION_VALUE", `Option '${rawName}' does not take an argument`);
    }
    const stored = value ?? true;
    if (option?.multiple) (values[name] ??= []).push(stored);
    else values[name] = stored;
  };
  const longName = (short) => Object.keys(options).find((name) => options[name].short === short) ?? short;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i];
    if (arg === "--") {
      tokens.push({ kind: "option-terminator", index: i });
      for (const rest of args.slice(i + 1)) positionals.push(rest);
      break;
    }
    const long = /^--([^=]+)(?:=([^]*))?$/.exec(arg);
    if (long) {
      let [, name, value] = long;
      let negated = false;
      if (allowNegative && options[name] === undefined && name.startsWith("no-")) {
        name = name.slice(3);
        negated = true;
      }
      const inlineValue = value !== undefined;
      if (!inlineValue && options[name]?.type === "string" && i + 1 < args.length) value = args[++i];
      tokens.push({ kind: "option", name, rawName: `--${long[1]}`, index: i, value, inlineValue });
      store(name, negated ? false : value, `--${long[1]}`);
      continue;
    }
    if (/^-[^-]/.test(arg)) {
      for (let at = 1; at < arg.length; at++) {
        const name = longName(arg[at]);
        let value;
        if (options[name]?.type === "string") {
          value = at + 1 < arg.length ? arg.slice(at + 1) : args[++i];
          at = arg.length;
        }
        tokens.push({ kind: "option", name, rawName: `-${arg[1]}`, index: i, value, inlineValue: false });
        store(name, value, `-${name}`);
      }
      continue;
    }
    if (!allowPositionals) throw nodeError(TypeError, "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL", `Unexpected argument '${arg}'. This command does not take positional arguments`);
    positionals.push(arg);
    tokens.push({ kind: "positional", index: i, value: arg });
  }
  for (const [name, option] of Object.entries(options)) {
    if (option.default !== undefined && values[name] === undefined) values[name] = option.default;
  }
  return wantTokens ? { values, positionals, tokens } : { values, positionals };
}

export async function aborted(signal, resource) {
  if (signal === undefined || signal === null || typeof signal !== "object" || !(signal instanceof AbortSignal)) throw invalidArgType("signal", ["AbortSignal"], signal);
  if (resource === null || (typeof resource !== "object" && typeof resource !== "function")) throw invalidArgType("resource", "of type object", resource);
  if (signal.aborted) return undefined;
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

const isNull = (value) => value === null;
const isUndefined = (value) => value === undefined;
const isNullOrUndefined = (value) => value === null || value === undefined;
const isBoolean = (value) => typeof value === "boolean";
const isNumber = (value) => typeof value === "number";
const isString = (value) => typeof value === "string";
const isSymbol = (value) => typeof value === "symbol";
const isFunction = (value) => typeof value === "function";
const isError = (value) => types.isNativeError(value) || value instanceof Error;
const isPrimitive = (value) => value === null || (typeof value !== "object" && typeof value !== "function");
const isBuffer = (value) => require("./buffer.js").Buffer.isBuffer(value);
const isArray = (value) => Array.isArray(value);

/** What a worker has no use for; the names are there. */
const absent = (name) => ({ [name]() { throw notImplemented(name); } })[name];
const toUSVString = (text) => `${text}`.toWellFormed();
const { isRegExp, isDate } = types;

export { MIMEParams, MIMEType, isDeepStrictEqual, parseEnv };
export default {
  types, callbackify, promisify, inherits, deprecate, isDeepStrictEqual, debug: debuglog, debuglog, format, formatWithOptions, inspect,
  MIMEParams, MIMEType, TextDecoder: globalThis.TextDecoder, TextEncoder: globalThis.TextEncoder, _extend, aborted,
  getCallSite: absent("getCallSite"), getCallSites: absent("getCallSites"), getSystemErrorMap: absent("getSystemErrorMap"),
  getSystemErrorMessage: absent("getSystemErrorMessage"), getSystemErrorName: absent("getSystemErrorName"),
  isArray, isBoolean, isBuffer, isDate, isError, isFunction, isNull, isNullOrUndefined, isNumber,
  isObject: (value) => value !== null && typeof value === "object", isPrimitive, isRegExp, isString, isSymbol, isUndefined,
  log, parseArgs, parseEnv, stripVTControlCharacters, styleText, toUSVString,
  transferableAbortController: absent("transferableAbortController"), transferableAbortSignal: absent("transferableAbortSignal"),
  _errnoException: absent("_errnoException"), _exceptionWithHostPort: absent("_exceptionWithHostPort"),
};
