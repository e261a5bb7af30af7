// node:console: the global one, and a class that writes to streams.
import { validateString } from "./internal/errors.js";
import { format } from "./internal/internals.js";

class Console {
  #out;
  #error;
  constructor(out, error = undefined) {
    const options = typeof out?.write === "function" ? { stdout: out, stderr: error } : out;
    this.#out = options.stdout;
    this.#error = options.stderr ?? options.stdout;
    for (const name of ["log", "info", "debug"]) this[name] = (...args) => this.#write(this.#out, args);
    for (const name of ["warn", "error", "trace"]) this[name] = (...args) => this.#write(this.#error, args);
  }
  #write(stream, args) {
    stream.write(`${format(args)}\n`);
  }
  assert(condition, ...args) {
    if (!condition) this.error("Assertion failed", ...args);
  }
  dir(value) {
    this.log(value);
  }
}

const module = Object.create(globalThis.console);
for (const name of Object.keys(globalThis.console)) if (name !== "Console") module[name] = globalThis.console[name];
/** A task of the inspector, which there is none of: its work is done. */
function createTask(name) {
  validateString(name, "name");
  return { run: (work) => work() };
}
for (const [name, value] of Object.entries({
  _times: new Map(), _ignoreErrors: true, _stdoutErrorHandler() {}, _stderrErrorHandler() {},
})) Object.defineProperty(module, name, { value, writable: true, configurable: true, enumerable: false });
for (const name of ["stdout", "stderr"]) {
  Object.defineProperty(module, `_${name}`, { get: () => require("./process.js").default[name], configurable: true, enumerable: false });
}
export default Object.assign(module, { Console, createTask });
