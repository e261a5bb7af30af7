// Service bindings and ctx.exports: other workers of the server, and the worker's own entrypoints.
//
// A call runs in the other script's global on the same lane, in a turn and with an instance of the
// entrypoint of its own (src/worker/dispatch.h).
import { compatibilityFlags, native, options } from "../internal/native.js";
import { deserialize, serialize } from "../internal/serialize.js";
import { IN_PROPS, guard, makeStub, setServiceStub } from "./object/rpc.js";
import { fetchBy } from "./object/stub.js";
import { makeNamespace } from "./object/id.js";
import extra from "part:./service/extra.js";

const EXTRA_HANDLERS = compatibilityFlags.has("service_binding_extra_handlers");
/** Of stubs that ctx.exports makes (rpc.js, R2); undefined rather than false: it is not written then. */
const PERSISTENT = compatibilityFlags.has("allow_irrevocable_stub_storage") || undefined;
const HTTP_MEMBERS = !compatibilityFlags.has("fetcher_no_get_put_delete");

/** native.serviceCall() for a stub that may be stored. */
function guardedCall(worker, kind, entrypoint, method, props, bytes, callback) {
  if (guard(worker, callback)) native.serviceCall(worker, kind, entrypoint, method, props, bytes, callback);
}

/**
 * @param {{worker: string, entrypoint?: string, props?: object, persistent?: boolean}} service whose calls get `props`
 * @param {Function} [invoke] what calling the stub itself does
 */
export function makeService(service, invoke = null) {
  const { worker, entrypoint, props, persistent } = service;
  const propsBytes = props === undefined ? undefined : serialize(props, IN_PROPS);
  const serviceCall = persistent === true ? guardedCall : native.serviceCall;
  const send = (path, bytes, callback) => serviceCall(worker, "rpc", entrypoint, path.join("."), propsBytes, bytes, callback);
  const sendFetch = (bytes, callback) => serviceCall(worker, "fetch", entrypoint, undefined, propsBytes, bytes, callback);
  sendFetch.isCompiled = () => entrypoint === undefined && native.serviceIsCompiled(worker);
  const sendHandler = (method, bytes, callback) => serviceCall(worker, "handler", entrypoint, method, propsBytes, bytes, callback);
  const fetch = (input, init) => fetchBy(sendFetch, input, init);
  const fixed = { __proto__: null, fetch, connect: (address) => extra().connectTo(sendHandler, address) };
  if (EXTRA_HANDLERS) Object.assign(fixed, extra().handlerMembers(sendHandler));
  if (HTTP_MEMBERS) Object.assign(fixed, extra().httpMembers(fetch));
  return makeStub(send, {
    fixed,
    service,
    invoke,
  });
}
setServiceStub((service) => makeService(service));

/** `ctx.exports` of a script: a stub for each of its entrypoints, a namespace for each of its classes. */
export function makeExports(exported, isEntrypoint) {
  const loopback = {};
  for (const name of Object.keys(exported)) {
    const ns = options.classes?.[name];
    if (ns !== undefined) loopback[name] = makeNamespace(ns, PERSISTENT === true);
    else if (isEntrypoint(exported[name])) loopback[name] = makeLoopback(name === "default" ? undefined : name);
  }
  return loopback;
}

/** Calling it with { props } gives the same entrypoint with those as its ctx.props. */
function makeLoopback(entrypoint) {
  const worker = options.worker;
  return makeService({ worker, entrypoint, persistent: PERSISTENT }, (settings) => {
    const props = settings?.props;
    if (props === undefined) return makeService({ worker, entrypoint, persistent: PERSISTENT });
    if (props === null || typeof props !== "object") throw new TypeError("props must be an object.");
    // A clone: the caller may change its object later.
    return makeService({ worker, entrypoint, props: deserialize(serialize(props, IN_PROPS), IN_PROPS), persistent: PERSISTENT });
  });
}
