// Async iteration over a ReadableStream, and ReadableStream.from().
// https://streams.spec.whatwg.org/#rs-asynciterator, https://streams.spec.whatwg.org/#rs-from
import { isObject, rejected, resolved, then } from "./common.js";
import { DefaultController, StreamRecord, cancelStream, readerRead, releaseReader } from "./readable-core.js";

const AsyncIteratorPrototype = Object.getPrototypeOf(Object.getPrototypeOf(async function* () {}.prototype));

let stateOf;
class ReadableStreamAsyncIterator {
  #state;

  static {
    stateOf = (value) => (isObject(value) && #state in value ? value.#state : null);
  }

  constructor(reader, preventCancel) {
    this.#state = { reader, preventCancel, ongoing: null, pending: 0, finished: false };
  }

  next() {
    const state = stateOf(this);
    if (state === null) return rejected(new TypeError("Illegal invocation"));
    enqueueSteps(state, () => nextSteps(state));
    return state.ongoing;
  }

  return(value) {
    const state = stateOf(this);
    if (state === null) return rejected(new TypeError("Illegal invocation"));
    enqueueSteps(state, () => returnSteps(state, value));
    return then(state.ongoing, () => ({ value, done: true }));
  }
}

/** Calls run one after the other: `pending` of them have not settled, `ongoing` is the last. */
function enqueueSteps(state, steps) {
  state.ongoing = state.pending++ === 0 ? steps() : then(state.ongoing, steps, steps);
}

function nextSteps(state) {
  if (state.finished) {
    state.pending--;
    return resolved({ value: undefined, done: true });
  }
  const { reader } = state;
  return new Promise((resolve, reject) => {
    readerRead(reader, {
      chunk(value) {
        state.pending--;
        resolve({ value, done: false });
      },
      close() {
        state.pending--;
        state.finished = true;
        releaseReader(reader);
        resolve({ value: undefined, done: true });
      },
      error(reason) {
        state.pending--;
        state.finished = true;
        releaseReader(reader);
        reject(reason);
      },
    });
  });
}

function returnSteps(state, value) {
  state.pending--;
  if (state.finished) return resolved({ value, done: true });
  state.finished = true;
  const { reader } = state;
  if (!state.preventCancel) {
    const result = cancelStream(reader.stream, value);
    releaseReader(reader);
    return result;
  }
  releaseReader(reader);
  return resolved(undefined);
}

const prototype = ReadableStreamAsyncIterator.prototype;
Object.setPrototypeOf(prototype, AsyncIteratorPrototype);
for (const name of ["next", "return"]) {
  Object.defineProperty(prototype, name, { value: prototype[name], writable: true, configurable: true, enumerable: true });
}
Object.defineProperty(prototype, Symbol.toStringTag, { value: "ReadableStream AsyncIterator", configurable: true });
delete prototype.constructor;

function method(object, key) {
  const value = object[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "function") throw new TypeError(`${String(key)} is not a function.`);
  return value;
}

/** https://streams.spec.whatwg.org/#readable-stream-from-iterable */
export function streamFromIterable(iterable) {
  if (iterable === undefined || iterable === null) throw new TypeError("ReadableStream.from() needs an iterable.");
  let getIterator = method(iterable, Symbol.asyncIterator);
  let isAsync = true;
  if (getIterator === undefined) {
    getIterator = method(iterable, Symbol.iterator);
    isAsync = false;
    if (getIterator === undefined) throw new TypeError("ReadableStream.from() needs an iterable.");
  }
  const iterator = getIterator.call(iterable);
  if (!isObject(iterator)) throw new TypeError("The iterator is not an object.");
  const { next } = iterator;

  const record = new StreamRecord();
  const take = (result) => {
    if (!isObject(result)) throw new TypeError("The iterator's result is not an object.");
    if (result.done) {
      controller.close();
      return undefined;
    }
    const { value } = result;
    // A sync iterator's values may be promises: they are awaited, as for-await does.
    if (!isAsync) return then(resolved(value), (settled) => controller.enqueue(settled));
    controller.enqueue(value);
    return undefined;
  };
  const pull = () => {
    const result = next.call(iterator);
    return isAsync ? then(resolved(result), take) : take(result);
  };
  const cancel = (reason) => {
    const finish = method(iterator, "return");
    if (finish === undefined) return undefined;
    return then(resolved(finish.call(iterator, reason)), (result) => {
      if (!isObject(result)) throw new TypeError("The iterator's result is not an object.");
    });
  };
  const controller = new DefaultController(record, pull, cancel, 0, null);
  controller.start(null);
  return record;
}

export { ReadableStreamAsyncIterator };
