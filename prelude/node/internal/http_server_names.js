// What node:_http_server has besides node:http; connections are not a worker's to track.
export const kServerResponse = Symbol("ServerResponse");
export const kConnectionsCheckingInterval = Symbol("http.server.connectionsCheckingInterval");
export function setupConnectionsTracking() {}
export function storeHTTPOptions(_options) {}
export function httpServerPreClose(_server) {}
