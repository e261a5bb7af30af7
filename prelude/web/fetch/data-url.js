// data: URLs: https://fetch.spec.whatwg.org/#data-url-processor
import { native } from "../../internal/native.js";
import { atob } from "../base64.js";
import { normalizedType } from "./mime.js";
import { makeResponse } from "./response.js";

/** The bytes of a percent-encoded string. */
function percentDecode(text) {
  const bytes = native.utf8Encode(text);
  let size = 0;
  for (let i = 0; i < bytes.length; i++) {
    let byte = bytes[i];
    if (byte === 0x25 && i + 2 < bytes.length) {
      const pair = String.fromCharCode(bytes[i + 1], bytes[i + 2]);
      if (/^[0-9a-f]{2}$/i.test(pair)) {
        byte = Number.parseInt(pair, 16);
        i += 2;
      }
    }
    bytes[size++] = byte;
  }
  return bytes.subarray(0, size);
}

/** A Response for a data: URL (serialised); throws a TypeError if it is malformed. */
export function dataUrlResponse(href) {
  const hash = href.indexOf("#");
  const text = (hash < 0 ? href : href.slice(0, hash)).slice("data:".length);
  const comma = text.indexOf(",");
  if (comma < 0) throw new TypeError("fetch failed: a data: URL needs a comma");
  let type = text.slice(0, comma).trim();
  let source = percentDecode(text.slice(comma + 1));
  const base64 = /; *base64$/i;
  if (base64.test(type)) {
    type = type.replace(base64, "");
    let binary;
    try {
      binary = atob(native.latin1Decode(source));
    } catch {
      throw new TypeError("fetch failed: the base64 of the data: URL is malformed");
    }
    source = Uint8Array.from(binary, (c) => c.charCodeAt(0));
  }
  if (type.startsWith(";")) type = `text/plain${type}`;
  type = normalizedType(type) ?? "text/plain;charset=US-ASCII";
  return makeResponse({ status: 200, statusText: "OK", names: ["content-type"], values: [type], source: source.slice(), url: href });
}
