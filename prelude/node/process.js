// node:process and the global `process`, in two shapes: that of 2025-09-15 (enable_nodejs_process_v2)
// and the small one before it. A worker sees the small one only if it is not bundled (no_bundle): wrangler's bundler
// fills in the rest, so that a project never meets it (P1).
import { Buffer } from "./buffer.js";
import { EventEmitter } from "./events.js";
import { getCwd, HOME, setCwd } from "./internal/cwd.js";
import { invalidArgType, invalidArgValue, notImplemented, outOfRange, validateArray, validateString } from "./internal/errors.js";
import { bundled, compatibilityFlags, isStarting, modules, native } from "./internal/internals.js";
import { builtinModules } from "./module.js";

// ---- the environment: every value is a text

function initialEnv() {
  const env = {};
  if (!compatibilityFlags.has("nodejs_compat_populate_process_env")) return env;
  // Variables and secrets; bindings that are objects of the platform stay where they are.
  const bindings = modules["cloudflare:workers"].env;
  for (const name of Object.keys(bindings)) {
    const value = bindings[name];
    if (typeof value === "string") {
      env[name] = value;
    } else if (value === null || typeof value === "number" || typeof value === "boolean" || Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype) {
      env[name] = JSON.stringify(value);
    }
  }
  return env;
}
function text(name, value) {
  if (typeof name === "symbol" || typeof value === "symbol") throw new TypeError("Cannot convert a symbol value to a string");
  return `${value}`;
}
const env = new Proxy(initialEnv(), {
  set: (target, name, value) => Reflect.set(target, name, text(name, value)),
  defineProperty(target, name, descriptor) {
    if ("get" in descriptor || "set" in descriptor) throw invalidArgValue("descriptor", descriptor, "process.env value must not have getter/setter");
    for (const attribute of ["configurable", "enumerable", "writable"]) {
      if (!descriptor[attribute]) throw invalidArgValue(`descriptor.${attribute}`, descriptor, `process.env value must be ${attribute}`);
    }
    if (!("value" in descriptor)) throw invalidArgValue("descriptor.value", descriptor, "process.env value must be specified explicitly");
    return Reflect.defineProperty(target, name, { ...descriptor, value: text(name, descriptor.value) });
  },
});

// ---- what both shapes have

const features = Object.freeze({
  cached_builtins: true, debug: false, inspector: false, ipv6: true, openssl_is_boringssl: true, require_module: false, tls: true, tls_alpn: true, tls_ocsp: true, tls_sni: true, typescript: false, uv: true,
});

function nextTick(callback, ...args) {
  if (typeof callback !== "function") throw invalidArgType("callback", "of type function", callback);
  queueMicrotask(() => callback(...args));
}

/** In a request it ends the request; while the worker starts it does nothing. */
function exit(code = undefined) {
  const given = code ?? process.exitCode ?? 0;
  const sentence = `The Node.js process.exit(${given}) API was called.`;
  if (isStarting()) {
    native.log(2, `${sentence} It does nothing while a worker starts.`);
    return;
  }
  throw new Error(`${sentence} Canceling the request.`);
}

function getBuiltinModule(id) {
  if (typeof id !== "string") return undefined;
  const name = id.startsWith("node:") ? id : builtinModules.includes(id) ? `node:${id}` : "";
  if (!name.startsWith("node:") || !Object.hasOwn(modules, name)) return undefined;
  return modules[name].default ?? modules[name];
}

// ---- the functions of the larger shape

const absent = (name, length = 0) =>
  Object.defineProperty({ [name]() { throw notImplemented(`process.${name}`); } }[name], "length", { value: length, configurable: true });
const refused = (name, length = 1) =>
  Object.defineProperty({
    [name](id) {
      if (id !== 0) throw Object.assign(new Error("operation not permitted"), { syscall: name, code: "EPERM" });
    },
  }[name], "length", { value: length, configurable: true });
const inert = (name, length, result = undefined) => Object.defineProperty({ [name]() { return result; } }[name], "length", { value: length, configurable: true });

function now() {
  return performance.timeOrigin + performance.now();
}
function hrtime(previous = undefined) {
  if (previous !== undefined) {
    validateArray(previous, "time");
    if (previous.length !== 2) throw outOfRange("time", 2, previous.length);
  }
  const ms = now();
  let seconds = Math.trunc(ms / 1000);
  let nanos = Math.trunc((ms % 1000) * 1e6);
  if (previous !== undefined) {
    seconds -= previous[0];
    nanos -= previous[1];
    if (nanos < 0) {
      seconds--;
      nanos += 1e9;
    }
  }
  return [seconds, nanos];
}
hrtime.bigint = function bigint() {
  return BigInt(Math.trunc(now())) * 1_000_000n;
};

