// Calls between a worker and its own objects on the same lane, with plain values: most calls.
//
// What the two sides exchange must be a copy, but strings and numbers are their own copies, and a
// flat object is copied faster than it is written to bytes and read again. So the arguments and the
// result of such a call stay here, in a slot, and only its number goes through C (bindings/localcall.c):
// by the same mailbox and through the same gates as every other call. Values that are not plain, and
// errors, travel as bytes.
//
// A call to an object written in C has a slot as well: C writes and reads its plain arguments and its plain result.
import { Fault, LocalSend, Outcome } from "../../../src/bindings/border.ts";
import { currentObject, gated } from "../../internal/turn.js";
import { native } from "../../internal/native.js";

const STRING_MAX = 1 << 16; // longer ones count against the limit of a message (RPC-5): bytes
const FIELDS_MAX = 32;
const ARGUMENTS_MAX = 8;
/** Instead of a copy: it must go as bytes. */
export const NOT_PLAIN = Symbol("not plain");

const { getPrototypeOf, keys: ownKeys } = Object;
const { isArray } = Array;
const ObjectPrototype = Object.prototype;
const ArrayPrototype = Array.prototype;

function isPlain(value) {
  switch (typeof value) {
    case "string":
      return value.length <= STRING_MAX;
    case "number":
    case "boolean":
    case "undefined":
      return true;
    default:
      return value === null;
  }
}

/** A copy of a plain value, or of a flat object or array of them; else NOT_PLAIN. */
export function copyPlain(value) {
  if (isPlain(value)) return value;
  if (typeof value !== "object") return NOT_PLAIN;
  try {
    return copyFlat(value);
  } catch {
    return NOT_PLAIN; // a getter or a proxy threw: it will again, where that is expected
  }
}

function copyFlat(value) {
  const prototype = getPrototypeOf(value);
  if (prototype === ObjectPrototype) {
    const names = ownKeys(value);
    if (names.length > FIELDS_MAX) return NOT_PLAIN;
    const copy = {};
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      const field = value[name];
      if (!isPlain(field) || name === "__proto__") return NOT_PLAIN;
      copy[name] = field;
    }
    return copy;
  }
  if (prototype !== ArrayPrototype || !isArray(value) || value.length > FIELDS_MAX || ownKeys(value).length !== value.length) return NOT_PLAIN;
  const copy = [];
  for (let i = 0; i < value.length; i++) {
    if (!isPlain(value[i])) return NOT_PLAIN;
    copy.push(value[i]);
  }
  return copy;
}

/** A copy of the arguments, or null: two objects might be the same one, so one at most is plain. */
export function copyArguments(args) {
  const count = args.length;
  if (count > ARGUMENTS_MAX) return null;
  const copies = [];
  let objects = 0;
  for (let i = 0; i < count; i++) {
    const copy = copyPlain(args[i]);
    if (copy === NOT_PLAIN || (typeof copy === "object" && copy !== null && ++objects > 1)) return null;
    copies.push(copy);
  }
  return copies;
}

/** A call on its way. Slots are used again, and so are these. */
class LocalCall {
  constructor(slot) {
    this.slot = slot;
    this.method = "";
    this.payload = undefined; // the copied arguments, or the parts of a request
    this.result = undefined; // the copied result, or the parts of a response
    this.settle = null; // (outcome, result, bytes, faults, message), with the caller's gate
    this.handle = 0; // of the call, while the object works on it
    this.target = null; // whom it goes to
  }
}
const calls = [];
const free = [];

/** Where a target lives, as far as its stub knows. What is here may move, and what is on another node; what is elsewhere stays there for this instance. */
const UNKNOWN = 0, HERE = 1, ELSEWHERE = 2, COMPILED = 3 /* and written in C */, FAR = 4; // on another node: asked anew

