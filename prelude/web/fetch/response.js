// Response: https://fetch.spec.whatwg.org/#response-class
//
// Most responses are made, given back and never looked at again, so a Response is one state
// object, and its headers stay in the form they came in until `.headers` is touched:
//     names === null       `code` says all: one of the sets below
//     names !== null       names and values, as in headers.js
//     headers !== null     the Headers object, which owns the two arrays
import { isFlagOff } from "../../internal/native.js";
import { finishInterface } from "../../internal/interface.js";
import { constructorParameterError, fieldError, illegalInvocation, isDictionary, isObject, toUSVString } from "../../internal/webidl.js";
import { isWebSocket } from "../../internal/websocket-brand.js";
import compression from "part:../compression.js";
import reasons from "part:./reasons.js";
import { isLocked, knownLength, nativeSource } from "../streams/internal.js";
import { bodyIsUsed, bodyStream, bodyUsedError, cloneBody, installBody, setBody } from "./body.js";
import { fillHeaders, headerBlock, headersFromLists, headersLists, headersSetImmutable, listGet } from "./headers.js";
import { parseUrl } from "./url.js";

/** The commonest header sets, which native.respond() knows by number. */
export const HEADERS_NONE = 0;
export const HEADERS_TEXT = 1;
export const HEADERS_JSON = 2;
const CODE_TYPES = [null, "text/plain;charset=UTF-8", "application/json"];

const INTERNAL = Symbol("internal");
const REDIRECT_STATUSES = [301, 302, 303, 307, 308];
const isNullBodyStatus = (status) => status === 204 || status === 205 || status === 304 || status === 101;

const KEEPS_LOCATION = isFlagOff("response_redirect_url_standard");

class ResponseState {
  constructor(status, code) {
    this.source = null;
    this.stream = null;
    this.used = false;
    this.status = status;
    this.statusText = ""; // null: it came from elsewhere without one, and has that of its status
    this.code = code;
    this.names = null;
    this.values = null;
    this.headers = null;
    this.url = ""; // where it came from
    this.redirected = false;
    this.extra = null; // ResponseExtra
    this.hasCome = false; // from an object or a service: scripts may not change its headers
  }
}

/** What few responses have. */
class ResponseExtra {
  constructor() {
    this.type = "default";
    this.cf = undefined;
    this.webSocket = null;
    this.encodeBody = "automatic";
    this.immutable = false;
  }
}

let stateOf;
let hasState;

/** The two arrays, made from the code if need be. */
function lists(state) {
  if (state.headers !== null) return headersLists(state.headers);
  if (state.names === null) {
    const type = CODE_TYPES[state.code];
    state.names = type === null ? [] : ["content-type"];
    state.values = type === null ? [] : [type];
  }
  return state;
}

function contentType(state) {
  if (state.headers === null && state.names === null) return CODE_TYPES[state.code];
  const { names, values } = lists(state);
  return listGet(names, values, "content-type");
}

function applyInit(state, init) {
  let from = init;
  if (hasState(init)) {
    const other = stateOf(init);
    from = { status: other.status, statusText: undefined, headers: undefined, ...other.extra };
    const { names, values } = lists(other);
    state.names = names.slice();
    state.values = values.slice();
    state.statusText = other.statusText;
  } else if (!isObject(init)) {
    throw constructorParameterError("Response", 2, "InitializerDict or Response");
  }
  const { status, statusText, headers, cf, webSocket, encodeBody } = from;
  if (cf !== undefined) {
    if (!isObject(cf)) throw fieldError("cf", "InitializerDict", "Object");
    extra(state).cf = JSON.parse(JSON.stringify(cf));
  }
  if (encodeBody !== undefined && encodeBody !== "automatic") {
    if (`${encodeBody}` !== "manual") throw new TypeError(`encodeBody: unexpected value: ${encodeBody}`);
    extra(state).encodeBody = "manual";
  }
  if (headers !== undefined) {
    if (!isObject(headers)) throw fieldError("headers", "InitializerDict", "Headers or Sequence or object");
    state.names = [];
    state.values = [];
    fillHeaders(state.names, state.values, headers);
  }
  if (webSocket !== undefined && webSocket !== null) {
    if (!isWebSocket(webSocket)) throw fieldError("webSocket", "InitializerDict", "WebSocket");
    extra(state).webSocket = webSocket;
  }
  if (status !== undefined) {
    const code = Math.trunc(+status);
    if (webSocket !== undefined && webSocket !== null) {
      if (code !== 101) throw new RangeError("Responses with a WebSocket must have status code 101.");
    } else if (!(code >= 200 && code <= 599)) {
      throw new RangeError("Responses may only be constructed with status codes in the range 200 to 599, inclusive.");
    }
    state.status = code;
  } else if (webSocket !== undefined && webSocket !== null) {
    throw new RangeError("Responses with a WebSocket must have status code 101.");
  }
  if (statusText !== undefined) {
    const text = `${statusText}`;
    if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) throw new TypeError("Invalid statusText");
    state.statusText = text;
  }
}

