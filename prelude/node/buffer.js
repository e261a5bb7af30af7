// node:buffer. The class is the package's; what is slow in JavaScript (text in and out) is C's, and
// what the package lacks is here.
import * as package_ from "buffer";
import { native } from "./internal/internals.js";
import { invalidArgType, nodeError, outOfRange } from "./internal/errors.js";

export const { Buffer, SlowBuffer, INSPECT_MAX_BYTES, kMaxLength } = package_.default ?? package_;
const kStringMaxLength = 0x1fffffff;
const inspectSymbol = Symbol.for("nodejs.util.inspect.custom");

const { from, byteLength } = Buffer;
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

Buffer.from = function (value, encodingOrOffset, length) {
  if (typeof value === "string") return asBuffer(bytesOfText(value, encodingOrOffset));
  return from(value, encodingOrOffset, length);
};
Buffer.isEncoding = (encoding) => typeof encoding === "string" && encoding !== "" && encodingName(encoding) !== undefined;
Buffer.byteLength = function (value, encoding) {
  if (typeof value !== "string") return byteLength(value);
  const name = encodingName(encoding) ?? "utf8";
  if (name === "latin1" || name === "ascii") return value.length;
  if (name === "utf16le") return value.length * 2;
  if (name === "hex") return value.length >>> 1;
  if (name === "base64" || name === "base64url") {
    const digits = value.endsWith("==") ? value.length - 2 : value.endsWith("=") ? value.length - 1 : value.length;
    return (digits * 3) >>> 2;
  }
  return byteLength(value, "utf8");
};
Buffer.copyBytesFrom = function (view, offset = 0, length = view.length - offset) {
  const part = view.subarray(offset, offset + length);
  return Buffer.from(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
};
Buffer.of = (...items) => asBuffer(Uint8Array.of(...items));
Buffer.poolSize = 8192;

function clamp(value, otherwise, max) {
  if (value === undefined) return otherwise;
  const n = Math.trunc(+value) || 0;
  return n < 0 ? 0 : n > max ? max : n;
}

Object.assign(Buffer.prototype, {
  toString(encoding, start, end) {
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
  write(text, offset, length, encoding) {
    if (typeof text !== "string") throw invalidArgType("argument", "of type string", text);
    if (typeof offset === "string") [offset, encoding] = [undefined, offset];
    else if (typeof length === "string") [length, encoding] = [undefined, length];
    offset ??= 0;
    if (offset > this.length || offset < 0) throw outOfRange("offset", `>= 0 && <= ${this.length}`, offset);
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
  equals(other) {
    if (!(other instanceof Uint8Array)) throw invalidArgType("otherBuffer", "an instance of Buffer or Uint8Array", other);
    return equals.call(this, Buffer.isBuffer(other) ? other : Buffer.from(other.buffer, other.byteOffset, other.byteLength));
  },
  fill(value, offset, end, encoding) {
    if (typeof value !== "string") return fill.call(this, value, offset, end, encoding);
    if (typeof offset === "string") [offset, encoding] = [undefined, offset];
    else if (typeof end === "string") [end, encoding] = [undefined, end];
    const bytes = bytesOfText(value, encoding);
    const first = offset ?? 0;
    const last = end ?? this.length;
    if (first < 0 || last > this.length) throw outOfRange("offset", `>= 0 && <= ${this.length}`, first < 0 ? first : last);
    if (bytes.length === 0) return fill.call(this, 0, first, last);
    for (let i = first; i < last; i++) this[i] = bytes[(i - first) % bytes.length];
    return this;
  },
  [inspectSymbol]() {
    const shown = Array.from(this.subarray(0, 50), (b) => b.toString(16).padStart(2, "0")).join(" ");
    const more = this.length > 50 ? ` ... ${this.length - 50} more byte${this.length > 51 ? "s" : ""}` : "";
    return `<Buffer${shown ? ` ${shown}` : ""}${more}>`;
  },
});
// Search values in encodings that the package does not know.
for (const [name, original] of Object.entries({ indexOf, lastIndexOf, includes })) {
  Buffer.prototype[name] = function (value, offset, encoding) {
    if (typeof offset === "string") [offset, encoding] = [undefined, offset];
    return original.call(this, typeof value === "string" ? Buffer.from(value, encoding) : value, offset);
  };
}
for (const [short, name] of [["latin1", "latin1"], ["utf8", "utf8"], ["hex", "hex"], ["base64", "base64"], ["base64url", "base64url"], ["ascii", "ascii"], ["ucs2", "utf16le"]]) {
  Object.defineProperty(Buffer.prototype, `${short}Slice`, { value(start, end) { return this.toString(name, start, end); }, writable: true, configurable: true });
  Object.defineProperty(Buffer.prototype, `${short}Write`, { value(text, offset, length) { return this.write(text, offset, length, name); }, writable: true, configurable: true });
}
for (const key of Object.keys(Buffer.prototype)) {
  const descriptor = Object.getOwnPropertyDescriptor(Buffer.prototype, key);
  if (descriptor.configurable) Object.defineProperty(Buffer.prototype, key, { ...descriptor, enumerable: false });
}
// Names that Node.js has in two spellings.
for (const name of Object.getOwnPropertyNames(Buffer.prototype)) {
  if (!/^(read|write)(Big)?UInt/.test(name)) continue;
  Object.defineProperty(Buffer.prototype, name.replace("UInt", "Uint"), { value: Buffer.prototype[name], writable: true, configurable: true });
}

const viewOf = (input) => {
  if (ArrayBuffer.isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
  if (input instanceof ArrayBuffer) return new Uint8Array(input);
  throw invalidArgType("input", "an instance of ArrayBuffer, Buffer, or TypedArray", input);
};

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
  isAscii: (input) => viewOf(input).every((byte) => byte < 128),
  isUtf8: (input) => native.utf8Valid(viewOf(input)),
  resolveObjectURL: () => undefined,
  transcode(source, fromEncoding, toEncoding) {
    for (const encoding of [fromEncoding, toEncoding]) {
      if (encodingName(encoding) === undefined) throw unknownEncoding(encoding);
    }
    return Buffer.from(Buffer.from(viewOf(source)).toString(fromEncoding), toEncoding);
  },
};
