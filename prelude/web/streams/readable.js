// ReadableStream, its readers and its controllers: the public faces of the records.
// https://streams.spec.whatwg.org/#rs
import { finishInterface } from "../../internal/interface.js";
import { compatibilityFlags } from "../../internal/native.js";
import {
  INTERNAL, callback, checkConstructors, dictionary, enforceRange, highWaterMark, illegalConstructor, illegalInvocation,
  isObject, queuingStrategy, rejected, resultPromise, settleResult,
} from "./common.js";
import {
  CLOSED, DefaultController, ERRORED, READABLE, ReaderRecord, StreamRecord, acquireReader, cancelStream,
  lockedError, releaseReader, releasedError,
} from "./readable-core.js";
import { ByteController, DEFAULT_CHUNK_SIZE, detached, lengthOf, viewInfo } from "./readable-bytes.js";
import { PullController } from "./readable-pull.js";
import { ReadableStreamAsyncIterator, streamFromIterable } from "./iterate.js";
import { pipe } from "./pipe.js";
import { tee } from "./tee.js";
import { writableRecord } from "./writable.js";

const HAS_DEFAULT_SIZE = !compatibilityFlags.has("streams_no_default_auto_allocate_chunk_size");

/** The record of a ReadableStream, or null for anything else. */
export let recordOf;
/** The ReadableStream of a record: made when first asked for. */
export function streamObject(record) {
  return record.object ?? (record.object = new ReadableStream(INTERNAL, record));
}

/** A read request whose outcome is a promise of {value, done}. */
class PromiseRequest {
  /** `limit`: bytes of a byte stream that it takes at most, 0 for any number. */
  constructor(limit) {
    this.limit = limit;
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
  chunk(value) {
    settleResult(this.resolve, value, false);
  }
  close(value) {
    settleResult(this.resolve, value, true);
  }
  error(reason) {
    this.reject(reason);
  }
}

const busyError = () =>
  new TypeError("This ReadableStream only supports a single pending read request at a time.");

export function setUpDefaultStream(startAlgorithm, pullAlgorithm, cancelAlgorithm, mark = 1, size = null) {
  const stream = new StreamRecord();
  const controller = new DefaultController(stream, pullAlgorithm, cancelAlgorithm, mark, size);
  controller.start(startAlgorithm);
  return stream;
}

class ReadableStream {
  #record;

