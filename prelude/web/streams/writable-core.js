// Records and operations of writable streams. https://streams.spec.whatwg.org/#ws-abstract-ops
//
// A sink is three algorithms (write, close, abort), each null or a function that returns
// undefined or a promise. A write request is an object with done() and failed(reason): pipes
// need no promise per chunk.
import { isFlagOff } from "../../internal/native.js";
import { Deferred, LazyPromise, Queue, attempt, chunkSize, react, rejected, resolved } from "./common.js";

const IS_STRICT = !isFlagOff("writable_stream_spec_compliant_writer"); // about writers that are released
const CLEARS_QUEUE = !isFlagOff("internal_writable_stream_abort_clears_queue");

export const WRITABLE = 0;
export const CLOSED = 1;
export const ERRORING = 2;
export const ERRORED = 3;

const CLOSE = Symbol("close"); // the close sentinel in the queue

export class WritableRecord {
  constructor() {
    this.state = WRITABLE;
    this.error = undefined;
    this.writer = null;
    this.controller = null;
    this.requests = new Queue(); // of write requests, one per queued chunk
    this.inFlightWrite = null;
    this.closeRequest = null; // Deferred
    this.inFlightClose = null; // Deferred
    this.pendingAbort = null; // {deferred, reason, wasAlreadyErroring}
    this.aborting = null; // the promise of its abort (S3)
    this.backpressure = false;
    this.object = null;
  }
}

export class WriterRecord {
  constructor(stream) {
    this.stream = stream;
    this.ready = new LazyPromise();
    this.closed = new LazyPromise();
    this.onReady = null; // told instead of a promise: by pipes
    this.onClosed = null; // the same, for a close that was under way when the pipe began
    stream.writer = this;
    if (stream.state === WRITABLE) {
      if (closeQueuedOrInFlight(stream) || !stream.backpressure) this.ready.resolve(undefined);
    } else if (stream.state === ERRORING) {
      this.ready.reject(stream.error);
    } else if (stream.state === CLOSED) {
      this.ready.resolve(undefined);
      this.closed.resolve(undefined);
    } else {
      this.ready.reject(stream.error);
      this.closed.reject(stream.error);
    }
  }
}

export const writerLockedError = () => new TypeError("This WritableStream is currently locked to a writer.");
export const writerReleasedError = () => new TypeError("This WritableStream writer has been released.");
export const closedError = () => new TypeError("This WritableStream has been closed.");
export const closingError = (stream) =>
  stream.controller.isOwn || stream.state === CLOSED
    ? closedError()
    : new TypeError("Cannot close a writer that is already being closed");

export function acquireWriter(stream) {
  if (stream.writer !== null) throw writerLockedError();
  return new WriterRecord(stream);
}

export const closeQueuedOrInFlight = (stream) => stream.closeRequest !== null || stream.inFlightClose !== null;

/** https://streams.spec.whatwg.org/#writable-stream-abort */
export function abortWritable(stream, reason) {
  return (stream.aborting ??= startAbort(stream, reason));
}

function startAbort(stream, reason) {
  if (stream.state === CLOSED || stream.state === ERRORED) return resolved(undefined);
  stream.controller.signalAbort(reason);
  if (stream.state === CLOSED || stream.state === ERRORED) return resolved(undefined);
  if (stream.pendingAbort !== null) return stream.pendingAbort.deferred.promise;
  const wasAlreadyErroring = stream.state === ERRORING;
  const deferred = new Deferred();
  stream.pendingAbort = { deferred, reason: wasAlreadyErroring ? undefined : reason, wasAlreadyErroring };
  if (!wasAlreadyErroring) startErroring(stream, reason);
  const { interrupt } = stream.controller;
  if (interrupt !== null && CLEARS_QUEUE) interrupt(reason);
  return deferred.promise;
}

/** https://streams.spec.whatwg.org/#writable-stream-close */
export function closeWritable(stream) {
  if (stream.state === CLOSED) return rejected(closedError());
  if (stream.state === ERRORED) return rejected(stream.error);
  const request = new Deferred();
  stream.closeRequest = request;
  const { writer } = stream;
  if (writer !== null && stream.backpressure && stream.state === WRITABLE) readyResolve(writer);
  stream.controller.close();
  return request.promise;
}

