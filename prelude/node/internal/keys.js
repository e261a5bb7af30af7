// Keys and signatures of node:crypto. A key is kept as DER: PKCS #8 or SubjectPublicKeyInfo.
import { Writable } from "readable-stream/lib/stream.js";
import { Buffer } from "../buffer.js";
import { invalidArgType, invalidArgValue, nodeError, validateFunction, validateInt32, validateInteger, validateObject, validateOneOf, validateString, validateUint32 } from "./errors.js";
import { keyObjects, native, subtleCrypto } from "./internals.js";
import { derFromJwk, hasForm, jwkFromDer, publicExponent } from "./jwk.js";

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
  if (data instanceof KeyObject) {
    if (data.type === "secret") return data.export();
    throw nodeError(Error, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", `Invalid key object type ${data.type}, expected secret.`);
  }
  if (isCryptoKey(data)) return bytesOf(KeyObject.from(data), name);
  throw invalidArgType(name, name === "key" ? ["string", "ArrayBuffer", "Buffer", "ArrayBufferView", "KeyObject", "CryptoKey"] : name === "data" ? ["string", "Buffer", "TypedArray", "DataView"] : ["string", "ArrayBuffer", "Buffer", "TypedArray", "DataView"], data);
}

export const isCryptoKey = (value) => typeof value === "object" && value !== null && value[Symbol.toStringTag] === "CryptoKey" && subtleCrypto().isCryptoKey(value);

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
  #extractable;
  constructor(type, data, info = undefined, extractable = true) {
    if (type !== "secret" && type !== "public" && type !== "private") throw invalidArgValue("type", type);
    this.#type = type;
    this.#data = data;
    this.#info = info;
    this.#extractable = extractable;
  }
  static {
    keyObjects.has = (value) => typeof value === "object" && value !== null && #type in value;
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
    if (/^rsa/.test(this.asymmetricKeyType)) return { modulusLength: this.#info[1], publicExponent: publicExponent(this.#data, this.#type === "private") };
    return this.#info[2] ? { namedCurve: this.#info[2] } : {};
  }
  export(options = {}) {
    validateObject(options, "options");
    if (!this.#extractable) throw nodeError(TypeError, "ERR_INVALID_ARG_VALUE", "The key is not extractable");
    if (this.#type === "secret") {
      if (options.format !== undefined) validateOneOf(options.format, "options.format", ["buffer", "jwk"]);
      return options.format === "jwk" ? { kty: "oct", k: asBuffer(this.#data).toString("base64url"), ext: true } : Buffer.from(this.#data);
    }
    const isPrivate = this.#type === "private";
    const { format = "pem", type = isPrivate ? "pkcs8" : "spki", cipher, passphrase } = options;
    if (format === "jwk") {
      if (passphrase !== undefined || cipher !== undefined) throw nodeError(Error, "ERR_CRYPTO_INCOMPATIBLE_KEY_OPTIONS", "The selected key encoding jwk does not support encryption.");
      return jwkFromDer(this.#data, isPrivate, this.asymmetricKeyType, this.#info[2], () => (isPrivate ? checked(native.nodeKeyPublic(this.#data))[1] : this.#data));
    }
    validateOneOf(format, "options.format", ["pem", "der"]);
    const structure = { pkcs8: "PrivateKeyInfo", spki: "SubjectPublicKeyInfo", pkcs1: "type-specific", sec1: "type-specific" }[type];
    if (!structure) throw invalidArgValue("options.type", type);
    if (cipher !== undefined) {
      validateString(cipher, "options.cipher");
      if (passphrase === undefined) throw invalidArgType("options.passphrase", ["string", "ArrayBuffer", "Buffer", "TypedArray", "DataView"], passphrase);
      if (native.nodeCipherInfo(cipher.toLowerCase()) === null) throw nodeError(Error, "ERR_CRYPTO_UNKNOWN_CIPHER", "Unknown cipher");
    }
    const secret = cipher === undefined ? undefined : bytesOf(passphrase, "options.passphrase", options.encoding);
    const bytes = checked(native.nodeKeyWrite(this.#data, isPrivate, format.toUpperCase(), cipher !== undefined && structure === "PrivateKeyInfo" ? "EncryptedPrivateKeyInfo" : structure, cipher, secret));
    return format === "pem" ? asBuffer(bytes).toString() : asBuffer(bytes);
  }
  equals(other) {
    if (!(other instanceof KeyObject)) throw invalidArgType("otherKeyObject", ["KeyObject"], other);
    return this.#type === other.type && this.#extractable === other.#extractable && asBuffer(this.#data).equals(derOf(other));
  }
  toCryptoKey(algorithm, extractable, usages) {
    const form = { secret: "raw", public: "spki", private: "pkcs8" }[this.#type];
    return globalThis.crypto.subtle.importKey(form, this.#data, algorithm, extractable, usages);
  }
  static from(key) {
    if (!isCryptoKey(key)) throw invalidArgType("key", ["CryptoKey"], key);
    const data = subtleCrypto().dataOf(key);
    const found = key.type === "secret" ? undefined : checked(native.nodeKeyRead(data, key.type === "private", undefined));
    return new ({ secret: SecretKeyObject, public: PublicKeyObject, private: PrivateKeyObject }[key.type])(key.type, key.type === "secret" ? Buffer.from(data) : found[1], found && [found[0], found[2], found[3]], key.extractable);
  }
  get [Symbol.toStringTag]() {
    return "KeyObject";
  }
  static {
    derOf = (key) => key.#data;
    makeKey = (type, [name, der, bits, curve]) => new (type === "public" ? PublicKeyObject : PrivateKeyObject)(type, der, [name, bits, curve]);
  }
}

export class SecretKeyObject extends KeyObject {}
export class PublicKeyObject extends KeyObject {}
export class PrivateKeyObject extends KeyObject {}

const KEY_INPUTS = ["string", "ArrayBuffer", "Buffer", "TypedArray", "DataView"];

/** A public key of what may hold a private one. */
const publicOf = (key) => (key.type === "private" ? makeKey("public", checked(native.nodeKeyPublic(derOf(key)))) : key);

function readObject(key, isPrivate) {
  if (key.type === "secret") throw nodeError(Error, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", `Invalid key object type secret, expected ${isPrivate ? "private" : "private or public"}.`);
  if (isPrivate && key.type !== "private") throw nodeError(Error, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", "Invalid key object type public, expected private.");
  return isPrivate ? key : publicOf(key);
}

function read(key, isPrivate) {
  if (key instanceof KeyObject) return readObject(key, isPrivate);
  if (isCryptoKey(key)) return readObject(KeyObject.from(key), isPrivate);
  const direct = typeof key === "string" || ArrayBuffer.isView(key) || key instanceof ArrayBuffer;
  if (!direct && (key === null || typeof key !== "object")) throw invalidArgType("options.key", KEY_INPUTS, key);
  const options = direct ? { key } : key;
  if (options.key instanceof KeyObject) return readObject(options.key, isPrivate);
  if (isCryptoKey(options.key)) return readObject(KeyObject.from(options.key), isPrivate);
  const { format = "pem", type, passphrase, encoding } = options;
  validateOneOf(format, "options.format", ["pem", "der", "jwk"]);
  if (format === "jwk") {
    validateObject(options.key, "options.key");
    const secret = isPrivate || options.key.d !== undefined;
    const found = native.nodeKeyRead(derFromJwk(options.key, secret), secret, undefined);
    if (typeof found === "string") throw nodeError(TypeError, "ERR_CRYPTO_INVALID_JWK", "Invalid JWK data");
    const made = makeKey(secret ? "private" : "public", found);
    return isPrivate ? made : publicOf(made);
  }
  if (typeof options.key !== "string" && !ArrayBuffer.isView(options.key) && !(options.key instanceof ArrayBuffer)) throw invalidArgType("key", KEY_INPUTS, options.key);
  if (type !== undefined) validateOneOf(type, "options.type", ["pkcs1", "spki", "pkcs8", "sec1"]);
  const bytes = bytesOf(options.key, "key", encoding);
  const secret = passphrase === undefined ? undefined : bytesOf(passphrase, "options.passphrase", encoding);
  const wrongForm = isPrivate && format === "der" && type === "pkcs8" && secret === undefined && !hasForm(Buffer.from(bytes), type);
  const found = wrongForm ? "unsupported" : native.nodeKeyRead(bytes, isPrivate, secret);
  if (typeof found !== "string") return makeKey(isPrivate ? "private" : "public", found);
  // A public key may be asked of what holds a private one, or of a certificate.
  const pair = isPrivate ? found : native.nodeKeyRead(bytes, true, secret);
  if (typeof pair === "string") throw nodeError(Error, "ERR_OSSL_UNSUPPORTED", `Failed to parse ${isPrivate ? "private" : "public"} key`);
  return makeKey("public", checked(native.nodeKeyPublic(pair[1])));
}
export function createPrivateKey(key) {
  if (key?.key instanceof KeyObject) throw invalidArgType("key.key", KEY_INPUTS, key.key);
  return read(key, true);
}
export function createPublicKey(key) {
  if (key?.key instanceof KeyObject && key.key.type !== "private") throw invalidArgType("key.key", KEY_INPUTS, key.key);
  return read(key, false);
}
export const createSecretKey = (key, encoding) => new SecretKeyObject("secret", Buffer.from(bytesOf(key, "key", encoding)));

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
  if (![undefined, "der", "ieee-p1363"].includes(options.dsaEncoding)) throw invalidArgValue("options.dsaEncoding", options.dsaEncoding);
  for (const name of ["padding", "saltLength"]) if (options[name] !== undefined) validateInt32(options[name], `options.${name}`);
  if (isEdwards && options.padding !== undefined) throw nodeError(Error, "ERR_OSSL_EVP_COMMAND_NOT_SUPPORTED", "A signature of this kind has no padding");
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

const DH_PRIME_BYTES_MAX = 1024;
function checkDh({ group, groupName, prime, primeLength, generator }) {
  if ((group ?? groupName) !== undefined) validateString(group ?? groupName, "options.group");
  if (prime !== undefined) {
    if (!ArrayBuffer.isView(prime) && !(prime instanceof ArrayBuffer)) throw invalidArgType("options.prime", ["Buffer", "TypedArray", "ArrayBuffer"], prime);
    if (prime.byteLength > DH_PRIME_BYTES_MAX) throw new RangeError("The prime is too large");
  }
  if (primeLength !== undefined) validateInteger(primeLength, "options.primeLength", 0, 2147483647);
  if (generator !== undefined) validateInteger(generator, "options.generator", 0, 2147483647);
  throw nodeError(Error, "ERR_METHOD_NOT_IMPLEMENTED", primeLength === undefined ? "Generating DH key pairs is not implemented" : "Generating DH keys from a prime length is not yet implemented");
}
function generationArguments(type, options = {}) {
  validateOneOf(type, "type", ["rsa", "ec", "ed25519", "x25519", "dh", "rsa-pss", "ed448", "x448"].slice(0, ["rsa-pss", "ed448", "x448"].includes(type) ? undefined : 5));
  if (options !== undefined) validateObject(options, "options");
  for (const name of ["publicKeyEncoding", "privateKeyEncoding"]) if (options[name] !== undefined) validateObject(options[name], `options.${name}`);
  if (type === "dh") checkDh(options);
  const name = Object.keys(TYPES).find((key) => TYPES[key] === type);
  if (type === "ec") {
    const { namedCurve, paramEncoding } = options;
    validateString(namedCurve, "options.namedCurve");
    if (paramEncoding !== undefined) validateOneOf(paramEncoding, "options.paramEncoding", ["named", "explicit"]);
    return [name, 0, 0, Object.keys(CURVES).find((curve) => CURVES[curve] === namedCurve) ?? namedCurve];
  }
  if (!/^rsa/.test(type)) return [name, 0, 0, ""];
  const { modulusLength = 2048, publicExponent: exponent = 65537 } = options;
  validateUint32(modulusLength, "options.modulusLength");
  validateUint32(exponent, "options.publicExponent");
  return [name, modulusLength, exponent, ""];
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
  if (typeof options === "function") [options, callback] = [undefined, options];
  const args = generationArguments(type, options);
  validateFunction(callback, "callback");
  native.nodeKeyGenerate(true, ...args).then((found) => pairOf(found, options)).then(
    ({ publicKey, privateKey }) => callback(null, publicKey, privateKey),
    (error) => callback(error),
  );
}
Object.defineProperty(generateKeyPair, Symbol.for("nodejs.util.promisify.custom"), {
  value: (type, options) => new Promise((resolve, reject) => generateKeyPair(type, options, (error, publicKey, privateKey) => (error ? reject(error) : resolve({ publicKey, privateKey })))),
  configurable: true,
});
