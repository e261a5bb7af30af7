// MIMEType and MIMEParams of node:util. https://mimesniff.spec.whatwg.org/#parsing-a-mime-type
import { isHttpBlank, trimBy, trimEndBy } from "../../internal/trim.js";
import { nodeError } from "./errors.js";

const TOKEN = /^[!#$%&'*+\-.^_`|~\w]+$/;
const VALUE = /^[\t\u0020-\u007e\u0080-\u00ff]*$/;

function syntaxError(what, text, index = -1) {
  return nodeError(TypeError, "ERR_INVALID_MIME_SYNTAX", `The MIME syntax for a ${what} in ${JSON.stringify(text)} is invalid${index >= 0 ? ` at ${index}` : ""}`);
}
function token(text, what) {
  if (text === "" || !TOKEN.test(text)) throw syntaxError(what, text);
  return text;
}
const lower = (text) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** A quoted value that begins at `at` (behind the quote): [value, end]. */
function quoted(text, at) {
  let value = "";
  while (at < text.length && text[at] !== '"') {
    if (text[at] === "\\" && at + 1 < text.length) at++;
    value += text[at++];
  }
  return [value, at];
}

function parseParams(params, text) {
  for (let at = 0; at < text.length;) {
    at++; // the semicolon
    while (/[\r\n\t ]/.test(text[at] ?? "")) at++;
    let end = at;
    while (end < text.length && text[end] !== ";" && text[end] !== "=") end++;
    const name = lower(text.slice(at, end));
    at = end;
    if (text[at] !== "=") continue;
    let value;
    at++;
    if (text[at] === '"') {
      [value, at] = quoted(text, at + 1);
      while (at < text.length && text[at] !== ";") at++;
    } else {
      end = at;
      while (end < text.length && text[end] !== ";") end++;
      value = trimEndBy(text.slice(at, end), isHttpBlank);
      at = end;
      if (value === "") continue;
    }
    if (name !== "" && TOKEN.test(name) && VALUE.test(value) && !params.has(name)) params.set(name, value);
  }
}

export class MIMEParams {
  #data = new Map();
  delete(name) {
    this.#data.delete(`${name}`);
  }
  get(name) {
    return this.#data.get(`${name}`) ?? null;
  }
  has(name) {
    return this.#data.has(`${name}`);
  }
  set(name, value) {
    const key = `${name}`;
    const text = `${value}`;
    if (key === "" || !TOKEN.test(key)) throw syntaxError("parameter name", key, Math.max(0, [...key].findIndex((c) => !TOKEN.test(c))));
    if (!VALUE.test(text)) throw syntaxError("parameter value", text, [...text].findIndex((c) => !VALUE.test(c)));
    this.#data.set(key, text);
  }
  *entries() {
    yield* this.#data.entries();
  }
  *keys() {
    yield* this.#data.keys();
  }
  *values() {
    yield* this.#data.values();
  }
  toString() {
    let out = "";
    for (const [name, value] of this.#data) {
      out += `${out === "" ? "" : "; "}${name}=${value !== "" && TOKEN.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`}`;
    }
    return out;
  }
}
Object.defineProperties(MIMEParams.prototype, {
  [Symbol.iterator]: { value: MIMEParams.prototype.entries, writable: true, configurable: true },
  toJSON: { value: MIMEParams.prototype.toString, writable: true, configurable: true, enumerable: true },
  toString: { enumerable: true },
});

export class MIMEType {
  #type;
  #subtype;
  #params = new MIMEParams();
  constructor(string) {
    const text = trimBy(`${string}`, isHttpBlank);
    const slash = text.indexOf("/");
    const type = slash < 0 ? text : text.slice(0, slash);
    if (type === "" || !TOKEN.test(type) || slash < 0) throw syntaxError("type", `${string}`, slash < 0 ? -1 : Math.max(0, [...type].findIndex((c) => !TOKEN.test(c))));
    const semicolon = text.indexOf(";", slash);
    const subtype = trimEndBy(text.slice(slash + 1, semicolon < 0 ? undefined : semicolon), isHttpBlank);
    if (subtype === "" || !TOKEN.test(subtype)) throw syntaxError("subtype", `${string}`, slash + 1 + Math.max(0, [...subtype].findIndex((c) => !TOKEN.test(c))));
    this.#type = lower(type);
    this.#subtype = lower(subtype);
    if (semicolon >= 0) parseParams(this.#params, text.slice(semicolon));
  }
  get type() { return this.#type; }
  set type(value) { this.#type = lower(token(`${value}`, "type")); }
  get subtype() { return this.#subtype; }
  set subtype(value) { this.#subtype = lower(token(`${value}`, "subtype")); }
  get essence() { return `${this.#type}/${this.#subtype}`; }
  get params() { return this.#params; }
  toString() {
    const params = `${this.#params}`;
    return `${this.essence}${params === "" ? "" : `;${params}`}`;
  }
}
Object.defineProperties(MIMEType.prototype, {
  toJSON: { value: MIMEType.prototype.toString, writable: true, configurable: true, enumerable: true },
  toString: { enumerable: true },
});
