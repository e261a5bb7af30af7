// What the server's dispatch needs of fetch: requests that are native handles, and the parts of
// a response. User code cannot import this.
export { isRequestBody, requestCopy, requestFromNative, requestFromPeer, requestParts, requestSignal, isRequest } from "./request.js";
export { HEADERS_JSON, HEADERS_NONE, HEADERS_TEXT, isResponse, makeResponse, responseCameFrom, responseMove, responseParts, responseTitled } from "./response.js";
