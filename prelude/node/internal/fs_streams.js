// ReadStream and WriteStream of node:fs. They can be called without `new`, as in Node.js.
import { Buffer } from "../buffer.js";
import { callbacks, fileMode, kFileHandle, validFd } from "../fs.js";
import stream from "../stream.js";
import { invalidArgValue, notImplemented, nodeError, outOfRange, validateAbortSignal, validateBoolean, validateFunction, validateObject, validateString, validateUint32 } from "./errors.js";
import { normalizePath } from "./vfs.js";

const { Readable, Writable, finished } = stream;
const kFs = Symbol("kFs");
const kBusy = Symbol("kIsPerformingIO");
const kDone = Symbol("kIoDone");
const OPERATIONS = ["open", "close", "read", "write", "writev", "fsync"];
const isHandle = (value) => typeof value === "object" && value !== null && value[kFileHandle] === true;

const own = Object.fromEntries(OPERATIONS.map((name) => [name, (...args) => callbacks[name](...args)]));

function operationsOf(fs) {
  validateObject(fs, "options.fs");
  const chosen = {};
  for (const name of OPERATIONS) {
    chosen[name] = fs[name] ?? own[name];
    validateFunction(chosen[name], `options.fs.${name}`);
  }
  return chosen;
}

/** The operations of a stream on a handle of fs/promises. */
function operationsOfHandle(handle) {
  const by = (method, results) => (...args) => {
    const callback = args.pop();
    handle[method](...args.slice(1)).then((value) => callback(null, ...results.map((name) => value[name])), (error) => callback(error));
  };
  return {
    open: () => {
      throw notImplemented("open()");
    },
    close: by("close", []),
    fsync: by("sync", []),
    read: by("read", ["bytesRead", "buffer"]),
    write: by("write", ["bytesWritten", "buffer"]),
    writev: by("writev", ["bytesWritten", "buffers"]),
  };
}

/** Options that both have; sets fd, path, flags, mode and the operations. */
function begin(self, path, given, flags) {
  const options = given === null || given === undefined ? {} : typeof given === "string" ? { encoding: given } : given;
  validateObject(options, "options");
  const { encoding = null, autoClose = true, emitClose = true, signal = null, fd = null, mode = 0o666, fs } = options;
  if (encoding !== "buffer" && encoding !== null && !Buffer.isEncoding(encoding)) throw invalidArgValue("options.encoding", encoding);
  validateBoolean(autoClose, "options.autoClose");
  validateBoolean(emitClose, "options.emitClose");
  if (signal !== null) validateAbortSignal(signal, "options.signal");
  validateString(options.flags ?? flags, "options.flags");
  fileMode(mode, "options.mode", 0o666);
  self[kFs] = fs === undefined ? own : operationsOf(fs);
  self[kBusy] = false;
  if (fd === null) {
    self.fd = null;
    self.path = path instanceof URL || typeof path !== "string" ? decodeURIComponent(normalizePath(path)) : (normalizePath(path), path);
    self.flags = options.flags ?? flags;
    self.mode = mode;
  } else if (isHandle(fd)) {
    if (fs !== undefined) throw notImplemented("FileHandle with fs");
    self[kFs] = operationsOfHandle(fd);
    fd.on("close", () => self.close());
    self.fd = fd.fd ?? null;
  } else {
    self.fd = validFd(fd);
  }
  return options;
}

function construct(self, callback) {
  if (typeof self.fd === "number") return void callback();
  if (typeof self.open === "function") {
    // A script that brings its own open().
    const { emit } = self;
    self.emit = function (...args) {
      if (args[0] === "open") {
        this.emit = emit;
        callback();
        return Reflect.apply(emit, this, args);
      }
      if (args[0] === "error") {
        this.emit = emit;
        callback(args[1]);
        return true;
      }
      return Reflect.apply(emit, this, args);
    };
    return void self.open();
  }
  return void self[kFs].open(self.path, self.flags, self.mode, (error, fd) => {
    if (error) return callback(error);
    self.fd = fd;
    callback();
    self.emit("open", fd);
    return self.emit("ready");
  });
}

function closeFile(self, error, callback) {
  if (self.fd === null || self.fd === undefined) return callback(error);
  const end = (earlier) => {
    self[kFs].close(self.fd, (failure) => callback(failure || earlier));
    self.fd = null;
  };
  if (!self.flush) return end(error);
  return self[kFs].fsync(self.fd, (failure) => end(error || failure));
}
function destroy(self, error, callback) {
  if (self[kBusy]) self.once(kDone, (failure) => closeFile(self, error || failure, callback));
  else closeFile(self, error, callback);
}

const outside = (start, end) => outOfRange("start", `<= "end" (here: ${end})`, start);

