// CryptoKey (https://w3c.github.io/webcrypto/#cryptokey-interface).
import { test, assert, assertEquals, assertInterface, assertThrows } from "../harness.js";

const { subtle } = crypto;

test("CryptoKey's attributes are accessors of its prototype", async () => {
  assertInterface("CryptoKey", { getters: ["type", "extractable", "algorithm", "usages"] });
  assertEquals(Object.keys(await subtle.importKey("raw", new Uint8Array(16), "AES-GCM", false, ["encrypt"])), []);
}, { differs: { workerd: "they are properties of each key" } });

test("scripts cannot make a CryptoKey", () => {
  assertThrows(TypeError, () => new CryptoKey());
});

test("a key shows what it is for", async () => {
  const key = await subtle.importKey("raw", new Uint8Array(16), "aes-gcm", false, ["decrypt", "encrypt", "encrypt"]);
  assert(key instanceof CryptoKey);
  assertEquals(Object.prototype.toString.call(key), "[object CryptoKey]");
  assertEquals([key.type, key.extractable, key.algorithm, key.usages], ["secret", false, { name: "AES-GCM", length: 128 }, ["encrypt", "decrypt"]]);
});

test("what happens to the exposed objects does not change the key", async () => {
  const bytes = new Uint8Array(16);
  const key = await subtle.importKey("raw", bytes, "AES-CBC", true, ["encrypt"]);
  bytes.fill(1);
  new Uint8Array(await subtle.exportKey("raw", key)).fill(2);
  assertEquals([...new Uint8Array(await subtle.exportKey("raw", key))], new Array(16).fill(0));
});

test("a key can be cloned, and the clone used", async () => {
  const { publicKey, privateKey } = await subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]);
  const clone = structuredClone({ key: privateKey }).key;
  assert(clone instanceof CryptoKey && clone !== privateKey);
  assertEquals([clone.type, clone.extractable, clone.algorithm, clone.usages], ["private", false, { name: "ECDSA", namedCurve: "P-256" }, ["sign"]]);
  const params = { name: "ECDSA", hash: "SHA-256" };
  const signature = await subtle.sign(params, clone, new Uint8Array(3));
  assertEquals(await subtle.verify(params, structuredClone(publicKey), signature, new Uint8Array(3)), true);
}, { differs: { workerd: "keys cannot be cloned" } });
