// TextEncoder and TextDecoder (https://encoding.spec.whatwg.org/).
import { test, assert, assertEquals, assertThrows } from "../harness.js";

// What digestOf() below gives for each encoding.
const DIGESTS = {
  "ibm866": "c94f511d", "iso-8859-2": "70d570e", "iso-8859-3": "daefe744", "iso-8859-4": "a6feef21",
  "iso-8859-5": "258d6261", "iso-8859-6": "98e099f9", "iso-8859-7": "a1869e7f", "iso-8859-8": "f4599334",
  "iso-8859-8-i": "f4599334", "iso-8859-10": "ab9bc02e", "iso-8859-13": "d20e6e4c", "iso-8859-14": "4529d464",
  "iso-8859-15": "25cb4d27", "iso-8859-16": "d9e65a4b", "koi8-r": "415e04a9", "koi8-u": "6f861d47",
  "macintosh": "270d7788", "windows-874": "751240d1", "windows-1250": "46c01ba5", "windows-1251": "865aeb5d",
  "windows-1252": "1f0fb4af", "windows-1253": "3f2fcaeb", "windows-1254": "73ac6d07", "windows-1255": "8c95c90f",
  "windows-1256": "84f9ea20", "windows-1257": "7d2cd804", "windows-1258": "2b601276", "x-mac-cyrillic": "bfedee2",
  "x-user-defined": "c51d92c5", "gbk": "ecf6ca5b", "gb18030": "ecf6ca5b", "big5": "3a3c5ef7",
  "euc-jp": "3b1cd53b", "iso-2022-jp": "587f1af0", "shift_jis": "baa6482d", "euc-kr": "472533f7",
};

const bytes = (...list) => new Uint8Array(list);

test("encode() gives UTF-8 and replaces lone surrogates", () => {
  const encoder = new TextEncoder();
  assertEquals(encoder.encoding, "utf-8");
  assertEquals(encoder.encode(), bytes());
  assertEquals(encoder.encode(undefined), bytes());
  assertEquals(encoder.encode("aé€😀"), bytes(0x61, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80));
  assertEquals(encoder.encode("\ud800x\udc00"), bytes(0xef, 0xbf, 0xbd, 0x78, 0xef, 0xbf, 0xbd));
  assertEquals(encoder.encode("\0").length, 1);
  assertEquals(encoder.encode("x".repeat(100_000)).length, 100_000);
});

// Strings of one and of two bytes a character, and lengths on both sides of every bound of the conversions.
function* textsToEncode() {
  const units = ["", "a", "\xe9", "\u6f22", "\ud800", "\udc00", "\u{1f600}"];
  for (const a of units) for (const b of units) for (const c of units) yield a + b + c;
  for (const length of [31, 32, 33, 127, 128, 129, 4095, 4096, 4097]) {
    for (const unit of units) {
      yield "x".repeat(length) + unit;
      yield "\u6f22".repeat(length) + unit;
      yield unit + "\xe9".repeat(length);
      yield `\ud83d${"x".repeat(length)}${unit}`;
    }
  }
}

/** UTF-8 as the Encoding standard has it, written for this test. */
function utf8(text) {
  const out = [];
  for (const character of text) {
    const c = character.codePointAt(0);
    const code = c >= 0xd800 && c < 0xe000 ? 0xfffd : c;
    if (code < 0x80) out.push(code);
    else if (code < 0x800) out.push(0xc0 | (code >> 6), 0x80 | (code & 63));
    else if (code < 0x10000) out.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    else out.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
  }
  return new Uint8Array(out);
}

test("no character of a text is lost, wherever lone surrogates stand", () => {
  const encoder = new TextEncoder();
  for (const text of textsToEncode()) {
    const expected = utf8(text);
    const into = new Uint8Array(text.length * 3);
    assertEquals(encoder.encode(text), expected, text);
    assertEquals(encoder.encodeInto(text, into), { read: text.length, written: expected.length }, text);
    assertEquals(into.slice(0, expected.length), expected, text);
    assertEquals(encoder.encode(new URLSearchParams(`${new URLSearchParams({ text })}`).get("text")), expected, text);
  }
});

test("a text is as long as a body as it is for TextEncoder", async () => {
  for (const text of textsToEncode()) {
    const expected = utf8(text);
    assertEquals(new Uint8Array(await new Blob([text]).arrayBuffer()), expected, text);
    assertEquals(new Uint8Array(await new Blob([text, text]).arrayBuffer()).length, expected.length * 2, text);
    assertEquals(new Uint8Array(await new Response(text).arrayBuffer()), expected, text);
    assertEquals(new Uint8Array(await new Response(new Response(text).body).arrayBuffer()), expected, text);
  }
}, { differs: { workerd: "workerd encodes a lone surrogate of a body or Blob as three bytes that are no UTF-8" } });

