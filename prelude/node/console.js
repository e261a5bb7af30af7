// node:console: the global one, and a class that writes to streams.
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
for (const name of Object.keys(globalThis.console)) module[name] = globalThis.console[name];
export default Object.assign(module, { Console });
