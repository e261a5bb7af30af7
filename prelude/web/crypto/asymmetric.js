// RSA, elliptic curves and the Edwards and Montgomery curves:
// https://w3c.github.io/webcrypto/#rsassa-pkcs1 and the sections after it,
// https://wicg.github.io/webcrypto-secure-curves/
import { CryptoOp } from "../../../src/bindings/border.ts";
import { bytesOf, hashMember, none, notSupported, operationError, register, requiredInteger, requiredText } from "./algorithms.js";
import { checkUsable, checkUsages, dataOf, isCryptoKey, makeKey, makePair } from "./crypto-key.js";
import { checkAlg, checkJwk, dataError, jwkOf, partBytes, partText } from "./jwk.js";
import { call, HASH, isLong, keyParts, KIND, SCHEME } from "./native-ids.js";
import { DOMException } from "../dom-exception.js";
import { takeBits } from "./symmetric.js";

const importError = { errorName: "DataError" };

/** PKCS #8 or SPKI in its one form. */
const importDer = (format, kind, der) =>
  call(format === "pkcs8" ? CryptoOp.IMPORT_PKCS8 : CryptoOp.IMPORT_SPKI, { n: [kind], buffers: [der], ...importError });
const importRaw = (kind, raw) => call(CryptoOp.IMPORT_RAW, { n: [kind], buffers: [raw], ...importError });
const importParts = (kind, isPrivate, parts) =>
  call(CryptoOp.IMPORT_PARTS, { n: [kind, isPrivate ? 1 : 0], buffers: parts, ...importError });

function exportDer(format, key) {
  const want = format === "pkcs8" ? "private" : "public";
  if (key.type !== want) throw new DOMException(`Only a ${want} key has the form "${format}".`, "InvalidAccessError");
  return dataOf(key).slice();
}

function exportRaw(kind, key) {
  if (key.type !== "public") throw new DOMException(`Only a public key has the form "raw".`, "InvalidAccessError");
  return call(CryptoOp.EXPORT_RAW, { n: [kind], buffers: [dataOf(key)] });
}

const requireType = (key, type) => {
  if (key.type !== type) throw new DOMException(`This needs a ${type} key.`, "InvalidAccessError");
};

const sides = {
  sign: { publicUsages: ["verify"], privateUsages: ["sign"] },
  encrypt: { publicUsages: ["encrypt", "wrapKey"], privateUsages: ["decrypt", "unwrapKey"] },
  agree: { publicUsages: [], privateUsages: ["deriveKey", "deriveBits"] },
};

/** Checks the usages of an imported key by whether it is private, and makes it. */
function makeImported({ side, isPrivate, usages, extractable, algorithm, data }) {
  checkUsages(usages, isPrivate ? side.privateUsages : side.publicUsages);
  return checkUsable(makeKey({ type: isPrivate ? "private" : "public", extractable, algorithm, usages, data }));
}

// ---- RSA ----

const RSA_PARTS = ["n", "e", "d", "p", "q", "dp", "dq", "qi"];

const rsaAlg = {
  "RSASSA-PKCS1-v1_5": (hash) => `RS${hash === "SHA-1" ? 1 : hash.slice(4)}`,
  "RSA-PSS": (hash) => `PS${hash === "SHA-1" ? 1 : hash.slice(4)}`,
  "RSA-OAEP": (hash) => (hash === "SHA-1" ? "RSA-OAEP" : `RSA-OAEP-${hash.slice(4)}`),
};
const knownRsaAlgs = () =>
  Object.values(rsaAlg).flatMap((of) => ["SHA-1", "SHA-256", "SHA-384", "SHA-512"].map((hash) => of(hash)));

