import { URL } from "../url/url.js";

// The one thing fetch needs of URLs: parse, serialise.

/** What the parser leaves as it is, in a path or a query; no dot segments, no fragment. */
const PLAIN = /^[\w\-.~!$&()*+,;=:@/%?]*$/;
let lastOrigin = "";

/**
 * The serialised form of the URL of an incoming request. Most name the same host as the one
 * before and have nothing to be escaped: they are not parsed.
 */
export function normalizeUrl(text) {
  const slash = text.indexOf("/", 8);
  const origin = slash < 0 ? text : text.slice(0, slash);
  if (slash > 0 && origin === lastOrigin) {
    const rest = text.slice(slash);
    if (PLAIN.test(rest) && !rest.includes("/.") && !rest.includes("%2")) return text;
  }
  const parsed = parseUrl(text);
  if (parsed !== null && parsed.startsWith(`${origin}/`)) lastOrigin = origin;
  return parsed ?? text;
}

/** The serialised absolute URL, or null if `value` is none. */
export function parseUrl(value, base = undefined) {
  try {
    return new URL(value, base).href;
  } catch {
    return null;
  }
}
