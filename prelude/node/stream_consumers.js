// node:stream/consumers
import { Buffer } from "./buffer.js";

async function chunks(stream) {
  const list = [];
  for await (const chunk of stream) list.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk instanceof ArrayBuffer ? new Uint8Array(chunk) : chunk);
  return list;
}
async function buffer(stream) {
  return Buffer.concat(await chunks(stream));
}
async function arrayBuffer(stream) {
  const all = await buffer(stream);
  return all.buffer.slice(all.byteOffset, all.byteOffset + all.byteLength);
}
async function text(stream) {
  const decoder = new TextDecoder();
  let out = "";
  for await (const chunk of stream) out += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
  return out + decoder.decode();
}
export default {
  arrayBuffer,
  buffer,
  text,
  json: async (stream) => JSON.parse(await text(stream)),
  blob: async (stream) => new Blob(await chunks(stream)),
};
