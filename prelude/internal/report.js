// What happens to an exception that nobody caught: it is logged.
import { native } from "./native.js";

export function describeError(error) {
  try {
    if (error !== null && typeof error === "object" && typeof error.stack === "string") {
      return `${error.name ?? "Error"}: ${error.message ?? ""}\n${error.stack}`;
    }
    return String(error);
  } catch {
    return "an exception that cannot be described";
  }
}

export function reportException(error) {
  native.log(3, `Uncaught ${describeError(error)}`);
}
