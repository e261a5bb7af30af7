// node:crypto: hashes, HMACs, ciphers and key derivation on OpenSSL (src/bindings/node_crypto.c);
// keys and signatures are in internal/keys.js.
import stream from "./stream.js";
import { Buffer } from "./buffer.js";
import { invalidArgType, invalidArgValue, nodeError, notImplemented, outOfRange, validateBoolean, validateEncoding, validateFunction, validateInteger, validateObject, validateOneOf, validateString, validateUint32 } from "./internal/errors.js";
import { native, needsEvent } from "./internal/internals.js";
import { callable } from "./internal/callable.js";
import cryptoConstants from "./data/crypto-constants.json";
import * as keys from "./internal/keys.js";
import dh from "./internal/dh.js";
import { X509Certificate } from "./internal/x509.js";

const { Transform } = stream;
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

/** In pieces: between them the engine looks whether the turn's time is over, which it cannot do within a native. */
const PIECE_BYTES = 4 << 20;
function updateHash(state, bytes) {
  if (bytes.byteLength <= PIECE_BYTES) return void native.nodeHashUpdate(state, bytes);
  const all = ArrayBuffer.isView(bytes) ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new Uint8Array(bytes);
  for (let at = 0; at < all.length; at += PIECE_BYTES) native.nodeHashUpdate(state, all.subarray(at, at + PIECE_BYTES));
  return undefined;
}

