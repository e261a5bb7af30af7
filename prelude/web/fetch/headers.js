// Headers: https://fetch.spec.whatwg.org/#headers-class
//
// A header list is two arrays: lower-case names and their values, in order of arrival. A few
// dozen entries at most, so looking one up is a scan over short strings; nothing is sorted or
// combined until somebody asks. A Headers of an incoming request has no arrays at first: single
// look-ups go to the native request, and everything else fetches all of it once.
import { isFlagOff, native } from "../../internal/native.js";
import { finishInterface } from "../../internal/interface.js";
import { isHttpBlank, trimBy } from "../../internal/trim.js";
import { constructorParameterError, illegalInvocation, isObject, parameterError } from "../../internal/webidl.js";

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE_NEEDS_WORK = /^[\t\n\r ]|[\t\n\r ]$|[\0\r\n]/;
const NAMES_KNOWN_MAX = 1024;
/** This many single look-ups in a native request; then the whole list is cheaper. */
const NATIVE_LOOKUPS_MAX = 4;

const namesKnown = new Map(); // as given -> lower-case; only valid names

/** The lower-case form of a header name; throws if it is none. */
export function headerName(name) {
  const known = namesKnown.get(name);
  if (known !== undefined) return known;
  if (typeof name !== "string") return headerName(`${name}`);
  if (!TOKEN.test(name)) throw new TypeError("Invalid header name.");
  const lower = name.toLowerCase();
  if (namesKnown.size < NAMES_KNOWN_MAX) namesKnown.set(name, lower);
  return lower;
}

/** Blanks at both ends are cut; NUL, CR and LF are refused. */
export function headerValue(value) {
  const text = typeof value === "string" ? value : `${value}`;
  if (!VALUE_NEEDS_WORK.test(text)) return text;
  const trimmed = trimBy(text, isHttpBlank);
  if (/[\0\r\n]/.test(trimmed)) throw new TypeError("Invalid header value.");
  return trimmed;
}

/** Appends what a HeadersInit says to a pair of arrays. */
export function fillHeaders(names, values, init) {
  if (isHeaders(init)) {
    const list = headersLists(init);
    for (let i = 0; i < list.names.length; i++) {
      names.push(list.names[i]);
      values.push(list.values[i]);
    }
    return;
  }
  if (!isObject(init)) throw constructorParameterError("Headers", 1, "Headers or Sequence or object");
  if (init[Symbol.iterator] !== undefined && init[Symbol.iterator] !== null) {
    for (const pair of init) {
      if (!isObject(pair)) throw constructorParameterError("Headers", 1, "Headers or Sequence or object");
      const [name, value, ...rest] = pair;
      const count = Array.isArray(pair) ? pair.length : value === undefined ? 1 : 2 + rest.length;
      if (count !== 2) {
        throw new TypeError("To initialize a Headers object from a sequence, each inner sequence must have exactly two elements.");
      }
      names.push(headerName(name));
      values.push(headerValue(value));
    }
    return;
  }
  const keys = Object.keys(init);
  for (let i = 0; i < keys.length; i++) {
    names.push(headerName(keys[i]));
    values.push(headerValue(init[keys[i]]));
  }
}

/** The two arrays of "name\nvalue\nname\nvalue\n", the form in which C gives headers. */
export function splitHeaderLines(text) {
  const parts = text.split("\n");
  const names = [];
  const values = [];
  for (let i = 0; i + 1 < parts.length; i += 2) {
    names.push(parts[i]);
    values.push(parts[i + 1]);
  }
  return { names, values };
}

/** "name: value\r\n" for every entry, as it goes over the wire. */
export function headerBlock(names, values) {
  let block = "";
  for (let i = 0; i < names.length; i++) block += `${names[i]}: ${values[i]}\r\n`;
  return block;
}

/** The value of `name` with those of equal name joined by ", ", or null. */
export function listGet(names, values, name) {
  let found = null;
  for (let i = 0; i < names.length; i++) {
    if (names[i] === name) found = found === null ? values[i] : `${found}, ${values[i]}`;
  }
  return found;
}

/** Entries sorted by name and combined, but for set-cookie: what iteration shows. */
function sortedEntries(names, values) {
  const combined = new Map(), cookies = [];
  for (let i = 0; i < names.length; i++) {
    const name = names[i], before = combined.get(name);
    if (name === "set-cookie") cookies.push([name, values[i]]);
    combined.set(name, before === undefined ? values[i] : `${before}, ${values[i]}`);
  }
  const entries = [];
  for (const entry of [...combined].sort((a, b) => (a[0] < b[0] ? -1 : 1))) {
    if (entry[0] === "set-cookie") for (const cookie of cookies) entries.push(cookie);
    else entries.push(entry);
  }
  return entries;
}

const INTERNAL = Symbol("internal");
export let isHeaders;
/** { names, values } of a Headers: its own arrays, not to be changed. */
export let headersLists;
/** A Headers on the given arrays, which it takes over. */
export let headersFromLists;
/** Whether scripts may not change them. */
export let headersAreImmutable;
/** A Headers of the native request `handle`. Immutable. */
export let headersFromNative;
export let headersSetImmutable;
let snapshotOf;

function cookiesOf(headers) {
  const { names, values } = headersLists(headers);
  return values.filter((_, i) => names[i] === "set-cookie");
}

export class Headers {
  #names;
  #values;
  #immutable = false;
  #handle = -1;
  #lookups = 0;

