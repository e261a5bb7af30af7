// node:crypto: keys as JWK, keys of Web Crypto, encrypted export, checks of arguments.
import { Buffer } from "node:buffer";
import crypto from "node:crypto";
import { assert, assertEquals, test, thrown } from "../harness.js";

const message = (f) => thrown(f)?.message;

for (const [type, options] of [["rsa", { modulusLength: 2048 }], ["ec", { namedCurve: "P-256" }], ["ec", { namedCurve: "P-521" }], ["ed25519"], ["x25519"]]) {
  test(`crypto: a key of ${type} ${options?.namedCurve ?? ""} goes out as JWK and comes back`, () => {
    const { publicKey, privateKey } = crypto.generateKeyPairSync(type, options);
    const secret = privateKey.export({ format: "jwk" });
    const open = publicKey.export({ format: "jwk" });
    assertEquals([typeof secret.d, open.d], ["string", undefined]);
    assert(crypto.createPrivateKey({ key: secret, format: "jwk" }).equals(privateKey));
    assert(crypto.createPublicKey({ key: open, format: "jwk" }).equals(publicKey));
  });
}

test("crypto: a JWK without a part says which", () => {
  assertEquals(message(() => crypto.createPublicKey({ key: { kty: "RSA", e: "AQAB" }, format: "jwk" })), "RSA JWK missing n parameter");
  assertEquals(message(() => crypto.createPublicKey({ key: { kty: "EC", x: "", y: "" }, format: "jwk" })), "EC JWK missing crv parameter");
});

test("crypto: KeyObject.from takes keys of Web Crypto, equals() knows whether they may be exported", async () => {
  const make = (extractable) => globalThis.crypto.subtle.importKey("raw", Buffer.from("0123456789abcdef"), { name: "HMAC", hash: "SHA-256" }, extractable, ["sign"]);
  const [open, closed] = (await Promise.all([make(true), make(false)])).map((key) => crypto.KeyObject.from(key));
  assertEquals([open.type, open.symmetricKeySize, open.equals(crypto.createSecretKey("0123456789abcdef")), open.equals(closed)], ["secret", 16, true, false]);
  assertEquals(crypto.createHmac("sha256", await make(true)).update("x").digest("hex"), crypto.createHmac("sha256", "0123456789abcdef").update("x").digest("hex"));
});

test("crypto: a private key is exported with a cipher and read with its passphrase", () => {
  const { privateKey } = crypto.generateKeyPairSync("ec", { namedCurve: "P-256" });
  const pem = privateKey.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "secret" });
  assert(/BEGIN ENCRYPTED PRIVATE KEY/.test(pem));
  assert(crypto.createPrivateKey({ key: pem, passphrase: "secret" }).equals(privateKey));
  assert(message(() => crypto.createPrivateKey({ key: pem, passphrase: "wrong" })) !== undefined);
});

test("crypto: classes can be called without new, a digest after the stream's end", async () => {
  assertEquals(crypto.Hash("sha1").update("a").digest("hex"), crypto.createHash("sha1").update("a").digest("hex"));
  const hash = crypto.createHash("sha256");
  const read = new Promise((resolve) => hash.on("data", resolve));
  hash.end("x");
  assertEquals((await read).toString("hex"), hash.digest("hex"));
});

test("crypto: what is refused, and how", () => {
  assertEquals([
    message(() => crypto.pbkdf2Sync("p", "s", 1, 10, "nonsense")), message(() => crypto.scryptSync("p", "s", 1, { N: 3 })), message(() => crypto.hkdfSync("nonsense", "k", "s", "i", 1)),
    message(() => crypto.randomInt(5, 5)), message(() => crypto.generatePrimeSync(8193)), message(() => crypto.generateKeySync("aes", { length: 1 })),
    message(() => crypto.createCipheriv("nonsense", "k", "i")), message(() => crypto.createDecipheriv("aes-128-gcm", Buffer.alloc(16), Buffer.alloc(12)).final()),
  ], [
    "Invalid Pbkdf2 digest: nonsense.", "Scrypt failed", "Invalid Hkdf digest: nonsense", 'The value of "min" is out of range. It must be min < max. Received 5',
    "generatePrime size exceeds maximum (8192 bits)", "The property 'options.length' must be one of: 128, 192, 256. Received 1", "Unknown or unsupported cipher: nonsense", "No auth tag provided",
  ]);
  assertEquals(crypto.getCipherInfo("aes-128-cbc"), { name: "AES-128-CBC", nid: 419, blockSize: 16, ivLength: 16, keyLength: 16, mode: "cbc" });
});
