// cloudflare:sockets: https://developers.cloudflare.com/workers/runtime-apis/tcp-sockets/
//
// Who keeps what alive: C holds the callback of a connection, the callback holds a Connection, and
// that holds no more than the promises somebody is waiting for. The Socket and its two streams hold
// the Connection and one common token; when all three are unreachable the token is collected, and
// the connection is closed.
import { ConnectionEvent } from "../../src/bindings/border.ts";
import { finishInterface } from "../internal/interface.js";
import { gated, outputGate, takeSubrequest } from "../internal/turn.js";
import { native } from "../internal/native.js";
import { needsEvent } from "../internal/startup.js";
import { illegalConstructor, isObject } from "../internal/webidl.js";
import extra from "part:./service/extra.js";
import { createByteStreamFromPull, createWritableFromSink } from "../web/streams/internal.js";

const SECURE = { off: 0, on: 1, starttls: 2 };
const SECRET = Symbol("may construct");

const dropped = new FinalizationRegistry((connection) => native.socketClose(connection.id));

/** A promise that may be rejected without anybody looking. */
function quietResolvers() {
  const resolvers = Promise.withResolvers();
  resolvers.promise.catch(() => {});
  return resolvers;
}

class Connection {
  id = 0;
  isOpen = false;
  isClosed = false;
  error = null;
  opened = quietResolvers();
  closed = quietResolvers();
  data = null; // of the read that waits
  drain = null; // of the write that waits
  last = null; // a chunk that came with the end

  receive = (what, a, b) => {
    if (what === ConnectionEvent.OPEN) {
      this.isOpen = true;
      this.opened.resolve({ remoteAddress: a, localAddress: b });
    } else if (what === ConnectionEvent.DATA) {
      if (this.data === null) this.last = a;
      else this.settle("data", a);
    } else if (what === ConnectionEvent.DRAIN) {
      this.settle("drain");
    } else {
      this.close(a === null ? null : new Error(a));
    }
  };

  settle(name, value) {
    const waiting = this[name];
    this[name] = null;
    waiting?.resolve(value);
  }

  close(error) {
    if (this.isClosed) return;
    this.isClosed = true;
    this.error = error;
    const { data, drain } = this;
    this.data = this.drain = null;
    if (error === null) {
      data?.resolve(null);
      drain?.reject(new TypeError("The socket was closed."));
      this.opened.reject(new TypeError("The socket was closed before it was open."));
      this.closed.resolve();
    } else {
      for (const waiting of [data, drain, this.opened, this.closed]) waiting?.reject(error);
    }
  }

  read() {
    if (this.last !== null) {
      const chunk = this.last;
      this.last = null;
      return chunk;
    }
    if (this.error !== null) throw this.error;
    if (this.isClosed) return null;
    const chunk = native.socketRead(this.id);
    if (chunk !== undefined) return chunk;
    this.data = Promise.withResolvers();
    return this.data.promise;
  }

  write(chunk) {
    if (!(chunk instanceof ArrayBuffer) && !ArrayBuffer.isView(chunk)) {
      throw new TypeError("This WritableStream only supports writing byte types.");
    }
    if (this.error !== null) throw this.error;
    const gate = outputGate();
    if (gate === undefined) return this.send(chunk);
    const copy = new Uint8Array(ArrayBuffer.isView(chunk) ? chunk.buffer.slice(chunk.byteOffset, chunk.byteOffset + chunk.byteLength) : chunk.slice(0));
    return gate.then(() => this.send(copy));
  }

  send(chunk) {
    const result = this.isClosed ? -1 : native.socketWrite(this.id, chunk);
    if (result < 0) throw new TypeError("The socket is closed.");
    if (result === 0) return undefined;
    this.drain = Promise.withResolvers();
    return this.drain.promise;
  }

  /** The rest of this connection belongs to another one, that speaks TLS. */
  handOver() {
    this.close(null);
    this.id = 0;
  }
}

export class Socket {
  #connection;
  #secure;
  #halfOpen;
  #upgraded = false;
  #token = {};
  #readable;
  #writable;

