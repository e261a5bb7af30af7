// The stub of a Durable Object: fetch() and every method of its class.
import { native } from "../../internal/native.js";
import { deserialize } from "../../internal/serialize.js";
import { Request } from "../../web/fetch/request.js";
import { decodeResponse, encodeRequest } from "./fetch-values.js";
import { KIND, makeStub, remoteError, serializeArguments, setObjectStub } from "./rpc.js";

/** What a relative URL is resolved against: much code calls stub.fetch("/path"). */
const BASE = "https://object/";

export function newStub(ns, hex, id) {
  const name = id.name;
  const send = (path, bytes, callback) => native.objectCall(ns, hex, name, KIND.RPC, path.join("."), bytes, callback);
  const stub = makeStub(send, {
    id,
    name,
    fetch: (input, init) => stubFetch(ns, hex, name, input, init),
  }, { ns, hex, name });
  return stub;
}
setObjectStub((ns, hex, name) => newStub(ns, hex, { name, toString: () => hex }));

async function stubFetch(ns, hex, name, input, init) {
  const relative = typeof input === "string" && input.startsWith("/");
  const request = new Request(relative ? BASE + input.slice(1) : input, init);
  const { bytes, context } = serializeArguments(encodeRequest(request));
  return new Promise((resolve, reject) => {
    native.objectCall(ns, hex, name, KIND.FETCH, undefined, bytes, (faults, result, message) => {
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
    });
  });
}
