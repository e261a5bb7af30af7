// Byte controllers and reading into the caller's buffers.
// https://streams.spec.whatwg.org/#rbs-controller-abstract-ops
import { CLOSED, READABLE, SourceController, closeStream } from "./readable-core.js";

const { transfer: bufferTransfer } = ArrayBuffer.prototype;
const TypedArray = Object.getPrototypeOf(Uint8Array);
const getter = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name).get;
const typedTag = getter(TypedArray.prototype, Symbol.toStringTag);
const viewGetters = (prototype) => ({
  buffer: getter(prototype, "buffer"),
  byteOffset: getter(prototype, "byteOffset"),
  byteLength: getter(prototype, "byteLength"),
});
const typedGetters = viewGetters(TypedArray.prototype);
const dataGetters = viewGetters(DataView.prototype);
const typedLength = getter(TypedArray.prototype, "length");
const isDetached = getter(ArrayBuffer.prototype, "detached");
const bufferLength = getter(ArrayBuffer.prototype, "byteLength");
const constructors = {
  Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array,
  Float32Array, Float64Array, BigInt64Array, BigUint64Array, DataView,
  ...(typeof Float16Array === "function" ? { Float16Array } : {}),
};

export const detached = (buffer) => isDetached.call(buffer);
export const lengthOf = (buffer) => bufferLength.call(buffer);
/** TransferArrayBuffer: the old one is detached, the bytes live on in the result. */
export const transfer = (buffer) => bufferTransfer.call(buffer);

/** What a view says about itself, whatever the user has put on it. */
export function viewInfo(view) {
  const name = typedTag.call(view);
  const get = name === undefined ? dataGetters : typedGetters;
  const Constructor = constructors[name ?? "DataView"];
  return {
    Constructor,
    elementSize: name === undefined ? 1 : Constructor.BYTES_PER_ELEMENT,
    buffer: get.buffer.call(view),
    byteOffset: get.byteOffset.call(view),
    byteLength: get.byteLength.call(view),
    length: name === undefined ? get.byteLength.call(view) : typedLength.call(view),
  };
}

/** A view by which a read-into request is answered. */
export const makeView = (into, buffer, bytes) =>
  new into.Constructor(buffer, into.byteOffset, bytes / into.elementSize);

class PullInto {
  /** `buffer` null: made when the source asks for it. */
  constructor(info, buffer, minimumFill, kind) {
    this.buffer = buffer;
    this.bufferByteLength = buffer === null ? info.byteLength : lengthOf(buffer);
    this.byteOffset = info.byteOffset;
    this.byteLength = info.byteLength;
    this.filled = 0;
    this.minimumFill = minimumFill;
    this.elementSize = info.elementSize;
    this.Constructor = info.Constructor;
    this.kind = kind; // "default", "byob" or "none": who waits for it
  }
}

/** What the platform allocates for the read of a default reader, unless the source says otherwise (S6). */
export const DEFAULT_CHUNK_SIZE = 4096;

export class ByteController extends SourceController {
  constructor(stream, pullAlgorithm, cancelAlgorithm, mark, autoAllocateChunkSize) {
    super(stream, pullAlgorithm, cancelAlgorithm, mark); // its queue has {buffer, byteOffset, byteLength}
    this.autoAllocateChunkSize = autoAllocateChunkSize; // or undefined
    this.isDefaultSize = false; // nobody has asked for it: the buffer is made when it is used
    this.gathers = false; // a read without a buffer gives all that is queued, not one chunk of it (tee.js)
    this.pending = []; // of PullInto
    this.byobRequest = null; // the record behind controller.byobRequest
    stream.isBytes = true;
  }

  room() {
    return this.mark - this.total;
  }

  pull(request) {
    if (this.total > 0) {
      this.fillRequestFromQueue(request);
      return;
    }
    const size = this.autoAllocateChunkSize;
    if (size !== undefined) {
      let buffer = null;
      if (!this.isDefaultSize) {
        try {
          buffer = new ArrayBuffer(size);
        } catch (error) {
          request.error(error);
          return;
        }
      }
      const info = { byteOffset: 0, byteLength: size, elementSize: 1, Constructor: Uint8Array };
      this.pending.push(new PullInto(info, buffer, 1, "default"));
    }
    this.stream.reader.requests.push(request);
    this.pullIfNeeded();
  }

