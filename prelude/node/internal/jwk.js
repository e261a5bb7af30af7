// Keys as JWK (RFC 7517, 7518, 8037), by way of the DER that a KeyObject is kept as.
import { Buffer } from "../buffer.js";
import { nodeError } from "./errors.js";

// ---- a little DER

const SEQUENCE = 0x30, INTEGER = 0x02, OCTETS = 0x04, BITS = 0x03, OID = 0x06, NULL = 0x05;

function element(tag, ...parts) {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  let size = [body.length];
  if (body.length > 127) {
    const digits = [];
    for (let n = body.length; n > 0; n >>>= 8) digits.unshift(n & 0xff);
    size = [0x80 | digits.length, ...digits];
  }
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
}
/** A number that is not negative, without zeros in front but for the sign. */
function integer(bytes) {
  let at = 0;
  while (at < bytes.length - 1 && bytes[at] === 0) at++;
  const digits = bytes.subarray(at);
  return element(INTEGER, digits[0] & 0x80 ? [0] : [], digits);
}
/** The elements of a sequence: [{tag, body}]. */
function elements(bytes) {
  const list = [];
  for (let at = 0; at < bytes.length;) {
    const tag = bytes[at++];
    let size = bytes[at++];
    if (size & 0x80) {
      const count = size & 0x7f;
      size = 0;
      for (let i = 0; i < count; i++) size = size * 256 + bytes[at++];
    }
    if (!(at + size <= bytes.length)) throw new RangeError("DER ends too early");
    list.push({ tag, body: bytes.subarray(at, at + size) });
    at += size;
  }
  return list;
}
const inside = (bytes) => elements(elements(bytes)[0].body);

const RSA = element(SEQUENCE, element(OID, Buffer.from("2a864886f70d010101", "hex")), element(NULL));
const EC_KEY = element(OID, Buffer.from("2a8648ce3d0201", "hex"));
const CURVES = {
  "P-256": { name: "prime256v1", oid: "2a8648ce3d030107", size: 32 },
  "P-384": { name: "secp384r1", oid: "2b81040022", size: 48 },
  "P-521": { name: "secp521r1", oid: "2b81040023", size: 66 },
  secp256k1: { name: "secp256k1", oid: "2b8104000a", size: 32 },
};
const OKP = { Ed25519: "2b6570", X25519: "2b656e", Ed448: "2b6571", X448: "2b656f" };
const OKP_TYPES = { ed25519: "Ed25519", x25519: "X25519", ed448: "Ed448", x448: "X448" };

// ---- reading

const invalid = () => nodeError(TypeError, "ERR_CRYPTO_INVALID_JWK", "Invalid JWK data");
function part(jwk, name) {
  if (typeof jwk[name] !== "string") throw nodeError(Error, "ERR_CRYPTO_INVALID_JWK", `${jwk.kty} JWK missing ${name} parameter`);
  return Buffer.from(jwk[name], "base64url");
}
const spki = (algorithm, key) => element(SEQUENCE, algorithm, element(BITS, [0], key));
const pkcs8 = (algorithm, key) => element(SEQUENCE, integer(Buffer.from([0])), algorithm, element(OCTETS, key));

function rsaDer(jwk, isPrivate) {
  const [n, e] = ["n", "e"].map((name) => integer(part(jwk, name)));
  if (!isPrivate) return spki(RSA, element(SEQUENCE, n, e));
  const rest = ["d", "p", "q", "dp", "dq", "qi"].map((name) => integer(part(jwk, name)));
  return pkcs8(RSA, element(SEQUENCE, integer(Buffer.from([0])), n, e, ...rest));
}
const missingCurve = ({ kty }) => nodeError(Error, "ERR_CRYPTO_INVALID_JWK", `${kty} JWK missing crv parameter`);
const padded = (bytes, size) => Buffer.concat([Buffer.alloc(Math.max(0, size - bytes.length)), bytes]);
function ecDer(jwk, isPrivate) {
  if (typeof jwk.crv !== "string") throw missingCurve(jwk);
  const curve = CURVES[jwk.crv];
  if (curve === undefined) throw nodeError(Error, "ERR_CRYPTO_INVALID_CURVE", "Invalid EC curve name");
  const [x, y] = ["x", "y"].map((name) => padded(part(jwk, name), curve.size));
  const point = Buffer.concat([Buffer.from([4]), x, y]);
  const algorithm = element(SEQUENCE, EC_KEY, element(OID, Buffer.from(curve.oid, "hex")));
  if (!isPrivate) return spki(algorithm, point);
  const d = padded(part(jwk, "d"), curve.size);
  return pkcs8(algorithm, element(SEQUENCE, integer(Buffer.from([1])), element(OCTETS, d), element(0xa1, element(BITS, [0], point))));
}
function okpDer(jwk, isPrivate) {
  if (typeof jwk.crv !== "string") throw missingCurve(jwk);
  const oid = OKP[jwk.crv];
  if (oid === undefined) throw nodeError(Error, "ERR_CRYPTO_INVALID_CURVE", "Invalid OKP curve name");
  const algorithm = element(SEQUENCE, element(OID, Buffer.from(oid, "hex")));
  const x = part(jwk, "x");
  return isPrivate ? pkcs8(algorithm, element(OCTETS, part(jwk, "d"))) : spki(algorithm, x);
}

