// node:module: the names of Node.js's modules, and where require() finds a package.
import path from "node:path";
import { existsSync, readFileSync } from "./fs.mjs";

export const builtinModules = [
  "assert", "assert/strict", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto", "dgram",
  "diagnostics_channel", "dns", "dns/promises", "domain", "events", "fs", "fs/promises", "http", "http2", "https", "inspector",
  "inspector/promises", "module", "net", "os", "path", "path/posix", "path/win32", "perf_hooks", "process", "punycode",
  "querystring", "readline", "readline/promises", "repl", "stream", "stream/consumers", "stream/promises", "stream/web",
  "string_decoder", "sys", "timers", "timers/promises", "tls", "trace_events", "tty", "url", "util", "util/types", "v8", "vm",
  "wasi", "worker_threads", "zlib",
];

/** What "exports" of a package.json gives Node.js for the package itself; undefined: nothing. */
function exported(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(exported).find((each) => each !== undefined);
  if (value === null || typeof value !== "object") return undefined;
  if ("." in value) return exported(value["."]);
  const name = Object.keys(value).find((key) => ["node", "require", "default"].includes(key) && exported(value[key]) !== undefined);
  return name && exported(value[name]);
}

function fileOf(folder) {
  const { main = "index.js", exports } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  const entry = path.join(folder, exported(exports) ?? main);
  return [entry, `${entry}.js`, path.join(entry, "index.js")].find((file) => /\.\w+$/.test(file) && existsSync(file));
}

/** @param {string} from a file */
export const createRequire = (from) => ({
  /** Of a package's name alone. */
  resolve(name) {
    for (let folder = path.dirname(from); ; folder = path.dirname(folder)) {
      const found = path.join(folder, "node_modules", name);
      const file = existsSync(path.join(found, "package.json")) && fileOf(found);
      if (file) return file;
      if (folder === path.dirname(folder)) throw new Error(`Cannot find module '${name}'`);
    }
  },
});
