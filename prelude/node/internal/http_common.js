// node:_http_common
import { METHODS } from "../http.js";
import { hasInvalidChar, isToken } from "./http_messages.js";

export default {
  _checkIsHttpToken: (value) => isToken(value),
  _checkInvalidHeaderChar: (value) => hasInvalidChar(value),
  chunkExpression: /(?:^|\W)chunked(?:$|\W)/i,
  CRLF: "\r\n",
  continueExpression: /(?:^|\W)100-continue(?:$|\W)/i,
  methods: METHODS,
  parsers: { name: "parsers", max: 1000 },
  kIncomingMessage: Symbol("IncomingMessage"),
};
