// node:url: the standard's classes, and the parser that Node.js had before them.
//
// What the old parser does is nowhere specified: test/differential/ compares it with Node.js, call by call.
import { invalidArgType, missingArgs, nodeError, validateObject, validateString } from "./internal/errors.js";
import { native } from "./internal/internals.js";
import querystring from "./querystring.js";

const { URL, URLSearchParams } = globalThis;
const PARTS = ["protocol", "slashes", "auth", "host", "port", "hostname", "hash", "search", "query", "pathname", "path", "href"];
const ALWAYS_SLASHED = new Set(["http:", "https:", "ftp:", "gopher:", "file:", "ws:", "wss:"]);
const isSlashed = (protocol) => ALWAYS_SLASHED.has(protocol) || ALWAYS_SLASHED.has(`${protocol}:`);
const isScript = (protocol) => protocol === "javascript:" || protocol === "javascript";
const invalidUrl = (input) => Object.assign(nodeError(TypeError, "ERR_INVALID_URL", "Invalid URL"), { input });

export function Url() {
  for (const name of PARTS) this[name] = null;
}

const isOutside = (unit) => unit <= 0x20 || unit === 0xa0 || unit === 0xfeff;
/** Without white space and control characters around it. */
function trimmed(text) {
  let start = 0, end = text.length;
  while (start < end && isOutside(text.charCodeAt(start))) start++;
  while (end > start && isOutside(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}
/** Characters that end a host, whatever comes after them. */
const HOST_END = /[ "#%'/;<>?\\^`{|}]/;
/** What a name has only if the conversion to ASCII has put it there. */
const NEVER_IN_NAME = /[\0\t\n\r #%/:<>?@[\\\]^|]/;
const NEVER_IN_ADDRESS = /[\0\t\n\r #%/<>?@\\^|]/;
const LONGEST_NAME = 255;
const percent = (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;

/** Takes user, host and port off the front of a text into `url`; gives what is left. */
function takeAuthority(url, text, whole) {
  const given = /^[^#/?]*/.exec(text)[0], authority = given.replace(/[\t\n\r]/g, ""), at = authority.lastIndexOf("@");
  if (at >= 0) url.auth = decodeURIComponent(authority.slice(0, at));
  const from = authority.slice(at + 1) + text.slice(given.length), end = from.search(HOST_END);
  let hostname = end < 0 ? from : from.slice(0, end);
  let rest = end < 0 ? "" : from.slice(end);
  const port = /:(\d*)$/.exec(hostname);
  if (port !== null) {
    if (port[1] !== "") url.port = port[1];
    hostname = hostname.slice(0, port.index);
  }
  const isAddress = /^\[.*\]$/.test(hostname);
  const colon = isAddress ? -1 : hostname.indexOf(":"); // what is there was no port: it is of the path
  if (colon >= 0) {
    rest = `/${hostname.slice(colon)}${rest}`;
    hostname = hostname.slice(0, colon);
  }
  hostname = hostname.length > LONGEST_NAME ? "" : hostname.toLowerCase();
  if (isAddress) {
    if (NEVER_IN_ADDRESS.test(hostname)) throw invalidUrl(whole);
  } else if (hostname !== "") {
    // Texts that look like other hosts once they are ASCII are refused.
    hostname = nameToASCII(hostname);
    if (hostname === "" || NEVER_IN_NAME.test(hostname)) throw invalidUrl(whole);
  }
  url.host = hostname + (url.port === null ? "" : `:${url.port}`);
  url.hostname = isAddress ? hostname.slice(1, -1) : hostname;
  return isAddress && !rest.startsWith("/") ? `/${rest}` : rest;
}

const nameToASCII = (name) => (/^[\0-\x7f]*$/.test(name) && !name.includes("xn--") ? name : (native.domainToASCII(name) ?? ""));

/** Fills in what follows the host: path, query and fragment. */
function takeRest(url, rest, parseQuery) {
  const hashAt = rest.indexOf("#"), beforeHash = hashAt < 0 ? rest : rest.slice(0, hashAt), queryAt = beforeHash.indexOf("?");
  if (hashAt >= 0) url.hash = rest.slice(hashAt);
  const pathname = queryAt < 0 ? beforeHash : beforeHash.slice(0, queryAt);
  if (queryAt >= 0) {
    url.search = beforeHash.slice(queryAt);
    url.query = url.search.slice(1);
  }
  if (parseQuery) url.query = queryAt < 0 ? { __proto__: null } : querystring.parse(url.query);
  if (pathname !== "") url.pathname = pathname;
}
const setPath = (url) => {
  url.path = (url.pathname || "") + (url.search || "");
};
const finished = (url) => {
  url.href = url.format();
  return url;
};

Url.prototype.parse = function parse(text, parseQuery, slashesDenoteHost) {
  validateString(text, "url");
  let rest = trimmed(text).replace(/^[^#?]+/, (part) => part.replaceAll("\\", "/"));
  // A path alone stays as it is.
  if (!slashesDenoteHost && !/[#@]/.test(rest)) {
    const plain = /^\/\/?(?!\/)[^?\s]*(\?\S*)?$/.test(rest);
    if (plain) {
      takeRest(this, rest, parseQuery);
      this.path = this.href = rest;
      return this;
    }
  }
  const scheme = /^[a-z0-9.+-]+:/i.exec(rest)?.[0];
  if (scheme !== undefined) {
    this.protocol = scheme.toLowerCase();
    rest = rest.slice(scheme.length);
  }
  const script = isScript(this.protocol);
  const slashes = rest.startsWith("//") && (slashesDenoteHost || scheme !== undefined || /^\/\/[^@/]+@[^@/]+/.test(rest));
  if (slashes && !script) {
    this.slashes = true;
    rest = rest.slice(2);
  }
  // A scheme that is not known to have slashes has a host without them.
  if (!script && (slashes || (scheme !== undefined && !ALWAYS_SLASHED.has(scheme)))) rest = takeAuthority(this, rest, text);
  takeRest(this, script ? rest : rest.replace(/[\t\n\r "'<>\\^`{|}]/g, percent), parseQuery);
  if (isSlashed(this.protocol) && this.hostname && !this.pathname) this.pathname = "/";
  if (this.pathname || this.search) setPath(this);
  return finished(this);
};

const beginWith = (mark, text) => (text && !text.startsWith(mark) ? mark + text : text);

Url.prototype.format = function format() {
  const auth = this.auth ? `${encodeURIComponent(this.auth.toWellFormed()).replace(/%3A/g, ":")}@` : "";
  let protocol = this.protocol || "", pathname = this.pathname || "", host = "";
  if (protocol && !protocol.endsWith(":")) protocol += ":";
  if (this.host) host = auth + this.host;
  else if (this.hostname) host = auth + (this.hostname.includes(":") && !/^\[.*\]$/.test(this.hostname) ? `[${this.hostname}]` : this.hostname) + (this.port ? `:${this.port}` : "");
  const query = this.query !== null && typeof this.query === "object" ? querystring.stringify(this.query) : "";
  const search = this.search || beginWith("?", query) || "";
  pathname = pathname.replace(/[#?]/g, percent);
  if (this.slashes || isSlashed(protocol)) {
    if (this.slashes || host) {
      pathname = beginWith("/", pathname);
      host = `//${host}`;
    } else if (protocol.startsWith("file")) {
      host = "//";
    }
  }
  return protocol + host + pathname + beginWith("?", search.replaceAll("#", "%23")) + beginWith("#", this.hash || "");
};

Url.prototype.resolve = function resolve(relative) {
  return this.resolveObject(parse(relative, false, true)).format();
};

/** Takes "." and ".." out of a path's parts; `keep` leaves those that lead above its beginning. */
function withoutDots(parts, keep) {
  const kept = [];
  let above = 0;
  for (const part of parts.toReversed()) {
    if (part === "..") above++;
    else if (part !== "." && above === 0) kept.push(part);
    else if (part !== ".") above--;
  }
  if (keep) kept.push(...Array.from({ length: above }, () => ".."));
  return kept.reverse();
}
/** The host of a scheme without slashes is the first part of its path meanwhile. */
function hostIntoPath(url, parts) {
  if (!url.host) return;
  if (parts[0] === "") parts[0] = url.host;
  else parts.unshift(url.host);
}
function hostOutOfPath(url, host) {
  url.hostname = url.host = host;
  if (host && host.indexOf("@") > 0) {
    const [auth, name] = host.split("@");
    url.auth = auth;
    url.hostname = url.host = name;
  }
}

Url.prototype.resolveObject = function resolveObject(relative) {
  const target = typeof relative === "string" ? new Url().parse(relative, false, true) : Object.assign(new Url(), relative);
  const url = Object.assign(new Url(), this);
  url.hash = target.hash;
  if (target.href === "") return finished(url);
  if (target.slashes && !target.protocol) return resolveHost(url, target);
  if (target.protocol && target.protocol !== url.protocol) return resolveScheme(url, target);
  return resolvePath(url, target);
};

/** "//host/path": all but the scheme is new. */
function resolveHost(url, target) {
  for (const name of Object.keys(target)) if (name !== "protocol") url[name] = target[name];
  if (isSlashed(url.protocol) && url.hostname && !url.pathname) url.path = url.pathname = "/";
  return finished(url);
}

/** Another scheme. */
function resolveScheme(url, target) {
  if (!isSlashed(target.protocol)) return finished(Object.assign(url, target));
  url.protocol = target.protocol;
  url.pathname = target.pathname;
  if (!target.host && !/^file:?$/.test(target.protocol) && !isScript(target.protocol)) {
    // The first part of the path that is not empty is the host.
    const parts = (target.pathname || "").split("/"), first = parts.findIndex((part) => part !== "");
    target.host = first < 0 ? "" : parts[first];
    target.hostname ||= "";
    const left = first < 0 ? [] : parts.slice(first + 1);
    if (left[0] !== "") left.unshift("");
    if (left.length < 2) left.unshift("");
    url.pathname = left.join("/");
  }
  url.search = target.search;
  url.query = target.query;
  url.host = target.host || "";
  url.auth = target.auth;
  url.hostname = target.hostname || target.host;
  url.port = target.port;
  if (url.pathname || url.search) setPath(url);
  url.slashes ||= target.slashes;
  return finished(url);
}

/** The same scheme or none. */
function resolvePath(url, target) {
  const fromRoot = target.host || target.pathname?.startsWith("/");
  const dotsGo = Boolean(fromRoot || url.pathname?.startsWith("/") || (url.host && target.pathname));
  let absolute = dotsGo;
  let parts = url.pathname ? url.pathname.split("/") : [];
  const more = target.pathname ? target.pathname.split("/") : [];
  const hostInPath = url.protocol && !isSlashed(url.protocol);
  if (hostInPath) {
    url.hostname = "";
    url.port = null;
    hostIntoPath(url, parts);
    url.host = "";
    if (target.protocol) {
      target.hostname = target.port = url.auth = null;
      hostIntoPath(target, more);
      target.host = null;
    }
    absolute &&= more[0] === "" || parts[0] === "";
  }
  if (fromRoot) {
    for (const name of ["host", "hostname"]) {
      if (!target[name] && target[name] !== "") continue;
      if (url[name] !== target[name]) url.auth = null;
      url[name] = target[name];
      if (name === "host") url.port = target.port;
    }
    parts = more;
  } else if (more.length > 0) {
    parts = [...parts.slice(0, -1), ...more];
  } else if (target.search !== null && target.search !== undefined) {
    if (hostInPath) hostOutOfPath(url, parts.shift());
    url.search = target.search;
    url.query = target.query;
    if (url.pathname !== null || url.search !== null) setPath(url);
    return finished(url);
  }
  if (fromRoot || more.length > 0) {
    url.search = target.search;
    url.query = target.query;
  }
  if (parts.length === 0) {
    url.pathname = null;
    url.path = url.search ? `/${url.search}` : null;
    return finished(url);
  }
  const last = parts.at(-1);
  const endsInSlash = ((url.host || target.host || parts.length > 1) && (last === "." || last === "..")) || last === "";
  parts = withoutDots(parts, !dotsGo && !absolute);
  if (absolute && parts[0] !== "" && !parts[0]?.startsWith("/")) parts.unshift("");
  if (endsInSlash && !parts.join("/").endsWith("/")) parts.push("");
  const isAbsolute = parts[0] === "" || Boolean(parts[0]?.startsWith("/"));
  if (hostInPath) hostOutOfPath(url, isAbsolute || parts.length === 0 ? "" : parts.shift());
  absolute ||= url.host && parts.length > 0;
  if (absolute && !isAbsolute) parts.unshift("");
  if (parts.length === 0) url.pathname = url.path = null;
  else url.pathname = parts.join("/");
  if (url.pathname !== null || url.search !== null) setPath(url);
  url.auth = target.auth || url.auth;
  url.slashes ||= target.slashes;
  return finished(url);
}

export function parse(url, parseQuery, slashesDenoteHost) {
  return url instanceof Url ? url : new Url().parse(url, parseQuery, slashesDenoteHost);
}
export function resolve(from, to) {
  return parse(from, false, true).resolve(to);
}
export function resolveObject(from, to) {
  return from ? parse(from, false, true).resolveObject(to) : to;
}

export function format(value, options = undefined) {
  if (typeof value === "string") return parse(value).format();
  if (typeof value !== "object" || value === null) throw invalidArgType("urlObject", ["Object", "string"], value);
  if (!(value instanceof URL)) return Url.prototype.format.call(value);
  if (options) validateObject(options, "options");
  const wants = (name, otherwise) => (options?.[name] === undefined || options[name] === null ? otherwise : Boolean(options[name]));
  const copy = new URL(value.href);
  if (!wants("auth", true)) copy.username = copy.password = "";
  if (!wants("fragment", true)) copy.hash = "";
  if (!wants("search", true)) copy.search = "";
  return wants("unicode", false) && copy.hostname.includes("xn--") ? copy.href.replace(copy.hostname, () => native.domainToUnicode(copy.hostname)) : copy.href;
}

export function fileURLToPath(url) {
  if (typeof url !== "string" && !(url instanceof URL)) throw invalidArgType("path", ["string", "URL"], url);
  const parsed = typeof url === "string" ? standard(url) : url;
  if (parsed?.protocol !== "file:") throw nodeError(TypeError, "ERR_INVALID_URL_SCHEME", "The URL must be of scheme file");
  if (parsed.hostname !== "") throw nodeError(TypeError, "ERR_INVALID_FILE_URL_HOST", 'File URL host must be "localhost" or empty on linux');
  if (/%2f/i.test(parsed.pathname)) throw nodeError(TypeError, "ERR_INVALID_FILE_URL_PATH", "File URL path must not include encoded / characters");
  return decodeURIComponent(parsed.pathname);
}
/** `new URL()` with the code that Node.js gives its error. */
function standard(text) {
  try {
    return new URL(text);
  } catch {
    throw invalidUrl(text);
  }
}
export function pathToFileURL(path) {
  validateString(path, "filepath");
  const absolute = require("./path.js").default.resolve("/", path);
  const escaped = absolute.replace(/[\t\n\r "#%<>?[\\\]^`{|}~\x7f]/g, percent);
  return new URL(`file://${escaped}${path.endsWith("/") && !escaped.endsWith("/") ? "/" : ""}`);
}

export function urlToHttpOptions(url) {
  const options = {
    __proto__: null,
    protocol: url.protocol,
    hostname: url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname,
    hash: url.hash,
    search: url.search,
    pathname: url.pathname,
    path: `${url.pathname}${url.search}`,
    href: url.href,
  };
  if (url.port !== "") options.port = Number(url.port);
  if (url.username || url.password) options.auth = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return options;
}

function withDomain(args, run) {
  if (args.length === 0) throw missingArgs("domain");
  return run(`${args[0]}`);
}

export default {
  URL, URLSearchParams, Url, parse, format, resolve, resolveObject, fileURLToPath, pathToFileURL, urlToHttpOptions,
  ...(globalThis.URLPattern ? { URLPattern: globalThis.URLPattern } : {}),
  domainToASCII: (...args) => withDomain(args, (domain) => (URL.canParse(`ws://${domain}`) ? new URL(`ws://${domain}`).hostname : "")),
  domainToUnicode: (...args) => withDomain(args, (domain) => (URL.canParse(`ws://${domain}`) ? native.domainToUnicode(new URL(`ws://${domain}`).hostname) : "")),
  toPathIfFileURL: (value) => (value instanceof URL ? fileURLToPath(value) : value),
  fileURLToPathBuffer: (url) => require("./buffer.js").Buffer.from(fileURLToPath(url)),
};
