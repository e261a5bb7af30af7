// Structured clones as bytes: what storage, calls between objects and queues keep and send.
// The format is docs/structured-clone.md.
import * as format from "./serialize-format.js";
import { dataError, Reader } from "./serialize-reader.js";
import { Writer } from "./serialize-writer.js";

let spareWriter = new Writer();
let spareReader = new Reader();

/**
 * The bytes of `value`; DataCloneError if it has no clone. `context` is for those who know more
 * than the value says, all optional:
 *   externals           an array: long strings, large buffers and what handlers choose go in there
 *                       by reference, and the reader gets the same array
 *   writeSpecial(value, writer)   a chance for functions, symbols and objects of unknown classes;
 *                       true if it has written it (a host tag, see registerHostObject)
 *   writeTransferred(buffer, writer)   the same for ArrayBuffers
 */
export function serialize(value, context = null) {
  // A getter may serialize something else meanwhile: that one gets a writer of its own.
  const writer = spareWriter ?? new Writer();
  spareWriter = null;
  try {
    writer.begin(context);
    writer.byte(format.VERSION);
    writer.value(value);
    return writer.bytes.slice(0, writer.at);
  } finally {
    writer.end();
    spareWriter = writer;
  }
}

/** The value of bytes that serialize() made; a DataError says what is wrong with others. */
export function deserialize(bytes, context = null) {
  const reader = spareReader ?? new Reader();
  spareReader = null;
  try {
    reader.begin(bytes, context);
    const value = reader.value();
    if (reader.at !== reader.end) throw dataError("bytes are left at its end");
    return value;
  } finally {
    reader.finish();
    spareReader = reader;
  }
}

/**
 * Makes instances of a class serializable. `tag` is the handler's own number from HOST_FIRST (0x20)
 * to HOST_LAST (0x3f), part of the format; `prototype` may be left out where writeSpecial() of a
 * context finds the objects. write(object, writer, context) follows the tag with anything, by
 * writer.value(), string(), uint(), byte(), raw(), external(); read(reader, context) must read just
 * that. A handler that needs what the context lacks throws a DataCloneError.
 */
export function registerHostObject({ tag, prototype, write, read }) {
  if (tag < format.HOST_FIRST || tag > format.HOST_LAST || format.handlersByTag[tag] !== undefined) {
    throw new Error(`host object tag ${tag} is taken or out of range`);
  }
  const handler = { tag, write, read };
  format.handlersByTag[tag] = handler;
  if (prototype !== undefined) format.handlersByPrototype.set(prototype, handler);
}

