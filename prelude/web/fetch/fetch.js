// fetch(): https://fetch.spec.whatwg.org/#fetch-method, without what only browsers have (CORS,
// cookies, caches, referrers). One HTTP exchange is native (src/bindings/fetch.c); redirects,
// aborting and everything about Request and Response is here.
//
// Who keeps what alive: C holds the callback of an exchange, the callback holds an Exchange, and
// that holds no more than the promise somebody is waiting for. The FetchSource, which is the body
// of the Response, holds the Exchange. So a Response that is dropped unread can be collected, and
// a FinalizationRegistry then closes its connection.
import { FetchEvent } from "../../../src/bindings/border.ts";
import { gated, outputGate, takeSubrequest } from "../../internal/turn.js";
import { isFlagOff, native } from "../../internal/native.js";
import { needsEvent } from "../../internal/startup.js";
import { forgetAborted, whenAborted } from "../abort.js";
import { pumpTo } from "../streams/internal.js";
import { setBeacon } from "../navigator.js";
import { URL } from "../url/url.js";
import { bodyIsUsed, bodyStream, bodyUsedError } from "./body.js";
import { dataUrlResponse } from "./data-url.js";
import { headersLists, listGet, splitHeaderLines } from "./headers.js";
import { Request, requestParts } from "./request.js";
import { makeResponse } from "./response.js";
import cache from "part:../cache.js";

const REDIRECTS_MAX = 20;
const REDIRECT_STATUSES = new Set([301, 302, 303, 307, 308]);
const NULL_BODY_STATUSES = new Set([101, 204, 205, 304]);
const CODINGS = new Set(["gzip", "x-gzip", "deflate", "br", "zstd"]);
/** Names the client writes itself, or that would contradict what it writes. */
const NOT_SENT = new Set(["host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade"]);
const STRIPS_AUTHORIZATION = !isFlagOff("strip_authorization_on_cross_origin_redirect");
/** Headers that describe a body; they go when a redirect drops the body. */
const BODY_HEADERS = new Set(["content-encoding", "content-language", "content-location", "content-type", "content-length"]);
/** Headers that are meant for one origin only. */
const ORIGIN_HEADERS = new Set(["authorization", "proxy-authorization", "cookie"]);

const networkError = (text) => new TypeError(`fetch failed: ${text}`);

/** One request and its answer. */
class Exchange {
  constructor(signal) {
    this.handle = 0;
    this.signal = signal;
    this.over = false;
    this.failure = null; // { reason }: what reads from now on throw
    this.head = Promise.withResolvers();
    this.data = null; // of the read that waits
    this.want = null; // of the upload that waits
    this.onAbort = (reason) => this.fail(reason);
  }

  start(method, url, headers, body) {
    const isStream = typeof body === "object" && body !== null && !(body instanceof Uint8Array);
    takeSubrequest();
    try {
      this.handle = native.fetchStart(method, url, headers, isStream ? undefined : body, -1, gated((what, a, b, c) => this.receive(what, a, b, c)));
    } catch (error) {
      throw networkError(error.message);
    }
    if (this.signal !== null) whenAborted(this.signal, this.onAbort);
    if (isStream) this.upload(body);
    return this.head.promise;
  }

  receive(what, a, b, c) {
    if (what === FetchEvent.HEAD) {
      this.head.resolve({ status: a, statusText: b, ...splitHeaderLines(c) });
    } else if (what === FetchEvent.DATA) {
      const { data } = this;
      this.data = null;
      if (a === null) this.end();
      data.resolve(a);
    } else if (what === FetchEvent.WANT) {
      this.want?.resolve();
      this.want = null;
    } else {
      this.handle = 0;
      this.fail(networkError(a));
    }
  }

  end() {
    this.over = true;
    this.handle = 0;
    if (this.signal !== null) forgetAborted(this.signal, this.onAbort);
    this.want?.resolve();
  }

  /** Ends it, with `reason` for whoever waits or reads. */
  fail(reason) {
    if (this.over) return;
    if (this.handle !== 0) native.fetchClose(this.handle, false);
    this.failure = { reason };
    this.end();
    this.head.reject(reason);
    this.data?.reject(reason);
    this.data = null;
  }

  /** Nothing more is wanted of the answer; its connection may be used again. */
  discard() {
    if (this.over) return;
    native.fetchClose(this.handle, true);
    this.end();
  }

  read(raw) {
    if (this.failure !== null) throw this.failure.reason;
    if (this.over) return null;
    let chunk;
    try {
      chunk = native.fetchRead(this.handle, raw);
    } catch (error) {
      this.handle = 0;
      this.fail(networkError(error.message));
      throw this.failure.reason;
    }
    if (chunk === undefined) {
      this.data = Promise.withResolvers();
      return this.data.promise;
    }
    if (chunk === null) this.end();
    return chunk;
  }

  write(chunk) {
    if (this.over || native.fetchWrite(this.handle, chunk) !== 0) return undefined;
    this.want = Promise.withResolvers();
    return this.want.promise;
  }

  upload(stream) {
    pumpTo(stream, {
      write: (chunk) => {
        if (this.over || chunk.length === 0) return undefined;
        const gate = outputGate();
        return gate === undefined ? this.write(chunk) : gate.then(() => this.write(chunk));
      },
      close: () => {
        if (!this.over) native.fetchEnd(this.handle);
      },
    }).catch((error) => this.fail(error));
  }
}

const abandoned = new FinalizationRegistry((exchange) => exchange.discard());

