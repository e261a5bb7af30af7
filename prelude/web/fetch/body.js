// The Body mixin of Request and Response: https://fetch.spec.whatwg.org/#body-mixin
//
// A body is three fields of a RequestState or ResponseState:
//     source   null: no body. A string or a Uint8Array: all of it. A PullSource: where it comes
//              from. undefined: only `stream` knows.
//     stream   the ReadableStream, made when somebody touches `.body`; until then null
//     used     consumed without a stream
// So text() of a string is that string, and no stream is made for what nobody streams.
//
// A PullSource gives bytes one chunk at a time:
//     pull()          a Uint8Array, null at the end, or a promise of either
//     cancel(reason)  no more is wanted
//     whole()         all of it as a Uint8Array if it has arrived already, else undefined
//     wholeText()     may be absent: the same as a string
//     collect(asText) may be absent: a promise of all of it, as a string or a Uint8Array
//     length          how many bytes there will be, or null
import { isFlagOff, native } from "../../internal/native.js";
import { toUSVString } from "../../internal/webidl.js";
import { blobBytes, blobFromBytes, isBlob, setBlobStream } from "../blob.js";
import {
  createByteStreamFromBytes, createByteStreamFromPull, isDisturbed, isLocked, isReadableStream, readAllBytes, streamFrom, teeStream,
} from "../streams/internal.js";
import { URLSearchParams } from "../url/search-params.js";
import multipart from "part:./multipart.js";
import { normalizedType } from "./mime.js";

const DROPS_MARK = !isFlagOff("strip_bom_in_read_all_text");
const TAKES_ITERABLES = !isFlagOff("fetch_iterable_type_support");
const LEGACY_TYPES = isFlagOff("blob_standard_mime_type");

const { then } = Promise.prototype;

export const bodyUsedError = () =>
  new TypeError("Body has already been used. It can only be used once. Use tee() first if you need to read it twice.");
const lockedError = () => new TypeError("This ReadableStream is currently locked to a reader.");

/** A Uint8Array over the bytes of a buffer or view, not copied. */
export function viewBytes(value) {
  if (value instanceof Uint8Array) return value;
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return new Uint8Array(value);
}

export function isBuffer(value) {
  return ArrayBuffer.isView(value) || value instanceof ArrayBuffer ||
    (typeof SharedArrayBuffer !== "undefined" && value instanceof SharedArrayBuffer);
}

/**
 * Makes `value` (a BodyInit, not null) the body of `state`. Returns the content type that goes
 * with it, or null.
 */
export function setBody(state, value) {
  if (typeof value === "string") {
    state.source = value;
    return "text/plain;charset=UTF-8";
  }
  if (typeof value === "object") {
    if (isReadableStream(value)) {
      if (isDisturbed(value)) {
        throw new TypeError("This ReadableStream is disturbed (has already been read from), and cannot be used as a body.");
      }
      if (isLocked(value)) throw lockedError();
      state.source = undefined;
      state.stream = value;
      return null;
    }
    if (isBuffer(value)) {
      state.source = viewBytes(value).slice();
      return null;
    }
    if (isBlob(value)) {
      state.source = blobBytes(value);
      return value.type || null;
    }
    if (multipart.loaded()?.isFormData(value)) {
      const { bytes, boundary } = multipart().encodeMultipart(value);
      state.source = bytes;
      return `multipart/form-data; boundary=${boundary}`;
    }
    if (value instanceof URLSearchParams) {
      state.source = value.toString();
      return "application/x-www-form-urlencoded;charset=UTF-8";
    }
    // An iterable of chunks, unless it says itself what it is as text.
    if (
      TAKES_ITERABLES &&
      (typeof value[Symbol.asyncIterator] === "function" || (typeof value[Symbol.iterator] === "function" && !ownText(value)))
    ) {
      state.source = undefined;
      state.stream = streamFrom(value);
      return null;
    }
  }
  state.source = toUSVString(value);
  return "text/plain;charset=UTF-8";
}

/** Whether an object brings its own way to become a string. */
function ownText(value) {
  if (value[Symbol.toPrimitive] !== undefined) return true;
  const { toString } = value;
  return toString !== Object.prototype.toString && toString !== Array.prototype.toString;
}

/** Whether the body can no longer be read by its owner. */
export function bodyIsUsed(state) {
  return state.stream === null ? state.used : isDisturbed(state.stream);
}

/** The body as a stream, made now if need be. */
export function bodyStream(state) {
  if (state.stream !== null || state.source === null) return state.stream;
  const { source } = state;
  if (state.used) {
    // Somebody has read it without a stream: a stream that somebody has read.
    state.stream = createByteStreamFromPull(() => null);
    readAllBytes(state.stream);
    state.stream.getReader();
    return state.stream;
  }
  if (typeof source === "string") state.stream = createByteStreamFromBytes(native.utf8Encode(source));
  else if (source instanceof Uint8Array) state.stream = createByteStreamFromBytes(source.slice());
  else state.stream = createByteStreamFromPull(() => source.pull(), (reason) => source.cancel(reason), source, source.length);
  state.source = undefined;
  return state.stream;
}

/**
 * Gives the copy `to` the same body as `from` (both states). What is all there is shared; the
 * rest becomes two branches of a stream.
 */
