// Records and operations of readable streams and of their default controller.
// https://streams.spec.whatwg.org/#rs-abstract-ops
//
// A controller record has these methods, whatever its kind (default here, bytes in
// readable-bytes.js, a native source in readable-pull.js):
//     pull(request)     serve one read request ([[PullSteps]])
//     cancel(reason)    returns undefined or a promise ([[CancelSteps]])
//     release()         the reader has let go ([[ReleaseSteps]])
// A read request has chunk(value), close(value) and error(reason).
import { LazyPromise, Queue, attempt, chunkSize, react, rejected, resolved, then } from "./common.js";

export const READABLE = 0;
export const CLOSED = 1;
export const ERRORED = 2;

export class StreamRecord {
  constructor() {
    this.state = READABLE;
    this.disturbed = false;
    this.reader = null; // ReaderRecord, or null
    this.controller = null;
    this.error = undefined;
    this.object = null; // the ReadableStream, where there is one
    this.isBytes = false; // has a BYOB reader
    this.length = null; // bytes that will come, where known
  }
}

export class ReaderRecord {
  constructor(stream, isByob) {
    this.stream = stream;
    this.isByob = isByob;
    this.requests = new Queue(); // read requests, or read-into requests
    this.closed = new LazyPromise();
    stream.reader = this;
    if (stream.state === CLOSED) this.closed.resolve(undefined);
    else if (stream.state === ERRORED) this.closed.reject(stream.error);
  }
}

export const isLocked = (stream) => stream.reader !== null;

export const lockedError = () => new TypeError("This ReadableStream is currently locked to a reader.");
const releasedError = () => new TypeError("This ReadableStream reader has been released.");

/** AcquireReadableStreamDefaultReader, as a record. */
export function acquireReader(stream) {
  if (stream.reader !== null) throw lockedError();
  return new ReaderRecord(stream, false);
}

/** https://streams.spec.whatwg.org/#readable-stream-cancel: undefined or a promise. */
export function cancelStream(stream, reason) {
  stream.disturbed = true;
  if (stream.state === CLOSED) return resolved(undefined);
  if (stream.state === ERRORED) return rejected(stream.error);
  stream.controller.cancelPending(reason);
  closeStream(stream);
  const result = attempt((value) => stream.controller.cancel(value), reason);
  return then(resolved(result), () => undefined);
}

export function closeStream(stream) {
  stream.state = CLOSED;
  const { reader } = stream;
  if (reader === null) return;
  reader.closed.resolve(undefined);
  if (!reader.isByob && reader.requests.length > 0) {
    const { requests } = reader;
    reader.requests = new Queue();
    while (requests.length > 0) requests.shift().close(undefined);
  }
}

export function errorStream(stream, error) {
  stream.state = ERRORED;
  stream.error = error;
  const { reader } = stream;
  if (reader === null) return;
  reader.closed.reject(error);
  failRequests(reader, error);
}

export function failRequests(reader, error) {
  const { requests } = reader;
  if (requests.length === 0) return;
  reader.requests = new Queue();
  while (requests.length > 0) requests.shift().error(error);
}

/** https://streams.spec.whatwg.org/#readable-stream-default-reader-read */
export function readerRead(reader, request) {
  const { stream } = reader;
  stream.disturbed = true;
  if (stream.state === READABLE) stream.controller.pull(request);
  else if (stream.state === CLOSED) request.close(undefined);
  else request.error(stream.error);
}

/** https://streams.spec.whatwg.org/#abstract-opdef-readablestreamdefaultreaderrelease, both kinds */
export function releaseReader(reader) {
  const { stream } = reader;
  const error = releasedError();
  reader.closed.reject(error);
  stream.controller.release();
  stream.reader = null;
  reader.stream = null;
  failRequests(reader, error);
}

export { releasedError };

/**
 * What default and byte controllers share: when the source is pulled. A subclass has room(), what
 * its strategy still wants, and fail(error).
 */
export class SourceController {
  /** The algorithms take what the standard's take and return undefined or a promise, or are null. */
  constructor(stream, pullAlgorithm, cancelAlgorithm, mark) {
    this.stream = stream;
    this.queue = new Queue();
    this.total = 0; // of the sizes in the queue
    this.mark = mark;
    this.pullAlgorithm = pullAlgorithm;
    this.cancelAlgorithm = cancelAlgorithm;
    this.started = false;
    this.closeRequested = false;
    this.pulling = false;
    this.pullAgain = false;
    this.onPulled = null;
    this.onPullFailed = null;
    stream.controller = this;
  }

