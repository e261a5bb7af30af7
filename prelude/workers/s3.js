// The S3-compatible endpoint of R2: a worker of the server's own, with every bucket in its env
// (src/service/r2/config_s3.c). It uses what any worker can, and for uploads in progress what r2.js gives it.
import { failureOfBody } from "../web/fetch/failures.js";
import { fieldsOf, OWNER, verified, wantedOf } from "./s3-fields.js";
import { authenticate, decode, S3Error } from "./s3-sign.js";
import { PROBLEMS } from "./service/r2-problems.js";

const XMLNS = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"';
const XML_BYTES_MAX = 4 << 20;
const TEXTS = {
  NoSuchBucket: [404, "The specified bucket does not exist."],
  NoSuchKey: [404, "The specified key does not exist."],
  NoSuchUpload: [404, "The specified multipart upload does not exist."],
  InvalidPart: [400, "One or more of the specified parts could not be found."],
  EntityTooSmall: [400, "Your proposed upload is smaller than the minimum allowed object size."],
  InvalidArgument: [400, "Invalid argument."],
  InvalidRange: [416, "The requested range is not satisfiable."],
  MalformedXML: [400, "The XML you provided was not well-formed."],
  PreconditionFailed: [412, "At least one of the pre-conditions you specified did not hold."],
  XAmzContentSHA256Mismatch: [400, "The provided 'x-amz-content-sha256' header does not match what was computed."],
  BadDigest: [400, "The checksum you specified did not match what was received."],
  NotImplemented: [501, "This operation is not implemented."],
  BucketAlreadyOwnedByYou: [409, "The bucket exists already."],
  KeyTooLongError: [400, "Your key is too long."],
  AccessDenied: [403, "The customer's encryption key is not the one that the object was stored with."],
  InvalidRequest: [400, "The object was stored with another form of encryption: the correct parameters must be given."],
  InvalidEncryptionAlgorithmError: [400, "The encryption algorithm must be AES256."],
  MetadataTooLarge: [400, "Your metadata headers exceed the maximum allowed metadata size."],
  EntityTooLarge: [400, "Your proposed upload exceeds the maximum allowed object size."],
  IncompleteBody: [400, "You did not provide the number of bytes specified by the Content-Length HTTP header."],
  ServiceUnavailable: [503, "Service is unable to handle request."],
  SlowDown: [503, "Please reduce your request rate."],
  InternalError: [500, "An internal error occurred."],
};
const failure = (code, message) => new S3Error(TEXTS[code][0], code, message ?? TEXTS[code][1]);
/** Whatever was thrown, in S3's words (P2 of service/r2-problems.js). */
export function failureOf(error) {
  if (error instanceof S3Error) return error;
  return failure(PROBLEMS[error?.code]?.[0] ?? failureOfBody(error) ?? "InternalError");
}

