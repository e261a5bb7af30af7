// What the serializer knows of other classes: tag -> handler, and prototype -> handler. See
// registerHostObject() in serialize.js.
import { DOMException } from "../web/dom-exception.js";

export const HOST_FIRST = 0x20;
export const HOST_LAST = 0x3f;
export const handlersByTag = [];
export const handlersByPrototype = new Map();

export function dataCloneError(message) {
  return new DOMException(message, "DataCloneError");
}
