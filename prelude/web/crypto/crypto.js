// crypto: https://w3c.github.io/webcrypto/#crypto-interface
import { finishInterface } from "../../internal/interface.js";
import { native } from "../../internal/native.js";
import { needsEvent } from "../../internal/startup.js";
import { registerHostObject } from "../../internal/serialize.js";
import { illegalConstructor, illegalInvocation } from "../../internal/webidl.js";
import { DOMException } from "../dom-exception.js";
import part from "part:./part.js";

const SECRET = Symbol("may construct");
const QUOTA = 65536;
export const KEY_TAG = 0x28; // of a CryptoKey
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Random bytes for UUIDs, fetched 256 at a time. */
const pool = new Uint8Array(4096);
let poolAt = pool.length;

const INTEGER_ARRAYS = new Set(["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "BigInt64Array", "BigUint64Array"]);
const typedArrayName = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;

export class Crypto {
  #brand;

  constructor(secret) {
    if (secret !== SECRET) throw illegalConstructor();
  }

  static #check(value) {
    if (typeof value !== "object" || value === null || !(#brand in value)) throw illegalInvocation();
  }

  get subtle() {
    Crypto.#check(this);
    return part().subtle;
  }

  get DigestStream() {
    return part().DigestStream;
  }

  getRandomValues(array) {
    Crypto.#check(this);
    if (!ArrayBuffer.isView(array)) {
      throw new TypeError("Failed to execute 'getRandomValues' on 'Crypto': parameter 1 is not of type 'ArrayBufferView'.");
    }
    if (!INTEGER_ARRAYS.has(typedArrayName.call(array))) {
      throw new DOMException("The data argument must be an integer-typed TypedArray.", "TypeMismatchError");
    }
    if (array.byteLength > QUOTA) {
      throw new DOMException(
        `getRandomValues() only accepts buffers of size <= ${QUOTA / 1024}K but provided ${array.byteLength} bytes.`,
        "QuotaExceededError",
      );
    }
    needsEvent();
    native.randomFill(array);
    return array;
  }

  randomUUID() {
    Crypto.#check(this);
    needsEvent();
    if (poolAt === pool.length) {
      native.randomFill(pool);
      poolAt = 0;
    }
    const b = pool;
    const i = poolAt;
    poolAt += 16;
    return (
      HEX[b[i]] + HEX[b[i + 1]] + HEX[b[i + 2]] + HEX[b[i + 3]] + "-" + HEX[b[i + 4]] + HEX[b[i + 5]] + "-" +
      HEX[(b[i + 6] & 0x0f) | 0x40] + HEX[b[i + 7]] + "-" + HEX[(b[i + 8] & 0x3f) | 0x80] + HEX[b[i + 9]] + "-" +
      HEX[b[i + 10]] + HEX[b[i + 11]] + HEX[b[i + 12]] + HEX[b[i + 13]] + HEX[b[i + 14]] + HEX[b[i + 15]]
    );
  }
}
finishInterface(Crypto);
Object.defineProperty(Crypto, "length", { value: 0, configurable: true });

registerHostObject({
  tag: KEY_TAG,
  write: (key, writer) => part().writeKey(key, writer),
  read: (reader) => part().readKey(reader),
});

export const crypto = new Crypto(SECRET);