function extra(state) {
  return (state.extra ??= new ResponseExtra());
}

export class Response {
  #s;

  constructor(body = null, init = undefined) {
    if (body === INTERNAL) {
      this.#s = init;
      return;
    }
    const state = new ResponseState(200, HEADERS_NONE);
    this.#s = state;
    if (init !== undefined && init !== null) applyInit(state, init);
    if (body === null || body === undefined) return;
    if (isNullBodyStatus(state.status)) {
      // The platform lets an empty string pass.
      if (body === "") return;
      throw new TypeError("Response with null body status (101, 204, 205, or 304) cannot have a body.");
    }
    const type = setBody(state, body);
    if (type === null) return;
    if (state.names === null) {
      if (typeof body === "string") {
        state.code = HEADERS_TEXT;
        return;
      }
      lists(state);
    }
    if (!state.names.includes("content-type")) {
      state.names.push("content-type");
      state.values.push(type);
    }
  }

  static {
    hasState = (value) => isObject(value) && #s in value;
    stateOf = (value) => {
      if (!hasState(value)) throw illegalInvocation();
      return value.#s;
    };
  }

  static error() {
    const state = new ResponseState(0, HEADERS_NONE);
    extra(state).type = "error";
    return new Response(INTERNAL, state);
  }

  static json(data, init = undefined) {
    const state = new ResponseState(200, HEADERS_JSON);
    // As the platform has it, what JSON cannot say becomes the text "undefined".
    state.source = `${JSON.stringify(data)}`;
    if (init !== undefined && init !== null) {
      applyInit(state, init);
      if (isNullBodyStatus(state.status)) {
        throw new TypeError("Response with null body status (101, 204, 205, or 304) cannot have a body.");
      }
      if (state.names !== null && !state.names.includes("content-type")) {
        state.names.push("content-type");
        state.values.push("application/json");
      }
    }
    return new Response(INTERNAL, state);
  }

  static redirect(url, status = 302) {
    const location = parseUrl(url);
    if (location === null) throw new TypeError(`Unable to parse URL: ${url}`);
    const code = Math.trunc(+status) & 0xffff;
    if (!REDIRECT_STATUSES.includes(code)) {
      throw new RangeError(`${code} is not a redirect status code. It must be one of: 301, 302, 303, 307, or 308.`);
    }
    const state = new ResponseState(code, HEADERS_NONE);
    state.names = ["location"];
    state.values = [KEEPS_LOCATION ? toUSVString(url) : location];
    extra(state).immutable = true;
    return new Response(INTERNAL, state);
  }

  clone() {
    const state = stateOf(this);
    if (state.extra?.webSocket) throw new TypeError("Cannot clone a response to a WebSocket handshake.");
    const copy = new ResponseState(state.status, state.code);
    copy.statusText = state.statusText;
    copy.url = state.url;
    copy.redirected = state.redirected;
    if (state.headers !== null || state.names !== null) {
      const { names, values } = lists(state);
      copy.names = names.slice();
      copy.values = values.slice();
    }
    copy.hasCome = state.hasCome;
    if (state.extra !== null) {
      copy.extra = Object.assign(new ResponseExtra(), state.extra);
      if (copy.extra.cf !== undefined) copy.extra.cf = JSON.parse(JSON.stringify(copy.extra.cf));
    }
    cloneBody(state, copy);
    return new Response(INTERNAL, copy);
  }

  get status() {
    return stateOf(this).status;
  }
  get statusText() {
    const state = stateOf(this);
    return state.statusText ?? reasons().reasonOf(state.status);
  }
  get headers() {
    const state = stateOf(this);
    if (state.headers === null) {
      const { names, values } = lists(state);
      state.headers = headersFromLists(names, values, state.hasCome || (state.extra !== null && state.extra.immutable));
    }
    return state.headers;
  }
  get ok() {
    const { status } = stateOf(this);
    return status >= 200 && status < 300;
  }
  get redirected() {
    return stateOf(this).redirected;
  }
  get url() {
    return stateOf(this).url;
  }
  get webSocket() {
    return stateOf(this).extra?.webSocket ?? null;
  }
  get cf() {
    return stateOf(this).extra?.cf;
  }
  get type() {
    return stateOf(this).extra?.type ?? "default";
  }
}
installBody(Response.prototype, stateOf, contentType);
finishInterface(Response);
for (const [target, key, length] of [[Response, "length", 0], [Response.json, "length", 1], [Response.redirect, "length", 1]]) {
  Object.defineProperty(target, key, { value: length, configurable: true });
}

