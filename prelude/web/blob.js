// Blob and File: https://w3c.github.io/FileAPI/
//
// A blob is a Uint8Array that nobody changes; a slice is a view of the same memory.
import { compatibilityFlags, native } from "../internal/native.js";
import { finishInterface } from "../internal/interface.js";
import { registerHostObject } from "../internal/serialize.js";
import { constructorParameterError, fieldError, illegalInvocation, isDictionary, isObject, toUSVString } from "../internal/webidl.js";

const INTERNAL = Symbol("internal");
let dataOf;
export let isBlob;

const SIZE_MAX = 128 << 20;
const REFUSES_RESIZABLE = compatibilityFlags.has("no_resizable_array_buffer_in_blob");

const isBuffer = (part) => part instanceof ArrayBuffer || (typeof SharedArrayBuffer === "function" && part instanceof SharedArrayBuffer);

/** What is not bytes yet, as text: its conversion may run code, which may change what is. */
function converted(part) {
  if (typeof part === "string" || isBlob(part)) return part;
  if (!ArrayBuffer.isView(part) && !isBuffer(part)) return `${part}`;
  if (REFUSES_RESIZABLE && (isBuffer(part) ? part : part.buffer).resizable) throw new TypeError("Cannot create a Blob with a resizable ArrayBuffer");
  return part;
}

function partBytes(part) {
  if (typeof part === "string") return native.utf8Encode(part);
  if (ArrayBuffer.isView(part)) return new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
  if (isBuffer(part)) return new Uint8Array(part);
  return blobBytes(part);
}

function join(parts) {
  const pieces = [];
  let size = 0;
  for (const part of Array.from(parts, converted)) {
    const piece = partBytes(part);
    pieces.push(piece);
    size += piece.length;
  }
  if (size > SIZE_MAX) throw new RangeError(`Blob size ${size} exceeds limit ${SIZE_MAX}`);
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** Only printable ASCII, in lower case; anything else makes it empty. */
function normalizeType(type) {
  const text = `${type}`;
  return /[^\x20-\x7e]/.test(text) ? "" : text.toLowerCase();
}

function clamp(value, size, fallback) {
  if (value === undefined) return fallback;
  const number = Math.trunc(+value) || 0;
  return number < 0 ? Math.max(size + number, 0) : Math.min(number, size);
}

export class Blob {
  #bytes;
  #type = "";

  constructor(parts = undefined, options = undefined) {
    if (parts === INTERNAL) {
      this.#bytes = options.bytes;
      this.#type = options.type;
      return;
    }
    if (parts !== undefined && !(isObject(parts) && typeof parts[Symbol.iterator] === "function")) {
      throw constructorParameterError(new.target === File ? "File" : "Blob", 1, "Array");
    }
    if (!isDictionary(options)) throw constructorParameterError(new.target === File ? "File" : "Blob", 2, "Options");
    const { endings, type } = options ?? {};
    if (endings !== undefined) throw new Error("The 'endings' field on 'Options' is not implemented.");
    this.#bytes = parts === undefined ? new Uint8Array(0) : join(parts);
    if (type !== undefined) this.#type = normalizeType(type);
  }

  static {
    isBlob = (value) => isObject(value) && #bytes in value;
    dataOf = (value) => {
      if (!isBlob(value)) throw illegalInvocation();
      return value.#bytes;
    };
  }

  get size() {
    return dataOf(this).length;
  }
  get type() {
    dataOf(this);
    return this.#type;
  }
  slice(start = undefined, end = undefined, type = undefined) {
    const bytes = dataOf(this);
    const from = clamp(start, bytes.length, 0);
    const to = clamp(end, bytes.length, bytes.length);
    return new Blob(INTERNAL, {
      bytes: bytes.subarray(from, Math.max(from, to)),
      type: type === undefined ? "" : normalizeType(type),
    });
  }
  async arrayBuffer() {
    return dataOf(this).slice().buffer;
  }
  async bytes() {
    return dataOf(this).slice();
  }
  async text() {
    const text = native.utf8Decode(dataOf(this));
    return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }
  stream() {
    return blobStream(dataOf(this));
  }
}
finishInterface(Blob);
for (const [f, length] of [[Blob, 0], [Blob.prototype.slice, 0]]) Object.defineProperty(f, "length", { value: length, configurable: true });

/** The bytes of a Blob: not to be changed. */
export const blobBytes = (blob) => dataOf(blob);
/** A Blob on bytes that nobody else will change. */
export const blobFromBytes = (bytes, type = "") => new Blob(INTERNAL, { bytes, type });

let blobStream;
/** streams come later than blobs; fetch/body.js gives the function. */
export function setBlobStream(function_) {
  blobStream = function_;
}

let isFileBrand;

export class File extends Blob {
  #name;
  #lastModified;

  constructor(parts, name, options = undefined) {
    if (parts === INTERNAL) {
      super(INTERNAL, options);
      this.#name = name;
      this.#lastModified = options.lastModified;
      return;
    }
    if (arguments.length < 1 || parts === undefined) throw constructorParameterError("File", 1, "Array");
    if (arguments.length < 2) throw constructorParameterError("File", 2, "string");
    super(parts, options);
    this.#name = toUSVString(name);
    const time = options?.lastModified;
    if (time !== undefined && Number.isNaN(+time)) throw fieldError("lastModified", "Options", "number");
    this.#lastModified = time === undefined ? Date.now() : Math.trunc(+time);
  }

  static {
    isFileBrand = (value) => isObject(value) && #name in value;
  }

  get name() {
    if (!isFileBrand(this)) throw illegalInvocation();
    return this.#name;
  }
  get lastModified() {
    if (!isFileBrand(this)) throw illegalInvocation();
    return this.#lastModified;
  }
}
finishInterface(File);

export { isFileBrand as isFile };
/** A File on bytes that nobody else will change. */
export const fileFromBytes = (bytes, name, type, lastModified = Date.now()) =>
  new File(INTERNAL, name, { bytes, type, lastModified });

// A clone of a view would take its whole buffer along, and a slice may be a small part of it.
const ownBytes = (blob) => {
  const bytes = blobBytes(blob);
  return bytes.length === bytes.buffer.byteLength ? bytes : bytes.slice();
};
registerHostObject({
  tag: 0x21,
  prototype: Blob.prototype,
  write: (blob, writer) => writer.value([ownBytes(blob), blob.type]),
  read: (reader) => blobFromBytes(...reader.value()),
});
registerHostObject({
  tag: 0x22,
  prototype: File.prototype,
  write: (file, writer) => writer.value([ownBytes(file), file.name, file.type, file.lastModified]),
  read: (reader) => fileFromBytes(...reader.value()),
});