function chdir(directory) {
  validateString(directory, "directory");
  const vfs = require("./internal/vfs.js");
  if (directory.length > 4096) throw vfs.fsError("ENAMETOOLONG", "chdir", directory);
  if (directory === "") throw vfs.fsError("ENOENT", "chdir", directory);
  const path = decodeURIComponent(vfs.normalizePath(directory));
  const target = path.length > 1 ? path.replace(/\/$/, "") : path;
  const found = vfs.stat(vfs.normalizePath(target));
  if (found === null) throw vfs.fsError("ENOENT", "chdir", target);
  if (found.kind !== "directory") throw vfs.fsError("ENOTDIR", "chdir", target);
  setCwd(target);
}

/** Files have no permissions: a mask is looked at and forgotten. */
function umask(mask = undefined) {
  const wrong = () => invalidArgValue("mask", mask, "must be a 32-bit unsigned integer or an octal string");
  if (mask === undefined) return 0o22;
  if (typeof mask !== "string" && typeof mask !== "number") throw invalidArgType("mask", "of type number", mask);
  if (typeof mask === "string" && !/^[0-7]+$/.test(mask)) throw wrong();
  const value = typeof mask === "string" ? parseInt(mask, 8) : mask;
  if (!Number.isInteger(value) || value < 0 || value > 0xffffffff) throw wrong();
  return 0o22;
}

/** emitWarning(warning[, type[, code]][, constructor]) or (warning, options): an event, later. */
function emitWarning(warning, options = undefined, codeOrConstructor = undefined, constructor = undefined) {
  let name = "Warning";
  let code;
  let detail;
  let Base;
  const aFunction = (value) => {
    if (value !== undefined && typeof value !== "function") throw invalidArgType("ctor", "of type function", value);
    return value;
  };
  if (options !== null && typeof options === "object" && !Array.isArray(options)) {
    name = options.type || name;
    ({ code, detail, ctor: Base } = options);
  } else if (typeof options === "string") {
    name = options;
    if (typeof codeOrConstructor === "string") {
      code = codeOrConstructor;
      Base = aFunction(constructor);
    } else {
      Base = aFunction(codeOrConstructor);
    }
  } else if (typeof options === "function") {
    Base = options;
  } else if (options !== undefined) {
    throw invalidArgType("options", "of type object", options);
  }
  let error = warning;
  if (typeof warning === "string") {
    error = new (Base ?? Error)(warning);
    error.name = name;
  } else if (!(warning instanceof Error)) {
    throw invalidArgType("warning", "an string or Error", warning);
  } else if (name !== "Warning") {
    error.name = name;
  }
  if (code) error.code = code;
  if (typeof detail === "string" && detail !== "") error.detail = detail;
  queueMicrotask(() => {
    if (process.listenerCount("warning") === 0) native.log(2, `${error.name}: ${error.message}`);
    process.emit("warning", error);
  });
}

function loadEnvFile(path = ".env") {
  if (!(typeof path === "string" || path instanceof URL || Buffer.isBuffer(path))) throw invalidArgType("path", ["string", "Buffer", "URL"], path);
  const { parseEnv } = require("./internal/dotenv.js");
  const values = parseEnv(require("./fs.js").default.readFileSync(path, "utf8"));
  for (const name of Object.keys(values)) env[name] = values[name];
}

function kill(pid, signal = "SIGTERM") {
  void signal;
  if (pid === undefined) throw notImplemented("process.kill");
  if (typeof pid !== "number") throw invalidArgType("pid", "of type number", pid);
  throw notImplemented("process.kill");
}

const usage = () => Object.fromEntries(["userCPUTime", "systemCPUTime", "maxRSS", "sharedMemorySize", "unsharedDataSize", "unsharedStackSize", "minorPageFault", "majorPageFault", "swappedOut", "fsRead", "fsWrite", "ipcSent", "ipcReceived", "signalsCount", "voluntaryContextSwitches", "involuntaryContextSwitches"].map((name) => [name, 0]));
function memoryUsage() {
  return { rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 };
}
memoryUsage.rss = () => 0;

// ---- standard streams

