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

const TIME_END = 2 ** 63 / 1e6; // milliseconds: nanoseconds in 64 bits

/** The first parameter of a method as a time in whole milliseconds: a Date or a number, and nothing that could become one. */
export function toTime(value, method, name) {
  if (!(value instanceof Date) && typeof value !== "number") throw parameterError(method, name, 1, "date");
  const time = Math.trunc(+value);
  if (!Number.isFinite(time)) throw new TypeError("The value cannot be converted because it is not a valid Date.");
  if (time >= TIME_END) throw new TypeError("This API doesn't support dates after 2189.");
  if (time <= -TIME_END) throw new TypeError("This API doesn't support dates before 1687.");
  return time;
}
