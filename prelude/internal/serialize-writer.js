// Values to bytes: https://html.spec.whatwg.org/#structuredserializeinternal, in the format of
// docs/reference/structured-clone.md.
//
// Objects get numbers in the order in which they are met; the Map for that exists only once there
// are two. Property names get numbers in the order in which they are first written. Objects of one
// kind have the same names in the same order, so the name after the last one is looked at first.
import { DOMException } from "../web/dom-exception.js";
import { isInterfacePrototype } from "./interface.js";
import { native } from "./native.js";
import * as format from "./serialize-format.js";
import { dataCloneError, handlersByPrototype } from "./serialize-hosts.js";

const { getPrototypeOf, hasOwn, keys: ownEnumerableKeys } = Object;
const { isArray } = Array;
const { isView } = ArrayBuffer;
const ArrayPrototype = Array.prototype;
const ObjectPrototype = Object.prototype;
const START_SIZE = 4096;
// What the engine puts on an error; the rest is the script's, and `cause` and `errors`.
const ERROR_OWN = new Set(["message", "stack", "line", "column", "sourceURL"]);
const HOLES_MAX = 64; // a longer array with holes lists its items by index
const FEW_KEYS = 8;
const LONG_STRING = 160; // from here C is faster than a loop
const KEEP_SIZE = 1 << 20; // a larger buffer is not kept for the next value
const VIEW_PROTOTYPES = new Map();
format.VIEW_TYPES.forEach((constructor, type) => constructor && VIEW_PROTOTYPES.set(constructor.prototype, type));

const getter = (constructor, name) => Object.getOwnPropertyDescriptor(constructor.prototype, name).get;
const mapSize = getter(Map, "size");
const setSize = getter(Set, "size");
const bufferLength = getter(ArrayBuffer, "byteLength");
const dataViewLength = getter(DataView, "byteLength");
const regExpSource = getter(RegExp, "source");
const regExpFlags = getter(RegExp, "flags");
const { getTime } = Date.prototype;

/** Whether `check.call(value)` does not throw: `value` has the internal slot that it needs. */
function hasSlot(check, value) {
  try {
    check.call(value);
    return true;
  } catch {
    return false;
  }
}

/** How V8 names a value in its messages. */
function describe(value) {
  if (typeof value === "function") return Function.prototype.toString.call(value);
  if (typeof value === "symbol") return String(value);
  const tag = ObjectPrototype.toString.call(value);
  if (tag === "[object Generator]" || tag === "[object AsyncGenerator]") return tag;
  const name = value.constructor?.name;
  return `#<${typeof name === "string" && name !== "" ? name : "Object"}>`;
}

/** Kinds of objects that have no clone. */
function isUncloneable(object) {
  return (
    object instanceof Promise ||
    object instanceof WeakMap ||
    object instanceof WeakSet ||
    object instanceof WeakRef ||
    (typeof SharedArrayBuffer === "function" && object instanceof SharedArrayBuffer) ||
    object === globalThis ||
    ObjectPrototype.toString.call(object).endsWith("Generator]")
  );
}

export class Writer {
  bytes = new Uint8Array(START_SIZE);
  view = new DataView(this.bytes.buffer);
  at = 0;
  depth = 0;
  objectCount = 0;
  first = null; // object 0
  objects = null; // object -> number, once there are two
  keyList = []; // names in the order of their numbers
  keyMap = null; // name -> number, once there are more than a few
  nextKey = 0; // the number that the next name probably has
  context = null;
  externals = null; // where values go by reference, in one process; or null

  begin(context) {
    this.at = 0;
    this.depth = 0;
    this.context = context;
    this.externals = context === null ? null : (context.externals ?? null);
  }

  /** Forgets everything that was written, also after an exception. */
  end() {
    this.objectCount = 0;
    this.first = null;
    this.objects = null;
    if (this.keyList.length > 0) this.keyList = [];
    this.keyMap = null;
    this.nextKey = 0;
    this.context = null;
    this.externals = null;
    if (this.bytes.length > KEEP_SIZE) this.#resize(START_SIZE);
  }

