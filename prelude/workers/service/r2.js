// R2Bucket and what it gives out: arguments, limits and errors as the platform words them.
// src/service/r2/natives_body.c moves the bytes, src/service/r2/r2.c keeps the index.
// https://developers.cloudflare.com/r2/api/workers/workers-api-reference/
import { finishInterface } from "../../internal/interface.js";
import { native } from "../../internal/native.js";
import { fieldError, isDictionary, parameterError } from "../../internal/webidl.js";
import { Blob } from "../../web/blob.js";
import { utf8Encode } from "../../web/encoding/text-encoder.js";
import { Headers } from "../../web/fetch/headers.js";
import { createByteStreamFromBytes, createByteStreamFromPull, isDisturbed, isLocked, isReadableStream, knownLength, pumpTo, readAllBytes } from "../../web/streams/internal.js";
import { callService } from "./call.js";
import { INTERNAL, numberOf, PROBLEMS } from "./r2-problems.js";

const KEY_BYTES_MAX = 1024;
const KEY_BYTES = 32; // of SSE-C
const METADATA_BYTES_MAX = 8192;
const LIST_MAX = 1000;
const DELETE_MAX = 1000;
const PART_MAX = 10_000;
const PUT_BYTES_MAX = 5 * 2 ** 30;
const PIECE_BYTES = 256 << 10;
const HASHES = { sha1: [20, "SHA-1"], sha256: [32, "SHA-256"], sha384: [48, "SHA-384"], sha512: [64, "SHA-512"] };
const CLASSES = ["Standard", "InfrequentAccess"];

const token = Symbol("construct");

/** An error of the service, with its number. */
function problem(method, code, text) {
  if (PROBLEMS[code] === undefined) [code, text] = [INTERNAL, `${PROBLEMS[INTERNAL][1]} (${code})`];
  const error = new Error(`${method}: ${text ?? PROBLEMS[code][1]} (${code})`);
  Object.defineProperty(error, "code", { value: code, configurable: true });
  return error;
}
const inside = (method) => (failure, code) => problem(method, numberOf(code), failure);

// --- arguments -------------------------------------------------------------------------------

function checkKey(method, key) {
  key = `${key}`;
  if (key.includes("\0") || utf8Encode(key).length > KEY_BYTES_MAX) throw problem(method, 10020);
  return key;
}

