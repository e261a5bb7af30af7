// Values that nobody expects: of every kind, at every edge, with traps inside.

const numbers = [
  0, -0, 1, -1, 2, 3, 7, 8, 16, 100, 255, 256, 1000, 65535, 65536, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 52, 2 ** 53 - 1, 2 ** 53, 2 ** 63,
  2 ** 64, -(2 ** 31), -(2 ** 53), 0.5, 1e-300, 1e308, NaN, Infinity, -Infinity,
];
const texts = [
  "", "a", "get", "GET", "x".repeat(300), "y".repeat(70000), "\0", "a\0b", "é", "☃", "\ud800", "x\udc00y", "😀", "../..", "/", "http://127.0.0.1:1/", "https://[::1]:99999/",
  "text/plain; charset=utf-8", "SELECT 1", "SELECT ?, ?2, :a", "INSERT INTO _cf_KV VALUES (1)", "gzip", "deflate-raw", "br", "utf-8", "utf-16le", "shift_jis",
  "AES-GCM", "RSASSA-PKCS1-v1_5", "SHA-256", "sha256", "P-256", "pkcs8", "spki", "jwk", "raw", "__proto__", "constructor", "prototype", "then", "-1", "1e999", "[object Object]",
  "div > p:nth-child(2n+1)[a^='b' i]", "<p>x</p>", "bytes=0-1", "bytes=18446744073709551615-", "\r\nx: y", "a=b; c", "127.0.0.1", "::1", "%", "%zz", "{", "{}", "null",
];

/** Makes values; `made` are results of earlier calls, which may be stale. */
export class Values {
  constructor(random, made, traps) {
    this.random = random;
    this.made = made;
    this.traps = traps; // functions that do something nasty
  }

