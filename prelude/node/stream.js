// node:stream: the package that Node.js publishes of its own streams.
import stream from "readable-stream";
import { Readable, Writable } from "readable-stream";

/** Web streams and back, which the package leaves to its surroundings. */
function toWeb(readable) {
  const iterator = readable[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { value, done } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(typeof value === "string" || readable.readableObjectMode ? value : new Uint8Array(value));
    },
    async cancel(reason) {
      readable.destroy(reason instanceof Error ? reason : undefined);
    },
  }, { highWaterMark: 0 });
}
Readable.toWeb = toWeb;
Readable.fromWeb = (web, options = {}) => {
  const reader = web.getReader();
  return new Readable({
    ...options,
    read() {
      reader.read().then(({ value, done }) => this.push(done ? null : value), (error) => this.destroy(error));
    },
    destroy(error, callback) {
      reader.cancel(error).then(() => callback(error), () => callback(error));
    },
  });
};
Writable.toWeb = (writable) =>
  new WritableStream({
    write: (chunk) => new Promise((resolve, reject) => writable.write(chunk, (error) => (error ? reject(error) : resolve()))),
    close: () => new Promise((resolve, reject) => {
      writable.once("error", reject);
      writable.end(resolve);
    }),
    abort: (reason) => void writable.destroy(reason),
  });
Writable.fromWeb = (web, options = {}) => {
  const writer = web.getWriter();
  return new Writable({
    ...options,
    write: (chunk, encoding, callback) => void writer.write(chunk).then(() => callback(), callback),
    final: (callback) => void writer.close().then(() => callback(), callback),
    destroy: (error, callback) => void (error ? writer.abort(error) : Promise.resolve()).then(() => callback(error), () => callback(error)),
  });
};
export default stream;