export { hasState as isResponse };

/**
 * Makes the body of a response that is about to leave agree with its content-encoding header:
 * what a fetch() brought in that coding goes on as it came, anything else is compressed. Returns
 * the new source.
 */
function encodeBody(state, coding) {
  if (state.extra !== null && state.extra.encodeBody === "manual") return state.source;
  const fetched = state.source === undefined ? nativeSource(state.stream, (source) => source.coding !== undefined) : state.source;
  if (fetched !== null && typeof fetched === "object" && fetched.coding !== undefined) {
    state.source = fetched;
    state.stream = null;
    if (fetched.coding === coding) {
      fetched.raw = true;
      return state.source;
    }
  }
  if (coding === "gzip" || coding === "br") {
    state.stream = bodyStream(state).pipeThrough(new (compression().CompressionStream)(coding === "br" ? "brotli" : "gzip"));
    state.source = undefined;
  }
  return state.source;
}

/**
 * What the server needs of a response that a handler gave back, or null if it is no Response:
 * headers is a block of "name: value\r\n" lines or one of the HEADERS_ codes; body is null, a
 * string, a Uint8Array or a ReadableStream, of `length` bytes if that is known. The response counts as used.
 */
/** @param {boolean} encodes false: the body stays as it is, whatever content-encoding says, for a receiver in this process */
export function responseParts(response, encodes = true) {
  if (!hasState(response)) return null;
  const state = stateOf(response);
  if (bodyIsUsed(state)) throw bodyUsedError();
  if (state.stream !== null && isLocked(state.stream)) {
    throw new TypeError("This ReadableStream is currently locked to a reader.");
  }
  let { source } = state;
  let headers = state.code;
  if (state.headers !== null || state.names !== null) {
    const { names, values } = lists(state);
    headers = headerBlock(names, values);
    if (encodes && source !== null && names.includes("content-encoding")) {
      source = encodeBody(state, listGet(names, values, "content-encoding").toLowerCase());
    }
  }
  const whole = source === null || typeof source === "string" || source instanceof Uint8Array;
  const body = whole ? source : bodyStream(state);
  state.used = true;
  return {
    status: state.status,
    statusText: state.statusText === "" || state.statusText === null ? undefined : state.statusText,
    headers,
    body,
    length: whole ? null : knownLength(body),
    webSocket: state.extra === null ? null : state.extra.webSocket,
    encodeBody: state.extra === null ? "automatic" : state.extra.encodeBody,
    cf: state.extra?.cf,
  };
}

/** A response that comes from elsewhere without a status text has that of its status, as over HTTP. */
export function responseTitled(response) {
  const state = stateOf(response);
  if (state.statusText === "") state.statusText = null;
  return response;
}

/** Says where an answer came from; it is nobody else's yet. */
export function responseCameFrom(response, url, redirected) {
  const state = stateOf(response);
  state.url = url;
  state.redirected = redirected;
  state.hasCome = true;
  responseTitled(response);
  if (state.headers !== null) headersSetImmutable(state.headers);
  return response;
}

/**
 * A response moved to somebody else in this script: another object with its text. Null if it has more
 * than status, headers and text; then it is as it was.
 */
export function responseMove(response) {
  const state = stateOf(response);
  const { source } = state;
  if ((source !== null && typeof source !== "string") || state.stream !== null || state.used || state.extra !== null) return null;
  const copy = new ResponseState(state.status, state.code);
  if (state.headers !== null || state.names !== null) {
    const { names, values } = lists(state);
    if (names.includes("content-encoding")) return null;
    copy.names = names.slice();
    copy.values = values.slice();
  }
  copy.statusText = state.statusText;
  copy.source = source;
  state.used = true;
  return new Response(INTERNAL, copy);
}

/** A response that came from outside: fields as in ResponseState and ResponseExtra, body a source. */
export function makeResponse({ status, statusText = null, names, values, source = null, url = "", redirected = false, ...rest }) {
  const state = new ResponseState(status, HEADERS_NONE);
  state.url = url;
  state.redirected = redirected;
  state.statusText = statusText;
  state.names = names;
  state.values = values;
  state.source = source;
  Object.assign(extra(state), rest);
  return new Response(INTERNAL, state);
}

