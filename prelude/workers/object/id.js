// DurableObjectId and DurableObjectNamespace: names become ids, ids become stubs.
import { turnTime } from "../../internal/turn.js";
import { native } from "../../internal/native.js";
import { finishInterface } from "../../internal/interface.js";
import { setForgetStub } from "./local.js";
import { newStub } from "./stub.js";

const JURISDICTIONS = [undefined, "eu", "fedramp", "fedramp-high", "us"];
/** Names longer than this route, but are not remembered (DO-ID-2). */
const NAME_BYTES_MAX = 1024;
/** Ids by name, so that a hot name costs no hashing and no native call. */
const CACHE_MAX = 8192;
const CACHE_MS = 10_000; // names not used for twice as long go when another comes

const token = Symbol("construct");
let hexOf, stubOf, forgetNames, forgetStub;

export class DurableObjectId {
  #hex;
  #ns; // of the namespace that made it; 0: of one's own object
  #stub = null;
  constructor(key, hex, name, jurisdiction, ns) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#hex = hex;
    this.#ns = ns;
    if (name !== undefined) this.name = name;
    if (jurisdiction !== undefined) this.jurisdiction = jurisdiction;
  }
  toString() {
    return this.#hex;
  }
  equals(other) {
    return #hex in other && other.#hex === this.#hex;
  }
  static {
    hexOf = (id) => (typeof id === "object" && id !== null && #hex in id ? id.#hex : undefined);
    // One stub for one id: what it has learnt of the object is used by the next call.
    stubOf = (id, ns) => (id.#ns === ns ? (id.#stub ??= newStub(ns, id)) : null);
    forgetStub = (id) => {
      if (#stub in id) id.#stub = null;
    };
  }
}
finishInterface(DurableObjectId);
setForgetStub(forgetStub);

/** The id of an object that runs here: `ctx.id`. */
export function makeId(hex, name, jurisdiction, ns = 0) {
  return new DurableObjectId(token, hex, name, JURISDICTIONS[jurisdiction], ns);
}

function keepsName(name) {
  return name.length <= NAME_BYTES_MAX && (name.length * 3 <= NAME_BYTES_MAX || native.utf8Encode(name).length <= NAME_BYTES_MAX);
}

const RETRY_LIMITS = [["maxRetries", 0, 10], ["timeoutMs", 500, 60_000]];

/**
 * Options of get() and getByName(). They change nothing: an object has one place, and no call is made twice; but what the
 * platform refuses is refused.
 */
function checkOptions(method, options) {
  if (options === null) return;
  if (typeof options !== "object" && typeof options !== "function") {
    throw new TypeError(`Failed to execute '${method}' on 'DurableObjectNamespace': parameter 2 is not of type 'GetDurableObjectOptions'.`);
  }
  const { retry, routingMode } = options;
  if (retry !== undefined && retry !== null) {
    if (typeof retry !== "object" && typeof retry !== "function") {
      throw new TypeError("Incorrect type for the 'retry' field on 'GetDurableObjectOptions': the provided value is not of type 'RetryOptions'.");
    }
    for (const [name, min, max] of RETRY_LIMITS) {
      const value = retry[name];
      if (value === undefined) continue;
      if (typeof value !== "number") throw new TypeError(`Incorrect type for the '${name}' field on 'RetryOptions': the provided value is not of type 'number'.`);
      if (!(value >= min && value <= max && value % 1 === 0)) throw new RangeError(`retry.${name} must be an integer between ${min} and ${max}`);
    }
  }
  if (routingMode !== undefined && `${routingMode}` !== "primary-only") throw new RangeError(`unknown routingMode: ${routingMode}`);
}

export class DurableObjectNamespace {
  #ns; // the store's number of the namespace
  #jurisdiction;
  #persistent; // whether its stubs may be stored (rpc.js, R2)
  #names = new Map(); // those used lately, and those before: a full map becomes the second
  #namesBefore = new Map();
  #namesSince = 0; // when the first began

  constructor(key, ns, jurisdiction, persistent) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#ns = ns;
    this.#jurisdiction = jurisdiction;
    this.#persistent = persistent;
  }
  static {
    forgetNames = (namespace) => {
      namespace.#names = new Map();
      namespace.#namesBefore = new Map();
    };
  }
  #jurisdictionOf(options) {
    if (options?.jurisdiction === undefined) return this.#jurisdiction;
    return jurisdictionNumber(options.jurisdiction);
  }
  newUniqueId(options) {
    const jurisdiction = this.#jurisdictionOf(options);
    return makeId(native.idUnique(this.#ns, jurisdiction), undefined, jurisdiction, this.#ns);
  }
  idFromName(name) {
    if (arguments.length === 0) throw new TypeError("Failed to execute 'idFromName' on 'DurableObjectNamespace': parameter 1 is required.");
    name = `${name}`;
    let id = this.#names.get(name);
    if (id === undefined) {
      id = this.#namesBefore.get(name) ??
        makeId(native.idFromName(this.#ns, name, this.#jurisdiction), keepsName(name) ? name : undefined, this.#jurisdiction, this.#ns);
      const now = turnTime();
      if (this.#names.size >= CACHE_MAX || now - this.#namesSince > CACHE_MS) {
        this.#namesBefore = this.#names;
        this.#names = new Map();
        this.#namesSince = now;
      }
      this.#names.set(name, id);
    }
    return id;
  }
  idFromString(hex) {
    hex = `${hex}`;
    const jurisdiction = native.idCheck(this.#ns, hex);
    if (jurisdiction === -1) throw new TypeError("Invalid Durable Object ID: must be 64 hex digits");
    if (jurisdiction < 0) throw new TypeError("Durable Object ID is not valid for this namespace");
    if (this.#jurisdiction !== 0 && jurisdiction !== this.#jurisdiction) {
      throw new TypeError("Durable Object ID is not valid for this jurisdiction");
    }
    return makeId(hex.toLowerCase(), undefined, jurisdiction, this.#ns);
  }
  get(id, options) {
    if (options !== undefined) checkOptions("get", options);
    const hex = hexOf(id);
    if (hex === undefined) throw new TypeError("Failed to execute 'get' on 'DurableObjectNamespace': parameter 1 is not of type 'DurableObjectId'.");
    const stub = this.#jurisdiction === 0 && !this.#persistent ? stubOf(id, this.#ns) : null;
    if (stub !== null) return stub;
    const jurisdiction = native.idCheck(this.#ns, hex);
    if (jurisdiction < 0) throw new TypeError("get called on the wrong Durable Object namespace");
    if (this.#jurisdiction !== 0 && jurisdiction !== this.#jurisdiction) {
      throw new TypeError("get called on a jurisdictional subnamespace with an ID from a different jurisdiction");
    }
    return newStub(this.#ns, id, this.#persistent);
  }
  getByName(name, options) {
    if (options !== undefined) checkOptions("getByName", options);
    const id = this.idFromName(name);
    return this.#persistent ? newStub(this.#ns, id, true) : stubOf(id, this.#ns);
  }
  getExisting(id, options) {
    return this.get(id, options);
  }
  jurisdiction(name) {
    return new DurableObjectNamespace(token, this.#ns, name === undefined ? 0 : jurisdictionNumber(name), this.#persistent);
  }
}
finishInterface(DurableObjectNamespace);

function jurisdictionNumber(name) {
  if (name === null || name === undefined) return 0; // none in particular
  const number = JURISDICTIONS.indexOf(name);
  if (number < 1) throw new TypeError(`Invalid jurisdiction "${name}": must be one of eu, fedramp, fedramp-high, us.`);
  return number;
}

const bindings = []; // the namespaces in `env`

export function makeNamespace(ns, persistent = false) {
  const namespace = new DurableObjectNamespace(token, ns, 0, persistent);
  bindings.push(namespace);
  return namespace;
}

/** C calls: the lane has become quiet and is about to collect. Stubs by name are made again. */
export function quiet() {
  for (const namespace of bindings) forgetNames(namespace);
}
