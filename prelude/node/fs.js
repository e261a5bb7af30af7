// node:fs: the synchronous functions on memfs.js; the others are made from those.
import { Readable, Writable } from "readable-stream";
import { Buffer } from "./buffer.js";
import { invalidArgType, nodeError } from "./internal/errors.js";
import { DEVICE, DIRECTORY, FILE, find, fsError, LINK, locate, Node, partsOf } from "./internal/memfs.js";
import { unsupported } from "./internal/stub.js";
import pathModule from "./path.js";
import { fileURLToPath } from "./url.js";

const constants = {
  F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, COPYFILE_EXCL: 1, O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 0o100, O_EXCL: 0o200,
  O_TRUNC: 0o1000, O_APPEND: 0o2000, S_IFMT: 0o170000, S_IFREG: FILE, S_IFDIR: DIRECTORY, S_IFLNK: LINK, S_IFCHR: DEVICE,
  S_IRWXU: 0o700, S_IRUSR: 0o400, S_IWUSR: 0o200, S_IXUSR: 0o100,
};
const FLAGS = { r: 0, "r+": 2, rs: 0, "rs+": 2, w: 0o1101, wx: 0o1301, "w+": 0o1102, "wx+": 0o1302, a: 0o2101, ax: 0o2301, "a+": 0o2102, "ax+": 0o2302, as: 0o2101 };
const DESCRIPTORS_MAX = 4096;

function pathText(path) {
  if (path instanceof URL) return fileURLToPath(path);
  const text = ArrayBuffer.isView(path) ? Buffer.from(path).toString() : path;
  if (typeof text !== "string") throw invalidArgType("path", "of type string or an instance of Buffer or URL", path);
  if (text.includes("\0")) throw nodeError(TypeError, "ERR_INVALID_ARG_VALUE", "The argument 'path' must be a string, Uint8Array, or URL without null bytes.");
  return text;
}

function flagBits(flag) {
  if (typeof flag === "number") return flag;
  if (!Object.hasOwn(FLAGS, flag)) throw nodeError(TypeError, "ERR_INVALID_ARG_VALUE", `The argument 'flags' is invalid. Received '${flag}'`);
  return FLAGS[flag];
}

