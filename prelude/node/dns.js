// node:dns over HTTPS: the platform resolves names through its own resolver, and so does this. The
// answers are those of a DNS server that speaks JSON (RFC 8427's cousin, as 1.1.1.1 has it).
import { invalidArgType, invalidArgValue, nodeError, notImplemented, validateBoolean, validateFunction, validateNumber, validateOneOf, validateString } from "./internal/errors.js";

const { isIP } = require("./net.js");
const SERVER = "https://cloudflare-dns.com/dns-query";
const TYPES = { A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, MX: 15, TXT: 16, AAAA: 28, SRV: 33, NAPTR: 35, CAA: 257 };

function dnsError(code, syscall, hostname) {
  return Object.assign(nodeError(Error, code, `${syscall} ${code} ${hostname}`), { syscall, hostname });
}

async function query(hostname, type) {
  validateString(hostname, "name");
  const syscall = `query${type[0]}${type.slice(1).toLowerCase()}`;
  let answer;
  try {
    const response = await fetch(`${SERVER}?name=${encodeURIComponent(hostname)}&type=${type}`, { headers: { accept: "application/dns-json" } });
    answer = await response.json();
  } catch (error) {
    throw Object.assign(dnsError("ECONNREFUSED", syscall, hostname), { cause: error });
  }
  if (answer.Status === 3) throw dnsError("ENOTFOUND", syscall, hostname);
  if (answer.Status !== 0) throw dnsError("ESERVFAIL", syscall, hostname);
  const records = (answer.Answer ?? []).filter((record) => record.type === TYPES[type]);
  if (records.length === 0) throw dnsError("ENODATA", syscall, hostname);
  return records;
}

const plainName = (text) => text.replace(/\.$/, "");
const words = (text) => text.split(" ");
const parsers = {
  A: ({ data, TTL }, { ttl } = {}) => (ttl ? { address: data, ttl: TTL } : data),
  AAAA: ({ data, TTL }, { ttl } = {}) => (ttl ? { address: data, ttl: TTL } : data),
  CNAME: ({ data }) => plainName(data),
  NS: ({ data }) => plainName(data),
  PTR: ({ data }) => plainName(data),
  MX: ({ data }) => ({ priority: +words(data)[0], exchange: plainName(words(data)[1]) }),
  TXT: ({ data }) => [...data.matchAll(/"((?:[^"\\]|\\.)*)("?)/g)].filter(([, , end]) => end).map(([, text]) => text.replace(/\\(.)/g, "$1")),
  SRV: ({ data }) => ({ priority: +words(data)[0], weight: +words(data)[1], port: +words(data)[2], name: plainName(words(data)[3]) }),
  CAA: ({ data }) => ({ critical: +words(data)[0], [words(data)[1]]: words(data).slice(2).join(" ").replace(/^"|"$/g, "") }),
  SOA: ({ data }) => {
    const [nsname, hostmaster, serial, refresh, retry, expire, minttl] = words(data);
    return { nsname: plainName(nsname), hostmaster: plainName(hostmaster), serial: +serial, refresh: +refresh, retry: +retry, expire: +expire, minttl: +minttl };
  },
};

const resolver = (type) => async (hostname, options) => {
  const records = (await query(hostname, type)).map((record) => parsers[type](record, options));
  return type === "SOA" ? records[0] : records;
};
const METHODS = { resolve4: "A", resolve6: "AAAA", resolveCname: "CNAME", resolveNs: "NS", resolvePtr: "PTR", resolveMx: "MX", resolveTxt: "TXT", resolveSrv: "SRV", resolveCaa: "CAA", resolveSoa: "SOA" };

