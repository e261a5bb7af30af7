// crypto.DigestStream: a writable stream that digests what is written, in constant memory.
// https://developers.cloudflare.com/workers/runtime-apis/web-crypto/#constructors
import { finishInterface } from "../../internal/interface.js";
import { native } from "../../internal/native.js";
import { WritableStream } from "../streams/index.js";
import { normalize } from "./algorithms.js";
import { HASH } from "./native-ids.js";

const STATE_SIZE = 256; // CN_CRYPTO_STATE_SIZE

export class DigestStream extends WritableStream {
  #digest;
  #count = { bytes: 0 };

  constructor(algorithm) {
    const { name } = normalize(algorithm, "digest");
    const state = new Uint8Array(STATE_SIZE);
    native.digestStart(HASH[name], state);
    const count = { bytes: 0 };
    const { promise, resolve, reject } = Promise.withResolvers();
    promise.catch(() => {}); // an abort that nobody waits for is no unhandled rejection
    super({
      write(chunk) {
        if (typeof chunk === "string") chunk = native.utf8Encode(chunk);
        else if (!(chunk instanceof ArrayBuffer) && !ArrayBuffer.isView(chunk)) {
          const error = new TypeError("DigestStream is a byte stream but received an object of non-ArrayBuffer/ArrayBufferView/string type on its writable side.");
          reject(error);
          throw error;
        }
        native.digestUpdate(state, chunk);
        count.bytes += chunk.byteLength;
      },
      close: () => resolve(native.digestFinish(state).buffer),
      abort: reject,
    });
    this.#digest = promise;
    this.#count = count;
  }

  get digest() {
    return this.#digest;
  }
  get bytesWritten() {
    return BigInt(this.#count.bytes);
  }
}
finishInterface(DigestStream);
