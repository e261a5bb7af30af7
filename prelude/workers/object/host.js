// The objects that live on this lane: C creates them, gives them events and lets them go.
import { CallKind, Fault } from "../../../src/bindings/border.ts";
import { forgetGate, runSection } from "../../internal/gate.js";
import { compatibilityFlags, native, options } from "../../internal/native.js";
import { currentTrace, promiseOf } from "../../internal/turn.js";
import { describeError } from "../../internal/report.js";
import { finishInterface } from "../../internal/interface.js";
import { deserialize, serialize } from "../../internal/serialize.js";
import { clearTimeout, setTimeout } from "../../web/timers.js";
import { loopbackExports } from "../context.js";
import { isResponse, responseMove } from "../../web/fetch/internal.js";
import { decodeIncoming, encodeResponse } from "./fetch-values.js";
import { makeId } from "./id.js";
import { localCall } from "./local.js";
import { CARRIED, Caller, Exports, answer, answerLocal, answerTarget, errorParts, failCall, replyWith, setExportsOfObject } from "./rpc.js";
import { restoreSnapshot } from "./recovery.js";
import { deliverSocket, installSockets, setSocketsOf } from "./sockets.js";
import { DurableObject } from "../modules.js";
import { makeStorage } from "./storage.js";
import trace from "part:../../internal/trace.js";

const BLOCK_MS_MAX = options.objectBlockMs ?? 30_000; // DO-CTX-3

/** Number of the object -> its host. */
const hosts = new Map();
setExportsOfObject((object) => hosts.get(object).exports, (object) => hosts.get(object)?.id);
setSocketsOf((object) => {
  const host = hosts.get(object);
  if (host === undefined) throw new Error("This instance of the Durable Object has left memory; its WebSockets cannot be used.");
  return host.sockets;
});

let classes = {}; // the script's exports
let environment;
export function setClasses(exports, env) {
  classes = exports;
  environment = env;
}

const token = Symbol("construct");
let objectOf;