const escape = (text) => `${text}`.replace(/[&<>"'\r]/g, (c) => `&#${c.charCodeAt(0)};`);
const xml = (text, status = 200) => new Response(`<?xml version="1.0" encoding="UTF-8"?>\n${text}`, { status, headers: { "content-type": "application/xml" } });
const unescape = (text) => text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(amp|lt|gt|quot|apos));/gi, (all, decimal, hex, name) =>
  name ? { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" }[name.toLowerCase()] : characterOf(parseInt(decimal ?? hex, decimal ? 10 : 16)));
function characterOf(code) {
  if (code > 0x10ffff) throw failure("MalformedXML");
  return String.fromCodePoint(code);
}
/** The same bytes, which fail at their end unless this is their SHA-256. */
function asSigned(body, sha256) {
  if (sha256 === undefined) return body;
  const expected = btoa(sha256.replace(/../g, (pair) => String.fromCharCode(parseInt(pair, 16))));
  return verified(body, [{ algorithm: "SHA-256", expected: () => expected }], () => failure("XAmzContentSHA256Mismatch"));
}
/** The texts of every <name> in a document. */
function elements(text, name) {
  const open = `<${name}>`, close = `</${name}>`, found = [];
  for (let at = text.indexOf(open); at >= 0; at = text.indexOf(open, at)) {
    const end = text.indexOf(close, at + open.length);
    if (end < 0) break;
    found.push(text.slice(at + open.length, end));
    at = end + close.length;
  }
  return found;
}
const element = (text, name) => { const [first] = elements(text, name); return first === undefined ? undefined : unescape(first.trim()); };

async function readXml(body, sha256) {
  const bytes = new Uint8Array(await new Response(asSigned(body, sha256)).arrayBuffer());
  if (bytes.length > XML_BYTES_MAX) throw failure("MalformedXML");
  return new TextDecoder().decode(bytes);
}

/** Options of put() from a request's header fields. */
function putOptions(headers) {
  const customMetadata = {};
  for (const [name, value] of headers) if (name.startsWith("x-amz-meta-")) customMetadata[name.slice(11)] = value;
  const http = new Headers(headers);
  const codings = http.get("content-encoding") ?? undefined;
  const encoding = codings === undefined ? undefined : codings.split(",").map((each) => each.trim()).filter((each) => each !== "aws-chunked").join(", ");
  if (encoding) http.set("content-encoding", encoding);
  else http.delete("content-encoding");
  const options = { httpMetadata: http, customMetadata };
  const storageClass = storageClassOf(headers);
  if (storageClass !== undefined) options.storageClass = storageClass;
  return options;
}
const storageClassOf = (headers) => ({ STANDARD: "Standard", STANDARD_IA: "InfrequentAccess" })[headers.get("x-amz-storage-class")];

const bytesOf = (base64) => {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    throw failure("InvalidArgument", "A header field is not base64.");
  }
};
const hexOf = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
const SSEC = "x-amz-server-side-encryption-customer-";

/** The customer's key in the header fields that begin so, checked; undefined: there is none. */
async function ssecKeyOf(headers, prefix = SSEC) {
  const [algorithm, key, md5] = ["algorithm", "key", "key-md5"].map((name) => headers.get(prefix + name));
  if (algorithm === null && key === null && md5 === null) return undefined;
  if (algorithm !== "AES256") throw failure("InvalidEncryptionAlgorithmError");
  if (key === null || md5 === null) throw failure("InvalidArgument", "Both the encryption key and its MD5 must be given.");
  const bytes = bytesOf(key);
  if (bytes.length !== 32) throw failure("InvalidArgument", "The encryption key must have 32 bytes.");
  if (hexOf(await crypto.subtle.digest("MD5", bytes)) !== hexOf(bytesOf(md5))) throw failure("InvalidArgument", "The MD5 of the encryption key does not match it.");
  return bytes;
}
const ssecHeaders = (md5) => (md5 === undefined ? {} : { [`${SSEC}algorithm`]: "AES256", [`${SSEC}key-MD5`]: btoa(md5.replace(/../g, (pair) => String.fromCharCode(parseInt(pair, 16)))) });
/** A body is asked for without its key: S3 says that otherwise than of a wrong one. */
const orInvalidRequest = (ssecKey) => (error) => {
  throw error?.code === 10003 && ssecKey === undefined ? failure("InvalidRequest") : error;
};

/** False: no header field can be called so, or say that. */
function trySet(headers, name, value) {
  try {
    headers.set(name, value);
    return true;
  } catch {
    return false;
  }
}

function describe(object) {
  const headers = new Headers({ etag: object.httpEtag, "last-modified": object.uploaded.toUTCString(), "accept-ranges": "bytes" });
  try {
    object.writeHttpMetadata(headers);
  } catch {
    // A worker may keep what no header field can say; S3 has no other place for it.
  }
  if (!headers.has("content-type")) headers.set("content-type", "application/octet-stream");
  let missing = 0;
  for (const [name, value] of Object.entries(object.customMetadata ?? {})) if (!trySet(headers, `x-amz-meta-${name}`, value)) missing++;
  if (missing > 0) headers.set("x-amz-missing-meta", String(missing));
  if (object.storageClass === "InfrequentAccess") headers.set("x-amz-storage-class", "STANDARD_IA");
  for (const [name, value] of Object.entries(ssecHeaders(object.ssecKeyMd5))) headers.set(name, value);
  return headers;
}

const CONDITIONS = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];
const hasCondition = (headers) => CONDITIONS.some((name) => headers.has(name));

// --- objects ---------------------------------------------------------------------------------

/** What a HEAD says that asks for nothing but the object. */
async function headObject(bucket, key, ssecKey) {
  const object = await bucket.head(key, { ssecKey });
  if (object === null) throw failure("NoSuchKey");
  if (object.ssecKeyMd5 !== undefined && ssecKey === undefined) throw failure("InvalidRequest");
  const out = describe(object);
  out.set("content-length", String(object.size));
  return new Response(null, { headers: out });
}

