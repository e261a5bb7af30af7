// What util.inspect() shows of the platform's own objects: attributes of their interfaces, in the
// order in which the platform has them, then what only inspection knows (in brackets).
import { isInterfacePrototype } from "./interface.js";
import { compatibilityFlags } from "./native.js";
import { headersAreImmutable, isHeaders } from "../web/fetch/headers.js";
import streams from "part:../web/streams/part.js";

const EVENT = [
  "type", "eventPhase", "composed", "bubbles", "cancelable", "defaultPrevented", "returnValue", "currentTarget", "target",
  "srcElement", "timeStamp", "isTrusted", "cancelBubble", "NONE", "CAPTURING_PHASE", "AT_TARGET", "BUBBLING_PHASE",
];

/** Attributes by interface; of one that is not here all that are no functions, as they come. */
const ATTRIBUTES = {
  __proto__: null,
  AbortSignal: ["aborted", "reason", "onabort"],
  Blob: ["size", "type"],
  CloseEvent: ["wasClean", "reason", "code", ...EVENT],
  ErrorEvent: ["filename", "message", "lineno", "colno", "error", ...EVENT],
  Event: EVENT,
  File: ["name", "lastModified", "size", "type"],
  FormData: [],
  Headers: [],
  MessageEvent: ["ports", "source", "lastEventId", "origin", "data", ...EVENT],
  ReadableStream: ["locked"],
  Request: [
    "method", "url", "headers", "redirect", "fetcher", "signal", "cf", "integrity", "keepalive",
    ...(compatibilityFlags.has("cache_option_enabled") ? ["cache"] : []), "body", "bodyUsed",
  ],
  Response: ["status", "statusText", "headers", "ok", "redirected", "url", "webSocket", "cf", "type", "body", "bodyUsed"],
  URL: [
    "origin", "href", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash", "searchParams",
  ],
  URLSearchParams: [],
  WebSocket: ["readyState", "url", "protocol", "extensions", "binaryType"],
  WritableStream: ["locked"],
};

const WITH_ENTRIES = new Set(["FormData", "Headers", "URLSearchParams"]);

function interfaceOf(value) {
  for (let p = Object.getPrototypeOf(value); p !== null && p !== Object.prototype; p = Object.getPrototypeOf(p)) {
    if (isInterfacePrototype(p)) return p;
  }
  return null;
}

function attributeNames(value, face) {
  const known = ATTRIBUTES[face[Symbol.toStringTag]];
  if (known !== undefined) return known;
  const names = [];
  for (let p = face; p !== null && p !== Object.prototype; p = Object.getPrototypeOf(p)) {
    for (const name of Object.getOwnPropertyNames(p)) if (name !== "constructor" && !names.includes(name)) names.push(name);
  }
  return names;
}

function hiddenParts(value) {
  if (isHeaders(value)) return { immutable: headersAreImmutable(value) };
  return streams.loaded()?.streamState(value) ?? {};
}

/** {name, entries, shown, hidden}, or null if it is none of the platform's objects; entries only of what lists them. */
export function platformParts(value) {
  const face = interfaceOf(value);
  if (face === null || value instanceof Error) return null;
  const shown = {};
  for (const key of Object.getOwnPropertyNames(value)) {
    const own = Object.getOwnPropertyDescriptor(value, key);
    if (own !== undefined && own.enumerable && "value" in own && typeof own.value !== "function") shown[key] = own.value;
  }
  for (const name of attributeNames(value, face)) {
    let attribute;
    try {
      attribute = value[name];
    } catch {
      continue;
    }
    if (typeof attribute !== "function") shown[name] = attribute;
  }
  const tag = face[Symbol.toStringTag];
  const { constructor } = value;
  const name = typeof constructor === "function" && typeof constructor.name === "string" && constructor.name !== "" ? constructor.name : tag;
  const entries = WITH_ENTRIES.has(tag) ? [...face.entries.call(value)] : null;
  return { name: isInterfacePrototype(constructor?.prototype) ? tag : name, entries, shown, hidden: hiddenParts(value) };
}
