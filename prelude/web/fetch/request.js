// Request: https://fetch.spec.whatwg.org/#request-class
//
// A request that came in over HTTP is a handle. Method, URL, headers and body are fetched from
// the native request when they are first touched, and the AbortSignal and `cf` are made when they are.
//
// What is made when it is asked for is never read as a field: a copy of a request that was not
// asked would not have it. `arrived` is where a copy finds it.
import { compatibilityFlags, isFlagOff, native, options } from "../../internal/native.js";
import { finishInterface } from "../../internal/interface.js";
import { constructorParameterError, fieldError, illegalInvocation, isObject, toUSVString } from "../../internal/webidl.js";
import { AbortController, followSignal, isAbortSignal, whenAborted } from "../abort.js";
import { DOMException } from "../dom-exception.js";
import { isLocked } from "../streams/internal.js";
import { bodyIsUsed, cloneBody, installBody, setBody } from "./body.js";
import { bodyError } from "./failures.js";
import { setCopyOf } from "../structured-clone.js";
import { Headers, fillHeaders, isHeaders, headersFromLists, headersFromNative, headersLists, listGet } from "./headers.js";
import { normalizeUrl, parseUrl } from "./url.js";

const INTERNAL = Symbol("internal");
const METHODS = new Set([
  "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "COPY", "LOCK", "MKCOL", "MOVE", "PROPFIND",
  "PROPPATCH", "SEARCH", "UNLOCK", "ACL", "REPORT", "MKACTIVITY", "CHECKOUT", "MERGE", "MSEARCH", "NOTIFY", "SUBSCRIBE",
  "UNSUBSCRIBE", "QUERY", "PURGE", "MKCALENDAR", "LINK", "UNLINK", "BIND", "REBIND", "UNBIND",
]);
/** Whether what aborts an incoming request aborts the requests that are made from it. */
const PASSES_SIGNAL = compatibilityFlags.has("request_signal_passthrough");
/** Methods that may be written in lower case; the others only by a flag. */
const RAISED = /^(?:delete|get|head|options|post|put)$/i;
const RAISES_ALL = !isFlagOff("upper_case_all_http_methods");
const KEEPS_URL = isFlagOff("fetch_standard_url");
const HAS_CACHE = compatibilityFlags.has("cache_option_enabled");
const CACHE_MODES = ["no-store"];
if (compatibilityFlags.has("cache_no_cache_enabled")) CACHE_MODES.push("no-cache");
if (compatibilityFlags.has("cache_reload_enabled")) CACHE_MODES.push("reload");

class RequestState {
  constructor(handle) {
    this.source = undefined; // of a native request: not asked for yet
    this.stream = null;
    this.used = false;
    this.handle = handle; // -1: made by a script
    this.method = null;
    this.url = null;
    this.headers = null;
    this.arrived = null; // of a copy: the state of the request that came in
    this.signal = handle >= 0 ? undefined : null; // null: none; undefined: that of what came in
    this.isFrozen = handle >= 0; // what comes in says what it says
    this.redirect = handle >= 0 ? "manual" : "follow"; // of what comes in they are the client's business
    this.extra = null; // RequestExtra
  }
}

// What a script puts on Object.prototype is none of theirs.
Object.setPrototypeOf(RequestState.prototype, null);

/** What few requests have. */
class RequestExtra {
  constructor() {
    this.cf = undefined;
    this.cache = undefined;
    this.fetcher = null;
    this.encodeResponseBody = "automatic";
  }
}

Object.setPrototypeOf(RequestExtra.prototype, null);

/** The body of an incoming request, as a PullSource. */
class NativeBody {
  constructor(handle) {
    this.handle = handle;
  }
  get length() {
    const given = native.requestHeader(this.handle, "content-length");
    return given === null ? null : +given;
  }
  pull() {
    let settle;
    const chunk = native.requestRead(this.handle, (later, failure) => {
      if (failure === undefined) settle.resolve(later);
      else settle.reject(bodyError(failure));
    });
    if (chunk !== undefined) return chunk;
    settle = Promise.withResolvers();
    return settle.promise;
  }
  whole() {
    return native.requestBytes(this.handle);
  }
  wholeText() {
    return native.requestText(this.handle);
  }
  collect(asText) {
    const { promise, resolve, reject } = Promise.withResolvers();
    native.requestCollect(this.handle, asText, (all, failure) => {
      if (failure === undefined) resolve(all);
      else reject(bodyError(failure));
    });
    return promise;
  }
  cancel() {}
}

