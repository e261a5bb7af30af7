// Percent-encoding: https://url.spec.whatwg.org/#percent-encoded-bytes
import { native } from "../../internal/native.js";

// The encode sets as bits of one table over ASCII. Everything above U+007E is in every set.
export const C0_SET = 1;
export const FRAGMENT_SET = 2;
export const QUERY_SET = 4;
export const SPECIAL_QUERY_SET = 8;
export const PATH_SET = 16;
export const USERINFO_SET = 32;

const table = new Uint8Array(128);
{
  const add = (set, characters) => {
    for (const c of characters) table[c.charCodeAt(0)] |= set;
  };
  table.fill(63, 0, 32);
  table[127] = 63;
  const query = ' "#<>';
  const path = query + "?^`{}";
  add(FRAGMENT_SET, ' "<>`');
  add(QUERY_SET, query);
  add(SPECIAL_QUERY_SET, query + "'");
  add(PATH_SET, path);
  add(USERINFO_SET, path + "/:;=@[\\]|");
}

const HEX = "0123456789ABCDEF";
const { fromCharCode } = String;

function escapeByte(byte) {
  return "%" + HEX[byte >> 4] + HEX[byte & 15];
}

/** `text` (well-formed) with every code point of `set` as percent-encoded UTF-8. */
export function percentEncode(text, set) {
  const length = text.length;
  let out = "";
  let done = 0;
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 128 && (table[unit] & set) === 0) continue;
    if (done < i) out += text.slice(done, i);
    if (unit < 0x80) {
      out += escapeByte(unit);
    } else if (unit < 0x800) {
      out += escapeByte(0xc0 | (unit >> 6)) + escapeByte(0x80 | (unit & 63));
    } else if (unit < 0xd800 || unit > 0xdfff) {
      out += escapeByte(0xe0 | (unit >> 12)) + escapeByte(0x80 | ((unit >> 6) & 63)) + escapeByte(0x80 | (unit & 63));
    } else {
      const point = text.codePointAt(i++);
      out +=
        escapeByte(0xf0 | (point >> 18)) +
        escapeByte(0x80 | ((point >> 12) & 63)) +
        escapeByte(0x80 | ((point >> 6) & 63)) +
        escapeByte(0x80 | (point & 63));
    }
    done = i + 1;
  }
  return done === 0 ? text : out + text.slice(done);
}

function hexValue(unit) {
  if (unit >= 48 && unit <= 57) return unit - 48;
  const letter = unit | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

/** Percent-decodes, then decodes as UTF-8 with replacement characters. */
export function percentDecode(text) {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    // A "%" that starts no escape, or bytes that are not UTF-8.
  }
  const bytes = native.utf8Encode(text);
  let size = 0;
  for (let i = 0; i < bytes.length; i++) {
    let byte = bytes[i];
    if (byte === 37 && i + 2 < bytes.length) {
      const high = hexValue(bytes[i + 1]);
      const low = hexValue(bytes[i + 2]);
      if (high >= 0 && low >= 0) {
        byte = (high << 4) | low;
        i += 2;
      }
    }
    bytes[size++] = byte;
  }
  return native.utf8Decode(bytes.subarray(0, size));
}

/** https://url.spec.whatwg.org/#concept-urlencoded-serializer for one name or value. */
export function formEncode(text) {
  if (/^[\w*.-]*$/.test(text)) return text;
  return encodeURIComponent(text).replace(/%20|[!'()~]/g, (c) => (c === "%20" ? "+" : escapeByte(c.charCodeAt(0))));
}

/** The reverse for one name or value. */
export function formDecode(text) {
  return percentDecode(text.includes("+") ? text.replaceAll("+", " ") : text);
}

// For the fast path of the parser: what each part of a URL may hold as it is.
export const PLAIN_HOST = 1;
export const PLAIN_PATH = 2;
export const PLAIN_QUERY = 4;
export const PLAIN_FRAGMENT = 8;
export const plain = new Uint8Array(128);
for (let unit = 33; unit < 127; unit++) {
  const c = fromCharCode(unit);
  let bits = 0;
  if (/[a-z0-9.-]/.test(c)) bits |= PLAIN_HOST;
  if (!(table[unit] & PATH_SET) && c !== "\\") bits |= PLAIN_PATH;
  if (!(table[unit] & SPECIAL_QUERY_SET)) bits |= PLAIN_QUERY;
  if (!(table[unit] & FRAGMENT_SET)) bits |= PLAIN_FRAGMENT;
  plain[unit] = bits;
}
