// node:_http_outgoing
import { OutgoingMessage, validateHeaderName, validateHeaderValue } from "./http_messages.js";

export default {
  validateHeaderName, validateHeaderValue,
  kUniqueHeaders: Symbol("kUniqueHeaders"),
  kHighWaterMark: Symbol("kHighWaterMark"),
  parseUniqueHeadersOption(headers) {
    if (!Array.isArray(headers)) return null;
    return new Set(headers.flat().map((name) => `${name}`.toLowerCase()));
  },
  OutgoingMessage,
};