export function cloneBody(from, to) {
  if (bodyIsUsed(from) || (from.stream !== null && isLocked(from.stream))) {
    throw new TypeError("This ReadableStream is currently locked to a reader,");
  }
  if (from.stream === null && from.source !== null && typeof from.source === "object" && !(from.source instanceof Uint8Array)) {
    const whole = from.source.whole();
    if (whole !== undefined) from.source = whole;
  }
  if (from.stream === null && (from.source === null || typeof from.source === "string" || from.source instanceof Uint8Array)) {
    to.source = from.source;
    return;
  }
  const [a, b] = teeStream(bodyStream(from));
  from.stream = a;
  to.stream = b;
  from.source = to.source = undefined;
}

/** What `convert` of consume() gets: any Uint8Array or string; one that nobody else holds; text. */
const SHARED = 0;
const OWN = 1;
const TEXT = 2;

/** Reads the whole body and converts it. */
function consume(state, convert, mode) {
  try {
    const { source } = state;
    if (source === null) return Promise.resolve(convert(""));
    if (state.stream === null) {
      if (state.used) return Promise.reject(bodyUsedError());
      const isWhole = typeof source === "string" || source instanceof Uint8Array;
      let whole = isWhole ? source : mode === TEXT && source.wholeText !== undefined ? source.wholeText() : source.whole();
      if (whole !== undefined) {
        state.used = true;
        // A string that somebody gave may have lone surrogates; one made from bytes has none.
        if (isWhole && typeof whole === "string") whole = whole.toWellFormed();
        else if (isWhole && mode === OWN) whole = whole.slice();
        return Promise.resolve(convert(whole));
      }
      if (source.collect !== undefined) {
        state.used = true;
        return then.call(source.collect(mode === TEXT), convert);
      }
    }
    const stream = bodyStream(state);
    if (isDisturbed(stream)) return Promise.reject(bodyUsedError());
    if (isLocked(stream)) return Promise.reject(lockedError());
    // Who has read a body to its end keeps it: its stream stays locked.
    const keep = () => isLocked(stream) || stream.getReader();
    return then.call(readAllBytes(stream), (bytes) => (keep(), convert(bytes)), (error) => {
      keep();
      throw error;
    });
  } catch (error) {
    return Promise.reject(error);
  }
}

/** UTF-8 decode: a byte order mark at the start is dropped. */
function toText(data) {
  const text = typeof data === "string" ? data : native.utf8Decode(data);
  return text.charCodeAt(0) === 0xfeff && DROPS_MARK ? text.slice(1) : text;
}
const toJson = (data) => JSON.parse(toText(data));
const toBytes = (data) => (typeof data === "string" ? native.utf8Encode(data) : data);
function toArrayBuffer(data) {
  const bytes = toBytes(data);
  return bytes.byteLength === bytes.buffer.byteLength ? bytes.buffer : bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
}

/**
 * Defines the members of Body on a prototype. `stateOf(object)` gives the state or throws;
 * `contentType(state)` the value of its content-type header, or null.
 */
export function installBody(prototype, stateOf, contentType) {
  const reader = (name, convert, mode) => ({
    [name]() {
      let state;
      try {
        state = stateOf(this);
      } catch (error) {
        return Promise.reject(error);
      }
      return consume(state, convert, mode);
    },
  })[name];
  const methods = {
    arrayBuffer: reader("arrayBuffer", toArrayBuffer, OWN),
    bytes: reader("bytes", toBytes, OWN),
    text: reader("text", toText, TEXT),
    json: reader("json", toJson, TEXT),
    formData() {
      try {
        const state = stateOf(this);
        const type = contentType(state);
        if (type === null) multipart().parseFormData(null, null); // throws, and the body is not touched
        return consume(state, (data) => multipart().parseFormData(toBytes(data), type), SHARED);
      } catch (error) {
        return Promise.reject(error);
      }
    },
    blob() {
      try {
        const state = stateOf(this);
        const type = contentType(state) ?? "";
        return consume(state, (data) => blobFromBytes(toBytes(data), LEGACY_TYPES ? type : serializeType(type)), OWN);
      } catch (error) {
        return Promise.reject(error);
      }
    },
  };
  for (const name of Object.keys(methods)) {
    Object.defineProperty(prototype, name, { value: methods[name], writable: true, enumerable: true, configurable: true });
  }
  const getters = {
    get body() {
      return bodyStream(stateOf(this));
    },
    get bodyUsed() {
      return bodyIsUsed(stateOf(this));
    },
  };
  for (const name of Object.keys(getters)) {
    Object.defineProperty(prototype, name, { get: Object.getOwnPropertyDescriptor(getters, name).get, enumerable: true, configurable: true });
  }
}

/** The values of a list that commas divide, outside of quotes. */
function splitList(list) {
  const values = [];
  let start = 0, quoted = false;
  for (let i = 0; i < list.length; i++) {
    const c = list[i];
    if (c === '"') quoted = !quoted;
    else if (quoted && c === "\\") i++;
    else if (c === "," && !quoted) {
      values.push(list.slice(start, i));
      start = i + 1;
    }
  }
  values.push(list.slice(start));
  return values;
}

/** The last value that is a type: https://fetch.spec.whatwg.org/#concept-header-extract-mime-type */
function lastType(list) {
  if (!list.includes(",")) return list;
  const types = splitList(list).filter((type) => /^\s*[^\s/;]+\/[^\s/;]+\s*(?:;|$)/.test(type) && !/^\s*\*\/\*/.test(type));
  return types.at(-1) ?? "";
}

/** What Blob.type shows of a content type; nothing of what is none. */
const serializeType = (given) => normalizedType(lastType(given)) ?? "";

setBlobStream((bytes) => createByteStreamFromBytes(bytes.slice()));
