// multipart/form-data: written here (https://html.spec.whatwg.org/#multipart-form-data), parsed in
// C (src/base/multipart.c), which gives the places of names and contents.
import { isFlagOff, native } from "../../internal/native.js";
import { blobBytes, fileFromBytes } from "../blob.js";
import { concat } from "../streams/internal.js";
import { URLSearchParams } from "../url/search-params.js";
import { FormData, formDataEntries, formDataPush, isFormData } from "../form-data.js";

const FILES_ARE_TEXT = isFlagOff("formdata_parser_supports_files");

export { FormData, isFormData };

function randomBoundary() {
  const bytes = new Uint8Array(16);
  native.randomFill(bytes);
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return `----formdata-${text}`;
}

const escapeName = (name) => checkName(name).replace(/[\r\n"]/g, (c) => (c === '"' ? "%22" : c === "\n" ? "%0A" : "%0D"));

/** The platform's parser would take what follows for a part of it. */
function checkName(name) {
  if (name.endsWith("\\")) throw new TypeError("Name or filename can't end with backslash");
  return name;
}

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
  add(native.utf8Encode(`--${boundary}--`));
  return { bytes: concat(pieces, size), boundary };
}

/** Parameters of a header value such as `a/b; boundary="x"`, names in lower case. */
function headerParameters(value) {
  const parameters = new Map();
  const pattern = /;\s*([^\s=;]+)\s*=\s*(?:"((?:[^"\\]|\\[^])*)"|([^\s;]*))/g;
  for (let match; (match = pattern.exec(value)) !== null;) {
    const name = match[1].toLowerCase();
    if (!parameters.has(name)) parameters.set(name, match[2] === undefined ? match[3] : match[2].replace(/\\(["\\])/g, "$1"));
  }
  return parameters;
}

function parseMultipart(bytes, boundary) {
  const form = new FormData();
  const parts = native.multipartParse(bytes, boundary);
  for (let i = 0; i < parts.length; i += 5) {
    const content = bytes.subarray(parts[i + 3], parts[i + 4]);
    const filename = parts[i + 1];
    if (filename === undefined || FILES_ARE_TEXT) formDataPush(form, parts[i], native.utf8Decode(content));
    else formDataPush(form, parts[i], fileFromBytes(content.slice(), filename, parts[i + 2]));
  }
  return form;
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
    const charset = headerParameters(type).get("charset");
    if (charset !== undefined && !/^utf-?8$/i.test(charset)) throw new TypeError(`Non-utf-8 application/x-www-form-urlencoded body: ${charset}`);
    const form = new FormData();
    for (const [name, value] of new URLSearchParams(native.utf8Decode(bytes))) formDataPush(form, name, value);
    return form;
  }
  throw new TypeError("Unrecognized Content-Type header value. FormData can only parse the following MIME types: multipart/form-data, application/x-www-form-urlencoded");
}
