// WebAssembly's asynchronous functions. The engine has them, but their promises are settled by an
// event loop of its own that does not run here: they never resolve. The synchronous constructors
// do the same work, so the functions are rebuilt on those.
// https://webassembly.github.io/spec/js-api/, https://webassembly.github.io/spec/web-api/
const { WebAssembly } = globalThis;
const { Module, Instance } = WebAssembly;

/** The bytes as they are now: what the script does to them later does not count. */
function copyOf(source, name) {
  if (ArrayBuffer.isView(source)) {
    return new Uint8Array(source.buffer, source.byteOffset, source.byteLength).slice();
  }
  if (source instanceof ArrayBuffer) return new Uint8Array(source).slice();
  throw new TypeError(`WebAssembly.${name}(): Argument 0 must be a buffer source or a WebAssembly.Module`);
}

function checkImports(imports, name) {
  if (imports !== undefined && (imports === null || (typeof imports !== "object" && typeof imports !== "function"))) {
    throw new TypeError(`WebAssembly.${name}(): Argument 1 must be an object`);
  }
}

const functions = {
  async compile(source) {
    const bytes = copyOf(source, "compile");
    await undefined;
    return new Module(bytes);
  },

  async instantiate(source, imports = undefined) {
    if (source instanceof Module) {
      checkImports(imports, "instantiate");
      await undefined;
      return new Instance(source, imports);
    }
    const bytes = copyOf(source, "instantiate");
    checkImports(imports, "instantiate");
    await undefined;
    const module = new Module(bytes);
    return { module, instance: new Instance(module, imports) };
  },

  async compileStreaming(source) {
    return new Module(await responseBytes(source, "compileStreaming"));
  },

  async instantiateStreaming(source, imports = undefined) {
    checkImports(imports, "instantiateStreaming");
    const module = new Module(await responseBytes(source, "instantiateStreaming"));
    return { module, instance: new Instance(module, imports) };
  },
};

async function responseBytes(source, name) {
  const response = await source;
  if (!(response instanceof globalThis.Response)) {
    throw new TypeError(`WebAssembly.${name}(): Argument 0 must be a Response or a promise of one`);
  }
  if (!response.ok) throw new TypeError(`WebAssembly.${name}(): HTTP status code is not ok`);
  const type = (response.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase();
  if (type !== "application/wasm") {
    throw new TypeError(`WebAssembly.${name}(): Incorrect response MIME type. Expected 'application/wasm'.`);
  }
  return response.arrayBuffer();
}

export function installWebAssembly() {
  for (const name of Object.keys(functions)) {
    Object.defineProperty(WebAssembly, name, {
      value: functions[name],
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
}
