// node:crypto: Diffie-Hellman, elliptic curves, primes, certificates.
import { test, assert, assertEquals, assertThrows } from "../harness.js";
import crypto from "node:crypto";
import { Buffer } from "node:buffer";

test("createDiffieHellman(): both sides get the same secret", () => {
  const a = crypto.createDiffieHellman(512);
  const b = crypto.createDiffieHellman(a.getPrime(), a.getGenerator());
  const [publicA, publicB] = [a.generateKeys("hex"), b.generateKeys()];
  assertEquals(a.computeSecret(publicB, null, "hex"), b.computeSecret(publicA, "hex", "hex"));
  assertEquals(a.getPrime().length, 64);
  assertEquals(a.verifyError, 0);
});

test("getDiffieHellman(): the groups of RFC 3526", () => {
  const group = crypto.getDiffieHellman("modp14");
  assertEquals(group.getPrime().length, 256);
  assert(group.getPrime("hex").startsWith("ffffffffffffffffc90fdaa22168c234"));
  assertEquals([...group.getGenerator()], [2]);
  const other = crypto.getDiffieHellman("modp14");
  group.generateKeys();
  other.generateKeys();
  assertEquals(group.computeSecret(other.getPublicKey()).toString("hex"), other.computeSecret(group.getPublicKey()).toString("hex"));
  assertThrows(Error, () => crypto.getDiffieHellman("modp99"));
});

test("createECDH(): RFC 5903, 8.1", () => {
  const a = crypto.createECDH("prime256v1");
  a.setPrivateKey("C88F01F510D9AC3F70A292DAA2316DE544E9AAB8AFE84049C62A9C57862D1433", "hex");
  assertEquals(a.getPublicKey("hex").toUpperCase(), "04DAD0B65394221CF9B051E1FECA5787D098DFE637FC90B9EF945D0C37725811805271A0461CDB8252D61F1C456FA3E59AB1F45B33ACCF5F58389E0577B8990BB3");
  const other = "04D12DFB5289C8D4F81208B70270398C342296970A0BCCB74C736FC7554494BF6356FBF3CA366CC23E8157854C13C58D6AAC23F046ADA30F8353E74F33039872AB";
  assertEquals(a.computeSecret(other, "hex", "hex").toUpperCase(), "D6840F6B42F6EDAFD13116E0E12565202FEF8E9ECE7DCE03812464D04B9442DE");
  const compressed = crypto.ECDH.convertKey(other, "prime256v1", "hex", "hex", "compressed");
  assertEquals(compressed.toUpperCase(), `03${other.slice(2, 66)}`);
  assertThrows(Error, () => a.computeSecret("04".padEnd(130, "1"), "hex"));
});

test("createECDH(): an unknown curve is a TypeError", () => {
  assertThrows(TypeError, () => crypto.createECDH("no such curve"));
}, { differs: { workerd: "an Error, unlike Node.js" } });

test("diffieHellman() of key objects", () => {
  const a = crypto.generateKeyPairSync("x25519"), b = crypto.generateKeyPairSync("x25519");
  const one = crypto.diffieHellman({ privateKey: a.privateKey, publicKey: b.publicKey });
  assertEquals(one.toString("hex"), crypto.diffieHellman({ privateKey: b.privateKey, publicKey: a.publicKey }).toString("hex"));
  assertEquals(one.length, 32);
}, { differs: { workerd: "it does not have the function" } });

test("privateEncrypt() and publicDecrypt()", () => {
  const { privateKey, publicKey } = crypto.generateKeyPairSync("rsa", { modulusLength: 1024 });
  const sealed = crypto.privateEncrypt(privateKey, Buffer.from("from me"));
  assertEquals(sealed.length, 128);
  assertEquals(crypto.publicDecrypt(publicKey, sealed).toString(), "from me");
  sealed[5] ^= 1;
  assertThrows(Error, () => crypto.publicDecrypt(publicKey, sealed));
});