const encodingOf = (options) => (typeof options === "string" ? options : options?.encoding) ?? null;
const encoded = (bytes, options) => {
  const encoding = encodingOf(options);
  return encoding === null || encoding === "buffer" ? bytes : bytes.toString(encoding);
};
const bytesOf = (data, options) => {
  if (typeof data === "string") return Buffer.from(data, encodingOf(options) ?? "utf8");
  if (ArrayBuffer.isView(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  throw invalidArgType("data", "of type string or an instance of Buffer, TypedArray, or DataView", data);
};

// ---- Stats and directory entries ----

class Kind {
  #type;
  constructor(type) {
    this.#type = type;
  }
  isFile() { return this.#type === FILE; }
  isDirectory() { return this.#type === DIRECTORY; }
  isSymbolicLink() { return this.#type === LINK; }
  isCharacterDevice() { return this.#type === DEVICE; }
  isBlockDevice() { return false; }
  isFIFO() { return false; }
  isSocket() { return false; }
}

export class Stats extends Kind {
  constructor(node, bigint) {
    super(node.type);
    const number = bigint ? (n) => BigInt(Math.trunc(n)) : (n) => n;
    const size = node.type === FILE ? node.size : node.type === LINK ? node.target.length : 0;
    Object.assign(this, {
      dev: number(0), mode: number(node.type | node.mode), nlink: number(node.links), uid: number(0), gid: number(0), rdev: number(0),
      blksize: number(4096), ino: number(node.inode), size: number(size), blocks: number(Math.ceil(size / 512)),
    });
    for (const name of ["atime", "mtime", "ctime", "birthtime"]) {
      this[`${name}Ms`] = number(node[name]);
      this[name] = new Date(node[name]);
    }
  }
}

export class Dirent extends Kind {
  constructor(name, node, parentPath) {
    super(node.type);
    Object.assign(this, { name, parentPath, path: parentPath });
  }
}

// ---- Descriptors ----

const descriptors = new Map(); // number -> { node, at, bits, path }
let lastDescriptor = 2;

function descriptor(fd, syscall) {
  if (typeof fd !== "number") throw invalidArgType("fd", "of type number", fd);
  const found = descriptors.get(fd);
  if (found === undefined) throw fsError("EBADF", syscall);
  return found;
}

/** What a path or a descriptor names, opened as `flag` says. */
function opened(target, flag, mode, syscall) {
  if (typeof target === "number") return descriptor(target, syscall);
  const path = pathText(target);
  const bits = flagBits(flag);
  const place = locate(path, syscall);
  let { node } = place;
  if (node === undefined) {
    if (!(bits & constants.O_CREAT)) throw fsError("ENOENT", syscall, path);
    if (path.endsWith("/")) throw fsError("EISDIR", syscall, path);
    checkWritable(place.parent, syscall, path);
    node = new Node(FILE, mode ?? 0o666);
    place.parent.entries.set(place.name, node);
  } else if (bits & constants.O_EXCL) {
    throw fsError("EEXIST", syscall, path);
  }
  const writes = (bits & 3) !== constants.O_RDONLY;
  if (writes && node.type === DIRECTORY) throw fsError("EISDIR", syscall, path);
  if (bits & constants.O_TRUNC && writes) node.truncate(0);
  return { node, at: 0, bits, path };
}

function checkWritable(directory, syscall, path) {
  if (!(directory.mode & 0o200)) throw fsError("EPERM", syscall, path);
}

const sync = {
  openSync(path, flags = "r", mode = 0o666) {
    if (descriptors.size >= DESCRIPTORS_MAX) throw Object.assign(new Error("EMFILE: too many open files, open"), { code: "EMFILE", syscall: "open" });
    const fd = ++lastDescriptor;
    descriptors.set(fd, opened(pathText(path), flags, mode, "open"));
    return fd;
  },
  closeSync(fd) {
    descriptor(fd, "close");
    descriptors.delete(fd);
  },
  readSync(fd, buffer, offsetOrOptions = 0, length = undefined, position = undefined) {
    const options = typeof offsetOrOptions === "object" && offsetOrOptions !== null ? offsetOrOptions : { offset: offsetOrOptions, length, position };
    const file = descriptor(fd, "read");
    if (file.node.type === DIRECTORY) throw fsError("EISDIR", "read");
    const view = Buffer.from(buffer.buffer, buffer.byteOffset, buffer.byteLength);
    const offset = options.offset ?? 0;
    const at = typeof options.position === "number" && options.position >= 0 ? options.position : file.at;
    const got = file.node.read(view.subarray(offset, offset + (options.length ?? view.length - offset)), at);
    if (at === file.at && !(typeof options.position === "number" && options.position >= 0)) file.at += got;
    return got;
  },
  writeSync(fd, data, offsetOrPosition = undefined, lengthOrEncoding = undefined, position = undefined) {
    const file = descriptor(fd, "write");
    if ((file.bits & 3) === constants.O_RDONLY) throw fsError("EBADF", "write");
    let bytes;
    let at = position;
    if (typeof data === "string") {
      bytes = Buffer.from(data, lengthOrEncoding ?? "utf8");
      at = offsetOrPosition;
    } else {
      const offset = offsetOrPosition ?? 0;
      bytes = bytesOf(data).subarray(offset, offset + (lengthOrEncoding ?? data.byteLength - offset));
    }
    const start = file.bits & constants.O_APPEND ? file.node.size : typeof at === "number" ? at : file.at;
    file.node.write(bytes, start);
    if (typeof at !== "number") file.at = start + bytes.length;
    return bytes.length;
  },
  fstatSync: (fd, options = {}) => new Stats(descriptor(fd, "fstat").node, options.bigint),
  ftruncateSync: (fd, length = 0) => descriptor(fd, "ftruncate").node.truncate(length),
  fsyncSync: (fd) => void descriptor(fd, "fsync"),
  fdatasyncSync: (fd) => void descriptor(fd, "fdatasync"),
  futimesSync(fd, atime, mtime) {
    touch(descriptor(fd, "futime").node, atime, mtime);
  },
  fchmodSync: (fd, mode) => void (descriptor(fd, "fchmod").node.mode = mode & 0o7777),

  readFileSync(path, options = undefined) {
    const { node } = opened(path, options?.flag ?? "r", undefined, "open");
    if (node.type === DIRECTORY) throw fsError("EISDIR", "read");
    if (node.device) {
      if (node.device(Buffer.alloc(1)) > 0) throw fsError("EINVAL", "read"); // has no end
      return encoded(Buffer.alloc(0), options);
    }
    return encoded(node.content(), options);
  },
  writeFileSync(path, data, options = undefined) {
    const bytes = bytesOf(data, options);
    const file = opened(path, options?.flag ?? "w", options?.mode, "open");
    file.node.write(bytes, file.bits & constants.O_APPEND ? file.node.size : 0);
  },
  appendFileSync(path, data, options = undefined) {
    sync.writeFileSync(path, data, { ...(typeof options === "string" ? { encoding: options } : options), flag: options?.flag ?? "a" });
  },
  truncateSync: (path, length = 0) => opened(path, "r+", undefined, "open").node.truncate(length),
  existsSync(path) {
    try {
      find(pathText(path), "access");
      return true;
    } catch {
      return false;
    }
  },
  accessSync(path, mode = constants.F_OK) {
    const node = find(pathText(path), "access");
    if (mode & constants.W_OK && !(node.mode & 0o222)) throw fsError("EACCES", "access", pathText(path));
  },
  statSync(path, options = {}) {
    try {
      return new Stats(find(pathText(path), "stat"), options.bigint);
    } catch (error) {
      if (options.throwIfNoEntry === false && error.code === "ENOENT") return undefined;
      throw error;
    }
  },
  lstatSync(path, options = {}) {
    try {
      return new Stats(find(pathText(path), "lstat", false), options.bigint);
    } catch (error) {
      if (options.throwIfNoEntry === false && error.code === "ENOENT") return undefined;
      throw error;
    }
  },
  mkdirSync(path, options = {}) {
    const text = pathText(path);
    const { recursive = false, mode = 0o777 } = typeof options === "object" && options !== null ? options : { mode: options };
    let first;
    const parts = partsOf(text);
    for (let i = recursive ? 1 : parts.length; i <= parts.length; i++) {
      const each = `/${parts.slice(0, i).join("/")}`;
      const { parent, name, node } = locate(each, "mkdir");
      if (node !== undefined) {
        if (recursive && node.type === DIRECTORY) continue;
        throw fsError("EEXIST", "mkdir", text);
      }
      checkWritable(parent, "mkdir", text);
      parent.entries.set(name, new Node(DIRECTORY, mode));
      first ??= each;
    }
    return recursive ? first : undefined;
  },
  mkdtempSync(prefix, options = undefined) {
    const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const path = pathText(prefix) + Array.from(crypto.getRandomValues(new Uint8Array(6)), (b) => letters[b % letters.length]).join("");
    sync.mkdirSync(path);
    return encodingOf(options) === "buffer" ? Buffer.from(path) : path;
  },
  readdirSync(path, options = undefined) {
    const text = pathText(path);
    const node = find(text, "scandir");
    if (node.type !== DIRECTORY) throw fsError("ENOTDIR", "scandir", text);
    const found = [];
    const walk = (directory, prefix) => {
      for (const [name, child] of [...directory.entries].sort(([a], [b]) => (a < b ? -1 : 1))) {
        found.push(options?.withFileTypes ? new Dirent(name, child, prefix ? pathModule.join(text, prefix) : text) : prefix + name);
        if (options?.recursive && child.type === DIRECTORY) walk(child, `${prefix}${name}/`);
      }
    };
    walk(node, "");
    return encodingOf(options) === "buffer" ? found.map((name) => Buffer.from(name)) : found;
  },
  rmdirSync(path) {
    const text = pathText(path);
    const { parent, name, node } = locate(text, "rmdir", false);
    if (node === undefined) throw fsError("ENOENT", "rmdir", text);
    if (node.type !== DIRECTORY) throw fsError("ENOTDIR", "rmdir", text);
    if (node.entries.size > 0) throw fsError("ENOTEMPTY", "rmdir", text);
    checkWritable(parent, "rmdir", text);
    parent.entries.delete(name);
    node.release();
  },
  unlinkSync(path) {
    const text = pathText(path);
    const { parent, name, node } = locate(text, "unlink", false);
    if (node === undefined) throw fsError("ENOENT", "unlink", text);
    if (node.type === DIRECTORY) throw fsError("EPERM", "unlink", text);
    checkWritable(parent, "unlink", text);
    parent.entries.delete(name);
    node.release();
  },
  rmSync(path, options = {}) {
    const text = pathText(path);
    const { node } = locate(text, "rm", false);
    if (node === undefined) {
      if (options.force) return;
      throw fsError("ENOENT", "rm", text);
    }
    if (node.type !== DIRECTORY) return void sync.unlinkSync(text);
    if (!options.recursive) throw nodeError(Error, "ERR_FS_EISDIR", `Path is a directory: rm returned EISDIR (is a directory) ${text}`);
    for (const name of [...node.entries.keys()]) sync.rmSync(`${text}/${name}`, options);
    sync.rmdirSync(text);
  },
  renameSync(from, to) {
    const source = pathText(from);
    const target = pathText(to);
    const old = locate(source, "rename", false);
    if (old.node === undefined) throw fsError("ENOENT", "rename", source, target);
    const next = locate(target, "rename", false);
    if (next.node === old.node) return;
    if (partsOf(target).join("/").startsWith(`${partsOf(source).join("/")}/`)) throw fsError("EINVAL", "rename", source, target);
    if (next.node?.type === DIRECTORY && (old.node.type !== DIRECTORY || next.node.entries.size > 0)) {
      throw fsError(old.node.type !== DIRECTORY ? "EISDIR" : "ENOTEMPTY", "rename", source, target);
    }
    checkWritable(old.parent, "rename", source);
    checkWritable(next.parent, "rename", target);
    old.parent.entries.delete(old.name);
    next.node?.release();
    next.parent.entries.set(next.name, old.node);
  },
  copyFileSync(from, to, mode = 0) {
    sync.writeFileSync(to, sync.readFileSync(from), { flag: mode & constants.COPYFILE_EXCL ? "wx" : "w" });
  },
  cpSync(from, to, options = {}) {
    const source = pathText(from);
    const target = pathText(to);
    if (find(source, "cp").type !== DIRECTORY) return void sync.copyFileSync(source, target, options.errorOnExist ? constants.COPYFILE_EXCL : 0);
    if (!options.recursive) throw nodeError(Error, "ERR_FS_EISDIR", `Recursive option not enabled, cannot copy a directory: cp returned EISDIR ${source}`);
    sync.mkdirSync(target, { recursive: true });
    for (const name of sync.readdirSync(source)) sync.cpSync(`${source}/${name}`, `${target}/${name}`, options);
  },
  linkSync(from, to) {
    const source = pathText(from);
    const node = find(source, "link");
    const { parent, name, node: existing } = locate(pathText(to), "link", false);
    if (existing !== undefined) throw fsError("EEXIST", "link", source, pathText(to));
    checkWritable(parent, "link", pathText(to));
    node.links++;
    parent.entries.set(name, node);
  },
  symlinkSync(target, path) {
    const text = pathText(path);
    const { parent, name, node } = locate(text, "symlink", false);
    if (node !== undefined) throw fsError("EEXIST", "symlink", pathText(target), text);
    checkWritable(parent, "symlink", text);
    const link = new Node(LINK, 0o777);
    link.target = pathText(target);
    parent.entries.set(name, link);
  },
  readlinkSync(path, options = undefined) {
    const text = pathText(path);
    const node = find(text, "readlink", false);
    if (node.type !== LINK) throw fsError("EINVAL", "readlink", text);
    return encodingOf(options) === "buffer" ? Buffer.from(node.target) : node.target;
  },
  realpathSync(path) {
    const text = pathText(path);
    find(text, "realpath");
    const out = [];
    for (const part of partsOf(text)) {
      const node = find(`/${[...out, part].join("/")}`, "realpath", false);
      if (node.type === LINK) {
        const target = partsOf(node.target.startsWith("/") ? node.target : `/${out.join("/")}/${node.target}`);
        out.splice(0, out.length, ...partsOf(sync.realpathSync(`/${target.join("/")}`)));
      } else {
        out.push(part);
      }
    }
    return `/${out.join("/")}`;
  },
  utimesSync: (path, atime, mtime) => touch(find(pathText(path), "utime"), atime, mtime),
  lutimesSync: (path, atime, mtime) => touch(find(pathText(path), "lutime", false), atime, mtime),
  chmodSync: (path, mode) => void (find(pathText(path), "chmod").mode = typeof mode === "string" ? parseInt(mode, 8) : mode & 0o7777),
  chownSync: (path) => void find(pathText(path), "chown"),
  lchownSync: (path) => void find(pathText(path), "lchown", false),
  fchownSync: (fd) => void descriptor(fd, "fchown"),
};

function touch(node, atime, mtime) {
  const time = (value) => (value instanceof Date ? value.getTime() : Number(value) * 1000);
  node.atime = time(atime);
  node.mtime = time(mtime);
}

// ---- Promises and callbacks ----

class FileHandle {
  constructor(fd) {
    this.fd = fd;
  }
  close() { return later(() => sync.closeSync(this.fd)); }
  read(buffer, ...rest) {
    return later(() => {
      const target = buffer?.buffer instanceof ArrayBuffer && ArrayBuffer.isView(buffer) ? buffer : (buffer?.buffer ?? Buffer.alloc(16384));
      return { bytesRead: sync.readSync(this.fd, target, ...(ArrayBuffer.isView(buffer) ? rest : [buffer])), buffer: target };
    });
  }
  write(data, ...rest) { return later(() => ({ bytesWritten: sync.writeSync(this.fd, data, ...rest), buffer: data })); }
  readFile(options) { return later(() => sync.readFileSync(this.fd, options)); }
  writeFile(data, options) { return later(() => sync.writeFileSync(this.fd, data, options)); }
  appendFile(data, options) { return later(() => void sync.writeSync(this.fd, bytesOf(data, options), 0, undefined, descriptor(this.fd, "write").node.size)); }
  stat(options) { return later(() => sync.fstatSync(this.fd, options)); }
  truncate(length) { return later(() => sync.ftruncateSync(this.fd, length)); }
  sync() { return later(() => sync.fsyncSync(this.fd)); }
  datasync() { return later(() => sync.fdatasyncSync(this.fd)); }
  utimes(atime, mtime) { return later(() => sync.futimesSync(this.fd, atime, mtime)); }
  chmod(mode) { return later(() => sync.fchmodSync(this.fd, mode)); }
  [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() { return this.close(); }
}

const later = async (run) => run();

const promises = { constants };
const callbacks = {};
for (const name of Object.keys(sync)) {
  const plain = name.slice(0, -4);
  if (plain !== "exists" && !/^f(?!.*File)/.test(plain) && !["close", "read", "write", "open"].includes(plain)) {
    promises[plain] = (...args) => later(() => sync[name](...args));
  }
  callbacks[plain] = (...args) => {
    const callback = args.pop();
    if (typeof callback !== "function") throw invalidArgType("cb", "of type function", callback);
    let result;
    let failure = null;
    try {
      result = sync[name](...args);
    } catch (error) {
      if (error.code?.startsWith("ERR_INVALID_ARG")) throw error;
      failure = error;
    }
    queueMicrotask(() => {
      if (plain === "exists") callback(result);
      else if (failure) callback(failure);
      else if (result === undefined) callback(null);
      else if (plain === "read" || plain === "write") callback(null, result, args[1]);
      else callback(null, result);
    });
  };
}
promises.open = (path, flags, mode) => later(() => new FileHandle(sync.openSync(path, flags, mode)));
promises.readFile = (path, options) => later(() => sync.readFileSync(path instanceof FileHandle ? path.fd : path, options));
promises.writeFile = (path, data, options) => later(async () => {
  if (typeof data !== "string" && !ArrayBuffer.isView(data) && (data?.[Symbol.asyncIterator] || data?.[Symbol.iterator])) {
    const pieces = [];
    for await (const piece of data) pieces.push(bytesOf(piece, options));
    data = Buffer.concat(pieces);
  }
  return sync.writeFileSync(path instanceof FileHandle ? path.fd : path, data, options);
});

class ReadStream extends Readable {
  #fd;
  #left;
  #at;
  bytesRead = 0;
  constructor(path, options = {}) {
    const settings = typeof options === "string" ? { encoding: options } : options;
    super({ highWaterMark: 65536, ...settings });
    this.path = path;
    this.#at = settings.start ?? 0;
    this.#left = (settings.end ?? Infinity) - this.#at + 1;
    queueMicrotask(() => {
      try {
        this.#fd = settings.fd ?? sync.openSync(path, settings.flags ?? "r");
        this.emit("open", this.#fd);
        this.emit("ready");
        this.read(0);
      } catch (error) {
        this.destroy(error);
      }
    });
  }
  _read(size) {
    if (this.#fd === undefined) return void this.once("open", () => this._read(size));
    const chunk = Buffer.alloc(Math.min(size, this.#left, 65536));
    let got;
    try {
      got = chunk.length === 0 ? 0 : sync.readSync(this.#fd, chunk, 0, chunk.length, this.#at);
    } catch (error) {
      return void this.destroy(error);
    }
    this.#at += got;
    this.#left -= got;
    this.bytesRead += got;
    return void this.push(got === 0 ? null : chunk.subarray(0, got));
  }
  _destroy(error, callback) {
    if (this.#fd !== undefined && descriptors.has(this.#fd)) sync.closeSync(this.#fd);
    callback(error);
  }
}

class WriteStream extends Writable {
  #fd;
  bytesWritten = 0;
  constructor(path, options = {}) {
    const settings = typeof options === "string" ? { defaultEncoding: options } : options;
    super(settings);
    this.path = path;
    this.#fd = settings.fd ?? sync.openSync(path, settings.flags ?? "w", settings.mode);
    queueMicrotask(() => {
      this.emit("open", this.#fd);
      this.emit("ready");
    });
  }
  _write(chunk, encoding, callback) {
    try {
      this.bytesWritten += sync.writeSync(this.#fd, chunk);
    } catch (error) {
      return callback(error);
    }
    return callback();
  }
  _destroy(error, callback) {
    if (descriptors.has(this.#fd)) sync.closeSync(this.#fd);
    callback(error);
  }
}

const fs = {
  ...sync,
  ...callbacks,
  constants,
  promises,
  Stats,
  Dirent,
  ReadStream,
  WriteStream,
  createReadStream: (path, options) => new ReadStream(path, options),
  createWriteStream: (path, options) => new WriteStream(path, options),
  ...constants,
};
for (const name of ["watch", "watchFile", "unwatchFile", "statfs", "statfsSync", "opendir", "opendirSync", "openAsBlob", "readv", "readvSync", "writev", "writevSync", "glob", "globSync"]) {
  fs[name] = unsupported(`${name}() of node:fs`);
}
export default fs;
