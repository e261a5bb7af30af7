// IdentityTransformStream and FixedLengthStream: the platform's byte pipes.
// https://developers.cloudflare.com/workers/runtime-apis/streams/transformstream/
//
// A write is done when its bytes have been read: nothing is buffered unless a highWaterMark asks
// for it. Only bytes pass; a string is written as UTF-8.
//
// Without a highWaterMark desiredSize is 1 as long as the stream can be written to, and `ready` is
// never pending: the writer waits for its writes. With one, bytes count from write() until they are read.
import { finishInterface } from "../../internal/interface.js";
import { native } from "../../internal/native.js";
import { Deferred, dictionary, enforceRange, illegalInvocation, reasonError, resolved } from "./common.js";
import { pullStream } from "./readable-pull.js";
import { streamObject } from "./readable.js";
import { ERRORED, ERRORING, WritableController, setUpWritable } from "./writable-core.js";
import { writableObject } from "./writable.js";

const isShared = (value) => typeof SharedArrayBuffer === "function" && value instanceof SharedArrayBuffer;

/** The bytes of a chunk written to one of the platform's byte streams, not copied; or a TypeError. */
export function inputBytes(chunk) {
  if (chunk instanceof Uint8Array) return chunk;
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  if (chunk instanceof ArrayBuffer || isShared(chunk)) return new Uint8Array(chunk);
  if (typeof chunk === "string") return native.utf8Encode(chunk);
  throw new TypeError(
    "This TransformStream is being used as a byte stream, but received an object of " +
      "non-ArrayBuffer/ArrayBufferView type on its writable side.",
  );
}

/** The same for a write: null for nothing. */
export const inputOrNothing = (chunk) => {
  const bytes = chunk === undefined ? null : inputBytes(chunk);
  return bytes === null || bytes.byteLength === 0 ? null : bytes;
};

/** A copy: the writer may go on using its buffer. */
const copyOfInput = (chunk) => {
  const bytes = inputOrNothing(chunk);
  return bytes === null || typeof chunk === "string" ? bytes : new Uint8Array(bytes);
};

class SteadyController extends WritableController {
  room() {
    return 1;
  }
}

class BytePipe {
  /** `expected` is the number of bytes that must pass, or null. */
  constructor(mark, expected) {
    this.remaining = expected;
    this.chunk = null; // written, not read yet
    this.written = null; // Deferred of that write
    this.reader = null; // Deferred of a read that waits
    this.ended = false;
    this.failure = null;
    this.readable = pullStream(
      () => this.pull(),
      (reason) => this.cancel(reason),
    );
    this.readable.length = expected;
    const limit = mark !== undefined && expected !== null ? Math.min(mark, expected) : mark;
    this.writable = setUpWritable(
      null,
      (bytes) => this.write(bytes),
      () => this.close(),
      (reason) => this.fail(reasonError(reason, "Network connection lost.")),
      limit ?? 1,
      mark === undefined ? null : (bytes) => bytes.byteLength,
      mark === undefined ? SteadyController : WritableController,
    );
    this.writable.controller.prepare = copyOfInput;
    this.writable.controller.interrupt = (reason) => this.written?.reject(reason);
  }

  pull() {
    if (this.failure !== null) throw this.failure.error;
    if (this.chunk !== null) {
      const { chunk } = this;
      this.chunk = null;
      this.written.resolve(undefined);
      return chunk;
    }
    if (this.ended) return null;
    this.reader = new Deferred();
    return this.reader.promise;
  }

  write(bytes) {
    if (this.failure !== null) throw this.failure.error;
    if (this.remaining !== null) {
      if (bytes.byteLength > this.remaining) {
        const error = new TypeError("Attempt to write too many bytes through a FixedLengthStream.");
        this.fail(error);
        throw error;
      }
      this.remaining -= bytes.byteLength;
    }
    if (this.reader !== null) {
      const { reader } = this;
      this.reader = null;
      reader.resolve(bytes);
      return undefined;
    }
    this.chunk = bytes;
    this.written = new Deferred();
    return this.written.promise;
  }

  close() {
    if (this.failure !== null) throw this.failure.error;
    if (this.remaining > 0) {
      const error = new TypeError("FixedLengthStream did not see all expected bytes before close().");
      this.fail(error);
      throw error;
    }
    this.ended = true;
    if (this.reader !== null) this.reader.resolve(null);
  }

  /** The writable side failed or was aborted: the reader is told. */
  fail(error) {
    this.failure = { error };
    this.chunk = null;
    if (this.reader !== null) this.reader.reject(error);
    else this.readable.controller.fail(error);
    this.reader = null;
  }

  /** The readable side was cancelled: writes fail from now on. */
  cancel(given) {
    const reason = reasonError(given, "Stream was cancelled.");
    this.failure = { error: reason };
    this.chunk = null;
    const { writable } = this;
    if (this.written !== null) this.written.reject(reason);
    else if (writable.state !== ERRORED && writable.state !== ERRORING) writable.controller.errorIfNeeded(reason);
    return resolved(undefined);
  }
}

/** What a TransformStream is without transformers: { readable, writable }, records. */
export const identityPipe = () => new BytePipe(undefined, null);

class IdentityTransformStream {
  #pipe;

  constructor(options = undefined, expected = null) {
    const { highWaterMark } = dictionary(options, "The options of a stream");
    const mark = highWaterMark === undefined ? undefined : enforceRange(highWaterMark, "highWaterMark");
    this.#pipe = new BytePipe(mark, new.target === IdentityTransformStream ? null : expected);
  }

  get readable() {
    if (!(#pipe in this)) throw illegalInvocation("IdentityTransformStream");
    return streamObject(this.#pipe.readable);
  }

  get writable() {
    if (!(#pipe in this)) throw illegalInvocation("IdentityTransformStream");
    return writableObject(this.#pipe.writable);
  }
}

class FixedLengthStream extends IdentityTransformStream {
  constructor(expectedLength, options = undefined) {
    let length = expectedLength;
    if (typeof length === "bigint") length = Number(length);
    super(options, enforceRange(length, "expectedLength"));
  }
}

finishInterface(IdentityTransformStream);
finishInterface(FixedLengthStream);
export { FixedLengthStream, IdentityTransformStream };
