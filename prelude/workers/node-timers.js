// The timers of Node.js: objects instead of numbers. They are globals under nodejs_compat, and
// what node:timers exports.
import "../internal/symbols.js";
import * as web from "../web/timers.js";

const dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");

export class Timeout {
  #id;
  #ref = true; // a worker does not end: this is only told again
  #start; // starts the timer, again on refresh()
  constructor(start) {
    this.#start = start;
    this.#id = start();
  }
  refresh() {
    web.clearTimeout(this.#id);
    this.#id = this.#start();
    return this;
  }
  unref() {
    this.#ref = false;
    return this;
  }
  ref() {
    this.#ref = true;
    return this;
  }
  hasRef() {
    return this.#ref;
  }
  close() {
    web.clearTimeout(this.#id);
    return this;
  }
  /** clearTimeout() takes the number too. */
  [Symbol.toPrimitive]() {
    return this.#id;
  }
  [dispose]() {
    this.close();
  }
}
export class Immediate {
  #id;
  #ref = true;
  constructor(id) {
    this.#id = id;
  }
  ref() {
    this.#ref = true;
    return this;
  }
  unref() {
    this.#ref = false;
    return this;
  }
  hasRef() {
    return this.#ref;
  }
  [Symbol.toPrimitive]() {
    return this.#id;
  }
  [dispose]() {
    web.clearTimeout(this.#id);
    this.#ref = false;
  }
}

export function setTimeout(callback, delay, ...args) {
  return new Timeout(() => web.setTimeout(callback, delay, ...args));
}
export function setInterval(callback, delay, ...args) {
  return new Timeout(() => web.setInterval(callback, delay, ...args));
}
export function setImmediate(callback, ...args) {
  return new Immediate(web.setTimeout(callback, 0, ...args));
}
export const { clearTimeout, clearInterval } = web;
export function clearImmediate(immediate) {
  web.clearTimeout(immediate);
}
