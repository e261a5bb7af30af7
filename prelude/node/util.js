// node:util
import { invalidArgType, nodeError, validateFunction, validateString } from "./internal/errors.js";
import { isDeepStrictEqual } from "./internal/equal.js";
import { format as formatArgs, inspect as show } from "./internal/internals.js";

const kCustomPromisify = Symbol.for("nodejs.util.promisify.custom");
const kCustomInspect = Symbol.for("nodejs.util.inspect.custom");
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
  isKeyObject: (value) => value?.constructor?.name === "KeyObject",
  isMap: hasSlot(getter(Map, "size")),
  isMapIterator: (value) => isObject(value) && toStringTag(value) === "Map Iterator",
  isModuleNamespaceObject: (value) => isObject(value) && toStringTag(value) === "Module",
  isNativeError: (value) => (typeof Error.isError === "function" ? Error.isError(value) : value instanceof Error),
  isNumberObject: boxed(Number),
  isPromise: (value) => isObject(value) && value instanceof Promise,
  isProxy: () => false,
  isRegExp: (value) => isObject(value) && value instanceof RegExp && toStringTag(value) === "RegExp",
  isSet: hasSlot(getter(Set, "size")),
  isSetIterator: (value) => isObject(value) && toStringTag(value) === "Set Iterator",
  isSharedArrayBuffer,
  isStringObject: boxed(String),
  isSymbolObject: boxed(Symbol),
  isTypedArray: (value) => ArrayBuffer.isView(value) && !(value instanceof DataView),
  isWeakMap: (value) => value instanceof WeakMap,
  isWeakSet: (value) => value instanceof WeakSet,
};
types.isBoxedPrimitive = (value) =>
  types.isNumberObject(value) || types.isStringObject(value) || types.isBooleanObject(value) || types.isBigIntObject(value) || types.isSymbolObject(value);
for (const name of ["Uint8Array", "Int8Array", "Uint8ClampedArray", "Uint16Array", "Int16Array", "Uint32Array", "Int32Array", "Float32Array", "Float64Array"]) {
  types[`is${name}`] = (value) => ArrayBuffer.isView(value) && typedArrayTag.call(value) === name;
}

export function inspect(value, options = {}, depth = undefined) {
  if (typeof options === "boolean") return show(value, { showHidden: options, depth });
  return show(value, options ?? {});
}
inspect.custom = kCustomInspect;
inspect.defaultOptions = { showHidden: false, depth: 2, colors: false, customInspect: true, maxArrayLength: 100, maxStringLength: 10000, breakLength: 128, compact: 3, sorted: false, getters: false, numericSeparator: false };
inspect.colors = { reset: [0, 0], bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], inverse: [7, 27], black: [30, 39], red: [31, 39], green: [32, 39], yellow: [33, 39], blue: [34, 39], magenta: [35, 39], cyan: [36, 39], white: [37, 39], gray: [90, 39], grey: [90, 39] };
inspect.styles = {};

export function promisify(original) {
  validateFunction(original, "original");
  if (original[kCustomPromisify] !== undefined) {
    validateFunction(original[kCustomPromisify], "util.promisify.custom");
    return original[kCustomPromisify];
  }
  const promised = function (...args) {
    return new Promise((resolve, reject) => {
      Reflect.apply(original, this, [...args, (error, ...values) => (error ? reject(error) : resolve(values[0]))]);
    });
  };
  Object.setPrototypeOf(promised, Object.getPrototypeOf(original));
  Object.defineProperty(promised, kCustomPromisify, { value: promised, configurable: true });
  return Object.defineProperties(promised, Object.getOwnPropertyDescriptors(original));
}
promisify.custom = kCustomPromisify;

export function callbackify(original) {
  validateFunction(original, "original");
  const callbackified = function (...args) {
    const callback = args.pop();
    validateFunction(callback, "last argument");
    Reflect.apply(original, this, args).then(
      (value) => queueMicrotask(() => callback(null, value)),
      (reason) => queueMicrotask(() => {
        if (reason) return callback(reason);
        const error = nodeError(Error, "ERR_FALSY_VALUE_REJECTION", "Promise was rejected with falsy value");
        error.reason = reason;
        return callback(error);
      }),
    );
  };
  Object.defineProperty(callbackified, "name", { value: `${original.name}Callbackified`, configurable: true });
  return callbackified;
}

