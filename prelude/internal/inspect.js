// Values as people read them: what console prints. Follows Node's util.inspect in form.
//
// Nothing here may throw or loop, whatever the value: every look at an object that could run a
// script's code (getters of our own interfaces, proxies' traps) is guarded, depth and size are
// bounded, and circular references are named.
import { isInterfacePrototype } from "./interface.js";
import { native } from "./native.js";

const CUSTOM = Symbol.for("nodejs.util.inspect.custom");
const ITEMS_MAX = 100;
const STRING_MAX = 10_000;
const OUTPUT_MAX = 256 * 1024;
const LINE_MAX = 72;
const TypedArray = Object.getPrototypeOf(Uint8Array);
const { toString: functionText } = Function.prototype;
const { hasOwnProperty } = Object.prototype;
/** Attributes whose getters make something: looking at them would change the object. */
const QUIET = new Set(["body", "signal", "readable", "writable", "closed", "ready", "desiredSize", "byobRequest"]);

const attempt = (read, fallback) => {
  try {
    return read();
  } catch {
    return fallback;
  }
};

/** A string in quotes: single ones unless it has some. */
export function quote(text) {
  const cut = text.length > STRING_MAX ? text.slice(0, STRING_MAX) : text;
  const mark = !cut.includes("'") ? "'" : !cut.includes('"') ? '"' : !cut.includes("`") && !cut.includes("${") ? "`" : "'";
  const escaped = cut.replace(/[\\\x00-\x1f\x7f-\x9f'"`]|[\ud800-\udfff]/gu, (c) => {
    if (c === "\n") return "\\n";
    if (c === "\t") return "\\t";
    if (c === "\r") return "\\r";
    if (c === "\b") return "\\b";
    if (c === "\f") return "\\f";
    if (c === "\v") return "\\v";
    if (c === "\\") return "\\\\";
    if (c === mark) return `\\${c}`;
    if (c === "'" || c === '"' || c === "`") return c;
    const code = c.charCodeAt(0);
    return code > 0xff ? `\\u${code.toString(16).toUpperCase()}` : `\\x${code.toString(16).toUpperCase().padStart(2, "0")}`;
  });
  const rest = text.length - cut.length;
  return `${mark}${escaped}${mark}${rest > 0 ? `... ${rest} more character${rest > 1 ? "s" : ""}` : ""}`;
}

