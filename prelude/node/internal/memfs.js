// A file system in memory, one per worker: /tmp and /bundle exist, everything lasts until the worker
// does. Directories, regular files and symbolic links; /dev/null, /dev/zero, /dev/random as on the
// platform. Bounded: SIZE_MAX bytes and NODES_MAX nodes, then ENOSPC.
import { Buffer } from "../buffer.js";
import { native } from "./internals.js";
import os from "../os.js";

const SIZE_MAX = 64 * 1024 * 1024;
const NODES_MAX = 100_000;
const LINKS_MAX = 32;
export const DIRECTORY = 0o040000;
export const FILE = 0o100000;
export const LINK = 0o120000;
export const DEVICE = 0o020000;

const TEXTS = {
  ENOENT: "no such file or directory", EEXIST: "file already exists", ENOTDIR: "not a directory", EISDIR: "illegal operation on a directory",
  ENOTEMPTY: "directory not empty", EINVAL: "invalid argument", EBADF: "bad file descriptor", ENOSPC: "no space left on device",
  EPERM: "operation not permitted", ELOOP: "too many symbolic links encountered", EACCES: "permission denied",
};

export function fsError(code, syscall, path = undefined, dest = undefined) {
  const where = (path === undefined ? "" : ` '${path}'`) + (dest === undefined ? "" : ` -> '${dest}'`);
  const error = new Error(`${code}: ${TEXTS[code]}, ${syscall}${where}`);
  Object.assign(error, { errno: -(os.constants.errno[code] ?? 40), code, syscall });
  if (path !== undefined) error.path = path;
  if (dest !== undefined) error.dest = dest;
  return error;
}

let size = 0;
let count = 0;
let lastInode = 0;

export class Node {
  constructor(type, mode) {
    if (count >= NODES_MAX) throw fsError("ENOSPC", "open");
    count++;
    this.type = type;
    this.mode = mode;
    this.inode = ++lastInode;
    this.birthtime = this.mtime = this.atime = this.ctime = Date.now();
    this.links = 1;
    this.entries = type === DIRECTORY ? new Map() : null;
    this.bytes = type === FILE ? Buffer.alloc(0) : null; // has room to grow; `size` counts
    this.size = 0;
    this.target = null; // of a link
    this.device = null; // function (size) -> bytes
  }

  truncate(length) {
    if (this.device) return;
    if (size + length - this.size > SIZE_MAX) throw fsError("ENOSPC", "ftruncate");
    if (length > this.bytes.length) {
      const bytes = Buffer.alloc(Math.max(length, Math.min(this.bytes.length * 2, length + 1024 * 1024)));
      this.bytes.copy(bytes, 0, 0, this.size);
      this.bytes = bytes;
    } else if (length < this.size) {
      this.bytes.fill(0, length, this.size);
    }
    size += length - this.size;
    this.size = length;
    this.mtime = this.ctime = Date.now();
  }
  write(bytes, at) {
    if (this.device) return bytes.length;
    if (at + bytes.length > this.size) this.truncate(at + bytes.length);
    this.bytes.set(bytes, at);
    this.mtime = this.ctime = Date.now();
    return bytes.length;
  }
  read(into, at) {
    if (this.device) return this.device(into);
    const got = Math.max(0, Math.min(into.length, this.size - at));
    this.bytes.copy(into, 0, at, at + got);
    return got;
  }
  content() {
    return Buffer.from(this.bytes.subarray(0, this.size));
  }
  release() {
    if (--this.links > 0) return;
    count--;
    if (this.type === FILE) size -= this.size;
  }
}

const root = new Node(DIRECTORY, 0o755);
for (const name of ["tmp", "bundle", "dev"]) root.entries.set(name, new Node(DIRECTORY, name === "tmp" ? 0o777 : 0o555));
for (const [name, device] of Object.entries({
  null: () => 0,
  zero: (into) => into.fill(0).length,
  full: (into) => into.fill(0).length,
  random: (into) => (native.randomFill(into), into.length),
})) {
  const node = new Node(DEVICE, 0o666);
  node.device = device;
  root.entries.get("dev").entries.set(name, node);
}

export function partsOf(path) {
  const parts = [];
  for (const part of (path.startsWith("/") ? path : `/bundle/${path}`).split("/")) {
    if (part === "" || part === ".") continue;
    if (part === "..") parts.pop();
    else parts.push(part);
  }
  return parts;
}

/** Finds { parent, name, node }; node is undefined if the last part is missing. */
export function locate(path, syscall, follow = true, depth = 0) {
  if (depth > LINKS_MAX) throw fsError("ELOOP", syscall, path);
  const parts = partsOf(path);
  let node = root;
  let parent = root;
  for (let i = 0; i < parts.length; i++) {
    if (node.type !== DIRECTORY) throw fsError("ENOTDIR", syscall, path);
    parent = node;
    node = parent.entries.get(parts[i]);
    const last = i === parts.length - 1;
    if (node === undefined) {
      if (last) return { parent, name: parts[i], node };
      throw fsError("ENOENT", syscall, path);
    }
    if (node.type === LINK && (!last || follow)) {
      const target = node.target.startsWith("/") ? node.target : `/${parts.slice(0, i).join("/")}/${node.target}`;
      return locate([target, ...parts.slice(i + 1)].join("/"), syscall, follow, depth + 1);
    }
  }
  return { parent, name: parts.at(-1) ?? "", node };
}

/** The node, which must exist. */
export function find(path, syscall, follow = true) {
  const { node } = locate(path, syscall, follow);
  if (node === undefined) throw fsError("ENOENT", syscall, path);
  return node;
}
