// pipeTo() and pipeThrough(). https://streams.spec.whatwg.org/#readable-stream-pipe-to
//
// The loop is a record that is its own read request and write request, so that a chunk costs no
// promise of ours: it reads while the destination wants more, and goes on from onReady.
//
// I1  After `shuttingDown` nothing more is read.
// I2  A chunk that was read is written before the shutdown's action runs, unless the signal has
//     aborted: then it is dropped.
// I3  An abort is acted upon in a microtask of its own, or when the chunk that is waited for comes:
//     a source may enqueue in the same turn.
// I4  On an abort the source is cancelled and let go of before the destination is aborted: what its
//     abort listeners do with the source is no business of the pipe's.
// I5  A destination whose close is under way when the pipe begins: with pipe_to_backward_propagation
//     the pipe fails at once, as the standard says; without it the pipe ends when the close does.
import { compatibilityFlags } from "../../internal/native.js";
import { Deferred, attempt, resolved, then } from "./common.js";
import { CLOSED, ERRORED, READABLE, acquireReader, cancelStream, readerRead, releaseReader } from "./readable-core.js";
import {
  CLOSED as WRITABLE_CLOSED, ERRORED as WRITABLE_ERRORED, WRITABLE, abortWritable, acquireWriter,
  closeQueuedOrInFlight, closeWithErrorPropagation, releasePiped, writerDesiredSize, writerWrite,
} from "./writable-core.js";

const FAILS_ON_CLOSING = compatibilityFlags.has("pipe_to_backward_propagation");

const closedError = () => new TypeError("This destination writable stream is closed.");

export function pipe(source, destination, options) {
  const loop = new PipeLoop(source, destination, options);
  const { preventAbort, preventCancel, preventClose, signal } = options;

  if (signal !== undefined) {
    if (signal.aborted) {
      loop.abort();
      return loop.deferred.promise;
    }
    loop.onAbort = () => then(resolved(undefined), () => loop.abort());
    signal.addEventListener("abort", loop.onAbort);
  }

  const onSourceErrored = (error) => {
    loop.shutdown(preventAbort ? null : () => abortWritable(destination, error), { error });
  };
  const onDestinationErrored = (error) => {
    loop.shutdown(preventCancel ? null : () => cancelStream(source, error), { error });
  };
  const onSourceClosed = () => {
    loop.shutdown(preventClose ? null : () => closeWithErrorPropagation(loop.writer), null);
  };

  if (source.state === ERRORED) onSourceErrored(source.error);
  else if (destination.state === WRITABLE_ERRORED) onDestinationErrored(destination.error);
  else if (source.state === CLOSED) onSourceClosed();
  else if (destination.state === WRITABLE_CLOSED || (FAILS_ON_CLOSING && closeQueuedOrInFlight(destination))) {
    onDestinationErrored(closedError());
  } else if (closeQueuedOrInFlight(destination)) {
    loop.writer.onClosed = () => loop.destinationClosed();
  }
  if (!loop.shuttingDown) {
    then(loop.reader.closed.get(), onSourceClosed, onSourceErrored);
    then(loop.writer.closed.get(), undefined, onDestinationErrored);
    loop.writer.onReady = () => loop.run();
    loop.run();
  }
  return loop.deferred.promise;
}

class PipeLoop {
  constructor(source, destination, options) {
    this.source = source;
    this.destination = destination;
    this.options = options;
    this.reader = acquireReader(source);
    this.writer = acquireWriter(destination);
    this.takesBytes = destination.controller.prepare !== null;
    this.deferred = new Deferred();
    this.shuttingDown = false;
    this.reading = false; // a read request is out
    this.inCall = false; // and readerRead() has not returned yet
    this.writes = 0; // chunks read whose write has not finished
    this.afterWrites = null;
    this.onAbort = null;
    source.disturbed = true;
  }

  run() {
    while (!this.shuttingDown && !this.reading && this.wantsMore()) {
      this.reading = this.inCall = true;
      readerRead(this.reader, this);
      this.inCall = false;
    }
  }

