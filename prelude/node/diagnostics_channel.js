// node:diagnostics_channel
import { invalidArgType, validateFunction } from "./internal/errors.js";
import { compatibilityFlags, noteChannel, reportException } from "./internal/internals.js";

const channels = new Map();

export class Channel {
  #subscribers = [];
  #stores = new Map();
  constructor(name) {
    this.name = name;
  }
  get hasSubscribers() {
    return this.#subscribers.length > 0 || this.#stores.size > 0;
  }
  subscribe(subscriber) {
    validateFunction(subscriber, "subscription");
    this.#subscribers = [...this.#subscribers, subscriber];
  }
  unsubscribe(subscriber) {
    const at = this.#subscribers.indexOf(subscriber);
    if (at < 0) return false;
    this.#subscribers = this.#subscribers.toSpliced(at, 1);
    return true;
  }
  bindStore(store, transform = undefined) {
    this.#stores.set(store, transform);
  }
  unbindStore(store) {
    return this.#stores.delete(store);
  }
  publish(message) {
    noteChannel(this.name, message);
    for (const subscriber of this.#subscribers) {
      try {
        subscriber(message, this.name);
      } catch (error) {
        reportException(error);
      }
    }
  }
  runStores(context, fn, thisArg, ...args) {
    let run = () => {
      this.publish(context);
      return Reflect.apply(fn, thisArg, args);
    };
    for (const [store, transform] of this.#stores) {
      const next = run;
      run = () => {
        let value = context;
        if (transform !== undefined) {
          try {
            value = transform(context);
          } catch (error) {
            reportException(error);
            return next();
          }
        }
        return store.run(value, next);
      };
    }
    return run();
  }
}

export function channel(name) {
  if (typeof name !== "string" && typeof name !== "symbol") throw invalidArgType("channel", "of type string or symbol", name);
  let found = channels.get(name);
  if (found === undefined) channels.set(name, (found = new Channel(name)));
  return found;
}

const EVENTS = ["start", "end", "asyncStart", "asyncEnd", "error"];

export class TracingChannel {
  constructor(nameOrChannels) {
    for (const event of EVENTS) {
      this[event] = typeof nameOrChannels === "string" ? channel(`tracing:${nameOrChannels}:${event}`) : nameOrChannels[event];
    }
  }
  get hasSubscribers() {
    return EVENTS.some((event) => this[event] && has(this[event]));
  }
  subscribe(handlers) {
    for (const event of EVENTS) if (handlers[event]) this[event].subscribe(handlers[event]);
  }
  unsubscribe(handlers) {
    return EVENTS.map((event) => !handlers[event] || this[event].unsubscribe(handlers[event])).every(Boolean);
  }
  /** Runs `fn` between start and end, and publishes what it throws. */
  #run(context, fn) {
    return this.start.runStores(context, () => {
      try {
        return fn();
      } catch (error) {
        this.#failed(context, error);
        throw error;
      } finally {
        this.end.publish(context);
      }
    });
  }
  #failed(context, error) {
    context.error = error;
    this.error.publish(context);
  }
  #settled(context) {
    this.asyncStart.publish(context);
    this.asyncEnd.publish(context);
  }
  traceSync(fn, context = {}, thisArg = undefined, ...args) {
    return this.#run(context, () => (context.result = Reflect.apply(fn, thisArg, args)));
  }
  tracePromise(fn, context = {}, thisArg = undefined, ...args) {
    return this.#run(context, () =>
      Promise.resolve(Reflect.apply(fn, thisArg, args)).then(
        (result) => {
          context.result = result;
          this.#settled(context);
          return result;
        },
        (error) => {
          this.#failed(context, error);
          this.#settled(context);
          throw error;
        },
      ),
    );
  }
  traceCallback(fn, position = -1, context = {}, thisArg = undefined, ...args) {
    const at = position < 0 ? args.length + position : position;
    const callback = args[at];
    validateFunction(callback, "callback");
    args[at] = (error, result) => {
      if (error) this.#failed(context, error);
      else context.result = result;
      return this.asyncStart.runStores(context, () => {
        try {
          return callback(error, result);
        } finally {
          this.asyncEnd.publish(context);
        }
      });
    };
    return this.#run(context, () => Reflect.apply(fn, thisArg, args));
  }
}

// Before 2026-05-19 a function, as on the platform.
if (!compatibilityFlags.has("diagnostics_channel_has_subscribers_getter")) {
  for (const { prototype } of [Channel, TracingChannel]) {
    const { get } = Object.getOwnPropertyDescriptor(prototype, "hasSubscribers");
    Object.defineProperty(prototype, "hasSubscribers", { value: function hasSubscribers() { return Reflect.apply(get, this, []); }, writable: true, configurable: true });
  }
}
const has = (channel) => (typeof channel.hasSubscribers === "function" ? channel.hasSubscribers() : channel.hasSubscribers);

export default {
  channel,
  hasSubscribers: (name) => channels.has(name) && has(channels.get(name)),
  subscribe: (name, subscriber) => channel(name).subscribe(subscriber),
  unsubscribe: (name, subscriber) => channel(name).unsubscribe(subscriber),
  tracingChannel: (nameOrChannels) => new TracingChannel(nameOrChannels),
  Channel,
  TracingChannel,
};