/** Whether a native source (streams/internal.js) is the body of the incoming request `handle`. */
export function isRequestBody(source, handle) {
  return source instanceof NativeBody && source.handle === handle;
}

let stateOf;
let hasState;

/** The state with its body fields filled in. */
function withBody(state) {
  if (state.source === undefined && state.stream === null) {
    state.source = native.requestHasBody(state.handle) ? new NativeBody(state.handle) : null;
  }
  return state;
}

function methodOf(state) {
  return (state.method ??= native.requestMethod(state.handle));
}
function urlOf(state) {
  if (state.url === null) {
    state.url = normalizeUrl(native.requestUrl(state.handle));
  }
  return state.url;
}
function headersOf(state) {
  return (state.headers ??= headersFromNative(state.handle));
}
function extra(state) {
  return (state.extra ??= new RequestExtra());
}
function headerOf(state, name) {
  if (state.headers === null && state.handle >= 0) return native.requestHeader(state.handle, name);
  const { names, values } = headersLists(headersOf(state));
  return listGet(names, values, name);
}
const contentType = (state) => headerOf(state, "content-type");

/** Signals of incoming requests: they are there to be listened to, and end nothing by themselves. */
const incoming = new WeakSet();
const ignoresSignal = (signal) => !PASSES_SIGNAL && signal !== null && incoming.has(signal);

function signalOf(state) {
  if (state.signal === undefined && state.arrived !== null) {
    state.signal = signalOf(state.arrived);
  } else if (state.signal === undefined || state.signal === null) {
    const controller = new AbortController();
    state.signal = controller.signal;
    if (state.handle >= 0) {
      incoming.add(controller.signal);
      native.onAbort(state.handle, () => controller.abort(new DOMException("The client has disconnected", "AbortError")));
    }
  }
  return state.signal;
}

/** The signal that ends what is made of the request, or null. */
function ownSignal(state) {
  if (state.signal === undefined) return PASSES_SIGNAL ? signalOf(state) : null;
  return ignoresSignal(state.signal) ? null : state.signal;
}

const cloneCf = (cf) => JSON.parse(JSON.stringify(cf));

function freeze(value) {
  if (isObject(value)) {
    Object.values(value).forEach(freeze);
    Object.freeze(value);
  }
  return value;
}

/** What wrangler shows a worker in development, where there is no edge either. */
const IN_DEVELOPMENT = options.development !== true ? {} : {
  asOrganization: "",
  asn: 395747,
  city: "Austin",
  region: "Texas",
  regionCode: "TX",
  metroCode: "635",
  postalCode: "78701",
  country: "US",
  continent: "NA",
  timezone: "America/Chicago",
  latitude: "30.27130",
  longitude: "-97.74260",
  clientTcpRtt: 0,
  edgeRequestKeepAliveStatus: 0,
};

/** `cf` of what comes in: what is known of the connection, and placeholders (docs/reference/compatibility.md). */
function connectionOf(state) {
  return {
    colo: "LOCAL",
    country: "XX",
    httpProtocol: "HTTP/1.1",
    clientAcceptEncoding: headerOf(state, "accept-encoding") ?? "",
    requestPriority: "",
    tlsVersion: "",
    tlsCipher: "",
    ...IN_DEVELOPMENT,
  };
}

/** `cf`, which is nobody else's object. */
function cfOf(state) {
  const given = state.extra?.cf;
  if (given !== undefined) return given;
  const arrived = state.handle >= 0 ? state : state.arrived;
  if (arrived === null) return undefined;
  const cf = connectionOf(arrived);
  return (extra(state).cf = state.isFrozen ? freeze(cf) : cf);
}

function normalizeMethod(value) {
  const method = `${value}`;
  const upper = RAISES_ALL || RAISED.test(method) ? method.toUpperCase() : method;
  if (!METHODS.has(upper)) throw new TypeError(`Invalid HTTP method string: ${method}`);
  return upper;
}

