// WritableStream, its writer and its controller. https://streams.spec.whatwg.org/#ws
import { finishInterface } from "../../internal/interface.js";
import {
  INTERNAL, callback, checkConstructors, dictionary, highWaterMark, illegalConstructor, illegalInvocation, isObject,
  queuingStrategy, rejected,
} from "./common.js";
import {
  WRITABLE, WritableController, WritableRecord, abortWritable, acquireWriter, closeQueuedOrInFlight, closeWritable,
  closingError, releaseWriter, writerDesiredSize, writerLockedError, writerReleasedError, writerWrite,
} from "./writable-core.js";

/** The record of a WritableStream, or null for anything else. */
export let writableRecord;
/** The WritableStream of a record. */
export function writableObject(record) {
  return record.object ?? (record.object = new WritableStream(INTERNAL, record));
}

class WritableStream {
  #record;

  static {
    writableRecord = (value) => (isObject(value) && #record in value ? value.#record : null);
  }

  constructor(underlyingSink = undefined, strategy = undefined) {
    if (underlyingSink === INTERNAL) {
      this.#record = strategy;
      return;
    }
    checkConstructors("WritableStream");
    const sink = dictionary(underlyingSink, "The underlying sink");
    const abort = callback(sink, "abort", "underlyingSink");
    const close = callback(sink, "close", "underlyingSink");
    const start = callback(sink, "start", "underlyingSink");
    const write = callback(sink, "write", "underlyingSink");
    const queuing = queuingStrategy(strategy);
    const mark = highWaterMark(queuing, 1);

    const record = new WritableRecord();
    this.#record = record;
    record.object = this;
    const face = new WritableStreamDefaultController(INTERNAL);
    const controller = new WritableController(
      record,
      write === undefined ? null : (chunk) => write.call(sink, chunk, face),
      close === undefined ? null : () => close.call(sink),
      abort === undefined ? null : (reason) => abort.call(sink, reason),
      mark,
      queuing.size ?? null,
    );
    bindController(face, controller);
    controller.start(start === undefined ? null : () => start.call(sink, face));
  }

  get locked() {
    if (!(#record in this)) throw illegalInvocation("WritableStream");
    return this.#record.writer !== null;
  }

  abort(reason = undefined) {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("WritableStream"));
    if (this.#record.writer !== null) return rejected(writerLockedError());
    return abortWritable(this.#record, reason);
  }

  close() {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("WritableStream"));
    const record = this.#record;
    if (record.writer !== null) return rejected(writerLockedError());
    if (closeQueuedOrInFlight(record)) return rejected(closingError(record));
    return closeWritable(record);
  }

  getWriter() {
    if (!(#record in this)) throw illegalInvocation("WritableStream");
    return new WritableStreamDefaultWriter(this);
  }
}

/** A write request whose outcome is a promise. */
class PromiseWrite {
  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
  done() {
    this.resolve(undefined);
  }
  failed(reason) {
    this.reject(reason);
  }
}

class WritableStreamDefaultWriter {
  #record;

  constructor(stream) {
    const record = writableRecord(stream);
    if (record === null) throw new TypeError("A writer needs a WritableStream.");
    this.#record = acquireWriter(record);
  }

  get closed() {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("WritableStreamDefaultWriter"));
    return this.#record.closed.get();
  }

  get desiredSize() {
    if (!(#record in this)) throw illegalInvocation("WritableStreamDefaultWriter");
    if (this.#record.stream === null) throw writerReleasedError();
    return writerDesiredSize(this.#record);
  }

  get ready() {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("WritableStreamDefaultWriter"));
    return this.#record.ready.get();
  }

  abort(reason = undefined) {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("WritableStreamDefaultWriter"));
    const { stream } = this.#record;
    return stream === null ? rejected(writerReleasedError()) : abortWritable(stream, reason);
  }

  close() {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("WritableStreamDefaultWriter"));
    const { stream } = this.#record;
    if (stream === null) return rejected(writerReleasedError());
    if (closeQueuedOrInFlight(stream)) return rejected(closingError(stream));
    return closeWritable(stream);
  }

  releaseLock() {
    if (!(#record in this)) throw illegalInvocation("WritableStreamDefaultWriter");
    if (this.#record.stream !== null) releaseWriter(this.#record);
  }

  write(chunk = undefined) {
    if (!isObject(this) || !(#record in this)) return rejected(illegalInvocation("WritableStreamDefaultWriter"));
    if (this.#record.stream === null) return rejected(writerReleasedError());
    const request = new PromiseWrite();
    writerWrite(this.#record, chunk, request);
    return request.promise;
  }
}

let bindController;
class WritableStreamDefaultController {
  #record = null;

  static {
    bindController = (face, record) => {
      face.#record = record;
    };
  }

  constructor(token) {
    if (token !== INTERNAL) throw illegalConstructor();
  }

  get signal() {
    if (!(#record in this)) throw illegalInvocation("WritableStreamDefaultController");
    return this.#record.signal();
  }

  error(reason = undefined) {
    if (!(#record in this)) throw illegalInvocation("WritableStreamDefaultController");
    if (this.#record.stream.state === WRITABLE) this.#record.fail(reason);
  }
}

for (const face of [WritableStream, WritableStreamDefaultWriter, WritableStreamDefaultController]) {
  finishInterface(face);
}

export { WritableStream, WritableStreamDefaultController, WritableStreamDefaultWriter };