  static {
    recordOf = (value) => (isObject(value) && #record in value ? value.#record : null);
  }

  constructor(underlyingSource = undefined, strategy = undefined) {
    if (underlyingSource === INTERNAL) {
      this.#record = strategy;
      return;
    }
    checkConstructors("ReadableStream");
    const source = dictionary(underlyingSource, "The underlying source");
    const chunkSize = source.autoAllocateChunkSize;
    const autoAllocateChunkSize =
      chunkSize === undefined ? undefined : enforceRange(chunkSize, "autoAllocateChunkSize");
    const cancel = callback(source, "cancel", "underlyingSource");
    const pull = callback(source, "pull", "underlyingSource");
    const start = callback(source, "start", "underlyingSource");
    const type = source.type === undefined ? "" : `${source.type}`;
    if (type !== "" && type !== "bytes") throw new TypeError(`"${type}" is not a type of an underlying source.`);
    const { highWaterMark: mark, size } = queuingStrategy(strategy);

    const record = new StreamRecord();
    this.#record = record;
    record.object = this;
    if (source.expectedLength !== undefined) record.expected = enforceRange(Number(source.expectedLength), "expectedLength");
    const cancelAlgorithm = cancel === undefined ? null : (reason) => cancel.call(source, reason);
    if (type === "bytes") {
      const limit = highWaterMark({ highWaterMark: mark }, 0);
      if (autoAllocateChunkSize === 0) throw new TypeError("autoAllocateChunkSize must be greater than 0.");
      const face = new ReadableByteStreamController(INTERNAL);
      const pullAlgorithm = pull === undefined ? null : () => pull.call(source, face);
      const allocate = autoAllocateChunkSize ?? (HAS_DEFAULT_SIZE ? DEFAULT_CHUNK_SIZE : undefined);
      const controller = new ByteController(record, pullAlgorithm, cancelAlgorithm, limit, allocate);
      controller.isDefaultSize = autoAllocateChunkSize === undefined;
      bindByteController(face, controller);
      controller.start(start === undefined ? null : () => start.call(source, face));
    } else {
      const limit = highWaterMark({ highWaterMark: mark }, 1);
      const face = new ReadableStreamDefaultController(INTERNAL);
      const pullAlgorithm = pull === undefined ? null : () => pull.call(source, face);
      const controller = new DefaultController(record, pullAlgorithm, cancelAlgorithm, limit, size ?? null);
      bindDefaultController(face, controller);
      controller.start(start === undefined ? null : () => start.call(source, face));
    }
  }

  static from(iterable) {
    return streamObject(streamFromIterable(iterable));
  }

  get locked() {
    if (!(#record in this)) throw illegalInvocation("ReadableStream");
    return this.#record.reader !== null;
  }

  cancel(reason = undefined) {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("ReadableStream"));
    if (this.#record.reader !== null) return rejected(lockedError());
    return cancelStream(this.#record, reason);
  }

  getReader(options = undefined) {
    if (!(#record in this)) throw illegalInvocation("ReadableStream");
    const { mode } = dictionary(options, "The options of getReader()");
    if (mode === undefined) return new ReadableStreamDefaultReader(this);
    if (`${mode}` !== "byob") throw new TypeError(`Invalid mode of a reader: ${mode}`);
    return new ReadableStreamBYOBReader(this);
  }

  pipeThrough(transform, options = undefined) {
    if (!(#record in this)) throw illegalInvocation("ReadableStream");
    if (!isObject(transform)) throw new TypeError("pipeThrough() needs an object with readable and writable.");
    const { readable } = transform;
    if (recordOf(readable) === null) throw new TypeError("transform.readable must be a ReadableStream.");
    const destination = writableRecord(transform.writable);
    if (destination === null) throw new TypeError("transform.writable must be a WritableStream.");
    const settings = pipeOptions(options);
    if (this.#record.reader !== null) throw lockedError();
    if (destination.writer !== null) {
      throw new TypeError("This WritableStream is currently locked to a writer.");
    }
    const promise = pipe(this.#record, destination, settings);
    promise.catch(() => {});
    return readable;
  }

  pipeTo(destination, options = undefined) {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("ReadableStream"));
    const target = writableRecord(destination);
    if (target === null) return rejected(new TypeError("pipeTo() needs a WritableStream."));
    let settings;
    try {
      settings = pipeOptions(options);
    } catch (error) {
      return rejected(error);
    }
    if (this.#record.reader !== null) return rejected(lockedError());
    if (target.writer !== null) {
      return rejected(new TypeError("This WritableStream is currently locked to a writer."));
    }
    return pipe(this.#record, target, settings);
  }

  tee() {
    if (!(#record in this)) throw illegalInvocation("ReadableStream");
    const [first, second] = tee(this.#record);
    return [streamObject(first), streamObject(second)];
  }

  values(options = undefined) {
    if (!(#record in this)) throw illegalInvocation("ReadableStream");
    const { preventCancel } = dictionary(options, "The options of values()");
    return new ReadableStreamAsyncIterator(acquireReader(this.#record), !!preventCancel);
  }
}
Object.defineProperty(ReadableStream.prototype, Symbol.asyncIterator, {
  value: ReadableStream.prototype.values,
  writable: true,
  configurable: true,
});

function pipeOptions(value) {
  const options = dictionary(value, "The options of a pipe");
  const preventAbort = !!options.preventAbort;
  const preventCancel = !!options.preventCancel;
  const preventClose = !!options.preventClose;
  const { signal } = options;
  if (signal !== undefined && !(typeof AbortSignal === "function" && signal instanceof AbortSignal)) {
    throw new TypeError("options.signal must be an AbortSignal.");
  }
  return { preventAbort, preventCancel, preventClose, signal };
}

class ReadableStreamDefaultReader {
  #record;

  constructor(stream) {
    const record = recordOf(stream);
    if (record === null) throw new TypeError("A reader needs a ReadableStream.");
    this.#record = acquireReader(record);
  }

  get closed() {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("ReadableStreamDefaultReader"));
    return this.#record.closed.get();
  }

  cancel(reason = undefined) {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("ReadableStreamDefaultReader"));
    const { stream } = this.#record;
    return stream === null ? rejected(releasedError()) : cancelStream(stream, reason);
  }

  read() {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("ReadableStreamDefaultReader"));
    const reader = this.#record;
    const { stream } = reader;
    if (stream === null) return rejected(releasedError());
    stream.disturbed = true;
    if (stream.state === READABLE) {
      const { controller } = stream;
      // A chunk that is there already needs no request.
      if (controller instanceof DefaultController && controller.queue.length > 0) {
        return resultPromise(controller.next(), false);
      }
      if (controller instanceof PullController && reader.requests.length > 0) return rejected(busyError());
    } else if (stream.state === CLOSED) {
      return resultPromise(undefined, true);
    } else {
      return rejected(stream.error);
    }
    const request = new PromiseRequest(stream.controller.autoAllocateChunkSize ?? 0);
    stream.controller.pull(request);
    return request.promise;
  }

  releaseLock() {
    if (!(#record in this)) throw illegalInvocation("ReadableStreamDefaultReader");
    if (this.#record.stream !== null) releaseReader(this.#record);
  }
}

class ReadableStreamBYOBReader {
  #record;

  constructor(stream) {
    const record = recordOf(stream);
    if (record === null) throw new TypeError("A reader needs a ReadableStream.");
    if (record.reader !== null) throw lockedError();
    if (!record.isBytes) {
      throw new TypeError("This ReadableStream does not support BYOB reads.");
    }
    this.#record = new ReaderRecord(record, true);
  }

  get closed() {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("ReadableStreamBYOBReader"));
    return this.#record.closed.get();
  }

  cancel(reason = undefined) {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("ReadableStreamBYOBReader"));
    const { stream } = this.#record;
    return stream === null ? rejected(releasedError()) : cancelStream(stream, reason);
  }

  read(view, options = undefined) {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("ReadableStreamBYOBReader"));
    try {
      const { min } = dictionary(options, "The options of read()");
      return readInto(this.#record, view, min === undefined ? 1 : enforceRange(min, "min"));
    } catch (error) {
      return rejected(error);
    }
  }

  /** The platform's name for read(view, {min}). */
  readAtLeast(minElements, view) {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("ReadableStreamBYOBReader"));
    try {
      return readInto(this.#record, view, enforceRange(minElements, "minElements"));
    } catch (error) {
      return rejected(error);
    }
  }

  releaseLock() {
    if (!(#record in this)) throw illegalInvocation("ReadableStreamBYOBReader");
    if (this.#record.stream !== null) releaseReader(this.#record);
  }
}

/** https://streams.spec.whatwg.org/#byob-reader-read */
function readInto(reader, view, minimum) {
  if (!ArrayBuffer.isView(view)) throw new TypeError("read() needs an ArrayBufferView.");
  const info = viewInfo(view);
  if (!(info.buffer instanceof ArrayBuffer)) throw new TypeError("The view must not be on shared memory.");
  if (detached(info.buffer)) throw new TypeError("The view's buffer is detached.");
  if (info.byteLength === 0) {
    throw new TypeError(
      "You must call read() on a \"byob\" reader with a positive-sized TypedArray object.",
    );
  }
  if (lengthOf(info.buffer) === 0) throw new TypeError("The view's buffer must not be empty.");
  if (minimum === 0) throw new TypeError("min must be greater than 0.");
  if (minimum > info.length) throw new TypeError("min must not be greater than the view's length.");
  const { stream } = reader;
  if (stream === null) throw releasedError();
  if (stream.controller instanceof PullController && reader.requests.length > 0) throw busyError();
  const request = new PromiseRequest(0);
  stream.disturbed = true;
  if (stream.state === ERRORED) request.error(stream.error);
  else stream.controller.pullInto(info, minimum, request);
  return request.promise;
}

let bindDefaultController;
class ReadableStreamDefaultController {
  #record = null;

  static {
    bindDefaultController = (face, record) => {
      face.#record = record;
    };
  }

  constructor(token) {
    if (token !== INTERNAL) throw illegalConstructor();
  }

  get desiredSize() {
    if (!(#record in this)) throw illegalInvocation("ReadableStreamDefaultController");
    return this.#record.desiredSize();
  }

  close() {
    if (!(#record in this)) throw illegalInvocation("ReadableStreamDefaultController");
    if (!this.#record.canCloseOrEnqueue()) throw new TypeError("This ReadableStream is closed.");
    this.#record.close();
  }

  enqueue(chunk = undefined) {
    if (!(#record in this)) throw illegalInvocation("ReadableStreamDefaultController");
    if (!this.#record.canCloseOrEnqueue()) throw new TypeError("Unable to enqueue");
    this.#record.enqueue(chunk);
  }

  error(reason = undefined) {
    if (!(#record in this)) throw illegalInvocation("ReadableStreamDefaultController");
    this.#record.fail(reason);
  }
}

let bindByteController;
class ReadableByteStreamController {
  #record = null;

  static {
    bindByteController = (face, record) => {
      face.#record = record;
    };
  }

  constructor(token) {
    if (token !== INTERNAL) throw illegalConstructor();
  }

  get byobRequest() {
    if (!(#record in this)) throw illegalInvocation("ReadableByteStreamController");
    const request = this.#record.getByobRequest();
    if (request === null) return null;
    return request.object ?? (request.object = new ReadableStreamBYOBRequest(INTERNAL, request));
  }

  get desiredSize() {
    if (!(#record in this)) throw illegalInvocation("ReadableByteStreamController");
    return this.#record.desiredSize();
  }

  close() {
    if (!(#record in this)) throw illegalInvocation("ReadableByteStreamController");
    const record = this.#record;
    if (!record.canCloseOrEnqueue()) {
      throw new TypeError("This ReadableStream is closed.");
    }
    record.close();
  }

  enqueue(chunk) {
    if (!(#record in this)) throw illegalInvocation("ReadableByteStreamController");
    const record = this.#record;
    const view = chunk instanceof ArrayBuffer ? new Uint8Array(chunk) : chunk;
    if (!ArrayBuffer.isView(view)) {
      throw new TypeError("Failed to execute 'enqueue' on 'ReadableByteStreamController': parameter 1 is not of type 'BufferSource'.");
    }
    const { buffer, byteOffset, byteLength } = viewInfo(view);
    if (byteLength === 0) throw new TypeError("Cannot enqueue a zero-length ArrayBuffer.");
    if (!(buffer instanceof ArrayBuffer)) throw new TypeError("The provided ArrayBuffer must be detachable.");
    if (!record.canCloseOrEnqueue()) {
      throw new TypeError("This ReadableByteStreamController is closed.");
    }
    record.enqueue(buffer, byteOffset, byteLength);
  }

  error(reason = undefined) {
    if (!(#record in this)) throw illegalInvocation("ReadableByteStreamController");
    this.#record.fail(reason);
  }
}

class ReadableStreamBYOBRequest {
  #record;

  constructor(token, record) {
    if (token !== INTERNAL) throw illegalConstructor();
    this.#record = record;
  }

  get view() {
    if (!(#record in this)) throw illegalInvocation("ReadableStreamBYOBRequest");
    return this.#record.view;
  }

  /** The platform's extension: how many bytes a read with `min` still waits for. */
  get atLeast() {
    if (!(#record in this)) throw illegalInvocation("ReadableStreamBYOBRequest");
    const { controller } = this.#record;
    if (controller === null) return null;
    const first = controller.pending[0];
    if (first === undefined) return null;
    return Math.max(first.minimumFill - first.filled, 1);
  }

  respond(bytesWritten) {
    if (!(#record in this)) throw illegalInvocation("ReadableStreamBYOBRequest");
    if (arguments.length === 0) throw new TypeError("respond() needs the number of bytes written.");
    const bytes = enforceRange(bytesWritten, "bytesWritten");
    const { controller, view } = this.#record;
    if (controller === null) throw new TypeError("This ReadableStreamBYOBRequest has been invalidated.");
    if (controller.stream.state === READABLE && detached(view.buffer)) {
      throw new TypeError("Cannot respond with a zero-length or detached view");
    }
    controller.respond(bytes);
  }

  respondWithNewView(view) {
    if (!(#record in this)) throw illegalInvocation("ReadableStreamBYOBRequest");
    if (!ArrayBuffer.isView(view)) throw new TypeError("respondWithNewView() needs an ArrayBufferView.");
    const { controller } = this.#record;
    if (controller === null) throw new TypeError("This ReadableStreamBYOBRequest has been invalidated.");
    if (controller.stream.state === READABLE && detached(viewInfo(view).buffer)) {
      throw new TypeError("Cannot respond with a zero-length or detached view");
    }
    controller.respondWithNewView(view);
  }
}

for (const face of [
  ReadableStream, ReadableStreamDefaultReader, ReadableStreamBYOBReader, ReadableStreamDefaultController,
  ReadableByteStreamController, ReadableStreamBYOBRequest,
]) {
  finishInterface(face);
}

export {
  ReadableByteStreamController, ReadableStream, ReadableStreamBYOBReader, ReadableStreamBYOBRequest,
  ReadableStreamDefaultController, ReadableStreamDefaultReader,
};