  release() {
    if (this.pending.length > 0) {
      const first = this.pending[0];
      first.kind = "none";
      this.pending = [first];
    }
  }

  resetQueue() {
    this.invalidateByobRequest();
    this.pending = [];
    this.queue.clear();
    this.total = 0;
  }

  invalidateByobRequest() {
    if (this.byobRequest === null) return;
    this.byobRequest.controller = null;
    this.byobRequest.view = null;
    this.byobRequest = null;
  }

  /** https://streams.spec.whatwg.org/#readable-byte-stream-controller-close */
  close() {
    if (!this.canCloseOrEnqueue()) return;
    if (this.total > 0) {
      this.closeRequested = true;
      return;
    }
    if (this.pending.length > 0) {
      const first = this.pending[0];
      if (first.filled % first.elementSize !== 0) {
        const error = new TypeError("This ReadableStream was closed with a partial read pending.");
        this.fail(error);
        throw error;
      }
    }
    this.clearAlgorithms();
    closeStream(this.stream);
    this.answerPending();
  }

  /** The stream is closed: reads into buffers get them back (S5). A request that a source holds is over. */
  answerPending() {
    const { reader } = this.stream;
    const { pending } = this;
    this.pending = [];
    if (reader === null || !reader.isByob) return;
    for (const pullInto of pending) {
      if (pullInto.kind !== "byob" || reader.requests.length === 0) continue;
      const request = reader.requests.shift();
      if (detached(pullInto.buffer)) {
        pullInto.buffer = new ArrayBuffer(0); // the source has taken it away
        pullInto.byteOffset = pullInto.filled = 0;
      }
      const view = this.convert(pullInto);
      if (pullInto.filled > 0) request.chunk(view);
      else request.close(view);
    }
  }

  cancelPending() {
    this.invalidateByobRequest();
    for (const pullInto of this.pending) pullInto.filled = 0;
    this.answerPending();
  }

  /** https://streams.spec.whatwg.org/#readable-byte-stream-controller-enqueue */
  enqueue(buffer, byteOffset, byteLength) {
    const { stream } = this;
    if (!this.canCloseOrEnqueue()) return;
    if (detached(buffer)) throw new TypeError("The chunk's buffer is detached.");
    const mine = transfer(buffer);
    if (this.pending.length > 0) {
      const first = this.pending[0];
      if (first.buffer !== null) {
        if (detached(first.buffer)) throw new TypeError("The byobRequest.view is zero-length or was detached");
        this.invalidateByobRequest();
        first.buffer = transfer(first.buffer);
      }
      if (first.kind === "none") this.enqueueDetached(first);
    }
    const { reader } = stream;
    if (reader !== null && !reader.isByob) {
      while (reader.requests.length > 0 && this.total > 0) {
        this.fillRequestFromQueue(reader.requests.shift());
      }
      if (reader.requests.length === 0) {
        this.push(mine, byteOffset, byteLength);
      } else {
        if (this.pending.length > 0) this.pending.shift();
        const request = reader.requests.shift();
        if (request.limit > 0 && byteLength > request.limit) {
          this.push(mine, byteOffset, byteLength);
          this.fillRequestFromQueue(request);
        } else {
          request.chunk(new Uint8Array(mine, byteOffset, byteLength));
        }
      }
    } else if (reader !== null) {
      this.push(mine, byteOffset, byteLength);
      for (const filled of this.processPending()) this.commit(filled);
    } else {
      this.push(mine, byteOffset, byteLength);
    }
    this.pullIfNeeded();
  }

  push(buffer, byteOffset, byteLength) {
    this.queue.push({ buffer, byteOffset, byteLength });
    this.total += byteLength;
  }

