// Streams for the rest of the prelude. operations.js does the work; a script that never touches a
// stream does not pay for it. A value cannot be a stream before there are any.
import streams from "part:./part.js";

export { concat } from "./concat.js";

export const isReadableStream = (value) => streams.loaded()?.isReadableStream(value) ?? false;
export const isWritableStream = (value) => streams.loaded()?.isWritableStream(value) ?? false;

/** ReadableStream.from() */
export const streamFrom = (iterable) => streams().ReadableStream.from(iterable);
export const createByteStreamFromPull = (pull, cancel, handle = null, length = null) =>
  streams().createByteStreamFromPull(pull, cancel, handle, length);
export const createByteStreamFromBytes = (bytes) => streams().createByteStreamFromBytes(bytes);
export const createWritableFromSink = (sink, mark = 1, size = null) => streams().createWritableFromSink(sink, mark, size);

export const isLocked = (stream) => streams().isLocked(stream);
export const isDisturbed = (stream) => streams().isDisturbed(stream);
export const isErrored = (stream) => streams().isErrored(stream);
export const knownLength = (stream) => streams().knownLength(stream);
export const expectedLength = (stream) => streams().expectedLength(stream);
export const teeStream = (stream) => streams().teeStream(stream);
export const cancelQuietly = (stream, reason) => streams().cancelQuietly(stream, reason);
export const nativeSource = (stream, accept) => streams().nativeSource(stream, accept);
export const pumpTo = (stream, sink) => streams().pumpTo(stream, sink);
export const readChunks = (stream, onChunk) => streams().readChunks(stream, onChunk);
export const readAllBytes = (stream, limit = Infinity) => streams().readAllBytes(stream, limit);
export const readAllText = (stream, limit = Infinity) => streams().readAllText(stream, limit);