const promises = Object.fromEntries(Object.entries(METHODS).map(([method, type]) => [method, resolver(type)]));
promises.resolve = (hostname, type = "A") => {
  if (!Object.hasOwn(parsers, type)) throw nodeError(TypeError, "ERR_INVALID_ARG_VALUE", `The argument 'rrtype' is invalid. Received '${type}'`);
  return resolver(type)(hostname);
};
/** What lookup() takes: {family, all}; wrong arguments throw at once. */
function lookupOptions(hostname, options) {
  if (hostname && typeof hostname !== "string") throw invalidArgType("hostname", "of type string", hostname);
  if (typeof options === "number") {
    validateOneOf(options, "family", [0, 4, 6]);
    return { family: options, all: false };
  }
  if (options !== undefined && options !== null && typeof options !== "object") throw invalidArgType("options", ["integer", "object"], options);
  const { family: given = 0, all = false, hints, verbatim, order: wanted } = options ?? {};
  if (hints !== undefined && hints !== null) {
    validateNumber(hints, "options.hints");
    if ((hints & ~(1024 | 256 | 2048)) !== 0) throw invalidArgValue("hints", hints);
  }
  const family = given === "IPv4" ? 4 : given === "IPv6" ? 6 : given ?? 0;
  validateOneOf(family, "options.family", [0, 4, 6]);
  validateBoolean(all ?? false, "options.all");
  if (verbatim !== undefined && verbatim !== null) validateBoolean(verbatim, "options.verbatim");
  if (wanted !== undefined && wanted !== null) validateOneOf(wanted, "options.order", ["verbatim", "ipv4first", "ipv6first"]);
  return { family, all: all ?? false };
}
promises.lookup = (hostname, options = {}) => resolveBoth(hostname, lookupOptions(hostname, options));
async function resolveBoth(hostname, { family, all }) {
  if (!hostname) return all ? [] : { address: null, family: family === 6 ? 6 : 4 };
  const version = isIP(hostname);
  if (version !== 0) return all ? [{ address: hostname, family: version }] : { address: hostname, family: version };
  const found = [];
  let failure;
  for (const [type, version] of [["A", 4], ["AAAA", 6]]) {
    if (family !== 0 && family !== version) continue;
    try {
      for (const { data } of await query(hostname, type)) found.push({ address: data, family: version });
    } catch (error) {
      failure = error;
    }
    if (found.length > 0 && !all) return found[0];
  }
  if (found.length === 0) throw failure.code === "ECONNREFUSED" ? failure : dnsError("ENOTFOUND", "getaddrinfo", hostname);
  return all ? found : found[0];
}
promises.reverse = async (address) => {
  if (!/^\d+\.\d+\.\d+\.\d+$/.test(address)) throw dnsError("EINVAL", "getHostByAddr", address);
  return promises.resolvePtr(`${address.split(".").toReversed().join(".")}.in-addr.arpa`);
};
const absent = (name) => ({ [name]() { throw notImplemented(`dns.${name}`); } })[name];
promises.getServers = () => ["1.1.1.1", "2606:4700:4700::1111", "1.0.0.1", "2606:4700:4700::1001"];
for (const name of ["setServers", "lookupService", "resolveAny", "resolveNaptr"]) promises[name] = absent(name);
let order = "verbatim";
promises.getDefaultResultOrder = () => order;
promises.setDefaultResultOrder = (value) => {
  validateOneOf(value, "dnsOrder", ["verbatim", "ipv4first", "ipv6first"]);
  order = value;
};

/** The same with a callback as the last argument. */
const callbackForm = (name) => (...args) => {
  const callback = args.pop();
  if (name === "lookup") lookupOptions(args[0], args[1]);
  validateFunction(callback, "callback");
  promises[name](...args).then(
    (value) => (name === "lookup" && !Array.isArray(value) ? callback(null, value.address, value.family) : callback(null, value)),
    (error) => callback(error),
  );
};
const codes = Object.fromEntries(["ADDRGETNETWORKPARAMS", "BADFAMILY", "BADFLAGS", "BADHINTS", "BADNAME", "BADQUERY", "BADRESP", "BADSTR", "CANCELLED", "CONNREFUSED", "DESTRUCTION", "EOF", "FILE", "FORMERR", "LOADIPHLPAPI", "NODATA", "NOMEM", "NONAME", "NOTFOUND", "NOTIMP", "NOTINITIALIZED", "REFUSED", "SERVFAIL", "TIMEOUT"].map((code) => [code, code === "EOF" ? "EOF" : `E${code}`]));
const module = { ...codes, ADDRCONFIG: 1024, ALL: 256, V4MAPPED: 2048, promises: { ...promises, ...codes } };
for (const name of [...Object.keys(METHODS), "resolve", "lookup", "reverse"]) module[name] = callbackForm(name);
for (const name of ["getServers", "setServers", "lookupService", "resolveAny", "resolveNaptr", "getDefaultResultOrder", "setDefaultResultOrder"]) module[name] = promises[name];
class Resolver {
  cancel() {}
}
for (const name of [...Object.keys(METHODS), "resolve", "reverse", "getServers", "setServers"]) Resolver.prototype[name] = module[name];
class PromisesResolver {
  cancel() {}
}
for (const name of [...Object.keys(METHODS), "resolve", "reverse", "getServers", "setServers"]) PromisesResolver.prototype[name] = promises[name];
module.Resolver = Resolver;
module.promises.Resolver = PromisesResolver;
export default module;