  /** Runs the start algorithm (or takes null), then begins to pull. */
  start(startAlgorithm) {
    if (startAlgorithm === null) {
      this.started = true;
      this.pullIfNeeded();
      return;
    }
    react(
      attempt(startAlgorithm),
      () => {
        this.started = true;
        this.pullIfNeeded();
      },
      (error) => this.fail(error),
    );
  }

  release() {}
  cancelPending() {}

  canCloseOrEnqueue() {
    return !this.closeRequested && this.stream.state === READABLE;
  }

  /** What the strategy still has room for; null once errored. */
  desiredSize() {
    const { state } = this.stream;
    if (state === ERRORED) return null;
    return state === CLOSED ? 0 : this.room();
  }

  shouldPull() {
    if (!this.started || !this.canCloseOrEnqueue()) return false;
    const { reader } = this.stream;
    return (reader !== null && reader.requests.length > 0) || this.room() > 0;
  }

  pullIfNeeded() {
    if (this.pullAlgorithm === null || !this.shouldPull()) return;
    if (this.pulling) {
      this.pullAgain = true;
      return;
    }
    this.pulling = true;
    if (this.onPulled === null) {
      this.onPulled = () => {
        this.pulling = false;
        if (this.pullAgain) {
          this.pullAgain = false;
          this.pullIfNeeded();
        }
      };
      this.onPullFailed = (error) => this.fail(error);
    }
    react(attempt(this.pullAlgorithm), this.onPulled, this.onPullFailed);
  }

  cancel(reason) {
    this.resetQueue();
    const { cancelAlgorithm } = this;
    this.clearAlgorithms();
    return cancelAlgorithm === null ? undefined : cancelAlgorithm(reason);
  }

  fail(error) {
    if (this.stream.state !== READABLE) return;
    this.resetQueue();
    this.clearAlgorithms();
    errorStream(this.stream, error);
  }

  clearAlgorithms() {
    this.pullAlgorithm = this.cancelAlgorithm = null;
  }
}

// https://streams.spec.whatwg.org/#rs-default-controller-abstract-ops

export class DefaultController extends SourceController {
  /** `size` null means that every chunk counts 1. */
  constructor(stream, pullAlgorithm, cancelAlgorithm, mark, size) {
    super(stream, pullAlgorithm, cancelAlgorithm, mark);
    this.sizes = size === null ? null : new Queue();
    this.size = size;
  }

  room() {
    return this.mark - (this.sizes === null ? this.queue.length : this.total);
  }

  clearAlgorithms() {
    this.pullAlgorithm = this.cancelAlgorithm = this.size = null;
  }

  resetQueue() {
    this.queue.clear();
    if (this.sizes !== null) this.sizes.clear();
    this.total = 0;
  }

  pull(request) {
    if (this.queue.length > 0) {
      request.chunk(this.next());
    } else {
      this.stream.reader.requests.push(request);
      this.pullIfNeeded();
    }
  }

  /** The first chunk of a queue that is not empty, for a read. */
  next() {
    const chunk = this.take();
    if (this.closeRequested && this.queue.length === 0) {
      this.clearAlgorithms();
      closeStream(this.stream);
    } else {
      this.pullIfNeeded();
    }
    return chunk;
  }

  take() {
    if (this.sizes !== null) {
      this.total -= this.sizes.shift();
      if (this.total < 0) this.total = 0;
    }
    return this.queue.shift();
  }

  enqueue(chunk) {
    const { stream } = this;
    if (!this.canCloseOrEnqueue()) return;
    if (stream.reader !== null && stream.reader.requests.length > 0) {
      stream.reader.requests.shift().chunk(chunk);
    } else {
      if (this.size !== null) {
        let size;
        try {
          size = chunkSize((0, this.size)(chunk));
        } catch (error) {
          this.fail(error);
          throw error;
        }
        if (!this.canCloseOrEnqueue()) return; // size() has ended the stream
        this.sizes.push(size);
        this.total += size;
      }
      this.queue.push(chunk);
    }
    this.pullIfNeeded();
  }

  close() {
    if (!this.canCloseOrEnqueue()) return;
    this.closeRequested = true;
    if (this.queue.length === 0) {
      this.clearAlgorithms();
      closeStream(this.stream);
    }
  }
}
