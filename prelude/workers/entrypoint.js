// The entrypoints of a script: what its exports are to an event.
import { handlersContext } from "./context.js";
import { WorkerEntrypoint, env, setExports } from "./modules.js";
import objects from "part:./object/part.js";

let exported = {};

export function setEntrypoints(exports) {
  exported = exports;
  setExports(() => objects().makeExports(exports, isEntrypoint));
}

const isClass = (value) => typeof value === "function" && value.prototype instanceof WorkerEntrypoint;
const isEntrypoint = (value) => isClass(value) || (value !== null && typeof value === "object");

/** What an event is given to: the default export, or a named one, with its state for this event. */
export class Entry {
  #handlers; // an object of functions, or null
  #instance; // of a class, or null
  #context;
  constructor(name, context, handle) {
    const value = name === undefined ? exported.default : exported[name];
    if (!isEntrypoint(value)) {
      const what = name === undefined ? "The worker has no default export" : `The worker has no entrypoint "${name}"`;
      throw new TypeError(`${what}${typeof value === "function" ? " that is a class which extends WorkerEntrypoint" : ""}.`);
    }
    this.#instance = isClass(value) ? new value(context, env()) : null;
    this.#context = this.#instance === null ? handlersContext(context, handle) : context;
    this.#handlers = this.#instance === null ? value : null;
  }

  /** Runs a handler: fetch, queue, scheduled, ... */
  handle(name, argument) {
    const target = this.#instance ?? this.#handlers;
    if (typeof target[name] !== "function") throw new TypeError(`Handler does not export a ${name}() function.`);
    return this.#instance === null ? target[name](argument, env(), this.#context) : target[name](argument);
  }

  /** What RPC calls go to; `method` is the first name of the path. */
  rpcTarget(method) {
    if (this.#instance !== null) return this.#instance;
    const handlers = this.#handlers;
    if (typeof handlers[method] !== "function") return Object.create(null);
    // A plain function is declared as a handler is: its one argument, then env and ctx.
    return Object.create({
      [method]: (...args) => {
        if (handlers[method].length > 3) {
          throw new TypeError(`Cannot call handler function "${method}" over RPC because it has the wrong number of arguments. A simple function handler can only be called over RPC if it has exactly the arguments (arg, env, ctx), where only the first argument comes from the client. To support multi-argument RPC functions, use class-based syntax (extending WorkerEntrypoint) instead.`);
        }
        if (args.length !== 1) {
          throw new TypeError(`Attempted to call RPC function "${method}" with the wrong number of arguments. When calling a top-level handler function that is not declared as part of a class, you must always send exactly one argument. In order to support variable numbers of arguments, the server must use class-based syntax (extending WorkerEntrypoint) instead.`);
        }
        return handlers[method](args[0], env(), this.#context);
      },
    });
  }
}
