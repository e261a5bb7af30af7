// The URL interface: https://url.spec.whatwg.org/#url-class
//
// A URL object is its href and six offsets into it; every attribute is a slice. Most URLs that a
// server meets need no encoding and no normalization: #scan() recognises those in one pass and the
// href is the input itself. All others go through the parser of the standard (parser.js), and so
// does every setter, on a record made from the offsets.
//
//     https://user:pass@example.com:8080/path?query#hash
//           |     |     |          |    |    |     |
//           |     |     |          |    |    |     #hash (or the length)
//           |     |     |          |    |    #search: where "?" is (or #hash)
//           |     |     |          |    #path
//           |     |     |          #hostEnd
//           |     |     #host (equal to #scheme where there is no host)
//           |     #user: end of the username
//           #scheme: after the colon
import { finishInterface } from "../../internal/interface.js";
import { isCanonicalIPv4 } from "./host.js";
import {
  FRAGMENT,
  HOST,
  HOSTNAME,
  PATH_START,
  PORT,
  parseURL,
  QUERY,
  SCHEME_START,
  URLRecord,
  isSpecialScheme,
} from "./parser.js";
import { percentEncode, plain, PLAIN_FRAGMENT, PLAIN_HOST, PLAIN_PATH, PLAIN_QUERY, USERINFO_SET } from "./percent.js";
import { attachParams, replaceParams, setQueryUpdater } from "./search-params.js";

/** The record of `text`, or null: what the constructor, parse() and canParse() have in common. */
function parseText(text, base) {
  let baseRecord = null;
  if (base !== undefined) {
    baseRecord = parseURL(`${base}`.toWellFormed());
    if (baseRecord === null) return null;
  }
  return parseURL(text.toWellFormed(), baseRecord);
}

export class URL {
  #href = "";
  #scheme = 0;
  #user = 0;
  #host = 0;
  #hostEnd = 0;
  #path = 0;
  #search = 0;
  #hash = 0;
  #opaque = false;
  #params = null;

