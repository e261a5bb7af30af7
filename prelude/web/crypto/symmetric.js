// AES and HMAC: https://w3c.github.io/webcrypto/#aes-ctr and the sections after it.
import { CryptoOp } from "../../../src/bindings/border.ts";
import { native } from "../../internal/native.js";
import { bytesOf, hashMember, integer, none, notSupported, operationError, register, requiredBytes, requiredInteger } from "./algorithms.js";
import { checkUsable, checkUsages, dataOf, makeKey } from "./crypto-key.js";
import { checkAlg, checkJwk, dataError, jwkOf, partBytes, partText } from "./jwk.js";
import { call, CIPHER, HASH, isLong } from "./native-ids.js";

function randomBytes(size) {
  const bytes = new Uint8Array(size);
  native.randomFill(bytes);
  return bytes;
}

/** Reads raw bytes or a JWK of kty "oct". */
function secretBytes(format, material, { use, usages, extractable, alg }) {
  if (format === "raw") return material;
  if (format !== "jwk") throw notSupported(`Secret keys have no form "${format}".`);
  checkJwk(material, { kty: "oct", use, usages, extractable });
  const bytes = partBytes(material, "k");
  checkAlg(material, alg(bytes));
  return bytes;
}

function exportSecret(format, key, alg) {
  const data = dataOf(key);
  if (format === "raw") return data.slice();
  if (format !== "jwk") throw notSupported(`Secret keys have no form "${format}".`);
  return jwkOf(key, { kty: "oct", k: partText(data), alg });
}

// ---- AES ----

const isAesLength = (bits) => bits === 128 || bits === 192 || bits === 256;

const ivParams = (algorithm) => ({ iv: requiredBytes(algorithm, "iv") });
const lengthParams = (algorithm) => ({ length: requiredInteger(algorithm, "length", 0xffff) });
/** The platform reads it, whoever needs it. */
const lengthRead = (algorithm) => {
  void algorithm.length;
  return {};
};
const hashRead = (algorithm) => {
  void algorithm.hash;
  return {};
};
const ctrParams = (algorithm) => ({
  counter: requiredBytes(algorithm, "counter"),
  length: requiredInteger(algorithm, "length", 0xff),
});
const gcmParams = (algorithm) => {
  const { iv, additionalData, tagLength } = algorithm; // each read once: they may be getters
  return {
    iv: requiredBytes({ iv }, "iv"),
    additionalData: additionalData === undefined ? new Uint8Array() : bytesOf(additionalData, "additionalData"),
    tagLength: tagLength === undefined ? 128 : integer(tagLength, "tagLength", 0xff),
  };
};

/** What differs between the modes: the parameters of one call. */
const modes = {
  "AES-CBC"({ iv }) {
    if (iv.byteLength !== 16) throw operationError("AES-CBC: the iv must have 16 bytes.");
    return { iv };
  },
  "AES-CTR"({ counter, length }) {
    if (counter.byteLength !== 16) throw operationError("AES-CTR: the counter must have 16 bytes.");
    if (length === 0 || length > 128) throw operationError("AES-CTR: the length must be between 1 and 128.");
    return { iv: counter, bits: length };
  },
  "AES-GCM"({ iv, additionalData, tagLength }) {
    if (![32, 64, 96, 104, 112, 120, 128].includes(tagLength)) throw operationError(`AES-GCM: a tag of ${tagLength} bits is not allowed.`);
    if (iv.byteLength === 0) throw operationError("AES-GCM IV must not be empty.");
    return { iv, aad: additionalData, bits: tagLength };
  },
  "AES-KW": () => ({}),
};

