// node:http: a client on fetch(), and servers that answer what the worker's fetch handler passes on
// (http_server.js).
import { Buffer } from "./buffer.js";
import { EventEmitter } from "./events.js";
import { Server, ServerResponse } from "./http_server.js";
import { invalidArgType, nodeError, validateNumber, validateObject, validateOneOf } from "./internal/errors.js";
import { checkPath, isToken, IncomingMessage, OutgoingMessage, STATUS_CODES, validateHeaderName, validateHeaderValue } from "./internal/http_messages.js";

export const METHODS = ["ACL", "BIND", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LINK", "LOCK", "M-SEARCH", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MOVE", "NOTIFY", "OPTIONS", "PATCH", "POST", "PROPFIND", "PROPPATCH", "PURGE", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "SOURCE", "SUBSCRIBE", "TRACE", "UNBIND", "UNLINK", "UNLOCK", "UNSUBSCRIBE"];

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

/** What a module takes for granted. */
class Defaults {
  constructor(protocol, agent) {
    this.protocol = protocol;
    this.agent = agent;
  }
}
const hasHost = (headers) => (Array.isArray(headers) ? headers.some((name, i) => i % 2 === 0 && `${name}`.toLowerCase() === "host") : Object.keys(headers ?? {}).some((name) => name.toLowerCase() === "host"));

