// Streams of Node.js as Web streams and back: toWeb() and fromWeb() of Readable, Writable and Duplex.
import stream from "readable-stream/lib/stream.js";
import { Buffer } from "../buffer.js";
import { abortError, invalidArgType, invalidArgValue, nodeError, readOptions, validateBoolean, validateObject } from "./errors.js";

const COMMON = { highWaterMark: [undefined], signal: [undefined] };
const checkEncoding = (encoding, name) => {
  if (encoding !== undefined && !Buffer.isEncoding(encoding)) throw invalidArgValue(name, encoding);
};

const { Readable, Writable, Duplex, finished, destroy, isReadable, isWritable } = stream;
const prematureClose = () => nodeError(Error, "ERR_STREAM_PREMATURE_CLOSE", "Premature close");
const isWebReadable = (value) => value instanceof ReadableStream;
const isWebWritable = (value) => value instanceof WritableStream;

/** An end that came too early is an abort for those who use Web streams. */
const asAbort = (error) => (error?.code === "ERR_STREAM_PREMATURE_CLOSE" ? abortError(undefined, "The operation was aborted") : error);

export function readableToWeb(readable, options = {}) {
  if (typeof readable?._readableState !== "object") throw invalidArgType("streamReadable", ["stream.Readable"], readable);
  validateObject(options, "options");
  if (readable.destroyed || !isReadable(readable)) {
    const empty = new ReadableStream();
    void empty.cancel();
    return empty;
  }
  const objectMode = readable.readableObjectMode;
  const { readableHighWaterMark: highWaterMark } = readable;
  const strategy = options.strategy ?? (objectMode ? new CountQueuingStrategy({ highWaterMark }) : new ByteLengthQueuingStrategy({ highWaterMark }));
  let controller;
  let canceled = false;
  const onData = (chunk) => {
    const value = Buffer.isBuffer(chunk) && !objectMode ? new Uint8Array(chunk.buffer.slice(chunk.byteOffset, chunk.byteOffset + chunk.byteLength)) : chunk;
    controller.enqueue(value);
    if (controller.desiredSize <= 0) readable.pause();
  };
  readable.pause();
  const cleanup = finished(readable, (error) => {
    const reason = asAbort(error);
    cleanup();
    readable.on("error", () => {}); // an error after the end is nobody's
    if (reason) controller.error(reason);
    else if (!canceled) controller.close();
  });
  readable.on("data", onData);
  return new ReadableStream({
    start(c) {
      controller = c;
    },
    pull() {
      readable.resume();
    },
    cancel(reason) {
      canceled = true;
      destroy(readable, reason);
    },
  }, strategy);
}

export function readableFromWeb(web, options = {}) {
  if (!isWebReadable(web)) throw invalidArgType("readableStream", ["ReadableStream"], web);
  const { highWaterMark, encoding, objectMode, signal } = readOptions(options, { ...COMMON, encoding: [undefined, checkEncoding], objectMode: [false, validateBoolean] });
  const reader = web.getReader();
  let closed = false;
  const readable = new Readable({
    objectMode, highWaterMark, encoding, signal,
    read() {
      reader.read().then(
        ({ value, done }) => void readable.push(done ? null : value),
        (error) => destroy(readable, error),
      );
    },
    destroy(error, callback) {
      const done = () => callback(error);
      if (closed) return void done();
      return void reader.cancel(error).then(done, done);
    },
  });
  reader.closed.then(() => { closed = true; }, (error) => {
    closed = true;
    destroy(readable, error);
  });
  return readable;
}

export function writableToWeb(writable) {
  if (typeof writable?._writableState !== "object") throw invalidArgType("streamWritable", ["stream.Writable"], writable);
  if (writable.destroyed || !isWritable(writable)) {
    const ended = new WritableStream();
    void ended.close();
    return ended;
  }
  const { writableObjectMode: objectMode, writableHighWaterMark: highWaterMark } = writable;
  const strategy = objectMode ? new CountQueuingStrategy({ highWaterMark }) : { highWaterMark };
  let controller;
  let drained = null; // {promise, resolve, reject} while the stream has too much
  let closing = null;
  const cleanup = finished(writable, (error) => {
    const reason = asAbort(error);
    cleanup();
    writable.on("error", () => {});
    if (reason) {
      drained?.reject(reason);
      closing?.reject(reason);
      closing = null;
      controller.error(reason);
      return;
    }
    if (closing) {
      closing.resolve();
      closing = null;
      return;
    }
    controller.error(abortError());
  });
  writable.on("drain", () => {
    drained?.resolve();
    drained = null;
  });
  return new WritableStream({
    start(c) {
      controller = c;
    },
    write(chunk) {
      if (!writable.writableNeedDrain && writable.write(chunk)) return undefined;
      drained = Promise.withResolvers();
      return drained.promise.finally(() => { drained = null; });
    },
    abort(reason) {
      destroy(writable, reason);
    },
    close() {
      if (closing || writable.writableEnded) return closing?.promise;
      closing = Promise.withResolvers();
      writable.end();
      return closing.promise;
    },
  }, strategy);
}

