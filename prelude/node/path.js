// node:path, in both kinds. The current directory of resolve() is the root, as on the platform.
import { validateObject, validateString } from "./internal/errors.js";

const SLASH = 47;
const BACKSLASH = 92;
const isPosixSeparator = (code) => code === SLASH;
const isWindowsSeparator = (code) => code === SLASH || code === BACKSLASH;
const isLetter = (code) => (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
const check = (path, name = "path") => validateString(path, name);

/** Segments without "." and, as far as they can be resolved, "..". */
function normalizeSegments(path, mayClimb, separator, isSeparator) {
  const out = [];
  let start = 0;
  for (let i = 0; i <= path.length; i++) {
    if (i < path.length && !isSeparator(path.charCodeAt(i))) continue;
    const part = path.slice(start, i);
    start = i + 1;
    if (part === "" || part === ".") continue;
    if (part !== "..") out.push(part);
    else if (out.length > 0 && out.at(-1) !== "..") out.pop();
    else if (mayClimb) out.push("..");
  }
  return out.join(separator);
}

/** Where the last segment begins and ends, trailing separators left out. */
function lastSegment(path, from, isSeparator) {
  let end = path.length;
  while (end > from && isSeparator(path.charCodeAt(end - 1))) end--;
  let start = end;
  while (start > from && !isSeparator(path.charCodeAt(start - 1))) start--;
  return [start, end];
}

/** The index of the dot before the extension, or -1. */
function extensionAt(base) {
  const dot = base.lastIndexOf(".");
  return dot <= 0 || base === ".." ? -1 : dot;
}
const extensionOf = (base) => {
  const at = extensionAt(base);
  return at < 0 ? "" : base.slice(at);
};

/** `from`: behind the drive. */
function withoutSuffix(path, base, suffix, from = 0) {
  if (suffix === undefined || suffix === "" || suffix.length > path.length) return base;
  if (suffix === path) return "";
  if (base === "") return path.slice(from); // separators alone
  return base !== suffix && base.endsWith(suffix) ? base.slice(0, -suffix.length) : base;
}

function formatPath(separator, object) {
  validateObject(object, "pathObject");
  const directory = object.dir || object.root;
  const { ext } = object;
  const base = object.base || `${object.name || ""}${ext ? (ext[0] === "." ? ext : `.${ext}`) : ""}`;
  if (!directory) return base;
  return directory === object.root ? `${directory}${base}` : `${directory}${separator}${base}`;
}
const notThere = (kind) => {
  throw new Error(`path.${kind}.matchesGlob() is not implemented.`);
};

const posix = {
  resolve(...paths) {
    let resolved = "";
    for (let i = paths.length - 1; i >= -1 && !resolved.startsWith("/"); i--) {
      const path = i >= 0 ? paths[i] : "/";
      check(path, i >= 0 ? `paths[${i}]` : "path");
      if (path !== "") resolved = resolved === "" ? path : `${path}/${resolved}`;
    }
    return `/${normalizeSegments(resolved, false, "/", isPosixSeparator)}`;
  },
  normalize(path) {
    check(path);
    if (path === "") return ".";
    const absolute = path.startsWith("/");
    let text = normalizeSegments(path, !absolute, "/", isPosixSeparator);
    if (text === "") {
      if (absolute) return "/";
      return path.endsWith("/") ? "./" : ".";
    }
    if (path.endsWith("/")) text += "/";
    return absolute ? `/${text}` : text;
  },
  isAbsolute(path) {
    check(path);
    return path.startsWith("/");
  },
  join(...paths) {
    for (const path of paths) check(path);
    const joined = paths.filter((path) => path !== "").join("/");
    return joined === "" ? "." : posix.normalize(joined);
  },
  relative(from, to) {
    check(from, "from");
    check(to, "to");
    if (from === to) return "";
    const split = (path) => posix.resolve(path).split("/").filter((part) => part !== "");
    const a = split(from);
    const b = split(to);
    let same = 0;
    while (same < a.length && same < b.length && a[same] === b[same]) same++;
    return [...a.slice(same).map(() => ".."), ...b.slice(same)].join("/");
  },
  toNamespacedPath(path) {
    return path;
  },
  dirname(path) {
    check(path);
    if (path === "") return ".";
    const [start] = lastSegment(path, 0, isPosixSeparator);
    const rooted = path.startsWith("/");
    const end = start - 1; // the separator before the last segment
    if (end < 1) return rooted ? "/" : ".";
    return rooted && end === 1 ? "//" : path.slice(0, end);
  },
  basename(path, suffix = undefined) {
    if (suffix !== undefined) check(suffix, "suffix");
    check(path);
    const [start, end] = lastSegment(path, 0, isPosixSeparator);
    return withoutSuffix(path, path.slice(start, end), suffix);
  },
  extname(path) {
    check(path);
    const [start, end] = lastSegment(path, 0, isPosixSeparator);
    return extensionOf(path.slice(start, end));
  },
  format: (object) => formatPath("/", object),
  parse(path) {
    check(path);
    const root = path.startsWith("/") ? "/" : "";
    const [start, end] = lastSegment(path, root.length, isPosixSeparator);
    const base = path.slice(start, end);
    const ext = extensionOf(base);
    const dir = start > root.length ? path.slice(0, start - 1) : root;
    return { root, dir, base, ext, name: ext === "" ? base : base.slice(0, -ext.length) };
  },
  matchesGlob: () => notThere("posix"),
  sep: "/",
  delimiter: ":",
  win32: null,
  posix: null,
};

/**
 * What a path of Windows begins with: {device, end, absolute}. The device is "C:" or
 * "\\\\server\\share"; `end` is where the rest begins; `whole` is true if there is no rest.
 */
function windowsRoot(path) {
  const first = path.charCodeAt(0);
  if (isWindowsSeparator(first)) {
    const share = /^[\\/]{2}([^\\/]+)[\\/]+([^\\/]+)/.exec(path);
    if (share) return { device: `\\\\${share[1]}\\${share[2]}`, end: share[0].length, absolute: true, whole: share[0].length === path.length };
    return { device: "", end: 1, absolute: true, whole: false };
  }
  if (isLetter(first) && path[1] === ":") {
    const absolute = isWindowsSeparator(path.charCodeAt(2));
    return { device: path.slice(0, 2), end: absolute ? 3 : 2, absolute, whole: false };
  }
  return { device: "", end: 0, absolute: false, whole: false };
}

const win32 = {
  resolve(...paths) {
    let device = "";
    let tail = "";
    let absolute = false;
    for (let i = paths.length - 1; i >= -1; i--) {
      let path;
      if (i >= 0) {
        path = paths[i];
        check(path, `paths[${i}]`);
        if (path === "") continue;
      } else {
        path = device === "" ? "/" : `${device}\\`;
      }
      const root = windowsRoot(path);
      if (root.device !== "") {
        if (device !== "" && root.device.toLowerCase() !== device.toLowerCase()) continue;
        device ||= root.device;
      }
      if (absolute) {
        if (device !== "") break;
      } else {
        tail = `${path.slice(root.end)}\\${tail}`;
        absolute = root.absolute;
        if (absolute && device !== "") break;
      }
    }
    tail = normalizeSegments(tail, !absolute, "\\", isWindowsSeparator);
    return absolute ? `${device}\\${tail}` : `${device}${tail}` || ".";
  },
  normalize(path) {
    check(path);
    if (path === "") return ".";
    if (path.length === 1) return path === "/" ? "\\" : path;
    const { device, end, absolute, whole } = windowsRoot(path);
    if (whole) return `${device}\\`;
    let tail = end < path.length ? normalizeSegments(path.slice(end), !absolute, "\\", isWindowsSeparator) : "";
    if (tail === "" && !absolute) tail = ".";
    if (tail !== "" && isWindowsSeparator(path.charCodeAt(path.length - 1))) tail += "\\";
    // "a/../C:/b" must not become a drive.
    if (!absolute && device === "" && path.includes(":") && (/^[a-z]:/i.test(tail) || /:(?=$|[\\/])/.test(path))) {
      if (/^[a-z]:/i.test(tail)) return `.\\${tail}`;
    }
    return absolute ? `${device}\\${tail}` : `${device}${tail}`;
  },
  isAbsolute(path) {
    check(path);
    if (path === "") return false;
    return isWindowsSeparator(path.charCodeAt(0)) || (path.length > 2 && /^[a-z]:[\\/]/i.test(path));
  },
  join(...paths) {
    for (const path of paths) check(path);
    const given = paths.filter((path) => path !== "");
    if (given.length === 0) return ".";
    let joined = given.join("\\");
    // Two separators in front mean a server only if the first path begins so.
    const [first] = given;
    let slashes = /^[\\/]*/.exec(first)[0].length;
    const isServer = slashes === 2 && first.length > 2;
    if (!isServer) {
      slashes = /^[\\/]*/.exec(joined)[0].length;
      if (slashes >= 2) joined = `\\${joined.slice(slashes)}`;
    }
    return win32.normalize(joined);
  },
  relative(from, to) {
    check(from, "from");
    check(to, "to");
    if (from === to) return "";
    const source = win32.resolve(from);
    const target = win32.resolve(to);
    if (source === target || source.toLowerCase() === target.toLowerCase()) return "";
    const split = (path) => path.split("\\").filter((part) => part !== "");
    const a = split(source);
    const b = split(target);
    let same = 0;
    while (same < a.length && same < b.length && a[same].toLowerCase() === b[same].toLowerCase()) same++;
    if (same === 0 && a.length > 0 && b.length > 0) return target; // nothing in common
    if (a.length === 0 && !target.startsWith("\\")) return target;
    // Different shares of one server have nothing in common.
    if (source.startsWith("\\\\") && same < 2) return target;
    return [...a.slice(same).map(() => ".."), ...b.slice(same)].join("\\");
  },
  toNamespacedPath(path) {
    if (typeof path !== "string" || path === "") return path;
    const resolved = win32.resolve(path);
    if (resolved.length <= 2) return path;
    if (resolved.startsWith("\\\\") && resolved[2] !== "?" && resolved[2] !== ".") return `\\\\?\\UNC\\${resolved.slice(2)}`;
    if (/^[a-z]:\\/i.test(resolved)) return `\\\\?\\${resolved}`;
    return resolved;
  },
  dirname(path) {
    check(path);
    if (path === "") return ".";
    if (path.length === 1) return isWindowsSeparator(path.charCodeAt(0)) ? path : ".";
    const { end: root, whole, device } = windowsRoot(path);
    if (whole) return path;
    // The separator behind a share belongs to the root.
    const from = device.startsWith("\\\\") ? root + 1 : root;
    const [start] = lastSegment(path, Math.min(from, path.length), isWindowsSeparator);
    if (start <= from) return from === 0 ? "." : path.slice(0, from);
    return path.slice(0, start - 1);
  },
  basename(path, suffix = undefined) {
    if (suffix !== undefined) check(suffix, "suffix");
    check(path);
    const from = /^[a-z]:/i.test(path) ? 2 : 0;
    const [start, end] = lastSegment(path, from, isWindowsSeparator);
    return withoutSuffix(path, path.slice(start, end), suffix, from);
  },
  extname(path) {
    check(path);
    const from = /^[a-z]:/i.test(path) ? 2 : 0;
    const [start, end] = lastSegment(path, from, isWindowsSeparator);
    return extensionOf(path.slice(start, end));
  },
  format: (object) => formatPath("\\", object),
  parse(path) {
    check(path);
    const empty = { root: "", dir: "", base: "", ext: "", name: "" };
    if (path === "") return empty;
    if (path.length === 1) return isWindowsSeparator(path.charCodeAt(0)) ? { ...empty, root: path, dir: path } : { ...empty, base: path, name: path };
    const { end, device, whole } = windowsRoot(path);
    const rootEnd = device.startsWith("\\\\") && !whole ? end + 1 : end;
    const root = path.slice(0, rootEnd);
    const [start, stop] = lastSegment(path, Math.min(rootEnd, path.length), isWindowsSeparator);
    const base = path.slice(start, stop);
    const ext = extensionOf(base);
    const dir = start > 0 && start !== rootEnd ? path.slice(0, start - 1) : root;
    return { root, dir, base, ext, name: ext === "" ? base : base.slice(0, -ext.length) };
  },
  matchesGlob: () => notThere("win32"),
  sep: "\\",
  delimiter: ";",
  win32: null,
  posix: null,
};
posix.win32 = win32.win32 = win32;
posix.posix = win32.posix = posix;

export { posix, win32 };
export default posix;
