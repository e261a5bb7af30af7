// What C calls for objects and for events that do not come by HTTP: object/part.js, evaluated when it is first needed.
import { setWebSocketFetch } from "../web/fetch/fetch.js";
import objects from "part:./object/part.js";

setWebSocketFetch((parts) => objects().webSocketFetch(parts));

let classes = null; // [exports, env] of the script, until the part has them

/** The script has started. */
export function setClasses(exports, env) {
  classes = [exports, env];
}

export function objectCreate(object, className, hex, name) {
  if (classes !== null) objects().setClasses(classes[0], classes[1]);
  classes = null;
  return objects().objectCreate(object, className, hex, name);
}
export const objectDestroy = (object, evicted) => objects().objectDestroy(object, evicted);
export const objectSocket = (object, call, w, kind, a, b, c) => objects().objectSocket(object, call, w, kind, a, b, c);
export const objectDeliver = (object, call, kind, method, payload) => objects().objectDeliver(object, call, kind, method, payload);
export const localReply = (slot, outcome, bytes, faults, message) => objects().localReply(slot, outcome, bytes, faults, message);
export const dispatchEvent = (handle, kind, entrypoint, method, props, bytes) => objects().dispatchEvent(handle, kind, entrypoint, method, props, bytes);
/** Nothing has happened for a while: names that nobody has used go. */
export const quiet = () => objects.loaded()?.quiet();
