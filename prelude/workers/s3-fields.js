// Header fields of S3's own: each is honoured or refused, none is passed over in silence.
//
// F1  A field that begins with x-amz- is in the table below, with what it may say, or the request is refused
//     (NotImplemented) before anything is read or changed. So a field that S3 adds tomorrow is refused here.
// F2  A field that a presigned URL carries in its query counts as one of the head, as in S3.
// F3  A checksum that is given (Content-MD5, x-amz-checksum-*, in the head or behind the body) is that of the bytes that
//     came, or nothing is changed.
import { S3Error } from "./s3-sign.js";

export const OWNER = "cairn";
const CHECKSUMS = { crc32: ["crc32", 4], crc32c: ["crc32c", 4], crc64nvme: ["crc64nvme", 8], sha1: ["SHA-1", 20], sha256: ["SHA-256", 32] };
const SIGNATURE = new Set(["x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires", "x-amz-signedheaders", "x-amz-signature", "x-amz-content-sha256"]);

const invalid = (message, code = "InvalidArgument") => new S3Error(400, code, message);
const notImplemented = (name) => new S3Error(501, "NotImplemented", `A header you provided implies functionality that is not implemented: ${name}`);

// --- which there are (F1) -----------------------------------------------------------------------

const any = () => {};
/** One of these values; whatever else is asked for is not implemented. */
const only = (...values) => (name, value) => {
  if (!values.includes(value)) throw notImplemented(name);
};
/** One of these values; others are no values of it. */
const oneOf = (code, ...values) => (name, value) => {
  if (!values.includes(value)) throw invalid(`The value of ${name} is not valid.`, code);
};
const ofOwner = (name, value) => {
  if (value !== OWNER) throw new S3Error(403, "AccessDenied", "The bucket is not of the owner that was expected.");
};
const ofCopy = (name, value, { method, headers }) => {
  if (method !== "PUT" || !headers.has("x-amz-copy-source")) throw invalid(`${name} is of a copy.`);
};
const ofPartCopy = (name, value, request) => {
  ofCopy(name, value, request);
  if (!request.query.has("uploadId")) throw invalid(`${name} is of the copy of a part.`);
};
const ofCompletion = (name, value, { method, query }) => {
  if (method !== "POST" || !query.has("uploadId")) throw invalid(`${name} is of the completion of an upload.`);
};
/** At the completion of an upload it would be that of the whole object, which nobody has computed. */
const ofBody = (name, value, { method, query }) => {
  if (method === "POST" && query.has("uploadId")) throw notImplemented(name);
};
const ofStream = (name, value, { headers }) => {
  if (!headers.get("x-amz-content-sha256")?.startsWith("STREAMING-")) throw invalid(`${name} is of a body that is sent in chunks.`, "InvalidRequest");
};
const inSession = () => {
  throw invalid("The provided token is malformed or otherwise invalid.", "InvalidToken"); // there are no sessions
};

const FIELDS = {
  __proto__: null,
  "x-amz-date": any, "x-amz-content-sha256": any, "x-amz-decoded-content-length": ofStream, "x-amz-trailer": ofStream, // s3-sign.js
  "x-amz-user-agent": any, "x-amz-te": any, "x-amz-request-payer": any, // they ask for nothing
  "x-amz-checksum-mode": any, "x-amz-checksum-algorithm": any, "x-amz-checksum-type": any, // likewise: what is checked is said by the fields with sums
  "x-amz-sdk-checksum-algorithm": any, // wantedOf()
  "x-amz-security-token": inSession,
  "x-amz-expected-bucket-owner": ofOwner, "x-amz-source-expected-bucket-owner": ofOwner,
  "x-amz-storage-class": oneOf("InvalidStorageClass", "STANDARD", "STANDARD_IA"),
  "x-amz-acl": only("private"), "x-amz-tagging-directive": only("COPY"),
  "x-amz-metadata-directive": oneOf("InvalidArgument", "COPY", "REPLACE"),
  "x-amz-mp-object-size": ofCompletion,
  "x-amz-copy-source": ofCopy, "x-amz-copy-source-range": ofPartCopy,
};
for (const name of ["match", "none-match", "modified-since", "unmodified-since"]) FIELDS[`x-amz-copy-source-if-${name}`] = ofCopy;
for (const name of ["algorithm", "key", "key-md5"]) {
  FIELDS[`x-amz-server-side-encryption-customer-${name}`] = any;
  FIELDS[`x-amz-copy-source-server-side-encryption-customer-${name}`] = ofCopy;
}
for (const name of Object.keys(CHECKSUMS)) FIELDS[`x-amz-checksum-${name}`] = ofBody;

/** The fields of a request, with those of its query (F2), checked. */
export function fieldsOf({ method, headers: given, query }) {
  const headers = new Headers(given);
  for (const [key, value] of query) {
    const name = key.toLowerCase();
    if (name.startsWith("x-amz-") && !SIGNATURE.has(name) && !headers.has(name)) headers.set(name, value);
  }
  for (const [name, value] of headers) {
    if (!name.startsWith("x-amz-") || name.startsWith("x-amz-meta-")) continue;
    const check = FIELDS[name];
    if (check === undefined) throw notImplemented(name);
    check(name, value, { method, headers, query });
  }
  return headers;
}

// --- checksums (F3) -----------------------------------------------------------------------------

const bytesOf = (base64) => {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return new Uint8Array(0);
  }
};
const textOf = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)));

function sumOf(name, text) {
  const [algorithm, size] = CHECKSUMS[name];
  if (bytesOf(text).length !== size) throw invalid(`Value for x-amz-checksum-${name} header is invalid.`, "InvalidRequest");
  return { algorithm, expected: () => textOf(bytesOf(text)) };
}

/** What a body must be: [{algorithm, expected()}]. A sum behind the body is known when that has come. */
export function wantedOf(headers, trailers) {
  const wanted = [];
  const md5 = headers.get("content-md5");
  if (md5 !== null) {
    if (bytesOf(md5).length !== 16) throw invalid("The Content-MD5 you specified is not valid.", "InvalidDigest");
    wanted.push({ algorithm: "MD5", expected: () => textOf(bytesOf(md5)) });
  }
  for (const name of Object.keys(CHECKSUMS)) {
    const field = `x-amz-checksum-${name}`;
    if (headers.has(field)) wanted.push(sumOf(name, headers.get(field)));
    if (trailers?.announced.includes(field)) wanted.push({ algorithm: CHECKSUMS[name][0], expected: () => sumOf(name, trailers.fields.get(field)).expected() });
  }
  const named = headers.get("x-amz-sdk-checksum-algorithm");
  if (named !== null && wanted.every(({ algorithm }) => algorithm === "MD5")) {
    throw invalid("x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.", "InvalidRequest");
  }
  return wanted;
}

/** The same bytes, which fail at their end unless they are what was wanted. */
export function verified(body, wanted, mismatch = () => invalid("The checksum you specified did not match what was received.", "BadDigest")) {
  if (wanted.length === 0) return body;
  const sums = wanted.map(({ algorithm, expected }) => {
    const digest = new crypto.DigestStream(algorithm);
    return { digest, writer: digest.getWriter(), expected };
  });
  return (body ?? new Response("").body).pipeThrough(new TransformStream({
    async transform(chunk, controller) {
      for (const { writer } of sums) await writer.write(chunk);
      controller.enqueue(chunk);
    },
    async flush() {
      for (const { digest, writer, expected } of sums) {
        await writer.close();
        if (textOf(await digest.digest) !== expected()) throw mismatch();
      }
    },
  }));
}
