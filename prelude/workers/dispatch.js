// Events come in here: C calls start() once and then a dispatch function per event.
import { afterwards, currentTrace, here, outputGate, resume, turns } from "../internal/turn.js";
import { Fault } from "../../src/bindings/border.ts";
import { faultOf } from "../internal/fault.js";
import { native, options } from "../internal/native.js";
import { describeError } from "../internal/report.js";
import { setStarting } from "../internal/startup.js";
import { Response } from "../web/fetch/response.js";
import { isRequestBody, requestFromNative, responseParts } from "../web/fetch/internal.js";
import { knownLength, nativeSource, pumpTo } from "../web/streams/internal.js";
import { newContext, contextAnswered, handlersContext } from "./context.js";
import { setEntrypoints } from "./entrypoint.js";
import { importByName, modules, setEnv, WorkerEntrypoint } from "./modules.js";
import { setClasses } from "./objects.js";
import objects from "part:./object/part.js";
import site from "part:./site.js";
import assets from "part:./assets.js";
import missing from "part:./missing.js";
import services from "parts:./service/makeBinding";
import trace from "part:../internal/trace.js";

let handlers = null; // the default export: an object of handlers, or null
let Entrypoint = null; // the default export: a class that extends WorkerEntrypoint
let env;

/**
 * Runs the bundle.
 * @param {Function} script (__cairn) => exports, or a promise of them
 * @param {Record<string, ArrayBuffer>} files what the bundle imports as data or WebAssembly
 * @param {object} environment the bindings
 */
export function start(script, files, environment) {
  env = environment;
  if (Object.keys(options.classes ?? {}).length > 0) objects(); // before the script can change what it is made of
  for (const binding of options.bindings ?? []) env[binding.name] = makeBinding(binding);
  setEnv(environment);
  const failed = (error) => {
    setStarting(false);
    native.scriptStarted(describeError(error));
  };
  const ready = (exports) => {
    setStarting(false);
    setClasses(exports ?? {}, env);
    setEntrypoints(exports ?? {});
    const main = exports?.default;
    if (typeof main === "function" && main.prototype instanceof WorkerEntrypoint) {
      Entrypoint = main;
    } else if (main !== null && typeof main === "object") {
      handlers = main;
    }
    native.scriptStarted(undefined);
  };
  setStarting(true);
  try {
    const exports = script({ modules, files, turns, import: importByName });
    if (typeof exports?.then === "function") exports.then(ready, failed);
    else ready(exports);
  } catch (error) {
    failed(error);
  }
}

/** The object of a binding, as src/deploy/deploy_env.c or a service's own part of src/config/service_config.h describes it. */
function makeBinding(binding) {
  if (binding.part !== undefined) return services[binding.part]().makeBinding(binding);
  switch (binding.type) {
    case "durable_object_namespace":
      return objects().makeNamespace(binding.ns);
    case "service":
      return objects().makeService({ worker: binding.worker, entrypoint: binding.entrypoint, props: binding.props });
    case "assets":
      return assets().makeAssets();
    case "site":
      return site().makeSite();
    case "missing":
      return missing().makeMissing(binding);
  }
  throw new Error(`there is no binding of type ${binding.type}`);
}

/** @param {number} handle */
export function dispatchFetch(handle) {
  const context = newContext(handle);
  let result;
  try {
    const request = requestFromNative(handle);
    if (currentTrace() !== 0) trace().noteRequest(request);
    if (handlers !== null && typeof handlers.fetch === "function") {
      result = handlers.fetch(request, env, handlersContext(context, handle));
    } else if (Entrypoint !== null && typeof Entrypoint.prototype.fetch === "function") {
      result = new Entrypoint(context, env).fetch(request);
    } else {
      throw new TypeError("The script has no fetch() handler");
    }
  } catch (error) {
    fail(handle, context, error);
    return;
  }
  if (result instanceof Response) {
    finish(handle, context, result);
  } else {
    const turn = here();
    afterwards(Promise.resolve(turns.thenable(result)), (response) => {
      resume(turn);
      finish(handle, context, response);
    }, (error) => {
      resume(turn);
      fail(handle, context, error);
    });
  }
}

function fail(handle, context, error) {
  if (currentTrace() !== 0) trace().noteException(error);
  // An object has no room for more, or is elsewhere: 503 rather than 500, if the script lets the error out.
  const [faults, told] = faultOf(error);
  native.eventFail(handle, describeError(error), (faults & Fault.OVERLOADED) !== 0, (faults & Fault.AWAY) !== 0 ? told : "");
  contextAnswered(context);
}

function finish(handle, context, response) {
  const gate = outputGate(); // of a worker only if it has used the storage of an object
  if (gate === undefined) send(handle, context, response);
  else gate.then(() => send(handle, context, response), (error) => fail(handle, context, error));
}

function send(handle, context, response) {
  let sent;
  try {
    if (!(response instanceof Response)) {
      throw new TypeError("Incorrect type for Promise: the Promise did not resolve to 'Response'.");
    }
    const parts = responseParts(response);
    const { body } = parts;
    if (parts.webSocket !== null) {
      native.respondSocket(handle, parts.headers, objects().useInResponse(parts.webSocket));
    } else if (body === null || typeof body === "string" || body instanceof Uint8Array) {
      native.respond(handle, parts.status, parts.statusText, parts.headers, body);
    } else {
      sent = stream(handle, parts);
    }
  } catch (error) {
    fail(handle, context, error);
    return;
  }
  if (sent === undefined) {
    contextAnswered(context);
  } else {
    sent.then(
      () => contextAnswered(context),
      (error) => fail(handle, context, error),
    );
  }
}

/** Writes a streamed body, no faster than the client takes it. */
function stream(handle, { status, statusText, headers, body }) {
  if (!native.respondStart(handle, status, statusText, headers, knownLength(body) ?? -1)) {
    return body.cancel(new Error("The client disconnected")).catch(() => {});
  }
  // The event's own request body, untouched: its bytes need not come up here.
  if (nativeSource(body, (source) => isRequestBody(source, handle)) !== null) {
    return new Promise((resolve, reject) => {
      native.respondPipe(handle, (failure) => (failure === undefined ? resolve() : reject(new Error(failure))));
    });
  }
  // A body of R2, untouched: neither need its.
  const object = nativeSource(body, (source) => source.r2 !== undefined && source.size > 0);
  if (object !== null) {
    return new Promise((resolve, reject) => {
      const done = (failure) => (failure === undefined ? resolve() : reject(new Error(failure)));
      if (!native.respondR2(handle, object.r2, object.offset, object.size, done)) done("The client disconnected");
    });
  }
  return pumpTo(body, {
    write(chunk) {
      const gate = outputGate();
      if (gate !== undefined) return gate.then(() => this.write(chunk));
      let resume;
      const state = native.respondWrite(handle, chunk, (_, failure) => {
        resume[failure === undefined ? 0 : 1](failure && new Error(failure));
      });
      if (state === 1) return undefined;
      if (state < 0) throw new Error("The client disconnected");
      return new Promise((resolve, reject) => {
        resume = [resolve, reject];
      });
    },
    close() {
      native.respondEnd(handle);
    },
    abort() {
      // The promise of pumpTo() is rejected with the reason; fail() cuts the response.
    },
  });
}
