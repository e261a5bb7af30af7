// pipeTo() and pipeThrough(). https://streams.spec.whatwg.org/#readable-stream-pipe-to
//
// The loop is a record that is its own read request and write request, so that a chunk costs no
// promise of ours: it reads while the destination wants more, and goes on from onReady.
//
// I1  After `shuttingDown` nothing more is read.
// I2  A chunk that was read is written before the shutdown's action runs.
import { Deferred, attempt, resolved, then } from "./common.js";
import { CLOSED, ERRORED, READABLE, acquireReader, cancelStream, readerRead, releaseReader } from "./readable-core.js";
import {
  CLOSED as WRITABLE_CLOSED, ERRORED as WRITABLE_ERRORED, WRITABLE, abortWritable, acquireWriter,
  closeQueuedOrInFlight, closeWithErrorPropagation, releaseWriter, writerDesiredSize, writerWrite,
} from "./writable-core.js";

export function pipe(source, destination, { preventAbort, preventCancel, preventClose, signal }) {
  const loop = new PipeLoop(source, destination);
  const { deferred } = loop;

  if (signal !== undefined) {
    const onAbort = () => {
      const { reason } = signal;
      const actions = [];
      if (!preventAbort && destination.state === WRITABLE) {
        actions.push(() => abortWritable(destination, reason));
      }
      if (!preventCancel && source.state === READABLE) actions.push(() => cancelStream(source, reason));
      const both = () => Promise.all(actions.map((action) => action()));
      loop.shutdown(both, { error: reason });
    };
    if (signal.aborted) {
      onAbort();
      return deferred.promise;
    }
    loop.signal = signal;
    loop.onAbort = onAbort;
    signal.addEventListener("abort", onAbort);
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
  else if (closeQueuedOrInFlight(destination) || destination.state === WRITABLE_CLOSED) {
    const error = new TypeError("This destination writable stream is closed.");
    loop.shutdown(preventCancel ? null : () => cancelStream(source, error), { error });
  }
  if (!loop.shuttingDown) {
    then(loop.reader.closed.get(), onSourceClosed, onSourceErrored);
    then(loop.writer.closed.get(), undefined, onDestinationErrored);
    loop.writer.onReady = () => loop.run();
    loop.run();
  }
  return deferred.promise;
}

class PipeLoop {
  constructor(source, destination) {
    this.source = source;
    this.destination = destination;
    this.reader = acquireReader(source);
    this.writer = acquireWriter(destination);
    this.deferred = new Deferred();
    this.shuttingDown = false;
    this.reading = false; // a read request is out
    this.inCall = false; // and readerRead() has not returned yet
    this.writes = 0; // chunks read whose write has not finished
    this.afterWrites = null;
    this.signal = null;
    this.onAbort = null;
    source.disturbed = true;
  }

  run() {
    while (!this.shuttingDown && !this.reading && writerDesiredSize(this.writer) > 0) {
      this.reading = this.inCall = true;
      readerRead(this.reader, this);
      this.inCall = false;
    }
  }

  chunk(value) {
    this.writes++;
    if (this.inCall) {
      this.reading = false;
      writerWrite(this.writer, value, this);
      return;
    }
    // Not from inside the source's enqueue(): the sink is called in a microtask of its own.
    then(resolved(undefined), () => {
      this.reading = false;
      writerWrite(this.writer, value, this);
      this.run();
    });
  }
  // `reading` stays true: the reader's closed promise brings the shutdown.
  close() {}
  error() {}

  done() {
    if (--this.writes === 0 && this.afterWrites !== null) this.afterWrites();
  }
  failed() {
    this.done();
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

  finalize(failure) {
    this.writer.onReady = null;
    releaseWriter(this.writer);
    releaseReader(this.reader);
    if (this.signal !== null) this.signal.removeEventListener("abort", this.onAbort);
    if (failure === null) this.deferred.resolve(undefined);
    else this.deferred.reject(failure.error);
  }
}
