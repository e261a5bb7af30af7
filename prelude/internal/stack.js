// error.stack as programs know it: "Name: message", then lines "    at function (file:line:column)".
//
// The engine calls shape() when a script first looks at the stack of an error, or at what it keeps
// beside it (src/js/engine/stacks.h); what nobody looks at costs nothing. Places are those of the
// project's own files where its source map knows them. Frames of the prelude and of the engine itself
// are left out, unless there are no others.
//
// Error.prepareStackTrace works as in V8: a function that is set there makes the value of `stack`.
import { native } from "./native.js";

/** What the engine makes beside the stack, and no script expects. */
const BESIDE = ["line", "column", "sourceURL"];
const HIDDEN = { writable: true, enumerable: false, configurable: true };
const PLACE = /^(.*?)(?::(\d+))?(?::(\d+))?$/s;

/** A frame, with the methods of V8's CallSite. */
class CallSite {
  #name;
  #file;
  #line;
  #column;
  constructor(name, place) {
    const parts = PLACE.exec(place);
    this.#name = name;
    this.#file = parts[1];
    this.#line = parts[2] === undefined ? null : +parts[2];
    this.#column = parts[3] === undefined ? null : +parts[3];
  }
  getThis() { return undefined; }
  getTypeName() { return null; }
  getFunction() { return undefined; }
  getFunctionName() { return this.#name === "" ? null : this.#name; }
  getMethodName() { return null; }
  getFileName() { return this.#file; }
  getLineNumber() { return this.#line; }
  getColumnNumber() { return this.#column; }
  getEvalOrigin() { return undefined; }
  getScriptNameOrSourceURL() { return this.#file; }
  getScriptHash() { return ""; }
  getEnclosingLineNumber() { return this.#line; }
  getEnclosingColumnNumber() { return this.#column; }
  getPosition() { return 0; }
  getPromiseIndex() { return null; }
  isToplevel() { return true; }
  isEval() { return false; }
  isNative() { return false; }
  isConstructor() { return false; }
  isAsync() { return false; }
  isPromiseAll() { return false; }
  toString() {
    const place = `${this.#file}:${this.#line}:${this.#column}`;
    return this.#name === "" ? place : `${this.#name} (${place})`;
  }
}

/** The frames of the engine's text ("function@file:line:column" lines): [names, places]. */
function framesOf(raw) {
  const names = [], places = [], ownNames = [], ownPlaces = [];
  for (const line of raw.split("\n")) {
    const at = line.indexOf("@");
    const place = at < 0 ? line : line.slice(at + 1);
    if (place === "" || place === "[native code]") continue;
    const name = at > 0 ? line.slice(0, at) : "";
    const own = place.startsWith("cairn:prelude");
    (own ? ownNames : names).push(name.endsWith(" code") ? "" : name);
    (own ? ownPlaces : places).push(place);
  }
  if (names.length === 0) return [ownNames, ownPlaces];
  return [names, native.explainStack(places.join("\n")).split("\n")];
}

/** "Name: message" of an error, or of anything that was given a stack. */
function headOf(error) {
  try {
    const { name, message } = error;
    const title = name === undefined ? "Error" : `${name}`;
    const text = message === undefined ? "" : `${message}`;
    return title === "" ? text : text === "" ? title : `${title}: ${text}`;
  } catch {
    return "Error"; // one of them throws
  }
}

let preparing = false;

/** The value of `stack` for an error and the engine's text of its frames. */
export function stackValue(error, raw) {
  const [names, places] = framesOf(raw);
  const prepare = preparing ? undefined : Error.prepareStackTrace;
  if (typeof prepare === "function") {
    preparing = true; // errors in it get the usual form
    try {
      return Reflect.apply(prepare, Error, [error, names.map((name, i) => new CallSite(name, places[i]))]);
    } finally {
      preparing = false;
    }
  }
  let text = headOf(error);
  for (let i = 0; i < names.length; i++) text += names[i] === "" ? `\n    at ${places[i]}` : `\n    at ${names[i]} (${places[i]})`;
  return text;
}

/** @param {string | undefined} touched what of the properties a script has just written or deleted */
export function shape(error, touched) {
  if (touched !== "stack") {
    const made = Object.getOwnPropertyDescriptor(error, "stack");
    const raw = made === undefined ? "" : made.value;
    if (typeof raw === "string") Reflect.defineProperty(error, "stack", { value: stackValue(error, raw), ...HIDDEN });
  }
  for (const name of BESIDE) {
    if (name !== touched) Reflect.deleteProperty(error, name);
    else if (Object.hasOwn(error, name)) Reflect.defineProperty(error, name, { enumerable: true }); // the script's own
  }
}

/** A stack on something that is no error, or has one: made when it is read. */
export function attach(object, raw) {
  const get = () => {
    const value = stackValue(object, raw);
    set(value);
    return value;
  };
  const set = (value) => {
    Reflect.defineProperty(object, "stack", { value, ...HIDDEN });
  };
  if (!Reflect.defineProperty(object, "stack", { get, set, enumerable: false, configurable: true })) {
    throw new TypeError("Cannot define property stack, object is not extensible");
  }
}

/** Where an error was made: [file, line, column]. */
export function placeOf(error) {
  try {
    for (const line of error.stack.split("\n")) {
      const parts = line.startsWith("    at ") ? /:(\d+):(\d+)\)?$/.exec(line) : null;
      if (parts !== null) return [line.slice(Math.max(7, line.lastIndexOf("(", parts.index) + 1), parts.index), +parts[1], +parts[2]];
    }
  } catch {}
  return ["", 0, 0];
}
