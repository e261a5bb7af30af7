// Normalising an algorithm: https://w3c.github.io/webcrypto/#algorithm-normalization-normalize-an-algorithm
//
// A module of an algorithm family registers, for each name, what it can do: per operation a function
// that reads the members of the dictionary it takes, and the implementation.
import { isObject } from "../../internal/webidl.js";
import { DOMException } from "../dom-exception.js";
import { HASH } from "./native-ids.js";

const registry = new Map(); // lower-case name -> { name, params: { operation: read }, implementation }

export function register(name, params, implementation) {
  registry.set(name.toLowerCase(), { name, params, implementation });
}

/** { name, ...members, implementation } */
export function normalize(algorithm, operation) {
  if (algorithm === undefined || algorithm === null) throw new TypeError(`${algorithm} is no algorithm for ${operation}.`);
  if (!isObject(algorithm)) algorithm = { name: `${algorithm}` };
  const { name } = algorithm; // read once: it may be a getter
  const entry = registry.get(`${name}`.toLowerCase());
  const read = entry?.params[operation];
  if (read === undefined) {
    throw new DOMException(`Unrecognized or unimplemented algorithm "${name}" for ${operation}.`, "NotSupportedError");
  }
  const normal = read(algorithm);
  normal.name = entry.name;
  normal.implementation = entry.implementation;
  return normal;
}

/** Whether normalize() would find the algorithm. */
export function supports(algorithm, operation) {
  const name = isObject(algorithm) ? algorithm.name : algorithm;
  return registry.get(`${name}`.toLowerCase())?.params[operation] !== undefined;
}

/** The implementation a key belongs to. */
export const implementationOf = (key) => registry.get(key.algorithm.name.toLowerCase()).implementation;

// Reading members.

export const none = () => ({});

const missing = (name) => new TypeError(`Missing required member '${name}' of the algorithm.`);

/** [EnforceRange] of an unsigned integer type. */
export function integer(value, name, max) {
  const number = Math.trunc(Number(value));
  if (!Number.isFinite(number) || number < 0 || number > max) {
    throw new TypeError(`The member '${name}' of the algorithm is outside of its range.`);
  }
  return number;
}

export function requiredInteger(algorithm, name, max) {
  const value = algorithm[name];
  if (value === undefined) throw missing(name);
  return integer(value, name, max);
}

export const isBufferSource = (value) => value instanceof ArrayBuffer || ArrayBuffer.isView(value);

/** A copy of the bytes of a BufferSource. */
export function bytesOf(value, what = "parameter") {
  return viewOf(value, what).slice();
}

/** The same bytes, not copied: for those that are used before anybody else runs. A detached buffer has none. */
export function viewOf(value, what) {
  if (value instanceof ArrayBuffer) return value.detached ? new Uint8Array() : new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return value.buffer.detached ? new Uint8Array() : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  throw new TypeError(`The provided value of '${what}' is not of type 'BufferSource'.`);
}

export function requiredBytes(algorithm, name) {
  const value = algorithm[name];
  if (value === undefined) throw missing(name);
  return bytesOf(value, name);
}

export function requiredText(algorithm, name) {
  const value = algorithm[name];
  if (value === undefined) throw missing(name);
  return `${value}`;
}

/** { hash: { name } } */
export function hashMember(algorithm) {
  if (algorithm.hash === undefined) throw missing("hash");
  const { name } = normalize(algorithm.hash, "digest");
  return { hash: { name } };
}

export const operationError = (message) => new DOMException(message, "OperationError");
export const notSupported = (message) => new DOMException(message, "NotSupportedError");

for (const name of Object.keys(HASH)) register(name, { digest: none }, null);
