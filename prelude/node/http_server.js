// The server side of node:http: a server is a listener with a number. Requests come from the
// worker's fetch handler, which httpServerHandler() of cloudflare:node makes:
//
//     const server = http.createServer((request, response) => response.end("hello"));
//     server.listen(8080);
//     export default httpServerHandler({ port: 8080 });
//
// Nothing listens on a port of the machine: the number is a name within the worker.
import { Buffer } from "./buffer.js";
import { EventEmitter } from "./events.js";
import { nodeError } from "./internal/errors.js";
import { IncomingMessage, OutgoingMessage, STATUS_CODES } from "./internal/http_messages.js";

const PORT_MAX = 65535;
const FIRST_FREE_PORT = 49152;
const servers = new Map(); // by port

const hasNoBody = (status) => status === 204 || status === 205 || status === 304 || (status >= 100 && status < 200);

/** What stands for the connection of a request: frameworks ask it who the client is. */
class ServerSocket extends EventEmitter {
  destroyed = false;
  readable = true;
  writable = true;
  constructor(request) {
    super();
    this.encrypted = request.url.startsWith("https:");
    this.remoteAddress = request.headers.get("cf-connecting-ip") ?? "127.0.0.1";
    this.remoteFamily = this.remoteAddress.includes(":") ? "IPv6" : "IPv4";
  }
  setTimeout() {
    return this;
  }
  setNoDelay() {
    return this;
  }
  setKeepAlive() {
    return this;
  }
  destroy() {
    this.destroyed = true;
    return this;
  }
}

export class ServerResponse extends OutgoingMessage {
  statusCode = 200;
  statusMessage = undefined;
  sendDate = true;
  strictContentLength = false;
  #respond; // called with the Response, once
  #controller = null; // of the body's stream, once there is one
  #waiting = null; // callback of a write that waits for room
  #parts = null; // what end() was given before anything was sent
  #bodiless = false;
  constructor(request, respond = () => {}) {
    super();
    this.req = request;
    this.socket = this.connection = request.socket;
    this.#respond = respond;
  }
  writeHead(status, reason = undefined, headers = undefined) {
    if (this.headersSent) throw nodeError(Error, "ERR_HTTP_HEADERS_SENT", "Cannot write headers after they are sent to the client");
    if (!(status >= 100 && status <= 999)) throw nodeError(RangeError, "ERR_HTTP_INVALID_STATUS_CODE", `Invalid status code: ${status}`);
    this.statusCode = Math.trunc(status);
    if (typeof reason === "string") this.statusMessage = reason;
    else headers ??= reason;
    if (Array.isArray(headers)) for (let i = 0; i + 1 < headers.length; i += 2) this.appendHeader(headers[i], headers[i + 1]);
    else for (const name of Object.keys(headers ?? {})) if (headers[name] !== undefined) this.setHeader(name, headers[name]);
    this.headWritten = true;
    return this;
  }
  writeContinue() {}
  writeProcessing() {}
  writeEarlyHints(hints, callback = undefined) {
    callback?.();
  }
  assignSocket() {}
  detachSocket() {}
  addTrailers() {}
  flushHeaders() {
    if (!this.headersSent) this.#send(this.#stream());
  }
  end(chunk = undefined, encoding = undefined, callback = undefined) {
    if (!this.headersSent && !this.writableEnded) this.#parts = [];
    return super.end(chunk, encoding, callback);
  }
  _write(chunk, encoding, callback) {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;
    if (this.#parts !== null) {
      this.#parts.push(bytes);
      callback();
      return;
    }
    this.flushHeaders();
    if (this.#bodiless || bytes.length === 0) {
      callback();
      return;
    }
    this.#controller.enqueue(new Uint8Array(bytes)); // a copy: the caller may go on using its buffer
    if (this.#controller.desiredSize > 0) callback();
    else this.#waiting = callback;
  }
  _final(callback) {
    if (this.#parts !== null) this.#send(Buffer.concat(this.#parts));
    else if (!this.#bodiless) this.#controller.close();
    callback();
  }
  _destroy(error, callback) {
    if (!this.headersSent) this.#fail(error ?? new Error("The response was destroyed before it was sent."));
    else if (!this.writableFinished && this.#controller !== null) this.#controller.error(error ?? new Error("aborted"));
    this.#controller = null;
    callback(error);
  }
  #fail(error) {
    this.headersSent = true;
    this.#respond(Promise.reject(error));
  }
  #stream() {
    return new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => {
        const waiting = this.#waiting;
        this.#waiting = null;
        waiting?.();
      },
      cancel: (reason) => {
        this.#controller = null;
        this.destroy(reason instanceof Error ? reason : undefined);
      },
    }, { highWaterMark: 4 });
  }
  #send(body) {
    this.headersSent = true;
    this.#bodiless = hasNoBody(this.statusCode) || this.req.method === "HEAD";
    this.#respond(new Response(this.#bodiless ? null : body, {
      status: this.statusCode,
      statusText: this.statusMessage ?? STATUS_CODES[this.statusCode] ?? "",
      headers: this.fetchHeaders(),
    }));
  }
}

