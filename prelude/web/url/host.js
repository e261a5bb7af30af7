// Hosts: https://url.spec.whatwg.org/#host-parsing
// A parsed host is kept as its serialization; `null` from parseHost() means failure.
import { native } from "../../internal/native.js";
import { percentDecode, percentEncode, C0_SET } from "./percent.js";

const FORBIDDEN_HOST = /[\0\t\n\r #/:<>?@[\\\]^|]/;
const FORBIDDEN_DOMAIN = /[\0-\x20#%/:<>?@[\\\]^|\x7f]/;

/** Whether `host` is an IPv4 address in the form in which it is serialized. By hand: the engine interprets the expression for it. */
export function isCanonicalIPv4(host) {
  let parts = 1, digits = 0, value = 0;
  for (let i = 0; i < host.length; i++) {
    const c = host.charCodeAt(i);
    if (c === 46 /* . */) {
      if (digits === 0 || ++parts > 4) return false;
      digits = value = 0;
    } else {
      if (c < 48 || c > 57 || (digits > 0 && value === 0)) return false;
      value = value * 10 + c - 48;
      if (value > 255) return false;
      digits++;
    }
  }
  return parts === 4 && digits > 0;
}

export function parseHost(input, isOpaque) {
  if (input.charCodeAt(0) === 91 /* [ */) {
    if (!input.endsWith("]")) return null;
    const pieces = parseIPv6(input.slice(1, -1));
    return pieces === null ? null : `[${serializeIPv6(pieces)}]`;
  }
  if (isOpaque) return FORBIDDEN_HOST.test(input) ? null : percentEncode(input, C0_SET);
  const domain = domainToASCII(percentDecode(input));
  if (domain === null || domain === "" || FORBIDDEN_DOMAIN.test(domain)) return null;
  return endsInNumber(domain) ? parseIPv4(domain) : domain;
}

/** https://url.spec.whatwg.org/#concept-domain-to-ascii, not strict; null means failure. */
export function domainToASCII(domain) {
  // An ASCII domain is not looked into, even if it claims to be Punycode and is not.
  if (/^[\0-\x7f]*$/.test(domain)) return domain.toLowerCase();
  return native.domainToASCII(domain.replace(NEWER_MAPPED, newerMapping));
}

// Code points that UTS #46 maps or ignores since Unicode 15.1 and 16.0, where older ICU data refuses
// them (or, for U+1E9E, maps them elsewhere).
const NEWER_MAPPED =
  /[\u10a0-\u10c5\u10c7\u10cd\u04c0\u1e9e\u2132\u2183\u115f\u1160\u17b4\u17b5\u180e\u206a-\u206f\u3164\uffa0\u{1d173}-\u{1d17a}\u{2f868}\u{2f874}\u{2f91f}\u{2f95f}\u{2f9bf}]/gu;
const NEWER_MAPPING = {
  __proto__: null,
  "\u04c0": "\u04cf",
  "\u1e9e": "\xdf",
  "\u2132": "\u214e",
  "\u2183": "\u2184",
  "\u{2f868}": "\u36fc",
  "\u{2f874}": "\u5f53",
  "\u{2f91f}": "\u{243ab}",
  "\u{2f95f}": "\u7aee",
  "\u{2f9bf}": "\u45d7",
};
function newerMapping(character) {
  if (character >= "\u10a0" && character <= "\u10cd") return String.fromCharCode(character.charCodeAt(0) + 0x1c60);
  return NEWER_MAPPING[character] ?? "";
}

function endsInNumber(domain) {
  const parts = domain.split(".");
  if (parts.at(-1) === "") {
    if (parts.length === 1) return false;
    parts.pop();
  }
  return /^(?:\d+|0x[\da-f]*)$/.test(parts.at(-1));
}

/** https://url.spec.whatwg.org/#ipv4-number-parser; NaN means failure. */
function parseIPv4Number(text) {
  if (text === "") return NaN;
  let radix = 10;
  if (/^0x/i.test(text)) {
    text = text.slice(2);
    radix = 16;
  } else if (text.length >= 2 && text[0] === "0") {
    text = text.slice(1);
    radix = 8;
  }
  if (text === "") return 0;
  const digits = radix === 10 ? /^\d+$/ : radix === 16 ? /^[\da-f]+$/i : /^[0-7]+$/;
  return digits.test(text) ? parseInt(text, radix) : NaN;
}

function parseIPv4(input) {
  if (isCanonicalIPv4(input)) return input;
  const parts = input.split(".");
  if (parts.at(-1) === "" && parts.length > 1) parts.pop();
  if (parts.length > 4) return null;
  const numbers = parts.map(parseIPv4Number);
  const last = numbers.pop();
  if (Number.isNaN(last) || numbers.some((n) => !(n <= 255))) return null;
  if (last >= 256 ** (4 - numbers.length)) return null;
  let address = last;
  numbers.forEach((n, i) => (address += n * 256 ** (3 - i)));
  return [address / 0x1000000, address / 0x10000, address / 0x100, address].map((n) => Math.floor(n) % 256).join(".");
}

/** https://url.spec.whatwg.org/#concept-ipv6-parser: eight 16-bit pieces, or null. */
function parseIPv6(input) {
  const address = [0, 0, 0, 0, 0, 0, 0, 0];
  let piece = 0;
  let compress = -1;
  let p = 0;
  if (input[0] === ":") {
    if (input[1] !== ":") return null;
    p = 2;
    compress = ++piece;
  }
  while (p < input.length) {
    if (piece === 8) return null;
    if (input[p] === ":") {
      if (compress >= 0) return null;
      p++;
      compress = ++piece;
      continue;
    }
    const digits = /^[\da-f]{0,4}/i.exec(input.slice(p, p + 4))[0];
    const next = input[p + digits.length];
    if (next === ".") {
      if (digits === "" || piece > 6) return null;
      const quad = input.slice(p);
      if (!isCanonicalIPv4(quad)) return null;
      const [a, b, c, d] = quad.split(".");
      address[piece++] = a * 256 + +b;
      address[piece++] = c * 256 + +d;
      break;
    }
    p += digits.length;
    if (next === ":") {
      if (++p === input.length) return null;
    } else if (next !== undefined) {
      return null;
    }
    address[piece++] = parseInt(digits, 16);
  }
  if (compress >= 0) {
    const tail = address.slice(compress, piece);
    address.fill(0, compress);
    for (let i = 0; i < tail.length; i++) address[8 - tail.length + i] = tail[i];
  } else if (piece !== 8) {
    return null;
  }
  return address;
}

function serializeIPv6(address) {
  let start = -1;
  let longest = 1;
  for (let i = 0; i < 8; i++) {
    let n = i;
    while (n < 8 && address[n] === 0) n++;
    if (n - i > longest) {
      start = i;
      longest = n - i;
    }
    if (n > i) i = n - 1;
  }
  const hex = address.map((n) => n.toString(16));
  if (start < 0) return hex.join(":");
  return hex.slice(0, start).join(":") + "::" + hex.slice(start + longest).join(":");
}
