// Events that do not come by HTTP (src/worker/dispatch.h): calls of other workers, and what the
// server itself has for a handler.
//
// A new kind of event is an entry of `kinds`: (entry, argument) => result, where `argument` is what
// C has serialized (or undefined) and the result goes back to C serialized.
import { deserialize } from "../internal/serialize.js";
import { contextAnswered, newContext } from "./context.js";
import { Entry } from "./entrypoint.js";
import { decodeRequest, encodeResponse } from "./object/fetch-values.js";
import { native } from "../internal/native.js";
import { handleScheduled } from "./scheduled.js";
import { answer, answerWorkerTarget, failCall, replyWith } from "./object/rpc.js";
import queue from "part:./service/queue.js";

const kinds = {
  async fetch(entry, parts) {
    return encodeResponse(await entry.handle("fetch", decodeRequest(parts)));
  },
};

/** The same for events whose bytes are not serialized values but C's own: (entry, bytes) => bytes. */
const plainKinds = { queue: (entry, bytes) => queue().handleQueue(entry, bytes), scheduled: handleScheduled };

/** C calls. Answers by eventReply() or eventReject(), now or later; eventDone() ends the event. */
export function dispatchEvent(handle, kind, entrypoint, method, props, bytes) {
  if (kind === "target") {
    answerWorkerTarget(handle, method, bytes);
    return;
  }
  const context = newContext(handle, props === undefined ? {} : deserialize(props));
  run(handle, context, kind, entrypoint, method, bytes).then(
    () => contextAnswered(context),
    (error) => {
      failCall(-handle, error);
      contextAnswered(context);
    },
  );
}

async function run(handle, context, kind, entrypoint, method, bytes) {
  const entry = new Entry(entrypoint, context);
  if (kind === "rpc") {
    const path = method.split(".");
    return answer(-handle, entry.rpcTarget(path[0]), path, bytes);
  }
  if (plainKinds[kind] !== undefined) {
    native.eventReply(handle, await plainKinds[kind](entry, bytes), false);
    return;
  }
  replyWith(-handle, await kinds[kind](entry, bytes === undefined ? undefined : deserialize(bytes)));
}