function readyResolve(writer) {
  writer.ready.resolve(undefined);
  if (writer.onReady !== null) writer.onReady();
}

export function updateBackpressure(stream, backpressure) {
  if (backpressure === stream.backpressure) return;
  stream.backpressure = backpressure;
  const { writer } = stream;
  if (writer === null) return;
  if (backpressure) writer.ready.reset();
  else readyResolve(writer); // may write, and so come back here
}

export function dealWithRejection(stream, error) {
  if (stream.state === WRITABLE) startErroring(stream, error);
  else finishErroring(stream);
}

function hasInFlight(stream) {
  return stream.inFlightWrite !== null || stream.inFlightClose !== null;
}

export function startErroring(stream, reason) {
  const { controller, writer } = stream;
  stream.state = ERRORING;
  stream.error = reason;
  if (writer !== null) {
    writer.ready.reject(reason);
    if (writer.onReady !== null) writer.onReady();
  }
  if (!hasInFlight(stream) && controller.started) finishErroring(stream);
}

/** https://streams.spec.whatwg.org/#writable-stream-finish-erroring */
function finishErroring(stream) {
  stream.state = ERRORED;
  stream.controller.resetQueue();
  const { requests } = stream;
  stream.requests = new Queue();
  while (requests.length > 0) requests.shift().failed(stream.error);
  const abort = stream.pendingAbort;
  if (abort === null) {
    rejectCloseAndClosed(stream);
    return;
  }
  stream.pendingAbort = null;
  if (abort.wasAlreadyErroring) {
    abort.deferred.reject(stream.error);
    rejectCloseAndClosed(stream);
    return;
  }
  const done = () => {
    abort.deferred.resolve(undefined);
    rejectCloseAndClosed(stream);
  };
  if (stream.controller.abortAlgorithm === null) {
    done();
    return;
  }
  react(stream.controller.abort(abort.reason), done, (error) => {
    abort.deferred.reject(error);
    rejectCloseAndClosed(stream);
  });
}

function rejectCloseAndClosed(stream) {
  if (stream.closeRequest !== null) {
    stream.closeRequest.reject(stream.error);
    stream.closeRequest = null;
  }
  if (stream.writer !== null) stream.writer.closed.reject(stream.error);
}

function finishInFlightClose(stream) {
  stream.inFlightClose.resolve(undefined);
  stream.inFlightClose = null;
  if (stream.state === ERRORING) {
    stream.error = undefined;
    if (stream.pendingAbort !== null) {
      stream.pendingAbort.deferred.resolve(undefined);
      stream.pendingAbort = null;
    }
  }
  stream.state = CLOSED;
  const { writer } = stream;
  if (writer === null) return;
  writer.closed.resolve(undefined);
  if (writer.onClosed !== null) writer.onClosed();
}

function finishInFlightCloseWithError(stream, error) {
  stream.inFlightClose.reject(error);
  stream.inFlightClose = null;
  if (stream.pendingAbort !== null) {
    stream.pendingAbort.deferred.reject(error);
    stream.pendingAbort = null;
  }
  dealWithRejection(stream, error);
}

/** https://streams.spec.whatwg.org/#writable-stream-default-writer-write, without its promise. */
export function writerWrite(writer, chunk, request) {
  const { stream } = writer;
  const { controller } = stream;
  if (controller.prepare !== null && stream.state === WRITABLE && !closeQueuedOrInFlight(stream)) {
    let bytes;
    try {
      bytes = controller.prepare(chunk);
    } catch (error) {
      request.failed(error); // a chunk of the wrong kind fails its write alone
      return;
    }
    if (bytes === null) {
      request.done();
      return;
    }
    writerPut(writer, bytes, request);
  } else {
    writerPut(writer, chunk, request);
  }
}

function writerPut(writer, chunk, request) {
  const { stream } = writer;
  const { controller } = stream;
  const size = controller.sizeOf(chunk);
  if (stream !== writer.stream && IS_STRICT) {
    request.failed(writerReleasedError());
  } else if (stream.state === ERRORED) {
    request.failed(stream.error);
  } else if (closeQueuedOrInFlight(stream) || stream.state === CLOSED) {
    request.failed(closedError());
  } else if (stream.state === ERRORING) {
    request.failed(stream.error);
  } else {
    stream.requests.push(request);
    controller.write(chunk, size);
  }
}

