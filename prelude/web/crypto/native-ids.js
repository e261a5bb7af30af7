// The numbers that src/bindings/webcrypto.h gives to hashes, kinds of keys and operations, and the
// one way to call an operation.
import { native } from "../../internal/native.js";
import { DOMException } from "../dom-exception.js";

export const HASH = { __proto__: null, "SHA-1": 1, "SHA-256": 2, "SHA-384": 3, "SHA-512": 4, MD5: 5 };
export const KIND = { RSA: 1, "P-256": 2, "P-384": 3, "P-521": 4, Ed25519: 5, X25519: 6 };
export const SCHEME = { "RSASSA-PKCS1-v1_5": 1, "RSA-PSS": 2, ECDSA: 3, Ed25519: 4 };
export const CIPHER = { "AES-CBC": 1, "AES-CTR": 2, "AES-GCM": 3, "AES-KW": 4 };

/** The order of `operations` in src/bindings/webcrypto.c. */
export const OP = {
  digest: 0, hmac: 1, hmacVerify: 2, cipher: 3, hkdf: 4, pbkdf2: 5, sign: 6, verify: 7, rsaOaep: 8, agree: 9,
  generate: 10, importPkcs8: 11, importSpki: 12, importRaw: 13, exportRaw: 14, importParts: 15, exportParts: 16,
};

/**
 * Bytes from which symmetric work is handed to another thread. The standard wants it to see a copy
 * of the data, and to copy 10 MB into fresh memory keeps a lane busy for 2.5 ms: as long as to
 * encrypt them with AES-GCM, a third of the time for SHA-256. So only what would take longer than
 * some 10 ms goes there.
 */
const BACKGROUND_SIZE = 16 * 1024 * 1024;
export const isLong = (bytes) => bytes.byteLength >= BACKGROUND_SIZE;

function checked(result, errorName) {
  if (typeof result === "string") throw new DOMException(result, errorName);
  return result;
}

/**
 * Runs an operation: here and now, or, if `background`, on another thread; then the result is a
 * promise. A failure is a DOMException called `errorName`.
 */
export function call(op, { background = false, n = [], buffers = [], errorName = "OperationError" }) {
  const result = native.crypto(op, background, n[0] ?? 0, n[1] ?? 0, n[2] ?? 0, n[3] ?? 0, ...buffers);
  return background ? result.then((value) => checked(value, errorName)) : checked(result, errorName);
}

/** The parts of a key (JWK's numbers) as exportParts lays them out. */
export function keyParts(kind, isPrivate, der) {
  const bytes = call(OP.exportParts, { n: [kind, isPrivate ? 1 : 0], buffers: [der] });
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const parts = [];
  for (let at = 0; at < bytes.byteLength; ) {
    const size = view.getUint32(at);
    parts.push(bytes.subarray(at + 4, at + 4 + size));
    at += 4 + size;
  }
  return parts;
}
