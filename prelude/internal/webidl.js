// Argument conversion and the errors that go with it, worded as the platform words them.

/** For a method or accessor called on something that is not its interface's object. */
export function illegalInvocation() {
  return new TypeError("Illegal invocation: function called with incorrect `this` reference.");
}

/** For a constructor that scripts may not call. */
export function illegalConstructor() {
  return new TypeError("Illegal constructor");
}

/** USVString: a string without lone surrogates. */
export function toUSVString(value) {
  return `${value}`.toWellFormed();
}

/** parameter `index` (from 1) of a method has the wrong type. */
export function parameterError(method, name, index, type) {
  return new TypeError(`Failed to execute '${method}' on '${name}': parameter ${index} is not of type '${type}'.`);
}

export function constructorParameterError(name, index, type) {
  return new TypeError(`Failed to construct '${name}': constructor parameter ${index} is not of type '${type}'.`);
}

export function fieldError(field, dictionary, type) {
  return new TypeError(
    `Incorrect type for the '${field}' field on '${dictionary}': the provided value is not of type '${type}'.`,
  );
}

export function isObject(value) {
  return value !== null && (typeof value === "object" || typeof value === "function");
}

/** A dictionary argument: undefined and null are the empty one; anything but an object is refused. */
export function isDictionary(value) {
  return value === undefined || value === null || isObject(value);
}
