// node:fs: arguments are checked here, internal/vfs.js does the work. Permissions and owners are
// checked and have no effect, as on the platform. Functions with a callback do their work at once and
// call back in a microtask; arguments that are wrong throw.
import { Buffer } from "./buffer.js";
import {
  invalidArgType, invalidArgValue, missingArgs, nodeError, unsupportedOperation, validateBoolean, validateEncoding, validateFunction, validateInt32, validateInteger, validateObject, validateOneOf, validateString, validateUint32, readOptions,
} from "./internal/errors.js";
import { compileGlob } from "./internal/glob.js";
import { getCwd } from "./internal/cwd.js";
import * as vfs from "./internal/vfs.js";
import { constants } from "./internal/fs_constants.js";

// Options that several functions take: their defaults, and how they are checked.
const SWITCH_OFF = [false, validateBoolean];
const SWITCH_ON = [true, validateBoolean];
const REMOVAL = { maxRetries: [0, validateUint32], recursive: SWITCH_OFF, retryDelay: [0, validateUint32] };
const COPY = {
  dereference: SWITCH_OFF, errorOnExist: SWITCH_OFF, force: SWITCH_ON, preserveTimestamps: SWITCH_OFF, recursive: SWITCH_OFF, verbatimSymlinks: SWITCH_OFF,
  mode: [0, validateUint32], filter: [undefined],
};
const checkEncoding = (encoding, name) => {
  if (encoding !== "buffer" && !Buffer.isEncoding(encoding)) throw invalidArgValue(name, encoding);
};

const { fsError, normalizePath } = vfs;
const { F_OK, R_OK, W_OK, X_OK, O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_SYNC, S_IFMT, S_IFREG, S_IFDIR, S_IFCHR, S_IFLNK, S_IFBLK, S_IFIFO, S_IFSOCK } = constants;
const ID_MAX = 2 ** 32 - 1;
const kBadge = Symbol("kBadge");
export const kFileHandle = Symbol("kFileHandle");

// ---- arguments

export function validFd(fd, name = "fd") {
  if (Object.is(fd, -0)) return 0;
  validateInt32(fd, name, 0);
  return fd;
}

function fileMode(value, name, otherwise = undefined) {
  const mode = value ?? otherwise;
  if (typeof mode === "string") {
    if (!/^[0-7]+$/.test(mode)) throw invalidArgValue(name, mode, "must be a 32-bit unsigned integer or an octal string");
    return parseInt(mode, 8);
  }
  validateUint32(mode, name);
  return mode;
}

const FLAGS = {
  r: O_RDONLY, rs: O_RDONLY | O_SYNC, sr: O_RDONLY | O_SYNC, "r+": O_RDWR, "rs+": O_RDWR | O_SYNC, "sr+": O_RDWR | O_SYNC,
  w: O_TRUNC | O_CREAT | O_WRONLY, wx: O_TRUNC | O_CREAT | O_WRONLY | O_EXCL, xw: O_TRUNC | O_CREAT | O_WRONLY | O_EXCL,
  "w+": O_TRUNC | O_CREAT | O_RDWR, "wx+": O_TRUNC | O_CREAT | O_RDWR | O_EXCL, "xw+": O_TRUNC | O_CREAT | O_RDWR | O_EXCL,
  a: O_APPEND | O_CREAT | O_WRONLY, ax: O_APPEND | O_CREAT | O_WRONLY | O_EXCL, xa: O_APPEND | O_CREAT | O_WRONLY | O_EXCL,
  as: O_APPEND | O_CREAT | O_WRONLY | O_SYNC, sa: O_APPEND | O_CREAT | O_WRONLY | O_SYNC,
  "a+": O_APPEND | O_CREAT | O_RDWR, "ax+": O_APPEND | O_CREAT | O_RDWR | O_EXCL, "xa+": O_APPEND | O_CREAT | O_RDWR | O_EXCL,
  "as+": O_APPEND | O_CREAT | O_RDWR | O_SYNC, "sa+": O_APPEND | O_CREAT | O_RDWR | O_SYNC,
};
function flagsOf(flags, name = "flags") {
  if (typeof flags === "number") {
    validateInt32(flags, name);
    return flags;
  }
  if (flags === null || flags === undefined) return O_RDONLY;
  const value = typeof flags === "string" && Object.hasOwn(FLAGS, flags) ? FLAGS[flags] : undefined;
  if (value === undefined) throw invalidArgValue("flags", flags);
  return value;
}

