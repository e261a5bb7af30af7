// MessageChannel and MessagePort: https://html.spec.whatwg.org/#message-channels, within one
// context: messages are cloned when they are posted and delivered as tasks of their own. As on the
// platform a port starts with its first listener, `source` of a message is the port that it has come
// to, and both ports are told of the end.
import { finishInterface } from "../internal/interface.js";
import { fieldError, illegalConstructor, illegalInvocation, isDictionary, isObject, parameterError } from "../internal/webidl.js";
import { Event, EventTarget, defineHandlers, fire, platformMessage, setPortHooks } from "./events.js";
import { structuredClone } from "./structured-clone.js";
import { setTimeout } from "./timers.js";

const INTERNAL = Symbol("internal");
/** Messages that wait for a port to be started. */
const MESSAGES_MAX = 100_000;
let isPort;
let startPort;
let entangle;

export class MessagePort extends EventTarget {
  #other = null;
  #queue = [];
  #started = false;
  #closed = false;
  #scheduled = false;

  constructor(token) {
    if (token !== INTERNAL) throw illegalConstructor();
    super();
  }

  static {
    isPort = (value) => isObject(value) && #other in value;
    entangle = (a, b) => {
      a.#other = b;
      b.#other = a;
    };
    startPort = (port) => port.#start();
  }

  postMessage(message, options = undefined) {
    if (!isPort(this)) throw illegalInvocation();
    if (!isDictionary(options)) throw parameterError("postMessage", "MessagePort", 2, "Array or PostMessageOptions");
    const transfer = Array.isArray(options) ? options : options?.transfer;
    if (transfer !== undefined && !Array.isArray(transfer)) throw fieldError("transfer", "PostMessageOptions", "Array");
    const data = structuredClone(message, transfer === undefined ? undefined : { transfer });
    const other = this.#other;
    if (this.#closed || other === null || other.#closed) return;
    if (other.#queue.length >= MESSAGES_MAX) throw new RangeError(`More than ${MESSAGES_MAX} messages wait at the other port.`);
    other.#queue.push(data);
    other.#schedule();
  }

  #start() {
    this.#started = true;
    this.#schedule();
  }

  #schedule() {
    if (!this.#started || this.#scheduled || this.#queue.length === 0) return;
    this.#scheduled = true;
    setTimeout(() => {
      this.#scheduled = false;
      const queue = this.#queue;
      this.#queue = [];
      for (const data of queue) {
        if (this.#closed) return;
        fire(this, platformMessage(data, this));
      }
    }, 0);
  }

  start() {
    if (!isPort(this)) throw illegalInvocation();
    this.#start();
  }

  close() {
    if (!isPort(this)) throw illegalInvocation();
    if (this.#closed) return;
    this.#closed = true;
    const other = this.#other;
    // What was posted before still arrives.
    setTimeout(() => {
      if (other !== null && !other.#closed) {
        other.#closed = true;
        fire(other, new Event("close"));
      }
      fire(this, new Event("close"));
    }, 0);
  }
}
setPortHooks({ isPort, start: startPort });
defineHandlers(MessagePort.prototype, ["message"]);
finishInterface(MessagePort);
Object.defineProperty(MessagePort, "length", { value: 0, configurable: true });

export class MessageChannel {
  #port1 = new MessagePort(INTERNAL);
  #port2 = new MessagePort(INTERNAL);
  constructor() {
    entangle(this.#port1, this.#port2);
  }
  get port1() {
    if (!(isObject(this) && #port1 in this)) throw illegalInvocation();
    return this.#port1;
  }
  get port2() {
    if (!(isObject(this) && #port2 in this)) throw illegalInvocation();
    return this.#port2;
  }
}
finishInterface(MessageChannel);