const unquote = (etag) => etag.trim().replace(/^W\//, "").replace(/^"(.*)"$/, "$1");
const etagList = (value) => {
  if (value === undefined || value === null) return null;
  const list = Array.isArray(value) ? value : [value];
  for (const etag of list) {
    if (/^(W\/)?".*"$/.test(`${etag}`)) throw new TypeError(`Conditional ETag should not be wrapped in quotes (${etag}).`);
  }
  return list.join("\n");
};
function timeOf(name, value) {
  if (value === undefined || value === null) return null;
  const time = value instanceof Date ? value.getTime() : value;
  if (typeof time !== "number") throw fieldError(name, "Conditional", "date");
  if (!Number.isFinite(time)) throw new TypeError("The value cannot be converted because it is not a valid Date.");
  return time;
}

/** [match, noneMatch, after, before, seconds] for C, or undefined. A condition that is not understood is an error: it never holds. */
function conditionOf(options, type) {
  const onlyIf = options?.onlyIf;
  if (onlyIf === undefined || onlyIf === null) return undefined;
  if (!isDictionary(onlyIf)) throw fieldError("onlyIf", type, "Conditional or Headers");
  if (onlyIf instanceof Headers) {
    const list = (name) => {
      const value = onlyIf.get(name);
      return value === null ? null : value.split(",").map(unquote).join("\n");
    };
    const date = (name) => {
      const value = Date.parse(onlyIf.get(name) ?? "");
      return Number.isNaN(value) ? null : value;
    };
    return [list("if-match"), list("if-none-match"), date("if-modified-since"), date("if-unmodified-since"), true];
  }
  return [etagList(onlyIf.etagMatches), etagList(onlyIf.etagDoesNotMatch), timeOf("uploadedAfter", onlyIf.uploadedAfter), timeOf("uploadedBefore", onlyIf.uploadedBefore),
    onlyIf.secondsGranularity === true];
}

/** The part of a body of `size` bytes that is asked for: [offset, length]. */
function rangeOf(method, range, size) {
  if (range === undefined || range === null) return null;
  let { offset, length, suffix } = range;
  if (range instanceof Headers) {
    const match = /^bytes=(\d*)-(\d*)$/.exec(range.get("range")?.trim() ?? "");
    if (match === null || (match[1] === "" && match[2] === "")) return null;
    offset = match[1] === "" ? undefined : +match[1];
    suffix = match[1] === "" ? +match[2] : undefined;
    length = match[1] !== "" && match[2] !== "" ? +match[2] - offset + 1 : undefined;
    if (length !== undefined && length <= 0) return null;
  }
  if (suffix !== undefined) {
    if (offset !== undefined || length !== undefined) throw new TypeError("Suffix is incompatible with offset or length.");
    if (!(suffix > 0)) throw problem(method, 10039);
    const start = Math.max(0, size - Math.floor(suffix));
    return [start, size - start];
  }
  offset = Math.floor(offset ?? 0);
  if (offset < 0 || (size > 0 && offset >= size) || (offset > size)) throw problem(method, 10039);
  if (length !== undefined && !(length > 0)) throw problem(method, 10039);
  return [offset, Math.min(length === undefined ? Infinity : Math.floor(length), size - offset)];
}

const HTTP_FIELDS = { contentType: "content-type", contentLanguage: "content-language", contentDisposition: "content-disposition",
  contentEncoding: "content-encoding", cacheControl: "cache-control" };

function httpMetadataOf(value) {
  const out = {};
  if (value === undefined || value === null) return out;
  const headers = value instanceof Headers;
  for (const name of Object.keys(HTTP_FIELDS)) {
    const field = headers ? value.get(HTTP_FIELDS[name]) : value[name];
    if (field !== undefined && field !== null) out[name] = `${field}`;
  }
  const expires = headers ? value.get("expires") : value.cacheExpiry;
  if (expires !== undefined && expires !== null) {
    const time = headers ? Date.parse(expires) : +expires;
    if (!Number.isNaN(time)) out.cacheExpiry = time;
  }
  return out;
}

/** @returns {[http: string, custom: string, storageClass: string]} */
function metadataOf(method, options) {
  const http = JSON.stringify(httpMetadataOf(options?.httpMetadata));
  const custom = {};
  let size = 0;
  for (const [name, value] of Object.entries(options?.customMetadata ?? {})) {
    custom[name] = `${value}`;
    size += utf8Encode(name).length + utf8Encode(custom[name]).length;
  }
  if (size > METADATA_BYTES_MAX) throw problem(method, 10012);
  const storageClass = options?.storageClass ?? "Standard";
  if (!CLASSES.includes(storageClass)) throw new TypeError(`Unknown storage class: ${storageClass}`);
  return [http, JSON.stringify(custom), storageClass];
}

/** The customer's key of SSE-C: {bytes, md5}, both undefined if there is none. */
function keyOf(options) {
  const key = options?.ssecKey;
  if (key === undefined || key === null) return { bytes: undefined, md5: undefined };
  let bytes;
  if (typeof key === "string") {
    if (!/^(?:[0-9a-f]{2})*$/i.test(key)) throw new Error("SSE-C Key has invalid format");
    bytes = new Uint8Array((key.match(/../g) ?? []).map((pair) => parseInt(pair, 16)));
  } else if (key instanceof ArrayBuffer || ArrayBuffer.isView(key)) {
    bytes = bytesOf(key).slice(); // it may be changed while we wait
  } else {
    throw new TypeError("ssecKey must be an ArrayBuffer or a string of hexadecimal digits.");
  }
  if (bytes.length !== KEY_BYTES) throw new Error(`SSE-C Key must be ${KEY_BYTES} bytes in length.`);
  return { bytes, md5: native.r2Md5(bytes) };
}
/** What the index says of a key: that it does not fit. */
function badKey(method, key, stored) {
  if (key.md5 === undefined) return problem(method, 10003, "The object is encrypted with a key of the customer (SSE-C), which must be given to read it.");
  return stored === undefined ? problem(method, 10003, "A key (SSE-C) was given for an object that is not encrypted.") : problem(method, 10003);
}

const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** {md5, sha: [name, hex]} of the checksums that put() should verify. */
function checksumsOf(options) {
  const wanted = {};
  for (const name of ["md5", ...Object.keys(HASHES)]) {
    const value = options?.[name];
    if (value === undefined || value === null) continue;
    const hex = typeof value === "string" ? value.toLowerCase()
      : toHex(ArrayBuffer.isView(value) ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : new Uint8Array(value));
    const bytes = name === "md5" ? 16 : HASHES[name][0];
    if (!/^[0-9a-f]*$/.test(hex) || hex.length !== bytes * 2) throw new TypeError(`${name} is not a valid hex string of ${bytes} bytes`);
    wanted[name] = hex;
  }
  const names = Object.keys(wanted);
  if (names.length > 1) throw new TypeError("You cannot specify multiple hashing algorithms.");
  return { md5: wanted.md5, sha: names[0] !== undefined && names[0] !== "md5" ? names[0] : undefined, hex: wanted[names[0]] };
}

// --- bodies ----------------------------------------------------------------------------------

/** Bytes of a value that is not a stream; undefined: it is one. */
function bytesOf(value) {
  if (value === null) return new Uint8Array(0);
  if (typeof value === "string") return utf8Encode(value);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return undefined;
}

/** The index notes that a blob is on its way, durably: no crash can leave it behind (R3 of service/r2/r2.h). */
const announce = (ns, method, blob) => callService((callback) => native.r2Note(ns, blob, true, callback), inside(method));
/** Its put has failed. If the index cannot be told now, its next start finds out. */
function forget(ns, blob) {
  callService((callback) => native.r2Note(ns, blob, false, callback), inside("put")).catch(() => {});
}

/**
 * Writes a body. The blob is announced while it is written, before it is finished.
 * @returns {Promise<[blob: string | null, size: number, md5: string, sha: string | undefined, bytes: Uint8Array | undefined]>}
 */
async function writeBody(ns, method, value, sha, blobOnly, key) {
  const writer = native.r2Writer(ns, sha, blobOnly, key);
  let blob; // once it is begun
  let announced;
  const write = (chunk) => {
    const taken = native.r2Write(writer, chunk);
    if (blob === undefined && (blob = native.r2Begun(writer)) !== undefined) {
      announced = announce(ns, method, blob);
      announced.catch(() => {}); // it is awaited below
    }
    return taken;
  };
  try {
    const bytes = bytesOf(value);
    if (bytes !== undefined) {
      await write(bytes);
    } else {
      const stream = value instanceof Blob ? value.stream() : value;
      if (!isReadableStream(stream)) {
        throw new TypeError("parameter 2 is not of type 'ReadableStream or ArrayBuffer or ArrayBufferView or string or Blob'.");
      }
      if (knownLength(stream) > PUT_BYTES_MAX) throw problem(method, 100100);
      let size = 0;
      await pumpTo(stream, {
        write(chunk) {
          size += chunk.byteLength;
          if (size > PUT_BYTES_MAX) throw problem(method, 100100);
          return write(chunk);
        },
        close() {},
        abort() {},
      });
      if ((blobOnly || key !== undefined) && blob === undefined) await write(new Uint8Array(0)); // it was empty
    }
    await announced;
    return await native.r2Finish(writer, undefined);
  } catch (error) {
    native.r2Abandon(writer);
    if (blob !== undefined) forget(ns, blob);
    throw error;
  }
}

/** The stream of a part of a body that C reads. */
function bodyStream(reader, offset, size) {
  let left = size;
  return createByteStreamFromPull(async () => {
    if (left === 0) return null;
    const chunk = await native.r2Read(reader, offset, Math.min(left, PIECE_BYTES));
    offset += chunk.byteLength;
    left -= chunk.byteLength;
    return chunk;
  }, undefined, { r2: reader, offset, size }, size);
}

// --- objects ---------------------------------------------------------------------------------

class R2Checksums {
  #hex;
  constructor(key, hex) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#hex = hex;
    for (const name of Object.keys(hex)) {
      const bytes = new Uint8Array(hex[name].match(/../g).map((pair) => parseInt(pair, 16)));
      Object.defineProperty(this, name, { value: bytes.buffer, enumerable: true });
    }
  }
  toJSON() {
    return { ...this.#hex };
  }
}
finishInterface(R2Checksums);

class R2Object {
  constructor(key, fields, range) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.key = fields.key;
    this.version = fields.version;
    this.size = fields.size;
    this.etag = fields.etag;
    this.httpEtag = `"${fields.etag}"`;
    this.checksums = new R2Checksums(token, fields.checksums);
    this.uploaded = new Date(fields.uploaded);
    const { cacheExpiry, ...http } = fields.http ?? {};
    this.httpMetadata = cacheExpiry === undefined ? http : { ...http, cacheExpiry: new Date(cacheExpiry) };
    this.customMetadata = fields.custom ?? {};
    if (range !== undefined) this.range = range;
    this.storageClass = fields.storageClass;
    if (fields.ssec !== undefined) this.ssecKeyMd5 = fields.ssec;
  }
  writeHttpMetadata(headers) {
    if (!(headers instanceof Headers)) throw new TypeError("Failed to execute 'writeHttpMetadata' on 'R2Object': parameter 1 is not of type 'Headers'.");
    const http = this.httpMetadata ?? {};
    for (const name of Object.keys(HTTP_FIELDS)) if (http[name] !== undefined) headers.set(HTTP_FIELDS[name], http[name]);
    if (http.cacheExpiry !== undefined) headers.set("expires", http.cacheExpiry.toUTCString());
  }
}
finishInterface(R2Object);

