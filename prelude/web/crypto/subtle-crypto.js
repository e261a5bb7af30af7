// SubtleCrypto: https://w3c.github.io/webcrypto/#subtlecrypto-interface
//
// Every method is async, or calls one that is, so that whatever is wrong, a wrong `this` included, becomes a rejection.
// Data is not copied here: C uses it, or copies it for another thread, before the method first waits.
import { CryptoOp } from "../../../src/bindings/border.ts";
import { needsEvent } from "../../internal/startup.js";
import { finishInterface } from "../../internal/interface.js";
import { illegalConstructor, illegalInvocation, isObject, parameterError } from "../../internal/webidl.js";
import { native } from "../../internal/native.js";
import { DOMException } from "../dom-exception.js";
import { bytesOf, implementationOf, isBufferSource, normalize, supports, viewOf } from "./algorithms.js";
import "./symmetric.js";
import "./derivation.js";
import "./asymmetric.js";
import { isCryptoKey } from "./crypto-key.js";
import { toJsonWebKey } from "./jwk.js";
import { call, HASH, isLong } from "./native-ids.js";

const FORMATS = ["raw", "pkcs8", "spki", "jwk"];
const SECRET = Symbol("may construct");

function need(count, required, method) {
  if (count < required) {
    throw new TypeError(`Failed to execute '${method}' on 'SubtleCrypto': ${required} arguments are needed, ${count} were given.`);
  }
}

function toFormat(value) {
  const format = `${value}`;
  if (!FORMATS.includes(format)) throw new DOMException(`"${format}" is not a key format.`, "NotSupportedError");
  return format;
}

function toUsages(value) {
  if (!isObject(value)) throw new TypeError("The key usages are not a sequence.");
  return Array.from(value, String); // each kind of key says which it has
}

function toKey(value) {
  if (!isCryptoKey(value)) throw new TypeError("The provided value is not of type 'CryptoKey'.");
  return value;
}

/** Results are ArrayBuffers of their own. */
const toBuffer = (bytes) => (bytes.byteLength === bytes.buffer.byteLength ? bytes.buffer : bytes.slice().buffer);

/** InvalidAccessError unless the key is of the algorithm and allows the usage. */
function checkKey(key, algorithm, usage) {
  if (key.algorithm.name !== algorithm.name) {
    throw new DOMException(`The key is for ${key.algorithm.name}, not for ${algorithm.name}.`, "InvalidAccessError");
  }
  if (!key.usages.includes(usage)) {
    throw new DOMException(`The key does not support the usage "${usage}".`, "InvalidAccessError");
  }
}

function exportMaterial(format, key) {
  const { exportKey } = implementationOf(key);
  if (exportKey === undefined) throw new DOMException(`${key.algorithm.name} keys cannot be exported.`, "NotSupportedError");
  if (!key.extractable) throw new DOMException("The key is not extractable.", "InvalidAccessError");
  return exportKey(format, key);
}

function importMaterial(format, material, algorithm, extractable, usages) {
  return algorithm.implementation.importKey(format, material, algorithm, extractable, usages);
}

export class SubtleCrypto {
  #brand;

  constructor(secret) {
    if (secret !== SECRET) throw illegalConstructor();
  }

  static #check(value) {
    if (typeof value !== "object" || value === null || !(#brand in value)) throw illegalInvocation();
  }

  /** encrypt(), decrypt() and sign(). */
  static async #operate(self, count, operation, algorithm, key, data) {
    SubtleCrypto.#check(self);
    need(count, 3, operation);
    const normal = normalize(algorithm, operation); // before the bytes: its getters may change them
    const bytes = viewOf(data, "data");
    checkKey(toKey(key), normal, operation);
    return toBuffer(await normal.implementation[operation](normal, key, bytes));
  }

  encrypt(algorithm, key, data) {
    return SubtleCrypto.#operate(this, arguments.length, "encrypt", algorithm, key, data);
  }

  decrypt(algorithm, key, data) {
    return SubtleCrypto.#operate(this, arguments.length, "decrypt", algorithm, key, data);
  }

  sign(algorithm, key, data) {
    return SubtleCrypto.#operate(this, arguments.length, "sign", algorithm, key, data);
  }

  async verify(algorithm, key, signature, data) {
    SubtleCrypto.#check(this);
    need(arguments.length, 4, "verify");
    const normal = normalize(algorithm, "verify");
    const signatureBytes = viewOf(signature, "signature");
    const bytes = viewOf(data, "data");
    checkKey(toKey(key), normal, "verify");
    return normal.implementation.verify(normal, key, signatureBytes, bytes);
  }

  async digest(algorithm, data) {
    SubtleCrypto.#check(this);
    need(arguments.length, 2, "digest");
    if (!isBufferSource(data)) throw parameterError("digest", "SubtleCrypto", 2, "BufferSource"); // its algorithm is looked at later
    const hash = (typeof algorithm === "string" ? HASH[algorithm] : undefined) ?? HASH[normalize(algorithm, "digest").name];
    const bytes = viewOf(data, "data");
    if (!isLong(bytes)) return native.crypto(CryptoOp.DIGEST, false, hash, 0, 0, 0, bytes).buffer;
    return toBuffer(await call(CryptoOp.DIGEST, { background: true, n: [hash], buffers: [bytes] }));
  }

