// CryptoKey: https://w3c.github.io/webcrypto/#cryptokey-interface
//
// A key's material is bytes (see native-ids.js), so a key has no native state.
import { finishInterface } from "../../internal/interface.js";
import { registerHostPrototype } from "../../internal/serialize.js";
import { KEY_TAG } from "./crypto.js";
import { illegalConstructor, illegalInvocation } from "../../internal/webidl.js";
import { DOMException } from "../dom-exception.js";

/** In the order in which `usages` lists them. */
const USAGES = ["encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey"];

const SECRET = Symbol("may construct");
let dataOf, isCryptoKey;

export class CryptoKey {
  #type;
  #extractable;
  #algorithm;
  #usages;
  #data;

  constructor(secret, { type, extractable, algorithm, usages, data } = {}) {
    if (secret !== SECRET) throw illegalConstructor();
    this.#type = type;
    this.#extractable = extractable;
    this.#algorithm = algorithm;
    this.#usages = USAGES.filter((usage) => usages.includes(usage));
    this.#data = data;
  }

  static {
    dataOf = (key) => key.#data;
    isCryptoKey = (value) => typeof value === "object" && value !== null && #type in value;
  }

  get type() {
    if (!isCryptoKey(this)) throw illegalInvocation();
    return this.#type;
  }
  get extractable() {
    if (!isCryptoKey(this)) throw illegalInvocation();
    return this.#extractable;
  }
  get algorithm() {
    if (!isCryptoKey(this)) throw illegalInvocation();
    return this.#algorithm;
  }
  get usages() {
    if (!isCryptoKey(this)) throw illegalInvocation();
    return this.#usages;
  }
}
finishInterface(CryptoKey);
Object.defineProperty(CryptoKey, "length", { value: 0, configurable: true });

/** A key of `type` "secret" (data: raw bytes), "private" (PKCS #8) or "public" (SPKI). */
export const makeKey = (fields) => new CryptoKey(SECRET, fields);
export { dataOf, isCryptoKey };

// https://w3c.github.io/webcrypto/#cryptokey-interface-clone
export const writeKey = (key, writer) => writer.value([key.type, key.extractable, key.algorithm, key.usages, dataOf(key).slice()]);
export function readKey(reader) {
  const [type, extractable, algorithm, usages, data] = reader.value();
  return makeKey({ type, extractable, algorithm, usages, data });
}
registerHostPrototype(KEY_TAG, CryptoKey.prototype);

/** SyntaxError unless every usage is one of `allowed`. */
export function checkUsages(usages, allowed) {
  for (const usage of usages) {
    if (!allowed.includes(usage)) {
      throw new DOMException(`The usage "${usage}" is not supported by this kind of key.`, "SyntaxError");
    }
  }
}

/** A private or secret key nobody may use is a mistake. */
export function checkUsable(key) {
  if (key.type !== "public" && key.usages.length === 0) {
    throw new DOMException("Secret/private CryptoKeys must have at least one usage.", "SyntaxError");
  }
  return key;
}

/** The pair of an asymmetric kind: the usages are divided between the two. */
export function makePair({ algorithm, extractable, usages, pkcs8, spki, publicUsages, privateUsages }) {
  const pick = (allowed) => usages.filter((usage) => allowed.includes(usage));
  const publicKey = makeKey({ type: "public", extractable: true, algorithm, usages: pick(publicUsages), data: spki });
  const privateKey = makeKey({ type: "private", extractable, algorithm, usages: pick(privateUsages), data: pkcs8 });
  checkUsable(privateKey);
  return { publicKey, privateKey };
}
