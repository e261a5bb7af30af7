// node:process, and the global `process`.
import { EventEmitter } from "./events.js";
import { compatibilityFlags, modules, native } from "./internal/internals.js";
import { nodeError } from "./internal/errors.js";
import { unsupported } from "./internal/stub.js";

const started = performance.now();
const env = {};
const features = Object.freeze({ inspector: false, debug: false, uv: false, ipv6: true, tls_alpn: true, tls_sni: true, tls_ocsp: true, tls: true, cached_builtins: true, typescript: false });
const version = "v22.19.0";

function hrtime(previous = undefined) {
  const now = performance.timeOrigin + performance.now();
  let seconds = Math.floor(now / 1000);
  let nanos = Math.floor((now % 1000) * 1e6);
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
hrtime.bigint = () => BigInt(Math.floor((performance.timeOrigin + performance.now()) * 1e6));

const stream = (level, fd) => ({
  fd,
  isTTY: false,
  writable: true,
  write(chunk, encoding, callback) {
    native.log(level, (typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk)).replace(/\n$/, ""));
    const done = typeof encoding === "function" ? encoding : callback;
    if (done) queueMicrotask(() => done());
    return true;
  },
  end() {},
  on() { return this; },
  once() { return this; },
  emit: () => false,
});

class Process extends EventEmitter {}
const process = Object.assign(new Process(), {
  title: "cairn",
  version,
  versions: { node: version.slice(1), cairn: "0.1.0" },
  arch: "x64",
  platform: "linux",
  release: { name: "node", lts: true },
  argv: ["cairn"],
  argv0: "cairn",
  execArgv: [],
  execPath: "",
  env,
  pid: 1,
  ppid: 0,
  exitCode: undefined,
  features,
  config: Object.freeze({ target_defaults: {}, variables: {} }),
  allowedNodeEnvironmentFlags: new Set(),
  stdout: stream(1, 1),
  stderr: stream(3, 2),
  stdin: Object.assign(stream(1, 0), { read: () => null }),
  hrtime,
  nextTick(callback, ...args) {
    queueMicrotask(() => callback(...args));
  },
  cwd: () => "/bundle",
  uptime: () => (performance.now() - started) / 1000,
  umask: () => 0o22,
  memoryUsage: Object.assign(() => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }), { rss: () => 0 }),
  cpuUsage: () => ({ user: 0, system: 0 }),
  resourceUsage: () => ({}),
  emitWarning(warning, type) {
    const text = warning instanceof Error ? `${warning.name}: ${warning.message}` : `${(typeof type === "string" ? type : type?.type) ?? "Warning"}: ${warning}`;
    native.log(2, text);
  },
  getBuiltinModule(name) {
    const { load } = require("./index.js");
    try {
      return load(name.startsWith("node:") ? name : `node:${name}`).default;
    } catch {
      return undefined;
    }
  },
  binding: unsupported("process.binding()"),
  chdir: unsupported("process.chdir()"),
  dlopen: unsupported("process.dlopen()"),
  kill: unsupported("process.kill()"),
  abort: unsupported("process.abort()"),
  exit(code) {
    throw nodeError(Error, "ERR_PROCESS_EXIT", `process.exit(${code ?? ""}) was called: a worker cannot end its process.`);
  },
  getuid: () => 0,
  getgid: () => 0,
  geteuid: () => 0,
  getegid: () => 0,
  getgroups: () => [],
  getActiveResourcesInfo: () => [],
  setUncaughtExceptionCaptureCallback() {},
  hasUncaughtExceptionCaptureCallback: () => false,
  setSourceMapsEnabled() {},
  loadEnvFile: unsupported("process.loadEnvFile()"),
  constrainedMemory: () => 0,
  availableMemory: () => 0,
});
Object.defineProperty(process, Symbol.toStringTag, { value: "process", configurable: true });
if (compatibilityFlags.has("nodejs_compat_populate_process_env")) {
  // Variables and secrets; bindings that are objects stay where they are.
  const bindings = modules["cloudflare:workers"].env;
  for (const name of Object.keys(bindings)) if (typeof bindings[name] === "string") env[name] = bindings[name];
}

export default process;
