// Modules that a worker can import and has no use for: no processes, terminals, threads or debuggers.
// Their names, shapes and errors are those of the platform. Each function below makes one module.
import { Buffer } from "./buffer.js";
import { EventEmitter } from "./events.js";
import {
  invalidArgType, invalidArgValue, nodeError, notImplemented, validateArray, validateBoolean, validateBuffer, validateFunction, validateInt32, validateObject, validateOneOf, validateString, validateUint32, optionally, readOptions,
} from "./internal/errors.js";
import { format } from "./internal/inspect.js";
import { compatibilityFlags } from "./internal/internals.js";

/** A function that throws; `check` looks at its arguments first. */
function absent(name, { as = name, length = 0, check = undefined } = {}) {
  const f = {
    [as](...args) {
      check?.(...args);
      throw notImplemented(name);
    },
  }[as];
  return Object.defineProperty(f, "length", { value: length, configurable: true });
}
/** { key: a function that throws } of names, which may have a prefix in the message. */
const absentAll = (prefix, names) => Object.fromEntries(names.map((name) => [name, absent(`${prefix}${name}`, { as: name })]));
const methods = (Class, table) => {
  for (const [name, value] of Object.entries(table)) Object.defineProperty(Class.prototype, name, { value, writable: true, configurable: true, enumerable: false });
};
const nothing = (name, length, result = () => undefined) =>
  Object.defineProperty({ [name](...args) { return Reflect.apply(result, this, args); } }[name], "length", { value: length, configurable: true });
const validateStrings = (value, name) => {
  validateArray(value, name);
  value.forEach((item, i) => validateString(item, `${name}[${i}]`));
};

export function childProcess() {
  class ChildProcess extends EventEmitter {
    constructor() {
      super();
      throw notImplemented("child_process.ChildProcess");
    }
    kill(_signal) { return false; }
    send(_message, _handle, _options, _callback) { return false; }
    disconnect() {}
    unref() {}
    ref() {}
    [Symbol.dispose]() { this.kill(); }
  }
  const name = (method, length, check = undefined) => absent(`child_process.${method}`, { as: method, length, check });
  const optional = (value, validate, argument) => {
    if (value !== undefined && value !== null) validate(value, argument);
  };
  return {
    ChildProcess,
    _forkChild: name("_forkChild", 2),
    exec: name("exec", 3, (command, options, callback) => {
      validateString(command, "command");
      optional(options, validateObject, "options");
      optional(callback, validateFunction, "callback");
    }),
    execFile: name("execFile", 4),
    execFileSync: name("execFileSync", 3),
    execSync: name("execSync", 2),
    fork: name("fork", 3, (path, args, options) => {
      if (args !== null && typeof args === "object" && !Array.isArray(args)) options = args;
      else optional(args, validateArray, "args");
      optional(options, validateObject, "options");
    }),
    spawn: name("spawn", 0),
    spawnSync: name("spawnSync", 3, (command) => validateString(command, "command")),
  };
}

export function cluster() {
  class Worker extends EventEmitter {
    _connected = false;
    id = 0;
    constructor(_options) { super(); }
    get process() { return globalThis.process; }
    get exitedAfterDisconnect() { return this._connected; }
    isConnected() { return this._connected; }
    isDead() { return true; }
    send(_message, _handle, _options, _callback) { return false; }
    kill(_signal) { this._connected = false; }
    destroy(_signal) { this._connected = false; }
    disconnect() {
      this._connected = false;
      return this;
    }
  }
  const functions = {
    fork: absent("cluster.fork", { as: "fork", length: 1 }),
    disconnect: absent("cluster.disconnect", { as: "disconnect", length: 1 }),
    setupPrimary: absent("cluster.setupPrimary", { as: "setupPrimary", length: 1 }),
    setupMaster: absent("cluster.setupWorker", { as: "setupMaster", length: 1 }),
  };
  class Cluster extends EventEmitter {
    Worker = Worker;
    isMaster = true;
    isPrimary = true;
    isWorker = false;
    SCHED_NONE = 1;
    SCHED_RR = 2;
    schedulingPolicy = 2;
    settings = {};
    workers = {};
  }
  methods(Cluster, functions);
  return { default: new Cluster(), extras: { Cluster, ...functions } };
}

