// node:http: a client on fetch(), and servers that answer what the worker's fetch handler passes on
// (http_server.js).
import { Buffer } from "./buffer.js";
import { EventEmitter } from "./events.js";
import { Server, ServerResponse } from "./http_server.js";
import { invalidArgType, nodeError } from "./internal/errors.js";
import { IncomingMessage, OutgoingMessage, STATUS_CODES, validateHeaderName, validateHeaderValue } from "./internal/http_messages.js";

const METHODS = ["ACL", "BIND", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LINK", "LOCK", "M-SEARCH", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MOVE", "NOTIFY", "OPTIONS", "PATCH", "POST", "PROPFIND", "PROPPATCH", "PURGE", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "SOURCE", "SUBSCRIBE", "TRACE", "UNBIND", "UNLINK", "UNLOCK", "UNSUBSCRIBE"];

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

export class ClientRequest extends OutgoingMessage {
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
    const headers = this.fetchHeaders();
    this.headersSent = true;
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
  const createServer = (options, listener) => new Server(options, listener);
  return { request, get, Agent, globalAgent, createServer, Server };
}

export default {
  ...makeModule("http:", 80),
  ClientRequest,
  IncomingMessage,
  METHODS,
  STATUS_CODES,
  OutgoingMessage,
  ServerResponse,
  maxHeaderSize: 16384,
  validateHeaderName,
  validateHeaderValue,
  setMaxIdleHTTPParsers() {},
  WebSocket: globalThis.WebSocket,
  CloseEvent: globalThis.CloseEvent,
  MessageEvent: globalThis.MessageEvent,
};