class R2ObjectBody extends R2Object {
  #source; // bytes, or C's body
  #offset;
  #length;
  #stream = null;
  #used = false;
  constructor(key, fields, source, offset, length, range) {
    super(key, fields, range);
    this.#source = source;
    this.#offset = offset;
    this.#length = length;
  }
  get body() {
    if (this.#stream === null) {
      const source = this.#source;
      this.#stream = source instanceof Uint8Array
        ? createByteStreamFromBytes(source.slice(this.#offset, this.#offset + this.#length)) : bodyStream(source, this.#offset, this.#length);
    }
    return this.#stream;
  }
  get bodyUsed() {
    return this.#used || (this.#stream !== null && isDisturbed(this.#stream));
  }
  async bytes() {
    if (this.bodyUsed || (this.#stream !== null && isLocked(this.#stream))) {
      throw new TypeError("Body has already been used. It can only be used once. Use tee() first if you need to read it twice.");
    }
    this.#used = true;
    if (this.#stream !== null) return readAllBytes(this.#stream);
    if (this.#source instanceof Uint8Array) return this.#source.slice(this.#offset, this.#offset + this.#length);
    return this.#length === 0 ? new Uint8Array(0) : native.r2Read(this.#source, this.#offset, this.#length);
  }
  async arrayBuffer() {
    return (await this.bytes()).buffer;
  }
  async text() {
    return native.utf8Decode(await this.bytes());
  }
  async json() {
    return JSON.parse(await this.text());
  }
  async blob() {
    return new Blob([await this.bytes()], { type: this.httpMetadata?.contentType ?? "" });
  }
}
finishInterface(R2ObjectBody);

const makeObject = (json) => new R2Object(token, JSON.parse(json));

// --- multipart uploads -----------------------------------------------------------------------

class R2MultipartUpload {
  #ns;
  #key; // `key` and `uploadId` are the script's
  #uploadId;
  constructor(key, ns, name, uploadId) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#ns = ns;
    this.#key = name;
    this.#uploadId = uploadId;
    this.key = name;
    this.uploadId = uploadId;
  }
  async uploadPart(partNumber, value, options) {
    const method = "uploadPart";
    if (!Number.isInteger(partNumber) || partNumber < 1 || partNumber > PART_MAX) {
      throw new TypeError(`Part number must be between 1 and ${PART_MAX} (inclusive). Actual value was: ${partNumber}`);
    }
    const ssec = keyOf(options);
    if (value === null || value === undefined) throw new TypeError("A part must have a body.");
    const [blob, size, etag] = await writeBody(this.#ns, method, value, undefined, true, ssec.bytes);
    await this.#end(method, blob, (callback) => native.r2UploadPart(this.#ns, this.#key, this.#uploadId, partNumber, blob, size, etag, ssec.md5, callback));
    return { partNumber, etag };
  }
  async #end(method, blob, start) {
    let code, json;
    try {
      [code, json] = await callService(start, inside(method));
    } catch (error) {
      if (blob !== null) forget(this.#ns, blob);
      throw error;
    }
    if (code !== 0) throw problem(method, code);
    return json;
  }
  async abort() {
    await this.#end("abortMultipartUpload", null, (callback) => native.r2UploadEnd(this.#ns, this.#key, this.#uploadId, null, null, null, callback));
  }
  async complete(uploadedParts) {
    const method = "completeMultipartUpload";
    if (!Array.isArray(uploadedParts)) throw new TypeError("complete() takes an array of parts");
    const parts = uploadedParts.map(({ partNumber, etag }) => ({ partNumber: Number(partNumber), etag: unquote(`${etag}`) }))
      .sort((a, b) => a.partNumber - b.partNumber);
    if (parts.some(({ partNumber, etag }) => !Number.isInteger(partNumber) || !/^[0-9a-f]{32}$/.test(etag))) throw problem(method, 10025);
    // The ETag of the whole: the MD5 of its parts' MD5s, and their number.
    const joined = new Uint8Array(parts.flatMap(({ etag }) => etag.match(/../g).map((pair) => parseInt(pair, 16))));
    const etag = `${native.r2Md5(joined)}-${parts.length}`;
    const list = parts.map((part) => `${part.partNumber} ${part.etag}\n`).join("");
    return makeObject(await this.#end(method, null, (callback) => native.r2UploadEnd(this.#ns, this.#key, this.#uploadId, list, etag, "{}", callback)));
  }
}
finishInterface(R2MultipartUpload);

// --- buckets ---------------------------------------------------------------------------------

class R2Bucket {
  #ns;
  constructor(key, ns) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#ns = ns;
  }

  async head(key, options) {
    const method = "head";
    key = checkKey(method, key);
    const ssec = keyOf(options);
    const found = await callService((callback) => native.r2Get(this.#ns, false, key, undefined, ssec.md5, callback), inside(method));
    if (found === null) return null;
    if (found[3] !== 0) throw badKey(method, ssec, JSON.parse(found[0]).ssec);
    const fields = JSON.parse(found[0]);
    return new R2Object(token, fields, { offset: 0, length: fields.size });
  }

  async get(key, options) {
    const method = "get";
    key = checkKey(method, key);
    const ssec = keyOf(options);
    if (!isDictionary(options)) throw parameterError(method, "R2Bucket", 2, "GetOptions");
    const condition = conditionOf(options, "GetOptions");
    const found = await callService((callback) => native.r2Get(this.#ns, true, key, condition, ssec.md5, callback), inside(method));
    if (found === null) return null;
    const fields = JSON.parse(found[0]);
    if (found[3] !== 0) throw badKey(method, ssec, fields.ssec);
    if (found[1]) return new R2Object(token, fields);
    if (fields.ssec !== undefined) native.r2Unlock(found[2], ssec.bytes);
    const range = rangeOf(method, options?.range, fields.size);
    const [offset, length] = range ?? [0, fields.size];
    return new R2ObjectBody(token, fields, found[2], offset, length, { offset, length });
  }

  async put(key, value, options) {
    const method = "put";
    key = checkKey(method, key);
    if (arguments.length < 2 || value === undefined) throw new TypeError("Failed to execute 'put' on 'R2Bucket': parameter 2 is required.");
    if (!isDictionary(options)) throw parameterError(method, "R2Bucket", 3, "PutOptions");
    const condition = conditionOf(options, "PutOptions");
    const metadata = metadataOf(method, options);
    const wanted = checksumsOf(options);
    const ssec = keyOf(options);
    const body = await writeBody(this.#ns, method, value, wanted.sha, false, ssec.bytes);
    const [blob, , md5, sha] = body;
    const actual = wanted.sha === undefined ? md5 : sha;
    if (wanted.hex !== undefined && wanted.hex !== actual) {
      if (blob !== null) forget(this.#ns, blob);
      const name = wanted.sha === undefined ? "MD5" : HASHES[wanted.sha][1];
      throw problem(method, 10037, `The ${name} checksum you specified did not match what we received.\nYou provided a ${name} checksum with value: ${wanted.hex}\nActual ${name} was: ${actual}`);
    }
    const checksums = JSON.stringify(wanted.sha === undefined ? { md5 } : { md5, [wanted.sha]: sha });
    let json;
    try {
      json = await callService((callback) => native.r2Put(this.#ns, key, body, checksums, ...metadata, ssec.md5, condition, callback), inside(method));
    } catch (error) {
      if (blob !== null) forget(this.#ns, blob);
      throw error;
    }
    return json === null ? null : makeObject(json);
  }

  async delete(keys) {
    const list = (Array.isArray(keys) ? keys : [keys]).map((key) => checkKey("delete", key));
    if (list.length > DELETE_MAX) throw new RangeError(`delete: cannot delete more than ${DELETE_MAX} keys at once`);
    if (list.length === 0) return;
    await callService((callback) => native.r2Delete(this.#ns, list.map((key) => `${key}\0`).join(""), callback), inside("delete"));
  }

  async list(options = {}) {
    const method = "list";
    const { limit = LIST_MAX, prefix = "", cursor, delimiter = "", startAfter, include } = options ?? {};
    if (!Number.isInteger(limit) || limit < 1 || limit > LIST_MAX) throw problem(method, 10022);
    let after = startAfter === undefined ? null : `${startAfter}`;
    let isPrefix = false;
    if (cursor !== undefined && cursor !== null) {
      const text = decodeCursor(`${cursor}`);
      if (text === null) return { objects: [], truncated: false, delimitedPrefixes: [] }; // as the platform has it
      after = text.slice(1);
      isPrefix = text[0] === "p";
    }
    const [json, truncated, last, lastIsPrefix] = await callService(
      (callback) => native.r2List(this.#ns, `${prefix}`, `${delimiter ?? ""}`, after, isPrefix, limit,
        include?.includes("httpMetadata") ?? false, include?.includes("customMetadata") ?? false, callback), inside(method));
    const { objects, prefixes } = JSON.parse(json);
    const result = { objects: objects.map((fields) => new R2Object(token, fields)), truncated, delimitedPrefixes: prefixes };
    if (truncated) result.cursor = encodeCursor((lastIsPrefix ? "p" : "k") + last);
    return result;
  }

  async createMultipartUpload(key, options) {
    const method = "createMultipartUpload";
    key = checkKey(method, key);
    const metadata = metadataOf(method, options);
    const ssec = keyOf(options);
    const [, json] = await callService((callback) => native.r2UploadCreate(this.#ns, key, ...metadata, ssec.md5, callback), inside(method));
    return new R2MultipartUpload(token, this.#ns, key, JSON.parse(json));
  }

  resumeMultipartUpload(key, uploadId) {
    return new R2MultipartUpload(token, this.#ns, checkKey("resumeMultipartUpload", key), `${uploadId}`);
  }
}
finishInterface(R2Bucket);

const encodeCursor = (text) => toHex(utf8Encode(text));
function decodeCursor(text) {
  if (!/^(?:[0-9a-f]{2})+$/.test(text)) return null;
  const decoded = native.utf8DecodeStrict(new Uint8Array(text.match(/../g).map((pair) => parseInt(pair, 16))));
  return decoded !== null && (decoded[0] === "k" || decoded[0] === "p") ? decoded : null;
}

const makeBucket = (ns) => new R2Bucket(token, ns);
export const makeBinding = ({ type, ns }) => (type === "s3_bucket" ? makeS3Bucket(ns) : makeBucket(ns));

/** The same with what only the S3 endpoint (workers/s3.js) can ask: uploads in progress. */
function makeS3Bucket(ns) {
  const list = (key, upload) => callService((callback) => native.r2Uploads(ns, key, upload, callback), inside("listMultipartUploads"));
  return {
    bucket: makeBucket(ns),
    async uploads() {
      return JSON.parse((await list(null, null))[1]);
    },
    async parts(key, upload) {
      const [code, json] = await list(key, `${upload}`);
      return code === 0 ? JSON.parse(json) : null;
    },
  };
}