function validatePosition(position, name) {
  if (typeof position === "number") validateUint32(position, name);
  else if (typeof position !== "bigint" && position !== null) throw invalidArgType(name, ["integer", "bigint", "null"], position);
}

function dateOf(time) {
  if (typeof time === "number" || typeof time === "string") return new Date(time);
  if (typeof time === "bigint") return new Date(Number(time));
  if (time instanceof Date) return time;
  throw invalidArgType("time", ["string", "number", "bigint", "Date"], time);
}

/** Options that may be an encoding; `otherwise` is the encoding if none is given. */
function encodingOptions(options, otherwise) {
  const given = typeof options === "string" || options === null || options === undefined ? { encoding: options ?? undefined } : options;
  validateObject(given, "options");
  const { encoding = otherwise } = given;
  if (encoding !== null && encoding !== "buffer" && !Buffer.isEncoding(encoding)) throw invalidArgValue("options.encoding", encoding);
  return { ...given, encoding };
}
const encoded = (text, encoding) => (encoding === "buffer" ? Buffer.from(text) : Buffer.from(text).toString(encoding));
const view = (buffer) => ArrayBuffer.isView(buffer);

// ---- what is found

export class Stats {
  constructor(badge, stat, { bigint }) {
    if (badge !== kBadge) throw new TypeError("Illegal constructor");
    const number = bigint ? BigInt : Number;
    const type = stat.device ? S_IFCHR : { file: S_IFREG, directory: S_IFDIR, symlink: S_IFLNK }[stat.kind];
    this.dev = number(stat.device);
    this.ino = number(0);
    this.mode = number(0o444 | (stat.writable ? 0o222 : 0) | type);
    this.nlink = number(1);
    for (const name of ["uid", "gid", "rdev"]) this[name] = number(0);
    this.size = number(stat.size);
    for (const name of ["blksize", "blocks"]) this[name] = number(0);
    this.atimeMs = number(0);
    this.mtimeMs = number(Math.trunc(stat.mtime));
    this.ctimeMs = number(Math.trunc(stat.mtime));
    this.birthtimeMs = number(0);
    if (bigint) {
      this.atimeNs = 0n;
      this.mtimeNs = BigInt(Math.trunc(stat.mtime)) * 1_000_000n;
      this.ctimeNs = this.mtimeNs;
      this.birthtimeNs = 0n;
    }
    this.atime = new Date(0);
    this.mtime = new Date(stat.mtime);
    this.ctime = new Date(stat.mtime);
    this.birthtime = new Date(0);
  }
  #is(type) {
    return (Number(this.mode) & S_IFMT) === type;
  }
  isBlockDevice() { return this.#is(S_IFBLK); }
  isCharacterDevice() { return this.#is(S_IFCHR); }
  isDirectory() { return this.#is(S_IFDIR); }
  isFIFO() { return this.#is(S_IFIFO); }
  isFile() { return this.#is(S_IFREG); }
  isSocket() { return this.#is(S_IFSOCK); }
  isSymbolicLink() { return this.#is(S_IFLNK); }
}

const DIRENT = { file: 1, directory: 2, link: 3, fifo: 4, socket: 5, char: 6, block: 7 };
export class Dirent {
  #type;
  constructor(name, type, path) {
    this.name = name;
    this.parentPath = path;
    this.#type = type;
  }
  isDirectory() { return this.#type === DIRENT.directory; }
  isFile() { return this.#type === DIRENT.file; }
  isBlockDevice() { return this.#type === DIRENT.block; }
  isCharacterDevice() { return this.#type === DIRENT.char; }
  isSymbolicLink() { return this.#type === DIRENT.link; }
  isFIFO() { return this.#type === DIRENT.fifo; }
  isSocket() { return this.#type === DIRENT.socket; }
}

const dirClosed = () => nodeError(Error, "ERR_DIR_CLOSED", "Directory is closed");
export class Dir {
  #entries;
  #path;
  #encoding;
  constructor(entries, path, options) {
    if (entries === null || entries === undefined) throw missingArgs("handle");
    const { encoding } = readOptions(options, { encoding: ["utf8", validateString] });
    this.#entries = entries;
    this.#path = path;
    this.#encoding = encoding;
  }
  get path() {
    return this.#path;
  }
  read(callback = undefined) {
    const promise = new Promise((resolve) => resolve(this.readSync()));
    if (callback === undefined) return promise;
    validateFunction(callback, "callback");
    promise.then((entry) => queueMicrotask(() => callback(null, entry)), (error) => queueMicrotask(() => callback(error, null)));
    return undefined;
  }
  readSync() {
    if (this.#entries === undefined) throw dirClosed();
    const entry = this.#entries.shift();
    if (entry === undefined) return null;
    return new Dirent(encoded(entry.name, this.#encoding), entry.type, entry.parentPath);
  }
  close(callback = undefined) {
    this.closeSync();
    if (callback === undefined) return Promise.resolve();
    validateFunction(callback, "callback");
    queueMicrotask(() => callback(null));
    return undefined;
  }
  closeSync() {
    if (this.#entries === undefined) throw dirClosed();
    this.#entries = undefined;
  }
  async *entries() {
    for (;;) {
      const entry = await this.read();
      if (entry === null) return;
      yield entry;
    }
  }
  [Symbol.asyncIterator]() {
    return this.entries();
  }
  async [Symbol.asyncDispose]() {
    await this.close();
  }
  [Symbol.dispose]() {
    this.closeSync();
  }
}

// ---- functions that work at once

const sync = {
  accessSync(path, mode = F_OK) {
    const at = normalizePath(path);
    validateInteger(mode ?? F_OK, "mode", 0, F_OK | R_OK | W_OK | X_OK);
    const found = (mode & X_OK) === 0 ? vfs.stat(at) : null;
    if (found === null || ((mode & W_OK) !== 0 && !found.writable)) throw fsError("ENOENT", "access", at);
  },
  existsSync(path) {
    try {
      sync.accessSync(path);
      return true;
    } catch {
      return false;
    }
  },
  appendFileSync(path, data, options = {}) {
    const given = typeof options === "string" || options === null ? { encoding: options ?? undefined } : options ?? {};
    validateObject(given, "options");
    return sync.writeFileSync(path, data, { ...given, flag: given.flag ?? "a" });
  },
  chmodSync(path, mode) {
    fileMode(mode, "mode");
    mustExist(normalizePath(path), "chmod");
  },
  chownSync(path, uid, gid) {
    owner(uid, gid);
    mustExist(normalizePath(path), "chown");
  },
  closeSync(fd) {
    vfs.close(validFd(fd));
  },
  copyFileSync(src, dest, mode = 0) {
    const from = normalizePath(src);
    const to = normalizePath(dest);
    validateOneOf(mode, "mode", [0, constants.COPYFILE_EXCL, constants.COPYFILE_FICLONE_FORCE, constants.COPYFILE_FICLONE]);
    if (mode & constants.COPYFILE_FICLONE_FORCE) throw unsupportedOperation();
    if (mode & constants.COPYFILE_EXCL && sync.existsSync(dest)) throw fsError("EEXIST", "copyFile", to);
    vfs.renameOrCopy(from, to, true);
  },
  cpSync(src, dest, options = {}) {
    const { dereference, errorOnExist, force, mode, recursive, filter } = readOptions(options, COPY);
    if (mode & constants.COPYFILE_FICLONE_FORCE) throw invalidArgValue("options.mode", "COPYFILE_FICLONE_FORCE is not supported");
    if (filter !== undefined) {
      if (typeof filter !== "function") throw invalidArgType("options.filter", "of type function", filter);
      throw unsupportedOperation();
    }
    vfs.cp(normalizePath(src), normalizePath(dest), { dereference, recursive, force, errorOnExist });
  },
  fchmodSync(fd, mode) {
    validFd(fd);
    fileMode(mode, "mode");
    mustBeOpen(fd);
  },
  fchownSync(fd, uid, gid) {
    owner(uid, gid);
    mustBeOpen(validFd(fd));
  },
  fdatasyncSync(fd) {
    mustBeOpen(validFd(fd));
  },
  fsyncSync(fd) {
    mustBeOpen(validFd(fd));
  },
  fstatSync(fd, options = {}) {
    const { bigint } = statOptions(options);
    if (typeof fd !== "number") throw invalidArgType("fd", "of type number", fd);
    return new Stats(kBadge, vfs.stat(validFd(fd)), { bigint });
  },
  ftruncateSync(fd, length = 0) {
    validateUint32(length, "len");
    vfs.truncate(validFd(fd), length);
  },
  futimesSync(fd, atime, mtime) {
    dateOf(atime);
    vfs.setModified(validFd(fd), dateOf(mtime).getTime());
  },
  globSync(pattern, options = {}) {
    return [...globEntries(pattern, options)];
  },
  lchmodSync(path, mode) {
    fileMode(mode, "mode");
    mustExist(normalizePath(path), "lchmod", false);
  },
  lchownSync(path, uid, gid) {
    owner(uid, gid);
    mustExist(normalizePath(path), "lchown", false);
  },
  lutimesSync(path, atime, mtime) {
    dateOf(atime);
    vfs.setModified(normalizePath(path), dateOf(mtime).getTime(), false);
  },
  linkSync(existing, path) {
    vfs.link(normalizePath(path), normalizePath(existing), false);
  },
  lstatSync(path, options = {}) {
    return statOf(path, options, "lstat", false);
  },
  mkdirSync(path, options = {}) {
    const given = typeof options === "number" || typeof options === "string" ? { mode: options } : options ?? {};
    validateObject(given, "options");
    const { recursive = false, mode = 0o777 } = given;
    validateBoolean(recursive, "options.recursive");
    fileMode(mode, "mode");
    return vfs.mkdir(normalizePath(path), recursive);
  },
  mkdtempSync(prefix, options = {}) {
    const { encoding } = encodingOptions(options, "utf8");
    return encoding === "buffer" ? Buffer.from(vfs.mkdtemp(normalizePath(prefix, encoding))) : vfs.mkdtemp(normalizePath(prefix, encoding));
  },
  opendirSync(path, options = {}) {
    const { encoding, recursive } = readOptions(options, { encoding: ["utf8", checkEncoding], bufferSize: [32, validateUint32], recursive: SWITCH_OFF });
    return new Dir(vfs.readdir(normalizePath(path), recursive), path, { encoding });
  },
  openSync(path, flags = "r", mode = 0o666) {
    const at = normalizePath(path);
    const bits = flagsOf(flags);
    fileMode(mode, "mode", 0o666);
    const access = bits & (O_WRONLY | O_RDWR);
    return vfs.open(at, {
      read: access !== O_WRONLY, write: access !== O_RDONLY, append: (bits & O_APPEND) !== 0, exclusive: (bits & O_EXCL) !== 0,
      create: (bits & O_CREAT) !== 0, truncate: (bits & O_TRUNC) !== 0,
    });
  },
  readdirSync(path, options = {}) {
    const given = typeof options === "string" || options === null ? { encoding: options ?? undefined } : options;
    validateObject(given, "options");
    const { encoding = "utf8", withFileTypes = false, recursive = false } = given;
    if (encoding !== "buffer" && !Buffer.isEncoding(encoding)) throw invalidArgValue("options.encoding", encoding);
    validateBoolean(withFileTypes, "options.withFileTypes");
    validateBoolean(recursive, "options.recursive");
    const at = normalizePath(path);
    const found = vfs.readdir(at, recursive);
    if (withFileTypes) return found.map(({ name, type, parentPath }) => new Dirent(encoded(name, encoding), type, parentPath));
    // Names below the folder are relative to the root, as on the platform.
    return found.map(({ name, parentPath }) => encoded(recursive ? `${parentPath}/${name}`.replace(/^\/+/, "") : name, encoding));
  },
  readFileSync(target, options = {}) {
    const { encoding, flag = "r" } = encodingOptions(options, null);
    flagsOf(flag);
    const bytes = vfs.readAll(typeof target === "number" ? validFd(target) : normalizePath(target));
    return typeof encoding === "string" && encoding !== "buffer" ? bytes.toString(encoding) : bytes;
  },
  readlinkSync(path, options = {}) {
    const { encoding } = encodingOptions(options, "utf8");
    return encoded(vfs.readLink(normalizePath(path), true), encoding);
  },
  readSync(fd, buffer, offsetOrOptions = {}, length = undefined, position = null) {
    const args = readArgs(fd, buffer, offsetOrOptions, length, position);
    if (args.buffer.length === 0) return 0;
    return vfs.read(args.fd, [args.buffer], args.position);
  },
  readvSync(fd, buffers, position = null) {
    validFd(fd);
    validateBuffers(buffers);
    validatePosition(position, "position");
    return buffers.length === 0 ? 0 : vfs.read(fd, buffers, position);
  },
  realpathSync(path, options = {}) {
    const { encoding } = encodingOptions(options, "utf8");
    return encoded(vfs.readLink(normalizePath(path), false), encoding);
  },
  renameSync(src, dest) {
    vfs.renameOrCopy(normalizePath(src), normalizePath(dest), false);
  },
  rmdirSync(path, options = {}) {
    const { recursive } = readOptions(options, REMOVAL);
    vfs.rm(normalizePath(path), { recursive, force: false, dirOnly: true });
  },
  rmSync(path, options = {}) {
    const { force, recursive } = readOptions(options, { force: SWITCH_OFF, ...REMOVAL });
    vfs.rm(normalizePath(path), { recursive, force, dirOnly: false });
  },
  statSync(path, options = {}) {
    return statOf(path, options, "stat", true);
  },
  statfsSync(path, options = {}) {
    normalizePath(path);
    const { bigint } = readOptions(options, { bigint: SWITCH_OFF });
    const zero = bigint ? 0n : 0;
    return { type: zero, bsize: zero, blocks: zero, bfree: zero, bavail: zero, files: zero, ffree: zero };
  },
  symlinkSync(target, path, type = null) {
    validateOneOf(type, "type", ["dir", "file", "junction", null]);
    vfs.link(normalizePath(path), normalizePath(target), true);
  },
  truncateSync(path, length = 0) {
    validateUint32(length, "len");
    vfs.truncate(normalizePath(path), length);
  },
  unlinkSync(path) {
    vfs.unlink(normalizePath(path));
  },
  utimesSync(path, atime, mtime) {
    dateOf(atime);
    vfs.setModified(normalizePath(path), dateOf(mtime).getTime());
  },
  writeFileSync(target, data, options = {}) {
    const at = typeof target === "number" ? validFd(target) : normalizePath(target);
    const given = typeof options === "string" || options === null || options === undefined ? { encoding: options ?? undefined } : options;
    validateObject(given, "options");
    const { mode = 0o666, flag = "w", flush = false } = given;
    const encoding = given.encoding ?? "utf8";
    if (encoding !== "buffer" && !Buffer.isEncoding(encoding)) throw invalidArgValue("options.encoding", encoding);
    validateBoolean(flush, "options.flush");
    fileMode(mode, "options.mode", 0o666);
    const bits = flagsOf(flag);
    if ((bits & (O_WRONLY | O_RDWR | O_APPEND)) === 0) throw invalidArgValue("flag", flag, "must be indicate write or append");
    const bytes = typeof data === "string" ? Buffer.from(data, encoding) : data;
    if (!view(bytes)) throw invalidArgType("data", ["string", "Buffer", "TypedArray", "DataView"], data);
    return vfs.writeAll(at, bytes, { append: (bits & O_APPEND) !== 0, exclusive: (bits & O_EXCL) !== 0 });
  },
  writeSync(fd, buffer, offsetOrOptions = null, length = undefined, position = undefined) {
    const args = writeArgs(fd, buffer, offsetOrOptions, length, position);
    return vfs.write(args.fd, [args.buffer], args.position);
  },
  writevSync(fd, buffers, position = null) {
    validFd(fd);
    validateBuffers(buffers);
    validatePosition(position, "position");
    return buffers.length === 0 ? 0 : vfs.write(fd, buffers, position);
  },
};
Object.defineProperty(sync.realpathSync, "native", { value: sync.realpathSync, enumerable: true, writable: true, configurable: true });

function mustExist(path, syscall, follow = true) {
  if (vfs.stat(path, follow) === null) throw fsError("ENOENT", syscall, path);
}
function mustBeOpen(fd) {
  if (!vfs.isOpen(fd)) throw fsError("EBADF", "fstat");
}
function owner(uid, gid) {
  validateInteger(uid, "uid", -1, ID_MAX);
  validateInteger(gid, "gid", -1, ID_MAX);
}
function statOptions(options) {
  return readOptions(options, { bigint: SWITCH_OFF, throwIfNoEntry: SWITCH_ON });
}
function statOf(path, options, syscall, follow) {
  const { bigint, throwIfNoEntry } = statOptions(options);
  const at = normalizePath(path);
  const found = vfs.stat(at, follow);
  if (found !== null) return new Stats(kBadge, found, { bigint });
  if (throwIfNoEntry) throw fsError("ENOENT", syscall, at);
  return undefined;
}
function validateBuffers(buffers) {
  if (!Array.isArray(buffers) || !buffers.every(view)) throw invalidArgType("buffer", ["ArrayBufferView[]"], buffers);
}
function readArgs(fd, buffer, offsetOrOptions, length, position) {
  validFd(fd);
  if (!view(buffer)) throw invalidArgType("buffer", ["Buffer", "TypedArray", "DataView"], buffer);
  let offset = offsetOrOptions;
  if (offsetOrOptions !== null && typeof offsetOrOptions === "object") {
    ({ offset = 0, position = null } = offsetOrOptions);
    length = offsetOrOptions.length ?? buffer.byteLength - offset;
  } else if (typeof offsetOrOptions !== "number") {
    throw invalidArgType("offset", ["number", "object"], offsetOrOptions);
  }
  length ??= buffer.byteLength - offset;
  validateUint32(offset, "offset");
  validateUint32(length, "length");
  validatePosition(position, "position");
  if (buffer.byteOffset + offset + length > buffer.buffer.byteLength) throw invalidArgValue("offset", buffer.byteOffset + offset, "out of bounds");
  return { fd, buffer: Buffer.from(buffer.buffer, buffer.byteOffset + offset, length), position };
}
function writeArgs(fd, buffer, offsetOrOptions, length, position) {
  validFd(fd);
  if (!view(buffer)) {
    if (typeof buffer !== "string") throw invalidArgType("buffer", ["string", "Buffer", "TypedArray", "DataView"], buffer);
    validatePosition(offsetOrOptions, "position");
    validateEncoding(buffer, length);
    return { fd, buffer: Buffer.from(buffer, length ?? undefined), position: offsetOrOptions };
  }
  let offset = offsetOrOptions;
  if (offsetOrOptions !== null && typeof offsetOrOptions === "object") {
    ({ offset = 0, position = null } = offsetOrOptions);
    length = offsetOrOptions.length ?? buffer.byteLength - (offset ?? 0);
  }
  offset ??= 0;
  validateInteger(offset, "offset", 0);
  length ??= buffer.byteLength - offset;
  position ??= null;
  validatePosition(position, "position");
  validateInteger(length, "length", 0);
  const outside = (name) => nodeError(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", `"${name}" is outside of buffer bounds`);
  if (offset > buffer.byteLength) throw outside("offset");
  if (length > buffer.byteLength - offset) throw outside("length");
  return { fd, buffer: Buffer.from(buffer.buffer, buffer.byteOffset + offset, length), position };
}

function* globEntries(pattern, options) {
  const patterns = typeof pattern === "string" ? [pattern] : [...pattern];
  for (const each of patterns) validateString(each, "pattern");
  validateObject(options, "options");
  const cwd = options.cwd instanceof URL ? decodeURIComponent(options.cwd.pathname) : options.cwd ?? getCwd();
  validateString(cwd, "options.cwd");
  const { withFileTypes = false, exclude } = options;
  const refuse = Array.isArray(exclude) ? compileGlob(exclude).matches : () => false;
  const list = (path) => {
    try {
      return vfs.readdir(normalizePath(path), false);
    } catch {
      return [];
    }
  };
  for (const { path, name, parentPath, type } of compileGlob(patterns).walk(cwd, list)) {
    if (refuse(path)) continue;
    const entry = withFileTypes ? new Dirent(name, type, parentPath) : path;
    if (typeof exclude === "function" && exclude(withFileTypes ? entry : path)) continue;
    yield entry;
  }
}

// ---- with a callback

const ARGUMENT_ERRORS = new Set(["ERR_INVALID_ARG_TYPE", "ERR_INVALID_ARG_VALUE", "ERR_OUT_OF_RANGE", "ERR_BUFFER_OUT_OF_BOUNDS", "ERR_UNSUPPORTED_OPERATION", "ERR_MISSING_ARGS"]);

/** Runs `work` and calls back in a microtask: with null and what it returns, or with its error. */
function callBack(callback, work, ...more) {
  validateFunction(callback, "callback");
  let values;
  try {
    values = [null, work(), ...more];
  } catch (error) {
    if (ARGUMENT_ERRORS.has(error.code)) throw error;
    values = [error];
  }
  queueMicrotask(() => callback(...values));
}

/** They change nothing. */
const HARMLESS = new Set(["access", "chmod", "chown", "fchmod", "fchown", "lchmod", "lchown", "stat", "lstat", "fstat", "fdatasync", "readFile", "readdir", "readlink", "realpath", "statfs"]);

/** fs.name(...args, callback) of fs.nameSync(...args). `optional` arguments may be left out. */
function withCallback(name, required, optional) {
  const run = sync[`${name}Sync`];
  const f = {
    [name](...args) {
      let at = args.findIndex((arg, i) => typeof arg === "function" && i >= required);
      if (at < 0) at = required + optional;
      if (typeof args[at] !== "function" && HARMLESS.has(name)) {
        // Wrong arguments before the callback are told first.
        try {
          run(...args.slice(0, at));
        } catch (error) {
          if (ARGUMENT_ERRORS.has(error.code)) throw error;
        }
      }
      return callBack(args[at], () => run(...args.slice(0, at)));
    },
  }[name];
  return Object.defineProperty(f, "length", { value: required + optional + 1, configurable: true });
}

const callbacks = {};
for (const [name, required, optional] of [
  ["access", 1, 1], ["chmod", 2, 0], ["chown", 3, 0], ["copyFile", 2, 1], ["cp", 2, 1], ["fchmod", 2, 0], ["fchown", 3, 0], ["fdatasync", 1, 0],
  ["fstat", 1, 1], ["ftruncate", 1, 1], ["futimes", 3, 0], ["glob", 1, 1], ["lchmod", 2, 0], ["lchown", 3, 0], ["link", 2, 0], ["lstat", 1, 1],
  ["lutimes", 3, 0], ["mkdir", 1, 1], ["mkdtemp", 1, 1], ["open", 1, 2], ["opendir", 1, 1], ["readFile", 1, 1], ["readdir", 1, 1], ["readlink", 1, 1],
  ["realpath", 1, 1], ["rename", 2, 0], ["rm", 1, 1], ["rmdir", 1, 1], ["stat", 1, 1], ["statfs", 1, 1], ["symlink", 2, 1], ["truncate", 1, 1],
  ["unlink", 1, 0], ["utimes", 3, 0],
]) callbacks[name] = withCallback(name, required, optional);
callbacks.realpath.native = callbacks.realpath;

const nothing = () => {};
Object.assign(callbacks, {
  close(fd, callback = nothing) {
    validFd(fd);
    callBack(callback, () => sync.closeSync(fd));
  },
  fsync(fd, callback = nothing) {
    validFd(fd);
    callBack(callback, () => sync.fsyncSync(fd));
  },
  exists(path, callback) {
    validateFunction(callback, "callback");
    queueMicrotask(() => callback(sync.existsSync(path)));
  },
  appendFile(path, data, options, callback) {
    if (typeof options === "function") [options, callback] = [{}, options];
    callBack(callback, () => void sync.appendFileSync(path, data, options));
  },
  writeFile(path, data, options, callback) {
    if (typeof options === "function") [options, callback] = [{}, options];
    callBack(callback, () => void sync.writeFileSync(path, data, options));
  },
  read(fd, buffer, offset, length, position, callback) {
    const args = [buffer, offset, length, position];
    const at = args.findIndex((arg) => typeof arg === "function");
    if (at >= 0) {
      callback = args[at];
      args.splice(at);
    }
    validateFunction(callback, "callback");
    if (!view(args[0]) && args.length <= 1) {
      // read(fd[, options], callback)
      const { buffer: into = Buffer.alloc(16384), ...rest } = args[0] ?? {};
      args[0] = into;
      args[1] = rest;
    }
    callBack(callback, () => sync.readSync(fd, args[0], args[1] ?? {}, args[2] ?? undefined, args[3] ?? null), args[0]);
  },
  readv(fd, buffers, position, callback) {
    if (typeof position === "function") [position, callback] = [null, position];
    callBack(callback, () => sync.readvSync(fd, buffers, position ?? null), buffers);
  },
  write(fd, buffer, ...args) {
    const at = args.findIndex((arg) => typeof arg === "function");
    const callback = at < 0 ? undefined : args[at];
    validateFunction(callback, "callback");
    callBack(callback, () => sync.writeSync(fd, buffer, ...args.slice(0, at)), buffer);
  },
  writev(fd, buffers, position, callback) {
    if (typeof position === "function") [position, callback] = [null, position];
    callBack(callback, () => sync.writevSync(fd, buffers, position ?? null), buffers);
  },
  watch() {
    throw unsupportedOperation();
  },
  watchFile() {
    throw unsupportedOperation();
  },
  unwatchFile() {
    throw unsupportedOperation();
  },
});
for (const [name, length] of [["appendFile", 4], ["writeFile", 4], ["read", 6], ["write", 6]]) Object.defineProperty(callbacks[name], "length", { value: length, configurable: true });
const kArgs = require("./util.js").kCustomPromisifyArgs;
for (const [name, args] of [["read", ["bytesRead", "buffer"]], ["write", ["bytesWritten", "buffer"]], ["readv", ["bytesRead", "buffers"]], ["writev", ["bytesWritten", "buffers"]]]) {
  Object.defineProperty(callbacks[name], kArgs, { value: args });
}
Object.defineProperty(callbacks.exists, Symbol.for("nodejs.util.promisify.custom"), { value: async (path) => sync.existsSync(path), configurable: true });

async function openAsBlob(path, options = {}) {
  const { type } = readOptions(options, { type: ["", validateString] });
  return new Blob([vfs.readAll(normalizePath(path))], { type });
}

const fs = {
  constants, F_OK, R_OK, W_OK, X_OK, promises: null, Dirent, Dir, Stats, ...callbacks, ...sync, openAsBlob,
};
export { callbacks, fileMode, flagsOf, globEntries, sync };
export default fs;

// Both know the functions above.
const { promises } = require("./internal/fs_promises.js");
const streams = require("./internal/fs_streams.js");
fs.promises = promises;
Object.assign(fs, {
  WriteStream: streams.WriteStream, ReadStream: streams.ReadStream, FileWriteStream: streams.WriteStream, FileReadStream: streams.ReadStream,
  createReadStream: streams.createReadStream, createWriteStream: streams.createWriteStream,
});
