// TransformStream. https://streams.spec.whatwg.org/#ts
import { finishInterface } from "../../internal/interface.js";
import { isFlagOff } from "../../internal/native.js";
import {
  Deferred, INTERNAL, LazyPromise, attempt, callback, dictionary, highWaterMark, illegalConstructor,
  illegalInvocation, isObject, queuingStrategy, react, resolved, then, enforceRange } from "./common.js";
import { DefaultController, ERRORED, StreamRecord } from "./readable-core.js";
import { ERRORED as WRITABLE_ERRORED, ERRORING, setUpWritable } from "./writable-core.js";
import { identityPipe } from "./identity.js";
import { streamObject } from "./readable.js";
import { writableObject } from "./writable.js";

const IS_STANDARD = !isFlagOff("transformstream_enable_standard_constructor");
const HAS_BACKPRESSURE = !isFlagOff("fixup-transform-stream-backpressure");

export class TransformRecord {
  /** `transform(chunk)`, `flush()` and `cancel(reason)` return undefined or a promise, or are null. */
  constructor(transform, flush, cancel) {
    this.transform = transform;
    this.flush = flush;
    this.cancel = cancel;
    this.readable = null;
    this.writable = null;
    this.output = null; // the readable side's controller
    this.backpressure = true;
    this.change = new LazyPromise(); // of backpressure
    this.finishing = null; // Deferred of a close, cancel or abort under way
  }

  setUp(startPromise, writableMark, writableSize, readableMark, readableSize) {
    const start = () => startPromise;
    this.writable = setUpWritable(
      start,
      (chunk) => this.write(chunk),
      () => this.close(),
      (reason) => this.abort(reason),
      writableMark,
      writableSize,
    );
    this.writable.controller.isOwn = false;
    this.readable = new StreamRecord();
    this.output = new DefaultController(
      this.readable,
      () => this.pull(),
      (reason) => this.cancelReadable(reason),
      readableMark,
      readableSize,
    );
    this.output.start(start);
  }

  setBackpressure(backpressure) {
    const { change } = this;
    change.resolve(undefined);
    change.reset();
    this.backpressure = backpressure;
  }

  clearAlgorithms() {
    this.transform = this.flush = this.cancel = null;
  }

  /** https://streams.spec.whatwg.org/#transform-stream-error */
  error(error) {
    this.output.fail(error);
    this.errorWritable(error);
  }

  errorWritable(error) {
    this.clearAlgorithms();
    this.writable.controller.errorIfNeeded(error);
    if (this.backpressure) this.setBackpressure(false);
  }

  // The controller's operations.

  enqueue(chunk) {
    const { output } = this;
    if (!output.canCloseOrEnqueue()) throw new TypeError("The readable side is not in a state that permits enqueue.");
    try {
      output.enqueue(chunk);
    } catch (error) {
      this.errorWritable(error);
      throw this.readable.error;
    }
    const backpressure = !output.shouldPull();
    if (HAS_BACKPRESSURE && backpressure !== this.backpressure) this.setBackpressure(true);
  }

  terminate() {
    this.output.close();
    this.errorWritable(new TypeError("The transform stream has been terminated."));
  }

  performTransform(chunk) {
    const { transform } = this;
    if (transform === null) {
      this.enqueue(chunk);
      return undefined;
    }
    let result;
    try {
      result = transform(chunk);
    } catch (error) {
      this.error(error);
      throw error;
    }
    if (!isObject(result)) return undefined;
    return then(resolved(result), undefined, (error) => {
      this.error(error);
      throw error;
    });
  }

  // The writable side.

  write(chunk) {
    if (!this.backpressure) return this.performTransform(chunk);
    return then(this.change.get(), () => {
      const { writable } = this;
      if (writable.state === ERRORING) throw writable.error;
      return this.performTransform(chunk);
    });
  }

  close() {
    const { output } = this;
    return this.finish(this.flush, undefined, () => output.close(), (error) => output.fail(error), this.readable, ERRORED);
  }

  abort(reason) {
    const { output } = this;
    return this.finish(this.cancel, reason, () => output.fail(reason), (error) => output.fail(error), this.readable, ERRORED);
  }