  async generateKey(algorithm, extractable, keyUsages) {
    SubtleCrypto.#check(this);
    need(arguments.length, 3, "generateKey");
    const usages = toUsages(keyUsages);
    const normal = normalize(algorithm, "generateKey");
    needsEvent();
    return normal.implementation.generateKey(normal, !!extractable, usages);
  }

  async deriveKey(algorithm, baseKey, derivedKeyType, extractable, keyUsages) {
    SubtleCrypto.#check(this);
    need(arguments.length, 5, "deriveKey");
    const usages = toUsages(keyUsages);
    const normal = normalize(algorithm, "deriveBits");
    const importType = normalize(derivedKeyType, "importKey");
    const lengthType = normalize(derivedKeyType, "getKeyLength");
    checkKey(toKey(baseKey), normal, "deriveKey");
    const length = lengthType.implementation.getKeyLength(lengthType);
    const secret = await normal.implementation.deriveBits(normal, baseKey, length);
    return importMaterial("raw", secret, importType, !!extractable, usages);
  }

  async deriveBits(algorithm, baseKey, length = null) {
    SubtleCrypto.#check(this);
    need(arguments.length, 2, "deriveBits");
    const normal = normalize(algorithm, "deriveBits");
    checkKey(toKey(baseKey), normal, "deriveBits");
    const bits = length === null || length === undefined ? null : Math.trunc(Number(length)) || 0;
    if (bits !== null && bits < 0) throw new TypeError("The length is negative.");
    return toBuffer(await normal.implementation.deriveBits(normal, baseKey, bits));
  }

  async importKey(format, keyData, algorithm, extractable, keyUsages) {
    SubtleCrypto.#check(this);
    need(arguments.length, 5, "importKey");
    const form = toFormat(format);
    const usages = toUsages(keyUsages);
    if (!isObject(keyData)) throw parameterError("importKey", "SubtleCrypto", 2, "BufferSource or JsonWebKey");
    const isBytes = isBufferSource(keyData);
    if (form === "jwk" && isBytes) throw new TypeError("The key data is not a JsonWebKey.");
    const normal = normalize(algorithm, "importKey");
    const material = form === "jwk" ? toJsonWebKey(keyData) : bytesOf(keyData, "keyData");
    return importMaterial(form, material, normal, !!extractable, usages);
  }

  async exportKey(format, key) {
    SubtleCrypto.#check(this);
    need(arguments.length, 2, "exportKey");
    const form = toFormat(format);
    const material = exportMaterial(form, toKey(key));
    return form === "jwk" ? material : toBuffer(material);
  }

  async wrapKey(format, key, wrappingKey, wrapAlgorithm) {
    SubtleCrypto.#check(this);
    need(arguments.length, 4, "wrapKey");
    const form = toFormat(format);
    const operation = supports(wrapAlgorithm, "wrapKey") ? "wrapKey" : "encrypt";
    const normal = normalize(wrapAlgorithm, operation);
    checkKey(toKey(wrappingKey), normal, "wrapKey");
    const material = exportMaterial(form, toKey(key));
    const bytes = form === "jwk" ? native.utf8Encode(JSON.stringify(material)) : material;
    return toBuffer(await normal.implementation[operation](normal, wrappingKey, bytes));
  }

  async unwrapKey(format, wrappedKey, unwrappingKey, unwrapAlgorithm, unwrappedKeyAlgorithm, extractable, keyUsages) {
    SubtleCrypto.#check(this);
    need(arguments.length, 7, "unwrapKey");
    const form = toFormat(format);
    const usages = toUsages(keyUsages);
    const operation = supports(unwrapAlgorithm, "unwrapKey") ? "unwrapKey" : "decrypt";
    const normal = normalize(unwrapAlgorithm, operation);
    const importType = normalize(unwrappedKeyAlgorithm, "importKey");
    const bytes = bytesOf(wrappedKey, "wrappedKey");
    checkKey(toKey(unwrappingKey), normal, "unwrapKey");
    let material = await normal.implementation[operation](normal, unwrappingKey, bytes);
    if (form === "jwk") {
      try {
        material = toJsonWebKey(JSON.parse(native.utf8Decode(material)));
      } catch {
        throw new DOMException("The unwrapped key is not a JSON Web Key.", "DataError");
      }
    }
    return importMaterial(form, material, importType, !!extractable, usages);
  }

  /** Not in the standard: whether two buffers of one length are equal, in constant time. */
  timingSafeEqual(a, b) {
    SubtleCrypto.#check(this);
    const first = viewOf(a, "a");
    const second = viewOf(b, "b");
    if (first.byteLength !== second.byteLength) throw new TypeError("Input buffers must have the same byte length.");
    return native.timingSafeEqual(first, second);
  }
}
finishInterface(SubtleCrypto);
Object.defineProperty(SubtleCrypto, "length", { value: 0, configurable: true });

export const subtle = new SubtleCrypto(SECRET);
