// KvNamespace: arguments, limits and errors as the platform words them. src/service/kv/kv.c does the work.
import { Code } from "../../../src/bindings/border.ts";
import { finishInterface } from "../../internal/interface.js";
import { native } from "../../internal/native.js";
import { illegalConstructor, isDictionary, parameterError } from "../../internal/webidl.js";
import { utf8Encode } from "../../web/encoding/text-encoder.js";
import { createByteStreamFromBytes, isReadableStream, readAllBytes } from "../../web/streams/internal.js";
import { callService } from "./call.js";

const SHARDS = 16; // CN_KV_SHARDS
const KEY_BYTES_MAX = 512;
const VALUE_BYTES_MAX = 25 << 20;
const METADATA_BYTES_MAX = 1024;
const LIST_MAX = 1000;
const BULK_MAX = 100;
const CACHE_TTL_MIN = 30;
const EXPIRATION_TTL_MIN = 60;

const token = Symbol("construct");

const failed = (method, status, text) => new Error(`KV ${method} failed: ${status} ${text}`);
const inside = (method) => (failure, code) =>
  code === Code.OVERLOADED ? failed(method, 429, "Too Many Requests") : failed(method, 500, failure);

/** Bytes of a text in UTF-8; short ones are not encoded to be measured. */
const byteLength = (text, limit) => (text.length * 3 <= limit ? text.length : utf8Encode(text).length);

function checkLength(method, key) {
  const length = byteLength(key, KEY_BYTES_MAX);
  if (length > KEY_BYTES_MAX) throw failed(method, 414, `UTF-8 encoded length of ${length} exceeds key length limit of ${KEY_BYTES_MAX}.`);
}

function checkKey(method, key) {
  key = `${key}`;
  if (key === "") throw new TypeError("Key name cannot be empty.");
  if (key === "." || key === "..") throw new TypeError(`"${key}" is not allowed as a key name.`);
  checkLength(method, key);
  return key;
}

/** Of a get, from its second argument: [its type, how old its value may be, in seconds, on another node than the key's]. */
function checkOptions(method, options, types) {
  const { type = "text", cacheTtl } = typeof options === "string" ? { type: options } : options ?? {};
  if (cacheTtl !== undefined && !(toInteger(cacheTtl) >= CACHE_TTL_MIN)) {
    throw failed(method, 400, `Invalid cache_ttl of ${toInteger(cacheTtl)}. Cache TTL must be at least ${CACHE_TTL_MIN}.`);
  }
  if (!types.includes(type)) {
    if (types === BULK_TYPES) throw failed(method, 400, `"${type}" is not a valid type. Use "json" or "text"`);
    throw new TypeError('Unknown response type. Possible types are "text", "arrayBuffer", "json", and "stream".');
  }
  return [type, cacheTtl === undefined ? 0 : toInteger(cacheTtl)];
}

const TYPES = ["text", "json", "arrayBuffer", "stream"];
const BULK_TYPES = ["text", "json"];

function fromStored(type, value) {
  switch (type) {
    case "json":
      return JSON.parse(value);
    case "stream":
      return createByteStreamFromBytes(new Uint8Array(value));
  }
  return value;
}

/** What is stored, at once if the cache has it. */
function getStored(ns, key, asBytes, age, method) {
  let settle;
  const cached = native.kvNamespaceGet(ns, key, asBytes, age, (value, failure, code) => settle(value, failure, code));
  if (cached !== undefined) return cached;
  return callService((callback) => { settle = callback; }, inside(method));
}

/** [value, metadata], or null if the key is not there. */
async function getPair(ns, key, type, age, method) {
  const stored = await getStored(ns, key, type === "arrayBuffer" || type === "stream", age, method);
  if (stored === null) return null;
  if (Array.isArray(stored)) return [fromStored(type, stored[0]), JSON.parse(stored[1])];
  return [fromStored(type, stored), null];
}

/** A Map of each key to pick(value, metadata), or to null if it is not there. */
async function getBulk(ns, keys, options, pick) {
  const method = "GET_BULK";
  if (keys.length > BULK_MAX) throw failed(method, 400, `You can request a maximum of ${BULK_MAX} keys`);
  if (keys.length < 1) throw failed(method, 400, "You must request a minimum of 1 key");
  const names = keys.map((key) => checkKey(method, key));
  const [type, age] = checkOptions(method, options, BULK_TYPES);
  const stored = await Promise.all(names.map((name) => getStored(ns, name, false, age, method)));
  let size = 0;
  const found = new Map();
  stored.forEach((entry, i) => {
    const [text, metadata] = Array.isArray(entry) ? [entry[0], JSON.parse(entry[1])] : [entry, null];
    size += text?.length ?? 0;
    let value = text;
    if (type === "json" && text !== null) {
      try {
        value = JSON.parse(text);
      } catch {
        throw failed(method, 400, "At least one of the requested keys corresponds to a non-json value");
      }
    }
    found.set(names[i], text === null ? null : pick(value, metadata));
  });
  if (size > VALUE_BYTES_MAX) throw failed(method, 413, `Total size of request exceeds the limit of ${VALUE_BYTES_MAX >> 20}MB`);
  return found;
}

