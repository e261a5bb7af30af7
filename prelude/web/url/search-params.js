// The URLSearchParams interface: https://url.spec.whatwg.org/#interface-urlsearchparams
//
// The list is flat: name, value, name, value... It is parsed from #source at its first use.
import { finishInterface } from "../../internal/interface.js";
import { formDecode, formEncode } from "./percent.js";
import { isFlagOff } from "../../internal/native.js";

const IGNORES_VALUE = isFlagOff("urlsearchparams_delete_has_value_arg");

/** https://url.spec.whatwg.org/#concept-urlencoded-parser, into a flat list. */
function parseForm(text) {
  const list = [];
  const plain = !text.includes("%") && !text.includes("+");
  const { length } = text;
  let nextEquals = -1; // the first "=" from `start` on: looked for once it is passed, or a text without one takes its square
  for (let start = 0; start < length; ) {
    let end = text.indexOf("&", start);
    if (end < 0) end = length;
    if (end > start) {
      if (nextEquals < start) nextEquals = text.indexOf("=", start);
      if (nextEquals < 0) nextEquals = length;
      const equals = nextEquals < end ? nextEquals : end;
      const name = text.slice(start, equals);
      const value = equals < end ? text.slice(equals + 1, end) : "";
      if (plain) list.push(name, value);
      else list.push(formDecode(name), formDecode(value));
    }
    start = end + 1;
  }
  return list;
}

function serializeForm(list) {
  let out = "";
  for (let i = 0; i < list.length; i += 2) {
    if (i > 0) out += "&";
    out += formEncode(list[i]) + "=" + formEncode(list[i + 1]);
  }
  return out;
}

function toText(value) {
  return (typeof value === "string" ? value : `${value}`).toWellFormed();
}

function need(count, given, method) {
  if (given < count) {
    throw new TypeError(
      `Failed to execute '${method}' on 'URLSearchParams': parameter ${given + 1} is not of type 'USVString'.`,
    );
  }
}

let itemsOf; // (params): the list, for iterators
let updateQuery; // (url, query): from url.js
export function setQueryUpdater(update) {
  updateQuery = update;
}
/** A new object that belongs to `url`, with the names and values of `query`. */
export let attachParams;
/** The query of its URL was set: `params` starts again from there. */
export let replaceParams;

export class URLSearchParams {
  #list = null; // null: not yet parsed from #source
  #source = "";
  #url = null;

