// A transform from bytes to bytes whose work is done by C: compression, HTML rewriting.
//
// The writable side takes bytes and strings (as UTF-8), the readable side is a byte stream. Output
// is kept until it is read; writes wait while more than LIMIT bytes of it are kept.
import { Deferred, reasonError, resolved, then } from "./common.js";
import { pullStream } from "./readable-pull.js";
import { ERRORED, ERRORING, setUpWritable } from "./writable-core.js";
import { inputOrNothing } from "./identity.js";

const LIMIT = 256 * 1024;

export class ByteTransform {
  /**
   * `worker` has transform(bytes, output) and flush(output), which call output.push(bytes) and
   * return undefined or a promise, and close(), called once at the end, however it comes.
   */
  constructor(worker) {
    this.worker = worker;
    this.chunks = [];
    this.size = 0;
    this.ended = false;
    this.failure = null;
    this.reader = null; // Deferred of a read that waits
    this.room = null; // Deferred of a writer that waits
    this.readable = pullStream(
      () => this.pull(),
      (reason) => this.cancel(reason),
    );
    this.writable = setUpWritable(
      null,
      (bytes) => this.write(bytes),
      () => this.close(),
      (reason) => this.fail(reasonError(reason, "Network connection lost.")),
    );
    this.writable.controller.prepare = inputOrNothing;
    this.writable.controller.interrupt = (reason) => this.room?.reject(reason);
  }

  // For the worker.

  push(bytes) {
    if (bytes.byteLength === 0 || this.failure !== null) return;
    if (this.reader !== null) {
      const { reader } = this;
      this.reader = null;
      reader.resolve(bytes);
      return;
    }
    this.chunks.push(bytes);
    this.size += bytes.byteLength;
  }

  /** undefined if more output may be made now, otherwise a promise to wait for. */
  wait() {
    if (this.failure !== null) throw this.failure.error;
    if (this.size <= LIMIT) return undefined;
    this.room ??= new Deferred();
    return this.room.promise;
  }

  // The writable side.

  write(bytes) {
    if (this.failure !== null) throw this.failure.error;
    return this.guard(() => this.worker.transform(bytes, this), () => this.wait());
  }

  close() {
    if (this.failure !== null) throw this.failure.error;
    return this.guard(() => this.worker.flush(this), () => this.end());
  }

  /** Runs `step`, then `next`; a failure fails both sides. */
  guard(step, next) {
    let result;
    try {
      result = step();
    } catch (error) {
      this.fail(error);
      throw error;
    }
    if (result === undefined) return next();
    return then(resolved(result), next, (error) => {
      this.fail(error);
      throw error;
    });
  }

  end() {
    if (this.failure !== null) throw this.failure.error;
    this.ended = true;
    this.worker.close();
    if (this.reader !== null) this.reader.resolve(null);
    this.reader = null;
  }

  fail(error) {
    if (this.failure !== null) return;
    this.failure = { error };
    this.chunks = [];
    this.worker.close();
    if (this.room !== null) this.room.reject(error);
    if (this.reader !== null) this.reader.reject(error);
    else this.readable.controller.fail(error);
    this.reader = this.room = null;
  }

  // The readable side.

  pull() {
    if (this.chunks.length > 0) {
      const chunk = this.chunks.shift();
      this.size -= chunk.byteLength;
      if (this.room !== null && this.size <= LIMIT) {
        this.room.resolve(undefined);
        this.room = null;
      }
      return chunk;
    }
    if (this.failure !== null) throw this.failure.error;
    if (this.ended) return null;
    this.reader = new Deferred();
    return this.reader.promise;
  }

  cancel(given) {
    const reason = reasonError(given, "Stream was cancelled.");
    const { writable } = this;
    const waiting = this.room;
    if (this.failure === null) {
      this.failure = { error: reason };
      this.chunks = [];
      if (!this.ended) this.worker.close();
    }
    if (waiting !== null) waiting.reject(reason);
    else if (writable.state !== ERRORED && writable.state !== ERRORING) writable.controller.errorIfNeeded(reason);
    this.room = null;
  }
}