  constructor(url, base = undefined) {
    if (arguments.length === 0) {
      throw new TypeError("Failed to construct 'URL': constructor parameter 1 is not of type 'USVString'.");
    }
    const text = typeof url === "string" ? url : `${url}`;
    if (base === undefined) {
      if (this.#scan(text)) return;
    } else {
      base = `${base}`;
      // A path from the root, below a base in normal form, is most of what is resolved.
      if (text.charCodeAt(0) === 47 && text.charCodeAt(1) !== 47 && this.#scan(base)) {
        if (this.#scan(this.#href.slice(0, this.#path) + text)) return;
      }
    }
    const record = parseText(text, base);
    if (record === null) throw new TypeError("Invalid URL string.");
    this.#setRecord(record);
  }

  static parse(url, base = undefined) {
    const text = `${url}`; // what this throws is the caller's own
    const from = base === undefined ? base : `${base}`;
    try {
      return new URL(text, from);
    } catch (error) {
      if (error instanceof TypeError) return null;
      throw error;
    }
  }

  static canParse(url, base = undefined) {
    if (arguments.length === 0) {
      throw new TypeError("Failed to execute 'canParse' on 'URL': parameter 1 is not of type 'USVString'.");
    }
    const text = `${url}`;
    if (base === undefined && URL.#scratch.#scan(text)) return true;
    return parseText(text, base) !== null;
  }

  /**
   * Takes `text` as it is if it is an http(s) URL in normal form: a lower-case ASCII host or a
   * dotted quad, perhaps a port that is not the default, a path without dot segments, and no
   * character anywhere that would be encoded. False for everything else, good or bad.
   */
  #scan(text) {
    const length = text.length;
    let scheme = 5;
    if (
      text.charCodeAt(0) !== 104 ||
      text.charCodeAt(1) !== 116 ||
      text.charCodeAt(2) !== 116 ||
      text.charCodeAt(3) !== 112
    ) {
      return false;
    }
    if (text.charCodeAt(4) === 115) scheme = 6;
    if (
      text.charCodeAt(scheme - 1) !== 58 ||
      text.charCodeAt(scheme) !== 47 ||
      text.charCodeAt(scheme + 1) !== 47
    ) {
      return false;
    }
    const host = scheme + 2;
    let i = host;
    let label = host; // where the current label starts
    let unit = -1;
    for (; i < length; i++) {
      unit = text.charCodeAt(i);
      if (unit > 127 || (plain[unit] & PLAIN_HOST) === 0) break;
      if (unit === 46) {
        if (i === label) return false;
        label = i + 1;
      }
    }
    const hostEnd = i;
    if (hostEnd === label) return false; // no host, or a dot at its end
    const first = text.charCodeAt(label);
    if (first >= 48 && first <= 57 && !isCanonicalIPv4(text.slice(host, hostEnd))) return false;
    if (i < length && unit === 58) {
      let port = 0;
      const start = ++i;
      for (; i < length; i++) {
        unit = text.charCodeAt(i);
        if (unit < 48 || unit > 57) break;
        port = port * 10 + (unit - 48);
        if (port > 65535 || port === 0) return false;
      }
      if (i === start || port === (scheme === 5 ? 80 : 443)) return false;
    }
    const path = i;
    if (i === length) {
      this.#href = text + "/";
      this.#scheme = this.#user = scheme;
      this.#host = host;
      this.#hostEnd = hostEnd;
      this.#path = path;
      this.#search = this.#hash = length + 1;
      return true;
    }
    if (unit !== 47) return false;
    let previous = 0;
    for (; i < length; i++) {
      unit = text.charCodeAt(i);
      if (unit > 127 || (plain[unit] & PLAIN_PATH) === 0) break;
      if (previous === 47) {
        if (unit === 37) return false; // %2e is a dot segment too
        if (unit === 46) {
          const next = text.charCodeAt(i + 1);
          if (!(next >= 48)) return false; // end, dot, slash, percent
          if (next === 63) return false;
        }
      }
      previous = unit;
    }
    const search = i;
    let hash = length;
    if (i < length) {
      if (unit === 63) {
        for (i++; i < length; i++) {
          unit = text.charCodeAt(i);
          if (unit > 127 || (plain[unit] & PLAIN_QUERY) === 0) break;
        }
      }
      if (i < length) {
        if (unit !== 35) return false;
        hash = i;
        for (i++; i < length; i++) {
          unit = text.charCodeAt(i);
          if (unit > 127 || (plain[unit] & PLAIN_FRAGMENT) === 0) return false;
        }
      }
    }
    this.#href = text;
    this.#scheme = this.#user = scheme;
    this.#host = host;
    this.#hostEnd = hostEnd;
    this.#path = path;
    this.#search = search;
    this.#hash = hash;
    return true;
  }

  /** https://url.spec.whatwg.org/#concept-url-serializer, noting where the parts are. */
  #setRecord(record) {
    let href = record.scheme;
    this.#scheme = this.#user = this.#host = this.#hostEnd = href.length;
    if (record.host !== null) {
      href += "//" + record.username;
      this.#user = href.length;
      if (record.password !== "") href += ":" + record.password;
      if (record.hasCredentials) href += "@";
      this.#host = href.length;
      href += record.host;
      this.#hostEnd = href.length;
      if (record.port !== null) href += ":" + record.port;
    } else if (!record.hasOpaquePath && record.path.length > 1 && record.path[0] === "") {
      href += "/.";
    }
    this.#path = href.length;
    href += record.pathname;
    this.#search = href.length;
    if (record.query !== null) href += "?" + record.query;
    this.#hash = href.length;
    if (record.fragment !== null) href += "#" + record.fragment;
    this.#href = href;
    this.#opaque = record.hasOpaquePath;
  }

  /** The record that #setRecord() would make this object from. */
  #toRecord() {
    const record = new URLRecord();
    const href = this.#href;
    record.scheme = this.protocol;
    record.username = this.username;
    record.password = this.password;
    if (this.#host > this.#scheme) {
      record.host = this.hostname;
      const port = this.port;
      record.port = port === "" ? null : +port;
    }
    const { pathname } = this;
    record.path = this.#opaque ? pathname : pathname === "" ? [] : pathname.slice(1).split("/");
    record.query = this.#search < this.#hash ? href.slice(this.#search + 1, this.#hash) : null;
    record.fragment = this.#hash < href.length ? href.slice(this.#hash + 1) : null;
    return record;
  }

