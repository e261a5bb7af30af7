// The WebSockets of an object: the methods of ctx, and events on their way to its class.
import { SocketEvent } from "../../../src/bindings/border.ts";
import { currentTrace, promiseOf } from "../../internal/turn.js";
import { native } from "../../internal/native.js";
import { describeError } from "../../internal/report.js";
import { isWebSocket } from "../../internal/websocket-brand.js";
import trace from "part:../../internal/trace.js";
import {
  WebSocketRequestResponsePair, autoReplies, checkRequestResponsePair, hibernate, hibernated, isHibernatable, receive, setKeepInObject,
  socketNumber,
} from "./websocket.js";

const TAGS_MAX = 10; // DO-WS-2
const TAG_LENGTH_MAX = 256;
const TIMEOUT_MS_MAX = 604_800_000; // DO-WS-6

/** Of each live object, its WebSocket objects by number; host.js makes and drops them. */
let socketsOf = () => null;
export function setSocketsOf(find) {
  socketsOf = find;
}

setKeepInObject((object, w, socket) => socketsOf(object).set(w, socket));

/** The WebSocket object of a number: the same one as long as the object is in memory. */
function socketOf(sockets, w) {
  let socket = sockets.get(w);
  if (socket === undefined) sockets.set(w, (socket = hibernated(w)));
  return socket;
}

function checkTags(tags) {
  if (tags === undefined) return [];
  const distinct = [...new Set([...tags].map(String))];
  if (distinct.length > TAGS_MAX) throw new Error(`a Hibernatable WebSocket cannot have more than ${TAGS_MAX} tags`);
  for (const tag of distinct) {
    if (tag.length > TAG_LENGTH_MAX) throw new Error(`"${tag}" is longer than the max tag length (${TAG_LENGTH_MAX} characters).`);
  }
  return distinct;
}

function checkSocket(method, socket) {
  if (!isWebSocket(socket)) throw new TypeError(`Failed to execute '${method}' on 'DurableObjectState': parameter 1 is not of type 'WebSocket'.`);
}

/** Adds the methods to the prototype of DurableObjectState; `objectOf(state)` gives the object's number. */
export function installSockets(prototype, objectOf) {
  const methods = {
    acceptWebSocket(ws, tags = undefined) {
      const object = objectOf(this);
      checkSocket("acceptWebSocket", ws);
      const checked = checkTags(tags);
      const w = hibernate(ws);
      socketsOf(object).set(w, ws);
      native.socketAccept(object, w, checked, autoReplies);
    },
    getWebSockets(tag = undefined) {
      const object = objectOf(this);
      const sockets = socketsOf(object);
      const found = native.socketList(object, tag === undefined ? undefined : String(tag));
      for (let i = 0; i < found.length; i++) found[i] = socketOf(sockets, found[i]);
      return found;
    },
    getTags(ws) {
      checkSocket("getTags", ws);
      const tags = native.socketTags(objectOf(this), socketNumber(ws));
      if (tags === null) throw new Error("you must call 'acceptWebSocket()' before attempting to access the tags of a WebSocket.");
      return tags;
    },
    setWebSocketAutoResponse(pair = undefined) {
      native.socketAutoResponse(objectOf(this), pair === undefined || pair === null ? null : checkRequestResponsePair(pair));
    },
    getWebSocketAutoResponse() {
      const pair = native.socketGetAutoResponse(objectOf(this));
      return pair === null ? null : new WebSocketRequestResponsePair(pair[0], pair[1]);
    },
    getWebSocketAutoResponseTimestamp(ws) {
      checkSocket("getWebSocketAutoResponseTimestamp", ws);
      const time = native.socketAutoResponseTime(objectOf(this), socketNumber(ws));
      return time > 0 ? new Date(time) : null;
    },
    setHibernatableWebSocketEventTimeout(timeout = undefined) {
      const milliseconds = timeout === undefined || timeout === null ? 0 : Math.trunc(+timeout);
      if (!(milliseconds >= 0 && milliseconds <= TIMEOUT_MS_MAX)) {
        throw new Error(`Event timeout should not exceed ${TIMEOUT_MS_MAX} ms.`);
      }
      native.socketEventTimeout(objectOf(this), milliseconds);
    },
    getHibernatableWebSocketEventTimeout() {
      const timeout = native.socketEventTimeout(objectOf(this), undefined);
      return timeout === 0 ? null : timeout;
    },
  };
  for (const key of Object.keys(methods)) Object.defineProperty(prototype, key, { value: methods[key], writable: true, configurable: true });
}

const HANDLERS = ["webSocketMessage", "webSocketClose", "webSocketError"];

function over(sockets, call, w, kind) {
  if (kind === SocketEvent.CLOSE) sockets.delete(w);
  native.callReply(call, undefined);
}

/** An event for the object whose instance and sockets these are. Answers with callReply(). */
function noteEvent(kind, code, wasClean) {
  if (kind === SocketEvent.CLOSE) trace().noteSocket("close", code, wasClean);
  else trace().noteSocket(kind === SocketEvent.ERROR ? "error" : "message");
}

export function deliverSocket(instance, sockets, call, w, kind, a, b, c) {
  const socket = socketOf(sockets, w);
  if (!isHibernatable(socket)) {
    receive(socket, kind, a, b, c);
    over(sockets, call, w, kind);
    return;
  }
  const name = HANDLERS[kind];
  if (currentTrace() !== 0) noteEvent(kind, a, c);
  const failed = (error) => {
    // The socket stays open, whatever a handler throws.
    if (currentTrace() !== 0) trace().noteFailure(error);
    native.log(4, `${name}() threw: ${describeError(error)}`);
    over(sockets, call, w, kind);
  };
  let result;
  try {
    if (typeof instance[name] === "function") {
      result = kind === SocketEvent.CLOSE ? instance.webSocketClose(socket, a, b, c) : instance[name](socket, kind === SocketEvent.ERROR ? new Error(a) : a);
    }
  } catch (error) {
    failed(error);
    return;
  }
  if ((typeof result === "object" && result !== null) || typeof result === "function") promiseOf(result).then(() => over(sockets, call, w, kind), failed);
  else over(sockets, call, w, kind);
}