export function dgram() {
  function Socket(type, callback) {
    if (!(this instanceof Socket)) return new Socket(type, callback);
    EventEmitter.call(this);
    validateObject(typeof type === "string" ? { type } : type, "type");
    if (callback !== undefined) validateFunction(callback, "callback");
    return this;
  }
  Object.setPrototypeOf(Socket.prototype, EventEmitter.prototype);
  Object.setPrototypeOf(Socket, EventEmitter);
  const self = function () { return this; };
  for (const [name, length, result] of [
    ["bind", 3, self], ["connect", 3], ["disconnect", 0], ["sendto", 6], ["send", 6], ["close", 1, self], ["address", 0, () => ({})], ["remoteAddress", 0, () => ({})],
    ["setBroadcast", 1], ["setTTL", 1], ["setMulticastTTL", 1], ["setMulticastLoopback", 1], ["setMulticastInterface", 1], ["addMembership", 2],
    ["dropMembership", 2], ["addSourceSpecificMembership", 3], ["dropSourceSpecificMembership", 3], ["ref", 0, self], ["unref", 0, self],
    ["setRecvBufferSize", 1], ["setSendBufferSize", 1], ["getRecvBufferSize", 0, () => 0], ["getSendBufferSize", 0, () => 0], ["getSendQueueSize", 0, () => 0], ["getSendQueueCount", 0, () => 0],
  ]) Socket.prototype[name] = nothing(name, length, result);
  Socket.prototype[Symbol.asyncDispose] = async function () {};
  return { createSocket(type, callback) { return new Socket(type, callback); }, Socket };
}

export function domain() {
  EventEmitter.usingDomains = false;
  class Domain extends EventEmitter {
    members = undefined;
    _errorHandler(error) { throw error; }
    enter() {}
    exit() {}
    add(_emitter) {}
    remove(_emitter) {}
    run(fn, ...args) {
      this.enter();
      const result = Reflect.apply(fn, this, args);
      this.exit();
      return result;
    }
    intercept(callback) { return callback; }
    bind(callback) { return callback; }
  }
  function createDomain() {
    return new Domain();
  }
  // On the platform `create` is a domain, in Node.js a function: here both.
  const create = Object.setPrototypeOf(Object.assign(function create() { return new Domain(); }, { members: undefined }), Domain.prototype);
  return { Domain, active: null, createDomain, create };
}

function noteless() {
  const noop = () => {};
  return Object.fromEntries(["debug", "error", "info", "log", "warn", "dir", "dirxml", "table", "trace", "group", "groupCollapsed", "groupEnd", "clear", "count", "countReset", "assert", "profile", "profileEnd", "time", "timeLog", "timeStamp"].map((name) => [name, noop]));
}

