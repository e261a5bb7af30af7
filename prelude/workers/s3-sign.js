// AWS Signature Version 4, as a server checks it: in the Authorization field, in a presigned URL, and
// in every chunk of a body that is signed as it is sent.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html
const ALGORITHM = "AWS4-HMAC-SHA256";
const SKEW_MS = 15 * 60 * 1000;
const PRESIGNED_SECONDS_MAX = 7 * 86400;
const CHUNK_BYTES_MAX = 16 << 20;
const encoder = new TextEncoder();

export class S3Error extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}
const denied = (message = "Access Denied") => new S3Error(403, "AccessDenied", message);
const mismatch = () => new S3Error(403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check your secret access key and signing method.");

const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
const sha256 = async (data) => hex(await crypto.subtle.digest("SHA-256", typeof data === "string" ? encoder.encode(data) : data));
async function hmac(key, text) {
  const imported = await crypto.subtle.importKey("raw", typeof key === "string" ? encoder.encode(key) : key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return crypto.subtle.sign("HMAC", imported, encoder.encode(text));
}
/** Takes as long whatever differs. */
function equal(a, b) {
  const [x, y] = [encoder.encode(a), encoder.encode(b)];
  return x.length === y.length && crypto.subtle.timingSafeEqual(x, y);
}

const encode = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
export const decode = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new S3Error(400, "InvalidURI", "Couldn't parse the specified URI.");
  }
};

function canonicalQuery(url) {
  const pairs = url.search.slice(1).split("&").filter((each) => each !== "").map((each) => {
    const equals = each.indexOf("=");
    const [name, value] = equals < 0 ? [each, ""] : [each.slice(0, equals), each.slice(equals + 1)];
    return [encode(decode(name.replace(/\+/g, " "))), encode(decode(value.replace(/\+/g, " ")))];
  });
  return pairs.filter(([name]) => name !== "X-Amz-Signature").sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0))
    .map((pair) => pair.join("=")).join("&");
}

/**
 * What was signed, as one text. The Host field and `url` are one value: the server puts the host of an
 * absolute target in the field's place (net/http_parser.c, P7).
 */
async function stringToSign({ request, url, signedHeaders, payload, time, scope }) {
  const headers = signedHeaders.map((name) => `${name}:${(request.headers.get(name) ?? (name === "host" ? url.host : "")).trim().replace(/ +/g, " ")}\n`).join("");
  const path = url.pathname.split("/").map((part) => encode(decode(part))).join("/");
  const canonical = [request.method, path, canonicalQuery(url), headers, signedHeaders.join(";"), payload].join("\n");
  return [ALGORITHM, time, scope, await sha256(canonical)].join("\n");
}

async function signingKey(secret, [date, region, service, end]) {
  let key = `AWS4${secret}`;
  for (const part of [date, region, service, end]) key = await hmac(key, part);
  return key;
}

function parseTime(text) {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text ?? "");
  if (match === null) throw denied("The date of the request is missing or malformed.");
  const [, year, month, day, hour, minute, second] = match.map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