export function inherits(constructor, superConstructor) {
  if (typeof constructor !== "function") throw invalidArgType("ctor", "of type function", constructor);
  if (typeof superConstructor !== "function") throw invalidArgType("superCtor", "of type function", superConstructor);
  if (superConstructor.prototype === undefined) throw invalidArgType("superCtor.prototype", "of type object", undefined);
  Object.defineProperty(constructor, "super_", { value: superConstructor, writable: true, configurable: true });
  Object.setPrototypeOf(constructor.prototype, superConstructor.prototype);
}

const warned = new Set();
export function deprecate(fn, message, code = undefined) {
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

const enabledSections = () => `${globalThis.process?.env?.NODE_DEBUG ?? ""}`.toLowerCase().split(",");
export function debuglog(section) {
  const enabled = enabledSections().includes(section.toLowerCase());
  return Object.assign((...args) => enabled && console.error(`${section.toUpperCase()} 1: ${format(...args)}`), { enabled });
}

export const format = (...args) => formatArgs(args);
export const formatWithOptions = (options, ...args) => formatArgs(args, options);

export function stripVTControlCharacters(text) {
  validateString(text, "str");
  // Escape sequences of terminals: CSI ... final byte, OSC ... BEL or ST.
  return text.replace(/[\u001b\u009b](?:\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[[\]()#;?]*(?:\d{1,4}(?:[;:]\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~])/g, "");
}

export function styleText(style, text) {
  validateString(text, "text");
  let out = text;
  for (const name of [style].flat()) {
    const codes = inspect.colors[name];
    if (!codes) throw nodeError(TypeError, "ERR_INVALID_ARG_VALUE", `The argument 'format' must be one of: ${Object.keys(inspect.colors).map((k) => `'${k}'`).join(", ")}. Received '${name}'`);
    out = `\u001b[${codes[0]}m${out}\u001b[${codes[1]}m`;
  }
  return out;
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

export class MIMEType {
  #type;
  #subtype;
  params = new Map();
  constructor(input) {
    const match = /^\s*([\w!#$&^.+-]+)\/([\w!#$&^.+-]+)\s*(;[^]*)?$/.exec(`${input}`);
    if (!match) throw nodeError(TypeError, "ERR_INVALID_MIME_SYNTAX", `The MIME syntax for a MIME type in "${input}" is invalid`);
    this.#type = match[1].toLowerCase();
    this.#subtype = match[2].toLowerCase();
    for (const [, name, quoted, plain] of (match[3] ?? "").matchAll(/;\s*([^=;\s]+)=(?:"((?:[^"\\]|\\.)*)"|([^;]*))/g)) {
      const key = name.toLowerCase();
      if (!this.params.has(key)) this.params.set(key, quoted !== undefined ? quoted.replace(/\\(.)/g, "$1") : plain.trim());
    }
  }
  get type() { return this.#type; }
  set type(value) { this.#type = `${value}`.toLowerCase(); }
  get subtype() { return this.#subtype; }
  set subtype(value) { this.#subtype = `${value}`.toLowerCase(); }
  get essence() { return `${this.#type}/${this.#subtype}`; }
  toString() {
    let text = this.essence;
    for (const [name, value] of this.params) text += `;${name}=${/^[\w!#$&^.+-]+$/.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`}`;
    return text;
  }
  toJSON() { return this.toString(); }
}

export function aborted(signal, resource) {
  void resource;
  return new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve(), { once: true })));
}

export default {
  types, inspect, promisify, callbackify, inherits, deprecate, debuglog, debug: debuglog, format, formatWithOptions,
  isDeepStrictEqual, stripVTControlCharacters, styleText, parseArgs, MIMEType, aborted,
  toUSVString: (text) => `${text}`.toWellFormed(),
  isArray: Array.isArray,
  TextEncoder: globalThis.TextEncoder,
  TextDecoder: globalThis.TextDecoder,
  transferableAbortController: () => new AbortController(),
  transferableAbortSignal: (signal) => signal,
  getSystemErrorName: (number) => Object.entries(require("./os.js").default.constants.errno).find(([, n]) => n === -number)?.[0],
};
