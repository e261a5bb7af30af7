// Requests, responses and headers as plain values that can be serialized. A body that has not all
// arrived travels as a stream.
import { Headers, isHeaders } from "../../web/fetch/headers.js";
import { Request } from "../../web/fetch/request.js";
import { isRequest, isResponse, responseParts } from "../../web/fetch/internal.js";
import { Response } from "../../web/fetch/response.js";
import { receiveSocket, sendSocket } from "../websocket.js";

export { isHeaders, isRequest, isResponse };

export const makeHeaders = (pairs) => new Headers(pairs);

export function encodeRequest(request) {
  return {
    url: request.url,
    method: request.method,
    headers: [...request.headers],
    body: request.body,
    cf: request.cf,
  };
}

/** Redirects are the caller's business: what a handler passes on must not follow them. */
export function decodeRequest({ url, method, headers, body, cf }) {
  return new Request(url, { method, headers, redirect: "manual", body, cf });
}

const CODES = [[], [["content-type", "text/plain;charset=UTF-8"]], [["content-type", "application/json"]]];

export function encodeResponse(response) {
  if (!isResponse(response)) throw new TypeError("Incorrect type for Promise: the Promise did not resolve to 'Response'.");
  const { status, statusText, headers, body, webSocket } = responseParts(response);
  return { status, statusText, headers, body, webSocket: sendSocket(webSocket) };
}

export function decodeResponse({ status, statusText, headers, body, webSocket = null }) {
  let pairs = headers;
  if (typeof headers === "number") pairs = CODES[headers];
  else if (typeof headers === "string") {
    pairs = headers.split("\r\n").filter((line) => line !== "").map((line) => {
      const colon = line.indexOf(": ");
      return [line.slice(0, colon), line.slice(colon + 2)];
    });
  }
  const init = { status, statusText, headers: pairs };
  if (webSocket !== null) init.webSocket = receiveSocket(webSocket);
  const made = new Response(body, init);
  // A string body alone would add a type that the sender did not give.
  if (typeof body === "string" && !pairs.some(([name]) => name.toLowerCase() === "content-type")) made.headers.delete("content-type");
  return made;
}
