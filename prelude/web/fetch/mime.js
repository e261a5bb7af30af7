// MIME types as they are parsed and written again.
import { isHttpBlank, trimEndBy, trimStartBy } from "../../internal/trim.js";

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/i;
/** Parameters of a type: `;name=value` and `;name="quoted"`; whatever follows the quotes is dropped. */
const PARAMETER = /;([^;=]*)(?:=(?:"((?:[^"\\]|\\.)*)(?:"[^;]*|\\?$)|([^;]*)))?/y;

/** A MIME type as it is parsed and written again (https://mimesniff.spec.whatwg.org/#parsing-a-mime-type), or null. */
export function normalizedType(text) {
  const end = text.indexOf(";");
  const essence = (end < 0 ? text : text.slice(0, end)).trim().toLowerCase();
  const slash = essence.indexOf("/");
  if (slash < 0 || !TOKEN.test(essence.slice(0, slash)) || !TOKEN.test(essence.slice(slash + 1))) return null;
  const seen = new Set();
  let result = essence;
  PARAMETER.lastIndex = end < 0 ? text.length : end;
  for (let match; PARAMETER.lastIndex < text.length && (match = PARAMETER.exec(text)) !== null; ) {
    const name = trimStartBy(match[1], isHttpBlank).toLowerCase();
    const value = match[2] === undefined ? match[3] && trimEndBy(match[3], isHttpBlank) : match[2].replace(/\\(.)/gs, "$1");
    if (value === undefined || (value === "" && match[2] === undefined) || !TOKEN.test(name) || seen.has(name)) continue;
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) continue;
    seen.add(name);
    result += `;${name}=${TOKEN.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`}`;
  }
  return result;
}