export class ClientRequest extends OutgoingMessage {
  #chunks = [];
  #controller = new AbortController();
  #timer;
  aborted = false;
  reusedSocket = false;
  constructor(...args) {
    const defaults = args[0] instanceof Defaults ? args.shift() : new Defaults("http:", () => undefined);
    const { options, callback } = requestArguments({ protocol: defaults.protocol }, args.filter((arg) => arg !== undefined));
    super({ autoDestroy: false });
    this.protocol = options.protocol ?? "http:";
    if (this.protocol !== (options.agent?.protocol ?? defaults.protocol)) {
      throw nodeError(TypeError, "ERR_INVALID_PROTOCOL", `Protocol "${this.protocol}" not supported. Expected "${options.agent?.protocol ?? defaults.protocol}"`);
    }
    const { agent } = options;
    if (agent !== undefined && agent !== null && agent !== false && typeof agent.addRequest !== "function") throw invalidArgType("options.agent", "an Agent-like Object, undefined, or false", agent);
    this.agent = agent === undefined || agent === null ? defaults.agent() : agent === false ? new Agent() : agent;
    if (options.method !== undefined && options.method !== null) {
      if (typeof options.method !== "string") throw invalidArgType("options.method", "of type string", options.method);
      if (!isToken(options.method)) throw nodeError(TypeError, "ERR_INVALID_HTTP_TOKEN", `Method must be a valid HTTP token ["${options.method}"]`);
    }
    this.method = (options.method || "GET").toUpperCase();
    this.path = checkPath(options.path || "/");
    for (const name of ["hostname", "host"]) {
      const host = options[name];
      if (host !== undefined && host !== null && typeof host !== "string") throw invalidArgType(`options.${name}`, "of type string, undefined, or null", host);
    }
    if (options.timeout !== undefined) validateNumber(options.timeout, "timeout");
    if (options.insecureHTTPParser !== undefined && typeof options.insecureHTTPParser !== "boolean") throw invalidArgType("options.insecureHTTPParser", "of type boolean", options.insecureHTTPParser);
    this.host = options.hostname || options.host || "localhost";
    const usual = this.protocol === "https:" ? 443 : 80;
    const port = options.port ?? options.defaultPort ?? this.agent?.defaultPort ?? usual;
    this.#origin = `${this.protocol}//${this.host.includes(":") && !this.host.startsWith("[") ? `[${this.host}]` : this.host}${Number(port) === usual || !port ? "" : `:${port}`}`;
    if (options.setHost !== false && !hasHost(options.headers)) this.setHeader("Host", `${this.host}${Number(port) === usual || !port ? "" : `:${port}`}`);
    const headers = options.headers ?? {};
    if (Array.isArray(headers)) for (let i = 0; i + 1 < headers.length; i += 2) this.setHeader(headers[i], headers[i + 1]);
    else for (const name of Object.keys(headers)) this.setHeader(name, headers[name]);
    if (options.auth && !this.hasHeader("authorization")) this.setHeader("Authorization", `Basic ${Buffer.from(options.auth).toString("base64")}`);
    if (callback) this.once("response", callback);
    if (options.timeout) this.setTimeout(options.timeout);
    options.signal?.addEventListener("abort", () => this.destroy(options.signal.reason), { once: true });
  }
  #origin;
  flushHeaders() {}
  onSocket() {}
  clearTimeout(callback = undefined) {
    this.setTimeout(0, callback);
  }
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
    headers.delete("host");
    this.headersSent = true;
    const hasBody = this.method !== "GET" && this.method !== "HEAD" && this.#chunks.length > 0;
    try {
      // It may have been changed since it was checked.
      const path = checkPath(this.path);
      const response = await fetch(`${this.#origin}${path.startsWith("/") ? "" : "/"}${path}`, {
        method: this.method, headers, redirect: "manual", signal: this.#controller.signal,
        body: hasBody ? Buffer.concat(this.#chunks) : undefined,
      });
      clearTimeout(this.#timer);
      const message = IncomingMessage.from(response);
      message.req = this;
      this.res = message;
      if (!this.emit("response", message)) message.resume();
      message.once("close", () => this.emit("close"));
    } catch (error) {
      if (!this.destroyed) this.destroy(error);
    }
  }
}

/** Connections are the server's to keep: an agent has its settings, and gives names. */
export class Agent extends EventEmitter {
  static defaultMaxSockets = Infinity;
  defaultPort = 80;
  protocol = "http:";
  requests = {};
  sockets = {};
  freeSockets = {};
  totalSocketCount = 0;
  agentKeepAliveTimeoutBuffer = 1000;
  constructor(options = undefined) {
    super();
    if (options !== undefined && options !== null) validateObject(options, "options");
    this.options = Object.assign(Object.create(null), options);
    this.options.noDelay ??= true;
    this.options.path = null;
    const { maxTotalSockets } = this.options;
    const defaults = { keepAliveMsecs: 1000, keepAlive: false, maxSockets: Agent.defaultMaxSockets, maxFreeSockets: 256, scheduling: "lifo" };
    for (const name of Object.keys(defaults)) this[name] = this.options[name] || defaults[name];
    validateOneOf(this.scheduling, "scheduling", ["fifo", "lifo"]);
    if (maxTotalSockets !== undefined) validateNumber(maxTotalSockets, "maxTotalSockets", 1);
    this.maxTotalSockets = maxTotalSockets ?? Infinity;
  }
  getName(options = {}) {
    let name = `${options.host || "localhost"}:${options.port || ""}:${options.localAddress || ""}`;
    if (options.family === 4 || options.family === 6) name += `:${options.family}`;
    if (options.socketPath) name += `:${options.socketPath}`;
    return name;
  }
  createConnection(_options, _callback) {
    throw nodeError(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The createConnection method is not implemented");
  }
  addRequest() {}
  createSocket() {}
  removeSocket() {}
  keepSocketAlive() { return true; }
  reuseSocket() {}
  destroy() {}
}

/** node:http and node:https differ in the protocol only. */
export function makeModule(protocol, port) {
  const defaults = new Defaults(protocol, () => module.globalAgent);
  const request = (...args) => {
    if (args.length === 0) throw invalidArgType("url", "of type string or an instance of URL", undefined);
    return new ClientRequest(defaults, ...args);
  };
  const get = (...args) => {
    const sent = request(...args);
    sent.end();
    return sent;
  };
  const AgentOf = protocol === "http:" ? Agent : { Agent: class extends Agent {
    constructor(options = undefined) {
      super(options);
      this.defaultPort = 443;
      this.protocol = "https:";
      this.maxCachedSessions = this.options.maxCachedSessions ?? 100;
    }
  } }.Agent;
  const globalAgent = Object.assign(new AgentOf({ keepAlive: true, scheduling: "lifo", timeout: 5000 }), { protocol, defaultPort: port });
  const createServer = (options, listener) => new Server(options, listener);
  const module = { request, get, Agent: AgentOf, globalAgent, createServer, Server };
  return module;
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
  setMaxIdleHTTPParsers(_max) {},
  _connectionListener() {},
  WebSocket: globalThis.WebSocket,
  CloseEvent: globalThis.CloseEvent,
  MessageEvent: globalThis.MessageEvent,
};
