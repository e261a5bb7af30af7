// data: URLs: https://fetch.spec.whatwg.org/#data-url-processor
import { native } from "../../internal/native.js";
import { atob } from "../base64.js";
import { makeResponse } from "./response.js";

/** The bytes of a percent-encoded string. */
function percentDecode(text) {
  const bytes = native.utf8Encode(text);
  let size = 0;
  for (let i = 0; i < bytes.length; i++) {
    let byte = bytes[i];
    if (byte === 0x25 && i + 2 < bytes.length) {
      const pair = String.fromCharCode(bytes[i + 1], bytes[i + 2]);
      if (/^[0-9a-f]{2}$/i.test(pair)) {
        byte = Number.parseInt(pair, 16);
        i += 2;
      }
    }
    bytes[size++] = byte;
  }
  return bytes.subarray(0, size);
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/i;
/** Parameters of a type: `;name=value` and `;name="quoted"`; whatever follows the quotes is dropped. */
const PARAMETER = /;[ \t\r\n]*([^;=]*)(?:=(?:"((?:[^"\\]|\\.)*)(?:"[^;]*|\\?$)|([^;]*)))?/y;

/** A MIME type as it is parsed and written again (https://mimesniff.spec.whatwg.org/#parsing-a-mime-type), or null. */
function normalizedType(text) {
  const end = text.indexOf(";");
  const essence = (end < 0 ? text : text.slice(0, end)).trim().toLowerCase();
  const slash = essence.indexOf("/");
  if (slash < 0 || !TOKEN.test(essence.slice(0, slash)) || !TOKEN.test(essence.slice(slash + 1))) return null;
  const seen = new Set();
  let result = essence;
  PARAMETER.lastIndex = end < 0 ? text.length : end;
  for (let match; PARAMETER.lastIndex < text.length && (match = PARAMETER.exec(text)) !== null; ) {
    const name = match[1].toLowerCase();
    const value = match[2] === undefined ? match[3]?.replace(/[ \t\r\n]+$/, "") : match[2].replace(/\\(.)/gs, "$1");
    if (value === undefined || (value === "" && match[2] === undefined) || !TOKEN.test(name) || seen.has(name)) continue;
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) continue;
    seen.add(name);
    result += `;${name}=${TOKEN.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`}`;
  }
  return result;
}

/** A Response for a data: URL (serialised); throws a TypeError if it is malformed. */
export function dataUrlResponse(href) {
  const hash = href.indexOf("#");
  const text = (hash < 0 ? href : href.slice(0, hash)).slice("data:".length);
  const comma = text.indexOf(",");
  if (comma < 0) throw new TypeError("fetch failed: a data: URL needs a comma");
  let type = text.slice(0, comma).trim();
  let source = percentDecode(text.slice(comma + 1));
  const base64 = /; *base64$/i;
  if (base64.test(type)) {
    type = type.replace(base64, "");
    let binary;
    try {
      binary = atob(native.latin1Decode(source));
    } catch {
      throw new TypeError("fetch failed: the base64 of the data: URL is malformed");
    }
    source = Uint8Array.from(binary, (c) => c.charCodeAt(0));
  }
  if (type.startsWith(";")) type = `text/plain${type}`;
  type = normalizedType(type) ?? "text/plain;charset=US-ASCII";
  return makeResponse({ status: 200, statusText: "OK", names: ["content-type"], values: [type], source: source.slice(), url: href });
}
