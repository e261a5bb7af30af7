// What the rest of the prelude does with streams without their public objects: bodies, responses,
// sockets. Scripts never see any of this.
//
//     createByteStreamFromPull(pull, cancel, handle?)  a byte stream over a source of chunks
//     createWritableFromSink(sink, mark?)              a WritableStream over {write, close, abort}
//     readAllBytes(stream), readAllText(stream)        promises of everything that is left
//     readChunks(stream, onChunk)                      the same, chunk by chunk
//     pumpTo(stream, sink)                             everything into {write, close, abort}
//     isDisturbed(stream), isLocked(stream)
//     nativeSource(stream)                             the handle behind an untouched stream, or null
//     knownLength(stream)                              bytes that will come, or null
//     teeStream(stream)                                [a, b]
//     cancelQuietly(stream, reason)
//
// A body stream carries bytes: chunks must be Uint8Arrays or other BufferSources. A string or
// anything else is a TypeError that cancels the stream, as on the platform.
import { concat } from "./concat.js";
import { isFlagOff, native } from "../../internal/native.js";
import { Deferred, attempt, markHandled, rejected, resolved, then } from "./common.js";
import { ERRORED, acquireReader, cancelStream, readerRead, releaseReader } from "./readable-core.js";
import { PullController, pullStream } from "./readable-pull.js";
import { ReadableStream, recordOf, streamObject } from "./readable.js";
import { setUpWritable } from "./writable-core.js";
import { WritableStream, writableObject, writableRecord } from "./writable.js";
import { tee } from "./tee.js";

const DROPS_MARK = !isFlagOff("strip_bom_in_read_all_text");

export const isReadableStream = (value) => recordOf(value) !== null;
export const isWritableStream = (value) => writableRecord(value) !== null;

/**
 * A byte ReadableStream over a native source.
 * @param {() => Uint8Array | null | Promise<Uint8Array | null>} pull called once per wanted chunk,
 *     never while a promise it returned is pending; null is the end; it may throw or reject.
 *     The stream owns the array.
 * @param {(reason) => void | Promise<void>} [cancel] called at most once, not after the end.
 * @param [handle] what nativeSource() gives out: whoever takes it owns the source from then on.
 */
export function createByteStreamFromPull(pull, cancel, handle = null, length = null) {
  const record = pullStream(pull, cancel, handle);
  record.length = length;
  return streamObject(record);
}

/** A byte ReadableStream of one chunk (or none), made without copying. */
export function createByteStreamFromBytes(bytes) {
  let rest = bytes;
  const stream = createByteStreamFromPull(() => {
    const chunk = rest;
    rest = null;
    return chunk;
  });
  recordOf(stream).length = bytes.byteLength;
  return stream;
}

/** A WritableStream over an object with write(chunk), close() and abort(reason), all optional. */
export function createWritableFromSink(sink, mark = 1, size = null) {
  const bind = (name) => (sink[name] === undefined ? null : (argument) => sink[name](argument));
  return writableObject(setUpWritable(null, bind("write"), bind("close"), bind("abort"), mark, size));
}

export const isLocked = (stream) => recordOf(stream).reader !== null;
export const isDisturbed = (stream) => recordOf(stream).disturbed;
/** What util.inspect() tells of a stream; null of anything else. */
export function streamState(value) {
  const record = recordOf(value);
  if (record !== null) {
    const length = expectedLength(value);
    return {
      state: ["readable", "closed", "errored"][record.state],
      supportsBYOB: record.isBytes,
      length: length === null ? undefined : BigInt(length),
    };
  }
  const writable = writableRecord(value);
  if (writable === null) return null;
  return { state: ["writable", "closed", "erroring", "errored"][writable.state], expectsBytes: writable.controller.prepare !== null };
}
export const isErrored = (stream) => recordOf(stream).state === ERRORED;
export const knownLength = (stream) => recordOf(stream).length ?? null;
/** The same, or what its maker has promised, which nobody has checked. */
export const expectedLength = (stream) => recordOf(stream).expected ?? knownLength(stream);

export function teeStream(stream) {
  const record = recordOf(stream);
  const length = record.length ?? null;
  const branches = tee(record);
  for (const branch of branches) branch.length = length;
  return branches.map(streamObject);
}

