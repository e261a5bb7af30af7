// Cyclic redundancy checks, for crypto.DigestStream: CRC-32 (ISO-HDLC), CRC-32C and CRC-64/NVME.
// https://reveng.sourceforge.io/crc-catalogue/all.htm

function table32(polynomial) {
  const table = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    let value = i;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ polynomial : value >>> 1;
    table[i] = value >>> 0;
  }
  return table;
}

class Crc32 {
  #table;
  #value = 0xffffffff;
  constructor(polynomial) {
    this.#table = table32(polynomial);
  }
  update(bytes) {
    const table = this.#table;
    let value = this.#value;
    for (let i = 0; i < bytes.length; i++) value = table[(value ^ bytes[i]) & 255] ^ (value >>> 8);
    this.#value = value;
  }
  finish() {
    const out = new DataView(new ArrayBuffer(4));
    out.setUint32(0, ~this.#value >>> 0);
    return out.buffer;
  }
}

/** In two halves of 32 bits: BigInt would be many times slower. */
class Crc64 {
  #high = new Uint32Array(256);
  #low = new Uint32Array(256);
  #valueHigh = 0xffffffff;
  #valueLow = 0xffffffff;
  constructor(polynomialHigh, polynomialLow) {
    for (let i = 0; i < 256; i++) {
      let high = 0;
      let low = i;
      for (let bit = 0; bit < 8; bit++) {
        const carry = low & 1;
        low = (low >>> 1) | ((high & 1) << 31);
        high >>>= 1;
        if (carry) {
          high ^= polynomialHigh;
          low ^= polynomialLow;
        }
      }
      this.#high[i] = high;
      this.#low[i] = low;
    }
  }
  update(bytes) {
    let high = this.#valueHigh;
    let low = this.#valueLow;
    for (let i = 0; i < bytes.length; i++) {
      const index = (low ^ bytes[i]) & 255;
      low = ((low >>> 8) | (high << 24)) ^ this.#low[index];
      high = (high >>> 8) ^ this.#high[index];
    }
    this.#valueHigh = high;
    this.#valueLow = low;
  }
  finish() {
    const out = new DataView(new ArrayBuffer(8));
    out.setUint32(0, ~this.#valueHigh >>> 0);
    out.setUint32(4, ~this.#valueLow >>> 0);
    return out.buffer;
  }
}

const makers = {
  __proto__: null,
  crc32: () => new Crc32(0xedb88320),
  crc32c: () => new Crc32(0x82f63b78),
  crc64nvme: () => new Crc64(0x9a6c9329, 0xac4bc9b5),
};

/** A check by its name, in any case; undefined: there is none of that name. */
export const makeCrc = (name) => makers[name.toLowerCase()]?.();
