// Modules whose names begin with an underscore: parts of others, under the names they once had.
export const stream = (name) => {
  const value = require("../stream.js").default[name];
  return { default: value, extras: { [name]: value } };
};
export const streamWrap = () => ({ default: require("../net.js").default.Socket });
export const agent = () => {
  const { Agent, globalAgent } = require("../http.js").default;
  return { default: { Agent, globalAgent } };
};
export const client = () => ({ default: { ClientRequest: require("../http.js").default.ClientRequest } });
export const common = () => ({ default: require("./http_common.js").default });
export const incoming = () => ({ default: { IncomingMessage: require("../http.js").default.IncomingMessage } });
export const outgoing = () => ({ default: require("./http_outgoing.js").default });
export const server = () => {
  const { STATUS_CODES, Server, ServerResponse, _connectionListener } = require("../http.js").default;
  return { default: { STATUS_CODES, Server, ServerResponse, _connectionListener, ...require("./http_server_names.js") } };
};
export const tlsCommon = () => {
  const { SecureContext, createSecureContext } = require("../tls.js").default;
  return { default: { SecureContext, createSecureContext, translatePeerCertificate: require("../tls.js").translatePeerCertificate } };
};
export const tlsWrap = () => {
  const { TLSSocket, connect } = require("../tls.js").default;
  return { default: { TLSSocket, connect } };
};
