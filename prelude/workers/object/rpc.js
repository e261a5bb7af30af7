// Values that travel by reference: functions, RpcTargets, streams. And calling what came that way.
//
// What one side exports is kept in a table of its owner (an object, or the worker on a lane) under a
// number; the other side holds a stub that names the owner and the number. A call on a stub goes to
// the owner like any call. Parameters' exports end with the call, unless the callee dup()s them;
// those in results end when the receiver disposes of the stub or the collector finds it.
/* global DOMException */
import { CallKind, Fault, Outcome } from "../../../src/bindings/border.ts";
import "../../internal/symbols.js";
import { INNER, afterwards, currentLevel, currentObject, currentOwner as ownerNow, currentTrace, lentBy, gated, here, resume, runAt } from "../../internal/turn.js";
import { compatibilityFlags, native, options } from "../../internal/native.js";
import { noteFault } from "../../internal/fault.js";
import { describeError } from "../../internal/report.js";
import { deserialize, registerHostObject, registerHostPrototype, serialize } from "../../internal/serialize.js";
import { needsEvent } from "../../internal/startup.js";
import { AbortController, AbortSignal, forgetAborted, isAbortSignal, whenAborted } from "../../web/abort.js";
import { createByteStreamFromPull, createWritableFromSink, isReadableStream, isWritableStream, pumpTo } from "../../web/streams/internal.js";
import { NOT_PLAIN, copyArguments, copyPlain, forgetStubOf } from "./local.js";
import { decodeRequest, decodeResponse, encodeRequestValue, encodeResponse, isHeaders, isRequest, isResponse, makeHeaders } from "./fetch-values.js";
import trace from "part:../../internal/trace.js";

export class RpcTarget {}

const DEPTH_MAX = 64; // RPC-4
/** Names that no call may reach (RPC-3): of anything, and of objects and entrypoints. */
const RESERVED = new Set(["constructor", "dup"]);
const RESERVED_HANDLERS = new Set([...RESERVED, "fetch", "connect", "alarm", "webSocketMessage", "webSocketClose", "webSocketError"]);
/** Whether a stub that is an argument leaves its sender, as one in a result always does. */
const TRANSFERS = !compatibilityFlags.has("rpc_params_dup_stubs");
const FAULTS = { remote: Fault.REMOTE, retryable: Fault.RETRYABLE, overloaded: Fault.OVERLOADED, durableObjectReset: Fault.RESET };


// --- exports -----------------------------------------------------------------------------------

/** Of one owner; past it, sending one more throws. */
const EXPORTS_MAX = 100_000;
/** Numbers are not used again, so that a stub of an owner that has started anew finds nothing. */
let lastNumber = Math.floor(Math.random() * 2 ** 48);

/** What an owner has given out. */
export class Exports {
  /** @param {number} object whose they are: while others use something of it, it stays in memory (15 minutes after its last event) */
  constructor(object = 0) {
    this.object = object;
    this.byNumber = new Map();
  }
  /** @param {Lifetime | null} lifetime lasts at least as long as what is given out */
  add(target, lifetime = null) {
    if (this.byNumber.size >= EXPORTS_MAX) {
      throw noteFault(Object.assign(new Error(`More than ${EXPORTS_MAX} functions, targets and streams of this worker or object are in use elsewhere: stubs must be disposed of.`), { overloaded: true }), Fault.OVERLOADED, "");
    }
    const number = ++lastNumber;
    const turn = this.object !== 0 && target instanceof StreamSource ? native.objectStream(this.object) : -1;
    this.byNumber.set(number, { target, count: 1, lifetime, level: currentLevel(), owner: ownerNow(), turn });
    if (this.object !== 0 && this.byNumber.size === 1) native.objectWait(this.object);
    lifetime?.hold();
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
    if (entry.turn >= 0) native.objectStreamEnd(this.object, entry.turn);
    if (this.object !== 0 && this.byNumber.size === 0) native.objectUnwait(this.object);
    try {
      entry.target?.[Symbol.dispose]?.();
    } catch (error) {
      native.log(4, `A dispose method threw: ${describeError(error)}`);
    }
    entry.lifetime?.release();
  }
}

/**
 * How long the stubs last that a worker was given for an event and has duplicated: as long as the
 * event (waitUntil() included) and whatever it has given out in its answer (RPC-6). An object keeps
 * what it duplicates.
 */