  number() {
    const { random } = this;
    return random.chance(0.3) ? random.below(64) : random.pick(numbers);
  }
  text() {
    return this.random.pick(texts);
  }
  bytes() {
    const { random } = this;
    const sizes = [0, 1, 2, 3, 7, 8, 12, 15, 16, 17, 20, 32, 64, 255, 4096, 65536, 70001];
    const size = random.pick(sizes);
    const fill = (array) => {
      const step = random.below(256);
      for (let i = 0; i < Math.min(array.length, 64); i++) array[i] = (i * step) & 255;
      return array;
    };
    switch (random.below(12)) {
      case 0: return new ArrayBuffer(size);
      case 1: return new DataView(new ArrayBuffer(size + 8), 4, size);
      case 2: return new Float64Array(size);
      case 3: return new BigInt64Array(size);
      case 4: return fill(new Uint8Array(new ArrayBuffer(size, { maxByteLength: size * 2 + 1 })));
      case 5: {
        const array = new Uint8Array(new ArrayBuffer(size, { maxByteLength: size }));
        array.buffer.resize(0); // out of bounds, or not
        return array;
      }
      case 6: {
        const array = fill(new Uint8Array(size));
        array.buffer.transfer(); // detached
        return array;
      }
      case 7: return typeof SharedArrayBuffer === "function" ? new Uint8Array(new SharedArrayBuffer(size)) : new Uint8Array(size);
      case 8: return new Uint16Array(new ArrayBuffer(size * 2 + 2), 2, size);
      case 9: return fill(new Uint8Array(size)).subarray(random.below(size + 1));
      default: return fill(new Uint8Array(size));
    }
  }
  trap() {
    return this.random.pick(this.traps);
  }
  /** An object whose properties, whatever their names, are traps or values. */
  proxy(depth) {
    const { random } = this;
    const target = random.pick([{}, [], () => 1, new Uint8Array(4), new Map()]);
    const answer = () => {
      if (random.chance(0.3)) this.trap()();
      return this.value(depth + 1);
    };
    return new Proxy(target, {
      get: (object, key) => {
        if (key === Symbol.toPrimitive || key === "toString" || key === "valueOf") return random.chance(0.5) ? () => this.text() : undefined;
        return random.chance(0.7) ? Reflect.get(object, key, object) : answer();
      },
      has: () => random.chance(0.5),
      ...(random.chance(0.3) ? { ownKeys: () => { this.trap()(); return Reflect.ownKeys(target); } } : {}),
      ...(random.chance(0.3) ? { getPrototypeOf: () => { this.trap()(); return random.pick([null, Array.prototype, Uint8Array.prototype, Object.prototype]); } } : {}),
    });
  }
  object(depth) {
    const { random } = this;
    const object = random.chance(0.1) ? Object.create(null) : {};
    const keys = [
      "name", "length", "hash", "iv", "key", "kty", "method", "headers", "body", "status", "type", "signal", "mode", "data", "value", "metadata", "expiration", "expirationTtl", "limit",
      "cursor", "prefix", "start", "end", "reverse", "include", "onlyIf", "range", "offset", "suffix", "httpMetadata", "customMetadata", "sha256", "md5", "counter", "salt", "iterations",
      "publicExponent", "modulusLength", "namedCurve", "additionalData", "tagLength", "label", "info", "get", "set", "then", "next", "toString", "valueOf", "toJSON", "byteLength", "byteOffset", "buffer",
      "highWaterMark", "size", "pull", "write", "transform", "cancel", "abort", "close", "element", "text", "comments", "hostname", "port", "secureTransport", "blobs", "doubles", "indexes", "0", "1",
    ];
    for (let i = random.below(6); i > 0; i--) {
      const key = random.pick(keys);
      if (random.chance(0.25)) {
        const value = this.value(depth + 1);
        const trap = this.trap();
        Object.defineProperty(object, key, {
          get: () => { trap(); return value; }, set: trap, enumerable: random.chance(0.9), configurable: true,
        });
      } else object[key] = this.value(depth + 1);
    }
    return object;
  }
  array(depth) {
    const array = Array.from({ length: this.random.below(5) }, () => this.value(depth + 1));
    if (this.random.chance(0.05)) array.length = this.random.pick([100, 2 ** 20, 2 ** 32 - 1]);
    if (this.random.chance(0.1)) Object.defineProperty(array, "0", { get: this.trap(), configurable: true });
    return array;
  }
  function(depth) {
    const { random } = this;
    const trap = this.trap();
    return random.pick([
      () => { trap(); return this.value(depth + 1); },
      async () => { trap(); return this.value(depth + 1); },
      () => { throw this.value(depth + 1); },
      function* () { yield 1; trap(); },
      class { constructor() { trap(); } },
      trap,
    ]);
  }
  value(depth = 0) {
    const { random, made } = this;
    if (made.length > 0 && random.chance(0.3)) return random.pick(made);
    if (depth > 3) return random.chance(0.5) ? this.number() : this.text();
    switch (random.below(16)) {
      case 0: return undefined;
      case 1: return random.pick([null, true, false]);
      case 2: case 3: case 4: return this.number();
      case 5: case 6: return this.text();
      case 7: case 8: return this.bytes();
      case 9: return this.object(depth);
      case 10: return this.array(depth);
      case 11: return this.function(depth);
      case 12: return this.proxy(depth);
      case 13: return random.pick([10n, -1n, 2n ** 64n, Symbol.iterator, Symbol("s"), new Date(NaN), new Date(0), /x/g, new Map([[1, 2]]), new Set([1]), new Error("e"), new WeakMap(), new String("s"), Object(1n)]);
      case 14: return random.pick([Promise.resolve(1), Promise.reject(new Error("r")).catch(() => {}) && Promise.resolve(2), new Promise(() => {}), { then: this.trap() }]);
      default: return this.object(depth);
    }
  }
  values(max = 6) {
    return Array.from({ length: this.random.below(max + 1) }, () => this.value());
  }
}
