// Bytes to values: the reverse of serialize-writer.js. The bytes may come from anywhere: every
// read is checked, sizes are believed only as far as bytes are there, nesting has a limit.
import { DOMException } from "../web/dom-exception.js";
import { native } from "./native.js";
import * as format from "./serialize-format.js";
import { handlersByTag } from "./serialize-hosts.js";

const { fromCharCode } = String;
const { defineProperty } = Object;
const LONG_STRING = 40; // from here C is faster
const RESIZABLE_MAX = 0x7fffffff;
const ERRORS = [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError];

export function dataError(message) {
  return new DOMException(`The serialized value is malformed: ${message}.`, "DataError");
}

// Property names that were read lately: the same names come again and again, and one string that
// the engine knows as a name is cheaper than a new one each time.
const NAME_CACHE_SIZE = 512;
const NAME_CACHE_LENGTH_MAX = 24;
const nameCache = new Array(NAME_CACHE_SIZE).fill("");

const scratch = new Float64Array(1);
const scratchBytes = new Uint8Array(scratch.buffer);

export class Reader {
  bytes = null;
  at = 0;
  end = 0;
  depth = 0;
  objects = [];
  keys = [];
  context = null;

  begin(bytes, context) {
    this.bytes = bytes;
    this.at = 0;
    this.end = bytes.length;
    this.depth = 0;
    this.context = context;
    const version = this.byte();
    if (version !== format.VERSION) throw dataError(`version ${version} is not known`);
  }

  finish() {
    this.bytes = null;
    if (this.objects.length > 0) this.objects = [];
    if (this.keys.length > 0) this.keys = [];
    this.context = null;
  }

  byte() {
    if (this.at >= this.end) throw dataError("it ends too early");
    return this.bytes[this.at++];
  }

  uint() {
    let byte = this.byte();
    if (byte < 128) return byte;
    let value = byte & 127;
    for (let scale = 128; scale < 2 ** 53; scale *= 128) {
      byte = this.byte();
      value += (byte & 127) * scale;
      if (byte < 128) {
        if (value > Number.MAX_SAFE_INTEGER) break;
        return value;
      }
    }
    throw dataError("a number is too large");
  }

  /** A count of things that take `size` bytes each at least. */
  count(size) {
    const count = this.uint();
    if (count * size > this.end - this.at) throw dataError("it ends too early");
    return count;
  }

  double() {
    if (this.end - this.at < 8) throw dataError("it ends too early");
    for (let i = 0; i < 8; i++) scratchBytes[i] = this.bytes[this.at++];
    return scratch[0];
  }

  /** A copy of the next `length` bytes. */
  raw(length) {
    if (this.end - this.at < length) throw dataError("it ends too early");
    const bytes = this.bytes.slice(this.at, this.at + length);
    this.at += length;
    return bytes;
  }