export class Server extends EventEmitter {
  listening = false;
  maxHeadersCount = null;
  timeout = 0;
  headersTimeout = 60_000;
  requestTimeout = 300_000;
  keepAliveTimeout = 5000;
  maxRequestsPerSocket = 0;
  #port = 0;
  constructor(options = undefined, listener = undefined) {
    super();
    if (typeof options === "function") listener = options;
    if (listener) this.on("request", listener);
  }
  listen(...args) {
    const callback = typeof args.at(-1) === "function" ? args.pop() : undefined;
    const wanted = args[0] !== null && typeof args[0] === "object" ? args[0].port : args[0];
    const port = wanted === undefined || wanted === null ? 0 : Number(wanted);
    if (!(Number.isInteger(port) && port >= 0 && port <= PORT_MAX)) {
      throw nodeError(RangeError, "ERR_SOCKET_BAD_PORT", `options.port should be >= 0 and < 65536. Received ${String(wanted)}.`);
    }
    if (this.listening) throw nodeError(Error, "ERR_SERVER_ALREADY_LISTEN", "Listen method has been called more than once without closing.");
    if (callback) this.once("listening", callback);
    if (servers.has(port)) {
      const error = Object.assign(nodeError(Error, "EADDRINUSE", `listen EADDRINUSE: address already in use :::${port}`), { syscall: "listen", port });
      queueMicrotask(() => this.emit("error", error));
      return this;
    }
    this.#port = port;
    if (port === 0) for (this.#port = FIRST_FREE_PORT; servers.has(this.#port); this.#port++);
    servers.set(this.#port, this);
    this.listening = true;
    queueMicrotask(() => this.emit("listening"));
    return this;
  }
  close(callback = undefined) {
    const error = this.listening ? undefined : nodeError(Error, "ERR_SERVER_NOT_RUNNING", "Server is not running.");
    if (callback) this.once("close", () => callback(error));
    if (this.listening) servers.delete(this.#port);
    this.listening = false;
    queueMicrotask(() => this.emit("close"));
    return this;
  }
  closeAllConnections() {}
  closeIdleConnections() {}
  setTimeout() {
    return this;
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
  address() {
    return this.listening ? { port: this.#port, family: "IPv4", address: "127.0.0.1" } : null;
  }
  [Symbol.asyncDispose]() {
    return new Promise((resolve) => this.close(() => resolve()));
  }
}

/** Hands a Request to the server; resolves with what it answers. */
function serve(server, request) {
  const { promise, resolve } = Promise.withResolvers();
  const url = new URL(request.url);
  const message = IncomingMessage.from(request);
  message.method = request.method;
  message.url = url.pathname + url.search;
  message.headers.host ??= url.host;
  message.socket = message.connection = new ServerSocket(request);
  const response = new ServerResponse(message, resolve);
  request.signal.addEventListener("abort", () => {
    message.aborted = true;
    response.destroy();
  }, { once: true });
  if (server.listenerCount("request") === 0) response.writeHead(404).end();
  else server.emit("request", message, response);
  return promise;
}

function serverOf(from) {
  if (from instanceof Server) return from;
  const port = typeof from === "number" ? from : from?.port;
  if (typeof port !== "number") {
    throw nodeError(TypeError, "ERR_INVALID_ARG_TYPE", "The first argument must be a server of node:http or an object with its port.");
  }
  const server = servers.get(port);
  if (server === undefined) throw new Error(`No server of node:http is listening on port ${port}. Did you call server.listen(${port})?`);
  return server;
}

/** cloudflare:node: answers one request with the server that listens on a port. */
export async function handleAsNodeRequest(from, request) {
  return serve(serverOf(from), request);
}

/** cloudflare:node: a default export whose fetch handler is a server of node:http. */
export function httpServerHandler(from, handlers = {}) {
  if (from instanceof Server && !from.listening) from.listen();
  return { ...handlers, fetch: (request) => handleAsNodeRequest(from, request) };
}
