// TextEncoderStream and TextDecoderStream: https://encoding.spec.whatwg.org/#interface-textencoderstream
import { finishInterface } from "../../internal/interface.js";
import { illegalInvocation } from "../streams/common.js";
import { streamObject } from "../streams/readable.js";
import { TransformRecord } from "../streams/transform.js";
import { writableObject } from "../streams/writable.js";
import { TextDecoder } from "./text-decoder.js";
import { utf8Encode } from "./text-encoder.js";

const isHigh = (unit) => unit >= 0xd800 && unit < 0xdc00;

function encoderRecord() {
  let high = ""; // a high surrogate whose other half may come with the next chunk
  const record = new TransformRecord(
    (chunk) => {
      let text = high + chunk;
      high = "";
      if (text.length > 0 && isHigh(text.charCodeAt(text.length - 1))) {
        high = text[text.length - 1];
        text = text.slice(0, -1);
      }
      if (text.length > 0) record.enqueue(utf8Encode(text));
    },
    () => {
      if (high !== "") record.enqueue(new Uint8Array([0xef, 0xbf, 0xbd]));
    },
    null,
  );
  record.setUp(undefined, 1, null, 0, null);
  return record;
}

function decoderRecord(decoder) {
  const record = new TransformRecord(
    (chunk) => {
      if (!ArrayBuffer.isView(chunk) && !(chunk instanceof ArrayBuffer)) {
        throw new TypeError(
          "This TransformStream is being used as a byte stream, but received a value that is not a BufferSource.",
        );
      }
      const text = decoder.decode(chunk, { stream: true });
      if (text !== "") record.enqueue(text);
    },
    () => {
      const text = decoder.decode();
      if (text !== "") record.enqueue(text);
    },
    null,
  );
  record.setUp(undefined, 1, null, 0, null);
  return record;
}

class TextEncoderStream {
  #record = encoderRecord();

  get encoding() {
    if (!(#record in this)) throw illegalInvocation("TextEncoderStream");
    return "utf-8";
  }
  get readable() {
    if (!(#record in this)) throw illegalInvocation("TextEncoderStream");
    return streamObject(this.#record.readable);
  }
  get writable() {
    if (!(#record in this)) throw illegalInvocation("TextEncoderStream");
    return writableObject(this.#record.writable);
  }
}

class TextDecoderStream {
  #decoder;
  #record;

  constructor(label = "utf-8", options = undefined) {
    this.#decoder = new TextDecoder(label, options);
    this.#record = decoderRecord(this.#decoder);
  }
  get encoding() {
    if (!(#record in this)) throw illegalInvocation("TextDecoderStream");
    return this.#decoder.encoding;
  }
  get fatal() {
    if (!(#record in this)) throw illegalInvocation("TextDecoderStream");
    return this.#decoder.fatal;
  }
  get ignoreBOM() {
    if (!(#record in this)) throw illegalInvocation("TextDecoderStream");
    return this.#decoder.ignoreBOM;
  }
  get readable() {
    if (!(#record in this)) throw illegalInvocation("TextDecoderStream");
    return streamObject(this.#record.readable);
  }
  get writable() {
    if (!(#record in this)) throw illegalInvocation("TextDecoderStream");
    return writableObject(this.#record.writable);
  }
}

finishInterface(TextEncoderStream);
finishInterface(TextDecoderStream);
export { TextDecoderStream, TextEncoderStream };
