// Crypto (https://w3c.github.io/webcrypto/#crypto-interface) and the platform's own additions:
// crypto.subtle.timingSafeEqual and crypto.DigestStream.
import { test, assert, assertEquals, assertInterface, assertThrows } from "../harness.js";

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
