// node:zlib on the codecs that CompressionStream uses (src/bindings/codec.h).
import { Transform } from "readable-stream";
import { Buffer } from "./buffer.js";
import { invalidArgType, nodeError, outOfRange } from "./internal/errors.js";
import { native } from "./internal/internals.js";

const constants = {
  Z_NO_FLUSH: 0, Z_PARTIAL_FLUSH: 1, Z_SYNC_FLUSH: 2, Z_FULL_FLUSH: 3, Z_FINISH: 4, Z_BLOCK: 5, Z_OK: 0, Z_STREAM_END: 1,
  Z_NEED_DICT: 2, Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6,
  Z_NO_COMPRESSION: 0, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9, Z_DEFAULT_COMPRESSION: -1, Z_FILTERED: 1, Z_HUFFMAN_ONLY: 2,
  Z_RLE: 3, Z_FIXED: 4, Z_DEFAULT_STRATEGY: 0, DEFLATE: 1, INFLATE: 2, GZIP: 3, GUNZIP: 4, DEFLATERAW: 5, INFLATERAW: 6,
  UNZIP: 7, BROTLI_DECODE: 8, BROTLI_ENCODE: 9, Z_MIN_WINDOWBITS: 8, Z_MAX_WINDOWBITS: 15, Z_DEFAULT_WINDOWBITS: 15,
  Z_MIN_CHUNK: 64, Z_MAX_CHUNK: Infinity, Z_DEFAULT_CHUNK: 16384, Z_MIN_MEMLEVEL: 1, Z_MAX_MEMLEVEL: 9, Z_DEFAULT_MEMLEVEL: 8,
  Z_MIN_LEVEL: -1, Z_MAX_LEVEL: 9, Z_DEFAULT_LEVEL: -1, BROTLI_OPERATION_PROCESS: 0, BROTLI_OPERATION_FLUSH: 1,
  BROTLI_OPERATION_FINISH: 2, BROTLI_OPERATION_EMIT_METADATA: 3, BROTLI_PARAM_MODE: 0, BROTLI_MODE_GENERIC: 0,
  BROTLI_MODE_TEXT: 1, BROTLI_MODE_FONT: 2, BROTLI_DEFAULT_MODE: 0, BROTLI_PARAM_QUALITY: 1, BROTLI_MIN_QUALITY: 0,
  BROTLI_MAX_QUALITY: 11, BROTLI_DEFAULT_QUALITY: 11, BROTLI_PARAM_LGWIN: 2, BROTLI_MIN_WINDOW_BITS: 10,
  BROTLI_MAX_WINDOW_BITS: 24, BROTLI_DEFAULT_WINDOW: 22, ZSTD_COMPRESS: 10, ZSTD_DECOMPRESS: 11, ZSTD_e_continue: 0, ZSTD_e_flush: 1,
  ZSTD_e_end: 2, ZSTD_c_compressionLevel: 100, ZSTD_CLEVEL_DEFAULT: 3,
};

// enum cn_codec_kind
const KINDS = { Deflate: 0, DeflateRaw: 1, Gzip: 2, Inflate: 3, InflateRaw: 4, Gunzip: 5, Unzip: 6, BrotliCompress: 7, BrotliDecompress: 8, ZstdCompress: 9, ZstdDecompress: 10 };
const RUN = 0;
const FLUSH = 1;
const END = 2;
const MORE = 1; // bits of the status
const ENDED = 2;
const OUTPUT_MAX = 0x7fffffff;

function range(options, name, min, max, otherwise) {
  const value = options[name];
  if (value === undefined) return otherwise;
  if (typeof value !== "number" || Number.isNaN(value)) throw invalidArgType(`options.${name}`, "of type number", value);
  if (value < min || value > max) throw outOfRange(`options.${name}`, `>= ${min} and <= ${max}`, value);
  return value;
}

/** The level; other parameters of zstd are refused rather than ignored. */
function zstdLevel(params) {
  for (const [name, value] of Object.entries(params)) {
    if (Number(name) !== constants.ZSTD_c_compressionLevel) throw nodeError(RangeError, "ERR_ZSTD_INVALID_PARAM", `${name} is not a valid zstd parameter`);
    if (!Number.isInteger(value) || value < -131072 || value > 22) throw outOfRange("options.params[ZSTD_c_compressionLevel]", ">= -131072 and <= 22", value);
  }
  return params[constants.ZSTD_c_compressionLevel] ?? constants.ZSTD_CLEVEL_DEFAULT;
}

function open(kind, options = {}) {
  if (kind >= KINDS.ZstdCompress) return native.codecOpen(kind, zstdLevel(options.params ?? {}));
  if (kind >= KINDS.BrotliCompress) {
    const params = options.params ?? {};
    return native.codecOpen(kind, params[constants.BROTLI_PARAM_QUALITY] ?? 11, params[constants.BROTLI_PARAM_LGWIN] ?? 0, 0, params[constants.BROTLI_PARAM_MODE] ?? 0);
  }
  return native.codecOpen(
    kind,
    range(options, "level", -1, 9, -1),
    range(options, "windowBits", 8, 15, 0) || 0,
    range(options, "memLevel", 1, 9, 0),
    range(options, "strategy", 0, 4, 0),
    options.dictionary && bytesOf(options.dictionary),
  );
}

