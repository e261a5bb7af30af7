// structuredClone(): https://html.spec.whatwg.org/#dom-structuredclone
//
// A clone is what the serializer makes and reads back, except that long strings, copies of large
// buffers and transferred objects go beside the bytes.
import { deserialize, registerHostObject, serialize } from "../internal/serialize.js";
import { dataCloneError } from "../internal/serialize-hosts.js";
import { parameterError } from "../internal/webidl.js";

const TRANSFERRED = 0x20;

/**
 * How objects of other classes are transferred: prototype -> function (object) that detaches it and
 * returns the object that the receiver gets. Streams and message ports add themselves.
 */
const transferables = new Map();
export function registerTransferable(prototype, transfer) {
  transferables.set(prototype, transfer);
}

function transferOf(object) {
  if (object instanceof ArrayBuffer) {
    return (buffer) => (buffer.resizable ? buffer.transfer() : buffer.transferToFixedLength());
  }
  for (let p = Object(object) === object ? Object.getPrototypeOf(object) : null; p !== null; p = Object.getPrototypeOf(p)) {
    const transfer = transferables.get(p);
    if (transfer !== undefined) return transfer;
  }
  if (ArrayBuffer.isView(object) || isShared(object)) throw dataCloneError("Object is not transferable");
  throw new TypeError("Object is not transferable");
}

/** The copy of an object that is cloned as a whole, or undefined; request.js sets it. */
let copyOf = () => undefined;
export function setCopyOf(copy) {
  copyOf = copy;
}

/** Memory that is shared stays shared: the clone refers to the same. */
const isShared = (object) => typeof SharedArrayBuffer === "function" && object instanceof SharedArrayBuffer;

/** A value's clone, with the objects of `transfer` moved instead of copied. */
export function cloneWithTransfer(value, transfer) {
  const moves = new Map();
  for (const object of transfer) {
    if (object instanceof ArrayBuffer && object.detached) {
      throw dataCloneError("An ArrayBuffer is detached and could not be cloned.");
    }
    moves.set(object, transferOf(object));
  }
  const externals = [];
  const indexes = new Map(); // transferred object -> where its successor will be in externals
  const write = (object, writer) => {
    if (!moves.has(object)) {
      const copy = isShared(object) ? object : copyOf(object);
      if (copy === undefined) return false;
      writer.byte(TRANSFERRED);
      writer.external(copy);
      return true;
    }
    if (!indexes.has(object)) indexes.set(object, externals.push(undefined) - 1);
    writer.byte(TRANSFERRED);
    writer.uint(indexes.get(object));
    return true;
  };
  const bytes = serialize(value, { externals, writeSpecial: write, writeTransferred: write });
  // Nothing is detached unless everything could be cloned.
  for (const [object, move] of moves) {
    const successor = move(object);
    if (indexes.has(object)) externals[indexes.get(object)] = successor;
  }
  return deserialize(bytes, { externals });
}

registerHostObject({
  tag: TRANSFERRED,
  write() {
    throw dataCloneError("A transferred object is written by its context only.");
  },
  read: (reader) => reader.external(),
});

export function structuredClone(value, options = undefined) {
  if (arguments.length === 0) throw parameterError("structuredClone", "ServiceWorkerGlobalScope", 1, "Value");
  return cloneWithTransfer(value, options?.transfer ?? []);
}
