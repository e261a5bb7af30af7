// URLPattern: https://urlpattern.spec.whatwg.org/#urlpattern-class
import { finishInterface } from "../../internal/interface.js";
import { isObject } from "../../internal/webidl.js";
import { FRAGMENT, HOSTNAME, isSpecialScheme, OPAQUE_PATH, parseURL, PATH_START, PORT, QUERY } from "./parser.js";
import { compileComponent, DEFAULT_OPTIONS, escapePattern, HOSTNAME_OPTIONS, PATHNAME_OPTIONS } from "./pattern-parser.js";
import { parseConstructorString } from "./pattern-string.js";
import { percentEncode, USERINFO_SET } from "./percent.js";

const COMPONENTS = ["protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"];
const SPECIAL = ["ftp", "file", "http", "https", "ws", "wss"];
const DEFAULT_PORTS = { __proto__: null, ftp: "21", http: "80", https: "443", ws: "80", wss: "443" };

const failure = (what, value) => new TypeError(`Invalid URLPattern: "${value}" is no valid ${what}.`);

// ---- Canonicalization: https://urlpattern.spec.whatwg.org/#canon ----

/** Parses `value` as one part of a URL; the record, or a TypeError. */
function override(value, state, what, change = undefined) {
  const record = parseURL("https://dummy.invalid/");
  change?.(record);
  if (parseURL(value, null, record, state) === null) throw failure(what, value);
  return record;
}

const canonicalize = {
  protocol(value) {
    if (value === "") return value;
    const record = parseURL(`${value}://dummy.invalid/`);
    if (record === null) throw failure("protocol", value);
    return record.scheme.slice(0, -1);
  },
  username: (value) => percentEncode(value, USERINFO_SET),
  password: (value) => percentEncode(value, USERINFO_SET),
  hostname: (value) => (value === "" ? value : (override(value, HOSTNAME, "hostname").host ?? "")),
  ipv6(value) {
    if (/[^\da-f[\]:]/i.test(value)) throw failure("hostname", value);
    return value.toLowerCase();
  },
  port(value, protocol = undefined) {
    if (value === "") return value;
    if (!/^[\t\n\r]*\d/.test(value)) throw failure("port", value);
    const record = override(value, PORT, "port", (url) => {
      url.scheme = protocol ? `${protocol}:` : "dummy:";
      url.port = null;
    });
    return record.port === null ? "" : `${record.port}`;
  },
  pathname(value) {
    if (value === "") return value;
    const leads = value[0] === "/";
    const { pathname } = override(leads ? value : `/-${value}`, PATH_START, "pathname", (url) => (url.path = []));
    return leads ? pathname : pathname.slice(2);
  },
  opaquePathname: (value) => (value === "" ? value : override(value, OPAQUE_PATH, "pathname", (url) => (url.path = "")).pathname),
  search: (value) => (value === "" ? value : override(value, QUERY, "search").query),
  hash: (value) => (value === "" ? value : override(value, FRAGMENT, "hash").fragment),
};

// ---- Init dictionaries: https://urlpattern.spec.whatwg.org/#process-a-urlpatterninit ----

function isAbsolutePathname(path, isPattern) {
  return path.startsWith("/") || (isPattern && (path.startsWith("\\/") || path.startsWith("{/")));
}

function parseBase(text) {
  const base = parseURL(text);
  if (base === null) throw new TypeError(`Invalid URLPattern: "${text}" is no valid base URL.`);
  return base;
}