async function getObject({ bucket, key, headers, method, query }) {
  const ssecKey = await ssecKeyOf(headers);
  const plain = !hasCondition(headers) && !headers.has("range");
  if (method === "HEAD" && plain) return headObject(bucket, key, ssecKey);
  const options = { ssecKey };
  if (hasCondition(headers)) options.onlyIf = headers;
  if (headers.has("range")) options.range = headers;
  const object = await bucket.get(key, options).catch(orInvalidRequest(ssecKey));
  if (object === null) throw failure("NoSuchKey");
  if (object.body === undefined) {
    const unchanged = headers.has("if-none-match") || headers.has("if-modified-since");
    if (unchanged && !headers.has("if-match")) return new Response(null, { status: 304, headers: describe(object) });
    throw failure("PreconditionFailed");
  }
  const out = describe(object);
  for (const name of ["content-type", "content-language", "expires", "cache-control", "content-disposition", "content-encoding"]) {
    const value = query.get(`response-${name}`);
    if (value !== null && !trySet(out, name, value)) throw failure("InvalidArgument", `response-${name} cannot be sent as a header.`);
  }
  const { offset, length } = object.range;
  const part = headers.has("range") && length !== object.size;
  if (part) out.set("content-range", `bytes ${offset}-${offset + length - 1}/${object.size}`);
  if (method === "HEAD") {
    await object.body.cancel();
    out.set("content-length", String(length));
  }
  return new Response(method === "HEAD" ? null : object.body, { status: part ? 206 : 200, headers: out });
}

async function putObject(call) {
  const { bucket, key, headers, body, sha256 } = call;
  if (headers.has("x-amz-copy-source")) return copyObject(call);
  const options = { ...putOptions(headers), ssecKey: await ssecKeyOf(headers) };
  if (headers.has("if-match") || headers.has("if-none-match")) options.onlyIf = headers;
  if (sha256 !== undefined) options.sha256 = sha256;
  const object = await bucket.put(key, body ?? "", options);
  if (object === null) throw failure("PreconditionFailed");
  return new Response(null, { headers: { etag: object.httpEtag, ...ssecHeaders(object.ssecKeyMd5) } });
}

/** The conditions on the source of a copy, as onlyIf takes them: an entity tag goes before a time (RFC 9110, 13.2.2). */
function sourceConditions(headers) {
  const conditions = new Headers();
  for (const name of CONDITIONS) {
    const value = headers.get(`x-amz-copy-source-${name}`);
    if (value !== null) conditions.set(name, value);
  }
  if (conditions.has("if-match")) conditions.delete("if-unmodified-since");
  if (conditions.has("if-none-match")) conditions.delete("if-modified-since");
  return hasCondition(conditions) ? conditions : undefined;
}

/** "bytes=0-9": {offset, length}; undefined: the whole. */
function sourceRange(headers) {
  const text = headers.get("x-amz-copy-source-range");
  if (text === null) return undefined;
  const [, first, last] = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  if (first === undefined || Number(last) < Number(first)) throw failure("InvalidArgument", "The x-amz-copy-source-range value must be of the form bytes=first-last.");
  return { offset: Number(first), length: Number(last) - Number(first) + 1 };
}

/** The object that a copy is made of, with the part of its body that is asked for. */
async function sourceOf({ env, headers }) {
  const source = headers.get("x-amz-copy-source");
  const query = source.indexOf("?");
  if (query >= 0 && !["?versionId=null", "?"].includes(source.slice(query))) throw failure("NotImplemented", "There are no versions of objects.");
  const [, name, first, rest] = /^\/?([^/]+)\/([^])([^]*)/.exec(decode(query < 0 ? source : source.slice(0, query))) ?? [];
  const ssecKey = await ssecKeyOf(headers, "x-amz-copy-source-server-side-encryption-customer-");
  const range = sourceRange(headers);
  const object = await bucketOf(env, name ?? "").bucket.get(first + rest, { ssecKey, range, onlyIf: sourceConditions(headers) }).catch(orInvalidRequest(ssecKey));
  if (object === null) throw failure("NoSuchKey");
  if (object.body === undefined) throw failure("PreconditionFailed");
  if (range !== undefined && range.offset + range.length > object.size) {
    await object.body.cancel();
    throw failure("InvalidArgument", `Range specified is not valid for source object of size: ${object.size}`);
  }
  return object;
}

