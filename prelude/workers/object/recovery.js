// Point-in-time recovery: bookmarks, restores at the next start, snapshots for other objects.
/* global DOMException */
import { gated } from "../../internal/turn.js";
import { native } from "../../internal/native.js";
import { finishInterface } from "../../internal/interface.js";
import { toTime } from "../../internal/webidl.js";
import { registerHostObject } from "../../internal/serialize.js";

const token = Symbol("construct");

/** Asks C, which answers (bookmark) or (undefined, failure) in a later turn. */
const asked = (ask) => new Promise((resolve, reject) => {
  ask(gated((bookmark, failure) => (failure === undefined ? resolve(bookmark) : reject(new Error(failure)))));
});

export const currentBookmark = (object) => asked((done) => native.bookmarkNow(object, done));

export const bookmarkForTime = (object, when) => asked((done) => {
  native.bookmarkAt(object, toTime(when, "getBookmarkForTime", "DurableObjectStorage"), done);
});

/** Resolves with the bookmark that will undo the restore. */
export const restoreNext = (object, bookmark, source) => asked((done) => {
  if (typeof bookmark !== "string") throw new TypeError("onNextSessionRestoreBookmark() needs a bookmark, which is a string.");
  native.restoreNext(object, bookmark, source, done);
});

let partsOf;
/** An object's storage at one moment. It can be sent by RPC; it can be neither stored nor looked into. */
class DurableObjectSnapshot {
  #source; // address of the object
  #bookmark;
  constructor(key, source, bookmark) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#source = source;
    this.#bookmark = bookmark;
  }
  static {
    partsOf = (value) => (typeof value === "object" && value !== null && #source in value ? [value.#source, value.#bookmark] : undefined);
  }
}
finishInterface(DurableObjectSnapshot);

registerHostObject({
  tag: 0x3e,
  prototype: DurableObjectSnapshot.prototype,
  write(snapshot, writer, context) {
    // Only a call has references: what is stored would outlive the moment it stands for.
    if (typeof context?.reference !== "function") {
      throw new DOMException('Could not serialize object of type "DurableObjectSnapshot". It can only be sent by RPC.', "DataCloneError");
    }
    writer.value(partsOf(snapshot));
  },
  read(reader, context) {
    if (context?.carries !== true) throw new DOMException("A DurableObjectSnapshot cannot be deserialized in this context.", "DataCloneError");
    return new DurableObjectSnapshot(token, ...reader.value());
  },
});

export async function takeSnapshot(object, bookmark) {
  if (bookmark !== undefined && typeof bookmark !== "string") throw new TypeError("snapshot() takes a bookmark, which is a string.");
  return new DurableObjectSnapshot(token, native.objectAddress(object), bookmark ?? (await currentBookmark(object)));
}

export async function restoreSnapshot(object, snapshot) {
  const parts = partsOf(snapshot);
  if (parts === undefined) throw new TypeError("onNextSessionRestore() needs a DurableObjectSnapshot, as ctx.storage.snapshot() makes them.");
  const [source, bookmark] = parts;
  return restoreNext(object, bookmark, source);
}