function rsa(name) {
  const side = name === "RSA-OAEP" ? sides.encrypt : sides.sign;
  const algorithmOf = (hash, isPrivate, der) => {
    const [n, e] = keyParts(KIND.RSA, isPrivate, der);
    const modulusLength = n.byteLength * 8 - Math.clz32(n[0]) + 24;
    return { name, modulusLength, publicExponent: e.slice(), hash };
  };
  const implementation = {
    async generateKey({ modulusLength, publicExponent, hash }, extractable, usages) {
      checkExponent(publicExponent);
      checkUsages(usages, [...side.publicUsages, ...side.privateUsages]);
      const options = { background: true, n: [KIND.RSA, modulusLength], buffers: [publicExponent] };
      const [pkcs8, spki] = await call(CryptoOp.GENERATE, options);
      const algorithm = { name, modulusLength, publicExponent, hash };
      return makePair({ algorithm, extractable, usages, pkcs8, spki, ...side });
    },
    importKey(format, material, { hash }, extractable, usages) {
      let isPrivate = format === "pkcs8";
      let data;
      if (format === "jwk") {
        isPrivate = material.d !== undefined;
        checkUsages(usages, isPrivate ? side.privateUsages : side.publicUsages);
        checkJwk(material, { kty: "RSA", use: name === "RSA-OAEP" ? "enc" : "sig", usages, extractable });
        checkAlg(material, rsaAlg[name](hash.name), knownRsaAlgs());
        if (material.oth !== undefined) throw notSupported("RSA keys with more than two primes are not supported.");
        const names = isPrivate ? RSA_PARTS : RSA_PARTS.slice(0, 2);
        data = importParts(KIND.RSA, isPrivate, names.map((part) => partBytes(material, part)));
      } else if (format === "raw") {
        throw notSupported(`RSA keys have no form "raw".`);
      } else {
        checkUsages(usages, isPrivate ? side.privateUsages : side.publicUsages);
        data = importDer(format, KIND.RSA, material);
      }
      const algorithm = algorithmOf(hash, isPrivate, data);
      return makeImported({ side, isPrivate, usages, extractable, algorithm, data });
    },
    exportKey(format, key) {
      if (format === "pkcs8" || format === "spki") return exportDer(format, key);
      if (format !== "jwk") throw notSupported(`RSA keys have no form "${format}".`);
      const fields = { kty: "RSA", alg: rsaAlg[name](key.algorithm.hash.name) };
      keyParts(KIND.RSA, key.type === "private", dataOf(key)).forEach((bytes, i) => (fields[RSA_PARTS[i]] = partText(bytes)));
      return jwkOf(key, fields);
    },
  };
  const operations = {
    generateKey: (algorithm) => ({
      modulusLength: requiredInteger(algorithm, "modulusLength", 0xffffffff),
      publicExponent: exponent(algorithm.publicExponent),
      ...hashMember(algorithm),
    }),
    importKey: hashMember,
    exportKey: none,
  };
  if (name === "RSA-OAEP") {
    const params = ({ label }) => ({ label: label === undefined ? new Uint8Array() : bytesOf(label, "label") });
    const run = (encrypt) => ({ label }, key, data) => {
      requireType(key, encrypt ? "public" : "private");
      return call(CryptoOp.RSA_OAEP, { background: !encrypt, n: [HASH[key.algorithm.hash.name], encrypt], buffers: [dataOf(key), data, label] });
    };
    Object.assign(operations, { encrypt: params, decrypt: params });
    Object.assign(implementation, { encrypt: run(1), decrypt: run(0) });
  } else {
    const params = name === "RSA-PSS" ? (algorithm) => ({ saltLength: requiredInteger(algorithm, "saltLength", 0xffffffff) }) : none;
    Object.assign(operations, { sign: params, verify: params });
    Object.assign(implementation, signing(name, () => KIND.RSA, (algorithm, key) => key.algorithm.hash.name));
  }
  register(name, operations, implementation);
}

function exponent(value) {
  if (!(value instanceof Uint8Array)) throw new TypeError("Missing or wrong member 'publicExponent': it is not of type 'Uint8Array'.");
  return value.slice();
}

