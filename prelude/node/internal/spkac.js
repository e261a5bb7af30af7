// Certificate of node:crypto: signed public keys and challenges (SPKAC), read as far as they go.
import { Buffer } from "../buffer.js";
import { callable } from "./callable.js";
import { invalidArgType } from "./errors.js";
import { native } from "./internals.js";

function bytesOf(spkac, encoding) {
  if (typeof spkac === "string") return Buffer.from(spkac, encoding === "buffer" ? "utf8" : encoding);
  if (ArrayBuffer.isView(spkac)) return Buffer.from(spkac.buffer, spkac.byteOffset, spkac.byteLength);
  if (spkac instanceof ArrayBuffer) return Buffer.from(spkac);
  throw invalidArgType("spkac", ["string", "ArrayBuffer", "Buffer", "TypedArray", "DataView"], spkac);
}
const ask = (what, spkac, encoding) => native.nodeSpkac(what, bytesOf(spkac, encoding));
function verifySpkac(spkac, encoding = undefined) {
  return ask(0, spkac, encoding);
}
function exportPublicKey(spkac, encoding = undefined) {
  const found = ask(1, spkac, encoding);
  return found === undefined ? Buffer.alloc(0) : Buffer.from(found);
}
function exportChallenge(spkac, encoding = undefined) {
  const found = ask(2, spkac, encoding);
  return found === undefined ? Buffer.alloc(0) : Buffer.from(found);
}

class CertificateClass {
  verifySpkac(...args) { return verifySpkac(...args); }
  exportPublicKey(...args) { return exportPublicKey(...args); }
  exportChallenge(...args) { return exportChallenge(...args); }
}
export const Certificate = Object.assign(callable(CertificateClass, "Certificate"), { verifySpkac, exportPublicKey, exportChallenge });
