// Structured clones as bytes: what storage, calls between objects and queues keep and send.
// The format is docs/reference/structured-clone.md.
import codec from "part:./serialize-codec.js";
import { handlersByPrototype, handlersByTag, HOST_FIRST, HOST_LAST } from "./serialize-hosts.js";

/**
 * The bytes of `value`; DataCloneError if it has no clone. `context` is for those who know more
 * than the value says, all optional:
 *   externals           an array: long strings, large buffers and what handlers choose go in there
 *                       by reference, and the reader gets the same array
 *   writeSpecial(value, writer)   a chance for functions, symbols and objects of unknown classes;
 *                       true if it has written it (a host tag, see registerHostObject)
 *   writeProxy(proxy, prototype, writer)   must write a Proxy, or throw; without it, it is taken for what it shows
 *   writeTransferred(buffer, writer)   the same for ArrayBuffers
 *   carries             true: the bytes are the server's own, so what is by reference may be in them
 *   stubs               "storage" or "props": stubs of workers and objects go as what they name (workers/object/rpc.js)
 */
export function serialize(value, context = null) {
  return codec().serialize(value, context);
}

/** The value of bytes that serialize() made; a DataError says what is wrong with others. */
export function deserialize(bytes, context = null) {
  return codec().deserialize(bytes, context);
}

/**
 * Makes instances of a class serializable. `tag` is the handler's own number from HOST_FIRST (0x20)
 * to HOST_LAST (0x3f), part of the format; `prototype` may be left out where writeSpecial() of a
 * context finds the objects. write(object, writer, context) follows the tag with anything, by
 * writer.value(), string(), uint(), byte(), raw(), external(); read(reader, context) must read just
 * that. A handler that needs what the context lacks throws a DataCloneError.
 */
export function registerHostObject({ tag, prototype, write, read }) {
  if (tag < HOST_FIRST || tag > HOST_LAST || handlersByTag[tag] !== undefined) {
    throw new Error(`host object tag ${tag} is taken or out of range`);
  }
  const handler = { tag, write, read };
  handlersByTag[tag] = handler;
  if (prototype !== undefined) handlersByPrototype.set(prototype, handler);
}

/** For a class that is not there yet when its tag is registered. */
export function registerHostPrototype(tag, prototype) {
  handlersByPrototype.set(prototype, handlersByTag[tag]);
}
