// The interfaces of the Streams standard, and the platform's additions to it.
export { ByteLengthQueuingStrategy, CountQueuingStrategy } from "./strategies.js";
export {
  ReadableByteStreamController, ReadableStream, ReadableStreamBYOBReader, ReadableStreamBYOBRequest,
  ReadableStreamDefaultController, ReadableStreamDefaultReader,
} from "./readable.js";
export { TransformStream, TransformStreamDefaultController } from "./transform.js";
export { WritableStream, WritableStreamDefaultController, WritableStreamDefaultWriter } from "./writable.js";
export { FixedLengthStream, IdentityTransformStream } from "./identity.js";
