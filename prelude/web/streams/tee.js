// Splitting a stream in two. https://streams.spec.whatwg.org/#readable-stream-tee
import { LazyPromise, markHandled, resolved, then } from "./common.js";
import {
  DefaultController, READABLE, ReaderRecord, StreamRecord, acquireReader, cancelStream, lockedError, readerRead,
  releaseReader,
} from "./readable-core.js";
import { ByteController, viewInfo } from "./readable-bytes.js";
import { PullController, pullStream } from "./readable-pull.js";

export function tee(stream) {
  if (stream.reader !== null) throw lockedError();
  if (stream.controller instanceof PullController) return pullTee(stream);
  if (stream.controller instanceof ByteController) return byteTee(stream);
  return defaultTee(stream);
}

/** What both kinds share: the source is cancelled when both branches are (S7). */
class Canceller {
  constructor(stream) {
    this.stream = stream;
    this.canceled = [false, false];
    this.promise = new LazyPromise();
  }
  get both() {
    return this.canceled[0] && this.canceled[1];
  }
  get any() {
    return this.canceled[0] || this.canceled[1];
  }
  cancel(index, reason) {
    this.canceled[index] = true;
    if (!this.both) return undefined;
    const promise = this.promise.get();
    const result = cancelStream(this.stream, reason);
    then(resolved(result), () => this.promise.resolve(undefined), (error) => this.promise.reject(error));
    return promise;
  }
}

/** Tells the branches when the source fails between reads. */
function onSourceError(reader, handler) {
  const closed = reader.closed.get();
  markHandled(closed);
  then(closed, undefined, handler);
}

/** https://streams.spec.whatwg.org/#abstract-opdef-readablestreamdefaulttee */
function defaultTee(stream) {
  const reader = acquireReader(stream);
  const canceller = new Canceller(stream);
  let reading = false;
  let readAgain = false;
  const branches = [];

  const request = {
    chunk(value) {
      // One microtask later, so that an error of the source is seen by both branches in order.
      then(resolved(undefined), () => {
        readAgain = false;
        for (let i = 0; i < 2; i++) if (!canceller.canceled[i]) branches[i].enqueue(value);
        reading = false;
        if (readAgain) pull();
      });
    },
    close() {
      reading = false;
      for (let i = 0; i < 2; i++) if (!canceller.canceled[i]) branches[i].close();
      if (!canceller.both) canceller.promise.resolve(undefined);
    },
    error() {
      reading = false;
    },
  };
  const pull = () => {
    if (reading) {
      readAgain = true;
      return;
    }
    reading = true;
    readerRead(reader, request);
  };

  const streams = [new StreamRecord(), new StreamRecord()];
  for (let i = 0; i < 2; i++) {
    branches[i] = new DefaultController(streams[i], pull, (reason) => canceller.cancel(i, reason), 1, null);
  }
  for (const branch of branches) branch.start(null);
  onSourceError(reader, (error) => {
    for (const branch of branches) branch.fail(error);
    if (!canceller.both) canceller.promise.resolve(undefined);
  });
  return streams;
}

/**
 * https://streams.spec.whatwg.org/#abstract-opdef-readablebytestreamtee
 * As on the platform, what is queued at once is one chunk for a branch, however it was enqueued.
 */
