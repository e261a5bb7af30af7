// node:string_decoder: characters that are spread over chunks are put together.
import { Buffer } from "./buffer.js";
import { invalidArgType, invalidThis, unknownEncoding } from "./internal/errors.js";

const NAMES = {
  utf8: "utf8", "utf-8": "utf8", ucs2: "utf16le", "ucs-2": "utf16le", utf16le: "utf16le", "utf-16le": "utf16le", latin1: "latin1", binary: "latin1",
  base64: "base64", base64url: "base64url", ascii: "ascii", hex: "hex",
};
const kState = Symbol("kNativeDecoder");

/** How many bytes at the end of `bytes` belong to a character that goes on, and how many it has. */
function incompleteUtf8(bytes) {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back];
    if ((byte & 0xc0) === 0x80) continue;
    // As in Node.js, only what the first byte says counts: the text is told when it can no more go on.
    const total = (byte & 0xe0) === 0xc0 ? 2 : (byte & 0xf0) === 0xe0 ? 3 : (byte & 0xf8) === 0xf0 ? 4 : 0;
    return total <= back ? [0, 0] : [back, total];
  }
  return [0, 0];
}

/** As Node.js does it: an odd byte is kept alone, half a pair only if it ends a chunk. */
function incompleteUtf16(bytes, { total }) {
  if (total === 4 && bytes.length < 4) return [bytes.length, 4];
  if (bytes.length % 2 === 1) return [1, 2];
  if (bytes.length < 2 || (total === 2 && bytes.length === 2)) return [0, 0];
  const unit = bytes[bytes.length - 2] | (bytes[bytes.length - 1] << 8);
  return unit >= 0xd800 && unit <= 0xdbff ? [2, 4] : [0, 0];
}
const incompleteBase64 = (bytes) => [bytes.length % 3, bytes.length % 3 === 0 ? 0 : 3];

const SCANS = { utf8: incompleteUtf8, utf16le: incompleteUtf16, base64: incompleteBase64, base64url: incompleteBase64 };

class State {
  rest = Buffer.alloc(0); // bytes of a character that goes on
  total = 0; // how many it has
}

export function StringDecoder(encoding = "utf8") {
  const name = NAMES[`${encoding || "utf8"}`.toLowerCase()];
  if (name === undefined) throw unknownEncoding(encoding);
  this.encoding = name;
  this[kState] = new State();
}

function stateOf(decoder) {
  const state = decoder?.[kState];
  if (state === undefined) throw invalidThis("StringDecoder");
  if (!(state instanceof State)) throw new TypeError("Invalid StringDecoder");
  return state;
}

function decode(decoder, state, bytes) {
  const scan = SCANS[decoder.encoding];
  if (scan === undefined) return bytes.toString(decoder.encoding);
  const all = state.rest.length === 0 ? bytes : Buffer.concat([state.rest, bytes]);
  const [open, total] = scan(all, state);
  // A copy: the chunk is its owner's.
  state.rest = Buffer.from(all.subarray(all.length - open));
  state.total = total;
  return all.toString(decoder.encoding, 0, all.length - open);
}

Object.defineProperties(StringDecoder.prototype, {
  write: {
    value: function write(chunk) {
      const state = stateOf(this);
      if (typeof chunk === "string") return chunk;
      if (!ArrayBuffer.isView(chunk)) throw invalidArgType("buf", ["string", "Buffer", "TypedArray", "DataView"], chunk);
      return decode(this, state, Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    },
    writable: true, enumerable: true, configurable: true,
  },
  end: {
    value: function end(chunk) {
      const state = stateOf(this);
      const text = chunk === undefined ? "" : this.write(chunk);
      const { rest } = state;
      state.rest = Buffer.alloc(0);
      state.total = 0;
      // What has no end is shown as far as it can be.
      return text + (rest.toString(this.encoding));
    },
    writable: true, enumerable: true, configurable: true,
  },
  text: {
    value: function text(chunk, offset) {
      const state = stateOf(this);
      state.rest = Buffer.alloc(0);
      state.total = 0;
      return this.write(chunk.subarray(offset));
    },
    writable: true, enumerable: true, configurable: true,
  },
  lastChar: { get() { const { rest } = stateOf(this); return Buffer.concat([rest, Buffer.alloc(4)], 4); }, enumerable: true, configurable: true },
  lastNeed: { get() { const { rest, total } = stateOf(this); return rest.length === 0 ? 0 : total - rest.length; }, enumerable: true, configurable: true },
  lastTotal: { get() { const { rest, total } = stateOf(this); return rest.length === 0 ? 0 : total; }, enumerable: true, configurable: true },
});

export default { StringDecoder };
