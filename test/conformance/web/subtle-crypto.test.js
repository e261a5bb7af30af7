// SubtleCrypto (https://w3c.github.io/webcrypto/#subtlecrypto-interface): every algorithm used once
// in each of its operations, the published vectors that JavaScript code meets (RFC 7515, RFC 8037),
// and what is refused. The vectors of the operations themselves are in test_webcrypto.c.
import { test, assert, assertEquals, assertInterface, assertRejects } from "../harness.js";

const { subtle } = crypto;
const utf8 = (text) => new TextEncoder().encode(text);
const text = (buffer) => new TextDecoder().decode(buffer);
const hex = (buffer) => Array.from(new Uint8Array(buffer), (b) => b.toString(16).padStart(2, "0")).join("");
const unhex = (digits) => Uint8Array.from(digits.match(/../g) ?? [], (d) => parseInt(d, 16));
const unb64 = (digits) => Uint8Array.from(atob(digits.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
/** A JWK without its undefined members, which one peer has and another has not. */
const plain = (jwk) => JSON.parse(JSON.stringify(jwk));
const rsaParams = (name, hash = "SHA-256") => ({ name, hash, modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) });

// Made once: RSA keys take time.
const rsaKeys = {};
const rsaKey = (name, usages) => (rsaKeys[name] ??= subtle.generateKey(rsaParams(name), true, usages));

test("SubtleCrypto is an interface", async () => {
  assertInterface("SubtleCrypto", {
    methods: { encrypt: 3, decrypt: 3, sign: 3, verify: 4, digest: 2, generateKey: 3, deriveKey: 5, importKey: 5, exportKey: 2, wrapKey: 4, unwrapKey: 7 },
  });
});

// ---- digest ----

test("digest knows the SHA family and MD5", async () => {
  for (const [name, want] of [
    ["SHA-1", "da39a3ee5e6b4b0d3255bfef95601890afd80709"],
    ["sha-256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    ["SHA-384", "38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b"],
    [{ name: "SHA-512" }, "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"],
    ["MD5", "d41d8cd98f00b204e9800998ecf8427e"],
  ]) {
    assertEquals(hex(await subtle.digest(name, new ArrayBuffer(0))), want);
  }
});

test("digest takes the bytes of a view, large ones too", async () => {
  const bytes = utf8("xxabcxx");
  assertEquals(hex(await subtle.digest("SHA-1", bytes.subarray(2, 5))), "a9993e364706816aba3e25717850c26c9cd0d89d");
  assertEquals(hex(await subtle.digest("SHA-1", new DataView(bytes.buffer, 2, 3))), "a9993e364706816aba3e25717850c26c9cd0d89d");
  assertEquals(hex(await subtle.digest("SHA-256", new Uint8Array(1000000).fill(0x61))), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
});

test("digest: a change after the call is not seen", async () => {
  for (const size of [3, 1000000]) {
    const bytes = new Uint8Array(size).fill(0x61);
    const want = hex(await subtle.digest("SHA-256", bytes));
    const promise = subtle.digest("SHA-256", bytes);
    bytes.fill(0);
    assertEquals(hex(await promise), want);
  }
});

test("digest refuses what it does not know", async () => {
  await assertRejects("NotSupportedError", subtle.digest("SHA-3", new Uint8Array()));
  await assertRejects("NotSupportedError", subtle.digest("AES-GCM", new Uint8Array()));
  await assertRejects(TypeError, subtle.digest("SHA-1", "text"));
  await assertRejects(TypeError, subtle.digest("SHA-1"));
  await assertRejects(TypeError, Promise.resolve().then(() => SubtleCrypto.prototype.digest.call({}, "SHA-1", new Uint8Array())));
});

// ---- HMAC ----

test("HMAC: RFC 7515 A.1", async () => {
  const jwk = { kty: "oct", k: "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow" };
  const key = await subtle.importKey("jwk", jwk, { name: "HMAC", hash: "SHA-256" }, true, ["sign", "verify"]);
  const data = utf8("eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ");
  const signature = unb64("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
  assertEquals(hex(await subtle.sign("HMAC", key, data)), hex(signature));
  assertEquals(await subtle.verify("HMAC", key, signature, data), true);
  assertEquals(await subtle.verify("HMAC", key, signature.subarray(1), data), false);
  assertEquals(await subtle.verify("HMAC", key, signature, data.subarray(1)), false);
  assertEquals(plain(await subtle.exportKey("jwk", key)), { ...jwk, alg: "HS256", key_ops: ["sign", "verify"], ext: true });
});

test("HMAC: lengths", async () => {
  for (const [hash, length] of [["SHA-1", 512], ["SHA-256", 512], ["SHA-384", 1024], ["SHA-512", 1024]]) {
    const key = await subtle.generateKey({ name: "HMAC", hash }, true, ["sign"]);
    assertEquals(key.algorithm, { name: "HMAC", hash: { name: hash }, length });
    assertEquals((await subtle.exportKey("raw", key)).byteLength, length / 8);
  }
  const importing = (bytes, length) => subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256", length }, true, ["sign"]);
  await assertRejects("DataError", importing(new Uint8Array(), undefined));
  await assertRejects("DataError", importing(new Uint8Array(4), 33));
  await assertRejects("DataError", importing(new Uint8Array(4), 24));
});

// ---- AES ----

const aes = [
  ["AES-CBC", () => ({ name: "AES-CBC", iv: new Uint8Array(16) })],
  ["AES-CTR", () => ({ name: "AES-CTR", counter: new Uint8Array(16), length: 64 })],
  ["AES-GCM", () => ({ name: "AES-GCM", iv: new Uint8Array(12), additionalData: utf8("header") })],
];

test("AES encrypts and decrypts, large data too", async () => {
  for (const [name, params] of aes) {
    for (const length of [128, 256]) {
      const key = await subtle.generateKey({ name, length }, true, ["encrypt", "decrypt"]);
      assertEquals([key.type, key.algorithm, key.usages], ["secret", { name, length }, ["encrypt", "decrypt"]]);
      for (const size of [0, 1, 16, 100000]) {
        const data = new Uint8Array(size).map((_, i) => i);
        const coded = await subtle.encrypt(params(), key, data);
        assertEquals(hex(await subtle.decrypt(params(), key, coded)), hex(data), `${name} ${length} ${size}`);
      }
      const copy = await subtle.importKey("raw", await subtle.exportKey("raw", key), name, false, ["decrypt"]);
      assertEquals(text(await subtle.decrypt(params(), copy, await subtle.encrypt(params(), key, utf8("same")))), "same");
      await assertRejects("InvalidAccessError", subtle.encrypt(params(), copy, utf8("x")));
      await assertRejects("InvalidAccessError", subtle.exportKey("raw", copy));
    }
  }
});

/** Enough that it may be worked on by another thread. */
const LARGE = 17_000_000;
function largeData() {
  const data = new Uint8Array(LARGE).fill(0x5a);
  for (let i = 0; i < LARGE; i += 4099) data[i] = i;
  return data;
}
const sameBytes = async (a, b) => assertEquals(hex(await subtle.digest("SHA-256", a)), hex(await subtle.digest("SHA-256", b)));

test("AES: a change after the call is not seen, and the data stays as it was", async () => {
  for (const [name, params] of aes) {
    const data = largeData();
    const key = await subtle.generateKey({ name, length: 128 }, false, ["encrypt", "decrypt"]);
    const pending = subtle.encrypt(params(), key, data);
    await sameBytes(data, largeData());
    data.fill(0);
    await sameBytes(await subtle.decrypt(params(), key, await pending), largeData());
  }
});

test("AES-CTR: the counter starts over within its bits, in large data too", async () => {
  const key = await subtle.generateKey({ name: "AES-CTR", length: 256 }, false, ["encrypt"]);
  const counter = new Uint8Array(16).fill(9);
  counter.set([0xff, 0xff, 0xf0], 13); // sixteen blocks before the end of 24 bits
  const restarted = counter.slice();
  restarted.fill(0, 13);
  for (const data of [largeData().subarray(0, 1000), largeData()]) {
    const whole = await subtle.encrypt({ name: "AES-CTR", counter, length: 24 }, key, data);
    const tail = await subtle.encrypt({ name: "AES-CTR", counter: restarted, length: 24 }, key, data.subarray(256));
    await sameBytes(new Uint8Array(whole, 256), tail);
  }
});

test("AES-GCM is authentic", async () => {
  const key = await subtle.importKey("raw", unhex("feffe9928665731c6d6a8f9467308308"), "AES-GCM", false, ["encrypt", "decrypt"]);
  const params = { name: "AES-GCM", iv: unhex("cafebabefacedbaddecaf888"), additionalData: unhex("feedfacedeadbeeffeedfacedeadbeefabaddad2") };
  const plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
  const coded = new Uint8Array(await subtle.encrypt(params, key, unhex(plain)));
  assertEquals(hex(coded.slice(-16)), "5bc94fbc3221a5db94fae95ae7121a47");
  assertEquals(hex(await subtle.decrypt(params, key, coded)), plain);
  coded[0] ^= 1;
  await assertRejects("OperationError", subtle.decrypt(params, key, coded));
  await assertRejects("OperationError", subtle.decrypt(params, key, new Uint8Array(15)));
  await assertRejects("OperationError", subtle.encrypt({ ...params, tagLength: 100 }, key, coded));
  await assertRejects(TypeError, subtle.encrypt({ name: "AES-GCM" }, key, coded));
});

test("AES parameters are checked", async () => {
  const key = await subtle.generateKey({ name: "AES-CBC", length: 128 }, false, ["encrypt", "decrypt"]);
  await assertRejects("OperationError", subtle.encrypt({ name: "AES-CBC", iv: new Uint8Array(15) }, key, utf8("x")));
  await assertRejects("OperationError", subtle.decrypt({ name: "AES-CBC", iv: new Uint8Array(16) }, key, utf8("x")));
  await assertRejects("OperationError", subtle.generateKey({ name: "AES-CBC", length: 100 }, false, ["encrypt"]));
  await assertRejects("DataError", subtle.importKey("raw", new Uint8Array(15), "AES-CBC", false, ["encrypt"]));
  await assertRejects("SyntaxError", subtle.generateKey({ name: "AES-CBC", length: 128 }, false, ["sign"]));
  await assertRejects("SyntaxError", subtle.generateKey({ name: "AES-CBC", length: 128 }, false, []));
  await assertRejects("InvalidAccessError", subtle.encrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, key, utf8("x")));
});

test("AES as a JWK", async () => {
  const key = await subtle.importKey("raw", unhex("000102030405060708090a0b0c0d0e0f"), "AES-GCM", true, ["encrypt"]);
  const jwk = plain(await subtle.exportKey("jwk", key));
  assertEquals(jwk, { kty: "oct", k: "AAECAwQFBgcICQoLDA0ODw", alg: "A128GCM", key_ops: ["encrypt"], ext: true });
  const importing = (changes, usages = ["encrypt"]) => subtle.importKey("jwk", { ...jwk, ...changes }, "AES-GCM", true, usages);
  assertEquals(hex(await subtle.exportKey("raw", await importing({}))), "000102030405060708090a0b0c0d0e0f");
  for (const bad of [{ kty: "RSA" }, { k: undefined }, { k: "!" }, { alg: "A256GCM" }, { use: "sig" }, { ext: false }]) {
    await assertRejects("DataError", importing(bad));
  }
  await assertRejects("DataError", importing({}, ["decrypt"]));
});

test("AES-KW wraps and unwraps keys", async () => {
  const kek = await subtle.importKey("raw", unhex("000102030405060708090a0b0c0d0e0f"), "AES-KW", false, ["wrapKey", "unwrapKey"]);
  const key = await subtle.importKey("raw", unhex("00112233445566778899aabbccddeeff"), "AES-CBC", true, ["encrypt"]);
  const wrapped = await subtle.wrapKey("raw", key, kek, "AES-KW");
  assertEquals(hex(wrapped), "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5");
  const back = await subtle.unwrapKey("raw", wrapped, kek, "AES-KW", "AES-CBC", true, ["encrypt"]);
  assertEquals(hex(await subtle.exportKey("raw", back)), "00112233445566778899aabbccddeeff");
  await assertRejects("OperationError", subtle.unwrapKey("raw", new Uint8Array(24), kek, "AES-KW", "AES-CBC", true, ["encrypt"]));
});

test("a key wrapped as a JWK by AES-GCM comes back", async () => {
  const params = { name: "AES-GCM", iv: new Uint8Array(12) };
  const kek = await subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["wrapKey", "unwrapKey"]);
  const { privateKey } = await subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  const wrapped = await subtle.wrapKey("jwk", privateKey, kek, params);
  const back = await subtle.unwrapKey("jwk", wrapped, kek, params, { name: "ECDSA", namedCurve: "P-256" }, true, ["sign"]);
  assertEquals(await subtle.exportKey("jwk", back), await subtle.exportKey("jwk", privateKey));
});

// ---- RSA ----

test("RSA generates pairs with the platform's algorithm object", async () => {
  const { publicKey, privateKey } = await rsaKey("RSASSA-PKCS1-v1_5", ["sign", "verify"]);
  for (const key of [publicKey, privateKey]) {
    assertEquals(key.algorithm.name, "RSASSA-PKCS1-v1_5");
    assertEquals(key.algorithm.modulusLength, 2048);
    assertEquals([...key.algorithm.publicExponent], [1, 0, 1]);
    assertEquals(key.algorithm.hash, { name: "SHA-256" });
  }
  assertEquals([publicKey.type, publicKey.usages, publicKey.extractable], ["public", ["verify"], true]);
  assertEquals([privateKey.type, privateKey.usages], ["private", ["sign"]]);
});

test("RSA signs and verifies", async () => {
  for (const [name, params] of [["RSASSA-PKCS1-v1_5", {}], ["RSA-PSS", { saltLength: 32 }]]) {
    const { publicKey, privateKey } = await rsaKey(name, ["sign", "verify"]);
    const signature = await subtle.sign({ name, ...params }, privateKey, utf8("message"));
    assertEquals(signature.byteLength, 256);
    assertEquals(await subtle.verify({ name, ...params }, publicKey, signature, utf8("message")), true);
    assertEquals(await subtle.verify({ name, ...params }, publicKey, signature, utf8("massage")), false);
    assertEquals(await subtle.verify({ name, ...params }, publicKey, new Uint8Array(3), utf8("message")), false);
    await assertRejects("InvalidAccessError", subtle.sign({ name, ...params }, publicKey, utf8("message")));
  }
});

test("RSA-OAEP encrypts and decrypts", async () => {
  const { publicKey, privateKey } = await rsaKey("RSA-OAEP", ["encrypt", "decrypt"]);
  const coded = await subtle.encrypt("RSA-OAEP", publicKey, utf8("secret"));
  assertEquals(text(await subtle.decrypt("RSA-OAEP", privateKey, coded)), "secret");
  await assertRejects("OperationError", subtle.decrypt({ name: "RSA-OAEP", label: utf8("other") }, privateKey, coded));
  await assertRejects("OperationError", subtle.encrypt("RSA-OAEP", publicKey, new Uint8Array(300)));
});

test("RSA keys survive every form", async () => {
  const { publicKey, privateKey } = await rsaKey("RSA-PSS", ["sign", "verify"]);
  const algorithm = { name: "RSA-PSS", hash: "SHA-256" };
  const spki = await subtle.exportKey("spki", publicKey);
  const pkcs8 = await subtle.exportKey("pkcs8", privateKey);
  const jwk = plain(await subtle.exportKey("jwk", privateKey));
  assertEquals([jwk.kty, jwk.alg, jwk.e, Object.keys(jwk).length], ["RSA", "PS256", "AQAB", 12]);
  for (const imported of [await subtle.importKey("pkcs8", pkcs8, algorithm, true, ["sign"]), await subtle.importKey("jwk", jwk, algorithm, true, ["sign"])]) {
    assertEquals(hex(await subtle.exportKey("pkcs8", imported)), hex(pkcs8));
    assertEquals(imported.algorithm.modulusLength, 2048);
  }
  const publicJwk = plain(await subtle.exportKey("jwk", publicKey));
  assertEquals(Object.keys(publicJwk).sort(), ["alg", "e", "ext", "key_ops", "kty", "n"]);
  const imported = await subtle.importKey("jwk", publicJwk, algorithm, true, ["verify"]);
  assertEquals(hex(await subtle.exportKey("spki", imported)), hex(spki));
  await assertRejects("DataError", subtle.importKey("spki", pkcs8, algorithm, true, ["verify"]));
  await assertRejects("InvalidAccessError", subtle.exportKey("pkcs8", publicKey));
});

// ---- elliptic curves ----

test("ECDSA: RFC 7515 A.3", async () => {
  const jwk = {
    kty: "EC", crv: "P-256", x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0", d: "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI",
  };
  const { d, ...publicJwk } = jwk;
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  const publicKey = await subtle.importKey("jwk", publicJwk, algorithm, true, ["verify"]);
  const privateKey = await subtle.importKey("jwk", jwk, algorithm, true, ["sign"]);
  const data = utf8("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ");
  const signature = unb64("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q");
  const params = { name: "ECDSA", hash: "SHA-256" };
  assertEquals(await subtle.verify(params, publicKey, signature, data), true);
  assertEquals(await subtle.verify(params, publicKey, await subtle.sign(params, privateKey, data), data), true);
  assertEquals(await subtle.verify({ name: "ECDSA", hash: "SHA-1" }, publicKey, signature, data), false);
  assertEquals(plain(await subtle.exportKey("jwk", privateKey)), { ...jwk, key_ops: ["sign"], ext: true });
});

test("every curve signs, agrees and survives every form", async () => {
  for (const [namedCurve, size] of [["P-256", 32], ["P-384", 48], ["P-521", 66]]) {
    const ecdsa = { name: "ECDSA", namedCurve };
    const pair = await subtle.generateKey(ecdsa, true, ["sign", "verify"]);
    assertEquals(pair.publicKey.algorithm, ecdsa);
    const params = { name: "ECDSA", hash: "SHA-512" };
    const signature = await subtle.sign(params, pair.privateKey, utf8("m"));
    assertEquals(signature.byteLength, 2 * size);
    const raw = await subtle.exportKey("raw", pair.publicKey);
    assertEquals([raw.byteLength, new Uint8Array(raw)[0]], [2 * size + 1, 4]);
    for (const publicKey of [
      await subtle.importKey("raw", raw, ecdsa, true, ["verify"]),
      await subtle.importKey("spki", await subtle.exportKey("spki", pair.publicKey), ecdsa, true, ["verify"]),
      await subtle.importKey("jwk", await subtle.exportKey("jwk", pair.publicKey), ecdsa, true, ["verify"]),
    ]) {
      assertEquals(await subtle.verify(params, publicKey, signature, utf8("m")), true);
    }
    const pkcs8 = await subtle.exportKey("pkcs8", pair.privateKey);
    const again = await subtle.importKey("pkcs8", pkcs8, ecdsa, true, ["sign"]);
    assertEquals(hex(await subtle.exportKey("pkcs8", again)), hex(pkcs8));

    const ecdh = { name: "ECDH", namedCurve };
    const [a, b] = [await subtle.generateKey(ecdh, false, ["deriveBits", "deriveKey"]), await subtle.generateKey(ecdh, false, ["deriveBits"])];
    const one = await subtle.deriveBits({ name: "ECDH", public: b.publicKey }, a.privateKey, 256);
    assertEquals(hex(await subtle.deriveBits({ name: "ECDH", public: a.publicKey }, b.privateKey, 256)), hex(one));
    assertEquals(one.byteLength, 32);
    assertEquals((await subtle.deriveBits({ name: "ECDH", public: b.publicKey }, a.privateKey, null)).byteLength, size);
    const key = await subtle.deriveKey({ name: "ECDH", public: b.publicKey }, a.privateKey, { name: "AES-GCM", length: 256 }, true, ["encrypt"]);
    assertEquals(hex(await subtle.exportKey("raw", key)), hex(one));
    await assertRejects("OperationError", subtle.deriveBits({ name: "ECDH", public: b.publicKey }, a.privateKey, size * 8 + 8));
  }
});

test("elliptic keys that make no sense are refused", async () => {
  const ecdsa = { name: "ECDSA", namedCurve: "P-256" };
  await assertRejects("NotSupportedError", subtle.generateKey({ name: "ECDSA", namedCurve: "P-123" }, true, ["sign"]));
  await assertRejects("DataError", subtle.importKey("raw", new Uint8Array(65).fill(4), ecdsa, true, ["verify"]));
  await assertRejects("DataError", subtle.importKey("raw", new Uint8Array(64), ecdsa, true, ["verify"]));
  await assertRejects("SyntaxError", subtle.importKey("raw", new Uint8Array(65), ecdsa, true, ["sign"]));
  await assertRejects("SyntaxError", subtle.generateKey(ecdsa, true, ["verify"]));
  await assertRejects(TypeError, subtle.generateKey({ name: "ECDSA" }, true, ["sign"]));
  const { publicKey, privateKey } = await subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, true, ["deriveBits"]);
  await assertRejects("InvalidAccessError", subtle.deriveBits({ name: "ECDH", public: privateKey }, privateKey, 256));
  const other = await subtle.generateKey({ name: "ECDH", namedCurve: "P-384" }, true, ["deriveBits"]);
  await assertRejects("InvalidAccessError", subtle.deriveBits({ name: "ECDH", public: other.publicKey }, privateKey, 256));
  await assertRejects(TypeError, subtle.deriveBits({ name: "ECDH" }, privateKey, 256));
  assertEquals(publicKey.usages, []);
});

// ---- Ed25519, X25519 ----

test("Ed25519: RFC 8037 A", async () => {
  const jwk = { kty: "OKP", crv: "Ed25519", d: "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" };
  const privateKey = await subtle.importKey("jwk", jwk, "Ed25519", true, ["sign"]);
  const publicKey = await subtle.importKey("raw", unb64(jwk.x), "Ed25519", true, ["verify"]);
  const data = utf8("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc");
  const signature = unb64("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg");
  assertEquals(hex(await subtle.sign("Ed25519", privateKey, data)), hex(signature));
  assertEquals(await subtle.verify("Ed25519", publicKey, signature, data), true);
  assertEquals(await subtle.verify("Ed25519", publicKey, signature, utf8("x")), false);
  assertEquals(privateKey.algorithm, { name: "Ed25519" });
});

test("Ed25519 and X25519 keys survive every form", async () => {
  for (const [name, usages] of [["Ed25519", ["sign", "verify"]], ["X25519", ["deriveBits"]]]) {
    const { publicKey, privateKey } = await subtle.generateKey(name, true, usages);
    const jwk = await subtle.exportKey("jwk", privateKey);
    const pkcs8 = await subtle.exportKey("pkcs8", privateKey);
    const spki = await subtle.exportKey("spki", publicKey);
    const raw = await subtle.exportKey("raw", publicKey);
    assertEquals([jwk.kty, jwk.crv, raw.byteLength], ["OKP", name, 32]);
    const again = await subtle.importKey("jwk", jwk, name, true, privateKey.usages);
    assertEquals(hex(await subtle.exportKey("pkcs8", again)), hex(pkcs8));
    const publicAgain = await subtle.importKey("raw", raw, name, true, publicKey.usages);
    assertEquals(hex(await subtle.exportKey("spki", publicAgain)), hex(spki));
  }
});

test("X25519: RFC 7748 6.1", async () => {
  const a = await subtle.generateKey("X25519", true, ["deriveBits"]);
  const b = await subtle.generateKey("X25519", true, ["deriveBits"]);
  const one = await subtle.deriveBits({ name: "X25519", public: b.publicKey }, a.privateKey, 256);
  assertEquals(hex(await subtle.deriveBits({ name: "X25519", public: a.publicKey }, b.privateKey, 256)), hex(one));
  const prefix = unhex("302e020100300506032b656e04220420");
  const scalar = unhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4");
  const privateKey = await subtle.importKey("pkcs8", Uint8Array.of(...prefix, ...scalar), "X25519", false, ["deriveBits"]);
  const publicKey = await subtle.importKey("raw", unhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"), "X25519", true, []);
  const secret = await subtle.deriveBits({ name: "X25519", public: publicKey }, privateKey, 256);
  assertEquals(hex(secret), "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
});

// ---- derivation ----

test("HKDF: RFC 5869 A.1", async () => {
  const key = await subtle.importKey("raw", unhex("0b".repeat(22)), "HKDF", false, ["deriveBits", "deriveKey"]);
  const params = { name: "HKDF", hash: "SHA-256", salt: unhex("000102030405060708090a0b0c"), info: unhex("f0f1f2f3f4f5f6f7f8f9") };
  assertEquals(hex(await subtle.deriveBits(params, key, 336)), "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
  const hmac = await subtle.deriveKey(params, key, { name: "HMAC", hash: "SHA-256", length: 256 }, true, ["sign"]);
  assertEquals(hex(await subtle.exportKey("raw", hmac)), "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
  await assertRejects("OperationError", subtle.deriveBits(params, key, 7));
  await assertRejects("OperationError", subtle.deriveBits(params, key, 256 * 32 * 8));
  await assertRejects(TypeError, subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: new Uint8Array() }, key, 256));
  await assertRejects("SyntaxError", subtle.importKey("raw", new Uint8Array(4), "HKDF", true, ["deriveBits"]));
});

test("PBKDF2: RFC 6070", async () => {
  const key = await subtle.importKey("raw", utf8("password"), "PBKDF2", false, ["deriveBits", "deriveKey"]);
  const params = { name: "PBKDF2", hash: "SHA-1", salt: utf8("salt"), iterations: 4096 };
  assertEquals(hex(await subtle.deriveBits(params, key, 160)), "4b007901b765489abead49d926f721d065a429c1");
  const aesKey = await subtle.deriveKey(params, key, { name: "AES-CBC", length: 128 }, true, ["encrypt"]);
  assertEquals(hex(await subtle.exportKey("raw", aesKey)), "4b007901b765489abead49d926f721d0");
  await assertRejects("OperationError", subtle.deriveBits({ ...params, iterations: 0 }, key, 160));
});

test("arguments of the wrong type are TypeErrors", async () => {
  await assertRejects(TypeError, subtle.importKey("raw", {}, "AES-CBC", true, ["encrypt"]));
  await assertRejects(TypeError, subtle.importKey("jwk", new Uint8Array(16), "AES-CBC", true, ["encrypt"]));
  await assertRejects(TypeError, subtle.encrypt({ name: "AES-CBC", iv: new Uint8Array(16) }, {}, new Uint8Array()));
  await assertRejects("NotSupportedError", subtle.generateKey("ROT13", true, ["encrypt"]));
});

test("an algorithm without a name and an unknown format are not supported", async () => {
  await assertRejects("NotSupportedError", subtle.digest({}, new Uint8Array()));
  await assertRejects(TypeError, subtle.digest(null, new Uint8Array()));
  await assertRejects(TypeError, subtle.digest("none", "data"));
  await assertRejects("SyntaxError", subtle.importKey("raw", new Uint8Array(16), "AES-CBC", true, ["fly"]));
  await assertRejects("NotSupportedError", subtle.importKey("der", new Uint8Array(16), "AES-CBC", true, ["encrypt"]));
});

test("a JWK for RS256 is no key for RSA-PSS", async () => {
  const { publicKey } = await rsaKey("RSASSA-PKCS1-v1_5", ["sign", "verify"]);
  const jwk = await subtle.exportKey("jwk", publicKey);
  await assertRejects("DataError", subtle.importKey("jwk", jwk, { name: "RSA-PSS", hash: "SHA-256" }, true, ["verify"]));
}, { differs: { workerd: "it takes such keys" } });

test("a JWK's alg that nobody knows is not supported", async () => {
  for (const [kty, algorithm] of [["RSA", { name: "RSA-OAEP", hash: "SHA-1" }], ["EC", { name: "ECDSA", namedCurve: "P-256" }]]) {
    const jwk = { kty, alg: "XX99", crv: "P-256", n: "AQAB", e: "AQAB", x: "AQAB", y: "AQAB" };
    await assertRejects("NotSupportedError", crypto.subtle.importKey("jwk", jwk, algorithm, true, []));
  }
});
