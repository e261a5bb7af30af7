// Globals of Node.js that the scripts here and esbuild's library use, as far as they use them. A job is all that decides
// what is built: of the environment only a folder for temporary files gets in.
import native from "./native.mjs";

class Buffer extends Uint8Array {
  /** A text in an encoding, or a copy of bytes. */
  static from(value, encoding = "utf8") {
    const bytes = typeof value !== "string" ? Uint8Array.from(value) : encoding === "latin1" ? native.encodeLatin1(value) : native.encode(value);
    return Buffer.over(bytes);
  }

  /** The same bytes. */
  static over({ buffer, byteOffset, byteLength }) {
    return new Buffer(buffer, byteOffset, byteLength);
  }

  toString(encoding = "utf8") {
    if (encoding === "latin1") return native.decodeLatin1(this);
    if (encoding === "hex") return Array.from(this, (byte) => byte.toString(16).padStart(2, "0")).join("");
    if (encoding === "utf8") return native.decode(this);
    throw new TypeError(`Unknown encoding: ${encoding}`);
  }
}

const process = {
  platform: "linux",
  pid: native.pid,
  env: { ESBUILD_BINARY_PATH: `${native.folder}/esbuild`, ESBUILD_WORKER_THREADS: "0", TMPDIR: native.temporary },
  versions: { node: "20.0.0" },
  cwd: () => native.here,
};

const say = (...values) => native.say(values.join(" "));

Object.assign(globalThis, {
  Buffer,
  process,
  TextEncoder: class {
    encode = (text) => native.encode(text);
  },
  TextDecoder: class {
    decode = (bytes) => native.decode(bytes);
  },
  console: { log: say, info: say, warn: say, error: say },
  /** Only "later": whoever wants to wait is told so. */
  setTimeout(callback, delay) {
    if (delay > 0) throw new RangeError("Timers of the bundler do not wait");
    Promise.resolve().then(() => callback());
  },
});