const copyResult = (name, etag, time) => xml(`<${name}><ETag>${escape(etag)}</ETag><LastModified>${time.toISOString()}</LastModified></${name}>`);

async function copyObject(call) {
  const { bucket, key, headers } = call;
  const ssecKey = await ssecKeyOf(headers);
  const object = await sourceOf(call);
  const replaces = headers.get("x-amz-metadata-directive") === "REPLACE";
  const options = replaces ? putOptions(headers) : { httpMetadata: object.httpMetadata, customMetadata: object.customMetadata, storageClass: storageClassOf(headers) ?? object.storageClass };
  if (headers.has("if-match") || headers.has("if-none-match")) options.onlyIf = headers;
  const made = await bucket.put(key, object.body, { ...options, ssecKey });
  if (made === null) throw failure("PreconditionFailed");
  return copyResult("CopyObjectResult", made.httpEtag, made.uploaded);
}

async function deleteObjects({ bucket, body, sha256 }) {
  const text = await readXml(body, sha256);
  const keys = elements(text, "Object").map((each) => element(each, "Key"));
  if (keys.length === 0 || keys.length > 1000 || keys.includes(undefined)) throw failure("MalformedXML");
  await bucket.delete(keys);
  const quiet = element(text, "Quiet") === "true";
  return xml(`<DeleteResult ${XMLNS}>${quiet ? "" : keys.map((key) => `<Deleted><Key>${escape(key)}</Key></Deleted>`).join("")}</DeleteResult>`);
}

async function listObjects({ bucket, bucketName, query }) {
  const version2 = query.get("list-type") === "2";
  const limit = Math.min(1000, Number(query.get("max-keys") ?? 1000));
  if (!Number.isInteger(limit) || limit < 0) throw failure("InvalidArgument");
  const encode = query.get("encoding-type") === "url" ? (text) => escape(encodeURIComponent(text).replace(/%2F/g, "/")) : escape;
  const prefix = query.get("prefix") ?? "";
  const delimiter = query.get("delimiter") ?? "";
  const after = version2 ? query.get("start-after") : query.get("marker");
  const token = version2 ? query.get("continuation-token") : null;
  const options = { prefix, delimiter, limit: Math.max(1, limit) };
  if (token !== null) options.cursor = token;
  else if (after) options.startAfter = after;
  const page = limit === 0 ? { objects: [], delimitedPrefixes: [], truncated: false } : await bucket.list(options);
  const contents = page.objects.map((object) => `<Contents><Key>${encode(object.key)}</Key><LastModified>${object.uploaded.toISOString()}</LastModified><ETag>${escape(object.httpEtag)}</ETag><Size>${object.size}</Size><StorageClass>${object.storageClass === "Standard" ? "STANDARD" : "STANDARD_IA"}</StorageClass></Contents>`).join("");
  const prefixes = page.delimitedPrefixes.map((each) => `<CommonPrefixes><Prefix>${encode(each)}</Prefix></CommonPrefixes>`).join("");
  const last = [page.objects.at(-1)?.key, page.delimitedPrefixes.at(-1)].filter((each) => each !== undefined).sort().at(-1);
  const paging = version2
    ? `<KeyCount>${page.objects.length + page.delimitedPrefixes.length}</KeyCount>${token === null ? "" : `<ContinuationToken>${escape(token)}</ContinuationToken>`}${page.truncated ? `<NextContinuationToken>${page.cursor}</NextContinuationToken>` : ""}`
    : `<Marker>${encode(after ?? "")}</Marker>${page.truncated ? `<NextMarker>${encode(last)}</NextMarker>` : ""}`;
  return xml(`<ListBucketResult ${XMLNS}><Name>${escape(bucketName)}</Name><Prefix>${encode(prefix)}</Prefix>${delimiter === "" ? "" : `<Delimiter>${encode(delimiter)}</Delimiter>`}<MaxKeys>${limit}</MaxKeys>${query.get("encoding-type") === "url" ? "<EncodingType>url</EncodingType>" : ""}<IsTruncated>${page.truncated}</IsTruncated>${paging}${contents}${prefixes}</ListBucketResult>`);
}

// --- multipart uploads -----------------------------------------------------------------------

