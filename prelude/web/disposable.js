// DisposableStack, AsyncDisposableStack and SuppressedError, for an engine that has none:
// https://tc39.es/proposal-explicit-resource-management/
import "../internal/symbols.js";

const hidden = (object, name, value) => Object.defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });

function SuppressedErrorClass(error, suppressed, message) {
  const made = Reflect.construct(Error, [], new.target ?? SuppressedErrorClass);
  if (message !== undefined) hidden(made, "message", `${message}`);
  hidden(made, "error", error);
  hidden(made, "suppressed", suppressed);
  return made;
}
hidden(SuppressedErrorClass, "name", "SuppressedError");
Object.defineProperty(SuppressedErrorClass, "name", { writable: false });
Object.defineProperty(SuppressedErrorClass, "length", { value: 3, configurable: true });
Object.setPrototypeOf(SuppressedErrorClass, Error);
Object.defineProperty(SuppressedErrorClass, "prototype", { value: Object.create(Error.prototype), writable: false });
for (const [name, value] of Object.entries({ constructor: SuppressedErrorClass, name: "SuppressedError", message: "" })) {
  hidden(SuppressedErrorClass.prototype, name, value);
}
export const SuppressedError = SuppressedErrorClass;

/** The method that disposes of a value; null: there is nothing to dispose of. */
function disposer(value, hints) {
  if (value === null || value === undefined) return null;
  if (typeof value !== "object" && typeof value !== "function") throw new TypeError("A value to be disposed of must be an object, null or undefined.");
  for (const hint of hints) {
    const method = value[hint];
    if (method === undefined || method === null) continue;
    if (typeof method !== "function") throw new TypeError("The dispose method is not a function.");
    return () => method.call(value);
  }
  throw new TypeError("The value has no dispose method.");
}

const needFunction = (value) => {
  if (typeof value !== "function") throw new TypeError("The callback is not a function.");
  return value;
};

/** What both stacks share: the functions to call, last first; null once they were, or were moved. */
class Stack {
  entries = [];
  get open() {
    if (this.entries === null) throw new ReferenceError("The stack was disposed of already.");
    return this.entries;
  }
  /** Calls `entry` in the end, for a callback that somebody gave. */
  add(callback, entry) {
    const entries = this.open;
    needFunction(callback);
    entries.push(entry);
  }
  take() {
    const { entries } = this;
    this.entries = null;
    return entries;
  }
}

/** The error to go on with when `error` comes while `failure` is under way. */
const combine = (failure, error) => ({ error: failure === null ? error : new SuppressedError(error, failure.error) });

class DisposableStackClass {
  #stack = new Stack();
  get disposed() {
    return this.#stack.entries === null;
  }
  use(value) {
    const entries = this.#stack.open;
    const dispose = disposer(value, [Symbol.dispose]);
    if (dispose !== null) entries.push(dispose);
    return value;
  }
  adopt(value, onDispose) {
    this.#stack.add(onDispose, () => onDispose(value));
    return value;
  }
  defer(onDispose) {
    this.#stack.add(onDispose, () => onDispose());
  }
  move() {
    const moved = new DisposableStackClass();
    void this.#stack.open;
    moved.#stack.entries = this.#stack.take();
    return moved;
  }
  dispose() {
    let failure = null;
    for (const dispose of (this.#stack.take() ?? []).reverse()) {
      try {
        dispose();
      } catch (error) {
        failure = combine(failure, error);
      }
    }
    if (failure !== null) throw failure.error;
  }
}
hidden(DisposableStackClass.prototype, Symbol.dispose, DisposableStackClass.prototype.dispose);

class AsyncDisposableStackClass {
  #stack = new Stack();
  get disposed() {
    return this.#stack.entries === null;
  }
  use(value) {
    const entries = this.#stack.open;
    // What is disposed of without waiting still takes its turn.
    entries.push(disposer(value, [Symbol.asyncDispose, Symbol.dispose]) ?? (() => {}));
    return value;
  }
  adopt(value, onDispose) {
    this.#stack.add(onDispose, () => onDispose(value));
    return value;
  }
  defer(onDispose) {
    this.#stack.add(onDispose, () => onDispose());
  }
  move() {
    const moved = new AsyncDisposableStackClass();
    void this.#stack.open;
    moved.#stack.entries = this.#stack.take();
    return moved;
  }
  async disposeAsync() {
    let failure = null;
    for (const dispose of (this.#stack.take() ?? []).reverse()) {
      try {
        await dispose();
      } catch (error) {
        failure = combine(failure, error);
      }
    }
    if (failure !== null) throw failure.error;
  }
}
hidden(AsyncDisposableStackClass.prototype, Symbol.asyncDispose, AsyncDisposableStackClass.prototype.disposeAsync);

for (const [made, name] of [[DisposableStackClass, "DisposableStack"], [AsyncDisposableStackClass, "AsyncDisposableStack"]]) {
  Object.defineProperty(made, "name", { value: name, configurable: true });
  Object.defineProperty(made.prototype, Symbol.toStringTag, { value: name, configurable: true });
}
export { DisposableStackClass as DisposableStack, AsyncDisposableStackClass as AsyncDisposableStack };
