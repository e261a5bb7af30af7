// Events that do not come by HTTP (src/worker/dispatch.h): calls of other workers, and what the
// server itself has for a handler.
//
// A new kind of event is an entry of `kinds`: (entry, argument, asker), where `argument` is what was
// serialized (or undefined); it answers by replyWith().
import { currentTrace } from "../internal/turn.js";
import { deserialize } from "../internal/serialize.js";
import { contextAnswered, contextSettled, newContext, bindLifetime } from "./context.js";
import { Entry } from "./entrypoint.js";
import { decodeIncoming, encodeResponse, isResponse } from "./object/fetch-values.js";
import { native } from "../internal/native.js";
import { handleScheduled } from "./scheduled.js";
import { CARRIED, Dispatcher, IN_PROPS, Lifetime, answer, answerWorkerTarget, failCall, replyWith } from "./object/rpc.js";
import extra from "part:./service/extra.js";
import queue from "part:./service/queue.js";
import tail from "part:./tail.js";
import trace from "part:../internal/trace.js";

const kinds = {
  async fetch(entry, parts, asker) {
    const { request, abort } = decodeIncoming(parts);
    if (currentTrace() !== 0) trace().noteRequest(request);
    const response = await entry.handle("fetch", request);
    if (currentTrace() !== 0 && isResponse(response)) trace().noteStatus(response.status);
    replyWith(asker, encodeResponse(response), abort);
  },
};

/** The same for events whose bytes are not serialized values but C's own: (entry, bytes, context) => bytes. */
const plainKinds = { queue: (entry, bytes, context) => queue().handleQueue(entry, bytes, context), scheduled: handleScheduled, tail: (entry, bytes) => tail().handleTail(entry, bytes) };

/** C calls. Answers by eventReply() or eventReject(), now or later; eventDone() ends the event. */
export function dispatchEvent(handle, kind, entrypoint, method, props, bytes) {
  if (kind === "target") {
    if (currentTrace() !== 0) trace().noteCall(method);
    answerWorkerTarget(handle, method, bytes);
    return;
  }
  const context = newContext(handle, props === undefined ? {} : deserialize(props, IN_PROPS));
  const asker = new Dispatcher(handle);
  run(asker, context, kind, entrypoint, method, bytes).then(
    () => contextAnswered(context),
    (error) => {
      failCall(asker, error);
      contextAnswered(context);
    },
  );
}

async function run(asker, context, kind, entrypoint, method, bytes) {
  const entry = new Entry(entrypoint, context, asker.event);
  if (kind === "rpc") {
    if (currentTrace() !== 0) trace().noteCall(method);
    const path = method.split(".");
    const lifetime = new Lifetime();
    bindLifetime(context, lifetime);
    return answer(asker, entry.rpcTarget(path[0]), path, bytes, true, lifetime);
  }
  if (kind === "handler") {
    const args = deserialize(bytes, CARRIED);
    replyWith(asker, await (method === "connect" ? extra().runConnect(entry, args) : extra().runHandler(entry, method, args, context)));
    return;
  }
  if (plainKinds[kind] !== undefined) {
    const result = await plainKinds[kind](entry, bytes, context);
    if (kind === "scheduled") await contextSettled(context); // they are part of the run, and of how it ended
    asker.reply(result);
    return;
  }
  await kinds[kind](entry, bytes === undefined ? undefined : deserialize(bytes, CARRIED), asker);
}
