// Event and EventTarget (https://dom.spec.whatwg.org/#events), and the events of the Workers
// scope. There is no tree: an event has one target, and a path of length one.
import { isFlagOff } from "../internal/native.js";
import { defineConstants, finishInterface } from "../internal/interface.js";
import { DOMException } from "./dom-exception.js";
import { reportException } from "../internal/report.js";
import { constructorParameterError, fieldError, illegalInvocation, isDictionary, isObject, parameterError } from "../internal/webidl.js";

export let isEvent;
let dispatch;
let markTrusted;

export class Event {
  #type;
  #bubbles;
  #cancelable;
  #composed;
  #trusted = false;
  #target = undefined; // until it is sent, as the platform has it
  #phase = 0;
  #prevented = false;
  #stopped = false;
  #stoppedNow = false;
  #passive = false;

  constructor(type, init = undefined) {
    if (arguments.length < 1) throw constructorParameterError(new.target.name, 1, "string");
    this.#type = `${type}`;
    if (!isDictionary(init)) throw constructorParameterError(new.target.name, 2, "Init");
    this.#bubbles = !!init?.bubbles;
    this.#cancelable = !!init?.cancelable;
    this.#composed = !!init?.composed;
  }

  static {
    isEvent = (value) => isObject(value) && #type in value;
    markTrusted = (event) => {
      event.#trusted = true;
      return event;
    };
    dispatch = (target, event, listeners) => {
      event.#target = target;
      event.#phase = 2;
      const handler = looseHandler(target, event.#type);
      if (handler !== null) {
        try {
          if (handler.call(target, event) === false) event.preventDefault();
        } catch (error) {
          reportException(error);
        }
      }
      const list = listeners ? listeners.get(event.#type) : undefined;
      if (list !== undefined && !event.#stoppedNow) {
        // Listeners that are added meanwhile do not run; those that are removed do not either.
        for (const listener of list.slice()) {
          if (listener.removed) continue;
          if (listener.once) removeListener(listeners, event.#type, listener);
          event.#passive = listener.passive;
          try {
            const { callback } = listener;
            if (typeof callback === "function") callback.call(SETS_THIS ? target : globalThis, event);
            else callback.handleEvent(event);
          } catch (error) {
            reportException(error);
          }
          event.#passive = false;
          if (event.#stoppedNow) break;
        }
      }
      event.#phase = 0;
      event.#stopped = event.#stoppedNow = false;
      return !event.#prevented;
    };
  }

  get type() {
    return brand(this).#type;
  }
  get eventPhase() {
    return brand(this).#phase;
  }
  get composed() {
    return brand(this).#composed;
  }
  get bubbles() {
    return brand(this).#bubbles;
  }
  get cancelable() {
    return brand(this).#cancelable;
  }
  get defaultPrevented() {
    return brand(this).#prevented;
  }
  get returnValue() {
    return !brand(this).#prevented;
  }
  get currentTarget() {
    return brand(this).#target;
  }
  get target() {
    return brand(this).#target;
  }
  get srcElement() {
    return brand(this).#target;
  }
  get timeStamp() {
    brand(this);
    return 0;
  }
  get isTrusted() {
    return brand(this).#trusted;
  }
  get cancelBubble() {
    return brand(this).#stopped;
  }
  set cancelBubble(value) {
    if (value) brand(this).#stopped = true;
  }
  stopImmediatePropagation() {
    brand(this).#stoppedNow = true;
  }
  preventDefault() {
    if (brand(this).#cancelable && !this.#passive) this.#prevented = true;
  }
  stopPropagation() {
    brand(this).#stopped = true;
  }
  composedPath() {
    return brand(this).#phase === 0 ? [] : [this.#target];
  }
}

const SETS_THIS = !isFlagOff("set_event_target_this");
const attributes = new Set(); // the types that have handler attributes somewhere

/**
 * A function that a script has put on a target as `on` and the type, where that is no attribute of
 * its interface: the platform calls it before all listeners.
 */
function looseHandler(target, type) {
  const name = `on${type}`;
  if (attributes.has(type) && !Object.hasOwn(target, name)) return null;
  const handler = target[name];
  return typeof handler === "function" ? handler : null;
}

function brand(event) {
  if (!isEvent(event)) throw illegalInvocation();
  return event;
}

finishInterface(Event);
defineConstants(Event, { NONE: 0, CAPTURING_PHASE: 1, AT_TARGET: 2, BUBBLING_PHASE: 3 });

/** An event that the system sends, not a script. */
export const trusted = (event) => markTrusted(event);

function removeListener(listeners, type, listener) {
  listener.removed = true;
  const list = listeners.get(type);
  const at = list.indexOf(listener);
  if (at >= 0) list.splice(at, 1);
  if (list.length === 0) listeners.delete(type);
}

// The global object is an event target, but not one that `new` has made.
const globalListeners = new Map();
let listenersOf;
let isTarget;
let onListenerAdded = () => {};
let portHooks = { isPort: () => false, start() {} };
let followAbort;

/** abort.js wants to know who listens (see there), and gives the function behind `signal`. */
export function setEventHooks(added, follow) {
  onListenerAdded = added;
  followAbort = follow;
}

/** The same for message-channel.js: what is a port, and the function that starts one. */
export function setPortHooks(hooks) {
  portHooks = hooks;
}

export class EventTarget {
  #listeners = null; // Map: type -> listeners

  static {
    isTarget = (value) => isObject(value) && (#listeners in value || value === globalThis);
    listenersOf = (target) => {
      if (target === globalThis) return globalListeners;
      if (!(isObject(target) && #listeners in target)) throw illegalInvocation();
      return (target.#listeners ??= new Map());
    };
  }

  addEventListener(type, callback, options = undefined) {
    const target = this ?? globalThis;
    const listeners = listenersOf(target);
    if (arguments.length < 1) throw parameterError("addEventListener", "EventTarget", 1, "string");
    if (arguments.length < 2 || (callback !== null && callback !== undefined && !isObject(callback))) {
      throw parameterError("addEventListener", "EventTarget", 2, "function or HandlerObject");
    }
    const name = `${type}`;
    let once = false;
    let passive = false;
    let signal;
    if (isObject(options)) {
      ({ signal } = options);
      once = !!options.once;
      passive = !!options.passive;
      if (options.capture) throw new TypeError("addEventListener(): options.capture must be false.");
      if (signal !== undefined && !(isTarget(signal) && followAbort.isSignal(signal))) {
        throw fieldError("signal", "AddEventListenerOptions", "AbortSignal");
      }
    } else if (options) {
      throw new TypeError("addEventListener(): useCapture must be false.");
    }
    if (callback === null || callback === undefined) return;
    if (typeof callback !== "function" && typeof callback.handleEvent !== "function") {
      throw fieldError("handleEvent", "HandlerObject", "function");
    }
    if (signal !== undefined && signal.aborted) return;
    addListener(target, listeners, name, { callback, once, passive, removed: false, handler: false });
    if (signal !== undefined) followAbort.whenAborted(signal, () => removeFrom(listeners, name, callback));
  }

  removeEventListener(type, callback, options = undefined) {
    const listeners = listenersOf(this ?? globalThis);
    if (arguments.length < 2) throw parameterError("removeEventListener", "EventTarget", arguments.length + 1, arguments.length ? "function or HandlerObject" : "string");
    if (callback !== null && callback !== undefined && !isObject(callback)) throw parameterError("removeEventListener", "EventTarget", 2, "function or HandlerObject");
    if (isObject(options) ? options.capture : options) throw new TypeError("removeEventListener(): a listener is not removed for the capture phase.");
    removeFrom(listeners, `${type}`, callback);
  }

  dispatchEvent(event) {
    const target = this ?? globalThis;
    const listeners = listenersOf(target);
    if (!isEvent(event)) throw parameterError("dispatchEvent", "EventTarget", 1, "Event");
    if (event.eventPhase !== 0) throw new DOMException("The event is already being dispatched.", "InvalidStateError");
    return dispatch(target, event, listeners);
  }
}
finishInterface(EventTarget);

function addListener(target, listeners, type, listener) {
  let list = listeners.get(type);
  if (list === undefined) listeners.set(type, (list = []));
  else if (list.some((other) => other.callback === listener.callback && other.handler === listener.handler)) return;
  list.push(listener);
  onListenerAdded(target, type);
  if (type === "message" && portHooks.isPort(target)) portHooks.start(target);
}

function removeFrom(listeners, type, callback) {
  const list = listeners.get(type);
  const found = list ? list.find((listener) => listener.callback === callback && !listener.handler) : undefined;
  if (found !== undefined) removeListener(listeners, type, found);
}

/** Sends an event of ours; true unless a listener prevented its default. */
export function fire(target, event) {
  return dispatch(target, markTrusted(event), listenersOf(target));
}

/** Whether anybody listens to `type`. */
export function hasListeners(target, type) {
  return listenersOf(target).has(type);
}

/**
 * Defines event handler attributes such as `onabort` (https://html.spec.whatwg.org/#event-handler-idl-attributes).
 * `changed(target, type, set)`, if given, runs after each assignment.
 */
export function defineHandlers(prototype, types, changed = undefined) {
  for (const type of types) {
    attributes.add(type);
    const find = (target) => (listenersOf(target).get(type) ?? []).find((listener) => listener.handler);
    const accessors = {
      get handler() {
        return find(this)?.value ?? null;
      },
      set handler(value) {
        const listener = find(this);
        const usable = isObject(value) ? value : null;
        if (listener !== undefined) {
          if (usable !== null) listener.value = usable;
          else removeListener(listenersOf(this), type, listener);
        } else if (usable !== null) {
          const made = { value: usable, callback: null, once: false, passive: false, removed: false, handler: true };
          made.callback = function (event) {
            if (typeof made.value !== "function") return;
            if (made.value.call(this, event) === false) event.preventDefault();
          };
          addListener(this, listenersOf(this), type, made);
        }
        changed?.(this, type, usable !== null);
      },
    };
    const { get, set } = Object.getOwnPropertyDescriptor(accessors, "handler");
    Object.defineProperty(get, "name", { value: `get on${type}`, configurable: true });
    Object.defineProperty(set, "name", { value: `set on${type}`, configurable: true });
    Object.defineProperty(prototype, `on${type}`, { get, set, enumerable: true, configurable: true });
  }
}

export class CustomEvent extends Event {
  #detail;
  constructor(type, init = undefined) {
    super(...arguments);
    this.#detail = init?.detail;
  }
  get detail() {
    if (!(isObject(this) && #detail in this)) throw illegalInvocation();
    return this.#detail;
  }
}
finishInterface(CustomEvent);

export class ErrorEvent extends Event {
  #init;
  constructor(type, init = undefined) {
    super(...arguments);
    const { message = "", filename = "", lineno = 0, colno = 0, error } = init ?? {};
    this.#init = { message: `${message}`, filename: `${filename}`, lineno: lineno >>> 0, colno: colno >>> 0, error };
  }
  static {
    for (const name of ["filename", "message", "lineno", "colno", "error"]) {
      defineGetter(this.prototype, name, (event) => {
        if (!(isObject(event) && #init in event)) throw illegalInvocation();
        return event.#init[name];
      });
    }
  }
}
finishInterface(ErrorEvent);

/** A message that no script has made: it has no origin, and its data may be undefined. */
export let platformMessage;

export class MessageEvent extends Event {
  #init;
  constructor(type, init = undefined) {
    if (!isDictionary(init)) throw constructorParameterError("MessageEvent", 2, "Initializer");
    super(...arguments);
    const { data = null, origin = "", lastEventId = "", source = null, ports = [] } = init ?? {};
    if (source !== null && !portHooks.isPort(source)) throw fieldError("source", "Initializer", "MessagePort");
    if (![...ports].every(portHooks.isPort)) throw fieldError("ports", "Initializer", "Array of MessagePort");
    this.#init = { data, origin: `${origin}`, lastEventId: `${lastEventId}`, source, ports: Object.freeze([...ports]) };
  }
  static {
    platformMessage = (data, source) => {
      const event = new MessageEvent("message");
      event.#init = { ...event.#init, data, origin: null, source };
      return event;
    };
    for (const name of ["data", "origin", "lastEventId", "source", "ports"]) {
      defineGetter(this.prototype, name, (event) => {
        if (!(isObject(event) && #init in event)) throw illegalInvocation();
        return event.#init[name];
      });
    }
  }
}
finishInterface(MessageEvent);

export class CloseEvent extends Event {
  #init;
  constructor(type, init = undefined) {
    super(...arguments);
    const { code = 0, reason = "", wasClean = false } = init ?? {};
    this.#init = { code: code | 0, reason: `${reason}`, wasClean: !!wasClean };
  }
  static {
    for (const name of ["code", "reason", "wasClean"]) {
      defineGetter(this.prototype, name, (event) => {
        if (!(isObject(event) && #init in event)) throw illegalInvocation();
        return event.#init[name];
      });
    }
  }
}
finishInterface(CloseEvent);

export class PromiseRejectionEvent extends Event {
  #init;
  constructor(type, init) {
    if (arguments.length < 2 || !isObject(init) || !(init.promise instanceof Promise)) {
      throw constructorParameterError("PromiseRejectionEvent", 2, "PromiseRejectionEventInit");
    }
    super(...arguments);
    this.#init = { promise: init.promise, reason: init.reason };
  }
  static {
    for (const name of ["promise", "reason"]) {
      defineGetter(this.prototype, name, (event) => {
        if (!(isObject(event) && #init in event)) throw illegalInvocation();
        return event.#init[name];
      });
    }
  }
}
finishInterface(PromiseRejectionEvent);

/** A read-only attribute whose value `read(this)` gives. */
function defineGetter(prototype, name, read) {
  const getter = { get [name]() { return read(this); } };
  Object.defineProperty(prototype, name, { ...Object.getOwnPropertyDescriptor(getter, name), enumerable: true, configurable: true });
}
