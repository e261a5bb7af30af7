// multipart/form-data: written (https://html.spec.whatwg.org/#multipart-form-data) and parsed
// (https://andreubotella.github.io/multipart-form-data/).
//
// Parsing looks for boundaries in the bytes seen as one Latin-1 string, where the engine's own
// string search is fast; the contents are then taken from the bytes at the same places.
import { native } from "../../internal/native.js";
import { blobBytes, fileFromBytes } from "../blob.js";
import { URLSearchParams } from "../url/search-params.js";
import { FormData, formDataEntries, formDataPush } from "../form-data.js";

function randomBoundary() {
  const bytes = new Uint8Array(16);
  native.randomFill(bytes);
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return `----formdata-${text}`;
}

const escapeName = (name) => name.replace(/[\r\n"]/g, (c) => (c === '"' ? "%22" : c === "\n" ? "%0A" : "%0D"));

/** { bytes, boundary } of a FormData. */
export function encodeMultipart(form) {
  const boundary = randomBoundary();
  const pieces = [];
  let size = 0;
  const add = (piece) => {
    pieces.push(piece);
    size += piece.length;
  };
  for (const [name, value] of formDataEntries(form)) {
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${escapeName(name)}"`;
    if (typeof value === "string") {
      add(native.utf8Encode(`${head}\r\n\r\n${value}\r\n`));
    } else {
      const type = value.type || "application/octet-stream";
      add(native.utf8Encode(`${head}; filename="${escapeName(value.name)}"\r\nContent-Type: ${type}\r\n\r\n`));
      add(blobBytes(value));
      add(native.utf8Encode("\r\n"));
    }
  }
  add(native.utf8Encode(`--${boundary}--\r\n`));
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return { bytes, boundary };
}

/** Parameters of a header value such as `form-data; name="a"; filename=b`, names in lower case. */
export function headerParameters(value) {
  const parameters = new Map();
  const pattern = /;\s*([^\s=;]+)\s*=\s*(?:"((?:[^"\\]|\\[^])*)"|([^\s;]*))/g;
  for (let match; (match = pattern.exec(value)) !== null;) {
    const name = match[1].toLowerCase();
    if (!parameters.has(name)) parameters.set(name, match[2] === undefined ? match[3] : match[2].replace(/\\(["\\])/g, "$1"));
  }
  return parameters;
}

const utf8FromLatin1 = (text) => {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return native.utf8Decode(bytes);
};

/** The headers of one part, given as a Latin-1 string: { name, filename, type }. */
function partHead(text) {
  let disposition = null;
  let type = "";
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon < 0) continue;
    const name = line.slice(0, colon).trim().toLowerCase();
    if (name === "content-disposition") disposition = utf8FromLatin1(line.slice(colon + 1).trim());
    else if (name === "content-type") type = utf8FromLatin1(line.slice(colon + 1).trim());
  }
  if (disposition === null) throw new TypeError("No valid Content-Disposition header found in FormData part.");
  const kind = /^[^\s;]*/.exec(disposition)[0];
  if (kind.toLowerCase() !== "form-data") {
    throw new TypeError(`Content-Disposition header for FormData part must have the value "form-data", possibly followed by parameters. Got: "${kind}"`);
  }
  const parameters = headerParameters(disposition);
  if (!parameters.has("name")) throw new TypeError("Content-Disposition header in FormData part is missing a name.");
  return { name: parameters.get("name"), filename: parameters.get("filename"), type };
}

function parseMultipart(bytes, boundary) {
  const form = new FormData();
  const text = native.latin1Decode(bytes);
  const delimiter = `--${boundary}`;
  let at = text.startsWith(delimiter) ? 0 : text.indexOf(`\n${delimiter}`) + 1;
  if (at === 0 && !text.startsWith(delimiter)) throw new TypeError("No initial boundary string (or you have a truncated message).");
  for (;;) {
    at += delimiter.length;
    if (text.startsWith("--", at)) return form;
    if (text.startsWith("\r\n", at)) at += 2;
    else if (text[at] === "\n") at += 1;
    else throw new TypeError("Boundary string was not succeeded by CRLF, LF, or '--'.");
    const blank = /\r?\n\r?\n/g;
    blank.lastIndex = at;
    const gap = blank.exec(text);
    if (gap === null) throw new TypeError("No end of headers in FormData part.");
    const head = partHead(text.slice(at, gap.index));
    const start = gap.index + gap[0].length;
    // The line break before the delimiter may be the one that ended the headers.
    const next = text.indexOf(`\n${delimiter}`, start - 1);
    if (next < 0) throw new TypeError("No subsequent boundary string after multipart message.");
    const end = Math.max(start, text[next - 1] === "\r" ? next - 1 : next);
    const content = bytes.subarray(start, end);
    if (head.filename === undefined) formDataPush(form, head.name, native.utf8Decode(content));
    else formDataPush(form, head.name, fileFromBytes(content.slice(), head.filename, head.type));
    at = next + 1;
  }
}

/** A FormData from a body and its content type (null: none). */
export function parseFormData(bytes, type) {
  const essence = (type ?? "").split(";")[0].trim().toLowerCase();
  if (essence === "multipart/form-data") {
    const boundary = headerParameters(`;${type.slice(type.indexOf(";") + 1)}`).get("boundary");
    if (!boundary || !type.includes(";")) {
      throw new TypeError("No boundary string in Content-Type header. The multipart/form-data MIME type requires a boundary parameter, e.g. 'Content-Type: multipart/form-data; boundary=\"abcd\"'. See RFC 7578, section 4.");
    }
    return parseMultipart(bytes, boundary);
  }
  if (essence === "application/x-www-form-urlencoded") {
    const form = new FormData();
    for (const [name, value] of new URLSearchParams(native.utf8Decode(bytes))) formDataPush(form, name, value);
    return form;
  }
  throw new TypeError("Unrecognized Content-Type header value. FormData can only parse the following MIME types: multipart/form-data, application/x-www-form-urlencoded");
}