const keyText = (key) =>
  typeof key === "symbol" ? `[${String(key)}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? key : quote(key);

/** The lines of a stack: those of one that was shaped (stack.js), or the engine's ("function@file:line:column") in that form. */
export function stackText(stack) {
  const first = stack.startsWith("    at ") ? 0 : stack.indexOf("\n    at ") + 1;
  if (first > 0 || stack.startsWith("    at ")) return stack.slice(first);
  const own = [];
  const lines = [];
  for (const line of stack.split("\n")) {
    const at = line.indexOf("@");
    const where = at < 0 ? line : line.slice(at + 1);
    if (where === "" || where === "[native code]") continue;
    const name = at > 0 ? line.slice(0, at) : "";
    const text = name === "" || name.endsWith(" code") ? `    at ${where}` : `    at ${name} (${where})`;
    (where.startsWith("cairn:prelude") ? own : lines).push(text);
  }
  // Frames of the prelude say nothing to the user, unless there are no others.
  return (lines.length > 0 ? lines : own).join("\n");
}

function errorText(error) {
  const name = attempt(() => `${error.name ?? "Error"}`, "Error");
  const message = attempt(() => `${error.message ?? ""}`, "");
  const stack = attempt(() => (typeof error.stack === "string" ? stackText(error.stack) : ""), "");
  const head = message === "" ? name : `${name}: ${message}`;
  return stack === "" ? `[${head}]` : `${head}\n${stack}`;
}

/** The name of an object's class: of the nearest prototype that has a constructor. */
function className(object) {
  for (let o = object, i = 0; o !== null && i < 64; o = Object.getPrototypeOf(o), i++) {
    const descriptor = Object.getOwnPropertyDescriptor(o, "constructor");
    if (descriptor !== undefined && typeof descriptor.value === "function" && descriptor.value.name !== "" &&
      (o !== object || descriptor.value.prototype === o)) {
      return descriptor.value.name;
    }
  }
  return null;
}

class Inspector {
  constructor(options) {
    this.depth = options.depth === null ? Infinity : options.depth ?? 2;
    this.showHidden = !!options.showHidden;
    this.options = options;
    this.stack = [];
    this.circular = new Map();
    this.budget = OUTPUT_MAX;
  }

  value(value, level) {
    switch (typeof value) {
      case "string":
        return quote(value);
      case "number":
        return Object.is(value, -0) ? "-0" : `${value}`;
      case "bigint":
        return `${value}n`;
      case "symbol":
        return value.toString();
      case "object":
        return value === null ? "null" : this.object(value, level);
      case "function":
        return this.object(value, level);
      default:
        return `${value}`;
    }
  }

  object(value, level) {
    if (this.budget <= 0) return "...";
    const at = this.stack.indexOf(value);
    if (at >= 0) {
      if (!this.circular.has(value)) this.circular.set(value, this.circular.size + 1);
      return `[Circular *${this.circular.get(value)}]`;
    }
    let text;
    this.stack.push(value);
    try {
      text = this.custom(value, level) ?? this.describe(value, level);
    } catch (error) {
      text = attempt(() => `[an object that cannot be shown: ${error.message}]`, "[an object that cannot be shown]");
    }
    this.stack.pop();
    const index = this.circular.get(value);
    if (index !== undefined) text = `<ref *${index}> ${text}`;
    this.budget -= text.length;
    return text;
  }

  /** What the object itself says about how it is shown, or undefined. */
  custom(value, level) {
    const show = value[CUSTOM];
    if (typeof show !== "function") return undefined;
    const depth = this.depth - level;
    const shown = show.call(value, depth, { ...this.options, depth }, (v, o) => inspect(v, o));
    if (shown === value) return undefined;
    return typeof shown === "string" ? shown.replaceAll("\n", `\n${"  ".repeat(level)}`) : this.value(shown, level);
  }

  describe(value, level) {
    const name = className(value);
    const tag = attempt(() => value[Symbol.toStringTag], undefined);
    let prefix = name ?? "[Object: null prototype]";
    if (typeof tag === "string" && tag !== "" && tag !== name) prefix += ` [${tag}]`;
    const deep = level > this.depth;

    if (typeof value === "function") return this.wrap(this.functionHead(value, name), this.properties(value, level, deep), "{", "}", level);
    if (Array.isArray(value)) {
      const head = name === "Array" ? "" : `${prefix}(${value.length}) `;
      if (deep) return `[${name ?? "Array"}]`;
      return this.wrap(head, [...this.items(value, level), ...this.properties(value, level, false, true)], "[", "]", level, true);
    }
    if (value instanceof TypedArray) {
      if (deep) return `[${name}]`;
      const items = [];
      const count = Math.min(value.length, ITEMS_MAX);
      for (let i = 0; i < count; i++) items.push(this.value(value[i], level));
      if (value.length > count) items.push(more(value.length - count));
      return this.wrap(`${prefix}(${value.length}) `, items, "[", "]", level, true);
    }
    if (value instanceof ArrayBuffer || (typeof SharedArrayBuffer === "function" && value instanceof SharedArrayBuffer)) {
      const bytes = attempt(() => new Uint8Array(value), null);
      if (bytes === null) return `${prefix} { (detached), byteLength: 0 }`;
      const shown = Array.from(bytes.subarray(0, 50), (b) => b.toString(16).padStart(2, "0")).join(" ");
      const rest = bytes.length > 50 ? ` ... ${bytes.length - 50} more bytes` : "";
      return this.wrap(`${prefix} `, [`[Uint8Contents]: <${shown}${rest}>`, `byteLength: ${bytes.length}`], "{", "}", level);
    }
    if (value instanceof Map && attempt(() => (value.size, true), false)) {
      if (deep) return `[${name}]`;
      const items = [];
      for (const [k, v] of Map.prototype.entries.call(value)) {
        if (items.length === ITEMS_MAX) break;
        items.push(`${this.value(k, level + 1)} => ${this.value(v, level + 1)}`);
      }
      if (value.size > items.length) items.push(more(value.size - items.length));
      return this.wrap(`${prefix}(${value.size}) `, [...items, ...this.properties(value, level, false)], "{", "}", level);
    }
    if (value instanceof Set && attempt(() => (value.size, true), false)) {
      if (deep) return `[${name}]`;
      const items = [];
      for (const v of Set.prototype.values.call(value)) {
        if (items.length === ITEMS_MAX) break;
        items.push(this.value(v, level + 1));
      }
      if (value.size > items.length) items.push(more(value.size - items.length));
      return this.wrap(`${prefix}(${value.size}) `, [...items, ...this.properties(value, level, false)], "{", "}", level);
    }
    if (value instanceof Error) {
      const properties = this.properties(value, level, deep, false, ERROR_KEYS);
      for (const key of ["cause", "errors"]) {
        if (hasOwnProperty.call(value, key)) properties.push(`[${key}]: ${this.value(value[key], level + 1)}`);
      }
      const text = errorText(value).replaceAll("\n", `\n${"  ".repeat(level)}`);
      return properties.length === 0 ? text : `${text} {\n${this.lines(properties, level)}\n${"  ".repeat(level)}}`;
    }
    if (value instanceof Date) {
      const text = attempt(() => Date.prototype.toISOString.call(value), "Invalid Date");
      return this.wrap(`${text} `, this.properties(value, level, deep), "{", "}", level);
    }
    if (value instanceof RegExp) return this.wrap(`${RegExp.prototype.toString.call(value)} `, this.properties(value, level, deep), "{", "}", level);
    if (value instanceof Promise) {
      const [state, result] = native.promiseState(value) ?? [0, undefined];
      const shown = state === 0 ? "<pending>" : `${state === 2 ? "<rejected> " : ""}${this.value(result, level + 1)}`;
      return this.wrap("Promise ", [...(deep ? [] : [shown]), ...this.properties(value, level, deep)], "{", "}", level);
    }
    if (value instanceof WeakMap || value instanceof WeakSet) return `${name} { <items unknown> }`;
    if (value instanceof WeakRef) return this.wrap("WeakRef ", [this.value(value.deref(), level + 1)], "{", "}", level);
    for (const Wrapper of [String, Number, Boolean, Symbol, BigInt]) {
      if (!(value instanceof Wrapper)) continue;
      const primitive = attempt(() => Wrapper.prototype.valueOf.call(value), undefined);
      if (primitive === undefined) break;
      const own = this.properties(value, level, deep, Wrapper === String);
      return this.wrap(`[${Wrapper.name}: ${this.value(primitive, level)}] `, own, "{", "}", level);
    }
    if (tag === "Arguments" || Object.prototype.toString.call(value) === "[object Arguments]") {
      return this.wrap("[Arguments] ", this.items(Array.from(value), level), "[", "]", level, true);
    }
    if (deep) return `[${name ?? "Object: null prototype"}]`;
    const own = this.properties(value, level, false);
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== null && isInterfacePrototype(nearestInterface(prototype))) return this.platformObject(value, prefix, own, level);
    if (name === "Object" && prefix === "Object") return this.wrap("", own, "{", "}", level, false, true);
    return this.wrap(`${prefix} `, own, "{", "}", level, false, true);
  }

  /** An object of one of our interfaces: entries of a collection, or its attributes. */
  platformObject(value, prefix, own, level) {
    const items = [];
    if (typeof value.entries === "function" && typeof value.forEach === "function") {
      for (const [k, v] of value.entries()) {
        if (items.length === ITEMS_MAX) break;
        items.push(`${this.value(k, level + 1)} => ${this.value(v, level + 1)}`);
      }
      return this.wrap(`${prefix}(${items.length}) `, [...items, ...own], "{", "}", level, false, true);
    }
    const seen = new Set();
    for (let p = Object.getPrototypeOf(value); p !== null && p !== Object.prototype; p = Object.getPrototypeOf(p)) {
      for (const key of Object.keys(p)) {
        const descriptor = Object.getOwnPropertyDescriptor(p, key);
        if (descriptor.get === undefined || seen.has(key) || QUIET.has(key) || key.startsWith("on")) continue;
        seen.add(key);
        const got = attempt(() => ({ value: descriptor.get.call(value) }), null);
        if (got !== null) items.push(`${keyText(key)}: ${this.value(got.value, level + 1)}`);
      }
    }
    return this.wrap(`${prefix} `, [...items, ...own], "{", "}", level, false, true);
  }

  functionHead(value, name) {
    const text = attempt(() => functionText.call(value), "");
    if (/^class\b/.test(text)) {
      const parent = Object.getPrototypeOf(value);
      const of = typeof parent === "function" && parent.name !== "" ? ` extends ${parent.name}` : "";
      return `[class ${value.name || "(anonymous)"}${of}] `;
    }
    const kind = name === null ? "Function (null prototype)" : name;
    return `[${kind}${value.name ? `: ${value.name}` : " (anonymous)"}] `;
  }

  items(array, level) {
    const items = [];
    const count = Math.min(array.length, ITEMS_MAX);
    for (let i = 0; i < count;) {
      if (hasOwnProperty.call(array, i)) {
        items.push(this.member(array, i, level));
        i++;
        continue;
      }
      let gap = 0;
      while (i < array.length && !hasOwnProperty.call(array, i) && gap < 1e6) {
        gap++;
        i++;
      }
      items.push(`<${gap} empty item${gap > 1 ? "s" : ""}>`);
    }
    if (array.length > count) items.push(more(array.length - count));
    return items;
  }

  /** The value of a property, without calling its getter. */
  member(object, key, level) {
    const descriptor = Object.getOwnPropertyDescriptor(object, key);
    if (descriptor === undefined) return "undefined";
    if (descriptor.get !== undefined) return descriptor.set !== undefined ? "[Getter/Setter]" : "[Getter]";
    if (descriptor.set !== undefined) return "[Setter]";
    return this.value(descriptor.value, level + 1);
  }

  properties(object, level, deep, skipIndexes = false, skip = undefined) {
    if (deep) return [];
    const out = [];
    for (const key of Reflect.ownKeys(object)) {
      if (skipIndexes && typeof key === "string" && /^(?:\d+|length)$/.test(key)) continue;
      if (skip !== undefined && skip.has(key)) continue;
      const descriptor = Object.getOwnPropertyDescriptor(object, key);
      if (descriptor === undefined || (!descriptor.enumerable && !this.showHidden)) continue;
      if (out.length === ITEMS_MAX * 10) {
        out.push("...");
        break;
      }
      const label = descriptor.enumerable ? keyText(key) : `[${String(key)}]`;
      out.push(`${label}: ${this.member(object, key, level)}`);
    }
    return out;
  }

  lines(parts, level) {
    const indent = "  ".repeat(level + 1);
    return parts.map((part) => `${indent}${part}`).join(",\n");
  }

  wrap(head, parts, open, close, level, isList = false, always = false) {
    if (parts.length === 0) return isList || always || head === "" ? `${head}${open}${close}` : head.trimEnd();
    const single = parts.join(", ");
    const start = level * 2 + head.length;
    if (single.length + start <= LINE_MAX && !single.includes("\n")) return `${head}${open} ${single} ${close}`;
    const indent = "  ".repeat(level);
    const short = parts.filter((part) => part.length <= 6 && !part.includes("\n"));
    if (isList && short.length > 6 && short.length >= parts.length - 1 && short.at(-1) === parts[short.length - 1]) {
      return `${head}${open}\n${columns(short, `${indent}  `)}${short.length < parts.length ? `,\n${indent}  ${parts.at(-1)}` : ""}\n${indent}${close}`;
    }
    return `${head}${open}\n${this.lines(parts, level)}\n${indent}${close}`;
  }
}

const ERROR_KEYS = new Set(["stack", "message", "name", "line", "column", "sourceURL", "cause", "errors"]);
const more = (count) => `... ${count} more item${count > 1 ? "s" : ""}`;

function nearestInterface(prototype) {
  for (let p = prototype; p !== null && p !== Object.prototype; p = Object.getPrototypeOf(p)) if (isInterfacePrototype(p)) return p;
  return null;
}

/** Many short items, aligned. */
function columns(parts, indent) {
  const width = Math.max(...parts.map((part) => part.length)) + 2;
  const perLine = Math.max(1, Math.floor(LINE_MAX / width));
  const lines = [];
  for (let i = 0; i < parts.length; i += perLine) {
    const row = parts.slice(i, i + perLine);
    lines.push(indent + row.map((part, k) => (i + k === parts.length - 1 ? part : k === row.length - 1 ? `${part},` : `${part},`.padEnd(width))).join(""));
  }
  return lines.join("\n");
}

/** options: depth (2; null for all), showHidden. */
export function inspect(value, options = {}) {
  return new Inspector(options).value(value, 0);
}

/** console's first step: format specifiers in a string, then the rest, separated by blanks. */
export function format(args, options = {}) {
  if (args.length === 0) return "";
  const [first] = args;
  let text;
  let next = 1;
  if (typeof first !== "string") {
    text = inspect(first, options);
  } else if (args.length === 1 || !first.includes("%")) {
    text = first;
  } else {
    text = first.replace(/%[sdifjoOc%]/g, (specifier) => {
      if (specifier === "%%") return "%";
      if (next >= args.length) return specifier;
      const value = args[next++];
      switch (specifier) {
        case "%s":
          return typeof value === "string" ? value : typeof value === "object" && value !== null ? shortText(value) : inspect(value, options);
        case "%d":
          return typeof value === "bigint" ? `${value}n` : typeof value === "symbol" ? "NaN" : `${attempt(() => Number(value), NaN)}`;
        case "%i":
          return typeof value === "bigint" ? `${value}n` : `${attempt(() => Number.parseInt(value, 10), NaN)}`;
        case "%f":
          return typeof value === "symbol" ? "NaN" : `${attempt(() => Number.parseFloat(value), NaN)}`;
        case "%j":
          return attempt(() => JSON.stringify(value), "[Circular]") ?? "undefined";
        case "%o":
          return inspect(value, { ...options, showHidden: true, depth: 4 });
        case "%O":
          return inspect(value, options);
        default:
          return ""; // %c: style sheets have no place in a log
      }
    });
  }
  for (; next < args.length; next++) {
    text += ` ${typeof args[next] === "string" ? args[next] : inspect(args[next], options)}`;
  }
  return text;
}

/** %s of an object: its own toString(), if it has one that is not Object's. */
function shortText(value) {
  const own = attempt(() => value.toString, undefined);
  if (typeof own === "function" && own !== Object.prototype.toString && own !== Error.prototype.toString && !Array.isArray(value)) {
    const text = attempt(() => `${own.call(value)}`, undefined);
    if (text !== undefined) return text;
  }
  return inspect(value, { depth: 0 });
}
