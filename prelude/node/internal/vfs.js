// The file system of a worker, in memory: /bundle (read only), /tmp, /dev.
//
// F1  Each request has a /tmp of its own, which is empty at first. Those of the REQUESTS_MAX requests
//     that used theirs last are kept: how long a request goes on is not known here.
// F2  All files together have at most SIZE_MAX bytes, and there are at most NODES_MAX of them: then
//     ENOSPC. A path has at most 48 segments and 4096 characters.
// F3  Names are compared decoded: "/tmp/%66oo" is "/tmp/foo", as in a file: URL.
import { Buffer } from "../buffer.js";
import { getCwd } from "./cwd.js";
import { invalidArgType, invalidArgValue, nodeError } from "./errors.js";
import { native } from "./internals.js";
import { request } from "./request.js";

const SIZE_MAX = 64 * 1024 * 1024;
const NODES_MAX = 100_000;
const REQUESTS_MAX = 256;
const LINKS_MAX = 256;
const FD_FIRST = 3;

const TEXTS = {
  ENOENT: ["no such file or directory", -2], EPERM: ["operation not permitted", -1], EIO: ["i/o error", -5], EBADF: ["bad file descriptor", -9],
  EACCES: ["permission denied", -13], EEXIST: ["file already exists", -17], EXDEV: ["cross-device link not permitted", -18],
  ENOTDIR: ["not a directory", -20], EISDIR: ["illegal operation on a directory", -21], EINVAL: ["invalid argument", -22],
  EMFILE: ["too many open files", -24], EFBIG: ["file too large", -27], ENOSPC: ["no space left on device", -28],
  ENAMETOOLONG: ["name too long", -36], ENOTEMPTY: ["directory not empty", -39], ELOOP: ["too many symbolic links encountered", -40], ENOSYS: ["function not implemented", -38],
};

/** An error of a system call, as the platform has them: the message does not begin with the code. */
export function fsError(code, syscall, path = undefined, text = undefined) {
  const message = text ?? (path === undefined ? TEXTS[code][0] : `${TEXTS[code][0]}, ${syscall} '${path}'`);
  const error = new Error(message);
  Object.assign(error, { syscall, code });
  if (path !== undefined) error.path = path;
  error.errno = TEXTS[code][1];
  return error;
}

// ---- nodes

let size = 0;
let count = 0;

class Node {
  constructor(kind, writable) {
    if (count >= NODES_MAX) throw fsError("ENOSPC", "open");
    count++;
    this.kind = kind; // "file", "directory", "symlink"
    this.writable = writable;
    this.mtime = 0; // ms
    this.links = 0; // directories that have it, and descriptors
  }
  ref() {
    this.links++;
    return this;
  }
  unref() {
    if (--this.links === 0) {
      count--;
      this.gone();
    }
  }
  gone() {}
}

class File extends Node {
  bytes = new Uint8Array(0); // has room to grow; `size` counts
  size = 0;
  constructor(writable = true) {
    super("file", writable);
  }
  truncate(length, syscall) {
    if (size + length - this.size > SIZE_MAX) makeRoom(length - this.size);
    if (size + length - this.size > SIZE_MAX) throw fsError("EPERM", syscall, undefined, "File size limit exceeded");
    if (length > this.bytes.length) {
      const bytes = new Uint8Array(Math.max(length, Math.min(this.bytes.length * 2, length + 1024 * 1024)));
      bytes.set(this.bytes.subarray(0, this.size));
      this.bytes = bytes;
    } else if (length < this.size) {
      this.bytes.fill(0, length, this.size);
    }
    size += length - this.size;
    this.size = length;
  }
  write(bytes, at, syscall) {
    if (at + bytes.length > this.size) this.truncate(at + bytes.length, syscall);
    this.bytes.set(bytes, at);
    return bytes.length;
  }
  read(into, at) {
    const got = Math.max(0, Math.min(into.length, this.size - at));
    into.set(this.bytes.subarray(at, at + got));
    return got;
  }
  content() {
    return Buffer.from(this.bytes.subarray(0, this.size));
  }
  clone() {
    const copy = new File();
    copy.write(this.bytes.subarray(0, this.size), 0, "cp");
    return copy;
  }
  gone() {
    size -= this.size;
    this.size = 0;
    this.bytes = new Uint8Array(0);
  }
}