  constructor(init = "") {
    if ((typeof init !== "object" || init === null) && typeof init !== "function") {
      const text = toText(init);
      this.#source = text[0] === "?" ? text.slice(1) : text;
      return;
    }
    if (#list in init && init[Symbol.iterator] === URLSearchParams.prototype[Symbol.iterator]) {
      this.#list = init.#items().slice();
      return;
    }
    const list = (this.#list = []);
    const method = init[Symbol.iterator];
    if (method !== undefined && method !== null) {
      if (typeof method !== "function") throw new TypeError("Invalid URL search params sequence.");
      for (const pair of init) {
        if ((typeof pair !== "object" && typeof pair !== "function") || pair === null || typeof pair[Symbol.iterator] !== "function") {
          throw new TypeError("Incorrect type: the provided value is not of type 'Sequence'.");
        }
        const items = [...pair];
        if (items.length !== 2) throw new TypeError("Invalid URL search params sequence.");
        list.push(toText(items[0]), toText(items[1]));
      }
      return;
    }
    const seen = new Map(); // names that become equal by conversion keep one place
    for (const key of Reflect.ownKeys(init)) {
      if (typeof key === "symbol") continue; // the platform does not look at them
      const descriptor = Reflect.getOwnPropertyDescriptor(init, key);
      if (descriptor === undefined || !descriptor.enumerable) continue;
      const name = toText(key);
      const value = toText(init[key]);
      const place = seen.get(name);
      if (place !== undefined) {
        list[place] = value;
        continue;
      }
      seen.set(name, list.push(name, value) - 1);
    }
  }

  #items() {
    return (this.#list ??= parseForm(this.#source));
  }
  #changed() {
    if (this.#url !== null) updateQuery(this.#url, serializeForm(this.#list));
  }

  get size() {
    return this.#items().length / 2;
  }

  append(name, value) {
    need(2, arguments.length, "append");
    name = toText(name);
    this.#items().push(name, toText(value));
    this.#changed();
  }

  delete(name, value = undefined) {
    need(1, arguments.length, "delete");
    name = toText(name);
    value = value === undefined || IGNORES_VALUE ? undefined : toText(value);
    const list = this.#items();
    let kept = 0;
    for (let i = 0; i < list.length; i += 2) {
      if (list[i] === name && (value === undefined || list[i + 1] === value)) continue;
      list[kept++] = list[i];
      list[kept++] = list[i + 1];
    }
    list.length = kept;
    this.#changed();
  }

  get(name) {
    if (arguments.length < 1) need(1, 0, "get");
    name = toText(name);
    const list = this.#items();
    for (let i = 0; i < list.length; i += 2) {
      if (list[i] === name) return list[i + 1];
    }
    return null;
  }

  getAll(name) {
    need(1, arguments.length, "getAll");
    name = toText(name);
    const list = this.#items();
    const values = [];
    for (let i = 0; i < list.length; i += 2) {
      if (list[i] === name) values.push(list[i + 1]);
    }
    return values;
  }

  has(name, value = undefined) {
    need(1, arguments.length, "has");
    name = toText(name);
    value = value === undefined || IGNORES_VALUE ? undefined : toText(value);
    const list = this.#items();
    for (let i = 0; i < list.length; i += 2) {
      if (list[i] === name && (value === undefined || list[i + 1] === value)) return true;
    }
    return false;
  }

  set(name, value) {
    need(2, arguments.length, "set");
    name = toText(name);
    value = toText(value);
    const list = this.#items();
    let found = false;
    let kept = 0;
    for (let i = 0; i < list.length; i += 2) {
      if (list[i] === name) {
        if (found) continue;
        found = true;
        list[i + 1] = value;
      }
      list[kept++] = list[i];
      list[kept++] = list[i + 1];
    }
    list.length = kept;
    if (!found) list.push(name, value);
    this.#changed();
  }

  sort() {
    const list = this.#items();
    const pairs = [];
    for (let i = 0; i < list.length; i += 2) pairs.push([list[i], list[i + 1]]);
    // By code units, which is how JavaScript compares strings; sort() is stable.
    pairs.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
    this.#list = pairs.flat();
    this.#changed();
  }

  entries() {
    this.#items();
    return new Iterator(this, 2);
  }
  keys() {
    this.#items();
    return new Iterator(this, 0);
  }
  values() {
    this.#items();
    return new Iterator(this, 1);
  }

  forEach(callback, thisArg = undefined) {
    this.#items();
    if (typeof callback !== "function") {
      throw new TypeError("Failed to execute 'forEach' on 'URLSearchParams': parameter 1 is not of type 'Function'.");
    }
    for (let i = 0; i < this.#list.length; i += 2) callback.call(thisArg, this.#list[i + 1], this.#list[i], this);
  }

  toString() {
    return serializeForm(this.#items());
  }

  static {
    attachParams = (url, query) => {
      const params = new URLSearchParams();
      params.#source = query;
      params.#url = url;
      return params;
    };
    replaceParams = (params, query) => {
      params.#source = query;
      params.#list = null;
    };
    itemsOf = (params) => params.#items();
  }
}



// Live: an iterator sees what is changed while it runs.
class Iterator {
  #params;
  #kind; // 0 names, 1 values, 2 pairs
  #index = 0;
  constructor(params, kind) {
    this.#params = params;
    this.#kind = kind;
  }
  next() {
    const list = itemsOf(this.#params);
    const i = this.#index;
    if (i >= list.length) return { value: undefined, done: true };
    this.#index = i + 2;
    const value = this.#kind === 2 ? [list[i], list[i + 1]] : list[i + this.#kind];
    return { value, done: false };
  }
}
{
  const { prototype } = Iterator;
  delete prototype.constructor;
  finishInterface(Iterator, "URLSearchParams Iterator");
  Object.setPrototypeOf(prototype, Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())));
}

finishInterface(URLSearchParams);
Object.defineProperty(URLSearchParams.prototype, Symbol.iterator, {
  value: URLSearchParams.prototype.entries,
  writable: true,
  configurable: true,
});