/** The body of a fetched Response: a PullSource (body.js). */
export class FetchSource {
  constructor(exchange, coding, length) {
    this.exchange = exchange;
    /** The content coding the bytes came in, or null; while `raw` they stay so. */
    this.coding = coding;
    this.raw = false;
    this.rawLength = length;
    abandoned.register(this, exchange, this);
  }
  get length() {
    return this.coding === null || this.raw ? this.rawLength : null;
  }
  pull() {
    return this.exchange.read(this.raw);
  }
  whole() {
    return undefined;
  }
  cancel() {
    this.exchange.discard();
  }
}

function headerLines(names, values) {
  let block = "";
  for (let i = 0; i < names.length; i++) if (!NOT_SENT.has(names[i])) block += `${names[i]}\n${values[i]}\n`;
  return block;
}

/** Drops the headers in `set` from a pair of arrays. */
function without(names, values, set) {
  const kept = names.map((name) => !set.has(name));
  return [names.filter((_, i) => kept[i]), values.filter((_, i) => kept[i])];
}

function responseFrom(exchange, head, method, url, redirected) {
  let source = null;
  if (method === "HEAD" || NULL_BODY_STATUSES.has(head.status)) {
    exchange.discard();
  } else {
    const coding = listGet(head.names, head.values, "content-encoding")?.toLowerCase() ?? null;
    const length = listGet(head.names, head.values, "content-length");
    source = new FetchSource(exchange, CODINGS.has(coding) ? coding : null, length !== null && /^\d+$/.test(length) ? +length : null);
  }
  return makeResponse({
    status: head.status, statusText: head.statusText, names: head.names, values: head.values,
    source, url, redirected, immutable: true,
  });
}

const isHttp = (url) => url.protocol === "http:" || url.protocol === "https:";

/** https://fetch.spec.whatwg.org/#http-redirect-fetch, from the request's parts. */
async function run(parts) {
  const { state, signal, redirect } = parts;
  signal?.throwIfAborted();
  let { method } = parts;
  let url = new URL(parts.url);
  if (url.protocol === "data:") return dataUrlResponse(url.href);
  if (!isHttp(url)) throw new TypeError(`Fetch API cannot load: ${parts.url}`);
  let { names, values } = headersLists(parts.headers);
  if (bodyIsUsed(state)) throw bodyUsedError();
  let body = typeof state.source === "string" || state.source instanceof Uint8Array ? state.source : bodyStream(state);
  state.used = true;
  const canRepeat = state.stream === null;

  for (let count = 0; ; count++) {
    // DO-TX-5: what an object sends out waits until what it has written is durable.
    const gate = outputGate();
    if (gate !== undefined) await gate;
    const exchange = new Exchange(signal);
    const sent = body === null && (method === "POST" || method === "PUT" || method === "PATCH") ? "" : body;
    const head = await exchange.start(method, url.href, headerLines(names, values), sent);
    const location = REDIRECT_STATUSES.has(head.status) ? listGet(head.names, head.values, "location") : null;
    if (location === null || redirect === "manual") return responseFrom(exchange, head, method, shown(url), count > 0);

    exchange.discard();
    if (redirect === "error") throw new TypeError(`The request was redirected to ${location}, and its redirect mode is "error".`);
    if (count === REDIRECTS_MAX) throw new TypeError(`Too many redirects: more than ${REDIRECTS_MAX}.`);
    const next = URL.parse(location, url.href);
    if (next === null || !isHttp(next)) throw new TypeError(`The redirect leads to something that is no HTTP address: ${location}`);
    if (next.hash === "" && !location.includes("#")) next.hash = url.hash;
    if (head.status !== 303 && body !== null && !canRepeat) {
      throw new TypeError("A request with a one-time-use body (it was initialized from a stream, not a buffer) encountered a redirect requiring the body to be retransmitted. To avoid this error in the future, construct this request from a buffer-like body initializer.");
    }
    if (((head.status === 301 || head.status === 302) && method === "POST") || (head.status === 303 && method !== "GET" && method !== "HEAD")) {
      method = "GET";
      body = null;
      [names, values] = without(names, values, BODY_HEADERS);
    }
    if (STRIPS_AUTHORIZATION && next.origin !== url.origin) [names, values] = without(names, values, ORIGIN_HEADERS);
    url = next;
  }
}

/** Response.url has no fragment. */
function shown(url) {
  return url.hash === "" ? url.href : url.href.slice(0, url.href.indexOf("#"));
}

let openWebSocket = null;

/** The file that has WebSocket gives what a fetch() with `Upgrade: websocket` does. */
export function setWebSocketFetch(function_) {
  openWebSocket = function_;
}

const asksForCache = (cf) => cf !== null &&
  (cf.cacheTtl !== undefined || cf.cacheEverything === true || cf.cacheKey !== undefined || cf.cacheTtlByStatus !== undefined);

export function fetch(input, init = undefined) {
  try {
    if (arguments.length === 0) {
      throw new TypeError("Failed to execute 'fetch' on 'ServiceWorkerGlobalScope': parameter 1 is not of type 'Request or string'.");
    }
    needsEvent();
    const request = new Request(input, init);
    const parts = requestParts(request);
    if (parts.fetcher !== null) return Promise.resolve(parts.fetcher.fetch(request));
    const { names, values } = headersLists(parts.headers);
    if (listGet(names, values, "upgrade")?.toLowerCase() === "websocket") {
      if (openWebSocket === null) throw new TypeError("WebSocket upgrades are not available here.");
      return openWebSocket(parts);
    }
    const { cf } = parts;
    if (cf !== undefined && parts.method === "GET" && parts.cache !== "no-store" && asksForCache(cf)) {
      return cache().cachedFetch(request, cf, () => run(parts));
    }
    return run(parts);
  } catch (error) {
    return Promise.reject(error);
  }
}
Object.defineProperty(fetch, "length", { value: 1, configurable: true });

setBeacon((url, body) => {
  fetch(url, { method: "POST", body }).then((response) => response.body?.cancel(), () => {});
});
