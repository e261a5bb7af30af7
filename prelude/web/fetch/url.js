import { URL } from "../url/url.js";

// The one thing fetch needs of URLs: parse, serialise.

/** The serialised absolute URL, or null if `value` is none. */
export function parseUrl(value, base = undefined) {
  try {
    return new URL(value, base).href;
  } catch {
    return null;
  }
}