  constructor(init = undefined, names = undefined, values = undefined) {
    if (init === INTERNAL) {
      this.#names = names;
      this.#values = values;
      return;
    }
    this.#names = [];
    this.#values = [];
    if (init !== undefined) fillHeaders(this.#names, this.#values, init);
  }

  static {
    isHeaders = (value) => isObject(value) && #names in value;
    headersAreImmutable = (headers) => headers.#immutable;
    headersFromLists = (names, values, immutable = false) => {
      const headers = new Headers(INTERNAL, names, values);
      headers.#immutable = immutable;
      return headers;
    };
    headersFromNative = (handle) => {
      const headers = new Headers(INTERNAL, null, null);
      headers.#handle = handle;
      headers.#immutable = true;
      return headers;
    };
    headersSetImmutable = (headers) => {
      headers.#immutable = true;
    };
    headersLists = (headers) => {
      if (headers.#names === null) headers.#load();
      return { names: headers.#names, values: headers.#values };
    };
    snapshotOf = (headers) => {
      if (!isHeaders(headers)) throw illegalInvocation();
      if (headers.#names === null) headers.#load();
      return sortedEntries(headers.#names, headers.#values);
    };
  }

  #load() {
    const { names, values } = splitHeaderLines(native.requestHeaders(this.#handle));
    this.#names = names;
    this.#values = values;
  }

  /** For changes: the arrays are there and may be changed. */
  #open() {
    if (this.#immutable) throw new TypeError("Can't modify immutable headers.");
  }

  get(name) {
    if (!isHeaders(this)) throw illegalInvocation();
    if (arguments.length < 1) throw parameterError("get", "Headers", 1, "string");
    const lower = headerName(name);
    if (this.#names === null) {
      if (this.#lookups++ < NATIVE_LOOKUPS_MAX) return native.requestHeader(this.#handle, lower);
      this.#load();
    }
    return listGet(this.#names, this.#values, lower);
  }

  getAll(name) {
    if (!isHeaders(this)) throw illegalInvocation();
    if (arguments.length < 1) throw parameterError("getAll", "Headers", 1, "string");
    if (headerName(name) !== "set-cookie") {
      throw new TypeError('getAll() can only be used with the header name "Set-Cookie".');
    }
    return cookiesOf(this);
  }

  getSetCookie() {
    if (!isHeaders(this)) throw illegalInvocation();
    return cookiesOf(this);
  }

  has(name) {
    if (!isHeaders(this)) throw illegalInvocation();
    if (arguments.length < 1) throw parameterError("has", "Headers", 1, "string");
    const lower = headerName(name);
    if (this.#names === null) {
      if (this.#lookups++ < NATIVE_LOOKUPS_MAX) return native.requestHeader(this.#handle, lower) !== null;
      this.#load();
    }
    return this.#names.includes(lower);
  }

  set(name, value) {
    if (!isHeaders(this)) throw illegalInvocation();
    if (arguments.length < 2) throw parameterError("set", "Headers", arguments.length + 1, "string");
    const lower = headerName(name);
    const text = headerValue(value);
    this.#open();
    const names = this.#names;
    const at = names.indexOf(lower);
    if (at < 0) {
      names.push(lower);
      this.#values.push(text);
      return;
    }
    this.#values[at] = text;
    this.#remove(lower, at + 1);
  }

  append(name, value) {
    if (!isHeaders(this)) throw illegalInvocation();
    if (arguments.length < 2) throw parameterError("append", "Headers", arguments.length + 1, "string");
    const lower = headerName(name);
    const text = headerValue(value);
    this.#open();
    this.#names.push(lower);
    this.#values.push(text);
  }

  delete(name) {
    if (!isHeaders(this)) throw illegalInvocation();
    if (arguments.length < 1) throw parameterError("delete", "Headers", 1, "string");
    const lower = headerName(name);
    this.#open();
    this.#remove(lower, 0);
  }

  #remove(lower, from) {
    const names = this.#names, values = this.#values;
    let kept = from;
    for (let i = from; i < names.length; i++) {
      if (names[i] === lower) continue;
      names[kept] = names[i];
      values[kept++] = values[i];
    }
    names.length = values.length = kept;
  }

  forEach(callback, thisArg = undefined) {
    const entries = snapshotOf(this);
    if (typeof callback !== "function") throw parameterError("forEach", "Headers", 1, "function");
    for (const [name, value] of entries) callback.call(thisArg, value, name, this);
  }

  entries() {
    return new HeadersIterator(snapshotOf(this), 2);
  }
  keys() {
    return new HeadersIterator(snapshotOf(this), 0);
  }
  values() {
    return new HeadersIterator(snapshotOf(this), 1);
  }
}
finishInterface(Headers);
if (isFlagOff("http_headers_getsetcookie")) delete Headers.prototype.getSetCookie;
Object.defineProperty(Headers.prototype, Symbol.iterator, {
  value: Headers.prototype.entries, writable: true, configurable: true, enumerable: false,
});
Object.defineProperty(Headers, "length", { value: 0, configurable: true });

const IteratorPrototype = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));

/** Walks a snapshot: `kind` 0 gives names, 1 values, 2 pairs. */
class HeadersIterator {
  #entries;
  #kind;
  #at = 0;
  constructor(entries, kind) {
    this.#entries = entries;
    this.#kind = kind;
  }
  next() {
    if (this.#at >= this.#entries.length) return { value: undefined, done: true };
    const entry = this.#entries[this.#at++];
    return { value: this.#kind === 2 ? entry : entry[this.#kind], done: false };
  }
}
Object.setPrototypeOf(HeadersIterator.prototype, IteratorPrototype);
delete HeadersIterator.prototype.constructor;
finishInterface(HeadersIterator, "Headers Iterator");
