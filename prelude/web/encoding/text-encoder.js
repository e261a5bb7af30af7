// TextEncoder: https://encoding.spec.whatwg.org/#interface-textencoder
import { finishInterface } from "../../internal/interface.js";
import { native } from "../../internal/native.js";

// Up to this length a loop here is faster than a call of C with its two conversions.
const SHORT = 32;
const counts = new Uint32Array(2); // read, written

/** The bytes of a short ASCII string, or null. */
function encodeShort(text) {
  const { length } = text;
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 127) return null;
    bytes[i] = unit;
  }
  return bytes;
}

/** UTF-8, with U+FFFD for lone surrogates. */
export function utf8Encode(text) {
  return (text.length <= SHORT ? encodeShort(text) : null) ?? native.utf8Encode(text);
}

export class TextEncoder {
  #brand = undefined;

  get encoding() {
    this.#brand;
    return "utf-8";
  }

  encode(input = "") {
    this.#brand;
    return utf8Encode(`${input}`);
  }

  encodeInto(source, destination) {
    this.#brand;
    const text = `${source}`;
    if (!(destination instanceof Uint8Array)) {
      throw new TypeError("Failed to execute 'encodeInto' on 'TextEncoder': parameter 2 is not of type 'Uint8Array'.");
    }
    const { length } = text;
    if (length <= SHORT && length <= destination.length) {
      let i = 0;
      for (; i < length; i++) {
        const unit = text.charCodeAt(i);
        if (unit > 127) break;
        destination[i] = unit;
      }
      if (i === length) return { read: length, written: length };
    }
    native.utf8EncodeInto(text, destination, counts);
    return { read: counts[0], written: counts[1] };
  }
}

finishInterface(TextEncoder);
