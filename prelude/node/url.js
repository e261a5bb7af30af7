// node:url: the standard's classes, and the parser that Node.js had before them.
import { invalidArgType, missingArgs, nodeError, validateString } from "./internal/errors.js";
import { native } from "./internal/internals.js";
import querystring from "./querystring.js";

const { URL, URLSearchParams } = globalThis;
const SLASHED = new Set(["http:", "https:", "ftp:", "gopher:", "file:", "ws:", "wss:"]);

export function Url() {
  for (const name of ["protocol", "slashes", "auth", "host", "port", "hostname", "hash", "search", "query", "pathname", "path", "href"]) this[name] = null;
}

/** The old parser: splits, and encodes little. */
Url.prototype.parse = function (text, parseQuery, slashesDenoteHost) {
  validateString(text, "url");
  let rest = text.trim().replace(/^([^?#]*)/, (part) => part.replaceAll("\\", "/"));
  const hashAt = rest.indexOf("#");
  if (hashAt >= 0) {
    this.hash = escapeUnsafe(rest.slice(hashAt));
    rest = rest.slice(0, hashAt);
  }
  const queryAt = rest.indexOf("?");
  if (queryAt >= 0) {
    this.search = escapeUnsafe(rest.slice(queryAt));
    this.query = this.search.slice(1);
    if (parseQuery) this.query = querystring.parse(this.query);
    rest = rest.slice(0, queryAt);
  } else if (parseQuery) {
    this.search = null;
    this.query = { __proto__: null };
  }
  const scheme = /^[a-z][a-z0-9.+-]*:/i.exec(rest);
  if (scheme) {
    this.protocol = scheme[0].toLowerCase();
    rest = rest.slice(scheme[0].length);
  }
  const isScript = this.protocol === "javascript:";
  const slashes = !isScript && rest.startsWith("//") && (slashesDenoteHost || scheme || /^\/\/[^@/]+@[^@/]+/.test(rest));
  if (slashes) {
    this.slashes = true;
    rest = rest.slice(2);
  }
  // Schemes that are not known to have slashes have a host without them.
  if (!isScript && (slashes || (scheme && !SLASHED.has(this.protocol)))) rest = this.takeHost(rest);
  if (rest !== "") this.pathname = isScript ? rest : escapeUnsafe(rest);
  if (SLASHED.has(this.protocol) && this.hostname && !this.pathname) this.pathname = "/";
  if (this.pathname !== null || this.search !== null) this.path = (this.pathname ?? "") + (this.search ?? "");
  this.href = this.format();
  return this;
};

/** Characters that end a host, whatever comes after them. */
const HOST_END = /[\t\n\r "#%/;<>?\\^`{|}']/;

/** Takes user, host and port off the front of a text; gives what is left. */
Object.defineProperty(Url.prototype, "takeHost", {
  value(text) {
    let rest = text;
    const stop = rest.search(/[/?#]/);
    const at = (stop < 0 ? rest : rest.slice(0, stop)).lastIndexOf("@");
    if (at >= 0) {
      this.auth = decodeURIComponent(rest.slice(0, at));
      rest = rest.slice(at + 1);
    }
    const end = rest.search(HOST_END);
    let authority = end < 0 ? rest : rest.slice(0, end);
    rest = end < 0 ? "" : rest.slice(end);
    const port = /:(\d*)$/.exec(authority);
    if (port) {
      if (port[1] !== "") this.port = port[1];
      authority = authority.slice(0, port.index);
    }
    const bracketed = /^\[.*\]$/.test(authority);
    if (!bracketed) {
      // What no name has begins the path.
      const wrong = authority.search(/[^a-z0-9._+\-\u0080-\uffff\0-\x1f]/i);
      if (wrong >= 0) {
        rest = `/${authority.slice(wrong)}${this.port !== null && port ? `:${port[1]}` : ""}${rest}`;
        this.port = null;
        authority = authority.slice(0, wrong);
      }
    }
    let hostname = authority.length > 255 ? "" : authority.toLowerCase();
    if (/[^\x00-\x7f]/.test(hostname)) hostname = native.domainToASCII(hostname) ?? "";
    if (/[\0-\x1f]/.test(hostname) || (authority !== "" && hostname === "")) throw Object.assign(nodeError(Error, "ERR_INVALID_URL", "Invalid URL"), { input: text });
    this.hostname = hostname;
    this.host = hostname + (this.port ? `:${this.port}` : "");
    if (bracketed) this.hostname = hostname.slice(1, -1);
    return rest;
  },
  configurable: true,
});

function escapeUnsafe(text) {
  return text.replace(/[\s"'<>`{}|\\^]/g, (c) => (c === "'" ? "%27" : encodeURIComponent(c)));
}

Url.prototype.format = function () {
  const auth = this.auth ? `${encodeURIComponent(this.auth).replace(/%3A/i, ":")}@` : "";
  let protocol = this.protocol ?? "";
  if (protocol && !protocol.endsWith(":")) protocol += ":";
  let pathname = this.pathname ?? "";
  let host = "";
  if (this.host) host = auth + this.host;
  else if (this.hostname) host = auth + (this.hostname.includes(":") ? `[${this.hostname}]` : this.hostname) + (this.port ? `:${this.port}` : "");
  let search = this.search ?? "";
  if (!search && this.query !== null && typeof this.query === "object") search = querystring.stringify(this.query);
  else if (!search && typeof this.query === "string") search = this.query;
  if (search && !search.startsWith("?")) search = `?${search}`;
  let hash = this.hash ?? "";
  if (hash && !hash.startsWith("#")) hash = `#${hash}`;
  pathname = pathname.replace(/[?#]/g, encodeURIComponent);
  search = search.replaceAll("#", "%23");
  if (this.slashes || SLASHED.has(protocol)) {
    if (this.slashes || host) {
      if (pathname && !pathname.startsWith("/")) pathname = `/${pathname}`;
      host = `//${host}`;
    }
  }
  return protocol + host + pathname + search + hash;
};
Url.prototype.resolve = function (relative) {
  return resolve(this.format(), relative);
};
Url.prototype.resolveObject = function (relative) {
  return parse(resolve(this.format(), relative));
};

export function parse(url, parseQuery = false, slashesDenoteHost = false) {
  return url instanceof Url ? url : new Url().parse(url, parseQuery, slashesDenoteHost);
}

export function format(value, options = undefined) {
  if (typeof value === "string") return parse(value).format();
  if (value instanceof URL) {
    const { auth = true, fragment = true, search = true, unicode = false } = options ?? {};
    const copy = new URL(value.href);
    if (!auth) copy.username = copy.password = "";
    if (!fragment) copy.hash = "";
    if (!search) copy.search = "";
    return unicode && copy.hostname ? copy.href.replace(copy.hostname, native.domainToUnicode(copy.hostname)) : copy.href;
  }
  if (value === null || typeof value !== "object") throw invalidArgType("urlObject", "one of type object or string", value);
  return Url.prototype.format.call(value);
}

export function resolve(from, to) {
  const base = "resolve://placeholder";
  const resolved = new URL(to, new URL(from, `${base}/`));
  if (resolved.protocol !== "resolve:") return resolved.href;
  const path = resolved.href.slice(base.length);
  return from.startsWith("/") || to.startsWith("/") ? path : path.slice(1);
}

export function fileURLToPath(url) {
  if (typeof url !== "string" && !(url instanceof URL)) throw invalidArgType("path", ["string", "URL"], url);
  const parsed = typeof url === "string" ? new URL(url) : url;
  if (parsed?.protocol !== "file:") throw nodeError(Error, "ERR_INVALID_URL_SCHEME", "The URL must be of scheme file");
  if (parsed.hostname !== "") throw nodeError(Error, "ERR_INVALID_FILE_URL_HOST", 'File URL host must be "localhost" or empty on linux');
  if (/%2f/i.test(parsed.pathname)) throw nodeError(Error, "ERR_INVALID_FILE_URL_PATH", "File URL path must not include encoded / characters");
  return decodeURIComponent(parsed.pathname);
}

export function pathToFileURL(path) {
  validateString(path, "filepath");
  const absolute = require("./path.js").default.resolve("/", path);
  const escaped = absolute.replace(/[%\\\n\r\t?#]/g, (c) => encodeURIComponent(c));
  return new URL(`file://${escaped}${path.endsWith("/") && !escaped.endsWith("/") ? "/" : ""}`);
}

export function urlToHttpOptions(url) {
  const options = {
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
  URL, URLSearchParams, Url, parse, format, resolve, fileURLToPath, pathToFileURL, urlToHttpOptions,
  ...(globalThis.URLPattern ? { URLPattern: globalThis.URLPattern } : {}),
  resolveObject: (from, to) => parse(resolve(from, to)),
  domainToASCII: (...args) => withDomain(args, (domain) => (URL.canParse(`ws://${domain}`) ? new URL(`ws://${domain}`).hostname : "")),
  domainToUnicode: (...args) => withDomain(args, (domain) => (URL.canParse(`ws://${domain}`) ? native.domainToUnicode(new URL(`ws://${domain}`).hostname) : "")),
  toPathIfFileURL: (value) => (value instanceof URL ? fileURLToPath(value) : value),
  fileURLToPathBuffer: (url) => require("./buffer.js").Buffer.from(fileURLToPath(url)),
};
