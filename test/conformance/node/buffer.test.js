// node:buffer
import buffer, { Buffer, isUtf8, isAscii, transcode, constants } from "node:buffer";
import { test, assert, assertEquals, assertThrows } from "../harness.js";

const TEXT = "héllo €😀";
test("text goes in and out in every encoding", () => {
  for (const encoding of ["utf8", "utf-8", "UTF8", "utf16le", "ucs2", "base64", "base64url", "hex"]) {
    assertEquals(Buffer.from(Buffer.from(TEXT).toString(encoding), encoding).toString(encoding), Buffer.from(TEXT).toString(encoding), encoding);
  }
  assertEquals(Buffer.from("héllo", "latin1").toString("hex"), "68e96c6c6f");
  assertEquals(Buffer.from([0xe9, 0x41]).toString("latin1"), "éA");
  assertEquals(Buffer.from([0xc1]).toString("ascii"), "A");
  assertEquals(Buffer.from("a-_b", "base64url").toString("base64"), "a+/b");
  assertEquals(Buffer.from("Zm9v\nYmFy", "base64").toString(), "foobar");
  assertEquals(Buffer.from("abcg", "hex").toString("hex"), "ab");
  assertEquals(Buffer.from([255, 65]).toString(), "\ufffdA");
  assertThrows(TypeError, () => Buffer.from("x", "nope"));
});

test("a text with lone surrogates is as long as byteLength() says, each three bytes", () => {
  const halves = ["\ud800", "\udc00", "a", "\u6f22"];
  for (const a of halves) for (const b of halves) for (const c of halves) {
    const text = a + b + c;
    assertEquals(Buffer.from(text).length, Buffer.byteLength(text), escape(text));
    assertEquals(Buffer.from(text).toString(), text.toWellFormed(), escape(text));
  }
});

test("it is made from arrays, buffers, array buffers and strings", () => {
  assertEquals([...Buffer.from([1, 256, -1])], [1, 0, 255]);
  const ab = new Uint8Array([1, 2, 3]).buffer;
  const shared = Buffer.from(ab, 1);
  shared[0] = 9;
  assertEquals([...new Uint8Array(ab)], [1, 9, 3]);
  assertEquals([...Buffer.from(Buffer.from("ab"))], [97, 98]);
  assertEquals([...Buffer.alloc(3, "ab")], [97, 98, 97]);
  assertEquals(Buffer.concat([Buffer.from("a"), new Uint8Array([98])], 2).toString(), "ab");
  assert(Buffer.isBuffer(Buffer.alloc(1)) && !Buffer.isBuffer(new Uint8Array(1)) && Buffer.alloc(1) instanceof Uint8Array);
  assertEquals([Buffer.byteLength("€"), Buffer.byteLength("aGk=", "base64"), Buffer.isEncoding("base64url"), Buffer.isEncoding("x")], [3, 2, true, false]);
});

test("numbers are read and written in both orders", () => {
  const b = Buffer.alloc(16);
  b.writeUInt32BE(0xdeadbeef, 0);
  b.writeInt16LE(-2, 4);
  b.writeDoubleBE(1.5, 8);
  assertEquals([b.readUInt32BE(0), b.readUint32LE(0), b.readInt16LE(4), b.readDoubleBE(8), b.readUIntBE(0, 3)], [0xdeadbeef, 0xefbeadde, -2, 1.5, 0xdeadbe]);
  b.writeBigUInt64LE(2n ** 63n, 0);
  assertEquals([b.readBigUInt64LE(0), b.readBigInt64LE(0)], [2n ** 63n, -(2n ** 63n)]);
  assertThrows(RangeError, () => b.readUInt32BE(14));
  assertThrows(RangeError, () => b.writeUInt8(256, 0));
});

test("write, fill, copy, compare, search, slices", () => {
  const b = Buffer.alloc(8);
  assertEquals([b.write("héy", 1), b.write("ff", 6, "hex")], [4, 1]);
  assertEquals(b.toString("hex"), "0068c3a97900ff00");
  assertEquals(Buffer.from("abcabc").indexOf("ca"), 2);
  assertEquals(Buffer.from("abcabc").lastIndexOf("abc"), 3);
  assertEquals(Buffer.from("abc").includes("6263", "hex"), true);
  assertEquals([Buffer.compare(Buffer.from("a"), Buffer.from("b")), Buffer.from("a").equals(new Uint8Array([97]))], [-1, true]);
  const part = Buffer.from("hello").subarray(1, 3);
  assert(Buffer.isBuffer(part));
  assertEquals([part.toString(), Buffer.from("hello").slice(-2).toString()], ["el", "lo"]);
  assertEquals(JSON.stringify(Buffer.from("a")), '{"type":"Buffer","data":[97]}');
  assertEquals(Buffer.from("0102", "hex").swap16().toString("hex"), "0201");
  assertEquals(Buffer.from("abcdef").toString("utf8", 1, 3), "bc");
});

test("module functions", () => {
  assertEquals([isUtf8(Buffer.from("é")), isUtf8(Buffer.from([255])), isAscii(Buffer.from("a")), isAscii(Buffer.from("é"))], [true, false, true, false]);
  assertEquals(transcode(Buffer.from("é"), "utf8", "latin1").toString("hex"), "e9");
  assert(constants.MAX_LENGTH > 0 && buffer.Buffer === Buffer && buffer.atob("YQ==") === "a");
});
