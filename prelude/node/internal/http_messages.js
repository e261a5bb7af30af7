// What both sides of node:http are made of: messages that come in, headers of those that go out.
import stream from "../stream.js";
import { Buffer } from "../buffer.js";
import { invalidArgType, invalidArgValue, nodeError } from "./errors.js";

const { Readable, Writable } = stream;

export const STATUS_CODES = {
  100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints", 200: "OK", 201: "Created", 202: "Accepted",
  203: "Non-Authoritative Information", 204: "No Content", 205: "Reset Content", 206: "Partial Content", 207: "Multi-Status",
  208: "Already Reported", 226: "IM Used", 300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other",
  304: "Not Modified", 305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request",
  401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
  406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone",
  411: "Length Required", 412: "Precondition Failed", 413: "Payload Too Large", 414: "URI Too Long",
  415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed", 418: "I'm a Teapot",
  421: "Misdirected Request", 422: "Unprocessable Entity", 423: "Locked", 424: "Failed Dependency", 425: "Too Early",
  426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
  451: "Unavailable For Legal Reasons", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
  503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates",
  507: "Insufficient Storage", 508: "Loop Detected", 509: "Bandwidth Limit Exceeded", 510: "Not Extended",
  511: "Network Authentication Required",
};
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;

export const isToken = (text) => typeof text === "string" && TOKEN.test(text);
export const hasInvalidChar = (text) => /[^\t\x20-\x7e\x80-\xff]/.test(`${text}`);

export function validateHeaderName(name, label = "Header name") {
  if (!isToken(name)) throw nodeError(TypeError, "ERR_INVALID_HTTP_TOKEN", `${label} must be a valid HTTP token ["${name}"]`);
}
export function validateHeaderValue(name, value) {
  if (value === undefined) throw nodeError(TypeError, "ERR_HTTP_INVALID_HEADER_VALUE", `Invalid value "undefined" for header "${name}"`);
  if (hasInvalidChar(value)) throw nodeError(TypeError, "ERR_INVALID_CHAR", `Invalid character in header content ["${name}"]`);
}

/** Headers of which a message has one; more of them are left out. */
const SINGLE = new Set(["age", "authorization", "content-length", "content-type", "etag", "expires", "from", "host", "if-modified-since", "if-unmodified-since", "last-modified", "location", "max-forwards", "proxy-authorization", "referer", "retry-after", "server", "user-agent"]);

