// Classes that can be called without `new`, as the functions of Node.js that they stand for.

/** A function of that name that makes instances of `Class`, whose prototype and statics it has. */
export function callable(Class, name) {
  const f = function (...args) {
    return Reflect.construct(Class, args, new.target ?? Class);
  };
  Object.defineProperty(f, "name", { value: name, configurable: true });
  Object.defineProperty(f, "length", { value: Class.length, configurable: true });
  for (const key of Reflect.ownKeys(Class)) {
    if (key !== "prototype" && key !== "name" && key !== "length") Object.defineProperty(f, key, Object.getOwnPropertyDescriptor(Class, key));
  }
  f.prototype = Class.prototype;
  Object.defineProperty(Class.prototype, "constructor", { value: f, writable: true, configurable: true });
  Object.setPrototypeOf(f, Object.getPrototypeOf(Class));
  return f;
}
