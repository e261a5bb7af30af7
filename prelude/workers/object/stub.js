// The stub of a Durable Object: fetch() and every method of its class.
import { CallKind, Outcome } from "../../../src/bindings/border.ts";
import { gated } from "../../internal/turn.js";
import { isFlagOff, native } from "../../internal/native.js";
import { needsEvent } from "../../internal/startup.js";
import { deserialize } from "../../internal/serialize.js";
import { forgetAborted, whenAborted } from "../../web/abort.js";
import { Headers } from "../../web/fetch/headers.js";
import { DOMException } from "../../web/dom-exception.js";
import { Request } from "../../web/fetch/request.js";
import { Response } from "../../web/fetch/response.js";
import { isRequest, requestCopy, requestParts, requestSignal, responseCameFrom } from "../../web/fetch/internal.js";
import { concat } from "../../web/streams/concat.js";
import { setTimeout } from "../../web/timers.js";
import { URL } from "../../web/url/url.js";
import { decodeResponse, encodeRequest, withoutFragment } from "./fetch-values.js";
import { ObjectTarget, setFetchOf } from "./local.js";
import { CARRIED_ANSWER, guard, makeObjectStub, remoteError, serializeArguments, setObjectStub } from "./rpc.js";

/** What a relative URL is resolved against: much code calls stub.fetch("/path"). */
const BASE = "https://object/";
const REDIRECT_STATUSES = new Set([301, 302, 303, 307, 308]);
const REDIRECTS_MAX = 20;
const STRIPS_AUTHORIZATION = !isFlagOff("strip_authorization_on_cross_origin_redirect");

/** Whom a stub calls that may be stored: R2 of rpc.js. Its calls go by bytes. */
class PersistentTarget extends ObjectTarget {
  get persistent() {
    return true;
  }
  send() {
    return false;
  }
  sendCompiled() {
    return false;
  }
  sendBytes(kind, method, bytes, callback) {
    if (guard(this.ns, callback)) super.sendBytes(kind, method, bytes, callback);
  }
}

export function newStub(ns, id, persistent = false) {
  return makeObjectStub(persistent ? new PersistentTarget(ns, id) : new ObjectTarget(ns, id));
}
setObjectStub(({ ns, hex, name, persistent }) => newStub(ns, { name, toString: () => hex }, persistent === true));
setFetchOf((target) => {
  const send = (bytes, callback) => target.sendBytes(CallKind.FETCH, undefined, bytes, callback);
  return (input, init) => fetchBy(send, input, init, target);
});

/**
 * fetch() on a stub, of an object or of a service: `send` (bytes, callback) takes the request there.
 * `target` is the object, which may be near enough to need no bytes.
 */
export function fetchBy(send, input, init, target = null) {
  let request = input;
  try {
    needsEvent();
    // A request that is given as it is will be copied on the way.
    if (target === null || init !== undefined || !isRequest(input) || bodyToRepeat(input) !== null) {
      const relative = typeof input === "string" && input.startsWith("/");
      request = new Request(relative ? BASE + input.slice(1) : input, init);
    }
    if (request.redirect === "manual") return exchange(send, request, target);
  } catch (error) {
    return Promise.reject(error);
  }
  return followed(send, request, target);
}

async function followed(send, request, target) {
  for (let count = 0; ; count++) {
    const body = bodyToRepeat(request);
    const response = await exchange(send, request, target);
    const location = REDIRECT_STATUSES.has(response.status) ? response.headers.get("location") : null;
    if (location === null) return count === 0 ? response : responseCameFrom(response, withoutFragment(request.url), true);
    if (request.redirect === "error") throw new TypeError(`The request was redirected to ${location}, and its redirect mode is "error".`);
    if (count === REDIRECTS_MAX) throw new TypeError(`Too many redirects: more than ${REDIRECTS_MAX}.`);
    if (response.body !== null) response.body.cancel().catch(() => {});
    request = redirected(request, response.status, new URL(location, request.url), body);
  }
}

/** null: it has none; undefined: it can be sent once. `request.body` would make a stream of it, and so does sending it. */
function bodyToRepeat(request) {
  const { source, stream } = requestParts(request).state;
  if (stream === null && (source === null || typeof source === "string" || source instanceof Uint8Array)) return source;
  return undefined;
}

/** The request that follows an answer with a redirect: to the same object or service, as the platform does. */
function redirected(request, status, url, body) {
  const { method, signal } = request;
  let { headers } = request;
  if (status !== 303 && body === undefined) {
    throw new TypeError("A request with a one-time-use body (it was initialized from a stream, not a buffer) encountered a redirect requiring the body to be retransmitted. To avoid this error in the future, construct this request from a buffer-like body initializer.");
  }
  if (STRIPS_AUTHORIZATION && new URL(request.url).origin !== url.origin) {
    headers = new Headers(headers);
    for (const name of ["authorization", "proxy-authorization", "cookie"]) headers.delete(name);
  }
  if ((status < 303 && method === "POST") || (status === 303 && method !== "GET" && method !== "HEAD")) {
    const kept = new Headers(headers);
    for (const name of ["content-type", "content-length", "content-encoding", "content-language"]) kept.delete(name);
    return new Request(url, { headers: kept, signal });
  }
  return new Request(url, { method, headers, body, signal });
}

