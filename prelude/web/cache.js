// caches, Cache: https://developers.cloudflare.com/workers/runtime-apis/cache/
//
// What may be kept and for how long is decided here by the rules of HTTP; src/service/cache/cache.c keeps it.
import { finishInterface } from "../internal/interface.js";
import { native } from "../internal/native.js";
import { needsEvent } from "../internal/startup.js";
import { parameterError } from "../internal/webidl.js";
import { utf8Encode } from "./encoding/text-encoder.js";
import { Headers } from "./fetch/headers.js";
import { Request } from "./fetch/request.js";
import { Response } from "./fetch/response.js";
import { isRequest, isResponse, responseTitled } from "./fetch/internal.js";
import { createByteStreamFromBytes, createByteStreamFromPull, knownLength, pumpTo } from "./streams/internal.js";

const BODY_MEMORY_MAX = 256 * 1024; // CN_CACHE_BODY_MEMORY_MAX
const BODY_MAX = 512 * 1024 * 1024; // CN_CACHE_BODY_MAX
const PIECE_BYTES = 256 * 1024;
const TAGS_BYTES_MAX = 16 * 1024; // CN_CACHE_TAGS_SIZE_MAX
const TAG_BYTES_MAX = 1024;
const PURGE_MAX = 1000;
const PURGE_LENGTH_MAX = 2 << 20; // of all texts together: what nodes tell each other is bounded
/** How long an answer without any word about it is kept, in seconds, by its status. */
const DEFAULT_SECONDS = { 200: 7200, 301: 7200, 302: 1200, 303: 1200, 404: 180, 410: 180 };

const token = Symbol("construct");

