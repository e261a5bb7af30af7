// Numbers in a Buffer: read and write functions with the checks of Node.js.
import { invalidArgType, nodeError, outOfRange } from "./errors.js";

const outside = () => nodeError(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", "Attempt to access memory outside buffer bounds");

/** The offset, if `size` bytes are there. */
function place(buffer, offset, size) {
  if (typeof offset !== "number") throw invalidArgType("offset", "of type number", offset);
  if (offset >= 0 && offset + size <= buffer.length && Number.isInteger(offset)) return offset;
  if (!Number.isInteger(offset)) throw outOfRange("offset", "an integer", offset);
  if (buffer.length - size < 0) throw outside();
  throw outOfRange("offset", size === 1 ? `>= 0 && <= ${buffer.length}` : `>= 0 and <= ${buffer.length - size}`, offset); // the platform's words
}
const view = (buffer) => new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);

function checkSize(size) {
  if (!Number.isInteger(size)) throw outOfRange("byteLength", "an integer", size);
  if (size < 1 || size > 6) throw outOfRange("byteLength", ">= 1 and <= 6", size);
}
function rangeText(min, max, size) {
  if (size <= 4) return `>= ${min} and <= ${max}`;
  return min === 0 ? `>= 0 and < 2 ** ${size * 8}` : `>= -(2 ** ${size * 8 - 1}) and < 2 ** ${size * 8 - 1}`;
}
function checkValue(value, min, max, size) {
  if (value > max || value < min) throw outOfRange("value", rangeText(min, max, size), value);
}

const methods = {};
const define = (name, f) => {
  methods[name] = Object.defineProperty(f, "name", { value: name, configurable: true });
  const other = name.replace("UInt", "Uint");
  if (other !== name) methods[other] = f;
};

// Of one, two or four bytes, and floating point.
for (const [kind, size, getter] of [
  ["UInt8", 1, "Uint8"], ["UInt16", 2, "Uint16"], ["UInt32", 4, "Uint32"], ["Int8", 1, "Int8"], ["Int16", 2, "Int16"], ["Int32", 4, "Int32"],
  ["Float", 4, "Float32"], ["Double", 8, "Float64"], ["BigInt64", 8, "BigInt64"], ["BigUInt64", 8, "BigUint64"],
]) {
  const big = kind.startsWith("Big");
  const real = kind === "Float" || kind === "Double";
  const signed = !kind.includes("UInt");
  const bits = size * 8;
  const min = big ? (signed ? -(2n ** 63n) : 0n) : signed ? -(2 ** (bits - 1)) : 0;
  const max = big ? (signed ? 2n ** 63n - 1n : 2n ** 64n - 1n) : signed ? 2 ** (bits - 1) - 1 : 2 ** bits - 1;
  const bigText = signed ? ">= -(2n ** 63n) and < 2n ** 63n" : ">= 0n and < 2n ** 64n";
  for (const end of size === 1 ? [""] : ["LE", "BE"]) {
    const little = end === "LE";
    define(`read${kind}${end}`, function (offset = 0) {
      return view(this)[`get${getter}`](place(this, offset, size), little);
    });
    define(`write${kind}${end}`, function (value, offset = 0) {
      if (big) {
        if (value > max || value < min) throw outOfRange("value", bigText, value);
      } else if (!real) {
        value = +value;
        checkValue(value, min, max, size);
      } else {
        value = +value;
      }
      const at = place(this, offset, size);
      if (big && typeof value !== "bigint") throw new TypeError("Cannot mix BigInt and other types, use explicit conversions");
      view(this)[`set${getter}`](at, value, little);
      return at + size;
    });
  }
}

// Of one to six bytes.
for (const signed of [false, true]) {
  const kind = signed ? "Int" : "UInt";
  for (const end of ["LE", "BE"]) {
    define(`read${kind}${end}`, function (offset, size) {
      if (offset === undefined) throw invalidArgType("offset", "of type number", offset);
      checkSize(size);
      const at = place(this, offset, size);
      let value = 0;
      for (let i = 0; i < size; i++) value = value * 256 + this[end === "BE" ? at + i : at + size - 1 - i];
      return signed && value >= 2 ** (size * 8 - 1) ? value - 2 ** (size * 8) : value;
    });
    define(`write${kind}${end}`, function (value, offset, size) {
      value = +value;
      checkSize(size);
      checkValue(value, signed ? -(2 ** (size * 8 - 1)) : 0, signed ? 2 ** (size * 8 - 1) - 1 : 2 ** (size * 8) - 1, size);
      const at = place(this, offset, size);
      let rest = value < 0 ? value + 2 ** (size * 8) : value;
      for (let i = 0; i < size; i++) {
        this[end === "LE" ? at + i : at + size - 1 - i] = rest % 256;
        rest = Math.floor(rest / 256);
      }
      return at + size;
    });
  }
}
export { methods };
