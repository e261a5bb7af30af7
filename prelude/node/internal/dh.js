// Diffie-Hellman, with numbers and with elliptic curves, and primes of node:crypto.
import { Buffer } from "../buffer.js";
import { callable } from "./callable.js";
import { invalidArgType, invalidArgValue, nodeError, outOfRange, validateBoolean, validateFunction, validateInt32, validateObject } from "./errors.js";
import { native } from "./internals.js";
import { asBuffer, bytesOf, derOf, KeyObject, output } from "./keys.js";

/** Sizes of the groups' primes in bits: RFC 2409 and RFC 3526. */
const GROUPS = { modp1: 768, modp2: 1024, modp5: 1536, modp14: 2048, modp15: 3072, modp16: 4096, modp17: 6144, modp18: 8192 };
const FORMS = { compressed: 2, uncompressed: 4, hybrid: 6 };
const BITS_MAX = 16384;
const SIZE_MAX = 10_000; // of a prime that is to be found, in bits
const PRIME_BITS_MAX = 8192;

const encoded = (value, encoding, name) => bytesOf(value, name, encoding);
const noKey = (kind) => nodeError(Error, `ERR_CRYPTO_INVALID_KEYTYPE`, `No ${kind} key - did you forget to generate one?`);

/** Less than 0, 0 or more: two numbers of big-endian bytes. */
function compareNumbers(a, b) {
  const [x, y] = [a, b].map((bytes) => BigInt(`0x${asBuffer(Uint8Array.from(bytes)).toString("hex") || "0"}`));
  return x < y ? -1 : x > y ? 1 : 0;
}

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
    this.#check(other, "Supplied key");
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
  /** A public number is between 1 and the prime less one, both left out. */
  #check(key, what) {
    const [a, p] = [key, this.#prime].map((bytes) => BigInt(`0x${asBuffer(bytes).toString("hex") || "0"}`));
    if (a <= 1n) throw Object.assign(new Error(`${what} is too small`), { code: "ERR_CRYPTO_INVALID_KEYLEN" });
    if (a >= p - 1n) throw Object.assign(new Error(`${what} is too large`), { code: "ERR_CRYPTO_INVALID_KEYLEN" });
  }
  setPublicKey(key, encoding = undefined) {
    const bytes = Uint8Array.from(encoded(key, encoding, "publicKey"));
    this.#check(bytes, "Public key");
    this.#public = bytes;
  }
  setPrivateKey(key, encoding = undefined) {
    this.#private = Uint8Array.from(encoded(key, encoding, "privateKey"));
  }
}

class DiffieHellmanClass extends NumberExchange {
  constructor(sizeOrPrime, primeEncoding = undefined, generator = undefined, generatorEncoding = undefined) {
    if (primeEncoding !== undefined && (typeof primeEncoding !== "string" || !Buffer.isEncoding(primeEncoding)) && primeEncoding !== "buffer") {
      [primeEncoding, generator, generatorEncoding] = [undefined, primeEncoding, generator];
    }
    let base = generator || 2;
    if (typeof base === "number") {
      validateInt32(base, "generator");
      if (base < 2) throw outOfRange("generator", ">= 2", base);
      base = Uint8Array.from([base >>> 24, base >>> 16, base >>> 8, base].map((byte) => byte & 0xff)).subarray(Math.clz32(base) >> 3);
    } else {
      base = encoded(base, generatorEncoding, "generator");
      if (base.length > PRIME_BITS_MAX / 8) throw new RangeError("The generator is too large");
      if (compareNumbers(base, [1]) <= 0) throw nodeError(Error, "ERR_OSSL_DH_BAD_GENERATOR", "bad generator");
    }
    let prime;
    if (typeof sizeOrPrime === "number") {
      validateInt32(sizeOrPrime, "sizeOrKey");
      if (sizeOrPrime > SIZE_MAX) throw new RangeError("The prime is too large");
      if (sizeOrPrime < 512 || sizeOrPrime > BITS_MAX) throw Object.assign(new Error("Invalid prime length"), { code: "ERR_CRYPTO_OPERATION_FAILED" });
      prime = native.nodePrime(false, sizeOrPrime, true);
    } else {
      prime = Uint8Array.from(encoded(sizeOrPrime, primeEncoding, "sizeOrKey"));
      // In such a group nothing can be agreed on.
      if (prime.length === 0 || prime[prime.length - 1] % 2 === 0 || compareNumbers(base, prime) >= 0) throw nodeError(Error, "ERR_CRYPTO_OPERATION_FAILED", "The prime is not fit for Diffie-Hellman.");
    }
    super(prime, Uint8Array.from(base));
  }
}

