// EventSource: https://html.spec.whatwg.org/#server-sent-events, on fetch().
import { defineConstants, finishInterface } from "../internal/interface.js";
import { native } from "../internal/native.js";
import { constructorParameterError, fieldError, illegalInvocation, isDictionary, isObject, parameterError, toUSVString } from "../internal/webidl.js";
import { AbortController } from "./abort.js";
import { DOMException } from "./dom-exception.js";
import { ErrorEvent, Event, EventTarget, MessageEvent, defineHandlers, fire } from "./events.js";
import { fetch } from "./fetch/fetch.js";
import { concat, isDisturbed, isLocked, isReadableStream, readChunks } from "./streams/internal.js";
import { clearTimeout, setTimeout } from "./timers.js";
import { URL } from "./url/url.js";

const CONNECTING = 0;
const OPEN = 1;
const CLOSED = 2;
const RECONNECT_MS = 2000;
const RECONNECT_MS_MIN = 1000;
const RECONNECT_MS_MAX = 10_000;
/** A line without an end, or an event without one: beyond this the stream is given up. */
const EVENT_SIZE_MAX = 16 * 1024 * 1024;
const INTERNAL = Symbol("internal");

/** Cuts bytes into the lines of an event stream and calls `line(text)` for each. */
class LineReader {
  constructor(line) {
    this.line = line;
    this.rest = [];
    this.restSize = 0;
    this.skipLF = false;
    this.first = true;
  }
  push(chunk) {
    let start = 0;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i];
      if (byte !== 10 && byte !== 13) {
        this.skipLF = false;
        continue;
      }
      if (byte === 10 && this.skipLF) {
        this.skipLF = false;
        start = i + 1;
        continue;
      }
      this.skipLF = byte === 13;
      this.emit(chunk.subarray(start, i));
      start = i + 1;
    }
    if (start < chunk.length) {
      this.rest.push(chunk.slice(start));
      this.restSize += chunk.length - start;
      if (this.restSize > EVENT_SIZE_MAX) throw new RangeError("A line of the event stream is too long.");
    }
  }
  emit(end) {
    let bytes = end;
    if (this.rest.length > 0) {
      bytes = concat([...this.rest, end], this.restSize + end.length);
      this.rest = [];
      this.restSize = 0;
    }
    let text = native.utf8Decode(bytes);
    if (this.first && text.charCodeAt(0) === 0xfeff) text = text.slice(1);
    this.first = false;
    this.line(text);
  }
}

let isSource;

export class EventSource extends EventTarget {
  #url = null;
  #fetcher = null;
  #state = CONNECTING;
  #controller = null;
  #lastEventId = "";
  #reconnectMs = RECONNECT_MS;
  #timer = 0;
  #origin = "";
  #hadNoBody = false; // an answer without a body is forgiven once
  // The event that is being received.
  #data = [];
  #dataSize = 0;
  #type = "";

  constructor(url, init = undefined) {
    super();
    if (url === INTERNAL) return;
    if (arguments.length === 0) throw constructorParameterError("EventSource", 1, "string");
    if (!isDictionary(init)) throw constructorParameterError("EventSource", 2, "EventSourceInit");
    const { fetcher, withCredentials } = init ?? {};
    if (withCredentials) {
      throw new DOMException("The init.withCredentials option is not supported. It must be false or undefined.", "NotSupportedError");
    }
    if (fetcher !== undefined) {
      if (!isObject(fetcher) || typeof fetcher.fetch !== "function") throw fieldError("fetcher", "EventSourceInit", "Fetcher");
      this.#fetcher = fetcher;
    }
    const text = toUSVString(url);
    const parsed = URL.parse(text);
    if (parsed === null) throw new DOMException(`Cannot open an EventSource to '${text}'. The URL is invalid.`, "SyntaxError");
    this.#url = parsed.href;
    this.#connect();
  }

  static {
    isSource = (value) => isObject(value) && #url in value;
  }

  /** An EventSource that reads an event stream, once. */
  static from(stream) {
    if (!isReadableStream(stream)) throw parameterError("from", "EventSource", 1, "ReadableStream");
    if (isLocked(stream)) throw new TypeError("This ReadableStream is locked.");
    if (isDisturbed(stream)) throw new TypeError("This ReadableStream has already been read from.");
    const source = new EventSource(INTERNAL);
    source.#state = OPEN;
    source.#read(stream, false, () => source.#opened()); // whoever made it may still listen to "open"
    return source;
  }