/** The parts of a signature, from the Authorization field or the query. */
function readSignature(request, url) {
  const query = url.searchParams;
  if (query.has("X-Amz-Algorithm")) {
    const seconds = Number(query.get("X-Amz-Expires"));
    const time = query.get("X-Amz-Date");
    if (!Number.isInteger(seconds) || seconds < 1 || seconds > PRESIGNED_SECONDS_MAX) {
      throw new S3Error(400, "AuthorizationQueryParametersError", `X-Amz-Expires must be between 1 and ${PRESIGNED_SECONDS_MAX} seconds`);
    }
    const began = parseTime(time);
    if (Date.now() > began + seconds * 1000) throw denied("Request has expired");
    if (Date.now() < began - SKEW_MS) throw denied("Request is not valid yet");
    return { algorithm: query.get("X-Amz-Algorithm"), credential: query.get("X-Amz-Credential") ?? "", signedHeaders: query.get("X-Amz-SignedHeaders") ?? "",
      signature: query.get("X-Amz-Signature") ?? "", time, payload: query.get("X-Amz-Content-Sha256") ?? "UNSIGNED-PAYLOAD" };
  }
  const match = /^(AWS4-HMAC-SHA256)\s+Credential=([^,\s]+),\s*SignedHeaders=([^,\s]+),\s*Signature=([0-9a-f]+)$/.exec(request.headers.get("authorization") ?? "");
  if (match === null) throw denied();
  const time = request.headers.get("x-amz-date");
  if (Math.abs(Date.now() - parseTime(time)) > SKEW_MS) {
    throw new S3Error(403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.");
  }
  return { algorithm: match[1], credential: match[2], signedHeaders: match[3], signature: match[4], time, payload: request.headers.get("x-amz-content-sha256") };
}

/** S1: what a field of S3's own asks for was asked for by who signed: a URL that is passed on stays what it was made for. */
function requireSigned(headers, signedHeaders) {
  for (const [name] of headers) {
    if (name.startsWith("x-amz-") && !signedHeaders.includes(name)) throw denied(`There were headers present in the request which were not signed: ${name}`);
  }
}

/**
 * Throws unless the request was signed with the secret. Gives its body without the framing of
 * signed chunks, and the SHA-256 that it must have, if the client has named one; and of a framed body
 * the fields behind it, {announced: [name], fields: Map}, which are there when it has come.
 */
export async function authenticate(request, url, keyId, secret) {
  const found = readSignature(request, url);
  const scope = found.credential.split("/");
  const id = scope.shift();
  const signedHeaders = found.signedHeaders.split(";");
  if (found.algorithm !== ALGORITHM || scope.length !== 4 || scope[3] !== "aws4_request" || scope[2] !== "s3" || scope[0] !== found.time.slice(0, 8)) {
    throw new S3Error(400, "AuthorizationHeaderMalformed", "The authorization is malformed.");
  }
  if (!equal(id, keyId)) throw new S3Error(403, "InvalidAccessKeyId", "The access key ID you provided does not exist in our records.");
  if (found.payload === null) throw new S3Error(400, "MissingSecurityHeader", "x-amz-content-sha256 is missing.");
  if (!signedHeaders.includes("host")) throw denied("The host must be signed.");
  requireSigned(request.headers, signedHeaders);
  const key = await signingKey(secret, scope);
  const text = await stringToSign({ request, url, signedHeaders, payload: found.payload, time: found.time, scope: scope.join("/") });
  if (!equal(hex(await hmac(key, text)), found.signature)) throw mismatch();
  const { payload } = found;
  if (payload.startsWith("STREAMING-")) {
    if (!STREAMING.has(payload)) throw new S3Error(501, "NotImplemented", "This way to sign a body is not implemented.");
    if (request.body === null) throw malformed(); // U1: there is a last chunk even if there is no other
    const verify = payload === UNSIGNED_TRAILER ? null : chunkVerifier(key, found, scope.join("/"));
    const trailers = { announced: announcedOf(request.headers), fields: new Map() };
    return { body: request.body.pipeThrough(unchunk(verify, lengthOf(request.headers), trailers)), trailers };
  }
  if (payload === "UNSIGNED-PAYLOAD") return { body: request.body };
  if (!/^[0-9a-f]{64}$/.test(payload)) throw new S3Error(400, "InvalidArgument", "x-amz-content-sha256 must be a SHA-256 or one of the known words.");
  return { body: request.body, sha256: payload };
}

const UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
const STREAMING = new Set(["STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", UNSIGNED_TRAILER]);
const TRAILERS_MAX = 16;

/** The names of fields that shall come behind the body. */
const announcedOf = (headers) => (headers.get("x-amz-trailer") ?? "").split(",").map((name) => name.trim().toLowerCase()).filter((name) => name !== "");

/** What the body has without its framing; undefined: it is not said. */
function lengthOf(headers) {
  const text = headers.get("x-amz-decoded-content-length");
  if (text === null) return undefined;
  const length = Number(text);
  if (text === "" || !Number.isSafeInteger(length) || length < 0) throw new S3Error(400, "InvalidArgument", "x-amz-decoded-content-length must be a number.");
  return length;
}

/** Checks the signature of each chunk, which covers that of the one before, and that of the fields behind the last. */
function chunkVerifier(key, { signature, time }, scope) {
  let before = signature;
  let empty;
  const check = async (kind, parts, given) => {
    const expected = hex(await hmac(key, [`${ALGORITHM}-${kind}`, time, scope, before, ...parts].join("\n")));
    if (given === undefined || !equal(expected, given)) throw mismatch();
    before = expected;
  };
  return {
    chunk: async (data, given) => check("PAYLOAD", [(empty ??= await sha256("")), await sha256(data)], given),
    trailers: async (text, given) => check("TRAILER", [await sha256(text)], given),
  };
}

const malformed = () => new S3Error(400, "IncompleteBody", "The request body is not a well-formed sequence of chunks.");
const malformedTrailer = () => new S3Error(400, "MalformedTrailerError", "The request contained trailing data that was not well-formed or did not conform to our published schema.");

/**
 * "size;chunk-signature=...\r\n" data "\r\n", ..., size 0, and then the fields that were announced.
 *
 * U1  A body that does not come to its last chunk, has another length than was said, or lacks a field that was announced, fails
 *     at its end: whoever takes it changes nothing (r2.js).
 */
function unchunk(verify, length, { announced, fields }) {
  let pending = new Uint8Array(0);
  let left = null; // bytes of data still to come, or null: a line is awaited
  let data = null; // of a chunk to be verified
  let signature;
  let size = 0;
  let ended = false; // the last chunk has come
  let over = false; // and what is behind it
  const append = (chunk) => {
    const joined = new Uint8Array(pending.length + chunk.length);
    joined.set(pending);
    joined.set(chunk, pending.length);
    pending = joined;
  };
  /** A line without its end; null: it has not all come. */
  const line = () => {
    const end = pending.indexOf(10);
    if (end < 0) {
      if (pending.length > 4096) throw malformed();
      return null;
    }
    const text = new TextDecoder().decode(pending.subarray(0, end)).replace(/\r$/, "");
    pending = pending.subarray(end + 1);
    return text;
  };
  const begin = (text) => {
    const match = /^([0-9a-f]+)(?:;chunk-signature=([0-9a-f]{64}))?$/i.exec(text);
    if (match === null) throw malformed();
    left = parseInt(match[1], 16);
    signature = match[2];
    if (verify !== null && left > CHUNK_BYTES_MAX) throw malformed();
    data = verify === null ? null : [];
  };
  const take = async (controller) => {
    const part = pending.subarray(0, left);
    pending = pending.subarray(part.length);
    left -= part.length;
    size += part.length;
    if (length !== undefined && size > length) throw malformed();
    if (data === null) {
      if (part.length > 0) controller.enqueue(part.slice());
    } else if (part.length > 0) {
      data.push(part.slice());
    }
    if (left > 0 || data === null) return;
    const all = new Uint8Array(await new Blob(data).arrayBuffer());
    await verify.chunk(all, signature);
    if (all.length > 0) controller.enqueue(all);
  };
  const takeField = (text) => {
    const colon = text.indexOf(":");
    const name = text.slice(0, colon).trim().toLowerCase();
    if (colon < 1 || over || fields.has(name) || fields.size === TRAILERS_MAX) throw malformedTrailer();
    fields.set(name, text.slice(colon + 1).trim());
  };
  const takeFields = () => {
    for (let text = line(); text !== null; text = line()) {
      if (text !== "") takeField(text);
      else if (fields.size > 0 || announced.length === 0) over = true; // else it ends the last chunk
    }
  };
  const checkFields = async () => {
    const given = fields.get("x-amz-trailer-signature");
    fields.delete("x-amz-trailer-signature");
    if (fields.size !== announced.length || !announced.every((name) => fields.has(name))) throw malformedTrailer();
    if (verify !== null && announced.length > 0) await verify.trailers([...fields].map(([name, value]) => `${name}:${value}\n`).join(""), given);
  };
  return new TransformStream({
    async transform(chunk, controller) {
      append(chunk);
      while (!ended) {
        if (left === null) {
          const text = line();
          if (text === null) return;
          if (text === "") continue; // the end of a chunk's data
          begin(text);
          if (left === 0) {
            await take(controller);
            ended = true;
            break;
          }
        }
        if (pending.length === 0) return;
        await take(controller);
        if (left === 0) left = null;
      }
      takeFields();
    },
    async flush() {
      if (!ended || (length !== undefined && size !== length)) throw malformed();
      if (pending.length > 0) append(encoder.encode("\n")); // the last line may lack its end
      takeFields();
      await checkFields();
    },
  });
}
