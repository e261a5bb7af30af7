// crypto.DigestStream: a writable stream that digests what is written, in constant memory.
// https://developers.cloudflare.com/workers/runtime-apis/web-crypto/#constructors
import { finishInterface } from "../../internal/interface.js";
import { native } from "../../internal/native.js";
import { WritableStream } from "../streams/index.js";
import "../../internal/symbols.js";
import { normalize } from "./algorithms.js";
import { makeCrc } from "./crc.js";
import { HASH } from "./native-ids.js";

function makeDigest(algorithm) {
  const { name } = normalize(algorithm, "digest");
  const state = native.digestStart(HASH[name]);
  return { update: (bytes) => native.digestUpdate(state, bytes), finish: () => native.digestFinish(state).buffer };
}

export class DigestStream extends WritableStream {
  #digest;
  #count = { bytes: 0 };
  #dispose;

  constructor(algorithm) {
    const digest = makeCrc(`${algorithm?.name ?? algorithm}`) ?? makeDigest(algorithm);
    const count = { bytes: 0 };
    const { promise, resolve, reject } = Promise.withResolvers();
    promise.catch(() => {}); // an abort that nobody waits for is no unhandled rejection
    let disposed = null;
    let controller;
    super({
      start(given) {
        controller = given;
      },
      write(chunk) {
        if (typeof chunk === "string") chunk = native.utf8Encode(chunk);
        else if (!(chunk instanceof ArrayBuffer) && !ArrayBuffer.isView(chunk)) {
          const error = new TypeError("DigestStream is a byte stream but received an object of non-ArrayBuffer/ArrayBufferView/string type on its writable side.");
          reject(error);
          throw error;
        }
        digest.update(chunk instanceof Uint8Array ? chunk : ArrayBuffer.isView(chunk) ? new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength) : new Uint8Array(chunk));
        count.bytes += chunk.byteLength;
      },
      close: () => resolve(digest.finish()),
      abort: reject,
    });
    this.#digest = promise;
    this.#dispose = () => {
      if (disposed !== null) return;
      disposed = new TypeError("The DigestStream was disposed.");
      reject(disposed);
      controller.error(disposed);
    };
    this.#count = count;
  }

  [Symbol.dispose]() {
    this.#dispose();
  }

  get digest() {
    return this.#digest;
  }
  get bytesWritten() {
    return BigInt(this.#count.bytes);
  }
}
finishInterface(DigestStream);