/** Whom a stub calls: the object with `id` in a namespace. */
export class ObjectTarget {
  constructor(ns, id) {
    this.ns = ns;
    this.id = id;
    this.number = 0; // C's, of an object that is here; 0: none
    this.place = UNKNOWN; // where it lives
    this.fetcher = null;
    this.broken = null; // how a call has failed that found the object reset: [bytes, faults, message]
  }
  /** A stub that has seen its object reset stays broken (DO-ST-2); whoever asks for the object anew gets another. */
  failed(bytes, faults, message) {
    if ((faults & Fault.RESET) === 0 || this.broken !== null) return;
    this.broken = [bytes, faults, message];
    forgetStub(this.id);
  }
  get name() {
    return this.id.name;
  }
  /** Whether its stub may be stored (rpc.js, R2). */
  get persistent() {
    return undefined;
  }
  get fetch() {
    return (this.fetcher ??= fetchOf(this));
  }
  /** Asks C where it lives. */
  #locate() {
    const number = native.targetNew(this.ns, `${this.id}`, this.id.name);
    this.place = number > 0 ? HERE : number < 0 ? COMPILED : number === 0 ? ELSEWHERE : FAR;
    this.number = this.place === FAR ? 0 : Math.abs(number);
    return this.place === HERE;
  }
  /** Whether its class is a module's. */
  isCompiled() {
    if (this.place === UNKNOWN) this.#locate();
    return this.place === COMPILED;
  }
  /** Whether a call may go without bytes: nothing need be copied for one that cannot. */
  isHere() {
    return this.place === HERE || ((this.place === UNKNOWN || this.place === FAR) && this.#locate());
  }
  /**
   * Sends a call without bytes to an object that is here; `settle` (outcome, result, bytes, faults,
   * message) gets the answer: a result, or bytes if it was not plain; else an error with its faults.
   * False: the object is not here any more, and what was copied for it is what goes by bytes.
   */
  send(kind, method, payload, settle) {
    if (this.broken !== null) {
      const [bytes, faults, message] = this.broken;
      Promise.resolve().then(() => settle(Outcome.FAILED, undefined, bytes, faults, message));
      return true;
    }
    const call = this.#call(settle);
    call.method = method;
    call.payload = payload;
    let sent = native.localCall(this.number, call.slot, kind);
    if (sent === LocalSend.FORGOTTEN && this.#locate()) sent = native.localCall(this.number, call.slot, kind);
    if (sent === LocalSend.SENT) return true;
    if (sent === LocalSend.ELSEWHERE) this.place = ELSEWHERE; // its home is another instance of the script from now on
    release(call);
    return false;
  }
  #call(settle) {
    const call = free.pop() ?? new LocalCall(calls.length);
    calls[call.slot] = call;
    call.settle = currentObject() === 0 ? settle : gated(settle);
    call.target = this;
    return call;
  }
  /**
   * Calls a method of an object that is written in C with plain arguments; `settle` (outcome, undefined, result, faults,
   * message) gets the answer: a plain value, or bytes if it is not plain. False: it must go as bytes.
   */
  sendCompiled(method, args, settle) {
    if (this.broken !== null || args.length > ARGUMENTS_MAX) return false;
    for (let i = 0; i < args.length; i++) {
      if (!isPlain(args[i])) return false;
    }
    const call = this.#call(settle);
    let sent = native.compiledCall(this.number, call.slot, method, ...args);
    if (sent === LocalSend.FORGOTTEN) {
      this.#locate();
      if (this.place === COMPILED) sent = native.compiledCall(this.number, call.slot, method, ...args);
    }
    if (sent === LocalSend.SENT) return true;
    release(call);
    return false;
  }
  /** Sends a call by bytes; `callback` (outcome, bytes, faults, message) gets the answer. */
  sendBytes(kind, method, bytes, callback) {
    if (this.broken !== null) {
      Promise.resolve().then(() => callback(Outcome.FAILED, ...this.broken));
      return;
    }
    native.objectCall(this.ns, `${this.id}`, this.id.name, kind, method, bytes, (outcome, result, faults, message) => {
      if (outcome === Outcome.FAILED) this.failed(result, faults, message);
      callback(outcome, result, faults, message);
    });
  }
}
let forgetStub = () => {}; // id.js sets it
export function setForgetStub(forget) {
  forgetStub = forget;
}
/** A script has put something on the stub: the next one who asks for the object gets another. */
export const forgetStubOf = (target) => forgetStub(target.id);
let fetchOf = null; // stub.js sets it
export function setFetchOf(make) {
  fetchOf = make;
}

function release(call) {
  call.payload = call.result = undefined;
  call.settle = call.target = null;
  call.handle = 0; // what the object still says to it is too late
  free.push(call);
}

export const localCall = (slot) => calls[slot];

/** C calls: the answer to the call in `slot`, or (DROPPED) that its caller is gone. */
export function localReply(slot, outcome, bytes, faults, message) {
  const call = calls[slot];
  const { settle, result, target } = call;
  release(call);
  if (outcome === Outcome.FAILED) target.failed(bytes, faults, message);
  if (outcome !== Outcome.DROPPED) settle(outcome, result, bytes, faults, message);
}