let streams = null;
/** Made at their first use: most workers have none. */
function stdio() {
  if (streams !== null) return streams;
  const { Writable } = require("./stream.js").default;
  const { ReadStream } = require("./fs.js").default;
  function SyncWriteStream(fd) {
    Reflect.apply(Writable, this, [{ autoDestroy: true, decodeStrings: true, highWaterMark: 65536 }]);
    Object.assign(this, { fd, readable: false });
    this.on("end", () => this._destroy());
  }
  Object.setPrototypeOf(SyncWriteStream.prototype, Writable.prototype);
  Object.setPrototypeOf(SyncWriteStream, Writable);
  SyncWriteStream.prototype._write = function (chunk, encoding, callback) {
    native.log(this.fd === 2 ? 3 : 1, Buffer.from(chunk).toString().replace(/\n$/, ""));
    callback();
  };
  SyncWriteStream.prototype._destroy = function (error, callback) {
    // Standard output cannot be closed.
    callback?.(error);
  };
  const constants = {
    allowHalfOpen: false, bufferSize: 0, bytesRead: 0, bytesWritten: 0, connecting: false, pending: false, readableAborted: false, readableDidRead: false,
    readableEnded: false, readableHighWaterMark: 16384, readableLength: 0, readableObjectMode: false, readyState: "open",
  };
  const out = (fd) => {
    const stream = new SyncWriteStream(fd);
    Object.assign(stream, { _type: "fs", _isStdio: true });
    for (const [name, value] of Object.entries(constants)) Object.defineProperty(stream, name, { value, writable: true, configurable: true, enumerable: true });
    stream.destroySoon = stream.destroy;
    return stream;
  };
  const stdin = new ReadStream(null, { fd: 0, autoClose: false });
  for (const [name, value] of Object.entries({ allowHalfOpen: false, bufferSize: 0, connecting: false, readyState: "open" })) stdin[name] = value;
  streams = { stdin, stdout: out(1), stderr: out(2) };
  return streams;
}

// ---- the two shapes

function legacyProcess() {
  const small = new EventEmitter();
  for (const name of Object.keys(small)) Object.defineProperty(small, name, { enumerable: false });
  return Object.assign(small, { env, exit, features, getBuiltinModule, nextTick, platform: "linux" });
}

