// node:string_decoder
import { StringDecoder as Base } from "string_decoder/lib/string_decoder.js";
import { Buffer } from "./buffer.js";
import { invalidArgType } from "./internal/errors.js";

export class StringDecoder extends Base {
  write(chunk) {
    if (typeof chunk === "string") return chunk;
    if (!ArrayBuffer.isView(chunk)) throw invalidArgType("buf", "an instance of Buffer, TypedArray, or DataView", chunk);
    return super.write(Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
  }
}
export default { StringDecoder };