/** What Hash and Hmac have in common: a stream that gives its digest at the end. */
class Digest extends Transform {
  #state;
  #length;
  #done = false;
  #ofStream = null; // the digest, once the stream has ended
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
    if (typeof data !== "string" && !ArrayBuffer.isView(data)) throw invalidArgType("data", ["string", "Buffer", "TypedArray", "DataView"], data);
    updateHash(this.state, bytesOf(data, "data", encoding ?? "utf8"));
    return this;
  }
  digest(encoding = undefined) {
    // Of a hash once; of an HMAC again, but then it is empty.
    if (this.#ofStream !== null) return output(this.#ofStream.slice(), encoding);
    if (this.#done && this.isKeyed) return output(new Uint8Array(0), encoding);
    if (encoding !== undefined && encoding !== null) encoding = `${encoding}`;
    const { state } = this;
    this.#done = true;
    return output(this.#final(state), encoding);
  }
  #final(state) {
    try {
      return native.nodeHashFinal(state, this.#length);
    } catch {
      throw new Error("invalid digest size");
    }
  }
  get isKeyed() {
    return false;
  }
  get outputSize() {
    return this.#length;
  }
  _transform(chunk, encoding, callback) {
    this.update(chunk, encoding);
    callback();
  }
  _flush(callback) {
    this.#ofStream = this.#final(this.state);
    this.push(asBuffer(this.#ofStream.slice()));
    callback();
  }
}

function newHash(algorithm, key) {
  validateString(algorithm, key === undefined ? "algorithm" : "hmac");
  const state = native.nodeHash(algorithm, key);
  if (state === null) {
    throw key === undefined
      ? Object.assign(new Error("Digest method not supported"), { code: "ERR_OSSL_EVP_UNSUPPORTED" })
      : Object.assign(new Error("Digest method not supported"), { code: "ERR_CRYPTO_INVALID_DIGEST" });
  }
  return state;
}

class HashClass extends Digest {
  #options;
  constructor(source, options = {}) {
    if (options?.outputLength !== undefined) validateUint32(options.outputLength, "options.outputLength");
    const copies = source instanceof HashClass;
    const state = copies ? native.nodeHashCopy(source.state) : newHash(source);
    const length = options?.outputLength ?? (copies ? source.outputSize : undefined) ?? 0;
    if (options?.outputLength !== undefined && !copies && !/^shake/i.test(source)) {
      // Only some hashes have a length that can be chosen.
      if (native.nodeHashFinal(newHash(source), 0).length !== length) throw new Error("invalid digest size");
    }
    super(state, /^shake/i.test(`${copies ? "" : source}`) || (copies && source.outputSize) ? length : 0, options);
    this.#options = { ...options, outputLength: length || undefined };
  }
  copy(options = {}) {
    return new HashClass(this, { ...this.#options, ...options });
  }
}
export const Hash = callable(HashClass, "Hash");

class HmacClass extends Digest {
  constructor(algorithm, key, options = undefined) {
    validateString(algorithm, "hmac");
    super(newHash(algorithm, bytesOf(key, "key", options?.encoding)), 0, options);
  }
  get isKeyed() {
    return true;
  }
}
export const Hmac = callable(HmacClass, "Hmac");

const createHash = (algorithm, options) => new Hash(algorithm, options);
const createHmac = (algorithm, key, options) => new Hmac(algorithm, key, options);

function hash(algorithm, data, encoding = "hex") {
  validateString(algorithm, "algorithm");
  if (data instanceof ArrayBuffer) throw invalidArgType("input", ["Buffer", "TypedArray", "DataView", "string"], data);
  const bytes = bytesOf(data, "data");
  validateString(encoding, "outputEncoding");
  const state = newHash(algorithm);
  updateHash(state, bytes);
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
    validateString(name, "algorithm");
    const info = native.nodeCipherInfo(name.toLowerCase());
    if (info === null) throw Object.assign(new Error(`Unknown or unsupported cipher: ${name}`), { code: "ERR_CRYPTO_UNKNOWN_CIPHER" });
    this.#aead = info[3];
    this.#encrypts = encrypts;
    this.#tagLength = options?.authTagLength ?? 16;
    const keyBytes = bytesOf(key, "key");
    const ivBytes = iv === null ? new Uint8Array() : bytesOf(iv, "iv");
    this.#remake = (padding) => {
      const state = native.nodeCipher(name.toLowerCase(), encrypts, keyBytes, ivBytes, padding);
      if (typeof state !== "string") return state;
      if (state === "Invalid key length") throw Object.assign(new RangeError(state), { code: "ERR_CRYPTO_INVALID_KEYLEN" });
      if (state === "Invalid initialization vector") throw Object.assign(new Error(state), { code: "ERR_CRYPTO_INVALID_IV" });
      throw nodeError(Error, "ERR_OSSL_EVP_ERROR", state);
    };
    this.#state = this.#remake(true);
  }
  #alive() {
    if (this.#ended) throw Object.assign(new Error("Cipher/decipher context has already been finalized"), { code: "ERR_CRYPTO_INVALID_STATE" });
    return this.#state;
  }
  update(data, inputEncoding = undefined, outputEncoding = undefined) {
    if (typeof data === "string") validateEncoding(data, inputEncoding);
    const bytes = bytesOf(data, "data", inputEncoding ?? "utf8");
    return output(native.nodeCipherUpdate(this.#alive(), bytes, false), outputEncoding);
  }
  final(outputEncoding = undefined) {
    const state = this.#alive();
    if (this.#aead && !this.#encrypts && !this.#tag) throw Object.assign(new Error("No auth tag provided"), { code: "ERR_CRYPTO_INVALID_STATE" });
    const result = native.nodeCipherFinal(state);
    this.#ended = true;
    if (typeof result === "string") {
      const code = this.#aead ? "ERR_CRYPTO_INVALID_STATE" : /wrong final block/.test(result) ? "ERR_OSSL_WRONG_FINAL_BLOCK_LENGTH" : "ERR_OSSL_BAD_DECRYPT";
      throw Object.assign(new Error(this.#encrypts ? result : "Authentication failed"), { code });
    }
    if (this.#aead && this.#encrypts) this.#tag = native.nodeCipherTag(this.#state, this.#tagLength);
    return output(result, outputEncoding);
  }
  setAutoPadding(padding = true) {
    this.#state = this.#remake(!!padding);
    return this;
  }
  setAAD(data, options = undefined) {
    if (!this.#aead) throw Object.assign(new Error("Cipher does not support authenticated mode"), { code: "ERR_CRYPTO_INVALID_STATE" });
    native.nodeCipherUpdate(this.#alive(), bytesOf(data, "buffer", options?.encoding), true);
    return this;
  }
  getAuthTag() {
    if (!this.#tag || !this.#encrypts) throw Object.assign(new Error("Auth tag is only available once cipher context has been finalized"), { code: "ERR_CRYPTO_INVALID_STATE" });
    return asBuffer(this.#tag);
  }
  setAuthTag(tag, encoding = undefined) {
    if (!this.#aead || this.#encrypts) throw Object.assign(new Error("Cipher does not support authenticated mode"), { code: "ERR_CRYPTO_INVALID_STATE" });
    const bytes = bytesOf(tag, "buffer", encoding);
    if (bytes.length < 4 || bytes.length > 16) throw Object.assign(new Error("Invalid authentication tag length"), { code: "ERR_CRYPTO_INVALID_AUTH_TAG" });
    native.nodeCipherTag(this.#alive(), bytes);
    this.#tag = bytes;
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
export const Cipheriv = callable(class extends CipherBase {
  constructor(...args) {
    super(true, ...args);
  }
}, "Cipheriv");
export const Decipheriv = callable(class extends CipherBase {
  constructor(...args) {
    super(false, ...args);
  }
}, "Decipheriv");

// ---- Derivation ----

/** Runs `derive` at once or, with a callback, in the background; what OpenSSL refuses is told by it. */
function derived(args, callback, invalid) {
  if (callback === undefined) {
    let bytes = null;
    try {
      bytes = native.nodeDerive(false, ...args);
    } catch {
      throw invalid();
    }
    if (bytes === null) throw invalid();
    return asBuffer(bytes);
  }
  const promise = native.nodeDerive(true, ...args);
  if (promise === null) queueMicrotask(() => callback(invalid()));
  else promise.then((bytes) => callback(null, asBuffer(bytes)), () => callback(invalid()));
  return undefined;
}
const DERIVED_MAX = 64 << 20;

function pbkdf2Arguments(password, salt, iterations, keylen, digest) {
  validateString(digest, "digest");
  const args = [digest, bytesOf(password, "password"), bytesOf(salt, "salt"), 0, 0, 0, 0, 0];
  args[4] = integer(iterations, "iterations", 1);
  args[3] = integer(keylen, "keylen");
  const size = native.nodeHash(digest, undefined) === null ? DERIVED_MAX : hash(digest, "", "buffer").length;
  if (keylen > size * 255) throw new RangeError("Pbkdf2 failed: derived key length exceeds maximum for this hash");
  return args;
}
const invalidDigest = (what, digest) => () => Object.assign(new TypeError(`Invalid ${what} digest: ${digest}`), { code: "ERR_CRYPTO_INVALID_DIGEST" });
const pbkdf2Sync = (...args) => derived(pbkdf2Arguments(...args), undefined, invalidDigest("Pbkdf2", `${args[4]}.`));
const pbkdf2 = (password, salt, iterations, keylen, digest, callback) => {
  if (typeof digest === "function") [digest, callback] = [undefined, digest];
  const args = pbkdf2Arguments(password, salt, iterations, keylen, digest);
  validateFunction(callback, "callback");
  derived(args, callback, invalidDigest("Pbkdf2", `${digest}.`));
};

function scryptArguments(password, salt, keylen, options = {}) {
  const bytes = [bytesOf(password, "password"), bytesOf(salt, "salt")];
  integer(keylen, "keylen");
  const settings = { N: 16384, r: 8, p: 1, maxmem: 32 << 20 };
  for (const [short, long] of [["N", "cost"], ["r", "blockSize"], ["p", "parallelization"]]) {
    if (options[short] !== undefined) {
      validateUint32(options[short], short);
      settings[short] = options[short];
    }
    if (options[long] === undefined) continue;
    if (options[short] !== undefined) throw invalidArgValue(long, options[long]);
    validateUint32(options[long], long);
    settings[short] = options[long];
  }
  if (options.maxmem !== undefined) {
    validateInteger(options.maxmem, "maxmem", 0);
    settings.maxmem = options.maxmem;
  }
  // As elsewhere, zero is the usual value.
  const { N, r, p, maxmem } = { N: settings.N || 16384, r: settings.r || 8, p: settings.p || 1, maxmem: settings.maxmem || 32 << 20 };
  return [null, ...bytes, keylen, N, r, p, maxmem];
}
const SCRYPT_COST_MAX = 1048576;
const scryptError = ([, , , keylen, N, r, p]) => () =>
  N * r * p > SCRYPT_COST_MAX || N >= SCRYPT_COST_MAX || keylen > DERIVED_MAX
    ? Object.assign(new RangeError(`Scrypt failed: cost exceeds maximum (${SCRYPT_COST_MAX}).`), { code: "ERR_CRYPTO_INVALID_SCRYPT_PARAMS" })
    : Object.assign(new Error("Scrypt failed"), { code: "ERR_CRYPTO_INVALID_SCRYPT_PARAMS" });
/** What can be refused without trying: the cost, and what needs more memory than is allowed. */
function scryptFits([, , , keylen, N, r, p, maxmem]) {
  return N >= 2 && Number.isInteger(Math.log2(N)) && 128 * N * r + 128 * r * p <= maxmem && N * r * p <= SCRYPT_COST_MAX && N < SCRYPT_COST_MAX && keylen <= DERIVED_MAX;
}
const withRoom = (args) => [...args.slice(0, 7), args[7] + 1024 * 1024];
function scryptSync(...all) {
  const args = scryptArguments(...all);
  if (!scryptFits(args)) throw scryptError(args)();
  return derived(withRoom(args), undefined, scryptError(args));
}
function scrypt(password, salt, keylen, options, callback = undefined) {
  if (typeof options === "function") [options, callback] = [{}, options];
  const args = scryptArguments(password, salt, keylen, options ?? {});
  validateFunction(callback, "callback");
  if (!scryptFits(args)) queueMicrotask(() => callback(scryptError(args)()));
  else derived(withRoom(args), callback, scryptError(args));
}

const INFO_MAX = 1024;
function hkdfArguments(digest, key, salt, info, keylen) {
  validateString(digest, "digest");
  const secret = key instanceof keys.KeyObject || typeof key === "string" || ArrayBuffer.isView(key) || key instanceof ArrayBuffer || keys.isCryptoKey(key)
    ? bytesOf(key, "ikm")
    : (() => { throw invalidArgType("ikm", ["string", "SecretKeyObject", "ArrayBuffer", "TypedArray", "DataView", "Buffer"], key); })();
  const plain = (value, name) => {
    if (typeof value !== "string" && !ArrayBuffer.isView(value) && !(value instanceof ArrayBuffer)) throw invalidArgType(name, ["string", "ArrayBuffer", "TypedArray", "DataView", "Buffer"], value);
    return bytesOf(value, name);
  };
  const saltBytes = plain(salt, "salt");
  const infoBytes = plain(info, "info");
  integer(keylen, "length");
  if (infoBytes.length > INFO_MAX) throw outOfRange("info", `must not contain more than ${INFO_MAX} bytes`, infoBytes.length);
  return [digest, secret, saltBytes, infoBytes, keylen];
}
/** RFC 5869, on HMAC. */
function runHkdf(digest, secret, salt, info, keylen) {
  const size = native.nodeHash(digest, undefined) === null || native.nodeHash(digest, new Uint8Array(1)) === null ? 0 : hash(digest, "", "buffer").length;
  if (size === 0) throw invalidDigest("Hkdf", digest)();
  if (keylen > size * 255) throw Object.assign(new RangeError("Invalid Hkdf key length"), { code: "ERR_CRYPTO_INVALID_KEYLEN" });
  const pseudoRandomKey = createHmac(digest, salt.length ? salt : Buffer.alloc(size)).update(secret).digest();
  const pieces = [];
  let last = Buffer.alloc(0);
  for (let i = 1; pieces.length * size < keylen; i++) {
    last = createHmac(digest, pseudoRandomKey).update(last).update(info).update(Uint8Array.of(i)).digest();
    pieces.push(last);
  }
  return new Uint8Array(Buffer.concat(pieces)).slice(0, keylen).buffer;
}
const hkdfSync = (...args) => runHkdf(...hkdfArguments(...args));
const hkdf = (digest, key, salt, info, keylen, callback) => {
  const args = hkdfArguments(digest, key, salt, info, keylen);
  validateFunction(callback, "callback");
  queueMicrotask(() => {
    let result;
    try {
      result = runHkdf(...args);
    } catch (error) {
      callback(error);
      return;
    }
    callback(null, result);
  });
};

// ---- Randomness ----

function randomBytes(size, callback = undefined) {
  needsEvent();
  integer(size, "size");
  const bytes = Buffer.alloc(size);
  native.randomFill(bytes);
  if (callback === undefined) return bytes;
  validateFunction(callback, "callback");
  queueMicrotask(() => callback(null, bytes));
  return undefined;
}
function fillRange(target, offset, size) {
  if (!ArrayBuffer.isView(target) && !(target instanceof ArrayBuffer) && !(typeof SharedArrayBuffer === "function" && target instanceof SharedArrayBuffer)) {
    throw invalidArgType("buffer", ["TypedArray", "DataView", "ArrayBuffer", "SharedArrayBuffer"], target);
  }
  const unit = target.BYTES_PER_ELEMENT ?? 1;
  const length = target.byteLength / unit;
  const from = offset ?? 0;
  validateInteger(from, "offset", 0, 2147483647);
  const count = size ?? Math.max(0, length - from);
  validateInteger(count, "size", 0, Math.max(0, length - from));
  const bytes = ArrayBuffer.isView(target) ? new Uint8Array(target.buffer, target.byteOffset, target.byteLength) : new Uint8Array(target);
  return bytes.subarray(from * unit, (from + count) * unit);
}
function randomFillSync(target, offset = undefined, size = undefined) {
  needsEvent();
  const bytes = fillRange(target, offset, size);
  if (bytes.length > 0) native.randomFill(bytes);
  return target;
}
function randomFill(target, ...rest) {
  const at = rest.findIndex((arg) => typeof arg === "function");
  const callback = at < 0 ? rest[2] : rest[at];
  fillRange(target, ...rest.slice(0, at < 0 ? 2 : at));
  validateFunction(callback, "callback");
  randomFillSync(target, ...rest.slice(0, at));
  queueMicrotask(() => callback(null, target));
}
function randomInt(min, max, callback) {
  if (max === undefined || typeof max === "function") [min, max, callback] = [0, min, max];
  validateInteger(min, "min");
  validateInteger(max, "max");
  if (callback !== undefined && min < max) validateFunction(callback, "callback");
  if (min >= max) throw outOfRange("min", "min < max", min);
  const range = max - min;
  if (range > 2 ** 48 - 1) throw outOfRange("max", `<= ${2 ** 48 - 1}`, max);
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
function randomUUID(options = undefined) {
  if (options !== undefined) {
    validateObject(options, "options");
    if (options.disableEntropyCache !== undefined) validateBoolean(options.disableEntropyCache, "options.disableEntropyCache");
  }
  return webcrypto.randomUUID();
}

function timingSafeEqual(a, b) {
  const left = bytesOf(a, "buf1");
  const right = bytesOf(b, "buf2");
  if (left.length !== right.length) throw nodeError(RangeError, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH", "Input buffers must have the same byte length");
  return native.timingSafeEqual(left, right);
}

const names = (ciphers) => [...new Set(native.nodeCryptoNames(ciphers).split(" ").map((name) => (ciphers ? name.toLowerCase() : name)))];

// ---- Keys that are secrets, ciphers by number ----

function secretLength(type, options) {
  validateString(type, "type");
  validateObject(options, "options");
  const { length } = options;
  if (type === "hmac") {
    validateInteger(length, "options.length", 8, 65536);
  } else if (type === "aes") {
    validateOneOf(length, "options.length", [128, 192, 256]);
  } else {
    throw invalidArgValue("type", type, "must be a supported key type");
  }
  return Math.floor(length / 8);
}
const generateKeySync = (type, options) => keys.createSecretKey(randomBytes(secretLength(type, options)));
function generateKey(type, options, callback) {
  const length = secretLength(type, options);
  validateFunction(callback, "callback");
  const key = keys.createSecretKey(randomBytes(length));
  queueMicrotask(() => callback(null, key));
}

// OpenSSL's numbers.
const NIDS = {
  "aes-128-ecb": 418, "aes-128-cbc": 419, "aes-128-ofb": 420, "aes-192-ecb": 422, "aes-192-cbc": 423, "aes-192-ofb": 424, "aes-256-ecb": 426, "aes-256-cbc": 427, "aes-256-ofb": 428,
  "aes-128-gcm": 895, "aes-192-gcm": 898, "aes-256-gcm": 901, "aes-128-ctr": 904, "aes-192-ctr": 905, "aes-256-ctr": 906, "des-cbc": 31, "des-ecb": 29, "des-ede3-cbc": 44, "des-ede": 32, "des-ede-cbc": 43, "rc2-cbc": 37, "chacha20-poly1305": 1018,
};
function getCipherInfo(nameOrId, options = undefined) {
  if (typeof nameOrId !== "string" && typeof nameOrId !== "number") throw invalidArgType("nameOrId", ["string", "number"], nameOrId);
  if (options !== undefined) validateObject(options, "options");
  const name = typeof nameOrId === "number" ? Object.keys(NIDS).find((each) => NIDS[each] === nameOrId) : nameOrId.toLowerCase();
  const info = name === undefined ? null : native.nodeCipherInfo(name);
  if (info === null) return undefined;
  const [keyLength, , blockSize] = info;
  let ivLength = info[1];
  const { keyLength: wantedKey, ivLength: wantedIv } = options ?? {};
  if (wantedKey !== undefined) {
    validateInteger(wantedKey, "options.keyLength", 0, 2 ** 31 - 1);
    if (wantedKey !== keyLength) return undefined;
  }
  const aead = info[3];
  if (wantedIv !== undefined) {
    validateInteger(wantedIv, "options.ivLength", 0, 2 ** 31 - 1);
    if (!aead && wantedIv !== ivLength) return undefined;
    ivLength = wantedIv;
  }
  const mode = /-(cbc|ctr|ecb|ofb|gcm|ccm|cfb|ocb|xts)$/.exec(name)?.[1] ?? (/^des-ede3?$/.test(name) ? "ecb" : "stream");
  const shown = mode === "gcm" ? `id-aes${keyLength * 8}-GCM` : name.toUpperCase();
  const result = { name: shown, nid: NIDS[name] ?? 0, blockSize, ivLength, keyLength, mode };
  if (NIDS[name] === undefined) delete result.nid;
  if (ivLength === 0) delete result.ivLength;
  return result;
}

const HASHES = ["md4", "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "md5-sha1", "RSA-MD5", "RSA-SHA1", "RSA-SHA224", "RSA-SHA256", "RSA-SHA384", "RSA-SHA512", "DSA-SHA", "DSA-SHA1", "ecdsa-with-SHA1"];
const notThere = (name) => ({ [name]() { throw notImplemented(name); } })[name];
const constants = Object.assign(Object.create(null), cryptoConstants);

/** Certificates of <keygen>, which nobody makes any more: none is valid. */
const { Certificate } = require("./internal/spkac.js");

const module = {
  Hash, Hmac, Cipheriv, Decipheriv, webcrypto,
  KeyObject: keys.KeyObject, PublicKeyObject: keys.PublicKeyObject, PrivateKeyObject: keys.PrivateKeyObject, SecretKeyObject: keys.SecretKeyObject, Sign: callable(keys.Sign, "Sign"), Verify: callable(keys.Verify, "Verify"),
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
  generateKey, generateKeySync,
  pbkdf2, pbkdf2Sync, scrypt, scryptSync, hkdf, hkdfSync,
  randomBytes, randomFill, randomFillSync, randomInt, pseudoRandomBytes: randomBytes,
  randomUUID,
  getRandomValues: (array) => webcrypto.getRandomValues(array),
  timingSafeEqual,
  ...dh,
  X509Certificate,
  getHashes: () => [...new Set([...HASHES, ...names(false)])].filter((name) => native.nodeHash(name, undefined) !== null || HASHES.includes(name)),
  getCiphers: () => names(true).filter((name) => native.nodeCipherInfo(name) !== null),
  getCipherInfo,
  getCurves: () => ["secp224r1", "prime256v1", "secp384r1", "secp521r1"],
  getFips: () => false,
  secureHeapUsed: () => ({ total: 0, used: 0, utilization: 0, min: 0 }),
  createCipher: notThere("createCipher"), createDecipher: notThere("createDecipher"), Cipher: notThere("Cipher"), Decipher: notThere("Decipher"),
  setEngine: notThere("setEngine"), setFips: notThere("setFips"), fips: false,
  Certificate, constants,
};
Object.defineProperty(module, "CryptoKey", { get: () => globalThis.CryptoKey, enumerable: true, configurable: true });
export default module;
