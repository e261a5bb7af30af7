// WebSocket, WebSocketPair and WebSocketRequestResponsePair, and outgoing WebSockets.
//
// A WebSocket object is a handle of an end in C (src/worker/websocket.h), named by a number. What
// happens to an end: it is accepted by a script or by an object (then events come here), accepted
// for hibernation (then events go to methods of the object, and this object may be collected and
// made anew), or used in a Response (then it belongs to whoever gets that).
import { Sent, SocketEvent } from "../../../src/bindings/border.ts";
import { needsEvent } from "../../internal/startup.js";
import { currentObject, gated, outputGate, takeSubrequest } from "../../internal/turn.js";
import { compatibilityFlags, native } from "../../internal/native.js";
import { defineConstants, finishInterface } from "../../internal/interface.js";
import { deserialize, serialize } from "../../internal/serialize.js";
import { illegalInvocation, isObject, toUSVString } from "../../internal/webidl.js";
import { setWebSocketCheck } from "../../internal/websocket-brand.js";
import { Blob, blobBytes, isBlob } from "../../web/blob.js";
import { DOMException } from "../../web/dom-exception.js";
import { CloseEvent, ErrorEvent, Event, EventTarget, defineHandlers, fire, platformMessage } from "../../web/events.js";
import { headersLists, listGet, splitHeaderLines } from "../../web/fetch/headers.js";
import { makeResponse } from "../../web/fetch/response.js";
import { URL } from "../../web/url/url.js";

const CONNECTING = 0, OPEN = 1, CLOSING = 2, CLOSED = 3;
/** readyState by native.wsState(). */
const STATES = [OPEN, OPEN, CLOSING, CLOSING, CLOSED];
const NO_STATUS = 1005;
const REASON_BYTES_MAX = 123;
const ATTACHMENT_BYTES_MAX = 16_384; // DO-WS-4

const autoReplies = compatibilityFlags.has("web_socket_auto_reply_to_close");
const reasonIsLimited = compatibilityFlags.has("websocket_close_reason_byte_limit");
const defaultBinaryType = compatibilityFlags.has("websocket_standard_binary_type") ? "blob" : "arraybuffer";

/** What becomes of an end. */
const STAGE = { NEW: 0, CONNECTING: 1, ACCEPTED: 2, HIBERNATABLE: 3, USED: 4, FAILED: 5 };

const abandoned = new FinalizationRegistry((w) => native.wsAbandon(w));
/** The text that was sent last, if C has kept its bytes: a room's sockets are usually sent the same one. */
let lastText = null;

const INTERNAL = Symbol("internal");
let make;
let stateOf;
let receive;

class State {
  constructor(w, stage) {
    this.w = w;
    this.stage = stage;
    this.url = null;
    this.binaryType = defaultBinaryType;
    this.halfOpen = !autoReplies;
    this.protocol = undefined; // not asked for yet
    this.extensions = "";
  }
}

/** Subprotocols: https://websockets.spec.whatwg.org/#dom-websocket-websocket */
function checkProtocols(protocols) {
  const list = protocols === undefined ? [] : typeof protocols === "string" ? [protocols] : [...protocols].map(String);
  const seen = new Set();
  for (const protocol of list) {
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(protocol) || seen.has(protocol.toLowerCase())) {
      throw new DOMException("The protocol header token is invalid.", "SyntaxError");
    }
    seen.add(protocol.toLowerCase());
  }
  return list;
}

/** @returns {[code: number, reason: string]} */
function checkClose(code, reason) {
  const number = code === undefined ? NO_STATUS : Math.trunc(+code);
  const isAllowed = number >= 1000 && number < 5000 && ![1004, 1005, 1006, 1015].includes(number);
  if (code !== undefined && !isAllowed) throw new DOMException(`Invalid WebSocket close code: ${number}.`, "InvalidAccessError");
  let text = reason === undefined ? "" : toUSVString(reason);
  if (text.length * 3 > REASON_BYTES_MAX && native.utf8Encode(text).length > REASON_BYTES_MAX) {
    if (reasonIsLimited) throw new DOMException(`WebSocket close reason must not be longer than ${REASON_BYTES_MAX} bytes when UTF-8 encoded.`, "SyntaxError");
    // A frame has no room for more; older scripts were not told.
    while (native.utf8Encode(text).length > REASON_BYTES_MAX) text = [...text].slice(0, -1).join("");
  }
  if (code === undefined && reason !== undefined) throw new DOMException("If you specify a WebSocket close reason, you must also specify a code.", "InvalidAccessError");
  return [number, text];
}

export class WebSocket extends EventTarget {
  #s;