// --- put ---------------------------------------------------------------------------------------

/** As Web IDL has it for int: what is no number is 0. */
const toInteger = (value) => Math.trunc(Number(value)) || 0;

/** [seconds, whether they count from now]; zero: never. */
function checkExpiration({ expiration, expirationTtl }) {
  if (expirationTtl !== undefined && expirationTtl !== null) {
    const ttl = toInteger(expirationTtl);
    if (!(ttl > 0)) throw failed("PUT", 400, `Invalid expiration_ttl of ${ttl}. Please specify integer greater than 0.`);
    if (ttl < EXPIRATION_TTL_MIN) {
      throw failed("PUT", 400, `Invalid expiration_ttl of ${ttl}. Expiration TTL must be at least ${EXPIRATION_TTL_MIN}.`);
    }
    return [checkRange("expiration_ttl", ttl), true];
  }
  if (expiration === undefined || expiration === null) return [0, false];
  const time = toInteger(expiration);
  const now = Math.floor(Date.now() / 1000);
  if (!(time > now)) {
    throw failed("PUT", 400, `Invalid expiration of ${time}. Please specify integer greater than the current number of seconds since the UNIX epoch.`);
  }
  if (time < now + EXPIRATION_TTL_MIN) {
    throw failed("PUT", 400, `Invalid expiration of ${time}. Expiration times must be at least ${EXPIRATION_TTL_MIN} seconds in the future.`);
  }
  return [checkRange("expiration", time), false];
}

/** Times past the year 9999 are somebody's milliseconds. */
function checkRange(name, seconds) {
  if (seconds > 253402300799) throw failed("PUT", 400, `Invalid ${name} of ${seconds}. Please specify seconds, not milliseconds.`);
  return seconds;
}

function checkMetadata(metadata) {
  if (metadata === undefined || metadata === null) return undefined;
  const json = JSON.stringify(metadata);
  if (json === undefined) throw new TypeError("The metadata of a KV entry must be serializable as JSON.");
  const length = byteLength(json, METADATA_BYTES_MAX);
  if (length > METADATA_BYTES_MAX) throw failed("PUT", 413, `Metadata length of ${length} exceeds limit of ${METADATA_BYTES_MAX}.`);
  return json;
}

const tooLarge = (length) => failed("PUT", 413, `Value length of ${length} exceeds limit of ${VALUE_BYTES_MAX}.`);

/** A string or bytes, or a promise of them. */
function readValue(value) {
  if (typeof value !== "object" && typeof value !== "function" || value === null) value = `${value}`;
  if (typeof value === "string") {
    const length = byteLength(value, VALUE_BYTES_MAX);
    if (length > VALUE_BYTES_MAX) throw tooLarge(length);
    return value;
  }
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) {
    if (value.byteLength > VALUE_BYTES_MAX) throw tooLarge(value.byteLength);
    return value;
  }
  if (isReadableStream(value)) return readStream(value);
  throw new TypeError("KV put() accepts only strings, ArrayBuffers, ArrayBufferViews, and ReadableStreams as values.");
}

async function readStream(stream) {
  try {
    return await readAllBytes(stream, VALUE_BYTES_MAX);
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge(`more than ${VALUE_BYTES_MAX}`);
    throw error;
  }
}

// --- list --------------------------------------------------------------------------------------

/** Whether a comes before b in the order of their UTF-8 bytes, which is that of code points. */
function isBefore(a, b) {
  const length = Math.min(a.length, b.length);
  let i = 0;
  while (i < length && a.charCodeAt(i) === b.charCodeAt(i)) i++;
  if (i === length) return a.length < b.length;
  const rank = (unit) => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800);
  return rank(a.charCodeAt(i)) < rank(b.charCodeAt(i));
}

const toCursor = (name) => native.base64Encode(native.latin1Decode(utf8Encode(name)));
function fromCursor(cursor, prefix) {
  const text = native.base64Decode(`${cursor}`);
  const bytes = new Uint8Array(text?.length ?? 0);
  if (text === null || !native.latin1Write(text, bytes, 0)) throw failed("LIST", 400, "Invalid cursor.");
  const name = native.utf8Decode(bytes);
  if (!name.startsWith(prefix)) throw failed("LIST", 400, "Invalid cursor: it belongs to a list with another prefix.");
  return name;
}