test("encodeInto() writes whole characters only", () => {
  const encoder = new TextEncoder();
  const cases = [["abc", 2, 2, 2], ["aé", 2, 1, 1], ["a€", 4, 2, 4], ["😀", 3, 0, 0], ["😀x", 5, 3, 5], ["\ud800", 3, 1, 3], ["", 4, 0, 0], ["y".repeat(50), 64, 50, 50]];
  for (const [text, room, read, written] of cases) {
    const into = new Uint8Array(room);
    assertEquals(encoder.encodeInto(text, into), { read, written }, text);
    assertEquals(into.subarray(written), new Uint8Array(room - written));
  }
  assertThrows(TypeError, () => encoder.encodeInto("x", 1));
});

test("a decoder has its encoding's name, from any label", () => {
  for (const [label, name] of [["utf8", "utf-8"], [" UTF-8\n", "utf-8"], ["latin1", "windows-1252"], ["ascii", "windows-1252"], ["utf-16", "utf-16le"], ["unicodefffe", "utf-16be"], ["x-user-defined", "x-user-defined"], ["logical", "iso-8859-8-i"], ["l5", "windows-1254"]]) {
    assertEquals(new TextDecoder(label).encoding, name);
  }
  assertThrows(RangeError, () => new TextDecoder("nope"), '"nope" is not a valid encoding.');
  assertThrows(RangeError, () => new TextDecoder("replacement"));
  assertThrows(RangeError, () => new TextDecoder("utf-8\0"));
  const decoder = new TextDecoder("utf-8", { fatal: 1, ignoreBOM: "yes" });
  assertEquals([decoder.fatal, decoder.ignoreBOM], [true, true]);
});

test("invalid UTF-8 becomes one U+FFFD for each maximal part", () => {
  const decode = (...list) => new TextDecoder().decode(bytes(...list));
  assertEquals(decode(0xff, 0x41), "\ufffdA");
  assertEquals(decode(0xe2, 0x82), "\ufffd");
  assertEquals(decode(0xe2, 0x82, 0x41), "\ufffdA");
  assertEquals(decode(0xf0, 0x9f, 0x98), "\ufffd");
  assertEquals(decode(0xf0, 0x80, 0x80, 0x80), "\ufffd\ufffd\ufffd\ufffd");
  assertEquals(decode(0xed, 0xa0, 0x80), "\ufffd\ufffd\ufffd");
  assertEquals(decode(0xc0, 0x80), "\ufffd\ufffd");
  assertEquals(decode(0xf5, 0x80), "\ufffd\ufffd");
  assertEquals(decode(0xf4, 0x90, 0x80, 0x80), "\ufffd\ufffd\ufffd\ufffd");
});

test("fatal throws, and the decoder can be used again", () => {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  assertThrows(TypeError, () => decoder.decode(bytes(0xff)), "Failed to decode input.");
  assertEquals(decoder.decode(bytes(0x41)), "A");
  assertThrows(TypeError, () => decoder.decode(bytes(0xe2, 0x82)));
});

test("a byte order mark goes, unless it is to be ignored", () => {
  const text = bytes(0xef, 0xbb, 0xbf, 0x41, 0xef, 0xbb, 0xbf);
  assertEquals(new TextDecoder().decode(text), "A\ufeff");
  assertEquals(new TextDecoder("utf-8", { ignoreBOM: true }).decode(text), "\ufeffA\ufeff");
  assertEquals(new TextDecoder("utf-16le").decode(bytes(0xff, 0xfe, 0x41, 0)), "A");
  assertEquals(new TextDecoder("utf-16be").decode(bytes(0xfe, 0xff, 0, 0x41)), "A");
  assertEquals(new TextDecoder("utf-16be", { ignoreBOM: true }).decode(bytes(0xfe, 0xff, 0, 0x41)), "\ufeffA");
});

test("a stream may be cut anywhere", () => {
  const text = "\ufeffaé€😀\ufffdz";
  const all = new TextEncoder().encode(text);
  for (let cut = 0; cut <= all.length; cut++) {
    for (let next = cut; next <= all.length; next++) {
      const decoder = new TextDecoder();
      const out = decoder.decode(all.subarray(0, cut), { stream: true }) + decoder.decode(all.subarray(cut, next), { stream: true }) + decoder.decode(all.subarray(next));
      assertEquals(out, "aé€😀\ufffdz");
    }
  }
  const decoder = new TextDecoder();
  assertEquals(decoder.decode(bytes(0xe2, 0x82), { stream: true }), "");
  assertEquals(decoder.decode(), "\ufffd");
  assertEquals(decoder.decode(bytes(0xe2), { stream: true }) + decoder.decode(bytes(0x41), { stream: true }) + decoder.decode(), "\ufffdA");
});

test("UTF-16 replaces lone surrogates and odd bytes", () => {
  const decode = (label, ...list) => new TextDecoder(label).decode(bytes(...list));
  assertEquals(decode("utf-16le", 0x3d, 0xd8, 0x00, 0xde), "😀");
  assertEquals(decode("utf-16be", 0xd8, 0x3d, 0xde, 0x00), "😀");
  assertEquals(decode("utf-16le", 0x3d, 0xd8, 0x41, 0x00), "\ufffdA");
  assertEquals(decode("utf-16le", 0x00, 0xdc, 0x41, 0x00), "\ufffdA");
  assertEquals(decode("utf-16le", 0x41, 0x00, 0x42), "A\ufffd");
  assertEquals(decode("utf-16le", 0x3d, 0xd8), "\ufffd");
  const decoder = new TextDecoder("utf-16le");
  assertEquals([0x3d, 0xd8, 0x00, 0xde].map((b) => decoder.decode(bytes(b), { stream: true })).join(""), "😀");
});

