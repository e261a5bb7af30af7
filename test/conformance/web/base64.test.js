// atob and btoa (https://html.spec.whatwg.org/#atob).
import { test, assertEquals, assertThrows } from "../harness.js";

test("btoa and atob are each other's reverse for every byte", () => {
  let bytes = "";
  for (let i = 0; i < 256; i++) {
    bytes += String.fromCharCode(i);
    assertEquals(atob(btoa(bytes)), bytes);
  }
});

test("btoa pads", () => {
  assertEquals(["", "f", "fo", "foo", "foob", "\xff\xfe"].map((s) => btoa(s)), ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "//4="]);
  assertEquals(btoa(null), btoa("null"));
});

test("atob forgives white space and missing padding", () => {
  for (const [input, output] of [["Zg", "f"], ["Z g\t=\n=\f\r", "f"], ["Zm8", "fo"], ["Zm9v", "foo"], ["", ""], [" ", ""], ["ab", "i"], ["abc", "i\xb7"], ["abcd", "i\xb7\x1d"], [null, "\x9e\xe9e"]]) {
    assertEquals(atob(input), output, JSON.stringify(input));
  }
});

test("atob refuses everything else", () => {
  for (const input of ["a", "abcde", "ab=", "ab===", "=", "==", "====", "a=b", "abc=d", "ab\u00a0", "ab\0", "-_aa", "ab==\u2028", "abcd=", "abcd==", "abcd===="]) {
    assertThrows("InvalidCharacterError", () => atob(input));
  }
  assertThrows("InvalidCharacterError", () => btoa("\u0100"), /Latin1/);
  assertThrows(TypeError, () => atob());
});
