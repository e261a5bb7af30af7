// node:querystring
import { Buffer } from "./buffer.js";
import { nodeError } from "./internal/errors.js";

const PLAIN = /^[\w!'()*.~-]*$/;

/** Half a pair takes whatever follows it for its other half, as in Node.js. */
function paired(text) {
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0xd800 || code > 0xdfff) {
      out += text[i];
      continue;
    }
    if (++i >= text.length) throw nodeError(URIError, "ERR_INVALID_URI", "URI malformed");
    out += String.fromCodePoint(0x10000 + (((code & 0x3ff) << 10) | (text.charCodeAt(i) & 0x3ff)));
  }
  return out;
}

export function escape(value) {
  const text = typeof value === "string" ? value : typeof value === "object" ? String(value) : `${value}`;
  if (PLAIN.test(text)) return text;
  return encodeURIComponent(text.isWellFormed() ? text : paired(text));
}

export function unescapeBuffer(text, decodeSpaces = false) {
  const source = Buffer.from(text, "latin1"); // a byte each, whatever the character
  const out = Buffer.alloc(source.length);
  let size = 0;
  for (let i = 0; i < source.length; i++) {
    const hex = source[i] === 37 ? source.toString("latin1", i + 1, i + 3) : "";
    if (/^[\da-f]{2}$/i.test(hex)) {
      out[size++] = parseInt(hex, 16);
      i += 2;
    } else {
      out[size++] = decodeSpaces && source[i] === 43 ? 32 : source[i];
    }
  }
  return out.subarray(0, size);
}

export function unescape(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return unescapeBuffer(text).toString();
  }
}

const primitive = (value) =>
  typeof value === "string" || (typeof value === "number" && Number.isFinite(value)) || typeof value === "bigint" || typeof value === "boolean"
    ? String(value)
    : "";

export function stringify(object, separator, equals, options) {
  const sep = separator || "&";
  const eq = equals || "=";
  const encode = options?.encodeURIComponent ?? querystring.escape;
  if (object === null || typeof object !== "object") return "";
  const parts = [];
  for (const key of Object.keys(object)) {
    const name = encode(primitive(key)) + eq;
    const value = object[key];
    if (Array.isArray(value)) for (const item of value) parts.push(name + encode(primitive(item)));
    else parts.push(name + encode(primitive(value)));
  }
  return parts.join(sep);
}

export function parse(text, separator, equals, options) {
  const result = { __proto__: null };
  if (typeof text !== "string" || text.length === 0) return result;
  const sep = separator ? `${separator}` : "&";
  const eq = equals ? `${equals}` : "=";
  const decode = options?.decodeURIComponent ?? querystring.unescape;
  const safely = (part) => {
    const plain = part.replaceAll("+", " ");
    // A decoder of the script's own is asked always.
    if (decode === unescape && !/%[\da-f]{2}/i.test(plain)) return plain;
    try {
      return decode(plain);
    } catch {
      return unescape(plain);
    }
  };
  let parts = text.split(sep);
  const limit = typeof options?.maxKeys === "number" ? options.maxKeys : 1000;
  if (limit > 0) parts = parts.slice(0, limit);
  for (const part of parts) {
    if (part === "") continue;
    const at = part.indexOf(eq);
    const name = safely(at < 0 ? part : part.slice(0, at));
    const value = at < 0 ? "" : safely(part.slice(at + eq.length));
    if (!(name in result)) result[name] = value;
    else if (Array.isArray(result[name])) result[name].push(value);
    else result[name] = [result[name], value];
  }
  return result;
}

const querystring = { decode: parse, encode: stringify, escape, parse, stringify, unescape, unescapeBuffer };
export default querystring;
