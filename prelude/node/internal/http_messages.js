// What both sides of node:http are made of: messages that come in, headers of those that go out.
import { Readable, Writable } from "readable-stream";
import { Buffer } from "../buffer.js";
import { nodeError } from "./errors.js";

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
  /** `message` is a Response (to a client) or a Request (to a server). */
  constructor(message) {
    super();
    this.statusCode = message.status ?? null;
    this.statusMessage = message.status === undefined ? null : message.statusText || STATUS_CODES[message.status] || "";
    this.url = message.url;
    this.headers = {};
    this.rawHeaders = [];
    for (const [name, value] of message.headers) {
      this.rawHeaders.push(name, value);
      if (name === "set-cookie") (this.headers[name] ??= []).push(value);
      else this.headers[name] = this.headers[name] === undefined ? value : `${this.headers[name]}, ${value}`;
    }
    this.#reader = message.body?.getReader() ?? null;
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

/** The headers of a request or a response that is being written. */
export class OutgoingMessage extends Writable {
  #headers = new Map(); // lower-case name -> [name, value]
  headersSent = false;
  sendDate = false;
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
    for (const [name, value] of headers) this.setHeader(name, value);
    return this;
  }
  appendHeader(name, value) {
    const before = this.getHeader(name);
    return this.setHeader(name, before === undefined ? value : [before, value].flat());
  }
  getHeader(name) {
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
    return this.#headers.has(name.toLowerCase());
  }
  removeHeader(name) {
    if (this.headersSent) throw nodeError(Error, "ERR_HTTP_HEADERS_SENT", "Cannot remove headers after they are sent to the client");
    this.#headers.delete(name.toLowerCase());
  }
  setTimeout() {
    return this;
  }
  /** As Fetch has them. */
  fetchHeaders() {
    const headers = new Headers();
    for (const [name, value] of this.#headers.values()) for (const each of [value].flat()) headers.append(name, `${each}`);
    return headers;
  }
}