  pushClone(buffer, byteOffset, byteLength) {
    let clone;
    try {
      clone = buffer.slice(byteOffset, byteOffset + byteLength);
    } catch (error) {
      this.fail(error);
      throw error;
    }
    this.push(clone, 0, byteLength);
  }

  /** EnqueueDetachedPullIntoToQueue: bytes written for a reader that has left are kept. */
  enqueueDetached(pullInto) {
    if (pullInto.filled > 0) this.pushClone(pullInto.buffer, pullInto.byteOffset, pullInto.filled);
    this.pending.shift();
  }

  fillRequestFromQueue(request) {
    const entry = this.queue.peek();
    const limit = request.limit > 0 ? request.limit : this.gathers ? this.total : entry.byteLength;
    if (entry.byteLength > limit || (entry.byteLength < limit && this.queue.length > 1)) {
      this.fillLimited(request, Math.min(limit, this.total));
      return;
    }
    this.queue.shift();
    this.total -= entry.byteLength;
    this.handleQueueDrain();
    request.chunk(new Uint8Array(entry.buffer, entry.byteOffset, entry.byteLength));
  }

  /** A chunk of exactly `size` bytes of the queue, in a buffer of its own (S6). */
  fillLimited(request, size) {
    const info = { byteOffset: 0, byteLength: size, elementSize: 1, Constructor: Uint8Array };
    const into = new PullInto(info, new ArrayBuffer(size), size, "default");
    this.fillFromQueue(into);
    this.handleQueueDrain();
    request.chunk(new Uint8Array(into.buffer));
  }

  handleQueueDrain() {
    if (this.total === 0 && this.closeRequested) {
      this.clearAlgorithms();
      closeStream(this.stream);
    } else {
      this.pullIfNeeded();
    }
  }

  /** https://streams.spec.whatwg.org/#readable-byte-stream-controller-pull-into */
  pullInto(info, minimum, request) {
    const { stream } = this;
    const minimumFill = minimum * info.elementSize;
    let buffer;
    try {
      buffer = transfer(info.buffer);
    } catch (error) {
      request.error(error);
      return;
    }
    const pullInto = new PullInto(info, buffer, minimumFill, "byob");
    if (this.pending.length > 0) {
      this.pending.push(pullInto);
      stream.reader.requests.push(request);
      return;
    }
    if (stream.state === CLOSED) {
      request.close(makeView(pullInto, pullInto.buffer, 0));
      return;
    }
    if (this.total > 0) {
      if (this.fillFromQueue(pullInto)) {
        const view = this.convert(pullInto);
        this.handleQueueDrain();
        request.chunk(view);
        return;
      }
      if (this.closeRequested && pullInto.filled % pullInto.elementSize === 0) {
        const view = this.convert(pullInto); // fewer than the minimum: there are no more
        this.handleQueueDrain();
        request.chunk(view);
        return;
      }
      if (this.closeRequested) {
        const error = new TypeError("Insufficient bytes to fill elements in the given buffer");
        this.fail(error);
        request.error(error);
        return;
      }
    }
    this.pending.push(pullInto);
    stream.reader.requests.push(request);
    this.pullIfNeeded();
  }

  /** FillPullIntoDescriptorFromQueue: true if it is ready to be handed out. */
  fillFromQueue(pullInto) {
    const maximum = Math.min(this.total, pullInto.byteLength - pullInto.filled);
    const maximumFilled = pullInto.filled + maximum;
    const maximumAligned = maximumFilled - (maximumFilled % pullInto.elementSize);
    let remaining = maximum;
    let ready = false;
    if (maximumAligned >= pullInto.minimumFill) {
      remaining = maximumAligned - pullInto.filled;
      ready = true;
    }
    const target = new Uint8Array(pullInto.buffer);
    while (remaining > 0) {
      const head = this.queue.peek();
      const size = Math.min(remaining, head.byteLength);
      target.set(
        new Uint8Array(head.buffer, head.byteOffset, size),
        pullInto.byteOffset + pullInto.filled,
      );
      if (head.byteLength === size) {
        this.queue.shift();
      } else {
        head.byteOffset += size;
        head.byteLength -= size;
      }
      this.total -= size;
      pullInto.filled += size;
      remaining -= size;
    }
    return ready;
  }