/** https://streams.spec.whatwg.org/#writable-stream-default-writer-close-with-error-propagation */
export function closeWithErrorPropagation(writer) {
  const { stream } = writer;
  if (closeQueuedOrInFlight(stream) || stream.state === CLOSED) return resolved(undefined);
  if (stream.state === ERRORED) return rejected(stream.error);
  return closeWritable(stream);
}

export function writerDesiredSize(writer) {
  const { stream } = writer;
  if (stream.state === ERRORED || stream.state === ERRORING) return null;
  if (stream.state === CLOSED) return 0;
  return stream.controller.room();
}

export function releaseWriter(writer) {
  const { stream } = writer;
  const error = writerReleasedError();
  stream.controller.dropQueued(error);
  if (IS_STRICT || writer.ready.pending) writer.ready.reject(error);
  writer.closed.reject(error);
  stream.writer = null;
  writer.stream = null;
}

/** A pipe lets go of its destination: what it has written stays. */
export function releasePiped(writer) {
  const { stream } = writer;
  writer.onReady = writer.onClosed = null;
  stream.writer = null;
  writer.stream = null;
}

// https://streams.spec.whatwg.org/#ws-default-controller-abstract-ops

export class WritableController {
  constructor(stream, writeAlgorithm, closeAlgorithm, abortAlgorithm, mark, size) {
    this.stream = stream;
    this.queue = new Queue();
    this.sizes = size === null ? null : new Queue();
    this.total = 0;
    this.size = size;
    this.mark = mark;
    this.writeAlgorithm = writeAlgorithm;
    this.closeAlgorithm = closeAlgorithm;
    this.abortAlgorithm = abortAlgorithm;
    this.started = false;
    this.isOwn = false; // one of the platform's: its bytes are on their way (S4)
    this.interrupt = null; // for one of the platform's: abort() calls it to fail the write under way (S9)
    this.prepare = null; // for one that takes bytes: what is queued for a chunk; null is nothing; may throw
    this.abortController = null; // made when signal is read, or aborted before
    this.aborted = false;
    this.abortReason = undefined;
    this.onWritten = () => this.written();
    this.onWriteFailed = (error) => this.writeFailed(error);
    stream.controller = this;
    stream.backpressure = this.room() <= 0;
  }

  start(startAlgorithm) {
    const { stream } = this;
    if (startAlgorithm === null) {
      this.started = true;
      return;
    }
    react(
      attempt(startAlgorithm),
      () => {
        this.started = true;
        this.advance();
      },
      (error) => {
        this.started = true;
        dealWithRejection(stream, error);
      },
    );
  }

  signalAbort(reason) {
    if (this.aborted) return;
    this.aborted = true;
    this.abortReason = reason;
    if (this.abortController !== null) this.abortController.abort(reason);
  }

  signal() {
    if (this.abortController === null) {
      this.abortController = new AbortController();
      if (this.aborted) this.abortController.abort(this.abortReason);
    }
    return this.abortController.signal;
  }

  abort(reason) {
    const { abortAlgorithm } = this;
    this.clearAlgorithms();
    return abortAlgorithm === null ? undefined : attempt(abortAlgorithm, reason);
  }

  clearAlgorithms() {
    this.writeAlgorithm = this.closeAlgorithm = this.abortAlgorithm = this.size = null;
  }

  resetQueue() {
    this.queue.clear();
    if (this.sizes !== null) this.sizes.clear();
    this.total = 0;
  }

  room() {
    return this.mark - this.total;
  }

  sizeOf(chunk) {
    if (this.size === null) return 1;
    try {
      return chunkSize((0, this.size)(chunk));
    } catch (error) {
      this.errorIfNeeded(error);
      return 1;
    }
  }

