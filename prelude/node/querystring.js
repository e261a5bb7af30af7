// node:querystring
import { Buffer } from "./buffer.js";

const PLAIN = /^[\w!'()*.~-]*$/;

export function escape(value) {
  const text = typeof value === "string" ? value : typeof value === "object" ? String(value) : `${value}`;
  if (PLAIN.test(text)) return text;
  try {
    return encodeURIComponent(text);
  } catch {
    const error = new URIError("URI malformed");
    error.code = "ERR_INVALID_URI";
    throw error;
  }
}

export function unescapeBuffer(text) {
  const source = Buffer.from(text, "utf8");
  const out = Buffer.alloc(source.length);
  let size = 0;
  for (let i = 0; i < source.length; i++) {
    const hex = source[i] === 37 ? source.toString("latin1", i + 1, i + 3) : "";
    if (/^[\da-f]{2}$/i.test(hex)) {
      out[size++] = parseInt(hex, 16);
      i += 2;
    } else {
      out[size++] = source[i];
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
    if (!plain.includes("%")) return plain;
    try {
      return decode(plain);
    } catch {
      return unescape(plain);
    }
  };
  let parts = text.split(sep);
  const limit = options?.maxKeys ?? 1000;
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

const querystring = { escape, unescape, unescapeBuffer, stringify, parse, encode: stringify, decode: parse };
export default querystring;
