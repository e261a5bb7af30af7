// node:dns over HTTPS: the platform resolves names through its own resolver, and so does this. The
// answers are those of a DNS server that speaks JSON (RFC 8427's cousin, as 1.1.1.1 has it).
import { nodeError, validateString } from "./internal/errors.js";
import { unsupported } from "./internal/stub.js";

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
  TXT: ({ data }) => [...data.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text.replace(/\\(.)/g, "$1")),
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
promises.lookup = async (hostname, options = {}) => {
  const { family = 0, all = false } = typeof options === "number" ? { family: options } : options;
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
};
promises.reverse = async (address) => {
  if (!/^\d+\.\d+\.\d+\.\d+$/.test(address)) throw dnsError("EINVAL", "getHostByAddr", address);
  return promises.resolvePtr(`${address.split(".").toReversed().join(".")}.in-addr.arpa`);
};
promises.getServers = () => [];
promises.setServers = unsupported("dns.setServers()");
promises.lookupService = unsupported("dns.lookupService()");
promises.resolveAny = unsupported("dns.resolveAny()");
promises.resolveNaptr = unsupported("dns.resolveNaptr()");
let order = "verbatim";
promises.getDefaultResultOrder = () => order;
promises.setDefaultResultOrder = (value) => void (order = value);

/** The same with a callback as the last argument. */
const callbackForm = (name) => (...args) => {
  const callback = args.pop();
  if (typeof callback !== "function") throw nodeError(TypeError, "ERR_INVALID_ARG_TYPE", 'The "callback" argument must be of type function.');
  promises[name](...args).then(
    (value) => (name === "lookup" && !Array.isArray(value) ? callback(null, value.address, value.family) : callback(null, value)),
    (error) => callback(error),
  );
};
const codes = Object.fromEntries(["NODATA", "FORMERR", "SERVFAIL", "NOTFOUND", "NOTIMP", "REFUSED", "BADQUERY", "BADNAME", "TIMEOUT", "CONNREFUSED", "CANCELLED"].map((code) => [code, `E${code}`]));
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
