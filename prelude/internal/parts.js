// Parts of the prelude that are evaluated when they are first used: what most scripts never touch
// need not be parsed for them.
//
//     import compression from "part:../web/compression.js";
//     compression().CompressionStream     evaluates it if need be
//     compression.loaded()                its exports, or null if nobody has asked for them
//
// tools/build-prelude.mjs makes the scripts. No part can be used while the prelude itself is being
// evaluated: its modules are not complete then.
import { native, options } from "./native.js";

let namespaces = null;
let places = null;
let owners = null;
// Objects without a prototype: what natives and modules are in must not pass through a builtin.
const copies = { __proto__: null }; // name -> a plain object of a module's exports, faster than a namespace
const parts = { __proto__: null }; // name -> the function that loads it

/**
 * Called by the bundle at its end: its modules by name, where each part is, [offset, length], and
 * which part has the modules that parts share.
 */
export function setCore(modules, partPlaces, partOfModule) {
  namespaces = modules;
  places = partPlaces;
  owners = partOfModule;
}

function core(name) {
  let copy = copies[name];
  if (copy === undefined) {
    const owner = owners[name];
    copy = { ...(owner === undefined ? namespaces : definePart(owner)().__modules)[name] };
    copies[name] = copy;
  }
  return copy;
}

export function definePart(name) {
  let part = parts[name];
  if (part !== undefined) return part;
  let exports = null;
  part = () => (exports ??= native.preludePart(name, places[name][0], places[name][1])(native, options, core));
  part.loaded = () => exports;
  parts[name] = part;
  return part;
}
