// node:fs/promises
import { Buffer } from "../buffer.js";
import { EventEmitter } from "../events.js";
import { globEntries, kFileHandle, sync, validFd } from "../fs.js";
import { abortError, unsupportedOperation, validateAbortSignal, validateBoolean, validateObject, validateUint32 } from "./errors.js";
import { constants } from "./fs_constants.js";
import { fsError } from "./vfs.js";

const kBadge = Symbol("kBadge");
const view = (value) => ArrayBuffer.isView(value);

export class FileHandle extends EventEmitter {
  #fd;
  [kFileHandle] = true;

  constructor(badge, fd) {
    if (badge !== kBadge) throw new TypeError("Illegal constructor");
    super();
    this.#fd = fd;
  }
  get fd() {
    return this.#fd;
  }
  #open() {
    if (this.#fd === undefined) throw fsError("EBADF", "stat", undefined, "Bad file descriptor");
    return this.#fd;
  }
  async appendFile(data, options = {}) {
    sync.appendFileSync(this.#open(), data, options);
  }
  async chmod(mode) {
    sync.fchmodSync(this.#open(), mode);
  }
  async chown(uid, gid) {
    sync.fchownSync(this.#open(), uid, gid);
  }
  async datasync() {
    sync.fdatasyncSync(this.#open());
  }
  async sync() {
    sync.fsyncSync(this.#open());
  }
  async read(bufferOrOptions = {}, offsetOrOptions = {}, length = undefined, position = null) {
    const fd = this.#open();
    let options;
    if (!view(bufferOrOptions)) options = bufferOrOptions ?? {};
    else if (typeof offsetOrOptions === "number") options = { buffer: bufferOrOptions, offset: offsetOrOptions, length: length ?? undefined, position };
    else options = { buffer: bufferOrOptions, ...offsetOrOptions };
    const { buffer = Buffer.alloc(16384) } = options;
    const offset = options.offset ?? 0;
    const size = options.length ?? buffer.byteLength - offset;
    validateUint32(offset, "offset");
    validateUint32(size, "length");
    return { bytesRead: sync.readSync(fd, buffer, offset, size, options.position ?? null), buffer };
  }
  async readv(buffers, position = null) {
    return { bytesRead: sync.readvSync(this.#open(), buffers, position), buffers };
  }
  async readFile(options = {}) {
    return sync.readFileSync(this.#open(), options);
  }
  readLines() {
    this.#open();
    throw new Error("not implemented");
  }
  async stat(options = {}) {
    return sync.fstatSync(this.#open(), options);
  }
  async truncate(length = 0) {
    sync.ftruncateSync(this.#open(), length);
  }
  async utimes(atime, mtime) {
    sync.futimesSync(this.#open(), atime, mtime);
  }
  async write(buffer, offsetOrOptions = null, lengthOrEncoding = undefined, position = null) {
    const fd = this.#open();
    if (typeof buffer !== "string") return { bytesWritten: sync.writeSync(fd, buffer, offsetOrOptions, lengthOrEncoding, position), buffer };
    const bytes = Buffer.from(buffer, lengthOrEncoding ?? undefined);
    return { bytesWritten: sync.writeSync(fd, bytes, 0, bytes.length, offsetOrOptions ?? null), buffer: bytes };
  }
  async writev(buffers, position = null) {
    return { bytesWritten: sync.writevSync(this.#open(), buffers, position), buffers };
  }
  async writeFile(data, options = {}) {
    const bytesWritten = sync.writeFileSync(this.#open(), data, options);
    const encoding = typeof options === "string" ? options : options?.encoding ?? undefined;
    return { bytesWritten, buffer: view(data) ? data : Buffer.from(data, encoding) };
  }
  async close() {
    if (this.#fd !== undefined) sync.closeSync(this.#fd);
    this.#fd = undefined;
    this.emit("close");
  }
  readableWebStream(options = {}) {
    this.#open();
    validateObject(options, "options");
    const { autoClose = true } = options;
    validateBoolean(autoClose, "options.autoClose");
    const done = async () => {
      if (autoClose) await this.close();
    };
    return new ReadableStream({
      type: "bytes",
      autoAllocateChunkSize: 16384,
      pull: async (controller) => {
        const { byobRequest } = controller;
        if (this.#fd === undefined) {
          controller.close();
          byobRequest?.respond(0);
          return;
        }
        const into = byobRequest?.view ?? new Uint8Array(16384);
        const { bytesRead } = await this.read(into, 0, into.byteLength);
        if (bytesRead === 0) {
          controller.close();
          byobRequest?.respond(0);
          await done();
        } else if (byobRequest) {
          byobRequest.respond(bytesRead);
        } else {
          controller.enqueue(into.subarray(0, bytesRead));
        }
      },
      cancel: done,
    });
  }
  createReadStream(options = {}) {
    return require("./fs_streams.js").createReadStream("", { ...options, fd: this });
  }
  createWriteStream(options = {}) {
    return require("./fs_streams.js").createWriteStream("", { ...options, fd: this });
  }
  async [Symbol.asyncDispose]() {
    await this.close();
  }
}

/** fs.promises.name of fs.nameSync, with as many arguments as it says it has. */
function promised(name, length) {
  const run = sync[`${name}Sync`];
  const f = { async [name](...args) { return run(...args); } }[name];
  return Object.defineProperty(f, "length", { value: length, configurable: true });
}
const fdOf = (target) => (target instanceof FileHandle ? validFd(target.fd ?? badHandle()) : target);
const badHandle = () => {
  throw fsError("EBADF", "stat", undefined, "Bad file descriptor");
};
function checkAborted(options) {
  const signal = options !== null && typeof options === "object" ? options.signal : undefined;
  if (signal === undefined || signal === null) return;
  validateAbortSignal(signal, "options.signal");
  if (signal.aborted) throw abortError(signal);
}

export const promises = {
  __proto__: null,
  FileHandle,
  access: promised("access", 1),
  async appendFile(path, data, options = {}) {
    sync.appendFileSync(fdOf(path), data, options);
  },
  chmod: promised("chmod", 2),
  chown: promised("chown", 3),
  constants,
  copyFile: promised("copyFile", 3),
  cp: promised("cp", 3),
  async *glob(pattern, options = {}) {
    yield* globEntries(pattern, options);
  },
  lchmod: promised("lchmod", 2),
  lchown: promised("lchown", 3),
  link: promised("link", 2),
  lstat: promised("lstat", 1),
  lutimes: promised("lutimes", 3),
  mkdir: promised("mkdir", 1),
  mkdtemp: promised("mkdtemp", 1),
  async open(path, flags, mode) {
    return new FileHandle(kBadge, sync.openSync(path, flags, mode));
  },
  opendir: promised("opendir", 1),
  async readFile(path, options = {}) {
    checkAborted(options);
    return sync.readFileSync(fdOf(path), options);
  },
  readdir: promised("readdir", 1),
  readlink: promised("readlink", 1),
  realpath: promised("realpath", 1),
  rename: promised("rename", 2),
  rm: promised("rm", 1),
  rmdir: promised("rmdir", 1),
  stat: promised("stat", 1),
  statfs: promised("statfs", 1),
  symlink: promised("symlink", 2),
  truncate: promised("truncate", 1),
  unlink: promised("unlink", 1),
  utimes: promised("utimes", 3),
  watch() {
    throw unsupportedOperation();
  },
  async writeFile(path, data, options = {}) {
    checkAborted(options);
    if (data !== null && typeof data === "object" && !view(data) && (data[Symbol.asyncIterator] || data[Symbol.iterator])) {
      const parts = [];
      for await (const part of data) parts.push(view(part) ? Buffer.from(part.buffer, part.byteOffset, part.byteLength) : Buffer.from(part));
      data = Buffer.concat(parts);
    }
    sync.writeFileSync(fdOf(path), data, options);
  },
};