  /** A setter: parses `value` into one part of this URL. */
  #override(record, value, state) {
    parseURL(`${value}`.toWellFormed(), null, record, state);
    this.#setRecord(record);
  }

  get href() {
    return this.#href;
  }
  set href(value) {
    const record = parseURL(`${value}`.toWellFormed());
    if (record === null) {
      throw new TypeError("Failed to set the 'href' property on 'URL': the provided value is not of type 'valid URL string'.");
    }
    this.#setRecord(record);
    if (this.#params !== null) replaceParams(this.#params, record.query ?? "");
  }

  get origin() {
    const { protocol } = this;
    if (protocol === "blob:") {
      const inner = parseURL(this.pathname);
      return inner !== null && (inner.scheme === "http:" || inner.scheme === "https:") ? new URL(this.pathname).origin : "null";
    }
    if (protocol === "file:" || !isSpecialScheme(protocol)) return "null";
    return protocol + "//" + this.#href.slice(this.#host, this.#path);
  }

  get protocol() {
    return this.#href.slice(0, this.#scheme);
  }
  set protocol(value) {
    this.#override(this.#toRecord(), `${value}:`, SCHEME_START);
  }

  get username() {
    const start = this.#scheme + 2;
    return this.#user > start ? this.#href.slice(start, this.#user) : "";
  }
  set username(value) {
    const text = `${value}`.toWellFormed();
    const record = this.#toRecord();
    if (record.cannotHaveCredentialsOrPort) return;
    record.username = percentEncode(text, USERINFO_SET);
    this.#setRecord(record);
  }

  get password() {
    return this.#host - this.#user > 1 ? this.#href.slice(this.#user + 1, this.#host - 1) : "";
  }
  set password(value) {
    const text = `${value}`.toWellFormed();
    const record = this.#toRecord();
    if (record.cannotHaveCredentialsOrPort) return;
    record.password = percentEncode(text, USERINFO_SET);
    this.#setRecord(record);
  }

  get host() {
    return this.#host > this.#scheme ? this.#href.slice(this.#host, this.#path) : "";
  }
  set host(value) {
    if (!this.#opaque) this.#override(this.#toRecord(), value, HOST);
  }

  get hostname() {
    return this.#href.slice(this.#host, this.#hostEnd);
  }
  set hostname(value) {
    if (!this.#opaque) this.#override(this.#toRecord(), value, HOSTNAME);
  }

  get port() {
    return this.#host > this.#scheme ? this.#href.slice(this.#hostEnd + 1, this.#path) : "";
  }
  set port(value) {
    const text = `${value}`;
    const record = this.#toRecord();
    if (record.cannotHaveCredentialsOrPort) return;
    if (text === "") record.port = null;
    this.#override(record, text, PORT);
  }

  get pathname() {
    return this.#href.slice(this.#path, this.#search);
  }
  set pathname(value) {
    if (this.#opaque) return;
    const record = this.#toRecord();
    record.path = [];
    this.#override(record, value, PATH_START);
  }

  get search() {
    return this.#hash - this.#search > 1 ? this.#href.slice(this.#search, this.#hash) : "";
  }
  set search(value) {
    const text = `${value}`;
    const record = this.#toRecord();
    record.query = null;
    if (text === "") this.#setRecord(record);
    else this.#override(record, text[0] === "?" ? text.slice(1) : text, QUERY);
    if (this.#params !== null) replaceParams(this.#params, record.query ?? "");
  }

  get searchParams() {
    return (this.#params ??= attachParams(this, this.#href.slice(this.#search + 1, this.#hash)));
  }

  get hash() {
    return this.#href.length - this.#hash > 1 ? this.#href.slice(this.#hash) : "";
  }
  set hash(value) {
    const text = `${value}`;
    const record = this.#toRecord();
    record.fragment = null;
    if (text === "") this.#setRecord(record);
    else this.#override(record, text[0] === "#" ? text.slice(1) : text, FRAGMENT);
  }

  toString() {
    return this.#href;
  }
  toJSON() {
    return this.#href;
  }

  static #scratch = new URL("http://a/"); // for canParse(): only its #scan() is used

  static {
    // What a URLSearchParams object calls when it has changed.
    setQueryUpdater((url, query) => {
      const record = url.#toRecord();
      record.query = query === "" ? null : query;
      url.#setRecord(record);
    });
  }
}

finishInterface(URL);