  /**
   * The end, which comes once: runs `algorithm`, then `succeed` or `failWith`. If the other side
   * (`stream`) is errored by then, with its error.
   */
  finish(algorithm, argument, succeed, failWith, stream, errored) {
    if (this.finishing !== null) return this.finishing.promise;
    const finishing = (this.finishing = new Deferred());
    const result = algorithm === null ? undefined : attempt(algorithm, argument);
    this.clearAlgorithms();
    react(
      result,
      () => {
        if (stream.state === errored) {
          finishing.reject(stream.error);
          return;
        }
        succeed();
        finishing.resolve(undefined);
      },
      (error) => {
        failWith(error);
        finishing.reject(error);
      },
    );
    return finishing.promise;
  }

  // The readable side.

  pull() {
    this.setBackpressure(false);
    return this.change.get();
  }

  cancelReadable(reason) {
    const stop = (error) => {
      this.writable.controller.errorIfNeeded(error);
      if (this.backpressure) this.setBackpressure(false);
    };
    return this.finish(this.cancel, reason, () => stop(reason), stop, this.writable, WRITABLE_ERRORED);
  }
}

class TransformStream {
  #record;

  constructor(transformer = undefined, writableStrategy = undefined, readableStrategy = undefined) {
    if (transformer === INTERNAL) {
      this.#record = writableStrategy;
      return;
    }
    if (!IS_STANDARD) {
      this.#record = identityPipe(); // bytes as they are: old configurations have no transformers
      return;
    }
    const source = dictionary(transformer, "The transformer");
    const cancel = callback(source, "cancel", "transformer");
    const flush = callback(source, "flush", "transformer");
    const { readableType } = source;
    const start = callback(source, "start", "transformer");
    const transform = callback(source, "transform", "transformer");
    const { writableType } = source;
    const writableQueuing = queuingStrategy(writableStrategy);
    const readableQueuing = queuingStrategy(readableStrategy);
    if (readableType !== undefined) throw new TypeError("A transformer cannot have a readableType.");
    if (writableType !== undefined) throw new TypeError("A transformer cannot have a writableType.");
    const readableMark = highWaterMark(readableQueuing, 0);
    const writableMark = highWaterMark(writableQueuing, 1);

    const face = new TransformStreamDefaultController(INTERNAL);
    const record = new TransformRecord(
      transform === undefined ? null : (chunk) => transform.call(source, chunk, face),
      flush === undefined ? null : () => flush.call(source, face),
      cancel === undefined ? null : (reason) => cancel.call(source, reason),
    );
    this.#record = record;
    bindController(face, record);
    const started = new Deferred();
    record.setUp(started.promise, writableMark, writableQueuing.size ?? null, readableMark, readableQueuing.size ?? null);
    if (source.expectedLength !== undefined) record.readable.expected = enforceRange(Number(source.expectedLength), "expectedLength");
    started.resolve(start === undefined ? undefined : attempt(() => start.call(source, face)));
  }

  get readable() {
    if (!(#record in this)) throw illegalInvocation("TransformStream");
    return streamObject(this.#record.readable);
  }

  get writable() {
    if (!(#record in this)) throw illegalInvocation("TransformStream");
    return writableObject(this.#record.writable);
  }
}

let bindController;
class TransformStreamDefaultController {
  #record = null;

  static {
    bindController = (face, record) => {
      face.#record = record;
    };
  }

  constructor(token) {
    if (token !== INTERNAL) throw illegalConstructor();
  }

  get desiredSize() {
    if (!(#record in this)) throw illegalInvocation("TransformStreamDefaultController");
    return this.#record.output.desiredSize();
  }

  enqueue(chunk = undefined) {
    if (!(#record in this)) throw illegalInvocation("TransformStreamDefaultController");
    this.#record.enqueue(chunk);
  }

  error(reason = undefined) {
    if (!(#record in this)) throw illegalInvocation("TransformStreamDefaultController");
    this.#record.error(reason);
  }

  terminate() {
    if (!(#record in this)) throw illegalInvocation("TransformStreamDefaultController");
    this.#record.terminate();
  }
}

finishInterface(TransformStream);
finishInterface(TransformStreamDefaultController);
export { TransformStream, TransformStreamDefaultController };