export class Lifetime {
  #holds = 1;
  #stubs = new Set();
  add(stub) {
    if (this.#holds === 0) stub[Symbol.dispose]();
    else this.#stubs.add(stub);
  }
  hold() {
    if (this.#holds > 0) this.#holds++;
  }
  release() {
    if (this.#holds > 0 && --this.#holds === 0) this.end();
  }
  end() {
    this.#holds = 0;
    for (const stub of this.#stubs) stub[Symbol.dispose]();
    this.#stubs.clear();
  }
}

const workerExports = new Exports();
let exportsOfObject = () => null; // host.js sets it
let idOfObject = () => undefined;
export function setExportsOfObject(find, findId) {
  exportsOfObject = find;
  idOfObject = findId;
}

/** The owner of what runs now: its address as text and its exports. */
function currentOwner() {
  const object = currentObject();
  if (object === 0) return { address: native.workerAddress(), exports: workerExports };
  return { address: native.objectAddress(object), exports: exportsOfObject(object) };
}

// --- values ------------------------------------------------------------------------------------

const TAG = { REFERENCE: 0x30, STREAM: 0x31, REQUEST: 0x32, RESPONSE: 0x33, HEADERS: 0x34, OBJECT: 0x35, SERVICE: 0x36, SINK: 0x37, SIGNAL: 0x38, DISPOSABLE: 0x39, STUB: 0x3a };

/**
 * R1  What is by reference is read only from bytes that the server itself has carried: a reader says so by
 *     `carries` of its context. Bytes that a script may have made, or that were kept, name nobody.
 */
export const CARRIED = { carries: true };
/** The same of an answer to a request. */
export const CARRIED_ANSWER = { carries: true };

class CallContext {
  /** @param {boolean} lends whether what is exported for the message comes back when its call ends */
  constructor(lends = false, lifetime = null) {
    this.lends = lends;
    this.lifetime = lifetime; // of the event that sends or receives it; null: none that matters
    this.made = []; // [exports, number, address]: what was exported for this message
    this.passed = null; // [address, number, term]: what others have lent, and is held for the receiver
    this.received = []; // stubs that came in it and are the receiver's to dispose of
    this.onStop = null; // called when the receiver gives up one of its streams
    this.streams = null; // promises of the ends of streams that were exported for it
    this.sources = null; // those streams
    this.origin = null; // of an answer: the ObjectTarget that it came from
  }
  get carries() {
    return true;
  }
  export(target) {
    const { address, exports } = currentOwner();
    const number = exports.add(target, this.lends ? null : this.lifetime);
    this.made.push([exports, number, address]);
    return [address, number];
  }
  writeSpecial(value, writer) {
    if (typeof value === "function") {
      const stub = stubState(value);
      if (stub !== null) {
        if (stub.path.length > 0) throw unserializable("RpcProperty");
        if (stub.service !== null) return write(writer, TAG.SERVICE, stub.service);
        if (stub.disposed) throw new Error(DISPOSED);
        checkOwner(stub.owner, "Client");
        const { address, number } = stub;
        stub.retain();
        if (!this.lends || TRANSFERS) value[Symbol.dispose]();
        (this.passed ??= []).push([address, number, stub.term]);
        return write(writer, TAG.REFERENCE, { address, number, lent: this.lends });
      }
      const prototype = Object.getPrototypeOf(value);
      if (prototype === RpcPromise.prototype) throw unserializable("RpcPromise");
      if (prototype === RpcProperty.prototype) throw unserializable("RpcProperty");
      return write(writer, TAG.REFERENCE, this.reference(value));
    }
    if (value instanceof Disposable) return write(writer, TAG.DISPOSABLE, [value.value, value.dispose]);
    if (isReadableStream(value)) {
      const source = new StreamSource(value, this.onStop);
      (this.streams ??= []).push(source.pump);
      (this.sources ??= []).push(source);
      return write(writer, TAG.STREAM, this.reference(source));
    }
    if (isWritableStream(value)) return write(writer, TAG.SINK, this.reference(new StreamSink(value)));
    if (isAbortSignal(value)) {
      const { aborted, reason } = value;
      return write(writer, TAG.SIGNAL, { aborted, reason, reference: aborted ? undefined : this.reference(new SignalSource(value)) });
    }
    if (isRequest(value)) return write(writer, TAG.REQUEST, encodeRequestValue(value));
    if (isResponse(value)) return write(writer, TAG.RESPONSE, encodeResponse(value, true));
    if (isHeaders(value)) return write(writer, TAG.HEADERS, [...value]);
    const prototype = Object.getPrototypeOf(value);
    if (typeof value === "object" && prototype !== Object.prototype && !Array.isArray(value)) {
      throw unserializable(prototype === null ? "Object" : prototype.constructor?.name);
    }
    return false;
  }
  /** A Proxy is no value: it is called where it is, if it shows what can be called. */
  writeProxy(proxy, prototype, writer) {
    const stub = stubState(proxy);
    if (stub !== null) {
      write(writer, TAG.OBJECT, describeObject(stub.local)); // of the stubs only an object's is no function
      return;
    }
    if (prototype !== Object.prototype && !(proxy instanceof RpcTarget)) {
      throw new DOMException("Proxy could not be serialized because it is not a valid RPC receiver type. The Proxy must emulate either a plain object or an RpcTarget, as indicated by the Proxy's prototype chain.", "DataCloneError");
    }
    write(writer, TAG.REFERENCE, this.reference(proxy));
  }
  reference(target) {
    const [address, number] = this.export(target);
    return { address, number, lent: this.lends };
  }
  /** The call that brought stubs is over: they end, those that were lent by themselves. */
  disposeReceived() {
    for (const stub of this.received) stub[Symbol.dispose]();
  }
  /** Whoever has sent it has given up: its streams end with `reason`, whoever has them. */
  abort(reason) {
    if (this.sources !== null) for (const source of this.sources) source.cancelled(reason);
  }
  /** The call is over: what was lent for it comes back. */
  takeBack() {
    for (const [exports, number] of this.made) exports.release(number);
    if (this.passed === null) return;
    for (const [address, number, term] of this.passed) release(address, number, term);
    this.passed = null;
  }
  /** It is an answer: what it has by reference is told, one after the other (remote/leases.h has why). */
  eachGiven(tell) {
    for (const [, number, address] of this.made) tell(address, number);
    if (this.passed !== null) for (const [address, number] of this.passed) tell(address, number);
  }
}

const DISPOSED = "RPC stub used after being disposed.";
/** Whoever had given it out has started anew. */
const GONE = "The execution context which hosts this callback is no longer running.";
const unserializable = (name) => new DOMException(`Could not serialize object of type "${name}". This type does not support serialization.`, "DataCloneError");

const describeObject = ({ ns, id, name, persistent }) => ({ ns, hex: `${id}`, name, persistent });

/** A result with a disposer of its own, which runs when the receiver disposes of it. */
class Disposable {
  constructor(value, dispose) {
    this.value = value;
    this.dispose = dispose;
  }
}

function write(writer, tag, value) {
  writer.byte(tag);
  writer.value(value);
  return true;
}

const register = (tag, read) => registerHostObject({
  tag,
  /** Of an RpcTarget: everything else is found by writeSpecial(). */
  write(value, writer, context) {
    if (!(context instanceof CallContext)) throw new DOMException("Remote RPC references can only be serialized for RPC.", "DataCloneError");
    writer.value(context.reference(value));
  },
  read: (reader, context) => {
    if (context?.carries !== true) throw new DOMException("The serialized value has a reference that cannot be deserialized in this context.", "DataCloneError"); // R1
    return read(reader.value(), context);
  },
});
register(TAG.REFERENCE, (reference, context) => {
  const stub = makeReference(reference);
  if (context !== CARRIED && context !== CARRIED_ANSWER) {
    context.received.push(stub);
    const state = states.get(stub);
    state.lifetime = context.lifetime;
    const { origin } = context;
    if (origin !== null && reference.address === `o${origin.ns}:${origin.id}`) state.origin = origin;
  }
  return stub;
});
registerHostPrototype(TAG.REFERENCE, RpcTarget.prototype);
register(TAG.DISPOSABLE, ([value, dispose]) => new Disposable(value, dispose));
register(TAG.STREAM, (reference, context) => streamFrom(keep(reference), context === CARRIED_ANSWER));
register(TAG.SINK, (reference) => sinkTo(keep(reference)));
register(TAG.SIGNAL, ({ aborted, reason, reference }) => signalFrom(aborted, reason, reference));
register(TAG.REQUEST, (parts) => decodeRequest(parts));
register(TAG.RESPONSE, (parts) => decodeResponse(parts));
register(TAG.HEADERS, (pairs) => makeHeaders(pairs));
register(TAG.OBJECT, (object) => objectStub(object));
register(TAG.SERVICE, (service) => serviceStub(service));

// Stubs that are kept: in an object's storage, and in the props of another stub. They are written as what they
// name, so they work for whoever reads them, also after a restart.
//
// R2  Only what its own worker has made by ctx.exports, with the flag that allows it, is `persistent`, and only that is
//     stored, by a worker that has the flag too. Whenever it is used, its worker must still have it (guard()).
const STORES = compatibilityFlags.has("allow_irrevocable_stub_storage");
/** Contexts of serialize() and deserialize(), for values that are stored, and for props. */
export const IN_STORAGE = STORES ? { stubs: "storage" } : null;
export const IN_PROPS = { stubs: "props" };
const NOT_HERE = "cannot be serialized in this context";

/** What a stub is written as: {worker, ...} or {ns, ...}. */
function describeStub(value, context) {
  const state = stubState(value);
  if (state === null) throw unserializable(value.constructor?.name);
  const kept = context?.stubs !== undefined;
  if (state.service === null && state.local === null) {
    throw new DOMException(`RpcStub ${NOT_HERE}${kept ? " because it is not a persistent stub" : ""}.`, "DataCloneError");
  }
  if (!kept) throw new DOMException(`ServiceStub ${NOT_HERE}.`, "DataCloneError");
  const described = state.service ?? describeObject(state.local);
  if (context.stubs === "storage" && state.invoke !== null) throw unserializable("LoopbackServiceStub");
  if (context.stubs === "storage" && described.persistent !== true) {
    throw new DOMException("Cannot store this stub because the target worker does not have the allow_irrevocable_stub_storage compatibility flag enabled.", "DataCloneError");
  }
  return described;
}

registerHostObject({
  tag: TAG.STUB,
  write: (value, writer, context) => writer.value(describeStub(value, context)),
  read(reader, context) {
    if (context?.stubs === undefined) throw new DOMException("ServiceStub cannot be deserialized in this context.", "DataCloneError");
    const described = reader.value();
    return described.worker === undefined ? objectStub(described) : serviceStub(described);
  },
});

const REFUSALS = [
  null,
  "Invoked a Worker from a stored stub, but the target worker no longer has the allow_irrevocable_stub_storage compatibility flag enabled.",
  "The stub refers to a worker or a Durable Object class that does not exist any more.",
];
/**
 * R2: whether a persistent stub may be used; if not, `callback` (outcome, bytes, faults, message) is told why.
 * @param {string | number} target the name of its worker, or the number of its namespace
 */
export function guard(target, callback) {
  const refusal = REFUSALS[native.stubTarget(target)];
  if (refusal === null) return true;
  Promise.resolve().then(() => callback(Outcome.FAILED, undefined, 0, refusal));
  return false;
}

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
  constructor(stream, onStop) {
    super();
    this.onStop = onStop;
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
    if (this.stopped === null) this.onStop?.();
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
    this.wake?.();
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

/** `isBody`: of an answer, whose reader is told why it ends. Who has a stream by itself is told that it has ended. */
function streamFrom(source, isBody) {
  const done = (chunk) => {
    if (chunk === null) source[Symbol.dispose]();
    return chunk;
  };
  const failed = (cause) => {
    throw isBody ? cause : new Error("ReadableStream received over RPC disconnected prematurely.", { cause });
  };
  return createByteStreamFromPull(
    () => source.pull().then(done, failed),
    (reason) => source.cancelled(reason).then(() => source[Symbol.dispose](), () => {}),
  );
}

/** A WritableStream of the sender: the receiver writes, one chunk at a time. Without a close() it ends in an abort. */
class StreamSink extends RpcTarget {
  #writer;
  #closed = false;
  constructor(stream) {
    super();
    this.#writer = stream.getWriter();
  }
  write(chunk) { return this.#writer.write(chunk); }
  close() {
    this.#closed = true;
    return this.#writer.close();
  }
  /** The receiver has dropped it, or aborted it: its reason stays there, as on the platform. */
  [Symbol.dispose]() {
    if (this.#closed) return;
    this.#closed = true;
    this.#writer.abort(new Error("WritableStream received over RPC was disconnected because the remote execution context has ended.")).catch(() => {});
  }
}

function sinkTo(sink) {
  const end = (promise) => promise.finally(() => sink[Symbol.dispose]());
  return createWritableFromSink({
    write: (chunk) => sink.write(chunk),
    close: () => end(sink.close().then(() => {})),
    abort: () => sink[Symbol.dispose](),
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
const forgotten = new FinalizationRegistry(({ address, number, term }) => release(address, number, term));

function release(address, number, term) {
  native.targetCall(address, "~release", serialize(number), () => {}, term);
}

/** What is behind a proxy: where calls go and the path of names so far. */
class StubState {
  constructor(send, path, parent) {
    this.send = send; // (path, args bytes, callback)
    this.path = path;
    this.parent = parent; // keeps the reference alive while its properties are
    this.address = null;
    this.number = 0;
    this.term = 0; // in which it came: native.stubTerm()
    this.service = null; // of a worker: {worker, entrypoint, props}
    this.fixed = null; // members that are there at once
    this.own = null; // properties that a script has given the stub
    this.disposed = false;
    this.lent = false; // of a call's arguments: the caller takes it back
    this.lifetime = null; // its duplicates end with it; null: with nothing
    this.local = null; // of a Durable Object: its ObjectTarget
    this.lastName = null; // its method that was used last, and
    this.lastMethod = null;
    this.methods = null; // by name, once it was another
    this.method = null; // of a method of a Durable Object: its name, and
    this.target = null; // the ObjectTarget
    this.owner = 0; // of something that was given out: for whom it came (ownerNow())
    this.origin = null; // of something that an object has given out: that one's ObjectTarget, if it came from there
    this.invoke = null; // what calling the stub itself does, if that is no call to its owner
  }
  retain() {
    native.targetCall(this.address, "~retain", serialize(this.number), () => {}, this.term);
  }
}

/** What every object has: nobody calls these over RPC. */
const INHERITED = new Set(Object.getOwnPropertyNames(Object.prototype));
function inherited(prototype, key) {
  if (key === "__proto__") return prototype;
  return key === "constructor" ? prototype.constructor : Object.prototype[key];
}

const prototypeOf = (state) => {
  if (state.path.length > 0) return RpcProperty.prototype;
  if (state.local !== null) return ObjectStub.prototype;
  return state.service === null ? RpcStub.prototype : ServiceStub.prototype;
};
const hasDispose = (state) => state.path.length === 0 && state.local === null && state.service === null;

const handler = {
  get(target, key) {
    const { state } = target;
    if (key === state.lastName) return state.lastMethod;
    if (state.own !== null && Object.hasOwn(state.own, key)) return state.own[key];
    if (typeof key === "symbol") {
      if (key === Symbol.dispose) return () => dispose(target.proxy);
      return key === Symbol.toStringTag ? prototypeOf(state)[key] : undefined;
    }
    if ((key === "then" || key === "toJSON") && state.path.length === 0) return undefined; // a stub is no promise, and shows what it has
    if (key === "then" || ((key === "catch" || key === "finally") && state.path.length > 0)) {
      const promise = call(state, state.path, undefined);
      return promise[key].bind(promise);
    }
    if (key === "dup" && state.path.length === 0) {
      return () => {
        if (state.address === null) return target.proxy;
        if (state.disposed) throw new Error(DISPOSED);
        state.retain();
        const duplicate = makeReference({ address: state.address, number: state.number }, state.term);
        if (state.lifetime !== null) {
          states.get(duplicate).lifetime = state.lifetime;
          state.lifetime.add(duplicate);
        }
        return duplicate;
      };
    }
    if (state.path.length >= DEPTH_MAX) throw tooDeep();
    if (INHERITED.has(key)) return inherited(prototypeOf(state), key);
    if (state.fixed !== null && key in state.fixed) return state.fixed[key];
    if (state.local !== null && key in OBJECT_MEMBERS) return state.local[key];
    if (state.local !== null) return methodOf(state, key, target.proxy);
    return makeProxy(new StubState(state.send, [...state.path, key], target.proxy));
  },
  apply(target, _, args) {
    const { state } = target;
    if (state.method !== null) return pipelined(callMethod(state, args));
    if (state.invoke !== null) return state.invoke(...args);
    return pipelined(call(state, state.path, args));
  },
  /** Any name may be one of the other side's. */
  has: ({ state }, key) => {
    if (state.own !== null && Object.hasOwn(state.own, key)) return true;
    if (typeof key === "symbol") return key === Symbol.toStringTag || (key === Symbol.dispose && hasDispose(state));
    return key !== "then" || state.path.length > 0;
  },
  getPrototypeOf: ({ state }) => prototypeOf(state),
  /** A property of the stub itself, from then on. */
  set: ({ state }, key, value) => define(state, key, { value, writable: true, enumerable: true, configurable: true }),
  defineProperty: ({ state }, key, descriptor) => define(state, key, { ...descriptor, configurable: true }),
  deleteProperty: ({ state }, key) => {
    if (state.own !== null) delete state.own[key];
    return true;
  },
  ownKeys: ({ state }) => [...SHOWN.filter((name) => isShown(state, name)), ...(state.own === null ? [] : Reflect.ownKeys(state.own))],
  getOwnPropertyDescriptor: ({ state }, key) => {
    if (state.own !== null && Object.hasOwn(state.own, key)) return Object.getOwnPropertyDescriptor(state.own, key);
    return isShown(state, key) ? { value: state.local[key], writable: true, enumerable: true, configurable: true } : undefined;
  },
};

/** What the stub of an object shows of itself, unless a script has put something in its place. */
const SHOWN = ["name", "id"];
const isShown = (state, key) => state.local !== null && (key === "name" || key === "id") && state.local[key] !== undefined && (state.own === null || !Object.hasOwn(state.own, key));

function define(state, key, descriptor) {
  state.own ??= Object.create(null);
  state.lastName = state.lastMethod = state.methods = null;
  if (state.local !== null) forgetStubOf(state.local);
  return Reflect.defineProperty(state.own, key, descriptor);
}

function makeProxy(state) {
  const target = state.local === null ? () => {} : {}; // an object is not called
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
  let method = stub.methods ? stub.methods.get(name) : undefined;
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
  needsEvent();
  const copies = state.target.isHere() ? copyArguments(args) : null;
  if (copies !== null) {
    const place = calledHere();
    let resolve, reject;
    const promise = new Promise((fulfill, refuse) => {
      resolve = fulfill;
      reject = refuse;
    });
    const settle = (outcome, result, bytes, faults, message) => {
      if (outcome === Outcome.FAILED) {
        reject(located(place, remoteError(bytes, faults, message)));
      } else if (bytes === undefined) {
        if (typeof result === "object" && result !== null) Object.defineProperty(result, Symbol.dispose, NOTHING_TO_DISPOSE);
        resolve(result);
      } else {
        settleWith(bytes, resolve, reject, state.target);
      }
    };
    if (state.target.send(CallKind.RPC, state.method, copies, settle)) return promise;
    args = copies; // they were read once
  }
  return (state.target.isCompiled() ? callCompiled(state, args) : null) ?? call(state, state.path, args);
}

/** The promise of a method of an object in C, called with plain arguments; null: they are not. */
function callCompiled(state, args) {
  const { promise, resolve, reject } = Promise.withResolvers();
  const settle = (outcome, _, result, faults, message) => {
    if (outcome === Outcome.FAILED) reject(remoteError(result, faults, message));
    else if (typeof result === "object" && result !== null) settleWith(result, resolve, reject, state.target);
    else resolve(result);
  };
  return state.target.sendCompiled(state.method, args, settle) ? promise : null;
}

const NOTHING_TO_DISPOSE = { value: () => {}, writable: true, enumerable: false, configurable: true };

function settleWith(bytes, resolve, reject, origin) {
  try {
    resolve(withDispose(bytes, origin));
  } catch (error) {
    reject(error);
  }
}

/**
 * `lent`: its owner takes it back by itself.
 * @param {number} [term] of the stub that it is a duplicate of
 */
function makeReference({ address, number, lent }, term = native.stubTerm()) {
  const state = new StubState((path, bytes, callback) => native.targetCall(address, `${number}:${path.join(".")}`, bytes, callback, term), [], null);
  state.address = address;
  state.number = number;
  state.term = term;
  state.owner = ownerNow();
  const proxy = makeProxy(state);
  if (lent) state.lent = true;
  else forgotten.register(proxy, { address, number, term }, state);
  return proxy;
}

/** A stub of something of one's own, as the other side would hold it. */
export class RpcStub {
  constructor(target) {
    if (target === null || accessOf(target) === NONE) {
      throw new TypeError("Failed to construct 'RpcStub': the value is neither a function, nor a plain object, nor an RpcTarget.");
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
  release(state.address, state.number, state.term);
}

/** What stubs of services, and of objects, are instances of. */
export class ServiceStub {
  constructor() {
    throw new TypeError("Illegal constructor");
  }
}
class ObjectStub extends ServiceStub {}
Object.defineProperty(ObjectStub, "name", { value: "DurableObject", configurable: true });
for (const prototype of [ServiceStub.prototype, RpcStub.prototype]) registerHostPrototype(TAG.STUB, prototype);
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

/** A promise on whose result, and what is in it, methods can be called before it is there (RPC-4). */
function pipelined(promise) {
  const target = () => {};
  target.promise = promise;
  target.path = NO_PATH;
  target.owner = ownerNow();
  return new Proxy(target, resultHandler);
}

/** What came for one event of a worker, or one object, is not another's to use. The value of a promise may be: a script shares that. */
function checkOwner(owner, type) {
  const now = ownerNow();
  if (owner === now || owner === 0 || now === 0) return;
  throw new Error("Cannot perform I/O on behalf of a different request. I/O objects (such as streams, request/response bodies, and others) created in the context of one request handler " +
    `cannot be accessed from a different request's handler. This is a limitation of Cloudflare Workers which allows us to improve overall performance. (I/O type: ${type})`);
}
const NO_PATH = [];
for (const [shown, tag] of [[ServiceStub, "Fetcher"], [ObjectStub, "DurableObject"], [RpcStub, "JsRpcStub"], [RpcPromise, "JsRpcPromise"], [RpcProperty, "JsRpcProperty"]]) {
  Object.defineProperty(shown.prototype, Symbol.toStringTag, { value: tag, configurable: true });
}

const resultPrototype = (path) => (path.length === 0 ? RpcPromise : RpcProperty).prototype;
const resultHandler = {
  getPrototypeOf: ({ path }) => resultPrototype(path),
  has: ({ path }, key) => (typeof key === "string" || key === Symbol.toStringTag || (key === Symbol.dispose && path.length === 0)),
  ownKeys: () => [],
  getOwnPropertyDescriptor: () => undefined,
  get({ promise, path, owner }, key) {
    if (key === INNER) return path.length === 0 ? promise : undefined;
    if (key === "then" && path.length === 0) return (fulfilled, rejected) => promise.then(fulfilled, rejected);
    if (key === "then" || key === "catch" || key === "finally") {
      if (path.length > 0) checkOwner(owner, "Pipeline");
      const value = path.length === 0 ? promise : promise.then((root) => walk(root, path).value);
      return value[key].bind(value);
    }
    if (key === Symbol.dispose && path.length === 0) return () => { promise.then((value) => value?.[Symbol.dispose]?.(), () => {}); };
    if (typeof key === "symbol") return key === Symbol.toStringTag ? resultPrototype(path)[key] : undefined;
    if (path.length >= DEPTH_MAX) throw tooDeep();
    if (INHERITED.has(key)) return inherited(resultPrototype(path), key);
    const target = () => {};
    target.promise = promise;
    target.path = [...path, key];
    target.owner = owner;
    return new Proxy(target, resultHandler);
  },
  apply({ promise, path, owner }, _, args) {
    checkOwner(owner, "JsRpcPromise");
    return pipelined(promise.then((root) => {
      const { holder, value } = walk(root, path);
      if (typeof value !== "function") throw new TypeError(path.length === 0 ? "The RPC receiver is not callable." : `"${path.join(".")}" is not a function.`);
      return stubState(value) === null ? Reflect.apply(value, holder, args) : value(...args);
    }));
  },
};
const tooDeep = () => new TypeError(`RPC stub property chain is too deep: at most ${DEPTH_MAX} names.`);

/** What a path names in a result, as the other side would have given it. A property of a stub is not asked for yet. */
function walk(root, path) {
  let holder;
  let value = root;
  for (let i = 0; i < path.length; i++) {
    holder = value;
    const access = stubState(holder) !== null ? REMOTE : accessOf(holder);
    if (access === NONE) throw notImplemented(path[i === 0 ? 0 : i - 1]);
    if (access !== REMOTE && !Object.hasOwn(holder, path[i])) throw notImplemented(path[i]);
    value = holder[path[i]];
  }
  return { holder, value };
}

/** Bytes of a value for a call, and the context that takes back what was lent with it. */
export function serializeArguments(value) {
  const context = new CallContext(true);
  return { bytes: serialize(value, context), context };
}

/** Calls a handler of a worker by name: `send` (method, bytes, callback) takes the arguments there. */
export function callHandler(send, method, args) {
  needsEvent();
  return call(new StubState((path, bytes, callback) => send(method, bytes, callback), NO_PATH, null), NO_PATH, args);
}

/** What a stub stands for: {worker, entrypoint, props}; null: it is no worker's. */
export const stubService = (value) => stubState(value)?.service ?? null;

/** Answers with a value that leaves for good: what it holds by reference is the receiver's. */
export function replyWith(asker, value, onStop = null) {
  const context = new CallContext();
  context.onStop = onStop;
  asker.reply(serialize(value, context), context.streams, context);
}

/** Whether the stub that `state`, or what it is a property of, stands for was disposed of. */
function isDisposed(state) {
  while (!state.disposed && state.parent !== null) state = states.get(state.parent);
  return state.disposed;
}

/** Calls, or with args undefined reads, what `path` names. */
function call(state, path, args) {
  if (isDisposed(state)) return Promise.reject(new Error(DISPOSED));
  const context = new CallContext(true);
  let bytes;
  try {
    bytes = serialize(args, context);
  } catch (error) {
    return Promise.reject(error);
  }
  const root = rootOf(state);
  const sent = ++sentCount;
  const place = calledHere();
  return new Promise((resolve, reject) => {
    needsEvent();
    state.send(path, bytes, gated((outcome, result, faults, message) => {
      context.takeBack();
      if (outcome === Outcome.RETURNED) settleWith(result, resolve, reject, root.local ?? root.origin);
      else reject(located(place, root.address === null ? remoteError(result, faults, message) : ownerError(root, sent, result, faults, message)));
    }));
  });
}

const IN_DEVELOPMENT = options.development === true;
const calledHere = () => (IN_DEVELOPMENT ? new Error() : undefined);
const framesOf = ({ stack }) => (typeof stack === "string" ? stack.split("\n").filter((line) => line.startsWith("    at ") && !line.includes("cairn:prelude")) : []);

/** In development an error that no code of the project has thrown (a method that is not there) belongs to the line of the call. */
function located(place, error) {
  if (place === undefined || !(error instanceof Error) || framesOf(error).length > 0) return error;
  const frames = framesOf(place);
  if (frames.length > 0) error.stack = [`${error.name}: ${error.message}`, ...frames].join("\n");
  return error;
}

const rootOf = (state) => {
  while (state.parent !== null) state = states.get(state.parent);
  return state;
};

/** How owners of stubs have ended that were reset: address -> the failure, and how many calls had been sent by then. */
const ends = new Map();
const ENDS_MAX = 1000;
let sentCount = 0;

/** A call on something that was given out has failed. What was on its way when its owner was reset fails for that reason. */
function ownerError(root, sent, result, faults, message) {
  if ((faults & Fault.RESET) !== 0) {
    if (ends.size >= ENDS_MAX) ends.clear();
    ends.set(root.address, { failure: [result, faults, message], sent: sentCount });
    if (root.origin !== null) root.origin.failed(result, faults, message);
  } else if (message === GONE) {
    const end = ends.get(root.address);
    if (end !== undefined && sent <= end.sent) return remoteError(...end.failure);
  }
  return remoteError(result, faults, message);
}

/** A result that has stubs in it can be disposed of as a whole (RPC-6). */
function withDispose(bytes, origin) {
  const context = new CallContext();
  context.origin = origin;
  let value = deserialize(bytes, context);
  let dispose = null;
  if (value instanceof Disposable) ({ value, dispose } = value);
  if (value !== null && typeof value === "object") {
    Object.defineProperty(value, Symbol.dispose, {
      value: () => {
        if (dispose !== null) dispose().then(() => {}, () => {}); // before its stub goes with the others
        context.disposeReceived();
      },
      writable: true,
      configurable: true,
    });
  }
  return value;
}

/** DO-ERR-1, DO-ERR-2. */
export function remoteError(bytes, faults, message) {
  let error;
  if (bytes !== undefined) {
    try {
      error = deserialize(bytes);
    } catch {}
  }
  // What was thrown and is no object arrives as an error that says it.
  if (error === undefined) error = new Error(message);
  else if (error === null || (typeof error !== "object" && typeof error !== "function")) error = new Error(`${error}`);
  for (const name of Object.keys(FAULTS)) {
    if (faults & FAULTS[name]) {
      try {
        error[name] = true;
      } catch {}
    }
  }
  return noteFault(error, faults, message);
}

/** The stub of a Durable Object. */
export function makeObjectStub(target) {
  const state = new StubState((path, bytes, callback) => target.sendBytes(CallKind.RPC, path.join("."), bytes, callback), [], null);
  state.local = target;
  return makeProxy(state);
}

/** A stub whose calls `send`; `more` are fields of its state: fixed, service, invoke. */
export function makeStub(send, more) {
  return makeProxy(Object.assign(new StubState(send, [], null), more));
}

// --- answering ---------------------------------------------------------------------------------

/** How members of a value are reached: by its class only, by its own properties only, not at all, or by a stub. */
const CLASS = 0, OWN = 1, NONE = 2, REMOTE = 3;
function accessOf(value) {
  const stub = stubState(value);
  if (stub !== null) return stub.path.length === 0 ? REMOTE : NONE;
  if (value instanceof RpcTarget) return CLASS;
  if (typeof value === "function") {
    const prototype = Object.getPrototypeOf(value);
    return prototype === RpcPromise.prototype || prototype === RpcProperty.prototype ? NONE : OWN;
  }
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype ? OWN : NONE;
}

/** Finds what a path names on `target`, an exported value or an instance of an entrypoint or object (RPC-3). */
function resolvePath(target, path, handles) {
  const reserved = handles ? RESERVED_HANDLERS : RESERVED;
  let access = handles ? CLASS : accessOf(target);
  let holder = null;
  let value = target;
  for (let i = 0; i < path.length; i++) {
    const name = path[i];
    holder = value;
    if (access === REMOTE) {
      value = holder[name];
      continue;
    }
    if (reserved.has(name)) throw new TypeError(`'${name}' is a reserved method and cannot be called over RPC.`);
    if (access === NONE || Object.hasOwn(holder, name) !== (access === OWN)) throw notImplemented(name);
    value = holder[name];
    if (access === CLASS && value === Object.prototype[name]) throw notImplemented(name);
    if (i === path.length - 1) break;
    access = accessOf(value);
    if (access === NONE) throw notImplemented(name);
  }
  return { holder, value };
}
const notImplemented = (name) => new TypeError(`The RPC receiver does not implement the method "${name}".`);

/** A result that has a disposer of its own is wrapped, so that it goes along. */
function withDisposer(result) {
  if (result === null || typeof result !== "object" || Object.getPrototypeOf(result) !== Object.prototype) return result;
  const dispose = result[Symbol.dispose];
  return typeof dispose === "function" ? new Disposable(result, () => dispose.call(result)) : result;
}

/** Whom an answer goes to: the caller of an object, by the number of its call. */
export class Caller {
  constructor(call) {
    this.call = call;
  }
  /**
   * @param {Promise<void>[] | null} streams of what the answer has in it; the object lives on, whoever reads them
   * @param {CallContext | null} context of what the answer has by reference
   */
  reply(bytes, streams = null, context = null) {
    context?.eachGiven((address, number) => native.callLends(this.call, address, number));
    native.callReply(this.call, bytes);
  }
  fail(error) {
    if (error instanceof Error) noteObject(error);
    const [message, bytes] = errorParts(error);
    native.callFail(this.call, message, bytes);
  }
}

/** The same of an event of a worker: whoever dispatched it. */
export class Dispatcher {
  constructor(event) {
    this.event = event;
  }
  reply(bytes, streams = null, context = null) {
    context?.eachGiven((address, number) => native.eventLends(this.event, address, number));
    native.eventReply(this.event, bytes, streams !== null);
    // The event lasts as long as what it streams.
    if (streams !== null) Promise.allSettled(streams).then(() => native.eventEnd(this.event));
  }
  fail(error) {
    const [message, bytes] = errorParts(error);
    native.eventReject(this.event, message, bytes);
  }
}

/**
 * Runs a call on `target`; returns a promise of nothing: the answer goes to `asker`.
 * @param {Caller | Dispatcher} asker
 * @param {boolean} handles whether it is an entrypoint or an object, not something exported
 * @param {Lifetime | null} lifetime of the event, if the target is a worker's
 */
export async function answer(asker, target, path, bytes, handles, lifetime = null) {
  const context = new CallContext(false, lifetime);
  const given = new CallContext(false, lifetime);
  try {
    const args = deserialize(bytes, given);
    const { holder, value } = resolvePath(target, path, handles);
    let result = value;
    if (args !== undefined) {
      if (typeof value !== "function") throw new TypeError(`"${path.length === 0 ? "(this)" : path.join(".")}" is not a function.`);
      result = stubState(value) === null ? Reflect.apply(value, holder ?? undefined, args) : value(...args);
    }
    if (result !== null && (typeof result === "object" || typeof result === "function")) result = withDisposer(await result);
    asker.reply(serialize(result, context), context.streams, context);
  } catch (error) {
    failCall(asker, error);
  }
  if (given.received.length > 0) given.disposeReceived();
}

/** Names that a rule forbids or that every object has, and all others. */
const ordinary = new Map();
function isOrdinary(name) {
  let known = ordinary.get(name);
  if (known === undefined) {
    known = !RESERVED_HANDLERS.has(name) && !(name in Object.prototype);
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
      ({ value } = resolvePath(target, [method], true));
      if (typeof value !== "function") throw new TypeError(`"${method}" is not a function.`);
    }
    result = Reflect.apply(value, target, payload);
  } catch (error) {
    failCall(new Caller(handle), error);
    return;
  }
  if (result !== null && (typeof result === "object" || typeof result === "function")) {
    const promise = result instanceof Promise ? result : Promise.resolve(result);
    const context = here();
    afterwards(promise, (value) => {
      resume(context);
      replyLocal(handle, local, value);
    }, (error) => {
      resume(context);
      failCall(new Caller(handle), error);
    });
  } else {
    replyLocal(handle, local, result);
  }
}

function replyLocal(handle, local, value) {
  const copy = copyPlain(value);
  if (copy === NOT_PLAIN) {
    const asker = new Caller(handle);
    try {
      replyWith(asker, value);
    } catch (error) {
      failCall(asker, error);
    }
  } else if (local.handle === handle) {
    local.result = copy;
    native.callReply(handle, undefined);
  }
}

/**
 * What is told of something thrown: its message, its bytes.
 * @returns {[string, Uint8Array | undefined]}
 */
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

/** An error that leaves an object says which one. */
function noteObject(error) {
  const object = currentObject();
  if (object === 0 || Object.hasOwn(error, "durableObjectId")) return;
  try {
    error.durableObjectId = idOfObject(object);
  } catch {}
}

/** What the call of `asker` ran into. */
export function failCall(asker, error) {
  if (currentTrace() !== 0) trace().noteException(error);
  asker.fail(error);
}

const LEND = "~lend@";
/** A call to something exported: method is "number:path", or a note (src/object/lent.h). */
export function answerTarget(asker, exports, method, bytes) {
  if (method === "~retain" || method === "~release") {
    exports[method.slice(1)](deserialize(bytes));
    asker.reply(serialize(undefined));
    return;
  }
  if (method.startsWith(LEND)) {
    native.lend(exports.object, deserialize(bytes), method.slice(LEND.length));
    asker.reply(serialize(undefined));
    return;
  }
  const colon = method.indexOf(":");
  const entry = exports.byNumber.get(+method.slice(0, colon));
  if (entry === undefined) {
    failCall(asker, new Error(GONE));
    return;
  }
  lentBy(entry.owner);
  // What a critical section has lent is called in it (gate.js).
  const path = method.slice(colon + 1);
  runAt(entry.level, () => answer(asker, entry.target, path === "" ? [] : path.split("."), bytes, false, entry.lifetime));
}

/** A call to something the worker itself has exported. */
export function answerWorkerTarget(event, method, bytes) {
  answerTarget(new Dispatcher(event), workerExports, method, bytes);
}