class Device extends File {
  device = true;
  constructor(fill, write) {
    super(true);
    this.fill = fill;
    this.put = write;
  }
  truncate() {}
  write(bytes, at, syscall) {
    return this.put(bytes, syscall);
  }
  read(into) {
    return this.fill(into);
  }
  content() {
    return Buffer.alloc(0);
  }
  clone() {
    return this;
  }
}

class Directory extends Node {
  entries = new Map();
  constructor(writable = true) {
    super("directory", writable);
  }
  add(name, node) {
    this.entries.get(name)?.unref();
    this.entries.set(name, node.ref());
    return node;
  }
  remove(name) {
    const node = this.entries.get(name);
    this.entries.delete(name);
    node?.unref();
  }
  gone() {
    for (const name of [...this.entries.keys()]) this.remove(name);
  }
}

class Link extends Node {
  constructor(target) {
    super("symlink", false);
    this.target = target; // an absolute path
  }
}

// ---- the tree

const root = new Directory(false).ref();
const bundle = root.add("bundle", new Directory(false));
root.add("tmp", new Directory()); // replaced by tmp()
const dev = root.add("dev", new Directory(false));
const swallow = (bytes) => bytes.length;
for (const [name, fill, write] of [
  ["null", () => 0, swallow],
  ["zero", (into) => into.fill(0).length, swallow],
  ["full", (into) => into.fill(0).length, (bytes, syscall) => { throw fsError("EPERM", syscall); }],
  ["random", (into) => (native.randomFill(into), into.length), swallow],
]) dev.add(name, new Device(fill, write));

/** A file of the bundle, which scripts can read. */
export function addBundled(name, bytes) {
  const file = new File();
  file.write(bytes, 0, "open");
  file.writable = false;
  bundle.add(name, file);
}

const folders = new Map(); // F1: request -> its /tmp, the one used last at the end
function tmp() {
  const id = request();
  let folder = folders.get(id);
  if (folder !== undefined && root.entries.get("tmp") === folder) return folder;
  if (folder === undefined) {
    folder = new Directory().ref();
    if (folders.size >= REQUESTS_MAX) forget(folders.keys().next().value);
  }
  folders.delete(id);
  folders.set(id, folder);
  root.add("tmp", folder);
  return folder;
}
/** Folders of requests that have long not used them go first. */
function makeRoom(wanted) {
  const mine = request();
  for (const id of [...folders.keys()]) {
    if (size + wanted <= SIZE_MAX) return;
    if (id !== mine) forget(id);
  }
}
function forget(id) {
  const folder = folders.get(id);
  folders.delete(id);
  folder.unref();
}

// ---- paths