function applyInit(state, init) {
  const { method, headers, redirect, fetcher, cf, cache, integrity, signal, encodeResponseBody } = init;
  if (integrity !== undefined && `${integrity}` !== "") {
    throw new TypeError("Subrequest integrity checking is not implemented. The integrity option must be either undefined or an empty string.");
  }
  if (method !== undefined) state.method = normalizeMethod(method);
  if (headers !== undefined) {
    if (!isObject(headers)) throw fieldError("headers", "RequestInitializerDict", "Headers or Sequence or object");
    const names = [];
    const values = [];
    fillHeaders(names, values, headers);
    state.headers = headersFromLists(names, values);
  }
  if (redirect !== undefined) {
    const mode = `${redirect}`;
    if (mode !== "follow" && mode !== "manual" && mode !== "error") {
      throw new TypeError('Invalid redirect value, must be one of "follow", "manual" or "error".');
    }
    state.redirect = mode;
  }
  if (fetcher !== undefined) {
    if (fetcher !== null && !(isObject(fetcher) && typeof fetcher.fetch === "function")) {
      throw fieldError("fetcher", "RequestInitializerDict", "Fetcher");
    }
    extra(state).fetcher = fetcher;
  }
  if (cf !== undefined) {
    if (!isObject(cf)) throw fieldError("cf", "RequestInitializerDict", "Object");
    if (cf.cacheControl !== undefined) {
      if (cf.cacheTtl !== undefined) throw new TypeError("The 'cacheControl' and 'cacheTtl' options on cf are mutually exclusive.");
      if (HAS_CACHE && cache !== undefined) throw new TypeError("The 'cacheControl' option on cf cannot be used together with the 'cache' option on the Request.");
    }
    extra(state).cf = cloneCf(cf);
  }
  if (cache !== undefined) {
    if (!HAS_CACHE) throw new Error("The 'cache' field on 'RequestInitializerDict' is not implemented.");
    const mode = `${cache}`;
    if (!CACHE_MODES.includes(mode)) throw new TypeError(`Unsupported cache mode: ${mode}`);
    extra(state).cache = mode;
  }
  if (encodeResponseBody !== undefined) {
    const mode = `${encodeResponseBody}`;
    if (mode !== "automatic" && mode !== "manual") throw new TypeError(`encodeResponseBody: unexpected value: ${mode}`);
    extra(state).encodeResponseBody = mode;
  }
  if (signal !== undefined) {
    if (signal !== null && !isAbortSignal(signal)) throw fieldError("signal", "RequestInitializerDict", "AbortSignal");
    state.signal = signal;
  }
}

/** Everything but the body. */
function copyState(from) {
  const state = new RequestState(-1);
  state.method = methodOf(from);
  state.url = urlOf(from);
  const { names, values } = headersLists(headersOf(from));
  state.headers = headersFromLists(names.slice(), values.slice());
  state.arrived = from.handle >= 0 ? from : from.arrived;
  state.signal = from.signal;
  state.source = null;
  state.redirect = from.redirect;
  if (from.extra !== null) {
    state.extra = Object.assign(new RequestExtra(), from.extra);
    if (state.extra.cf !== undefined) state.extra.cf = cloneCf(state.extra.cf);
  }
  return state;
}

export class Request {
  #s;

  constructor(input, init = undefined) {
    if (input === INTERNAL) {
      this.#s = init;
      return;
    }
    if (arguments.length === 0) throw constructorParameterError("Request", 1, "Request or string");
    let options = init;
    if (init !== undefined && init !== null) {
      if (!isObject(init)) throw constructorParameterError("Request", 2, "RequestInitializerDict or Request");
    } else {
      options = undefined;
    }
    let state;
    let from = null;
    if (hasState(input)) {
      from = stateOf(input);
      state = copyState(from);
    } else {
      state = new RequestState(-1);
      state.source = null;
      state.method = "GET";
      const text = toUSVString(input);
      const parsed = parseUrl(text);
      state.url = parsed !== null && KEEPS_URL ? text : parsed;
      if (parsed === null) throw new TypeError(`Invalid URL: ${text}`);
    }
    let body;
    if (options !== undefined) {
      applyInit(state, options);
      ({ body } = options);
    }
    state.headers ??= new Headers();
    this.#s = state;
    if (body !== undefined && body !== null) {
      if (state.method === "GET" || state.method === "HEAD") {
        throw new TypeError("Request with a GET or HEAD method cannot have a body.");
      }
      const type = setBody(state, body);
      if (type !== null && !state.headers.has("content-type")) state.headers.append("content-type", type);
    } else if (from !== null && body === undefined) {
      withBody(from);
      if (from.source === null) return;
      if (options?.method !== undefined && (state.method === "GET" || state.method === "HEAD")) {
        throw new TypeError("Request with a GET or HEAD method cannot have a body.");
      }
      if (bodyIsUsed(from) || (from.stream !== null && isLocked(from.stream))) {
        throw new TypeError("Cannot reconstruct a Request with a used body.");
      }
      // The body moves: the old request counts as used.
      state.source = from.source;
      state.stream = from.stream;
      from.stream = null;
      from.source = "";
      from.used = true;
    }
  }

