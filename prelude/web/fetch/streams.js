// What bodies need of streams, in one place.
const streamClass = () => globalThis.ReadableStream;

export function isReadableStream(value) {
  const Class = streamClass();
  return Class !== undefined && value instanceof Class;
}

const disturbed = new WeakSet();

export function isDisturbed(stream) {
  return disturbed.has(stream);
}

/** A byte stream over a pull source (see body.js). */
export function streamFromSource(source) {
  const Class = streamClass();
  const stream = new Class({
    type: "bytes",
    pull(controller) {
      disturbed.add(stream);
      return new Promise((resolve, reject) => {
        const done = (chunk, error) => {
          if (error !== undefined) return reject(error);
          if (chunk === null) {
            controller.close();
            controller.byobRequest?.respond(0);
          } else {
            controller.enqueue(chunk);
          }
          return resolve();
        };
        const chunk = source.read(done);
        if (chunk !== undefined) done(chunk);
      });
    },
    cancel(reason) {
      disturbed.add(stream);
      source.cancel(reason);
    },
  }, { highWaterMark: 0 });
  return stream;
}

/** Reads `stream` to its end: callback(chunks) or callback(null, error). */
export function drainStream(stream, callback) {
  let reader;
  try {
    reader = stream.getReader();
  } catch (error) {
    callback(null, error);
    return;
  }
  disturbed.add(stream);
  const chunks = [];
  const step = ({ value, done }) => {
    if (done) return callback(chunks);
    if (!(value instanceof Uint8Array)) {
      const error = new TypeError("This ReadableStream did not return bytes.");
      reader.cancel(error).catch(() => {});
      return callback(null, error);
    }
    chunks.push(value);
    return reader.read().then(step, (error) => callback(null, error));
  };
  reader.read().then(step, (error) => callback(null, error));
}