/** Cancels a stream that nobody else reads; what its source throws is dropped. */
export function cancelQuietly(stream, reason) {
  const record = recordOf(stream);
  if (record.reader === null) markHandled(cancelStream(record, reason));
}

/**
 * The native handle of a stream that no script has touched, or null, also if accept(handle) is
 * false. Taking it locks the stream for good: its bytes go elsewhere and never enter JavaScript.
 */
export function nativeSource(stream, accept) {
  const record = recordOf(stream);
  const { controller } = record;
  if (!(controller instanceof PullController) || controller.handle === null) return null;
  if (record.disturbed || record.reader !== null || controller.rest !== null || controller.waiting) return null;
  const { handle } = controller;
  if (!accept(handle)) return null;
  record.disturbed = true;
  acquireReader(record);
  controller.source = controller.onCancel = controller.handle = null;
  return handle;
}

/** A chunk of a body as a Uint8Array; throws the platform's TypeError for anything but bytes. */
export function bodyChunk(chunk) {
  if (chunk instanceof Uint8Array) return chunk;
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk);
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  throw new TypeError("This ReadableStream did not return bytes.");
}

/**
 * Moves a stream into a sink, which is told close() at the end or abort(reason) on failure.
 * write(chunk) gets a Uint8Array and returns undefined to get the next one at once, or a promise to
 * wait for (back-pressure); if it throws or rejects, the stream is cancelled with that reason.
 * Returns a promise of undefined, rejected if the stream or the sink failed.
 */
export function pumpTo(stream, sink) {
  const record = recordOf(stream);
  if (record.reader !== null) return rejected(new TypeError("This ReadableStream is currently locked to a reader."));
  return new Pump(record, sink).start();
}

class Pump {
  constructor(stream, sink) {
    this.stream = stream;
    this.sink = sink;
    this.reader = acquireReader(stream);
    this.deferred = new Deferred();
    this.inCall = false;
    this.answered = false; // the read in progress answered before it returned
    this.finished = false;
    this.onWritten = () => this.run();
    this.onFailed = (error) => this.sinkFailed(error);
  }

  start() {
    this.run();
    return this.deferred.promise;
  }

  /** Reads until something must be waited for. */
  run() {
    do {
      this.answered = false;
      this.inCall = true;
      readerRead(this.reader, this);
      this.inCall = false;
    } while (this.answered && !this.finished);
  }

  chunk(value) {
    let waiting;
    try {
      waiting = this.sink.write(bodyChunk(value));
    } catch (error) {
      this.sinkFailed(error);
      return;
    }
    if (waiting !== undefined) then(resolved(waiting), this.onWritten, this.onFailed);
    else if (this.inCall) this.answered = true;
    else this.run();
  }

  close() {
    this.finish(attempt(() => this.sink.close?.()), null);
  }

  error(reason) {
    this.finish(attempt(() => this.sink.abort?.(reason)), { error: reason });
  }

  sinkFailed(error) {
    if (this.finished) return;
    markHandled(cancelStream(this.stream, error));
    this.finish(attempt(() => this.sink.abort?.(error)), { error });
  }

  finish(result, failure) {
    if (this.finished) return;
    this.finished = true;
    releaseReader(this.reader);
    const { deferred } = this;
    if (failure !== null) {
      if (result !== undefined) markHandled(resolved(result));
      deferred.reject(failure.error);
    } else {
      deferred.resolve(result);
    }
  }
}

/** Calls onChunk(Uint8Array) for all that is left; a promise of undefined. */
export function readChunks(stream, onChunk) {
  return pumpTo(stream, { write: onChunk });
}

/** All bytes that are left, in one Uint8Array. `limit` bytes at most (a RangeError beyond). */
export function readAllBytes(stream, limit = Infinity) {
  const chunks = [];
  let size = 0;
  const done = pumpTo(stream, {
    write(chunk) {
      size += chunk.byteLength;
      if (size > limit) throw new RangeError(`The body is larger than the limit of ${limit} bytes.`);
      chunks.push(chunk);
    },
  });
  return then(done, () => concat(chunks, size));
}

/** All that is left as text: UTF-8, a byte order mark removed. */
export function readAllText(stream, limit = Infinity) {
  return then(readAllBytes(stream, limit), (bytes) => {
    const text = native.utf8Decode(bytes);
    return text.charCodeAt(0) === 0xfeff && DROPS_MARK ? text.slice(1) : text;
  });
}

export { ReadableStream, WritableStream };