function wholeProcess() {
  const version = compatibilityFlags.has("nodejs_process_version_24") ? "v24.11.0" : "v22.23.4";
  const versions = { node: version.slice(1) };
  for (const name of ["v8", "modules", "zlib", "brotli", "zstd", "ares", "napi", "llhttp", "nghttp2", "acorn", "ada", "simdutf", "nbytes", "ncrypto", "uvwasi", "uv", "openssl", "sqlite", "icu", "undici", "simdjson", "unicode", "cldr", "tz", "cjs_module_lexer", "amaro", "merve"]) versions[name] = "";
  const data = require("./data/process-config.json");
  const config = Object.freeze({ target_defaults: Object.freeze({ ...data.target_defaults }), variables: Object.freeze({ ...data.variables }) });
  const members = {
    assert(value, message) { require("./assert.js").default.ok(...(arguments.length === 0 ? [] : [value, message])); },
    version, versions: Object.freeze(versions), title: "workerd", argv: ["workerd"], argv0: "workerd", execArgv: [], arch: "x64", platform: "linux", config, pid: 1, ppid: 0,
    getegid: inert("getegid", 0, 0), getgid: inert("getgid", 0, 0), getgroups: () => [0], geteuid: inert("geteuid", 0, 0), getuid: inert("getuid", 0, 0),
    setegid: refused("setegid"), setgid: refused("setgid"), setgroups: refused("setgroups"), seteuid: refused("seteuid"), setuid: refused("setuid"), initgroups: refused("initgroups", 2),
    setSourceMapsEnabled: inert("setSourceMapsEnabled", 2),
    getSourceMapsSupport: () => Object.freeze({ enabled: false, nodeModules: false, generatedCode: false }),
    nextTick, emitWarning, env, exit,
    abort() { exit(1); },
    getBuiltinModule, features, allowedNodeEnvironmentFlags: new Set(), kill, ref: inert("ref", 0), unref: inert("unref", 0), chdir, cwd: () => getCwd(), umask, hrtime, uptime: () => 0, loadEnvFile,
    exitCode: undefined, channel: null, connected: false, binding: absent("binding", 1), debugPort: 0, dlopen: absent("dlopen", 3),
    finalization: { register: absent("finalization.register"), registerBeforeExit: absent("finalization.registerBeforeExit"), unregister: absent("finalization.unregister") },
    getActiveResourcesInfo: absent("getActiveResourcesInfo"),
    setUncaughtExceptionCaptureCallback: absent("setUncaughtExceptionCaptureCallback", 1),
    hasUncaughtExceptionCaptureCallback: absent("hasUncaughtExceptionCaptureCallback"),
    memoryUsage, noDeprecation: false, permission: { has: inert("has", 0, true) },
    release: { name: "node", lts: true, sourceUrl: "", headersUrl: "" },
    report: {
      compact: false, directory: "", filename: "",
      getReport: () => ({}), reportOnFatalError: false, reportOnSignal: false, reportOnUncaughtException: false, excludeNetwork: false, excludeEnv: false, signal: "SIGUSR2",
      writeReport: absent("report.writeReport"),
    },
    resourceUsage: usage, send: inert("send", 2, false), traceDeprecation: false, throwDeprecation: false, sourceMapsEnabled: false,
    stdin: undefined, stdout: undefined, stderr: undefined,
    threadCpuUsage: absent("threadCpuUsage"), cpuUsage: absent("cpuUsage", 1), execPath: "", constrainedMemory: inert("constrainedMemory", 0, 0), availableMemory: inert("availableMemory", 0, 0),
    execve: absent("execve", 3), openStdin: () => stdio().stdin, _rawDebug: (...args) => native.log(3, args.join(" ")), moduleLoadList: [], _linkedBinding: absent("_linkedBinding", 1),
    domain: null, _exiting: false, _getActiveRequests: () => [], _getActiveHandles: () => [], reallyExit: exit, _kill: absent("_kill", 2), _fatalException: inert("_fatalException", 1, false),
    _tickCallback: inert("_tickCallback", 0), _debugProcess: inert("_debugProcess", 1), _debugEnd: inert("_debugEnd", 0), _startProfilerIdleNotifier: inert("_startProfilerIdleNotifier", 0),
    _stopProfilerIdleNotifier: inert("_stopProfilerIdleNotifier", 0), _preload_modules: [], _disconnect: undefined, _handleQueue: undefined, _pendingMessage: undefined, _channel: undefined, _send: undefined,
  };
  const whole = Object.assign(new EventEmitter(), members);
  Object.setPrototypeOf(whole, Object.create(EventEmitter.prototype, { constructor: { value: EventEmitter, writable: true, configurable: true } }));
  for (const name of ["stdin", "stdout", "stderr"]) {
    Object.defineProperty(whole, name, {
      get: () => stdio()[name],
      set: (value) => Object.defineProperty(whole, name, { value, writable: true, enumerable: true, configurable: true }),
      enumerable: true, configurable: true,
    });
  }
  // The global events that these are called in a worker.
  const relayed = new Set();
  whole.on("newListener", (event) => {
    if ((event !== "unhandledRejection" && event !== "rejectionHandled") || relayed.has(event)) return;
    relayed.add(event);
    addEventListener(event.toLowerCase(), (e) => {
      if (event === "unhandledRejection") process.emit(event, e.reason, e.promise);
      else process.emit(event, e.promise);
    });
  });
  Object.defineProperty(whole, Symbol.toStringTag, { value: "process", configurable: true });
  return whole;
}

/**
 * P1  What wrangler's bundler adds at a date is there at this date: every name, with functions that need no receiver, and standard
 *     streams that have the size of a terminal. The current directory is the root.
 */
function filledIn() {
  const filled = wholeProcess();
  for (const name of Object.getOwnPropertyNames(EventEmitter.prototype)) {
    const method = EventEmitter.prototype[name];
    if (typeof method === "function" && name !== "constructor") filled[name] = method.bind(filled);
  }
  Object.assign(filled, { disconnect: absent("disconnect"), mainModule: undefined });
  filled.cwd = () => (getCwd() === HOME ? "/" : getCwd());
  for (const name of ["stdout", "stderr"]) {
    Object.defineProperty(filled, name, {
      get: () => Object.assign(stdio()[name], { isTTY: false, columns: 80, rows: 24, getColorDepth: () => 1, hasColors: () => false, getWindowSize: () => [80, 24] }),
      set: (value) => Object.defineProperty(filled, name, { value, writable: true, enumerable: true, configurable: true }),
      enumerable: true, configurable: true,
    });
  }
  return filled;
}

const process = compatibilityFlags.has("enable_nodejs_process_v2") ? wholeProcess() : bundled && compatibilityFlags.has("nodejs_compat_v2") ? filledIn() : legacyProcess();
export default process;