/** With the flag for local development there is a session; the engine has nothing to tell it. */
function inspectorSession(promised) {
  class Session extends EventEmitter {
    #connected = false;
    connect() {
      if (this.#connected) throw nodeError(Error, "ERR_INSPECTOR_ALREADY_CONNECTED", "The inspector session is already connected");
      this.#connected = true;
    }
    connectToMainThread() {
      throw nodeError(Error, "ERR_INSPECTOR_NOT_WORKER", "Current thread is not a worker");
    }
    disconnect() {
      this.#connected = false;
    }
    post(method, params, callback = undefined) {
      if (typeof method !== "string") throw invalidArgType("method", "of type string", method);
      if (!this.#connected) throw nodeError(Error, "ERR_INSPECTOR_NOT_CONNECTED", "Session is not connected");
      const error = nodeError(Error, "ERR_INSPECTOR_COMMAND", `Inspector error -32601: '${method}' wasn't found`);
      if (promised) return Promise.reject(error);
      const answer = typeof params === "function" ? params : callback;
      if (typeof answer === "function") queueMicrotask(() => answer(error));
      return undefined;
    }
  }
  return Session;
}

function stubSession() {
  class Session extends EventEmitter {
    constructor() {
      super();
      throw notImplemented("Session");
    }
  }
  methods(Session, Object.fromEntries([["connect", 0], ["connectToMainThread", 0], ["disconnect", 0], ["post", 3]].map(([name, length]) => [name, absent(`Session.${name}`, { as: name, length })])));
  return Session;
}

export function inspector(promised) {
  const Network = {};
  for (const name of ["requestWillBeSent", "dataReceived", "dataSent", "responseReceived", "loadingFinished", "loadingFailed", "webSocketCreated", "webSocketHandshakeResponseReceived", "webSocketClosed"]) {
    Network[name] = absent(`Network.${name}`, { as: name, length: 1 });
  }
  return {
    Session: compatibilityFlags.has("enable_nodejs_inspector_local_dev") ? inspectorSession(promised) : stubSession(),
    close: promised ? absent("close") : nothing("close", 0),
    console: noteless(),
    open: promised ? absent("open") : nothing("open", 3, () => ({ [Symbol.dispose]: async () => {} })),
    url: promised ? absent("url") : nothing("url", 0),
    waitForDebugger: promised ? absent("waitForDebugger") : nothing("waitForDebugger", 0),
    Network,
  };
}

class Interface extends EventEmitter {
  terminal = false;
  line = "";
  cursor = 0;
  getPrompt() { return ""; }
  setPrompt(_prompt) {}
  prompt(_preserveCursor) {}
  question(_query, options, callback) {
    const answer = typeof options === "function" ? options : callback;
    if (typeof answer === "function") answer("");
  }
  pause() { return this; }
  resume() { return this; }
  close() {}
  write(_data, _key) {}
  getCursorPos() { return { rows: 0, cols: 0 }; }
  [Symbol.dispose]() { this.close(); }
  async [Symbol.asyncDispose]() { this.close(); }
  async *[Symbol.asyncIterator]() { yield ""; }
}

let readlinePromisesModule = null;
export function readlinePromises() {
  if (readlinePromisesModule !== null) return readlinePromisesModule;
  const PromisesInterface = { Interface: class extends Interface {
    async question(_query, _options) { return ""; }
  } }.Interface;
  class Readline {
    clearLine(_direction) { return this; }
    clearScreenDown() { return this; }
    async commit() {}
    cursorTo(_x, _y) { return this; }
    moveCursor(_dx, _dy) { return this; }
    rollback() { return this; }
  }
  readlinePromisesModule = { Interface: PromisesInterface, Readline, createInterface() { return new PromisesInterface(); } };
  return readlinePromisesModule;
}

export function readline() {
  return {
    clearLine() { return false; },
    clearScreenDown() { return false; },
    createInterface() { return new Interface(); },
    cursorTo() { return false; },
    emitKeypressEvents() {},
    moveCursor() { return false; },
    Interface,
    promises: Object.assign(Object.create(null), readlinePromises()),
  };
}

export function repl() {
  const writer = absent("writer");
  writer.options = { showHidden: false, depth: 2, colors: true, customInspect: true, showProxy: true, maxArrayLength: 100, maxStringLength: 10000, breakLength: 80, compact: 3, sorted: false, getters: false, numericSeparator: false };
  class Recoverable extends SyntaxError {
    constructor(err) {
      super();
      this.err = err;
    }
  }
  class REPLServer extends Interface {
    constructor() {
      super();
      throw notImplemented("REPLServer");
    }
  }
  methods(REPLServer, Object.fromEntries([["setupHistory", 2], ["defineCommand", 2], ["displayPrompt", 1], ["clearBufferedCommand", 0]].map(([name, length]) => [name, absent(name, { length })])));
  const builtinModules = require("./module.js").builtinModules.filter((name) => !name.startsWith("_"));
  return { writer, start: absent("start"), Recoverable, REPLServer, builtinModules, _builtinLibs: builtinModules, REPL_MODE_SLOPPY: Symbol("repl-sloppy"), REPL_MODE_STRICT: Symbol("repl-strict") };
}

export function sqlite() {
  class DatabaseSync {
    constructor() { throw new TypeError("Illegal constructor"); }
  }
  class StatementSync {
    constructor() { throw new TypeError("Illegal constructor"); }
  }
  return {
    DatabaseSync, StatementSync, constants: require("./data/sqlite-constants.json"),
    backup() { throw new Error("backup is not implemented"); },
  };
}

export function traceEvents() {
  class Tracing {
    #categories;
    #enabled = false;
    constructor(categories) { this.#categories = categories; }
    enable() { this.#enabled = true; }
    disable() { this.#enabled = false; }
    get enabled() { return this.#enabled; }
    get categories() { return this.#categories.join(","); }
    [Symbol.for("nodejs.util.inspect.custom")](depth) {
      if (typeof depth === "number" && depth < 0) return this;
      return `Tracing ${format({ enabled: this.enabled, categories: this.categories })}`;
    }
  }
  return {
    createTracing(options) {
      validateObject(options, "options");
      validateStrings(options.categories, "options.categories");
      if (options.categories.length === 0) throw nodeError(TypeError, "ERR_TRACE_EVENTS_CATEGORY_REQUIRED", "At least one category is required");
      return new Tracing(options.categories);
    },
    getEnabledCategories() { return undefined; },
  };
}

export function tty() {
  const { Socket } = require("./net.js").default;
  function ReadStream(fd) {
    if (!(this instanceof ReadStream)) return new ReadStream(fd);
    Object.assign(this, { fd, isRaw: false, isTTY: false });
    return this;
  }
  function WriteStream(fd) {
    if (!(this instanceof WriteStream)) return new WriteStream(fd);
    Object.assign(this, { fd, columns: 0, rows: 0 });
    return this;
  }
  for (const Class of [ReadStream, WriteStream]) {
    Object.setPrototypeOf(Class.prototype, Socket.prototype);
    Object.setPrototypeOf(Class, Socket);
  }
  ReadStream.prototype.setRawMode = function setRawMode(mode) {
    this.isRaw = mode;
    return this;
  };
  const calls = (...args) => {
    args.find((arg) => typeof arg === "function")?.();
    return false;
  };
  Object.assign(WriteStream.prototype, {
    isTTY: true,
    getColorDepth: () => 8,
    hasColors: () => false,
    _refreshSize() {},
    cursorTo: nothing("cursorTo", 3, calls),
    moveCursor: nothing("moveCursor", 3, calls),
    clearLine: nothing("clearLine", 2, calls),
    clearScreenDown: nothing("clearScreenDown", 1, calls),
    getWindowSize() { return [this.columns ?? 0, this.rows ?? 0]; },
  });
  return { isatty: nothing("isatty", 1, () => false), ReadStream, WriteStream };
}

export function vm() {
  const constants = Object.freeze({ __proto__: null, USE_MAIN_CONTEXT_DEFAULT_LOADER: Symbol("vm_dynamic_import_main_context_default"), DONT_CONTEXTIFY: Symbol("vm_context_no_contextify") });
  const kContext = Symbol("vm_context_symbol");
  const optionsOf = (options) => {
    if (typeof options === "string") return { filename: options };
    validateObject(options, "options");
    return options;
  };
  const checkSource = (options) => {
    readOptions(options, {
      importModuleDynamically: [false, validateBoolean], filename: ["", validateString], lineOffset: [0, validateInt32], columnOffset: [0, validateInt32],
      cachedData: [undefined, optionally(validateBuffer)], produceCachedData: [false, validateBoolean],
    });
  };
  const checkRun = (options) => {
    readOptions(options, { breakOnSigint: [false, validateBoolean], displayErrors: [true, validateBoolean], timeout: [undefined, optionally((value, name) => validateUint32(value, name, true))] });
  };
  function isContext(object) {
    validateObject(object, "object", "array");
    return object[kContext] === true;
  }
  const checkContext = (object) => {
    if (!isContext(object)) throw invalidArgType("contextifiedObject", "an vm.Context", object);
  };
  function createContext(object = {}, options = {}) {
    if (object !== constants.DONT_CONTEXTIFY && isContext(object)) return object;
    const { codeGeneration, microtaskMode } = readOptions(options, {
      name: ["VM Context", validateString], origin: [undefined, optionally(validateString)], importModuleDynamically: [false, validateBoolean], codeGeneration: [undefined], microtaskMode: [undefined],
    });
    if (codeGeneration !== undefined) {
      readOptions(codeGeneration, { strings: [true, validateBoolean], wasm: [true, validateBoolean] }, "options.codeGeneration");
    }
    validateOneOf(microtaskMode, "options.microtaskMode", ["afterEvaluate", undefined]);
    return Object.create(null, { [kContext]: { value: true } });
  }
  const contextOptions = (options = {}) => {
    const { contextName: name, contextOrigin: origin, contextCodeGeneration: codeGeneration, microtaskMode } = options;
    if (name !== undefined) validateString(name, "options.contextName");
    if (origin !== undefined) validateString(origin, "options.contextOrigin");
    if (codeGeneration !== undefined) {
      validateObject(codeGeneration, "options.contextCodeGeneration");
      for (const key of ["strings", "wasm"]) if (codeGeneration[key] !== undefined) validateBoolean(codeGeneration[key], `options.contextCodeGeneration.${key}`);
    }
    if (microtaskMode !== undefined) validateString(microtaskMode, "options.microtaskMode");
    return { name, origin, codeGeneration, microtaskMode };
  };
  class Script {
    cachedDataRejected = undefined;
    cachedDataProduced = undefined;
    cachedData = undefined;
    sourceMapURL = undefined;
    constructor(code, options = {}) {
      void `${code}`;
      checkSource(optionsOf(options));
    }
    createCachedData() { return Buffer.alloc(0); }
    runInThisContext(options = {}) {
      checkRun(options);
      throw notImplemented("runInThisContext");
    }
    runInContext(context, options = {}) {
      checkContext(context);
      checkRun(options);
      throw notImplemented("runInThisContext");
    }
    runInNewContext(object, options = {}) {
      return this.runInContext(createContext(object, contextOptions(options)), options);
    }
  }
  return {
    Script, createContext,
    createScript(code, options = {}) { return new Script(code, options); },
    runInContext(code, context, options = {}) {
      checkContext(context);
      const given = optionsOf(options);
      return new Script(code, given).runInContext(context, given);
    },
    runInNewContext(code, object, options) {
      const given = typeof options === "string" ? { filename: options } : { ...options };
      return new Script(code, given).runInNewContext(createContext(object, contextOptions(given)), given);
    },
    runInThisContext(code, options = {}) {
      const given = optionsOf(options);
      return new Script(code, given).runInThisContext(given);
    },
    isContext,
    compileFunction(code, params = [], options = {}) {
      validateString(code, "code");
      validateObject(options, "options");
      validateStrings(params, "params");
      checkSource(options);
      const { parsingContext, contextExtensions = [] } = options;
      if (parsingContext !== undefined && (typeof parsingContext !== "object" || parsingContext === null || !isContext(parsingContext))) {
        throw invalidArgType("options.parsingContext", ["Context"], parsingContext);
      }
      validateArray(contextExtensions, "options.contextExtensions");
      contextExtensions.forEach((extension, i) => validateObject(extension, `options.contextExtensions[${i}]`, "nullable"));
      throw notImplemented("compileFunction");
    },
    measureMemory(options = {}) {
      const among = (...choices) => [choices[0], (value, name) => validateOneOf(value, name, choices)];
      readOptions(options, { mode: among("summary", "detailed"), execution: among("default", "eager") });
      throw notImplemented("measureMemory");
    },
    constants,
  };
}

export function wasi() {
  class WASI {
    constructor(options = { version: "unstable" }) {
      const descriptor = (number) => [number, (value, name) => validateInt32(value, name, 0)];
      readOptions(options, {
        version: [undefined, (value, name) => validateOneOf(value, name, ["unstable", "preview1"])],
        args: [undefined, optionally(validateArray)], env: [undefined, optionally(validateObject)], preopens: [undefined, optionally(validateObject)],
        stdin: descriptor(0), stdout: descriptor(1), stderr: descriptor(2), returnOnExit: [undefined, optionally(validateBoolean)],
      });
      throw notImplemented("WASI");
    }
    getImportObject() { return {}; }
  }
  methods(WASI, Object.fromEntries(["finalizeBindings", "start", "initialize"].map((name) => [name, absent(`WASI.${name}`, { as: name, length: 1 })])));
  return { WASI };
}

export function workerThreads() {
  class Worker extends EventEmitter {
    constructor() {
      super();
      throw notImplemented("Worker");
    }
    async [Symbol.asyncDispose]() {}
  }
  const names = [["cpuUsage", 1], ["postMessage", 2], ["postMessageToThread", 4], ["ref", 0], ["unref", 0], ["terminate", 0], ["getHeapSnapshot", 0], ["getHeapStatistics", 0], ["startCpuProfile", 0], ["startHeapProfile", 0]];
  methods(Worker, Object.fromEntries(names.map(([name, length]) => [name, absent(`Worker.${name}`, { as: name, length })])));
  class BroadcastChannel {
    constructor() { throw notImplemented("BroadcastChannel"); }
  }
  const data = new Map();
  const { MessageChannel, MessagePort } = globalThis;
  return {
    BroadcastChannel,
    MessageChannel,
    MessagePort,
    Worker,
    SHARE_ENV: Symbol.for("nodejs.worker_threads.SHARE_ENV"),
    getEnvironmentData(key) { return data.get(key); },
    isMainThread: true,
    isMarkedAsUntransferable(_value) { return false; },
    markAsUntransferable(_value) {},
    markAsUncloneable(_value) {},
    moveMessagePortToContext(_port, _context) { return new MessagePort(); },
    parentPort: null,
    receiveMessageOnPort(_port) { return undefined; },
    resourceLimits: {},
    setEnvironmentData(key, value) { data.set(key, value); },
    postMessageToThread: absent("postMessageToThread", { length: 4 }),
    threadId: 0,
    workerData: null,
    isInternalThread: false,
  };
}

export function v8() {
  const checkSnapshot = (options = {}) => {
    readOptions(options, { exposeInternals: [false, validateBoolean], exposeNumericValues: [false, validateBoolean] });
  };
  const zeros = (names) => Object.fromEntries(names.map((name) => [name, 0]));
  class Serializer {
    constructor() { throw notImplemented("Serializer"); }
  }
  for (const [name, length] of [["writeHeader", 0], ["writeValue", 1], ["releaseBuffer", 0], ["transferArrayBuffer", 2], ["writeUint32", 1], ["writeUint64", 2], ["writeDouble", 1], ["writeRawBytes", 1], ["_getDataCloneError", 1], ["_getSharedArrayBufferId", 1], ["_setTreatArrayBufferViewsAsHostObjects", 1], ["_writeHostObject", 1]]) methods(Serializer, { [name]: absent(name, { length }) });
  class Deserializer {
    constructor(_buffer) { throw notImplemented("Deserializer"); }
  }
  for (const [name, length] of [["readHeader", 0], ["readValue", 0], ["transferArrayBuffer", 2], ["getWireFormatVersion", 0], ["readUint32", 0], ["readUint64", 0], ["readDouble", 0], ["readRawBytes", 1], ["_readHostObject", 0]]) methods(Deserializer, { [name]: absent(name, { length }) });
  class DefaultSerializer extends Serializer {}
  class DefaultDeserializer extends Deserializer {
    constructor(buffer) { super(buffer); }
  }
  class GCProfiler {}
  methods(GCProfiler, absentAll("GCProfiler.", ["start", "stop"]));
  const promiseHooks = {};
  for (const name of ["createHook", "onInit", "onBefore", "onAfter", "onSettled"]) promiseHooks[name] = absent(`promiseHooks.${name}`, { as: name, length: 1 });
  const startupSnapshot = {};
  for (const name of ["addSerializeCallback", "addDeserializeCallback", "setDeserializeMainFunction"]) startupSnapshot[name] = absent(`startupSnapshot.${name}`, { as: name, length: 2 });
  startupSnapshot.isBuildingSnapshot = function isBuildingSnapshot() { return false; };
  return {
    cachedDataVersionTag() { return 0; },
    getHeapSnapshot: absent("getHeapSnapshot", { check: checkSnapshot }),
    getHeapStatistics: () => zeros(["total_heap_size", "total_heap_size_executable", "total_physical_size", "total_available_size", "used_heap_size", "heap_size_limit", "malloced_memory", "peak_malloced_memory", "does_zap_garbage", "number_of_native_contexts", "number_of_detached_contexts", "total_global_handles_size", "used_global_handles_size", "external_memory", "total_allocated_bytes"]),
    getHeapSpaceStatistics: () => [],
    getHeapCodeStatistics: () => zeros(["code_and_metadata_size", "bytecode_and_metadata_size", "external_script_source_size", "cpu_profiler_metadata_size"]),
    getCppHeapStatistics(type = "detailed") {
      validateOneOf(type, "type", ["brief", "detailed"]);
      return { committed_size_bytes: 0, resident_size_bytes: 0, used_size_bytes: 0, space_statistics: [], type_names: [], detail_level: type };
    },
    setFlagsFromString: absent("setFlagsFromString", { length: 1, check: (flags) => validateString(flags, "flags") }),
    Serializer, Deserializer, DefaultSerializer, DefaultDeserializer,
    deserialize: absent("deserialize", { length: 1 }),
    takeCoverage: absent("takeCoverage"),
    stopCoverage: absent("stopCoverage"),
    serialize: absent("serialize", { length: 1 }),
    writeHeapSnapshot: absent("writeHeapSnapshot", {
      length: 1,
      check(filename, options) {
        if (filename !== undefined) validateString(filename, "filename");
        checkSnapshot(options);
      },
    }),
    promiseHooks,
    queryObjects: absent("queryObjects", {
      length: 1,
      check(constructor, options = {}) {
        validateFunction(constructor, "constructor");
        validateObject(options, "options");
        const shape = options.format || "count";
        if (shape !== "count" && shape !== "summary") throw invalidArgValue("options.format", shape);
      },
    }),
    startupSnapshot,
    setHeapSnapshotNearHeapLimit: absent("setHeapSnapshotNearHeapLimit", { length: 1, check: (limit) => validateUint32(limit, "limit", true) }),
    GCProfiler,
    isStringOneByteRepresentation: absent("isStringOneByteRepresentation", { length: 1, check: (content) => validateString(content, "content") }),
  };
}

export function http2() {
  const absentClass = (name) => class {
    constructor() { throw notImplemented(`http2.${name}`); }
  };
  return {
    constants: require("./data/http2-constants.json"),
    ...absentAll("http2.", ["createSecureServer", "createServer"]),
    Http2ServerRequest: absentClass("Http2ServerRequest"),
    Http2ServerResponse: absentClass("Http2ServerResponse"),
    ...absentAll("http2.", ["connect"]),
    getDefaultSettings() { return {}; },
    getPackedSettings() { return Buffer.alloc(0); },
    getUnpackedSettings() { return {}; },
    ...absentAll("http2.", ["performServerHandshake"]),
    sensitiveHeaders: Symbol("nodejs.http2.sensitiveHeaders"),
  };
}