test("any buffer or view is decoded", () => {
  const buffer = bytes(0x41, 0x42, 0x43, 0x44).buffer;
  assertEquals([buffer, new DataView(buffer, 1, 2), new Uint16Array(buffer, 2)].map((b) => new TextDecoder().decode(b)), ["ABCD", "BC", "CD"]);
  assertThrows(TypeError, () => new TextDecoder().decode("x"));
  assert(Object.prototype.toString.call(new TextDecoder()) === "[object TextDecoder]");
});

// Every byte or pair of bytes of an encoding, as one number: FNV-1a over the decoded units.
function digestOf(label) {
  const { encoding } = new TextDecoder(label);
  const chunks = [];
  if (/^(gb|big5|euc|shift|iso-2022)/.test(encoding)) {
    for (let lead = 0x80; lead < 0x100; lead++) for (let trail = 0; trail < 256; trail++) chunks.push(lead, trail, 10);
    for (let lead = 0xa1; lead < 0xff; lead++) for (let trail = 0xa1; trail < 0xff; trail++) chunks.push(0x8f, lead, trail, 10);
    for (let lead = 0x21; lead < 0x7f; lead++) for (let trail = 0x21; trail < 0x7f; trail++) chunks.push(0x1b, 0x24, 0x42, lead, trail, 0x1b, 0x28, 0x42);
    for (let third = 0x81; third < 0xff; third++) chunks.push(0x81, 0x30, third, 0x37, 0x90, 0x33, third, 0x30);
  } else {
    for (let byte = 0; byte < 256; byte++) chunks.push(byte);
  }
  const decoder = new TextDecoder(label);
  const all = new Uint8Array(chunks);
  let hash = 0x811c9dc5;
  // In uneven pieces: the state must survive between them.
  for (let at = 0, size = 1; at < all.length; at += size, size = (size * 7 + 3) % 4093) {
    const text = decoder.decode(all.subarray(at, at + size), { stream: at + size < all.length });
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return (hash >>> 0).toString(16);
}

test("every legacy encoding maps every byte and pair as the standard's indexes do", () => {
  assertEquals(Object.fromEntries(Object.keys(DIGESTS).map((label) => [label, digestOf(label)])), DIGESTS);
});

test("mistakes in legacy encodings", () => {
  const decode = (label, ...list) => new TextDecoder(label).decode(bytes(...list));
  assertEquals(decode("shift_jis", 0x82, 0x20, 0x82), "\ufffd \ufffd");
  assertEquals(decode("big5", 0x88, 0x62, 0x81, 0x41), "\u00ca\u0304\ufffdA");
  assertEquals(decode("gb18030", 0x81, 0x30, 0x41), "\ufffd0A");
  assertEquals(decode("gb18030", 0x81, 0x30, 0x81, 0x30, 0x80), "\u0080\u20ac");
  assertEquals(decode("iso-2022-jp", 0x1b, 0x24, 0x42, 0x24, 0x22, 0x1b, 0x28, 0x42, 0x41), "あA");
  assertEquals(decode("iso-2022-jp", 0x1b, 0x28), "\ufffd(");
  assertEquals(decode("euc-jp", 0x8e, 0xb1, 0xa4, 0xa2, 0x8f, 0xb0, 0xa1), "ｱあ丂");
  assertThrows(TypeError, () => new TextDecoder("euc-kr", { fatal: true }).decode(bytes(0x81)));
});

test("gb18030 and gbk: the edges of the four-byte ranges", () => {
  const cases = [
    ["8135f436", "\u1e3e"], ["8135f437", "\ue7c7"], ["8135f438", "\u1e40"], ["a8bc", "\u1e3f"],
    ["8431a437", "\ufffd"], ["8431a438", "\ufffe"], ["8431a439", "\uffff"],
    ["90308130", "\u{10000}"], ["e3329a35", "\u{10ffff}"], ["a6d9", "\ufe10"], ["fe59", "\u9fb4"],
  ];
  const bytesOf = (hex) => Uint8Array.from(hex.match(/../g), (pair) => Number.parseInt(pair, 16));
  for (const label of ["gb18030", "gbk"]) {
    const decoder = new TextDecoder(label, { fatal: true });
    for (const [hex, text] of cases) assertEquals([hex, decoder.decode(bytesOf(hex))], [hex, text]);
    for (const hex of ["8431a530", "8f39fe39", "e3329a36", "fe39fe39"]) {
      assertThrows(TypeError, () => new TextDecoder(label, { fatal: true }).decode(bytesOf(hex)));
    }
  }
});
