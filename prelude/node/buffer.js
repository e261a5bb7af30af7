// node:buffer. The class is the package's; what is slow in JavaScript (text in and out) is C's, and
// what the package lacks is here.
import * as package_ from "buffer";
import { native } from "./internal/internals.js";
import { methods as numbers } from "./internal/buffer-numbers.js";
import { invalidArgType, invalidArgValue, nodeError, outOfRange, specificType, validateInteger, validateNumber, validateString } from "./internal/errors.js";

export const { Buffer, INSPECT_MAX_BYTES } = package_.default ?? package_;
Object.defineProperty(Buffer, "name", { value: "Buffer", configurable: true }); // the bundler may give it another
export const kMaxLength = 2 ** 31 - 1;
const kStringMaxLength = 536870888;
const inspectSymbol = Symbol.for("nodejs.util.inspect.custom");

const { toString, equals, indexOf, lastIndexOf, includes, fill } = Buffer.prototype;

/** Known encodings by any of their spellings; undefined for others. */
function encodingName(encoding) {
  if (encoding === undefined || encoding === null || encoding === "") return "utf8";
  switch (`${encoding}`.toLowerCase()) {
    case "utf8":
    case "utf-8":
      return "utf8";
    case "base64":
      return "base64";
    case "base64url":
      return "base64url";
    case "hex":
      return "hex";
    case "latin1":
    case "binary":
      return "latin1";
    case "ascii":
      return "ascii";
    case "ucs2":
    case "ucs-2":
    case "utf16le":
    case "utf-16le":
      return "utf16le";
  }
  return undefined;
}

