// Well-known symbols that the engine does not have yet; imported before anything that uses them.
for (const name of ["dispose", "asyncDispose"]) {
  if (Symbol[name] === undefined) {
    Object.defineProperty(Symbol, name, { value: Symbol(`Symbol.${name}`), writable: false, enumerable: false, configurable: false });
  }
}
