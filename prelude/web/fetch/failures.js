// Why the body of an incoming request could not be read to its end, for those that word it in their own way.
// No imports: tests read it as it is.

const WORDS = { "The request body is too large": "EntityTooLarge", "There is no memory for the request body": "SlowDown", "The request body ended early": "IncompleteBody" };
Object.setPrototypeOf(WORDS, null);
const failures = new WeakMap();

/** The error for what src/bindings/http.c says of a body. */
export function bodyError(text) {
  const error = new Error(text);
  failures.set(error, text);
  return error;
}

/** S3's word for such an error; undefined: it is another one. */
export const failureOfBody = (error) => WORDS[failures.get(error) ?? ""];