  convert(pullInto) {
    return makeView(pullInto, transfer(pullInto.buffer), pullInto.filled);
  }

  commit(pullInto) {
    const { stream } = this;
    const done = stream.state === CLOSED;
    const view = this.convert(pullInto);
    const request = stream.reader.requests.shift();
    if (done) request.close(view);
    else request.chunk(view);
  }

  processPending() {
    const filled = [];
    while (this.pending.length > 0 && this.total > 0) {
      const first = this.pending[0];
      if (!this.fillFromQueue(first)) break;
      this.pending.shift();
      filled.push(first);
    }
    return filled;
  }

  /** The record behind controller.byobRequest, or null. */
  getByobRequest() {
    if (this.byobRequest === null && this.pending.length > 0) {
      const first = this.pending[0];
      first.buffer ??= new ArrayBuffer(first.byteLength);
      this.byobRequest = {
        controller: this,
        view: new Uint8Array(first.buffer, first.byteOffset + first.filled, first.byteLength - first.filled),
        object: null,
      };
    }
    return this.byobRequest;
  }

  /** https://streams.spec.whatwg.org/#readable-byte-stream-controller-respond */
  respond(bytes) {
    const first = this.pending[0];
    if (this.stream.state === CLOSED) {
      if (bytes !== 0) throw new TypeError("The bytesWritten must be zero after the stream is closed.");
      this.invalidateByobRequest();
      return;
    }
    if (bytes === 0) throw new TypeError("The bytesWritten must be more than zero while the stream is open.");
    if (first.filled + bytes > first.byteLength) {
      throw new RangeError(`Too many bytes [${bytes}] in response to a BYOB read request.`);
    }
    first.buffer = transfer(first.buffer);
    this.respondInternal(bytes);
  }

  /** A source may answer by a view of another kind: the reader gets it, in whole elements of that. */
  respondWithNewView(view) {
    const info = viewInfo(view);
    const first = this.pending[0];
    if (this.stream.state === CLOSED) {
      if (info.byteLength !== 0) throw new TypeError("The view byte length must be zero after the stream is closed.");
      this.invalidateByobRequest();
      return;
    }
    if (info.byteLength === 0) {
      throw new TypeError("The view byte length must be more than zero while the stream is open.");
    }
    if (first.byteOffset + first.filled !== info.byteOffset) {
      throw new RangeError("The view must begin where the requested one does.");
    }
    if (first.bufferByteLength !== lengthOf(info.buffer)) {
      throw new RangeError("The view's buffer must be as long as the requested one.");
    }
    if (first.filled + info.byteLength > first.byteLength) {
      throw new RangeError("The view must not be longer than the requested one.");
    }
    first.buffer = transfer(info.buffer);
    if (info.Constructor !== Uint8Array && info.Constructor !== DataView) {
      first.Constructor = info.Constructor;
      first.elementSize = info.elementSize;
    }
    this.respondInternal(info.byteLength);
  }

  respondInternal(bytes) {
    const first = this.pending[0];
    this.invalidateByobRequest();
    this.respondInReadable(bytes, first);
    this.pullIfNeeded();
  }

  respondInReadable(bytes, pullInto) {
    pullInto.filled += bytes;
    if (pullInto.kind === "none") {
      this.enqueueDetached(pullInto);
      for (const filled of this.processPending()) this.commit(filled);
      return;
    }
    if (pullInto.filled < pullInto.minimumFill) return;
    this.pending.shift();
    const rest = pullInto.filled % pullInto.elementSize;
    if (rest > 0) {
      const end = pullInto.byteOffset + pullInto.filled;
      this.pushClone(pullInto.buffer, end - rest, rest);
    }
    pullInto.filled -= rest;
    const filled = this.processPending();
    this.commit(pullInto);
    for (const other of filled) this.commit(other);
  }
}
