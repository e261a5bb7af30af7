// A readable byte stream over a source that hands out chunks: what bodies, sockets and files use.
//
// It keeps no queue and never reads ahead: a read calls `pull`, which returns a Uint8Array, null
// at the end, or a promise of either. Nothing here is visible to scripts but the stream itself,
// so the machinery of byte controllers (requests, high-water marks) is not needed.
//
// P1  At most one pull is under way.
// P2  `rest` holds bytes that a BYOB reader had no room for; they come before the next pull.
import { isFlagOff } from "../../internal/native.js";
import { reasonError, resolved, then } from "./common.js";
import { CLOSED, READABLE, StreamRecord, closeStream, errorStream, failRequests } from "./readable-core.js";
import { detached, lengthOf, transfer } from "./readable-bytes.js";

/** The caller keeps the buffer it reads into; nothing is written beyond what is left of it then. */
const RETURNS_VIEW = !isFlagOff("internal_stream_byob_return_view"); // at the end
const KEEPS_BUFFERS = isFlagOff("streams_byob_reader_detaches_buffer");

/** A read into a caller's buffer, which collects at least `minimum` bytes. */
class Into {
  constructor(info, buffer, minimum, request) {
    this.Constructor = info.Constructor;
    this.elementSize = info.elementSize;
    this.byteOffset = info.byteOffset;
    this.byteLength = info.byteLength;
    this.minimum = minimum;
    this.bytes = new Uint8Array(buffer);
    this.buffer = buffer;
    this.filled = 0;
    this.request = request;
  }
  /** Bytes that can still be put into it: its caller may have shrunk or detached the buffer. */
  room() {
    const left = KEEPS_BUFFERS ? lengthOf(this.buffer) - this.byteOffset : this.byteLength;
    return Math.max(Math.min(left, this.byteLength) - this.filled, 0);
  }
  error(reason) {
    this.request.error(reason);
  }
  close() {
    this.request.close(undefined);
  }
  view() {
    const { byteOffset, filled, elementSize } = this;
    if (KEEPS_BUFFERS && (detached(this.buffer) || byteOffset > lengthOf(this.buffer))) {
      return new this.Constructor(new ArrayBuffer(0));
    }
    return new this.Constructor(this.buffer, byteOffset, filled / elementSize);
  }
}

export class PullController {
  constructor(stream, pull, cancel, handle) {
    this.stream = stream;
    this.source = pull;
    this.onCancel = cancel;
    this.handle = handle; // native, or null
    this.rest = null;
    this.waiting = false;
    this.onChunk = null;
    this.onFailed = null;
    stream.controller = this;
    stream.isBytes = true;
  }

  /** The next chunk, null, or a promise; for consumers that go without read requests. */
  next() {
    const { rest } = this;
    if (rest !== null) {
      this.rest = null;
      return rest;
    }
    return (0, this.source)();
  }

  pull(request) {
    this.stream.reader.requests.push(request);
    this.run();
  }

  pullInto(info, minimum, request) {
    let buffer;
    try {
      buffer = KEEPS_BUFFERS ? info.buffer : transfer(info.buffer);
    } catch (error) {
      request.error(error);
      return;
    }
    const into = new Into(info, buffer, minimum * info.elementSize, request);
    if (this.stream.state === CLOSED) {
      request.close(RETURNS_VIEW ? into.view() : undefined);
      return;
    }
    this.stream.reader.requests.push(into);
    this.run();
  }

  /** Serves requests while the source has chunks at hand. */
  run() {
    const { stream } = this;
    while (!this.waiting && stream.state === READABLE && stream.reader !== null && stream.reader.requests.length > 0) {
      let chunk;
      try {
        chunk = this.next();
      } catch (error) {
        this.fail(error);
        return;
      }
      if (chunk !== null && typeof chunk === "object" && !(chunk instanceof Uint8Array)) {
        this.waiting = true;
        if (this.onChunk === null) {
          this.onChunk = (value) => {
            this.waiting = false;
            this.deliver(value);
            this.run();
          };
          this.onFailed = (error) => {
            this.waiting = false;
            this.fail(error);
          };
        }
        then(resolved(chunk), this.onChunk, this.onFailed);
        return;
      }
      this.deliver(chunk);
    }
  }

