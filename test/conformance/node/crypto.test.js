// node:crypto against published vectors (RFC 1321, FIPS 180, RFC 4231, RFC 6070, RFC 7914, RFC 5869, NIST SP 800-38A, GCM spec).
import crypto from "node:crypto";
import { Buffer } from "node:buffer";
import { test, assert, assertEquals, assertThrows } from "../harness.js";

const hex = (text) => Buffer.from(text, "hex");

test("hashes, whole and piece by piece", () => {
  assertEquals(crypto.createHash("md5").update("abc").digest("hex"), "900150983cd24fb0d6963f7d28e17f72");
  assertEquals(crypto.createHash("sha1").update("a").update("bc").digest("hex"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  assertEquals(crypto.createHash("sha256").update("abc").digest("base64"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  assertEquals(crypto.createHash("SHA512").update("").digest("hex").slice(0, 16), "cf83e1357eefb8bd");
  assertEquals(crypto.createHash("sha384").update(new Uint8Array([97, 98, 99])).digest("hex").slice(0, 16), "cb00753f45a35e8b");
  const hash = crypto.createHash("sha256").update("a");
  const copy = hash.copy();
  assertEquals(copy.update("b").digest("hex"), crypto.createHash("sha256").update("ab").digest("hex"));
  hash.digest();
  assertThrows(Error, () => hash.digest(), /Digest already called/);
  assertThrows(Error, () => crypto.createHash("nope"));
  assert(crypto.getHashes().length > 5);
});

test("HMAC (RFC 4231 case 2)", () => {
  assertEquals(crypto.createHmac("sha256", "Jefe").update("what do ya want for nothing?").digest("hex"), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  assertEquals(crypto.createHmac("sha1", Buffer.alloc(0)).update("").digest("hex"), "fbdb1d1b18aa6c08324b7d64b71fb76370690e1d");
});

test("PBKDF2, scrypt, HKDF", async () => {
  assertEquals(crypto.pbkdf2Sync("password", "salt", 1, 20, "sha1").toString("hex"), "0c60c80f961f0e71f3a9b524af6012062fe037a6");
  const key = await new Promise((resolve, reject) => crypto.pbkdf2("password", "salt", 4096, 20, "sha1", (e, k) => (e ? reject(e) : resolve(k))));
  assertEquals(key.toString("hex"), "4b007901b765489abead49d926f721d065a429c1");
  assertEquals(crypto.scryptSync("", "", 64, { N: 16, r: 1, p: 1 }).toString("hex").slice(0, 32), "77d6576238657b203b19ca42c18a0497");
  const later = await new Promise((resolve, reject) => crypto.scrypt("password", "NaCl", 64, { N: 1024, r: 8, p: 16 }, (e, k) => (e ? reject(e) : resolve(k))));
  assertEquals(later.toString("hex").slice(0, 32), "fdbabe1c9d3472007856e7190d01e9fe");
  const okm = crypto.hkdfSync("sha256", Buffer.alloc(22, 0x0b), hex("000102030405060708090a0b0c"), hex("f0f1f2f3f4f5f6f7f8f9"), 42);
  assertEquals(Buffer.from(okm).toString("hex"), "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
});

test("AES in CBC, CTR and GCM", () => {
  const key = hex("2b7e151628aed2a6abf7158809cf4f3c");
  const iv = hex("000102030405060708090a0b0c0d0e0f");
  const cbc = crypto.createCipheriv("aes-128-cbc", key, iv);
  cbc.setAutoPadding(false);
  assertEquals(cbc.update("6bc1bee22e409f96e93d7e117393172a", "hex", "hex") + cbc.final("hex"), "7649abac8119b246cee98e9b12e9197d");
  const both = (name, k, v) => {
    const c = crypto.createCipheriv(name, k, v);
    const sealed = Buffer.concat([c.update("some ", "utf8"), c.update(Buffer.from("text")), c.final()]);
    const d = crypto.createDecipheriv(name, k, v);
    return d.update(sealed, undefined, "utf8") + d.final("utf8");
  };
  assertEquals([both("aes-256-cbc", Buffer.alloc(32), iv), both("AES-128-CTR", key, iv)], ["some text", "some text"]);
  const gcm = crypto.createCipheriv("aes-128-gcm", Buffer.alloc(16), Buffer.alloc(12));
  assertEquals(gcm.update("00000000000000000000000000000000", "hex", "hex") + gcm.final("hex"), "0388dace60b6a392f328c2b971b2fe78");
  const tag = gcm.getAuthTag();
  assertEquals(tag.toString("hex"), "ab6e47d42cec13bdf53a67b21257bddf");
  const open = (mark) => {
    const d = crypto.createDecipheriv("aes-128-gcm", Buffer.alloc(16), Buffer.alloc(12), { authTagLength: 16 });
    d.setAuthTag(mark);
    return d.update("0388dace60b6a392f328c2b971b2fe78", "hex", "hex") + d.final("hex");
  };
  assertEquals(open(tag), "00000000000000000000000000000000");
  assertThrows(Error, () => open(Buffer.alloc(16)), /authenticat/i);
  for (const [k, v] of [[Buffer.alloc(5), iv], [key, Buffer.alloc(5)]]) {
    let message = "";
    try {
      crypto.createCipheriv("aes-128-cbc", k, v);
    } catch (error) {
      ({ message } = error);
    }
    assert(/^Invalid (key length|initialization vector)$/.test(message), message);
  }
  assertThrows(Error, () => crypto.createCipheriv("nope", key, iv));
});

test("randomness and comparison", () => {
  assertEquals(crypto.randomBytes(16).length, 16);
  for (let i = 0; i < 100; i++) {
    const n = crypto.randomInt(3, 6);
    assert(n >= 3 && n < 6 && Number.isInteger(n));
  }
  assert(/^[\da-f]{8}-[\da-f]{4}-4/.test(crypto.randomUUID()));
  assertEquals([crypto.timingSafeEqual(Buffer.from("a"), Buffer.from("a")), crypto.timingSafeEqual(Buffer.from("a"), Buffer.from("b"))], [true, false]);
  assert((() => { try { crypto.timingSafeEqual(Buffer.from("a"), Buffer.from("ab")); } catch (e) { return /same byte length/.test(e.message); } return false; })());
  assert(crypto.randomFillSync(new Uint8Array(64)).some((b) => b !== 0));
});

test("keys are generated, written, read, and sign", async () => {
  for (const [type, options, hash] of [["rsa", { modulusLength: 2048 }, "sha256"], ["ec", { namedCurve: "P-256" }, "sha256"], ["ed25519", {}, null]]) {
    const { publicKey, privateKey } = await new Promise((resolve, reject) => crypto.generateKeyPair(type, options, (e, publicKey, privateKey) => (e ? reject(e) : resolve({ publicKey, privateKey }))));
    assertEquals([publicKey.type, privateKey.type, privateKey.asymmetricKeyType], ["public", "private", type]);
    const pem = privateKey.export({ type: "pkcs8", format: "pem" });
    assert(pem.startsWith("-----BEGIN PRIVATE KEY-----"));
    const data = Buffer.from("data");
    const signature = crypto.sign(hash, data, pem);
    const spki = publicKey.export({ type: "spki", format: "pem" });
    assertEquals([crypto.verify(hash, data, spki, signature), crypto.verify(hash, Buffer.from("other"), spki, signature)], [true, false]);
    assert(crypto.createPublicKey(pem).equals(publicKey));
    if (hash === null) continue;
    const streamed = crypto.createSign("RSA-SHA256").update("da").update("ta").sign(privateKey, "hex");
    assert(crypto.createVerify("RSA-SHA256").update("data").verify(publicKey, streamed, "hex"));
  }
});

test("ECDSA signatures as two numbers", () => {
  const ec = crypto.generateKeyPairSync("ec", { namedCurve: "P-256" });
  const privatePem = ec.privateKey.export({ type: "pkcs8", format: "pem" });
  const raw = crypto.sign("sha256", Buffer.from("x"), { key: privatePem, dsaEncoding: "ieee-p1363" });
  assertEquals(raw.length, 64);
  assert(crypto.verify("sha256", Buffer.from("x"), { key: ec.publicKey.export({ type: "spki", format: "pem" }), dsaEncoding: "ieee-p1363" }, raw));
});

const rsaPair = () => crypto.generateKeyPairSync("rsa", { modulusLength: 2048, publicKeyEncoding: { type: "spki", format: "pem" }, privateKeyEncoding: { type: "pkcs1", format: "pem" } });

test("RSA-PSS", () => {
  const rsa = rsaPair();
  const pss = { key: rsa.privateKey, padding: crypto.constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
  const signature = crypto.sign("sha256", Buffer.from("y"), pss);
  assert(crypto.verify("sha256", Buffer.from("y"), { ...pss, key: rsa.publicKey }, signature));
  assert(!crypto.verify("sha256", Buffer.from("y"), rsa.publicKey, signature));
}, { differs: { workerd: "verify() does not take such a signature there" } });

test("RSA encryption, and a key that is none", () => {
  const rsa = rsaPair();
  assert(rsa.privateKey.includes("BEGIN RSA PRIVATE KEY"));
  assertEquals(crypto.privateDecrypt(rsa.privateKey, crypto.publicEncrypt(rsa.publicKey, Buffer.from("secret"))).toString(), "secret");
  assertThrows(Error, () => crypto.createPrivateKey("-----BEGIN NONSENSE-----"));
});
