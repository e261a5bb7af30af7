// What is evaluated at the first use of crypto.subtle, a CryptoKey or a DigestStream.
export { CryptoKey, dataOf, isCryptoKey, readKey, writeKey } from "./crypto-key.js";
export { DigestStream } from "./digest-stream.js";
export { SubtleCrypto, subtle } from "./subtle-crypto.js";