  write(chunk, size) {
    const { stream } = this;
    this.queue.push(chunk);
    if (this.sizes !== null) this.sizes.push(size);
    this.total += size;
    if (!closeQueuedOrInFlight(stream) && stream.state === WRITABLE) {
      updateBackpressure(stream, this.room() <= 0);
    }
    this.advance();
  }

  close() {
    this.queue.push(CLOSE);
    if (this.sizes !== null) this.sizes.push(0);
    this.advance();
  }

  errorIfNeeded(error) {
    if (this.stream.state === WRITABLE) this.fail(error);
  }

  fail(error) {
    this.clearAlgorithms();
    startErroring(this.stream, error);
  }

  advance() {
    const { stream } = this;
    if (!this.started || stream.inFlightWrite !== null) return;
    if (stream.state === ERRORING) {
      finishErroring(stream);
      return;
    }
    if (this.queue.length === 0) return;
    const chunk = this.queue.peek();
    if (chunk === CLOSE) this.processClose();
    else this.processWrite(chunk);
  }

  processClose() {
    const { stream } = this;
    if (stream.inFlightClose !== null) return;
    stream.inFlightClose = stream.closeRequest;
    stream.closeRequest = null;
    this.dequeue();
    const { closeAlgorithm } = this;
    if (closeAlgorithm === null) {
      this.clearAlgorithms();
      finishInFlightClose(stream);
      return;
    }
    const result = attempt(closeAlgorithm);
    this.clearAlgorithms();
    react(
      result,
      () => finishInFlightClose(stream),
      (error) => finishInFlightCloseWithError(stream, error),
    );
  }

  processWrite(chunk) {
    const { stream } = this;
    stream.inFlightWrite = stream.requests.shift();
    const { writeAlgorithm } = this;
    if (writeAlgorithm !== null) react(attempt(writeAlgorithm, chunk), this.onWritten, this.onWriteFailed);
    else if (this.queue.length === 1) this.written();
    else react(undefined, this.onWritten); // one at a time, not one inside the other
  }

  /** The writer has gone: what has not begun is not written (S4). */
  dropQueued(error) {
    const { stream } = this;
    if (this.isOwn || stream.requests.length === 0) return;
    const flying = stream.inFlightWrite !== null && this.queue.length > 0;
    const first = flying ? this.queue.peek() : undefined;
    const size = flying && this.sizes !== null ? this.sizes.peek() : 1;
    const closing = stream.closeRequest !== null;
    this.resetQueue();
    if (flying) {
      this.queue.push(first);
      if (this.sizes !== null) this.sizes.push(size);
      this.total = size;
    }
    if (closing) {
      this.queue.push(CLOSE);
      if (this.sizes !== null) this.sizes.push(0);
    }
    const { requests } = stream;
    stream.requests = new Queue();
    while (requests.length > 0) requests.shift().failed(error);
    if (!closeQueuedOrInFlight(stream) && stream.state === WRITABLE) updateBackpressure(stream, this.room() <= 0);
  }

  dequeue() {
    const chunk = this.queue.shift();
    if (this.sizes !== null) this.total -= this.sizes.shift();
    else if (chunk !== CLOSE) this.total -= 1;
    if (this.total < 0) this.total = 0;
  }

  written() {
    const { stream } = this;
    stream.inFlightWrite.done();
    stream.inFlightWrite = null;
    const { state } = stream;
    this.dequeue();
    if (!closeQueuedOrInFlight(stream) && state === WRITABLE) {
      updateBackpressure(stream, this.room() <= 0);
    }
    this.advance();
  }

  writeFailed(error) {
    const { stream } = this;
    if (stream.state === WRITABLE) this.clearAlgorithms();
    stream.inFlightWrite.failed(error);
    stream.inFlightWrite = null;
    dealWithRejection(stream, error);
  }
}

/** CreateWritableStream, for our own sinks. `Controller` may be a kind of its own. */
export function setUpWritable(
  startAlgorithm, writeAlgorithm, closeAlgorithm, abortAlgorithm, mark = 1, size = null, Controller = WritableController,
) {
  const stream = new WritableRecord();
  const controller = new Controller(stream, writeAlgorithm, closeAlgorithm, abortAlgorithm, mark, size);
  controller.isOwn = true;
  controller.start(startAlgorithm);
  return stream;
}
