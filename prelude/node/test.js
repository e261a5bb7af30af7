// node:test: mocks work; a worker has no tests to run, as on the platform.
import { invalidArgType, invalidArgValue, outOfRange, validateFunction, validateObject } from "./internal/errors.js";

const kContext = Symbol("mock");

class MockFunctionContext {
  #calls = [];
  #implementation;
  #original;
  #restore;
  #once = new Map();
  #times;

  constructor(implementation, restore, times) {
    this.#implementation = implementation;
    this.#restore = restore;
    this.#original = restore?.original ?? implementation;
    this.#times = times;
  }
  get calls() {
    return this.#calls.slice();
  }
  callCount() {
    return this.#calls.length;
  }
  mockImplementation(implementation) {
    validateFunction(implementation, "implementation");
    this.#implementation = implementation;
  }
  mockImplementationOnce(implementation, onCall = undefined) {
    validateFunction(implementation, "implementation");
    const next = this.#calls.length;
    const call = onCall ?? next;
    checkTimes(call, "onCall", next);
    this.#once.set(call, implementation);
  }
  restore() {
    if (this.#restore?.descriptor) Object.defineProperty(this.#restore.object, this.#restore.name, this.#restore.descriptor);
    else if (this.#restore?.original) this.#implementation = this.#restore.original;
    else this.#implementation = this.#original;
  }
  resetCalls() {
    this.#calls = [];
  }
  /** Used by the mock itself; the name is private to this module. */
  [kContext](target) {
    if (target) {
      this.#calls.push(target);
      return undefined;
    }
    const index = this.#calls.length;
    let implementation = this.#implementation;
    const once = this.#once.get(index);
    if (once) {
      this.#once.delete(index);
      return once;
    }
    if (index + 1 === this.#times) this.restore();
    if (index >= this.#times) implementation = this.#original;
    return implementation;
  }
}

function checkTimes(value, name, min = 1) {
  if (typeof value !== "number") throw invalidArgType(name, "of type number", value);
  if (value !== Infinity && !Number.isInteger(value)) throw outOfRange(name, "an integer", value);
  if (value < min || value > Number.MAX_SAFE_INTEGER && value !== Infinity) throw outOfRange(name, `>= ${min} && <= 9007199254740991`, value);
}

function checkSwitch(value, name) {
  if (typeof value !== "boolean") throw invalidArgType(name, "of type boolean", value);
}

/** A proxy of `original` that notes its calls. */
function mocked(original, context) {
  return new Proxy(original, {
    apply(target, thisArg, args) {
      const implementation = context[kContext]();
      const call = { arguments: args, error: undefined, result: undefined, stack: new Error(), target: undefined, this: thisArg };
      try {
        return call.result = Reflect.apply(implementation, thisArg, args);
      } catch (error) {
        call.error = error;
        throw error;
      } finally {
        context[kContext](call);
      }
    },
    construct(target, args, newTarget) {
      const implementation = context[kContext]();
      const call = { arguments: args, error: undefined, result: undefined, stack: new Error(), target, this: undefined };
      try {
        const result = Reflect.construct(implementation, args, newTarget);
        call.this = call.result = result;
        return result;
      } catch (error) {
        call.error = error;
        throw error;
      } finally {
        context[kContext](call);
      }
    },
    get(target, name, receiver) {
      return name === "mock" ? context : Reflect.get(target, name, receiver);
    },
  });
}

function findDescriptor(object, name) {
  for (let holder = object; holder !== null && holder !== undefined; holder = Object.getPrototypeOf(holder)) {
    const descriptor = Object.getOwnPropertyDescriptor(holder, name);
    if (descriptor) return descriptor;
  }
  return undefined;
}

class MockTracker {
  #mocks = [];

  fn(original = function () {}, implementation = original, options = {}) {
    if (original !== null && typeof original === "object") [original, implementation, options] = [function () {}, undefined, original];
    else if (implementation !== null && typeof implementation === "object") [implementation, options] = [original, implementation];
    implementation ??= original;
    validateFunction(original, "original");
    validateFunction(implementation, "implementation");
    validateObject(options, "options");
    const { times = Infinity } = options;
    checkTimes(times, "options.times");
    const context = new MockFunctionContext(implementation, { original }, times);
    this.#mocks.push(context);
    return mocked(original, context);
  }

  method(object, methodName, implementation = undefined, options = {}) {
    if (typeof methodName !== "string" && typeof methodName !== "symbol") throw invalidArgType("methodName", ["string", "symbol"], methodName);
    if (typeof object !== "function") validateObject(object, "object");
    if (implementation !== null && typeof implementation === "object") [implementation, options] = [undefined, implementation];
    if (implementation !== undefined) validateFunction(implementation, "implementation");
    validateObject(options, "options");
    const { getter = false, setter = false, times = Infinity } = options;
    checkSwitch(getter, "options.getter");
    checkSwitch(setter, "options.setter");
    checkTimes(times, "options.times");
    if (setter && getter) throw invalidArgValue("options.setter", setter, "cannot be used with 'options.getter'");
    const descriptor = findDescriptor(object, methodName);
    const original = getter ? descriptor?.get : setter ? descriptor?.set : descriptor?.value;
    if (typeof original !== "function") throw invalidArgValue("methodName", original, "must be a method");
    const restore = { object, name: methodName, descriptor, original };
    const context = new MockFunctionContext(implementation ?? original, restore, times);
    this.#mocks.push(context);
    const mock = mocked(original, context);
    const changed = { configurable: descriptor.configurable, enumerable: descriptor.enumerable };
    if (getter) Object.assign(changed, { get: mock, set: descriptor.set });
    else if (setter) Object.assign(changed, { get: descriptor.get, set: mock });
    else Object.assign(changed, { writable: descriptor.writable, value: mock });
    try {
      Object.defineProperty(object, methodName, changed);
    } catch {
      throw new TypeError(`Cannot redefine property: ${String(methodName)}`);
    }
    return mock;
  }

  getter(object, methodName, implementation = function () {}, options = {}) {
    if (implementation !== null && typeof implementation === "object") [implementation, options] = [undefined, implementation];
    else validateObject(options, "options");
    const { getter = true } = options;
    if (getter === false) throw invalidArgValue("options.getter", getter, "cannot be false");
    return this.method(object, methodName, implementation, { ...options, getter });
  }
  setter(object, methodName, implementation = function () {}, options = {}) {
    if (implementation !== null && typeof implementation === "object") [implementation, options] = [undefined, implementation];
    else validateObject(options, "options");
    const { setter = true } = options;
    if (setter === false) throw invalidArgValue("options.setter", setter, "cannot be false");
    return this.method(object, methodName, implementation, { ...options, setter });
  }
  reset() {
    this.restoreAll();
    this.#mocks = [];
  }
  restoreAll() {
    for (const mock of this.#mocks) mock.restore();
  }
}

export const mock = new MockTracker();
export { MockFunctionContext, MockTracker };