export class IncomingMessage extends Readable {
  httpVersion = "1.1";
  httpVersionMajor = 1;
  httpVersionMinor = 1;
  complete = false;
  joinDuplicateHeaders = false;
  aborted = false;
  upgrade = null;
  url = "";
  method = null;
  statusCode = null;
  statusMessage = null;
  rawHeaders = [];
  rawTrailers = [];
  #socket;
  #reader = null;
  #headers;
  #distinct;
  #trailers;
  /** `socket` is of no use in a worker: messages with something in them are made by from(). */
  constructor(socket = undefined) {
    super({ autoDestroy: true, ...(socket?.readableHighWaterMark ? { highWaterMark: socket.readableHighWaterMark } : {}) });
    this.#socket = socket;
  }
  /** A message of a Response (to a client) or a Request (to a server). */
  static from(message, socket = undefined) {
    const made = new IncomingMessage(socket);
    made.statusCode = message.status ?? null;
    made.statusMessage = message.status === undefined ? null : message.statusText || STATUS_CODES[message.status] || "";
    made.method = message.status === undefined ? message.method : null;
    made.url = message.status === undefined ? message.url : "";
    for (const [name, value] of message.headers) made.rawHeaders.push(name, value);
    made.#reader = message.body?.getReader() ?? null;
    return made;
  }
  get socket() {
    return this.#socket;
  }
  set socket(value) {
    this.#socket = value;
  }
  get connection() {
    return this.#socket;
  }
  set connection(value) {
    this.#socket = value;
  }
  get headers() {
    if (this.#headers === undefined) {
      this.#headers = {};
      for (let i = 0; i < this.rawHeaders.length; i += 2) this._addHeaderLine(this.rawHeaders[i], this.rawHeaders[i + 1], this.#headers);
    }
    return this.#headers;
  }
  set headers(value) {
    this.#headers = value;
  }
  get headersDistinct() {
    if (this.#distinct === undefined) {
      this.#distinct = {};
      for (let i = 0; i < this.rawHeaders.length; i += 2) this._addHeaderLineDistinct(this.rawHeaders[i], this.rawHeaders[i + 1], this.#distinct);
    }
    return this.#distinct;
  }
  set headersDistinct(value) {
    this.#distinct = value;
  }
  get trailers() {
    return (this.#trailers ??= {});
  }
  set trailers(value) {
    this.#trailers = value;
  }
  get trailersDistinct() {
    return {};
  }
  /** One line more in `dest`: what may be there once keeps the first value. */
  _addHeaderLine(field, value, dest) {
    const name = field.toLowerCase();
    if (name === "set-cookie") {
      if (dest[name] === undefined) dest[name] = [value];
      else dest[name].push(value);
    } else if (dest[name] === undefined) {
      dest[name] = value;
    } else if (!SINGLE.has(name) || this.joinDuplicateHeaders) {
      dest[name] += `${name === "cookie" ? "; " : ", "}${value}`;
    }
  }
  _addHeaderLines(headers, count) {
    this.rawHeaders = headers;
    for (let i = 0; i < count; i += 2) this._addHeaderLine(headers[i], headers[i + 1], this.headers);
  }
  _addHeaderLineDistinct(field, value, dest) {
    const name = field.toLowerCase();
    if (dest[name] === undefined) dest[name] = [value];
    else dest[name].push(value);
  }
  _dump() {
    if (!this.readableEnded) this.resume();
  }
  setTimeout(delay, callback = undefined) {
    if (callback) this.on("timeout", callback);
    return this;
  }
  _read() {
    if (this.#reader === null) {
      this.complete = true;
      this.push(null);
      return;
    }
    this.#reader.read().then(({ value, done }) => {
      if (done) this.complete = true;
      this.push(done ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    }, (error) => this.destroy(error));
  }
  _destroy(error, callback) {
    if (!this.readableEnded || !this.complete) {
      this.aborted = true;
      this.emit("aborted");
    }
    if (this.#reader !== null && !this.complete) this.#reader.cancel(error).catch(() => {});
    queueMicrotask(() => callback(error));
  }
}

function checkName(name) {
  if (typeof name !== "string") throw invalidArgType("name", "of type string", name);
}

/** The path of a request: what could name another host is refused. */
export function checkPath(path) {
  const text = `${path}`;
  if (/[^\x21-\xff]/.test(text)) throw nodeError(TypeError, "ERR_UNESCAPED_CHARACTERS", "Request path contains unescaped characters");
  if (/^[\\/]{2}/.test(text) || /^\\/.test(text) || /^[a-z][a-z\d+.-]*:/i.test(text)) throw invalidArgValue("options.path", text, "must not name another host");
  return text;
}

/** The headers of a request or a response that is being written. */
export class OutgoingMessage extends Writable {
  #headers = new Map(); // lower-case name -> [name, value]
  headersSent = false;
  sendDate = false;
  chunkedEncoding = false;
  shouldKeepAlive = true;
  useChunkedEncodingByDefault = true;
  maxRequestsOnConnectionReached = false;
  strictContentLength = false;
  socket = null;
  outputData = [];
  outputSize = 0;
  _header = null;
  _removedConnection = false;
  _removedContLen = false;
  _removedTE = false;
  constructor(options = undefined) {
    super(options);
  }
  get finished() {
    return this.writableEnded;
  }
  setHeader(name, value) {
    if (this.headersSent) throw nodeError(Error, "ERR_HTTP_HEADERS_SENT", "Cannot set headers after they are sent to the client");
    validateHeaderName(name);
    validateHeaderValue(name, value);
    this.#headers.set(name.toLowerCase(), [name, value]);
    return this;
  }
  setHeaders(headers) {
    if (this.headersSent) throw nodeError(Error, "ERR_HTTP_HEADERS_SENT", "Cannot set headers after they are sent to the client");
    if (!headers || Array.isArray(headers) || typeof headers.keys !== "function" || typeof headers.get !== "function") throw invalidArgType("headers", ["Headers", "Map"], headers);
    const cookies = [];
    for (const [name, value] of headers) {
      if (name === "set-cookie") cookies.push(...[value].flat());
      else this.setHeader(name, value);
    }
    if (cookies.length > 0) this.setHeader("set-cookie", cookies);
    return this;
  }
  appendHeader(name, value) {
    if (this.headersSent) throw nodeError(Error, "ERR_HTTP_HEADERS_SENT", "Cannot append headers after they are sent to the client");
    validateHeaderName(name);
    validateHeaderValue(name, value);
    const before = this.getHeader(name);
    return this.setHeader(name, before === undefined ? value : [before, value].flat());
  }
  getHeader(name) {
    checkName(name);
    return this.#headers.get(name.toLowerCase())?.[1];
  }
  getHeaders() {
    return Object.assign(Object.create(null), Object.fromEntries([...this.#headers].map(([name, [, value]]) => [name, value])));
  }
  getHeaderNames() {
    return [...this.#headers.keys()];
  }
  getRawHeaderNames() {
    return [...this.#headers.values()].map(([name]) => name);
  }
  hasHeader(name) {
    checkName(name);
    return this.#headers.has(name.toLowerCase());
  }
  removeHeader(name) {
    checkName(name);
    if (this.headersSent) throw nodeError(Error, "ERR_HTTP_HEADERS_SENT", "Cannot remove headers after they are sent to the client");
    this.#headers.delete(name.toLowerCase());
  }
  setTimeout(delay, callback = undefined) {
    if (callback) this.on("timeout", callback);
    return this;
  }
  flushHeaders() {}
  addTrailers() {}
  get connection() {
    return this.socket ?? null;
  }
  set connection(value) {
    this.socket = value;
  }
  /** As Fetch has them. */
  fetchHeaders() {
    const headers = new Headers();
    for (const [name, value] of this.#headers.values()) for (const each of [value].flat()) headers.append(name, `${each}`);
    return headers;
  }
}
