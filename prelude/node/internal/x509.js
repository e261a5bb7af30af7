// X509Certificate of node:crypto: https://nodejs.org/api/crypto.html#class-x509certificate
import { invalidArgType, invalidArgValue, validateBoolean, validateObject, validateString } from "./errors.js";
import { isIP } from "../net.js";
import { Buffer } from "../buffer.js";
import { CertificateQuestion } from "../../../src/bindings/border.ts";
import { native } from "./internals.js";
import { asBuffer, bytesOf, createPublicKey, derOf, KeyObject } from "./keys.js";

// X509_CHECK_FLAG_* of OpenSSL
const FLAGS = { subjectAlways: 1, noWildcards: 2, noPartialWildcards: 4, multiLabelWildcards: 8, singleLabelSubdomains: 16, subjectNever: 32 };

function checkFlags(options = {}) {
  validateObject(options, "options");
  for (const name of ["multiLabelWildcards", "partialWildcards", "singleLabelSubdomains", "wildcards"]) {
    if (options[name] !== undefined) validateBoolean(options[name], `options.${name}`);
  }
  if (options.subject !== undefined) {
    validateString(options.subject, "options.subject");
    if (options.subject !== "always" && options.subject !== "default" && options.subject !== "never") throw invalidArgValue("options.subject", options.subject);
  }
  const { subject = "default", wildcards = true, partialWildcards = true, multiLabelWildcards = false, singleLabelSubdomains = false } = options;
  return (subject === "always" ? FLAGS.subjectAlways : subject === "never" ? FLAGS.subjectNever : 0) |
    (wildcards ? 0 : FLAGS.noWildcards) | (partialWildcards ? 0 : FLAGS.noPartialWildcards) |
    (multiLabelWildcards ? FLAGS.multiLabelWildcards : 0) | (singleLabelSubdomains ? FLAGS.singleLabelSubdomains : 0);
}

function fingerprint(der, hash) {
  const state = native.nodeHash(hash, undefined);
  native.nodeHashUpdate(state, der);
  return asBuffer(native.nodeHashFinal(state, 0)).toString("hex").toUpperCase().match(/../g).join(":");
}

/** What a name is asked for: OpenSSL would look at the text up to its NUL. */
function plainText(value, name) {
  validateString(value, name);
  if (value.includes("\0")) throw invalidArgValue(name, value);
  return value;
}

/** "C=DE\nCN=a" as legacy objects have it: { C: "DE", CN: "a" }. */
function legacyName(text = "") {
  const name = {};
  for (const line of text.split("\n")) {
    const at = line.indexOf("=");
    if (at < 0) continue;
    const key = line.slice(0, at), value = line.slice(at + 1);
    name[key] = name[key] === undefined ? value : [name[key], value].flat();
  }
  return name;
}

/** "OCSP - URI:http://a\n" as legacy objects have it: { "OCSP - URI": ["http://a"] }. */
function legacyAccess(text) {
  if (text === undefined) return undefined;
  const access = {};
  for (const line of text.split("\n")) {
    const at = line.indexOf(":");
    if (at < 0) continue;
    const key = line.slice(0, at), value = line.slice(at + 1);
    (access[key] ??= []).push(value.startsWith('"') ? JSON.parse(value) : value);
  }
  return access;
}

const CURVES = { "P-256": "prime256v1", "P-384": "secp384r1", "P-521": "secp521r1" };

/** What legacy objects tell of the key. */
function legacyKey(key) {
  const kind = key.asymmetricKeyType;
  if (kind === "rsa") {
    const { n, e } = key.export({ format: "jwk" });
    const exponent = asBuffer(Buffer.from(e, "base64url")).toString("hex").replace(/^0+/, "");
    return { modulus: Buffer.from(n, "base64url").toString("hex").toUpperCase(), bits: key.asymmetricKeyDetails.modulusLength, exponent: `0x${exponent}`, pubkey: key.export({ format: "der", type: "spki" }) };
  }
  if (kind !== "ec") return {};
  const { crv, x, y } = key.export({ format: "jwk" });
  const [left, right] = [x, y].map((text) => Buffer.from(text, "base64url"));
  return { bits: crv === "P-521" ? 521 : left.length * 8, pubkey: Buffer.concat([Buffer.of(4), left, right]), asn1Curve: CURVES[crv] ?? crv, ...(CURVES[crv] === undefined ? {} : { nistCurve: crv }) };
}

