// Values that travel by reference: functions, RpcTargets, streams. And calling what came that way.
//
// What one side exports is kept in a table of its owner (an object, or the worker on a lane) under a
// number; the other side holds a stub that names the owner and the number. A call on a stub goes to
// the owner like any call. Parameters' exports end with the call, unless the callee dup()s them;
// those in results end when the receiver disposes of the stub or the collector finds it.
/* global DOMException */
import { currentObject, currentTrace, gated } from "../../internal/gate.js";
import { native } from "../../internal/native.js";
import { describeError } from "../../internal/report.js";
import { deserialize, registerHostObject, serialize } from "../../internal/serialize.js";
import { AbortController, AbortSignal, forgetAborted, isAbortSignal, whenAborted } from "../../web/abort.js";
import { createByteStreamFromPull, createWritableFromSink, isReadableStream, isWritableStream, pumpTo } from "../../web/streams/internal.js";
import { NOT_PLAIN, copyArguments, copyPlain } from "./local.js";
import { decodeRequest, decodeResponse, encodeRequest, encodeResponse, isHeaders, isRequest, isResponse, makeHeaders } from "./fetch-values.js";
import trace from "part:../../internal/trace.js";

export class RpcTarget {}

const DEPTH_MAX = 64; // RPC-4
/** Names that no call may reach (RPC-3). */
const RESERVED = new Set(["constructor", "fetch", "connect", "dup", "alarm", "webSocketMessage", "webSocketClose", "webSocketError"]);
const FAULT = { remote: 1, retryable: 2, overloaded: 4, durableObjectReset: 8 };

export const KIND = { FETCH: 0, RPC: 1, ALARM: 2, TARGET: 3 };

// --- exports -----------------------------------------------------------------------------------

/** Of one owner; past it, sending one more throws. */
const EXPORTS_MAX = 100_000;
/** Numbers are not used again, so that a stub of an owner that has started anew finds nothing. */
let lastNumber = Math.floor(Math.random() * 2 ** 48);

/** What an owner has given out. */
export class Exports {
  constructor() {
    this.byNumber = new Map();
  }
  add(target) {
    if (this.byNumber.size >= EXPORTS_MAX) {
      throw Object.assign(new Error(`More than ${EXPORTS_MAX} functions, targets and streams of this worker or object are in use elsewhere: stubs must be disposed of.`), { overloaded: true });
    }
    const number = ++lastNumber;
    this.byNumber.set(number, { target, count: 1 });
    return number;
  }
  retain(number) {
    const entry = this.byNumber.get(number);
    if (entry !== undefined) entry.count++;
  }
  release(number) {
    const entry = this.byNumber.get(number);
    if (entry === undefined || --entry.count > 0) return;
    this.byNumber.delete(number);
    const dispose = entry.target?.[Symbol.dispose];
    if (typeof dispose === "function" && entry.target instanceof RpcTarget) {
      try {
        dispose.call(entry.target);
      } catch (error) {
        native.log(3, `A dispose method threw: ${describeError(error)}`);
      }
    }
  }
}

const workerExports = new Exports();
let exportsOfObject = () => null; // object.js sets it
export function setExportsOfObject(find) {
  exportsOfObject = find;
}

/** The owner of what runs now: its address as text and its exports. */
function currentOwner() {
  const object = currentObject();
  if (object === 0) return { address: native.workerAddress(), exports: workerExports };
  return { address: native.objectAddress(object), exports: exportsOfObject(object) };
}

// --- values ------------------------------------------------------------------------------------

const TAG = { REFERENCE: 0x30, STREAM: 0x31, REQUEST: 0x32, RESPONSE: 0x33, HEADERS: 0x34, OBJECT: 0x35, SERVICE: 0x36, SINK: 0x37, SIGNAL: 0x38 };