  static {
    hasState = (value) => isObject(value) && #s in value;
    stateOf = (value) => {
      if (!hasState(value)) throw illegalInvocation();
      return value.#s;
    };
  }

  clone() {
    const state = stateOf(this);
    const copy = copyState(state);
    cloneBody(withBody(state), copy);
    // Its signal follows the original's.
    if (state.signal !== null) {
      copy.signal = followSignal(signalOf(state));
      if (incoming.has(state.signal)) incoming.add(copy.signal);
    }
    return new Request(INTERNAL, copy);
  }

  get method() {
    return methodOf(stateOf(this));
  }
  get url() {
    return urlOf(stateOf(this));
  }
  get headers() {
    return headersOf(stateOf(this));
  }
  get redirect() {
    return stateOf(this).redirect;
  }
  get fetcher() {
    return stateOf(this).extra?.fetcher ?? null;
  }
  get signal() {
    return signalOf(stateOf(this));
  }
  get cf() {
    return cfOf(stateOf(this));
  }
  get integrity() {
    stateOf(this);
    return "";
  }
  get keepalive() {
    stateOf(this);
    return false;
  }
  get cache() {
    return stateOf(this).extra?.cache;
  }
}
installBody(Request.prototype, (value) => withBody(stateOf(value)), contentType);
if (!HAS_CACHE) delete Request.prototype.cache;
finishInterface(Request);

export { hasState as isRequest };

/** The Request of the native request `handle`. Nothing is read yet. */
export function requestFromNative(handle) {
  return new Request(INTERNAL, new RequestState(handle));
}

// Requests and headers without a body are cloned as a whole.
setCopyOf((value) => {
  if (isHeaders(value)) return new Headers(value);
  if (!hasState(value) || value.body !== null) return undefined;
  return new Request(INTERNAL, copyState(stateOf(value)));
});

/** The signal that ends a request made by a script, or null. */
export function requestSignal(request) {
  return ownSignal(stateOf(request));
}

/** A request that has come from elsewhere in this server: `gone` aborts when whoever sent it has given it up. */
export function requestFromPeer(url, init, gone) {
  const request = new Request(url, { ...init, redirect: "manual" });
  const controller = new AbortController();
  const state = stateOf(request);
  state.signal = controller.signal;
  state.isFrozen = true;
  freeze(state.extra?.cf);
  incoming.add(controller.signal);
  const abort = () => controller.abort(new DOMException("The client has disconnected", "AbortError"));
  if (gone?.aborted) abort();
  else if (gone !== undefined) whenAborted(gone, abort);
  return { request, abort };
}

/**
 * A copy for a handler elsewhere in this script, which does not follow redirects; or null if the
 * request has more than a copy shows: a body, a signal.
 */
export function requestCopy(request) {
  const state = withBody(stateOf(request));
  if (state.source !== null || state.stream !== null || state.used || ownSignal(state) !== null) return null;
  const copy = copyState(state);
  const cf = copy.extra?.cf;
  copy.signal = null;
  copy.extra = null;
  copy.isFrozen = true;
  if (cf !== undefined) extra(copy).cf = freeze(cf);
  copy.redirect = "manual";
  const end = copy.url.indexOf("#");
  if (end >= 0) copy.url = copy.url.slice(0, end); // the fragment stays with the asker
  return new Request(INTERNAL, copy);
}

/** What fetch() needs: the state itself, with its body fields filled in. */
export function requestParts(request) {
  const state = withBody(stateOf(request));
  return {
    state,
    method: methodOf(state),
    url: urlOf(state),
    headers: headersOf(state),
    signal: ownSignal(state),
    redirect: state.redirect,
    cf: state.extra?.cf,
    cache: state.extra?.cache,
    fetcher: state.extra?.fetcher ?? null,
    encodeResponseBody: state.extra?.encodeResponseBody ?? "automatic",
  };
}

