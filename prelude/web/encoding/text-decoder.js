// TextDecoder: https://encoding.spec.whatwg.org/#interface-textdecoder
//
// UTF-8 is decoded as a whole by C; what a chunk ends with and the next may complete waits in
// #pending. For every other encoding C keeps its decoder's state between chunks in #state.
import { finishInterface } from "../../internal/interface.js";
import { native } from "../../internal/native.js";
import { constructorParameterError, isDictionary, parameterError } from "../../internal/webidl.js";
import { encodingOf } from "./labels.js";

const NOTHING = new Uint8Array(0);
const { isView } = ArrayBuffer;
const byteLengthOf = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, "byteLength").get;
const sharedByteLengthOf =
  typeof SharedArrayBuffer === "function" &&
  Object.getOwnPropertyDescriptor(SharedArrayBuffer.prototype, "byteLength").get;

function isBuffer(value) {
  for (const get of [byteLengthOf, sharedByteLengthOf]) {
    try {
      get.call(value);
      return true;
    } catch {
      // Not of this kind.
    }
  }
  return false;
}

/** How many bytes at the end of `bytes` begin a sequence that more bytes could complete. */
function incompleteTail(bytes) {
  const { length } = bytes;
  for (let back = 1; back <= 3 && back <= length; back++) {
    const byte = bytes[length - back];
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const need = byte >= 0xf0 && byte <= 0xf4 ? 4 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte >= 0xc2 && byte < 0xe0 ? 2 : 0;
    if (need <= back) return 0;
    if (back > 1) {
      // The second byte has a narrower range after some lead bytes.
      const second = bytes[length - back + 1];
      const low = byte === 0xe0 ? 0xa0 : byte === 0xf0 ? 0x90 : 0x80;
      const high = byte === 0xed ? 0x9f : byte === 0xf4 ? 0x8f : 0xbf;
      if (second < low || second > high) return 0;
    }
    return back;
  }
  return 0;
}

export class TextDecoder {
  #encoding;
  #fatal;
  #ignoreBOM;
  #streaming = false; // the last call had { stream: true }
  #bomSeen = false;
  #pending = NOTHING; // UTF-8 only
  #id = -1; // others: the number C has for the encoding
  #state = null;

  constructor(label = "utf-8", options = undefined) {
    if (!isDictionary(options)) throw constructorParameterError("TextDecoder", 2, "ConstructorOptions");
    const encoding = encodingOf(`${label}`);
    if (encoding === undefined || encoding === "replacement") {
      throw new RangeError(`"${label}" is not a valid encoding.`);
    }
    this.#encoding = encoding;
    this.#fatal = !!options?.fatal;
    this.#ignoreBOM = !!options?.ignoreBOM;
  }

  get encoding() {
    return this.#encoding;
  }
  get fatal() {
    return this.#fatal;
  }
  get ignoreBOM() {
    return this.#ignoreBOM;
  }

  decode(input = undefined, options = undefined) {
    if (!isDictionary(options)) throw parameterError("decode", "TextDecoder", 2, "DecodeOptions");
    const stream = !!options?.stream;
    let bytes;
    if (input === undefined) bytes = NOTHING;
    else if (isView(input)) bytes = input instanceof Uint8Array ? input : new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
    else if (isBuffer(input)) bytes = new Uint8Array(input);
    else throw new TypeError("Failed to execute 'decode' on 'TextDecoder': parameter 1 is not of type 'Array'.");
    if (!this.#streaming) {
      this.#bomSeen = false;
      this.#pending = NOTHING;
    }
    this.#streaming = stream;
    return this.#encoding === "utf-8" ? this.#decodeUTF8(bytes, stream) : this.#decodeOther(bytes, stream);
  }

  #decodeUTF8(bytes, stream) {
    if (this.#pending.length > 0) {
      const joined = new Uint8Array(this.#pending.length + bytes.length);
      joined.set(this.#pending);
      joined.set(bytes, this.#pending.length);
      bytes = joined;
      this.#pending = NOTHING;
    }
    if (stream) {
      const tail = incompleteTail(bytes);
      if (tail > 0) {
        this.#pending = bytes.slice(bytes.length - tail);
        bytes = bytes.subarray(0, bytes.length - tail);
      }
    }
    if (!this.#bomSeen && bytes.length > 0) {
      this.#bomSeen = true;
      if (!this.#ignoreBOM && bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
        bytes = bytes.subarray(3);
      }
    }
    const text = this.#fatal ? native.utf8DecodeStrict(bytes) : native.utf8Decode(bytes);
    if (text === null) this.#fail();
    return text;
  }

  #decodeOther(bytes, stream) {
    if (this.#state === null) {
      this.#id = native.encodingId(this.#encoding);
      this.#state = new Uint8Array(16);
    }
    const text = native.textDecode(this.#id, this.#state, bytes, !stream, this.#fatal);
    if (!stream || text === null) this.#state.fill(0);
    if (text === null) this.#fail();
    return this.#stripBOM(text);
  }

  /** A decoded U+FEFF at the very start of UTF-16 is its byte order mark. */
  #stripBOM(text) {
    if (this.#bomSeen || text === "" || !this.#encoding.startsWith("utf-16")) return text;
    this.#bomSeen = true;
    return !this.#ignoreBOM && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }

  #fail() {
    this.#streaming = false;
    this.#pending = NOTHING;
    throw new TypeError("Failed to decode input.");
  }
}

finishInterface(TextDecoder);
