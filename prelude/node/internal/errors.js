// Errors with the codes that Node.js gives them: libraries look at `code`.

/** An error of class `Base` whose code is `code`. */
export function nodeError(Base, code, message) {
  const error = new Base(message);
  error.code = code;
  Object.defineProperty(error, "name", { value: Base.name, writable: true, configurable: true });
  Object.defineProperty(error, "toString", {
    value() {
      return `${this.name} [${code}]: ${this.message}`;
    },
    writable: true,
    configurable: true,
  });
  return error;
}

function received(value) {
  if (value === null || value === undefined) return ` Received ${value}`;
  if (typeof value === "function") return ` Received function ${value.name}`;
  if (typeof value === "object") {
    return value.constructor?.name ? ` Received an instance of ${value.constructor.name}` : " Received an object";
  }
  const text = String(value);
  return ` Received type ${typeof value} (${typeof value === "string" ? `'${text.slice(0, 25)}'` : text.slice(0, 25)})`;
}

export function invalidArgType(name, expected, value) {
  const kind = name.includes(".") ? "property" : "argument";
  return nodeError(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" ${kind} must be ${expected}.${received(value)}`);
}

export function invalidArgValue(name, value, reason = "is invalid") {
  const kind = name.includes(".") ? "property" : "argument";
  return nodeError(TypeError, "ERR_INVALID_ARG_VALUE", `The ${kind} '${name}' ${reason}. Received ${typeof value === "string" ? `'${value}'` : String(value)}`);
}

export function outOfRange(name, range, value) {
  return nodeError(RangeError, "ERR_OUT_OF_RANGE", `The value of "${name}" is out of range. It must be ${range}. Received ${String(value)}`);
}

export function validateFunction(value, name) {
  if (typeof value !== "function") throw invalidArgType(name, "of type function", value);
}
export function validateString(value, name) {
  if (typeof value !== "string") throw invalidArgType(name, "of type string", value);
}
export function validateObject(value, name) {
  if (value === null || typeof value !== "object") throw invalidArgType(name, "of type object", value);
}
export function abortError(signal) {
  const error = nodeError(Error, "ABORT_ERR", "The operation was aborted");
  error.name = "AbortError";
  if (signal?.reason !== undefined) error.cause = signal.reason;
  return error;
}
