// The stub of a Durable Object: fetch() and every method of its class.
import { gated } from "../../internal/gate.js";
import { native } from "../../internal/native.js";
import { deserialize } from "../../internal/serialize.js";
import { forgetAborted, whenAborted } from "../../web/abort.js";
import { Request } from "../../web/fetch/request.js";
import { decodeResponse, encodeRequest } from "./fetch-values.js";
import { LocalTarget } from "./local.js";
import { KIND, makeStub, remoteError, serializeArguments, setObjectStub } from "./rpc.js";

/** What a relative URL is resolved against: much code calls stub.fetch("/path"). */
const BASE = "https://object/";

export function newStub(ns, hex, id) {
  const name = id.name;
  const send = (path, bytes, callback) => native.objectCall(ns, hex, name, KIND.RPC, path.join("."), bytes, callback);
  const sendFetch = (bytes, callback) => native.objectCall(ns, hex, name, KIND.FETCH, undefined, bytes, callback);
  return makeStub(send, {
    fixed: { __proto__: null, id, name, fetch: (input, init) => fetchBy(sendFetch, input, init) },
    object: { ns, hex, name },
    local: new LocalTarget(ns, hex, name),
  });
}
setObjectStub((ns, hex, name) => newStub(ns, hex, { name, toString: () => hex }));

/** fetch() on a stub, of an object or of a service: `send` (bytes, callback) takes the request there. */
export async function fetchBy(send, input, init) {
  const relative = typeof input === "string" && input.startsWith("/");
  const request = new Request(relative ? BASE + input.slice(1) : input, init);
  const { signal } = request;
  signal.throwIfAborted();
  const { bytes, context } = serializeArguments(encodeRequest(request));
  return new Promise((resolve, reject) => {
    const onAbort = (reason) => reject(reason);
    whenAborted(signal, onAbort);
    send(bytes, gated((faults, result, message) => {
      forgetAborted(signal, onAbort);
      context.takeBack();
      if (faults >= 0) {
        reject(remoteError(faults, result, message));
        return;
      }
      try {
        resolve(decodeResponse(deserialize(result)));
      } catch (error) {
        reject(error);
      }
    }));
  });
}
