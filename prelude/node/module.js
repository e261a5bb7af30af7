// node:module
import { invalidArgValue, notImplemented, validateString } from "./internal/errors.js";
import { modules } from "./internal/internals.js";
import names from "./names.json";

/** Only by their full names: "test" may be a package. */
const PREFIXED = new Set(["sqlite", "test"]);
export const builtinModules = names.filter((name) => name.startsWith("node:") && !PREFIXED.has(name.slice(5))).map((name) => name.slice(5));

const find = (name) => {
  const full = name.startsWith("node:") ? name : PREFIXED.has(name) ? name : `node:${name}`;
  return Object.hasOwn(modules, full) ? full : undefined;
};
function isBuiltin(name) {
  validateString(name, "id");
  return find(name) !== undefined && !name.startsWith("cloudflare:");
}

function createRequire(path) {
  const text = `${path}`;
  if (!text.startsWith("/") && !text.startsWith("file:")) {
    throw invalidArgValue("path", text, "The argument must be a file URL object, a file URL string, or an absolute path string.");
  }
  return function require(id) {
    validateString(id, "id");
    const full = find(id);
    if (full === undefined) throw new Error(`No such module "${id}".`);
    const module = modules[full];
    return module.default ?? module;
  };
}

const absent = (name) => ({ [name]() { throw notImplemented(`module.${name}`); } })[name];
const absentAll = (list) => Object.fromEntries(list.map((name) => [name, absent(name)]));
const bare = (object = {}) => Object.assign(Object.create(null), object);
const extensions = { ".js": absent(".js"), ".json": absent(".json"), ".node": absent(".node") };
Object.defineProperties(createRequire, {
  resolve: { value: absent("resolve"), enumerable: true, configurable: true, writable: true },
  paths: { value: absent("paths"), enumerable: true, configurable: true, writable: true },
  cache: { value: bare(), enumerable: true, configurable: true, writable: true },
  extensions: { value: extensions, enumerable: true, configurable: true, writable: true },
  main: { value: undefined, enumerable: true, configurable: true, writable: true },
});

function Module() {
  throw notImplemented("module.Module");
}
Object.assign(Module.prototype, { load() {}, require() {}, _compile() {} });
Object.defineProperty(Module.prototype, "isPreloading", { get: () => false, configurable: true });

Object.assign(Module, {
  ...absentAll(["register"]),
  constants: bare({ compileCacheStatus: bare({ FAILED: 0, ENABLED: 1, ALREADY_ENABLED: 2, DISABLED: 3 }) }),
  enableCompileCache() {},
  ...absentAll(["findPackageJSON"]),
  flushCompileCache() {},
  getCompileCacheDir() {},
  ...absentAll(["stripTypeScriptTypes", "findSourceMap"]),
  SourceMap: function SourceMap() { throw notImplemented("module.SourceMap"); },
  getSourceMapsSupport() { return { enabled: false, nodeModules: false, generatedCode: false }; },
  ...absentAll(["setSourceMapsSupport"]),
  createRequire, builtinModules, globalPaths: [], isBuiltin,
  ...absentAll(["runMain", "syncBuiltinESMExports", "wrap"]),
  _cache: bare(),
  ...absentAll(["_debug"]),
  _extensions: extensions,
  ...absentAll(["_findPath", "_initPaths", "_load"]),
  _pathCache: bare(),
  ...absentAll(["_preloadModules", "_resolveFilename", "_resolveLookupPaths", "_nodeModulePaths"]),
  ...absentAll(["registerHooks"]),
});
Module.Module = Module;
export default Module;
