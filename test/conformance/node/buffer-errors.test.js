// node:buffer: what is refused, and how; sizes that change while they are used.
import { Buffer } from "node:buffer";
import { assertEquals, test } from "../harness.js";

const error = (f) => {
  try {
    f();
  } catch (e) {
    return [e.name, e.code, e.message];
  }
  return undefined;
};
const eight = () => Buffer.from([1, 2, 3, 4, 5, 6, 7, 8]);

test("Buffer: numbers are read and written where they fit", () => {
  const b = eight();
  assertEquals([b.readUIntBE(0, 6), b.readIntLE(2, 3), b.readBigUInt64BE(), b.writeInt16LE(-2, 2), b.readInt16LE(2)], [1108152157446, 0x050403, 72623859790382856n, 4, -2]);
  assertEquals([
    error(() => b.readUInt8(9)), error(() => b.readUInt16LE("x")), error(() => b.readInt8(1.5)), error(() => Buffer.alloc(0).readUInt32BE()), error(() => b.writeUInt8(256)), error(() => b.readUIntLE(0, 7)), error(() => b.writeIntBE(2 ** 47, 0, 6)),
  ], [
    ["RangeError", "ERR_OUT_OF_RANGE", 'The value of "offset" is out of range. It must be >= 0 && <= 8. Received 9'],
    ["TypeError", "ERR_INVALID_ARG_TYPE", 'The "offset" argument must be of type number. Received type string (\'x\')'],
    ["RangeError", "ERR_OUT_OF_RANGE", 'The value of "offset" is out of range. It must be an integer. Received 1.5'],
    ["RangeError", "ERR_BUFFER_OUT_OF_BOUNDS", "Attempt to access memory outside buffer bounds"],
    ["RangeError", "ERR_OUT_OF_RANGE", 'The value of "value" is out of range. It must be >= 0 and <= 255. Received 256'],
    ["RangeError", "ERR_OUT_OF_RANGE", 'The value of "byteLength" is out of range. It must be >= 1 and <= 6. Received 7'],
    ["RangeError", "ERR_OUT_OF_RANGE", 'The value of "value" is out of range. It must be >= -(2 ** 47) and < 2 ** 47. Received 140_737_488_355_328'],
  ]);
});

test("Buffer: what it is made of, and not", () => {
  assertEquals([[...Buffer.from({ type: "Buffer", data: [1, 2] })], [...Buffer.from({ length: 2, 0: 7 })], [...Buffer.from(new String("a"))], Buffer.from("zz", "hex").length], [[1, 2], [7, 0], [97], 0]);
  assertEquals([error(() => Buffer.from(1))?.[1], error(() => Buffer.alloc("1"))?.[1], error(() => Buffer.concat([1]))?.[1], error(() => Buffer.from(new ArrayBuffer(1), 2))?.[1]], ["ERR_INVALID_ARG_TYPE", "ERR_INVALID_ARG_TYPE", "ERR_INVALID_ARG_TYPE", "ERR_BUFFER_OUT_OF_BOUNDS"]);
});

test("Buffer: searching, filling, comparing, swapping", () => {
  const b = eight();
  assertEquals([b.indexOf(3), b.indexOf(""), b.lastIndexOf(""), b.includes(9), b.compare(eight(), 1, 3, 1, 3), Buffer.alloc(4, "ab").toString(), [...b.swap16()].slice(0, 4)], [2, 0, 8, false, 0, "abab", [2, 1, 4, 3]]);
  assertEquals([error(() => Buffer.alloc(3).swap16())?.[1], error(() => b.fill("x", 9))?.[1], error(() => b.indexOf({}))?.[1], error(() => b.copy(1))?.[1]], ["ERR_INVALID_BUFFER_SIZE", "ERR_OUT_OF_RANGE", "ERR_INVALID_ARG_TYPE", "ERR_INVALID_ARG_TYPE"]);
});
