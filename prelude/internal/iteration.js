// Async iteration over what is iterable only synchronously. The engine's own (2.50) never settles when
// an element is a promise that rejects and the iterator has no return(), as those of arrays: `for await`
// and `yield*` are given another one by the rewriting of scripts (tools/bundler/turns.mjs), and
// Array.fromAsync is replaced.
import { afterwards, turns } from "./turn.js";

const { apply } = Reflect;
const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

/** The result of a step, with its value awaited; a value that rejects closes the iterator. */
function settled(iterator, result, closes) {
  if (!isObject(result)) throw new TypeError("Iterator result is not an object");
  const done = Boolean(result.done);
  const value = Promise.resolve(result.value);
  return new Promise((resolve, reject) => {
    afterwards(value, (settledValue) => resolve({ done, value: settledValue }), (error) => {
      try {
        if (closes && !done) apply(iterator.return ?? (() => {}), iterator, []);
      } finally {
        reject(error);
      }
    });
  });
}

/** A step as a promise: what throws is a rejection. */
function step(run) {
  try {
    return run();
  } catch (error) {
    return Promise.reject(error);
  }
}

class FromSync {
  #iterator;
  #next;
  constructor(iterator) {
    this.#iterator = iterator;
    this.#next = iterator.next;
  }
  next(...args) {
    return step(() => settled(this.#iterator, apply(this.#next, this.#iterator, args), true));
  }
  return(...args) {
    return step(() => {
      const method = this.#iterator.return;
      if (method === undefined || method === null) return Promise.resolve({ done: true, value: args[0] });
      return settled(this.#iterator, apply(method, this.#iterator, args), false);
    });
  }
  throw(...args) {
    return step(() => {
      const method = this.#iterator.throw;
      if (method !== undefined && method !== null) return settled(this.#iterator, apply(method, this.#iterator, args), true);
      apply(this.#iterator.return ?? (() => {}), this.#iterator, []);
      throw new TypeError("The iterator has no throw() method");
    });
  }
}

/** What `for await` and `yield*` of an async generator walk over. */
turns.iterable = (value) => {
  if (value === undefined || value === null || (value[Symbol.asyncIterator] ?? null) !== null) return value;
  const method = value[Symbol.iterator];
  if (typeof method !== "function") return value; // the engine says what is wrong with it
  return {
    [Symbol.asyncIterator]() {
      const iterator = apply(method, value, []);
      if (!isObject(iterator)) throw new TypeError("The iterator is not an object");
      return new FromSync(iterator);
    },
  };
};

async function fromAsync(items, mapper = undefined, self = undefined) {
  if (mapper !== undefined && typeof mapper !== "function") throw new TypeError("Array.fromAsync requires that the second argument, when provided, be a function");
  const Class = typeof this === "function" && this.prototype !== undefined ? this : Array;
  if ((items[Symbol.asyncIterator] ?? items[Symbol.iterator] ?? null) === null) {
    const length = Math.min(Math.max(Math.trunc(Number(items.length)) || 0, 0), Number.MAX_SAFE_INTEGER);
    const made = new Class(length);
    for (let i = 0; i < length; i++) {
      const value = await items[i];
      put(made, i, mapper === undefined ? value : await apply(mapper, self, [value, i]));
    }
    made.length = length;
    return made;
  }
  const made = new Class();
  let count = 0;
  for await (const value of items) {
    put(made, count, mapper === undefined ? value : await apply(mapper, self, [value, count]));
    count++;
  }
  made.length = count;
  return made;
}

function put(array, index, value) {
  Object.defineProperty(array, index, { value, writable: true, enumerable: true, configurable: true });
}

if (Array.fromAsync !== undefined) {
  Object.defineProperty(Array, "fromAsync", {
    value: { fromAsync(items, ...rest) { return apply(fromAsync, this, [items, ...rest]); } }.fromAsync,
    writable: true, configurable: true,
  });
}