class DiffieHellmanGroupClass extends NumberExchange {
  constructor(name) {
    const prime = native.nodeDhGroup(GROUPS[name] ?? 0);
    if (prime === null) throw nodeError(Error, "ERR_CRYPTO_UNKNOWN_DH_GROUP", "Unknown DH group");
    super(prime, Uint8Array.of(2));
  }
}
for (const method of ["setPublicKey", "setPrivateKey"]) {
  Object.defineProperty(DiffieHellmanGroupClass.prototype, method, { value: undefined, configurable: true });
}

export const DiffieHellman = callable(DiffieHellmanClass, "DiffieHellman");
export const DiffieHellmanGroup = callable(DiffieHellmanGroupClass, "DiffieHellmanGroup");

const curveName = (curve) => `${{ "P-256": "prime256v1", "P-384": "secp384r1", "P-521": "secp521r1" }[curve] ?? curve}`;
const invalidPoint = () => nodeError(Error, "ERR_CRYPTO_ECDH_INVALID_PUBLIC_KEY", "Public key is not valid for specified curve");

class ECDHClass {
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
    return ECDHClass.convertKey(this.#public, this.#curve, undefined, encoding, format ?? "uncompressed");
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

export const ECDH = callable(ECDHClass, "ECDH");

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
  if (typeof value !== "bigint") {
    if (!ArrayBuffer.isView(value) && !(value instanceof ArrayBuffer)) throw invalidArgType(name, ["bigint", "ArrayBuffer", "TypedArray", "Buffer", "DataView"], value);
    return encoded(value, undefined, name);
  }
  if (value < 0n) throw outOfRange(name, ">= 0", value);
  const hex = value.toString(16);
  return Uint8Array.from(Buffer.from(hex.length % 2 ? `0${hex}` : hex, "hex"));
}

function primeArguments(size, options) {
  validateInt32(size, "size", 1);
  validateObject(options, "options");
  const { safe = false, bigint = false, add, rem } = options;
  validateBoolean(safe, "options.safe");
  validateBoolean(bigint, "options.bigint");
  if (size > PRIME_BITS_MAX) throw new RangeError(`generatePrime size exceeds maximum (${PRIME_BITS_MAX} bits)`);
  const bytes = { add: add === undefined ? undefined : numberBytes(add, "options.add"), rem: rem === undefined ? undefined : numberBytes(rem, "options.rem") };
  const number = (array) => BigInt(`0x${asBuffer(array).toString("hex") || "0"}`);
  if (bytes.add !== undefined) {
    const [by, rest] = [number(bytes.add), bytes.rem === undefined ? 0n : number(bytes.rem)];
    // Primes that are a multiple apart must be able to exist.
    if (by >= 2n ** BigInt(size)) throw Object.assign(new RangeError("invalid options.add"), { code: "ERR_OUT_OF_RANGE" });
    if (by <= rest) throw Object.assign(new RangeError("invalid options.rem"), { code: "ERR_OUT_OF_RANGE" });
  }
  return [size, safe, bytes.add, bytes.rem];
}
const primeResult = (bytes, { bigint }) => {
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  return bigint ? BigInt(`0x${asBuffer(bytes).toString("hex")}`) : buffer;
};

export const generatePrimeSync = (size, options = {}) => primeResult(native.nodePrime(false, ...primeArguments(size, options)), options);
export function generatePrime(size, options, callback = options) {
  if (typeof options === "function") options = {};
  const args = primeArguments(size, options);
  validateFunction(callback, "callback");
  native.nodePrime(true, ...args).then((bytes) => callback(null, primeResult(bytes, options)), callback);
}
function checkOptions(options) {
  validateObject(options, "options");
  if (options.checks !== undefined) validateInt32(options.checks, "options.checks", 0);
}
export function checkPrimeSync(candidate, options = {}) {
  const bytes = numberBytes(candidate, "candidate");
  checkOptions(options);
  return native.nodeIsPrime(false, bytes);
}
export function checkPrime(candidate, options = {}, callback = undefined) {
  const bytes = numberBytes(candidate, "candidate");
  if (typeof options === "function") [options, callback] = [{}, options];
  checkOptions(options);
  validateFunction(callback, "callback");
  native.nodeIsPrime(true, bytes).then((isPrime) => callback(null, isPrime), callback);
}

export default {
  DiffieHellman, DiffieHellmanGroup, ECDH, diffieHellman, generatePrime, generatePrimeSync, checkPrime, checkPrimeSync,
  createDiffieHellman: (...args) => new DiffieHellman(...args),
  createDiffieHellmanGroup: (name) => new DiffieHellmanGroup(name),
  getDiffieHellman: (name) => new DiffieHellmanGroup(name),
  createECDH: (curve) => new ECDH(curve),
};
