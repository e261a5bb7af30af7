// atob() and btoa(): https://html.spec.whatwg.org/#atob
import { native } from "../internal/native.js";
import { DOMException } from "./dom-exception.js";

function need(count, method) {
  if (count === 0) {
    throw new TypeError(`Failed to execute '${method}' on 'ServiceWorkerGlobalScope': parameter 1 is not of type 'string'.`);
  }
}

export function btoa(data) {
  need(arguments.length, "btoa");
  const text = native.base64Encode(`${data}`);
  if (text === null) {
    throw new DOMException(
      "btoa() can only operate on characters in the Latin1 (ISO/IEC 8859-1) range.",
      "InvalidCharacterError",
    );
  }
  return text;
}

export function atob(data) {
  need(arguments.length, "atob");
  const text = native.base64Decode(`${data}`);
  if (text === null) {
    throw new DOMException(
      "atob() called with invalid base64-encoded data. (Only whitespace, '+', '/', alphanumeric ASCII, and up to " +
        "two terminal '=' signs when the input data length is divisible by 4 are allowed.)",
      "InvalidCharacterError",
    );
  }
  return text;
}
