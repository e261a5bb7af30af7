// HKDF and PBKDF2: https://w3c.github.io/webcrypto/#hkdf, https://w3c.github.io/webcrypto/#pbkdf2
import { CryptoOp } from "../../../src/bindings/border.ts";
import { hashMember, none, notSupported, operationError, register, requiredBytes, requiredInteger } from "./algorithms.js";
import { checkUsable, checkUsages, dataOf, makeKey } from "./crypto-key.js";
import { DOMException } from "../dom-exception.js";
import { call, HASH } from "./native-ids.js";

const ITERATIONS_MAX = 10_000_000; // a few seconds of one thread
const LENGTH_MAX = 1 << 26; // bits

/** The bytes asked for. */
function sizeOf(length) {
  if (length === null || length === undefined || length % 8 !== 0) {
    throw operationError("The length must be a multiple of 8.");
  }
  if (length > LENGTH_MAX) throw operationError(`${length} bits are too many.`);
  return length / 8;
}

const family = (name, deriveBits) => ({
  importKey(format, material, algorithm, extractable, usages) {
    if (format !== "raw") throw notSupported(`${name} keys have no form "${format}".`);
    checkUsages(usages, ["deriveKey", "deriveBits"]);
    if (extractable) throw new DOMException(`${name} keys cannot be extractable.`, "SyntaxError");
    return checkUsable(makeKey({ type: "secret", extractable: false, algorithm: { name }, usages, data: material }));
  },
  getKeyLength: () => null,
  deriveBits,
});

register("HKDF", {
  importKey: none,
  getKeyLength: none,
  deriveBits: (algorithm) => ({
    ...hashMember(algorithm),
    salt: requiredBytes(algorithm, "salt"),
    info: requiredBytes(algorithm, "info"),
  }),
}, family("HKDF", ({ hash, salt, info }, key, length) =>
  call(CryptoOp.HKDF, { n: [HASH[hash.name], sizeOf(length)], buffers: [dataOf(key), salt, info] })));

register("PBKDF2", {
  importKey: none,
  getKeyLength: none,
  deriveBits: (algorithm) => ({
    ...hashMember(algorithm),
    salt: requiredBytes(algorithm, "salt"),
    iterations: requiredInteger(algorithm, "iterations", 0xffffffff),
  }),
}, family("PBKDF2", ({ hash, salt, iterations }, key, length) => {
  const size = sizeOf(length);
  if (iterations === 0) throw operationError("PBKDF2 needs at least one iteration.");
  if (iterations > ITERATIONS_MAX) throw operationError(`PBKDF2 with more than ${ITERATIONS_MAX} iterations is not supported.`);
  return call(CryptoOp.PBKDF2, { background: true, n: [HASH[hash.name], size, iterations], buffers: [dataOf(key), salt] });
}));
