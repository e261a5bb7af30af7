// node:tls on connect() of cloudflare:sockets.
import { Socket } from "./net.js";
import { unsupported } from "./internal/stub.js";

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

export default {
  TLSSocket,
  connect,
  createServer: unsupported("createServer() of node:tls"),
  Server: unsupported("Server of node:tls"),
  createSecureContext: unsupported("createSecureContext() of node:tls"),
  SecureContext: unsupported("SecureContext of node:tls"),
  checkServerIdentity: unsupported("checkServerIdentity() of node:tls"),
  getCiphers: () => ["tls_aes_128_gcm_sha256", "tls_aes_256_gcm_sha384", "tls_chacha20_poly1305_sha256"],
  DEFAULT_CIPHERS: "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256",
  DEFAULT_ECDH_CURVE: "auto",
  DEFAULT_MIN_VERSION: "TLSv1.2",
  DEFAULT_MAX_VERSION: "TLSv1.3",
  rootCertificates: Object.freeze([]),
};
