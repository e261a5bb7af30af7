// Requests, responses and headers as plain values that can be serialized. A body that has not all
// arrived travels as a stream.
import { Headers, isHeaders } from "../../web/fetch/headers.js";
import { Request } from "../../web/fetch/request.js";
import { isRequest, isResponse, requestFromPeer, requestSignal, responseParts } from "../../web/fetch/internal.js";
import { Response } from "../../web/fetch/response.js";
import { expectedLength } from "../../web/streams/internal.js";
import { receiveSocket, sendSocket } from "./websocket.js";
import compression from "part:../../web/compression.js";

export { isHeaders, isRequest, isResponse };

export const makeHeaders = (pairs) => new Headers(pairs);

/** Headers as they would arrive: with the length of the body, if it is known. */
function headersOf(request) {
  const pairs = [...request.headers];
  if (request.body === null || request.headers.has("content-length")) return pairs;
  const length = expectedLength(request.body);
  if (length !== null) pairs.push(["content-length", `${length}`]);
  else if (!request.headers.has("transfer-encoding")) pairs.push(["transfer-encoding", "chunked"]);
  return pairs;
}

/** An address as it is asked for: its fragment stays with the asker. */
export function withoutFragment(url) {
  const end = url.indexOf("#");
  return end < 0 ? url : url.slice(0, end);
}

/** A request as a value, not on its way anywhere. */
export const encodeRequestValue = (request) => ({ ...encodeRequest(request), url: request.url, headers: [...request.headers] });

export function encodeRequest(request) {
  return {
    url: withoutFragment(request.url),
    method: request.method,
    headers: headersOf(request),
    redirect: request.redirect,
    body: request.body,
    cf: request.cf,
    signal: requestSignal(request) ?? undefined,
  };
}

/** A request that was sent as a value. */
export function decodeRequest({ url, method, headers, redirect, body, cf, signal }) {
  return new Request(url, { method, headers, redirect, body, cf, signal });
}

/** A request that was sent to be answered: { request, abort }. abort() tells it that nobody waits any more. */
export function decodeIncoming({ url, method, headers, body, cf, signal }) {
  return requestFromPeer(url, { method, headers, body, cf }, signal);
}

const CODES = [[], [["content-type", "text/plain;charset=UTF-8"]], [["content-type", "application/json"]]];

/**
 * Bodies stay as their scripts see them: content-encoding is for those outside. `isValue`: it is given as an
 * argument or a result, and may be an error response; as an answer to a request it may not.
 */
export function encodeResponse(response, isValue = false) {
  if (!isResponse(response)) throw new TypeError("Incorrect type for Promise: the Promise did not resolve to 'Response'.");
  if (response.type === "error" && isValue) return { status: 0 };
  if (response.type === "error") throw new TypeError("Return value from serve handler must not be an error response (like Response.error())");
  const { status, statusText, headers, body, webSocket, encodeBody, cf } = responseParts(response, false);
  return { status, statusText, headers, body, webSocket: sendSocket(webSocket), encodeBody: encodeBody === "manual" ? encodeBody : undefined, cf };
}

const FORMATS = { gzip: "gzip", "x-gzip": "gzip", br: "brotli", deflate: "deflate" };

/** What was sent in a content coding is read without it. */
function decoded(body, pairs) {
  const coding = pairs.find(([name]) => name.toLowerCase() === "content-encoding")?.[1].trim().toLowerCase();
  const format = FORMATS[coding];
  if (format === undefined) return body;
  return new Response(body).body.pipeThrough(new (compression().DecompressionStream)(format));
}

const NULL_BODY = new Set([101, 204, 205, 304]);

export function decodeResponse({ status, statusText, headers, body: given, webSocket = null, encodeBody, cf }) {
  if (status === 0) return Response.error();
  // As over HTTP: an answer that has come has a body, if its status may have one.
  const body = given === null && webSocket === null && !NULL_BODY.has(status) ? "" : given;
  let pairs = headers;
  if (typeof headers === "number") pairs = CODES[headers];
  else if (typeof headers === "string") {
    pairs = headers.split("\r\n").filter((line) => line !== "").map((line) => {
      const colon = line.indexOf(": ");
      return [line.slice(0, colon), line.slice(colon + 2)];
    });
  }
  const init = { status, statusText, headers: pairs, cf };
  if (webSocket !== null) init.webSocket = receiveSocket(webSocket);
  const made = new Response(encodeBody === "manual" && body !== null ? decoded(body, pairs) : body, init);
  // A string body alone would add a type that the sender did not give.
  if (typeof body === "string" && !pairs.some(([name]) => name.toLowerCase() === "content-type")) made.headers.delete("content-type");
  return made;
}
