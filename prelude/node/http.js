// node:http: a client on fetch(). Servers are not here: a worker's server is its fetch handler.
import { Readable, Writable } from "readable-stream";
import { Buffer } from "./buffer.js";
import { EventEmitter } from "./events.js";
import { invalidArgType, nodeError } from "./internal/errors.js";
import { unsupported } from "./internal/stub.js";

const METHODS = ["ACL", "BIND", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LINK", "LOCK", "M-SEARCH", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MOVE", "NOTIFY", "OPTIONS", "PATCH", "POST", "PROPFIND", "PROPPATCH", "PURGE", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "SOURCE", "SUBSCRIBE", "TRACE", "UNBIND", "UNLINK", "UNLOCK", "UNSUBSCRIBE"];
const STATUS_CODES = {
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

export function validateHeaderName(name) {
  if (typeof name !== "string" || !TOKEN.test(name)) throw nodeError(TypeError, "ERR_INVALID_HTTP_TOKEN", `Header name must be a valid HTTP token ["${name}"]`);
}
export function validateHeaderValue(name, value) {
  if (value === undefined) throw nodeError(TypeError, "ERR_HTTP_INVALID_HEADER_VALUE", `Invalid value "undefined" for header "${name}"`);
  if (/[^\t\x20-\x7e\x80-\xff]/.test(`${value}`)) throw nodeError(TypeError, "ERR_INVALID_CHAR", `Invalid character in header content ["${name}"]`);
}

export class IncomingMessage extends Readable {
  httpVersion = "1.1";
  httpVersionMajor = 1;
  httpVersionMinor = 1;
  complete = false;
  rawTrailers = [];
  trailers = {};
  #reader;
  constructor(response) {
    super();
    this.statusCode = response.status;
    this.statusMessage = response.statusText || STATUS_CODES[response.status] || "";
    this.url = response.url;
    this.headers = {};
    this.rawHeaders = [];
    for (const [name, value] of response.headers) {
      this.rawHeaders.push(name, value);
      if (name === "set-cookie") (this.headers[name] ??= []).push(value);
      else this.headers[name] = this.headers[name] === undefined ? value : `${this.headers[name]}, ${value}`;
    }
    this.#reader = response.body?.getReader() ?? null;
  }
  get headersDistinct() {
    return Object.fromEntries(Object.entries(this.headers).map(([name, value]) => [name, [value].flat()]));
  }
  setTimeout() {
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
    if (this.#reader !== null && !this.complete) this.#reader.cancel(error).catch(() => {});
    callback(error);
  }
}

/** Options of request() as one object: (url[, options][, callback]) or (options[, callback]). */
function requestArguments(defaults, args) {
  let callback;
  if (typeof args.at(-1) === "function") callback = args.pop();
  let options = {};
  if (typeof args[0] === "string" || args[0] instanceof URL) {
    const url = new URL(args.shift());
    options = { protocol: url.protocol, hostname: url.hostname, port: url.port, path: url.pathname + url.search };
    if (url.username) options.auth = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  }
  return { options: { ...defaults, ...options, ...args[0] }, callback };
}

export class ClientRequest extends Writable {
  #headers = new Map(); // lower-case name -> [name, value]
  #chunks = [];
  #controller = new AbortController();
  #timer;
  aborted = false;
  reusedSocket = false;
  constructor(defaults, args) {
    const { options, callback } = requestArguments(defaults, args);
    super({ autoDestroy: false });
    this.protocol = options.protocol ?? "http:";
    if (this.protocol !== "http:" && this.protocol !== "https:") {
      throw nodeError(TypeError, "ERR_INVALID_PROTOCOL", `Protocol "${this.protocol}" not supported. Expected "http:"`);
    }
    this.method = (options.method ?? "GET").toUpperCase();
    this.path = options.path ?? "/";
    if (/[\0-\x20]/.test(this.path)) throw nodeError(TypeError, "ERR_UNESCAPED_CHARACTERS", "Request path contains unescaped characters");
    this.host = options.hostname ?? options.host ?? "localhost";
    const port = options.port ? `:${options.port}` : "";
    this.#url = `${this.protocol}//${this.host}${port}${this.path.startsWith("/") ? "" : "/"}${this.path}`;
    const headers = options.headers ?? {};
    if (Array.isArray(headers)) for (let i = 0; i + 1 < headers.length; i += 2) this.setHeader(headers[i], headers[i + 1]);
    else for (const name of Object.keys(headers)) this.setHeader(name, headers[name]);
    if (options.auth && !this.hasHeader("authorization")) this.setHeader("Authorization", `Basic ${Buffer.from(options.auth).toString("base64")}`);
    if (callback) this.once("response", callback);
    if (options.timeout) this.setTimeout(options.timeout);
    options.signal?.addEventListener("abort", () => this.destroy(options.signal.reason), { once: true });
  }
  #url;
  get headersSent() {
    return this.writableFinished;
  }
  setHeader(name, value) {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    this.#headers.set(name.toLowerCase(), [name, value]);
    return this;
  }
  getHeader(name) {
    return this.#headers.get(name.toLowerCase())?.[1];
  }
  getHeaders() {
    return Object.fromEntries([...this.#headers].map(([name, [, value]]) => [name, value]));
  }
  getHeaderNames() {
    return [...this.#headers.keys()];
  }
  getRawHeaderNames() {
    return [...this.#headers.values()].map(([name]) => name);
  }
  hasHeader(name) {
    return this.#headers.has(name.toLowerCase());
  }
  removeHeader(name) {
    this.#headers.delete(name.toLowerCase());
  }
  flushHeaders() {}
  setNoDelay() {}
  setSocketKeepAlive() {}
  setTimeout(delay, callback = undefined) {
    if (callback) this.once("timeout", callback);
    clearTimeout(this.#timer);
    if (delay > 0) this.#timer = setTimeout(() => this.emit("timeout"), delay);
    return this;
  }
  _write(chunk, encoding, callback) {
    this.#chunks.push(typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk);
    callback();
  }
  _final(callback) {
    callback();
    this.#send();
  }
  abort() {
    this.aborted = true;
    this.destroy();
  }
  _destroy(error, callback) {
    clearTimeout(this.#timer);
    this.#controller.abort(error);
    callback(error);
  }
  async #send() {
    const headers = new Headers();
    for (const [name, value] of this.#headers.values()) for (const each of [value].flat()) headers.append(name, `${each}`);
    const hasBody = this.method !== "GET" && this.method !== "HEAD" && this.#chunks.length > 0;
    try {
      const response = await fetch(this.#url, {
        method: this.method, headers, redirect: "manual", signal: this.#controller.signal,
        body: hasBody ? Buffer.concat(this.#chunks) : undefined,
      });
      clearTimeout(this.#timer);
      const message = new IncomingMessage(response);
      message.req = this;
      this.res = message;
      if (!this.emit("response", message)) message.resume();
      message.once("close", () => this.emit("close"));
    } catch (error) {
      if (!this.destroyed) this.destroy(error);
    }
  }
}

export class Agent extends EventEmitter {
  constructor(options = {}) {
    super();
    this.options = { ...options };
    Object.assign(this, { maxSockets: Infinity, maxFreeSockets: 256, keepAlive: !!options.keepAlive, sockets: {}, requests: {}, freeSockets: {} });
  }
  destroy() {}
}

/** node:http and node:https differ in the protocol only. */
export function makeModule(protocol, port) {
  const defaults = { protocol };
  const request = (...args) => {
    if (args.length === 0) throw invalidArgType("url", "of type string or an instance of URL", undefined);
    return new ClientRequest(defaults, args);
  };
  const get = (...args) => {
    const sent = request(...args);
    sent.end();
    return sent;
  };
  const globalAgent = Object.assign(new Agent({ keepAlive: true }), { protocol, defaultPort: port });
  const server = `createServer() of node:${protocol.slice(0, -1)}`;
  return { request, get, Agent, globalAgent, createServer: unsupported(server), Server: unsupported(server) };
}

export default {
  ...makeModule("http:", 80),
  ClientRequest,
  IncomingMessage,
  METHODS,
  STATUS_CODES,
  OutgoingMessage: ClientRequest,
  ServerResponse: unsupported("ServerResponse of node:http"),
  maxHeaderSize: 16384,
  validateHeaderName,
  validateHeaderValue,
  setMaxIdleHTTPParsers() {},
  WebSocket: globalThis.WebSocket,
  CloseEvent: globalThis.CloseEvent,
  MessageEvent: globalThis.MessageEvent,
};
