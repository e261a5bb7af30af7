// The numbers of hashes, kinds of keys and ciphers by their names, and the one way to call an operation.
import { Cipher, CryptoOp, Hash, Key, Scheme } from "../../../src/bindings/border.ts";
import { native } from "../../internal/native.js";
import { DOMException } from "../dom-exception.js";

export const HASH = { __proto__: null, "SHA-1": Hash.SHA1, "SHA-256": Hash.SHA256, "SHA-384": Hash.SHA384, "SHA-512": Hash.SHA512, MD5: Hash.MD5 };
export const KIND = { RSA: Key.RSA, "P-256": Key.P256, "P-384": Key.P384, "P-521": Key.P521, Ed25519: Key.ED25519, X25519: Key.X25519 };
export const SCHEME = { "RSASSA-PKCS1-v1_5": Scheme.RSA_PKCS1, "RSA-PSS": Scheme.RSA_PSS, ECDSA: Scheme.ECDSA, Ed25519: Scheme.ED25519 };
export const CIPHER = { "AES-CBC": Cipher.CBC, "AES-CTR": Cipher.CTR, "AES-GCM": Cipher.GCM, "AES-KW": Cipher.KW };


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
  const bytes = call(CryptoOp.EXPORT_PARTS, { n: [kind, isPrivate ? 1 : 0], buffers: [der] });
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const parts = [];
  for (let at = 0; at < bytes.byteLength; ) {
    const size = view.getUint32(at);
    parts.push(bytes.subarray(at + 4, at + 4 + size));
    at += 4 + size;
  }
  return parts;
}