async function createUpload({ bucket, bucketName, key, headers }) {
  const upload = await bucket.createMultipartUpload(key, { ...putOptions(headers), ssecKey: await ssecKeyOf(headers) });
  return xml(`<InitiateMultipartUploadResult ${XMLNS}><Bucket>${escape(bucketName)}</Bucket><Key>${escape(key)}</Key><UploadId>${upload.uploadId}</UploadId></InitiateMultipartUploadResult>`);
}

async function uploadPart(call) {
  const { bucket, key, query, headers, body, sha256 } = call;
  const number = Number(query.get("partNumber"));
  if (!Number.isInteger(number) || number < 1 || number > 10_000) throw failure("InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive.");
  const ssecKey = await ssecKeyOf(headers);
  const upload = bucket.resumeMultipartUpload(key, query.get("uploadId"));
  if (headers.has("x-amz-copy-source")) {
    const object = await sourceOf(call);
    const copied = await upload.uploadPart(number, object.body, { ssecKey }).catch(orInvalidRequest(ssecKey));
    return copyResult("CopyPartResult", `"${copied.etag}"`, new Date());
  }
  const part = await upload.uploadPart(number, asSigned(body, sha256) ?? "", { ssecKey }).catch(orInvalidRequest(ssecKey));
  return new Response(null, { headers: { etag: `"${part.etag}"` } });
}

/** The size that the object shall have, if the client says so. */
async function checkSize({ admin, key, query, headers }, parts) {
  const wanted = headers.get("x-amz-mp-object-size");
  if (wanted === null) return;
  const there = new Map(((await admin.parts(key, query.get("uploadId"))) ?? []).map((part) => [part.number, part.size]));
  const size = parts.reduce((sum, { partNumber }) => sum + (there.get(partNumber) ?? 0), 0);
  if (wanted !== String(size)) throw failure("InvalidRequest", `The provided 'x-amz-mp-object-size' header value does not match what was computed: ${size}`);
}

async function completeUpload(call) {
  const { bucket, bucketName, key, query, headers, body, sha256, url } = call;
  if (headers.has("if-match") || headers.has("if-none-match")) throw failure("NotImplemented", "The completion of an upload takes no condition.");
  const text = await readXml(body, sha256);
  const parts = elements(text, "Part").map((each) => ({ partNumber: Number(element(each, "PartNumber")), etag: element(each, "ETag") ?? "" }));
  if (parts.length === 0) throw failure("MalformedXML");
  await checkSize(call, parts);
  const object = await bucket.resumeMultipartUpload(key, query.get("uploadId")).complete(parts);
  return xml(`<CompleteMultipartUploadResult ${XMLNS}><Location>${escape(url.origin + url.pathname)}</Location><Bucket>${escape(bucketName)}</Bucket><Key>${escape(key)}</Key><ETag>${escape(object.httpEtag)}</ETag></CompleteMultipartUploadResult>`);
}

async function listUploads({ admin, bucketName }) {
  const uploads = await admin.uploads();
  return xml(`<ListMultipartUploadsResult ${XMLNS}><Bucket>${escape(bucketName)}</Bucket><IsTruncated>false</IsTruncated>${uploads.map((each) => `<Upload><Key>${escape(each.key)}</Key><UploadId>${each.id}</UploadId><Initiated>${new Date(each.started).toISOString()}</Initiated></Upload>`).join("")}</ListMultipartUploadsResult>`);
}

async function listParts({ admin, bucketName, key, query }) {
  const id = query.get("uploadId");
  const parts = await admin.parts(key, id);
  if (parts === null) throw failure("NoSuchUpload");
  return xml(`<ListPartsResult ${XMLNS}><Bucket>${escape(bucketName)}</Bucket><Key>${escape(key)}</Key><UploadId>${escape(id)}</UploadId><IsTruncated>false</IsTruncated>${parts.map((each) => `<Part><PartNumber>${each.number}</PartNumber><ETag>&quot;${each.etag}&quot;</ETag><Size>${each.size}</Size><LastModified>${new Date(each.uploaded).toISOString()}</LastModified></Part>`).join("")}</ListPartsResult>`);
}

// --- requests --------------------------------------------------------------------------------