function bytesOf(data) {
  if (typeof data === "string") return Buffer.from(data);
  if (ArrayBuffer.isView(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer) return Buffer.from(data);
  throw invalidArgType("buffer", "of type string or an instance of Buffer, TypedArray, DataView, or ArrayBuffer", data);
}

function dataError(kind, message) {
  const code = kind === KINDS.BrotliDecompress ? "ERR__ERROR_FORMAT_PADDING_1" : kind === KINDS.ZstdDecompress && !/unexpected end/.test(message) ? "ZSTD_error_corruption_detected" : /ends too early|truncated|unexpected end/i.test(message) ? "Z_BUF_ERROR" : "Z_DATA_ERROR";
  const error = nodeError(Error, code, code === "Z_BUF_ERROR" ? "unexpected end of file" : message);
  error.errno = constants[code] ?? -1;
  return error;
}

/** Feeds `bytes` and calls `take` with every piece of output; true once the data has ended. */
function run(codec, kind, bytes, mode, take) {
  const status = new Uint32Array(1);
  let input = bytes;
  for (;;) {
    let piece;
    try {
      piece = native.codecRun(codec, input, mode, status);
    } catch (error) {
      throw dataError(kind, error.message);
    }
    if (piece.length > 0) take(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength));
    if (!(status[0] & MORE)) return (status[0] & ENDED) !== 0;
    input = undefined;
  }
}

const isDecoder = (kind) => (kind >= KINDS.Inflate && kind <= KINDS.Unzip) || kind === KINDS.BrotliDecompress || kind === KINDS.ZstdDecompress;

function runSync(kind, data, options = {}) {
  const limit = options.maxOutputLength ?? OUTPUT_MAX;
  const codec = open(kind, options);
  const pieces = [];
  let size = 0;
  try {
    const ended = run(codec, kind, bytesOf(data), END, (piece) => {
      size += piece.length;
      if (size > limit) throw nodeError(RangeError, "ERR_BUFFER_TOO_LARGE", `Cannot create a Buffer larger than ${limit} bytes`);
      pieces.push(piece);
    });
    if (isDecoder(kind) && !ended && options.finishFlush === undefined) throw dataError(kind, "unexpected end of file");
  } finally {
    native.codecClose(codec);
  }
  return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
}

function runAsync(kind, data, options, callback) {
  if (typeof options === "function") [options, callback] = [{}, options];
  if (typeof callback !== "function") throw invalidArgType("callback", "of type function", callback);
  bytesOf(data);
  queueMicrotask(() => {
    let result;
    try {
      result = runSync(kind, data, options);
    } catch (error) {
      callback(error);
      return;
    }
    callback(null, result);
  });
}

class ZlibBase extends Transform {
  #codec;
  #kind;
  #ended = false;
  bytesWritten = 0;
  constructor(kind, options = {}) {
    super({ ...options, decodeStrings: true });
    this.#kind = kind;
    this.#codec = open(kind, options ?? {});
  }
  #step(bytes, mode, callback) {
    try {
      this.#ended = run(this.#codec, this.#kind, bytes, mode, (piece) => this.push(piece)) || this.#ended;
    } catch (error) {
      callback(error);
      return;
    }
    callback();
  }
  _transform(chunk, encoding, callback) {
    this.bytesWritten += chunk.length;
    this.#step(chunk, RUN, callback);
  }
  _flush(callback) {
    this.#step(undefined, END, (error) => {
      if (!error && isDecoder(this.#kind) && !this.#ended && this.bytesWritten > 0) error = dataError(this.#kind, "unexpected end of file");
      callback(error);
    });
  }
  _destroy(error, callback) {
    if (this.#codec !== null) native.codecClose(this.#codec);
    this.#codec = null;
    callback(error);
  }
  flush(kind, callback = kind) {
    this.#step(undefined, FLUSH, (error) => (error ? this.destroy(error) : typeof callback === "function" && queueMicrotask(callback)));
  }
  close(callback) {
    if (callback) this.once("close", callback);
    this.destroy();
  }
}

const module = { constants, codes: {}, ...constants };
for (const [name, kind] of Object.entries(KINDS)) {
  module[name] = { [name]: class extends ZlibBase { constructor(options) { super(kind, options); } } }[name];
  module[`create${name}`] = (options) => new module[name](options);
  const method = { Deflate: "deflate", DeflateRaw: "deflateRaw", Gzip: "gzip", Inflate: "inflate", InflateRaw: "inflateRaw", Gunzip: "gunzip", Unzip: "unzip", BrotliCompress: "brotliCompress", BrotliDecompress: "brotliDecompress", ZstdCompress: "zstdCompress", ZstdDecompress: "zstdDecompress" }[name];
  module[method] = (data, options, callback) => runAsync(kind, data, options, callback);
  module[`${method}Sync`] = (data, options) => runSync(kind, data, options);
}
module.crc32 = (data, value = 0) => {
  let crc = ~value;
  for (const byte of bytesOf(data)) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (0xedb88320 & -(crc & 1));
  }
  return ~crc >>> 0;
};
export default module;