class CallContext {
  /** @param {boolean} lends whether what is exported for the message comes back when its call ends */
  constructor(lends = false) {
    this.lends = lends;
    this.made = []; // [exports, number]: what was exported for this message
    this.received = []; // stubs that came in it and are the receiver's to dispose of
    this.streams = null; // promises of the ends of streams that were exported for it
  }
  export(target) {
    const { address, exports } = currentOwner();
    const number = exports.add(target);
    this.made.push([exports, number]);
    return [address, number];
  }
  writeSpecial(value, writer) {
    if (typeof value === "function") {
      const stub = stubState(value);
      if (stub !== null) {
        if (stub.path.length > 0) throw new DOMException("An RPC property cannot be sent; call it or await it first.", "DataCloneError");
        if (stub.local !== null) {
          const { ns, id, name } = stub.local;
          return write(writer, TAG.OBJECT, { ns, hex: `${id}`, name });
        }
        if (stub.service !== null) return write(writer, TAG.SERVICE, stub.service);
        stub.retain();
        return write(writer, TAG.REFERENCE, { address: stub.address, number: stub.number });
      }
      return write(writer, TAG.REFERENCE, this.reference(value));
    }
    if (value instanceof RpcTarget) return write(writer, TAG.REFERENCE, this.reference(value));
    if (isReadableStream(value)) {
      const source = new StreamSource(value);
      (this.streams ??= []).push(source.pump);
      return write(writer, TAG.STREAM, this.reference(source));
    }
    if (isWritableStream(value)) return write(writer, TAG.SINK, this.reference(new StreamSink(value)));
    if (isAbortSignal(value)) {
      const { aborted, reason } = value;
      return write(writer, TAG.SIGNAL, { aborted, reason, reference: aborted ? undefined : this.reference(new SignalSource(value)) });
    }
    if (isRequest(value)) return write(writer, TAG.REQUEST, encodeRequest(value));
    if (isResponse(value)) return write(writer, TAG.RESPONSE, encodeResponse(value));
    if (isHeaders(value)) return write(writer, TAG.HEADERS, [...value]);
    const prototype = Object.getPrototypeOf(value);
    if (typeof value === "object" && prototype !== null && prototype !== Object.prototype && !Array.isArray(value)) {
      throw new DOMException(`Could not serialize object of type "${prototype.constructor?.name}". This type does not support serialization.`, "DataCloneError");
    }
    return false;
  }
  reference(target) {
    const [address, number] = this.export(target);
    return { address, number, lent: this.lends };
  }
  /** The call that brought stubs is over: they end, those that were lent by themselves. */
  disposeReceived() {
    for (const stub of this.received) stub[Symbol.dispose]();
  }
  /** The call is over: what was lent for it comes back. */
  takeBack() {
    for (const [exports, number] of this.made) exports.release(number);
  }
}

function write(writer, tag, value) {
  writer.byte(tag);
  writer.value(value);
  return true;
}

const register = (tag, read) => registerHostObject({
  tag,
  write: (value, writer) => writer.value(value),
  read: (reader, context) => read(reader.value(), context),
});
register(TAG.REFERENCE, (reference, context) => {
  const stub = makeReference(reference);
  context?.received.push(stub);
  return stub;
});
register(TAG.STREAM, (reference) => streamFrom(keep(reference)));
register(TAG.SINK, (reference) => sinkTo(keep(reference)));
register(TAG.SIGNAL, ({ aborted, reason, reference }) => signalFrom(aborted, reason, reference));
register(TAG.REQUEST, (parts) => decodeRequest(parts));
register(TAG.RESPONSE, (parts) => decodeResponse(parts));
register(TAG.HEADERS, (pairs) => makeHeaders(pairs));
register(TAG.OBJECT, ({ ns, hex, name }) => objectStub(ns, hex, name));
register(TAG.SERVICE, (service) => serviceStub(service));

let objectStub = null; // stub.js sets it
export function setObjectStub(make) {
  objectStub = make;
}

let serviceStub = null; // service.js sets it
export function setServiceStub(make) {
  serviceStub = make;
}

/** A stream on its way: the receiver pulls. */
class StreamSource extends RpcTarget {
  constructor(stream) {
    super();
    this.queue = [];
    this.wake = null;
    this.room = null;
    this.over = false;
    this.stopped = null;
    this.pump = pumpTo(stream, {
      write: (chunk) => {
        if (this.stopped !== null) throw this.stopped.reason;
        this.queue.push(chunk);
        this.wake?.();
        return this.queue.length < 4 ? undefined : new Promise((resolve, reject) => {
          this.room = resolve;
          this.refuse = reject;
        });
      },
      close: () => { this.over = true; this.wake?.(); },
      abort: () => {},
    }).catch((error) => { this.failure = error; this.wake?.(); });
  }
  stop(reason) {
    this.stopped = { reason };
    this.refuse?.(reason);
  }
  async pull() {
    while (this.queue.length === 0) {
      if (this.failure !== undefined) throw this.failure;
      if (this.over) return null;
      await new Promise((resolve) => { this.wake = resolve; });
      this.wake = null;
    }
    const chunk = this.queue.shift();
    this.room?.();
    this.room = null;
    return chunk;
  }
  cancelled(reason) {
    this.failure = reason;
    this.queue.length = 0;
    this.stop(reason);
  }
  /** Nobody can pull any more. */
  [Symbol.dispose]() {
    if (!this.over) this.stop(new Error("The stream was given up by its reader."));
  }
}