  deliver(chunk) {
    const { stream } = this;
    if (stream.state !== READABLE) return;
    if (chunk === null || chunk === undefined) {
      this.finish();
      return;
    }
    if (chunk.byteLength === 0) return;
    const { reader } = stream;
    if (reader === null || reader.requests.length === 0) {
      this.rest = chunk; // the reader left meanwhile
    } else if (reader.isByob) {
      this.fill(reader, chunk);
    } else {
      reader.requests.shift().chunk(chunk);
    }
  }

  fill(reader, chunk) {
    const into = reader.requests.peek();
    const room = into.room();
    const size = Math.min(chunk.byteLength, room);
    if (size > 0) into.bytes.set(size === chunk.byteLength ? chunk : chunk.subarray(0, size), into.byteOffset + into.filled);
    into.filled += size;
    if (size < chunk.byteLength) this.rest = chunk.subarray(size);
    if (into.filled < into.minimum && room > size) return;
    const over = into.filled % into.elementSize;
    if (over > 0) {
      // Only whole elements are handed out; the bytes of a started one wait in front of the rest.
      const end = into.byteOffset + into.filled;
      const tail = into.bytes.slice(end - over, end);
      into.filled -= over;
      this.rest = this.rest === null ? tail : join(tail, this.rest);
    }
    reader.requests.shift();
    into.request.chunk(into.view());
  }

  /** The source is at its end. */
  finish() {
    const { stream } = this;
    this.source = this.onCancel = this.handle = null;
    const { reader } = stream;
    if (reader === null || !reader.isByob) {
      closeStream(stream);
      return;
    }
    const first = reader.requests.length > 0 ? reader.requests.peek() : null;
    if (first !== null && first.filled % first.elementSize !== 0) {
      errorStream(stream, new TypeError("Insufficient bytes to fill elements in the given buffer"));
      return;
    }
    const requests = reader.requests;
    closeStream(stream);
    while (requests.length > 0) {
      const into = requests.shift();
      // Bytes short of the minimum are still bytes; the end shows in the next read.
      if (into.filled > 0) into.request.chunk(into.view());
      else into.request.close(RETURNS_VIEW ? into.view() : undefined);
    }
  }

  fail(error) {
    if (this.stream.state !== READABLE) return;
    this.source = this.onCancel = this.handle = null;
    this.rest = null;
    errorStream(this.stream, error);
  }

  /** The read that waits fails with the reason (S8). */
  cancelPending(reason) {
    const { reader } = this.stream;
    if (reader !== null) failRequests(reader, reasonError(reason, "Stream was cancelled."));
  }

  cancel(reason) {
    const { onCancel } = this;
    this.source = this.onCancel = this.handle = null;
    this.rest = null;
    return onCancel === null ? undefined : onCancel(reason);
  }

  release() {
    const { reader } = this.stream;
    if (!reader.isByob || reader.requests.length === 0) return;
    const into = reader.requests.peek();
    if (into.filled === 0) return;
    const bytes = into.bytes.slice(into.byteOffset, into.byteOffset + into.filled);
    this.rest = this.rest === null ? bytes : join(bytes, this.rest);
  }
}

function join(a, b) {
  const bytes = new Uint8Array(a.byteLength + b.byteLength);
  bytes.set(a);
  bytes.set(b, a.byteLength);
  return bytes;
}

/** A stream record over a source. */
export function pullStream(pull, cancel, handle) {
  const stream = new StreamRecord();
  new PullController(stream, pull, cancel ?? null, handle ?? null);
  return stream;
}
