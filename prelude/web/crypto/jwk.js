// JSON Web Keys (RFC 7517) as Web Crypto reads and writes them.
import { DOMException } from "../dom-exception.js";
import { native } from "../../internal/native.js";

export const dataError = (message) => new DOMException(message, "DataError");

const BASE64URL = /^[A-Za-z0-9_-]*$/;

/** The bytes of a JWK's number called `name`. */
export function partBytes(jwk, name) {
  const text = jwk[name];
  if (typeof text !== "string") throw dataError(`The JWK's "${name}" is missing.`);
  const binary = BASE64URL.test(text) ? native.base64Decode(text.replaceAll("-", "+").replaceAll("_", "/")) : null;
  if (binary === null) throw dataError(`The JWK's "${name}" is not base64url.`);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export function partText(bytes) {
  return native.base64Encode(native.latin1Decode(bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const STRINGS = ["kty", "use", "alg", "crv", "x", "y", "d", "n", "e", "p", "q", "dp", "dq", "qi", "k"];

/** The JsonWebKey dictionary: https://w3c.github.io/webcrypto/#JsonWebKey-dictionary */
export function toJsonWebKey(value) {
  const jwk = {};
  for (const name of STRINGS) if (value[name] !== undefined) jwk[name] = `${value[name]}`;
  if (value.ext !== undefined) jwk.ext = !!value.ext;
  if (value.key_ops !== undefined) jwk.key_ops = Array.from(value.key_ops, String);
  if (value.oth !== undefined) jwk.oth = value.oth;
  return jwk;
}

/** What every import of a JWK checks besides its numbers. */
export function checkJwk(jwk, { kty, use, usages, extractable }) {
  if (jwk.kty !== kty) throw dataError(`The JWK's "kty" must be "${kty}", not "${jwk.kty}".`);
  if (usages.length > 0 && jwk.use !== undefined && jwk.use !== use) {
    throw dataError(`The JWK's "use" must be "${use}", not "${jwk.use}".`);
  }
  if (jwk.key_ops !== undefined) {
    if (new Set(jwk.key_ops).size !== jwk.key_ops.length) throw dataError(`The JWK's "key_ops" has duplicates.`);
    for (const usage of usages) {
      if (!jwk.key_ops.includes(usage)) throw dataError(`The JWK's "key_ops" does not allow "${usage}".`);
    }
  }
  if (jwk.ext === false && extractable) throw dataError(`The JWK says that the key is not extractable.`);
}

/** `known`, if given: names that are right for another hash or curve; any other is none that is known. */
export function checkAlg(jwk, alg, known = null) {
  if (jwk.alg !== undefined && known !== null && !known.includes(jwk.alg)) {
    throw new DOMException(`Unrecognized or unimplemented algorithm "${jwk.alg}" listed in JSON Web Key Algorithm parameter.`, "NotSupportedError");
  }
  if (jwk.alg !== undefined && jwk.alg !== alg) throw dataError(`The JWK's "alg" must be "${alg}", not "${jwk.alg}".`);
}

/** What every exported JWK has. */
export const jwkOf = (key, fields) => ({ ...fields, key_ops: [...key.usages], ext: key.extractable });