/** The keys of one shard in order, asked for as they are needed. */
class ShardList {
  constructor(ns, shard, prefix, after, count) {
    this.ask = async (from) => {
      const [json, more] = await callService((callback) => native.kvNamespaceList(ns, shard, prefix, from, count, callback), inside("LIST"));
      this.keys = JSON.parse(json);
      this.next = 0;
      this.more = more;
      return this;
    };
    this.ready = this.ask(after);
  }
  get head() {
    return this.keys[this.next];
  }
  /** False if the next key must be asked for first. */
  get isKnown() {
    return this.next < this.keys.length || !this.more;
  }
  refill() {
    return this.ask(this.keys.at(-1).name);
  }
}

async function mergeLists(ns, prefix, after, limit) {
  // Keys are spread evenly, so a little more than a share of each shard is nearly always enough.
  const count = Math.min(limit, Math.ceil((limit * 1.25) / SHARDS) + 8);
  const lists = await Promise.all(Array.from({ length: SHARDS }, (_, i) => new ShardList(ns, i, prefix, after, count).ready));
  const keys = [];
  for (;;) {
    let first = null;
    for (const list of lists) {
      if (!list.isKnown) await list.refill();
      if (list.head !== undefined && (first === null || isBefore(list.head.name, first.head.name))) first = list;
    }
    if (first === null) return { keys, list_complete: true, cacheStatus: null };
    if (keys.length === limit) return { keys, list_complete: false, cursor: toCursor(keys.at(-1).name), cacheStatus: null };
    keys.push(first.head);
    first.next++;
  }
}

function checkLimit(limit) {
  if (limit === undefined || limit === null) return LIST_MAX;
  const number = Math.trunc(Number(limit));
  if (!(number >= 1)) throw failed("GET", 400, `Invalid key_count_limit of ${limit}. Please specify an integer greater than 0.`);
  if (number > LIST_MAX) throw failed("GET", 400, `Invalid key_count_limit of ${limit}. Please specify an integer less than ${LIST_MAX}.`);
  return number;
}

// --- the interface -----------------------------------------------------------------------------

export class KvNamespace {
  #ns; // the store's number of the namespace

  constructor(key, ns) {
    if (key !== token) throw illegalConstructor();
    this.#ns = ns;
  }

  async get(key, options) {
    if (Array.isArray(key)) return getBulk(this.#ns, key, options, (value) => value);
    const name = checkKey("GET", key);
    const [type, age] = checkOptions("GET", options, TYPES);
    const stored = await getStored(this.#ns, name, type === "arrayBuffer" || type === "stream", age, "GET");
    if (stored === null) return null;
    return fromStored(type, Array.isArray(stored) ? stored[0] : stored);
  }

  async getWithMetadata(key, options) {
    if (Array.isArray(key)) return getBulk(this.#ns, key, options, (value, metadata) => ({ value, metadata }));
    const name = checkKey("GET", key);
    const pair = await getPair(this.#ns, name, ...checkOptions("GET", options, TYPES), "GET");
    return { value: pair?.[0] ?? null, metadata: pair?.[1] ?? null, cacheStatus: null };
  }

  async put(key, value, options) {
    const name = checkKey("PUT", key);
    if (!isDictionary(options)) throw parameterError("put", "KvNamespace", 3, "PutOptions");
    let [expires, isTtl, metadata] = [0, false, undefined];
    if (options !== undefined && options !== null) {
      [expires, isTtl] = checkExpiration(options);
      metadata = checkMetadata(options.metadata);
    }
    const read = readValue(value);
    const body = read instanceof Promise ? await read : read;
    return callService((callback) => native.kvNamespacePut(this.#ns, name, body, expires, isTtl, metadata, callback), inside("PUT"));
  }

  async list(options) {
    const { prefix, limit, cursor } = options ?? {};
    const start = prefix === undefined || prefix === null ? "" : `${prefix}`;
    checkLength("LIST", start);
    const count = checkLimit(limit);
    const after = cursor === undefined || cursor === null || cursor === "" ? undefined : fromCursor(cursor, start);
    return mergeLists(this.#ns, start, after, count);
  }

  async delete(key) {
    const name = checkKey("DELETE", key);
    return callService((callback) => native.kvNamespaceDelete(this.#ns, name, callback), inside("DELETE"));
  }
}
finishInterface(KvNamespace, "KvNamespace");

export const makeBinding = ({ ns }) => new KvNamespace(token, ns);