  constructor(url, protocols = undefined) {
    super();
    if (url === INTERNAL) {
      this.#s = protocols;
      return;
    }
    if (arguments.length === 0) throw new TypeError("Failed to construct 'WebSocket': constructor parameter 1 is not of type 'string'.");
    const parsed = URL.parse(url);
    if (parsed === null) throw new DOMException("The url is invalid.", "SyntaxError");
    if (parsed.protocol === "http:") parsed.protocol = "ws:";
    else if (parsed.protocol === "https:") parsed.protocol = "wss:";
    if (parsed.protocol !== "ws:" && parsed.protocol !== "wss:") throw new DOMException("The url scheme must be ws or wss.", "SyntaxError");
    if (parsed.href.includes("#")) throw new DOMException("The url fragment must be empty.", "SyntaxError");
    const offered = checkProtocols(protocols);
    const state = new State(0, STAGE.CONNECTING);
    state.url = parsed.href;
    this.#s = state;
    connectInto(this, state, parsed, offered);
  }

  static {
    setWebSocketCheck((value) => isObject(value) && #s in value);
    make = (state) => {
      const socket = new WebSocket(INTERNAL, state);
      if (state.stage === STAGE.NEW) abandoned.register(socket, state.w, state);
      return socket;
    };
    stateOf = (value) => {
      if (!(isObject(value) && #s in value)) throw illegalInvocation();
      return value.#s;
    };
    /** An event of an accepted socket. */
    receive = (socket, kind, a, b, c) => {
      const state = socket.#s;
      if (kind === SocketEvent.MESSAGE) {
        const data = typeof a === "string" || state.binaryType !== "blob" ? a : new Blob([a]);
        fire(socket, platformMessage(data, null));
      } else if (kind === SocketEvent.CLOSE) {
        if (!state.halfOpen) native.wsClose(state.w, a, b);
        fire(socket, new CloseEvent("close", { code: a, reason: b, wasClean: c }));
      } else {
        fire(socket, new ErrorEvent("error", { message: a, error: new Error(a) }));
      }
    };
  }

  accept(options = undefined) {
    const state = stateOf(this);
    if (state.stage === STAGE.USED) throw new TypeError("Can't accept() WebSocket that was already used in a response.");
    if (state.stage === STAGE.HIBERNATABLE) throw new TypeError("Can't accept() WebSocket after enabling hibernation.");
    if (state.stage !== STAGE.NEW) return;
    if (options?.allowHalfOpen !== undefined) state.halfOpen = !!options.allowHalfOpen;
    begin(this, state);
  }

  send(message) {
    const state = stateOf(this);
    if (arguments.length === 0) throw new TypeError("Failed to execute 'send' on 'WebSocket': parameter 1 is not of type 'ArrayBuffer or ArrayBufferView or string'.");
    const isBytes = message instanceof ArrayBuffer || ArrayBuffer.isView(message);
    const text = isBytes || isBlob(message) ? null : typeof message === "string" ? message : `${message}`;
    if (state.stage !== STAGE.HIBERNATABLE && state.stage !== STAGE.ACCEPTED) throw notOpen(state, "sending messages");
    let result;
    if (isBytes) {
      result = native.wsSend(state.w, message, false);
    } else if (text === null) {
      result = native.wsSend(state.w, blobBytes(message), false);
    } else {
      result = native.wsSend(state.w, text, text === lastText);
      lastText = result === Sent.KEPT ? text : null;
    }
    if (result === Sent.CLOSED) throw new TypeError("Can't call WebSocket send() after close().");
  }

  close(code = undefined, reason = undefined) {
    const state = stateOf(this);
    const [number, text] = checkClose(code, reason);
    if (state.stage === STAGE.CONNECTING || state.stage === STAGE.FAILED) {
      state.stage = STAGE.FAILED;
      return;
    }
    if (state.stage !== STAGE.HIBERNATABLE && state.stage !== STAGE.ACCEPTED) throw notOpen(state, "closing it");
    native.wsClose(state.w, number, text);
  }

  /** Keeps a copy of `value` with the connection, also while its object is not in memory. */
  serializeAttachment(value) {
    const state = stateOf(this);
    const bytes = serialize(value);
    if (bytes.length > ATTACHMENT_BYTES_MAX) {
      throw new Error(`A WebSocket 'attachment' cannot be larger than ${ATTACHMENT_BYTES_MAX} bytes.'attachment' was ${bytes.length} bytes.`);
    }
    native.wsAttach(state.w, bytes);
  }

  deserializeAttachment() {
    const bytes = native.wsAttachment(stateOf(this).w);
    return bytes === null ? null : deserialize(bytes);
  }

  get readyState() {
    const state = stateOf(this);
    if (state.stage === STAGE.CONNECTING) return CONNECTING;
    if (state.stage === STAGE.FAILED) return CLOSED;
    if (state.stage === STAGE.USED) return OPEN;
    return STATES[native.wsState(state.w)];
  }
  get url() {
    return stateOf(this).url;
  }
  get protocol() {
    return details(stateOf(this)).protocol;
  }
  get extensions() {
    return details(stateOf(this)).extensions;
  }
  get binaryType() {
    return stateOf(this).binaryType;
  }
  set binaryType(value) {
    const type = `${value}`;
    if (type === "blob" || type === "arraybuffer") stateOf(this).binaryType = type;
  }
}
defineHandlers(WebSocket.prototype, ["open", "message", "close", "error"]);
finishInterface(WebSocket, "WebSocket");
defineConstants(WebSocket, {
  CONNECTING, OPEN, CLOSING, CLOSED,
  READY_STATE_CONNECTING: CONNECTING, READY_STATE_OPEN: OPEN, READY_STATE_CLOSING: CLOSING, READY_STATE_CLOSED: CLOSED,
});

function notOpen(state, what) {
  if (state.stage === STAGE.CONNECTING) return new DOMException("The WebSocket is not open yet.", "InvalidStateError");
  if (state.stage === STAGE.FAILED) return new TypeError("Can't call WebSocket send() after close().");
  if (state.stage === STAGE.USED) return new TypeError(`The WebSocket was used in a response: it is the other end that is for ${what}.`);
  return new TypeError(`You must call one of accept() or state.acceptWebSocket() on this WebSocket before ${what}.`);
}

/** What the handshake has agreed on; it may not be known before the Response has gone out. */
function details(state) {
  if (state.stage === STAGE.NEW || state.stage === STAGE.USED || state.stage === STAGE.CONNECTING) return { protocol: "", extensions: "" };
  if (state.protocol === undefined || state.protocol === "") {
    const [protocol, deflates] = native.wsProtocol(state.w);
    state.protocol = protocol ?? "";
    state.extensions = deflates ? "permessage-deflate" : "";
  }
  return state;
}

let keepInObject = null; // object/sockets.js sets it: (object, w, socket)
export function setKeepInObject(function_) {
  keepInObject = function_;
}

/** Events come from now on. */
function begin(socket, state) {
  abandoned.unregister(state);
  state.stage = STAGE.ACCEPTED;
  const object = currentObject();
  if (object !== 0) keepInObject(object, state.w, socket);
  native.wsAccept(state.w, object === 0 ? (kind, a, b, c) => receive(socket, kind, a, b, c) : undefined);
}

export { receive };

export class WebSocketPair {
  constructor() {
    const [a, b] = native.wsPair();
    this[0] = make(new State(a, STAGE.NEW));
    this[1] = make(new State(b, STAGE.NEW));
  }
  *[Symbol.iterator]() {
    yield this[0];
    yield this[1];
  }
}
finishInterface(WebSocketPair);

const PAIR_LENGTH_MAX = 2048; // DO-WS-5
export class WebSocketRequestResponsePair {
  #request;
  #response;
  constructor(request, response) {
    if (arguments.length < 2) throw new TypeError(`Failed to construct 'WebSocketRequestResponsePair': constructor parameter ${arguments.length + 1} is not of type 'string'.`);
    this.#request = toUSVString(request);
    this.#response = toUSVString(response);
  }
  get request() {
    return this.#request;
  }
  get response() {
    return this.#response;
  }
  static check(pair) {
    if (!(isObject(pair) && #request in pair)) {
      throw new TypeError("Failed to execute 'setWebSocketAutoResponse' on 'DurableObjectState': parameter 1 is not of type 'WebSocketRequestResponsePair'.");
    }
    for (const [name, text] of [["Request", pair.#request], ["Response", pair.#response]]) {
      if (native.utf8Encode(text).length > PAIR_LENGTH_MAX) {
        throw new RangeError(`${name} cannot be larger than ${PAIR_LENGTH_MAX} bytes. A ${name.toLowerCase()} of size ${native.utf8Encode(text).length} was provided.`);
      }
    }
    return [pair.#request, pair.#response];
  }
}
export const checkRequestResponsePair = WebSocketRequestResponsePair.check;
delete WebSocketRequestResponsePair.check;
finishInterface(WebSocketRequestResponsePair);

// --- for others of the prelude --------------------------------------------------------------------

/** A Response is about to leave: the number of its WebSocket's end, which is used up by it. */
export function useInResponse(socket) {
  const state = stateOf(socket);
  if (state.stage === STAGE.USED) throw new TypeError("Can't return WebSocket that was already used in a response.");
  if (state.stage !== STAGE.NEW) throw new TypeError("Can't return WebSocket in a Response after calling accept().");
  abandoned.unregister(state);
  state.stage = STAGE.USED;
  return state.w;
}

/** The address under which the receiver of a Response finds its WebSocket, or null. */
export function sendSocket(socket) {
  return socket === null || socket === undefined ? null : native.wsTransit(useInResponse(socket));
}

export function receiveSocket(address) {
  const w = native.wsClaim(address);
  if (w === 0) throw new Error("The WebSocket of the response is gone.");
  return make(new State(w, STAGE.NEW));
}

/** ctx.acceptWebSocket(): checks and marks the socket; returns its number. */
export function hibernate(socket) {
  const state = stateOf(socket);
  if (state.stage === STAGE.USED) throw new TypeError("Tried to hibernate a WebSocket that was already used in a response.");
  if (state.stage !== STAGE.NEW) throw new Error("Cannot call `acceptWebSocket()` if the WebSocket was already accepted via `accept()`");
  abandoned.unregister(state);
  state.stage = STAGE.HIBERNATABLE;
  return state.w;
}

/** The object for an end that was accepted for hibernation, perhaps long ago. */
export const hibernated = (w) => make(new State(w, STAGE.HIBERNATABLE));
export const isHibernatable = (socket) => stateOf(socket).stage === STAGE.HIBERNATABLE;
export const socketNumber = (socket) => stateOf(socket).w;
export { autoReplies };

// --- outgoing ----------------------------------------------------------------------------------------

/** Headers that the handshake sets itself. */
const HANDSHAKE = new Set([
  "host", "connection", "upgrade", "content-length", "transfer-encoding", "keep-alive",
  "sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", "sec-websocket-accept",
]);

/** Connects; resolves { status, names, values, w, body }. */
async function connect(url, headers, secure) {
  // DO-TX-5: what an object sends out waits until what it has written is durable.
  const gate = outputGate();
  if (gate !== undefined) await gate;
  return new Promise((resolve, reject) => {
    const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
    takeSubrequest();
    native.wsConnect(url.hostname, port, secure, url.host, url.pathname + url.search, headers, true, gated((result) => {
      if (typeof result === "string") reject(new TypeError(`WebSocket connection failed: ${result}`));
      else resolve({ status: result[0], ...splitHeaderLines(result[1]), w: result[2], body: result[3] });
    }));
  });
}

function connectInto(socket, state, url, protocols) {
  needsEvent();
  const fail = (message) => {
    state.stage = STAGE.FAILED;
    fire(socket, new ErrorEvent("error", { message, error: new Error(message) }));
    fire(socket, new CloseEvent("close", { code: 1006, reason: "", wasClean: false }));
  };
  const headers = protocols.length > 0 ? `Sec-WebSocket-Protocol: ${protocols.join(", ")}\r\n` : "";
  connect(url, headers, url.protocol === "wss:").then(
    ({ status, names, values, w }) => {
      if (w === 0) return fail(`WebSocket connection failed: the server answered ${status}.`);
      const chosen = listGet(names, values, "sec-websocket-protocol");
      if (state.stage === STAGE.FAILED || (chosen !== null && !protocols.includes(chosen))) {
        native.wsAbandon(w);
        return fail(state.stage === STAGE.FAILED ? "WebSocket is closed before the connection is established." : "The server chose a protocol that was not offered.");
      }
      state.w = w;
      begin(socket, state);
      fire(socket, new Event("open"));
      return undefined;
    },
    (error) => fail(error.message),
  );
}

/** fetch() of a request that asks for a WebSocket. */
export async function webSocketFetch(parts) {
  parts.signal?.throwIfAborted();
  const url = new URL(parts.url);
  const secure = url.protocol === "https:" || url.protocol === "wss:";
  if (!secure && url.protocol !== "http:" && url.protocol !== "ws:") throw new TypeError(`Fetch API cannot load: ${parts.url}`);
  const { names, values } = headersLists(parts.headers);
  let block = "";
  for (let i = 0; i < names.length; i++) if (!HANDSHAKE.has(names[i])) block += `${names[i]}: ${values[i]}\r\n`;
  const answer = await connect(url, block, secure);
  const response = { status: answer.status, names: answer.names, values: answer.values, url: parts.url, immutable: true };
  if (answer.w === 0) return makeResponse({ ...response, source: answer.body });
  return makeResponse({ ...response, webSocket: make(new State(answer.w, STAGE.NEW)) });
}
