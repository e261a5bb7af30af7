// Errors' stacks: what is there before the first one is read (stack.js is the rest).
import { native } from "./native.js";
import stack from "part:./stack.js";

const engineCapture = Error.captureStackTrace;

/** Error.captureStackTrace(object, above): frames up to those of the function `above` are left out. */
function captureStackTrace(object, above = captureStackTrace) {
  if (object === null || (typeof object !== "object" && typeof object !== "function")) throw new TypeError(`Invalid argument: ${String(object)} is not an object`);
  const holder = {};
  engineCapture(holder, typeof above === "function" ? above : captureStackTrace);
  // An error's own stack is written once, so that nobody makes a text of it when the new one takes its place.
  if (object instanceof Error) Reflect.set(object, "stack", "");
  stack().attach(object, holder.stack ?? "");
}

export function installStacks() {
  native.onErrorStack((error, touched) => stack().shape(error, touched));
  Object.defineProperty(Error, "captureStackTrace", { value: captureStackTrace, writable: true, enumerable: false, configurable: true });
}

export const placeOf = (error) => stack().placeOf(error);