function unknownEncoding(encoding) {
  return nodeError(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`);
}

const asBuffer = (bytes) => Object.setPrototypeOf(bytes, Buffer.prototype);

/** Base64 of either alphabet, as Node.js reads it: anything that is no digit is passed over, "=" ends it. */
function base64Bytes(text) {
  const end = text.indexOf("=");
  const digits = (end < 0 ? text : text.slice(0, end)).replace(/[^\w+/-]/g, "").replace(/_/g, "/").replace(/-/g, "+");
  return Uint8Array.fromBase64(digits.length % 4 === 1 ? digits.slice(0, -1) : digits, { lastChunkHandling: "loose" });
}

function hexBytes(text) {
  const whole = text.length & ~1;
  let good = /^(?:[\da-f]{2})*/i.exec(text)[0].length;
  good = Math.min(good, whole);
  return Uint8Array.fromHex(text.slice(0, good));
}

function bytesOfText(text, encoding) {
  const name = encodingName(encoding);
  switch (name) {
    case "utf8":
      return native.utf8Encode(text);
    case "base64":
    case "base64url":
      return base64Bytes(text);
    case "hex":
      return hexBytes(text);
    case "utf16le": {
      const bytes = new Uint8Array(text.length * 2);
      for (let i = 0; i < text.length; i++) {
        const unit = text.charCodeAt(i);
        bytes[i * 2] = unit;
        bytes[i * 2 + 1] = unit >> 8;
      }
      return bytes;
    }
    case undefined:
      throw unknownEncoding(encoding);
    default: {
      const bytes = new Uint8Array(text.length);
      for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
      return bytes;
    }
  }
}

const badFirst = (value) =>
  nodeError(TypeError, "ERR_INVALID_ARG_TYPE", `The first argument must be of type string or an instance of Buffer, TypedArray, ArrayBuffer, SharedArrayBuffer, or Array or an Array-like Object. Received ${specificType(value)}`);
const outside = (name) => nodeError(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", `"${name}" is outside of buffer bounds`);
const isArrayBuffer = (value) => value instanceof ArrayBuffer || (typeof SharedArrayBuffer === "function" && value instanceof SharedArrayBuffer);

function fromArrayBuffer(buffer, offset, length) {
  let start = +(offset ?? 0);
  if (Number.isNaN(start)) start = 0;
  const room = buffer.byteLength - start;
  if (room < 0) throw outside("offset");
  let size = length === undefined ? room : +length;
  if (!(size > 0)) size = 0;
  if (size > room) throw outside("length");
  if (start < 0) throw outside("offset");
  return asBuffer(new Uint8Array(buffer, start, size));
}

Buffer.from = function from(value, encodingOrOffset, length) {
  if (typeof value === "string") return asBuffer(bytesOfText(value, typeof encodingOrOffset === "string" ? encodingOrOffset : undefined));
  if (value === null || typeof value !== "object") throw badFirst(value);
  if (isArrayBuffer(value)) return fromArrayBuffer(value, encodingOrOffset, length);
  if (ArrayBuffer.isView(value) || Array.isArray(value)) return asBuffer(Uint8Array.from(value));
  const primitive = value.valueOf?.();
  if (primitive !== null && primitive !== undefined && primitive !== value && (typeof primitive === "string" || typeof primitive === "object")) return Buffer.from(primitive, encodingOrOffset, length);
  if (value.length !== undefined) return asBuffer(typeof value.length === "number" ? Uint8Array.from(Array.from(value)) : new Uint8Array(0));
  if (value.type === "Buffer" && Array.isArray(value.data)) return asBuffer(Uint8Array.from(value.data));
  const convert = value[Symbol.toPrimitive];
  if (typeof convert === "function") {
    const text = convert.call(value, "string");
    if (typeof text === "string") return Buffer.from(text, encodingOrOffset);
  }
  throw badFirst(value);
};

function checkSize(size) {
  validateNumber(size, "size");
  if (Number.isNaN(size)) throw invalidArgValue("size", size, "is invalid", RangeError);
  if (size > kMaxLength) throw outOfRange("size", `0 to ${kMaxLength}`, size);
  if (size < 0) throw new RangeError(`Invalid typed array length: ${size}`);
}
Buffer.alloc = function alloc(size, value = undefined, encoding = undefined) {
  checkSize(size);
  const buffer = asBuffer(new Uint8Array(size));
  if (value === undefined || value === 0 || size === 0) return buffer;
  if (encoding !== undefined && typeof encoding !== "string") throw invalidArgType("encoding", "of type string", encoding);
  if (ArrayBuffer.isView(value) && value.byteLength === 0) throw invalidArgValue("value", "zero-length");
  return buffer.fill(value, encoding);
};
Buffer.allocUnsafe = function allocUnsafe(size) {
  checkSize(size);
  return asBuffer(new Uint8Array(size));
};
Buffer.allocUnsafeSlow = function allocUnsafeSlow(size) {
  checkSize(size);
  return asBuffer(new Uint8Array(size));
};
function SlowBuffer(size) {
  checkSize(size);
  return asBuffer(new Uint8Array(size));
}
Object.setPrototypeOf(SlowBuffer.prototype, Uint8Array.prototype);
Object.setPrototypeOf(SlowBuffer, Uint8Array);
const isBytes = (value) => ArrayBuffer.isView(value) && value instanceof Uint8Array;
Buffer.concat = function concat(list, length = undefined) {
  if (!Array.isArray(list)) throw invalidArgType("list", "an (Buffer|Uint8Array)[]", list);
  if (list.length === 0) return asBuffer(new Uint8Array(0));
  const wrong = list.findIndex((item) => !isBytes(item));
  if (wrong >= 0) throw invalidArgType(`list[${wrong}]`, ["Buffer", "Uint8Array"], list[wrong]);
  // Sizes are taken once: a getter may change them while we copy.
  const sizes = list.map((item) => item.length);
  let total = length;
  if (total === undefined) total = sizes.reduce((sum, size) => sum + size, 0);
  else validateInteger(total, "length", 0);
  const out = asBuffer(new Uint8Array(total));
  let at = 0;
  for (let i = 0; i < list.length && at < total; i++) {
    const part = list[i].subarray(0, Math.min(sizes[i], total - at));
    out.set(part, at);
    at += part.length;
  }
  return out;
};
Buffer.compare = function compare(a, b) {
  if (!isBytes(a)) throw invalidArgType("a", ["Buffer", "Uint8Array"], a);
  if (!isBytes(b)) throw invalidArgType("b", ["Buffer", "Uint8Array"], b);
  const size = Math.min(a.length, b.length);
  for (let i = 0; i < size; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
  return Math.sign(a.length - b.length);
};
Buffer.isEncoding = (encoding) => typeof encoding === "string" && encoding !== "" && encodingName(encoding) !== undefined;
Buffer.byteLength = function (value, encoding) {
  if (typeof value !== "string") {
    if (ArrayBuffer.isView(value) || isArrayBuffer(value)) return value.byteLength;
    throw invalidArgType("string", ["string", "Buffer", "ArrayBuffer"], value);
  }
  const name = encodingName(encoding) ?? "utf8";
  if (name === "latin1" || name === "ascii") return value.length;
  if (name === "utf16le") return value.length * 2;
  if (name === "hex") return value.length >>> 1;
  if (name === "base64" || name === "base64url") {
    const digits = value.endsWith("==") ? value.length - 2 : value.endsWith("=") ? value.length - 1 : value.length;
    return (digits * 3) >>> 2;
  }
  return native.utf8Encode(value).length; // the package miscounts two high surrogates at the end
};
Buffer.copyBytesFrom = function copyBytesFrom(view, offset = 0, length = undefined) {
  if (!ArrayBuffer.isView(view) || view instanceof DataView) throw invalidArgType("view", ["TypedArray"], view);
  validateInteger(offset, "offset", 0);
  if (offset >= view.length) return asBuffer(new Uint8Array(0));
  if (length === undefined) length = Math.max(0, view.length - offset);
  else validateInteger(length, "length", 0);
  const part = view.subarray(offset, offset + length);
  return Buffer.from(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
};
Buffer.of = (...items) => asBuffer(Uint8Array.of(...items));
Buffer.poolSize = 0; // there is no pool: every buffer has its own memory

/** An index that must be one. */
function within(value, otherwise, max, name) {
  if (value === undefined) return otherwise;
  const n = Math.trunc(+value) || 0;
  if (n < 0 || n > max) throw outOfRange(name, `>= 0 && <= ${max}`, n);
  return n;
}
function clamp(value, otherwise, max) {
  if (value === undefined) return otherwise;
  const n = Math.trunc(+value) || 0;
  return n < 0 ? 0 : n > max ? max : n;
}

Object.assign(Buffer.prototype, {
  toString(encoding, start, end) {
    if (encoding === null) throw unknownEncoding(encoding);
    const first = clamp(start, 0, this.length);
    const last = clamp(end, this.length, this.length);
    if (last <= first) return "";
    const name = encodingName(encoding);
    const part = first === 0 && last === this.length ? this : this.subarray(first, last);
    switch (name) {
      case "utf8":
        return native.utf8Decode(part);
      case "latin1":
        return native.latin1Decode(part);
      case "base64":
        return Uint8Array.prototype.toBase64.call(part);
      case "base64url":
        return Uint8Array.prototype.toBase64.call(part, { alphabet: "base64url", omitPadding: true });
      case "hex":
        return Uint8Array.prototype.toHex.call(part);
      case undefined:
        throw unknownEncoding(encoding);
      default:
        return toString.call(part, name);
    }
  },
  write(value, offset, length, encoding) {
    const text = typeof value === "string" ? value : String(value);
    if (typeof offset === "string" && length === undefined) [offset, encoding] = [0, offset];
    else if (typeof length === "string") [length, encoding] = [undefined, length];
    else if (offset === undefined) [length, encoding] = [undefined, undefined];
    if (offset === undefined) offset = 0;
    validateInteger(offset, "offset", 0, this.length);
    if (length === null) throw invalidArgType("length", "of type number", length);
    if (length !== undefined) validateInteger(length, "length", 0, this.length);
    const room = Math.min(length ?? Infinity, this.length - offset);
    const name = encodingName(encoding);
    if (name === "utf8") {
      const counts = new Uint32Array(2);
      native.utf8EncodeInto(text, this.subarray(offset, offset + room), counts);
      return counts[1];
    }
    const bytes = bytesOfText(text, encoding);
    const size = Math.min(bytes.length, name === "utf16le" ? room & ~1 : room);
    this.set(bytes.subarray(0, size), offset);
    return size;
  },
  compare(target, targetStart = 0, targetEnd = target?.length, start = 0, end = this.length) {
    if (!isBytes(target)) throw invalidArgType("target", ["Buffer", "Uint8Array"], target);
    validateInteger(targetStart, "targetStart", 0);
    validateInteger(targetEnd, "targetEnd", 0, target.length);
    validateInteger(start, "sourceStart", 0);
    validateInteger(end, "sourceEnd", 0, this.length);
    if (start >= end) return targetStart >= targetEnd ? 0 : -1;
    if (targetStart >= targetEnd) return 1;
    return Buffer.compare(this.subarray(start, end), target.subarray(targetStart, targetEnd));
  },
  copy(target, targetStart = 0, sourceStart = 0, sourceEnd = this.length) {
    if (!isBytes(target)) throw invalidArgType("target", ["Buffer", "Uint8Array"], target);
    const number = (value, name, max = Infinity) => {
      const n = Number.isSafeInteger(Math.floor(+value)) ? Math.floor(+value) : 0;
      if (n < 0 || n > max) throw outOfRange(name, max === Infinity ? ">= 0" : `>= 0 && <= ${max}`, n);
      return n;
    };
    const to = number(targetStart, "targetStart");
    const first = number(sourceStart, "sourceStart", this.length);
    const last = Math.min(number(sourceEnd, "sourceEnd"), this.length);
    if (to >= target.length || first >= last) return 0;
    const size = Math.min(last - first, target.length - to);
    Uint8Array.prototype.set.call(target, this.subarray(first, first + size), to);
    return size;
  },
  equals(other) {
    if (!(other instanceof Uint8Array)) throw invalidArgType("b", ["Buffer", "Uint8Array"], other);
    return equals.call(this, Buffer.isBuffer(other) ? other : Buffer.from(other.buffer, other.byteOffset, other.byteLength));
  },
  fill(value, offset, end, encoding) {
    if (typeof offset === "string") [offset, end, encoding] = [undefined, undefined, offset];
    else if (typeof end === "string") [end, encoding] = [undefined, end];
    if (encoding !== undefined) {
      validateString(encoding, "encoding");
      if (encodingName(encoding) === undefined) throw unknownEncoding(encoding);
    }
    const first = offset ?? 0;
    const last = end ?? this.length;
    if (offset === null) throw invalidArgType("start", "of type number", offset);
    validateNumber(first, "start");
    validateNumber(last, "end");
    for (const [name, n] of [["start", first], ["end", last]]) if (!Number.isInteger(n)) throw outOfRange(name, "an integer", n);
    if (last < 0 || last > this.length) throw outOfRange("end", `0 to ${this.length}`, last);
    if (first < 0 || first > this.length) throw outOfRange("start", "0 to end", first);
    if (first >= last) return this;
    if (typeof value === "string" && value !== "") {
      const bytes = bytesOfText(value, encoding);
      if (bytes.length === 0) throw invalidArgValue("value", value);
      for (let i = first; i < last; i++) this[i] = bytes[(i - first) % bytes.length];
      return this;
    }
    if (ArrayBuffer.isView(value)) {
      if (value.byteLength === 0) throw invalidArgValue("value", value);
      const bytes = Uint8Array.from(viewOf(value));
      for (let i = first; i < last; i++) this[i] = bytes[(i - first) % bytes.length];
      return this;
    }
    Uint8Array.prototype.fill.call(this, typeof value === "string" ? 0 : +value & 255, first, last);
    return this;
  },
  [inspectSymbol]() {
    const shown = Array.from(this.subarray(0, 50), (b) => b.toString(16).padStart(2, "0")).join(" ");
    const more = this.length > 50 ? ` ... ${this.length - 50} more byte${this.length > 51 ? "s" : ""}` : "";
    return `<Buffer ${shown}${more}>`;
  },
});
// Search values in encodings that the package does not know.
for (const [name, original] of Object.entries({ indexOf, lastIndexOf, includes })) {
  Buffer.prototype[name] = function (value, offset, encoding) {
    if (typeof offset === "string") [offset, encoding] = [undefined, offset];
    if (typeof value !== "string" && typeof value !== "number" && !isBytes(value)) {
      throw invalidArgType("value", ["number", "string", "Buffer", "Uint8Array"], value);
    }
    const bytes = typeof value === "string" ? Buffer.from(value, encoding) : typeof value === "number" ? value & 255 : asBuffer(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    if (typeof bytes !== "number" && bytes.length === 0) {
      // Nothing is found anywhere: at the offset, as far as there is one.
      const at = Math.trunc(+offset);
      const start = Number.isNaN(at) ? (name === "lastIndexOf" ? this.length : 0) : Math.min(this.length, Math.max(0, at < 0 ? this.length + at : at));
      return name === "includes" ? true : start;
    }
    return original.call(this, bytes, typeof offset === "number" ? Math.trunc(offset) : offset);
  };
}
for (const [short, name] of [["latin1", "latin1"], ["utf8", "utf8"], ["hex", "hex"], ["base64", "base64"], ["base64url", "base64url"], ["ascii", "ascii"], ["ucs2", "utf16le"]]) {
  Object.defineProperty(Buffer.prototype, `${short}Slice`, {
    value(start, end) {
      return this.toString(name, within(start, 0, this.length, "start"), within(end, this.length, this.length, "end"));
    },
    writable: true, configurable: true,
  });
  Object.defineProperty(Buffer.prototype, `${short}Write`, { value(text, offset = 0, length = undefined) { return this.write(text, offset, length, name); }, writable: true, configurable: true });
}
for (const key of Object.keys(Buffer.prototype)) {
  const descriptor = Object.getOwnPropertyDescriptor(Buffer.prototype, key);
  if (descriptor.configurable) Object.defineProperty(Buffer.prototype, key, { ...descriptor, enumerable: false });
}
for (const [name, value] of Object.entries(numbers)) Object.defineProperty(Buffer.prototype, name, { value, writable: true, configurable: true });
const badSwap = (bits) => nodeError(RangeError, "ERR_INVALID_BUFFER_SIZE", `Buffer size must be a multiple of ${bits}-bits`);
for (const bits of [16, 32, 64]) {
  const size = bits / 8;
  Object.defineProperty(Buffer.prototype, `swap${bits}`, {
    value: { [`swap${bits}`]() {
      if (this.length % size !== 0) throw badSwap(bits);
      for (let i = 0; i < this.length; i += size) this.subarray(i, i + size).reverse();
      return this;
    } }[`swap${bits}`],
    writable: true, configurable: true,
  });
}
// Names that Node.js has in two spellings.
for (const name of Object.getOwnPropertyNames(Buffer.prototype)) {
  if (!/^(read|write)(Big)?UInt/.test(name)) continue;
  Object.defineProperty(Buffer.prototype, name.replace("UInt", "Uint"), { value: Buffer.prototype[name], writable: true, configurable: true });
}

const viewOf = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
const bytesOf = (input) => {
  if (ArrayBuffer.isView(input) && !(input instanceof DataView)) return viewOf(input);
  if (input instanceof ArrayBuffer) return new Uint8Array(input);
  throw invalidArgType("input", "an instance of ArrayBuffer, Buffer, or TypedArray", input);
};
/** What transcode() goes from and to. */
const TRANSCODED = new Set(["utf8", "utf16le", "latin1", "ascii"]);

export default {
  Buffer,
  SlowBuffer,
  Blob: globalThis.Blob,
  File: globalThis.File,
  atob: globalThis.atob,
  btoa: globalThis.btoa,
  constants: { MAX_LENGTH: kMaxLength, MAX_STRING_LENGTH: kStringMaxLength },
  kMaxLength,
  kStringMaxLength,
  INSPECT_MAX_BYTES,
  isAscii: (input) => bytesOf(input).every((byte) => byte < 128),
  isUtf8: (input) => native.utf8Valid(bytesOf(input)),
  resolveObjectURL() {
    throw new Error("resolveObjectURL is not implemented");
  },
  transcode(source, fromEncoding, toEncoding) {
    if (!isBytes(source)) throw invalidArgType("source", ["Buffer", "Uint8Array"], source);
    if (source.length === 0) return Buffer.alloc(0);
    if (![fromEncoding, toEncoding].every((encoding) => TRANSCODED.has(encodingName(encoding)))) {
      throw nodeError(Error, "U_ILLEGAL_ARGUMENT_ERROR", "Unable to transcode Buffer [U_ILLEGAL_ARGUMENT_ERROR]", { errno: 1 });
    }
    const from = encodingName(fromEncoding);
    const text = from === "utf16le" ? new TextDecoder("utf-16le", { ignoreBOM: true }).decode(source) : Buffer.from(viewOf(source).buffer, source.byteOffset, source.byteLength).toString(from === "ascii" ? "latin1" : from);
    const target = encodingName(toEncoding);
    // Characters that the encoding does not have become question marks.
    if (target === "latin1" || target === "ascii") return Buffer.from(text.replace(target === "ascii" ? /[^\0-\x7f]/gu : /[^\0-\xff]/gu, "?"), target);
    return Buffer.from(text, toEncoding);
  },
};