test("primes are found and recognised", async () => {
  const prime = crypto.generatePrimeSync(64, { bigint: true });
  assertEquals(prime.toString(2).length, 64);
  assert(crypto.checkPrimeSync(prime));
  assert(!crypto.checkPrimeSync(prime * 3n));
  assert(crypto.checkPrimeSync(Buffer.from([13])));
  const bytes = await new Promise((resolve, reject) => crypto.generatePrime(48, (error, value) => (error ? reject(error) : resolve(value))));
  assertEquals(bytes.byteLength, 6);
  assert(await new Promise((resolve) => crypto.checkPrime(bytes, (error, value) => resolve(value))));
  const fitting = crypto.generatePrimeSync(32, { add: 12n, rem: 11n, bigint: true });
  assertEquals(fitting % 12n, 11n);
});

const PEM = `-----BEGIN CERTIFICATE-----
MIICEjCCAbigAwIBAgIEEjSrzTAKBggqhkjOPQQDAjA6MQswCQYDVQQGEwJERTEU
MBIGA1UECgwLQ2Fpcm4gVGVzdHMxFTATBgNVBAMMDHRlc3QuZXhhbXBsZTAgFw0y
NjExMTUwNjE4MzNaGA8yMTI2MTAyMjA2MTgzM1owOjELMAkGA1UEBhMCREUxFDAS
BgNVBAoMC0NhaXJuIFRlc3RzMRUwEwYDVQQDDAx0ZXN0LmV4YW1wbGUwWTATBgcq
hkjOPQIBBggqhkjOPQMBBwNCAARWQkXsTtfY1vyAVdN3Qgq+bsxUV66OjwzVonrX
dsdsd1cfLiIIM5swCSIUsri8qwMY/OJe3hwWKagy3Bu/NFPeo4GpMIGmMB0GA1Ud
DgQWBBQln/dbRLFYp6LwCQCI1LCZkBRGNTAfBgNVHSMEGDAWgBQln/dbRLFYp6Lw
CQCI1LCZkBRGNTA+BgNVHREENzA1ggx0ZXN0LmV4YW1wbGWCDioud2lsZC5leGFt
cGxlhwTAAAIBgQ9tZUB0ZXN0LmV4YW1wbGUwEwYDVR0lBAwwCgYIKwYBBQUHAwEw
DwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAzonnfXhXMcb+vor8
va1vTzgdqUZEauZP5+nsO2OttwwCIAER9RBIHrsFFb2e/k0Lv4lzxBR29nHk1d6m
CVHadX/h
-----END CERTIFICATE-----
`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgsXc15jlUlN/Rw6nL
n2alOr2h0Hf3EdEvLGqcHL4+FIWhRANCAARWQkXsTtfY1vyAVdN3Qgq+bsxUV66O
jwzVonrXdsdsd1cfLiIIM5swCSIUsri8qwMY/OJe3hwWKagy3Bu/NFPe
-----END PRIVATE KEY-----
`;

test("X509Certificate: what it says", () => {
  const certificate = new crypto.X509Certificate(PEM);
  assertEquals(certificate.subject, "C=DE\nO=Cairn Tests\nCN=test.example");
  assertEquals(certificate.issuer, certificate.subject);
  assertEquals(certificate.subjectAltName, "DNS:test.example, DNS:*.wild.example, IP Address:192.0.2.1, email:me@test.example");
  assertEquals(certificate.serialNumber, "1234ABCD");
  assertEquals(certificate.validFrom, "Nov 15 06:18:33 2026 GMT");
  assertEquals(certificate.validTo, "Oct 22 06:18:33 2126 GMT");
  assertEquals(certificate.fingerprint256, "CA:E1:46:FA:1C:F4:28:AF:FC:A6:82:FA:DE:B9:03:28:B4:2A:11:A9:50:BC:72:C8:9D:9D:79:C3:21:DC:0A:03");
  assertEquals(certificate.ca, true);
  assertEquals(certificate.keyUsage, ["1.3.6.1.5.5.7.3.1"]);
  assertEquals(certificate.publicKey.asymmetricKeyType, "ec");
  assertEquals(certificate.toString(), PEM);
  assertEquals(new crypto.X509Certificate(certificate.raw).fingerprint, certificate.fingerprint);
  const legacy = certificate.toLegacyObject();
  assertEquals(legacy.subject.CN, "test.example");
  assertEquals(Object.getPrototypeOf(legacy.subject), Object.prototype);
  assertEquals([legacy.asn1Curve, legacy.nistCurve, legacy.bits, legacy.pubkey.length, legacy.pubkey[0]], ["prime256v1", "P-256", 256, 65, 4]);
});

test("X509Certificate: names that are none, and options of a wrong type, are refused", () => {
  const certificate = new crypto.X509Certificate(PEM);
  const refuses = (ask) => {
    try {
      ask();
    } catch {
      return true;
    }
    return false;
  };
  assert(refuses(() => certificate.checkHost("test.example\0.org")));
  assert(refuses(() => certificate.checkEmail("me@test.example\0")));
  assert(refuses(() => certificate.checkIP("[::]")));
  for (const options of [1, false, { wildcards: 1 }, { multiLabelWildcards: "" }, { subject: 1 }]) assertThrows(TypeError, () => certificate.checkHost("test.example", options));
  assertEquals(certificate.checkHost("test.example", { subject: "never", wildcards: undefined }), "test.example");
});

test("createDiffieHellman(): groups in which nothing can be agreed on are refused", () => {
  for (const generator of [Buffer.from([]), Buffer.from([0]), Buffer.from([0, 1])]) assertThrows(Error, () => crypto.createDiffieHellman("abcdef", "hex", generator));
  for (const generator of [-1, 1, 1.5]) assertThrows(RangeError, () => crypto.createDiffieHellman("abcdef", "hex", generator));
  for (const prime of ["", "04", "01", "abcdee"]) assertThrows(Error, () => crypto.createDiffieHellman(prime, "hex"));
  assertThrows(RangeError, () => crypto.createDiffieHellman(10001));
  assertEquals([...crypto.createDiffieHellman("abcdef", "hex", 0).getGenerator()], [2]);
});

test("X509Certificate: whom it is for", () => {
  const certificate = new crypto.X509Certificate(PEM);
  assertEquals(certificate.checkHost("test.example"), "test.example");
  assert(certificate.checkHost("a.wild.example") !== undefined);
  assertEquals(certificate.checkHost("a.b.wild.example"), undefined);
  assertEquals(certificate.checkHost("other.example"), undefined);
  assertEquals(certificate.checkEmail("me@test.example"), "me@test.example");
  assertEquals(certificate.checkEmail("you@test.example"), undefined);
  assertEquals(certificate.checkIP("192.0.2.1"), "192.0.2.1");
  assertEquals(certificate.checkIP("192.0.2.2"), undefined);
});

test("X509Certificate: who has issued it", () => {
  const certificate = new crypto.X509Certificate(PEM);
  assert(certificate.checkIssued(certificate));
});

test("X509Certificate: whose signature it has", () => {
  const certificate = new crypto.X509Certificate(PEM);
  assert(certificate.verify(certificate.publicKey));
  assert(!certificate.verify(crypto.generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey));
});

test("X509Certificate: its private key", () => {
  const certificate = new crypto.X509Certificate(PEM);
  assert(certificate.checkPrivateKey(crypto.createPrivateKey(KEY)));
  assert(!certificate.checkPrivateKey(crypto.generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey));
}, { differs: { workerd: "it takes any private key" } });

test("X509Certificate: bytes that are none are a TypeError", () => {
  assertThrows(TypeError, () => new crypto.X509Certificate("nothing"));
});

test("X509Certificate: arguments are checked", () => {
  assertThrows(TypeError, () => new crypto.X509Certificate(1));
});
