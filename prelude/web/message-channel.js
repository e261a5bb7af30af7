// MessageChannel and MessagePort: https://html.spec.whatwg.org/#message-channels, within one
// context: messages are cloned when they are posted and delivered as tasks of their own.
import { finishInterface } from "../internal/interface.js";
import { illegalConstructor, illegalInvocation, isObject } from "../internal/webidl.js";
import { Event, EventTarget, MessageEvent, defineHandlers, fire } from "./events.js";
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
    const transfer = Array.isArray(options) ? options : options?.transfer;
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
        fire(this, new MessageEvent("message", { data, origin: null }));
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
    if (other === null || other.#closed) return;
    // What was posted before still arrives.
    setTimeout(() => {
      if (other.#closed) return;
      other.#closed = true;
      fire(other, new Event("close"));
    }, 0);
  }
}
defineHandlers(MessagePort.prototype, ["message", "messageerror", "close"], (port, type, set) => {
  if (type === "message" && set) startPort(port);
});
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