/** sign() and verify() of a scheme. */
function signing(scheme, kindOf, hashOf) {
  const numbers = (algorithm, key) => [SCHEME[scheme], kindOf(key), HASH[hashOf(algorithm, key)] ?? 0, algorithm.saltLength ?? 0];
  return {
    sign(algorithm, key, data) {
      requireType(key, "private");
      // An RSA signature takes about a millisecond; the others less than handing them over.
      const background = kindOf(key) === KIND.RSA || isLong(data);
      return call(CryptoOp.SIGN, { background, n: numbers(algorithm, key), buffers: [dataOf(key), data] });
    },
    verify(algorithm, key, signature, data) {
      requireType(key, "public");
      return call(CryptoOp.VERIFY, { background: isLong(data), n: numbers(algorithm, key), buffers: [dataOf(key), data, signature] });
    },
  };
}

for (const name of Object.keys(rsaAlg)) rsa(name);

// ---- key agreement ----

/** deriveBits() of ECDH and X25519: the secret, or its first `length` bits. */
function agree(kindOf) {
  return ({ public: peer }, key, length) => {
    requireType(key, "private");
    requireType(peer, "public");
    if (peer.algorithm.name !== key.algorithm.name || kindOf(peer) !== kindOf(key)) {
      throw new DOMException("The two keys are not of the same kind.", "InvalidAccessError");
    }
    const secret = call(CryptoOp.AGREE, { n: [kindOf(key)], buffers: [dataOf(key), dataOf(peer)] });
    if (length === null || length === undefined) return secret;
    if (length > secret.byteLength * 8) throw operationError(`The secret has only ${secret.byteLength * 8} bits.`);
    return takeBits(secret, length);
  };
}

function peerParams(algorithm) {
  if (!isCryptoKey(algorithm.public)) throw new TypeError("Missing or wrong member 'public': it is not of type 'CryptoKey'.");
  return { public: algorithm.public };
}

// ---- elliptic curves ----

const CURVES = ["P-256", "P-384", "P-521"];
const EC_PARTS = ["x", "y", "d"];
const curveKind = (key) => KIND[key.algorithm.namedCurve];

function elliptic(name, side, use) {
  const curveParams = (algorithm) => ({ namedCurve: requiredText(algorithm, "namedCurve") });
  const checkCurve = (namedCurve) => {
    if (!CURVES.includes(namedCurve)) throw notSupported(`The curve "${namedCurve}" is not supported.`);
  };
  const alg = { "P-256": "ES256", "P-384": "ES384", "P-521": "ES512" };
  const implementation = {
    generateKey({ namedCurve }, extractable, usages) {
      checkUsages(usages, [...side.publicUsages, ...side.privateUsages]);
      checkCurve(namedCurve);
      const [pkcs8, spki] = call(CryptoOp.GENERATE, { n: [KIND[namedCurve]] });
      return makePair({ algorithm: { name, namedCurve }, extractable, usages, pkcs8, spki, ...side });
    },
    importKey(format, material, { namedCurve }, extractable, usages) {
      checkCurve(namedCurve);
      const kind = KIND[namedCurve];
      const isPrivate = format === "pkcs8" || (format === "jwk" && material.d !== undefined);
      checkUsages(usages, isPrivate ? side.privateUsages : side.publicUsages);
      let data;
      if (format === "jwk") {
        checkJwk(material, { kty: "EC", use, usages, extractable });
        if (material.crv !== namedCurve) throw dataError(`The JWK's "crv" must be "${namedCurve}", not "${material.crv}".`);
        if (name === "ECDSA") checkAlg(material, alg[namedCurve], Object.values(alg));
        const names = isPrivate ? EC_PARTS : EC_PARTS.slice(0, 2);
        data = importParts(kind, isPrivate, names.map((part) => partBytes(material, part)));
      } else {
        data = format === "raw" ? importRaw(kind, material) : importDer(format, kind, material);
      }
      return makeImported({ side, isPrivate, usages, extractable, algorithm: { name, namedCurve }, data });
    },
    exportKey(format, key) {
      if (format === "raw") return exportRaw(curveKind(key), key);
      if (format !== "jwk") return exportDer(format, key);
      const fields = { kty: "EC", crv: key.algorithm.namedCurve };
      keyParts(curveKind(key), key.type === "private", dataOf(key)).forEach((bytes, i) => (fields[EC_PARTS[i]] = partText(bytes)));
      return jwkOf(key, fields);
    },
  };
  const operations = { generateKey: curveParams, importKey: curveParams, exportKey: none };
  if (name === "ECDSA") {
    Object.assign(operations, { sign: hashMember, verify: hashMember });
    Object.assign(implementation, signing(name, curveKind, (algorithm) => algorithm.hash.name));
  } else {
    Object.assign(operations, { deriveBits: peerParams });
    Object.assign(implementation, { deriveBits: agree(curveKind) });
  }
  register(name, operations, implementation);
}
elliptic("ECDSA", sides.sign, "sig");
elliptic("ECDH", sides.agree, "enc");