  constructor(secret, connection, secure, halfOpen) {
    if (secret !== SECRET) throw illegalConstructor();
    this.#connection = connection;
    this.#secure = secure;
    this.#halfOpen = halfOpen;
    if (!(connection instanceof Connection)) {
      this.#readable = connection.readable;
      this.#writable = connection.writable;
      return;
    }
    const hold = { connection, token: this.#token };
    dropped.register(hold.token, connection, connection);
    const forget = () => dropped.unregister(connection);
    connection.closed.promise.then(forget, forget);
    this.#readable = createByteStreamFromPull(() => hold.connection.read(), () => native.socketClose(hold.connection.id));
    this.#writable = createWritableFromSink({
      write: (chunk) => hold.connection.write(chunk),
      close: () => native.socketEnd(hold.connection.id),
      abort: () => native.socketClose(hold.connection.id),
    });
  }

  get readable() {
    return this.#readable;
  }
  get writable() {
    return this.#writable;
  }
  get opened() {
    return this.#connection.opened.promise;
  }
  get closed() {
    return this.#connection.closed.promise;
  }
  get upgraded() {
    return this.#upgraded;
  }
  get secureTransport() {
    return this.#secure;
  }

  close() {
    if (!(this.#connection instanceof Connection)) return this.#connection.close();
    native.socketClose(this.#connection.id);
    return this.#connection.closed.promise;
  }

  startTls(options = undefined) {
    if (this.#secure !== "starttls") throw new TypeError("The `secureTransport` socket option must be set to 'starttls' for startTls to be used.");
    if (this.#upgraded) throw new TypeError("startTls can only be called once.");
    const old = this.#connection;
    if (old.isClosed) throw new TypeError("The socket is closed.");
    const name = options?.expectedServerHostname;
    this.#upgraded = true;
    dropped.unregister(old);
    const connection = new Connection();
    const upgrade = () => {
      connection.id = old.id;
      try {
        native.socketStartTls(old.id, name === undefined ? undefined : `${name}`, gated(connection.receive));
      } catch (error) {
        native.socketClose(old.id);
        connection.close(error);
      }
      old.handOver();
    };
    if (old.isOpen) upgrade();
    else old.opened.promise.then(upgrade, (error) => connection.close(error));
    return new Socket(SECRET, connection, "on", this.#halfOpen);
  }
}
finishInterface(Socket);
Object.defineProperty(Socket, "length", { value: 0, configurable: true });

/** A socket whose other end is a worker's connect() handler; `over` settles when that has finished. */
export function makeSocket({ readable, writable, opened, over }) {
  const closed = quietResolvers();
  over.then(() => closed.resolve(), (error) => closed.reject(error));
  const close = async () => {
    if (!readable.locked) await readable.cancel().catch(() => {});
    if (!writable.locked) await writable.close().catch(() => {});
    closed.resolve();
  };
  return new Socket(SECRET, { readable, writable, opened: { promise: Promise.resolve(opened) }, closed, close }, "off", false);
}

/** { hostname, port } of "host:port" or of such an object. */
export function parseAddress(address) {
  if (isObject(address)) {
    const { hostname, port } = address;
    if (hostname === undefined || port === undefined) throw new TypeError("A socket address needs a hostname and a port.");
    return { hostname: `${hostname}`, port: Number(port) };
  }
  const match = /^(\[[0-9A-Fa-f:.]+\]|[^:/?#@\[\]\s]+):(\d{1,5})$/.exec(`${address}`);
  if (match === null) throw new TypeError("Specified address could not be parsed.");
  return { hostname: match[1], port: Number(match[2]) };
}

export function connect(address, options = {}) {
  needsEvent();
  const { hostname, port } = parseAddress(address);
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw new TypeError(`${port} is not a port.`);
  const secure = options?.secureTransport === undefined ? "off" : `${options.secureTransport}`;
  if (!Object.hasOwn(SECURE, secure)) throw new TypeError(`Unsupported value in secureTransport socket option: ${secure}`);
  const halfOpen = !!options?.allowHalfOpen;
  const mapped = extra.loaded()?.virtualHost(`${hostname}:${port}`) ?? null;
  if (mapped !== null) return mapped.connect(address);
  const connection = new Connection();
  takeSubrequest();
  connection.id = native.socketConnect(hostname, port, SECURE[secure], halfOpen, gated(connection.receive));
  return new Socket(SECRET, connection, secure, halfOpen);
}