  async #connect() {
    this.#controller = new AbortController();
    const headers = { accept: "text/event-stream", "cache-control": "no-cache" };
    if (this.#lastEventId !== "") headers["last-event-id"] = this.#lastEventId;
    const get = this.#fetcher === null ? fetch : (...args) => this.#fetcher.fetch(...args);
    let response;
    try {
      response = await get(this.#url, { headers, signal: this.#controller.signal });
    } catch (error) {
      this.#failed(error, true);
      return;
    }
    if (this.#state === CLOSED) return;
    const type = response.headers.get("content-type") ?? "";
    if (!response.ok || !/^text\/event-stream(?:;|$)/i.test(type.trim())) {
      if (response.body) response.body.cancel().catch(() => {});
      this.#failed(new TypeError(`The server answered ${response.status} with the type '${type}'.`), false);
      return;
    }
    this.#origin = new URL(response.url || this.#url).origin;
    if (response.body === null) {
      const again = !this.#hadNoBody;
      this.#hadNoBody = true;
      this.#failed(new Error(`The server provided no content.${again ? " Will try reconnecting." : ""}`), again);
      return;
    }
    this.#opened();
    this.#read(response.body, true);
  }

  #opened() {
    if (this.#state === CLOSED) return;
    this.#state = OPEN;
    fire(this, new Event("open"));
  }

  #read(stream, again, opened = null) {
    const lines = new LineReader((line) => this.#line(line));
    const chunks = () => readChunks(stream, (chunk) => lines.push(chunk));
    const done = opened === null ? chunks() : Promise.resolve().then(() => (opened(), chunks()));
    done.then(
      () => this.#failed(new TypeError("The event stream has ended."), again),
      (error) => this.#failed(error, again && !(error instanceof RangeError)),
    );
  }

  /** The connection is gone: try again later, or stay closed. */
  #failed(error, again) {
    if (this.#state === CLOSED) return;
    this.#data = [];
    this.#dataSize = 0;
    this.#type = "";
    this.#state = again ? CONNECTING : CLOSED;
    fire(this, new ErrorEvent("error", { message: error?.message ?? "", error }));
    if (!again || this.#state === CLOSED) return;
    this.#timer = setTimeout(() => this.#connect(), this.#reconnectMs);
  }

  #line(line) {
    if (this.#state === CLOSED) return;
    if (line === "") {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") {
      this.#data.push(value);
      this.#dataSize += value.length;
      if (this.#dataSize > EVENT_SIZE_MAX) throw new RangeError("An event of the event stream is too long.");
    } else if (field === "event") {
      this.#type = value;
    } else if (field === "id") {
      if (!value.includes("\0")) this.#lastEventId = value;
    } else if (field === "retry" && /^\d+$/.test(value)) {
      this.#reconnectMs = Math.max(Math.min(+value, RECONNECT_MS_MAX), RECONNECT_MS_MIN);
    }
  }

  #dispatch() {
    const data = this.#data.join("\n");
    const type = this.#type || "message";
    this.#data = [];
    this.#dataSize = 0;
    this.#type = "";
    if (data === "") return;
    fire(this, new MessageEvent(type, { data, origin: this.#origin, lastEventId: this.#lastEventId }));
  }

  close() {
    if (!isSource(this)) throw illegalInvocation();
    this.#state = CLOSED;
    clearTimeout(this.#timer);
    this.#controller?.abort();
  }
  get url() {
    if (!isSource(this)) throw illegalInvocation();
    return this.#url;
  }
  get withCredentials() {
    if (!isSource(this)) throw illegalInvocation();
    return false;
  }
  get readyState() {
    if (!isSource(this)) throw illegalInvocation();
    return this.#state;
  }
}
Object.defineProperty(EventSource.prototype, Symbol.dispose, {
  value: EventSource.prototype.close, writable: true, configurable: true,
});
defineHandlers(EventSource.prototype, ["open", "message", "error"]);
finishInterface(EventSource);
defineConstants(EventSource, { CONNECTING, OPEN, CLOSED });
