// Keys and signatures of node:crypto. A key is kept as DER: PKCS #8 or SubjectPublicKeyInfo.
import { Writable } from "readable-stream";
import { Buffer } from "../buffer.js";
import { invalidArgType, invalidArgValue, nodeError, validateFunction, validateString } from "./errors.js";
import { native } from "./internals.js";

// OpenSSL's names -> those of Node.js, and back for generation.
const TYPES = { RSA: "rsa", "RSA-PSS": "rsa-pss", EC: "ec", ED25519: "ed25519", ED448: "ed448", X25519: "x25519", X448: "x448", DSA: "dsa" };
const CURVES = { prime256v1: "P-256", secp384r1: "P-384", secp521r1: "P-521" };
const COORDINATE_SIZE = { prime256v1: 32, secp384r1: 48, secp521r1: 66, secp256k1: 32 };
const OAEP_PADDING = 4;
const PKCS1_PADDING = 1;

export const asBuffer = (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
export const output = (bytes, encoding) => (encoding && encoding !== "buffer" ? asBuffer(bytes).toString(encoding) : asBuffer(bytes));

export function bytesOf(data, name = "data", encoding = "utf8") {
  if (typeof data === "string") return Buffer.from(data, encoding === "buffer" ? "utf8" : encoding);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (data instanceof KeyObject && data.type === "secret") return data.export();
  throw invalidArgType(name, "of type string or an instance of ArrayBuffer, Buffer, TypedArray, DataView, or KeyObject", data);
}

/** A result of OpenSSL, or the error that a string describes. */
function checked(result, code = "ERR_OSSL_EVP_ERROR") {
  if (typeof result === "string") throw nodeError(Error, /unsupported|DECODER/i.test(result) ? "ERR_OSSL_UNSUPPORTED" : code, `error: ${result}`);
  return result;
}

export let derOf; // (KeyObject) -> DER
let makeKey; // (type, [OpenSSL's type, DER, bits, curve])

export class KeyObject {
  #type;
  #data; // the secret, or DER
  #info; // [OpenSSL's type, bits, curve] of asymmetric keys
  constructor(type, data, info = undefined) {
    if (type !== "secret" && type !== "public" && type !== "private") throw invalidArgValue("type", type);
    this.#type = type;
    this.#data = data;
    this.#info = info;
  }
  get type() {
    return this.#type;
  }
  get symmetricKeySize() {
    return this.#type === "secret" ? this.#data.length : undefined;
  }
  get asymmetricKeyType() {
    return this.#info && (TYPES[this.#info[0]] ?? this.#info[0].toLowerCase());
  }
  get asymmetricKeyDetails() {
    if (!this.#info) return undefined;
    if (/^rsa/.test(this.asymmetricKeyType)) return { modulusLength: this.#info[1], publicExponent: 65537n };
    return this.#info[2] ? { namedCurve: this.#info[2] } : {};
  }
  export(options = {}) {
    if (this.#type === "secret") {
      return options.format === "jwk" ? { kty: "oct", k: asBuffer(this.#data).toString("base64url") } : Buffer.from(this.#data);
    }
    const { format = "pem", type = this.#type === "private" ? "pkcs8" : "spki" } = options;
    if (format === "jwk") throw nodeError(Error, "ERR_METHOD_NOT_IMPLEMENTED", "KeyObject.export() as JWK: use crypto.subtle.exportKey().");
    if (options.cipher) throw nodeError(Error, "ERR_METHOD_NOT_IMPLEMENTED", "KeyObject.export() with a cipher is not available in this runtime.");
    const structure = { pkcs8: "PrivateKeyInfo", spki: "SubjectPublicKeyInfo", pkcs1: "type-specific", sec1: "type-specific" }[type];
    if (!structure) throw invalidArgValue("options.type", type);
    const bytes = checked(native.nodeKeyWrite(this.#data, this.#type === "private", format.toUpperCase(), structure));
    return format === "pem" ? asBuffer(bytes).toString() : asBuffer(bytes);
  }
  equals(other) {
    return other instanceof KeyObject && this.#type === other.type && asBuffer(this.#data).equals(derOf(other));
  }
  toCryptoKey(algorithm, extractable, usages) {
    const form = { secret: "raw", public: "spki", private: "pkcs8" }[this.#type];
    return globalThis.crypto.subtle.importKey(form, this.#data, algorithm, extractable, usages);
  }
  static from() {
    throw nodeError(Error, "ERR_METHOD_NOT_IMPLEMENTED", "KeyObject.from() is not available in this runtime: use crypto.subtle.exportKey().");
  }
  static {
    derOf = (key) => key.#data;
    makeKey = (type, [name, der, bits, curve]) => new KeyObject(type, der, [name, bits, curve]);
  }
}

function read(key, isPrivate) {
  if (key instanceof KeyObject) {
    if (key.type === "secret") throw invalidArgType("key", "an asymmetric key", key);
    if (isPrivate && key.type !== "private") throw nodeError(TypeError, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", "Invalid key object type public, expected private.");
    return !isPrivate && key.type === "private" ? makeKey("public", checked(native.nodeKeyPublic(derOf(key)))) : key;
  }
  const options = typeof key === "object" && key !== null && !ArrayBuffer.isView(key) && !(key instanceof ArrayBuffer) ? key : { key };
  if (options.key instanceof KeyObject) return read(options.key, isPrivate);
  if (options.format === "jwk") throw nodeError(Error, "ERR_METHOD_NOT_IMPLEMENTED", "Keys as JWK: use crypto.subtle.importKey().");
  const bytes = bytesOf(options.key, "key", options.encoding);
  const passphrase = options.passphrase === undefined ? undefined : bytesOf(options.passphrase, "passphrase");
  const found = native.nodeKeyRead(bytes, isPrivate, passphrase);
  if (typeof found !== "string") return makeKey(isPrivate ? "private" : "public", found);
  // A public key may be asked of what holds a private one.
  const pair = isPrivate ? found : native.nodeKeyRead(bytes, true, passphrase);
  if (typeof pair === "string") throw nodeError(Error, "ERR_OSSL_UNSUPPORTED", `error:1E08010C:DECODER routines::${found}`);
  return makeKey("public", checked(native.nodeKeyPublic(pair[1])));
}
export const createPrivateKey = (key) => read(key, true);
export const createPublicKey = (key) => read(key, false);
export const createSecretKey = (key, encoding) => new KeyObject("secret", Buffer.from(bytesOf(key, "key", encoding)));

// ---- ECDSA signatures: DER, or the two numbers side by side ("ieee-p1363") ----

function fromDER(der, size) {
  let at = der[1] & 0x80 ? 3 : 2;
  const out = Buffer.alloc(size * 2);
  for (let part = 0; part < 2; part++) {
    const number = der.subarray(at + 2, at + 2 + der[at + 1]);
    at += 2 + der[at + 1];
    const digits = number.subarray(Math.max(0, number.length - size));
    out.set(digits, part * size + size - digits.length);
  }
  return out;
}

function toDER(raw) {
  const half = raw.length / 2;
  const integer = (bytes) => {
    let start = 0;
    while (start < bytes.length - 1 && bytes[start] === 0) start++;
    const digits = bytes.subarray(start);
    const pad = digits[0] & 0x80 ? [0] : [];
    return [2, digits.length + pad.length, ...pad, ...digits];
  };
  const body = [...integer(raw.subarray(0, half)), ...integer(raw.subarray(half))];
  return Uint8Array.from([0x30, ...(body.length > 127 ? [0x81] : []), body.length, ...body]);
}

/** Signs, or verifies where a signature is given. */
function runSign(algorithm, data, keyArgument, signature) {
  const key = read(keyArgument, signature === undefined);
  const options = keyArgument !== null && typeof keyArgument === "object" && !(keyArgument instanceof KeyObject) && !ArrayBuffer.isView(keyArgument) ? keyArgument : {};
  const isEdwards = key.asymmetricKeyType === "ed25519" || key.asymmetricKeyType === "ed448";
  const size = COORDINATE_SIZE[key.asymmetricKeyDetails?.namedCurve];
  const isRaw = options.dsaEncoding === "ieee-p1363" && size !== undefined;
  let given = signature;
  if (isRaw && signature !== undefined) {
    if (signature.length !== size * 2) return false;
    given = toDER(signature);
  }
  const result = native.nodeSign(isEdwards ? null : (algorithm ?? "sha256"), derOf(key), data, options.padding ?? 0, options.saltLength ?? -2, given);
  if (result === "Invalid digest") throw nodeError(Error, "ERR_CRYPTO_INVALID_DIGEST", `Invalid digest: ${algorithm}`);
  checked(result);
  return isRaw && signature === undefined ? fromDER(result, size) : result;
}

const later = (callback, run) => {
  validateFunction(callback, "callback");
  queueMicrotask(() => {
    let value;
    try {
      value = run();
    } catch (error) {
      callback(error);
      return;
    }
    callback(null, value);
  });
};
const hashName = (algorithm) => (algorithm === null || algorithm === undefined ? null : `${algorithm}`.replace(/^RSA-/i, ""));

export function sign(algorithm, data, key, callback = undefined) {
  const run = () => asBuffer(runSign(hashName(algorithm), bytesOf(data), key));
  return callback === undefined ? run() : later(callback, run);
}
export function verify(algorithm, data, key, signature, callback = undefined) {
  const run = () => runSign(hashName(algorithm), bytesOf(data), key, bytesOf(signature, "signature"));
  return callback === undefined ? run() : later(callback, run);
}

class SignatureBase extends Writable {
  #algorithm;
  #pieces = [];
  constructor(algorithm, options) {
    validateString(algorithm, "algorithm");
    super(options);
    this.#algorithm = hashName(algorithm);
    if (native.nodeHash(this.#algorithm, undefined) === null) throw nodeError(Error, "ERR_CRYPTO_INVALID_DIGEST", `Invalid digest: ${algorithm}`);
  }
  update(data, encoding = undefined) {
    this.#pieces.push(Buffer.from(bytesOf(data, "data", encoding)));
    return this;
  }
  _write(chunk, encoding, callback) {
    this.update(chunk, encoding);
    callback();
  }
  run(key, signature) {
    return runSign(this.#algorithm, Buffer.concat(this.#pieces), key, signature);
  }
}
export class Sign extends SignatureBase {
  sign(key, encoding = undefined) {
    return output(this.run(key), encoding);
  }
}
export class Verify extends SignatureBase {
  verify(key, signature, encoding = undefined) {
    return this.run(key, bytesOf(signature, "signature", encoding));
  }
}

// ---- RSA encryption, generation ----

const rsa = (encrypts, isPrivate, usual = OAEP_PADDING) => (key, data) => {
  const options = key !== null && typeof key === "object" && !(key instanceof KeyObject) ? key : {};
  const bytes = native.nodeRsa(encrypts, derOf(read(key, isPrivate)), isPrivate, bytesOf(data, "buffer"), options.padding ?? usual, options.oaepHash ?? "sha1");
  return asBuffer(checked(bytes));
};
export const publicEncrypt = rsa(true, false);
export const privateDecrypt = rsa(false, true);
// With the keys the other way round: what signatures were made of before there were formats for them.
export const privateEncrypt = rsa(true, true, PKCS1_PADDING);
export const publicDecrypt = rsa(false, false, PKCS1_PADDING);

function generationArguments(type, options = {}) {
  const name = Object.keys(TYPES).find((key) => TYPES[key] === type);
  if (name === undefined || type === "dsa") throw invalidArgValue("type", type, "must be a supported key type");
  if (type === "ec") {
    validateString(options.namedCurve, "options.namedCurve");
    return [name, 0, 0, Object.keys(CURVES).find((curve) => CURVES[curve] === options.namedCurve) ?? options.namedCurve];
  }
  if (/^rsa/.test(type)) return [name, options.modulusLength ?? 2048, options.publicExponent ?? 65537, ""];
  return [name, 0, 0, ""];
}

function pairOf(found, options = {}) {
  const privateKey = makeKey("private", found);
  const publicKey = createPublicKey(privateKey);
  return {
    publicKey: options.publicKeyEncoding ? publicKey.export(options.publicKeyEncoding) : publicKey,
    privateKey: options.privateKeyEncoding ? privateKey.export(options.privateKeyEncoding) : privateKey,
  };
}

export const generateKeyPairSync = (type, options) => pairOf(native.nodeKeyGenerate(false, ...generationArguments(type, options)), options);
export function generateKeyPair(type, options, callback) {
  validateFunction(callback, "callback");
  native.nodeKeyGenerate(true, ...generationArguments(type, options)).then((found) => {
    const { publicKey, privateKey } = pairOf(found, options);
    callback(null, publicKey, privateKey);
  }).catch((error) => callback(error));
}