/** A stub that outlives the call that brought it. */
function keep(reference) {
  const stub = makeReference(reference);
  return reference.lent ? stub.dup() : stub;
}

function streamFrom(source) {
  const done = (chunk) => {
    if (chunk === null) source[Symbol.dispose]();
    return chunk;
  };
  return createByteStreamFromPull(
    () => source.pull().then(done),
    (reason) => source.cancelled(reason).then(() => source[Symbol.dispose](), () => {}),
  );
}

/** A WritableStream of the sender: the receiver writes, one chunk at a time. */
class StreamSink extends RpcTarget {
  #writer;
  constructor(stream) {
    super();
    this.#writer = stream.getWriter();
  }
  write(chunk) { return this.#writer.write(chunk); }
  close() { return this.#writer.close(); }
  abort(reason) { return this.#writer.abort(reason); }
}

function sinkTo(sink) {
  const end = (promise) => promise.finally(() => sink[Symbol.dispose]());
  return createWritableFromSink({
    write: (chunk) => sink.write(chunk),
    close: () => end(sink.close().then(() => {})),
    abort: (reason) => end(sink.abort(reason).then(() => {})),
  });
}

/** An AbortSignal of the sender: wait() ends when it is aborted, or when it was taken back. */
class SignalSource extends RpcTarget {
  #done = Promise.withResolvers();
  #forget;
  constructor(signal) {
    super();
    const onAbort = () => this.#done.resolve({ reason: signal.reason });
    this.#forget = () => forgetAborted(signal, onAbort);
    whenAborted(signal, onAbort);
  }
  wait() { return this.#done.promise; }
  [Symbol.dispose]() {
    this.#forget();
    this.#done.resolve(null);
  }
}

function signalFrom(aborted, reason, reference) {
  if (aborted) return AbortSignal.abort(reason);
  const controller = new AbortController();
  const source = makeReference(reference);
  const whenOver = (result) => {
    if (result !== null) controller.abort(result.reason);
    source[Symbol.dispose]();
  };
  source.wait().then(whenOver, () => {}); // whoever could abort it is gone
  return controller.signal;
}

// --- stubs -------------------------------------------------------------------------------------

const states = new WeakMap();
const stubState = (value) => states.get(value) ?? null;
const forgotten = new FinalizationRegistry(({ address, number }) => release(address, number));

function release(address, number) {
  native.targetCall(address, "~release", serialize(number), () => {});
}

/** What is behind a proxy: where calls go and the path of names so far. */
class StubState {
  constructor(send, path, parent) {
    this.send = send; // (path, args bytes, callback)
    this.path = path;
    this.parent = parent; // keeps the reference alive while its properties are
    this.address = null;
    this.number = 0;
    this.service = null; // of a worker: {worker, entrypoint, props}
    this.fixed = null; // members that are there at once
    this.disposed = false;
    this.lent = false; // of a call's arguments: the caller takes it back
    this.local = null; // of a Durable Object: its ObjectTarget
    this.lastName = null; // its method that was used last, and
    this.lastMethod = null;
    this.methods = null; // by name, once it was another
    this.method = null; // of a method of a Durable Object: its name, and
    this.target = null; // the ObjectTarget
    this.invoke = null; // what calling the stub itself does, if that is no call to its owner
  }
  retain() {
    native.targetCall(this.address, "~retain", serialize(this.number), () => {});
  }
}

const handler = {
  get(target, key) {
    const { state } = target;
    if (key === state.lastName) return state.lastMethod;
    if (typeof key === "symbol") {
      if (key === Symbol.dispose) return () => dispose(target.proxy);
      return undefined;
    }
    if (key === "then" && state.path.length === 0) return undefined; // a stub is no promise
    if (key === "then") {
      const promise = call(state, state.path, undefined);
      return promise.then.bind(promise);
    }
    if (key === "dup" && state.path.length === 0) {
      return () => {
        if (state.address === null) return target.proxy;
        state.retain();
        return makeReference({ address: state.address, number: state.number });
      };
    }
    if (state.path.length >= DEPTH_MAX) throw new TypeError(`RPC paths are limited to ${DEPTH_MAX} names.`);
    if (state.local !== null && key in OBJECT_MEMBERS) return state.local[key];
    if (state.fixed !== null && key in state.fixed) return state.fixed[key];
    if (state.local !== null) return methodOf(state, key, target.proxy);
    return makeProxy(new StubState(state.send, [...state.path, key], target.proxy));
  },
  apply(target, _, args) {
    const { state } = target;
    if (state.method !== null) return pipelined(callMethod(state, args));
    if (state.invoke !== null) return state.invoke(...args);
    return pipelined(call(state, state.path, args));
  },
  has: () => true,
  getPrototypeOf: () => RpcStub.prototype,
  set: () => { throw new TypeError("The properties of a stub cannot be set."); },
};

function makeProxy(state) {
  const target = () => {};
  const proxy = new Proxy(target, handler);
  target.proxy = proxy;
  target.state = state;
  states.set(proxy, state);
  return proxy;
}

const OBJECT_MEMBERS = { __proto__: null, id: 1, name: 1, fetch: 1 };
const METHODS_MAX = 64; // kept by one stub

/** A method of a Durable Object's stub, which keeps it: most use few, again and again. */
function methodOf(stub, name, proxy) {
  let method = stub.methods?.get(name);
  if (method === undefined) {
    const state = new StubState(stub.send, [name], proxy);
    state.method = name;
    state.target = stub.local;
    method = makeProxy(state);
    if (stub.lastName !== null) {
      stub.methods ??= new Map([[stub.lastName, stub.lastMethod]]);
      if (stub.methods.size < METHODS_MAX) stub.methods.set(name, method);
    }
  }
  stub.lastName = name;
  stub.lastMethod = method;
  return method;
}

function callMethod(state, args) {
  const copies = copyArguments(args);
  if (copies !== null) {
    let resolve, reject;
    const promise = new Promise((fulfill, refuse) => {
      resolve = fulfill;
      reject = refuse;
    });
    const settle = (faults, result, bytes, message) => {
      if (faults >= 0) {
        reject(remoteError(faults, bytes, message));
      } else if (bytes === undefined) {
        resolve(result);
      } else {
        settleWith(bytes, resolve, reject);
      }
    };
    if (state.target.send(KIND.RPC, state.method, copies, settle)) return promise;
  }
  return call(state, state.path, args);
}

function settleWith(bytes, resolve, reject) {
  try {
    resolve(withDispose(bytes));
  } catch (error) {
    reject(error);
  }
}

/** @param {boolean} [lent] its owner takes it back by itself */
function makeReference({ address, number, lent }) {
  const state = new StubState((path, bytes, callback) => native.targetCall(address, `${number}:${path.join(".")}`, bytes, callback), [], null);
  state.address = address;
  state.number = number;
  const proxy = makeProxy(state);
  if (lent) state.lent = true;
  else forgotten.register(proxy, { address, number }, state);
  return proxy;
}

/** A stub of something of one's own, as the other side would hold it. */
export class RpcStub {
  constructor(target) {
    if (typeof target !== "function" && !(target instanceof RpcTarget)) {
      throw new TypeError("Failed to construct 'RpcStub': the value is neither a function nor an RpcTarget.");
    }
    const { address, exports } = currentOwner();
    return makeReference({ address, number: exports.add(target) });
  }
}

function dispose(proxy) {
  const state = states.get(proxy);
  if (state.address === null || state.disposed) return;
  state.disposed = true;
  if (state.lent) return;
  forgotten.unregister(state);
  release(state.address, state.number);
}

/** The classes of what calls return, for those who ask: nobody constructs them. */
export class RpcPromise {
  constructor() {
    throw new TypeError("Illegal constructor");
  }
}
export class RpcProperty {
  constructor() {
    throw new TypeError("Illegal constructor");
  }
}

/** A promise on whose result methods can be called before it is there (RPC-4). */
function pipelined(promise) {
  const target = () => {};
  target.promise = promise;
  return new Proxy(target, resultHandler);
}
const resultHandler = {
  getPrototypeOf: () => RpcPromise.prototype,
  get({ promise }, key) {
    if (key === "then") return (fulfilled, rejected) => promise.then(fulfilled, rejected);
    if (key === "catch" || key === "finally") return promise[key].bind(promise);
    if (key === Symbol.dispose) return () => { promise.then((value) => value?.[Symbol.dispose]?.(), () => {}); };
    if (typeof key === "symbol") return undefined;
    return pipelinedProperty(promise, key);
  },
  apply: ({ promise }, _, args) => pipelined(promise.then((value) => value(...args))),
};
function pipelinedProperty(promise, key) {
  const read = () => promise.then((value) => value?.[key]);
  const target = () => {};
  return new Proxy(target, {
    getPrototypeOf: () => RpcProperty.prototype,
    get(_, next) {
      if (next === "then" || next === "catch" || next === "finally") {
        const property = read();
        return property[next].bind(property);
      }
      if (typeof next === "symbol") return undefined;
      return pipelinedProperty(read(), next);
    },
    apply: (_, __, args) => pipelined(promise.then((value) => {
      if (typeof value?.[key] !== "function") throw new TypeError(`"${key}" is not a function.`);
      return value[key](...args);
    })),
  });
}

/** Bytes of a value for a call, and the context that takes back what was lent with it. */
export function serializeArguments(value) {
  const context = new CallContext(true);
  return { bytes: serialize(value, context), context };
}

/** Answers with a value that leaves for good: what it holds by reference is the receiver's. */
export function replyWith(handle, value) {
  const context = new CallContext();
  reply(handle, serialize(value, context), context);
}

/** Whether the stub that `state`, or what it is a property of, stands for was disposed of. */
function isDisposed(state) {
  while (!state.disposed && state.parent !== null) state = states.get(state.parent);
  return state.disposed;
}

/** Calls, or with args undefined reads, what `path` names. */
function call(state, path, args) {
  if (isDisposed(state)) return Promise.reject(new Error("RPC stub used after being disposed."));
  const context = new CallContext(true);
  let bytes;
  try {
    bytes = serialize(args, context);
  } catch (error) {
    return Promise.reject(error);
  }
  return new Promise((resolve, reject) => {
    state.send(path, bytes, gated((faults, result, message) => {
      context.takeBack();
      if (faults < 0) settleWith(result, resolve, reject);
      else reject(remoteError(faults, result, message));
    }));
  });
}

/** A result that has stubs in it can be disposed of as a whole (RPC-6). */
function withDispose(bytes) {
  const context = new CallContext();
  const value = deserialize(bytes, context);
  if (context.received.length > 0 && value !== null && typeof value === "object") {
    Object.defineProperty(value, Symbol.dispose, {
      value: () => context.disposeReceived(),
      configurable: true,
    });
  }
  return value;
}

/** DO-ERR-1, DO-ERR-2. */
export function remoteError(faults, bytes, message) {
  let error;
  if (bytes !== undefined) {
    try {
      error = deserialize(bytes);
    } catch {}
  }
  if (error === null || (typeof error !== "object" && typeof error !== "function")) {
    if (bytes !== undefined && error !== undefined) return error;
    error = new Error(message);
  }
  for (const name of Object.keys(FAULT)) {
    if (faults & FAULT[name]) {
      try {
        error[name] = true;
      } catch {}
    }
  }
  return error;
}

/** The stub of a Durable Object. */
export function makeObjectStub(target) {
  const state = new StubState((path, bytes, callback) => target.sendBytes(KIND.RPC, path.join("."), bytes, callback), [], null);
  state.local = target;
  return makeProxy(state);
}

/** A stub whose calls `send`; `more` are fields of its state: fixed, service, invoke. */
export function makeStub(send, more) {
  return makeProxy(Object.assign(new StubState(send, [], null), more));
}

// --- answering ---------------------------------------------------------------------------------

/** Finds what a path names on `target`: prototype methods and getters only (RPC-3). */
function resolvePath(target, path, whole) {
  let holder = null;
  let value = target;
  for (const name of path) {
    holder = value;
    if (RESERVED.has(name) || name === "") throw new TypeError(`"${name}" is a reserved method and cannot be called over RPC.`);
    if (value === null || value === undefined) throw notImplemented(name);
    if (value instanceof RpcTarget || value === target) {
      if (typeof value === "function" && !(value instanceof RpcTarget)) throw notImplemented(name);
      if (Object.hasOwn(value, name) && !whole) throw notImplemented(name);
      if (!(name in value) || name in Object.prototype) throw notImplemented(name);
    } else if (!Object.hasOwn(Object(value), name)) {
      throw notImplemented(name);
    }
    value = value[name];
  }
  return { holder, value };
}
const notImplemented = (name) => new TypeError(`The RPC receiver does not implement the method "${name}".`);

/** Runs a call on `target`; returns a promise of nothing: the answer goes by callReply/callFail. */
export async function answer(handle, target, path, bytes) {
  const context = new CallContext();
  const given = new CallContext();
  try {
    const args = deserialize(bytes, given);
    let result;
    if (path.length === 0) {
      if (typeof target !== "function") throw new TypeError("The RPC receiver is not callable.");
      result = target(...args);
    } else {
      const { holder, value } = resolvePath(target, path, false);
      if (args === undefined) result = value;
      else if (typeof value !== "function") throw new TypeError(`"${path.at(-1)}" is not a function.`);
      else result = value.apply(holder, args);
    }
    if (result !== null && (typeof result === "object" || typeof result === "function")) result = await result;
    reply(handle, serialize(result, context), context);
  } catch (error) {
    failCall(handle, error);
  }
  if (given.received.length > 0) given.disposeReceived();
}

/** Names that a rule forbids or that every object has, and all others. */
const ordinary = new Map();
function isOrdinary(name) {
  let known = ordinary.get(name);
  if (known === undefined) {
    known = name !== "" && !RESERVED.has(name) && !(name in Object.prototype);
    if (ordinary.size < 1000) ordinary.set(name, known);
  }
  return known;
}

/** The same as answer() for a call that never left the lane (local.js). */
export function answerLocal(handle, target, local) {
  const { method, payload } = local;
  local.handle = handle;
  let result;
  try {
    let value = isOrdinary(method) && !Object.hasOwn(target, method) ? target[method] : undefined;
    if (typeof value !== "function") {
      ({ value } = resolvePath(target, [method], false));
      if (typeof value !== "function") throw new TypeError(`"${method}" is not a function.`);
    }
    result = Reflect.apply(value, target, payload);
  } catch (error) {
    failCall(handle, error);
    return;
  }
  if (result !== null && (typeof result === "object" || typeof result === "function")) {
    const promise = result instanceof Promise ? result : Promise.resolve(result);
    promise.then((value) => replyLocal(handle, local, value), (error) => failCall(handle, error));
  } else {
    replyLocal(handle, local, result);
  }
}

function replyLocal(handle, local, value) {
  const copy = copyPlain(value);
  if (copy === NOT_PLAIN) {
    try {
      replyWith(handle, value);
    } catch (error) {
      failCall(handle, error);
    }
  } else if (local.handle === handle) {
    local.result = copy;
    native.callReply(handle, undefined);
  }
}

/** The answer to a call: to an object by the call's number, to a worker by minus that of its event. */
export function reply(handle, bytes, context) {
  if (handle > 0) {
    native.callReply(handle, bytes);
  } else if (context?.streams == null) {
    native.eventReply(-handle, bytes, false);
  } else {
    // The event lasts as long as what it streams.
    native.eventReply(-handle, bytes, true);
    Promise.allSettled(context.streams).then(() => native.eventEnd(-handle));
  }
}

/** What is told of something thrown: [its message, its bytes]. */
export function errorParts(error) {
  let bytes;
  try {
    bytes = serialize(error);
  } catch {
    try {
      bytes = serialize(new Error(String(error?.message ?? error)));
    } catch {}
  }
  let message = "an exception that cannot be described";
  try {
    message = error instanceof Error ? error.message : String(error);
  } catch {}
  return [message, bytes];
}

export function failCall(handle, error) {
  if (currentTrace() !== 0) trace().noteException(error);
  const [message, bytes] = errorParts(error);
  if (handle > 0) native.callFail(handle, message, bytes);
  else native.eventReject(-handle, message, bytes);
}

/** A call to something exported: method is "number:path", "~retain" or "~release". */
export function answerTarget(handle, exports, method, bytes) {
  if (method === "~retain" || method === "~release") {
    exports[method.slice(1)](deserialize(bytes));
    reply(handle, serialize(undefined));
    return;
  }
  const colon = method.indexOf(":");
  const entry = exports.byNumber.get(+method.slice(0, colon));
  if (entry === undefined) {
    failCall(handle, new Error("RPC stub used after being disposed."));
    return;
  }
  const path = method.slice(colon + 1);
  answer(handle, entry.target, path === "" ? [] : path.split("."), bytes);
}

/** A call to something the worker itself has exported. */
export function answerWorkerTarget(handle, method, bytes) {
  answerTarget(-handle, workerExports, method, bytes);
}
