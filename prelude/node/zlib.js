// node:zlib: streams and functions on steps of src/bindings/node_zlib.c.
//
// Z1  A stream has one write under way at a time; its input is kept until it is used up, its output
//     buffer is replaced when it is full, for what was pushed of it is the reader's.
// Z2  After a failure or close() the handle is gone, and every later write fails.
import stream from "./stream.js";
import { Buffer } from "./buffer.js";
import { invalidArgType, nodeError, outOfRange, validateFunction, validateUint32 } from "./internal/errors.js";
import { native, timers } from "./internal/internals.js";
import constants from "./data/zlib-constants.json";

const { Transform, finished } = stream;
const kMaxLength = 128 * 1024 * 1024;
const kFlushFlag = Symbol("kFlushFlag");
const kFailure = Symbol("kError");
const {
  Z_NO_FLUSH, Z_FINISH, Z_FULL_FLUSH, Z_BLOCK, Z_PARTIAL_FLUSH, Z_SYNC_FLUSH, Z_MIN_CHUNK, Z_DEFAULT_CHUNK, Z_MIN_WINDOWBITS, Z_MAX_WINDOWBITS, Z_DEFAULT_WINDOWBITS,
  Z_MIN_LEVEL, Z_MAX_LEVEL, Z_DEFAULT_COMPRESSION, Z_MIN_MEMLEVEL, Z_MAX_MEMLEVEL, Z_DEFAULT_MEMLEVEL, Z_DEFAULT_STRATEGY, Z_FIXED,
  DEFLATE, INFLATE, GZIP, GUNZIP, DEFLATERAW, INFLATERAW, UNZIP, BROTLI_DECODE, BROTLI_ENCODE,
  BROTLI_OPERATION_PROCESS, BROTLI_OPERATION_FLUSH, BROTLI_OPERATION_FINISH, BROTLI_OPERATION_EMIT_METADATA,
} = constants;
const ZSTD_COMPRESS = 10;
const ZSTD_DECOMPRESS = 11;

// ---- options

/** Undefined and NaN are no numbers given; other things that are none throw. */
function isFiniteNumber(value, name) {
  if (value === undefined) return false;
  if (Number.isFinite(value)) return true;
  if (Number.isNaN(value)) return false;
  if (typeof value !== "number") throw invalidArgType(name, "of type number", value);
  throw outOfRange(name, "a finite number", value);
}
function inRange(value, name, min, max, otherwise) {
  if (!isFiniteNumber(value, name)) return otherwise;
  if (value < min || value > max) throw outOfRange(name, `>= ${min} and <= ${max}`, value);
  return value;
}
function dictionaryOf(value) {
  if (value === undefined || ArrayBuffer.isView(value)) return value;
  if (value instanceof ArrayBuffer) return Buffer.from(value);
  throw invalidArgType("options.dictionary", ["Buffer", "TypedArray", "DataView", "ArrayBuffer"], value);
}

const FLUSHES = { zlib: [Z_NO_FLUSH, Z_BLOCK], brotli: [BROTLI_OPERATION_PROCESS, BROTLI_OPERATION_EMIT_METADATA], zstd: [0, 2] };
const DEFAULTS = {
  zlib: { flush: Z_NO_FLUSH, finishFlush: Z_FINISH, fullFlush: Z_FULL_FLUSH },
  brotli: { flush: BROTLI_OPERATION_PROCESS, finishFlush: BROTLI_OPERATION_FINISH, fullFlush: BROTLI_OPERATION_FLUSH },
  zstd: { flush: 0, finishFlush: 2, fullFlush: 1 },
};
// From the least to the most that a flush does.
const STRENGTH = new Map([Z_NO_FLUSH, Z_BLOCK, Z_PARTIAL_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_FINISH].map((flag, i) => [flag, i]));
const stronger = (a, b) => (STRENGTH.get(a) > STRENGTH.get(b) ? a : b);
/** Empty chunks that ask for a flush in their turn. */
const flushChunk = (flag) => Object.assign(Buffer.alloc(0), { [kFlushFlag]: flag });

