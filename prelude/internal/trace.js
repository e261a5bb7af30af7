// What an invocation adds to its trace (src/worker/trace.h). Loaded when the first one is traced:
// whoever calls asks currentTrace() (gate.js) before.
import { native } from "./native.js";

/** Tail consumers and listeners see everything; a span needs no more than the name of what was asked. */
const isWhole = () => native.traceIsWhole();

/** The members of an object as JSON, without its braces. */
const members = (value) => JSON.stringify(value).slice(1, -1);

/** Of a URL as Request has it: serialized. */
function pathOf(url) {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const end = url.search(/[?#]/);
  return end < 0 ? url.slice(start) : url.slice(start, end);
}

export function noteRequest(request) {
  const { method, url } = request;
  const subject = `${method} ${pathOf(url)}`;
  if (!isWhole()) {
    native.traceEvent(subject, "");
    return;
  }
  const headers = {};
  for (const [name, value] of request.headers) headers[name] = value;
  native.traceEvent(subject, members({ request: { url, method, headers, cf: request.cf } }));
}

export function noteStatus(status) {
  native.traceStatus(status);
}

/** @param {string} method a path of names; of something lent, "number:path" */
export function noteCall(method) {
  const name = method.slice(method.indexOf(":") + 1);
  native.traceEvent(name, members({ rpcMethod: name }));
}

export function noteAlarm(scheduledTime) {
  native.traceEvent("alarm", members({ scheduledTime }));
}

/** @param {"message" | "close" | "error"} webSocketEventType */
export function noteSocket(webSocketEventType, code, wasClean) {
  native.traceEvent(webSocketEventType, members({ getWebSocketEvent: { webSocketEventType, code, wasClean } }));
}

export function noteScheduled(cron, scheduledTime) {
  native.traceEvent(cron, members({ cron, scheduledTime }));
}

export function noteQueue(queue, batchSize) {
  native.traceEvent(queue, members({ queue, batchSize }));
}

export function noteTail(items) {
  native.traceEvent("tail", members({ consumedEvents: items.map(({ scriptName }) => ({ scriptName })) }));
}

export function noteException(error) {
  let name = "Error", message, stack;
  try {
    if (error instanceof Error) {
      name = String(error.name);
      message = String(error.message);
      stack = typeof error.stack === "string" ? error.stack : undefined;
    } else {
      message = String(error);
    }
  } catch {
    message = "an exception that cannot be described";
  }
  native.traceException(name, message, stack);
}

/** The invocation failed, though its caller is told something else. */
export function noteFailure(error) {
  noteException(error);
  native.traceFail();
}

/** A value of a log as the platform shows it: what is not plain is its text. */
function plain(value) {
  if (typeof value === "bigint" || typeof value === "function") return String(value);
  if (typeof value === "symbol") return {};
  if (value === null || typeof value !== "object" || typeof value.toJSON === "function") return value;
  const prototype = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === Array.prototype || prototype === null) return value;
  const text = String(value);
  return text === "[object Object]" ? value : text;
}

function toJson(value) {
  try {
    return JSON.stringify(plain(value)) ?? "null";
  } catch {
    return "{}"; // a cycle, or it threw
  }
}

export function noteLog(level, args) {
  if (!isWhole()) return;
  native.traceLog(level, `[${args.map(toJson).join(",")}]`);
}

export function noteChannel(channel, message) {
  if (!isWhole()) return;
  native.traceChannel(String(channel), toJson(message));
}
