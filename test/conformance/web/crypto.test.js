// Crypto (https://w3c.github.io/webcrypto/#crypto-interface) and the platform's own additions:
// crypto.subtle.timingSafeEqual and crypto.DigestStream.
import { test, assert, assertEquals, assertInterface, assertRejects, assertThrows } from "../harness.js";

const hex = (buffer) => Array.from(new Uint8Array(buffer), (b) => b.toString(16).padStart(2, "0")).join("");
const utf8 = (text) => new TextEncoder().encode(text);

test("Crypto is an interface", () => {
  assertInterface("Crypto", { methods: { getRandomValues: 1, randomUUID: 0 }, getters: ["subtle"] });
  assertThrows(TypeError, () => new Crypto());
  assert(crypto instanceof Crypto);
  assert(crypto.subtle instanceof SubtleCrypto);
  assert(crypto.subtle === crypto.subtle);
});

test("getRandomValues fills integer arrays in place", () => {
  for (const C of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array]) {
    const array = new C(32);
    assert(crypto.getRandomValues(array) === array);
    assert(array.some((value) => value != 0), C.name);
  }
  const whole = new Uint8Array(100);
  crypto.getRandomValues(whole.subarray(10, 90));
  assert(whole.subarray(0, 10).every((b) => b === 0) && whole.subarray(90).every((b) => b === 0));
});

test("getRandomValues refuses other arrays and too many bytes", () => {
  assertThrows("TypeMismatchError", () => crypto.getRandomValues(new Float64Array(1)));
  assertThrows("TypeMismatchError", () => crypto.getRandomValues(new DataView(new ArrayBuffer(1))));
  assertThrows(TypeError, () => crypto.getRandomValues([1]));
  assertThrows(TypeError, () => crypto.getRandomValues());
  assertThrows("QuotaExceededError", () => crypto.getRandomValues(new Uint8Array(65537)));
  assertEquals(crypto.getRandomValues(new Uint8Array(65536)).length, 65536);
  assertEquals(crypto.getRandomValues(new Uint8Array(0)).length, 0);
});

test("randomUUID makes version 4 UUIDs, never the same", () => {
  const seen = new Set();
  for (let i = 0; i < 1000; i++) {
    const uuid = crypto.randomUUID();
    assert(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(uuid), uuid);
    seen.add(uuid);
  }
  assertEquals(seen.size, 1000);
});

test("timingSafeEqual compares buffers of one length", () => {
  const { subtle } = crypto;
  assertEquals(subtle.timingSafeEqual(utf8("abc"), utf8("abc")), true);
  assertEquals(subtle.timingSafeEqual(utf8("abc"), utf8("abd")), false);
  assertEquals(subtle.timingSafeEqual(utf8("abc").buffer, utf8("abc")), true);
  assertEquals(subtle.timingSafeEqual(new Uint8Array(), new Uint8Array()), true);
  assertThrows(TypeError, () => subtle.timingSafeEqual(utf8("abc"), utf8("ab")));
  assertThrows(TypeError, () => subtle.timingSafeEqual("abc", "abc"));
});

test("DigestStream digests what is written", async () => {
  for (const [algorithm, want] of [
    ["MD5", "900150983cd24fb0d6963f7d28e17f72"],
    ["SHA-1", "a9993e364706816aba3e25717850c26c9cd0d89d"],
    [{ name: "sha-256" }, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
    ["SHA-384", "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"],
  ]) {
    const stream = new crypto.DigestStream(algorithm);
    assert(stream instanceof WritableStream);
    const writer = stream.getWriter();
    await writer.write(utf8("a"));
    await writer.write(utf8("bc").buffer);
    assertEquals(stream.bytesWritten, 3n);
    await writer.close();
    const digest = await stream.digest;
    assert(digest instanceof ArrayBuffer);
    assertEquals(hex(digest), want);
  }
});

test("DigestStream takes the end of a pipe", async () => {
  const stream = new crypto.DigestStream("SHA-512");
  await new Blob(["a".repeat(100000)]).stream().pipeTo(stream);
  assertEquals(hex(await stream.digest), hex(await crypto.subtle.digest("SHA-512", utf8("a".repeat(100000)))));
});

test("DigestStream fails when it is aborted", async () => {
  const stream = new crypto.DigestStream("SHA-256");
  await stream.abort(new Error("enough"));
  await assertRejects(Error, stream.digest);
  assertThrows("NotSupportedError", () => new crypto.DigestStream("SHA-3"));
});
