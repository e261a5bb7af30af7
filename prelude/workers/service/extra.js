// What few use of service bindings: handlers called by name (queue, scheduled), get/put/delete,
// sockets, and names under which a binding can be connected to.
import { native } from "../../internal/native.js";
import { describeError } from "../../internal/report.js";
import { deserialize, serialize } from "../../internal/serialize.js";
import { IdentityTransformStream } from "../../web/streams/identity.js";
import { contextSettled } from "../context.js";
import { callHandler, stubService } from "../object/rpc.js";
import { makeScheduled } from "../scheduled.js";
import queues from "part:./queue.js";
import sockets from "part:../sockets.js";

/** The flag service_binding_extra_handlers: `send` takes the arguments to a handler. */
export const handlerMembers = (send) => ({
  __proto__: null,
  async queue(queue, messages, metadata) {
    const list = Array.from(messages, (message) => {
      const { id, timestamp, attempts, body, serializedBody } = message;
      if ((body === undefined) === (serializedBody === undefined)) {
        throw new TypeError("Expected one of body or serializedBody for each message");
      }
      // As bytes: a body that cannot be read is the handler's failure, not the caller's.
      const bytes = body === undefined ? new Uint8Array(serializedBody) : serialize(body);
      return { id: `${id}`, timestamp: +timestamp, attempts, bytes };
    });
    return callHandler(send, "queue", [`${queue}`, list, metadata?.metrics]);
  },
  async scheduled(options) {
    return callHandler(send, "scheduled", [`${options?.cron ?? ""}`, options?.scheduledTime === undefined ? Date.now() : +options.scheduledTime]);
  },
});

/** The other side of it. The answer says how it ended: what the handler throws stays there. */
export async function runHandler(entry, method, args, context) {
  let run, result;
  if (method === "queue") {
    const [queue, list, metrics] = args;
    run = () => {
      const messages = list.map(({ id, timestamp, attempts, bytes }) => ({ id, timestamp, attempts, body: deserialize(bytes) }));
      const batch = queues().makeBatch(queue, messages, metrics);
      result = () => queues().batchResult(batch);
      return entry.handle("queue", batch);
    };
  } else if (method === "scheduled") {
    const [cron, time] = args;
    const controller = makeScheduled(cron, time);
    result = () => ({ noRetry: controller.refusesRetry() });
    run = () => entry.handle("scheduled", controller.shown);
  } else {
    throw new TypeError(`There is no handler ${method}() that a service binding could call.`);
  }
  let outcome = "ok";
  try {
    await run();
  } catch (error) {
    outcome = "exception";
    native.log(4, `${method}() threw: ${describeError(error)}`);
  }
  try {
    await (method === "queue" ? queues().settledOf(context) : contextSettled(context));
  } catch {
    outcome = "exception"; // it was logged when it was rejected
  }
  return { outcome, ...(result?.() ?? queues().emptyResult()) };
}

/** The flag fetcher_has_get_put_delete. */
export const httpMembers = (fetch) => {
  const ok = async (method, response) => {
    if (!response.ok) throw new Error(`HTTP ${method} request failed: ${response.status} ${response.statusText}`);
    await response.body?.cancel();
  };
  return {
    __proto__: null,
    async get(url, type = "text") {
      const response = await fetch(url);
      if (response.status === 404 || response.status === 410) return null;
      if (!response.ok) throw new Error(`HTTP GET request failed: ${response.status} ${response.statusText}`);
      switch (type) {
        case "stream": return response.body;
        case "text": return response.text();
        case "arrayBuffer": return response.arrayBuffer();
        case "json": return response.json();
      }
      throw new TypeError('Unknown response type. Possible types are "text", "arrayBuffer", "json", and "stream".');
    },
    async put(url, body, options) {
      const address = new URL(url);
      if (options?.expiration !== undefined) address.searchParams.append("expiration", options.expiration);
      if (options?.expirationTtl !== undefined) address.searchParams.append("expiration_ttl", options.expirationTtl);
      await ok("PUT", await fetch(address.href, { method: "PUT", body }));
    },
    delete: async (url) => ok("DELETE", await fetch(url, { method: "DELETE" })),
  };
};

// --- sockets ---------------------------------------------------------------------------------

/** connect() on a binding: the other worker's connect() handler is at the other end. */
export function connectTo(send, address) {
  const there = new IdentityTransformStream(), back = new IdentityTransformStream();
  const { hostname, port } = sockets().parseAddress(address);
  const remoteAddress = `${hostname}:${port}`;
  const call = callHandler(send, "connect", [remoteAddress, there.readable, back.writable]);
  return sockets().makeSocket({
    readable: back.readable,
    writable: there.writable,
    opened: { remoteAddress, localAddress: null },
    over: call,
  });
}

export async function runConnect(entry, [remoteAddress, readable, writable]) {
  const over = Promise.withResolvers();
  const socket = sockets().makeSocket({ readable, writable, opened: { remoteAddress: null, localAddress: remoteAddress }, over: over.promise });
  try {
    await entry.handle("connect", socket);
  } finally {
    over.resolve();
    if (!writable.locked) await writable.close().catch(() => {}); // it has closed it itself
  }
}

const hostOf = new WeakMap(); // stub -> the name it was given
const stubOf = new Map(); // name -> WeakRef of the stub
const unnamed = new FinalizationRegistry((host) => stubOf.delete(host));

/** A name under which connect() reaches a binding; a binding has one. */
export function mapVirtualHost(fetcher, port) {
  if (stubService(fetcher) === null) throw new TypeError("Failed to execute 'mapVirtualHost' on 'ExecutionContext': parameter 1 is not of type 'Fetcher'.");
  let host = hostOf.get(fetcher);
  if (host === undefined) {
    const number = Number(port);
    if (!Number.isInteger(number) || number < 0 || number > 65535) throw new TypeError(`${port} is not a port.`);
    const bytes = new Uint8Array(16);
    native.randomFill(bytes);
    host = `${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}.workers.alt:${number}`;
    hostOf.set(fetcher, host);
    stubOf.set(host, new WeakRef(fetcher));
    unnamed.register(fetcher, host);
  }
  return host;
}
export const virtualHost = (host) => stubOf.get(host)?.deref() ?? null;