  wantsMore() {
    return writerDesiredSize(this.writer) > 0 && !closeQueuedOrInFlight(this.destination) && (!this.takesBytes || this.writes === 0);
  }

  chunk(value) {
    this.writes++;
    if (this.inCall) {
      this.reading = false;
      this.write(value);
      return;
    }
    // Not from inside the source's enqueue(): the sink is called in a microtask of its own.
    then(resolved(undefined), () => {
      this.reading = false;
      this.write(value);
      this.run();
    });
  }
  // `reading` stays true: the reader's closed promise brings the shutdown.
  close() {}
  error() {}

  write(value) {
    const { signal } = this.options;
    if (signal !== undefined && signal.aborted) {
      this.abort();
      this.done();
      return;
    }
    if (this.takesBytes && !isWritableChunk(value)) {
      this.refuse(new TypeError("This WritableStream only supports writing byte types."));
      this.done();
      return;
    }
    writerWrite(this.writer, value, this);
  }

  done() {
    if (--this.writes > 0) return;
    if (this.afterWrites !== null) this.afterWrites();
    else if (this.takesBytes) this.run();
  }
  failed() {
    this.done();
  }

  /** A chunk that one of the platform's own streams cannot take ends both. */
  refuse(error) {
    const { preventAbort, preventCancel } = this.options;
    const actions = [];
    if (!preventAbort) actions.push(() => abortWritable(this.destination, error));
    if (!preventCancel) actions.push(() => cancelStream(this.source, error));
    this.shutdown(() => Promise.all(actions.map((action) => action())), { error });
  }

  /** The signal has aborted (I4). Chunks that have been written are not waited for. */
  abort() {
    if (this.shuttingDown) return;
    this.shuttingDown = true;
    const { preventAbort, preventCancel, signal } = this.options;
    const { reason } = signal;
    const results = [];
    if (!preventCancel && this.source.state === READABLE) results.push(attempt(() => cancelStream(this.source, reason)));
    this.releaseSource();
    if (!preventAbort && this.destination.state === WRITABLE) {
      results.push(attempt(() => abortWritable(this.destination, reason)));
    }
    then(
      Promise.all(results),
      () => this.finalize({ error: reason }),
      (error) => this.finalize({ error }),
    );
  }

  /** A close that was under way when the pipe began is done (I5): both ends are free at once. */
  destinationClosed() {
    if (this.shuttingDown) return;
    this.shuttingDown = true;
    if (!this.options.preventCancel && this.source.state === READABLE) {
      then(resolved(attempt(() => cancelStream(this.source, closedError()))), undefined, () => {});
    }
    this.finalize(null);
  }

  /** `action` returns a promise or is null; `failure` is {error} or null. */
  shutdown(action, failure) {
    if (this.shuttingDown) return;
    this.shuttingDown = true;
    const { destination } = this;
    const act = () => {
      this.afterWrites = null;
      if (action === null) {
        this.finalize(failure);
        return;
      }
      then(
        resolved(attempt(action)),
        () => this.finalize(failure),
        (error) => this.finalize({ error }),
      );
    };
    if (this.writes > 0 && destination.state === WRITABLE && !closeQueuedOrInFlight(destination)) {
      this.afterWrites = act;
    } else {
      act();
    }
  }

  releaseSource() {
    if (this.reader.stream !== null) releaseReader(this.reader);
  }

  finalize(failure) {
    if (this.writer.stream !== null) releasePiped(this.writer);
    this.releaseSource();
    if (this.onAbort !== null) this.options.signal.removeEventListener("abort", this.onAbort);
    if (failure === null) this.deferred.resolve(undefined);
    else this.deferred.reject(failure.error);
  }
}

const isWritableChunk = (chunk) =>
  typeof chunk === "string" || ArrayBuffer.isView(chunk) || chunk instanceof ArrayBuffer || chunk === undefined ||
  (typeof SharedArrayBuffer === "function" && chunk instanceof SharedArrayBuffer);
