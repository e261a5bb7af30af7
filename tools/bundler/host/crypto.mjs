// node:crypto: SHA-256, and random bytes.
import native from "./native.mjs";

class Hash {
  #parts = [];
  update(part) {
    this.#parts.push(typeof part === "string" ? native.encode(part) : part);
    return this;
  }
  digest(encoding) {
    const [first] = this.#parts;
    const all = this.#parts.length === 1 ? first : Uint8Array.from(this.#parts.flatMap((part) => [...part]));
    return Buffer.over(native.sha256(all)).toString(encoding);
  }
}

export function createHash(name) {
  if (name !== "sha256") throw new TypeError(`Unknown digest: ${name}`);
  return new Hash();
}

export const randomBytes = (size) => native.random(new Buffer(size));