/** Directives of Cache-Control: a map of lower-case names to values (true without one). */
function directives(text) {
  const found = new Map();
  for (const match of (text ?? "").matchAll(/([a-z0-9-]+)(?:\s*=\s*(?:"([^"]*)"|([^\s,]*)))?/gi)) {
    found.set(match[1].toLowerCase(), match[2] ?? match[3] ?? true);
  }
  return found;
}

/** For how many seconds a response may be kept; 0: not at all. */
export function freshSeconds(status, headers) {
  const control = directives(headers.get("cache-control"));
  if (control.has("no-store") || control.get("private") === true || control.has("no-cache")) return 0;
  for (const name of ["s-maxage", "max-age"]) {
    if (!control.has(name)) continue;
    const seconds = Number(control.get(name));
    return Number.isInteger(seconds) && seconds > 0 ? seconds - age(headers) : 0;
  }
  const expires = headers.get("expires");
  if (expires !== null) {
    const time = Date.parse(expires);
    return Number.isNaN(time) ? 0 : Math.max(0, (time - Date.now()) / 1000);
  }
  return DEFAULT_SECONDS[status] ?? 0;
}
const age = (headers) => Math.max(0, parseInt(headers.get("age") ?? "0", 10) || 0);

/** The stored head: what goes to every reader. Set-Cookie is nobody else's. */
function headOf(response) {
  const control = directives(response.headers.get("cache-control"));
  const hidden = typeof control.get("private") === "string" ? control.get("private").toLowerCase().split(",").map((name) => name.trim()) : [];
  if (response.headers.has("set-cookie") && !hidden.includes("set-cookie")) return null;
  let head = "";
  for (const [name, value] of response.headers) if (!hidden.includes(name) && name !== "set-cookie") head += `${name}: ${value}\r\n`;
  return head;
}

/** The whole body: bytes if it is small, else C's file; null: it is too large to be kept. */
async function gather(stream, limit) {
  const parts = [];
  let size = 0;
  let file = null;
  if (stream === null) return new Uint8Array(0);
  const tooLarge = new Error("too large");
  if ((knownLength(stream) ?? 0) > limit) {
    await stream.cancel(tooLarge);
    return null;
  }
  try {
    await pumpTo(stream, {
      write(chunk) {
        size += chunk.byteLength;
        if (size > limit) throw tooLarge;
        if (file !== null) return native.cacheWrite(file, chunk);
        parts.push(chunk.slice());
        if (size <= BODY_MEMORY_MAX) return undefined;
        file = native.cacheFile();
        if (file === undefined) throw tooLarge; // there is no disk
        return native.cacheWrite(file, join(parts, size));
      },
      close() {},
      abort() {},
    });
  } catch (error) {
    if (error === tooLarge) return null;
    throw error;
  }
  return file ?? join(parts, size);
}
function join(parts, size) {
  if (parts.length === 1) return parts[0];
  const all = new Uint8Array(size);
  let offset = 0;
  for (const part of parts) {
    all.set(part, offset);
    offset += part.byteLength;
  }
  return all;
}

/** Tags by which an answer can be purged: those of Cache-Tag and others, in lower case. What is too long is left out. */
function tagsOf(headers, others) {
  const tags = new Set();
  let left = TAGS_BYTES_MAX;
  for (const tag of [...(headers.get("cache-tag") ?? "").split(","), ...others]) {
    const name = normalTag(tag);
    const size = utf8Encode(name).length + 1;
    if (name === "" || size > TAG_BYTES_MAX + 1 || size > left || tags.has(name)) continue;
    left -= size;
    tags.add(name);
  }
  return [...tags];
}
const normalTag = (tag) => `${tag}`.replace(/\0/g, "").trim().toLowerCase();
const placeOf = (url) => {
  const { host, pathname } = new URL(url);
  return host + pathname;
};

/** Keeps a response (its body is read to the end); false: it may not or could not be kept. */
export async function store(key, url, response, seconds, tags = [], limit = BODY_MAX) {
  const head = headOf(response);
  if (!(seconds > 0) || head === null) {
    await response.body?.cancel();
    return false;
  }
  const body = await gather(response.body, limit);
  return body !== null && native.cachePut(key, response.status, head, seconds, body, placeOf(url), tagsOf(response.headers, tags));
}

const etagMatches = (list, etag) => list.split(",").some((each) => {
  const one = each.trim().replace(/^W\//, "");
  return one === "*" || one === etag.replace(/^W\//, "");
});

/** The time of an HTTP date (RFC 9110, 5.6.7, the preferred form); NaN: it is none. */
const httpDate = (text) => (/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text ?? "") ? Date.parse(text) : NaN);

/** Whether the reader has it already. */
function notModified(request, headers) {
  const noneMatch = request.headers.get("if-none-match");
  const etag = headers.get("etag");
  if (noneMatch !== null) return etag !== null && etagMatches(noneMatch, etag);
  const since = httpDate(request.headers.get("if-modified-since"));
  const modified = httpDate(headers.get("last-modified"));
  return modified <= since;
}

const RANGES_MAX = 32;

/** A list of [first, length] of a Range that can be honoured, null, or undefined if all lie outside. */
function rangesOf(request, size) {
  const match = /^bytes=(.+)$/.exec(request.headers.get("range")?.trim() ?? "");
  const list = match === null ? [] : match[1].split(",");
  if (list.length === 0 || list.length > RANGES_MAX) return null;
  const ranges = list.map((each) => rangeOf(each.trim(), size));
  if (ranges.includes(null)) return null;
  const inside = ranges.filter((range) => range !== undefined);
  return inside.length === 0 ? undefined : inside;
}
function rangeOf(text, size) {
  const match = /^(\d*)-(\d*)$/.exec(text);
  if (match === null || (match[1] === "" && match[2] === "")) return null;
  if (match[1] === "") {
    const length = Math.min(size, +match[2]);
    return length > 0 ? [size - length, length] : undefined;
  }
  const first = +match[1];
  const last = match[2] === "" ? size - 1 : Math.min(+match[2], size - 1);
  if (match[2] !== "" && +match[2] < first) return null;
  return first < size ? [first, last - first + 1] : undefined;
}

function streamOf(body, offset, length) {
  if (body instanceof Uint8Array) return createByteStreamFromBytes(body.slice(offset, offset + length));
  let left = length;
  return createByteStreamFromPull(async () => {
    if (left === 0) return null;
    const chunk = await native.cacheRead(body, offset, Math.min(left, PIECE_BYTES));
    offset += chunk.byteLength;
    left -= chunk.byteLength;
    return chunk;
  }, undefined, null, length);
}

/** multipart/byteranges: https://www.rfc-editor.org/rfc/rfc9110#section-14.6 */
function severalRanges(ranges, headers, body, size) {
  const boundary = `cairn-${crypto.randomUUID()}`;
  const type = headers.get("content-type");
  const parts = [];
  for (const [offset, length] of ranges) {
    const about = `--${boundary}\r\n${type === null ? "" : `Content-Type: ${type}\r\n`}Content-Range: bytes ${offset}-${offset + length - 1}/${size}\r\n\r\n`;
    parts.push(utf8Encode(about), [offset, length], utf8Encode("\r\n"));
  }
  parts.push(utf8Encode(`--${boundary}--`));
  const total = parts.reduce((sum, part) => sum + (Array.isArray(part) ? part[1] : part.byteLength), 0);
  let reader = null;
  const pull = async () => {
    while (parts.length > 0) {
      if (!Array.isArray(parts[0])) return parts.shift();
      reader ??= streamOf(body, ...parts[0]).getReader();
      const { done, value } = await reader.read();
      if (!done) return value;
      reader = null;
      parts.shift();
    }
    return null;
  };
  headers.set("content-type", `multipart/byteranges; boundary=${boundary}`);
  headers.set("content-length", String(total));
  return new Response(createByteStreamFromPull(pull, undefined, null, total), { status: 206, headers });
}

/** The kept response for a request, or undefined. */
export function lookUp(key, request) {
  const found = native.cacheGet(key);
  return found === undefined ? undefined : responseTitled(responseOf(found, request));
}

function responseOf([status, head, stored, size, body], request) {
  const headers = new Headers(head.split("\r\n").filter((line) => line !== "").map((line) => {
    const colon = line.indexOf(": ");
    return [line.slice(0, colon), line.slice(colon + 2)];
  }));
  headers.set("cf-cache-status", "HIT");
  headers.set("age", String(age(headers) + Math.floor((Date.now() - stored) / 1000)));
  const nullBody = status === 204 || status === 205 || status === 304;
  if (status === 200 && notModified(request, headers)) return new Response(null, { status: 304, headers });
  const ranges = status === 200 ? rangesOf(request, size) : null;
  if (ranges === undefined) {
    headers.set("content-range", `bytes */${size}`);
    return new Response(null, { status: 416, headers });
  }
  if (ranges !== null && ranges.length > 1) return severalRanges(ranges, headers, body, size);
  const range = ranges === null ? null : ranges[0];
  const [offset, length] = range ?? [0, size];
  if (range !== null) headers.set("content-range", `bytes ${offset}-${offset + length - 1}/${size}`);
  if (range !== null || headers.has("content-length")) headers.set("content-length", String(length));
  const content = nullBody ? null : body instanceof Uint8Array && range === null ? body : streamOf(body, offset, length);
  return new Response(content, { status: range === null ? status : 206, headers });
}

const keyOf = (cache, request) => `${cache}\0${request.cf?.cacheKey ?? request.url.split("#")[0]}`;

/** Methods of the standard that the platform has in name only. */
function refuseMethods(face, title, names) {
  for (const name of names) {
    const methods = { [name]() { throw new Error(`Failed to execute '${name}' on '${title}': the method is not implemented.`); } };
    Object.defineProperty(face.prototype, name, { value: methods[name], writable: true, enumerable: false, configurable: true });
  }
}

class Cache {
  #name;
  constructor(key, name) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#name = name;
  }
  async put(request, response) {
    needsEvent();
    if (arguments.length < 2) throw new TypeError("Failed to execute 'put' on 'Cache': 2 arguments are required.");
    request = isRequest(request) ? request : new Request(request);
    if (!isResponse(response)) throw new TypeError("Failed to execute 'put' on 'Cache': parameter 2 is not of type 'Response'.");
    if (request.method !== "GET") throw new TypeError("Cannot cache response to non-GET request.");
    if (response.status === 206) throw new TypeError("Cannot cache response to a range request (206 Partial Content).");
    if ((response.headers.get("vary") ?? "").split(",").some((name) => name.trim() === "*")) throw new TypeError("Cannot cache response with 'Vary: *' header.");
    if (response.bodyUsed || response.body?.locked) throw new TypeError("The response body has been used already.");
    await store(keyOf(this.#name, request), request.url, response, freshSeconds(response.status, response.headers));
  }
  async match(request, options) {
    needsEvent();
    request = isRequest(request) ? request : new Request(request);
    if (request.method !== "GET" && options?.ignoreMethod !== true) return undefined;
    return lookUp(keyOf(this.#name, request), request);
  }
  async delete(request, options) {
    needsEvent();
    request = isRequest(request) ? request : new Request(request);
    if (request.method !== "GET" && options?.ignoreMethod !== true) return false;
    return native.cacheDelete(keyOf(this.#name, request));
  }
}
refuseMethods(Cache, "Cache", ["add", "addAll", "keys", "matchAll"]);
finishInterface(Cache);

class CacheStorage {
  #default = new Cache(token, "");
  #named = new Map();
  constructor(key) {
    if (key !== token) throw new TypeError("Illegal constructor");
  }
  get default() {
    return this.#default;
  }
  async open(name) {
    if (arguments.length === 0) throw parameterError("open", "CacheStorage", 1, "string");
    name = `${name}`;
    let cache = this.#named.get(name);
    if (cache === undefined) this.#named.set(name, (cache = new Cache(token, `n${name}`)));
    return cache;
  }
}
refuseMethods(CacheStorage, "CacheStorage", ["delete", "has", "keys", "match"]);
finishInterface(CacheStorage);

export { Cache, CacheStorage };
export const caches = new CacheStorage(token);

// --- fetch() with cf.cacheTtl and the like ---------------------------------------------------

/** A body that is kept on its way to the script waits for it in memory: no more than this. */
const FETCH_BODY_MAX = 32 * 1024 * 1024;

/** For how long `cf` wants an answer kept, in seconds. */
function wantedSeconds(cf, response) {
  for (const range of Object.keys(cf.cacheTtlByStatus ?? {})) {
    const [first, last = first] = range.split("-").map(Number);
    if (response.status >= first && response.status <= last) return Number(cf.cacheTtlByStatus[range]);
  }
  if (cf.cacheTtl !== undefined && cf.cacheTtl !== null) return response.status < 400 ? Number(cf.cacheTtl) : 0;
  return freshSeconds(response.status, response.headers);
}

/** fetch() through the cache; `run` does without it. */
export async function cachedFetch(request, cf, run) {
  if (cf.cacheTags !== undefined && !Array.isArray(cf.cacheTags)) throw new TypeError("cf.cacheTags must be an array of strings.");
  const key = `f\0${cf.cacheKey ?? request.url.split("#")[0]}`;
  if (request.cache !== "no-cache" && request.cache !== "reload") {
    const found = lookUp(key, request);
    if (found !== undefined) return found;
  }
  const response = await run();
  const seconds = wantedSeconds(cf, response);
  if (!(seconds > 0) || response.status === 206 || response.body === null || (knownLength(response.body) ?? 0) > FETCH_BODY_MAX) return response;
  store(key, request.url, response.clone(), seconds, cf.cacheTags ?? [], FETCH_BODY_MAX).catch(() => {}); // the script sees the failure of its own branch
  return response;
}

// --- ctx.cache -------------------------------------------------------------------------------

function namesOf(options, name) {
  const list = options[name];
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw new TypeError(`purge(): ${name} must be an array of strings.`);
  return list.map((item) => `${item}`);
}
const refused = (message) => ({ success: false, errors: [{ code: 1012, message }] });

/** Removes what this worker has kept, in whichever of its caches. */
export async function purge(options) {
  if (options === null || typeof options !== "object") throw new TypeError("purge() takes an object.");
  const tags = namesOf(options, "tags").map(normalTag);
  const paths = namesOf(options, "pathPrefixes").map((path) => path.replace(/\0/g, ""));
  const everything = options.purgeEverything === true;
  if (!everything && tags.length === 0 && paths.length === 0) return refused("One of tags, pathPrefixes and purgeEverything must be given.");
  if (tags.length > PURGE_MAX || paths.length > PURGE_MAX) return refused(`At most ${PURGE_MAX} tags and ${PURGE_MAX} path prefixes can be purged at a time.`);
  if ([...tags, ...paths].reduce((sum, text) => sum + text.length, 0) > PURGE_LENGTH_MAX) return refused("The tags and path prefixes are too long.");
  if (paths.includes("") || tags.includes("")) return refused("A tag or a path prefix must not be empty.");
  // Other nodes of a cluster have caches of their own, and are asked.
  const failure = await new Promise((resolve) => {
    if (native.cachePurge(tags, paths, everything, resolve)) resolve(undefined);
  });
  return failure === undefined ? { success: true, errors: [] } : refused(failure);
}
