// The URL parser: https://url.spec.whatwg.org/#concept-basic-url-parser
//
// States and their order are the standard's. Where it goes one code point at a time and collects a
// buffer, this goes to the next delimiter and takes a slice; the pointer is `p`.
import { trimBy } from "../../internal/trim.js";
import { parseHost } from "./host.js";
import {
  percentEncode,
  C0_SET,
  FRAGMENT_SET,
  PATH_SET,
  QUERY_SET,
  SPECIAL_QUERY_SET,
  USERINFO_SET,
} from "./percent.js";

export const SCHEME_START = 0;
export const HOST = 1;
export const HOSTNAME = 2;
export const PORT = 3;
export const PATH_START = 4;
export const QUERY = 5;
export const FRAGMENT = 6;
const SCHEME = 7;
const NO_SCHEME = 8;
const SPECIAL_RELATIVE_OR_AUTHORITY = 9;
const PATH_OR_AUTHORITY = 10;
const RELATIVE = 11;
const RELATIVE_SLASH = 12;
const SPECIAL_AUTHORITY_SLASHES = 13;
const SPECIAL_AUTHORITY_IGNORE_SLASHES = 14;
const AUTHORITY = 15;
const FILE = 16;
const FILE_SLASH = 17;
const FILE_HOST = 18;
const PATH = 19;
export const OPAQUE_PATH = 20;
const DONE = 21;

const DEFAULT_PORTS = { __proto__: null, "ftp:": 21, "file:": null, "http:": 80, "https:": 443, "ws:": 80, "wss:": 443 };

const SLASH = 47;
const BACKSLASH = 92;
const QUESTION = 63;
const HASH = 35;
const COLON = 58;

export function isSpecialScheme(scheme) {
  return DEFAULT_PORTS[scheme] !== undefined;
}

/** https://url.spec.whatwg.org/#concept-url; the scheme is kept with its colon. */
export class URLRecord {
  scheme = "";
  username = "";
  password = "";
  host = null; // null, or its serialization
  port = null; // null, or a number
  path = []; // segments, or a string where the path is opaque
  query = null;
  fragment = null;

  get isSpecial() {
    return isSpecialScheme(this.scheme);
  }
  get hasOpaquePath() {
    return typeof this.path === "string";
  }
  get cannotHaveCredentialsOrPort() {
    return this.host === null || this.host === "" || this.scheme === "file:";
  }
  get hasCredentials() {
    return this.username !== "" || this.password !== "";
  }
  get pathname() {
    if (this.hasOpaquePath) return this.path;
    return this.path.length === 0 ? "" : "/" + this.path.join("/");
  }
}

