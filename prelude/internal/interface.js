// Installing interfaces the way Web IDL describes them.

const { defineProperty, defineProperties, getOwnPropertyDescriptor } = Object;
const { ownKeys } = Reflect;

/**
 * Makes `value` a property of the global object: writable, configurable, not enumerable, as
 * interface objects are.
 */
export function expose(name, value) {
  defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}

/** Like expose() for functions and attributes of the global scope, which are enumerable. */
export function exposeEnumerable(name, value) {
  defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true });
}

/**
 * A property that is computed when it is first read: until then it is an accessor, from then on
 * what it would have been from the start.
 */
export function defineLazy(object, name, read, enumerable) {
  const define = (value) => defineProperty(object, name, { value, writable: true, enumerable, configurable: true });
  defineProperty(object, name, {
    get() {
      const value = read();
      define(value);
      return value;
    },
    set: define,
    enumerable,
    configurable: true,
  });
}

/** Interfaces of a part (parts.js), exposed by name and evaluated at the first use of one. */
export function exposeLazily(part, ...names) {
  for (const name of names) defineLazy(globalThis, name, () => part()[name], false);
}

const interfaces = new WeakSet();

/** Whether `object` is the prototype of one of our interfaces (for console). */
export function isInterfacePrototype(object) {
  return object !== null && interfaces.has(object);
}

/** The bundler may call `class X` `_X` or `X2`. */
// bounded: names of our own classes
const plainName = (name) => name.replace(/^_|\d+$/g, "");

/**
 * Finishes a class that implements an interface: members of the prototype become enumerable,
 * and the class string is set. Call once, after the class is complete.
 */
export function finishInterface(constructor, name = plainName(constructor.name)) {
  const { prototype } = constructor;
  defineProperty(constructor, "name", { value: name, configurable: true });
  interfaces.add(prototype);
  for (const key of ownKeys(prototype)) {
    if (key === "constructor" || typeof key === "symbol") continue;
    const descriptor = getOwnPropertyDescriptor(prototype, key);
    descriptor.enumerable = true;
    defineProperty(prototype, key, descriptor);
  }
  for (const key of ownKeys(constructor)) {
    if (key === "prototype" || key === "name" || key === "length" || typeof key === "symbol") continue;
    const descriptor = getOwnPropertyDescriptor(constructor, key);
    if (!descriptor.configurable) continue;
    descriptor.enumerable = true;
    defineProperty(constructor, key, descriptor);
  }
  defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
  return constructor;
}

/** Constants such as Event.NONE: on the constructor and its prototype, read-only, enumerable. */
export function defineConstants(constructor, constants) {
  const descriptors = {};
  for (const key of ownKeys(constants)) {
    descriptors[key] = { value: constants[key], enumerable: true, writable: false, configurable: false };
  }
  defineProperties(constructor, descriptors);
  defineProperties(constructor.prototype, descriptors);
}
