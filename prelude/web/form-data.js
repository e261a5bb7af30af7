// FormData: https://xhr.spec.whatwg.org/#interface-formdata
import { finishInterface } from "../internal/interface.js";
import { illegalInvocation, isObject, parameterError, toUSVString } from "../internal/webidl.js";
import { blobBytes, fileFromBytes, isBlob, isFile } from "./blob.js";

export let isFormData;
/** The entries, [name, string | File] each, in order: not to be changed. */
export let formDataEntries;
/** Adds an entry without conversions. */
export let formDataPush;

/** https://xhr.spec.whatwg.org/#create-an-entry; an unnamed blob is called after its field. */
function makeEntry(method, args) {
  if (args.length < 1) throw parameterError(method, "FormData", 1, "string");
  if (args.length < 2) throw parameterError(method, "FormData", 2, "File or Blob or string");
  const name = toUSVString(args[0]);
  const value = args[1];
  if (!isBlob(value)) return [name, toUSVString(value)];
  const filename = args[2] === undefined ? undefined : toUSVString(args[2]);
  if (isFile(value) && filename === undefined) return [name, value];
  const modified = isFile(value) ? value.lastModified : undefined;
  return [name, fileFromBytes(blobBytes(value), filename ?? name, value.type, modified)];
}

/** Follows the list as it changes: one that has come to its end goes on when there is more. */
class FormDataIterator {
  #list;
  #pick;
  #at = 0;
  constructor(list, pick) {
    this.#list = list;
    this.#pick = pick;
  }
  next() {
    const list = this.#list();
    if (this.#at >= list.length) return { done: true, value: undefined };
    return { done: false, value: this.#pick(list[this.#at++]) };
  }
}
Object.setPrototypeOf(FormDataIterator.prototype, Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())));
Object.defineProperty(FormDataIterator.prototype, Symbol.toStringTag, { value: "FormData Iterator", configurable: true });

export class FormData {
  #entries = [];

  static {
    isFormData = (value) => isObject(value) && #entries in value;
    formDataEntries = (value) => {
      if (!isFormData(value)) throw illegalInvocation();
      return value.#entries;
    };
    formDataPush = (form, name, value) => {
      form.#entries.push([name, value]);
    };
  }

  append(name, value, filename = undefined) {
    formDataEntries(this).push(makeEntry("append", arguments));
  }
  delete(name) {
    const entries = formDataEntries(this);
    if (arguments.length < 1) throw parameterError("delete", "FormData", 1, "string");
    const key = toUSVString(name);
    this.#entries = entries.filter((entry) => entry[0] !== key);
  }
  get(name) {
    const entries = formDataEntries(this);
    if (arguments.length < 1) throw parameterError("get", "FormData", 1, "string");
    const key = toUSVString(name);
    const entry = entries.find((e) => e[0] === key);
    return entry === undefined ? null : entry[1];
  }
  getAll(name) {
    const entries = formDataEntries(this);
    if (arguments.length < 1) throw parameterError("getAll", "FormData", 1, "string");
    const key = toUSVString(name);
    return entries.filter((entry) => entry[0] === key).map((entry) => entry[1]);
  }
  has(name) {
    const entries = formDataEntries(this);
    if (arguments.length < 1) throw parameterError("has", "FormData", 1, "string");
    const key = toUSVString(name);
    return entries.some((entry) => entry[0] === key);
  }
  set(name, value, filename = undefined) {
    const entries = formDataEntries(this);
    const entry = makeEntry("set", arguments);
    const at = entries.findIndex((e) => e[0] === entry[0]);
    if (at < 0) {
      entries.push(entry);
      return;
    }
    entries[at] = entry;
    this.#entries = entries.filter((e, i) => i <= at || e[0] !== entry[0]);
  }
  entries() {
    formDataEntries(this);
    return new FormDataIterator(() => this.#entries, (entry) => [entry[0], entry[1]]);
  }
  keys() {
    formDataEntries(this);
    return new FormDataIterator(() => this.#entries, (entry) => entry[0]);
  }
  values() {
    formDataEntries(this);
    return new FormDataIterator(() => this.#entries, (entry) => entry[1]);
  }
  forEach(callback, thisArg = undefined) {
    formDataEntries(this);
    if (typeof callback !== "function") throw parameterError("forEach", "FormData", 1, "function");
    for (let i = 0; i < this.#entries.length; i++) callback.call(thisArg, this.#entries[i][1], this.#entries[i][0], this);
  }
}
finishInterface(FormData);
for (const name of ["append", "set"]) Object.defineProperty(FormData.prototype[name], "length", { value: 2, configurable: true });
Object.defineProperty(FormData.prototype, Symbol.iterator, {
  value: FormData.prototype.entries, writable: true, configurable: true, enumerable: false,
});
