// node:crypto: hashes, HMACs, ciphers and key derivation on OpenSSL (src/bindings/node_crypto.c);
// keys and signatures are in internal/keys.js.
import { Transform } from "readable-stream";
import { Buffer } from "./buffer.js";
import { invalidArgType, nodeError, outOfRange, validateFunction, validateString } from "./internal/errors.js";
import { native, nativeIds } from "./internal/internals.js";
import * as keys from "./internal/keys.js";
import dh from "./internal/dh.js";
import { unsupported } from "./internal/stub.js";
import { X509Certificate } from "./internal/x509.js";

const { crypto: webcrypto } = globalThis;
const { asBuffer, bytesOf, output } = keys;
const SIZE_MAX = 2 ** 31 - 1;

function integer(value, name, min = 0, max = SIZE_MAX) {
  if (typeof value !== "number") throw invalidArgType(name, "of type number", value);
  if (!Number.isInteger(value)) throw outOfRange(name, "an integer", value);
  if (value < min || value > max) throw outOfRange(name, `>= ${min} && <= ${max}`, value);
  return value;
}

// ---- Hashes ----

/** What Hash and Hmac have in common: a stream that gives its digest at the end. */
class Digest extends Transform {
  #state;
  #length;
  #done = false;
  constructor(state, length, options) {
    super(options);
    this.#state = state;
    this.#length = length;
  }
  get state() {
    if (this.#done) throw nodeError(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
    return this.#state;
  }
  update(data, encoding = undefined) {
    native.nodeHashUpdate(this.state, bytesOf(data, "data", encoding ?? "utf8"));
    return this;
  }
  digest(encoding = undefined) {
    const bytes = native.nodeHashFinal(this.state, this.#length);
    this.#done = true;
    return output(bytes, encoding);
  }
  get length() {
    return this.#length;
  }
  _transform(chunk, encoding, callback) {
    this.update(chunk, encoding);
    callback();
  }
  _flush(callback) {
    this.push(this.digest());
    callback();
  }
}

function newHash(algorithm, key) {
  validateString(algorithm, key === undefined ? "algorithm" : "hmac");
  const state = native.nodeHash(algorithm, key);
  if (state === null) {
    throw key === undefined
      ? nodeError(Error, "ERR_OSSL_EVP_UNSUPPORTED", "Digest method not supported")
      : nodeError(Error, "ERR_CRYPTO_INVALID_DIGEST", `Invalid digest: ${algorithm}`);
  }
  return state;
}

export class Hash extends Digest {
  #options;
  constructor(source, options = {}) {
    const state = source instanceof Hash ? native.nodeHashCopy(source.state) : newHash(source);
    const length = options?.outputLength ?? (source instanceof Hash ? source.length : undefined) ?? 0;
    super(state, length, options);
    this.#options = { ...options, outputLength: length || undefined };
  }
  copy(options = {}) {
    return new Hash(this, { ...this.#options, ...options });
  }
}

export class Hmac extends Digest {
  constructor(algorithm, key, options) {
    super(newHash(algorithm, bytesOf(key, "key", options?.encoding)), 0, options);
  }
}

const createHash = (algorithm, options) => new Hash(algorithm, options);
const createHmac = (algorithm, key, options) => new Hmac(algorithm, key, options);

function hash(algorithm, data, encoding = "hex") {
  const state = newHash(algorithm);
  native.nodeHashUpdate(state, bytesOf(data, "input"));
  return output(native.nodeHashFinal(state, 0), encoding);
}

// ---- Ciphers ----

class CipherBase extends Transform {
  #state;
  #aead;
  #encrypts;
  #tagLength;
  #tag;
  #ended = false;
  #remake;
  constructor(encrypts, name, key, iv, options = {}) {
    super(options);
    validateString(name, "cipher");
    const info = native.nodeCipherInfo(name.toLowerCase());
    if (info === null) throw nodeError(Error, "ERR_CRYPTO_UNKNOWN_CIPHER", "Unknown cipher");
    this.#aead = info[3];
    this.#encrypts = encrypts;
    this.#tagLength = options?.authTagLength ?? 16;
    const keyBytes = bytesOf(key, "key");
    const ivBytes = iv === null ? new Uint8Array() : bytesOf(iv, "iv");
    this.#remake = (padding) => {
      const state = native.nodeCipher(name.toLowerCase(), encrypts, keyBytes, ivBytes, padding);
      if (typeof state !== "string") return state;
      if (state === "Invalid key length") throw nodeError(RangeError, "ERR_CRYPTO_INVALID_KEYLEN", state);
      if (state === "Invalid initialization vector") throw nodeError(TypeError, "ERR_CRYPTO_INVALID_IV", state);
      throw nodeError(Error, "ERR_OSSL_EVP_ERROR", state);
    };
    this.#state = this.#remake(true);
  }
  #alive() {
    if (this.#ended) throw nodeError(Error, "ERR_CRYPTO_INVALID_STATE", "Unsupported state or unable to authenticate data");
    return this.#state;
  }
  update(data, inputEncoding = undefined, outputEncoding = undefined) {
    return output(native.nodeCipherUpdate(this.#alive(), bytesOf(data, "data", inputEncoding ?? "utf8"), false), outputEncoding);
  }
  final(outputEncoding = undefined) {
    const result = native.nodeCipherFinal(this.#alive());
    this.#ended = true;
    if (typeof result === "string") {
      if (this.#aead) throw nodeError(Error, "ERR_CRYPTO_INVALID_STATE", "Unsupported state or unable to authenticate data");
      throw nodeError(Error, /wrong final block/.test(result) ? "ERR_OSSL_WRONG_FINAL_BLOCK_LENGTH" : "ERR_OSSL_BAD_DECRYPT", result);
    }
    if (this.#aead && this.#encrypts) this.#tag = native.nodeCipherTag(this.#state, this.#tagLength);
    return output(result, outputEncoding);
  }
  setAutoPadding(padding = true) {
    this.#state = this.#remake(!!padding);
    return this;
  }
  setAAD(data, options = undefined) {
    if (!this.#aead) throw nodeError(Error, "ERR_CRYPTO_INVALID_STATE", "Invalid state for operation setAAD");
    native.nodeCipherUpdate(this.#alive(), bytesOf(data, "buffer", options?.encoding), true);
    return this;
  }
  getAuthTag() {
    if (!this.#tag) throw nodeError(Error, "ERR_CRYPTO_INVALID_STATE", "Invalid state for operation getAuthTag");
    return asBuffer(this.#tag);
  }
  setAuthTag(tag, encoding = undefined) {
    if (!this.#aead || this.#encrypts) throw nodeError(Error, "ERR_CRYPTO_INVALID_STATE", "Invalid state for operation setAuthTag");
    const bytes = bytesOf(tag, "buffer", encoding);
    if (bytes.length < 4 || bytes.length > 16) throw nodeError(TypeError, "ERR_CRYPTO_INVALID_AUTH_TAG", `Invalid authentication tag length: ${bytes.length}`);
    native.nodeCipherTag(this.#alive(), bytes);
    return this;
  }
  _transform(chunk, encoding, callback) {
    this.push(this.update(chunk, encoding));
    callback();
  }
  _flush(callback) {
    try {
      this.push(this.final());
    } catch (error) {
      callback(error);
      return;
    }
    callback();
  }
}
export class Cipheriv extends CipherBase {
  constructor(...args) {
    super(true, ...args);
  }
}
export class Decipheriv extends CipherBase {
  constructor(...args) {
    super(false, ...args);
  }
}

// ---- Derivation ----

/** Runs `derive` at once or, with a callback, in the background. */
function derived(args, callback, invalid) {
  if (callback === undefined) {
    const bytes = native.nodeDerive(false, ...args);
    if (bytes === null) throw invalid();
    return asBuffer(bytes);
  }
  validateFunction(callback, "callback");
  const promise = native.nodeDerive(true, ...args);
  if (promise === null) throw invalid();
  promise.then((bytes) => callback(null, asBuffer(bytes)), (error) => callback(error));
  return undefined;
}

function pbkdf2Arguments(password, salt, iterations, keylen, digest) {
  validateString(digest, "digest");
  return [digest, bytesOf(password, "password"), bytesOf(salt, "salt"), integer(keylen, "keylen", 0, 64 << 20), integer(iterations, "iterations", 1), 0, 0, 0];
}
const invalidDigest = (digest) => () => nodeError(TypeError, "ERR_CRYPTO_INVALID_DIGEST", `Invalid digest: ${digest}`);
const pbkdf2Sync = (...args) => derived(pbkdf2Arguments(...args), undefined, invalidDigest(args[4]));
const pbkdf2 = (password, salt, iterations, keylen, digest, callback) => {
  validateFunction(callback, "callback");
  derived(pbkdf2Arguments(password, salt, iterations, keylen, digest), callback, invalidDigest(digest));
};

function scryptArguments(password, salt, keylen, options = {}) {
  const cost = options.cost ?? options.N ?? 16384;
  const blockSize = options.blockSize ?? options.r ?? 8;
  const parallelization = options.parallelization ?? options.p ?? 1;
  const maxmem = options.maxmem ?? 32 << 20;
  if (cost < 2 || (cost & (cost - 1)) !== 0 || 128 * cost * blockSize > maxmem) {
    throw nodeError(RangeError, "ERR_CRYPTO_INVALID_SCRYPT_PARAMS", "Invalid scrypt params: memory limit exceeded");
  }
  return [null, bytesOf(password, "password"), bytesOf(salt, "salt"), integer(keylen, "keylen", 0, 64 << 20), cost, blockSize, parallelization, maxmem + 1024 * 1024];
}
const invalidScrypt = () => nodeError(RangeError, "ERR_CRYPTO_INVALID_SCRYPT_PARAMS", "Invalid scrypt params");
const scryptSync = (...args) => derived(scryptArguments(...args), undefined, invalidScrypt);
const scrypt = (password, salt, keylen, options, callback = options) => {
  validateFunction(callback, "callback");
  derived(scryptArguments(password, salt, keylen, typeof options === "object" ? options : {}), callback, invalidScrypt);
};

/** RFC 5869, on HMAC. */
function hkdfSync(digest, key, salt, info, keylen) {
  const size = native.nodeHash(digest, undefined) === null ? 0 : hash(digest, "", "buffer").length;
  if (size === 0) throw invalidDigest(digest)();
  integer(keylen, "length");
  if (keylen > size * 255) throw nodeError(RangeError, "ERR_CRYPTO_INVALID_KEYLEN", "Invalid key length");
  const saltBytes = bytesOf(salt, "salt");
  const pseudoRandomKey = createHmac(digest, saltBytes.length ? saltBytes : Buffer.alloc(size)).update(bytesOf(key, "ikm")).digest();
  const pieces = [];
  let last = Buffer.alloc(0);
  for (let i = 1; pieces.length * size < keylen; i++) {
    last = createHmac(digest, pseudoRandomKey).update(last).update(bytesOf(info, "info")).update(Uint8Array.of(i)).digest();
    pieces.push(last);
  }
  const all = new Uint8Array(Buffer.concat(pieces)).slice(0, keylen);
  return all.buffer;
}
const hkdf = (digest, key, salt, info, keylen, callback) => {
  validateFunction(callback, "callback");
  const result = hkdfSync(digest, key, salt, info, keylen);
  queueMicrotask(() => callback(null, result));
};

// ---- Randomness ----

function randomBytes(size, callback = undefined) {
  integer(size, "size");
  const bytes = Buffer.alloc(size);
  native.randomFill(bytes);
  if (callback === undefined) return bytes;
  validateFunction(callback, "callback");
  queueMicrotask(() => callback(null, bytes));
  return undefined;
}
function randomFillSync(target, offset = 0, size = undefined) {
  const bytes = bytesOf(target, "buf");
  const unit = target.BYTES_PER_ELEMENT ?? 1;
  const start = offset * unit;
  const end = size === undefined ? bytes.length : start + size * unit;
  if (start < 0 || end > bytes.length) throw outOfRange("size + offset", `<= ${bytes.length}`, end);
  if (end > start) native.randomFill(bytes.subarray(start, end));
  return target;
}
function randomFill(target, ...rest) {
  const callback = rest.pop();
  validateFunction(callback, "callback");
  randomFillSync(target, ...rest);
  queueMicrotask(() => callback(null, target));
}
function randomInt(min, max, callback) {
  if (max === undefined || typeof max === "function") [min, max, callback] = [0, min, max];
  if (!Number.isSafeInteger(min)) throw invalidArgType("min", "a safe integer", min);
  if (!Number.isSafeInteger(max)) throw invalidArgType("max", "a safe integer", max);
  const range = max - min;
  if (range <= 0) throw outOfRange("max", `greater than the value of "min" (${min})`, max);
  if (range > 2 ** 48 - 1) throw outOfRange("max - min", `<= ${2 ** 48 - 1}`, range);
  // Numbers past the last whole multiple of the range are drawn again: all results are equally likely.
  const limit = 2 ** 48 - (2 ** 48 % range);
  let value;
  do value = randomBytes(6).readUIntBE(0, 6);
  while (value >= limit);
  const result = min + (value % range);
  if (callback === undefined) return result;
  queueMicrotask(() => callback(null, result));
  return undefined;
}

function timingSafeEqual(a, b) {
  const left = bytesOf(a, "buf1");
  const right = bytesOf(b, "buf2");
  if (left.length !== right.length) throw nodeError(RangeError, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH", "Input buffers must have the same byte length");
  return native.timingSafeEqual(left, right);
}

const names = (ciphers) => [...new Set(native.nodeCryptoNames(ciphers).split(" ").map((name) => (ciphers ? name.toLowerCase() : name)))];

const module = {
  Hash, Hmac, Cipheriv, Decipheriv, webcrypto,
  KeyObject: keys.KeyObject, Sign: keys.Sign, Verify: keys.Verify,
  createPrivateKey: keys.createPrivateKey, createPublicKey: keys.createPublicKey, createSecretKey: keys.createSecretKey,
  createSign: (algorithm, options) => new keys.Sign(algorithm, options),
  createVerify: (algorithm, options) => new keys.Verify(algorithm, options),
  sign: keys.sign, verify: keys.verify, publicEncrypt: keys.publicEncrypt, privateDecrypt: keys.privateDecrypt,
  privateEncrypt: keys.privateEncrypt, publicDecrypt: keys.publicDecrypt,
  generateKeyPair: keys.generateKeyPair, generateKeyPairSync: keys.generateKeyPairSync,
  subtle: webcrypto.subtle,
  createHash, createHmac, hash,
  createCipheriv: (name, key, iv, options) => new Cipheriv(name, key, iv, options),
  createDecipheriv: (name, key, iv, options) => new Decipheriv(name, key, iv, options),
  generateKeySync: (type, { length }) => keys.createSecretKey(randomBytes(length >> 3)),
  pbkdf2, pbkdf2Sync, scrypt, scryptSync, hkdf, hkdfSync,
  randomBytes, randomFill, randomFillSync, randomInt, pseudoRandomBytes: randomBytes,
  randomUUID: () => webcrypto.randomUUID(),
  getRandomValues: (array) => webcrypto.getRandomValues(array),
  timingSafeEqual,
  ...dh,
  X509Certificate,
  getHashes: () => names(false).filter((name) => native.nodeHash(name, undefined) !== null),
  getCiphers: () => names(true).filter((name) => native.nodeCipherInfo(name) !== null),
  getCipherInfo(name) {
    const info = native.nodeCipherInfo(`${name}`);
    return info === null ? undefined : { name: `${name}`, keyLength: info[0], ivLength: info[1] || undefined, blockSize: info[2] > 1 ? info[2] : undefined };
  },
  getCurves: () => Object.keys(nativeIds.KIND).filter((name) => name.startsWith("P-")),
  getFips: () => 0,
  constants: { RSA_PKCS1_PADDING: 1, RSA_NO_PADDING: 3, RSA_PKCS1_OAEP_PADDING: 4, RSA_PKCS1_PSS_PADDING: 6, RSA_PSS_SALTLEN_DIGEST: -1, RSA_PSS_SALTLEN_MAX_SIGN: -2, RSA_PSS_SALTLEN_AUTO: -2 },
};
module.Certificate = unsupported("Certificate of node:crypto (SPKAC)");
export default module;