export class X509Certificate {
  #der;
  #subject;
  #issuer;
  #altName;
  #infoAccess;
  #from;
  #to;
  #serial;
  #ca;
  #usage;
  #key;
  constructor(buffer) {
    if (typeof buffer !== "string" && !ArrayBuffer.isView(buffer)) {
      throw invalidArgType("buffer", "of type string or an instance of Buffer, TypedArray, or DataView", buffer);
    }
    const fields = native.nodeX509Read(bytesOf(buffer, "buffer"));
    if (fields === null) throw invalidArgValue("buffer", buffer, "is not a certificate");
    [this.#der, this.#subject, this.#issuer, this.#altName, this.#infoAccess, this.#from, this.#to, this.#serial, this.#ca, this.#usage, this.#key] = fields;
  }
  get subject() {
    return this.#subject;
  }
  get issuer() {
    return this.#issuer;
  }
  get subjectAltName() {
    return this.#altName;
  }
  get infoAccess() {
    return this.#infoAccess === undefined ? undefined : `${this.#infoAccess}\n`;
  }
  get validFrom() {
    return this.#from;
  }
  get validTo() {
    return this.#to;
  }
  get validFromDate() {
    return new Date(this.#from);
  }
  get validToDate() {
    return new Date(this.#to);
  }
  get serialNumber() {
    return this.#serial;
  }
  get ca() {
    return this.#ca;
  }
  get keyUsage() {
    return this.#usage;
  }
  get raw() {
    return asBuffer(this.#der.slice());
  }
  get fingerprint() {
    return fingerprint(this.#der, "sha1");
  }
  get fingerprint256() {
    return fingerprint(this.#der, "sha256");
  }
  get fingerprint512() {
    return fingerprint(this.#der, "sha512");
  }
  get publicKey() {
    return createPublicKey({ key: this.#key, format: "der", type: "spki" });
  }
  checkHost(name, options = undefined) {
    plainText(name, "name");
    return native.nodeX509Ask(this.#der, CertificateQuestion.HOST, name, checkFlags(options)) ? name : undefined;
  }
  checkEmail(email, options = undefined) {
    plainText(email, "email");
    return native.nodeX509Ask(this.#der, CertificateQuestion.EMAIL, email, checkFlags(options)) ? email : undefined;
  }
  checkIP(ip) {
    validateString(ip, "ip");
    if (isIP(ip) === 0) throw invalidArgValue("ip", ip);
    return native.nodeX509Ask(this.#der, CertificateQuestion.IP, ip, 0) ? ip : undefined;
  }
  checkIssued(other) {
    if (!(other instanceof X509Certificate)) throw invalidArgType("otherCert", "an instance of X509Certificate", other);
    return native.nodeX509Ask(this.#der, CertificateQuestion.ISSUED, other.#der, 0);
  }
  checkPrivateKey(key) {
    if (!(key instanceof KeyObject) || key.type !== "private") throw invalidArgType("pkey", "a private KeyObject", key);
    return native.nodeX509Ask(this.#der, CertificateQuestion.PRIVATE_KEY, derOf(key), 0);
  }
  verify(key) {
    if (!(key instanceof KeyObject) || key.type !== "public") throw invalidArgType("pkey", "a public KeyObject", key);
    return native.nodeX509Ask(this.#der, CertificateQuestion.VERIFY, derOf(key), 0);
  }
  toString() {
    return `-----BEGIN CERTIFICATE-----\n${asBuffer(this.#der).toString("base64").match(/.{1,64}/g).join("\n")}\n-----END CERTIFICATE-----\n`;
  }
  toJSON() {
    return this.toString();
  }
  toLegacyObject() {
    return {
      subject: legacyName(this.#subject), issuer: legacyName(this.#issuer), subjectaltname: this.#altName, infoAccess: legacyAccess(this.#infoAccess),
      ca: this.#ca, ...legacyKey(this.publicKey), ext_key_usage: this.#usage, valid_from: this.#from, valid_to: this.#to, serialNumber: this.#serial, raw: this.raw,
      fingerprint: this.fingerprint, fingerprint256: this.fingerprint256, fingerprint512: this.fingerprint512,
    };
  }
}
