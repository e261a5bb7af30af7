// node:tls on connect() of cloudflare:sockets.
import { Buffer } from "./buffer.js";
import { invalidArgType, nodeError, notImplemented, outOfRange } from "./internal/errors.js";
import { isIP, Socket } from "./net.js";

export class TLSSocket extends Socket {
  encrypted = true;
  authorized = true;
  constructor(socket, options = {}) {
    super(options);
    this.secureTransport = "on";
    // STARTTLS: the connection of `socket` goes on here, encrypted.
    if (socket instanceof Socket) this.attach(socket.detach().startTls());
  }
  getPeerCertificate() { return {}; }
  getCipher() { return { name: "", standardName: "", version: "TLSv1.3" }; }
  getProtocol() { return "TLSv1.3"; }
}

export function connect(...args) {
  const callback = typeof args.at(-1) === "function" ? args.pop() : undefined;
  const options = typeof args[0] === "object" ? args[0] : { port: args[0], host: typeof args[1] === "string" ? args[1] : undefined, ...(typeof args.at(-1) === "object" ? args.at(-1) : {}) };
  for (const name of ["ca", "cert", "key", "pfx", "checkServerIdentity"]) {
    if (options[name] !== undefined) throw new Error(`The option "${name}" of tls.connect() is not available in this runtime.`);
  }
  if (options.rejectUnauthorized === false) throw new Error("tls.connect() always verifies certificates in this runtime.");
  const socket = new TLSSocket(options.socket, options);
  if (callback) socket.once("secureConnect", callback);
  return options.socket ? socket : socket.connect(options);
}

// ---- names in certificates

const withoutRoot = (name) => `${name}`.replace(/\.$/, "");
const plain = (name) => withoutRoot(name).toLowerCase();
/** An address as all its spellings are compared. */
const canonical = (ip) => (isIP(ip) === 6 ? new URL(`http://[${ip}]`).hostname.slice(1, -1) : ip);

/** Whether a pattern of a certificate ("*.example.com") stands for a host. */
function matchesHost(host, pattern, wildcards) {
  if (!pattern) return false;
  const [labels, wanted] = [plain(host).split("."), plain(pattern).split(".")];
  if (labels.length !== wanted.length || wanted.includes("")) return false;
  if (!/^[\x21-\x7f]*$/.test(pattern)) return false;
  for (let i = labels.length - 1; i > 0; i--) if (labels[i] !== wanted[i]) return false;
  const [first] = wanted;
  const star = first.indexOf("*");
  if (star < 0 || first.includes("xn--")) return labels[0] === first;
  if (!wildcards || wanted.length <= 2 || first.indexOf("*", star + 1) >= 0) return false;
  const [before, after] = [first.slice(0, star), first.slice(star + 1)];
  return before.length + after.length <= labels[0].length && labels[0].startsWith(before) && labels[0].endsWith(after);
}

/** The parts of a subjectAltName; commas may stand within quotes. */
function splitAltNames(text) {
  const parts = [];
  let current = "";
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '"') {
      const end = /"(?:[^"\\]|\\.)*"/y;
      end.lastIndex = i;
      const quoted = end.exec(text);
      if (quoted === null) throw nodeError(SyntaxError, "ERR_TLS_CERT_ALTNAME_FORMAT", "Invalid subject alternative name string");
      current += JSON.parse(quoted[0]);
      i += quoted[0].length - 1;
    } else if (text.startsWith(", ", i)) {
      parts.push(current);
      current = "";
      i++;
    } else {
      current += text[i];
    }
  }
  return [...parts, current];
}

/** RFC 6125: undefined if the certificate is the host's, else the error. */
export function checkServerIdentity(hostname, cert) {
  const host = withoutRoot(hostname);
  const { subject, subjectaltname: altNames } = cert;
  const dnsNames = [];
  const ips = [];
  if (altNames) {
    for (const name of altNames.includes('"') ? splitAltNames(altNames) : altNames.split(", ")) {
      if (name.startsWith("DNS:")) dnsNames.push(name.slice(4));
      else if (name.startsWith("IP Address:")) ips.push(canonical(name.slice(11)));
    }
  }
  let good = false;
  let reason = "Unknown reason";
  if (isIP(host)) {
    good = ips.includes(canonical(host));
    if (!good) reason = `IP: ${host} is not in the cert's list: ${ips.join(", ")}`;
  } else if (dnsNames.length > 0 || subject?.CN) {
    if (dnsNames.length > 0) {
      good = dnsNames.some((name) => matchesHost(host, name, true));
      if (!good) reason = `Host: ${host}. is not in the cert's altnames: ${altNames}`;
    } else {
      const names = [subject.CN].flat();
      good = names.some((name) => matchesHost(host, name, true));
      if (!good) reason = `Host: ${host}. is not cert's CN: ${subject.CN}`;
    }
  } else {
    reason = "Cert does not contain a DNS name";
  }
  if (good) return undefined;
  return Object.assign(nodeError(Error, "ERR_TLS_CERT_ALTNAME_INVALID", reason), { reason, host, cert });
}

/** Names of protocols in the form of ALPN, put into `out.ALPNProtocols`. */
export function convertALPNProtocols(protocols, out) {
  if (Array.isArray(protocols)) {
    const parts = protocols.map((name, i) => {
      const bytes = Buffer.from(name);
      if (bytes.length > 255) throw outOfRange(`The byte length of the protocol at index ${i} exceeds the maximum length.`, "<= 255", bytes.length, true);
      return Buffer.concat([Buffer.from([bytes.length]), bytes]);
    });
    out.ALPNProtocols = Buffer.concat(parts);
  } else if (ArrayBuffer.isView(protocols)) {
    const { buffer, byteOffset, byteLength } = protocols;
    out.ALPNProtocols = Buffer.concat([Buffer.from(buffer, byteOffset, byteLength)]); // a copy
  }
}

export class SecureContext {
  constructor(_secureProtocol, _secureOptions, _minVersion, _maxVersion) {}
}
function createSecureContext(options = {}) {
  for (const name of ["minVersion", "maxVersion"]) {
    const version = options?.[name];
    if (version !== undefined && typeof version !== "string") throw invalidArgType(`options.${name}`, "of type string", version);
  }
  return new SecureContext();
}
export function translatePeerCertificate(certificate) {
  return certificate || null;
}
const absent = (name) => ({ [name]: function () { throw notImplemented(`tls.${name}`); } })[name];

export default {
  SecureContext, Server: absent("Server"), TLSSocket, connect, createSecureContext, createServer: absent("createServer"), checkServerIdentity, convertALPNProtocols,
  getCiphers: () => ["tls_aes_128_gcm_sha256", "tls_aes_256_gcm_sha384", "tls_chacha20_poly1305_sha256"],
  createSecurePair: absent("createSecurePair"),
  CLIENT_RENEG_LIMIT: 3, CLIENT_RENEG_WINDOW: 600, DEFAULT_CIPHERS: "", DEFAULT_ECDH_CURVE: "auto", DEFAULT_MAX_VERSION: "TLSv1.3", DEFAULT_MIN_VERSION: "TLSv1.2",
  rootCertificates: Object.freeze([]),
};