  #resize(size) {
    this.bytes = new Uint8Array(size);
    this.view = new DataView(this.bytes.buffer);
  }

  #grow(room) {
    const old = this.bytes;
    this.#resize(Math.max(old.length * 2, this.at + room));
    this.bytes.set(old.subarray(0, this.at));
  }

  byte(value) {
    if (this.at === this.bytes.length) this.#grow(1);
    this.bytes[this.at++] = value;
  }

  /** LEB128: seven bits a byte, low ones first; up to 2^53. */
  uint(value) {
    if (this.at + 8 > this.bytes.length) this.#grow(8);
    if (value < 128) {
      this.bytes[this.at++] = value;
      return;
    }
    while (value > 127) {
      if (value <= 0x7fffffff) {
        this.bytes[this.at++] = (value & 127) | 128;
        value >>>= 7;
      } else {
        this.bytes[this.at++] = (value % 128) | 128;
        value = Math.floor(value / 128);
      }
    }
    this.bytes[this.at++] = value;
  }

  double(value) {
    if (this.at + 8 > this.bytes.length) this.#grow(8);
    this.view.setFloat64(this.at, value, true);
    this.at += 8;
  }

  raw(bytes) {
    const { length } = bytes;
    if (this.at + length > this.bytes.length) this.#grow(length);
    this.bytes.set(bytes, this.at);
    this.at += length;
  }

  /** The characters of `text` as bytes; false (and nothing written) if one is above U+00FF. */
  #latin1(text) {
    const { length } = text;
    if (this.at + length > this.bytes.length) this.#grow(length);
    const { bytes, at } = this;
    if (length >= LONG_STRING) {
      if (!native.latin1Write(text, bytes, at)) return false;
      this.at = at + length;
      return true;
    }
    for (let i = 0; i < length; i++) {
      const unit = text.charCodeAt(i);
      if (unit > 255) return false;
      bytes[at + i] = unit;
    }
    this.at = at + length;
    return true;
  }

  #utf16(text) {
    const { length } = text;
    if (this.at + length * 2 > this.bytes.length) this.#grow(length * 2);
    const { bytes } = this;
    let { at } = this;
    for (let i = 0; i < length; i++) {
      const unit = text.charCodeAt(i);
      bytes[at++] = unit;
      bytes[at++] = unit >> 8;
    }
    this.at = at;
  }

  string(text) {
    const { length } = text;
    const start = this.at;
    if (length <= format.SHORT_STRING_MAX) {
      this.byte(format.SHORT_STRING | length);
    } else {
      if (this.externals !== null) {
        this.byte(format.EXTERNAL);
        return this.external(text);
      }
      this.byte(format.LATIN1);
      this.uint(length);
    }
    if (this.#latin1(text)) return;
    this.at = start;
    this.byte(format.UTF16);
    this.uint(length);
    this.#utf16(text);
  }

  /** A value that travels beside the bytes; reader.external() gives it back. */
  external(value) {
    this.uint(this.externals.push(value) - 1);
  }

  #key(name) {
    const number = this.keyList[this.nextKey] === name ? this.nextKey : this.#keyNumber(name);
    if (number >= 0) {
      this.nextKey = number + 1;
      this.uint(number * 4 + format.KEY_REFERENCE);
      return;
    }
    this.nextKey = this.keyList.push(name);
    if (this.keyMap !== null) this.keyMap.set(name, this.nextKey - 1);
    const start = this.at;
    this.uint(name.length * 4 + format.KEY_LATIN1);
    if (this.#latin1(name)) return;
    this.at = start;
    this.uint(name.length * 4 + format.KEY_UTF16);
    this.#utf16(name);
  }

  #keyNumber(name) {
    const { keyList } = this;
    if (this.objectCount < 2) return -1; // an object has each name once
    if (keyList.length <= FEW_KEYS) return keyList.indexOf(name);
    if (this.keyMap === null) {
      this.keyMap = new Map();
      for (let i = 0; i < keyList.length; i++) this.keyMap.set(keyList[i], i);
    }
    return this.keyMap.get(name) ?? -1;
  }

  value(value) {
    switch (typeof value) {
      case "string":
        this.string(value);
        return;
      case "number":
        if ((value | 0) === value && (value !== 0 || 1 / value > 0)) {
          if (value >= format.SMALL_INT_MIN && value <= format.SMALL_INT_MAX) {
            this.byte(format.SMALL_INT + value - format.SMALL_INT_MIN);
          } else {
            this.byte(format.INT);
            this.uint(((value << 1) ^ (value >> 31)) >>> 0);
          }
        } else {
          this.byte(format.DOUBLE);
          this.double(value);
        }
        return;
      case "object":
        if (value === null) this.byte(format.NULL);
        else this.object(value);
        return;
      case "boolean":
        this.byte(value ? format.TRUE : format.FALSE);
        return;
      case "undefined":
        this.byte(format.UNDEFINED);
        return;
      case "bigint":
        this.#bigint(value);
        return;
      default:
        if (typeof value === "function" && this.#reference(value)) return;
        if (this.context?.writeSpecial?.(value, this)) return;
        if (typeof value === "function" && this.#host(value, getPrototypeOf(value))) return;
        throw dataCloneError(`${describe(value)} could not be cloned.`);
    }
  }

  #bigint(value) {
    this.byte(value < 0n ? format.BIGINT_NEGATIVE : format.BIGINT);
    let hex = (value < 0n ? -value : value).toString(16);
    if (hex.length % 2) hex = "0" + hex;
    this.uint(hex.length / 2);
    for (let i = hex.length - 2; i >= 0; i -= 2) this.byte(parseInt(hex.slice(i, i + 2), 16));
  }

  /** Writes a reference if `object` was met before; otherwise it is number objectCount now. */
  #reference(object) {
    if (this.objectCount === 0) {
      this.first = object;
    } else {
      if (this.objects === null) {
        this.objects = new Map();
        this.objects.set(this.first, 0);
      }
      const number = this.objects.get(object);
      if (number !== undefined) {
        this.byte(format.REFERENCE);
        this.uint(number);
        return true;
      }
      this.objects.set(object, this.objectCount);
    }
    this.objectCount++;
    return false;
  }

  object(object) {
    if (this.#reference(object)) return;
    if (++this.depth > format.DEPTH_MAX) {
      throw dataCloneError(`A value nested more than ${format.DEPTH_MAX} levels deep could not be cloned.`);
    }
    const prototype = getPrototypeOf(object);
    if (this.context?.writeProxy !== undefined && native.isProxy(object)) this.context.writeProxy(object, prototype, this);
    else if (prototype === ObjectPrototype) this.#properties(object);
    else if (isArray(object)) this.#array(object, prototype);
    else this.#special(object, prototype);
    this.depth--;
  }

  #properties(object) {
    this.byte(format.OBJECT);
    this.#namedProperties(object, ownEnumerableKeys(object));
  }

  #namedProperties(object, names) {
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      const value = object[name];
      // A getter may have deleted it meanwhile.
      if (value === undefined && !hasOwn(object, name)) continue;
      this.#key(name);
      this.value(value);
    }
    this.byte(format.KEY_END);
  }

  #array(array, prototype) {
    const { length } = array;
    if (prototype === ArrayPrototype && length > 0 && array.index === undefined && array.raw === undefined) {
      if (this.#denseArray(array, length)) return;
    }
    this.byte(format.ARRAY_WITH_KEYS);
    this.uint(length);
    this.#namedProperties(array, ownEnumerableKeys(array));
  }

  /**
   * An array that has all its items and is believed to have no named properties: listing the names
   * costs the engine a string for each index. False, and nothing written, for a long one with holes.
   */
  #denseArray(array, length) {
    for (let i = 0; length > HOLES_MAX && i < length; i++) {
      if (array[i] === undefined && !hasOwn(array, i)) return false;
    }
    this.byte(format.ARRAY);
    this.uint(length);
    for (let i = 0; i < length; i++) {
      const item = array[i];
      if (item === undefined && !hasOwn(array, i)) this.byte(format.HOLE);
      else this.value(item);
    }
    return true;
  }

  /** An object of a class that registerHostObject() knows; false: of none. */
  #host(object, prototype) {
    for (let p = prototype; p !== null; p = getPrototypeOf(p)) {
      const handler = handlersByPrototype.get(p);
      if (handler !== undefined) {
        this.byte(handler.tag);
        handler.write(object, this, this.context);
        return true;
      }
    }
    return false;
  }

  /** Everything that is neither a plain object nor an array. */
  #special(object, prototype) {
    if (isView(object)) return this.#view(object);
    if (object instanceof Date && hasSlot(getTime, object)) {
      this.byte(format.DATE);
      return this.double(getTime.call(object));
    }
    if (object instanceof Map && hasSlot(mapSize, object)) {
      const entries = [...Map.prototype.entries.call(object)];
      this.byte(format.MAP);
      this.uint(entries.length);
      for (const [key, value] of entries) {
        this.value(key);
        this.value(value);
      }
      return;
    }
    if (object instanceof Set && hasSlot(setSize, object)) {
      const items = [...Set.prototype.values.call(object)];
      this.byte(format.SET);
      this.uint(items.length);
      for (const item of items) this.value(item);
      return;
    }
    if (object instanceof ArrayBuffer && hasSlot(bufferLength, object)) return this.#buffer(object);
    if (object instanceof DOMException) {
      this.byte(format.DOM_EXCEPTION);
      for (const text of [object.name, object.message, object.stack]) this.string(`${text ?? ""}`);
      return;
    }
    if (object instanceof Error) return this.#error(object);
    if (object instanceof RegExp && prototype !== ObjectPrototype && hasSlot(regExpSource, object)) {
      this.byte(format.REGEXP);
      this.string(regExpSource.call(object));
      return this.string(regExpFlags.call(object));
    }
    for (const type of [Boolean, Number, String, BigInt]) {
      if (object instanceof type && hasSlot(type.prototype.valueOf, object)) {
        this.byte(format.BOXED);
        return this.value(type.prototype.valueOf.call(object));
      }
    }
    if (this.#host(object, prototype)) return;
    if (this.context?.writeSpecial?.(object, this)) return;
    for (let p = prototype; p !== null; p = getPrototypeOf(p)) {
      if (!isInterfacePrototype(p)) continue;
      throw dataCloneError(
        `Could not serialize object of type "${p[Symbol.toStringTag]}". This type does not support serialization.`,
      );
    }
    if (isUncloneable(object)) throw dataCloneError(`${describe(object)} could not be cloned.`);
    this.#properties(object);
  }

  #buffer(buffer) {
    if (buffer.detached) throw dataCloneError("An ArrayBuffer is detached and could not be cloned.");
    if (this.context?.writeTransferred?.(buffer, this)) return;
    const bytes = new Uint8Array(buffer);
    if (buffer.resizable) {
      this.byte(format.BUFFER_RESIZABLE);
      this.uint(bytes.length);
      this.uint(buffer.maxByteLength);
    } else {
      if (this.externals !== null && bytes.length > 512) {
        this.byte(format.EXTERNAL);
        return this.external(buffer.slice(0));
      }
      this.byte(format.BUFFER);
      this.uint(bytes.length);
    }
    this.raw(bytes);
  }

  #view(view) {
    const { buffer } = view;
    const type = this.#viewType(view);
    const known = this.objects !== null && this.objects.has(buffer);
    const whole =
      !known && this.externals === null && !buffer.resizable && !buffer.detached && view.byteLength === buffer.byteLength;
    if (whole) {
      // Two numbers: #reference() gave the view the first, its buffer has the next.
      this.#reference(buffer);
      this.byte(format.VIEW_WHOLE);
      this.byte(type);
      this.uint(buffer.byteLength);
      this.raw(new Uint8Array(buffer));
      return;
    }
    this.byte(format.VIEW);
    const tracks = isLengthTracking(view, buffer);
    this.byte(tracks ? type | format.VIEW_TRACKS_LENGTH : type);
    this.value(buffer);
    this.uint(view.byteOffset);
    if (!tracks) this.uint(type === 0 ? view.byteLength : view.length);
  }

  #viewType(view) {
    for (let p = getPrototypeOf(view); p !== null; p = getPrototypeOf(p)) {
      const type = VIEW_PROTOTYPES.get(p);
      if (type !== undefined) return type;
    }
    throw dataCloneError(`${describe(view)} could not be cloned.`);
  }

  #error(error) {
    const type = format.ERROR_TYPES.indexOf(`${error.name}`);
    const message = Object.getOwnPropertyDescriptor(error, "message");
    const hasMessage = message !== undefined && "value" in message;
    const { stack } = error;
    const hasStack = typeof stack === "string";
    this.byte(format.ERROR);
    this.byte(Math.max(type, 0));
    this.byte((hasMessage ? format.ERROR_HAS_MESSAGE : 0) | (hasStack ? format.ERROR_HAS_STACK : 0));
    if (hasMessage) this.string(`${message.value}`);
    if (hasStack) this.string(stack);
    this.#namedProperties(error, Object.getOwnPropertyNames(error).filter((name) => !ERROR_OWN.has(name)));
  }
}

/**
 * Whether a view of a resizable buffer has no length of its own. There is no way to ask: the buffer
 * is cut where the view starts, and a view that has a length is then out of bounds.
 */
function isLengthTracking(view, buffer) {
  if (!buffer.resizable || view.byteLength === 0 || view.byteOffset + view.byteLength < buffer.byteLength) return false;
  const { byteOffset } = view;
  const size = buffer.byteLength;
  const tail = new Uint8Array(buffer).slice(byteOffset);
  buffer.resize(byteOffset);
  const tracks = hasSlot(view instanceof DataView ? dataViewLength : Uint8Array.prototype.values, view);
  buffer.resize(size);
  new Uint8Array(buffer).set(tail, byteOffset);
  return tracks;
}