/** Others are a mistake, or would never end. */
function checkExponent(bytes) {
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const value = BigInt(`0x${digits === "" ? "0" : digits}`);
  if (value !== 3n && value !== 65537n) throw operationError(`The "publicExponent" must be either 3 or 65537, but got ${value}.`);
}

// ---- Ed25519, X25519 ----

const OKP_PARTS = ["x", "d"];

function okp(name, side, use) {
  // The name that the platform had before there was a standard.
  const isOld = name === "NODE-ED25519";
  const curve = isOld ? "Ed25519" : name;
  const kind = KIND[curve];
  const about = isOld ? { name, namedCurve: name } : { name };
  const implementation = {
    generateKey(algorithm, extractable, usages) {
      checkUsages(usages, [...side.publicUsages, ...side.privateUsages]);
      const [pkcs8, spki] = call(CryptoOp.GENERATE, { n: [kind] });
      return makePair({ algorithm: about, extractable, usages, pkcs8, spki, ...side });
    },
    importKey(format, material, algorithm, extractable, usages) {
      const isPrivate = format === "pkcs8" || (format === "jwk" && material.d !== undefined);
      checkUsages(usages, isPrivate ? side.privateUsages : side.publicUsages);
      let data;
      if (format === "jwk") {
        checkJwk(material, { kty: "OKP", use, usages, extractable });
        if (material.crv !== curve) throw dataError(`The JWK's "crv" must be "${curve}", not "${material.crv}".`);
        if (curve === "Ed25519" && material.alg !== undefined && material.alg !== "Ed25519") checkAlg(material, "EdDSA");
        const names = isPrivate ? OKP_PARTS : OKP_PARTS.slice(0, 1);
        data = importParts(kind, isPrivate, names.map((part) => partBytes(material, part)));
      } else {
        data = format === "raw" ? importRaw(kind, material) : importDer(format, kind, material);
      }
      return makeImported({ side, isPrivate, usages, extractable, algorithm: about, data });
    },
    exportKey(format, key) {
      if (format === "raw") return exportRaw(kind, key);
      if (format !== "jwk") return exportDer(format, key);
      const fields = { kty: "OKP", crv: curve };
      keyParts(kind, key.type === "private", dataOf(key)).forEach((bytes, i) => (fields[OKP_PARTS[i]] = partText(bytes)));
      return jwkOf(key, fields);
    },
  };
  const operations = { generateKey: none, importKey: none, exportKey: none };
  if (curve === "Ed25519") {
    Object.assign(operations, { sign: none, verify: none });
    Object.assign(implementation, signing(name, () => kind, () => undefined));
  } else {
    Object.assign(operations, { deriveBits: peerParams });
    Object.assign(implementation, { deriveBits: agree(() => kind) });
  }
  register(name, operations, implementation);
}
okp("Ed25519", sides.sign, "sig");
okp("NODE-ED25519", sides.sign, "sig");
okp("X25519", sides.agree, "enc");