export function ReadStream(path, options) {
  if (!(this instanceof ReadStream)) return new ReadStream(path, options);
  const given = begin(this, path, options, "r");
  const { encoding = null, autoClose = true, emitClose = true, start, end = Infinity, highWaterMark = 64 * 1024, signal } = given;
  validateUint32(start ?? 0, "options.start");
  if (end !== Infinity) {
    validateUint32(end, "options.end");
    if ((start ?? 0) > end) throw outside(start, end);
  }
  validateUint32(highWaterMark, "options.highWaterMark");
  this.start = start ?? 0;
  this.end = end;
  this.pos = start ?? 0;
  this.bytesRead = 0;
  Reflect.apply(Readable, this, [{
    highWaterMark, encoding: encoding === "buffer" ? null : encoding, emitClose, autoDestroy: autoClose, signal: signal ?? undefined,
    construct: (callback) => construct(this, callback),
    read: (size) => readMore(this, size),
    destroy: (error, callback) => destroy(this, error, callback),
  }]);
  return this;
}
function readMore(self, wanted) {
  const size = Math.min(self.pos !== undefined ? self.end - self.pos + 1 : self.end - self.bytesRead + 1, wanted);
  if (size <= 0 || self.fd === null) {
    self.push(null);
    return;
  }
  self[kBusy] = true;
  self[kFs].read(self.fd, Buffer.alloc(size), 0, size, self.pos, (error, bytesRead, buffer) => {
    self[kBusy] = false;
    if (self.destroyed) {
      self.emit(kDone, error);
      return;
    }
    if (error) {
      if (self.autoClose) self.destroy(error);
      else self.emit("error", error);
      return;
    }
    if (!(bytesRead > 0)) {
      self.push(null);
      return;
    }
    if (self.pos !== undefined) self.pos += bytesRead;
    self.bytesRead += bytesRead;
    self.push(bytesRead === buffer.byteLength ? buffer : Buffer.from(buffer.buffer, buffer.byteOffset, bytesRead));
  });
}

export function WriteStream(path, options) {
  if (!(this instanceof WriteStream)) return new WriteStream(path, options);
  const given = begin(this, path, options, "w");
  const { encoding = "utf8", autoClose = true, emitClose = true, start, highWaterMark = 64 * 1024, signal, flush = false, fs } = given;
  if (start !== undefined) validateUint32(start, "options.start");
  if (fs !== undefined && fs.write === null && fs.writev === null) throw notImplemented("options.fs.write");
  if (flush !== null) validateBoolean(flush, "options.flush");
  this.start = start;
  this.pos = start;
  this.bytesWritten = 0;
  this.flush = flush ?? false;
  const onlyWrite = fs !== undefined && fs.write && !fs.writev;
  Reflect.apply(Writable, this, [{
    highWaterMark, emitClose, autoDestroy: autoClose, signal: signal ?? undefined, decodeStrings: true, defaultEncoding: encoding ?? "utf8",
    construct: (callback) => construct(this, callback),
    write: (chunk, _encoding, callback) => writeChunk(this, chunk, callback),
    ...(onlyWrite ? {} : { writev: (chunks, callback) => writeChunks(this, chunks.map(({ chunk }) => chunk), callback) }),
    destroy: (error, callback) => destroy(this, error, callback),
  }]);
  return this;
}
function written(self, callback) {
  return (error, count) => {
    self[kBusy] = false;
    if (self.destroyed) {
      callback(error);
      self.emit(kDone, error);
      return false;
    }
    if (error) {
      callback(error);
      return false;
    }
    self.bytesWritten += count;
    if (self.pos !== undefined) self.pos += count;
    return true;
  };
}
function writeChunk(self, chunk, callback) {
  let rest = chunk;
  const after = written(self, callback);
  const next = () => {
    self[kBusy] = true;
    self[kFs].write(self.fd, rest, 0, rest.length, self.pos ?? null, (error, count) => {
      if (!after(error, count)) return;
      rest = rest.subarray(count);
      if (rest.length === 0) callback();
      else if (count === 0) callback(nodeError(Error, "ERR_SYSTEM_ERROR", "write failed"));
      else next();
    });
  };
  next();
}
function writeChunks(self, chunks, callback) {
  const after = written(self, callback);
  self[kBusy] = true;
  self[kFs].writev(self.fd, chunks, self.pos ?? null, (error, count) => {
    if (after(error, count)) callback();
  });
}

for (const [Class, Base, state] of [[ReadStream, Readable, "_readableState"], [WriteStream, Writable, "_writableState"]]) {
  Object.setPrototypeOf(Class.prototype, Base.prototype);
  Object.setPrototypeOf(Class, Base);
  Object.defineProperties(Class.prototype, {
    autoClose: {
      get() { return this[state]?.autoDestroy ?? false; },
      set(value) { if (this[state]) this[state].autoDestroy = value; },
      configurable: true,
    },
    pending: { get() { return this.fd === null; }, configurable: true },
  });
}
ReadStream.prototype.close = function close(callback) {
  if (typeof callback === "function") finished(this, callback);
  this.destroy();
};
WriteStream.prototype.close = function close(callback) {
  if (typeof callback === "function") {
    if (this.closed) {
      queueMicrotask(callback);
      return;
    }
    this.on("close", callback);
  }
  // Without autoClose, finishing does not close the file: that is asked for here.
  if (!this.autoClose) this.on("finish", this.destroy);
  this.end();
};
WriteStream.prototype.destroySoon = WriteStream.prototype.end;

export function createReadStream(path, options = undefined) {
  return new ReadStream(path, options);
}
export function createWriteStream(path, options = undefined) {
  return new WriteStream(path, options);
}