/** A path as arguments have it, absolute and in the form of a file: URL. */
export function normalizePath(path, encoding = "utf8") {
  let url = path;
  if (!(path instanceof URL)) {
    let text = path;
    if (ArrayBuffer.isView(path) && path instanceof Uint8Array) text = Buffer.from(path).toString(encoding === "buffer" ? "utf8" : encoding);
    else if (typeof path !== "string") throw invalidArgType("path", ["string", "Buffer", "URL"], path);
    if (text.includes("\0")) throw invalidArgValue("path", text, "must not contain null bytes");
    if (!text.startsWith("/")) text = `${getCwd()}/${text}`;
    url = new URL(text.replace(/[#?]/g, encodeURIComponent).replace(/\/{2,}/g, "/"), "file://");
  }
  if (url.protocol !== "file:") throw new TypeError("File path must be a file: URL");
  if (url.host !== "") throw new Error("File path must not have a host");
  const { pathname } = url;
  if (pathname.length > 4096) throw new Error("File path is too long");
  if (pathname.split("/").length - 1 > 48) throw new Error("File path has too many segments");
  return pathname;
}

function decode(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name.replace(/%[0-9a-f]{2}/gi, (octet) => octet.toUpperCase());
  }
}
const partsOf = (path) => path.split("/").filter((part) => part !== "").map(decode);

/** The node at a path, or undefined; `syscall` for errors on the way. */
function resolve(path, syscall, follow = true, depth = 0) {
  const parts = partsOf(path);
  let node = root;
  for (let i = 0; i < parts.length; i++) {
    if (node.kind !== "directory") return undefined;
    node = node === root && parts[i] === "tmp" ? tmp() : node.entries.get(parts[i]);
    if (node === undefined) return undefined;
    const last = i === parts.length - 1;
    if (node.kind === "symlink" && (follow || !last)) {
      if (depth >= LINKS_MAX) throw fsError("ELOOP", syscall, undefined, "symlink depth exceeded");
      node = resolve(node.target, syscall, true, depth + 1);
      if (node === undefined) return undefined;
    }
  }
  return node;
}

/** [directory, name] of what a path is to be; the directory may be undefined. */
function parentOf(path, syscall) {
  const parts = partsOf(path);
  const name = parts.pop() ?? "";
  const parent = resolve(`/${parts.map(encodeURIComponent).join("/")}`, syscall);
  return [parent, name];
}

/** The directory that something can be put into. */
function writableParent(path, syscall, missing = path) {
  const [parent, name] = parentOf(path, syscall);
  if (parent === undefined) throw fsError("ENOENT", syscall, missing);
  if (parent.kind !== "directory") throw fsError("ENOTDIR", syscall);
  if (!parent.writable || name === "") throw fsError("EPERM", syscall);
  return [parent, name];
}

// ---- descriptors

const descriptors = new Map(); // number -> {node, read, write, append, position}
let nextFd = FD_FIRST;

/** Standard output is the log. */
class Stdio extends Device {
  device = false;
}
const stdio = (level) => new Stdio(() => 0, (bytes) => {
  console[level](Buffer.from(bytes).toString().replace(/\n$/, ""));
  return bytes.length;
});
for (const [fd, node] of [[0, new Stdio(() => 0, swallow)], [1, stdio("log")], [2, stdio("error")]]) {
  descriptors.set(fd, { node: node.ref(), read: true, write: true, append: false, position: 0 });
}

function opened(fd, syscall) {
  const file = descriptors.get(fd);
  if (file === undefined) throw fsError("EBADF", syscall);
  return file;
}
export const isOpen = (fd) => descriptors.has(fd);

export function open(path, { read, write, append, exclusive, create, truncate }) {
  let node = resolve(path, "open");
  if (node !== undefined && exclusive && write) throw fsError("EEXIST", "open", path);
  if (node === undefined) {
    if (!create) throw fsError("ENOENT", "open", path);
    const [parent, name] = writableParent(path, "open");
    node = parent.add(name, new File());
  }
  if (write && node.kind === "directory") throw fsError("EISDIR", "open", path);
  if (write && !node.writable) throw fsError("EPERM", "open");
  if (truncate && write && node.kind === "file") node.truncate(0, "open");
  const fd = nextFd++;
  descriptors.set(fd, { node: node.ref(), read, write, append, position: 0 });
  return fd;
}

export function close(fd) {
  if (fd < FD_FIRST) return;
  const file = descriptors.get(fd);
  if (file === undefined) return;
  descriptors.delete(fd);
  file.node.unref();
}

const bytesOf = (view) => (view instanceof Uint8Array ? view : new Uint8Array(view.buffer, view.byteOffset, view.byteLength));

function checkPosition(position, syscall) {
  if (position > 0xffffffff) throw fsError("EINVAL", syscall, undefined, "position out of range");
  return Number(position);
}

export function write(fd, buffers, position) {
  const file = opened(fd, "write");
  if (!file.write) throw fsError("EBADF", "write");
  if (file.node.kind === "directory") throw fsError("EISDIR", "write");
  let at = file.append ? file.node.size : checkPosition(position ?? file.position, "write");
  let total = 0;
  for (const buffer of buffers) {
    const done = file.node.write(bytesOf(buffer), at, "write");
    at += done;
    total += done;
  }
  if ((position === null || position === undefined) && !file.append) file.position += total;
  return total;
}

export function read(fd, buffers, position) {
  const file = opened(fd, "read");
  if (!file.read) throw fsError("EBADF", "read");
  if (file.node.kind === "directory") throw fsError("EISDIR", "read");
  let at = checkPosition(position ?? file.position, "read");
  let total = 0;
  for (const buffer of buffers) {
    const into = bytesOf(buffer);
    const got = file.node.read(into, at);
    at += got;
    total += got;
    if (got < into.length) break;
  }
  if (position === null || position === undefined) file.position += total;
  return total;
}

// ---- whole files

export function readAll(target) {
  if (typeof target === "number") {
    const file = opened(target, "fread");
    if (!file.read) throw fsError("EBADF", "fread");
    if (file.node.kind === "directory") throw fsError("EISDIR", "fread");
    file.position = file.node.size; // all of it, wherever the descriptor stands
    return file.node.content();
  }
  const node = resolve(target, "readAll");
  if (node === undefined) throw fsError("ENOENT", "readAll", target);
  if (node.kind === "directory") throw fsError("EISDIR", "readAll");
  return node.content();
}

export function writeAll(target, data, { append, exclusive, flags }) {
  const bytes = bytesOf(data);
  if (typeof target === "number") {
    const file = descriptors.get(target);
    if (file === undefined || !file.write) throw fsError("EBADF", "fwrite");
    if (file.node.kind === "directory") throw fsError("EBADF", "fwrite");
    if (file.append || append) {
      file.node.write(bytes, file.node.size, "fwriteAll");
    } else {
      file.node.truncate(0, "fwriteAll");
      file.node.write(bytes, 0, "fwriteAll");
    }
    file.position = file.node.size;
    return bytes.length;
  }
  void flags;
  let node = resolve(target, "writeAll");
  if (node !== undefined) {
    if (exclusive) throw fsError("EEXIST", "writeAll", undefined, "file already exists");
    if (node.kind === "directory") throw fsError("EISDIR", "writeAll");
    if (!node.writable) throw fsError("EPERM", "writeAll");
  } else {
    const [parent, name] = writableParent(target, "writeAll");
    node = parent.add(name, new File());
  }
  if (append) return node.write(bytes, node.size, "writeAll");
  node.truncate(0, "writeAll");
  return node.write(bytes, 0, "writeAll");
}

export function truncate(target, length) {
  const node = typeof target === "number" ? opened(target, "ftruncate").node : resolve(target, "ftruncate");
  if (node === undefined) throw fsError("ENOENT", "ftruncate", target);
  if (node.kind === "directory") throw fsError("EISDIR", "ftruncate");
  if (!node.writable) throw fsError("EPERM", "ftruncate");
  node.truncate(length, "ftruncate");
}

// ---- what is there

const TYPES = { file: 1, directory: 2, symlink: 3 };

/** {kind, size, mtime, writable, device}, or null. */
export function stat(target, follow = true) {
  let node;
  if (typeof target === "number") {
    node = opened(target, "fstat").node;
  } else {
    node = resolve(target, "stat", follow);
    if (node === undefined) return null;
  }
  return { kind: node.kind, size: node.size ?? 0, mtime: node.mtime, writable: node.writable, device: node.device === true };
}

export function setModified(target, mtime, follow = true) {
  if (Number.isNaN(mtime)) throw new TypeError("The value cannot be converted because it is not a valid Date.");
  const node = typeof target === "number" ? opened(target, "futimes").node : resolve(target, "utimes", follow);
  if (node === undefined) throw fsError("ENOENT", "utimes", target);
  if (node.kind === "file" && !node.writable) throw fsError("EPERM", "futimes");
  if (node.kind === "file") node.mtime = mtime;
}

/** The target of a link; without `strict` the path itself if it is none. */
export function readLink(path, strict) {
  const node = resolve(path, "readlink", false);
  if (node === undefined) throw fsError("ENOENT", "readlink", path);
  if (node.kind === "symlink") return node.target;
  if (strict) throw fsError("EINVAL", "readlink");
  return path;
}

export function link(path, target, symbolic) {
  const [parent, name] = parentOf(path, "link");
  if (parent === undefined) throw fsError("ENOENT", "link", path);
  if (parent.kind !== "directory" || path.endsWith("/")) throw fsError("EINVAL", "link");
  if (parent.entries.has(name)) throw fsError("EEXIST", "link", undefined, "File already exists");
  if (!parent.writable) throw fsError("EPERM", "link");
  if (symbolic) {
    parent.add(name, new Link(target));
    return;
  }
  const node = resolve(target, "link");
  if (node === undefined) throw fsError("ENOENT", "link", target);
  if (node.kind === "directory") throw fsError("EPERM", "link", undefined, "Cannot hardlink to a directory");
  parent.add(name, node);
}

export function unlink(path) {
  const [parent, name] = parentOf(path, "unlink");
  const node = parent?.kind === "directory" ? parent.entries.get(name) : undefined;
  if (parent === undefined) throw fsError("ENOENT", "unlink", partsOf(path).at(-2) ?? path, "Parent path not found");
  if (parent.kind !== "directory") throw fsError("ENOTDIR", "unlink", undefined, "Parent path is not a directory");
  if (node === undefined) throw fsError("ENOENT", "unlink", name, "File not found");
  if (node.kind === "directory") throw fsError("EISDIR", "unlink", undefined, "Cannot unlink a directory");
  if (!parent.writable) throw fsError("EPERM", "unlink");
  parent.remove(name);
}

export function mkdir(path, recursive) {
  const parts = partsOf(path);
  if (!recursive) {
    const [parent, name] = parentOf(path, "mkdir");
    if (parent === undefined) throw fsError("ENOENT", "mkdir", name);
    if (parent.kind !== "directory") throw fsError("ENOTDIR", "mkdir");
    const there = parent.entries.get(name);
    if (name === "" || there?.kind === "directory") return undefined;
    if (there !== undefined) throw fsError("EEXIST", "mkdir", path);
    if (!parent.writable) throw fsError("EPERM", "mkdir");
    parent.add(name, new Directory());
    return undefined;
  }
  let node = root;
  let first;
  for (let i = 0; i < parts.length; i++) {
    let next = node === root && parts[i] === "tmp" ? tmp() : node.entries.get(parts[i]);
    if (next?.kind === "symlink") next = resolve(next.target, "mkdir");
    if (next === undefined) {
      if (!node.writable) throw fsError("EPERM", "mkdir");
      next = node.add(parts[i], new Directory());
      first ??= `/${parts.slice(0, i + 1).join("/")}`;
    }
    if (next.kind !== "directory") throw fsError("ENOTDIR", "mkdir");
    node = next;
  }
  return first;
}

let lastTemporary = 0;
export function mkdtemp(prefix) {
  for (;;) {
    const path = `${prefix}${lastTemporary++}`;
    const [parent, name] = parentOf(path, "mkdir");
    if (parent === undefined) throw fsError("ENOENT", "mkdir", partsOf(prefix).at(-1) ?? "");
    if (parent.kind !== "directory") throw fsError("ENOTDIR", "mkdir");
    if (!parent.writable) throw fsError("EPERM", "mkdir");
    if (parent.entries.has(name)) continue;
    parent.add(name, new Directory());
    return path;
  }
}

export function rm(path, { recursive, force, dirOnly }) {
  const [parent, name] = parentOf(path, "rm");
  if (parent?.kind === "directory" && !parent.writable) throw fsError("EPERM", "rm");
  const node = parent?.kind === "directory" ? parent.entries.get(name) : undefined;
  if (node === undefined) {
    if (force) return;
    throw fsError("ENOENT", "rm", path);
  }
  if (dirOnly && node.kind !== "directory") throw fsError("ENOTDIR", "rm");
  if (node.kind === "directory" && !recursive && node.entries.size > 0) throw fsError("ENOTEMPTY", "rm", name);
  parent.remove(name);
}

export function readdir(path, recursive, list = [], shown = path) {
  const node = resolve(path, "readdir");
  if (node === undefined) throw fsError("ENOENT", "readdir", path);
  if (node.kind !== "directory") throw fsError("ENOTDIR", "readdir", path);
  const walk = (directory, parentPath) => {
    for (const [name, child] of directory.entries) {
      list.push({ name, parentPath, type: child.device ? 6 : TYPES[child.kind] });
      if (recursive && child.kind === "directory") walk(child, `${parentPath}/${name}`.replace(/^\/\//, "/"));
    }
  };
  walk(node, decode(shown).replace(/\/$/, "") || "/");
  return list;
}

// ---- moving and copying

export function renameOrCopy(from, to, copy) {
  const syscall = copy ? "copy" : "rename";
  const node = resolve(from, syscall, copy);
  if (node === undefined) throw fsError("ENOENT", syscall, from);
  if (copy && node.kind === "directory") throw fsError("EISDIR", syscall);
  const [source, sourceName] = parentOf(from, syscall);
  if (!copy && !source.writable) throw fsError("EPERM", syscall);
  const [parent, name] = writableParent(to, syscall, to);
  const there = parent.entries.get(name);
  if (there === node) return;
  if (there?.kind === "directory" && node.kind !== "directory") throw fsError("EISDIR", syscall);
  if (there !== undefined && there.kind !== "directory" && node.kind === "directory") throw fsError("ENOTDIR", syscall);
  if (there?.kind === "directory" && there.entries.size > 0) throw fsError("ENOTEMPTY", syscall);
  if (copy) {
    const target = there?.kind === "symlink" ? resolve(there.target, syscall) : undefined;
    if (target?.kind === "file") {
      target.truncate(0, syscall);
      target.write(node.bytes.subarray(0, node.size), 0, syscall);
      return;
    }
    parent.add(name, node.clone());
    return;
  }
  node.ref();
  source.remove(sourceName);
  parent.add(name, node);
  node.unref();
}

const cpError = (code, text) => nodeError(Error, code, text);
const copyOf = (node) => (node.kind === "file" ? node.clone() : new Link(node.target));

function cpInto(source, target, options) {
  if (!target.writable) throw fsError("EPERM", "cp", undefined, "Destination directory is not writable");
  if (source === target) throw fsError("EINVAL", "cp", undefined, "Source and destination directories are the same");
  for (const [name, entry] of [...source.entries]) {
    let child = entry;
    if (options.dereference && child.kind === "symlink") child = resolve(child.target, "cp") ?? child;
    const there = target.entries.get(name);
    if (child.kind === "directory") {
      if (there === undefined) cpInto(child, target.add(name, new Directory()), options);
      else if (there.kind === "directory") cpInto(child, there, options);
      else if (there.kind === "file") throw fsError("ENOTDIR", "cp", undefined, `Cannot copy directory to file: ${name}`);
      else throw fsError("EISDIR", "cp", undefined, `Cannot copy directory to symbolic link: ${name}`);
      continue;
    }
    if (there?.kind === "directory") throw fsError("EISDIR", "cp", undefined, `Cannot copy ${child.kind === "file" ? "file" : "link"} to directory: ${name}`);
    if (there === child) continue;
    if (there === undefined || options.force) target.add(name, copyOf(child));
    else if (options.errorOnExist) throw fsError("EEXIST", "cp", undefined, `Destination already exists: ${name}`);
  }
}

export function cp(from, to, options) {
  if (from === to) throw new Error("Source and destination paths must not be the same");
  if (to.startsWith(from.endsWith("/") ? from : `${from}/`)) {
    throw cpError("ERR_FS_CP_EINVAL", `Cannot copy '${from}' to a subdirectory of itself, '${to}'`);
  }
  const node = resolve(from, "cp", options.dereference);
  if (node === undefined) throw fsError("ENOENT", "cp", from);
  const there = resolve(to, "cp", options.dereference);
  if (node.kind === "directory") {
    if (!options.recursive) throw cpError("ERR_FS_EISDIR", "Expected a file but found a directory");
    if (there !== undefined && there.kind === "file") throw cpError("ERR_FS_CP_DIR_TO_NON_DIR", "Cannot copy directory to non-directory");
    if (there !== undefined && there.kind !== "directory") throw fsError("ENOTDIR", "cp");
    if (there === undefined) mkdir(to, true);
    cpInto(node, there ?? resolve(to, "cp"), options);
    return;
  }
  if (there?.kind === "directory") throw cpError("ERR_FS_CP_NON_DIR_TO_DIR", "Cannot copy non-directory to directory");
  if (there !== undefined && !options.force) {
    if (options.errorOnExist) throw cpError("ERR_FS_CP_EEXIST", "File already exists");
    return;
  }
  const slash = to.lastIndexOf("/");
  if (slash > 0) mkdir(to.slice(0, slash), true);
  if (options.dereference && node.kind === "file" && there !== undefined && resolve(to, "cp", false).kind === "symlink") {
    there.truncate(0, "cp");
    there.write(node.bytes.subarray(0, node.size), 0, "cp");
    return;
  }
  const [parent, name] = writableParent(to, "cp");
  parent.add(name, copyOf(node));
}