/** An answer as `request` gets it: to HEAD without the body, whose length its headers tell. */
function answered(given, request) {
  let response = given;
  if (request.method === "HEAD" && given.body !== null) {
    given.body.cancel().catch(() => {});
    response = new Response(null, given);
  }
  return responseCameFrom(response, withoutFragment(request.url), false);
}

/** The answer to a request that was copied, not sent as bytes; null: it cannot be. */
function exchangeLocally(target, request) {
  const copy = target.isHere() ? requestCopy(request) : null;
  if (copy === null) return null;
  const { promise, resolve, reject } = Promise.withResolvers();
  const settle = (outcome, response, bytes, faults, message) => {
    if (outcome === Outcome.FAILED) reject(remoteError(bytes, faults, message));
    else if (bytes === undefined) resolve(answered(response, request));
    else settleWith(bytes, request, resolve, reject);
  };
  return target.send(CallKind.FETCH, "", copy, settle) ? promise : null;
}

function settleWith(bytes, request, resolve, reject) {
  try {
    resolve(answered(decodeResponse(deserialize(bytes, CARRIED_ANSWER)), request));
  } catch (error) {
    reject(error);
  }
}

const WHOLE_MAX = 16 * 1024 * 1024; // as in include/cairn.h

/** The parts of a request whose body is all there, for an object in C; null: its body is a stream. */
function encodeWhole(request) {
  const { state } = requestParts(request);
  const { source } = state;
  if (state.stream !== null || state.used) return null;
  let body = null;
  if (typeof source === "string") body = native.utf8Encode(source);
  else if (source instanceof Uint8Array) body = source;
  else if (source !== null) return null;
  const { method, redirect } = request;
  const url = withoutFragment(request.url);
  const headers = [...request.headers];
  if (body !== null) {
    if (body.length > WHOLE_MAX) return null;
    if (!request.headers.has("content-length")) headers.push(["content-length", `${body.length}`]);
    state.used = true;
  }
  return { url, method, headers, redirect, body };
}

/** The parts of a request to an object in C. Whether it was aborted is told by its streams: they end. */
const encodeCompiled = (request) => encodeWhole(request) ?? { ...encodeRequest(request), signal: undefined };

/** All bytes of a body, or null. */
async function wholeBody(body) {
  if (body === null) return null;
  const chunks = [];
  let size = 0;
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > WHOLE_MAX) {
      const error = new RangeError("The body of a request to code in C is limited to 16 MiB.");
      reader.cancel(error).catch(() => {});
      throw error;
    }
    chunks.push(value);
  }
  return concat(chunks, size);
}

/** To a worker in C: it reads values, not streams. */
async function exchangeWhole(send, request) {
  const signal = requestSignal(request);
  const parts = encodeRequest(request);
  parts.signal = undefined;
  parts.body = await wholeBody(parts.body);
  signal?.throwIfAborted();
  const { bytes } = serializeArguments(parts);
  return new Promise((resolve, reject) => {
    if (signal !== null) whenAborted(signal, reject);
    send(bytes, gated((outcome, result, faults, message) => {
      if (signal !== null) forgetAborted(signal, reject);
      if (outcome === Outcome.FAILED) reject(remoteError(result, faults, message));
      else settleWith(result, request, resolve, reject);
    }));
  });
}

/** Why a call was given up: what nobody waits for any more may be asked again. */
function givenUp(reason) {
  if (!(reason instanceof DOMException) || (reason.name !== "AbortError" && reason.name !== "TimeoutError")) return reason;
  return Object.assign(new DOMException(reason.message, reason.name), { retryable: true });
}

function exchange(send, request, target) {
  if (target === null && send.isCompiled?.() === true) return exchangeWhole(send, request);
  const compiled = target !== null && target.isCompiled();
  const answer = target === null || compiled ? null : exchangeLocally(target, request);
  if (answer !== null) return answer;
  const signal = requestSignal(request);
  if (signal?.aborted) throw givenUp(signal.reason);
  const { bytes, context } = serializeArguments(compiled ? encodeCompiled(request) : encodeRequest(request));
  return new Promise((resolve, reject) => {
    // Whoever answers is told first, in the turns that follow this one.
    const onAbort = (reason) => setTimeout(() => {
      context.takeBack();
      if (compiled) context.abort(reason); // it was sent no signal
      reject(givenUp(reason));
    }, 0);
    if (signal !== null) whenAborted(signal, onAbort);
    send(bytes, gated((outcome, result, faults, message) => {
      if (signal !== null) forgetAborted(signal, onAbort);
      context.takeBack();
      if (outcome === Outcome.FAILED) reject(remoteError(result, faults, message));
      else settleWith(result, request, resolve, reject);
    }));
  });
}
