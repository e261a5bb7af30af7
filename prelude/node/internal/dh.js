// Diffie-Hellman, with numbers and with elliptic curves, and primes of node:crypto.
import { Buffer } from "../buffer.js";
import { invalidArgType, invalidArgValue, nodeError, outOfRange, validateFunction } from "./errors.js";
import { native } from "./internals.js";
import { asBuffer, bytesOf, derOf, KeyObject, output } from "./keys.js";

/** Sizes of the groups' primes in bits: RFC 2409 and RFC 3526. */
const GROUPS = { modp1: 768, modp2: 1024, modp5: 1536, modp14: 2048, modp15: 3072, modp16: 4096, modp17: 6144, modp18: 8192 };
const FORMS = { compressed: 2, uncompressed: 4, hybrid: 6 };
const BITS_MAX = 16384;

const encoded = (value, encoding, name) => bytesOf(value, name, encoding);
const noKey = (kind) => nodeError(Error, `ERR_CRYPTO_INVALID_KEYTYPE`, `No ${kind} key - did you forget to generate one?`);

class NumberExchange {
  #prime;
  #generator;
  #private;
  #public;
  constructor(prime, generator) {
    this.#prime = prime;
    this.#generator = generator;
  }
  /** 0: nothing is wrong. As OpenSSL's DH_check(): 1 the prime is none, 2 it is not a safe one. */
  get verifyError() {
    const prime = this.#prime;
    if (!native.nodeIsPrime(false, prime)) return 1;
    const half = prime.slice();
    for (let i = half.length - 1; i >= 0; i--) half[i] = (prime[i] >> 1) | (i > 0 ? (prime[i - 1] & 1) << 7 : 0);
    return native.nodeIsPrime(false, half) ? 0 : 2;
  }
  generateKeys(encoding = undefined) {
    if (this.#private === undefined) {
      // Between 1 and the prime: below half of it is as good.
      const secret = globalThis.crypto.getRandomValues(new Uint8Array(this.#prime.length));
      secret[0] &= this.#prime[0] >> 1;
      secret[secret.length - 1] |= 2;
      this.#private = secret;
    }
    this.#public = this.#power(this.#generator);
    return output(this.#public.slice(), encoding);
  }
  #power(base) {
    const result = native.nodeModExp(base, this.#private, this.#prime);
    if (result === null) throw nodeError(Error, "ERR_CRYPTO_OPERATION_FAILED", "The numbers are not fit for Diffie-Hellman.");
    return result;
  }
  computeSecret(otherKey, inputEncoding = undefined, outputEncoding = undefined) {
    if (this.#private === undefined) throw noKey("private");
    const other = encoded(otherKey, inputEncoding, "otherPublicKey");
    const [a, p] = [other, this.#prime].map((bytes) => BigInt(`0x${asBuffer(bytes).toString("hex") || "0"}`));
    if (a <= 1n) throw nodeError(RangeError, "ERR_CRYPTO_INVALID_KEYLEN", "Supplied key is too small");
    if (a >= p - 1n) throw nodeError(RangeError, "ERR_CRYPTO_INVALID_KEYLEN", "Supplied key is too large");
    return output(this.#power(other), outputEncoding);
  }
  getPrime(encoding = undefined) {
    return output(this.#prime.slice(), encoding);
  }
  getGenerator(encoding = undefined) {
    return output(this.#generator.slice(), encoding);
  }
  getPublicKey(encoding = undefined) {
    if (this.#public === undefined) throw noKey("public");
    return output(this.#public.slice(), encoding);
  }
  getPrivateKey(encoding = undefined) {
    if (this.#private === undefined) throw noKey("private");
    return output(this.#private.slice(), encoding);
  }
  setPublicKey(key, encoding = undefined) {
    this.#public = Uint8Array.from(encoded(key, encoding, "publicKey"));
  }
  setPrivateKey(key, encoding = undefined) {
    this.#private = Uint8Array.from(encoded(key, encoding, "privateKey"));
  }
}

export class DiffieHellman extends NumberExchange {
  constructor(sizeOrPrime, primeEncoding = undefined, generator = undefined, generatorEncoding = undefined) {
    if (primeEncoding !== undefined && (typeof primeEncoding !== "string" || !Buffer.isEncoding(primeEncoding)) && primeEncoding !== "buffer") {
      [primeEncoding, generator, generatorEncoding] = [undefined, primeEncoding, generator];
    }
    let base = generator ?? 2;
    if (typeof base === "number") {
      if (!(Number.isInteger(base) && base >= 2 && base <= 0x7fffffff)) throw outOfRange("generator", ">= 2", base);
      base = Uint8Array.from([base >>> 24, base >>> 16, base >>> 8, base].map((byte) => byte & 0xff)).subarray(Math.clz32(base) >> 3);
    } else {
      base = encoded(base, generatorEncoding, "generator");
    }
    let prime;
    if (typeof sizeOrPrime === "number") {
      if (!(Number.isInteger(sizeOrPrime) && sizeOrPrime >= 512 && sizeOrPrime <= BITS_MAX)) throw outOfRange("sizeOrKey", `>= 512 && <= ${BITS_MAX}`, sizeOrPrime);
      prime = native.nodePrime(false, sizeOrPrime, true);
    } else {
      prime = Uint8Array.from(encoded(sizeOrPrime, primeEncoding, "sizeOrKey"));
    }
    super(prime, Uint8Array.from(base));
  }
}

export class DiffieHellmanGroup extends NumberExchange {
  constructor(name) {
    const prime = native.nodeDhGroup(GROUPS[name] ?? 0);
    if (prime === null) throw nodeError(Error, "ERR_CRYPTO_UNKNOWN_DH_GROUP", "Unknown DH group");
    super(prime, Uint8Array.of(2));
  }
}
delete DiffieHellmanGroup.prototype.setPublicKey;
for (const method of ["setPublicKey", "setPrivateKey"]) {
  Object.defineProperty(DiffieHellmanGroup.prototype, method, { value: undefined, configurable: true });
}

const curveName = (curve) => `${{ "P-256": "prime256v1", "P-384": "secp384r1", "P-521": "secp521r1" }[curve] ?? curve}`;
const invalidPoint = () => nodeError(Error, "ERR_CRYPTO_ECDH_INVALID_PUBLIC_KEY", "Public key is not valid for specified curve");

export class ECDH {
  #curve;
  #private;
  #public;
  constructor(curve) {
    this.#curve = curveName(curve);
    if (native.nodeEcMultiply(this.#curve, Uint8Array.of(1)) === undefined) throw nodeError(TypeError, "ERR_CRYPTO_INVALID_CURVE", "Invalid EC curve name");
  }
  generateKeys(encoding = undefined, format = undefined) {
    [this.#private, this.#public] = native.nodeEcMultiply(this.#curve);
    return this.getPublicKey(encoding, format);
  }
  computeSecret(otherKey, inputEncoding = undefined, outputEncoding = undefined) {
    if (this.#private === undefined) throw noKey("private");
    const secret = native.nodeEcMultiply(this.#curve, this.#private, encoded(otherKey, inputEncoding, "otherPublicKey"));
    if (secret === null) throw invalidPoint();
    return output(secret, outputEncoding);
  }
  getPrivateKey(encoding = undefined) {
    if (this.#private === undefined) throw noKey("private");
    return output(this.#private.slice(), encoding);
  }
  getPublicKey(encoding = undefined, format = "uncompressed") {
    if (this.#public === undefined) throw noKey("public");
    return ECDH.convertKey(this.#public, this.#curve, undefined, encoding, format ?? "uncompressed");
  }
  setPrivateKey(key, encoding = undefined) {
    const pair = native.nodeEcMultiply(this.#curve, encoded(key, encoding, "privateKey"));
    if (pair === null) throw nodeError(Error, "ERR_CRYPTO_INVALID_KEYTYPE", "Private key is not valid for specified curve.");
    [this.#private, this.#public] = pair;
  }
  static convertKey(key, curve, inputEncoding = undefined, outputEncoding = undefined, format = "uncompressed") {
    if (FORMS[format] === undefined) throw nodeError(TypeError, "ERR_CRYPTO_ECDH_INVALID_FORMAT", `Invalid ECDH format: ${format}`);
    const point = native.nodeEcPoint(curveName(curve), encoded(key, inputEncoding, "key"), FORMS[format]);
    if (point === null) throw invalidPoint();
    return output(point, outputEncoding);
  }
}

export function diffieHellman({ privateKey, publicKey }, callback = undefined) {
  for (const [name, key] of [["private", privateKey], ["public", publicKey]]) {
    if (!(key instanceof KeyObject) || (key.type !== name && !(name === "public" && key.type === "private"))) throw invalidArgValue(`options.${name}Key`, key);
  }
  const secret = native.nodeAgree(derOf(privateKey), derOf(publicKey));
  if (secret === null) throw nodeError(Error, "ERR_CRYPTO_INCOMPATIBLE_KEY", "Incompatible key type for Diffie-Hellman");
  if (callback === undefined) return asBuffer(secret);
  validateFunction(callback, "callback");
  queueMicrotask(() => callback(null, asBuffer(secret)));
  return undefined;
}

// ---- primes ----

function numberBytes(value, name) {
  if (typeof value !== "bigint") return value === undefined ? undefined : encoded(value, undefined, name);
  if (value < 0n) throw outOfRange(name, ">= 0", value);
  const hex = value.toString(16);
  return Uint8Array.from(Buffer.from(hex.length % 2 ? `0${hex}` : hex, "hex"));
}

function primeArguments(size, options) {
  if (!(Number.isInteger(size) && size >= 1 && size <= BITS_MAX)) throw outOfRange("size", `>= 1 && <= ${BITS_MAX}`, size);
  return [size, !!options.safe, numberBytes(options.add, "options.add"), numberBytes(options.rem, "options.rem")];
}
const primeResult = (bytes, { bigint }) => {
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  return bigint ? BigInt(`0x${asBuffer(bytes).toString("hex")}`) : buffer;
};

export const generatePrimeSync = (size, options = {}) => primeResult(native.nodePrime(false, ...primeArguments(size, options)), options);
export function generatePrime(size, options, callback = options) {
  if (typeof options === "function") options = {};
  validateFunction(callback, "callback");
  native.nodePrime(true, ...primeArguments(size, options)).then((bytes) => callback(null, primeResult(bytes, options)), callback);
}
export const checkPrimeSync = (candidate) => native.nodeIsPrime(false, numberBytes(candidate, "candidate"));
export function checkPrime(candidate, options, callback = options) {
  validateFunction(callback, "callback");
  if (candidate === undefined) throw invalidArgType("candidate", "of type bigint or an instance of ArrayBuffer, TypedArray, Buffer, or DataView", candidate);
  native.nodeIsPrime(true, numberBytes(candidate, "candidate")).then((isPrime) => callback(null, isPrime), callback);
}

export default {
  DiffieHellman, DiffieHellmanGroup, ECDH, diffieHellman, generatePrime, generatePrimeSync, checkPrime, checkPrimeSync,
  createDiffieHellman: (...args) => new DiffieHellman(...args),
  createDiffieHellmanGroup: (name) => new DiffieHellmanGroup(name),
  getDiffieHellman: (name) => new DiffieHellmanGroup(name),
  createECDH: (curve) => new ECDH(curve),
};