// ---- handles

/**
 * What `_handle` is, as far as libraries look at it: made for a mode, then initialized with the array
 * that tells what a write has left of output and input.
 */
class Handle {
  #mode;
  #native = null;
  #state = null;
  onerror = null;
  constructor(mode) {
    if (!(mode >= DEFLATE && mode <= UNZIP)) throw new TypeError("Invalid zlib mode");
    this.#mode = mode;
  }
  initialize(windowBits, level, memLevel, strategy, state, callback, dictionary = undefined) {
    void callback;
    this.close();
    this.#state = state;
    this.#native = native.zlibOpen(this.#mode, windowBits, level, memLevel, strategy, dictionary);
  }
  adopt(opened, state) {
    this.#native = opened;
    this.#state = state;
    return this;
  }
  #open() {
    if (this.#native === null) throw new Error("Stream is closed");
    return this.#native;
  }
  /** Undefined, or [errno, code, message]. */
  step(flush, input, output) {
    if (!(this.#state?.length >= 2)) throw new Error("Invalid write result buffer");
    return native.zlibWrite(this.#open(), flush, input, output, this.#state);
  }
  writeSync(flush, input, inputOffset, inputLength, output, outputOffset, outputLength) {
    const bytes = (view, offset, length) => new Uint8Array(view.buffer, view.byteOffset + offset, length);
    const failure = this.step(flush, input ? bytes(input, inputOffset, inputLength) : new Uint8Array(0), bytes(output, outputOffset, outputLength));
    if (failure !== undefined) this.onerror?.(...failure);
  }
  write(...args) {
    this.writeSync(...args);
  }
  params(level, strategy) {
    return native.zlibParams(this.#open(), level, strategy);
  }
  reset() {
    return native.zlibReset(this.#open());
  }
  close() {
    if (this.#native !== null) native.zlibClose(this.#native);
    this.#native = null;
  }
}
class BrotliHandle extends Handle {
  constructor() {
    super(DEFLATE);
  }
}
class ZstdHandle extends BrotliHandle {}

const BROTLI_ERRORS = new Map(Object.entries(constants).filter(([name]) => name.startsWith("BROTLI_DECODER_ERROR_")).map(([name, value]) => [value, `ERR_${name.slice("BROTLI_DECODER".length)}`]));

/** The error of a step, in the platform's words for each family. */
function describeFailure(self, [errno, code, message]) {
  if (code === "Z_BUF_ERROR") return { errno, code, message: self._family === "brotli" && self._oneShot ? "Unexpected end of file" : message };
  if (self._family === "brotli") return { errno: -1, code: BROTLI_ERRORS.get(errno) ?? code, message: "Compression failed" };
  if (self._family === "zstd") {
    const what = self._mode === ZSTD_COMPRESS ? "compression" : "decompression";
    return { errno: -1, code: `ERR_ZSTD_${what.toUpperCase()}_FAILED`, message: `Zstd ${what} failed: ${message}` };
  }
  return { errno, code, message };
}
function failureOf(self, failure) {
  const { errno, code, message } = describeFailure(self, failure);
  // What the functions throw is named without its code.
  return self._oneShot ? Object.assign(new Error(message), { errno, code }) : nodeError(Error, code, message, { errno });
}

// ---- streams

export function ZlibBase(options, mode, handle, family, state) {
  let chunkSize = Z_DEFAULT_CHUNK;
  let maxOutputLength = kMaxLength;
  let { flush, finishFlush } = DEFAULTS[family];
  const { fullFlush } = DEFAULTS[family];
  if (options) {
    const [min, max] = FLUSHES[family];
    if (options.chunkSize !== undefined && options.chunkSize !== null) chunkSize = options.chunkSize;
    if (!isFiniteNumber(chunkSize, "options.chunkSize")) chunkSize = Z_DEFAULT_CHUNK;
    else if (chunkSize < Z_MIN_CHUNK) throw outOfRange("options.chunkSize", `>= ${Z_MIN_CHUNK}`, chunkSize);
    flush = inRange(options.flush, "options.flush", min, max, flush);
    finishFlush = inRange(options.finishFlush, "options.finishFlush", min, max, finishFlush);
    maxOutputLength = inRange(options.maxOutputLength, "options.maxOutputLength", 1, kMaxLength, kMaxLength);
    if (options.encoding || options.objectMode || options.writableObjectMode) options = { ...options, encoding: null, objectMode: false, writableObjectMode: false };
  }
  Reflect.apply(Transform, this, [{ autoDestroy: true, ...options }]);
  this[kFailure] = null;
  this.bytesWritten = 0;
  // Names that programs look at.
  Object.assign(this, {
    _writeState: state, _handle: handle, _chunkSize: chunkSize, _maxOutputLength: maxOutputLength, _info: Boolean(options?.info),
    _outOffset: 0, _outBuffer: Buffer.allocUnsafe(chunkSize),
    _defaultFullFlushFlag: fullFlush, _defaultFlushFlag: flush, _finishFlushFlag: finishFlush,
  });
  Object.defineProperties(this, { _mode: { value: mode }, _family: { value: family }, _oneShot: { value: false, writable: true } });
}
Object.setPrototypeOf(ZlibBase.prototype, Transform.prototype);
Object.setPrototypeOf(ZlibBase, Transform);

function fail(self, error) {
  self[kFailure] = error;
  closeHandle(self);
  self.destroy(error);
}
function closeHandle(self) {
  self._handle?.close();
  self._handle = null;
}

/** One step on what is left of a chunk; gives [used, made] or throws. */
function step(self, chunk, offset, flush) {
  const room = self._outBuffer.subarray(self._outOffset);
  const failure = self._handle.step(flush, chunk.subarray(offset), room);
  if (failure !== undefined) throw failureOf(self, failure);
  const [outLeft, inLeft] = self._writeState;
  return [chunk.length - offset - inLeft, room.length - outLeft];
}
function takeOutput(self, made) {
  if (made === 0) return null;
  const out = self._outBuffer.subarray(self._outOffset, self._outOffset + made);
  self._outOffset += made;
  if (self._outOffset >= self._chunkSize) {
    self._outBuffer = Buffer.allocUnsafe(self._chunkSize);
    self._outOffset = 0;
  }
  return out;
}

/** How many steps follow one another before others have a turn. */
const STEPS_MAX = 64;

/** Writes a chunk in steps, as fast as the reader takes the output. */
function processChunk(self, chunk, flush, callback) {
  let offset = 0;
  /** One step; true if another can follow at once. */
  const once = () => {
    if (self.destroyed || self._handle === null) return void callback();
    const room = self._outBuffer.length - self._outOffset;
    let used;
    let made;
    try {
      [used, made] = step(self, chunk, offset, flush);
    } catch (error) {
      return void fail(self, error);
    }
    offset += used;
    self.bytesWritten += used;
    const out = takeOutput(self, made);
    const wantsMore = out === null || self.push(out);
    if (self.destroyed) return void callback();
    if (made === room) {
      // There may be more to come of the same input.
      if (wantsMore) return true;
      const read = self._read;
      self._read = (size) => {
        self._read = read;
        run();
        self._read(size);
      };
      return undefined;
    }
    // A decoder that has found its end leaves what follows.
    if (offset < chunk.length) self.push(null);
    return void callback();
  };
  const run = () => {
    for (let i = 0; i < STEPS_MAX; i++) if (once() !== true) return;
    timers.setImmediate(run);
  };
  run();
}

function processChunkSync(self, chunk, flush) {
  const pieces = [];
  let size = 0;
  let offset = 0;
  try {
    for (;;) {
      const room = self._outBuffer.length - self._outOffset;
      const [used, made] = step(self, chunk, offset, flush);
      offset += used;
      const out = takeOutput(self, made);
      if (out !== null) {
        pieces.push(out);
        size += out.length;
        if (size > self._maxOutputLength) throw Object.assign(new RangeError("Memory limit exceeded"), { code: "ERR_BUFFER_TOO_LARGE" });
      }
      if (made < room) break;
    }
  } finally {
    self.bytesWritten = offset;
    closeHandle(self);
  }
  if (pieces.length === 0) return Buffer.alloc(0);
  return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces, size);
}

Object.assign(ZlibBase.prototype, {
  reset() {
    if (this._handle === null) throw nodeError(Error, "ERR_INTERNAL_ASSERTION", "zlib binding closed");
    const failure = this._handle.reset();
    if (failure !== undefined) fail(this, failureOf(this, failure));
  },
  _flush(callback) {
    this._transform(Buffer.alloc(0), "", callback);
  },
  _final(callback) {
    callback();
  },
  flush(kind, callback) {
    if (typeof kind === "function" || (kind === undefined && callback === undefined)) [kind, callback] = [this._defaultFullFlushFlag, kind];
    if (this.writableFinished) {
      if (callback) queueMicrotask(callback);
    } else if (this.writableEnded) {
      if (callback) this.once("end", callback);
    } else {
      this.write(flushChunk(kind), "", callback);
    }
  },
  close(callback) {
    if (callback) finished(this, callback);
    this.destroy();
  },
  _destroy(error, callback) {
    closeHandle(this);
    callback(error);
  },
  _transform(chunk, encoding, callback) {
    let flush = this._defaultFlushFlag;
    // A chunk of flush(), or the last one.
    if (typeof chunk[kFlushFlag] === "number") flush = chunk[kFlushFlag];
    else if (this.writableEnded && this.writableLength === chunk.byteLength) flush = STRENGTH.has(flush) ? stronger(flush, this._finishFlushFlag) : Math.max(flush, this._finishFlushFlag);
    if (this._handle === null) {
      queueMicrotask(callback);
      return;
    }
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    processChunk(this, bytes, flush, callback);
  },
  _processChunk(chunk, flush, callback) {
    if (typeof callback === "function") processChunk(this, chunk, flush, callback);
    else return processChunkSync(this, chunk, flush);
    return undefined;
  },
});
Object.defineProperties(ZlibBase.prototype, {
  _closed: { get() { return this._handle === null; }, configurable: true },
});

function Zlib(options, mode) {
  let windowBits = Z_DEFAULT_WINDOWBITS;
  let level = Z_DEFAULT_COMPRESSION;
  let memLevel = Z_DEFAULT_MEMLEVEL;
  let strategy = Z_DEFAULT_STRATEGY;
  let dictionary;
  if (options) {
    // Decoders may take the window from the data.
    if ((options.windowBits === undefined || options.windowBits === null || options.windowBits === 0) && (mode === INFLATE || mode === GUNZIP || mode === UNZIP)) {
      windowBits = options.windowBits === 0 ? 0 : Z_DEFAULT_WINDOWBITS;
    } else {
      windowBits = inRange(options.windowBits, "options.windowBits", Z_MIN_WINDOWBITS + (mode === GZIP ? 1 : 0), Z_MAX_WINDOWBITS, Z_DEFAULT_WINDOWBITS);
    }
    level = inRange(options.level, "options.level", Z_MIN_LEVEL, Z_MAX_LEVEL, Z_DEFAULT_COMPRESSION);
    memLevel = inRange(options.memLevel, "options.memLevel", Z_MIN_MEMLEVEL, Z_MAX_MEMLEVEL, Z_DEFAULT_MEMLEVEL);
    strategy = inRange(options.strategy, "options.strategy", Z_DEFAULT_STRATEGY, Z_FIXED, Z_DEFAULT_STRATEGY);
    dictionary = dictionaryOf(options.dictionary);
  }
  // Eight bits are too few for these forms, which take nine for them.
  if (windowBits === 8 && (mode === DEFLATERAW || mode === GZIP)) windowBits = 9;
  const handle = new Handle(mode);
  const state = new Uint32Array(2);
  try {
    handle.initialize(windowBits, level, memLevel, strategy, state, null, dictionary);
  } catch (error) {
    throw nodeError(Error, "ERR_ZLIB_INITIALIZATION_FAILED", error.message);
  }
  Reflect.apply(ZlibBase, this, [options, mode, handle, "zlib", state]);
  this._level = level;
  this._strategy = strategy;
}
Object.setPrototypeOf(Zlib.prototype, ZlibBase.prototype);
Object.setPrototypeOf(Zlib, ZlibBase);
Zlib.prototype.params = function params(level, strategy, callback) {
  if (isFiniteNumber(level, "level") && (level < Z_MIN_LEVEL || level > Z_MAX_LEVEL)) throw outOfRange("level", `>= ${Z_MIN_LEVEL} and <= ${Z_MAX_LEVEL}`, level);
  if (isFiniteNumber(strategy, "strategy") && (strategy < Z_DEFAULT_STRATEGY || strategy > Z_FIXED)) throw outOfRange("strategy", `>= ${Z_DEFAULT_STRATEGY} and <= ${Z_FIXED}`, strategy);
  if (this._level === level && this._strategy === strategy) {
    queueMicrotask(callback);
    return;
  }
  this.flush(Z_SYNC_FLUSH, () => {
    if (this._handle === null) throw nodeError(Error, "ERR_INTERNAL_ASSERTION", "zlib binding closed");
    const failure = this._handle.params(level, strategy);
    if (failure !== undefined) {
      fail(this, failureOf(this, failure));
      return;
    }
    this._level = level;
    this._strategy = strategy;
    callback?.();
  });
};

function Brotli(options, mode) {
  const params = new Int32Array(16).fill(-1);
  if (options?.params) {
    for (const [key, value] of Object.entries(options.params)) {
      const at = Number(key);
      if (Number.isNaN(at) || at < 0 || at > 9 || params[at] !== -1) throw nodeError(RangeError, "ERR_BROTLI_INVALID_PARAM", `${key} is not a valid Brotli parameter`);
      if (typeof value !== "number" && typeof value !== "boolean") throw invalidArgType("options.params[key]", "of type number", value);
      params[at] = Number(value);
    }
  }
  const opened = native.zlibOpenBrotli(mode, params);
  if (opened === undefined) throw nodeError(Error, "ERR_ZLIB_INITIALIZATION_FAILED", "Initialization failed");
  const state = new Uint32Array(2);
  Reflect.apply(ZlibBase, this, [options, mode, new BrotliHandle().adopt(opened, state), "brotli", state]);
}
Object.setPrototypeOf(Brotli.prototype, ZlibBase.prototype);
Object.setPrototypeOf(Brotli, ZlibBase);

function Zstd(options, mode) {
  const params = [];
  if (options?.params) {
    for (const [key, value] of Object.entries(options.params)) {
      const number = Number(key);
      if (Number.isNaN(number)) throw nodeError(RangeError, "ERR_ZSTD_INVALID_PARAM", `${key} is not a valid Zstd parameter`);
      if (typeof value !== "number" && typeof value !== "boolean") throw invalidArgType("options.params[key]", "of type number", value);
      params.push(number, Number(value));
    }
  }
  const { pledgedSrcSize } = options ?? {};
  if (pledgedSrcSize !== undefined) inRange(pledgedSrcSize, "options.pledgedSrcSize", 0, Number.MAX_SAFE_INTEGER, 0);
  const opened = native.zlibOpenZstd(mode, Int32Array.from(params), pledgedSrcSize ?? -1);
  if (opened === undefined) throw nodeError(Error, "ERR_ZLIB_INITIALIZATION_FAILED", "Initialization failed");
  const state = new Uint32Array(2);
  Reflect.apply(ZlibBase, this, [options, mode, new ZstdHandle().adopt(opened, state), "zstd", state]);
}
Object.setPrototypeOf(Zstd.prototype, ZlibBase.prototype);
Object.setPrototypeOf(Zstd, ZlibBase);

// ---- the functions

function inputOf(data) {
  if (typeof data === "string") return Buffer.from(data);
  if (ArrayBuffer.isView(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer || (typeof SharedArrayBuffer === "function" && data instanceof SharedArrayBuffer)) return Buffer.from(data);
  throw invalidArgType("buffer", ["string", "Buffer", "TypedArray", "DataView", "ArrayBuffer"], data);
}

const info = (self, buffer) => (self._info ? { engine: self, buffer } : buffer);

function oneShot(Class, bytes, options) {
  const self = new Class(options);
  self._oneShot = true;
  self.on("error", () => {}); // a failed step is the caller's error
  return info(self, processChunkSync(self, bytes, self._finishFlushFlag));
}
const bufferSync = (Class, data, options) => oneShot(Class, inputOf(data), options);

function bufferAsync(Class, data, options, callback) {
  if (typeof options === "function") [options, callback] = [{}, options];
  validateFunction(callback, "callback");
  const bytes = inputOf(data);
  queueMicrotask(() => {
    let result;
    try {
      result = oneShot(Class, bytes, options);
    } catch (error) {
      callback(error);
      return;
    }
    callback(null, result);
  });
}

function crc32(data, value = 0) {
  if (data instanceof ArrayBuffer) data = new Uint8Array(data);
  if (typeof data !== "string" && !ArrayBuffer.isView(data)) throw new TypeError("Failed to execute 'crc32' on 'ZlibUtil': parameter 1 is not of type 'string or ArrayBuffer or ArrayBufferView'.");
  validateUint32(value, "value");
  return native.zlibCrc32(typeof data === "string" ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength), value);
}

// ---- the module

const CLASSES = [
  ["Gzip", Zlib, GZIP, "gzip"], ["Gunzip", Zlib, GUNZIP, "gunzip"], ["Deflate", Zlib, DEFLATE, "deflate"], ["DeflateRaw", Zlib, DEFLATERAW, "deflateRaw"],
  ["Inflate", Zlib, INFLATE, "inflate"], ["InflateRaw", Zlib, INFLATERAW, "inflateRaw"], ["Unzip", Zlib, UNZIP, "unzip"],
  ["BrotliCompress", Brotli, BROTLI_ENCODE, "brotliCompress"], ["BrotliDecompress", Brotli, BROTLI_DECODE, "brotliDecompress"],
  ["ZstdCompress", Zstd, ZSTD_COMPRESS, "zstdCompress"], ["ZstdDecompress", Zstd, ZSTD_DECOMPRESS, "zstdDecompress"],
];
const named = (name, f) => Object.defineProperty(f, "name", { value: name, configurable: true });
const zlib = { crc32 };
const functions = {};
for (const [name, Base, mode, method] of CLASSES) {
  const Class = named(name, function (options) {
    if (!(this instanceof Class)) return new Class(options);
    Reflect.apply(Base, this, [options, mode]);
    return this;
  });
  Object.setPrototypeOf(Class.prototype, Base.prototype);
  Object.setPrototypeOf(Class, Base);
  zlib[name] = Class;
  functions[`create${name}`] = named(`create${name}`, (options) => new Class(options));
  const asynchronous = named(method, (data, options, callback) => bufferAsync(Class, data, options, callback));
  functions[method] = asynchronous;
  functions[`${method}Sync`] = Object.defineProperty(named(`${method}Sync`, (data, options) => bufferSync(Class, data, options)), "length", { value: 1, configurable: true });
}
const codes = {};
for (const name of ["Z_OK", "Z_STREAM_END", "Z_NEED_DICT", "Z_ERRNO", "Z_STREAM_ERROR", "Z_DATA_ERROR", "Z_MEM_ERROR", "Z_BUF_ERROR", "Z_VERSION_ERROR"]) {
  codes[name] = constants[name];
  codes[constants[name]] = name;
}
Object.assign(zlib, functions, { constants: Object.freeze(constants), codes: Object.freeze(codes) });
for (const [name, value] of Object.entries(constants)) if (!(name in zlib)) Object.defineProperty(zlib, name, { value, enumerable: true, configurable: true, writable: false });
export default zlib;