function byteTee(stream) {
  stream.controller.gathers = true;
  let reader = acquireReader(stream);
  const canceller = new Canceller(stream);
  const again = [false, false];
  let reading = false;
  const branches = [];

  const watch = (current) => {
    onSourceError(current, (error) => {
      if (current !== reader) return;
      for (const branch of branches) branch.fail(error);
      if (!canceller.both) canceller.promise.resolve(undefined);
    });
  };
  const switchReader = (isByob) => {
    if (reader.isByob === isByob) return;
    const old = reader;
    reader = null; // the old reader's rejection is not the source's
    releaseReader(old);
    reader = new ReaderRecord(stream, isByob);
    watch(reader);
  };
  const failBoth = (error) => {
    for (const branch of branches) branch.fail(error);
    const result = cancelStream(stream, error);
    then(resolved(result), () => canceller.promise.resolve(undefined), (e) => canceller.promise.reject(e));
  };
  const afterRead = () => {
    reading = false;
    if (again[0]) pull(0);
    else if (again[1]) pull(1);
  };
  const put = (branch, view) => {
    const { buffer, byteOffset, byteLength } = viewInfo(view);
    branch.enqueue(buffer, byteOffset, byteLength);
  };

  const defaultRequest = {
    chunk(chunk) {
      then(resolved(undefined), () => {
        again[0] = again[1] = false;
        let second = chunk;
        if (!canceller.any) {
          try {
            second = new Uint8Array(chunk);
          } catch (error) {
            failBoth(error);
            return;
          }
        }
        if (!canceller.canceled[0]) put(branches[0], chunk);
        if (!canceller.canceled[1]) put(branches[1], second);
        afterRead();
      });
    },
    close() {
      reading = false;
      for (let i = 0; i < 2; i++) if (!canceller.canceled[i]) branches[i].close();
      if (!canceller.both) canceller.promise.resolve(undefined);
    },
    error() {
      reading = false;
    },
  };

  const pullDefault = () => {
    switchReader(false);
    readerRead(reader, defaultRequest);
  };

  const pullByob = (view, forSecond) => {
    switchReader(true);
    const byob = branches[forSecond ? 1 : 0];
    const other = branches[forSecond ? 0 : 1];
    const isCanceled = (branch) => canceller.canceled[branch === branches[0] ? 0 : 1];
    const request = {
      chunk(chunk) {
        then(resolved(undefined), () => {
          again[0] = again[1] = false;
          if (!isCanceled(other)) {
            let clone;
            try {
              clone = new Uint8Array(chunk);
            } catch (error) {
              failBoth(error);
              return;
            }
            if (!isCanceled(byob)) byob.respondWithNewView(chunk);
            put(other, clone);
          } else if (!isCanceled(byob)) {
            byob.respondWithNewView(chunk);
          }
          afterRead();
        });
      },
      close(chunk) {
        reading = false;
        // The memory that the branch's read has lent to the source comes back with the end.
        if (chunk !== undefined && byob.pending.length > 0) byob.pending[0].buffer = viewInfo(chunk).buffer;
        if (!isCanceled(byob)) byob.close();
        if (!isCanceled(other)) other.close();
        if (!canceller.both) canceller.promise.resolve(undefined);
      },
      error() {
        reading = false;
      },
    };
    stream.disturbed = true;
    stream.controller.pullInto(viewInfo(view), 1, request);
  };

  const pull = (index) => {
    if (reading) {
      again[index] = true;
      return;
    }
    reading = true;
    // A source that serves default readers from buffers of its own need not know of the branch's.
    const byobRequest = stream.controller.autoAllocateChunkSize === undefined ? branches[index].getByobRequest() : null;
    if (byobRequest === null || stream.state !== READABLE) pullDefault();
    else pullByob(byobRequest.view, index === 1);
  };

  const streams = [new StreamRecord(), new StreamRecord()];
  for (let i = 0; i < 2; i++) {
    branches[i] = new ByteController(
      streams[i],
      () => pull(i),
      (reason) => canceller.cancel(i, reason),
      0,
      undefined,
    );
  }
  for (const branch of branches) {
    branch.gathers = true;
    branch.start(null);
  }
  watch(reader);
  return streams;
}

/**
 * A native source feeds two streams of the same kind: what one branch reads, the other keeps until
 * it is read there. Chunks are copied for the second branch, as scripts may write to them.
 */
function pullTee(stream) {
  const reader = acquireReader(stream);
  stream.disturbed = true;
  const { controller } = stream;
  const canceller = new Canceller(stream);
  const kept = [[], []];
  let ended = false;
  let failure = null;
  let reading = null; // the promise of the read under way

  const share = (chunk) => {
    if (chunk === null || chunk === undefined) {
      ended = true;
      stream.controller.finish();
      if (!canceller.both) canceller.promise.resolve(undefined);
      return;
    }
    if (!canceller.canceled[0]) kept[0].push(chunk);
    if (!canceller.canceled[1]) kept[1].push(canceller.canceled[0] ? chunk : new Uint8Array(chunk));
  };
  const failed = (error) => {
    failure = { error };
    controller.fail(error);
    if (!canceller.both) canceller.promise.resolve(undefined);
  };
  const pull = (index) => () => {
    for (;;) {
      if (kept[index].length > 0) return kept[index].shift();
      if (failure !== null) throw failure.error;
      if (ended) return null;
      if (reading !== null) return then(reading, pull(index));
      let chunk;
      try {
        chunk = controller.next();
      } catch (error) {
        failed(error);
        throw error;
      }
      if (chunk === null || chunk instanceof Uint8Array) {
        share(chunk);
        continue;
      }
      reading = then(
        resolved(chunk),
        (value) => {
          reading = null;
          if (!canceller.both) share(value);
        },
        (error) => {
          reading = null;
          if (!canceller.both) failed(error);
        },
      );
    }
  };
  const branch = (index) =>
    pullStream(pull(index), (reason) => {
      kept[index].length = 0;
      return canceller.cancel(index, reason);
    });
  void reader; // holds the lock for good
  return [branch(0), branch(1)];
}
