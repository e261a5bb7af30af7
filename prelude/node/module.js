// node:module
import { nodeError } from "./internal/errors.js";
import { unsupported } from "./internal/stub.js";
import { modules } from "./internal/internals.js";

const builtinModules = Object.keys(modules).filter((name) => name.startsWith("node:")).map((name) => name.slice(5));

function createRequire(location) {
  if (typeof location !== "string" && !(location instanceof URL)) {
    throw nodeError(TypeError, "ERR_INVALID_ARG_VALUE", "The argument 'filename' must be a file URL object, file URL string, or absolute path string.");
  }
  const require = (name) => {
    const full = name.startsWith("node:") ? name : `node:${name}`;
    if (Object.hasOwn(modules, full)) return modules[full].default;
    throw nodeError(Error, "MODULE_NOT_FOUND", `Cannot find module '${name}'`);
  };
  require.resolve = (name) => name;
  require.cache = {};
  return require;
}

export default Object.assign(unsupported("Module of node:module"), {
  builtinModules,
  createRequire,
  isBuiltin: (name) => builtinModules.includes(name.replace(/^node:/, "")),
  findSourceMap: () => undefined,
  register: unsupported("register() of node:module"),
  syncBuiltinESMExports() {},
});