  #latin1(length) {
    if (this.end - this.at < length) throw dataError("it ends too early");
    const { bytes } = this;
    let { at } = this;
    const last = at + length;
    this.at = last;
    if (length >= LONG_STRING) return native.latin1Slice(bytes, at, last);
    let text = "";
    for (; last - at >= 8; at += 8) {
      text += fromCharCode(
        bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3], bytes[at + 4], bytes[at + 5], bytes[at + 6], bytes[at + 7],
      );
    }
    switch (last - at) {
      case 0:
        return text;
      case 1:
        return text + fromCharCode(bytes[at]);
      case 2:
        return text + fromCharCode(bytes[at], bytes[at + 1]);
      case 3:
        return text + fromCharCode(bytes[at], bytes[at + 1], bytes[at + 2]);
      case 4:
        return text + fromCharCode(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
      case 5:
        return text + fromCharCode(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3], bytes[at + 4]);
      case 6:
        return text + fromCharCode(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3], bytes[at + 4], bytes[at + 5]);
      default:
        return (
          text +
          fromCharCode(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3], bytes[at + 4], bytes[at + 5], bytes[at + 6])
        );
    }
  }

  #utf16(length) {
    if (this.end - this.at < length * 2) throw dataError("it ends too early");
    const { bytes } = this;
    let text = "";
    for (let left = length; left > 0; ) {
      const units = new Array(Math.min(left, 4096));
      for (let i = 0; i < units.length; i++, this.at += 2) units[i] = bytes[this.at] | (bytes[this.at + 1] << 8);
      text += fromCharCode.apply(null, units);
      left -= units.length;
    }
    return text;
  }

  /** A string value, whatever its tag. */
  string() {
    const value = this.value();
    if (typeof value !== "string") throw dataError("a string is missing");
    return value;
  }

  /** The next property name, or null at the end. */
  #key() {
    const head = this.uint();
    if (head === 0) return null;
    const length = Math.floor(head / 4);
    let name;
    switch (head & 3) {
      case format.KEY_LATIN1:
        name = length <= NAME_CACHE_LENGTH_MAX ? this.#cachedName(length) : this.#latin1(length);
        break;
      case format.KEY_UTF16:
        name = this.#utf16(length);
        break;
      case format.KEY_REFERENCE:
        if (length >= this.keys.length) throw dataError("a property name is referred to before it is given");
        return this.keys[length];
      default:
        throw dataError("a property name is expected");
    }
    this.keys.push(name);
    return name;
  }

  #cachedName(length) {
    if (this.end - this.at < length) throw dataError("it ends too early");
    const { bytes, at } = this;
    let hash = length;
    for (let i = 0; i < length; i++) hash = (Math.imul(hash, 31) + bytes[at + i]) | 0;
    const slot = (hash ^ (hash >>> 9)) & (NAME_CACHE_SIZE - 1);
    const cached = nameCache[slot];
    if (cached.length === length) {
      let i = 0;
      while (i < length && cached.charCodeAt(i) === bytes[at + i]) i++;
      if (i === length) {
        this.at = at + length;
        return cached;
      }
    }
    return (nameCache[slot] = this.#latin1(length));
  }

  value() {
    const tag = this.byte();
    if (tag >= format.SMALL_INT) return tag - format.SMALL_INT + format.SMALL_INT_MIN;
    if (tag >= format.SHORT_STRING && tag <= format.SHORT_STRING + format.SHORT_STRING_MAX) {
      return this.#latin1(tag - format.SHORT_STRING);
    }
    switch (tag) {
      case format.UNDEFINED:
        return undefined;
      case format.NULL:
        return null;
      case format.FALSE:
        return false;
      case format.TRUE:
        return true;
      case format.INT: {
        const value = this.uint();
        if (value > 0xffffffff) throw dataError("an integer is too large");
        return (value >>> 1) ^ -(value & 1);
      }
      case format.DOUBLE:
        return this.double();
      case format.BIGINT:
        return this.#bigint();
      case format.BIGINT_NEGATIVE:
        return -this.#bigint();
      case format.LATIN1:
        return this.#latin1(this.uint());
      case format.UTF16:
        return this.#utf16(this.uint());
      case format.REFERENCE: {
        const number = this.uint();
        if (number >= this.objects.length || this.objects[number] === undefined) {
          throw dataError("an object is referred to before it is given");
        }
        return this.objects[number];
      }
      case format.EXTERNAL: {
        const value = this.external();
        return typeof value === "object" ? this.#number(value) : value;
      }
    }
    if (++this.depth > format.DEPTH_MAX) throw dataError("it is nested too deeply");
    const value = this.#object(tag);
    this.depth--;
    return value;
  }

  /** What the writer put beside the bytes. */
  external() {
    const externals = this.context?.externals;
    const number = this.uint();
    if (!externals || number >= externals.length) throw dataError("it refers to something outside");
    return externals[number];
  }

  #bigint() {
    const bytes = this.raw(this.count(1));
    let hex = "";
    for (let i = bytes.length - 1; i >= 0; i--) hex += bytes[i].toString(16).padStart(2, "0");
    return hex === "" ? 0n : this.#attempt(() => BigInt(`0x${hex}`));
  }

  /** Runs a constructor of the engine on values that may not be valid for it. */
  #attempt(make) {
    try {
      return make();
    } catch (error) {
      throw dataError(error instanceof Error ? error.message : "a value is not valid");
    }
  }

  /** Gives `object` the next number: before its contents are read, for they may refer to it. */
  #number(object) {
    this.objects.push(object);
    return object;
  }

  #properties(object) {
    for (let name = this.#key(); name !== null; name = this.#key()) {
      const value = this.value();
      if (name === "__proto__") {
        defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
      } else {
        object[name] = value;
      }
    }
    return object;
  }

  #object(tag) {
    switch (tag) {
      case format.OBJECT:
        return this.#properties(this.#number({}));
      case format.ARRAY:
        return this.#array();
      case format.ARRAY_WITH_KEYS: {
        const array = this.#number([]);
        const length = this.uint();
        if (length > 0xffffffff) throw dataError("an array is too long");
        array.length = length;
        for (let name = this.#key(); name !== null; name = this.#key()) {
          const value = this.value();
          if (name === "length") throw dataError("a property of an array is not one");
          defineProperty(array, name, { value, writable: true, enumerable: true, configurable: true });
        }
        return array;
      }
      case format.DATE:
        return this.#number(new Date(this.double()));
      case format.REGEXP: {
        const number = this.objects.push(undefined) - 1;
        const source = this.string();
        const flags = this.string();
        // bounded: nothing is matched here
        return (this.objects[number] = this.#attempt(() => new RegExp(source, flags)));
      }
      case format.MAP: {
        const map = this.#number(new Map());
        for (let left = this.count(2); left > 0; left--) {
          const key = this.value();
          map.set(key, this.value());
        }
        return map;
      }
      case format.SET: {
        const set = this.#number(new Set());
        for (let left = this.count(1); left > 0; left--) set.add(this.value());
        return set;
      }
      case format.BOXED: {
        const number = this.objects.push(undefined) - 1;
        const value = this.value();
        if (value === null || value === undefined || typeof value === "object") throw dataError("a primitive is missing");
        return (this.objects[number] = Object(value));
      }
      case format.BUFFER:
        return this.#number(this.raw(this.count(1)).buffer);
      case format.BUFFER_RESIZABLE: {
        const length = this.uint();
        const maxByteLength = this.uint();
        if (length > maxByteLength || maxByteLength > RESIZABLE_MAX) throw dataError("a buffer has wrong sizes");
        const bytes = this.raw(length);
        const buffer = this.#attempt(() => new ArrayBuffer(length, { maxByteLength }));
        new Uint8Array(buffer).set(bytes);
        return this.#number(buffer);
      }
      case format.VIEW_WHOLE: {
        const constructor = this.#viewType(this.byte());
        const { buffer } = this.raw(this.count(1));
        const view = this.#number(this.#attempt(() => new constructor(buffer)));
        this.#number(buffer);
        return view;
      }
      case format.VIEW:
        return this.#view();
      case format.ERROR:
        return this.#error();
      case format.DOM_EXCEPTION: {
        const number = this.objects.push(undefined) - 1;
        const name = this.string();
        const message = this.string();
        const stack = this.string();
        const exception = new DOMException(message, name);
        defineProperty(exception, "stack", { value: stack, writable: true, configurable: true });
        return (this.objects[number] = exception);
      }
    }
    const handler = handlersByTag[tag];
    if (handler === undefined) throw dataError(`tag ${tag} is not known`);
    const number = this.objects.push(undefined) - 1;
    return (this.objects[number] = handler.read(this, this.context));
  }

  #array() {
    const array = this.#number([]);
    const length = this.count(1);
    for (let i = 0; i < length; i++) {
      if (this.bytes[this.at] === format.HOLE) {
        this.at++;
        array.length = i + 1;
      } else {
        array[i] = this.value();
      }
    }
    return array;
  }

  #viewType(type) {
    const constructor = format.VIEW_TYPES[type];
    if (!constructor) throw dataError(`view type ${type} is not known`);
    return constructor;
  }

  #view() {
    const number = this.objects.push(undefined) - 1;
    const byte = this.byte();
    const tracks = (byte & format.VIEW_TRACKS_LENGTH) !== 0;
    const constructor = this.#viewType(byte & ~format.VIEW_TRACKS_LENGTH);
    const buffer = this.value();
    const isShared = typeof SharedArrayBuffer === "function" && buffer instanceof SharedArrayBuffer;
    if (!(buffer instanceof ArrayBuffer) && !isShared) throw dataError("a view has no buffer");
    const offset = this.uint();
    const length = tracks ? undefined : this.uint();
    return (this.objects[number] = this.#attempt(() => new constructor(buffer, offset, length)));
  }

  #error() {
    const number = this.objects.push(undefined) - 1;
    const constructor = ERRORS[this.byte()];
    const flags = this.byte();
    if (constructor === undefined || flags > 3) throw dataError("an error of an unknown type");
    const hidden = { writable: true, enumerable: false, configurable: true };
    const error = (this.objects[number] = constructor === AggregateError ? new AggregateError([]) : new constructor());
    if (flags & format.ERROR_HAS_MESSAGE) defineProperty(error, "message", { value: this.string(), ...hidden });
    if (flags & format.ERROR_HAS_STACK) defineProperty(error, "stack", { value: this.string(), ...hidden });
    for (let name = this.#key(); name !== null; name = this.#key()) {
      const enumerable = name !== "cause" && name !== "errors";
      defineProperty(error, name, { value: this.value(), ...hidden, enumerable });
    }
    return error;
  }
}