function listBuckets(env) {
  const names = Object.keys(env).filter((name) => !name.startsWith("$")).sort();
  return xml(`<ListAllMyBucketsResult ${XMLNS}><Owner><ID>${OWNER}</ID></Owner><Buckets>${names.map((name) => `<Bucket><Name>${escape(name)}</Name><CreationDate>1970-01-01T00:00:00.000Z</CreationDate></Bucket>`).join("")}</Buckets></ListAllMyBucketsResult>`);
}

// What a query can name besides an object or a list.
const BUCKET_PARTS = ["abac", "accelerate", "acl", "analytics", "cors", "encryption", "intelligent-tiering", "inventory", "lifecycle", "logging", "metadataConfiguration", "metadataTable", "metrics", "notification", "object-lock",
  "ownershipControls", "policy", "policyStatus", "publicAccessBlock", "replication", "requestPayment", "session", "tagging", "versioning", "versions", "website"];
const OBJECT_PARTS = ["acl", "append", "attributes", "encryption", "legal-hold", "renameObject", "restore", "retention", "select", "tagging", "torrent"];

function onBucket(call) {
  const { method, query } = call;
  if (method === "HEAD") return new Response(null, { headers: { "x-amz-bucket-region": "auto" } });
  if (method === "PUT") throw failure("BucketAlreadyOwnedByYou");
  if (method === "POST" && query.has("delete")) return deleteObjects(call);
  if (method !== "GET") throw failure("NotImplemented");
  if (query.has("location")) return xml(`<LocationConstraint ${XMLNS}>auto</LocationConstraint>`);
  if (query.has("uploads")) return listUploads(call);
  for (const name of BUCKET_PARTS) if (query.has(name)) throw failure("NotImplemented");
  return listObjects(call);
}

async function onObject(call) {
  const { method, query, bucket, key, headers } = call;
  const upload = query.get("uploadId");
  for (const name of OBJECT_PARTS) if (query.has(name)) throw failure("NotImplemented");
  if (![null, "null"].includes(query.get("versionId"))) throw failure("NotImplemented", "There are no versions of objects.");
  if (method === "GET" && upload !== null) return listParts(call);
  if (upload === null && query.has("partNumber")) throw failure("NotImplemented", "Parts of an object are not kept apart.");
  if (method === "GET" || method === "HEAD") return getObject(call);
  if (method === "PUT") return upload === null ? putObject(call) : uploadPart(call);
  if (method === "POST" && query.has("uploads")) return createUpload(call);
  if (method === "POST" && upload !== null) return completeUpload(call);
  if (method !== "DELETE") throw failure("NotImplemented");
  if (hasCondition(headers)) throw failure("NotImplemented", "A deletion takes no condition.");
  if (upload === null) await bucket.delete(key);
  else await bucket.resumeMultipartUpload(key, upload).abort();
  return new Response(null, { status: 204 });
}

function bucketOf(env, name) {
  if (!Object.hasOwn(env, name) || name.startsWith("$")) throw failure("NoSuchBucket");
  return env[name];
}

/** The bucket by its host (bucket.s3.example) or the first name of the path. */
function address(url, env) {
  let path = decode(url.pathname).slice(1);
  const suffix = `.${env.$host}`;
  if (url.hostname.endsWith(suffix)) path = `${url.hostname.slice(0, -suffix.length)}/${path}`;
  const slash = path.indexOf("/");
  return slash < 0 ? [path, ""] : [path.slice(0, slash), path.slice(slash + 1)];
}

async function handle(request, env) {
  const url = new URL(request.url);
  const { body: sent, sha256, trailers } = await authenticate(request, url, env.$key, env.$secret);
  const { method } = request, query = url.searchParams;
  const headers = fieldsOf({ method, headers: request.headers, query });
  const body = method === "PUT" || method === "POST" ? verified(sent, wantedOf(headers, trailers)) : sent;
  const [bucketName, key] = address(url, env);
  if (bucketName === "") return listBuckets(env);
  const admin = bucketOf(env, bucketName);
  const call = { env, url, method, query, headers, body, sha256, admin, bucket: admin.bucket, bucketName, key };
  return key === "" ? onBucket(call) : onObject(call);
}

export const handler = {
  async fetch(request, env) {
    try {
      return await handle(request, env);
    } catch (error) {
      const known = failureOf(error);
      if (known.status === 500) console.error(error);
      if (request.method === "HEAD") return new Response(null, { status: known.status });
      return xml(`<Error><Code>${known.code}</Code><Message>${escape(known.message)}</Message></Error>`, known.status);
    }
  },
};