function aes(name) {
  const usages = name === "AES-KW" ? ["wrapKey", "unwrapKey"] : ["encrypt", "decrypt", "wrapKey", "unwrapKey"];
  const jwkAlg = (bytes) => `A${bytes.byteLength * 8}${name.slice(4)}`;
  const run = (encrypt) => (algorithm, key, data) => {
    if (name === "AES-GCM" && !encrypt && data.byteLength * 8 < algorithm.tagLength) {
      throw operationError(`Ciphertext length of ${data.byteLength * 8} bits must be greater than or equal to the size of the AES-GCM tag length of ${algorithm.tagLength} bits.`);
    }
    const { iv = new Uint8Array(), aad = new Uint8Array(), bits = 0 } = modes[name](algorithm);
    return call(CryptoOp.CIPHER, { background: isLong(data), n: [CIPHER[name], encrypt, bits], buffers: [dataOf(key), data, iv, aad] });
  };
  const make = (data, extractable, wanted) =>
    checkUsable(makeKey({ type: "secret", extractable, algorithm: { name, length: data.byteLength * 8 }, usages: wanted, data }));
  const implementation = {
    generateKey({ length }, extractable, wanted) {
      checkUsages(wanted, usages);
      if (!isAesLength(length)) throw operationError(`An AES key has 128, 192 or 256 bits, not ${length}.`);
      return make(randomBytes(length / 8), extractable, wanted);
    },
    importKey(format, material, algorithm, extractable, wanted) {
      checkUsages(wanted, usages);
      const data = secretBytes(format, material, { use: "enc", usages: wanted, extractable, alg: jwkAlg });
      if (!isAesLength(data.byteLength * 8)) throw dataError(`Imported AES key length must be 128, 192, or 256 bits but provided ${data.byteLength * 8}.`);
      return make(data, extractable, wanted);
    },
    exportKey: (format, key) => exportSecret(format, key, jwkAlg(dataOf(key))),
    getKeyLength({ length }) {
      if (!isAesLength(length)) throw operationError(`An AES key has 128, 192 or 256 bits, not ${length}.`);
      return length;
    },
  };
  const operations = { generateKey: lengthParams, importKey: lengthRead, exportKey: none, getKeyLength: lengthParams };
  if (name === "AES-KW") {
    Object.assign(operations, { wrapKey: none, unwrapKey: none });
    Object.assign(implementation, { wrapKey: run(1), unwrapKey: run(0) });
  } else {
    const params = { "AES-CBC": ivParams, "AES-CTR": ctrParams, "AES-GCM": gcmParams }[name];
    Object.assign(operations, { encrypt: params, decrypt: params });
    Object.assign(implementation, { encrypt: run(1), decrypt: run(0) });
  }
  register(name, operations, implementation);
}
for (const name of Object.keys(CIPHER)) aes(name);

// ---- HMAC ----

const BLOCK_BITS = { "SHA-1": 512, "SHA-256": 512, "SHA-384": 1024, "SHA-512": 1024, MD5: 512 };

const hmacParams = (algorithm) => ({
  ...hashMember(algorithm),
  length: algorithm.length === undefined ? undefined : integer(algorithm.length, "length", 0xffffffff),
});

/** The first `bits` bits of `bytes`; those past the last are zero. */
export function takeBits(bytes, bits) {
  const taken = bytes.slice(0, Math.ceil(bits / 8));
  if (bits % 8) taken[taken.length - 1] &= 0xff << (8 - (bits % 8));
  return taken;
}

const hmacKeyLength = ({ hash, length }, error) => {
  if (length === undefined) return BLOCK_BITS[hash.name];
  if (length === 0) throw error("An HMAC key cannot be empty.");
  return length;
};

const HMAC_LENGTH_MAX = 1 << 20; // bits of a generated key; more would only cost time

const hmac = {
  generateKey(algorithm, extractable, usages) {
    checkUsages(usages, ["sign", "verify"]);
    const length = hmacKeyLength(algorithm, operationError);
    if (length > HMAC_LENGTH_MAX) throw operationError(`An HMAC key of ${length} bits is too long.`);
    return checkUsable(makeKey({
      type: "secret", extractable, usages, data: takeBits(randomBytes(Math.ceil(length / 8)), length),
      algorithm: { name: "HMAC", hash: algorithm.hash, length },
    }));
  },
  importKey(format, material, { hash, length }, extractable, usages) {
    checkUsages(usages, ["sign", "verify"]);
    const alg = () => `HS${hash.name === "SHA-1" ? 1 : hash.name.slice(4)}`;
    const bytes = secretBytes(format, material, { use: "sig", usages, extractable, alg });
    const bits = bytes.byteLength * 8;
    if (bits === 0) throw dataError("An HMAC key cannot be empty.");
    if (length !== undefined && (length > bits || length <= bits - 8)) throw dataError("The length does not fit the key.");
    return checkUsable(makeKey({
      type: "secret", extractable, usages, data: takeBits(bytes, length ?? bits),
      algorithm: { name: "HMAC", hash, length: length ?? bits },
    }));
  },
  exportKey(format, key) {
    const { name } = key.algorithm.hash;
    return exportSecret(format, key, `HS${name === "SHA-1" ? 1 : name.slice(4)}`);
  },
  getKeyLength: (algorithm) => hmacKeyLength(algorithm, (message) => new TypeError(message)),
  sign: (algorithm, key, data) =>
    call(CryptoOp.HMAC, { background: isLong(data), n: [HASH[key.algorithm.hash.name]], buffers: [dataOf(key), data] }),
  verify: (algorithm, key, signature, data) =>
    call(CryptoOp.HMAC_VERIFY, { background: isLong(data), n: [HASH[key.algorithm.hash.name]], buffers: [dataOf(key), data, signature] }),
};
register("HMAC", { generateKey: hmacParams, importKey: hmacParams, exportKey: none, getKeyLength: hmacParams, sign: hashRead, verify: hashRead }, hmac);