const DRIVE_LETTER = /^[a-z][:|]$/i;
const NORMALIZED_DRIVE_LETTER = /^[a-z]:$/i;
const STARTS_WITH_DRIVE_LETTER = /^[a-z][:|](?:$|[/\\?#])/i;
const SINGLE_DOT = /^(?:\.|%2e)$/i;
const DOUBLE_DOT = /^(?:\.|%2e){2}$/i;

function shortenPath(url) {
  const { path } = url;
  if (url.scheme === "file:" && path.length === 1 && NORMALIZED_DRIVE_LETTER.test(path[0])) return;
  path.pop();
}

/**
 * What a relative reference that starts with `c` takes from its base: the path, and the query
 * unless it has one of its own. Returns the next state.
 */
function inheritPath(url, base, c) {
  url.path = base.path.slice();
  if (c === QUESTION) return QUERY;
  if (c !== HASH && c !== -1) return PATH;
  url.query = base.query;
  return c === HASH ? FRAGMENT : DONE;
}

/** Where the authority, host or path part that starts at `p` ends. */
function findEnd(input, p, special) {
  for (; p < input.length; p++) {
    const c = input.charCodeAt(p);
    if (c === SLASH || c === QUESTION || c === HASH || (special && c === BACKSLASH)) break;
  }
  return p;
}

/**
 * Parses `input` (well-formed). Without `url` and `state`: returns a new record, or null on failure.
 * With them (a state override): changes `url` as far as the input allows.
 */
export function parseURL(input, base = null, url = undefined, override = undefined) {
  if (url === undefined) {
    url = new URLRecord();
    if (input.charCodeAt(0) <= 32 || input.charCodeAt(input.length - 1) <= 32) {
      input = trimBy(input, (code) => code <= 32);
    }
  }
  if (/[\t\n\r]/.test(input)) input = input.replace(/[\t\n\r]+/g, "");
  const overridden = override !== undefined;
  const { length } = input;
  let state = overridden ? override : SCHEME_START;
  let p = 0;

  for (;;) {
    const c = p < length ? input.charCodeAt(p) : -1;
    switch (state) {
      case SCHEME_START:
        if ((c | 32) >= 97 && (c | 32) <= 122) state = SCHEME;
        else if (!overridden) state = NO_SCHEME;
        else return null;
        break;

      case SCHEME: {
        const colon = /^[a-z\d+.-]*/i.exec(input)[0].length;
        if (input.charCodeAt(colon) !== COLON) {
          if (overridden) return null;
          state = NO_SCHEME;
          break;
        }
        const scheme = input.slice(0, colon + 1).toLowerCase();
        if (overridden) {
          if (url.isSpecial !== isSpecialScheme(scheme)) return url;
          if (scheme === "file:" && (url.hasCredentials || url.port !== null)) return url;
          if (url.scheme === "file:" && !url.host) return url;
          url.scheme = scheme;
          if (url.port === DEFAULT_PORTS[scheme]) url.port = null;
          return url;
        }
        url.scheme = scheme;
        p = colon + 1;
        if (scheme === "file:") {
          state = FILE;
        } else if (url.isSpecial) {
          state =
            base !== null && base.scheme === scheme ? SPECIAL_RELATIVE_OR_AUTHORITY : SPECIAL_AUTHORITY_SLASHES;
        } else if (input.charCodeAt(p) === SLASH) {
          state = PATH_OR_AUTHORITY;
          p++;
        } else {
          url.path = "";
          state = OPAQUE_PATH;
        }
        break;
      }

      case NO_SCHEME:
        if (base === null || (base.hasOpaquePath && c !== HASH)) return null;
        if (base.hasOpaquePath) {
          url.scheme = base.scheme;
          url.path = base.path;
          url.query = base.query;
          state = FRAGMENT;
          p++;
        } else {
          state = base.scheme === "file:" ? FILE : RELATIVE;
        }
        break;

      case SPECIAL_RELATIVE_OR_AUTHORITY:
        if (c === SLASH && input.charCodeAt(p + 1) === SLASH) {
          state = SPECIAL_AUTHORITY_IGNORE_SLASHES;
          p += 2;
        } else {
          state = RELATIVE;
        }
        break;

      case PATH_OR_AUTHORITY:
        if (c === SLASH) {
          state = AUTHORITY;
          p++;
        } else {
          state = PATH;
        }
        break;

      case RELATIVE:
        url.scheme = base.scheme;
        if (c === SLASH || (c === BACKSLASH && url.isSpecial)) {
          state = RELATIVE_SLASH;
          p++;
          break;
        }
        url.username = base.username;
        url.password = base.password;
        url.host = base.host;
        url.port = base.port;
        state = inheritPath(url, base, c);
        if (state === DONE) return url;
        if (state === PATH) shortenPath(url);
        else p++;
        break;

      case RELATIVE_SLASH:
        if (url.isSpecial && (c === SLASH || c === BACKSLASH)) {
          state = SPECIAL_AUTHORITY_IGNORE_SLASHES;
          p++;
        } else if (c === SLASH) {
          state = AUTHORITY;
          p++;
        } else {
          url.username = base.username;
          url.password = base.password;
          url.host = base.host;
          url.port = base.port;
          state = PATH;
        }
        break;

      case SPECIAL_AUTHORITY_SLASHES:
        if (c === SLASH && input.charCodeAt(p + 1) === SLASH) p += 2;
        state = SPECIAL_AUTHORITY_IGNORE_SLASHES;
        break;

      case SPECIAL_AUTHORITY_IGNORE_SLASHES:
        if (c === SLASH || c === BACKSLASH) p++;
        else state = AUTHORITY;
        break;

      case AUTHORITY: {
        const end = findEnd(input, p, url.isSpecial);
        const at = input.slice(p, end).lastIndexOf("@");
        if (at >= 0) {
          if (p + at + 1 === end) return null;
          const credentials = input.slice(p, p + at);
          const colon = credentials.indexOf(":");
          url.username = percentEncode(colon < 0 ? credentials : credentials.slice(0, colon), USERINFO_SET);
          url.password = colon < 0 ? "" : percentEncode(credentials.slice(colon + 1), USERINFO_SET);
          p += at + 1;
        }
        state = HOST;
        break;
      }

      case HOST:
      case HOSTNAME: {
        if (overridden && url.scheme === "file:") {
          state = FILE_HOST;
          break;
        }
        const end = findEnd(input, p, url.isSpecial);
        let colon = p;
        for (let inBrackets = false; colon < end; colon++) {
          const unit = input.charCodeAt(colon);
          if (unit === COLON && !inBrackets) break;
          if (unit === 91) inBrackets = true;
          else if (unit === 93) inBrackets = false;
        }
        const text = input.slice(p, colon);
        if (colon < end) {
          if (text === "" || override === HOSTNAME) return null;
        } else if (text === "") {
          if (url.isSpecial) return null;
          if (overridden && (url.hasCredentials || url.port !== null)) return null;
        }
        const host = parseHost(text, !url.isSpecial);
        if (host === null) return null;
        url.host = host;
        if (colon < end) {
          state = PORT;
          p = colon + 1;
        } else {
          if (overridden) return url;
          state = PATH_START;
          p = end;
        }
        break;
      }

      case PORT: {
        let end = p;
        while (end < length && input.charCodeAt(end) >= 48 && input.charCodeAt(end) <= 57) end++;
        if (!overridden && findEnd(input, end, url.isSpecial) !== end) return null;
        if (end > p) {
          const port = +input.slice(p, end);
          if (port > 65535) return null;
          url.port = port === DEFAULT_PORTS[url.scheme] ? null : port;
        }
        if (overridden) return url;
        state = PATH_START;
        p = end;
        break;
      }

      case FILE:
        url.scheme = "file:";
        url.host = "";
        if (c === SLASH || c === BACKSLASH) {
          state = FILE_SLASH;
          p++;
        } else if (base !== null && base.scheme === "file:") {
          url.host = base.host;
          state = inheritPath(url, base, c);
          if (state === DONE) return url;
          if (state !== PATH) p++;
          else if (STARTS_WITH_DRIVE_LETTER.test(input.slice(p))) url.path = [];
          else shortenPath(url);
        } else {
          state = PATH;
        }
        break;

      case FILE_SLASH:
        if (c === SLASH || c === BACKSLASH) {
          state = FILE_HOST;
          p++;
          break;
        }
        if (base !== null && base.scheme === "file:") {
          url.host = base.host;
          if (!STARTS_WITH_DRIVE_LETTER.test(input.slice(p)) && NORMALIZED_DRIVE_LETTER.test(base.path[0] ?? "")) {
            url.path.push(base.path[0]);
          }
        }
        state = PATH;
        break;

      case FILE_HOST: {
        const end = findEnd(input, p, true);
        const text = input.slice(p, end);
        if (!overridden && DRIVE_LETTER.test(text)) {
          state = PATH;
          break;
        }
        const host = text === "" ? "" : parseHost(text, !url.isSpecial);
        if (host === null) return null;
        url.host = host === "localhost" ? "" : host;
        if (overridden) return url;
        state = PATH_START;
        p = end;
        break;
      }

      case PATH_START:
        if (url.isSpecial) {
          if (c === SLASH || c === BACKSLASH) p++;
          state = PATH;
        } else if (!overridden && (c === QUESTION || c === HASH)) {
          state = c === QUESTION ? QUERY : FRAGMENT;
          p++;
        } else if (c !== -1) {
          if (c === SLASH) p++;
          state = PATH;
        } else {
          if (overridden && url.host === null) url.path.push("");
          return url;
        }
        break;

      case PATH: {
        let end = p;
        let delimiter = -1;
        for (; end < length; end++) {
          delimiter = input.charCodeAt(end);
          if (delimiter === SLASH || (delimiter === BACKSLASH && url.isSpecial)) break;
          if (!overridden && (delimiter === QUESTION || delimiter === HASH)) break;
        }
        if (end === length) delimiter = -1;
        const atSlash = delimiter === SLASH || delimiter === BACKSLASH;
        let segment = percentEncode(input.slice(p, end), PATH_SET);
        const first = segment.charCodeAt(0);
        const mayBeDots = (first === 46 || first === 37) && segment.length <= 6;
        if (mayBeDots && DOUBLE_DOT.test(segment)) {
          shortenPath(url);
          if (!atSlash) url.path.push("");
        } else if (mayBeDots && SINGLE_DOT.test(segment)) {
          if (!atSlash) url.path.push("");
        } else {
          if (url.scheme === "file:" && url.path.length === 0 && DRIVE_LETTER.test(segment)) segment = segment[0] + ":";
          url.path.push(segment);
        }
        if (delimiter === -1) return url;
        p = end + 1;
        if (delimiter === QUESTION) state = QUERY;
        else if (delimiter === HASH) state = FRAGMENT;
        break;
      }

      case OPAQUE_PATH: {
        const end = findOpaqueEnd(input, p);
        let path = percentEncode(input.slice(p, end), C0_SET);
        // A space before "?" or "#" would be lost when they are taken away and the URL is parsed again.
        if (end < length && path.endsWith(" ")) path = path.slice(0, -1) + "%20";
        url.path = path;
        if (end === length) return url;
        state = input.charCodeAt(end) === QUESTION ? QUERY : FRAGMENT;
        p = end + 1;
        break;
      }

      case QUERY: {
        let end = overridden ? -1 : input.indexOf("#", p);
        if (end < 0) end = length;
        url.query = percentEncode(input.slice(p, end), url.isSpecial ? SPECIAL_QUERY_SET : QUERY_SET);
        if (end === length) return url;
        state = FRAGMENT;
        p = end + 1;
        break;
      }

      case FRAGMENT:
        url.fragment = percentEncode(input.slice(p), FRAGMENT_SET);
        return url;
    }
  }
}

function findOpaqueEnd(input, p) {
  const at = input.slice(p).search(/[?#]/);
  return at < 0 ? input.length : p + at;
}