function writableParts(writer, get) {
  let closed = false;
  writer.closed.then(() => {
    closed = true;
    if (!get().writableEnded && !get().writableFinished) destroy(get(), prematureClose());
  }, (error) => {
    closed = true;
    destroy(get(), error);
  });
  const settle = (promise, callback) => promise.then(
    () => queueMicrotask(() => callback()),
    (error) => queueMicrotask(() => callback(error ?? new Error("The stream failed"))),
  );
  return {
    isClosed: () => closed,
    write: (chunk, encoding, callback) => {
      const bytes = typeof chunk === "string" && get().writableObjectMode === false ? Buffer.from(chunk, encoding) : chunk;
      void settle(writer.ready.then(() => writer.write(bytes)), callback);
    },
    writev: (chunks, callback) => void settle(writer.ready.then(() => Promise.all(chunks.map(({ chunk }) => writer.write(chunk)))), callback),
    final: (callback) => (closed ? void callback() : void settle(writer.close(), callback)),
    end: (error) => (closed ? Promise.resolve() : error !== null && error !== undefined ? writer.abort(error) : writer.close()),
  };
}

export function writableFromWeb(web, options = {}) {
  if (!isWebWritable(web)) throw invalidArgType("writableStream", ["WritableStream"], web);
  const { highWaterMark, decodeStrings, objectMode, signal } = readOptions(options, { ...COMMON, objectMode: [false, validateBoolean], decodeStrings: [true, validateBoolean] });
  const parts = writableParts(web.getWriter(), () => writable);
  const writable = new Writable({
    highWaterMark, objectMode, decodeStrings, signal, write: parts.write, writev: parts.writev, final: parts.final,
    destroy(error, callback) {
      const done = () => callback(error);
      return void parts.end(error).then(done, done);
    },
  });
  return writable;
}

export function duplexToWeb(duplex) {
  if (typeof duplex?._writableState !== "object" || typeof duplex?._readableState !== "object") throw invalidArgType("duplex", ["stream.Duplex"], duplex);
  if (duplex.destroyed) {
    const writable = new WritableStream();
    const readable = new ReadableStream();
    void writable.close();
    void readable.cancel();
    return { readable, writable };
  }
  const writable = isWritable(duplex) ? writableToWeb(duplex) : new WritableStream();
  if (!isWritable(duplex)) void writable.close();
  const readable = isReadable(duplex) ? readableToWeb(duplex) : new ReadableStream();
  if (!isReadable(duplex)) void readable.cancel();
  return { readable, writable };
}

export function duplexFromWeb(pair = {}, options = {}) {
  validateObject(pair, "pair");
  const { readable: webReadable, writable: webWritable } = pair;
  if (!isWebReadable(webReadable)) throw invalidArgType("pair.readable", ["ReadableStream"], webReadable);
  if (!isWebWritable(webWritable)) throw invalidArgType("pair.writable", ["WritableStream"], webWritable);
  const { allowHalfOpen, objectMode, encoding, decodeStrings, highWaterMark, signal } = readOptions(options, { ...COMMON, allowHalfOpen: [false], objectMode: [false], encoding: [undefined, checkEncoding], decodeStrings: [true] });
  const parts = writableParts(webWritable.getWriter(), () => duplex);
  const reader = webReadable.getReader();
  let readClosed = false;
  const duplex = new Duplex({
    allowHalfOpen, highWaterMark, objectMode, encoding, decodeStrings: Boolean(decodeStrings), signal,
    write: parts.write, writev: parts.writev, final: parts.final,
    read() {
      reader.read().then(({ value, done }) => void duplex.push(done ? null : value), (error) => destroy(duplex, error));
    },
    destroy(error, callback) {
      const done = () => callback(error);
      const ends = [parts.isClosed() ? undefined : parts.end(error), readClosed ? undefined : reader.cancel(error)];
      return void Promise.all(ends).then(done, done);
    },
  });
  reader.closed.then(() => { readClosed = true; }, (error) => {
    readClosed = true;
    destroy(duplex, error);
  });
  return duplex;
}