/** `init` has strings only. `start` has the components that are known from the start. */
function processInit(init, isPattern, start) {
  const result = { ...start };
  const has = (...names) => names.some((name) => init[name] !== undefined);
  const ofBase = (text) => (isPattern ? escapePattern(text) : text);
  let base = null;
  if (init.baseURL !== undefined) {
    base = parseBase(init.baseURL);
    if (!has("protocol")) result.protocol = ofBase(base.scheme.slice(0, -1));
    if (!isPattern && !has("protocol", "hostname", "port", "username")) result.username = ofBase(base.username);
    if (!isPattern && !has("protocol", "hostname", "port", "username", "password")) result.password = ofBase(base.password);
    if (!has("protocol", "hostname")) result.hostname = ofBase(base.host ?? "");
    if (!has("protocol", "hostname", "port")) result.port = base.port === null ? "" : `${base.port}`;
    if (!has("protocol", "hostname", "port", "pathname")) result.pathname = ofBase(base.pathname);
    if (!has("protocol", "hostname", "port", "pathname", "search")) result.search = ofBase(base.query ?? "");
    if (!has("protocol", "hostname", "port", "pathname", "search", "hash")) result.hash = ofBase(base.fragment ?? "");
  }
  const finish = (name, value, ...rest) => (isPattern ? value : canonicalize[name](value, ...rest));
  if (has("protocol")) result.protocol = finish("protocol", init.protocol.replace(/:$/, ""));
  for (const name of ["username", "password", "hostname"]) if (has(name)) result[name] = finish(name, init[name]);
  const protocol = result.protocol ?? "";
  if (has("port")) result.port = finish("port", init.port, protocol);
  if (has("pathname")) {
    result.pathname = init.pathname;
    if (base !== null && !base.hasOpaquePath && !isAbsolutePathname(init.pathname, isPattern)) {
      const path = ofBase(base.pathname);
      result.pathname = path.slice(0, path.lastIndexOf("/") + 1) + init.pathname;
    }
    const isSpecial = protocol === "" || isSpecialScheme(`${protocol}:`);
    result.pathname = finish(isSpecial ? "pathname" : "opaquePathname", result.pathname);
  }
  if (has("search")) result.search = finish("search", init.search.replace(/^\?/, ""));
  if (has("hash")) result.hash = finish("hash", init.hash.replace(/^#/, ""));
  return result;
}

/** The members of a URLPatternInit, as strings. */
function readInit(input) {
  const init = {};
  for (const name of [...COMPONENTS, "baseURL"]) {
    const value = input[name];
    if (value !== undefined) init[name] = `${value}`.toWellFormed();
  }
  return init;
}

const matchesSpecial = (component) => SPECIAL.some((scheme) => component.regexp.test(scheme));
const isIPv6Pattern = (hostname) => /^(?:\[|\{\[|\\\[)/.test(hostname);

export class URLPattern {
  #components; // name -> { pattern, regexp, names, hasRegExpGroups }

  constructor(input = {}, baseOrOptions = undefined, options = undefined) {
    let base;
    if (typeof baseOrOptions === "string" || arguments.length > 2) base = `${baseOrOptions}`.toWellFormed();
    else if (isObject(baseOrOptions)) options = baseOrOptions;
    else if (baseOrOptions !== undefined && baseOrOptions !== null) base = `${baseOrOptions}`.toWellFormed();
    const ignoreCase = !!options?.ignoreCase;
    let init;
    if (isObject(input)) {
      if (base !== undefined) throw new TypeError("Invalid URLPattern: a base URL goes into the object, as baseURL.");
      init = readInit(input);
    } else {
      init = parseConstructorString(`${input}`.toWellFormed(), (protocol) =>
        matchesSpecial(compileComponent(protocol, canonicalize.protocol, DEFAULT_OPTIONS)),
      );
      if (base === undefined && init.protocol === undefined) throw new TypeError("Invalid URLPattern: a relative pattern needs a base URL.");
      if (base !== undefined) init.baseURL = base;
    }
    const processed = processInit(init, true, {});
    for (const name of COMPONENTS) processed[name] ??= "*";
    if (processed.port === DEFAULT_PORTS[processed.protocol]) processed.port = "";
    const compile = (name, encode = canonicalize[name], shape = DEFAULT_OPTIONS, insensitive = false) =>
      compileComponent(processed[name], encode, shape, insensitive);
    const protocol = compile("protocol");
    const isSpecial = matchesSpecial(protocol);
    this.#components = {
      protocol,
      username: compile("username"),
      password: compile("password"),
      hostname: compile("hostname", isIPv6Pattern(processed.hostname) ? canonicalize.ipv6 : canonicalize.hostname, HOSTNAME_OPTIONS),
      port: compile("port", (value) => canonicalize.port(value)),
      pathname: isSpecial
        ? compile("pathname", canonicalize.pathname, PATHNAME_OPTIONS, ignoreCase)
        : compile("pathname", canonicalize.opaquePathname, DEFAULT_OPTIONS, ignoreCase),
      search: compile("search", canonicalize.search, DEFAULT_OPTIONS, ignoreCase),
      hash: compile("hash", canonicalize.hash, DEFAULT_OPTIONS, ignoreCase),
    };
  }

  /** The eight parts of what is to be matched, or null if it is no URL. */
  #parts(input, baseURL) {
    if (isObject(input) && !(Symbol.toStringTag in input && input[Symbol.toStringTag] === "URL")) {
      if (baseURL !== undefined) throw new TypeError("Invalid URLPattern: a base URL goes into the object, as baseURL.");
      const init = readInit(input);
      try {
        return processInit(init, false, Object.fromEntries(COMPONENTS.map((name) => [name, ""])));
      } catch (error) {
        if (error instanceof TypeError) return null;
        throw error;
      }
    }
    const base = baseURL === undefined ? null : parseURL(baseURL);
    if (baseURL !== undefined && base === null) return null;
    const url = parseURL(`${input}`.toWellFormed(), base);
    if (url === null) return null;
    return {
      protocol: url.scheme.slice(0, -1), username: url.username, password: url.password, hostname: url.host ?? "",
      port: url.port === null ? "" : `${url.port}`, pathname: url.pathname, search: url.query ?? "", hash: url.fragment ?? "",
    };
  }

  test(input = {}, baseURL = undefined) {
    const parts = this.#parts(input, baseURL === undefined ? undefined : `${baseURL}`.toWellFormed());
    return parts !== null && COMPONENTS.every((name) => this.#components[name].regexp.test(parts[name]));
  }

  exec(input = {}, baseURL = undefined) {
    const base = baseURL === undefined ? undefined : `${baseURL}`.toWellFormed();
    const parts = this.#parts(input, base);
    if (parts === null) return null;
    const result = { inputs: base === undefined ? [input] : [input, base] };
    for (const name of COMPONENTS) {
      const { regexp, names } = this.#components[name];
      const match = regexp.exec(parts[name]);
      if (match === null) return null;
      result[name] = { input: parts[name], groups: Object.fromEntries(names.map((group, i) => [group, match[i + 1]])) };
    }
    return result;
  }

  get protocol() {
    return this.#components.protocol.pattern;
  }
  get username() {
    return this.#components.username.pattern;
  }
  get password() {
    return this.#components.password.pattern;
  }
  get hostname() {
    return this.#components.hostname.pattern;
  }
  get port() {
    return this.#components.port.pattern;
  }
  get pathname() {
    return this.#components.pathname.pattern;
  }
  get search() {
    return this.#components.search.pattern;
  }
  get hash() {
    return this.#components.hash.pattern;
  }
  get hasRegExpGroups() {
    return COMPONENTS.some((name) => this.#components[name].hasRegExpGroups);
  }
}

finishInterface(URLPattern);
