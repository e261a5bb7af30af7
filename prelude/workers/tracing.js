// Spans of a script's own: `ctx.tracing`, and what `cloudflare:workers` exports as `tracing`.
//
// A span is recorded while an exporter wants the trace of the invocation (src/worker/trace.h), and told of when it
// ends; all others, and those that begin where nothing runs, do nothing. One that has not ended with its invocation
// is lost. The active span is in the frame of AsyncLocalStorage (internal/turn.js), under a key of ours.
import { native } from "../internal/native.js";
import { currentTrace, frames } from "../internal/turn.js";
import { finishInterface } from "../internal/interface.js";

const NAME_MAX = 64; // bytes, as on the platform
const BYTES_MAX = 64 << 10; // of what a span holds
const NOWHERE = Object.freeze({ traceId: "0".repeat(32), spanId: "0".repeat(16), traceFlags: 0 });
const encoder = new TextEncoder();
const token = Symbol("construct");
const ACTIVE = { active: "span" };

/** At most `max` bytes of a text, without half a character. */
function cut(text, max) {
  if (encoder.encode(text).length <= max) return text;
  let size = 0, end = 0;
  for (const character of text) {
    size += encoder.encode(character).length;
    if (size > max) break;
    end += character.length;
  }
  return text.slice(0, end);
}

const argument = (method, index, type) =>
  new TypeError(`Failed to execute '${method}' on 'Tracing': parameter ${index} is not of type '${type}'.`);

export class Span {
  #trace = 0; // of the invocation; 0: it is not recorded, or is over
  #context = NOWHERE;
  #parent;
  #name;
  #start;
  #bytes = 0;
  #attributes = {};
  #exceptions = [];
  #status = { code: "unset" };

  constructor(key, name, parent) {
    if (key !== token) throw new TypeError("Illegal constructor");
    const trace = name === null ? 0 : currentTrace(); // null: none that is recorded
    const ids = trace === 0 ? "" : native.traceSpanIds();
    if (ids === "") return;
    this.#trace = trace;
    this.#context = { traceId: ids.slice(0, 32), spanId: ids.slice(48), traceFlags: 1 };
    this.#parent = parent !== undefined && parent.#context.traceId === this.#context.traceId ? parent.#context.spanId : ids.slice(32, 48);
    this.#name = cut(name, NAME_MAX);
    this.#start = native.traceTime();
  }

  get isTraced() {
    return this.#trace !== 0;
  }

  spanContext() {
    return { ...this.#context };
  }

  /** Whether there is room for so much more; said once in the span where there is none. */
  #take(kind, name, size) {
    if (this.#trace === 0 || this.#bytes > BYTES_MAX) return false;
    this.#bytes += name.length + size;
    if (this.#bytes <= BYTES_MAX) return true;
    const shown = name.length > 64 ? `"${name.slice(0, 64)}..." (key length ${name.length})` : `"${name}"`;
    this.#attributes["cloudflare.warning.type"] = "span_data_limit_exceeded";
    this.#attributes["cloudflare.warning.message"] = `exceeded span data limit while trying to record ${kind} ${shown} of size ${size}`;
    return false;
  }

  setAttribute(key, value) {
    key = `${key}`;
    if (value === undefined) return this;
    if (typeof value !== "boolean" && typeof value !== "number") value = `${value}`;
    if (this.#take("attribute", key, typeof value === "string" ? value.length : 8)) this.#attributes[key] = value;
    return this;
  }

  setAttributes(attributes) {
    if (attributes === null || (typeof attributes !== "object" && typeof attributes !== "function")) {
      throw new TypeError("Failed to execute 'setAttributes' on 'Span': parameter 1 is not of type 'object'.");
    }
    for (const key of Object.keys(attributes)) this.setAttribute(key, attributes[key]);
    return this;
  }

  recordException(exception) {
    const object = typeof exception === "object" && exception !== null;
    const text = (value) => (value === undefined ? undefined : `${value}`);
    const name = text(object ? (exception.name ?? exception.code) : undefined) ?? "Error";
    const message = text(object ? exception.message : exception) ?? "";
    const stack = object ? text(exception.stack) : undefined;
    if (this.#take("exception", name, message.length + (stack === undefined ? 0 : stack.length))) {
      this.#exceptions.push({ timestamp: Math.round(native.traceTime()), name, message, stack });
    }
  }

  updateName(name) {
    name = `${name}`;
    if (this.#trace !== 0) this.#name = cut(name, NAME_MAX);
    return this;
  }

  setStatus(status) {
    const code = `${status?.code}`;
    if (code !== "unset" && code !== "ok" && code !== "error") throw new TypeError(`Invalid span status code "${code}".`);
    const message = code === "error" && status.message !== undefined ? `${status.message}` : undefined;
    if (this.#take("status", "status", message?.length ?? 0)) this.#status = { code, message };
    return this;
  }

  end() {
    const trace = this.#trace;
    if (trace === 0) return;
    this.#trace = 0;
    native.traceSpan(trace, JSON.stringify({
      id: this.#context.spanId, parent: this.#parent, name: this.#name, start: this.#start, end: native.traceTime(),
      attributes: this.#attributes, exceptions: this.#exceptions, status: this.#status,
    }));
  }
}
finishInterface(Span);

function active() {
  const frame = frames.current();
  return frame === undefined ? undefined : frame.get(ACTIVE);
}

function runWith(span, callback, args) {
  if (!span.isTraced && active() === undefined) return callback(...args);
  return frames.run(new Map(frames.current()).set(ACTIVE, span), callback, undefined, args);
}

export class Tracing {
  constructor(key) {
    if (key !== token) throw new TypeError("Illegal constructor");
  }

  /** The span ends with the callback, or with what it promises. */
  enterSpan(name, callback, ...args) {
    const span = begin("enterSpan", name, callback);
    let result;
    try {
      result = runWith(span, callback, [span, ...args]);
    } catch (error) {
      span.end();
      throw error;
    }
    if (!(result instanceof Promise)) {
      span.end();
      return result;
    }
    return result.then((value) => {
      span.end();
      return value;
    }, (error) => {
      span.end();
      throw error;
    });
  }

  startActiveSpan(name, callback, ...args) {
    const span = begin("startActiveSpan", name, callback);
    return runWith(span, callback, [span, ...args]);
  }

  startSpan(name) {
    if (name === undefined) throw argument("startSpan", 1, "string");
    return new Span(token, `${name}`, active());
  }

  getActiveSpan() {
    return active() ?? new Span(token, null);
  }

  withActiveSpan(span, callback, ...args) {
    if (!(span instanceof Span)) throw argument("withActiveSpan", 1, "Span");
    if (typeof callback !== "function") throw argument("withActiveSpan", 2, "Function");
    return runWith(span, callback, args);
  }

  get Span() {
    return Span;
  }
}

function begin(method, name, callback) {
  if (name === undefined) throw argument(method, 1, "string");
  name = `${name}`;
  if (typeof callback !== "function") throw argument(method, 2, "Function");
  return new Span(token, name, active());
}
finishInterface(Tracing);

export const tracing = new Tracing(token);
