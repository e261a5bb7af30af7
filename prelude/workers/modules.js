// The modules a script imports from the runtime rather than from its bundle.
import { currentObject } from "../internal/turn.js";
import { compatibilityFlags, native } from "../internal/native.js";
import { describeError } from "../internal/report.js";
import { needsEvent } from "../internal/startup.js";
import { cacheContext, setExportsOf } from "./context.js";
import objects from "part:./object/part.js";
import email from "part:./email.js";
import s3 from "part:./s3.js";
import sockets from "part:./sockets.js";
import tracing from "part:./tracing.js";

/** What `cloudflare:workers` exports as `env` and `exports`: proxies, so that they can be imported
 * before the script has started, and be replaced for a while. */
let environment = {};
let loopback = {};
let makeLoopback = null; // until somebody asks for it
export function setEnv(value) {
  environment = value;
}
export function setExports(make) {
  makeLoopback = make;
}
function ownExports() {
  if (makeLoopback !== null) loopback = makeLoopback();
  makeLoopback = null;
  return loopback;
}
export const env = () => environment;
setExportsOf(ownExports);

const mirror = (object, writing) => new Proxy(
  {},
  {
    ...writing,
    get: (_, key) => object()[key],
    has: (_, key) => key in object(),
    ownKeys: () => Reflect.ownKeys(object()),
    getOwnPropertyDescriptor: (_, key) => {
      const descriptor = Reflect.getOwnPropertyDescriptor(object(), key);
      if (descriptor) descriptor.configurable = true;
      return descriptor;
    },
  },
);

/** What is written to `env` is written to the one that is behind it now. */
const writable = (object) => ({
  set: (_, key, value) => Reflect.set(object(), key, value),
  deleteProperty: (_, key) => Reflect.deleteProperty(object(), key),
  defineProperty: (_, key, descriptor) => Reflect.defineProperty(object(), key, { ...descriptor, configurable: true }),
});

const KEEP = Symbol("as it is");
const NULLABLE = compatibilityFlags.has("env_module_nullable_support");

/** What an argument stands for: nothing at all is an empty one, under its flag; what is no object changes nothing. */
function replacement(value) {
  if (value === null || value === undefined) return NULLABLE ? {} : undefined;
  return typeof value === "object" || typeof value === "function" ? value : undefined;
}

/** The imported `env` and `exports` are others while `callback` runs, up to its first await. */
function withEnvAndExports(newEnv, newExports, callback) {
  const before = [imported.env, imported.exports];
  imported.env = replacement(newEnv) ?? imported.env;
  imported.exports = replacement(newExports) ?? imported.exports;
  try {
    return callback();
  } finally {
    [imported.env, imported.exports] = before;
  }
}
const imported = { env: null, exports: null };
const currentEnv = () => imported.env ?? environment;

/** Keeps the worker, or the object, until `promise` has settled. */
function waitUntil(promise) {
  needsEvent();
  const object = currentObject();
  const event = object === 0 ? native.eventHold() : 0;
  if (object !== 0) native.objectWait(object);
  const settled = () => (object !== 0 ? native.objectUnwait(object) : native.eventDone(event));
  Promise.resolve(promise).then(settled, (error) => {
    native.log(4, `A waitUntil() promise was rejected: ${describeError(error)}`);
    settled();
  });
}

export class WorkerEntrypoint {
  constructor(ctx, env) {
    this.ctx = ctx;
    this.env = env;
  }
}

export class DurableObject {
  constructor(ctx, env) {
    this.ctx = ctx;
    this.env = env;
  }
}

export class WorkflowEntrypoint {
  constructor(ctx, env) {
    this.ctx = ctx;
    this.env = env;
  }
}

/** What transforms the records of a pipeline: on the platform, which calls it, and nowhere else. */
class PipelineTransformationEntrypoint extends WorkerEntrypoint {
  async run() {
    throw new Error("run() must be implemented by the class that extends PipelineTransformationEntrypoint");
  }
}

/** Ends an instance of a workflow, whatever retries its step still has. */
class NonRetryableError extends Error {
  constructor(message, name = "NonRetryableError") {
    super(message);
    this.name = name;
  }
}

/** `cloudflare:durable-objects`: a call that may have begun is never made again here, so the mark changes nothing. */
function retryable(...methods) {
  for (const [i, method] of methods.entries()) if (typeof method !== "function") throw new TypeError(`Failed to execute 'retryable': parameter ${i + 1} is not of type 'Function'.`);
}

/** Module namespaces by specifier; the bundler resolves imports to these. */
export const modules = {
  // Not for projects: what the server itself serves (src/service/r2/config_s3.c).
  get "cairn:s3"() {
    return s3();
  },
  "cloudflare:durable-objects": { retryable },
  "cloudflare:email": {
    get EmailMessage() {
      return email().EmailMessage;
    },
  },
  "cloudflare:pipelines": { PipelineTransformationEntrypoint },
  "cloudflare:sockets": {
    get connect() {
      return sockets().connect;
    },
  },
  "cloudflare:workers": {
    env: mirror(currentEnv, writable(currentEnv)),
    exports: mirror(() => imported.exports ?? ownExports()),
    cache: cacheContext,
    waitUntil,
    withEnv: (newEnv, callback) => withEnvAndExports(newEnv, KEEP, callback),
    withExports: (newExports, callback) => withEnvAndExports(KEEP, newExports, callback),
    withEnvAndExports,
    WorkerEntrypoint,
    DurableObject,
    WorkflowEntrypoint,
    get RpcTarget() {
      return objects().RpcTarget;
    },
    get RpcStub() {
      return objects().RpcStub;
    },
    get RpcPromise() {
      return objects().RpcPromise;
    },
    get RpcProperty() {
      return objects().RpcProperty;
    },
    get ServiceStub() {
      return objects().ServiceStub;
    },
    get tracing() {
      return tracing().tracing;
    },
  },
  "cloudflare:workflows": { NonRetryableError },
};

/** What import() of a module gives: a property for each of its names, as they are when they are read. */
function namespaceOf(name) {
  const module = modules[name];
  const value = name.startsWith("node:") ? (module.default ?? module) : module;
  const namespace = { __proto__: null };
  for (const key of Object.keys(value)) Object.defineProperty(namespace, key, { get: () => value[key], enumerable: true });
  if (name.startsWith("node:")) Object.defineProperty(namespace, "default", { value, enumerable: true });
  return namespace;
}

/** import() of a name that the bundler could not know. */
export async function importByName(specifier) {
  const name = `${specifier}`;
  const asked = Object.hasOwn(modules, name) || !Object.hasOwn(modules, `node:${name}`) ? name : `node:${name}`;
  const isThere = asked.startsWith("node:")
    ? compatibilityFlags.has("nodejs_compat") || (compatibilityFlags.has("nodejs_als") && asked === "node:async_hooks")
    : asked.startsWith("cloudflare:");
  if (!isThere || !Object.hasOwn(modules, asked)) throw new Error(`No such module "${name.replace(/^(\.?\/)+/, "")}".`);
  return namespaceOf(asked);
}
