// node:stream: the package that Node.js publishes of its own streams, and what came after it.
import stream from "readable-stream/lib/stream.js"; // the package's main file is Readable, not Stream
import { Buffer } from "./buffer.js";
import { duplexFromWeb, duplexToWeb, readableFromWeb, readableToWeb, writableFromWeb, writableToWeb } from "./internal/webstreams.js";

const { Readable, Writable, Duplex } = stream;

const web = (Class, to, from) => {
  Class.toWeb = to;
  Class.fromWeb = from;
};
web(Readable, readableToWeb, readableFromWeb);
web(Writable, writableToWeb, writableFromWeb);
web(Duplex, duplexToWeb, duplexFromWeb);

stream.setDefaultHighWaterMark(false, 64 * 1024);
// What waits in a corked duplex fails when it is destroyed, as in a writable.
Duplex.prototype.destroy = Writable.prototype.destroy;

const { end } = Writable.prototype;
/** A callback of end() gets null if all went well. */
Writable.prototype.end = function (chunk, encoding, callback) {
  const args = [chunk, encoding, callback];
  const at = args.findIndex((arg) => typeof arg === "function");
  if (at >= 0) {
    const given = args[at];
    args[at] = (error) => given(error ?? null);
  }
  return Reflect.apply(end, this, args);
};
Duplex.prototype.end = Writable.prototype.end;

/** Two duplex streams: what is written to one can be read from the other. */
class DuplexSide extends Duplex {
  #other = null;
  #waiting = null;
  join(other) {
    this.#other = other;
  }
  _read() {
    const callback = this.#waiting;
    if (callback) {
      this.#waiting = null;
      callback();
    }
  }
  _write(chunk, encoding, callback) {
    if (chunk.length === 0) {
      queueMicrotask(callback);
      return;
    }
    this.#other.push(chunk);
    this.#other.#waiting = callback;
  }
  _final(callback) {
    this.#other.on("end", callback);
    this.#other.push(null);
  }
}
function duplexPair(options) {
  const sides = [new DuplexSide(options), new DuplexSide(options)];
  sides[0].join(sides[1]);
  sides[1].join(sides[0]);
  return sides;
}

const isUint8Array = (value) => ArrayBuffer.isView(value) && value instanceof Uint8Array;
Object.assign(stream, {
  duplexPair,
  isDestroyed: (value) => {
    if (!value || typeof value !== "object") return null;
    return !!(value.destroyed || value._writableState?.destroyed || value._readableState?.destroyed);
  },
  _isUint8Array: isUint8Array,
  _isArrayBufferView: (value) => ArrayBuffer.isView(value),
  _uint8ArrayToBuffer: (chunk) => Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength),
});
export default stream;
