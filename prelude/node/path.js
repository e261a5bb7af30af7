// node:path: POSIX, as on the machines that workers run on.
import posix from "path-browserify";
import { unsupported } from "./internal/stub.js";

const win32 = { sep: "\\", delimiter: ";" };
for (const name of ["basename", "dirname", "extname", "format", "isAbsolute", "join", "normalize", "parse", "relative", "resolve", "toNamespacedPath", "matchesGlob"]) {
  win32[name] = unsupported(`path.win32.${name}()`);
}
const path = {
  ...posix,
  toNamespacedPath: (p) => p,
  matchesGlob(p, pattern) {
    const source = pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*\*\/?|\*|\?/g, (g) => (g === "?" ? "[^/]" : g === "*" ? "[^/]*" : "(?:.*/)?"));
    return new RegExp(`^${source}$`).test(p);
  },
  win32,
};
path.posix = path;
win32.posix = path;
win32.win32 = win32;
export default path;