class DurableObjectState {
  #object;
  static {
    objectOf = (state) => state.#object;
  }
  constructor(key, object, id, prototype) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#object = object;
    this.id = id;
    const hasAlarm = () => {
      const host = hosts.get(object);
      return typeof (host === undefined || host.instance === null ? prototype : host.instance).alarm === "function";
    };
    this.storage = makeStorage(object, (callback, resets) => this.#lock(callback, resets), hasAlarm);
  }
  get props() {
    return {};
  }
  get exports() {
    return loopbackExports();
  }
  waitUntil(promise) {
    const object = this.#object;
    native.objectWait(object);
    promiseOf(promise).then(
      () => native.objectUnwait(object),
      (error) => {
        native.objectUnwait(object);
        native.log(4, `A waitUntil() promise was rejected: ${describeError(error)}`);
      },
    );
  }
  blockConcurrencyWhile(callback) {
    return this.#lock(callback, true);
  }
  onNextSessionRestore(snapshot) {
    return restoreSnapshot(this.#object, snapshot);
  }
  abort(reason, settings) {
    const message = reason === undefined ? "Application called abort() to reset Durable Object." : String(reason?.message ?? reason);
    native.log(2, `abort() was called: ${message}`);
    native.objectReset(this.#object, Fault.RESET, message, settings?.retryAlarm ?? true);
    // Not an exception, which the object's code could catch: its turn ends here.
    if (native.objectEnd(this.#object)) for (;;);
    throw new Error(message);
  }
  /** Runs `callback` with the input gate closed; if `resets`, its failure resets the object. */
  #lock(callback, resets) {
    return runSection(this.#object, () => this.#limited(callback, resets));
  }
  async #limited(callback, resets) {
    const object = this.#object;
    let timer;
    try {
      const timeout = new Promise((_, reject) => {
        timer = setTimeout(() => {
          const message = "A call to blockConcurrencyWhile() in a Durable Object waited for too long. The call was canceled and the Durable Object was reset.";
          native.objectReset(object, Fault.RESET | Fault.OVERLOADED, message, true);
          reject(new Error(message));
        }, BLOCK_MS_MAX);
      });
      return await Promise.race([callback(), timeout]);
    } catch (error) {
      if (resets) {
        const [message, bytes] = errorParts(error);
        native.objectReset(object, Fault.RESET, message, true, bytes);
      }
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}
installSockets(DurableObjectState.prototype, objectOf);
finishInterface(DurableObjectState);

class Host {
  constructor(object, instance, id, answersCalls) {
    this.object = object;
    this.instance = instance;
    this.id = id; // in hexadecimal
    this.answersCalls = answersCalls;
    this.given = null;
    this.ends = null;
  }
  get exports() {
    return (this.given ??= new Exports(this.object));
  }
  /** Number of an end -> its WebSocket. */
  get sockets() {
    return (this.ends ??= new Map());
  }
}

/** C calls: make the object `object` of the class. Answers with objectStarted(). */
export function objectCreate(object, className, hex, name) {
  try {
    const Class = classes[className];
    if (typeof Class !== "function") throw new TypeError(`The script exports no class "${className}".`);
    const host = new Host(object, null, hex, Class.prototype instanceof DurableObject || compatibilityFlags.has("js_rpc"));
    hosts.set(object, host);
    const state = new DurableObjectState(token, object, makeId(hex, name, parseInt(hex.slice(0, 2), 16) >> 4), Class.prototype);
    host.instance = new Class(state, environment);
    native.objectStarted(object, undefined);
  } catch (error) {
    if (currentTrace() !== 0) trace().noteException(error);
    native.log(4, `The constructor of ${className} threw: ${describeError(error)}`);
    native.objectStarted(object, ...errorParts(error));
  }
}

/** C calls: the object has left memory. */
export function objectDestroy(object, evicted) {
  hosts.delete(object);
  forgetGate(object, evicted);
}

/** C calls: an event of a WebSocket of the object. */
export function objectSocket(object, call, w, kind, a, b, c) {
  const { instance, sockets } = hosts.get(object);
  deliverSocket(instance, sockets, call, w, kind, a, b, c);
}

/** C calls: an event for the object. Answers with callReply() or callFail(), now or later. */
export function objectDeliver(object, call, kind, method, payload) {
  const host = hosts.get(object);
  if (currentTrace() !== 0 && kind !== CallKind.FETCH) {
    if (kind === CallKind.ALARM) trace().noteAlarm(payload);
    else trace().noteCall(typeof method === "number" ? localCall(method).method : method);
  }
  switch (kind) {
    case CallKind.RPC:
      if (!host.answersCalls) {
        failCall(new Caller(call), new TypeError('The receiving Durable Object does not support RPC, because its class was not declared with `extends DurableObject`. In order to enable RPC, make sure your class extends the special class `DurableObject`, which can be imported from the module "cloudflare:workers".'));
        return;
      }
      if (typeof method === "number") answerLocal(call, host.instance, localCall(method));
      else answer(new Caller(call), host.instance, method.split("."), payload, true);
      return;
    case CallKind.FETCH:
      if (typeof method === "number") deliverLocalFetch(host, call, localCall(method));
      else deliverFetch(host, call, payload);
      return;
    case CallKind.ALARM:
      deliverAlarm(host, call, method, payload);
      return;
    case CallKind.OTHER:
      answerTarget(new Caller(call), host.exports, method, payload);
      return;
  }
}

function runFetch({ instance }, request) {
  if (typeof instance.fetch !== "function") throw new TypeError("Handler does not export a fetch() function.");
  if (currentTrace() !== 0) trace().noteRequest(request);
  return instance.fetch(request);
}

function noteResponse(response) {
  if (currentTrace() !== 0 && isResponse(response)) trace().noteStatus(response.status);
}

/** The same for a request that never left the lane (local.js). */
async function deliverLocalFetch(host, call, local) {
  local.handle = call;
  try {
    const response = await runFetch(host, local.payload);
    noteResponse(response);
    const moved = isResponse(response) && local.handle === call ? responseMove(response) : null;
    if (moved === null) {
      replyWith(new Caller(call), encodeResponse(response));
    } else {
      local.result = moved;
      native.callReply(call, undefined);
    }
  } catch (error) {
    failCall(new Caller(call), error);
  }
}

async function deliverFetch(host, call, bytes) {
  const asker = new Caller(call);
  try {
    const { request, abort } = decodeIncoming(deserialize(bytes, CARRIED));
    const response = await runFetch(host, request);
    noteResponse(response);
    replyWith(asker, encodeResponse(response), abort);
  } catch (error) {
    failCall(asker, error);
  }
}

async function deliverAlarm(host, call, retryCount, scheduledTime) {
  try {
    if (typeof host.instance.alarm !== "function") throw new TypeError("The class has no alarm() method.");
    await host.instance.alarm({ isRetry: retryCount > 0, retryCount, scheduledTime });
    native.callReply(call, serialize(undefined));
  } catch (error) {
    native.log(4, `alarm() threw: ${describeError(error)}`);
    failCall(new Caller(call), error);
  }
}
