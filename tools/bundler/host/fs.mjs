// node:fs and node:fs/promises. Everything is done at once: nothing else could be done meanwhile.
import native from "./native.mjs";

export const readFileSync = (path, encoding) => {
  const bytes = native.read(path);
  return encoding ? native.decode(bytes) : Buffer.over(bytes);
};
export const writeFileSync = (path, contents) => native.write(path, contents);
export const unlinkSync = (path) => native.unlink(path);
export const realpathSync = (path) => native.realpath(path);
export const existsSync = (path) => {
  try {
    native.stat(path);
    return true;
  } catch {
    return false;
  }
};

const calledBack = (work) => (...args) => {
  const callback = args.pop();
  promised(work)(...args).then((value) => callback(null, value), callback);
};
const promised = (work) => async (...args) => work(...args);

const read = calledBack(readFileSync);
const write = calledBack(writeFileSync);
/** With a callback, as esbuild's library wants it, or a promise. */
export const readFile = (...args) => (typeof args.at(-1) === "function" ? read(...args) : promised(readFileSync)(...args));
export const writeFile = (...args) => (typeof args.at(-1) === "function" ? write(...args) : promised(writeFileSync)(...args));
export const unlink = calledBack(unlinkSync);

export const rename = promised((from, to) => native.rename(from, to));

/** With `recursive`: those above it too, and one that is there is no mistake. */
export const mkdir = promised((path, { recursive = false } = {}) => {
  const names = path.split("/");
  for (let i = recursive ? 1 : names.length; i <= names.length; i++) {
    const folder = names.slice(0, i).join("/");
    if (folder === "") continue;
    try {
      native.mkdir(folder);
    } catch (error) {
      if (!recursive || error.code !== "EEXIST") throw error;
    }
  }
});

export const rm = promised((path, { force = false } = {}) => {
  try {
    native.unlink(path);
  } catch (error) {
    if (!force || error.code !== "ENOENT") throw error;
  }
});

class Entry {
  #type;
  constructor(name, type) {
    this.name = name;
    this.#type = type;
  }
  isDirectory() {
    return this.#type === "d";
  }
  isFile() {
    return this.#type === "f";
  }
}

/** Entries, whether or not `withFileTypes` asks for them. */
export const readdir = promised((path) => {
  const found = native.readdir(path);
  return found.flatMap((name, i) => (i % 2 === 0 ? [new Entry(name, found[i + 1])] : []));
});

/** With `bigint`, which is what is asked for here. */
export const stat = promised((path) => {
  const [, size, seconds, nanoseconds] = native.stat(path);
  const mtimeNs = BigInt(seconds) * 1000000000n + BigInt(nanoseconds);
  return { size: BigInt(size), mtimeNs, mtimeMs: mtimeNs / 1000000n };
});
