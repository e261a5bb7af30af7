// What a worker keeps at module level, and all its objects and requests on a lane share: promises,
// locks, queues, emitters, streams. Whoever comes first makes a thing, others find it; it is settled
// in the turn of one of them, and every other one goes on from there.

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Number of milliseconds that shared things take: long enough for others to come. */
export const SHARED_MS = 12;

/** A promise and its functions, kept apart. */
export class Deferred {
  constructor() {
    this.promise = new Promise((resolve, reject) => Object.assign(this, { resolve, reject }));
  }
}

/** A lock made of a chain of promises: each waits for the one before. */
export class ChainLock {
  #chain = Promise.resolve();
  run(task) {
    const result = this.#chain.then(task);
    this.#chain = result.then(() => {}, () => {});
    return result;
  }
}

/** A lock made of a list of resolvers: whoever leaves wakes the next. */
export class Semaphore {
  #free;
  #waiting = [];
  constructor(count) {
    this.#free = count;
  }
  async enter() {
    if (this.#free > 0) this.#free--;
    else await new Promise((resolve) => this.#waiting.push(resolve));
  }
  leave() {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free++;
  }
}

/** Tasks that one loop, of whoever came first, takes one by one. */
export class WorkQueue {
  #tasks = [];
  #running = false;
  push(task) {
    return new Promise((resolve, reject) => {
      this.#tasks.push({ task, resolve, reject });
      if (!this.#running) this.#loop();
    });
  }
  async #loop() {
    this.#running = true;
    await pause(SHARED_MS);
    for (let next; (next = this.#tasks.shift()); ) {
      try {
        next.resolve(await next.task());
      } catch (error) {
        next.reject(error);
      }
    }
    this.#running = false;
  }
}

/** Gathers keys and asks for all of them at once, as data loaders do. */
export class Batch {
  #waiting = [];
  constructor(schedule) {
    this.schedule = schedule;
  }
  load(key) {
    return new Promise((resolve) => {
      this.#waiting.push({ key, resolve });
      if (this.#waiting.length === 1) this.schedule(() => this.#flush());
    });
  }
  #flush() {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { key, resolve } of waiting) resolve(key);
  }
}

/** Listeners by name; emit() calls them at once. */
export class Emitter {
  #listeners = new Map();
  once(name, listener) {
    const list = this.#listeners.get(name) ?? [];
    this.#listeners.set(name, list);
    list.push(listener);
  }
  emit(name, value) {
    const list = this.#listeners.get(name) ?? [];
    this.#listeners.delete(name);
    for (const listener of list) listener(value);
  }
}

/** An endless channel: values go to readers in the order in which both came. */
export class Channel {
  #values = [];
  #readers = [];
  put(value) {
    const reader = this.#readers.shift();
    if (reader) reader({ value, done: false });
    else this.#values.push(value);
  }
  next() {
    if (this.#values.length > 0) return Promise.resolve({ value: this.#values.shift(), done: false });
    return new Promise((resolve) => this.#readers.push(resolve));
  }
  get readers() {
    return this.#readers.length;
  }
  [Symbol.asyncIterator]() {
    return this;
  }
}

/** The shared things of one group. */
export class Room {
  #kept = new Map();
  #due = new Set();
  /** What `make` promises, once for all who ask before it is settled. */
  memo(key = "", make = () => pause(SHARED_MS)) {
    let promise = this.#kept.get(key);
    if (promise === undefined) {
      promise = make();
      this.#kept.set(key, promise);
      const drop = () => this.#kept.delete(key);
      promise.then(drop, drop);
    }
    return promise;
  }
  /** The same, and it fails. */
  failure(key = "failure") {
    return this.memo(key, async () => {
      await pause(SHARED_MS);
      throw new Error("meant to fail");
    });
  }
  /** What was made with this name before, or is made now; it stays. */
  thing(key, make) {
    if (!this.#kept.has(key)) this.#kept.set(key, make());
    return this.#kept.get(key);
  }
  /** Has `wake` run soon, once for all who ask before it does. */
  soon(key, wake) {
    if (this.#due.has(key)) return;
    this.#due.add(key);
    setTimeout(() => {
      this.#due.delete(key);
      wake();
    }, SHARED_MS);
  }
}

const rooms = new Map();
export function room(group) {
  let found = rooms.get(group);
  if (!found) rooms.set(group, (found = new Room()));
  return found;
}

/** The objects of this lane that were made: name -> instance. */
export const cells = new Map();

// Made and settled outside of every event.
export const early = Promise.resolve();
export const late = new Deferred();
