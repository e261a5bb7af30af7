// node:net on connect() of cloudflare:sockets.
import { Duplex } from "readable-stream/lib/stream.js";
import { Buffer } from "./buffer.js";
import { invalidArgType, invalidArgValue, missingArgs, nodeError, notImplemented, validateNumber } from "./internal/errors.js";
import { EventEmitter } from "./events.js";
import { modules } from "./internal/internals.js";

const V4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
export const isIPv4 = (text) => V4.test(`${text}`);
export const isIPv6 = (text) => {
  const plain = `${text}`.replace(/%[\w.-]+$/, "");
  return plain.includes(":") && URL.canParse(`http://[${plain}]/`);
};
export const isIP = (text) => (isIPv4(text) ? 4 : isIPv6(text) ? 6 : 0);

export class Socket extends Duplex {
  #socket = null;
  #reader = null;
  #writer = null;
  #timer;
  #timeout = 0;
  connecting = false;
  bytesRead = 0;
  bytesWritten = 0;
  constructor(options = {}) {
    super({ ...options, autoDestroy: true, emitClose: true });
    this.secureTransport = "off";
  }
  connect(...args) {
    const callback = typeof args.at(-1) === "function" ? args.pop() : undefined;
    const [first, host] = args;
    const options = typeof first === "object" ? first : { port: first, host };
    if (options.path !== undefined) throw nodeError(TypeError, "ERR_INVALID_ARG_VALUE", "Sockets of the file system are not available in this runtime.");
    if (options.port === undefined || options.port === null) throw missingArgs(["options", "port", "path"]);
    const port = typeof options.port === "string" && options.port.trim() === "" ? NaN : Number(options.port);
    if (!Number.isInteger(port) || port < 0 || port > 65535) throw nodeError(Error, "ERR_SOCKET_BAD_PORT", `Port should be >= 0 and < 65536. Received ${typeof options.port}.`);
    const connect = modules["cloudflare:sockets"]?.connect;
    if (connect === undefined) throw nodeError(Error, "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM", "This runtime has no cloudflare:sockets, which node:net needs.");
    if (callback) this.once("connect", callback);
    this.connecting = true;
    this.remotePort = port;
    this.remoteAddress = options.host ?? options.hostname ?? "localhost";
    try {
      this.attach(connect({ hostname: this.remoteAddress, port }, { secureTransport: this.secureTransport, allowHalfOpen: !!options.allowHalfOpen }));
    } catch (error) {
      queueMicrotask(() => this.destroy(error));
    }
    return this;
  }
  /** Takes over a socket of cloudflare:sockets. */
  attach(socket) {
    this.#socket = socket;
    this.#reader = socket.readable.getReader();
    this.#writer = socket.writable.getWriter();
    socket.opened.then(() => {
      this.connecting = false;
      this.emit("connect");
      this.emit("ready");
      this.#touch();
      if (this.secureTransport === "on") this.emit("secureConnect");
    }, (error) => this.destroy(error));
    socket.closed?.catch((error) => this.destroy(error));
  }
  /** Gives the raw socket back, for STARTTLS. */
  detach() {
    this.#reader.releaseLock();
    this.#writer.releaseLock();
    const socket = this.#socket;
    this.#socket = this.#reader = this.#writer = null;
    return socket;
  }
  #touch() {
    clearTimeout(this.#timer);
    if (this.#timeout > 0) this.#timer = setTimeout(() => this.emit("timeout"), this.#timeout);
  }
  _read() {
    if (this.connecting) return void this.once("connect", () => this._read());
    if (this.#reader === null) return undefined;
    return void this.#reader.read().then(({ value, done }) => {
      this.#touch();
      if (done) return this.push(null);
      this.bytesRead += value.byteLength;
      return this.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    }, (error) => this.destroy(error));
  }
  _write(chunk, encoding, callback) {
    if (this.connecting) return void this.once("connect", () => this._write(chunk, encoding, callback));
    if (this.#writer === null) return callback(nodeError(Error, "ERR_SOCKET_CLOSED", "Socket is closed"));
    this.#touch();
    this.bytesWritten += chunk.length;
    return void this.#writer.write(typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk).then(() => callback(), callback);
  }
  _final(callback) {
    if (this.#writer === null) return callback();
    return void this.#writer.close().then(() => callback(), callback);
  }
  _destroy(error, callback) {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    if (socket !== null) socket.close().catch(() => {});
    callback(error);
  }
  setTimeout(delay, callback = undefined) {
    validateNumber(delay, "msecs", 0);
    this.#timeout = delay;
    if (callback) this.once("timeout", callback);
    this.#touch();
    return this;
  }
  setNoDelay() { return this; }
  setKeepAlive() { return this; }
  ref() { return this; }
  unref() { return this; }
  address() { return {}; }
  get readyState() {
    return this.connecting ? "opening" : this.#socket === null ? "closed" : "open";
  }
  get pending() {
    return this.#socket === null || this.connecting;
  }
}

export function connect(...args) {
  const options = typeof args[0] === "object" ? args[0] : {};
  return new Socket(options).connect(...args);
}

export class BlockList {
  #rules = [];
  #texts = [];
  /** What it blocks, as texts. */
  get rules() {
    return [...this.#texts];
  }
  #note(kind, text, what) {
    this.#texts.push(`${what}: ${kind === "ipv4" ? "IPv4" : "IPv6"} ${text}`);
  }
  #check(address, family) {
    if (isIP(address) === 0) throw invalidArgType("address", "an IP address", address);
    return (family ?? (isIPv4(address) ? "ipv4" : "ipv6")).toLowerCase();
  }
  addAddress(address, family) {
    const kind = this.#check(address, family);
    this.#note(kind, address, "Address");
    this.#rules.push((other, otherKind) => kind === otherKind && toNumber(other) === toNumber(address));
  }
  addRange(start, end, family) {
    const kind = this.#check(start, family);
    this.#note(kind, `${start}-${end}`, "Range");
    this.#rules.push((other, otherKind) => kind === otherKind && toNumber(other) >= toNumber(start) && toNumber(other) <= toNumber(end));
  }
  addSubnet(net, prefix, family) {
    const kind = this.#check(net, family);
    this.#note(kind, `${net}/${prefix}`, "Subnet");
    const shift = BigInt((kind === "ipv4" ? 32 : 128) - prefix);
    this.#rules.push((other, otherKind) => kind === otherKind && toNumber(other) >> shift === toNumber(net) >> shift);
  }
  check(address, family = undefined) {
    const kind = this.#check(address, family);
    return this.#rules.some((rule) => rule(address, kind));
  }
}

/** An address as one number. */
function toNumber(address) {
  if (isIPv4(address)) return address.split(".").reduce((sum, part) => sum * 256n + BigInt(part), 0n);
  const [head, tail] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split("::");
  const left = head ? head.split(":") : [];
  const right = tail ? tail.split(":") : [];
  const all = tail === undefined ? left : [...left, ...new Array(8 - left.length - right.length).fill("0"), ...right];
  return all.reduce((sum, part) => sum * 65536n + BigInt(`0x${part}`), 0n);
}

/** Connections do not come to a worker: a server can be made, not listened with. */
export class Server extends EventEmitter {
  constructor(options = undefined, listener = undefined) {
    super();
    if (typeof options === "function") [options, listener] = [{}, options];
    const { allowHalfOpen = false, pauseOnConnect = false, noDelay = false, keepAlive = false, keepAliveInitialDelay = 0 } = options ?? {};
    Object.assign(this, { allowHalfOpen, pauseOnConnect, noDelay, keepAlive, keepAliveInitialDelay });
    if (typeof listener === "function") this.on("connection", listener);
  }
  listen() {
    throw notImplemented("net.Server.listen");
  }
  address() {
    return null;
  }
  get listening() {
    return false;
  }
  close(callback = undefined) {
    if (typeof callback === "function") queueMicrotask(() => callback(nodeError(Error, "ERR_SERVER_NOT_RUNNING", "Server is not running.")));
    return this;
  }
  getConnections(callback) {
    queueMicrotask(() => callback(null, 0));
    return this;
  }
  ref() { return this; }
  unref() { return this; }
  async [Symbol.asyncDispose]() {}
}

class SocketAddress {
  constructor({ address = undefined, port = 0, family = "ipv4", flowlabel = 0 } = {}) {
    const given = address ?? (family === "ipv6" ? "::" : "127.0.0.1");
    if (isIP(given) !== (family === "ipv6" ? 6 : 4)) throw nodeError(TypeError, "ERR_INVALID_ADDRESS", "Invalid socket address");
    Object.assign(this, { address: given, port, family, flowlabel });
  }
  static isSocketAddress(value) {
    return value instanceof SocketAddress;
  }
  toJSON() {
    return { address: this.address, port: this.port, family: this.family, flowlabel: this.flowlabel };
  }
}

/** [options, callback] of the arguments of connect(). */
function normalizeArgs(args) {
  const callback = typeof args.at(-1) === "function" ? args.at(-1) : null;
  const [first, second] = args;
  if (first !== null && typeof first === "object") return [first, callback];
  if (typeof first === "string" && Number.isNaN(Number(first))) return [{ path: first }, callback];
  return [{ port: first, ...(typeof second === "string" ? { host: second } : {}) }, callback];
}

export default {
  BlockList, SocketAddress, Stream: Socket, Server, Socket, connect, createConnection: connect,
  createServer: (options, listener) => new Server(options, listener),
  getDefaultAutoSelectFamily: () => false,
  setDefaultAutoSelectFamily(value) {
    if (typeof value !== "boolean") throw invalidArgValue("val", value);
  },
  getDefaultAutoSelectFamilyAttemptTimeout: () => 250,
  setDefaultAutoSelectFamilyAttemptTimeout(_value) {},
  isIP, isIPv4, isIPv6, _normalizeArgs: normalizeArgs,
};