/** The DER of a JWK: PKCS #8 or SubjectPublicKeyInfo. */
export function derFromJwk(jwk, isPrivate) {
  if (jwk === null || typeof jwk !== "object") throw invalid();
  if (jwk.kty === "RSA") return rsaDer(jwk, isPrivate);
  if (jwk.kty === "EC") return ecDer(jwk, isPrivate);
  if (jwk.kty === "OKP") return okpDer(jwk, isPrivate);
  throw nodeError(TypeError, "ERR_CRYPTO_INVALID_JWK", `JWK ${isPrivate ? "private" : "public"} key import is not implemented for this key type`);
}

// ---- writing

const text = (bytes) => Buffer.from(bytes).toString("base64url");
const number = ({ body }) => {
  let at = 0;
  while (at < body.length - 1 && body[at] === 0) at++;
  return text(body.subarray(at));
};
/** The bytes of a SubjectPublicKeyInfo's key. */
const publicBytes = (der) => inside(der)[1].body.subarray(1);

function rsaJwk(der, isPrivate) {
  if (!isPrivate) {
    const [n, e] = inside(publicBytes(der));
    return { kty: "RSA", n: number(n), e: number(e) };
  }
  const [, n, e, d, p, q, dp, dq, qi] = inside(inside(der)[2].body);
  return { kty: "RSA", n: number(n), e: number(e), d: number(d), p: number(p), q: number(q), dp: number(dp), dq: number(dq), qi: number(qi) };
}
function ecJwk(der, isPrivate, curveName, publicDer) {
  const [crv, { size }] = Object.entries(CURVES).find(([, curve]) => curve.name === curveName) ?? [undefined, {}];
  if (crv === undefined) throw nodeError(Error, "ERR_CRYPTO_JWK_UNSUPPORTED_CURVE", `Unsupported JWK EC curve: ${curveName}.`);
  const point = publicBytes(publicDer).subarray(1);
  const jwk = { crv, kty: "EC", x: text(point.subarray(0, size)), y: text(point.subarray(size)) };
  if (isPrivate) jwk.d = text(padded(inside(inside(der)[2].body)[1].body, size));
  return jwk;
}
function okpJwk(der, isPrivate, type, publicDer) {
  const jwk = { crv: OKP_TYPES[type], kty: "OKP", x: text(publicBytes(publicDer)) };
  if (type.startsWith("ed")) jwk.alg = "EdDSA";
  if (isPrivate) jwk.d = text(elements(inside(der)[2].body)[0].body);
  return jwk;
}

/** The JWK of a key. `publicDer()` gives the SubjectPublicKeyInfo that belongs to it. */
export function jwkFromDer(der, isPrivate, type, curve, publicDer) {
  if (type === "rsa") return rsaJwk(der, isPrivate);
  if (type === "ec") return ecJwk(der, isPrivate, curve, publicDer());
  if (OKP_TYPES[type] !== undefined) return okpJwk(der, isPrivate, type, publicDer());
  throw nodeError(Error, "ERR_CRYPTO_JWK_UNSUPPORTED_KEY_TYPE", "Key type is invalid for JWK export");
}

/** The exponent of an RSA key. */
export function publicExponent(der, isPrivate) {
  const { body } = isPrivate ? inside(inside(der)[2].body)[2] : inside(publicBytes(der))[1];
  return BigInt(`0x${Buffer.from(body).toString("hex")}`);
}
/** True if DER has the form that is asked for. */
export function hasForm(der, form) {
  try {
    const [first, second] = inside(der);
    if (form === "pkcs8") return first.tag === INTEGER && second.tag === SEQUENCE;
    return true;
  } catch {
    return false;
  }
}
